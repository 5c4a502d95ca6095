//! A symmetric n × n matrix with both triangles present: rows are contiguous, as machines want them.

use rayon::prelude::*;

use super::cell::{Cell, Inner};
use crate::linalg::{Matrix, wide, zeros};

const TILE: usize = 64;
/// Rows and columns of what is turned at a time.
const STRIP: usize = 16;

/// Symmetric, square, row-major.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Square<T> {
    n: usize,
    data: Vec<T>,
}

/// In double precision.
pub type Gram = Square<f64>;

impl<T: Cell> Square<T> {
    /// All zeros.
    pub fn zeros(n: usize) -> Self {
        Self { n, data: zeros(n * n) }
    }

    /// Size.
    pub fn n(&self) -> usize {
        self.n
    }

    /// Row i.
    pub fn row(&self, i: usize) -> &[T] {
        &self.data[i * self.n..(i + 1) * self.n]
    }

    /// All numbers, mutable; the lower triangle is the one that counts until [`Gram::mirror`] is called.
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

    /// K v.
    pub fn times(&self, v: &[f64]) -> Vec<f64> {
        (0..self.n).into_par_iter().with_min_len(64).map(|i| wide(Inner(self.row(i), v))).collect()
    }

    /// Copies the lower triangle to the upper one.
    pub fn mirror(&mut self) {
        let n = self.n;
        for top in (0..n).step_by(TILE) {
            let (upper, lower) = self.data.split_at_mut((top + TILE).min(n) * n);
            let block = &mut upper[top * n..];
            // Middle the diagonal tile, then every tile below it.
            let height = block.len() / n;
            for i in 1..height {
                for j in 0..i {
                    block[j * n + top + i] = block[i * n + top + j];
                }
            }
            block.par_chunks_mut(STRIP * n).enumerate().for_each(|(s, strip)| {
                let left = top + s * STRIP;
                for (t, tile) in lower.chunks(STRIP * n).enumerate() {
                    let at = top + height + t * STRIP;
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
    /// In double precision.
    pub fn widened(&self) -> Gram {
        Gram { n: self.n, data: self.data.iter().map(|x| f64::from(*x)).collect() }
    }
}

impl Gram {
    /// As a plain matrix.
    pub fn into_matrix(self) -> Matrix {
        Matrix::from_parts(self.n, self.n, self.data)
    }

    /// Of a square matrix.
    pub(crate) fn from_matrix(square: Matrix) -> Self {
        Self { n: square.rows(), data: square.into_numbers() }
    }
}
