//! Sparse sets on few kernels at a time.
//!
//! Solves  min over θ in Θ  as the level method does, where Θ selects kernels: the method runs on a working set, then one machine and one
//! pass over all kernels give bounds for the whole problem, and the kernels that would enter join the set.
//! In: terms K_1..K_M, a task, a separable Θ with φ'(0) > 0.   Out: θ, a, b and a gap certified over all M kernels.
//!
//! At the optimum g_m = ½ s_m satisfies g_m = λ φ'(θ_m) where θ_m > 0 and g_m ≤ λ φ'(0) elsewhere: kernels above λ φ'(0) are the violators.

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
    weights::Separable,
};

/// Fewer kernels than this are solved directly.
pub const MIN_TERMS: usize = 1000;
/// Kernels in the first average, and the least number that joins at a time.
const SAMPLE: usize = 256;
const JOIN: usize = 32;

/// Records what a fit on the working set proves about the whole problem: its objective, not its lower bound.
struct Relay<'r, 'a> {
    run: &'r mut Run<'a>,
}

impl Observer for Relay<'_, '_> {
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
    let mut point = run.visit(first_weights(terms, memory.theta.take(), set), memory.duals.take().as_deref())?;
    let mut working: Vec<usize> = (0..terms).filter(|&t| memory_keeps(&point, terms, t)).collect();
    let mut cuts = Cuts::default();
    let mut slope = point.slope.clone();
    let mut sharpest = 0.5 * problem.tol;
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
            sharpest *= 0.3;
        }
        // A working set that is still growing is not worth solving to the end.
        let inner_tol = if joining.is_empty() { sharpest } else { sharpest.max(0.1 * run.gap().min(1.0)) };
        working.extend(joining);
        working.sort_unstable();
        let (theta, prover) = solve_on(&mut run, set, &working, &point, &cuts, inner_tol)?;
        point = run.visit_to(0.1 * inner_tol, theta, Some(&point.duals()))?;
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
        let step = terms.div_ceil(SAMPLE);
        (0..terms).map(|t| f64::from(t % step == 0)).collect()
    });
    set.tighten(&mut theta);
    theta
}

/// The first working set: active kernels of an earlier sparse fit, nothing otherwise.
fn memory_keeps(point: &Point, terms: usize, t: usize) -> bool {
    2 * active(&point.theta) < terms.min(SAMPLE) && point.theta[t] > 0.0
}

/// Kernels outside the working set that would enter, the strongest first, at most as many as are in it.
fn violators(theta: &[f64], slope: &[f64], set: &dyn Separable, working: &[usize]) -> Vec<usize> {
    let steep: f64 = theta.iter().map(|&t| if t > 0.0 { t * set.phi(t)[1] } else { 0.0 }).sum();
    let threshold = dot(theta, slope) / steep * set.phi(f64::MIN_POSITIVE)[1];
    let mut out: Vec<usize> = (0..slope.len())
        .filter(|t| working.binary_search(t).is_err() && (working.is_empty() || slope[*t] > threshold))
        .collect();
    out.sort_by(|&i, &j| slope[j].total_cmp(&slope[i]).then(i.cmp(&j)));
    out.truncate(working.len().max(JOIN));
    out
}

/// Weights of all kernels from a fit on the working set, started with every bound seen so far, and the multipliers that prove its bound.
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
    let inner = Problem { grams: &grams, parts: problem.parts.clone(), tol, ..*problem };
    // New kernels start with a little weight: at exactly zero the projection would have to find them first.
    let mut theta: Vec<f64> = working.iter().map(|&t| last.theta[t]).collect();
    let floor = 0.01 * theta.iter().copied().fold(0.0, f64::max) / working.len() as f64;
    theta.iter_mut().for_each(|t| *t = t.max(floor));
    let theta = theta.iter().any(|&t| t > 0.0).then_some(theta);
    let mut memory =
        Memory { theta, duals: Some(last.duals()), cuts: cuts.restrict(working), prover: None, screen: None };
    let fit = fit_all(&inner, set, &mut memory, &mut Relay { run })?;
    Ok((grams.expand(&fit.weights), memory.prover))
}
