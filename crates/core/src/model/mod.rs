//! The predictive artefact: kernels, constants, weights, certificate. Knows no training.

mod file;
mod predictor;

use serde::{Deserialize, Serialize};

pub use predictor::Predictor;

use crate::{
    Error, Result,
    data::{Dataset, Standardizer, Target},
    gram::Stack,
    kernels::KernelSpec,
    linalg::Matrix,
    trace::{IterRecord, Status},
};

/// What an outer method returns for one decision function.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    /// θ; exact zeros are zeros.
    pub weights: Vec<f64>,
    /// Signed multipliers a, one per training row.
    pub dual: Vec<f64>,
    /// b.
    pub bias: f64,
    /// Proof of quality.
    pub certificate: Certificate,
    /// One record per outer iteration.
    pub trace: Vec<IterRecord>,
}

/// What the model predicts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Task {
    /// Classes, in the order of [`Target::Classes`]. Two classes: one machine, positive = the second class. More: one
    /// machine per class, against the rest.
    Classification {
        /// Class names.
        classes: Vec<String>,
    },
    /// A number.
    Regression,
}

/// What the model was fitted on and expects at prediction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Input {
    /// A table of these columns.
    Table {
        /// Every feature column of the training data, in order.
        columns: Vec<String>,
        /// Applied before any kernel.
        standardizer: Option<Standardizer>,
        /// The base kernels.
        kernels: Vec<KernelSpec>,
    },
    /// Ready-made kernel values against `n_train` training samples.
    Precomputed {
        /// Training samples.
        n_train: usize,
        /// Names of the kernels.
        kernels: Vec<String>,
    },
}

/// The numbers that prove how good a fit is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Certificate {
    /// The objective at the returned weights, dual vector and bias: an upper bound on the optimum.
    pub primal: f64,
    /// A lower bound on the optimum.
    pub dual: f64,
    /// (primal − dual) relative to their size.
    pub gap: f64,
    /// How the fit ended.
    pub status: Status,
    /// Outer iterations.
    pub iterations: usize,
}

/// One decision function: binary classification and regression have one, several classes one per class.
#[derive(Debug, Clone, PartialEq)]
pub struct Machine {
    /// Weight of every base kernel; exact zeros are zeros.
    pub weights: Vec<f64>,
    /// Training rows with a non-zero multiplier.
    pub support: Vec<usize>,
    /// Their signed multipliers.
    pub dual_coef: Vec<f64>,
    /// The constant term.
    pub intercept: f64,
    /// Proof of quality.
    pub certificate: Certificate,
    /// One record per outer iteration.
    pub trace: Vec<IterRecord>,
}

/// A fitted model.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// What it predicts.
    pub task: Task,
    /// What it expects.
    pub input: Input,
    /// The request it answers (as JSON in the file), with every default filled in.
    pub spec: serde_json::Value,
    /// Decision functions.
    pub machines: Vec<Machine>,
    /// What is needed to evaluate them on new rows, and nothing else.
    pub predictor: Predictor,
    /// Things the user should know, in plain words.
    pub warnings: Vec<String>,
    /// Training samples.
    pub n_samples: usize,
    /// Wall seconds of the fit.
    pub seconds: f64,
    /// Version of mercer that made it.
    pub version: String,
    /// How the kernels were stored, in words, and the memory budget in bytes that decided it.
    pub storage: (String, u64),
}

impl Model {
    /// Names of all base kernels, selected or not.
    pub fn kernel_names(&self) -> Vec<&str> {
        match &self.input {
            Input::Table { kernels, .. } => kernels.iter().map(|k| k.name.as_str()).collect(),
            Input::Precomputed { kernels, .. } => kernels.iter().map(String::as_str).collect(),
        }
    }

    /// The worst machine's status.
    pub fn status(&self) -> Status {
        self.machines.iter().map(|m| m.certificate.status).max().unwrap_or(Status::Stopped)
    }

    /// Decision values, `rows × machines`. Columns are matched by name where the data set has the names the model needs
    /// (extra columns are ignored), by position where the data have generated names and the training count.
    pub fn decision(&self, data: &Dataset) -> Result<Matrix> {
        let Input::Table { columns, standardizer, kernels } = &self.input else {
            return Err(Error::data(
                "model",
                "it was fitted on ready-made kernels",
                "give kernel values of the new rows against the training rows, shape (rows, n_train, kernels)",
            ));
        };
        let used = self.predictor.columns();
        let position = columns_of(data, columns, used)?;
        let mut x = data.features().select_cols(&position);
        if let Some(s) = standardizer {
            let pick = |v: &[f64]| used.iter().map(|&j| v[j]).collect();
            x = Standardizer { mean: pick(&s.mean), scale: pick(&s.scale) }.apply(&x)?;
        }
        Ok(self.predictor.evaluate(kernels, &x))
    }

    /// Decision values from ready-made kernel values: `block` is (rows, n_train, kernels), kernel axis last.
    pub fn decision_precomputed(&self, block: Stack<'_>) -> Result<Matrix> {
        let Input::Precomputed { n_train, kernels } = &self.input else {
            return Err(Error::data(
                "model",
                "it was fitted on a table",
                "give the table's columns, not kernel values",
            ));
        };
        if block.cols != *n_train
            || block.terms != kernels.len()
            || block.data.len() != block.rows * block.cols * block.terms
        {
            return Err(Error::shape(
                "kernel values",
                format!("(rows, {n_train}, {})", kernels.len()),
                format!("({}, {}, {})", block.rows, block.cols, block.terms),
            ));
        }
        if let Some(at) = block.data.iter().position(|v| !v.is_finite()) {
            let row = at / (block.cols * block.terms);
            return Err(Error::data(
                "kernel values",
                format!("row {} has {}", row + 1, block.data[at]),
                "they must be finite",
            ));
        }
        Ok(self.predictor.evaluate_precomputed(block))
    }

    /// Predicted classes or values from decision values.
    pub fn decide(&self, decision: &Matrix) -> Target {
        match &self.task {
            Task::Regression => Target::Values(decision.column(0)),
            Task::Classification { classes } => {
                let pick = |row: &[f64]| match row {
                    [d] => usize::from(*d > 0.0),
                    _ => (0..row.len()).fold(0, |b, k| if row[k] > row[b] { k } else { b }),
                };
                let labels = (0..decision.rows()).map(|i| pick(decision.row(i))).collect();
                Target::Classes { names: classes.clone(), labels }
            }
        }
    }

    /// `decide(decision(data))`.
    pub fn predict(&self, data: &Dataset) -> Result<Target> {
        Ok(self.decide(&self.decision(data)?))
    }
}

/// Where in `data` the training columns `used` stand.
fn columns_of(data: &Dataset, training: &[String], used: &[usize]) -> Result<Vec<usize>> {
    let names = data.columns();
    let by_name: Vec<Option<usize>> = used.iter().map(|&j| names.iter().position(|n| *n == training[j])).collect();
    if let Some(found) = by_name.iter().copied().collect::<Option<Vec<usize>>>() {
        return Ok(found);
    }
    let generated = names.iter().enumerate().all(|(j, n)| *n == format!("x{}", j + 1));
    if generated && names.len() == training.len() {
        return Ok(used.to_vec());
    }
    let missing = used.iter().zip(&by_name).find(|(_, at)| at.is_none()).map_or("", |(&j, _)| &training[j]);
    Err(Error::data(
        format!("column `{missing}`"),
        format!("the model needs it and the data have {} columns without it", names.len()),
        format!("give the columns the model was fitted on ({} in all)", training.len()),
    ))
}
