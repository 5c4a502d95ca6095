//! Arrays to the core's types and back.

use mercer::{
    Error, TrainSpec,
    data::{Dataset, Rows, Sequences, Sparse, Target, View},
    linalg::Matrix,
};
use numpy::{PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::{exceptions::PyValueError, prelude::*};

use crate::error::to_py;

/// A copy of a C-contiguous array.
pub fn matrix(x: &PyReadonlyArray2<'_, f64>) -> PyResult<Matrix> {
    Matrix::new(x.shape()[0], x.shape()[1], x.as_slice()?.to_vec()).map_err(to_py)
}

/// Number of columns, row starts, columns, values.
type Csr = (usize, Vec<usize>, Vec<u32>, Vec<f64>);

/// What only some data have.
#[derive(FromPyObject, Default)]
pub struct Extras {
    /// Views of ready-made kernel values.
    #[pyo3(item)]
    grams: Vec<String>,
    /// Views with the rows that have nothing in them.
    #[pyo3(item)]
    absent: Vec<(String, Vec<usize>)>,
    /// Sparse columns.
    #[pyo3(item)]
    sparse: Option<Csr>,
}

/// Features with their names: numbers, then text columns as (name, a text per row). `views` are (name, first column, one past the last).
pub fn dataset(
    x: &PyReadonlyArray2<'_, f64>,
    columns: Option<Vec<String>>,
    views: Vec<(String, usize, usize)>,
    texts: Vec<(String, Vec<String>)>,
    extras: Option<Extras>,
) -> PyResult<Dataset> {
    let Extras { grams, absent, sparse } = extras.unwrap_or_default();
    let views = views.into_iter().map(|(name, start, end)| View { name, columns: start..end }).collect();
    let numbers = matrix(x)?;
    let width = numbers.cols() + sparse.as_ref().map_or(0, |s| s.0);
    let mut names = columns.unwrap_or_else(|| (1..=width).map(|j| format!("x{j}")).collect());
    names.extend(texts.iter().map(|(name, _)| name.clone()));
    let sequences = texts.iter().map(|(name, column)| Sequences::new(name, column)).collect::<Result<Vec<_>, _>>();
    sequences
        .and_then(|sequences| Rows::new(numbers, sequences))
        .and_then(|rows| match sparse {
            Some((cols, starts, columns, values)) => {
                rows.with_sparse(Sparse::from_parts(cols, starts, columns, values)?)
            }
            None => Ok(rows),
        })
        .and_then(|rows| Dataset::from_rows(rows, names)?.with_views(views))
        .and_then(|data| grams.iter().try_fold(data, |data, view| data.with_gram(view)))
        .and_then(|data| absent.iter().try_fold(data, |data, (view, rows)| data.with_absent(view, rows)))
        .map_err(to_py)
}

/// Class codes with their names, or values: exactly one of the two.
pub fn target(
    codes: Option<PyReadonlyArray1<'_, i64>>,
    names: Vec<String>,
    values: Option<PyReadonlyArray1<'_, f64>>,
) -> PyResult<Target> {
    match (codes, values) {
        (Some(codes), None) => {
            let labels = codes
                .as_slice()?
                .iter()
                .map(|&code| usize::try_from(code).ok().filter(|&label| label < names.len()))
                .collect::<Option<Vec<usize>>>()
                .ok_or_else(|| PyValueError::new_err(format!("class codes must lie in 0..{}", names.len())))?;
            Ok(Target::Classes { names, labels })
        }
        (None, Some(values)) => Ok(Target::Values(values.as_slice()?.to_vec())),
        _ => Err(PyValueError::new_err("give either class codes or values")),
    }
}

/// The request, from JSON.
pub fn spec(json: &str) -> PyResult<TrainSpec> {
    serde_json::from_str(json).map_err(|e| PyValueError::new_err(format!("the request cannot be read: {e}")))
}

/// A matrix as an array.
pub fn array<'py>(py: Python<'py>, m: &Matrix) -> PyResult<Bound<'py, PyArray2<f64>>> {
    numpy::PyArray1::from_slice(py, m.data()).reshape([m.rows(), m.cols()])
}

/// Rows of equal length as an array.
pub fn rows<'py>(py: Python<'py>, rows: &[Vec<f64>]) -> PyResult<Bound<'py, PyArray2<f64>>> {
    PyArray2::from_vec2(py, rows).map_err(|e| to_py(Error::shape("rows", "equal lengths", e)))
}
