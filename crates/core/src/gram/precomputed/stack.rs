//! Precomputed kernel values as they come: one array, kernel axis last.

use super::super::dense::Packed;
use crate::{Error, Result, linalg::Matrix};

/// Precomputed kernel values, kernel axis last: entry (i, j) of kernel t is
/// `data[(i·cols + j)·terms + t]`.
#[derive(Debug, Clone, Copy)]
pub struct Stack<'a> {
    /// Number of samples, one row of values each.
    pub rows: usize,
    /// Number of training samples.
    pub cols: usize,
    /// Number of kernels, one value per pair each.
    pub terms: usize,
    /// The values of all kernels.
    pub data: &'a [f64],
}

impl Stack<'_> {
    /// Refuses anything but kernels among the training samples themselves.
    pub fn check_square(&self) -> Result<()> {
        let (n, m) = (self.rows, self.terms);
        if self.cols != n || n == 0 || m == 0 || self.data.len() != n * n * m {
            let got = format!("({n}, {}, {m})", self.cols);
            return Err(Error::shape(
                "ready-made kernels",
                "(n, n, kernels), kernel axis last, none of them 0",
                got,
            ));
        }
        Ok(())
    }

    /// The values of all kernels in these rows and columns, in the order given, as a stack has
    /// them.
    pub fn block(&self, rows: &[usize], cols: &[usize]) -> Vec<f64> {
        let cell =
            |i: usize, j: usize| &self.data[(i * self.cols + j) * self.terms..][..self.terms];
        rows.iter()
            .flat_map(|&i| cols.iter().flat_map(move |&j| cell(i, j).iter().copied()))
            .collect()
    }

    /// Entry (i, j) of every kernel.
    pub(super) fn cell(&self, i: usize, j: usize) -> &[f64] {
        &self.data[(i * self.cols + j) * self.terms..][..self.terms]
    }

    /// The values of all kernels from entry (i, j) on.
    pub(super) fn cells(&self, i: usize, j: usize) -> &[f64] {
        &self.data[(i * self.cols + j) * self.terms..]
    }

    /// Kernel t as a matrix.
    pub(super) fn kernel(&self, t: usize) -> Matrix {
        Matrix::from_parts(
            self.rows,
            self.cols,
            self.data[t..].iter().step_by(self.terms).copied().collect(),
        )
    }

    /// The lower triangles of some kernels.
    pub(super) fn triangles(&self, kernels: &[usize]) -> Vec<Packed<f64>> {
        Packed::several(self.rows, kernels.len(), |i, rows| {
            for j in 0..=i {
                let cell = self.cell(i, j);
                rows.iter_mut().zip(kernels).for_each(|(row, &t)| row[j] = cell[t]);
            }
        })
    }
}
