//! The level method.
//!
//! Solves  min over θ in Θ, f, b :  Σ_i c_i ℓ(y_i, f(x_i) + b) + ½ Σ_m ‖f_m‖²/θ_m
//!   for a separable Θ.
//! In: terms K_1..K_M, a task, Θ.   Out: θ, a, b and a certified gap.
//!   Paper: [Yang2011] Algorithm 1; page docs/methods/gmkl.md.
//!
//! Each machine solved at θ gives an upper bound (its primal value) and a cut A(a) − ½ Σ θ_m s_m
//! that bounds the objective from below over all of Θ. The next θ is the projection of the last
//! onto the set where all cuts lie below a level between the two bounds. Where the last visit found
//! a better point, a second-order step from there is tried first, and where that went too far, a
//! point in between.

mod cuts;
pub mod screen;
mod second_order;
pub mod working_set;

pub use cuts::Cuts;
pub use screen::Screen;
use second_order::QuadraticModel;

use super::{Memory, Point, Problem, Run, active, zeros::without_lacking};
use crate::{
    Result,
    linalg::dot,
    model::Fit,
    trace::Observer,
    tuning::tuning,
    weights::{Separable, WeightSet},
};

tuning! { "level"
    /// Height of the level between the lower bound (0) and the best value (1). The constant of the
    /// paper's rate is 4 at 0.3 and 101 at the paper's 0.9.
    height: f64 = 0.3;
    /// Height of the level on the simplex, where the model has corners only: counted on Toy 1 and
    /// WDBC, 20 values of C each, 683 and 738 iterations at 0.3, 623 and 626 at 0.5.
    height_on_simplex: f64 = 0.5;
    /// Accuracy of the projection onto the level set, as a share of the gap still open.
    projection_gap_share: f64 = 1e-2;
    /// Accuracy of second-order steps, as a share of the gap still open.
    second_order_gap_share: f64 = 1e-3;
    /// A starting weight below this share of the largest is set to zero.
    negligible_weight_share: f64 = 1e-7;
    /// A weight is a zero in the answer if its share of the largest is below this number times what
    /// its multiplier lacks: the numbers are tried in turn until the answer is certified. Measured
    /// on L1 fits of Pima (C = 1, tolerance 1e-5, five halves): 14.4 kernels are kept on average,
    /// and 19.6 with a share of 1e-3 whatever the multiplier said.
    zero_weight_shares: [f64; 2] = [1e-1, 1e-2];
    /// Second-order steps are tried only where the last step brought the gap below this share of
    /// what it was: better points alone do not raise the lower bound.
    falling_gap_share: f64 = 0.98;
    /// Largest number of cuts that are kept: two sub-problems an iteration cost its cube.
    cuts_kept: usize = 60;
    /// Between the point of a second-order step that went too far and where it ended, the next
    /// point lies at least this share of the way from either end.
    least_way_share: f64 = 0.05;
}

/// Minimises over `set` by the level method, starting from what `memory` holds and leaving there
/// what it found.
pub fn fit(
    problem: &Problem<'_>,
    set: &dyn Separable,
    memory: &mut Memory,
    observer: &mut dyn Observer,
) -> Result<Fit> {
    let mut run = Run::new(problem, observer);
    let share = if set.phi(1.0)[2] == 0.0 { TUNING.height_on_simplex } else { TUNING.height };
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
            mu = cuts
                .bound(set, &point.theta, TUNING.projection_gap_share * (run.upper() - run.lower))
                .0;
            run.raise(cuts.aggregate(set, &mu).0);
            let (average, images) = (cuts.average(&mu), cuts.average_images(&mu));
            let (value, slope) = run.cut(&average, images.as_ref(), &point.solutions);
            run.raise(value - set.support(&slope));
            screened = memory
                .screen
                .as_mut()
                .is_some_and(|s| s.passed(&run, set, (value, &slope, &average)));
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
        cuts.trim(set, &mu, TUNING.cuts_kept);
        let open = run.upper() - run.lower;
        let progress = run.gap() < TUNING.falling_gap_share * before;
        let step = match (better, origin.take()) {
            (true, _) if progress => {
                let model = QuadraticModel::new(&run, set, &point, &kernel);
                let step = model.and_then(|m| {
                    m.step(set, cuts, run.upper(), TUNING.second_order_gap_share * open)
                });
                origin = step.is_some().then(|| point.clone());
                step
            }
            (false, Some(origin)) => Some(between(set, &origin, &point)),
            _ => None,
        };
        theta = match step {
            Some(theta) => theta,
            None => clean(
                set,
                cuts.nearest(
                    set,
                    &point.theta,
                    run.lower + share * open,
                    TUNING.projection_gap_share * open,
                ),
            ),
        };
        duals = Some(point.duals());
    }
}

/// The weights between a point and where a second-order step from it went too far: J is convex on
/// the way, and its slopes at both ends say about where it is least.
fn between(set: &dyn WeightSet, from: &Point, to: &Point) -> Vec<f64> {
    let way: Vec<f64> = from.theta.iter().zip(&to.theta).map(|(f, t)| t - f).collect();
    let (falls, rises) = (dot(&from.slope, &way), -dot(&to.slope, &way));
    let share = if falls + rises > 0.0 {
        (falls / (falls + rises)).clamp(TUNING.least_way_share, 1.0 - TUNING.least_way_share)
    } else {
        0.5
    };
    clean(set, from.theta.iter().zip(&way).map(|(f, w)| f + share * w).collect())
}

/// Tiny weights are zeros, and the rest uses the whole of the constraint: both before the machine
/// is solved, so the certificate speaks of exactly these weights.
pub fn clean(set: &dyn WeightSet, mut theta: Vec<f64>) -> Vec<f64> {
    let largest = theta.iter().copied().fold(0.0, f64::max);
    theta
        .iter_mut()
        .for_each(|t| *t = if *t <= TUNING.negligible_weight_share * largest { 0.0 } else { *t });
    set.tighten(&mut theta);
    theta
}

/// The answer with zeros, where Θ selects kernels, if it is certified: from its face, where that
/// can be found; from the weights that answer the best lower bound, which are exactly zero where
/// the optimum's are, while projections approach zero only in the limit; or from the best weights
/// without those that are small where their multipliers lack what gives weight.
fn polish(
    run: &mut Run<'_>,
    set: &dyn Separable,
    cuts: &Cuts,
    mu: &[f64],
    last: &Point,
) -> Result<()> {
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
        let without = TUNING
            .zero_weight_shares
            .map(|small| without_lacking(set, &best.theta, &best.slope, small));
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

/// The level method; where Θ selects kernels, without those proved to be zero, and on a working set
/// where there are many.
pub fn sparse_or_level(
    problem: &Problem<'_>,
    set: &dyn Separable,
    memory: &mut Memory,
    observer: &mut dyn Observer,
) -> Result<Fit> {
    if !set.selects() {
        return fit(problem, set, memory, observer);
    }
    let method: screen::Screened = |problem, set, memory, observer| {
        let many =
            problem.working_set && problem.grams.n_terms() >= working_set::TUNING.least_terms;
        if many {
            working_set::fit(problem, set, memory, observer)
        } else {
            fit(problem, set, memory, observer)
        }
    };
    if problem.screening {
        return screen::fit(problem, set, memory, observer, method);
    }
    method(problem, set, memory, observer)
}
