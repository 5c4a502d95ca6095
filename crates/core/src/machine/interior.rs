//! Interior-point method for piecewise linear losses on a factor: K = F Fᵀ with far fewer columns
//! than rows.
//!
//! Solves the problem of [`super::smo`] in variables x_k in [0, u_k] with a_i = Σ σ_k x_k: one per
//! sample where the multiplier has a sign, two where it may have both,
//!   min over x :  ½ aᵀKa + Σ_k q_k x_k,   Σ_i a_i = 0 if there is a bias.
//! With slacks z, v of the bounds: σ(f + b) + q − z + v = 0, x z = μ, (u − x) v = μ. A Newton step
//! on these is the system
//!   (K + diag(1/e)) δa + β 1 = r,   e_i = Σ_k 1 / (z_k/x_k + v_k/(u_k − x_k)),
//! of [`System`], which costs n·columns² and no n × n matrix. Predictor and corrector share one
//! factorisation. Steps are computed with a truncated factor, which leaves out a small share of the
//! trace, and bounds with the kernel itself; where steps no longer help, the factor is truncated
//! less.
//! In: K in its bases, the task.
//!   Out: a feasible a with both bounds, whatever the accuracy reached.

use super::{Combined, Solution, Stop, Task, system::WeightedSystem};
use crate::{
    Result,
    gram::EXACT,
    linalg::mehrotra::{self, Progress, centring, limit},
    tuning::tuning,
};

tuning! { "machine_interior"
    /// The method ends after this many steps with the best point it has found.
    most_steps: usize = 100;
    /// Slacks are at least this, in units of decision values, where the method starts from
    /// multipliers that were found before: much less than the 1 of a cold start, and far enough
    /// from the bounds for long first steps.
    warm_slack: f64 = 0.1;
    /// A cold start puts a multiplier this far from its lower bound, in units of its interval,
    /// where decision values would then be about 1.
    cold_margin_share: f64 = 0.5;
    /// A warm start keeps a multiplier this far from its bounds, in units of its interval, where
    /// decision values would then be about 1.
    warm_margin_share: f64 = 0.1;
    /// A warm start moves no multiplier further from its bounds than this share of its interval.
    largest_warm_margin_share: f64 = 0.01;
    /// Share of the kernel's trace that the first factor leaves out: steps need less than the
    /// bounds, and columns cost their square.
    first_truncated_trace_share: f64 = 1e-4;
    /// Where steps no longer help, the share of the trace that is left out is multiplied by this.
    truncation_factor: f64 = 1e-2;
    /// A multiplier this close to its bound, in units of its interval, is at the bound if its slack
    /// is larger than that distance.
    at_bound_share: f64 = 1e-6;
    /// The stiffness of a variable is at least this, in units of the kernel's mean diagonal: a free
    /// variable then makes a shorter step, and the system stays solvable.
    least_stiffness: f64 = 1e-9;
}

/// Solves the task with the tube's half-width `kink` (0 for the hinge).
pub(super) fn solve(
    kernel: &Combined,
    task: &Task<'_>,
    kink: f64,
    start: Option<&[f64]>,
    stop: Stop,
) -> Result<Solution> {
    let mut truncated = TUNING.first_truncated_trace_share;
    let mut factor = kernel.truncated(truncated);
    let size = factor.diagonal().iter().sum::<f64>() / task.y.len() as f64;
    let mut point = InteriorDual::new(task, kink, size).approach(&factor, start);
    let mut best: Option<Solution> = None;
    let mut progress = Progress::new();
    for step in 0..TUNING.most_steps {
        let a = point.multipliers();
        let f = kernel.times(&a);
        if step == 0 {
            point.set_slacks(task, &f, if start.is_some() { TUNING.warm_slack } else { 1.0 });
        }
        point.keep_better(kernel, task, stop, &mut best);
        if best.as_ref().is_some_and(|b| stop.reached(b)) {
            break;
        }
        progress.record(best.as_ref().map_or(f64::INFINITY, Solution::gap));
        if progress.stalls() && truncated > EXACT {
            truncated = (TUNING.truncation_factor * truncated).max(EXACT);
            progress.forgive();
            factor = kernel.truncated(truncated);
        }
        if !point.step(&factor, task, &a, &f)? && truncated <= EXACT {
            break;
        }
    }
    Ok(best
        .unwrap_or_else(|| Solution::new(task, vec![0.0; task.y.len()], vec![0.0; task.y.len()])))
}

/// One variable and the slacks of its bounds.
#[derive(Debug, Clone, Copy)]
struct Variable {
    sample: usize,
    sign: f64,
    upper: f64,
    /// q, the linear term of the objective.
    linear: f64,
    x: f64,
    z: f64,
    v: f64,
}

impl Variable {
    /// The slope of the objective along x, for decision values f.
    fn slope(&self, f: &[f64], bias: f64) -> f64 {
        self.sign * (f[self.sample] + bias) + self.linear
    }

    /// z/x + v/(u − x).
    fn stiffness(&self, least: f64) -> f64 {
        (self.z / self.x + self.v / (self.upper - self.x)).max(least)
    }
}

/// Multipliers on their way to the solution, strictly inside their bounds.
#[derive(Debug, Clone)]
pub struct InteriorDual {
    variables: Vec<Variable>,
    samples: usize,
    bias: f64,
    least_stiffness: f64,
}

/// How much one step changes x, z and v.
pub type Change = [f64; 3];

/// The right-hand sides of a Newton step.
pub struct NewtonTarget {
    /// low, high and h of every variable: its stiffness times δx is h − σ(δf + β).
    pull: Vec<[f64; 3]>,
    /// δa/e + δf + β = right.
    pub right: Vec<f64>,
}

impl InteriorDual {
    /// Every multiplier in the middle of its interval; `size` is the mean diagonal of the kernel.
    pub fn new(task: &Task<'_>, kink: f64, size: f64) -> Self {
        let mut variables = Vec::new();
        for (i, (&y, &cost)) in task.y.iter().zip(task.cost).enumerate() {
            let (low, high) = task.loss.dual_interval(y);
            for (sign, end) in [(1.0, high), (-1.0, -low)] {
                if end > 0.0 {
                    let upper = end * cost;
                    let linear = kink - sign * y;
                    variables.push(Variable {
                        sample: i,
                        sign,
                        upper,
                        linear,
                        x: 0.5 * upper,
                        z: 1.0,
                        v: 1.0,
                    });
                }
            }
        }
        Self {
            variables,
            samples: task.y.len(),
            bias: 0.0,
            least_stiffness: TUNING.least_stiffness * size,
        }
    }

    /// Moves every multiplier near `start` if there is one, else to where the decision values are
    /// about 1.
    fn approach(mut self, kernel: &Combined, start: Option<&[f64]>) -> Self {
        // Half of every interval would make decision values of this size; they should be about 1,
        // and much less beside a start.
        let size = kernel.times(&self.multipliers()).iter().fold(1.0f64, |m, f| m.max(f.abs()));
        for k in &mut self.variables {
            let found = start.map_or(0.0, |a| (k.sign * a[k.sample]).max(0.0));
            let margin = if start.is_some() {
                (TUNING.warm_margin_share / size).min(TUNING.largest_warm_margin_share)
            } else {
                TUNING.cold_margin_share / size
            };
            let margin = margin * k.upper;
            k.x = found.clamp(margin, k.upper - margin);
        }
        self
    }

    /// Starts near multipliers a with decision values f: strictly inside the bounds, every pair
    /// with a product of at least `product`.
    pub fn start_near(mut self, task: &Task<'_>, a: &[f64], f: &[f64], product: f64) -> Self {
        self.bias = task.best_bias(f);
        let nonzero = a.iter().filter(|a| **a != 0.0).count().max(1) as f64;
        let typical = a.iter().map(|a| a.abs()).sum::<f64>() / nonzero;
        // Where slack and multiplier are both zero they share the product as decision values of
        // size 1 and typical multipliers would.
        let least = (product / typical).sqrt();
        for k in &mut self.variables {
            let slope = k.slope(f, self.bias);
            let inside = |slack: f64| (product / slack.max(least)).min(0.5 * k.upper);
            let (low, high) = (inside(slope), inside(-slope));
            k.x = (k.sign * a[k.sample]).clamp(low, k.upper - high);
            (k.z, k.v) = (slope.max(product / k.x), (-slope).max(product / (k.upper - k.x)));
        }
        self
    }

    /// Takes the bias that is best for the decision values f, and slacks of at least `least` that
    /// close the residual.
    fn set_slacks(&mut self, task: &Task<'_>, f: &[f64], least: f64) {
        self.bias = task.best_bias(f);
        for k in &mut self.variables {
            let slope = k.slope(f, self.bias);
            (k.z, k.v) = (least + slope.max(0.0), least + (-slope).max(0.0));
        }
    }

    /// Takes the best bias and slacks so large that all pairs have products of one size; returns
    /// about that size.
    pub fn set_even_slacks(&mut self, task: &Task<'_>, f: &[f64]) -> f64 {
        let bias = task.best_bias(f);
        let least =
            self.variables.iter().map(|k| k.slope(f, bias).abs()).fold(f64::MIN_POSITIVE, f64::max);
        self.set_slacks(task, f, least);
        self.complementarity(&vec![[0.0; 3]; self.variables.len()], 0.0) / self.pairs()
    }

    /// Makes Σ a_i = 0 by shrinking the multipliers of the heavier sign.
    pub fn close_sum(&mut self, task: &Task<'_>) {
        if task.intercept {
            let (sign, factor) = heavier_sign(&self.multipliers());
            self.variables.iter_mut().filter(|k| k.sign == sign).for_each(|k| k.x *= factor);
        }
    }

    /// e = −da/df: how far multipliers move where decision values do.
    pub fn dual_response(&self) -> Vec<f64> {
        let mut weight = vec![0.0; self.samples];
        self.variables
            .iter()
            .for_each(|k| weight[k.sample] += 1.0 / k.stiffness(self.least_stiffness));
        weight
    }

    /// The multipliers a as they stand.
    pub fn multipliers(&self) -> Vec<f64> {
        let mut a = vec![0.0; self.samples];
        self.variables.iter().for_each(|k| a[k.sample] += k.sign * k.x);
        a
    }

    /// The multipliers with Σ a_i = 0, for which those of the heavier sign shrink; if `rounded`,
    /// those almost at a bound are put there first.
    pub fn feasible(&self, task: &Task<'_>, rounded: bool) -> Vec<f64> {
        let mut a = vec![0.0; self.samples];
        for k in &self.variables {
            let (share, slack) = (k.x / k.upper, (k.upper - k.x) / k.upper);
            let x = match rounded {
                true if share < TUNING.at_bound_share.min(k.z) => 0.0,
                true if slack < TUNING.at_bound_share.min(k.v) => k.upper,
                _ => k.x,
            };
            a[k.sample] += k.sign * x;
        }
        if task.intercept {
            let (sign, factor) = heavier_sign(&a);
            a.iter_mut().filter(|x| **x * sign > 0.0).for_each(|x| *x *= factor);
        }
        a
    }

    /// Replaces `best` by what the multipliers prove, with those almost at a bound put there or as
    /// they are, where that has a smaller gap.
    fn keep_better(
        &self,
        kernel: &Combined,
        task: &Task<'_>,
        stop: Stop,
        best: &mut Option<Solution>,
    ) {
        for rounded in [true, false] {
            let a = self.feasible(task, rounded);
            let mut solution = Solution::new(task, a.clone(), kernel.times(&a));
            let done = stop.reached(&solution);
            if best.as_ref().is_none_or(|b| solution.gap() < b.gap()) {
                solution.dual_response = Some(self.dual_response());
                *best = Some(solution);
            }
            if done {
                break;
            }
        }
    }

    /// Makes one predictor–corrector step; false where no progress can be made any more.
    fn step(&mut self, kernel: &Combined, task: &Task<'_>, a: &[f64], f: &[f64]) -> Result<bool> {
        let weight = self.dual_response();
        if !weight.iter().all(|w| w.is_finite()) {
            return Ok(false);
        }
        let system = WeightedSystem::new(kernel, &weight)?;
        let sum = task.intercept.then(|| -a.iter().sum::<f64>());
        // The Newton step towards x z and (u − x) v equal to `goal(k)`, and the change of the bias.
        let direction = |goal: &dyn Fn(usize) -> [f64; 2]| {
            let target = self.newton_target(f, &weight, goal);
            let (da, bias) = system.solve(&target.right, sum);
            let mut df = kernel.times(&da);
            df.iter_mut().for_each(|x| *x += bias);
            (self.changes(&target, &df), bias)
        };
        let (predictor, _) = direction(&|_| [0.0, 0.0]);
        let now = self.complementarity(&predictor, 0.0);
        let reached = self.complementarity(&predictor, self.step_to_boundary(&predictor));
        let target = centring(now, reached).clamp(0.0, 1.0) * now / self.pairs();
        let (corrector, bias) = direction(&|k| second_order_goal(target, predictor[k]));
        let length = self.step_to_boundary(&corrector) * mehrotra::TUNING.boundary_share;
        self.advance(&corrector, bias, length);
        Ok(length > mehrotra::TUNING.shortest_step_length)
    }

    /// Adds to the goals of all pairs what `towards` says of their products after a step of this
    /// length.
    pub fn recentre(
        &self,
        change: &[Change],
        length: f64,
        goals: &mut [[f64; 2]],
        towards: &dyn Fn(f64) -> f64,
    ) {
        for ((k, [dx, dz, dv]), goal) in self.variables.iter().zip(change).zip(goals) {
            goal[0] += towards((k.x + length * dx) * (k.z + length * dz));
            goal[1] += towards((k.upper - k.x - length * dx) * (k.v + length * dv));
        }
    }

    /// Number of pairs of a variable and a slack.
    pub fn pairs(&self) -> f64 {
        2.0 * self.variables.len() as f64
    }

    /// Σ x z + (u − x) v after a step of this length.
    pub fn complementarity(&self, change: &[Change], length: f64) -> f64 {
        let after = self.variables.iter().zip(change).map(|(k, [dx, dz, dv])| {
            (k.x + length * dx) * (k.z + length * dz)
                + (k.upper - k.x - length * dx) * (k.v + length * dv)
        });
        after.sum()
    }

    /// The right-hand sides of the Newton step towards x z and (u − x) v equal to `goal(k)` from
    /// decision values f; `weight` is e.
    pub fn newton_target(
        &self,
        f: &[f64],
        weight: &[f64],
        goal: &dyn Fn(usize) -> [f64; 2],
    ) -> NewtonTarget {
        let pull = self.variables.iter().enumerate().map(|(at, k)| {
            let [low, high] = goal(at);
            let (low, high) = (low - k.x * k.z, high - (k.upper - k.x) * k.v);
            let residual = k.slope(f, self.bias) - k.z + k.v;
            [low, high, -residual + low / k.x - high / (k.upper - k.x)]
        });
        let pull: Vec<[f64; 3]> = pull.collect();
        let mut right = vec![0.0; self.samples];
        self.variables.iter().zip(&pull).for_each(|(k, p)| {
            right[k.sample] += k.sign * p[2] / k.stiffness(self.least_stiffness);
        });
        right.iter_mut().zip(weight).for_each(|(r, w)| *r /= w);
        NewtonTarget { pull, right }
    }

    /// Changes of all variables where decision values and bias together change by `df`.
    pub fn changes(&self, target: &NewtonTarget, df: &[f64]) -> Vec<Change> {
        let change = self.variables.iter().zip(&target.pull).map(|(k, &[low, high, h])| {
            let dx = (h - k.sign * df[k.sample]) / k.stiffness(self.least_stiffness);
            [dx, (low - k.z * dx) / k.x, (high + k.v * dx) / (k.upper - k.x)]
        });
        change.collect()
    }

    /// Moves everything by a step of this length.
    pub fn advance(&mut self, change: &[Change], bias: f64, length: f64) {
        for (k, [dx, dz, dv]) in self.variables.iter_mut().zip(change) {
            k.x += length * dx;
            k.z += length * dz;
            k.v += length * dv;
        }
        self.bias += length * bias;
    }

    /// The longest step up to 1 that keeps every variable and slack from going below 0.
    pub fn step_to_boundary(&self, change: &[Change]) -> f64 {
        self.variables.iter().zip(change).fold(1.0, |t: f64, (k, [dx, dz, dv])| {
            t.min(limit(k.x, *dx))
                .min(limit(k.upper - k.x, -dx))
                .min(limit(k.z, *dz))
                .min(limit(k.v, *dv))
        })
    }
}

/// The sign whose multipliers add up to more, and the factor that makes both sums equal.
pub(super) fn heavier_sign(a: &[f64]) -> (f64, f64) {
    let (up, down) =
        a.iter().fold((0.0, 0.0), |(u, d), &x| if x > 0.0 { (u + x, d) } else { (u, d - x) });
    if up > down { (1.0, down / up) } else { (-1.0, if down > 0.0 { up / down } else { 1.0 }) }
}

/// Products that the corrector aims at: `target`, less the second-order term of the predictor.
pub fn second_order_goal(target: f64, [dx, dz, dv]: Change) -> [f64; 2] {
    [target - dx * dz, target + dx * dv]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        data::Rng,
        gram::Gram,
        linalg::Matrix,
        loss::{EpsilonInsensitive, Hinge, Loss},
        machine::{Machine, Smo},
    };

    #[test]
    fn meets_smo_on_the_same_kernel() {
        let (n, cols) = (120, 7);
        let mut rng = Rng::new(8);
        let f = Matrix::new(n, cols, (0..n * cols).map(|_| rng.normal()).collect()).unwrap();
        let mut k = Gram::zeros(n);
        for i in 0..n {
            for j in 0..n {
                k.data_mut()[i * n + j] = crate::linalg::dot(f.row(i), f.row(j));
            }
        }
        let (dense, factor) = (Combined::Dense(k), Combined::Factor(f.clone()));
        for (kink, intercept) in [(0.0, true), (0.0, false), (0.3, true), (0.3, false)] {
            let value = |i: usize| f[(i, 0)] + 0.5 * f[(i, 1)] + 0.8 * (i as f64).sin();
            let y: Vec<f64> =
                (0..n).map(|i| if kink > 0.0 { value(i) } else { value(i).signum() }).collect();
            let tube = EpsilonInsensitive::new(kink).unwrap();
            let loss: &dyn Loss = if kink > 0.0 { &tube } else { &Hinge };
            for price in [1e-3, 1.0, 50.0] {
                let cost: Vec<f64> =
                    (0..n).map(|i| if i % 4 == 0 { 3.0 * price } else { price }).collect();
                let task = Task { y: &y, cost: &cost, loss, intercept };
                let stop = Stop { absolute: 0.0, relative: 1e-6 };
                let ours = solve(&factor, &task, kink, None, stop).unwrap();
                let again = solve(&factor, &task, kink, Some(&ours.a), stop).unwrap();
                let smo = Smo { kink }.solve(&dense, &task, None, stop).unwrap();
                let told = format!(
                    "tube {kink}, bias {intercept}, price {price}: {} {} {:e}",
                    ours.primal,
                    smo.primal,
                    ours.gap()
                );
                assert!(
                    ours.gap() >= -1e-9 * ours.primal && ours.gap() <= 1e-6 * ours.primal,
                    "{told}"
                );
                let slip = 1e-12 * smo.primal;
                assert!(ours.primal >= smo.dual - slip && smo.primal >= ours.dual - slip, "{told}");
                assert!(
                    again.gap() <= 1e-6 * again.primal && again.primal >= ours.dual - slip,
                    "{told}"
                );
                assert!(
                    !intercept || ours.a.iter().sum::<f64>().abs() < 1e-9 * price * n as f64,
                    "{told}"
                );
                assert!((0..n).all(|i| {
                    let (low, high) = loss.dual_interval(y[i]);
                    (low * cost[i]..=high * cost[i]).contains(&ours.a[i])
                }));
            }
        }
    }
}
