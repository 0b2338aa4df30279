//! From two files and a certificate to an answer.

use std::path::Path;

use leo_network::{Domain, DomainError, FileError, Model, read_file};
use sha2::{Digest, Sha256};

use crate::certificate::{Certificate, to_hexadecimal};
use crate::deviation::{Mismatch, deviation};
use crate::number::Number;
use crate::progress::{Progress, Step};

/// A network and the fingerprint of its file.
#[derive(Clone, Debug)]
pub struct Sealed {
    /// The network.
    pub model: Model,
    /// The SHA-256 of the file, unpacked if it was gzip, in hexadecimal digits.
    pub sha256: String,
}

impl Sealed {
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
        let sha256 = to_hexadecimal(&Sha256::digest(&bytes));
        Ok(Self { model: Model::from_bytes(bytes, path)?, sha256 })
    }
}

/// What was proved: on the domain, no output of the second network is further from the first one's than its delta.
#[derive(Clone, Debug, PartialEq)]
pub struct Verified {
    /// The inputs.
    pub domain: Domain,
    /// For each output, what the certificate says.
    pub delta: Vec<f64>,
    /// For each output, what was proved: at most that.
    pub proved: Vec<f64>,
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
        /// Which layer of ReLUs, counted from 0.
        layer: usize,
        /// What.
        reason: String,
    },
    /// Something said of a unit is not proved.
    #[error("layer {layer}, unit {unit}: {reason}")]
    Unit {
        /// Which layer of ReLUs, counted from 0.
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
    #[error("output {output}, element {element}: delta is said to be {}, and only {} is proved", said(*.delta), rounded(*.proved))]
    Delta {
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

/// The same of a number that was computed, in four digits.
pub(crate) fn rounded(number: f64) -> String {
    let digits = format!("{number:.3e}");
    digits.parse().map_or(digits, |number: f64| said(number))
}

impl Refusal {
    pub(crate) fn unit(layer: usize, unit: usize, reason: &str) -> Self {
        Self::Unit { layer, unit, reason: reason.to_owned() }
    }
}

/// Proves again what a certificate says of two files, from nothing but these: in doubles, or in exact numbers.
///
/// Each link of the certificate is about two networks. The facts of the first one's units are proved, then both are expressed by the same
/// basis, and the difference of these expressions is bounded over the domain. Differences of all links add up.
///
/// # Errors
/// If anything in the certificate is not proved.
pub fn verify<N: Number>(first: &Sealed, second: &Sealed, certificate: &Certificate) -> Result<Verified, Refusal> {
    verify_watched::<N>(first, second, certificate, &())
}

/// The same, and says how far it has come.
///
/// # Errors
/// If anything in the certificate is not proved.
pub fn verify_watched<N: Number>(
    first: &Sealed,
    second: &Sealed,
    certificate: &Certificate,
    progress: &dyn Progress,
) -> Result<Verified, Refusal> {
    if first.sha256 == certificate.second && second.sha256 == certificate.first && first.sha256 != second.sha256 {
        return Err(Refusal::Swapped);
    }
    for (which, file, said) in [("first", first, &certificate.first), ("second", second, &certificate.second)] {
        if file.sha256 != *said {
            return Err(Refusal::Hash { which, said: said.clone(), found: file.sha256.clone() });
        }
    }
    first.model.check_interface(&second.model).map_err(|difference| Refusal::Interface(difference.to_string()))?;
    let domain = certificate.domain(first.model.network().input().elements())?;
    let between = certificate.networks()?;
    let models: Vec<&Model> = [&first.model].into_iter().chain(&between).chain([&second.model]).collect();
    let mut sums: Vec<Vec<N>> = Vec::new();
    for (link, pair) in certificate.links.iter().zip(models.windows(2)) {
        let (one, other) = (pair[0], pair[1]);
        let facts = link.proof(one.network(), &domain)?.check_watched::<N>(one.network(), &domain, progress)?;
        progress.begins(Step::Difference, 1);
        let distances = deviation(&facts, other.network(), &link.correspondence(one, other)?)?;
        if sums.is_empty() {
            sums = distances;
        } else {
            for (sum, distance) in sums.iter_mut().flatten().zip(distances.iter().flatten()) {
                *sum = if distance.is_zero() { sum.clone() } else { sum.plus(distance).up() };
            }
        }
    }
    if sums.len() != certificate.delta.len() {
        let said = certificate.delta.len();
        return Err(Refusal::Network(format!("delta is given for {said} outputs, and there are {}", sums.len())));
    }
    let mut proved = Vec::new();
    for (output, (sums, &delta)) in sums.iter().zip(&certificate.delta).enumerate() {
        for (element, sum) in sums.iter().enumerate() {
            let holds = *sum <= N::of(delta);
            if !holds {
                return Err(Refusal::Delta { output, element, delta, proved: sum.rounded_up() });
            }
        }
        proved.push(sums.iter().map(N::rounded_up).fold(0.0, f64::max));
    }
    Ok(Verified { domain, delta: certificate.delta.clone(), proved })
}
