//! Orthonormal columns that span the columns of several matrices, up to a certified remainder.

use rayon::prelude::*;

use crate::{
    linalg::{Cholesky, Matrix, axpy, dot, gemm, gemm_nt, side_by_side},
    tuning::tuning,
};

tuning! { "orthonormal"
    /// Blocks with fewer columns are joined: a product with a narrow block costs nearly as much as
    /// one with a block of this width.
    narrow_block_columns: usize = 32;
    /// Largest number of rounds in which a matrix gives columns: each round leaves about
    /// [`AT_ONCE`] of the square, so that two or three reach rounding.
    rounds: usize = 8;
    /// Rows of a matrix that one task treats. The number fixes the order of sums, whatever the
    /// number of threads.
    rows_per_task: usize = 2048;
}

/// Columns taken from a remainder at once span all but this share of its square. Products of its
/// columns cannot tell apart what lies below: they are squares, exact to about 1e-16, and a
/// triangular factor of them loses some digits more.
const AT_ONCE: f64 = 1e-11;

/// Orthonormal columns Q, in blocks that were found together.
#[derive(Default)]
pub(super) struct Columns {
    blocks: Vec<Matrix>,
}

impl Columns {
    /// Number of columns in all blocks.
    pub(super) fn count(&self) -> usize {
        self.blocks.iter().map(Matrix::cols).sum()
    }

    /// Number of blocks, for [`Columns::truncate`].
    pub(super) fn blocks(&self) -> usize {
        self.blocks.len()
    }

    /// Forgets all but the first `blocks` blocks.
    pub(super) fn truncate(&mut self, blocks: usize) {
        self.blocks.truncate(blocks);
    }

    /// Coordinates of the columns of `left`, a row per column, in the columns so far. `left` keeps
    /// what those do not span.
    pub(super) fn take_away(&self, left: &mut Matrix) -> Matrix {
        let coords: Vec<Matrix> = self.blocks.iter().map(|q| take_away(q, left)).collect();
        side_by_side(&coords)
    }

    /// Coordinates of the columns of L, a row per column, and the norm of what is left out of L.
    /// Columns are added until that is at most the share `remainder` of the norm of L; `None` where
    /// it takes more than `most` of them.
    pub(super) fn take_in(
        &mut self,
        l: &Matrix,
        remainder: f64,
        mut most: usize,
    ) -> Option<(Matrix, f64)> {
        let mut left = l.clone();
        let allowed = remainder * remainder * dot(l.data(), l.data());
        let mut coords: Vec<Matrix> = self.blocks.iter().map(|q| take_away(q, &mut left)).collect();
        for _ in 0..TUNING.rounds {
            let total = dot(left.data(), left.data());
            if total <= allowed {
                break;
            }
            let (pivots, lower) = pivoted(inner(&left, &left), allowed.max(AT_ONCE * total), most)?;
            most -= pivots.len();
            // Right angles are exact only to the share above, and not towards earlier columns: once
            // more.
            let mut next = left.select_cols(&pivots).times_transposed(&inverse(&lower));
            self.blocks.iter().for_each(|q| _ = take_away(q, &mut next));
            let again = Cholesky::new(inner(&next, &next), "new columns of a basis").ok()?;
            next = next.times_transposed(&inverse(again.lower()));
            coords.push(take_away(&next, &mut left));
            self.blocks.push(next);
        }
        self.merge();
        let coords =
            if coords.is_empty() { Matrix::zeros(l.cols(), 0) } else { side_by_side(&coords) };
        Some((coords, dot(left.data(), left.data()).sqrt()))
    }

    /// Makes one block of the last blocks where they have few columns: products with many columns
    /// are faster.
    fn merge(&mut self) {
        let small =
            self.blocks.iter().rev().take_while(|b| b.cols() < TUNING.narrow_block_columns).count();
        if small > 1 {
            let last = self.blocks.split_off(self.blocks.len() - small);
            self.blocks.push(side_by_side(&last));
        }
    }

    /// All columns as one matrix.
    pub(super) fn into_matrix(self) -> Matrix {
        side_by_side(&self.blocks)
    }
}

/// The product aᵀ b, summed over rows in a fixed order.
fn inner(a: &Matrix, b: &Matrix) -> Matrix {
    let (m, p) = (a.cols(), b.cols());
    if m == 0 || p == 0 {
        return Matrix::zeros(m, p);
    }
    let chunks = a
        .data()
        .par_chunks(TUNING.rows_per_task * m)
        .zip(b.data().par_chunks(TUNING.rows_per_task * p));
    let sums: Vec<Vec<f64>> = chunks
        .map(|(a, b)| {
            let mut own = vec![0.0; m * p];
            gemm((m, a.len() / m, p), (a, 1, m), (b, p, 1), (&mut own, p));
            own
        })
        .collect();
    let mut out = Matrix::zeros(m, p);
    sums.iter().for_each(|own| axpy(1.0, own, out.data_mut()));
    out
}

/// The coordinates leftᵀ q, a row per column of `left`, which keeps what q does not span.
fn take_away(q: &Matrix, left: &mut Matrix) -> Matrix {
    let coords = inner(left, q);
    let (width, depth) = (left.cols(), q.cols());
    if width == 0 || depth == 0 {
        return coords;
    }
    let negated: Vec<f64> = coords.data().iter().map(|c| -c).collect();
    left.data_mut()
        .par_chunks_mut(TUNING.rows_per_task * width)
        .zip(q.data().par_chunks(TUNING.rows_per_task * depth))
        .for_each(|(left, q)| {
            gemm_nt(left.len() / width, width, depth, q, &negated, left, width);
        });
    coords
}

/// The columns that span all of a symmetric matrix but `rest` of its trace, each time the one of
/// which most is left, and their triangular factor; `None` where it takes more than `most` columns.
fn pivoted(square: Matrix, rest: f64, most: usize) -> Option<(Vec<usize>, Matrix)> {
    let m = square.rows();
    let mut left: Vec<f64> = (0..m).map(|j| square[(j, j)]).collect();
    let (mut pivots, mut rows): (Vec<usize>, Vec<Vec<f64>>) = (Vec::new(), Vec::new());
    while pivots.is_empty() || left.iter().sum::<f64>() > rest {
        if pivots.len() == most {
            return None;
        }
        let best = (0..m).fold(0, |b, j| if left[j] > left[b] { j } else { b });
        let mut next = square.row(best).to_vec();
        rows.iter().for_each(|row| axpy(-row[best], row, &mut next));
        let root = left[best].sqrt();
        next.iter_mut().for_each(|x| *x /= root);
        left.iter_mut().zip(&next).for_each(|(d, x)| *d = (*d - x * x).max(0.0));
        left[best] = 0.0;
        pivots.push(best);
        rows.push(next);
    }
    let mut lower = Matrix::zeros(pivots.len(), pivots.len());
    for (i, &p) in pivots.iter().enumerate() {
        (0..=i).for_each(|j| lower[(i, j)] = rows[j][p]);
    }
    Some((pivots, lower))
}

/// The inverse of a lower triangle.
fn inverse(lower: &Matrix) -> Matrix {
    let n = lower.rows();
    let mut out = Matrix::zeros(n, n);
    for i in 0..n {
        let mut row = vec![0.0; n];
        row[i] = 1.0;
        (0..i).for_each(|j| axpy(-lower[(i, j)], out.row(j), &mut row));
        row.iter_mut().for_each(|x| *x /= lower[(i, i)]);
        out.row_mut(i).copy_from_slice(&row);
    }
    out
}
