//! How large C must be for SMKL to find more than a constant.
//!
//! At w = 0 the machine is the best constant, with multipliers a⁰ = −C ℓ'(y, b⁰). Let q_k = √(a⁰ᵀ
//! K_k a⁰), proportional to C. The term `gl` holds w_k at 0 while q_k ≤ η_k, so below C* = C /
//! max_k (q_k / η_k) nothing moves. A logarithm pulls harder: as long as decision values are small
//! the multipliers stay a⁰ and the weights follow β_k ← 1/B_k(r), r_k = (β_k q_k)². From β = 1/K
//! some weight grows only above a second value of C. For `log+gl` with η = 1 it lies where q (q
//! − 1) = K, that is q ≈ ½ + √(K + ¼): 3 C* for six kernels, 6.8 C* for forty. Below it all weights
//! fall to a rest near ε that means nothing.

use crate::{
    Error,
    gram::GramSource,
    machine::Task,
    outer::{Part, spread},
    weights::{Penalty, largest},
};

/// A grid of C starts at this multiple of C* at least. It defines what `C = "auto"` means, so it is
/// no tuning.
const START_OVER_COLLAPSE: f64 = 5.0;
/// A grid of C starts at this multiple of the C above which the first step lets some weight grow at
/// least: on real spectra the fit came to life between 1.05 and 1.5 times it.
const START_OVER_ESCAPE: f64 = 2.0;
/// A fit has collapsed when its weights are below this share of where they began, or all r_k below
/// ε, and the loss is within this share of the best constant's.
const COLLAPSED_SHARE: f64 = 1e-3;
/// A weight that stays within this share of where it began has not fallen: the rest is rounding.
const ROUNDED_WEIGHT: f64 = 1e-12;
/// The smallest and largest C, as multiples of C*, between which the escape is sought.
const ESCAPE_RANGE: [f64; 2] = [1e-6, 1e12];
/// Halvings that find the escape: more than double precision can tell apart.
const HALVINGS: usize = 60;
/// Slopes of the loss are taken as differences over this step, in units of the largest target:
/// about the root of the rounding error.
const DIFFERENCE_STEP: f64 = 1e-6;

/// Two values of C that matter, as factors on the costs of the problem at hand.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Threshold {
    /// C*: the group lasso keeps w = 0 up to here. Infinite where the best constant pays no loss.
    pub collapse: f64,
    /// From here on the first step from equal weights lets some weight grow; 0 for `mkl` alone.
    pub escape: f64,
}

impl Threshold {
    /// The threshold for the squares q_k² of every kernel.
    pub(crate) fn of(square: &[f64], penalty: &Penalty) -> Self {
        let collapse = 1.0
            / (0..square.len())
                .map(|k| square[k].sqrt() / penalty.group_lasso(k))
                .fold(0.0, f64::max);
        let first = 1.0 / square.len() as f64;
        let grows = |c: f64| {
            let r: Vec<f64> = square.iter().map(|s| s * (c * first).powi(2)).collect();
            penalty.weights(&r).iter().any(|b| *b >= first * (1.0 - ROUNDED_WEIGHT))
        };
        Self {
            collapse,
            escape: if collapse.is_finite() { switch(collapse, grows) } else { collapse },
        }
    }

    /// Where a grid of C may start.
    pub fn start(&self) -> f64 {
        (START_OVER_COLLAPSE * self.collapse).max(START_OVER_ESCAPE * self.escape)
    }

    /// `count` values of C from [`Threshold::start`] on, each `ratio` times the last.
    pub fn grid(&self, count: usize, ratio: f64) -> Vec<f64> {
        std::iter::successors(Some(self.start()), |c| Some(ratio * c)).take(count).collect()
    }

    /// Has f shrunk to a constant? `next` are the weights to come, `norms` the r_k they come from.
    /// Small weights alone do not say so: large kernels want small weights. So the loss must also
    /// be that of the best constant.
    pub(crate) fn passed(
        penalty: &Penalty,
        next: &[f64],
        norms: &[f64],
        loss: f64,
        constant: f64,
    ) -> bool {
        let small = largest(next) < COLLAPSED_SHARE / next.len() as f64;
        let at_rest = penalty.knee().is_some_and(|eps| largest(norms) < eps);
        (small || at_rest) && loss >= (1.0 - COLLAPSED_SHARE) * constant
    }

    /// The message for a fit that collapsed at `c`, where these values are factors on `c`: an error
    /// of the linear version, the text of a warning where a model of the best constant can be
    /// returned.
    pub(crate) fn error(self, c: f64) -> Error {
        let mark = self.times(c);
        if !mark.collapse.is_finite() {
            return Error::data(
                "SMKL",
                "the best constant pays no loss",
                "there is nothing to learn: lower epsilon",
            );
        }
        let problem = format!(
            "the fit collapsed to a constant at C = {c:.4}; here C* = {:.4}",
            mark.collapse
        );
        // The marks assume small decision values; where that fails, twice the C that was too small.
        let remedy = format!(
            "use C of at least {:.4} (5 C*, more where kernels are many)",
            mark.start().max(2.0 * c)
        );
        Error::data("SMKL", problem, remedy)
    }

    /// These two values in other units, for costs `c` times as large.
    #[must_use]
    pub fn times(self, c: f64) -> Self {
        Self { collapse: c * self.collapse, escape: c * self.escape }
    }
}

/// The threshold for the decision functions `parts` that share their weights. With unequal classes
/// a⁰ is not unique for the hinge; the larger class shares its part evenly, and the true C* may be
/// somewhat higher.
pub fn collapse_threshold(
    grams: &dyn GramSource,
    parts: &[Part<'_>],
    penalty: &Penalty,
) -> Threshold {
    let terms = grams.n_terms();
    let mut square = vec![0.0; terms];
    for part in parts {
        let a = constant_multipliers(&part.task);
        let a = part.rows.map_or_else(|| a.clone(), |rows| spread(&a, rows, grams.n_samples()));
        square.iter_mut().zip(grams.quad_forms(&a)).for_each(|(q, s)| *q += s);
    }
    Threshold::of(&square, penalty)
}

/// The least c > 0 from which `on` holds, for an `on` that stays on; 0 if it holds throughout.
fn switch(guess: f64, on: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (ESCAPE_RANGE[0] * guess, guess);
    if on(low) {
        return 0.0;
    }
    while !on(high) && high < ESCAPE_RANGE[1] * guess {
        (low, high) = (high, 2.0 * high);
    }
    for _ in 0..HALVINGS {
        let middle = 0.5 * (low + high);
        if on(middle) { high = middle } else { low = middle }
    }
    high
}

/// a⁰: between the one-sided slopes of the loss at the best constant, all at the same fraction, so
/// that they sum to zero.
pub(super) fn constant_multipliers(task: &Task<'_>) -> Vec<f64> {
    let b = task.best_bias(&vec![0.0; task.y.len()]);
    let step = DIFFERENCE_STEP * task.y.iter().fold(1.0 + b.abs(), |m: f64, y| m.max(y.abs()));
    let slopes: Vec<(f64, f64)> = task
        .y
        .iter()
        .zip(task.cost)
        .map(|(&y, c)| {
            let at = |f: f64| c * task.loss.value(y, f) / step;
            (at(b) - at(b + step), at(b - step) - at(b))
        })
        .collect();
    let (low, high) = slopes.iter().fold((0.0, 0.0), |(l, h), s| (l + s.0, h + s.1));
    let fraction =
        if task.intercept && high > low { (-low / (high - low)).clamp(0.0, 1.0) } else { 0.5 };
    slopes.iter().map(|(l, h)| l + fraction * (h - l)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::{EpsilonInsensitive, Hinge, Loss, Squared};

    fn multipliers(loss: &dyn Loss, y: &[f64]) -> Vec<f64> {
        let cost = vec![2.0; y.len()];
        constant_multipliers(&Task { y, cost: &cost, loss, intercept: true })
    }

    fn close(a: &[f64], b: &[f64]) {
        assert!(a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-4), "{a:?} {b:?}");
    }

    #[test]
    fn multipliers_of_the_best_constant() {
        // The minority pays the full price, the majority shares it.
        close(
            &multipliers(&Hinge, &[1.0, 1.0, 1.0, -1.0]),
            &[2.0 / 3.0, 2.0 / 3.0, 2.0 / 3.0, -2.0],
        );
        close(&multipliers(&Hinge, &[1.0, -1.0]), &[2.0, -2.0]);
        // Residuals times price; mean 3.
        close(&multipliers(&Squared, &[1.0, 2.0, 6.0]), &[-4.0, -2.0, 6.0]);
        let tube = EpsilonInsensitive::new(0.5).unwrap();
        close(&multipliers(&tube, &[0.0, 1.0, 3.0, 9.0]), &[-2.0, -2.0, 2.0, 2.0]);
        close(&multipliers(&tube, &[0.0, 0.1, 0.2]), &[0.0; 3]);
    }

    #[test]
    fn the_switch_is_found() {
        assert!((switch(1.0, |c| c >= 7.25) - 7.25).abs() < 1e-9);
        assert!((switch(1.0, |c| c >= 0.01) - 0.01).abs() < 1e-12);
        assert_eq!(switch(1.0, |_| true), 0.0);
    }
}
