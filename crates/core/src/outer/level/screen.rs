//! Gap-safe screening: kernels that are proved to have no weight at the optimum are left out for
//! good.
//!
//! Solves  min over θ in Θ  as the solvers for sparse sets do, on fewer and fewer kernels.
//! In: terms K_1..K_M, a task with a smooth loss, a separable Θ with φ'(0) > 0, a method.
//!   Out: its fit, with a gap certified for all M.
//!
//! Proof. Let D(a) = A(a) − max over θ in Θ of ⟨g(a), θ⟩, g_m = ½ aᵀK_m a. The maximum is convex in
//! a, so D is as strongly concave as A: with modulus μ = min_i κ/c_i, κ that of the loss's
//! conjugate. Its maximiser a* is then unique, and for every feasible a and every upper bound U on
//! the optimum
//!     (μ/2) ‖a − a*‖² ≤ D(a*) − D(a) ≤ U − D(a),       so ‖a − a*‖ ≤ r = √(2 (U − D(a)) / μ).
//! √(aᵀK_m a) is a seminorm of a, at most √tr K_m ‖a‖, so √s_m(a*) lies within r √tr K_m of
//! √s_m(a): bounds low_m ≤ g_m(a*) ≤ high_m. (Where Σa = 0, K_m may be centred first, which makes
//! the trace smaller.) Optimal weights maximise ⟨g(a*), θ⟩: θ_m = 0 wherever g_m(a*) < λ φ'(0),
//! with λ(g) the multiplier of Θ's constraint. Larger g allow more weight at the same λ, so λ grows
//! with g, and high_m < λ(low) φ'(0) proves θ_m = 0. Without kernel m the problem has the same
//! optimum, so bounds on the smaller problem are bounds on the whole.
//!
//! The hinge and the ε-insensitive loss have κ = 0: r is infinite and nothing is left out.

use std::ops::ControlFlow;

use super::super::{Memory, Part, Problem, Run};
use crate::{
    Result,
    gram::{GramSource, Groups},
    linalg::dot,
    model::Fit,
    trace::{IterRecord, Observer, Status},
    weights::Separable,
};

/// Bounds are widened by this share of themselves, which covers their rounding.
const ROUNDING_MARGIN: f64 = 1e-12;

/// A solver that asks [`Screen::passed`] after each iteration.
pub type Screened = fn(&Problem<'_>, &dyn Separable, &mut Memory, &mut dyn Observer) -> Result<Fit>;

/// The numbers that prove weights zero, and what they have proved.
#[derive(Debug, Clone)]
pub struct Screen {
    /// κ / max c.
    modulus: f64,
    /// A bound on the largest eigenvalue of every term.
    eigenvalues: Vec<f64>,
    /// Kernels not proved to be zero, once they are at most half of all.
    kept: Option<Vec<usize>>,
}

impl Screen {
    fn new(problem: &Problem<'_>) -> Option<Self> {
        let modulus = |p: &Part<'_>| {
            p.task.loss.conjugate_modulus()
                / p.task.cost.iter().copied().fold(f64::MIN_POSITIVE, f64::max)
        };
        let modulus = problem.parts.iter().map(modulus).fold(f64::INFINITY, f64::min);
        if modulus <= 0.0 || !modulus.is_finite() {
            return None;
        }
        let grams = problem.grams;
        let mut eigenvalues: Vec<f64> = (0..grams.n_terms()).map(|t| grams.trace(t)).collect();
        if problem.parts.iter().all(|p| p.task.intercept && p.rows.is_none()) {
            let n = grams.n_samples();
            let means = grams.quad_forms(&vec![1.0; n]);
            // A truncated term's sum is at least the stored one: the trace stays a bound.
            eigenvalues
                .iter_mut()
                .zip(means)
                .for_each(|(e, s)| *e = (*e - s / n as f64).max(ROUNDING_MARGIN * *e));
        }
        Some(Self { modulus, eigenvalues, kept: None })
    }

    /// Do multipliers a with A(a) = `value` and g(a) = `slope`, and the upper bound of `run`, prove
    /// half of the weights zero? The caller then returns what it has.
    pub fn passed(
        &mut self,
        run: &Run<'_>,
        set: &dyn Separable,
        (value, slope, duals): (f64, &[f64], &[Vec<f64>]),
    ) -> bool {
        let open = run.upper() - (value - set.support(slope)) + ROUNDING_MARGIN * run.upper().abs();
        let radius = (2.0 * open / self.modulus).sqrt();
        if !radius.is_finite() {
            return false;
        }
        let norm: f64 = duals.iter().map(|a| dot(a, a)).sum();
        let grams = run.problem.grams;
        let (mut low, mut high) = (slope.to_vec(), slope.to_vec());
        for t in 0..low.len() {
            let reach = radius * self.eigenvalues[t].sqrt();
            // The slope counts what truncation may have hidden; the true form may be smaller by as
            // much.
            let least = (2.0 * low[t] - grams.residual(t) * norm).max(0.0).sqrt();
            low[t] = 0.5 * (least - reach).max(0.0).powi(2);
            high[t] = 0.5 * ((2.0 * high[t]).sqrt() + reach).powi(2);
        }
        let theta = set.support_point(&low);
        let steep: f64 = theta.iter().filter(|t| **t > 0.0).map(|&t| t * set.phi(t)[1]).sum();
        let threshold = dot(&theta, &low) / steep * set.phi(f64::MIN_POSITIVE)[1];
        let kept: Vec<usize> =
            (0..high.len()).filter(|&t| high[t] >= threshold || threshold.is_nan()).collect();
        let passed = 2 * kept.len() <= high.len();
        self.kept = passed.then_some(kept);
        passed
    }
}

/// Numbers iterations on from those of earlier rounds.
struct Continued<'a> {
    observer: &'a mut dyn Observer,
    trace: Vec<IterRecord>,
    earlier: (usize, f64),
    stopped: bool,
}

impl Observer for Continued<'_> {
    fn on_iteration(&mut self, record: &IterRecord) -> ControlFlow<()> {
        let (iterations, seconds) = self.earlier;
        let record = IterRecord {
            iteration: record.iteration + iterations,
            seconds: record.seconds + seconds,
            ..*record
        };
        self.trace.push(record);
        let flow = self.observer.on_iteration(&record);
        self.stopped |= flow.is_break();
        flow
    }
}

/// Runs `method`, again on the kernels that are left whenever it has proved half of them zero.
pub fn fit(
    problem: &Problem<'_>,
    set: &dyn Separable,
    memory: &mut Memory,
    observer: &mut dyn Observer,
    method: Screened,
) -> Result<Fit> {
    memory.screen = Screen::new(problem);
    if memory.screen.is_none() {
        return method(problem, set, memory, observer);
    }
    let mut alive: Vec<usize> = (0..problem.grams.n_terms()).collect();
    let mut observer = Continued { observer, trace: Vec::new(), earlier: (0, 0.0), stopped: false };
    let mut all_cuts = None;
    loop {
        let grams = Groups::subset(problem.grams, &alive);
        let whole = alive.len() == problem.grams.n_terms();
        let left = problem.max_iter - observer.trace.len();
        let source: &dyn GramSource = if whole { problem.grams } else { &grams };
        let round = Problem {
            grams: source,
            parts: problem.parts.clone(),
            scratch: problem.scratch.clone(),
            max_iter: left,
            ..*problem
        };
        let mut fit = method(&round, set, memory, &mut observer)?;
        let screen = memory.screen.take();
        let over = observer.stopped
            || observer.trace.len() >= problem.max_iter
            || fit.certificate.status == Status::Optimal;
        if let Some(Screen { modulus, eigenvalues, kept: Some(kept) }) = screen.filter(|_| !over) {
            let restricted = memory.cuts.restrict(&kept);
            all_cuts.get_or_insert(std::mem::replace(&mut memory.cuts, restricted));
            memory.theta =
                memory.theta.take().map(|theta| kept.iter().map(|&t| theta[t]).collect());
            let eigenvalues = kept.iter().map(|&t| eigenvalues[t]).collect();
            memory.screen = Some(Screen { modulus, eigenvalues, kept: None });
            alive = kept.iter().map(|&t| alive[t]).collect();
            observer.earlier = observer.trace.last().map_or((0, 0.0), |r| (r.iteration, r.seconds));
            continue;
        }
        fit.weights = grams.expand(&fit.weights);
        fit.trace = observer.trace;
        fit.certificate.iterations = fit.trace.len();
        memory.theta = memory.theta.take().map(|theta| grams.expand(&theta));
        if let Some(cuts) = all_cuts {
            memory.cuts = cuts;
        }
        return Ok(fit);
    }
}
