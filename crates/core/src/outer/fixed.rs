//! One machine at given weights; the certificate is the machine's own.

use super::{Memory, Point, Problem, Run, active};
use crate::{Result, linalg::dot, model::Fit, trace::Observer};

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
