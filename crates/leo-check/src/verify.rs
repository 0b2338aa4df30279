//! The entry point of a check: from two files and a certificate to an answer.

use std::path::Path;

use leo_formats::onnx::{Document, GivenShape, OnnxError};
use leo_formats::{FileError, Model, read_file};
use leo_network::{Domain, DomainError, LayerId, Numbers, Observer, Step, UnitId};
use sha2::{Digest, Sha256};

use crate::certificate::{Certificate, ChannelLink, Link, to_hexadecimal};
use crate::channels::{PartPair, channel_difference};
use crate::checker::ProvedBounds;
use crate::correspondence::Mismatch;
use crate::deviation::{Difference, difference};
use crate::evaluation::{apart_in_single, single_errors};
use crate::exact::Exact;
use crate::number::Number;

/// A network and the fingerprint of its file.
#[derive(Clone, Debug)]
pub struct HashedModel {
    /// The network.
    pub model: Model,
    /// The SHA-256 of the file, unpacked if it was gzip, in hexadecimal digits.
    pub sha256: String,
}

impl HashedModel {
    /// Reads a file.
    ///
    /// # Errors
    /// As for [`Model::load`].
    pub fn load(path: &Path) -> Result<Self, FileError> {
        Self::from_bytes(read_file(path)?, path)
    }

    /// The content of a file that has, or is to have, this name.
    ///
    /// # Errors
    /// As for [`Model::from_bytes`].
    pub fn from_bytes(bytes: Vec<u8>, path: &Path) -> Result<Self, FileError> {
        Self::from_bytes_for_shape(bytes, path, None)
    }

    /// The content of a file that has, or is to have, this name, for an input of this shape where the file leaves that
    /// open.
    ///
    /// # Errors
    /// As for [`Model::from_bytes_for_shape`].
    pub fn from_bytes_for_shape(bytes: Vec<u8>, path: &Path, shape: Option<&GivenShape>) -> Result<Self, FileError> {
        let sha256 = to_hexadecimal(&Sha256::digest(&bytes));
        Ok(Self { model: Model::from_bytes_for_shape(bytes, path, shape)?, sha256 })
    }

    /// The content of an ONNX file that stands alone.
    ///
    /// # Errors
    /// As for [`Document::from_bytes`].
    pub fn from_onnx(bytes: Vec<u8>) -> Result<Self, OnnxError> {
        Self::from_onnx_for_shape(bytes, None)
    }

    /// The content of an ONNX file that stands alone, for an input of this shape where the file leaves that open.
    ///
    /// # Errors
    /// As for [`Document::from_bytes_for_shape`].
    pub fn from_onnx_for_shape(bytes: Vec<u8>, shape: Option<&[usize]>) -> Result<Self, OnnxError> {
        let sha256 = to_hexadecimal(&Sha256::digest(&bytes));
        let shape = shape.map(|extents| GivenShape::Extents(extents.to_vec()));
        Ok(Self { model: Document::from_bytes_for_shape(bytes, None, shape.as_ref())?.into(), sha256 })
    }
}

/// What was proved: on the domain, no output of the second network is further from the first one's than its delta.
#[derive(Clone, Debug, PartialEq)]
pub struct Verified {
    /// The inputs.
    pub domain: Domain,
    /// The shape that they have, if the files leave it open.
    pub shape: Option<Vec<usize>>,
    /// For each output, what the certificate says of its elements.
    pub delta: Vec<Numbers>,
    /// For each element of each output, what was proved: at most that.
    pub proved: Vec<Vec<f64>>,
    /// For each output, what the certificate says of its elements if both networks are evaluated in single precision,
    /// if it says something of that.
    pub delta_f32: Option<Vec<Numbers>>,
}

/// Why a certificate does not prove what it says.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// Another file than the one that it is about.
    #[error(
        "the certificate is about another file than the {which} one, with the SHA-256 {said}; this one has {found}"
    )]
    Hash {
        /// Which of the two.
        which: &'static str,
        /// What the certificate says.
        said: String,
        /// What the file has.
        found: String,
    },
    /// The right files in the wrong order.
    #[error("the certificate is about these files in the other order: are the two networks swapped?")]
    Swapped,
    /// The two files have other inputs, outputs or tails.
    #[error("the two files cannot be compared: {0}")]
    Interface(String),
    /// Another network's domain.
    #[error("the domain does not fit: {0}")]
    Domain(#[from] DomainError),
    /// Something is said of a network that it does not have.
    #[error("{0}")]
    Network(String),
    /// Something is said of a layer that it does not have.
    #[error("layer {layer}: {reason}")]
    Layer {
        /// Which layer, counted from 0.
        layer: usize,
        /// What.
        reason: String,
    },
    /// Something said of a unit is not proved.
    #[error("layer {layer}, unit {unit}: {reason}")]
    Unit {
        /// Which layer, counted from 0.
        layer: usize,
        /// Which of its units, counted from 0.
        unit: usize,
        /// What.
        reason: String,
    },
    /// What is said of two networks makes no sense.
    #[error(transparent)]
    Correspondence(#[from] Mismatch),
    /// The outputs can be further apart, as far as is proved.
    #[error(
        "output {output}, element {element}: {what} is said to be {}, and only {} is proved",
        said(*.delta),
        rounded(*.proved)
    )]
    Delta {
        /// What of it is said: delta, or delta in single precision.
        what: &'static str,
        /// Which output, counted from 0.
        output: usize,
        /// Which of its elements, counted from 0.
        element: usize,
        /// What the certificate says.
        delta: f64,
        /// What is proved.
        proved: f64,
    },
}

/// A number as the certificate has it, in as few characters as people like to read.
fn said(number: f64) -> String {
    if number == 0.0 || (1e-3..1e6).contains(&number.abs()) { number.to_string() } else { format!("{number:e}") }
}

/// A number that was computed, in four digits, and in as few characters as people like to read.
pub(crate) fn rounded(number: f64) -> String {
    let digits = format!("{number:.3e}");
    digits.parse().map_or(digits, |number: f64| said(number))
}

impl Refusal {
    pub(crate) fn unit(UnitId { layer, unit }: UnitId, reason: &str) -> Self {
        Self::Unit { layer: layer.index(), unit, reason: reason.to_owned() }
    }

    pub(crate) fn layer(layer: LayerId, reason: String) -> Self {
        Self::Layer { layer: layer.index(), reason }
    }
}

/// Proves again what a certificate says of two files, from nothing but these, in doubles, and tells `observer` how far
/// it has come.
///
/// Each link of the certificate is about two networks. The facts of the first one's units are proved, then both are
/// expressed by the same basis, and the difference of these expressions is bounded over the domain. Differences of all
/// links add up. What single precision can do to either network comes on top, if something is said of that.
///
/// # Errors
/// If anything in the certificate is not proved.
pub fn verify(
    first: &HashedModel,
    second: &HashedModel,
    certificate: &Certificate,
    observer: &dyn Observer,
) -> Result<Verified, Refusal> {
    verify_in::<f64>(first, second, certificate, observer)
}

/// As [`verify()`], in exact numbers.
///
/// # Errors
/// If anything in the certificate is not proved.
pub fn verify_exactly(
    first: &HashedModel,
    second: &HashedModel,
    certificate: &Certificate,
    observer: &dyn Observer,
) -> Result<Verified, Refusal> {
    verify_in::<Exact>(first, second, certificate, observer)
}

/// What both do. Only this crate compiles it: crates that call a generic function compile it each once more.
fn verify_in<N: Number>(
    first: &HashedModel,
    second: &HashedModel,
    certificate: &Certificate,
    observer: &dyn Observer,
) -> Result<Verified, Refusal> {
    check_files(first, second, certificate)?;
    let domain = certificate.domain(first.model.network().input().elements())?;
    let between = certificate.networks()?;
    let models: Vec<&Model> = [&first.model].into_iter().chain(&between).chain([&second.model]).collect();
    let mut sums: Vec<Vec<N>> = Vec::new();
    let single = certificate.delta_f32.as_ref();
    if single.is_some() && !(first.model.is_plainly_single() && second.model.is_plainly_single()) {
        return Err(Refusal::Network(
            "delta_f32 is about files that are all in single precision, and plainly so".into(),
        ));
    }
    let mut errors = Vec::new();
    for (index, (link, pair)) in certificate.links.iter().zip(models.windows(2)).enumerate() {
        let (one, other) = (pair[0], pair[1]);
        let is_last = index + 1 == certificate.links.len();
        let with_ranges = single.is_some() && is_last;
        let (facts, found) = match link {
            Link::Units(link) => {
                let proof = link.proof(one.network(), &domain)?;
                let facts = proof.check_with_observer::<N>(one.network(), &domain, observer)?;
                observer.begin(Step::Difference, 1);
                let pairs = link.correspondence(one, other)?;
                let found = difference(&facts, other.network(), &pairs, with_ranges)?;
                (facts, found)
            }
            Link::Channels(link) => {
                let bounds = link.bounds(one.network())?;
                let facts = ProvedBounds::<N>::of_channels(one.network(), &domain, &bounds, observer)?;
                let found = difference_of_channels(link, [one, other], &facts, with_ranges, observer)?;
                (facts, found)
            }
        };
        let Difference { deviation, ranges } = found;
        let elements = other.network().outputs().iter().map(|&value| other.network().shape(value).elements());
        if !deviation.iter().map(Vec::len).eq(elements) {
            // Nothing may be left out of what is compared.
            return Err(Refusal::Correspondence(Mismatch::Interface));
        }
        if single.is_some() && index == 0 {
            errors.push(single_errors(one.network(), facts.ranges()));
        }
        if single.is_some() && is_last {
            errors.push(single_errors(other.network(), &ranges));
        }
        if sums.is_empty() {
            sums = deviation;
        } else {
            for (sum, distance) in sums.iter_mut().flatten().zip(deviation.iter().flatten()) {
                *sum = if distance.is_zero() { sum.clone() } else { sum.plus(distance).up() };
            }
        }
    }
    let proved = compare("delta", &sums, &certificate.delta)?;
    if let Some(said) = single {
        compare("delta_f32", &apart_in_single(&proved, &errors), said)?;
    }
    Ok(Verified {
        domain,
        shape: certificate.shape.clone(),
        delta: certificate.delta.clone(),
        proved,
        delta_f32: single.cloned(),
    })
}

/// Sees to it that a certificate is about these two files, and that these can be compared.
fn check_files(first: &HashedModel, second: &HashedModel, certificate: &Certificate) -> Result<(), Refusal> {
    if first.sha256 == certificate.second && second.sha256 == certificate.first && first.sha256 != second.sha256 {
        return Err(Refusal::Swapped);
    }
    for (which, file, said) in [("first", first, &certificate.first), ("second", second, &certificate.second)] {
        if file.sha256 != *said {
            return Err(Refusal::Hash { which, said: said.clone(), found: file.sha256.clone() });
        }
    }
    check_shape("first", &first.model, certificate.shape.as_deref())?;
    check_shape("second", &second.model, certificate.shape.as_deref())?;
    first.model.check_interface(&second.model).map_err(|difference| Refusal::Interface(difference.to_string()))
}

/// Sees to it that a file was read for the shape that is claimed: the one that is said, or if none is, that of the
/// file.
fn check_shape(which: &str, model: &Model, said: Option<&[usize]>) -> Result<(), Refusal> {
    let (read, was_given) = (model.extents().unwrap_or_default(), model.given_shape().is_some());
    match said {
        Some(said) if said != read => {
            Err(Refusal::Network(format!("the shape {said:?} is said of the input, and the {which} file has {read:?}")))
        }
        None if was_given => Err(Refusal::Network(format!(
            "no shape is said of the input, and the {which} file, which leaves it open, was read for {read:?}"
        ))),
        _ => Ok(()),
    }
}

/// How far two networks can be apart by what a link about channels says, if this is known of the first.
fn difference_of_channels<N: Number>(
    link: &ChannelLink,
    [one, other]: [&Model; 2],
    facts: &ProvedBounds<'_, N>,
    with_ranges: bool,
    observer: &dyn Observer,
) -> Result<Difference<N>, Refusal> {
    let selection = link.selection(one)?;
    let Some((network, claims)) = link.part(one, other)? else {
        observer.begin(Step::Difference, 1);
        return Ok(channel_difference(facts, other.network(), &selection, None, with_ranges)?);
    };
    let proved = claims.proof.check_with_observer::<N>(&network, &facts.domain_at(claims.value)?, observer)?;
    observer.begin(Step::Difference, 1);
    let pair = PartPair { value: claims.value, facts: &proved, pairs: &claims.pairs };
    Ok(channel_difference(facts, other.network(), &selection, Some(&pair), with_ranges)?)
}

/// Sees to it that no element of an output can move further than it is said to, and returns how far that is.
fn compare<N: Number>(what: &'static str, sums: &[Vec<N>], said: &[Numbers]) -> Result<Vec<Vec<f64>>, Refusal> {
    if sums.len() != said.len() {
        let reason = format!("{what} is given for {} outputs, and there are {}", said.len(), sums.len());
        return Err(Refusal::Network(reason));
    }
    for (output, (sums, said)) in sums.iter().zip(said).enumerate() {
        if !said.are_for(sums.len()) {
            let reason = format!("{what} of output {output} is given for more elements or fewer than it has");
            return Err(Refusal::Network(reason));
        }
        for (element, sum) in sums.iter().enumerate() {
            let delta = said.at(element);
            let holds = *sum <= N::of(delta);
            if !holds {
                return Err(Refusal::Delta { what, output, element, delta, proved: sum.rounded_up() });
            }
        }
    }
    Ok(sums.iter().map(|sums| sums.iter().map(N::rounded_up).collect()).collect())
}
