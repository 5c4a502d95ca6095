//! Sparse multiple kernel learning: concave penalties of the block norms, by majorise–minimise.
//!
//! Solves  min over w, b :  L(w, b) = g(r) + Σ_i c_i ℓ(y_i, f(x_i) + b),   r_k = ‖w_k‖²,  f = Σ_k ⟨w_k, φ_k⟩
//! to a stationary point, g a sum of group selection terms ([`Penalty`]), concave and increasing in r.
//! In: terms K_1..K_M, a task (or several that share β), g.   Out: β, a, b, the value L.   Paper: [Subrahmanya2010] Algorithm 2; page
//! docs/methods/smkl.md.
//!
//! A concave g lies below its tangent, g(r') ≤ g(r) + ½ Σ_k B_k (r'_k − r_k) with B_k = 2 ∂g/∂r_k, so the machine for the kernel
//! Σ_k β_k K_k, β_k = 1/B_k, minimises a bound that touches L at the last iterate: L never rises but for the machine's own gap. Where
//! steps are small for long they are made longer, weight by weight, and taken back where L would rise.

mod threshold;

pub use threshold::{Threshold, collapse_threshold};

use self::threshold::constant_multipliers;
use super::Method;
use crate::{
    Model, Result,
    linalg::{dot, l1_distance},
    machine::Solution,
    model::Fit,
    outer::{Memory, Part, Point, Problem, Run, active},
    prepare::{Job, is_constant},
    request::Smkl,
    trace::{Observer, Status},
    weights::Penalty,
};

/// The machine's relative gap: never coarser, never finer.
const ACCURACY: (f64, f64) = (1e-6, 1e-13);
/// After two steps that change β by less than this, steps are made longer, up to `LONGER` times more than the last and `LONGEST` times what
/// they would be, until one goes too far; not where every digit is asked for.
const SLOW: f64 = 0.2;
const LONGER: f64 = 2.0;
const LONGEST: f64 = 16.0;
const COARSE: f64 = 1e-5;
/// The machine's gap is this share of what L fell by in the last step, and no more than `ROUGHEST` of the objective; likewise.
const ROUGH: f64 = 0.1;
const ROUGHEST: f64 = 1e-2;
/// Changes of β below this are noise where L stands still: about the square root of the finest gap.
const NOISE: f64 = 1e-6;

impl Method for Smkl {
    fn fit(&self, job: &Job<'_>, memories: &mut Vec<Memory>, observer: &mut dyn Observer) -> Result<Model> {
        let penalty = Penalty::parse(&self.penalty, self.eps)?;
        // One machine of several that always says no is nothing odd.
        let alone = (job.tasks.len() == 1).then(|| job.prepared.samples.prediction(job.request.multi_class));
        job.fit_global(memories, observer, &mut |problem, memory, observer| {
            let mut fit = fit_penalty(problem, &penalty, memory, observer)?;
            if fit.weights.iter().all(|w| *w == 0.0) || is_constant(&fit, &problem.parts, alone.as_ref()) {
                fit.warnings.push(collapse_warning(problem, &penalty, job.request.c));
            }
            Ok(fit)
        })
    }
}

/// Minimises L from equal weights 1/M, the machine warm from the multipliers in `memory`. Weights are not taken from there: L has many
/// stationary points, and the answer must not depend on what was fitted before.
pub fn fit_penalty(
    problem: &Problem<'_>,
    penalty: &Penalty,
    memory: &mut Memory,
    observer: &mut dyn Observer,
) -> Result<Fit> {
    let terms = problem.grams.n_terms();
    penalty.check(terms)?;
    let mut run = Run::new(problem, observer);
    let mut duals = memory.duals.take();
    let mut beta = vec![1.0 / terms as f64; terms];
    let coarse = problem.tol >= COARSE;
    // β moves with the multipliers, whose error is of the order of the square root of the gap.
    let mut accuracy = problem.tol.powi(2).clamp(ACCURACY.1, ACCURACY.0);
    // While L falls by much, a coarser one will do.
    let mut loose = if coarse { ROUGHEST.max(accuracy) } else { accuracy };
    let constant: f64 = problem.parts.iter().map(|p| p.task.constant_objective()).sum();
    let (mut last, mut reach, mut slow) = (f64::INFINITY, 1.0f64, false);
    let mut pace = Pace::default();
    let mut remnants = coarse;
    // The step as it was before it was made longer and lost its remnants.
    let mut plain: Option<Vec<f64>> = None;
    let (iterate, status) = loop {
        let mut iterate = Iterate::new(&run, penalty, loose, beta, duals.as_deref())?;
        if let Some(plain) = plain.take().filter(|_| iterate.value > last) {
            // It was the length, or the remnants that went.
            remnants &= reach > 1.0;
            (beta, reach, slow) = (plain, 1.0, false);
            continue;
        }
        let (next, change) = loop {
            let now = &iterate.point.theta;
            // [Subrahmanya2010] Algorithm 2: 1/β_k = B_k(r).
            let next = penalty.advance(&iterate.norms, now, false);
            let change = relative_change(&next, now);
            // Descent holds up to the machine's gap: a rise asks for a smaller one, and so does rest.
            let doubtful = loose > 2.0 * accuracy && iterate.rests(change, last, problem.tol);
            if loose <= ACCURACY.1 || !(doubtful || iterate.rises_above(last)) {
                break (next, change);
            }
            if loose <= accuracy {
                accuracy = (1e-2 * accuracy).max(ACCURACY.1);
            }
            loose = accuracy;
            let start = iterate.point.duals();
            iterate = Iterate::new(&run, penalty, loose, iterate.point.theta, Some(&start))?;
        };
        let now = &iterate.point.theta;
        run.record_values(iterate.value, f64::NAN, change, active(now));
        if Threshold::passed(penalty, &next, &iterate.norms, iterate.loss, constant) {
            return collapsed(run, penalty);
        }
        if iterate.rests(change, last, problem.tol) {
            break (iterate, Status::Stationary);
        }
        if run.stopped() {
            break (iterate, Status::Stopped);
        }
        if run.iterations() >= problem.max_iter {
            break (iterate, Status::MaxIterations);
        }
        loose = if coarse {
            (ROUGH * (last - iterate.value) / iterate.point.primal.abs()).clamp(accuracy, ROUGHEST.max(accuracy))
        } else {
            accuracy
        };
        last = iterate.value;
        let slow_now = coarse && (change <= SLOW || reach > 1.0);
        reach = if slow_now && slow { (LONGER * reach).min(LONGEST) } else { 1.0 };
        slow = slow_now;
        pace = pace.next(now, &next, reach);
        let kept = penalty.advance(&iterate.norms, now, remnants);
        beta = if reach > 1.0 { pace.step(now, &kept) } else { kept };
        plain = (beta != next).then_some(next);
        duals = Some(if coarse { iterate.scaled_duals(problem, &beta) } else { iterate.point.duals() });
    };
    let (iterate, status) = iterate.settled(&run, penalty, accuracy, status)?;
    memory.duals = Some(iterate.point.duals());
    run.best = Some(iterate.point);
    run.finish_as(iterate.value, f64::NAN, f64::NAN, status)
}

/// How far each weight goes: the secant method for ln β_k' = ln β_k, weight by weight.
#[derive(Default)]
struct Pace {
    /// ln β_k' − ln β_k of the last step, and by how much it was lengthened.
    rate: Vec<f64>,
    factor: Vec<f64>,
}

impl Pace {
    /// After a step `factor` times the `rate` there was, the rate is another one: it is 0 after `factor` / (1 − new / old) times the new one.
    /// Where it has not fallen, or there is no step to compare with, the limit is what is left.
    fn next(&self, now: &[f64], next: &[f64], limit: f64) -> Self {
        let rate: Vec<f64> = now.iter().zip(next).map(|(now, next)| (next / now).ln()).collect();
        let factor = |k: usize| {
            let Some((old, factor)) = self.rate.get(k).zip(self.factor.get(k)) else { return limit };
            let wanted = factor / (1.0 - rate[k] / old);
            if wanted > 0.0 { wanted.clamp(1.0, limit) } else { limit }
        };
        let factor = (0..rate.len()).map(factor).collect();
        Self { rate, factor }
    }

    fn step(&self, now: &[f64], next: &[f64]) -> Vec<f64> {
        let far = |k: usize| if next[k] > 0.0 { now[k] * (self.factor[k] * self.rate[k]).exp() } else { 0.0 };
        (0..now.len()).map(far).collect()
    }
}

/// A solved weight vector as SMKL sees it.
struct Iterate {
    point: Point,
    /// r_k = ‖w_k‖² = β_k² s_k, summed over the decision functions.
    norms: Vec<f64>,
    /// Σ c ℓ.
    loss: f64,
    /// L.
    value: f64,
}

impl Iterate {
    fn new(
        run: &Run<'_>,
        penalty: &Penalty,
        accuracy: f64,
        beta: Vec<f64>,
        start: Option<&[Vec<f64>]>,
    ) -> Result<Self> {
        let (grams, parts) = (run.problem.grams, &run.problem.parts);
        let point = run.visit_active(accuracy, beta, start)?;
        let square: f64 = point.solutions.iter().map(|s| dot(&s.a, &s.a)).sum();
        // The slope is ½ (s + residual ‖a‖²): w lives in the stored factors, so what they left out does not count.
        let s = |t: usize| (2.0 * point.slope[t] - grams.residual(t) * square).max(0.0);
        let norms: Vec<f64> = point.theta.iter().enumerate().map(|(t, b)| b * b * s(t)).collect();
        let paid = |(p, s): (&Part<'_>, &Solution)| p.task.loss.total(p.task.y, &s.f, s.bias, p.task.cost);
        let loss = parts.iter().zip(&point.solutions).map(paid).sum();
        let value = penalty.value(&norms) + loss;
        Ok(Self { point, norms, loss, value })
    }

    /// Multipliers to start from at other weights: along their ray the dual objective is largest at s = A(a) / aᵀK_β a, or at the first
    /// bound.
    fn scaled_duals(&self, problem: &Problem<'_>, beta: &[f64]) -> Vec<Vec<f64>> {
        let mut duals = self.point.duals();
        if problem.machine.kink().is_some() {
            let form = 2.0 * dot(beta, &self.point.slope);
            let room = |(p, a): (&Part<'_>, &Vec<f64>)| {
                p.task.cost.iter().zip(a).map(|(c, a)| c / a.abs()).fold(f64::INFINITY, f64::min)
            };
            let bound = problem.parts.iter().zip(&duals).map(room).fold(f64::INFINITY, f64::min);
            let scale = (self.point.dual_sum / form.max(f64::MIN_POSITIVE)).clamp(0.0, bound.max(1.0));
            duals.iter_mut().flatten().for_each(|a| *a *= scale);
        }
        duals
    }

    fn rises_above(&self, last: f64) -> bool {
        self.value - last > 1e-12 * (last.abs() + self.point.primal.abs())
    }

    /// Has β come to rest, to the tolerance or as far as the machine can tell?
    fn rests(&self, change: f64, last: f64, tol: f64) -> bool {
        change <= tol || (change <= NOISE && self.value >= last)
    }

    /// Pruned and solved anew, so that all numbers speak of the weights returned; where these were stationary, until they are so again.
    fn settled(self, run: &Run<'_>, penalty: &Penalty, accuracy: f64, status: Status) -> Result<(Self, Status)> {
        let at_rest = status == Status::Stationary;
        let Some(mut beta) = penalty.prune(&self.norms, &self.point.theta, at_rest) else { return Ok((self, status)) };
        let (mut iterate, mut last) = (self, f64::INFINITY);
        for _ in 0..run.problem.max_iter {
            let start = iterate.point.duals();
            iterate = Self::new(run, penalty, accuracy, beta, Some(&start))?;
            beta = penalty.advance(&iterate.norms, &iterate.point.theta, false);
            let change = relative_change(&beta, &iterate.point.theta);
            if !at_rest || iterate.rests(change, last, run.problem.tol) {
                return Ok((iterate, status));
            }
            last = iterate.value;
        }
        Ok((iterate, Status::MaxIterations))
    }
}

/// ‖next − now‖₁ / ‖now‖₁.
pub(crate) fn relative_change(next: &[f64], now: &[f64]) -> f64 {
    l1_distance(next, now) / now.iter().sum::<f64>()
}

/// The best constant, with no kernel at all.
fn collapsed(mut run: Run<'_>, penalty: &Penalty) -> Result<Fit> {
    let (terms, parts) = (run.problem.grams.n_terms(), &run.problem.parts);
    let solution = |p: &Part<'_>| Solution::new(&p.task, constant_multipliers(&p.task), vec![0.0; p.task.y.len()]);
    let solutions: Vec<Solution> = parts.iter().map(solution).collect();
    let (primal, dual_sum) = (solutions.iter().map(|s| s.primal).sum(), solutions.iter().map(|s| s.dual_sum).sum());
    run.best =
        Some(Point { theta: vec![0.0; terms], solutions, primal, dual_sum, slope: vec![0.0; terms], images: None });
    let value = penalty.value(&vec![0.0; terms]) + primal;
    run.finish_as(value, f64::NAN, f64::NAN, Status::Stationary)
}

/// What to tell of a fit at C = `c` that kept no kernel: the C that would do better.
fn collapse_warning(problem: &Problem<'_>, penalty: &Penalty, c: f64) -> String {
    collapse_threshold(problem.grams, &problem.parts, penalty).error(c).to_string()
}
