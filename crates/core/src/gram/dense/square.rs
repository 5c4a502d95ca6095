//! A symmetric n × n matrix with both triangles present: rows are contiguous, as machines want
//! them.

use rayon::prelude::*;

use super::cell::{Cell, Inner};
use crate::{
    linalg::{Matrix, wide, zeros},
    tuning::tuning,
};

tuning! { "square"
    /// Rows of a stripe whose entries are copied to the other side of the diagonal in one pass.
    rows_per_stripe: usize = 64;
    /// Rows and columns of a tile that is transposed at a time: two such tiles fit the fastest
    /// cache.
    tile_rows: usize = 16;
    /// Least number of rows of a product K v that one task computes.
    rows_per_task: usize = 64;
}

/// A symmetric matrix, row after row.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Square<T> {
    n: usize,
    data: Vec<T>,
}

/// A symmetric matrix in double precision.
pub type Gram = Square<f64>;

impl<T: Cell> Square<T> {
    /// A matrix of zeros.
    pub fn zeros(n: usize) -> Self {
        Self { n, data: zeros(n * n) }
    }

    /// Number of rows, and of columns.
    pub fn n(&self) -> usize {
        self.n
    }

    /// The whole of row i.
    pub fn row(&self, i: usize) -> &[T] {
        &self.data[i * self.n..(i + 1) * self.n]
    }

    /// All numbers, mutable; the lower triangle is the one that counts until [`Gram::mirror`] is
    /// called.
    pub fn data_mut(&mut self) -> &mut [T] {
        &mut self.data
    }

    /// The principal submatrix of `index`.
    #[must_use]
    pub fn select(&self, index: &[usize]) -> Self {
        let n = index.len();
        let mut data = zeros(n * n);
        data.par_chunks_mut(n.max(1)).zip(index).for_each(|(out, &i)| {
            let row = self.row(i);
            out.iter_mut().zip(index).for_each(|(o, &j)| *o = row[j]);
        });
        Self { n, data }
    }

    /// The product K v, in double precision.
    pub fn times(&self, v: &[f64]) -> Vec<f64> {
        (0..self.n)
            .into_par_iter()
            .with_min_len(TUNING.rows_per_task)
            .map(|i| wide(Inner(self.row(i), v)))
            .collect()
    }

    /// Copies the lower triangle to the upper one.
    pub fn mirror(&mut self) {
        let n = self.n;
        for top in (0..n).step_by(TUNING.rows_per_stripe) {
            let (upper, lower) = self.data.split_at_mut((top + TUNING.rows_per_stripe).min(n) * n);
            let block = &mut upper[top * n..];
            // Middle the diagonal tile, then every tile below it.
            let height = block.len() / n;
            for i in 1..height {
                for j in 0..i {
                    block[j * n + top + i] = block[i * n + top + j];
                }
            }
            block.par_chunks_mut(TUNING.tile_rows * n).enumerate().for_each(|(s, strip)| {
                let left = top + s * TUNING.tile_rows;
                for (t, tile) in lower.chunks(TUNING.tile_rows * n).enumerate() {
                    let at = top + height + t * TUNING.tile_rows;
                    for (i, row) in strip.chunks_exact_mut(n).enumerate() {
                        let column = tile[left + i..].iter().step_by(n);
                        row[at..].iter_mut().zip(column).for_each(|(out, x)| *out = *x);
                    }
                }
            });
        }
    }
}

impl Square<f32> {
    /// The same matrix in double precision.
    pub fn widened(&self) -> Gram {
        Gram { n: self.n, data: self.data.iter().map(|x| f64::from(*x)).collect() }
    }
}

impl Gram {
    /// The same numbers as a plain matrix.
    pub fn into_matrix(self) -> Matrix {
        Matrix::from_parts(self.n, self.n, self.data)
    }

    /// From a plain matrix that is symmetric.
    pub(crate) fn from_matrix(square: Matrix) -> Self {
        Self { n: square.rows(), data: square.into_numbers() }
    }
}
