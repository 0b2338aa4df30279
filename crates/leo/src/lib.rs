#![doc = include_str!("front_page.md")]

mod accuracy;
mod analysis;
mod bounds;
mod check;
mod compression;
mod domain;
mod equivalence;
mod error;
mod inspection;
mod model_file;
mod names;
mod options;
mod samples;
mod scan;
mod search_file;
mod stages;

pub use accuracy::Accuracy;
pub use analysis::{LayerReport, OutputBounds, PositionCounts, StabilityReport, Totals, UnitReport, WitnessPair};
pub use bounds::BoundsFormat;
pub use check::{Checked, check, check_with};
pub use compression::Compression;
pub use compression::outputs::{OutputReport, Single, Worst};
pub use compression::reasons::{OneSidedUnit, Prospective, StayingUnits, layer_name};
pub use compression::report::{CompressionReport, DeltaParts, PinnedLayer, Seconds, Size, operators_after};
pub use domain::{DomainSpec as Domain, DomainSummary};
pub use equivalence::{
    ComparedOutput, Equivalence, EquivalenceSeconds, EquivalenceVerdict, Furthest, Unpaired, check_comparable, compare,
};
pub use error::Error;
pub use inspection::{Extent, Inspection, LayerSummary, PortSummary};
pub use model_file::{ModelFile, open, open_for_shape};
pub use names::{certificate_of, has_suffix, smaller_than};
pub use options::Options;
pub use samples::{SampleCount, read_labels, read_samples};
pub use scan::ScanReport;
pub use stages::{StageReport, StagesReport};

// Whatever else is named in these pages is found in the crates behind.
pub use leo_network::Domain as BoundedDomain;
pub use {leo_check, leo_compress, leo_formats, leo_network, leo_stability};

pub use leo_check::{Certificate, Refusal, Status, Verified};
pub use leo_compress::{Method, Rule, Tolerance};
pub use leo_formats::onnx::{Float, GivenShape};
pub use leo_formats::vnnlib::NonBox;
pub use leo_formats::{ArrayFile, Model};
pub use leo_network::{Array, Network, Observer, Step};
pub use leo_stability::{Engine, HAS_SOLVER, StopReason, Technique};
