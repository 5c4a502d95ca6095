//! Fixed weights: 1/M for all (the baseline every weight-learning method has to beat), or 1 for a single kernel.
//!
//! One machine on the combined kernel; the certificate is the machine's own.

use super::evaluate::{Memory, Point, Problem, Run, active};
use crate::{Result, linalg::dot, model::Fit, trace::Observer};

/// Solves at θ = 1/M.
pub fn fit(problem: &Problem<'_>, memory: &mut Memory, observer: &mut dyn Observer) -> Result<Fit> {
    let terms = problem.grams.n_terms();
    fit_at(problem, vec![1.0 / terms as f64; terms], memory, observer)
}

/// Solves at the given θ.
pub fn fit_at(problem: &Problem<'_>, theta: Vec<f64>, memory: &mut Memory, observer: &mut dyn Observer) -> Result<Fit> {
    let mut run = Run::new(problem, observer);
    // Half the tolerance leaves room for what truncated terms add to the gap.
    let point = run.visit_to(0.5 * problem.tol, theta, memory.duals.as_deref())?;
    run.raise(point.dual_sum - dot(&point.slope, &point.theta));
    run.keep(&point);
    run.record(active(&point.theta));
    memory.duals = run.best.as_ref().map(Point::duals);
    run.finish()
}
