//! What a run has to say, as plain data, and the two ways of saying it: an aligned text [`table`]
//! and one self-contained [`html`] page. Nothing here prints, reads a clock or reaches for the
//! network: the same data give the same bytes.

use serde::{Deserialize, Serialize};

use crate::{
    Model,
    model::FittedMachine,
    select::{Comparison, Tuning},
    trace::{IterRecord, Status},
    train::Diagnosis,
    weights::carrying,
};

mod comparison;
mod html;
mod svg;
mod table;
mod tuning;
mod words;

pub use comparison::comparison_table;
pub use html::html;
pub use table::table;
pub use tuning::{found, tuning_table};
pub use words::{approximation, gap, learned, seconds, significant, wilson};

/// Everything a page shows.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ReportData {
    /// Heading of the page.
    pub title: String,
    /// The exact command that made it.
    pub command: String,
    /// The version of mercer that made the report.
    pub version: String,
    /// The data in words: label and value, e.g. `("rows", "150")`.
    pub data: Vec<(String, String)>,
    /// One row per fitted method.
    pub methods: Vec<MethodRow>,
    /// Kernel weights, one panel per method.
    pub weights: Vec<WeightPanel>,
    /// Convergence, one line per fit.
    pub traces: Vec<TraceLine>,
    /// Where the predictions go wrong.
    pub outcome: Option<Outcome>,
    /// How kernels align with the target and with each other.
    #[serde(default)]
    pub alignment: Option<AlignmentPanel>,
    /// Several methods over several splits.
    #[serde(default)]
    pub comparison: Option<Comparison>,
    /// Settings of one method.
    #[serde(default)]
    pub tuning: Option<Tuning>,
    /// Things the reader should know, in plain words.
    pub warnings: Vec<String>,
}

/// A measured quality with its interval, where one is known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Score {
    /// What was measured and on which rows, e.g. `test accuracy`.
    pub name: String,
    /// The measured value, in the metric's units.
    pub value: f64,
    /// A 95 % interval, where one is known.
    pub interval: Option<(f64, f64)>,
    /// Whether larger is better.
    pub higher_is_better: bool,
}

/// One line of the comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MethodRow {
    /// Method with its parameters, e.g. `gmkl v=0.5`.
    pub method: String,
    /// How good its predictions are.
    pub score: Option<Score>,
    /// Kernels with a non-zero weight in some machine.
    pub selected: usize,
    /// Kernels that together carry 99 % of the weight, on average over machines.
    #[serde(default)]
    pub carrying: usize,
    /// How many kernels the bank offered.
    pub total: usize,
    /// The relative duality gap, of all machines together; `None` where the method has none.
    pub gap: Option<f64>,
    /// How the fit ended; with several machines, the worst of them.
    pub status: Status,
    /// Wall seconds of the fit.
    pub seconds: f64,
}

/// The weights one method gave.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WeightPanel {
    /// Method with its parameters.
    pub method: String,
    /// What each machine decides, e.g. class names, or the region where weights depend on it; one
    /// entry per row of `weights`, and one in all where weights are shared.
    pub machines: Vec<String>,
    /// The names of the kernels.
    pub kernels: Vec<String>,
    /// Kernel weights, as `weights[machine or region][kernel]`.
    pub weights: Vec<Vec<f64>>,
}

/// Centred alignments, from 0 to 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AlignmentPanel {
    /// The names of the kernels.
    pub kernels: Vec<String>,
    /// The alignment of each kernel with the target.
    pub target: Vec<f64>,
    /// `between[s][t]`, of kernels with each other.
    pub between: Vec<Vec<f64>>,
}

impl AlignmentPanel {
    /// What a diagnosis found.
    pub fn new(found: &Diagnosis) -> Self {
        Self {
            kernels: found.kernels.iter().map(|k| k.name.clone()).collect(),
            target: found.kernels.iter().map(|k| k.alignment).collect(),
            between: found.between.clone(),
        }
    }

    /// Kernels by their alignment with the target, largest first; ties keep the kernels' order.
    pub fn ranked(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.kernels.len()).collect();
        order.sort_by(|&a, &b| self.target[b].total_cmp(&self.target[a]));
        order
    }
}

/// The convergence of one fit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TraceLine {
    /// Method, and machine where there are several.
    pub method: String,
    /// One record per outer iteration.
    pub records: Vec<IterRecord>,
}

/// Where predictions and truth differ.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Outcome {
    /// Counts of true class (row) against predicted class (column).
    Confusion {
        /// Which fit, on which rows.
        label: String,
        /// The names of the classes.
        classes: Vec<String>,
        /// How many rows there are, as `counts[true][predicted]`.
        counts: Vec<Vec<usize>>,
    },
    /// Pairs of true and predicted value.
    Residuals {
        /// Which fit, on which rows.
        label: String,
        /// The true and the predicted value of each row.
        pairs: Vec<(f64, f64)>,
    },
}

impl MethodRow {
    /// The row of a fitted model.
    pub fn new(method: &str, model: &Model, score: Option<Score>) -> Self {
        let total = model.kernel_names().len();
        // Localized models have a weight per region.
        let used = |k: &FittedMachine, m: usize| {
            k.weights.iter().skip(m).step_by(total.max(1)).any(|w| *w != 0.0)
        };
        let selected = (0..total).filter(|&m| model.machines.iter().any(|k| used(k, m))).count();
        let weights: Vec<f64> =
            WeightPanel::new(method, model).ranked().into_iter().map(|(_, w)| w).collect();
        let certificate = model.certificate();
        Self {
            method: method.into(),
            score,
            selected,
            carrying: carrying(&weights),
            total,
            gap: Some(certificate.gap).filter(|g| g.is_finite()),
            status: certificate.status,
            seconds: model.seconds,
        }
    }
}

impl WeightPanel {
    /// The weights of a fitted model.
    pub fn new(method: &str, model: &Model) -> Self {
        let kernels = model.kernel_names().into_iter().map(String::from).collect();
        let (machines, weights) = model.weight_rows().into_iter().unzip();
        Self { method: method.into(), machines, kernels, weights }
    }

    /// Every kernel with its mean weight over machines, largest first; ties keep the kernels'
    /// order.
    pub fn ranked(&self) -> Vec<(usize, f64)> {
        let machines = self.weights.len().max(1) as f64;
        let mean = |m: usize| self.weights.iter().filter_map(|w| w.get(m)).sum::<f64>() / machines;
        let mut ranked: Vec<(usize, f64)> = (0..self.kernels.len()).map(|m| (m, mean(m))).collect();
        ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
        ranked
    }
}

/// Convergence lines of a fitted model, one per weight vector.
pub fn trace_lines(method: &str, model: &Model) -> Vec<TraceLine> {
    let vectors = model.own_weights();
    let several = vectors.len() > 1;
    let line = |(name, machine): (String, &FittedMachine)| TraceLine {
        method: if several { format!("{method}, {name}") } else { method.into() },
        records: machine.trace.clone(),
    };
    vectors.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests;
