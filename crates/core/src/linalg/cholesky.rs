//! Blocked Cholesky factorisation of a symmetric positive definite matrix.

use rayon::prelude::*;

use super::{Matrix, axpy, dot, gemm, gemm_nt};
use crate::{Error, Result};

const BLOCK: usize = 64;
/// Rows below a block treated by one task.
const RUN: usize = 128;

/// A = L Lᵀ, L lower triangular.
#[derive(Debug, Clone)]
pub struct Cholesky {
    lower: Matrix,
}

impl Cholesky {
    /// Factors `a` in its own memory, reading only the lower triangle. `what` names the matrix in the error.
    pub fn new(mut a: Matrix, what: &str) -> Result<Self> {
        let n = a.rows();
        if a.cols() != n {
            return Err(Error::shape(what, "a square matrix", format!("{} × {}", n, a.cols())));
        }
        for start in (0..n).step_by(BLOCK) {
            let end = (start + BLOCK).min(n);
            factor_diagonal_block(&mut a, start, end, what)?;
            solve_panel(&mut a, start, end);
            update_trailing(&mut a, start, end);
        }
        Ok(Self { lower: a })
    }

    /// L; what is above its diagonal does not count.
    pub fn lower(&self) -> &Matrix {
        &self.lower
    }

    /// x ← A⁻¹ x.
    pub fn solve(&self, x: &mut [f64]) {
        self.solve_lower(x);
        self.solve_upper(x);
    }

    /// x ← L⁻¹ x.
    pub fn solve_lower(&self, x: &mut [f64]) {
        for i in 0..x.len() {
            let row = self.lower.row(i);
            x[i] = (x[i] - dot(&row[..i], &x[..i])) / row[i];
        }
    }

    /// The rows and columns from `first` on of A⁻¹, both triangles: (L₂₂ L₂₂ᵀ)⁻¹ for the trailing block L₂₂ of L.
    pub fn inverse_tail(&self, first: usize) -> Matrix {
        let (n, width) = (self.lower.rows() - first, self.lower.cols());
        // Y = L₂₂⁻ᵀ, upper triangular, a block of columns at a time: Y_b = (I_b − Y_{<b} L_{b,<b}ᵀ) L_bb⁻ᵀ.
        let mut y = Matrix::zeros(n, n);
        for start in (0..n).step_by(BLOCK) {
            let end = (start + BLOCK).min(n);
            let (depth, cols) = (start, end - start);
            let mut block = vec![0.0; end * cols];
            for j in 0..cols {
                block[(start + j) * cols + j] = 1.0;
            }
            let left: Vec<f64> = y.data()[..start * n].iter().map(|v| -v).collect();
            let own = &self.lower.data()[(first + start) * width + first..];
            gemm((start, depth, cols), (&left, n, 1), (own, 1, width), (&mut block, cols));
            for row in block.chunks_exact_mut(cols) {
                for j in 0..cols {
                    let pivot = &own[j * width + start..];
                    row[j] = (row[j] - dot(&row[..j], &pivot[..j])) / pivot[j];
                }
            }
            for (i, row) in block.chunks_exact(cols).enumerate() {
                y.row_mut(i)[start..end].copy_from_slice(row);
            }
        }
        // Y Yᵀ: row i of Y begins at column i.
        let mut out = Matrix::zeros(n, n);
        for start in (0..n).step_by(BLOCK) {
            let end = (start + BLOCK).min(n);
            let (a, b) = (&y.data()[start * n + start..], &y.data()[start..]);
            gemm((end - start, n - start, end), (a, n, 1), (b, 1, n), (&mut out.data_mut()[start * n..], n));
        }
        for i in 0..n {
            for j in i + 1..n {
                out[(i, j)] = out[(j, i)];
            }
        }
        out
    }

    /// x ← L⁻ᵀ x.
    pub fn solve_upper(&self, x: &mut [f64]) {
        for i in (0..x.len()).rev() {
            let row = self.lower.row(i);
            x[i] /= row[i];
            let xi = x[i];
            axpy(-xi, &row[..i], &mut x[..i]);
        }
    }
}

fn factor_diagonal_block(a: &mut Matrix, start: usize, end: usize, what: &str) -> Result<()> {
    for j in start..end {
        let pivot = a[(j, j)] - dot(&a.row(j)[start..j], &a.row(j)[start..j]);
        if pivot.is_nan() || pivot <= 0.0 {
            return Err(Error::numerical(
                format!("the Cholesky factorisation of {what}"),
                format!("pivot {} of {} is {pivot:e}, so the matrix is not positive definite", j + 1, a.rows()),
            ));
        }
        let root = pivot.sqrt();
        a[(j, j)] = root;
        for i in j + 1..end {
            let reduced = a[(i, j)] - dot(&a.row(i)[start..j], &a.row(j)[start..j]);
            a[(i, j)] = reduced / root;
        }
    }
    Ok(())
}

/// Rows below the diagonal block: A[end.., start..end] ← A[end.., start..end] L⁻ᵀ, some rows at a time and turned, so that columns are
/// contiguous.
fn solve_panel(a: &mut Matrix, start: usize, end: usize) {
    let (width, depth) = (a.cols(), end - start);
    let (top, below) = a.data_mut().split_at_mut(end * width);
    below.par_chunks_mut(RUN * width).for_each(|rows| {
        let count = rows.len() / width;
        let mut turned = vec![0.0; depth * count];
        for (i, row) in rows.chunks_exact(width).enumerate() {
            row[start..end].iter().enumerate().for_each(|(j, x)| turned[j * count + i] = *x);
        }
        for j in 0..depth {
            let pivot_row = &top[(start + j) * width + start..];
            let (before, own) = turned.split_at_mut(j * count);
            let own = &mut own[..count];
            before.chunks_exact(count).zip(pivot_row).for_each(|(x, l)| axpy(-l, x, own));
            own.iter_mut().for_each(|x| *x /= pivot_row[j]);
        }
        for (i, row) in rows.chunks_exact_mut(width).enumerate() {
            row[start..end].iter_mut().enumerate().for_each(|(j, x)| *x = turned[j * count + i]);
        }
    });
}

/// A[end.., end..] ← A[end.., end..] − P Pᵀ on the lower triangle, P the panel just solved.
fn update_trailing(a: &mut Matrix, start: usize, end: usize) {
    let (n, width, depth) = (a.rows(), a.cols(), end - start);
    let panel: Vec<f64> = (end..n).flat_map(|i| a.row(i)[start..end].to_vec()).collect();
    let negated: Vec<f64> = panel.iter().map(|x| -x).collect();
    let blocks = a.data_mut()[end * width..].par_chunks_mut(RUN * width).enumerate();
    blocks.for_each(|(block, out)| {
        let (rows, first) = (out.len() / width, block * RUN);
        gemm_nt(rows, first + rows, depth, &negated[first * depth..], &panel, &mut out[end..], width);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn solves_across_block_borders_and_refuses_indefinite() {
        for n in [1, 5, 64, 65, 150] {
            let mut a = Matrix::zeros(n, n);
            for i in 0..n {
                for j in 0..n {
                    a[(i, j)] = (-((i as f64 - j as f64).powi(2)) / 50.0).exp() + if i == j { 0.1 } else { 0.0 };
                }
            }
            let truth: Vec<f64> = (0..n).map(|i| (i as f64).cos()).collect();
            let mut x: Vec<f64> = (0..n).map(|i| dot(a.row(i), &truth)).collect();
            Cholesky::new(a.clone(), "a test matrix").unwrap().solve(&mut x);
            assert!(x.iter().zip(&truth).all(|(a, b)| (a - b).abs() < 1e-10));
            let first = n / 3;
            let tail = Cholesky::new(a.clone(), "a test matrix").unwrap().inverse_tail(first);
            for j in first..n {
                let mut column = vec![0.0; n];
                column[j] = 1.0;
                Cholesky::new(a.clone(), "a test matrix").unwrap().solve(&mut column);
                assert!((first..n).all(|i| (tail[(i - first, j - first)] - column[i]).abs() < 1e-9));
            }
            a[(n - 1, n - 1)] = -1.0;
            assert!(Cholesky::new(a, "a test matrix").is_err());
        }
    }
}
