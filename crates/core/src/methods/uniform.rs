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
    // The first visit is loose; the second starts where it ended and knows the gap.
    let mut last = None;
    loop {
        let point = run.visit(theta.clone(), last.as_ref())?;
        run.raise(point.solution.dual_sum - dot(&point.slope, &theta));
        run.keep(&point);
        run.record(terms);
        if run.over() || run.iterations() >= 3 {
            return run.finish();
        }
        last = Some(point);
    }
}
