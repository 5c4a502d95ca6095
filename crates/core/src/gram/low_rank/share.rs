//! One basis for several factors: kernels of one scope (widths of a Gaussian, degrees of a polynomial) live almost in one space.
//!
//! Orthonormal columns Q are gathered from the factors, widest first, until every L_m is Q R_mᵀ up to a certified remainder: what is
//! left of a factor gives as many columns at once as its inner products can tell apart, then what is left of that.

use std::sync::Arc;

use rayon::prelude::*;

use super::{Basis, Factor, sum::side_by_side};
use crate::linalg::{Cholesky, Matrix, axpy, dot, gemm, gemm_nt};

/// ‖L − Q Rᵀ‖ ≤ twice this · tolerance · ‖L‖: aᵀKa is then off by half of what truncating the factor may leave.
const REMAINDER: f64 = 0.125;
/// Below this tolerance remainders are rounding.
const FINEST: f64 = 5e-14;
/// Columns taken from a remainder at once hold all but this share of its square: what products of its columns can still tell apart.
const AT_ONCE: f64 = 1e-11;
/// Columns that are few for a product.
const FEW: usize = 32;
/// Of one scope, so many factors are taken in before the others are tried together.
const FIRST: usize = 2;
/// Kernels that need more than one part in so many of the columns may need all of them.
const MANY: usize = 3;
/// Columns of a basis for each one of a thin factor.
const THIN: usize = 4;
/// Such rounds at most.
const ROUNDS: usize = 8;
/// Rows of a factor treated by one task.
const ROWS: usize = 2048;

/// Moves factors over the same samples, those of one scope after one another, into bases that they share. One that is mostly new to the
/// basis at hand begins the next. Where all are `of_one_scope`, the widest first, the first few are likely to hold the others.
pub(crate) fn share(mut factors: Vec<&mut Factor>, tolerance: f64, of_one_scope: bool) {
    if tolerance < FINEST {
        return;
    }
    let mut group = Group::default();
    factors.reverse();
    while let Some(factor) = factors.pop() {
        if let Some(rejected) = group.take_in(factor, tolerance, of_one_scope) {
            std::mem::take(&mut group).finish(tolerance);
            group.take_in(rejected, tolerance, of_one_scope);
        }
        if of_one_scope && group.members.len() == FIRST {
            factors = group.take_known(factors, tolerance);
        }
    }
    group.finish(tolerance);
}

/// ‖L − Q Rᵀ‖ in units of ‖L‖, twice at most.
fn allowed(factor: &Factor, tolerance: f64) -> f64 {
    REMAINDER * (factor.fineness * tolerance).max(FINEST)
}

/// Factors in one basis to be.
#[derive(Default)]
struct Group<'a> {
    q: Columns,
    members: Vec<(&'a mut Factor, Matrix, f64)>,
}

impl<'a> Group<'a> {
    /// Gives the factor back where more than half of it would be new, unless it is `at_home` and thin beside the basis.
    fn take_in(&mut self, factor: &'a mut Factor, tolerance: f64, at_home: bool) -> Option<&'a mut Factor> {
        let known = self.q.blocks.len();
        let columns: usize = self.q.blocks.iter().map(Matrix::cols).sum();
        let thin = at_home && THIN * factor.rank() < columns;
        let room = if self.members.is_empty() || thin { factor.rank() } else { factor.rank() / 2 };
        let own = allowed(factor, tolerance);
        let Some((coords, error)) = self.q.take_in(&factor.rows(), own, room) else {
            self.q.blocks.truncate(known);
            return Some(factor);
        };
        self.members.push((factor, coords, error));
        None
    }

    /// Takes in, all at once, the factors that need no new column, and gives the others back.
    fn take_known(&mut self, factors: Vec<&'a mut Factor>, tolerance: f64) -> Vec<&'a mut Factor> {
        let size = |f: &&mut Factor| (f.rank(), allowed(f, tolerance) * f.trace_of_square().sqrt());
        let sizes: Vec<(usize, f64)> = factors.iter().map(size).collect();
        let mut left = side_by_side(&factors.iter().map(|f| f.rows()).collect::<Vec<_>>());
        let coords: Vec<Matrix> = self.q.blocks.iter().map(|q| take_away(q, &mut left)).collect();
        let (coords, squares) = (side_by_side(&coords), column_squares(&left));
        let (mut others, mut at) = (Vec::new(), 0);
        for (factor, (rank, most)) in factors.into_iter().zip(sizes) {
            let own = at..at + rank;
            at = own.end;
            let error = squares[own.clone()].iter().sum::<f64>().sqrt();
            if error <= most {
                self.members.push((factor, coords.select_rows(&own.collect::<Vec<_>>()), error));
            } else {
                others.push(factor);
            }
        }
        others
    }

    fn finish(self, tolerance: f64) {
        if self.members.len() < 2 {
            return;
        }
        // Columns are turned so that the smoothest kernels need the first few of them alone.
        let wide = self.q.into_rows();
        let mut members = self.members;
        members.sort_by_key(|(factor, ..)| factor.rank());
        let mut turn = Turn::new(wide.cols());
        let width = |(f, coords, _): &(&mut Factor, Matrix, f64)| turn.width_for(coords, allowed(f, tolerance));
        let widths: Vec<usize> = members.iter().map(width).collect();
        turn.complete();
        let basis = Arc::new(Basis::new(wide.times_transposed(&turn.rows)));
        for ((factor, coords, error), width) in members.into_iter().zip(widths) {
            let (coords, more) = turn.apply(&coords, width);
            factor.move_into(&basis, coords, error + more);
        }
    }
}

/// Orthonormal rows, some of which are there already.
struct Turn {
    rows: Matrix,
    count: usize,
}

impl Turn {
    fn new(n: usize) -> Self {
        Self { rows: Matrix::zeros(n, n), count: 0 }
    }

    /// The number of rows that hold these vectors, new ones added; all of them where that would be many.
    fn width_for(&mut self, vectors: &Matrix, allowed: f64) -> usize {
        let smallest = allowed.powi(2) * dot(vectors.data(), vectors.data()) / vectors.rows() as f64;
        for j in 0..vectors.rows() {
            if MANY * self.count > self.rows.cols() {
                return self.rows.cols();
            }
            self.add(vectors.row(j), smallest);
        }
        self.count
    }

    /// Adds what is new in a vector, if its square is larger than `smallest`.
    fn add(&mut self, vector: &[f64], smallest: f64) {
        let mut v = vec![0.0; self.rows.cols()];
        v[..vector.len()].copy_from_slice(vector);
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

    /// Adds rows until there are all, from the axes that they hold least of.
    fn complete(&mut self) {
        let n = self.rows.cols();
        let mut held = vec![0.0; n];
        let hold = |held: &mut Vec<f64>, row: &[f64]| held.iter_mut().zip(row).for_each(|(h, x)| *h += x * x);
        (0..self.count).for_each(|k| hold(&mut held, self.rows.row(k)));
        while self.count < n {
            let least = (0..n).fold(0, |b, i| if held[i] < held[b] { i } else { b });
            let mut axis = vec![0.0; n];
            axis[least] = 1.0;
            self.add(&axis, 0.0);
            hold(&mut held, self.rows.row(self.count - 1));
        }
    }

    /// Coordinates of vectors in the first rows, and the norm of what they do not hold.
    fn apply(&self, vectors: &Matrix, width: usize) -> (Matrix, f64) {
        let (n, count) = (self.rows.cols(), vectors.rows());
        let mut left = Matrix::zeros(count, n);
        (0..count).for_each(|j| left.row_mut(j)[..vectors.cols()].copy_from_slice(vectors.row(j)));
        let mut coords = Matrix::zeros(count, width);
        gemm_nt(count, width, n, left.data(), self.rows.data(), coords.data_mut(), width);
        let negated: Vec<f64> = coords.data().iter().map(|c| -c).collect();
        gemm((count, width, n), (&negated, width, 1), (self.rows.data(), n, 1), (left.data_mut(), n));
        (coords, dot(left.data(), left.data()).sqrt())
    }
}

/// ‖column‖² of every column.
pub(crate) fn column_squares(a: &Matrix) -> Vec<f64> {
    let mut out = vec![0.0; a.cols()];
    (0..a.rows()).for_each(|i| out.iter_mut().zip(a.row(i)).for_each(|(o, x)| *o += x * x));
    out
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

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use crate::{
        data::{Dataset, Rng},
        gram::{BuildOptions, GramSet, GramSource, Storage},
        kernels::language,
        linalg::Matrix,
    };

    /// Normalisation divides what is all but a constant by what varies: what a factor leaves out must be small beside that.
    #[test]
    fn kernels_that_are_all_but_constant_are_as_exact_as_others() {
        let (n, mut rng) = (3000, Rng::new(5));
        let column = Matrix::new(n, 1, (0..n).map(|_| rng.normal()).collect()).unwrap();
        let x = Dataset::new(column, vec!["x".into()]).unwrap();
        let specs = language::parse("rbf(2^-3..2^7), poly(1..3)").unwrap().resolve(&x).unwrap();
        let options = BuildOptions { storage: Storage::LowRank, ..BuildOptions::default() };
        let set = GramSet::from_table(x.features(), &specs, &options).unwrap();
        let (mut bases, mut widest) = (HashMap::new(), 0);
        for t in 0..set.n_terms() {
            let factor = set.factor(t).unwrap();
            bases.insert(factor.basis_id(), factor.basis().cols());
            widest = widest.max(factor.rank());
            let (left, size) = (set.residual(t), set.trace(t) / n as f64);
            assert!(left <= 2e-4, "{}: {left:e} where the mean diagonal is {size}", specs[t].name);
        }
        assert!((0..set.n_terms()).any(|t| set.trace(t) > 1e4 * n as f64));
        let columns: usize = bases.values().sum();
        assert!(2 * columns < 3 * widest, "{columns} columns in {} bases, {widest} in one factor", bases.len());
    }
}
