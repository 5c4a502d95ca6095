//! Equal weights 1/M: the baseline every weight-learning method has to beat.
//!
//! One machine on the average kernel; the certificate is the machine's own.

use super::evaluate::{Problem, Run};
use crate::{Result, linalg::dot, model::Fit, trace::Observer};

/// Solves at θ = 1/M.
pub fn fit(problem: &Problem<'_>, observer: &mut dyn Observer) -> Result<Fit> {
    let terms = problem.grams.n_terms();
    let theta = vec![1.0 / terms as f64; terms];
    let mut run = Run::new(problem, observer);
    // Half the tolerance leaves room for what truncated terms add to the gap.
    let point = run.visit_to(0.5 * problem.tol, theta, None)?;
    run.raise(point.solution.dual_sum - dot(&point.slope, &point.theta));
    run.keep(&point);
    run.record(terms);
    run.finish()
}
