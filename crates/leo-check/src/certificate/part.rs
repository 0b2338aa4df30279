//! What a link says of what comes after a value, written and read.

use leo_formats::Model;
use leo_formats::onnx::{Document, OnnxError};
use leo_network::{Network, ValueId};
use serde::{Deserialize, Serialize};

use super::entries::RoleEntry;
use super::units::{WrittenLayer, anchors_of, claims_of, layer_proofs, roles_of, written_layers, written_roles};
use crate::channels::PartClaims;
use crate::correspondence::Correspondence;
use crate::proof::{Proof, Status};
use crate::verify::Refusal;

/// Why two networks agree from a value on, unit by unit. Layers are counted from there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenPart {
    /// What the value is called in both files.
    value: String,
    layers: Vec<WrittenLayer>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    anchors: Vec<(String, String)>,
    roles: Vec<Vec<RoleEntry>>,
}

impl WrittenPart {
    /// What is said of two files, of which the first has such a part.
    pub(super) fn new(part: &PartClaims, [first, second]: [&Document; 2]) -> Result<Self, OnnxError> {
        let missing = |why: String| OnnxError::Splice(format!("the dense part cannot be told: {why}"));
        let network = first.network().after(part.value).map_err(|error| missing(error.to_string()))?;
        let value = first.name_of(part.value).ok_or_else(|| missing("its input has no name".to_owned()))?;
        let name = |document: &Document, at: ValueId| document.name_of(at.in_whole(part.value)).map(str::to_owned);
        let anchors = part.pairs.anchors.iter().filter_map(|&(a, b)| Some((name(first, a)?, name(second, b)?)));
        Ok(Self {
            value: value.to_owned(),
            layers: written_layers(&network, &part.proof, &part.pairs.claims),
            anchors: anchors.collect(),
            roles: written_roles(&part.pairs),
        })
    }

    /// The value after which the part comes, in a network.
    pub(super) fn value(&self, first: &Model) -> Option<ValueId> {
        first.value_named(&self.value)
    }

    /// What comes after the value in the first network, and what is said of it.
    pub(super) fn claims(&self, first: &Model, second: &Model) -> Result<(Network, PartClaims), Refusal> {
        let refuse = |reason: &str| Refusal::Network(format!("the part after {:?}: {reason}", self.value));
        let value = self.value(first).ok_or_else(|| refuse("there is no such value"))?;
        if second.value_named(&self.value) != Some(value) {
            return Err(refuse("it is not at the same place in the other network"));
        }
        let network = first.network().after(value).map_err(|error| refuse(&error.to_string()))?;
        let layers = layer_proofs(&self.layers, &network)?;
        if layers.iter().any(|layer| layer.units.contains(&Status::Unstable)) {
            // What a corner of the box shows, no input need show.
            return Err(refuse("a unit is said to be unstable, which nothing shows there"));
        }
        let in_part = |model: &Model, name: &str| model.value_named(name)?.in_part(value);
        let anchors = anchors_of(&self.anchors, |name| in_part(first, name), |name| in_part(second, name))?;
        let claims = claims_of(&self.layers, &network)?;
        let pairs = Correspondence { anchors, claims, roles: roles_of(&self.roles) };
        Ok((network, PartClaims { value, proof: Proof { layers, points: Vec::new() }, pairs }))
    }
}
