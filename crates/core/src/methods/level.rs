//! The level method.
//!
//! Solves  min over θ in Θ, f, b :  Σ_i c_i ℓ(y_i, f(x_i) + b) + ½ Σ_m ‖f_m‖²/θ_m   for a separable Θ.
//! In: terms K_1..K_M, a task, Θ.   Out: θ, a, b and a certified gap.   Paper: [Yang2011] Algorithm 1; page docs/methods/gmkl.md.
//!
//! Each machine solved at θ gives an upper bound (its primal value) and a cut A(a) − ½ Σ θ_m s_m that bounds the objective from below over
//! all of Θ. The next θ is the projection of the last onto the set where all cuts lie below a level between the two bounds. Where the last
//! visit found a better point, a second-order step from there is tried first, and where that went too far, a point in between.

use super::{
    cuts::Cuts,
    evaluate::{Memory, Point, Problem, Run, active},
    second_order::Model,
    zeros::without_lacking,
};
use crate::{
    Result,
    linalg::dot,
    model::Fit,
    trace::Observer,
    weights::{Separable, WeightSet},
};

/// Where the level lies between the bounds. The constant of the paper's rate is 4 at 0.3 and 101 at its 0.9.
const LEVEL: f64 = 0.3;
/// On the simplex, where the model has corners only, a higher level needs fewer iterations (counted on Toy 1 and WDBC, 20 prices each: 683
/// and 738 at 0.3, 623 and 626 at 0.5).
const LEVEL_SIMPLEX: f64 = 0.5;
/// Accuracy of the sub-problems, as a fraction of the gap still open.
const ACCURACY: f64 = 1e-2;
/// Weights below this fraction of the largest are zeros.
const ZERO: f64 = 1e-7;
/// A weight is a zero in the answer if it is below this fraction of the largest, times what its multiplier lacks: the first of these for which
/// that is certified. L1 fits of Pima (C = 1, tolerance 10⁻⁵, five halves) keep 14.4 kernels on the average so, and kept 19.6 where the
/// fraction was 10⁻³ whatever the multiplier said.
const SMALL: [f64; 2] = [1e-1, 1e-2];
/// Accuracy of second-order steps, likewise.
const NEWTON_ACCURACY: f64 = 1e-3;
/// Where the gap has hardly fallen, second-order steps are not tried: better points alone do not raise the lower bound.
const PROGRESS: f64 = 0.98;
/// Cuts kept at most.
const MAX_CUTS: usize = 60;

/// Minimises over `set` by the level method, starting from what `memory` holds and leaving there what it found.
pub fn fit(
    problem: &Problem<'_>,
    set: &dyn Separable,
    memory: &mut Memory,
    observer: &mut dyn Observer,
) -> Result<Fit> {
    let mut run = Run::new(problem, observer);
    let share = if set.phi(1.0)[2] == 0.0 { LEVEL_SIMPLEX } else { LEVEL };
    let cuts = &mut memory.cuts;
    memory.prover = None;
    let mut duals = memory.duals.take();
    let mut theta = match memory.theta.take() {
        Some(theta) => clean(set, theta),
        None => set.start(problem.grams.n_terms()),
    };
    // The point a second-order step was made from.
    let mut origin: Option<Point> = None;
    loop {
        let before = run.gap();
        let (point, kernel) = run.visit_keeping(run.inner_accuracy(), theta, duals.as_deref())?;
        let better = point.primal < run.upper();
        run.keep(&point);
        run.raise(point.lower_bound(set));
        cuts.push(point.dual_sum, point.slope.clone(), point.duals(), point.images.clone());
        let (mut mu, mut screened) = (Vec::new(), false);
        if !run.optimal() {
            mu = cuts.bound(set, &point.theta, ACCURACY * (run.upper() - run.lower)).0;
            run.raise(cuts.aggregate(set, &mu).0);
            let (average, images) = (cuts.average(&mu), cuts.average_images(&mu));
            let (value, slope) = run.cut(&average, images.as_ref());
            run.raise(value - set.support(&slope));
            screened = memory.screen.as_mut().is_some_and(|s| s.passed(&run, set, (value, &slope, &average)));
            cuts.push(value, slope, average.clone(), images);
            mu.push(0.0);
            memory.prover = Some(average);
        }
        run.record(active(&point.theta));
        if screened && !run.over() {
            memory.remember(run.best.as_ref());
            return run.finish();
        }
        if run.over() {
            polish(&mut run, set, cuts, &mu, &point)?;
            memory.remember(run.best.as_ref());
            return run.finish();
        }
        cuts.trim(set, &mu, MAX_CUTS);
        let open = run.upper() - run.lower;
        let progress = run.gap() < PROGRESS * before;
        let step = match (better, origin.take()) {
            (true, _) if progress => {
                let model = Model::new(&run, set, &point, &kernel);
                let step = model.and_then(|m| m.step(set, cuts, run.upper(), NEWTON_ACCURACY * open));
                origin = step.is_some().then(|| point.clone());
                step
            }
            (false, Some(origin)) => Some(between(set, &origin, &point)),
            _ => None,
        };
        theta = match step {
            Some(theta) => theta,
            None => clean(set, cuts.nearest(set, &point.theta, run.lower + share * open, ACCURACY * open)),
        };
        duals = Some(point.duals());
    }
}

/// A second-order step went too far: on the way there J is convex, and its slope at both ends tells about where it is least.
fn between(set: &dyn WeightSet, from: &Point, to: &Point) -> Vec<f64> {
    let way: Vec<f64> = from.theta.iter().zip(&to.theta).map(|(f, t)| t - f).collect();
    let (falls, rises) = (dot(&from.slope, &way), -dot(&to.slope, &way));
    let share = if falls + rises > 0.0 { (falls / (falls + rises)).clamp(0.05, 0.95) } else { 0.5 };
    clean(set, from.theta.iter().zip(&way).map(|(f, w)| f + share * w).collect())
}

/// Tiny weights are zeros, and the rest uses the whole of the constraint: both before the machine is solved, so the certificate
/// speaks of exactly these weights.
pub fn clean(set: &dyn WeightSet, mut theta: Vec<f64>) -> Vec<f64> {
    let largest = theta.iter().copied().fold(0.0, f64::max);
    theta.iter_mut().for_each(|t| *t = if *t <= ZERO * largest { 0.0 } else { *t });
    set.tighten(&mut theta);
    theta
}

/// The answer with zeros, where Θ selects kernels, if it is certified: from its face, where that can be found; from the weights that answer the
/// best lower bound, which are exactly zero where the optimum's are, while projections approach zero only in the limit; or from the best weights
/// without those that are small where their multipliers lack what gives weight.
fn polish(run: &mut Run<'_>, set: &dyn Separable, cuts: &Cuts, mu: &[f64], last: &Point) -> Result<()> {
    if run.optimal() && super::joint::settle(run, set, None)? {
        return Ok(());
    }
    let Some(best) = run.best.as_ref().filter(|_| run.optimal()) else { return Ok(()) };
    let mut candidates = Vec::new();
    if mu.len() > 1 {
        let slope = cuts.aggregate(set, mu).2;
        let theta = set.support_point(&slope);
        if dot(&slope, &theta) > 0.0 && active(&theta) > 1 {
            candidates.push(theta);
        }
    }
    if set.selects() {
        let kept = active(&best.theta);
        let without = SMALL.map(|small| without_lacking(set, &best.theta, &best.slope, small));
        candidates.extend(without.into_iter().filter(|theta| active(theta) < kept));
    }
    for mut theta in candidates {
        set.tighten(&mut theta);
        let candidate = run.visit(theta, Some(&last.duals()))?;
        run.raise(candidate.lower_bound(set));
        if run.replace_if_certified(candidate) {
            return Ok(());
        }
    }
    Ok(())
}
