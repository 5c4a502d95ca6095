//! One machine at given weights.
//!
//! Solves  min over f, b :  Σ_i c_i ℓ(y_i, f(x_i) + b) + ½ Σ_m ‖f_m‖²/θ_m   for fixed θ.
//! In: terms K_1..K_M, a task, θ.   Out: a, b and the machine's own certificate.

use super::{Memory, Point, Problem, Run, active};
use crate::{Result, linalg::dot, model::Fit, trace::Observer, tuning::tuning};

tuning! { "fixed"
    /// Gap of the machine, as a share of the tolerance: the rest is left for what truncated terms
    /// add to the gap.
    machine_tolerance_share: f64 = 0.5;
}

/// Solves at the given θ.
pub fn fit_at(
    problem: &Problem<'_>,
    theta: Vec<f64>,
    memory: &mut Memory,
    observer: &mut dyn Observer,
) -> Result<Fit> {
    let mut run = Run::new(problem, observer);
    let point =
        run.visit_to(TUNING.machine_tolerance_share * problem.tol, theta, memory.duals.as_deref())?;
    run.raise(point.dual_sum - dot(&point.slope, &point.theta));
    run.keep(&point);
    run.record(active(&point.theta));
    memory.duals = run.best.as_ref().map(Point::duals);
    run.finish()
}
