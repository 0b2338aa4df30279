//! The certificate: a file with all that a stranger needs to be convinced. `docs/certificate.md` describes it for other
//! programs.
//!
//! In the file, layers are counted from 0, and values of a network have the names that its own file gives them. In
//! memory, these are a [`LayerId`](leo_network::LayerId) and a [`ValueId`], so that reading what is said of a network
//! needs that network.

mod entries;
mod part;
mod units;

use leo_formats::Model;
use leo_formats::onnx::{Document, GivenShape, OnnxError};
use leo_network::{Domain, DomainError, Network, Numbers, ValueId, WrittenDomain};
use serde::de::Error;
use serde::{Deserialize, Serialize};

use crate::channel_proof::ChannelBounds;
use crate::channels::{ChannelExpression, ChannelSelection, KeptChannels, PartClaims, complete};
use crate::plain::is_plain;
use crate::verify::Refusal;
pub(crate) use entries::to_hexadecimal;
use entries::{LinearEntry, RoleEntry, bits_of, digits_of, from_hexadecimal};
pub use entries::{Point, WrittenProof};
use part::WrittenPart;
pub use units::UnitLink;
use units::WrittenLayer;

/// What the format is called.
const FORMAT: &str = "leo certificate";
/// The version of certificates whose links are all about units. The one before has a single delta for each output, and
/// is read as well.
const VERSION: u32 = 2;
/// The version of certificates with links about channels that say no more than which ones stay.
const CHANNEL_VERSION: u32 = 3;
/// The version of certificates that say more: of channels than which ones stay, or for which shape of the input files
/// are read that leave it open.
const LATEST_VERSION: u32 = 4;

/// Two networks, a domain, a number, and why outputs of these networks are nowhere on the domain further apart than
/// that.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Certificate {
    format: String,
    version: u32,
    /// The SHA-256 of the first network's file.
    pub first: String,
    /// The SHA-256 of the second network's file.
    pub second: String,
    /// How long each axis of the input is, if the files leave that open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shape: Option<Vec<usize>>,
    domain: WrittenDomain,
    /// For each output, how far its elements can move.
    pub delta: Vec<Numbers>,
    /// For each output, how far its elements can move if both networks are evaluated in single precision, in any order
    /// of summation; `None` if nothing is said of that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delta_f32: Option<Vec<Numbers>>,
    /// From the first network to the second, by way of others if there is more than one.
    pub links: Vec<Link>,
}

/// Why a file is no certificate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CertificateError {
    /// It does not have the form.
    #[error("is not a certificate")]
    Form(#[from] serde_json::Error),
    /// It is something else, or from another time.
    #[error("is not a certificate of a version that this program knows: {0:?}, version {1}")]
    Version(String, u32),
}

/// Why two networks agree.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged, try_from = "AnyLink")]
pub enum Link {
    /// By what is proved of the units of the first one.
    Units(UnitLink),
    /// Because the second one is the first with fewer channels.
    Channels(ChannelLink),
}

/// Why two networks agree of which the second is the first with fewer channels.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChannelLink {
    /// Values of the first network, and a bit for each of their channels in hexadecimal digits: whether it stays.
    channels: Vec<(String, String)>,
    /// What channels of values that filters make, and that go, are by those that stay.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    expressions: Vec<ExpressionEntry>,
    /// Channels that linear bounds prove to be always off, or on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    linear: Vec<LinearEntry>,
    /// Why what comes after a value agrees unit by unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    part: Option<WrittenPart>,
    /// The second of the two as an ONNX file, in hexadecimal digits; none if it is the certificate's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    network: Option<String>,
}

/// A value, one of its channels, a constant, and other channels with what they are multiplied by.
type ExpressionEntry = (String, usize, f64, Vec<(usize, f64)>);

/// A link as it is read, before it is known what it is about. (Trying one kind after the other would keep a copy of
/// it.)
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AnyLink {
    layers: Option<Vec<WrittenLayer>>,
    points: Option<Vec<Point>>,
    anchors: Option<Vec<(String, String)>>,
    roles: Option<Vec<Vec<RoleEntry>>>,
    channels: Option<Vec<(String, String)>>,
    expressions: Option<Vec<ExpressionEntry>>,
    linear: Option<Vec<LinearEntry>>,
    part: Option<WrittenPart>,
    network: Option<String>,
}

impl TryFrom<AnyLink> for Link {
    type Error = &'static str;

    fn try_from(link: AnyLink) -> Result<Self, Self::Error> {
        let AnyLink { layers, points, anchors, roles, channels, expressions, linear, part, network } = link;
        let says_nothing =
            expressions.as_ref().is_some_and(Vec::is_empty) || linear.as_ref().is_some_and(Vec::is_empty);
        let says_more = expressions.is_some() || linear.is_some() || part.is_some();
        match (layers, roles, channels) {
            (Some(layers), Some(roles), None) if !says_more => {
                let (points, anchors) = (points.unwrap_or_default(), anchors.unwrap_or_default());
                Ok(Self::Units(UnitLink { layers, points, anchors, roles, network }))
            }
            (None, None, Some(_)) if says_nothing => Err("expressions or linear bounds of nothing"),
            (None, None, Some(channels)) if points.is_none() && anchors.is_none() => {
                let (expressions, linear) = (expressions.unwrap_or_default(), linear.unwrap_or_default());
                Ok(Self::Channels(ChannelLink { channels, expressions, linear, part, network }))
            }
            _ => Err("a link has layers and roles, or channels"),
        }
    }
}

/// The version that has all this.
fn version_asked(has_shape: bool, links: &[Link]) -> u32 {
    let of_link = |link: &Link| match link {
        Link::Units(_) => VERSION,
        Link::Channels(link) if link.says_more() => LATEST_VERSION,
        Link::Channels(_) => CHANNEL_VERSION,
    };
    if has_shape { LATEST_VERSION } else { links.iter().map(of_link).max().unwrap_or(VERSION) }
}

impl Certificate {
    /// What links prove of two files on a domain.
    pub fn new(first: String, second: String, domain: &Domain, delta: Vec<Numbers>, links: Vec<Link>) -> Self {
        let version = version_asked(false, &links);
        let (format, domain) = (FORMAT.to_owned(), domain.written());
        Self { format, version, first, second, shape: None, domain, delta, delta_f32: None, links }
    }

    /// The same for an input of this shape, which files leave open.
    #[must_use]
    pub fn for_shape(mut self, shape: Option<&[usize]>) -> Self {
        if let Some(shape) = shape {
            (self.version, self.shape) = (LATEST_VERSION, Some(shape.to_vec()));
        }
        self
    }

    /// Reads a certificate.
    ///
    /// # Errors
    /// If it is not one, or one of another version.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, CertificateError> {
        /// What every version has.
        #[derive(Deserialize)]
        struct Head {
            format: String,
            version: u32,
        }
        let Head { format, version } = serde_json::from_slice(bytes)?;
        if format != FORMAT || !(1..=LATEST_VERSION).contains(&version) {
            return Err(CertificateError::Version(format, version));
        }
        let certificate: Self = serde_json::from_slice(bytes)?;
        let is_plain_delta = |delta: &Numbers| matches!(delta, Numbers::Same(_));
        if version == 1 && !(certificate.delta.iter().all(is_plain_delta) && certificate.delta_f32.is_none()) {
            return Err(CertificateError::Form(Error::custom("version 1 has one delta for each output")));
        }
        if version_asked(certificate.shape.is_some(), &certificate.links) != version.max(VERSION) {
            let what = "version 3 has links about channels, and version 4 a shape, or links that say more of channels";
            return Err(CertificateError::Form(Error::custom(what)));
        }
        if !is_plain(bytes, &certificate)? {
            return Err(CertificateError::Form(Error::custom("a list in place of an object, or null")));
        }
        Ok(certificate)
    }

    /// The certificate as a file. A number that is not finite becomes `null`, and the file no certificate.
    ///
    /// # Errors
    /// If it cannot be written as JSON, which nothing in a certificate leads to.
    pub fn to_bytes(&self) -> Result<Vec<u8>, CertificateError> {
        let mut bytes = serde_json::to_vec(self)?;
        bytes.push(b'\n');
        Ok(bytes)
    }

    /// The shape that its files are to be read for, if they leave that open.
    pub fn given_shape(&self) -> Option<GivenShape> {
        self.shape.clone().map(GivenShape::Extents)
    }

    /// The domain that it is about, of a network that has `inputs` inputs.
    pub(crate) fn domain(&self, inputs: usize) -> Result<Domain, DomainError> {
        self.domain.domain(inputs)
    }

    /// The networks between the first and the second, unless one is missing, or is no network.
    pub(crate) fn networks(&self) -> Result<Vec<Model>, Refusal> {
        let refuse = |reason: &str| Err(Refusal::Network(reason.to_owned()));
        let Some((last, others)) = self.links.split_last() else { return refuse("there is no link") };
        if last.network().is_some() {
            return refuse("the last link leads to a network of its own");
        }
        let shape = self.given_shape();
        let mut networks = Vec::new();
        for link in others {
            let Some(bytes) = link.network().and_then(from_hexadecimal) else {
                return refuse("a link leads to no network");
            };
            // Without a folder: what is not in the certificate does not count.
            let document = Document::from_bytes_for_shape(bytes, None, shape.as_ref());
            networks.push(Model::from(document.map_err(|error| Refusal::Network(error.to_string()))?));
        }
        Ok(networks)
    }
}

impl Link {
    /// The network that it leads to, if that is not the certificate's own.
    fn network(&self) -> Option<&str> {
        match self {
            Self::Units(link) => link.network.as_deref(),
            Self::Channels(link) => link.network.as_deref(),
        }
    }
}

impl ChannelLink {
    /// Why a network with these channels agrees with the one that has all of them.
    ///
    /// # Errors
    /// If the second network is to be part of the link, and external data cannot be read any more.
    pub fn new(
        first: &Document,
        second: &Document,
        selection: &ChannelSelection,
        bounds: &[ChannelBounds],
        part: Option<&PartClaims>,
        is_last: bool,
    ) -> Result<Self, OnnxError> {
        let part = part.map(|part| WrittenPart::new(part, [first, second])).transpose()?;
        let network = first.network();
        let named = selection.kept.iter().filter_map(|(&value, kept)| {
            let count = network.channels(value).count();
            let bits: Vec<bool> = (0..count).map(|channel| kept.binary_search(&channel).is_ok()).collect();
            Some((first.name_of(value)?.to_owned(), digits_of(&bits)))
        });
        let all = selection.expressions.iter().flat_map(|(&value, all)| all.iter().map(move |of| (value, of)));
        let entry = |(value, (&channel, of)): (ValueId, (&usize, &ChannelExpression))| {
            Some((first.name_of(value)?.to_owned(), channel, of.constant, of.terms.clone()))
        };
        let (channels, expressions) = (named.collect(), all.filter_map(entry).collect());
        let linear = bounds.iter().map(|bounds| LinearEntry::new(network, bounds)).collect();
        let second = if is_last { None } else { Some(to_hexadecimal(&second.to_bytes()?)) };
        Ok(Self { channels, expressions, linear, part, network: second })
    }

    /// Whether it says more than which channels stay.
    fn says_more(&self) -> bool {
        !self.expressions.is_empty() || !self.linear.is_empty() || self.part.is_some()
    }

    /// What comes after a value in the first network, and what is said of it, if something is.
    pub(crate) fn part(&self, first: &Model, second: &Model) -> Result<Option<(Network, PartClaims)>, Refusal> {
        self.part.as_ref().map(|part| part.claims(first, second)).transpose()
    }

    /// What is said of the channels of all values.
    pub(crate) fn selection(&self, first: &Model) -> Result<ChannelSelection, Refusal> {
        let mut selection = ChannelSelection { kept: self.kept(first)?, ..ChannelSelection::default() };
        for (name, channel, constant, terms) in &self.expressions {
            let refuse = |reason: &str| Refusal::Network(format!("channel {channel} of value {name:?}: {reason}"));
            let value = first.value_named(name).ok_or_else(|| refuse("there is no such value"))?;
            let expression = ChannelExpression { constant: *constant, terms: terms.clone() };
            if selection.expressions.entry(value).or_default().insert(*channel, expression).is_some() {
                return Err(refuse("it is expressed twice"));
            }
        }
        Ok(selection)
    }

    /// The channels that linear bounds prove to be always off, or on.
    pub(crate) fn bounds(&self, first: &Network) -> Result<Vec<ChannelBounds>, Refusal> {
        self.linear.iter().map(|entry| entry.bounds(first)).collect()
    }

    /// The channels that stay, of all values.
    fn kept(&self, first: &Model) -> Result<KeptChannels, Refusal> {
        let mut kept = KeptChannels::new();
        for (name, digits) in &self.channels {
            let refuse = |reason: &str| Refusal::Network(format!("channels of value {name:?}: {reason}"));
            let value = first.value_named(name).ok_or_else(|| refuse("there is no such value"))?;
            let count = first.network().channels(value).count();
            let bits = bits_of(digits, count).ok_or_else(|| refuse(&format!("it has {count} of them")))?;
            let channels = (0..count).filter(|&channel| bits[channel]).collect();
            if kept.insert(value, channels).is_some() {
                return Err(refuse("they are given twice"));
            }
        }
        let part = self.part.as_ref().and_then(|part| part.value(first));
        let all = complete(first.network(), part, kept.clone());
        let untold = all.keys().filter(|value| !kept.contains_key(value)).find_map(|&value| first.name_of(value));
        match untold {
            None => Ok(all),
            Some(name) => Err(Refusal::Network(format!("channels of value {name:?} go, and are not given"))),
        }
    }
}
