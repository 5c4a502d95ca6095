//! One basis for several factors: kernels of one scope (widths of a Gaussian, degrees of a polynomial) live almost in one space.
//!
//! Orthonormal columns Q are gathered from the factors, widest first, until every L_m is Q R_mᵀ up to a certified remainder: what is
//! left of a factor gives as many columns at once as its inner products can tell apart, then what is left of that.

use std::sync::Arc;

use rayon::prelude::*;

use super::{Factor, Frame, panel::side_by_side};
use crate::linalg::{Cholesky, Matrix, axpy, dot, gemm, gemm_nt};

/// ‖L − Q Rᵀ‖ ≤ twice this · tolerance · ‖L‖: aᵀKa is then off by half of what truncating the factor may leave.
const REMAINDER: f64 = 0.125;
/// Below this tolerance remainders are rounding.
const FINEST: f64 = 5e-14;
/// Columns taken from a remainder at once hold all but this share of its square: what products of its columns can still tell apart.
const AT_ONCE: f64 = 1e-11;
/// Columns that are few for a product.
const FEW: usize = 32;
/// Such rounds at most.
const ROUNDS: usize = 8;
/// Rows of a factor treated by one task.
const ROWS: usize = 2048;

/// Moves factors over the same samples, those of one scope after one another, into bases that they share. One that is mostly new to the
/// basis at hand begins the next.
pub(super) fn share(factors: Vec<&mut Factor>, tolerance: f64) {
    if tolerance < FINEST {
        return;
    }
    let mut group = Group::default();
    for factor in factors {
        if let Some(rejected) = group.take_in(factor, tolerance) {
            std::mem::take(&mut group).finish(tolerance);
            group.take_in(rejected, tolerance);
        }
    }
    group.finish(tolerance);
}

/// Factors in one basis to be.
#[derive(Default)]
struct Group<'a> {
    q: Columns,
    members: Vec<(&'a mut Factor, Matrix, f64)>,
}

impl<'a> Group<'a> {
    /// Gives the factor back where more than half of it would be new.
    fn take_in(&mut self, factor: &'a mut Factor, tolerance: f64) -> Option<&'a mut Factor> {
        let known = self.q.blocks.len();
        let room = if self.members.is_empty() { factor.rank() } else { factor.rank() / 2 };
        let Some((coords, error)) = self.q.take_in(&factor.rows(), REMAINDER * tolerance, room) else {
            self.q.blocks.truncate(known);
            return Some(factor);
        };
        self.members.push((factor, coords, error));
        None
    }

    fn finish(self, tolerance: f64) {
        if self.members.len() < 2 {
            return;
        }
        // Columns are turned so that the smoothest kernels need the first few of them alone.
        let wide = self.q.into_rows();
        let mut turn = Columns::default();
        let mut members = self.members;
        members.sort_by_key(|(factor, ..)| factor.rank());
        let turned: Option<Vec<(Matrix, f64)>> = members
            .iter()
            .map(|(_, coords, _)| {
                let mut r = Matrix::zeros(coords.rows(), wide.cols());
                (0..r.rows()).for_each(|j| r.row_mut(j)[..coords.cols()].copy_from_slice(coords.row(j)));
                turn.take_in(&r.transposed(), REMAINDER * tolerance, wide.cols())
            })
            .collect();
        let Some(turned) = turned else { return };
        let basis = Arc::new(Frame::new(wide.times_transposed(&turn.into_rows().transposed())));
        for ((factor, _, error), (coords, more)) in members.into_iter().zip(turned) {
            factor.move_into(&basis, coords, error + more);
        }
    }
}

/// Orthonormal columns, some at a time.
#[derive(Default)]
struct Columns {
    blocks: Vec<Matrix>,
}

impl Columns {
    /// Coordinates of the columns of L, a row each, with what it takes to hold them added, and the norm of what is left out; `None` where
    /// that takes more than `room` columns.
    fn take_in(&mut self, l: &Matrix, remainder: f64, mut room: usize) -> Option<(Matrix, f64)> {
        let mut left = l.clone();
        let allowed = remainder * remainder * dot(l.data(), l.data());
        let mut coords: Vec<Matrix> = self.blocks.iter().map(|q| take_away(q, &mut left)).collect();
        for _ in 0..ROUNDS {
            let total = dot(left.data(), left.data());
            if total <= allowed {
                break;
            }
            let (pivots, lower) = pivoted(inner(&left, &left), allowed.max(AT_ONCE * total), room)?;
            room -= pivots.len();
            // Right angles are exact only to the share above, and not towards earlier columns: once more.
            let mut next = left.select_cols(&pivots).times_transposed(&inverse(&lower));
            self.blocks.iter().for_each(|q| _ = take_away(q, &mut next));
            let again = Cholesky::new(inner(&next, &next), "new columns of a basis").ok()?;
            next = next.times_transposed(&inverse(again.lower()));
            coords.push(take_away(&next, &mut left));
            self.blocks.push(next);
        }
        self.merge();
        let coords = if coords.is_empty() { Matrix::zeros(l.cols(), 0) } else { side_by_side(&coords) };
        Some((coords, dot(left.data(), left.data()).sqrt()))
    }

    /// Blocks of few columns at the end become one: products with many are faster.
    fn merge(&mut self) {
        let small = self.blocks.iter().rev().take_while(|b| b.cols() < FEW).count();
        if small > 1 {
            let last = self.blocks.split_off(self.blocks.len() - small);
            self.blocks.push(side_by_side(&last));
        }
    }

    fn into_rows(self) -> Matrix {
        side_by_side(&self.blocks)
    }
}

/// aᵀ b, summed over rows in a fixed order.
fn inner(a: &Matrix, b: &Matrix) -> Matrix {
    let (m, p) = (a.cols(), b.cols());
    if m == 0 || p == 0 {
        return Matrix::zeros(m, p);
    }
    let chunks = a.data().par_chunks(ROWS * m).zip(b.data().par_chunks(ROWS * p));
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

/// Coordinates leftᵀ q, a row per column of `left`, which keeps what lies outside of q.
fn take_away(q: &Matrix, left: &mut Matrix) -> Matrix {
    let coords = inner(left, q);
    let (width, depth) = (left.cols(), q.cols());
    if width == 0 || depth == 0 {
        return coords;
    }
    let negated: Vec<f64> = coords.data().iter().map(|c| -c).collect();
    left.data_mut().par_chunks_mut(ROWS * width).zip(q.data().par_chunks(ROWS * depth)).for_each(|(left, q)| {
        gemm_nt(left.len() / width, width, depth, q, &negated, left, width);
    });
    coords
}

/// Columns that hold all of a square but `rest`, those with most outside of the others first, and their triangle; `None` where `room` is
/// not enough.
fn pivoted(square: Matrix, rest: f64, room: usize) -> Option<(Vec<usize>, Matrix)> {
    let m = square.rows();
    let mut left: Vec<f64> = (0..m).map(|j| square[(j, j)]).collect();
    let (mut pivots, mut rows): (Vec<usize>, Vec<Vec<f64>>) = (Vec::new(), Vec::new());
    while pivots.is_empty() || left.iter().sum::<f64>() > rest {
        if pivots.len() == room {
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

/// L⁻¹ of a lower triangle.
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
