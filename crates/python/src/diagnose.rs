//! What a bank of kernels looks like, as JSON.

use mercer::{gram::Stack, linalg::threads, methods};
use numpy::{PyReadonlyArray1, PyReadonlyArray2, PyReadonlyArray3, PyUntypedArrayMethods};
use pyo3::prelude::*;

use crate::{convert, error::to_py};

/// Alignments, traces, ranks and conditioning of the request's kernels on a table.
#[pyfunction]
#[pyo3(signature = (x, *, spec, columns=None, views=vec![], texts=vec![], codes=None, class_names=vec![], values=None,
                    n_threads=None))]
pub fn diagnose(
    py: Python<'_>,
    x: PyReadonlyArray2<'_, f64>,
    spec: &str,
    columns: Option<Vec<String>>,
    views: Vec<(String, usize, usize)>,
    texts: Vec<(String, Vec<String>)>,
    codes: Option<PyReadonlyArray1<'_, i64>>,
    class_names: Vec<String>,
    values: Option<PyReadonlyArray1<'_, f64>>,
    n_threads: Option<usize>,
) -> PyResult<String> {
    let spec = convert::spec(spec)?;
    let data = convert::dataset(&x, columns, views, texts)?;
    let target = convert::target(codes, class_names, values)?;
    let found =
        py.detach(|| threads::install(n_threads, || methods::diagnose(&data, &target, &spec))).map_err(to_py)?;
    Ok(serde_json::json!(found).to_string())
}

/// The same for ready-made kernels of shape (n, n, M).
#[pyfunction]
#[pyo3(signature = (stack, *, spec, codes=None, class_names=vec![], values=None, n_threads=None))]
pub fn diagnose_precomputed(
    py: Python<'_>,
    stack: PyReadonlyArray3<'_, f64>,
    spec: &str,
    codes: Option<PyReadonlyArray1<'_, i64>>,
    class_names: Vec<String>,
    values: Option<PyReadonlyArray1<'_, f64>>,
    n_threads: Option<usize>,
) -> PyResult<String> {
    let spec = convert::spec(spec)?;
    let target = convert::target(codes, class_names, values)?;
    let &[rows, cols, terms] = stack.shape() else { unreachable!("a three-dimensional array") };
    let stack = Stack { rows, cols, terms, data: stack.as_slice()? };
    let found = py
        .detach(|| threads::install(n_threads, || methods::diagnose_precomputed(stack, &target, &spec)))
        .map_err(to_py)?;
    Ok(serde_json::json!(found).to_string())
}
