//! What a bank of kernels looks like, as JSON.

use mercer::{linalg::threads, train};
use pyo3::prelude::*;

use crate::{
    convert::{self, Answers, Given},
    error::to_py,
};

/// Alignments, traces, ranks and conditioning of the request's kernels on rows of features, or of
/// ready-made kernels of shape (n, n, M).
#[pyfunction]
#[pyo3(signature = (rows, answers, *, spec, n_threads=None))]
pub fn diagnose(
    py: Python<'_>,
    rows: Given<'_>,
    answers: Answers<'_>,
    spec: &str,
    n_threads: Option<usize>,
) -> PyResult<String> {
    let spec = convert::spec(spec)?;
    let target = answers.target()?;
    let found = match rows {
        Given::Table(rows) => {
            let data = rows.dataset()?;
            py.detach(|| threads::install(n_threads, || train::diagnose(&data, &target, &spec)))
        }
        Given::Kernels(block) => {
            let stack = convert::stack(&block)?;
            py.detach(|| {
                threads::install(n_threads, || train::diagnose_precomputed(stack, &target, &spec))
            })
        }
    };
    Ok(serde_json::json!(found.map_err(to_py)?).to_string())
}
