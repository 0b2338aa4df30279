//! What the paper reports: Tables 1 and 2 of T. Serra, A. Kumar, S. Ramalingam, *Lossless Compression of Deep Neural
//! Networks* (CPAIOR 2020), for 31 networks in each setting.

use serde::Serialize;

use super::Way;

/// A mean and its standard error.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// The standard error, unknown for a single number.
    pub error: Option<f64>,
}

/// Networks with two hidden layers of the same width, trained with one weight of the l1 term.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Setting {
    /// The width of both layers.
    pub width: usize,
    /// The weight.
    pub l1: f64,
}

/// What is measured in the tables, column by column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// The share of the test set that a network gets right, in percent.
    Accuracy,
    /// Units that LEO removes from the first layer.
    RemovedFirst,
    /// Units that LEO removes from the second layer.
    RemovedSecond,
    /// The share of units removed, in percent.
    Compression,
    /// What compressing one network takes, in seconds.
    Runtime,
    /// Units of the first layer that are always active.
    ActiveFirst,
    /// Units of the second layer that are always active.
    ActiveSecond,
    /// The share of units that are always active or always inactive, in percent.
    Stability,
}

impl Measure {
    /// The columns of the paper's Table 1.
    pub const TABLE_1: [Self; 4] = [Self::Accuracy, Self::RemovedFirst, Self::RemovedSecond, Self::Compression];
    /// The columns of the paper's Table 2.
    pub const TABLE_2: [Self; 4] = [Self::Runtime, Self::ActiveFirst, Self::ActiveSecond, Self::Stability];

    /// How the column is headed.
    pub fn title(self) -> &'static str {
        match self {
            Self::Accuracy => "accuracy (%)",
            Self::RemovedFirst => "removed, layer 1",
            Self::RemovedSecond => "removed, layer 2",
            Self::Compression => "compression (%)",
            Self::Runtime => "run time (s)",
            Self::ActiveFirst => "stably active, layer 1",
            Self::ActiveSecond => "stably active, layer 2",
            Self::Stability => "stability (%)",
        }
    }

    /// What files call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Accuracy => "accuracy_percent",
            Self::RemovedFirst => "removed_layer_1",
            Self::RemovedSecond => "removed_layer_2",
            Self::Compression => "compression_percent",
            Self::Runtime => "runtime_seconds",
            Self::ActiveFirst => "stably_active_layer_1",
            Self::ActiveSecond => "stably_active_layer_2",
            Self::Stability => "stability_percent",
        }
    }

    /// Whether it depends on the way of compressing.
    pub fn depends_on_way(self) -> bool {
        matches!(self, Self::RemovedFirst | Self::RemovedSecond | Self::Compression | Self::Runtime)
    }

    /// The ways of compressing that there is a number for each of: one, if it does not matter.
    pub fn ways(self) -> &'static [Way] {
        if self.depends_on_way() { &Way::ALL } else { &Way::ALL[..1] }
    }

    /// How many decimals of such a number are shown.
    pub(super) fn decimals(self, number: f64) -> usize {
        match self {
            Self::Accuracy => 2,
            Self::Runtime if number < 1.0 => 3,
            _ => 1,
        }
    }
}

/// A line of the paper's tables.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Published {
    /// Which networks.
    pub setting: Setting,
    /// Tables 1 and 2, in the order of their columns: mean and standard error.
    columns: [(f64, f64); 8],
}

impl Published {
    /// What the paper says of these networks.
    pub fn get(&self, measure: Measure) -> Estimate {
        let (mean, error) = self.columns[measure as usize];
        Estimate { mean, error: Some(error) }
    }
}

const fn line(width: usize, l1: f64, table_1: [(f64, f64); 4], table_2: [(f64, f64); 4]) -> Published {
    let [a, b, c, d] = table_1;
    let [e, f, g, h] = table_2;
    Published { setting: Setting { width, l1 }, columns: [a, b, c, d, e, f, g, h] }
}

/// A mean of 0, without any error.
const ZERO: (f64, f64) = (0.0, 0.0);

/// The nine settings.
pub const PAPER: [Published; 9] = [
    line(
        25,
        1e-3,
        [(95.76, 0.05), (5.7, 0.3), (5.1, 0.3), (22.0, 1.0)],
        [(27.9, 0.3), (2.5, 0.3), (7.4, 0.4), (41.3, 0.6)],
    ),
    line(25, 2e-4, [(97.24, 0.02), (1.2, 0.1), (3.0, 0.4), (8.3, 0.7)], [(29.0, 1.0), ZERO, (1.0, 0.2), (10.4, 0.7)]),
    line(25, 0.0, [(96.68, 0.03), ZERO, ZERO, ZERO], [(28.4, 0.3), ZERO, ZERO, ZERO]),
    line(
        50,
        1e-3,
        [(96.05, 0.04), (16.9, 0.6), (12.5, 0.6), (29.4, 0.7)],
        [(103.0, 2.0), (15.0, 0.5), (24.9, 0.6), (69.3, 0.4)],
    ),
    line(
        50,
        2e-4,
        [(97.81, 0.02), (7.6, 0.4), (7.5, 0.5), (15.1, 0.6)],
        [(106.0, 3.0), (2.7, 0.3), (8.8, 0.5), (26.6, 0.6)],
    ),
    line(50, 0.0, [(97.62, 0.02), ZERO, ZERO, ZERO], [(112.0, 3.0), ZERO, ZERO, ZERO]),
    line(
        100,
        5e-4,
        [(97.14, 0.02), (36.7, 0.7), (24.9, 0.6), (30.8, 0.5)],
        [(421.0, 4.0), (35.7, 0.6), (57.7, 0.7), (77.5, 0.2)],
    ),
    line(
        100,
        1e-4,
        [(98.14, 0.01), (18.6, 0.5), (11.1, 0.7), (14.9, 0.4)],
        [(456.0, 8.0), (11.1, 0.5), (18.0, 0.7), (29.4, 0.5)],
    ),
    line(100, 0.0, [(98.00, 0.01), ZERO, ZERO, ZERO], [(385.0, 2.0), ZERO, ZERO, ZERO]),
];
