//! The certificate of what was done.

use leo_check::{
    Certificate, ChannelBounds, ChannelLink, ChannelSelection, Correspondence, Expression, Link, PartClaims, Proof,
    UnitLink,
};
use leo_formats::onnx::{Document, OnnxError};
use leo_network::{Domain, Numbers, UnitId};

use crate::compress::Compressed;

/// Delta is given a little larger than it was proved to be, because another processor may round in another way.
const DELTA_MARGIN: f64 = 1.0 / 64.0;

/// One file, and why the next one computes the same.
#[derive(Clone, Debug)]
pub(crate) struct RewriteStep {
    pub(crate) before: Document,
    pub(crate) reasoning: Reasoning,
}

/// Why two networks compute the same.
#[derive(Clone, Debug)]
pub(crate) enum Reasoning {
    /// By what is proved of units, and what they are expressed by.
    Units(Proof, Correspondence),
    /// By which channels are left, what the others are, and which of the first network's linear bounds decide; and by
    /// what is said of units of a dense part, if it was rewritten.
    Channels(ChannelSelection, Vec<ChannelBounds>, Option<PartClaims>),
}

impl RewriteStep {
    /// A step after which the file is as it was.
    pub(crate) fn nothing(before: Document, proof: Proof) -> Self {
        let network = before.network();
        let claims = network.layers().zip(&proof.layers).map(|(layer, proof)| {
            proof.units.iter().map(|status| status.expression(network.activation(layer))).collect()
        });
        let copies = |layer| (0..network.width(layer)).map(|unit| Expression::copy(UnitId { layer, unit })).collect();
        let (claims, roles) = (claims.collect(), network.layers().map(copies).collect());
        let pairs = Correspondence { anchors: Vec::new(), claims, roles };
        Self { before, reasoning: Reasoning::Units(proof, pairs) }
    }
}

impl Compressed {
    /// A certificate of what was done, for the two files with these fingerprints.
    ///
    /// # Errors
    /// If external data of a file cannot be read any more.
    pub fn certificate(&self, first: String, second: String, domain: &Domain) -> Result<Certificate, OnnxError> {
        let after = self.steps.iter().skip(1).map(|step| &step.before).chain([&self.document]);
        let links = self.steps.iter().zip(after).enumerate().map(|(index, (step, after))| {
            let is_last = index + 1 == self.steps.len();
            Ok(match &step.reasoning {
                Reasoning::Units(proof, pairs) => {
                    Link::Units(UnitLink::new(domain, [&step.before, after], proof, pairs, is_last)?)
                }
                Reasoning::Channels(kept, bounds, part) => {
                    let part = part.as_ref();
                    Link::Channels(ChannelLink::new(&step.before, after, kept, bounds, part, is_last)?)
                }
            })
        });
        let rounded = |delta: &Vec<f64>| Numbers::of(&delta.iter().copied().map(rounded_up).collect::<Vec<f64>>());
        let delta = self.delta.iter().map(rounded).collect();
        let delta_f32 = self.delta_f32().map(|delta| delta.iter().map(rounded).collect());
        let links = links.collect::<Result<_, OnnxError>>()?;
        let mut certificate =
            Certificate::new(first, second, domain, delta, links).for_shape(self.document.given_shape());
        certificate.delta_f32 = delta_f32;
        Ok(certificate)
    }
}

/// A number with few digits that is a little more than another; 0 for 0.
fn rounded_up(delta: f64) -> f64 {
    let wanted = delta * (1.0 + DELTA_MARGIN);
    let short: f64 = format!("{wanted:.2e}").parse().unwrap_or(f64::INFINITY);
    // Rounding to three digits can take away half a unit of the third.
    let next: f64 = format!("{:.2e}", wanted * 1.005).parse().unwrap_or(f64::INFINITY);
    if short >= wanted { short } else { next.max(wanted) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deltas_grow_a_little() {
        assert_eq!(rounded_up(0.0), 0.0);
        for delta in [1e-300, 1.2345e-7, 9.99e-5, 9.8424e-3, 0.1, 1.0, 3e10] {
            let rounded = rounded_up(delta);
            assert!(delta * (1.0 + DELTA_MARGIN) <= rounded && rounded <= 1.03 * delta, "{delta:e} {rounded:e}");
        }
        assert_eq!(rounded_up(1.0), 1.02);
    }
}
