//! Blocked Cholesky factorisation of a symmetric positive definite matrix.

use super::{Matrix, dot, gemm_nt};
use crate::{Error, Result};

const BLOCK: usize = 64;

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

    /// x ← L⁻ᵀ x.
    pub fn solve_upper(&self, x: &mut [f64]) {
        for i in (0..x.len()).rev() {
            let row = self.lower.row(i);
            x[i] /= row[i];
            let xi = x[i];
            super::axpy(-xi, &row[..i], &mut x[..i]);
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

/// Rows below the diagonal block: A[end.., start..end] ← A[end.., start..end] L⁻ᵀ.
fn solve_panel(a: &mut Matrix, start: usize, end: usize) {
    let (n, width) = (a.rows(), a.cols());
    let (top, below) = a.data_mut().split_at_mut(end * width);
    for row in below.chunks_exact_mut(width).take(n - end) {
        for j in start..end {
            let pivot_row = &top[j * width..(j + 1) * width];
            row[j] = (row[j] - dot(&row[start..j], &pivot_row[start..j])) / pivot_row[j];
        }
    }
}

/// A[end.., end..] ← A[end.., end..] − P Pᵀ on the lower triangle, P the panel just solved.
fn update_trailing(a: &mut Matrix, start: usize, end: usize) {
    let (n, width, depth) = (a.rows(), a.cols(), end - start);
    let panel: Vec<f64> = (end..n).flat_map(|i| a.row(i)[start..end].to_vec()).collect();
    let negated: Vec<f64> = panel.iter().map(|x| -x).collect();
    for row in (end..n).step_by(BLOCK) {
        let (rows, cols) = (BLOCK.min(n - row), (row + BLOCK).min(n) - end);
        let left = &negated[(row - end) * depth..];
        gemm_nt(rows, cols, depth, left, &panel, &mut a.data_mut()[row * width + end..], width);
    }
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
            a[(n - 1, n - 1)] = -1.0;
            assert!(Cholesky::new(a, "a test matrix").is_err());
        }
    }
}
