//! Sparse multiple kernel learning: concave penalties of the block norms, by majorise–minimise.
//!
//! Solves  min over w, b :  L(w, b) = g(r) + Σ_i c_i ℓ(y_i, f(x_i) + b),   r_k = ‖w_k‖²,
//!   f = Σ_k ⟨w_k, φ_k⟩
//! to a stationary point, g a sum of group selection terms ([`Penalty`]), concave and increasing in
//! r.
//! In: terms K_1..K_M, a task (or several that share β), g.   Out: β, a, b, the value L.
//!   Paper: [Subrahmanya2010] Algorithm 2; page
//! docs/methods/smkl.md.
//!
//! A concave g lies below its tangent, g(r') ≤ g(r) + ½ Σ_k B_k (r'_k − r_k) with B_k = 2 ∂g/∂r_k,
//! so the machine for the kernel Σ_k β_k K_k, β_k = 1/B_k, minimises a bound that touches L at the
//! last iterate: L never rises but for the machine's own gap. Where steps are small for long they
//! are made longer, weight by weight, and taken back where L would rise.

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
    tuning::tuning,
    weights::Penalty,
};

tuning! { "smkl"
    /// The machine's final relative gap is the square of the tolerance, for multipliers are known
    /// to about the root of the gap, but at most this.
    largest_final_gap: f64 = 1e-6;
    /// While L falls by much, the machine's relative gap is at most this.
    largest_gap: f64 = 1e-2;
    /// While L falls by much, the machine's gap is this share of what L fell by in the last step.
    gap_decrease_share: f64 = 0.1;
    /// The machine's gap is multiplied by this where L rises in spite of the final gap.
    gap_factor: f64 = 1e-2;
    /// Steps are made longer, and machines solved less exactly, only at tolerances of at least
    /// this: docs/methods/smkl.md, below it all steps are those of the paper.
    least_tolerance_for_long_steps: f64 = 1e-5;
    /// Steps are made longer after two that change β by less than this, relative to its sum
    /// (docs/methods/smkl.md).
    slow_change: f64 = 0.2;
    /// The limit of the length of steps grows by this factor from one to the next
    /// (docs/methods/smkl.md).
    length_growth_factor: f64 = 2.0;
    /// Steps are made at most this many times as long as the paper's (docs/methods/smkl.md).
    longest_factor: f64 = 16.0;
}

/// The machine's relative gap is never smaller than this: less is rounding.
const ROUNDED_GAP: f64 = 1e-13;
/// A rise of L below this share of it is rounding.
const ROUNDED_RISE: f64 = 1e-12;
/// Changes of β below this are noise where L stands still: about the square root of the finest gap.
const NOISE: f64 = 1e-6;

impl Method for Smkl {
    fn fit(
        &self,
        job: &Job<'_>,
        memories: &mut Vec<Memory>,
        observer: &mut dyn Observer,
    ) -> Result<Model> {
        let penalty = Penalty::parse(&self.penalty, self.eps)?;
        // One machine of several that always says no is nothing odd.
        let alone = (job.tasks.len() == 1)
            .then(|| job.prepared.samples.prediction(job.request.multi_class));
        job.fit_global(memories, observer, &mut |problem, memory, observer| {
            let mut fit = fit_penalty(problem, &penalty, memory, observer)?;
            if fit.weights.iter().all(|w| *w == 0.0)
                || is_constant(&fit, &problem.parts, alone.as_ref())
            {
                fit.warnings.push(collapse_warning(problem, &penalty, job.request.c));
            }
            Ok(fit)
        })
    }
}

/// Minimises L from equal weights 1/M, the machine warm from the multipliers in `memory`. Weights
/// are not taken from there: L has many stationary points, and the answer must not depend on what
/// was fitted before.
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
    let constant: f64 = problem.parts.iter().map(|p| p.task.constant_objective()).sum();
    let mut accuracy = MachineAccuracy::new(problem.tol);
    let mut steps = LongSteps::new(problem.tol);
    let mut last = f64::INFINITY;
    let (point, status) = loop {
        let mut point = SmklPoint::new(&run, penalty, accuracy.now, beta, duals.as_deref())?;
        if let Some(plain) = steps.take_back(point.value > last) {
            beta = plain;
            continue;
        }
        let (next, change) = point.next_weights(&run, penalty, &mut accuracy, last)?;
        let now = &point.point.theta;
        run.record_values(point.value, f64::NAN, change, active(now));
        if Threshold::passed(penalty, &next, &point.norms, point.loss, constant) {
            return collapsed(run, penalty);
        }
        if point.rests(change, last, problem.tol) {
            break (point, Status::Stationary);
        }
        if run.stopped() || run.iterations() >= problem.max_iter {
            let status = run.status_at_rest(false);
            break (point, status);
        }
        accuracy.follow(last - point.value, point.point.primal.abs());
        last = point.value;
        beta = steps.lengthen(penalty, &point, next, change);
        duals = Some(if steps.allowed {
            point.scaled_duals(problem, &beta)
        } else {
            point.point.duals()
        });
    };
    let (point, status) = point.settled(&run, penalty, accuracy.last, status)?;
    memory.duals = Some(point.point.duals());
    run.best = Some(point.point);
    run.finish_as(point.value, f64::NAN, f64::NAN, status)
}

/// The machine's relative gap: coarse while L falls by much, finer where L rises or comes to rest.
struct MachineAccuracy {
    /// May the gap be coarser than the last one?
    may_be_coarse: bool,
    /// The gap asked for now.
    now: f64,
    /// The gap asked for at last.
    last: f64,
}

impl MachineAccuracy {
    fn new(tol: f64) -> Self {
        let last = tol.powi(2).clamp(ROUNDED_GAP, TUNING.largest_final_gap);
        let may_be_coarse = tol >= TUNING.least_tolerance_for_long_steps;
        Self {
            may_be_coarse,
            now: if may_be_coarse { TUNING.largest_gap.max(last) } else { last },
            last,
        }
    }

    /// Asks for the last gap, and for a finer one where that was asked for already.
    fn refine(&mut self) {
        if self.now <= self.last {
            self.last = (TUNING.gap_factor * self.last).max(ROUNDED_GAP);
        }
        self.now = self.last;
    }

    /// Asks for a gap in proportion to the decrease of L in the last step; `size` is the machine's
    /// objective.
    fn follow(&mut self, decrease: f64, size: f64) {
        self.now = if self.may_be_coarse {
            (TUNING.gap_decrease_share * decrease / size)
                .clamp(self.last, TUNING.largest_gap.max(self.last))
        } else {
            self.last
        };
    }
}

/// Steps made longer than the paper's where those are small for long, and taken back where L rises
/// by it.
struct LongSteps {
    /// May steps be made longer at this tolerance?
    allowed: bool,
    /// May remnants of ε go on the way?
    remnants: bool,
    /// How many times as long as the paper's the last step was at most.
    factor: f64,
    /// Was the last step slow?
    slow: bool,
    secant: SecantSteps,
    /// The last step as it was before it was made longer and lost its remnants, if it was.
    plain: Option<Vec<f64>>,
}

impl LongSteps {
    fn new(tol: f64) -> Self {
        let allowed = tol >= TUNING.least_tolerance_for_long_steps;
        let secant = SecantSteps::default();
        Self { allowed, remnants: allowed, factor: 1.0, slow: false, secant, plain: None }
    }

    /// The plain step, to be made instead of the last one if L rises by that: its length was to
    /// blame, or the remnants that went.
    fn take_back(&mut self, rises: bool) -> Option<Vec<f64>> {
        let plain = self.plain.take().filter(|_| rises)?;
        self.remnants &= self.factor > 1.0;
        (self.factor, self.slow) = (1.0, false);
        Some(plain)
    }

    /// The weights after `next`, the paper's step from `point`, where that changes β by `change`.
    fn lengthen(
        &mut self,
        penalty: &Penalty,
        point: &SmklPoint,
        next: Vec<f64>,
        change: f64,
    ) -> Vec<f64> {
        let now = &point.point.theta;
        let slow = self.allowed && (change <= TUNING.slow_change || self.factor > 1.0);
        let longer = slow && self.slow;
        self.factor = if longer {
            (TUNING.length_growth_factor * self.factor).min(TUNING.longest_factor)
        } else {
            1.0
        };
        self.slow = slow;
        self.secant = self.secant.next(now, &next, self.factor);
        let kept = penalty.advance(&point.norms, now, self.remnants);
        let beta = if self.factor > 1.0 { self.secant.step(now, &kept) } else { kept };
        self.plain = (beta != next).then_some(next);
        beta
    }
}

/// The secant method for ln β_k' = ln β_k, weight by weight: how far each weight goes.
#[derive(Default)]
struct SecantSteps {
    /// ln β_k' − ln β_k of the last step.
    rate: Vec<f64>,
    /// By how much the last step was lengthened.
    factor: Vec<f64>,
}

impl SecantSteps {
    /// Secant estimate of the step that brings the rate to zero: `factor` / (1 − new / old) times
    /// the new rate, where the last step was `factor` times the old one. Where the rate has not
    /// fallen, or there is no step to compare with, it is `limit` times the new rate.
    fn next(&self, now: &[f64], next: &[f64], limit: f64) -> Self {
        let rate: Vec<f64> = now.iter().zip(next).map(|(now, next)| (next / now).ln()).collect();
        let factor = |k: usize| {
            let Some((old, factor)) = self.rate.get(k).zip(self.factor.get(k)) else {
                return limit;
            };
            let wanted = factor / (1.0 - rate[k] / old);
            if wanted > 0.0 { wanted.clamp(1.0, limit) } else { limit }
        };
        let factor = (0..rate.len()).map(factor).collect();
        Self { rate, factor }
    }

    fn step(&self, now: &[f64], next: &[f64]) -> Vec<f64> {
        let far = |k: usize| {
            if next[k] > 0.0 { now[k] * (self.factor[k] * self.rate[k]).exp() } else { 0.0 }
        };
        (0..now.len()).map(far).collect()
    }
}

/// A solved weight vector as SMKL sees it.
struct SmklPoint {
    point: Point,
    /// r_k = ‖w_k‖² = β_k² s_k, summed over the decision functions.
    norms: Vec<f64>,
    /// The loss Σ c ℓ.
    loss: f64,
    /// The objective L.
    value: f64,
}

impl SmklPoint {
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
        // The slope is ½ (s + residual ‖a‖²): w lives in the stored factors, so what they left out
        // does not count.
        let s = |t: usize| (2.0 * point.slope[t] - grams.residual(t) * square).max(0.0);
        let norms: Vec<f64> = point.theta.iter().enumerate().map(|(t, b)| b * b * s(t)).collect();
        let paid =
            |(p, s): (&Part<'_>, &Solution)| p.task.loss.total(p.task.y, &s.f, s.bias, p.task.cost);
        let loss = parts.iter().zip(&point.solutions).map(paid).sum();
        let value = penalty.value(&norms) + loss;
        Ok(Self { point, norms, loss, value })
    }

    /// The weights of the paper's next step and their relative change, from a machine as exact as
    /// that takes: descent holds up to the machine's gap, so a rise asks for a smaller one, and so
    /// does rest.
    fn next_weights(
        &mut self,
        run: &Run<'_>,
        penalty: &Penalty,
        accuracy: &mut MachineAccuracy,
        last: f64,
    ) -> Result<(Vec<f64>, f64)> {
        loop {
            let now = &self.point.theta;
            // [Subrahmanya2010] Algorithm 2: 1/β_k = B_k(r).
            let next = penalty.advance(&self.norms, now, false);
            let change = relative_change(&next, now);
            let doubtful =
                accuracy.now > 2.0 * accuracy.last && self.rests(change, last, run.problem.tol);
            if accuracy.now <= ROUNDED_GAP || !(doubtful || self.rises_above(last)) {
                return Ok((next, change));
            }
            accuracy.refine();
            let start = self.point.duals();
            *self = Self::new(run, penalty, accuracy.now, self.point.theta.clone(), Some(&start))?;
        }
    }

    /// Multipliers to start from at other weights: along their ray the dual objective is largest at
    /// s = A(a) / aᵀK_β a, or at the first bound.
    fn scaled_duals(&self, problem: &Problem<'_>, beta: &[f64]) -> Vec<Vec<f64>> {
        let mut duals = self.point.duals();
        if problem.machine.kink().is_some() {
            let form = 2.0 * dot(beta, &self.point.slope);
            let to_bound = |(p, a): (&Part<'_>, &Vec<f64>)| {
                p.task.cost.iter().zip(a).map(|(c, a)| c / a.abs()).fold(f64::INFINITY, f64::min)
            };
            let bound =
                problem.parts.iter().zip(&duals).map(to_bound).fold(f64::INFINITY, f64::min);
            let scale =
                (self.point.dual_sum / form.max(f64::MIN_POSITIVE)).clamp(0.0, bound.max(1.0));
            duals.iter_mut().flatten().for_each(|a| *a *= scale);
        }
        duals
    }

    fn rises_above(&self, last: f64) -> bool {
        self.value - last > ROUNDED_RISE * (last.abs() + self.point.primal.abs())
    }

    /// Has β come to rest, to the tolerance or as far as the machine can tell?
    fn rests(&self, change: f64, last: f64, tol: f64) -> bool {
        change <= tol || (change <= NOISE && self.value >= last)
    }

    /// Prunes the weights and solves anew, so that all numbers belong to the weights returned;
    /// where these were stationary, until they are so again.
    fn settled(
        self,
        run: &Run<'_>,
        penalty: &Penalty,
        accuracy: f64,
        status: Status,
    ) -> Result<(Self, Status)> {
        let at_rest = status == Status::Stationary;
        let Some(mut beta) = penalty.prune(&self.norms, &self.point.theta, at_rest) else {
            return Ok((self, status));
        };
        let (mut point, mut last) = (self, f64::INFINITY);
        for _ in 0..run.problem.max_iter {
            let start = point.point.duals();
            point = Self::new(run, penalty, accuracy, beta, Some(&start))?;
            beta = penalty.advance(&point.norms, &point.point.theta, false);
            let change = relative_change(&beta, &point.point.theta);
            if !at_rest || point.rests(change, last, run.problem.tol) {
                return Ok((point, status));
            }
            last = point.value;
        }
        Ok((point, Status::MaxIterations))
    }
}

/// The change ‖next − now‖₁ of weights, relative to their sum ‖now‖₁.
pub(crate) fn relative_change(next: &[f64], now: &[f64]) -> f64 {
    l1_distance(next, now) / now.iter().sum::<f64>()
}

/// The fit of the best constant, with no kernel at all.
fn collapsed(mut run: Run<'_>, penalty: &Penalty) -> Result<Fit> {
    let (terms, parts) = (run.problem.grams.n_terms(), &run.problem.parts);
    let solution = |p: &Part<'_>| {
        Solution::new(&p.task, constant_multipliers(&p.task), vec![0.0; p.task.y.len()])
    };
    let solutions: Vec<Solution> = parts.iter().map(solution).collect();
    let (primal, dual_sum) =
        (solutions.iter().map(|s| s.primal).sum(), solutions.iter().map(|s| s.dual_sum).sum());
    run.best = Some(Point {
        theta: vec![0.0; terms],
        solutions,
        primal,
        dual_sum,
        slope: vec![0.0; terms],
        images: None,
    });
    let value = penalty.value(&vec![0.0; terms]) + primal;
    run.finish_as(value, f64::NAN, f64::NAN, Status::Stationary)
}

/// The warning for a fit at C = `c` that kept no kernel: it names the C that would do better.
fn collapse_warning(problem: &Problem<'_>, penalty: &Penalty, c: f64) -> String {
    collapse_threshold(problem.grams, &problem.parts, penalty).error(c).to_string()
}
