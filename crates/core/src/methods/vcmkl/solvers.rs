//! Roads to good rules that start from a hard assignment: `ccp`, `am`, `sgd`.
//!
//! All lower  J(w, b, ρ) = ½ Σ ‖w_m‖² − Σ ν_m ρ_m + Σ_{I+} c_i max_m ξ_im + Σ_{I−} c_i min_m ξ_im.
//! P is concave in λ, so replacing λ by the cheapest owner of every negative and solving again never raises it.

use std::time::Instant;

use super::{
    Inner, Instance, Margin,
    assign::{reassign, starts},
};
use crate::{
    Error, Result,
    data::Rng,
    linalg::{Matrix, axpy},
    trace::{IterRecord, Observer, Status},
};

/// Decrease that does not count, relative.
const STILL: f64 = 1e-9;
/// Starts that there are for each that is followed to its end, and the reassignments they are looked at for.
const LOOKED_AT: usize = 4;
const LOOK: usize = 3;

/// How far a solver may go.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// Starts (`ccp` with fixed margins).
    pub starts: usize,
    /// Of k-means and of samples drawn.
    pub seed: u64,
    /// Relative change that ends `pddp` and `am`.
    pub tol: f64,
    /// Iterations at most.
    pub max_iter: usize,
}

/// What a solver leaves.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The rules.
    pub inner: Inner,
    /// How negatives are shared among them.
    pub lambda: Matrix,
    /// J at the rules; for the printed PDDP, φ.
    pub objective: f64,
    /// A lower bound on J over all rules: `exact` only, NaN elsewhere.
    pub lower: f64,
    /// How it ended.
    pub status: Status,
    /// Quadratic programs solved.
    pub qp_calls: usize,
}

/// Trace, clock and observer of a run.
pub struct Watch<'a> {
    observer: &'a mut dyn Observer,
    began: Instant,
    /// One record per iteration.
    pub trace: Vec<IterRecord>,
    /// Has the observer asked to stop?
    pub stopped: bool,
}

impl<'a> Watch<'a> {
    /// Before the first iteration.
    pub fn new(observer: &'a mut dyn Observer) -> Self {
        Self { observer, began: Instant::now(), trace: Vec::new(), stopped: false }
    }

    /// One iteration: the best objective, a lower bound or NaN, the measure of rest, and the rules that are not constant.
    pub fn record(&mut self, objective: f64, dual: f64, gap: f64, inner: &Inner) {
        let active = inner.norms.iter().filter(|n| **n > 0.0).count();
        let (iteration, seconds) = (self.trace.len() + 1, self.began.elapsed().as_secs_f64());
        let record = IterRecord { iteration, objective, dual, gap, active, seconds };
        self.trace.push(record);
        self.stopped |= self.observer.on_iteration(&record).is_break();
    }

    /// The status of a run that came to rest, unless it was stopped or ran out of iterations.
    pub fn status(&self, at_rest: bool) -> Status {
        match (at_rest, self.stopped) {
            (true, _) => Status::Stationary,
            (false, true) => Status::Stopped,
            (false, false) => Status::MaxIterations,
        }
    }
}

/// Convex–concave descent from several starts; the lowest J wins. Each record is the best J so far. The best clustering is followed to its
/// end; of the others, those that are lowest after a few reassignments.
pub fn ccp(instance: &Instance<'_>, effort: Effort, watch: &mut Watch<'_>) -> Result<Outcome> {
    // With ν a lower J is no sign of better rules, so the best clustering decides.
    let followed = if instance.margin == Margin::Fixed { effort.starts.max(1) } else { 1 };
    let count = if followed > 1 { LOOKED_AT * followed } else { 1 };
    let mut calls = 0;
    let mut lowest = f64::INFINITY;
    let mut owners = starts(instance, count, effort.seed)?;
    if owners.len() > followed {
        let mut seen = Vec::new();
        // The best clustering may begin badly and end well.
        for owner in owners.split_off(1) {
            let look = Effort { max_iter: LOOK.min(effort.max_iter), ..effort };
            let found = descend(instance, owner, look, Some(lowest), watch)?;
            calls += found.qp_calls;
            lowest = lowest.min(found.objective);
            seen.push((found.objective, owners_of(&found.lambda)));
            if watch.stopped {
                break;
            }
        }
        seen.sort_by(|a, b| a.0.total_cmp(&b.0));
        owners.extend(seen.into_iter().map(|(_, owner)| owner).take(followed - 1));
    }
    let mut best: Option<Outcome> = None;
    for owner in owners {
        let found = descend(instance, owner, effort, Some(lowest), watch)?;
        calls += found.qp_calls;
        lowest = lowest.min(found.objective);
        if best.as_ref().is_none_or(|b| found.objective < b.objective) {
            best = Some(found);
        }
        if watch.stopped {
            break;
        }
    }
    let mut best = best.ok_or_else(|| Error::numerical("ccp", "no start"))?;
    best.qp_calls = calls;
    Ok(best)
}

/// Rule numbers of a hard λ; of a soft one, the largest share.
pub(super) fn owners_of(lambda: &Matrix) -> Vec<usize> {
    let largest = |row: &[f64]| (0..row.len()).fold(0, |b, m| if row[m] > row[b] { m } else { b });
    (0..lambda.rows()).map(|k| largest(lambda.row(k))).collect()
}

/// Descent from one assignment; `known` is the best J of other starts, for the trace.
pub fn descend(
    instance: &Instance<'_>,
    mut owner: Vec<usize>,
    effort: Effort,
    known: Option<f64>,
    watch: &mut Watch<'_>,
) -> Result<Outcome> {
    let mut inner = instance.solve(&instance.hard(&owner), None)?;
    let mut objective = instance.learning_objective(&inner);
    let (mut calls, mut at_rest) = (1, false);
    for _ in 0..effort.max_iter {
        let next_owner = reassign(instance, &inner);
        let moved = next_owner.iter().zip(&owner).filter(|(a, b)| a != b).count();
        watch.record(
            known.unwrap_or(f64::INFINITY).min(objective),
            f64::NAN,
            moved as f64 / owner.len() as f64,
            &inner,
        );
        if moved == 0 || watch.stopped {
            at_rest = moved == 0;
            break;
        }
        let next = instance.solve(&instance.hard(&next_owner), Some(&inner))?;
        calls += 1;
        let value = instance.learning_objective(&next);
        at_rest = value.is_nan() || value >= objective - STILL * objective.abs();
        if value <= objective {
            (owner, inner, objective) = (next_owner, next, value);
        }
        if at_rest {
            break;
        }
    }
    let lambda = instance.hard(&owner);
    Ok(Outcome { inner, lambda, objective, lower: f64::NAN, status: watch.status(at_rest), qp_calls: calls })
}

/// Alternating minimisation, one rule at a time, from the best k-means start.
pub fn am(instance: &Instance<'_>, effort: Effort, watch: &mut Watch<'_>) -> Result<Outcome> {
    let mut owner = starts(instance, 1, effort.seed)?.swap_remove(0);
    let rules = instance.rules();
    let constant = Matrix::zeros(instance.price.len(), rules);
    let mut inner = instance.inner(constant, vec![1.0; rules], vec![1.0; rules], &instance.hard(&owner));
    let mut objective = f64::INFINITY;
    let (mut calls, mut at_rest) = (0, false);
    for _ in 0..effort.max_iter {
        let lambda = instance.hard(&owner);
        for m in 0..rules {
            inner = instance.solve_rule(m, &lambda, &inner)?;
            calls += 1;
        }
        let value = instance.learning_objective(&inner);
        let change = (objective - value) / value.abs().max(f64::MIN_POSITIVE);
        objective = value.min(objective);
        let next_owner = reassign(instance, &inner);
        let unmoved = next_owner == owner;
        watch.record(objective, f64::NAN, change, &inner);
        at_rest = unmoved && change <= effort.tol;
        if at_rest || watch.stopped {
            break;
        }
        owner = next_owner;
    }
    let lambda = instance.hard(&owner);
    Ok(Outcome { inner, lambda, objective, lower: f64::NAN, status: watch.status(at_rest), qp_calls: calls })
}

/// Stochastic subgradients of J with steps 1/t and the average of the second half; a baseline without a certificate. Runs `max_iter`
/// passes at most and ends when the averaged J changes by less than `tol`.
pub fn sgd(instance: &Instance<'_>, effort: Effort, watch: &mut Watch<'_>) -> Result<Outcome> {
    if instance.margin != Margin::Fixed {
        return Err(Error::param("nu", "left out with solver sgd: the multi-ν objective is unbounded below", "given"));
    }
    let (n, rules) = (instance.price.len(), instance.rules());
    let mut sign = vec![1.0; n];
    instance.negatives.iter().for_each(|&i| sign[i] = -1.0);
    let mut rng = Rng::new(effort.seed);
    // a, f without bias, b; rule-major, true values are `scale` times the stored ones.
    let (mut a, mut f, mut bias) = (vec![vec![0.0; n]; rules], vec![vec![0.0; n]; rules], vec![1.0; rules]);
    // Rules that start equal stay equal: each begins as the mean of its cluster.
    let owner = starts(instance, 1, effort.seed)?.swap_remove(0);
    for m in 0..rules {
        let own: Vec<usize> =
            instance.negatives.iter().zip(&owner).filter(|(_, o)| **o == m).map(|(i, _)| *i).collect();
        for (rows, side) in [(&own, -1.0), (&instance.positives, 1.0)] {
            for &i in rows {
                let step = if own.is_empty() { 0.0 } else { side / rows.len() as f64 };
                a[m][i] += step;
                axpy(step, instance.kernels[m].row(i), &mut f[m]);
            }
        }
    }
    let mut scale = 1.0;
    let (mut mean_a, mut mean_b) = (vec![vec![0.0; n]; rules], vec![0.0; rules]);
    let total: f64 = instance.price.iter().sum();
    // The first step moves a decision value by about 1.
    let (mut t, mut kept) = (1.0 + total, 0.0);
    let mut best: Option<(f64, Inner)> = None;
    let mut at_rest = false;
    let mut last = f64::INFINITY;
    for pass in 0..effort.max_iter {
        // Restarting the average at powers of two keeps it over the last half.
        if (pass + 1).is_power_of_two() {
            mean_a.iter_mut().for_each(|m| m.fill(0.0));
            (mean_b, kept) = (vec![0.0; rules], 0.0);
        }
        for _ in 0..n {
            let i = rng.below(n);
            let output = |m: usize| scale * f[m][i] + bias[m];
            // A positive pays its worst rule, a negative its cheapest: in both cases the smallest output.
            let m = (0..rules).fold(0, |b, m| if output(m) < output(b) { m } else { b });
            let pays = 1.0 - sign[i] * output(m) > 0.0;
            let rate = 1.0 / t;
            scale *= 1.0 - rate;
            if pays {
                let step = rate * n as f64 * instance.price[i] * sign[i];
                a[m][i] += step / scale;
                axpy(step / scale, instance.kernels[m].row(i), &mut f[m]);
                bias[m] += step;
            }
            t += 1.0;
        }
        for m in 0..rules {
            axpy(scale, &a[m], &mut mean_a[m]);
            mean_b[m] += bias[m];
        }
        kept += 1.0;
        let mut alpha = Matrix::zeros(n, rules);
        (0..n).for_each(|i| (0..rules).for_each(|m| alpha[(i, m)] = sign[i] * mean_a[m][i] / kept));
        let b = mean_b.iter().map(|b| b / kept).collect();
        let lambda = instance.hard(&owner);
        let inner = instance.inner(alpha, b, vec![1.0; rules], &lambda);
        let value = instance.learning_objective(&inner);
        let change = (last - value).abs() / value.abs();
        last = value;
        let lowest = best.as_ref().map_or(f64::INFINITY, |b| b.0);
        watch.record(lowest.min(value), f64::NAN, change, &inner);
        if value < lowest {
            best = Some((value, inner));
        }
        at_rest = pass >= 8 && change <= 0.1 * effort.tol;
        if at_rest || watch.stopped {
            break;
        }
    }
    let (objective, mut inner) = best.ok_or_else(|| Error::numerical("sgd", "no pass gave a finite objective"))?;
    inner.dual = f64::NAN;
    let lambda = instance.hard(&reassign(instance, &inner));
    Ok(Outcome { inner, lambda, objective, lower: f64::NAN, status: watch.status(at_rest), qp_calls: 0 })
}
