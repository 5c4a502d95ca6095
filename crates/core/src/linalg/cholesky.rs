//! Blocked Cholesky factorisation of a symmetric positive definite matrix.

use rayon::prelude::*;

use super::{Matrix, axpy, dot, gemm, gemm_nt};
use crate::{Error, Result, tuning::tuning};

tuning! { "cholesky"
    /// Columns eliminated before the columns right of them are touched.
    block_columns: usize = 64;
    /// Columns of a block that are eliminated one by one; wider blocks are halved first.
    leaf_columns: usize = 16;
    /// Rows below a block that one task treats.
    rows_per_task: usize = 128;
}

/// The factor L of a symmetric positive definite matrix A = L Lᵀ, lower triangular.
#[derive(Debug, Clone)]
pub struct Cholesky {
    lower: Matrix,
}

impl Cholesky {
    /// Factors `a` in its own memory, reading only the lower triangle. `what` names the matrix in
    /// the error.
    pub fn new(mut a: Matrix, what: &str) -> Result<Self> {
        let n = a.rows();
        if a.cols() != n {
            return Err(Error::shape(what, "a square matrix", format!("{} × {}", n, a.cols())));
        }
        for start in (0..n).step_by(TUNING.block_columns) {
            eliminate(&mut a, start, (start + TUNING.block_columns).min(n), what)?;
        }
        Ok(Self { lower: a })
    }

    /// Is A + D positive definite, where the diagonal D holds numbers between 0 and `slack`? Works
    /// in the memory of `a` and reads only the lower triangle. Ends as soon as what is left, with
    /// `slack` on its diagonal, is dominated by that diagonal: early where the rank is low.
    pub fn proves(a: &mut Matrix, slack: f64) -> bool {
        let n = a.rows();
        for start in (0..n).step_by(TUNING.block_columns) {
            if is_dominated(a, start, slack) {
                return true;
            }
            if eliminate(a, start, (start + TUNING.block_columns).min(n), "a matrix").is_err() {
                return false;
            }
        }
        true
    }

    /// The factor L; what is above its diagonal does not count.
    pub fn lower(&self) -> &Matrix {
        &self.lower
    }

    /// Solves A x = x in place.
    pub fn solve(&self, x: &mut [f64]) {
        self.solve_lower(x);
        self.solve_upper(x);
    }

    /// Solves L x = x in place.
    pub fn solve_lower(&self, x: &mut [f64]) {
        for i in 0..x.len() {
            let row = self.lower.row(i);
            x[i] = (x[i] - dot(&row[..i], &x[..i])) / row[i];
        }
    }

    /// The rows and columns from `first` on of A⁻¹, both triangles: (L₂₂ L₂₂ᵀ)⁻¹ for the trailing
    /// block L₂₂ of L.
    pub fn inverse_tail(&self, first: usize) -> Matrix {
        let (n, width) = (self.lower.rows() - first, self.lower.cols());
        // Y = L₂₂⁻ᵀ, upper triangular, a block of columns at a time: Y_b = (I_b − Y_{<b} L_{b,<b}ᵀ)
        // L_bb⁻ᵀ.
        let mut y = Matrix::zeros(n, n);
        for start in (0..n).step_by(TUNING.block_columns) {
            let end = (start + TUNING.block_columns).min(n);
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
        for start in (0..n).step_by(TUNING.block_columns) {
            let end = (start + TUNING.block_columns).min(n);
            let (a, b) = (&y.data()[start * n + start..], &y.data()[start..]);
            gemm(
                (end - start, n - start, end),
                (a, n, 1),
                (b, 1, n),
                (&mut out.data_mut()[start * n..], n),
            );
        }
        for i in 0..n {
            for j in i + 1..n {
                out[(i, j)] = out[(j, i)];
            }
        }
        out
    }

    /// Solves Lᵀ x = x in place.
    pub fn solve_upper(&self, x: &mut [f64]) {
        for i in (0..x.len()).rev() {
            let row = self.lower.row(i);
            x[i] /= row[i];
            let xi = x[i];
            axpy(-xi, &row[..i], &mut x[..i]);
        }
    }
}

/// Is every diagonal entry from `first` on, with `slack` added, above the sum of the others in its
/// row?
fn is_dominated(a: &Matrix, first: usize, slack: f64) -> bool {
    let mut sums = vec![0.0; a.rows() - first];
    // From below: the last row is the longest, and most often the answer.
    for i in (0..sums.len()).rev() {
        let row = &a.row(first + i)[first..=first + i];
        let (own, others) = (row[i] + slack, &row[..i]);
        let above = own > sums[i] + others.iter().map(|x| x.abs()).sum::<f64>();
        if !above {
            return false;
        }
        sums.iter_mut().zip(others).for_each(|(sum, x)| *sum += x.abs());
    }
    true
}

/// Columns start..end of L, and their part taken from what is right of them.
fn eliminate(a: &mut Matrix, start: usize, end: usize, what: &str) -> Result<()> {
    factor_diagonal_block(a, start, end, what)?;
    let n = a.rows();
    solve_below(a, start, end, n);
    update_below(a, start, end, n);
    Ok(())
}

/// Factors the block on the diagonal, half by half.
fn factor_diagonal_block(a: &mut Matrix, start: usize, end: usize, what: &str) -> Result<()> {
    if end - start <= TUNING.leaf_columns {
        return factor_leaf(a, start, end, what);
    }
    let middle = start + (end - start).div_ceil(2 * TUNING.leaf_columns) * TUNING.leaf_columns;
    factor_diagonal_block(a, start, middle, what)?;
    solve_below(a, start, middle, end);
    update_below(a, start, middle, end);
    factor_diagonal_block(a, middle, end, what)
}

fn factor_leaf(a: &mut Matrix, start: usize, end: usize, what: &str) -> Result<()> {
    for j in start..end {
        let pivot = a[(j, j)] - dot(&a.row(j)[start..j], &a.row(j)[start..j]);
        if pivot.is_nan() || pivot <= 0.0 {
            return Err(Error::numerical(
                format!("the Cholesky factorisation of {what}"),
                format!(
                    "pivot {} of {} is {pivot:e}, so the matrix is not positive definite",
                    j + 1,
                    a.rows()
                ),
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

/// Rows below a diagonal block: A[end..last, start..end] ← A[end..last, start..end] L⁻ᵀ, some rows
/// at a time and turned, so that columns are contiguous.
fn solve_below(a: &mut Matrix, start: usize, end: usize, last: usize) {
    let (width, depth) = (a.cols(), end - start);
    let (top, below) = a.data_mut()[..last * width].split_at_mut(end * width);
    let negated: Vec<f64> = (start..end)
        .flat_map(|i| top[i * width + start..i * width + end].iter().map(|x| -x))
        .collect();
    below.par_chunks_mut(TUNING.rows_per_task * width).for_each(|rows| {
        let count = rows.len() / width;
        let mut turned = vec![0.0; depth * count];
        for (i, row) in rows.chunks_exact(width).enumerate() {
            row[start..end].iter().enumerate().for_each(|(j, x)| turned[j * count + i] = *x);
        }
        for first in (0..depth).step_by(TUNING.leaf_columns) {
            let (known, own) = turned.split_at_mut(first * count);
            let own = &mut own[..TUNING.leaf_columns.min(depth - first) * count];
            let shape = (own.len() / count, first, count);
            gemm(shape, (&negated[first * depth..], depth, 1), (known, count, 1), (own, count));
            solve_leaf(&negated[first * depth + first..], depth, own, count);
        }
        for (i, row) in rows.chunks_exact_mut(width).enumerate() {
            row[start..end].iter_mut().enumerate().for_each(|(j, x)| *x = turned[j * count + i]);
        }
    });
}

/// X ← L⁻¹ X for a few rows of X, −L with rows of `stride`.
fn solve_leaf(negated: &[f64], stride: usize, x: &mut [f64], count: usize) {
    for j in 0..x.len() / count {
        let line = &negated[j * stride..];
        let (before, own) = x.split_at_mut(j * count);
        let own = &mut own[..count];
        before.chunks_exact(count).zip(line).for_each(|(x, l)| axpy(*l, x, own));
        own.iter_mut().for_each(|x| *x /= -line[j]);
    }
}

/// A[end..last, end..last] ← A[end..last, end..last] − P Pᵀ on the lower triangle, P the columns
/// start..end just solved.
fn update_below(a: &mut Matrix, start: usize, end: usize, last: usize) {
    let (width, depth) = (a.cols(), end - start);
    let mut panel = Vec::with_capacity((last - end) * depth);
    (end..last).for_each(|i| panel.extend_from_slice(&a.row(i)[start..end]));
    let negated: Vec<f64> = panel.iter().map(|x| -x).collect();
    let blocks = a.data_mut()[end * width..last * width]
        .par_chunks_mut(TUNING.rows_per_task * width)
        .enumerate();
    blocks.for_each(|(block, out)| {
        let (rows, first) = (out.len() / width, block * TUNING.rows_per_task);
        gemm_nt(
            rows,
            first + rows,
            depth,
            &negated[first * depth..],
            &panel,
            &mut out[end..],
            width,
        );
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
                    a[(i, j)] = (-((i as f64 - j as f64).powi(2)) / 50.0).exp()
                        + if i == j { 0.1 } else { 0.0 };
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
                assert!(
                    (first..n).all(|i| (tail[(i - first, j - first)] - column[i]).abs() < 1e-9)
                );
            }
            assert!(Cholesky::proves(&mut a.clone(), 0.0));
            a[(n - 1, n - 1)] = -1.0;
            assert!(!Cholesky::proves(&mut a.clone(), 0.5));
            assert!(Cholesky::new(a, "a test matrix").is_err());
        }
    }

    #[test]
    fn slack_is_for_what_is_left() {
        let n = 100;
        let mut ones = Matrix::new(n, n, vec![1.0; n * n]).unwrap();
        (0..n).for_each(|i| ones[(i, i)] += 1e-9);
        assert!(Cholesky::proves(&mut ones.clone(), 1e-6));
        // An eigenvalue near −1e-4 in the last row, beyond the first block.
        ones[(n - 1, n - 1)] -= 1e-4;
        assert!(Cholesky::proves(&mut ones.clone(), 2e-4));
        assert!(!Cholesky::proves(&mut ones.clone(), 1e-6) && !Cholesky::proves(&mut ones, 0.0));
    }
}
