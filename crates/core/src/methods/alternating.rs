//! Machine and closed-form weights in turn: monotone, no cut model, a second road to every convex optimum.
//!
//! Solves  min over θ in Θ, f, b :  Σ_i c_i ℓ(y_i, f(x_i) + b) + ½ Σ_m ‖f_m‖²/θ_m.
//! In: terms K_1..K_M, a task, Θ.   Out: θ, a, b and a certified gap.   Paper: [Kloft2011]; page docs/methods/lp.md.

use super::evaluate::{Memory, Point, Problem, Run, active};
use crate::{Result, model::Fit, trace::Observer, weights::WeightSet};

/// Weights below this fraction of the largest no longer count.
const ZERO: f64 = 1e-12;
/// Long steps that may fail before none is tried any more.
const CHANCES: usize = 3;

/// Minimises over `set` by alternation, starting from what `memory` holds and leaving there what it found.
///
/// `accelerate` (for sets whose answers are not zero): the fixed point is also that of the answer r = argmax over Θ of ⟨s, θ⟩ to the dual
/// vector, and on the ℓp ball the closed form is the damped step θ^{1−ω} r^ω with ω = (p−1)/(p+1). Once two machines tell how r moves with
/// θ, ω is the one that would end there. A step that does not lower the objective is taken back.
pub fn fit(
    problem: &Problem<'_>,
    set: &dyn WeightSet,
    accelerate: bool,
    memory: &mut Memory,
    observer: &mut dyn Observer,
) -> Result<Fit> {
    let mut run = Run::new(problem, observer);
    let mut duals = memory.duals.take();
    // Alternation cannot revive a weight of zero.
    let remembered = memory.theta.take().filter(|theta| theta.iter().all(|t| *t > 0.0));
    let mut theta = remembered.unwrap_or_else(|| set.start(problem.grams.n_terms()));
    set.tighten(&mut theta);
    let mut chances = if accelerate { CHANCES } else { 0 };
    let mut history: Option<(Vec<f64>, Vec<f64>)> = None;
    let mut base: Option<Point> = None;
    loop {
        let mut point = run.visit(theta, duals.as_deref())?;
        run.keep(&point);
        run.raise(point.lower_bound(set));
        run.record(active(&point.theta));
        if run.over() {
            memory.remember(run.best.as_ref());
            return run.finish();
        }
        duals = Some(point.duals());
        if let Some(before) = base.take().filter(|before| before.primal <= point.primal) {
            (point, history, chances) = (before, None, chances - 1);
        }
        theta = closed_form(set, &point);
        if chances > 0 {
            let answer = set.support_point(&point.slope);
            let now = (point.theta.clone(), answer);
            if let Some(omega) = history.as_ref().and_then(|before| secant(before, &now, &point.slope)) {
                theta = between(set, &now, omega);
                base = Some(point);
            }
            history = Some(now);
        }
    }
}

/// Kloft et al. 2011: for fixed f_m the best θ minimises Σ ‖f_m‖²/θ_m with ‖f_m‖² = θ_m² s_m; on the ℓp ball θ_m ∝ ‖f_m‖^{2/(p+1)}.
fn closed_form(set: &dyn WeightSet, point: &Point) -> Vec<f64> {
    let mut theta = set.best_response(&point.sq_norms());
    let largest = theta.iter().copied().fold(0.0, f64::max);
    theta.iter_mut().for_each(|t| *t = if *t <= ZERO * largest { 0.0 } else { *t });
    theta
}

/// θ^{1−ω} r^ω on the boundary; a weight that was zero takes its answer.
fn between(set: &dyn WeightSet, (theta, answer): &(Vec<f64>, Vec<f64>), omega: f64) -> Vec<f64> {
    let mean = |t: f64, r: f64| if t > 0.0 { t.powf(1.0 - omega) * r.powf(omega) } else { r };
    let mut out: Vec<f64> = theta.iter().zip(answer).map(|(&t, &r)| mean(t, r)).collect();
    set.tighten(&mut out);
    out
}

/// With x = log θ and F = log r − x, the ω for which ω ΔF is nearest to −Δx, terms weighted by what they contribute, θ_m s_m.
fn secant(before: &(Vec<f64>, Vec<f64>), now: &(Vec<f64>, Vec<f64>), slope: &[f64]) -> Option<f64> {
    let (mut along, mut square) = (0.0, 0.0);
    for m in 0..slope.len() {
        let dx = (now.0[m] / before.0[m]).ln();
        let df = (now.1[m] / before.1[m]).ln() - dx;
        if dx.is_finite() && df.is_finite() {
            along -= now.0[m] * slope[m] * dx * df;
            square += now.0[m] * slope[m] * df * df;
        }
    }
    (along > 0.0).then(|| (along / square).min(1.5))
}
