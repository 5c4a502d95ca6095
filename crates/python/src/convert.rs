//! Arrays to the core's types and back.

use std::ops::Deref;

use mercer::{
    Error, TrainSpec,
    data::{Dataset, Sequences, Sparse, Target, View},
    gram::Stack,
    linalg::Matrix,
};
use numpy::{
    Element, Ix1, Ix2, Ix3, PyArray2, PyArrayMethods, PyReadonlyArray, PyUntypedArrayMethods,
    ndarray::Dimension,
};
use pyo3::{exceptions::PyValueError, prelude::*};

use crate::error::to_py;

/// An array in C order, aligned, of the machine's own numbers: the one that was given where it is
/// all that, else a copy.
pub struct Plain<'py, T: Element, D: Dimension>(PyReadonlyArray<'py, T, D>);

pub type Plain1<'py, T> = Plain<'py, T, Ix1>;
pub type Plain2<'py> = Plain<'py, f64, Ix2>;
pub type Plain3<'py> = Plain<'py, f64, Ix3>;

impl<'a, 'py, T: Element + 'static, D: Dimension + 'static> FromPyObject<'a, 'py>
    for Plain<'py, T, D>
{
    type Error = PyErr;

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let (py, as_read) = (given.py(), "CA");
        let array =
            py.import("numpy")?.call_method1("require", (given, T::get_dtype(py), as_read))?;
        Ok(Self(array.extract()?))
    }
}

impl<'py, T: Element, D: Dimension> Deref for Plain<'py, T, D> {
    type Target = PyReadonlyArray<'py, T, D>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

/// A copy of the numbers.
pub fn matrix(x: &Plain2<'_>) -> PyResult<Matrix> {
    Matrix::new(x.shape()[0], x.shape()[1], x.as_slice()?.to_vec()).map_err(to_py)
}

/// Number of columns, row starts, columns, values.
type Csr = (usize, Vec<usize>, Vec<u32>, Vec<f64>);

/// Rows of features, as `mercer._input.Rows` holds them.
#[derive(FromPyObject)]
pub struct Rows<'py> {
    numbers: Plain2<'py>,
    /// Names of the columns of numbers, sparse ones included.
    columns: Option<Vec<String>>,
    /// (name, first column, one past the last).
    views: Vec<(String, usize, usize)>,
    /// Columns of text: their names and a text per row.
    texts: Vec<(String, Vec<String>)>,
    /// Views of ready-made kernel values.
    grams: Vec<String>,
    /// Views with the rows that have nothing in them.
    absent: Vec<(String, Vec<usize>)>,
    /// Sparse columns, after the others.
    sparse: Option<Csr>,
}

impl Rows<'_> {
    /// The same as the core holds it.
    pub fn dataset(self) -> PyResult<Dataset> {
        let views = self
            .views
            .into_iter()
            .map(|(name, start, end)| View { name, columns: start..end })
            .collect();
        let numbers = matrix(&self.numbers)?;
        let width = numbers.cols() + self.sparse.as_ref().map_or(0, |s| s.0);
        let mut names =
            self.columns.unwrap_or_else(|| (1..=width).map(|j| format!("x{j}")).collect());
        names.extend(self.texts.iter().map(|(name, _)| name.clone()));
        let sequences = self
            .texts
            .iter()
            .map(|(name, column)| Sequences::new(name, column))
            .collect::<Result<_, _>>();
        sequences
            .and_then(|sequences| mercer::data::Rows::new(numbers, sequences))
            .and_then(|rows| match self.sparse {
                Some((cols, starts, columns, values)) => {
                    rows.with_sparse(Sparse::from_parts(cols, starts, columns, values)?)
                }
                None => Ok(rows),
            })
            .and_then(|rows| Dataset::from_rows(rows, names)?.with_views(views))
            .and_then(|data| self.grams.iter().try_fold(data, |data, view| data.with_gram(view)))
            .and_then(|data| {
                self.absent.iter().try_fold(data, |data, (view, rows)| data.with_absent(view, rows))
            })
            .map_err(to_py)
    }
}

/// What a fit learns from or a model is asked about: rows of features, or kernel values, kernel
/// axis last.
#[derive(FromPyObject)]
pub enum Given<'py> {
    #[pyo3(transparent)]
    Table(Rows<'py>),
    #[pyo3(transparent)]
    Kernels(Plain3<'py>),
}

/// Kernel values as the core reads them.
pub fn stack<'a>(block: &'a Plain3<'_>) -> PyResult<Stack<'a>> {
    let &[rows, cols, terms] = block.shape() else { unreachable!("a three-dimensional array") };
    Ok(Stack { rows, cols, terms, data: block.as_slice()? })
}

/// What is to be learned, as `mercer._input.Answers` holds it: class codes with their names, or
/// values.
#[derive(FromPyObject)]
pub struct Answers<'py> {
    codes: Option<Plain1<'py, i64>>,
    class_names: Vec<String>,
    values: Option<Plain1<'py, f64>>,
}

impl Answers<'_> {
    /// The same as the core holds it.
    pub fn target(self) -> PyResult<Target> {
        let names = self.class_names;
        match (self.codes, self.values) {
            (Some(codes), None) => {
                let labels = codes
                    .as_slice()?
                    .iter()
                    .map(|&code| usize::try_from(code).ok().filter(|&label| label < names.len()))
                    .collect::<Option<Vec<usize>>>()
                    .ok_or_else(|| {
                        PyValueError::new_err(format!("class codes must lie in 0..{}", names.len()))
                    })?;
                Ok(Target::Classes { names, labels })
            }
            (None, Some(values)) => Ok(Target::Values(values.as_slice()?.to_vec())),
            _ => Err(PyValueError::new_err("give either class codes or values")),
        }
    }
}

/// The request, from JSON.
pub fn spec(json: &str) -> PyResult<TrainSpec> {
    serde_json::from_str(json)
        .map_err(|e| PyValueError::new_err(format!("the request cannot be read: {e}")))
}

/// A matrix as an array.
pub fn array<'py>(py: Python<'py>, m: &Matrix) -> PyResult<Bound<'py, PyArray2<f64>>> {
    numpy::PyArray1::from_slice(py, m.data()).reshape([m.rows(), m.cols()])
}

/// Rows of equal length as an array.
pub fn rows<'py>(py: Python<'py>, rows: &[Vec<f64>]) -> PyResult<Bound<'py, PyArray2<f64>>> {
    PyArray2::from_vec2(py, rows).map_err(|e| to_py(Error::shape("rows", "equal lengths", e)))
}
