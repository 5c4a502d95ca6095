//! The columns of a basis: row after row where there are many rows, column after column where there
//! are few.

use std::{
    borrow::Cow,
    sync::{Arc, OnceLock},
};

use crate::{
    Result,
    linalg::{Matrix, axpy, axpy_four, dot, dots},
};

/// With fewer rows than this, columns are kept one after another, and no basis is shared: finding
/// one costs more than it saves. It decides how numbers are laid out, and with that the last digit
/// of every sum, so that it is not to be tuned at run time.
pub(crate) const FEW_ROWS: usize = 512;

/// The columns B of a basis, and copies of them in other layouts that sums read, made when first
/// asked for.
#[derive(Debug, Clone)]
pub struct Basis {
    numbers: Arc<BasisNumbers>,
    /// Row scaling: B is diag(scale) times the numbers; `None` means ones.
    scale: Option<Arc<Vec<f64>>>,
    /// B column after column in single precision.
    single: OnceLock<Vec<f32>>,
    /// ‖column‖² of every column.
    squares: OnceLock<Vec<f64>>,
}

#[derive(Debug, Clone, PartialEq)]
enum BasisNumbers {
    /// Row after row; such a basis has no scale.
    Rows(Matrix),
    /// Column after column: a row of this matrix is a column of B.
    Columns(Matrix),
}

impl PartialEq for Basis {
    fn eq(&self, other: &Self) -> bool {
        (&self.numbers, &self.scale) == (&other.numbers, &other.scale)
    }
}

impl Basis {
    /// A basis from a matrix with a row per sample.
    pub fn new(rows: Matrix) -> Self {
        if rows.rows() < FEW_ROWS {
            Self::of(BasisNumbers::Columns(rows.transposed()))
        } else {
            Self::of(BasisNumbers::Rows(rows))
        }
    }

    /// A basis from a matrix with a row per column.
    pub(crate) fn from_columns(columns: Matrix) -> Self {
        if columns.cols() < FEW_ROWS {
            Self::of(BasisNumbers::Columns(columns))
        } else {
            Self::of(BasisNumbers::Rows(columns.transposed()))
        }
    }

    fn of(numbers: BasisNumbers) -> Self {
        Self {
            numbers: Arc::new(numbers),
            scale: None,
            single: OnceLock::new(),
            squares: OnceLock::new(),
        }
    }

    fn numbers(&self) -> &Matrix {
        match &*self.numbers {
            BasisNumbers::Rows(m) | BasisNumbers::Columns(m) => m,
        }
    }

    /// Number of samples, the rows of B.
    pub fn n(&self) -> usize {
        match &*self.numbers {
            BasisNumbers::Rows(rows) => rows.rows(),
            BasisNumbers::Columns(columns) => columns.cols(),
        }
    }

    /// Number of columns of B.
    pub fn cols(&self) -> usize {
        match &*self.numbers {
            BasisNumbers::Rows(rows) => rows.cols(),
            BasisNumbers::Columns(columns) => columns.rows(),
        }
    }

    /// Bytes of its numbers in memory, and bytes of its numbers anywhere.
    pub(crate) fn bytes(&self) -> [u64; 2] {
        [self.numbers().resident(), size_of_val(self.numbers().data()) as u64]
    }

    /// The same basis with its numbers in a mapped file.
    pub(crate) fn to_file(&self) -> Result<Self> {
        let numbers = match &*self.numbers {
            BasisNumbers::Rows(rows) => BasisNumbers::Rows(rows.to_file()?),
            BasisNumbers::Columns(columns) => BasisNumbers::Columns(columns.to_file()?),
        };
        Ok(Self { scale: self.scale.clone(), ..Self::of(numbers) })
    }

    /// The vector s∘v for the row scaling s.
    fn scaled<'a>(&self, v: Cow<'a, [f64]>) -> Cow<'a, [f64]> {
        match &self.scale {
            None => v,
            Some(s) => v.iter().zip(&**s).map(|(v, s)| v * s).collect(),
        }
    }

    /// B as a matrix with a row per sample.
    pub fn rows(&self) -> Cow<'_, Matrix> {
        match (&*self.numbers, &self.scale) {
            (BasisNumbers::Rows(rows), _) => Cow::Borrowed(rows),
            (BasisNumbers::Columns(columns), None) => Cow::Owned(columns.transposed()),
            (BasisNumbers::Columns(columns), Some(s)) => {
                Cow::Owned(columns.transposed().scale_rows(s))
            }
        }
    }

    /// Row i of B.
    pub fn row(&self, i: usize) -> Cow<'_, [f64]> {
        match &*self.numbers {
            BasisNumbers::Rows(rows) => Cow::Borrowed(rows.row(i)),
            BasisNumbers::Columns(columns) => {
                let s = self.scale.as_ref().map_or(1.0, |s| s[i]);
                (0..columns.rows()).map(|k| s * columns[(k, i)]).collect()
            }
        }
    }

    /// Do its numbers lie column after column?
    pub(crate) fn is_column_major(&self) -> bool {
        matches!(*self.numbers, BasisNumbers::Columns(_))
    }

    /// The numbers of B, column after column.
    pub(crate) fn column_major(&self) -> Cow<'_, [f64]> {
        match &*self.numbers {
            BasisNumbers::Rows(rows) => Cow::Owned(rows.transposed().into_numbers()),
            BasisNumbers::Columns(columns) if self.scale.is_none() => Cow::Borrowed(columns.data()),
            BasisNumbers::Columns(columns) => (0..columns.rows())
                .flat_map(|k| self.scaled(Cow::Borrowed(columns.row(k))).into_owned())
                .collect(),
        }
    }

    /// The numbers of B in single precision, column after column.
    pub fn column_major_single(&self) -> &[f32] {
        self.single.get_or_init(|| self.column_major().iter().map(|&x| x as f32).collect())
    }

    /// Writes the first columns times `factor`, as many as `out` holds; false where B lies row
    /// after row, and nothing was written.
    pub(crate) fn write_head<T>(
        &self,
        factor: f64,
        out: &mut [T],
        round: impl Fn(f64) -> T,
    ) -> bool {
        match (&*self.numbers, &self.scale) {
            (BasisNumbers::Columns(columns), None) => {
                out.iter_mut().zip(columns.data()).for_each(|(o, x)| *o = round(factor * x));
            }
            (BasisNumbers::Columns(columns), Some(s)) => {
                let s: Vec<f64> = s.iter().map(|s| factor * s).collect();
                for (out, column) in
                    out.chunks_exact_mut(s.len()).zip(columns.data().chunks_exact(s.len()))
                {
                    out.iter_mut().zip(column).zip(&s).for_each(|((o, x), s)| *o = round(s * x));
                }
            }
            (BasisNumbers::Rows(_), _) => return false,
        }
        true
    }

    /// Number of first columns among which are all with a square of `least` or more.
    pub(crate) fn columns_down_to(&self, least: f64) -> usize {
        self.squares().iter().rposition(|s| *s >= least).map_or(0, |last| last + 1)
    }

    /// ‖column‖² of every column.
    pub(crate) fn squares(&self) -> &[f64] {
        self.squares.get_or_init(|| match &*self.numbers {
            BasisNumbers::Rows(rows) => rows.column_squares(),
            BasisNumbers::Columns(columns) => {
                let square = |column: Cow<'_, [f64]>| dot(&column, &column);
                (0..columns.rows())
                    .map(|k| square(self.scaled(Cow::Borrowed(columns.row(k)))))
                    .collect()
            }
        })
    }

    /// The product B w.
    pub fn times(&self, w: &[f64]) -> Vec<f64> {
        match &*self.numbers {
            BasisNumbers::Rows(rows) => rows.times(w),
            BasisNumbers::Columns(columns) => {
                let mut out = vec![0.0; columns.cols()];
                let (fours, rest) = w.as_chunks::<4>();
                for (k, w) in fours.iter().enumerate() {
                    axpy_four(*w, [0, 1, 2, 3].map(|j| columns.row(4 * k + j)), &mut out);
                }
                let first = 4 * fours.len();
                rest.iter()
                    .enumerate()
                    .for_each(|(k, w)| axpy(*w, columns.row(first + k), &mut out));
                self.scaled(Cow::Owned(out)).into_owned()
            }
        }
    }

    /// The product Bᵀ v.
    pub fn transposed_times(&self, v: &[f64]) -> Vec<f64> {
        match &*self.numbers {
            BasisNumbers::Rows(rows) => rows.transposed_times(v),
            BasisNumbers::Columns(columns) => {
                let mut out = vec![0.0; columns.rows()];
                dots(&self.scaled(Cow::Borrowed(v)), columns.data(), &mut out);
                out
            }
        }
    }

    /// The basis of the rows `index` alone.
    #[must_use]
    pub fn select_rows(&self, index: &[usize]) -> Self {
        match &*self.numbers {
            BasisNumbers::Rows(rows) => Self::new(rows.select_rows(index)),
            BasisNumbers::Columns(columns) => {
                let scale =
                    self.scale.as_ref().map(|s| Arc::new(index.iter().map(|&i| s[i]).collect()));
                Self { scale, ..Self::from_columns(columns.select_cols(index)) }
            }
        }
    }

    /// The basis diag(s) B. Numbers that lie column after column are shared, not copied.
    #[must_use]
    pub fn scale_rows(&self, s: &[f64]) -> Self {
        match &*self.numbers {
            BasisNumbers::Rows(rows) => Self::of(BasisNumbers::Rows(rows.scale_rows(s))),
            BasisNumbers::Columns(_) => {
                let scale = Some(Arc::new(self.scaled(Cow::Borrowed(s)).into_owned()));
                Self {
                    numbers: Arc::clone(&self.numbers),
                    scale,
                    single: OnceLock::new(),
                    squares: OnceLock::new(),
                }
            }
        }
    }

    /// Divides B by a number.
    pub(crate) fn divide(&mut self, divisor: f64) {
        self.own().data_mut().iter_mut().for_each(|x| *x /= divisor);
    }

    /// Subtracts `mean` from every row of B, which must have no row scaling.
    pub(crate) fn subtract(&mut self, mean: &[f64]) {
        let in_columns = self.is_column_major();
        let numbers = self.own();
        if in_columns {
            mean.iter()
                .enumerate()
                .for_each(|(k, m)| numbers.row_mut(k).iter_mut().for_each(|x| *x -= m));
        } else {
            (0..numbers.rows()).for_each(|i| axpy(-1.0, mean, numbers.row_mut(i)));
        }
    }

    /// The numbers, to be changed: other layouts are forgotten.
    fn own(&mut self) -> &mut Matrix {
        (self.single, self.squares) = Default::default();
        match Arc::make_mut(&mut self.numbers) {
            BasisNumbers::Rows(m) | BasisNumbers::Columns(m) => m,
        }
    }
}
