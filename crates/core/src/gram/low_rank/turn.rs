//! A rotation of a shared basis after which smooth kernels need its first columns alone.

use crate::{
    linalg::{Matrix, axpy, dot, gemm, gemm_nt},
    tuning::tuning,
};

tuning! { "turn"
    /// Columns of a basis per column that a kernel needs, at least: with fewer it gets coordinates
    /// in all columns, as few would be saved.
    columns_per_known_column: usize = 3;
}

/// An orthogonal matrix that is built row by row.
pub(super) struct Turn {
    /// Orthonormal rows, of which the first `count` are known.
    rows: Matrix,
    count: usize,
}

impl Turn {
    /// No row yet of a matrix of size n.
    pub(super) fn new(n: usize) -> Self {
        Self { rows: Matrix::zeros(n, n), count: 0 }
    }

    /// The rows, once all are known.
    pub(super) fn rows(&self) -> &Matrix {
        &self.rows
    }

    /// Adds rows until they span these vectors up to the relative error `allowed`, and returns how
    /// many rows there are then; all of them where that would be many.
    pub(super) fn width_for(&mut self, vectors: &Matrix, allowed: f64) -> usize {
        let smallest =
            allowed.powi(2) * dot(vectors.data(), vectors.data()) / vectors.rows() as f64;
        for j in 0..vectors.rows() {
            if TUNING.columns_per_known_column * self.count > self.rows.cols() {
                return self.rows.cols();
            }
            self.add(vectors.row(j), smallest);
        }
        self.count
    }

    /// Adds the part of a vector that no row spans yet, if its square is larger than `smallest`.
    fn add(&mut self, vector: &[f64], smallest: f64) {
        let mut v = vec![0.0; self.rows.cols()];
        v[..vector.len()].copy_from_slice(vector);
        // A second round takes back what rounding left of the first.
        for _ in 0..2 {
            for k in 0..self.count {
                let row = self.rows.row(k);
                axpy(-dot(row, &v), row, &mut v);
            }
            if dot(&v, &v) <= smallest || self.count == self.rows.rows() {
                return;
            }
        }
        let norm = dot(&v, &v).sqrt();
        let new = self.rows.row_mut(self.count).iter_mut().zip(&v);
        new.for_each(|(o, x)| *o = x / norm);
        self.count += 1;
    }

    /// Adds rows until all are known, made from the axes that the rows so far span least.
    pub(super) fn complete(&mut self) {
        let n = self.rows.cols();
        let mut held = vec![0.0; n];
        let hold = |held: &mut Vec<f64>, row: &[f64]| {
            held.iter_mut().zip(row).for_each(|(h, x)| *h += x * x);
        };
        (0..self.count).for_each(|k| hold(&mut held, self.rows.row(k)));
        while self.count < n {
            let least = (0..n).fold(0, |b, i| if held[i] < held[b] { i } else { b });
            let mut axis = vec![0.0; n];
            axis[least] = 1.0;
            self.add(&axis, 0.0);
            hold(&mut held, self.rows.row(self.count - 1));
        }
    }

    /// Coordinates of vectors in the first `width` rows, and the Frobenius norm of what those rows
    /// do not span.
    pub(super) fn apply(&self, vectors: &Matrix, width: usize) -> (Matrix, f64) {
        let (n, count) = (self.rows.cols(), vectors.rows());
        let mut left = Matrix::zeros(count, n);
        (0..count).for_each(|j| left.row_mut(j)[..vectors.cols()].copy_from_slice(vectors.row(j)));
        let mut coords = Matrix::zeros(count, width);
        gemm_nt(count, width, n, left.data(), self.rows.data(), coords.data_mut(), width);
        let negated: Vec<f64> = coords.data().iter().map(|c| -c).collect();
        gemm(
            (count, width, n),
            (&negated, width, 1),
            (self.rows.data(), n, 1),
            (left.data_mut(), n),
        );
        (coords, dot(left.data(), left.data()).sqrt())
    }
}
