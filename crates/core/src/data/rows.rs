//! The rows that kernels look at: numbers, and sequences beside them.

use super::Sequences;
use crate::{Error, Result, linalg::Matrix};

/// Samples without names. Columns are counted through: first those of numbers, then those of sequences.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Rows {
    numbers: Matrix,
    sequences: Vec<Sequences>,
}

impl From<Matrix> for Rows {
    fn from(numbers: Matrix) -> Self {
        Self { numbers, sequences: Vec::new() }
    }
}

impl Rows {
    /// Numbers and sequences of the same samples; a matrix without columns takes the number of rows of the sequences.
    pub fn new(numbers: Matrix, sequences: Vec<Sequences>) -> Result<Self> {
        let numbers = match sequences.first() {
            Some(first) if numbers.cols() == 0 => Matrix::zeros(first.len(), 0),
            _ => numbers,
        };
        match sequences.iter().find(|s| s.len() != numbers.rows()) {
            Some(odd) => Err(Error::shape("sequences", format!("{} rows", numbers.rows()), odd.len())),
            None => Ok(Self { numbers, sequences }),
        }
    }

    /// Number of samples.
    pub fn len(&self) -> usize {
        self.numbers.rows()
    }

    /// No samples.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of columns of either kind.
    pub fn cols(&self) -> usize {
        self.numbers.cols() + self.sequences.len()
    }

    /// The numeric columns.
    pub fn numbers(&self) -> &Matrix {
        &self.numbers
    }

    /// The same sequences beside other numbers of the same rows.
    #[must_use]
    pub fn with_numbers(&self, numbers: Matrix) -> Self {
        Self { numbers, sequences: self.sequences.clone() }
    }

    /// The columns of sequences.
    pub fn sequences(&self) -> &[Sequences] {
        &self.sequences
    }

    /// Column `column`, counted through, where it holds sequences.
    pub fn sequence(&self, column: usize) -> Option<&Sequences> {
        column.checked_sub(self.numbers.cols()).and_then(|at| self.sequences.get(at))
    }

    /// Is column `column` the same in every row?
    pub fn is_constant(&self, column: usize) -> bool {
        match self.sequence(column) {
            Some(s) => (1..s.len()).all(|i| s.get(i) == s.get(0)),
            None => (1..self.len()).all(|i| self.numbers[(i, column)] == self.numbers[(0, column)]),
        }
    }

    /// The rows `index`, in that order.
    #[must_use]
    pub fn select_rows(&self, index: &[usize]) -> Self {
        let sequences = self.sequences.iter().map(|s| s.select(index)).collect();
        Self { numbers: self.numbers.select_rows(index), sequences }
    }

    /// The columns `index`, counted through: those of numbers in that order, then those of sequences in that order.
    #[must_use]
    pub fn select_cols(&self, index: &[usize]) -> Self {
        let numbers: Vec<usize> = index.iter().copied().filter(|&c| c < self.numbers.cols()).collect();
        let sequences = index.iter().filter_map(|&c| self.sequence(c).cloned()).collect();
        Self { numbers: self.numbers.select_cols(&numbers), sequences }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_counted_through() {
        let s = |texts: [&str; 3]| Sequences::new("s", texts).unwrap();
        let numbers = Matrix::new(3, 2, vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
        let rows = Rows::new(numbers, vec![s(["A", "C", "G"]), s(["x", "y", "z"])]).unwrap();
        assert_eq!((rows.len(), rows.cols()), (3, 4));
        assert_eq!(rows.sequence(3).unwrap().get(1), "y");
        assert!(rows.sequence(1).is_none() && rows.sequence(4).is_none());
        let part = rows.select_rows(&[2, 0]).select_cols(&[1, 3]);
        assert_eq!((part.numbers().data(), part.sequence(1).unwrap().get(0)), (&[6.0, 2.0][..], "z"));
        let alone = rows.select_cols(&[2]);
        assert_eq!((alone.len(), alone.cols(), alone.numbers().cols()), (3, 1, 0));
        assert_eq!(Rows::new(Matrix::default(), vec![s(["A", "C", "G"])]).unwrap().len(), 3);
        assert!(Rows::new(Matrix::zeros(2, 1), vec![s(["A", "C", "G"])]).is_err());
        assert!(!rows.is_constant(0) && !rows.is_constant(2));
        assert!(rows.select_rows(&[1, 1]).is_constant(0) && rows.select_rows(&[1, 1]).is_constant(3));
    }
}
