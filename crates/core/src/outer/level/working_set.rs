//! Sparse sets on few kernels at a time.
//!
//! Solves  min over θ in Θ
//!   as the level method does, where Θ selects kernels: the method runs on a working set, then one
//!   machine and one
//! pass over all kernels give bounds for the whole problem, and the kernels that would enter join
//! the set.
//! In: terms K_1..K_M, a task, a separable Θ with φ'(0) > 0.
//!   Out: θ, a, b and a gap certified over all M kernels.
//!
//! At the optimum g_m = ½ s_m satisfies g_m = λ φ'(θ_m) where θ_m > 0 and g_m ≤ λ φ'(0) elsewhere:
//! kernels above λ φ'(0) are the violators.

use std::ops::ControlFlow;

use super::{
    super::{Memory, Point, Problem, Run, active, problem::Duals},
    cuts::Cuts,
    fit as fit_all,
};
use crate::{
    Result,
    gram::Groups,
    linalg::dot,
    model::Fit,
    trace::{IterRecord, Observer},
    tuning::tuning,
    weights::Separable,
};

tuning! { "working_set"
    /// Sets of at least this many kernels are solved on a working set, smaller ones directly.
    least_terms: usize = 1000;
    /// Kernels in the first average, evenly spread over all.
    first_sample_terms: usize = 256;
    /// Kernels that join at a time: as many as are in the set, but at least this many.
    least_joining_terms: usize = 32;
    /// A kernel that joins starts with this share of the largest weight, divided by the number of
    /// kernels in the set: from exactly zero the projection would have to find it first.
    joining_weight_share: f64 = 0.01;
    /// The first fit on a complete working set has this share of the tolerance.
    first_tolerance_share: f64 = 0.5;
    /// Each next fit on a complete working set has this share of the last one's tolerance.
    next_tolerance_share: f64 = 0.3;
    /// A fit on a working set that still grows is ended at this share of the gap that is open.
    growing_gap_share: f64 = 0.1;
    /// The machine that follows a fit on the working set is solved to this share of that fit's
    /// tolerance.
    machine_tolerance_share: f64 = 0.1;
}

/// Records what a fit on the working set proves about the whole problem: its objective, not its
/// lower bound.
struct UpperBoundRecorder<'r, 'a> {
    run: &'r mut Run<'a>,
}

impl Observer for UpperBoundRecorder<'_, '_> {
    fn on_iteration(&mut self, record: &IterRecord) -> ControlFlow<()> {
        self.run.record_upper(record.objective, record.active);
        if self.run.over() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// Minimises over `set`, whose weights must be able to be zero.
pub fn fit(
    problem: &Problem<'_>,
    set: &dyn Separable,
    memory: &mut Memory,
    observer: &mut dyn Observer,
) -> Result<Fit> {
    let terms = problem.grams.n_terms();
    let mut run = Run::new(problem, observer);
    let mut point =
        run.visit(first_weights(terms, memory.theta.take(), set), memory.duals.take().as_deref())?;
    let mut working: Vec<usize> = (0..terms).filter(|&t| memory_keeps(&point, terms, t)).collect();
    let mut cuts = Cuts::default();
    let mut slope = point.slope.clone();
    let mut tightest = TUNING.first_tolerance_share * problem.tol;
    loop {
        run.keep(&point);
        run.raise(point.lower_bound(set));
        run.record(active(&point.theta));
        let duals = point.duals();
        let proof = (point.dual_sum, point.slope.as_slice(), duals.as_slice());
        if run.over() || memory.screen.as_mut().is_some_and(|s| s.passed(&run, set, proof)) {
            memory.remember(run.best.as_ref());
            return run.finish();
        }
        cuts.push(point.dual_sum, point.slope.clone(), point.duals(), None);
        let joining = violators(&point.theta, &slope, set, &working);
        if joining.is_empty() {
            tightest *= TUNING.next_tolerance_share;
        }
        // A working set that is still growing is not worth solving to the end.
        let inner_tol = if joining.is_empty() {
            tightest
        } else {
            tightest.max(TUNING.growing_gap_share * run.gap().min(1.0))
        };
        working.extend(joining);
        working.sort_unstable();
        let (theta, prover) = solve_on(&mut run, set, &working, &point, &cuts, inner_tol)?;
        point =
            run.visit_to(TUNING.machine_tolerance_share * inner_tol, theta, Some(&point.duals()))?;
        slope.clone_from(&point.slope);
        if let Some(prover) = prover {
            let value;
            (value, slope) = run.cut(&prover, None, &[]);
            run.raise(value - set.support(&slope));
            cuts.push(value, slope.clone(), prover, None);
        }
    }
}

/// Equal weights on an even sample of the kernels, or the weights of an earlier fit.
fn first_weights(terms: usize, remembered: Option<Vec<f64>>, set: &dyn Separable) -> Vec<f64> {
    let mut theta = remembered.unwrap_or_else(|| {
        let step = terms.div_ceil(TUNING.first_sample_terms);
        (0..terms).map(|t| f64::from(t % step == 0)).collect()
    });
    set.tighten(&mut theta);
    theta
}

/// The first working set: active kernels of an earlier sparse fit, nothing otherwise.
fn memory_keeps(point: &Point, terms: usize, t: usize) -> bool {
    2 * active(&point.theta) < terms.min(TUNING.first_sample_terms) && point.theta[t] > 0.0
}

/// Kernels outside the working set that would enter, the strongest first, at most as many as are in
/// it.
fn violators(theta: &[f64], slope: &[f64], set: &dyn Separable, working: &[usize]) -> Vec<usize> {
    let steep: f64 = theta.iter().map(|&t| if t > 0.0 { t * set.phi(t)[1] } else { 0.0 }).sum();
    let threshold = dot(theta, slope) / steep * set.phi(f64::MIN_POSITIVE)[1];
    let mut out: Vec<usize> = (0..slope.len())
        .filter(|t| {
            working.binary_search(t).is_err() && (working.is_empty() || slope[*t] > threshold)
        })
        .collect();
    out.sort_by(|&i, &j| slope[j].total_cmp(&slope[i]).then(i.cmp(&j)));
    out.truncate(working.len().max(TUNING.least_joining_terms));
    out
}

/// Weights of all kernels from a fit on the working set, started with every bound seen so far, and
/// the multipliers that prove its bound.
fn solve_on(
    run: &mut Run<'_>,
    set: &dyn Separable,
    working: &[usize],
    last: &Point,
    cuts: &Cuts,
    tol: f64,
) -> Result<(Vec<f64>, Option<Duals>)> {
    let problem = run.problem;
    let grams = Groups::subset(problem.grams, working);
    let inner = Problem {
        grams: &grams,
        parts: problem.parts.clone(),
        scratch: problem.scratch.clone(),
        tol,
        ..*problem
    };
    let mut theta: Vec<f64> = working.iter().map(|&t| last.theta[t]).collect();
    let floor = TUNING.joining_weight_share * theta.iter().copied().fold(0.0, f64::max)
        / working.len() as f64;
    theta.iter_mut().for_each(|t| *t = t.max(floor));
    let theta = theta.iter().any(|&t| t > 0.0).then_some(theta);
    let mut memory = Memory {
        theta,
        duals: Some(last.duals()),
        cuts: cuts.restrict(working),
        prover: None,
        screen: None,
    };
    let fit = fit_all(&inner, set, &mut memory, &mut UpperBoundRecorder { run })?;
    Ok((grams.expand(&fit.weights), memory.prover))
}
