//! Machine and closed-form weights in turn: monotone, no cut model, a second road to every convex optimum.
//!
//! Solves  min over θ in Θ, f, b :  Σ_i c_i ℓ(y_i, f(x_i) + b) + ½ Σ_m ‖f_m‖²/θ_m.
//! In: terms K_1..K_M, a task, Θ.   Out: θ, a, b and a certified gap.   Paper: [Kloft2011]; page docs/methods/lp.md.

use super::evaluate::{Memory, Point, Problem, Run, active};
use crate::{Result, model::Fit, trace::Observer, weights::WeightSet};

/// Weights below this fraction of the largest no longer count.
const ZERO: f64 = 1e-12;

/// Minimises over `set` by alternation, starting from what `memory` holds and leaving there what it found.
pub fn fit(
    problem: &Problem<'_>,
    set: &dyn WeightSet,
    memory: &mut Memory,
    observer: &mut dyn Observer,
) -> Result<Fit> {
    let mut run = Run::new(problem, observer);
    let mut duals = memory.duals.take();
    let mut theta = set.start(problem.grams.n_terms());
    loop {
        let point = run.visit(theta, duals.as_deref())?;
        run.keep(&point);
        run.raise(point.lower_bound(set));
        run.record(active(&point.theta));
        if run.over() {
            memory.duals = run.best.as_ref().map(Point::duals);
            return run.finish();
        }
        // For fixed f_m the best θ minimises Σ ‖w_m‖²/θ_m.
        theta = set.best_response(&point.sq_norms());
        let largest = theta.iter().copied().fold(0.0, f64::max);
        theta.iter_mut().for_each(|t| *t = if *t <= ZERO * largest { 0.0 } else { *t });
        duals = Some(point.duals());
    }
}
