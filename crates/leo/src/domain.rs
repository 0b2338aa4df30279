//! Which inputs matter: as people say it, before a network says how many inputs there are.

use std::ffi::OsStr;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use leo_formats::vnnlib::NonBox;
use leo_formats::{ArrayFile, Format, Model, read_domain};
use leo_network::{Array, Domain};
use serde::Serialize;

use crate::Error;

/// The inputs that matter, for a network that is not named yet: what is asked for. With bounds for each input of a
/// network ([`ModelFile::domain`](crate::ModelFile::domain)) it is a [`BoundedDomain`](leo_network::Domain).
///
/// ```
/// # fn main() -> Result<(), leo::Error> {
/// let pixels = leo::Domain::uniform(0.0, 1.0);
/// let wider = leo::Domain::parse("-1,1")?.widened(0.01);
/// # let _ = (pixels, wider);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct DomainSpec {
    source: BoundsSource,
    margin: Option<f64>,
}

/// Where bounds come from.
#[derive(Clone, Debug)]
enum BoundsSource {
    /// The file of the network says it, as NNet files do.
    Own,
    Uniform(f64, f64),
    Between(Arc<[Array; 2]>),
    Samples(Arc<Array>),
    Given(Domain),
}

impl DomainSpec {
    /// The same interval for every input.
    pub fn uniform(lower: f64, upper: f64) -> Self {
        BoundsSource::Uniform(lower, upper).into()
    }

    /// A lower and an upper bound for each input.
    pub fn between(lower: Array, upper: Array) -> Self {
        BoundsSource::Between(Arc::new([lower, upper])).into()
    }

    /// The smallest box that holds all samples.
    pub fn of_samples(samples: Array) -> Self {
        BoundsSource::Samples(Arc::new(samples)).into()
    }

    /// What the network's own file says, as NNet files do.
    pub fn own() -> Self {
        BoundsSource::Own.into()
    }

    /// From a file: the box of inputs of a VNN-LIB property, or the minima and maxima of an NNet file.
    ///
    /// # Errors
    /// If the file cannot be read, or its inputs form no box and `non_box` refuses that.
    pub fn load(path: impl AsRef<Path>, non_box: NonBox) -> Result<Self, Error> {
        Ok(BoundsSource::Given(read_domain(path.as_ref(), non_box)?).into())
    }

    /// As on a command line: `0,1`, perhaps in brackets; `lo.npy,hi.npy`; or the name of a VNN-LIB or NNet file.
    ///
    /// # Errors
    /// If it is none of these, or a file cannot be read.
    pub fn parse(text: impl AsRef<OsStr>) -> Result<Self, Error> {
        Self::parse_with(text, NonBox::Refuse)
    }

    /// The same, where a property whose inputs form no box may get one around them.
    ///
    /// # Errors
    /// As for [`parse`](Self::parse).
    pub fn parse_with(text: impl AsRef<OsStr>, non_box: NonBox) -> Result<Self, Error> {
        let name = text.as_ref();
        let load = || Self::load(Path::new(name), non_box);
        // Neither numbers nor two names, then.
        let Some(text) = name.to_str() else { return load() };
        let wrong = |what: &str| Err(Error::Request(format!("{text}: {what}")));
        let bare = text.trim();
        let bare = bare.strip_prefix('[').and_then(|bare| bare.strip_suffix(']')).unwrap_or(bare);
        let halves: Vec<&str> = bare.split(',').map(str::trim).collect();
        let numbers: Vec<Option<f64>> = halves.iter().map(|half| half.parse().ok()).collect();
        match (&halves[..], &numbers[..]) {
            (_, &[Some(lower), Some(upper)]) => match () {
                () if !lower.is_finite() || !upper.is_finite() => wrong("bounds must be finite"),
                () if lower > upper => wrong("the lower bound is above the upper bound"),
                () => Ok(Self::uniform(lower, upper)),
            },
            // A comma may also be part of a name.
            (_, [None, ..]) if Path::new(name).is_file() => load(),
            (&[lower, upper], [None, None]) if !lower.is_empty() && !upper.is_empty() => {
                Ok(Self::between(Array::load(Path::new(lower))?, Array::load(Path::new(upper))?))
            }
            ([_], [None]) => load(),
            _ => wrong("should be LO,HI or lo.npy,hi.npy or a .vnnlib or .nnet file"),
        }
    }

    /// Whether some text is a file's name, and neither numbers nor two names.
    pub fn is_file(text: &OsStr) -> bool {
        Path::new(text).is_file() || text.to_str().is_none_or(|text| !text.contains(','))
    }

    /// Wider by `margin` on every side, rounded outward.
    #[must_use]
    pub fn widened(mut self, margin: f64) -> Self {
        self.margin = Some(margin);
        self
    }

    /// The domain of a network.
    ///
    /// # Errors
    /// If it is another network's, or the network's file has none of its own.
    pub fn for_model(&self, model: &Model) -> Result<Domain, Error> {
        let input = model.network().input();
        let inputs = input.elements();
        let domain = match &self.source {
            BoundsSource::Uniform(lower, upper) => Domain::uniform(inputs, *lower, *upper)?,
            BoundsSource::Between(bounds) => Domain::between(&bounds[0], &bounds[1])?,
            BoundsSource::Samples(samples) => Domain::of_samples(samples, input)?,
            BoundsSource::Given(domain) => domain.clone(),
            BoundsSource::Own => match model.format() {
                Format::Nnet(nnet) => nnet.domain().map_err(|error| Error::Request(error.to_string()))?,
                Format::Onnx(_) => {
                    return Err(Error::Request("this file does not say which inputs matter: give a domain".to_owned()));
                }
            },
        };
        let domain = domain.for_inputs(inputs)?;
        Ok(match self.margin {
            Some(margin) => domain.widened(margin)?,
            None => domain,
        })
    }
}

impl From<BoundsSource> for DomainSpec {
    fn from(source: BoundsSource) -> Self {
        Self { source, margin: None }
    }
}

impl FromStr for DomainSpec {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::parse(text)
    }
}

impl From<(f64, f64)> for DomainSpec {
    fn from((lower, upper): (f64, f64)) -> Self {
        Self::uniform(lower, upper)
    }
}

impl From<Domain> for DomainSpec {
    fn from(domain: Domain) -> Self {
        BoundsSource::Given(domain).into()
    }
}

impl From<&Domain> for DomainSpec {
    fn from(domain: &Domain) -> Self {
        BoundsSource::Given(domain.clone()).into()
    }
}

/// A domain, as people and programs read it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DomainSummary {
    /// How many inputs there are.
    pub inputs: usize,
    /// The shape that they have, the batch included, if the file leaves it open and it was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shape: Option<Vec<usize>>,
    /// How many of these can take one value only.
    pub fixed: usize,
    /// The smallest lower bound.
    pub lo: f64,
    /// The largest upper bound.
    pub hi: f64,
    /// The lower bound of every input.
    pub lower: Vec<f64>,
    /// The upper bound of every input.
    pub upper: Vec<f64>,
}

impl DomainSummary {
    /// What there is to say of a domain of a network.
    pub fn new(domain: &Domain, model: &Model) -> Self {
        Self::of_shape(domain, model.given_shape())
    }

    /// What there is to say of a domain, whose points have this shape if it was given.
    pub fn of_shape(domain: &Domain, shape: Option<&[usize]>) -> Self {
        let hull = domain.hull();
        Self {
            inputs: domain.len(),
            shape: shape.map(<[usize]>::to_vec),
            fixed: hull.sides().filter(|(lower, upper)| lower == upper).count(),
            lo: hull.lo().iter().copied().fold(f64::INFINITY, f64::min),
            hi: hull.hi().iter().copied().fold(f64::NEG_INFINITY, f64::max),
            lower: hull.lo().to_vec(),
            upper: hull.hi().to_vec(),
        }
    }
}
