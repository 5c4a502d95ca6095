//! A dense row-major matrix of f64: the shape data travel in.

use std::borrow::Borrow;

use rayon::prelude::*;

use super::{axpy, dot, gemm, gemm_nt, numbers::Numbers, zeros};
use crate::{Error, tuning::tuning};

tuning! { "matrix"
    /// Rows that one task sums. The number fixes the order of sums, whatever the number of threads.
    rows_per_sum: usize = 512;
    /// Least number of rows of a product self · selfᵀ or selfᵀ · self that one task fills.
    rows_of_square_per_task: usize = 96;
    /// Rows of a product with few columns that one task fills.
    rows_per_task: usize = 256;
    /// Least number of inner products that one task computes.
    products_per_task: usize = 64;
    /// Tasks of selfᵀ diag(w) self, at most: each reads all columns up to its own, so that few are
    /// better.
    tasks_of_weighted_square: usize = 4;
}

/// A dense matrix of `rows` × `cols` numbers, row after row.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Matrix {
    rows: usize,
    cols: usize,
    data: Numbers,
}

impl Matrix {
    /// A matrix in which every number is zero.
    pub fn zeros(rows: usize, cols: usize) -> Self {
        Self { rows, cols, data: zeros(rows * cols).into() }
    }

    /// A matrix from row-major numbers, of which there must be as many as entries.
    pub fn new(rows: usize, cols: usize, data: Vec<f64>) -> Result<Self, Error> {
        if data.len() != rows * cols {
            return Err(Error::shape(
                "matrix",
                format!("{rows} × {cols} = {} numbers", rows * cols),
                data.len(),
            ));
        }
        Ok(Self { rows, cols, data: data.into() })
    }

    /// A matrix from row-major numbers, of which the caller has counted as many as entries.
    pub(crate) fn from_parts(rows: usize, cols: usize, data: Vec<f64>) -> Self {
        debug_assert_eq!(data.len(), rows * cols);
        Self { rows, cols, data: data.into() }
    }

    /// The numbers, to be used for something else.
    pub(crate) fn into_numbers(self) -> Vec<f64> {
        self.data.into_vec()
    }

    /// Number of rows of the matrix.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns of the matrix.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// The numbers of row `i`.
    pub fn row(&self, i: usize) -> &[f64] {
        &self.data[i * self.cols..(i + 1) * self.cols]
    }

    /// The numbers of row `i`, to be changed.
    pub fn row_mut(&mut self, i: usize) -> &mut [f64] {
        &mut self.data[i * self.cols..(i + 1) * self.cols]
    }

    /// All numbers, row after row.
    pub fn data(&self) -> &[f64] {
        &self.data
    }

    /// All numbers, row after row, mutable.
    pub fn data_mut(&mut self) -> &mut [f64] {
        &mut self.data
    }

    /// The same matrix, whose clones read the same numbers: they are copied where one of them is
    /// written to.
    #[must_use]
    pub fn shared(self) -> Self {
        Self { data: self.data.shared(), ..self }
    }

    /// The same matrix with its numbers in a mapped file.
    pub fn to_file(&self) -> Result<Self, Error> {
        let data = self.data.to_file().map_err(|e| Error::file(&std::env::temp_dir(), e))?;
        Ok(Self { rows: self.rows, cols: self.cols, data })
    }

    /// Bytes of its numbers in memory.
    pub fn resident(&self) -> u64 {
        self.data.resident()
    }

    /// The product self · w.
    pub fn times(&self, w: &[f64]) -> Vec<f64> {
        (0..self.rows)
            .into_par_iter()
            .with_min_len(TUNING.products_per_task)
            .map(|i| dot(self.row(i), w))
            .collect()
    }

    /// The product selfᵀ · v. Runs of rows are summed on their own and in order, whatever the
    /// number of threads.
    pub fn transposed_times(&self, v: &[f64]) -> Vec<f64> {
        let part = |(rows, v): (&[f64], &[f64])| {
            let mut out = vec![0.0; self.cols];
            for (row, &v) in rows.chunks_exact(self.cols.max(1)).zip(v).filter(|(_, v)| **v != 0.0)
            {
                axpy(v, row, &mut out);
            }
            out
        };
        let runs = self
            .data
            .par_chunks(TUNING.rows_per_sum * self.cols.max(1))
            .zip(v.par_chunks(TUNING.rows_per_sum));
        let parts: Vec<Vec<f64>> = runs.map(part).collect();
        let mut parts = parts.into_iter();
        let mut out = parts.next().unwrap_or_else(|| vec![0.0; self.cols]);
        parts.for_each(|p| axpy(1.0, &p, &mut out));
        out
    }

    /// The first columns of self, as many as r has, times rᵀ.
    #[must_use]
    pub fn times_transposed(&self, r: &Self) -> Self {
        let (cols, depth, width) = (r.rows, r.cols, self.cols);
        let mut out = Self::zeros(self.rows, cols);
        let rows = out
            .data
            .par_chunks_mut(TUNING.rows_per_task * cols.max(1))
            .zip(self.data.par_chunks(TUNING.rows_per_task * width.max(1)));
        rows.for_each(|(out, own)| {
            gemm(
                (out.len() / cols, depth, cols),
                (own, width, 1),
                (&r.data, 1, depth),
                (out, cols),
            );
        });
        out
    }

    /// The lower triangle of self selfᵀ.
    #[must_use]
    pub fn outer(&self) -> Self {
        let (n, depth) = (self.rows, self.cols);
        let mut out = Self::zeros(n, n);
        out.data.par_chunks_mut(TUNING.rows_of_square_per_task * n.max(1)).enumerate().for_each(
            |(b, out)| {
                let (first, count) = (b * TUNING.rows_of_square_per_task, out.len() / n);
                gemm_nt(
                    count,
                    first + count,
                    depth,
                    &self.data[first * depth..],
                    &self.data,
                    out,
                    n,
                );
            },
        );
        out
    }

    /// The lower triangle of selfᵀ diag(w) self.
    #[must_use]
    pub fn weighted_gram(&self, w: &[f64]) -> Self {
        let mut out = Self::zeros(self.cols, self.cols);
        self.add_weighted_gram(w, &mut out);
        out
    }

    /// Adds selfᵀ diag(w) self to the lower triangle of `out`.
    pub fn add_weighted_gram(&self, w: &[f64], out: &mut Self) {
        let cols = self.cols;
        let panel = TUNING.rows_of_square_per_task.max(cols / TUNING.tasks_of_weighted_square);
        out.data.par_chunks_mut(panel * cols.max(1)).enumerate().for_each(|(b, out)| {
            let (first, width) = (b * panel, out.len() / cols);
            let mut left = vec![0.0; TUNING.rows_per_sum.min(self.rows) * width];
            for (start, w) in
                w.chunks(TUNING.rows_per_sum).enumerate().map(|(k, w)| (k * TUNING.rows_per_sum, w))
            {
                for (k, (left, w)) in left.chunks_exact_mut(width).zip(w).enumerate() {
                    let own = &self.row(start + k)[first..first + width];
                    left.iter_mut().zip(own).for_each(|(l, x)| *l = w * x);
                }
                let shape = (width, w.len(), first + width);
                gemm(shape, (&left, 1, width), (&self.data[start * cols..], cols, 1), (out, cols));
            }
        });
    }

    /// The transpose of the matrix.
    #[must_use]
    pub fn transposed(&self) -> Self {
        let mut out = Self::zeros(self.cols, self.rows);
        for i in 0..self.rows {
            for (j, &x) in self.row(i).iter().enumerate() {
                out.data[j * self.rows + i] = x;
            }
        }
        out
    }

    /// The rows times one number each, diag(s) · self.
    #[must_use]
    pub fn scale_rows(&self, s: &[f64]) -> Self {
        let mut out = self.clone();
        s.iter().enumerate().for_each(|(i, s)| out.row_mut(i).iter_mut().for_each(|x| *x *= s));
        out
    }

    /// ‖column‖² of every column.
    pub(crate) fn column_squares(&self) -> Vec<f64> {
        let mut out = vec![0.0; self.cols];
        (0..self.rows).for_each(|i| out.iter_mut().zip(self.row(i)).for_each(|(o, x)| *o += x * x));
        out
    }

    /// A copy of column `j`.
    pub fn column(&self, j: usize) -> Vec<f64> {
        (0..self.rows).map(|i| self.data[i * self.cols + j]).collect()
    }

    /// The rows `index`, copied in that order.
    #[must_use]
    pub fn select_rows(&self, index: &[usize]) -> Self {
        let mut data = Vec::with_capacity(index.len() * self.cols);
        for &i in index {
            data.extend_from_slice(self.row(i));
        }
        Self { rows: index.len(), cols: self.cols, data: data.into() }
    }

    /// The columns `index`, copied in that order.
    #[must_use]
    pub fn select_cols(&self, index: &[usize]) -> Self {
        let mut data = Vec::with_capacity(index.len() * self.rows);
        for i in 0..self.rows {
            let row = self.row(i);
            data.extend(index.iter().map(|&j| row[j]));
        }
        Self { rows: self.rows, cols: index.len(), data: data.into() }
    }
}

/// The columns of some matrices with the same number of rows, side by side in one matrix.
pub(crate) fn side_by_side<M: Borrow<Matrix> + Sync>(blocks: &[M]) -> Matrix {
    let (n, cols) = (
        blocks.first().map_or(0, |b| b.borrow().rows()),
        blocks.iter().map(|b| b.borrow().cols()).sum::<usize>(),
    );
    let mut out = Matrix::zeros(n, cols);
    out.data_mut().par_chunks_mut(cols.max(1)).enumerate().for_each(|(i, row)| {
        let mut at = 0;
        for b in blocks.iter().map(Borrow::borrow) {
            row[at..at + b.cols()].copy_from_slice(b.row(i));
            at += b.cols();
        }
    });
    out
}

impl std::ops::Index<(usize, usize)> for Matrix {
    type Output = f64;
    fn index(&self, (i, j): (usize, usize)) -> &f64 {
        &self.data[i * self.cols + j]
    }
}

impl std::ops::IndexMut<(usize, usize)> for Matrix {
    fn index_mut(&mut self, (i, j): (usize, usize)) -> &mut f64 {
        &mut self.data[i * self.cols + j]
    }
}
