//! The predictive artefact: kernels, constants, weights, certificate; knows no training.

use serde::{Deserialize, Serialize};
use std::path::Path;

use crate::{
    Result,
    data::{Dataset, Standardizer, Target},
    kernels::KernelSpec,
    linalg::Matrix,
    trace::{IterRecord, Status},
};

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

    /// Decision values, `rows × machines`. Columns are matched by name where the data set has the training names
    /// (extra columns are ignored), by position where the count agrees and names are generated.
    pub fn decision(&self, _data: &Dataset) -> Result<Matrix> {
        unimplemented!()
    }

    /// Decision values from ready-made kernel values: `block` is (rows, n_train, kernels), kernel axis last.
    pub fn decision_precomputed(&self, _block: crate::gram::Stack<'_>) -> Result<Matrix> {
        unimplemented!()
    }

    /// Predicted classes or values from decision values.
    pub fn decide(&self, _decision: &Matrix) -> Target {
        unimplemented!()
    }

    /// `decide(decision(data))`.
    pub fn predict(&self, data: &Dataset) -> Result<Target> {
        Ok(self.decide(&self.decision(data)?))
    }

    /// The file's bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        unimplemented!()
    }

    /// Reads what [`Model::to_bytes`] wrote; refuses anything altered or truncated.
    pub fn from_bytes(_bytes: &[u8]) -> Result<Self> {
        unimplemented!()
    }

    /// Writes to a temporary file beside `path`, syncs and renames.
    pub fn save(&self, _path: &Path) -> Result<()> {
        unimplemented!()
    }

    /// Reads a file.
    pub fn load(_path: &Path) -> Result<Self> {
        unimplemented!()
    }
}
