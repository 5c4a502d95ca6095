//! Stochastic subgradients of J, a baseline without a certificate.
//!
//! Lowers  J(w, b) = ½ Σ ‖w_m‖² + Σ_{I+} c_i max_m ξ_im + Σ_{I−} c_i min_m ξ_im
//!   with steps 1/t and the average of the second half.
//! In: a veto–consensus problem with fixed margins, an effort.   Out: rules, λ, J.
//!   Page docs/methods/vcmkl.md.

use super::{
    Effort, FoundRules, Instance, Margin, RuleSolution,
    assign::{reassign, starts},
};
use crate::{
    Error, Result,
    data::Rng,
    linalg::{Matrix, axpy},
    outer::Recorder,
    tuning::tuning,
};

tuning! { "sgd"
    /// Passes over the samples before the run may end: averages change little by chance before.
    least_passes: usize = 8;
    /// The run ends when the averaged J changes by less than this share of the tolerance.
    rest_tolerance_share: f64 = 0.1;
}

/// Runs `max_iter` passes over the samples at most and ends when the averaged J changes by less
/// than `tol`.
pub fn sgd(
    instance: &Instance<'_>,
    effort: Effort,
    recorder: &mut Recorder<'_>,
) -> Result<FoundRules> {
    if instance.margin != Margin::Fixed {
        return Err(Error::param(
            "nu",
            "left out with solver sgd: the multi-ν objective is unbounded below",
            "given",
        ));
    }
    let mut rng = Rng::new(effort.seed);
    let owner = starts(instance, 1, effort.seed)?.swap_remove(0);
    let mut iterate = Subgradient::start(instance, &owner);
    let mut mean = RuleMean::zero(instance);
    let lambda = instance.hard(&owner);
    let mut best: Option<(f64, RuleSolution)> = None;
    let (mut at_rest, mut last) = (false, f64::INFINITY);
    for pass in 0..effort.max_iter {
        // Restarting the average at powers of two keeps it over the last half.
        if (pass + 1).is_power_of_two() {
            mean = RuleMean::zero(instance);
        }
        iterate.pass(&mut rng);
        mean.add(&iterate);
        let inner = mean.rules(&iterate, &lambda);
        let value = instance.learning_objective(&inner);
        let change = (last - value).abs() / value.abs();
        last = value;
        let lowest = best.as_ref().map_or(f64::INFINITY, |b| b.0);
        recorder.record(lowest.min(value), f64::NAN, change, inner.active());
        if value < lowest {
            best = Some((value, inner));
        }
        at_rest = pass >= TUNING.least_passes && change <= TUNING.rest_tolerance_share * effort.tol;
        if at_rest || recorder.stopped {
            break;
        }
    }
    let (objective, mut inner) =
        best.ok_or_else(|| Error::numerical("sgd", "no pass gave a finite objective"))?;
    inner.dual = f64::NAN;
    let lambda = instance.hard(&reassign(instance, &inner));
    let status = recorder.status_at_rest(at_rest);
    Ok(FoundRules { inner, lambda, objective, lower: f64::NAN, status, qp_calls: 0 })
}

/// The rules as steps move them. True values of a and f are `scale` times the stored ones.
struct Subgradient<'a, 'k> {
    instance: &'a Instance<'k>,
    /// y of every sample.
    sign: Vec<f64>,
    /// Signed multipliers of every rule.
    a: Vec<Vec<f64>>,
    /// Decision values of every rule, without its bias.
    f: Vec<Vec<f64>>,
    bias: Vec<f64>,
    scale: f64,
    /// The number of the step, whose length is 1/t.
    t: f64,
}

impl<'a, 'k> Subgradient<'a, 'k> {
    /// Starts every rule as the mean of its cluster: rules that start equal stay equal.
    fn start(instance: &'a Instance<'k>, owner: &[usize]) -> Self {
        let (n, rules) = (instance.cost.len(), instance.rules());
        let mut sign = vec![1.0; n];
        instance.negatives.iter().for_each(|&i| sign[i] = -1.0);
        let (mut a, mut f) = (vec![vec![0.0; n]; rules], vec![vec![0.0; n]; rules]);
        for m in 0..rules {
            let own: Vec<usize> = instance
                .negatives
                .iter()
                .zip(owner)
                .filter(|(_, o)| **o == m)
                .map(|(i, _)| *i)
                .collect();
            for (rows, side) in [(&own, -1.0), (&instance.positives, 1.0)] {
                for &i in rows {
                    let step = if own.is_empty() { 0.0 } else { side / rows.len() as f64 };
                    a[m][i] += step;
                    axpy(step, instance.kernels[m].row(i), &mut f[m]);
                }
            }
        }
        // The first step moves a decision value by about 1.
        let t = 1.0 + instance.cost.iter().sum::<f64>();
        Self { instance, sign, a, f, bias: vec![1.0; rules], scale: 1.0, t }
    }

    /// Makes as many steps as there are samples, each for a sample drawn.
    fn pass(&mut self, rng: &mut Rng) {
        let (n, rules) = (self.sign.len(), self.bias.len());
        for _ in 0..n {
            let i = rng.below(n);
            let output = |m: usize| self.scale * self.f[m][i] + self.bias[m];
            // A positive pays its worst rule, a negative its cheapest: in both cases the smallest
            // output.
            let m = (0..rules).fold(0, |b, m| if output(m) < output(b) { m } else { b });
            let pays = 1.0 - self.sign[i] * output(m) > 0.0;
            let rate = 1.0 / self.t;
            self.scale *= 1.0 - rate;
            if pays {
                let step = rate * n as f64 * self.instance.cost[i] * self.sign[i];
                self.a[m][i] += step / self.scale;
                axpy(step / self.scale, self.instance.kernels[m].row(i), &mut self.f[m]);
                self.bias[m] += step;
            }
            self.t += 1.0;
        }
    }
}

/// The mean of the rules over the last passes.
struct RuleMean {
    a: Vec<Vec<f64>>,
    bias: Vec<f64>,
    passes: f64,
}

impl RuleMean {
    fn zero(instance: &Instance<'_>) -> Self {
        let (n, rules) = (instance.cost.len(), instance.rules());
        Self { a: vec![vec![0.0; n]; rules], bias: vec![0.0; rules], passes: 0.0 }
    }

    fn add(&mut self, iterate: &Subgradient<'_, '_>) {
        for m in 0..self.bias.len() {
            axpy(iterate.scale, &iterate.a[m], &mut self.a[m]);
            self.bias[m] += iterate.bias[m];
        }
        self.passes += 1.0;
    }

    /// The mean as rules, for the signs of `iterate`.
    fn rules(&self, iterate: &Subgradient<'_, '_>, lambda: &Matrix) -> RuleSolution {
        let (n, rules) = (iterate.sign.len(), self.bias.len());
        let mut alpha = Matrix::zeros(n, rules);
        for i in 0..n {
            (0..rules).for_each(|m| alpha[(i, m)] = iterate.sign[i] * self.a[m][i] / self.passes);
        }
        let bias = self.bias.iter().map(|b| b / self.passes).collect();
        iterate.instance.inner(alpha, bias, vec![1.0; rules], lambda)
    }
}
