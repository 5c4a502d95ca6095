//! Stored cases of the independent solver: one JSON file {name, kind, input, expect, unique} per
//! case.
//!
//! The files lie in crates/core/tests/oracle/cases with the script that made them beside.
//! `MERCER_ORACLE_CASES` names another folder, for other seeds.

use std::{env, fs, path::PathBuf};

use mercer::{
    TrainSpec,
    data::Target,
    kernels::Normalize,
    linalg::Matrix,
    request::{LossName, MethodSpec, Storage},
};
use serde_json::Value;

/// One stored problem with its known solution.
pub struct Case {
    /// The name of the case, which is its file's.
    pub name: String,
    value: Value,
}

/// All cases of a kind.
///
/// # Panics
/// If the folder or a file cannot be read, or holds no case of that kind: a missing oracle must not
/// pass in silence.
pub fn cases(kind: &str) -> Vec<Case> {
    let folder = env::var_os("MERCER_ORACLE_CASES").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../core/tests/oracle/cases")),
        PathBuf::from,
    );
    let mut out = Vec::new();
    let mut files: Vec<PathBuf> = fs::read_dir(&folder)
        .unwrap_or_else(|e| panic!("oracle cases in {}: {e}", folder.display()))
        .map(|f| f.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == "json"))
        .collect();
    files.sort();
    for file in files {
        let value: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        if value["kind"] == kind {
            out.push(Case { name: value["name"].as_str().unwrap().to_string(), value });
        }
    }
    assert!(!out.is_empty(), "no oracle case of kind {kind} in {}", folder.display());
    out
}

impl Case {
    /// A part of the case: `at("input/K")`.
    ///
    /// # Panics
    /// If it is missing.
    pub fn at(&self, path: &str) -> &Value {
        self.value
            .pointer(&format!("/{path}"))
            .unwrap_or_else(|| panic!("{}: no {path}", self.name))
    }

    /// The number at a path of the case.
    ///
    /// # Panics
    /// If it is not one.
    pub fn number(&self, path: &str) -> f64 {
        self.at(path).as_f64().unwrap()
    }

    /// The text at a path of the case.
    ///
    /// # Panics
    /// If it is not one.
    pub fn text(&self, path: &str) -> &str {
        self.at(path).as_str().unwrap()
    }

    /// A number, if it is there.
    pub fn maybe(&self, path: &str) -> Option<f64> {
        self.value.pointer(&format!("/{path}")).and_then(Value::as_f64)
    }

    /// The loss of the case.
    ///
    /// # Panics
    /// If it is none of ours.
    pub fn loss(&self) -> LossName {
        match self.text("input/loss") {
            "hinge" => LossName::Hinge,
            "eps" => LossName::EpsilonInsensitive,
            "squared" => LossName::Squared,
            "logistic" => LossName::Logistic,
            other => panic!("unknown loss {other}"),
        }
    }

    /// What is to be learned: classes for losses of classes, else values.
    pub fn target(&self) -> Target {
        let y = self.vector("input/y");
        if matches!(self.loss(), LossName::Hinge | LossName::Logistic) {
            return Target::classes(&y.iter().map(|v| format!("{v}")).collect::<Vec<_>>());
        }
        Target::Values(y)
    }

    /// The request, on kernels as they are.
    pub fn spec(&self, method: MethodSpec, tol: f64, storage: Storage) -> TrainSpec {
        TrainSpec {
            // The oracle states the problem in the target's own units.
            scale_target: false,
            method,
            normalize: Normalize::None,
            c: self.number("input/C"),
            loss: Some(self.loss()),
            epsilon: Some(self.number("input/eps")),
            tol,
            max_iter: 2000,
            storage,
            ..TrainSpec::default()
        }
    }

    /// Does the objective reached agree with the oracle's, as far as `tol` and the oracle's own
    /// accuracy allow?
    ///
    /// # Panics
    /// If not.
    pub fn check_objective(&self, primal: f64, tol: f64, name: &str) {
        let optimum = self.number("expect/objective");
        let error = (primal - optimum) / optimum;
        assert!(error > -1e-6 && error < (2.0 * tol).max(1e-5), "{name}: off by {error:e}");
    }

    /// May this entry be compared, or is it one of many optima?
    pub fn unique(&self, entry: &str) -> bool {
        self.value["unique"][entry].as_bool().unwrap_or(true)
    }

    /// A list of numbers; one more level of nesting is flattened.
    pub fn vector(&self, path: &str) -> Vec<f64> {
        vector(self.at(path))
    }

    /// The matrix at a path of the case.
    pub fn matrix(&self, path: &str) -> Matrix {
        matrix(self.at(path))
    }

    /// The list of matrices at a path of the case.
    ///
    /// # Panics
    /// If it is not a list.
    pub fn matrices(&self, path: &str) -> Vec<Matrix> {
        self.at(path).as_array().unwrap().iter().map(matrix).collect()
    }
}

/// Numbers of a JSON list, in order, however nested.
///
/// # Panics
/// If something in it is neither a number nor a list.
pub fn vector(value: &Value) -> Vec<f64> {
    match value {
        Value::Array(items) => items.iter().flat_map(vector).collect(),
        other => vec![other.as_f64().unwrap()],
    }
}

fn matrix(value: &Value) -> Matrix {
    let rows = value.as_array().unwrap();
    Matrix::new(rows.len(), rows[0].as_array().unwrap().len(), vector(value)).unwrap()
}

/// Kernel axis last, as `train_precomputed` takes it.
pub fn stack(kernels: &[Matrix]) -> Vec<f64> {
    let cells = kernels[0].data().len();
    (0..cells).flat_map(|c| kernels.iter().map(move |k| k.data()[c])).collect()
}
