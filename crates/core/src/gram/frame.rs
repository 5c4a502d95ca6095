//! The columns of a basis: row after row where there are many rows, column after column where there are few.

use std::{borrow::Cow, sync::OnceLock};

use crate::{
    Result,
    linalg::{Matrix, axpy, axpy_four, dot, dots},
};

/// With fewer rows columns are kept one after another, and no basis is shared: finding one costs more than it saves.
pub(super) const FEW_ROWS: usize = 512;

/// B, and what sums read of it.
#[derive(Debug, Clone)]
pub struct Frame {
    numbers: Numbers,
    turned: OnceLock<Vec<f32>>,
    squares: OnceLock<Vec<f64>>,
}

#[derive(Debug, Clone, PartialEq)]
enum Numbers {
    Rows(Matrix),
    /// A row per column of B.
    Columns(Matrix),
}

impl PartialEq for Frame {
    fn eq(&self, other: &Self) -> bool {
        self.numbers == other.numbers
    }
}

impl Frame {
    /// From a row per sample.
    pub fn new(rows: Matrix) -> Self {
        if rows.rows() < FEW_ROWS {
            Self::of(Numbers::Columns(rows.transposed()))
        } else {
            Self::of(Numbers::Rows(rows))
        }
    }

    /// From a row per column.
    pub(super) fn from_columns(columns: Matrix) -> Self {
        if columns.cols() < FEW_ROWS {
            Self::of(Numbers::Columns(columns))
        } else {
            Self::of(Numbers::Rows(columns.transposed()))
        }
    }

    fn of(numbers: Numbers) -> Self {
        Self { numbers, turned: OnceLock::new(), squares: OnceLock::new() }
    }

    fn numbers(&self) -> &Matrix {
        match &self.numbers {
            Numbers::Rows(m) | Numbers::Columns(m) => m,
        }
    }

    /// n.
    pub fn n(&self) -> usize {
        match &self.numbers {
            Numbers::Rows(rows) => rows.rows(),
            Numbers::Columns(columns) => columns.cols(),
        }
    }

    /// Columns.
    pub fn cols(&self) -> usize {
        match &self.numbers {
            Numbers::Rows(rows) => rows.cols(),
            Numbers::Columns(columns) => columns.rows(),
        }
    }

    /// Bytes in memory, and in all.
    pub(super) fn bytes(&self) -> [u64; 2] {
        [self.numbers().resident(), size_of_val(self.numbers().data()) as u64]
    }

    /// The same with its numbers in a file that is mapped.
    pub(super) fn to_file(&self) -> Result<Self> {
        Ok(Self::of(match &self.numbers {
            Numbers::Rows(rows) => Numbers::Rows(rows.to_file()?),
            Numbers::Columns(columns) => Numbers::Columns(columns.to_file()?),
        }))
    }

    /// Row after row.
    pub fn rows(&self) -> Cow<'_, Matrix> {
        match &self.numbers {
            Numbers::Rows(rows) => Cow::Borrowed(rows),
            Numbers::Columns(columns) => Cow::Owned(columns.transposed()),
        }
    }

    /// Row i.
    pub fn row(&self, i: usize) -> Cow<'_, [f64]> {
        match &self.numbers {
            Numbers::Rows(rows) => Cow::Borrowed(rows.row(i)),
            Numbers::Columns(columns) => Cow::Owned(columns.column(i)),
        }
    }

    /// Column after column, where they lie so.
    pub(super) fn columns(&self) -> Option<&Matrix> {
        match &self.numbers {
            Numbers::Rows(_) => None,
            Numbers::Columns(columns) => Some(columns),
        }
    }

    /// Column after column.
    pub(super) fn turned(&self) -> Cow<'_, [f64]> {
        match &self.numbers {
            Numbers::Rows(rows) => Cow::Owned(rows.transposed().into_numbers()),
            Numbers::Columns(columns) => Cow::Borrowed(columns.data()),
        }
    }

    /// The same in single precision, made when first asked for.
    pub fn turned_single(&self) -> &[f32] {
        self.turned.get_or_init(|| self.turned().iter().map(|&x| x as f32).collect())
    }

    /// So many first columns hold all that have a square of `least` or more.
    pub(super) fn head(&self, least: f64) -> usize {
        self.squares().iter().rposition(|s| *s >= least).map_or(0, |last| last + 1)
    }

    /// ‖column‖² of every column.
    pub(super) fn squares(&self) -> &[f64] {
        self.squares.get_or_init(|| match &self.numbers {
            Numbers::Rows(rows) => {
                let mut out = vec![0.0; rows.cols()];
                (0..rows.rows()).for_each(|i| out.iter_mut().zip(rows.row(i)).for_each(|(o, x)| *o += x * x));
                out
            }
            Numbers::Columns(columns) => (0..columns.rows()).map(|k| dot(columns.row(k), columns.row(k))).collect(),
        })
    }

    /// B w.
    pub fn times(&self, w: &[f64]) -> Vec<f64> {
        match &self.numbers {
            Numbers::Rows(rows) => rows.times(w),
            Numbers::Columns(columns) => {
                let mut out = vec![0.0; columns.cols()];
                let (fours, rest) = w.as_chunks::<4>();
                for (k, w) in fours.iter().enumerate() {
                    axpy_four(*w, [0, 1, 2, 3].map(|j| columns.row(4 * k + j)), &mut out);
                }
                let first = 4 * fours.len();
                rest.iter().enumerate().for_each(|(k, w)| axpy(*w, columns.row(first + k), &mut out));
                out
            }
        }
    }

    /// Bᵀ v.
    pub fn transposed_times(&self, v: &[f64]) -> Vec<f64> {
        match &self.numbers {
            Numbers::Rows(rows) => rows.transposed_times(v),
            Numbers::Columns(columns) => {
                let mut out = vec![0.0; columns.rows()];
                dots(v, columns.data(), &mut out);
                out
            }
        }
    }

    /// The rows `index` alone.
    #[must_use]
    pub fn select_rows(&self, index: &[usize]) -> Self {
        match &self.numbers {
            Numbers::Rows(rows) => Self::new(rows.select_rows(index)),
            Numbers::Columns(columns) => Self::from_columns(columns.select_cols(index)),
        }
    }

    /// diag(s) B.
    #[must_use]
    pub fn scale_rows(&self, s: &[f64]) -> Self {
        Self::of(match &self.numbers {
            Numbers::Rows(rows) => Numbers::Rows(rows.scale_rows(s)),
            Numbers::Columns(columns) => {
                let mut columns = columns.clone();
                let each = columns.data_mut().chunks_exact_mut(s.len().max(1));
                each.for_each(|column| column.iter_mut().zip(s).for_each(|(x, s)| *x *= s));
                Numbers::Columns(columns)
            }
        })
    }

    /// B ← B / divisor.
    pub(super) fn divide(&mut self, divisor: f64) {
        let numbers = match &mut self.numbers {
            Numbers::Rows(m) | Numbers::Columns(m) => m,
        };
        numbers.data_mut().iter_mut().for_each(|x| *x /= divisor);
        (self.turned, self.squares) = Default::default();
    }

    /// Every row less `mean`.
    pub(super) fn subtract(&mut self, mean: &[f64]) {
        match &mut self.numbers {
            Numbers::Rows(rows) => (0..rows.rows()).for_each(|i| axpy(-1.0, mean, rows.row_mut(i))),
            Numbers::Columns(columns) => {
                mean.iter().enumerate().for_each(|(k, m)| columns.row_mut(k).iter_mut().for_each(|x| *x -= m));
            }
        }
        (self.turned, self.squares) = Default::default();
    }
}
