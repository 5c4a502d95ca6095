//! Sequential minimal optimisation for piecewise linear losses (hinge, ε-insensitive).
//!
//! Solves  min over a :  ½ aᵀKa − yᵀa + ε‖a‖₁,   low_i ≤ a_i ≤ high_i,
//!   Σ_i a_i = 0 if there is a bias
//! (ε = 0 for the hinge), in n signed variables: the kink of |a_i| is handled in the step, not by
//! doubling the problem.
//! In: rows of K, y, bounds, a start.   Out: a with K a.
//! Working sets: with a bias pairs, second order, [Fan2005] WSS 2; without one the variable or pair
//! that promises the largest decrease. Shrinking: variables that sit firmly at a bound or kink
//! leave, the rest is solved on a compacted copy, then all are checked again.

mod state;

use std::borrow::Cow;

use state::SmoState;

use super::{
    Combined, Machine, Solution, Stop, Task, has_few_columns, interior,
    kernel_rows::{DenseRows, FactorRows, KernelRows},
};
use crate::{Result, gram::EXACT, tuning::tuning};

tuning! { "smo"
    /// Variables that are not at rest are solved on a compacted copy only from this many rows on:
    /// below, compacting costs more than it saves.
    least_rows_to_shrink: usize = 300;
    /// The copy is made where the variables left are fewer than this share of all.
    shrinking_share: f64 = 0.7;
    /// A scan for variables at rest comes after this many steps at the least, and each later one
    /// after twice as many as the last.
    least_steps_between_shrinks: usize = 1000;
    /// The first violation allowed, as a share of half the range of the targets (of the largest
    /// target without a bias).
    first_violation_share: f64 = 1e-2;
    /// The violation allowed next is the present one times the gap wanted over the gap left, times
    /// this: the gap is roughly proportional to the violation.
    next_violation_share: f64 = 0.5;
    /// The violation allowed falls at most by this factor and at least by half at a time.
    largest_violation_fall: f64 = 0.01;
    /// Share of the bound on rounding below which violations are not pursued. The bound takes every
    /// product for its largest possible size and all errors for of one sign; sums of hundreds of
    /// terms come out some twenty times better.
    rounding_share: f64 = 0.05;
    /// Steps per row after which a run with exact entries gives up, beside `exact_steps`.
    exact_steps_per_row: usize = 1000;
    /// Steps after which a run with exact entries gives up, beside `exact_steps_per_row`: they only
    /// bound the time.
    exact_steps: usize = 10_000_000;
    /// Steps per row after which a run with entries in single precision ends, beside
    /// `single_steps`: the exact run goes on from there.
    single_steps_per_row: usize = 20;
    /// Steps after which a run with entries in single precision ends, beside
    /// `single_steps_per_row`.
    single_steps: usize = 2_000;
    /// Exact products with which a run with entries in single precision may correct its gradient
    /// before the exact run takes over.
    single_corrections: usize = 3;
    /// From this many rows on a factor of few columns is solved by an interior-point method, in
    /// time linear in the rows.
    least_interior_rows: usize = 2000;
}

/// A multiplier within this share of its cost of 0 or of the cost is at that bound: what rounding
/// can leave between them.
const AT_BOUND: f64 = 1e-9;
/// Violations below this share of the targets' range are rounding.
const ROUNDED_VIOLATION: f64 = 1e-14;

/// How far a run may go.
#[derive(Clone, Copy)]
struct Patience {
    steps: usize,
    /// Exact products that correct a gradient which updates, or entries in single precision, have
    /// led astray.
    corrections: usize,
}

impl Patience {
    fn exact(n: usize) -> Self {
        Self { steps: TUNING.exact_steps_per_row * n + TUNING.exact_steps, corrections: usize::MAX }
    }

    /// With entries in single precision SMO only warm-starts the exact run, so it stops early.
    fn single(n: usize) -> Self {
        Self {
            steps: TUNING.single_steps_per_row * n + TUNING.single_steps,
            corrections: TUNING.single_corrections,
        }
    }
}

/// SMO with `kink` = ε.
#[derive(Debug, Clone, Copy)]
pub struct Smo {
    /// Half-width of the tube; 0 for the hinge.
    pub kink: f64,
}

impl Machine for Smo {
    fn likes_factor(&self, n: usize, rank: usize) -> bool {
        self.solves_in_bases(n) && has_few_columns(rank, n)
    }

    fn solves_in_bases(&self, n: usize) -> bool {
        n >= TUNING.least_interior_rows
    }

    fn corrects(&self) -> bool {
        true
    }

    fn kink(&self) -> Option<f64> {
        Some(self.kink)
    }

    fn solve(
        &self,
        kernel: &Combined,
        task: &Task<'_>,
        start: Option<&[f64]>,
        stop: Stop,
    ) -> Result<Solution> {
        let (n, patience) = (task.y.len(), Patience::exact(task.y.len()));
        match kernel {
            Combined::Bases(_) if self.solves_in_bases(n) => {
                interior::solve(kernel, task, self.kink, start, stop)
            }
            Combined::Bases(_) => self.solve(&kernel.truncated(EXACT), task, start, stop),
            Combined::Dense(k) => {
                Ok(self.run(kernel, DenseRows(Cow::Borrowed(k)), task, start, stop, patience).0)
            }
            Combined::Single(k) => {
                let single = DenseRows(Cow::Borrowed(k.rows()));
                let (solution, done) =
                    self.run(kernel, single, task, start, stop, Patience::single(n));
                if done {
                    return Ok(solution);
                }
                self.solve(&Combined::Dense(k.exact()), task, Some(&solution.a), stop)
            }
            Combined::Factor(f) => {
                Ok(self.run(kernel, FactorRows::new(f.clone()), task, start, stop, patience).0)
            }
        }
    }

    fn dual_response(&self, task: &Task<'_>, solution: &Solution) -> Vec<f64> {
        if let Some(response) = &solution.dual_response {
            return response.clone();
        }
        let free = |(a, c): (&f64, &f64)| a.abs() > AT_BOUND * c && a.abs() < (1.0 - AT_BOUND) * c;
        solution
            .a
            .iter()
            .zip(task.cost)
            .map(|pair| if free(pair) { f64::INFINITY } else { 0.0 })
            .collect()
    }
}

impl Smo {
    /// The solution, and whether it is one: where patience ends it need not be.
    fn run<R: KernelRows>(
        self,
        kernel: &Combined,
        mut rows: R,
        task: &Task<'_>,
        start: Option<&[f64]>,
        stop: Stop,
        mut patience: Patience,
    ) -> (Solution, bool) {
        let n = task.y.len();
        let a = start.map_or_else(|| vec![0.0; n], <[f64]>::to_vec);
        // Entries in single precision will do: what counts is computed exactly at the end.
        let f = if start.is_some() { kernel.times_single(&a) } else { vec![0.0; n] };
        let mut state = SmoState::new(task, kernel.diagonal(), a, &f, self.kink);
        let spread = |v: &[f64]| {
            v.iter().copied().fold(f64::MIN, f64::max) - v.iter().copied().fold(f64::MAX, f64::min)
        };
        let largest = |v: &[f64]| v.iter().fold(0.0f64, |m, x| m.max(x.abs()));
        let scale = if task.intercept { 0.5 * spread(task.y) } else { largest(task.y) }
            .max(f64::MIN_POSITIVE);
        let mut tolerance = TUNING.first_violation_share * scale;
        loop {
            state.optimise(&mut rows, tolerance, &mut patience.steps);
            let f: Vec<f64> = state.gradient.iter().zip(task.y).map(|(g, y)| g + y).collect();
            let mut solution = Solution::new(task, state.a.clone(), f);
            let mut done = stop.reached(&solution);
            let exhausted =
                tolerance <= (ROUNDED_VIOLATION * scale).max(state.noise()) || patience.steps == 0;
            if done || exhausted {
                // Many small updates have drifted: certify with fresh decision values.
                let (f, forms) = kernel.times_with_forms(&state.a);
                solution = Solution { forms, ..Solution::new(task, solution.a, f) };
                done = stop.reached(&solution);
                state.gradient = solution.f.iter().zip(task.y).map(|(f, y)| f - y).collect();
                patience.corrections -= 1;
            }
            if done || exhausted || patience.corrections == 0 {
                return (solution, done);
            }
            // The gap is roughly proportional to the violation allowed.
            let wanted = stop.absolute.max(stop.relative * solution.primal.abs());
            let fall = TUNING.next_violation_share * wanted / solution.gap();
            tolerance *= fall.clamp(TUNING.largest_violation_fall, 0.5);
            tolerance = tolerance.max(state.noise());
        }
    }
}

#[cfg(test)]
mod tests;
