//! How far rounding may have moved the bounds that a fit proves.
//!
//! Bounds are sums of products that cancel: K a where multipliers of both signs meet large kernel
//! values, and C Σ ℓ where a cost of 10¹⁵ multiplies what is left of 1 − y f. So every decision
//! value is computed a second time, from multipliers that are 0.7 as large: the same sum, rounded
//! anew at every step. How far the two are apart, from row to row and on the average over rows,
//! says how well such sums come out here. Every decision value is taken to be wrong by twice that,
//! for the model adds in yet another order when it predicts. What that does to the objective and to
//! the bound below it is added up with all errors on the unlucky side.

use rayon::prelude::*;

use super::{Point, Problem, spread};
use crate::{gram::GramSource, linalg::dot, machine::Task};

/// Half the distance from 1 to the next number: no operation is exact to less.
const UNIT: f64 = 0.5 * f64::EPSILON;
/// Decision values are rounded twice: in the fit, and in the model's predictions.
const TIMES_ROUNDED: f64 = 2.0;
/// Multipliers are scaled by this factor for the second sum; it is no power of two, so that
/// products with it are rounded anew.
const RESCALING: f64 = 0.7;
/// Sums of products are taken to be wrong by this many roundings of all that is added up: blocks of
/// them are added pairwise.
const ROUNDINGS_PER_SUM: f64 = 8.0;
/// Rounding that is expected to move an objective by less than this share of the tolerance need not
/// be measured, which would take a pass over all active kernels (a tenth of a fit on 284 rows and
/// 403 kernels): what is expected is counted in instead. It decides what bounds prove, not how a
/// solver goes its way, so it is no tuning.
pub const NEGLIGIBLE_ROUNDING_SHARE: f64 = 1e-4;
/// Images of this many kernels are held at a time: a bank may have more active kernels than there
/// is memory for images. The answer does not depend on it, for sums are added one by one.
const IMAGES_AT_A_TIME: usize = 64;

/// How much is to be added to an upper bound and taken from a lower one so that both hold.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Slack {
    /// Added to the objective at a point.
    pub upper: f64,
    /// Taken from A(a) − ½·support(s).
    pub lower: f64,
    /// The part of ½ aᵀK_θ a in both.
    pub form: f64,
}

impl Slack {
    /// The slack of this point's bounds.
    pub fn of(problem: &Problem<'_>, point: &Point) -> Self {
        let mut sum = Self::default();
        for (part, solution) in problem.parts.iter().zip(&point.solutions) {
            let off = expected(problem.grams, &point.theta, &part.task, &solution.a);
            if off <= NEGLIGIBLE_ROUNDING_SHARE * problem.tol * point.primal.abs() {
                let open = open(&part.task, &solution.a, solution.bias);
                sum = Self {
                    upper: sum.upper + off,
                    lower: sum.lower + off + open,
                    form: sum.form + off,
                };
                continue;
            }
            let all = part.rows.map_or_else(
                || solution.a.clone(),
                |rows| spread(&solution.a, rows, problem.grams.n_samples()),
            );
            let again = again(problem.grams, &point.theta, &all);
            let again = part
                .rows
                .map_or_else(|| again.clone(), |rows| rows.iter().map(|&i| again[i]).collect());
            let own = Self::of_sums(&part.task, (&solution.a, &solution.f, solution.bias), &again);
            let (upper, lower) = (sum.upper + own.upper, sum.lower + own.lower);
            sum = Self { upper, lower, form: sum.form + own.form };
        }
        // An objective is always stated; then nothing is proved of it.
        if sum.upper.is_finite() && sum.lower.is_finite() {
            sum
        } else {
            Self { lower: f64::INFINITY, ..Self::default() }
        }
    }

    /// The slack of one machine with multipliers a, decision values f and bias b, where [`again`]
    /// finds these values.
    pub fn of_sums(task: &Task<'_>, (a, f, bias): (&[f64], &[f64], f64), again: &[f64]) -> Self {
        let n = a.len();
        let off = |i: usize| (f[i] - again[i]).abs();
        let typical = ((0..n).map(|i| off(i) * off(i)).sum::<f64>() / n.max(1) as f64).sqrt();
        let (mut loss, mut form) = (0.0, 0.0);
        for i in 0..n {
            // Beside the sum itself, adding b and comparing with y are rounded, unless there is
            // nothing to add and nothing is left.
            let exact = f[i] == 0.0 && bias == task.y[i];
            let rounded =
                if exact { 0.0 } else { UNIT * (f[i].abs() + bias.abs() + task.y[i].abs()) };
            let delta = TIMES_ROUNDED * larger(typical, off(i)) + rounded;
            let at = |f: f64| task.loss.value(task.y[i], f + bias);
            loss += task.cost[i] * (larger(at(f[i] + delta), at(f[i] - delta)) - at(f[i])).max(0.0);
            form += 0.5 * a[i].abs() * delta;
        }
        let terms =
            |i: usize| (task.cost[i] * task.loss.conjugate(task.y[i], -a[i] / task.cost[i])).abs();
        let dual: f64 = UNIT * (0..n).map(terms).sum::<f64>();
        Self { upper: loss + form, lower: dual + form + open(task, a, bias), form }
    }

    /// Upper and lower bound with their rounding.
    pub fn widen(self, upper: f64, lower: f64) -> (f64, f64) {
        (upper + self.upper, lower - self.lower)
    }
}

/// How much less multipliers prove that do not add up to 0, at the best b.
fn open(task: &Task<'_>, a: &[f64], bias: f64) -> f64 {
    if task.intercept { bias.abs() * a.iter().sum::<f64>().abs() } else { 0.0 }
}

/// How far rounding is expected to move the objective at most, where |K a| is at most ‖a‖₁ times
/// the size of the diagonal. Losses are no steeper than their costs, or than their multipliers say.
pub fn expected(grams: &dyn GramSource, theta: &[f64], task: &Task<'_>, a: &[f64]) -> f64 {
    let diagonal: f64 = (0..theta.len())
        .filter(|&t| theta[t] != 0.0)
        .map(|t| theta[t] * grams.trace_bound(t))
        .sum();
    let total: f64 = a.iter().map(|a| a.abs()).sum();
    let value = total * diagonal / grams.n_samples() as f64;
    let compared = task.y.iter().fold(0.0, |m: f64, y| m.max(y.abs()));
    ROUNDINGS_PER_SUM * UNIT * (value + compared) * (total + task.cost.iter().sum::<f64>())
}

/// Σ θ_t K_t a, rounded otherwise than in [`times`].
pub fn again(grams: &dyn GramSource, theta: &[f64], a: &[f64]) -> Vec<f64> {
    let other = times(grams, theta, &a.iter().map(|a| RESCALING * a).collect::<Vec<_>>());
    other.iter().map(|f| f / RESCALING).collect()
}

/// Σ θ_t K_t v.
pub fn times(grams: &dyn GramSource, theta: &[f64], v: &[f64]) -> Vec<f64> {
    let mut sum = vec![0.0; v.len()];
    if dot(v, v) == 0.0 {
        return sum;
    }
    let active: Vec<usize> = (0..theta.len()).filter(|&t| theta[t] != 0.0).collect();
    for some in active.chunks(IMAGES_AT_A_TIME) {
        let image = |t: &usize| {
            let mut out = vec![0.0; v.len()];
            grams.apply(*t, v, &mut out);
            out
        };
        let images: Vec<Vec<f64>> = some.par_iter().map(image).collect();
        for (t, image) in some.iter().zip(&images) {
            sum.iter_mut().zip(image).for_each(|(s, x)| *s += theta[*t] * x);
        }
    }
    sum
}

/// The larger one, or NaN where either is.
pub fn larger(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { a.max(b) }
}
