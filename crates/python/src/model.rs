//! A fitted model, seen from Python.

use std::{path::PathBuf, sync::Arc};

use mercer::{
    data::Target,
    linalg::{Matrix, threads},
    model::{Input, NewRows, Prediction},
};
use numpy::{IntoPyArray, PyArray1, PyArray2};
use pyo3::{
    exceptions::PyValueError,
    prelude::*,
    types::{PyBytes, PyTuple},
};
use serde_json::json;

use crate::{
    convert::{self, Given, Plain2},
    error::to_py,
};

/// A fitted model. Built by `fit` or `load`, or from the bytes of a model file.
#[pyclass(module = "mercer._mercer", frozen)]
pub struct Model(Arc<mercer::Model>);

impl Model {
    pub fn new(model: mercer::Model) -> Self {
        Self(Arc::new(model))
    }

    /// `answer` to rows of features or to kernel values, without the interpreter.
    fn ask<T: Send>(
        &self,
        py: Python<'_>,
        given: Given<'_>,
        n_threads: Option<usize>,
        answer: impl Fn(&mercer::Model, NewRows<'_>) -> mercer::Result<T> + Sync,
    ) -> PyResult<T> {
        let run = |rows: NewRows<'_>| {
            py.detach(|| threads::install(n_threads, || answer(&self.0, rows))).map_err(to_py)
        };
        match given {
            Given::Table(rows) => run(NewRows::Table(&rows.dataset()?)),
            Given::Kernels(block) => run(NewRows::Kernels(convert::stack(&block)?)),
        }
    }
}

#[pymethods]
impl Model {
    #[new]
    fn from_data(data: &[u8]) -> PyResult<Self> {
        mercer::Model::from_bytes(data).map(Self::new).map_err(to_py)
    }

    /// Reads the bytes of a model file.
    #[staticmethod]
    fn from_bytes(data: &[u8]) -> PyResult<Self> {
        Self::from_data(data)
    }

    /// The bytes of the model file.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &py.detach(|| self.0.to_bytes()).map_err(to_py)?))
    }

    /// Reads a model file.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        py.detach(|| mercer::Model::load(&path)).map(Self::new).map_err(to_py)
    }

    /// Writes the model file, atomically.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        py.detach(|| self.0.save(&path)).map_err(to_py)
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let bytes = slf.get().to_bytes(slf.py())?;
        Ok((slf.get_type().into_any(), PyTuple::new(slf.py(), [bytes])?))
    }

    /// Decision values, (rows, machines); `memberships` for models that cannot place rows
    /// themselves.
    #[pyo3(signature = (rows, *, n_threads=None, memberships=None))]
    fn decision<'py>(
        &self,
        py: Python<'py>,
        rows: Given<'py>,
        n_threads: Option<usize>,
        memberships: Option<Plain2<'py>>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let placed = memberships.map(|m| convert::matrix(&m)).transpose()?;
        let values =
            self.ask(py, rows, n_threads, |model, rows| model.decision_at(rows, placed.as_ref()))?;
        convert::array(py, &values)
    }

    /// Localized models: memberships of rows, one array for all machines or one each, and the
    /// weight of every kernel at every row, one array per machine.
    #[allow(clippy::type_complexity)] // two lists of arrays
    #[pyo3(signature = (rows, *, n_threads=None, memberships=None))]
    fn places<'py>(
        &self,
        py: Python<'py>,
        rows: Given<'py>,
        n_threads: Option<usize>,
        memberships: Option<Plain2<'py>>,
    ) -> PyResult<(Vec<Bound<'py, PyArray2<f64>>>, Vec<Bound<'py, PyArray2<f64>>>)> {
        let placed = memberships.map(|m| convert::matrix(&m)).transpose()?;
        let (memberships, weights) = self.ask(py, rows, n_threads, |model, rows| {
            Ok((
                model.memberships(rows, placed.as_ref())?,
                model.local_weights(rows, placed.as_ref())?,
            ))
        })?;
        let arrays = |all: &[Matrix]| {
            all.iter().map(|m| convert::array(py, m)).collect::<PyResult<Vec<_>>>()
        };
        Ok((arrays(&memberships)?, arrays(&weights)?))
    }

    /// Values of every rule, (rows, rules) machine after machine, of a veto–consensus model.
    #[pyo3(signature = (rows, *, n_threads=None))]
    fn rule_values<'py>(
        &self,
        py: Python<'py>,
        rows: Given<'py>,
        n_threads: Option<usize>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let values = self.ask(py, rows, n_threads, |model, rows| match rows {
            NewRows::Table(data) => model.rule_values(data),
            NewRows::Kernels(block) => model.rule_values_precomputed(block),
        })?;
        convert::array(
            py,
            &values.ok_or_else(|| {
                PyValueError::new_err("the model has no rules: it was not fitted with vcmkl")
            })?,
        )
    }

    /// What the decision values mean: class codes (int64) or values (float64).
    fn decide<'py>(&self, py: Python<'py>, decision: Plain2<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(match self.0.decide(&convert::matrix(&decision)?) {
            Target::Classes { labels, .. } => labels
                .into_iter()
                .map(|label| label as i64)
                .collect::<Vec<_>>()
                .into_pyarray(py)
                .into_any(),
            Target::Values(values) => values.into_pyarray(py).into_any(),
        })
    }

    /// One score per class (one in all for two classes) from decision values.
    fn class_scores<'py>(
        &self,
        py: Python<'py>,
        decision: Plain2<'py>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        convert::array(py, &self.0.class_scores(&convert::matrix(&decision)?))
    }

    /// Probabilities of the classes from decision values; a `ValueError` without the logistic loss.
    fn probabilities<'py>(
        &self,
        py: Python<'py>,
        decision: Plain2<'py>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let found = self.0.probabilities(&convert::matrix(&decision)?);
        convert::array(
            py,
            &found.ok_or_else(|| {
                PyValueError::new_err("the model was not fitted with loss='logistic'")
            })?,
        )
    }

    /// Kernel weights, (machines, kernels).
    fn weights<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        convert::rows(py, &self.0.machines.iter().map(|m| m.weights.clone()).collect::<Vec<_>>())
    }

    /// Per machine, the training rows with a non-zero multiplier.
    fn support<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyArray1<i64>>> {
        let rows = |m: &mercer::model::FittedMachine| {
            m.support.iter().map(|&i| i as i64).collect::<Vec<_>>()
        };
        self.0.machines.iter().map(|m| rows(m).into_pyarray(py)).collect()
    }

    /// Per machine, the signed multipliers of those rows.
    fn dual_coef<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyArray1<f64>>> {
        self.0.machines.iter().map(|m| PyArray1::from_slice(py, &m.dual_coef)).collect()
    }

    /// Constant terms, one per machine.
    fn intercepts<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        self.0.machines.iter().map(|m| m.intercept).collect::<Vec<_>>().into_pyarray(py)
    }

    /// Everything else, as JSON; a number that is not finite is null.
    fn info(&self) -> String {
        let model = &*self.0;
        let classes = match &model.task {
            Prediction::Classification { classes, .. } => Some(classes),
            Prediction::Regression => None,
        };
        let (input, columns, texts, n_train) = match &model.input {
            Input::Table { columns, texts, .. } => {
                ("table", Some(columns), *texts, model.n_samples)
            }
            Input::Precomputed { n_train, .. } => ("precomputed", None, 0, *n_train),
        };
        let machines: Vec<_> = model
            .machines
            .iter()
            .map(|m| json!({ "certificate": m.certificate, "trace": m.trace, "n_support": m.support.len() }))
            .collect();
        json!({
            "task": if classes.is_some() { "classification" } else { "regression" },
            "classes": classes,
            "input": input,
            "columns": columns,
            "n_texts": texts,
            "n_train": n_train,
            "kernel_names": model.kernel_names(),
            "spec": model.request,
            "warnings": model.warnings,
            "n_samples": model.n_samples,
            "seconds": model.seconds,
            "version": model.version,
            "storage": model.storage.0,
            "memory_budget": model.storage.1,
            "approximation": model.approximation,
            "certificate": model.certificate(),
            "shared": model.shared.is_some(),
            "machine_names": model.machine_names(),
            "localized": model.localized.as_ref().map(|l| json!({
                "weight_rows": l.weight_rows(0),
                "one_gating": l.gatings.len() == 1,
            })),
            "machines": machines,
            "rules": model.rules,
        })
        .to_string()
    }

    fn __repr__(&self) -> String {
        let (machines, kernels) = (self.0.machines.len(), self.0.kernel_names().len());
        format!(
            "<mercer model: {machines} machine(s), {kernels} kernel(s), {} training rows>",
            self.0.n_samples
        )
    }
}
