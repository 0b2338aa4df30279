//! The tables: for people, for spreadsheets and for programs.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::Serialize;
use serde_json::json;

use super::paper::{Estimate, Measure, Published, Setting};
use super::{Experiment, ExperimentNetwork, NETWORKS, PLOT, RemovedCounts, Stability, Way};

/// Ours beside the paper's.
#[derive(Clone, Debug)]
pub struct Tables {
    command: String,
    pub(super) data: String,
    wanted: u64,
    pub(super) epochs: u32,
    /// One line a setting.
    pub lines: Vec<Line>,
    /// Every network that is done.
    pub networks: Vec<ExperimentNetwork>,
}

/// A setting, in the paper and here.
#[derive(Clone, Debug)]
pub struct Line {
    /// What the paper has.
    pub paper: Published,
    /// How many networks we have.
    pub networks: usize,
    /// What we have, in the order of the columns of both tables, for each way of compressing.
    ours: Vec<[Option<Estimate>; 3]>,
}

impl Line {
    /// What we have.
    pub fn ours(&self, measure: Measure, way: Way) -> Option<Estimate> {
        self.ours[measure as usize][way as usize]
    }

    /// Which networks.
    pub fn setting(&self) -> Setting {
        self.paper.setting
    }
}

impl Tables {
    pub(super) fn new(experiment: &Experiment, networks: Vec<ExperimentNetwork>) -> Self {
        let line = |&paper: &Published| {
            let ours: Vec<&ExperimentNetwork> =
                networks.iter().filter(|network| network.setting == paper.setting).collect();
            let estimate = |measure, way| {
                let values: Vec<f64> = ours.iter().map(|network| network.get(measure, way)).collect();
                Estimate::of(&values)
            };
            let measures = Measure::TABLE_1.into_iter().chain(Measure::TABLE_2);
            let each = |measure| Way::ALL.map(|way| estimate(measure, way));
            Line { paper, networks: ours.len(), ours: measures.map(each).collect() }
        };
        Self {
            command: experiment.command.clone(),
            data: experiment.data.clone(),
            wanted: experiment.networks * experiment.settings.len() as u64,
            epochs: experiment.epochs,
            lines: experiment.settings.iter().map(line).collect(),
            networks,
        }
    }

    /// One line a network.
    pub(super) fn networks_csv(&self) -> String {
        let mut csv =
            "width,l1,seed,test_accuracy,train_accuracy,loss,active_1,active_2,inactive_1,inactive_2,undecided,"
                .to_owned();
        for way in Way::ALL.map(Way::name) {
            let _ = write!(csv, "{way}_removed_1,{way}_removed_2,{way}_delta,");
        }
        csv += "file\n";
        for ExperimentNetwork { setting, seed, file, outcome, stability, removed } in &self.networks {
            let (Setting { width, l1 }, accuracy) = (setting, outcome.test_accuracy);
            let (train, loss) = (outcome.train_accuracy, outcome.loss);
            let Stability { active: [active_1, active_2], inactive: [inactive_1, inactive_2], undecided, .. } =
                stability;
            let units = format!("{active_1},{active_2},{inactive_1},{inactive_2},{undecided}");
            let _ = write!(csv, "{width},{l1},{seed},{accuracy},{train},{loss},{units},");
            for RemovedCounts { units: [first, second], delta, .. } in removed {
                let _ = write!(csv, "{first},{second},{delta:e},");
            }
            let _ = writeln!(csv, "{NETWORKS}/{file}");
        }
        csv
    }

    /// One line a number.
    pub(super) fn csv(&self) -> String {
        let mut csv = "width,l1,measure,method,paper_mean,paper_error,networks,our_mean,our_error\n".to_owned();
        for line in &self.lines {
            let Setting { width, l1 } = line.setting();
            let measures = Measure::TABLE_1.into_iter().chain(Measure::TABLE_2);
            for (measure, &way) in measures.flat_map(|measure| measure.ways().iter().map(move |way| (measure, way))) {
                let paper = line.paper.get(measure);
                let number = |number: Option<f64>| number.map_or_else(String::new, |number| number.to_string());
                let (mean, error) = line.ours(measure, way).map_or((None, None), |ours| (Some(ours.mean), ours.error));
                let cells = [
                    width.to_string(),
                    l1.to_string(),
                    measure.name().to_owned(),
                    if measure.depends_on_way() { way.name().to_owned() } else { String::new() },
                    number(Some(paper.mean)),
                    number(paper.error),
                    line.networks.to_string(),
                    number(mean),
                    number(error),
                ];
                let _ = writeln!(csv, "{}", cells.join(","));
            }
        }
        csv
    }

    /// All of it.
    pub(super) fn json(&self) -> String {
        /// The paper's number, ours for the same algorithm and, where that makes a difference, ours for the others.
        #[derive(Serialize)]
        struct SettingNumbers {
            paper: Estimate,
            ours: Option<Estimate>,
            #[serde(skip_serializing_if = "Option::is_none")]
            ours_full_tolerance_0: Option<Estimate>,
            #[serde(skip_serializing_if = "Option::is_none")]
            ours_full: Option<Estimate>,
        }
        let line = |line: &Line| {
            let other = |measure: Measure, way| line.ours(measure, way).filter(|_| measure.depends_on_way());
            let numbers = |measure: Measure| SettingNumbers {
                paper: line.paper.get(measure),
                ours: line.ours(measure, Way::Leo),
                ours_full_tolerance_0: other(measure, Way::FullExact),
                ours_full: other(measure, Way::Full),
            };
            let measures = Measure::TABLE_1.into_iter().chain(Measure::TABLE_2);
            let measures: serde_json::Map<_, _> =
                measures.map(|measure| (measure.name().to_owned(), json!(numbers(measure)))).collect();
            let Setting { width, l1 } = line.setting();
            json!({ "width": width, "l1": l1, "networks": line.networks, "measures": measures })
        };
        let network = |network: &ExperimentNetwork| {
            let removed = Way::ALL.map(|way| (way.name(), network.removed[way as usize]));
            json!({
                "width": network.setting.width,
                "l1": network.setting.l1,
                "seed": network.seed,
                "file": format!("{NETWORKS}/{}", network.file),
                "outcome": network.outcome,
                "stability": network.stability,
                "removed": removed.into_iter().collect::<BTreeMap<_, _>>(),
            })
        };
        let all = json!({
            "version": 1,
            "command": self.command,
            "data": self.data,
            "epochs": self.epochs,
            "networks_wanted": self.wanted,
            "lines": self.lines.iter().map(line).collect::<Vec<_>>(),
            "networks": self.networks.iter().map(network).collect::<Vec<_>>(),
        });
        format!("{all:#}\n")
    }

    /// Both tables, as the paper has them, with ours beside each of its columns.
    pub(super) fn markdown(&self) -> String {
        let mut text = format!(
            "# The paper's experiment, repeated\n\n\
             Made by `{}`: {} of {} networks, each trained for {} epochs on {}. \
             Mean and standard error over the networks of a line; \
             the paper's are over 31 (Serra, Kumar, Ramalingam: Lossless Compression of Deep Neural Networks, 2020).\n",
            self.command,
            self.networks.len(),
            self.wanted,
            self.epochs,
            self.data,
        );
        for (number, measures) in [(1, Measure::TABLE_1), (2, Measure::TABLE_2)] {
            let _ = write!(text, "\n## Table {number}\n\n| width | l1 | networks |");
            for measure in measures {
                let _ = write!(text, " {}: paper |", measure.title());
                for way in measure.ways() {
                    let _ = write!(text, " {} |", if measure.depends_on_way() { way.title() } else { "ours" });
                }
            }
            text.push_str("\n|--:|--:|--:|");
            text.push_str(&"--:|".repeat(measures.iter().map(|measure| 1 + measure.ways().len()).sum()));
            text.push('\n');
            for line in &self.lines {
                let Setting { width, l1 } = line.setting();
                let _ = write!(text, "| {width} | {l1} | {} |", line.networks);
                for measure in measures {
                    let _ = write!(text, " {} |", line.paper.get(measure).show(measure));
                    for &way in measure.ways() {
                        let ours = line.ours(measure, way).map_or_else(|| "-".to_owned(), |ours| ours.show(measure));
                        let _ = write!(text, " {ours} |");
                    }
                }
                text.push('\n');
            }
        }
        text.push_str(
            "\nLEO is the paper's algorithm. `full` is the normal form: with `--tolerance 0` nothing is approximated, \
             and by default what moves no output by more than single precision can show. \
             Run time is from finding stable units to the proof of what was done, and, unlike all other numbers, \
             not the same each time.\n",
        );
        let undecided: usize = self.networks.iter().map(|network| network.stability.undecided).sum();
        let units: usize = self.networks.iter().map(|network| network.stability.units).sum();
        if undecided > 0 {
            let _ = writeln!(text, "\nUndecided, and counted as not stable: {undecided} of {units} units.");
        }
        let _ = write!(text, "\n![Accuracy of each network, and the paper's means]({PLOT})\n");
        text
    }
}

impl Estimate {
    /// The mean of some values and its standard error.
    fn of(values: &[f64]) -> Option<Self> {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let error = (values.len() > 1).then(|| (squares / (count - 1.0) / count).sqrt());
        (!values.is_empty()).then_some(Self { mean, error })
    }

    /// In as many decimals as its column has.
    pub fn show(&self, measure: Measure) -> String {
        let decimals = measure.decimals(self.mean);
        let error = self.error.map_or_else(String::new, |error| format!(" ± {error:.decimals$}"));
        format!("{:.decimals$}{error}", self.mean)
    }
}
