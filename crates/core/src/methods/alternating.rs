//! Machine and closed-form weights in turn: monotone, no cut model, a second road to every convex optimum.
//!
//! Solves  min over θ in Θ, f, b :  Σ_i c_i ℓ(y_i, f(x_i) + b) + ½ Σ_m ‖f_m‖²/θ_m.
//! In: terms K_1..K_M, a task, Θ.   Out: θ, a, b and a certified gap.   Spec: [Yang2011] with the update of [Kloft2011]; page docs/methods/gmkl.md.

use super::evaluate::{Point, Problem, Run, active};
use crate::{Result, model::Fit, trace::Observer, weights::WeightSet};

/// Weights below this fraction of the largest no longer count.
const ZERO: f64 = 1e-12;

/// Minimises over `set` by alternation.
pub fn fit(problem: &Problem<'_>, set: &dyn WeightSet, observer: &mut dyn Observer) -> Result<Fit> {
    let mut run = Run::new(problem, observer);
    let mut theta = set.start(problem.grams.n_terms());
    let mut last: Option<Point> = None;
    loop {
        let point = run.visit(theta, last.as_ref())?;
        run.keep(&point);
        run.raise(point.lower_bound(set));
        run.record(active(&point.theta));
        if run.over() {
            return run.finish();
        }
        // For fixed f_m the best θ minimises Σ ‖w_m‖²/θ_m.
        theta = set.best_response(&point.sq_norms());
        let largest = theta.iter().copied().fold(0.0, f64::max);
        theta.iter_mut().for_each(|t| *t = if *t <= ZERO * largest { 0.0 } else { *t });
        last = Some(point);
    }
}
