//! Pivoted Cholesky: columns L with K ≈ L Lᵀ, the largest residual diagonal first.

#![allow(clippy::inline_always)] // inlined into each instruction-set variant: that is the point

use std::cell::RefCell;

use super::basis::FEW_ROWS;
use crate::{
    linalg::{Matrix, Wide, axpy, axpy_four, wide},
    tuning::tuning,
};

tuning! { "pivots"
    /// Columns for which memory is allocated at a time.
    columns_ahead: usize = 16;
    /// Pivots between two looks at whether the elimination will end within its limit, and before
    /// the first.
    pivots_per_look: usize = 16;
    /// Pivots before the last half of them is read as a trend.
    pivots_for_trend: usize = 64;
    /// The elimination is given up if covering the samples at the present pace takes this many
    /// times the limit.
    covering_excess: f64 = 2.0;
    /// The elimination is given up if falling geometrically at the mean pace so far takes this many
    /// times the limit.
    falling_excess: f64 = 8.0;
    /// The elimination is given up if the pace of the last half of the pivots takes this many times
    /// what is left of the limit, while the fall does not slow down.
    trend_excess: f64 = 6.0;
    /// The same limit for a fall that slows down, where what the trend promises is the least that
    /// it takes.
    slowing_trend_excess: f64 = 1.5;
    /// The fall slows down if the last half of the pivots gained less than this multiple of what
    /// the quarter before gained.
    slowing_gain_ratio: f64 = 2.0;
}

/// How far a pivoted Cholesky goes.
#[derive(Debug, Clone, Copy)]
pub struct RankLimit {
    /// Stop when the residual trace is below this fraction of the trace.
    pub tolerance: f64,
    /// Give up beyond this rank.
    pub max_rank: usize,
}

/// A pivoted Cholesky factor: L, where its columns come from, and the trace of K − L Lᵀ.
pub(crate) struct Pivoted {
    /// The columns of L, a row of this matrix each.
    pub columns: Matrix,
    pub pivots: Vec<usize>,
    pub left: f64,
}

impl Pivoted {
    /// Ties go to the lowest index; `None` when the limit is reached or it can be foreseen.
    /// `column(j, out)` writes column j of K.
    pub fn new(
        diagonal: &[f64],
        limit: RankLimit,
        column: impl FnMut(usize, &mut [f64]),
    ) -> Option<Self> {
        let n = diagonal.len();
        if n >= FEW_ROWS {
            let mut columns = Vec::new();
            let (pivots, left) = eliminate(&mut columns, diagonal, limit, column)?;
            columns.shrink_to_fit();
            return Some(Self {
                columns: Matrix::from_parts(pivots.len(), n, columns),
                pivots,
                left,
            });
        }
        // The memory of this thread's last factor: nothing is moved while columns are added.
        let mut columns = COLUMNS.take();
        let found = eliminate(&mut columns, diagonal, limit, column).map(|(pivots, left)| Self {
            columns: Matrix::from_parts(pivots.len(), n, columns.clone()),
            pivots,
            left,
        });
        COLUMNS.set(columns);
        found
    }
}

thread_local! {
    static COLUMNS: RefCell<Vec<f64>> = const { RefCell::new(Vec::new()) };
}

/// Columns, one after another, with their pivots and the trace that they do not hold.
fn eliminate(
    columns: &mut Vec<f64>,
    diagonal: &[f64],
    limit: RankLimit,
    mut column: impl FnMut(usize, &mut [f64]),
) -> Option<(Vec<usize>, f64)> {
    let n = diagonal.len();
    let trace: f64 = diagonal.iter().sum();
    let largest = diagonal.iter().fold(0.0f64, |m, &d| m.max(d));
    let (mut rest, mut pivots, mut course) = (diagonal.to_vec(), Vec::new(), Vec::new());
    let (mut left, mut most) = (trace, largest);
    columns.clear();
    loop {
        course.push(left / trace);
        // Below rounding the diagonal holds noise only: go no further.
        if left <= limit.tolerance * trace || most <= 8.0 * f64::EPSILON * largest {
            return Some((pivots, left));
        }
        let rank = pivots.len();
        if rank >= limit.max_rank || (limit.max_rank < n && hopeless(&course, limit)) {
            return None;
        }
        let best = rest.iter().position(|&d| d == most)?;
        if rank.is_multiple_of(TUNING.columns_ahead) {
            columns.reserve_exact(TUNING.columns_ahead * n);
        }
        columns.resize((rank + 1) * n, 0.0);
        let (known, next) = columns.split_at_mut(rank * n);
        column(best, next);
        let mut fours = known.chunks_exact(4 * n);
        for four in fours.by_ref() {
            let four = [0, 1, 2, 3].map(|k| &four[k * n..(k + 1) * n]);
            axpy_four(four.map(|c| -c[best]), four, next);
        }
        fours.remainder().chunks_exact(n).for_each(|c| axpy(-c[best], c, next));
        let root = most.sqrt();
        // A pivot row has no residual: exact zeros keep L_PP triangular.
        pivots.iter().for_each(|&p: &usize| next[p] = 0.0);
        (next[best], rest[best]) = (0.0, 0.0);
        (left, most) = wide(Reduce { next: &mut *next, rest: &mut rest, inverse: 1.0 / root });
        next[best] = root;
        pivots.push(best);
    }
}

/// Multiplies a column by the inverse root of its pivot and takes its squares from the diagonal;
/// the sum of what is left of that, and the largest.
struct Reduce<'a> {
    next: &'a mut [f64],
    rest: &'a mut [f64],
    inverse: f64,
}

/// Partial sums side by side; the length of an array, so not to be tuned at run time.
const LANES: usize = 8;

impl Wide for Reduce<'_> {
    type Out = (f64, f64);

    #[inline(always)]
    fn run(self) -> (f64, f64) {
        let (mut sums, mut most) = ([0.0; LANES], [0.0f64; LANES]);
        let one = |x: &mut f64, d: &mut f64, sum: &mut f64, most: &mut f64| {
            *x *= self.inverse;
            let left = *d - *x * *x;
            *d = if left > 0.0 { left } else { 0.0 };
            *sum += *d;
            *most = if *d > *most { *d } else { *most };
        };
        let (next, next_tail) = self.next.as_chunks_mut::<LANES>();
        let (rest, rest_tail) = self.rest.as_chunks_mut::<LANES>();
        for (x, d) in next.iter_mut().zip(rest) {
            for k in 0..LANES {
                one(&mut x[k], &mut d[k], &mut sums[k], &mut most[k]);
            }
        }
        for (k, (x, d)) in next_tail.iter_mut().zip(rest_tail).enumerate() {
            one(x, d, &mut sums[k], &mut most[k]);
        }
        (sums.iter().sum(), most.into_iter().fold(0.0, f64::max))
    }
}

/// Pivots first cover the samples, removing a steady share of the trace each, then the residual
/// falls faster than geometrically. If even a generous reading of either phase, or of what the last
/// half of the pivots did, does not end within the limit, a dense matrix is the better home. Over
/// many columns the fall slows down instead, and what it promises is the least it will take. In:
/// the share of the trace that was left after each pivot.
fn hopeless(course: &[f64], limit: RankLimit) -> bool {
    let rank = course.len() - 1;
    if rank < TUNING.pivots_per_look || !rank.is_multiple_of(TUNING.pivots_per_look) {
        return false;
    }
    let (now, before) = (course[rank].min(0.999), course[rank / 2].min(0.999));
    let (pivots, most) = (rank as f64, limit.max_rank as f64);
    let covering = pivots / (1.0 - course[rank]).max(1e-9);
    let falling = pivots * limit.tolerance.ln() / now.ln();
    let lately = 0.5 * pivots * (limit.tolerance / now).ln() / (now / before).ln().min(-1e-9);
    let slows_down =
        (now / before).ln() > TUNING.slowing_gain_ratio * (before / course[rank / 4]).ln();
    let excess = if slows_down { TUNING.slowing_trend_excess } else { TUNING.trend_excess };
    rank.is_power_of_two()
        && (covering > TUNING.covering_excess * most || falling > TUNING.falling_excess * most)
        || rank >= TUNING.pivots_for_trend && lately > excess * (most - pivots)
}
