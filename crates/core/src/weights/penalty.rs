//! Group selection terms: what SMKL charges for the norms ‖w_k‖ of the kernels' functions.
//!
//! With r_k = ‖w_k‖² and factors η_k (1 unless given), [Subrahmanya2010] Table 1:
//!
//! | term | g(r) | B_k = 2 ∂g/∂r_k |
//! |---|---|---|
//! | `log` | ½ Σ η_k ln(ε + r_k) | η_k / (ε + r_k) |
//! | `gl` | Σ η_k √r_k | η_k / √r_k |
//! | `mf(p)`, 0 < p ≤ 1 | Σ η_k r_k^(p/2) | η_k p r_k^(p/2 − 1); the paper's exponent in row 3 is a
//!   misprint |
//! | `mkl` | ½ (Σ η_k √r_k)² | η_k (Σ_l η_l √r_l) / √r_k |
//!
//! Every g is concave and increasing in r (also `mkl`, of which the paper says otherwise: it is a
//! sum of r's and geometric means).

mod parser;

use super::NEGLIGIBLE_WEIGHT_SHARE;
use crate::{Error, Result};

/// At rest, kernels with r_k < ε are remnants of ε if r_k is also below this share of the largest:
/// ‖w_k‖ below 3 % of the largest says that ε is small beside what has been selected (on Sonar with
/// kernels of unit variance 63 kernels rest at 3·10⁻⁶ of it, the next one at a tenth). It defines
/// the answer, so it is no tuning.
const REMNANT_SHARE: f64 = 1e-3;
/// While β still moves, a kernel may yet grow, and is a remnant only below this share of the
/// largest r.
const MOVING_REMNANT_SHARE: f64 = 1e-6;

/// One term of the table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum SelectionTerm {
    Log,
    Gl,
    Mkl,
    Mf(f64),
}

/// A non-negative sum of group selection terms.
#[derive(Debug, Clone, PartialEq)]
pub struct Penalty {
    log: f64,
    gl: f64,
    mkl: f64,
    /// Factor and exponent of each M-FOCUSS term.
    mf: Vec<(f64, f64)>,
    eps: f64,
    /// η, one per kernel; empty means 1.
    eta: Vec<f64>,
}

impl Penalty {
    /// Reads `log+gl`, `0.5*log + 2*gl`, `mf(0.5) + gl`, `mkl`, …; `eps` > 0 stands inside the
    /// logarithm.
    pub fn parse(text: &str, eps: f64) -> Result<Self> {
        if !(eps.is_finite() && eps > 0.0) {
            return Err(Error::param("eps", "a finite number > 0", eps));
        }
        let mut penalty =
            Self { log: 0.0, gl: 0.0, mkl: 0.0, mf: Vec::new(), eps, eta: Vec::new() };
        for (factor, term) in parser::sum(text)? {
            match term {
                SelectionTerm::Log => penalty.log += factor,
                SelectionTerm::Gl => penalty.gl += factor,
                SelectionTerm::Mkl => penalty.mkl += factor,
                SelectionTerm::Mf(p) if factor > 0.0 => penalty.mf.push((factor, p)),
                SelectionTerm::Mf(_) => {}
            }
        }
        if penalty.steepest() == 0.0 && penalty.log == 0.0 {
            return Err(Error::param("penalty", "a sum with at least one factor above 0", text));
        }
        Ok(penalty)
    }

    /// This penalty with a factor η_k > 0 for every kernel: larger ones are selected later.
    pub fn with_eta(mut self, eta: Vec<f64>) -> Result<Self> {
        if let Some(k) = eta.iter().position(|e| !(e.is_finite() && *e > 0.0)) {
            return Err(Error::param(
                "eta",
                "finite numbers > 0",
                format!("{} for kernel {}", eta[k], k + 1),
            ));
        }
        self.eta = eta;
        Ok(self)
    }

    /// Refuses a number of kernels that η does not fit.
    pub(crate) fn check(&self, terms: usize) -> Result<()> {
        if self.eta.is_empty() || self.eta.len() == terms {
            return Ok(());
        }
        Err(Error::shape("eta", format!("{terms} numbers, one per kernel"), self.eta.len()))
    }

    /// Is a kernel whose weight is 0 out for good? Only the logarithm alone brings one back.
    pub fn absorbing(&self) -> bool {
        self.steepest() > 0.0
    }

    /// ε, if there is a logarithm.
    pub(crate) fn knee(&self) -> Option<f64> {
        (self.log > 0.0).then_some(self.eps)
    }

    /// η_k times the factor of `gl` (1 where there is none).
    pub(crate) fn group_lasso(&self, k: usize) -> f64 {
        self.eta(k) * if self.gl > 0.0 { self.gl } else { 1.0 }
    }

    /// The value g(r) of the penalty.
    pub fn value(&self, r: &[f64]) -> f64 {
        let sum =
            |term: &dyn Fn(f64) -> f64| (0..r.len()).map(|k| self.eta(k) * term(r[k])).sum::<f64>();
        let norms = sum(&f64::sqrt);
        let mut value = self.gl * norms + 0.5 * self.mkl * norms * norms;
        if self.log > 0.0 {
            value += 0.5 * self.log * sum(&|r| (self.eps + r).ln());
        }
        self.mf.iter().fold(value, |v, (c, p)| v + c * sum(&|r| r.powf(0.5 * p)))
    }

    /// β_k = 1/B_k(r), numerator and denominator multiplied by x^q, x = √r_k and x^(−q) the
    /// steepest power in B_k: no division by a norm, and exactly 0 at r_k = 0 unless the logarithm
    /// stands alone.
    pub fn weights(&self, r: &[f64]) -> Vec<f64> {
        let total: f64 = (0..r.len()).map(|k| self.eta(k) * r[k].sqrt()).sum();
        let q = self.steepest();
        let weight = |k: usize| {
            let x = r[k].sqrt();
            if x == 0.0 && q > 0.0 {
                return 0.0;
            }
            let top = x.powf(q);
            let mut bottom = self.log * top / (self.eps + r[k]);
            if q > 0.0 {
                bottom += (self.gl + self.mkl * total) * x.powf(q - 1.0);
            }
            for (c, p) in &self.mf {
                bottom += c * p * x.powf(q - 2.0 + p);
            }
            top / (self.eta(k) * bottom)
        };
        (0..r.len()).map(weight).collect()
    }

    /// [`Penalty::weights`] for the next step, `now` the weights r comes from. Where 0 is
    /// absorbing, a falling weight becomes 0 once its kernel pays less than
    /// [`NEGLIGIBLE_WEIGHT_SHARE`] of what the largest does: β/max β itself, but for `mf(p)`, where
    /// ‖w‖^p ~ β^(p/(2−p)). L does not rise by it: to first order the loss grows by B_k r_k with
    /// the B_k = 1/`now` just solved with, and the penalty falls by at least as much with the
    /// larger B_k to come. A kernel that is out stays out. With `remnants`, falling remnants of ε
    /// go too, as they would in the end ([`Penalty::prune`]).
    pub(crate) fn advance(&self, r: &[f64], now: &[f64], remnants: bool) -> Vec<f64> {
        let mut next = self.weights(r);
        let q = self.steepest();
        let smallest = if q > 0.0 {
            NEGLIGIBLE_WEIGHT_SHARE.powf(q / (2.0 - q)) * largest(&next)
        } else {
            0.0
        };
        let remnant = if remnants { self.remnant(r, MOVING_REMNANT_SHARE) } else { 0.0 };
        for ((next, &now), r) in next.iter_mut().zip(now).zip(r) {
            if now == 0.0 || ((*next <= smallest || *r < remnant) && *next <= now) {
                *next = 0.0;
            }
        }
        next
    }

    /// The weights `now` without those next to nothing and, at a point of rest, without the
    /// remnants of ε; `None` if all stay.
    ///
    /// While r_k < ε the logarithm is a quadratic and holds a kernel back instead of removing it:
    /// for `log+gl` a kernel with √s_k > η rests where (√s_k − η)(ε + r_k) = η √r_k. That has two
    /// solutions with product of norms ε, the smaller one stable, so exactly the kernels at rest
    /// with r_k < ε are those that the logarithm meant to remove. (Alone, it gives every kernel at
    /// least ε/η and removes none.)
    pub(crate) fn prune(&self, r: &[f64], now: &[f64], at_rest: bool) -> Option<Vec<f64>> {
        let remnant = if at_rest { self.remnant(r, REMNANT_SHARE) } else { 0.0 };
        let smallest = NEGLIGIBLE_WEIGHT_SHARE * largest(now);
        let keep = |k: usize| now[k] > smallest && r[k] >= remnant;
        let kept: Vec<f64> = (0..now.len()).map(|k| if keep(k) { now[k] } else { 0.0 }).collect();
        (kept != now).then_some(kept)
    }

    /// Squared norms below this are remnants of ε.
    fn remnant(&self, r: &[f64], share: f64) -> f64 {
        if self.log > 0.0 && self.absorbing() { self.eps.min(share * largest(r)) } else { 0.0 }
    }

    /// The exponent q with B ~ x^(−q) near x = ‖w‖ = 0.
    fn steepest(&self) -> f64 {
        let start = if self.gl + self.mkl > 0.0 { 1.0 } else { 0.0 };
        self.mf.iter().fold(start, |q, (_, p)| q.max(2.0 - p))
    }

    fn eta(&self, k: usize) -> f64 {
        self.eta.get(k).copied().unwrap_or(1.0)
    }
}

pub(crate) fn largest(v: &[f64]) -> f64 {
    v.iter().copied().fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Penalty {
        Penalty::parse(text, 1e-4).unwrap()
    }

    #[test]
    fn texts_are_sums_and_errors_point() {
        assert_eq!(read("log+gl"), read(" 0.25*log + gl+ 0.75 * log "));
        assert_eq!(read("2e0*mf(.5)").mf, [(2.0, 0.5)]);
        assert_eq!(read("mkl + 0*gl"), read("mkl"));
        for (text, place) in [
            ("", 0),
            ("log+", 4),
            ("log gl", 4),
            ("log+lasso", 4),
            ("-1*log", 0),
            ("2 log", 2),
            ("mf", 2),
            ("gl + mf(1.5)", 8),
            ("mf(0)", 3),
            ("mf(0.5", 6),
            ("1e999*gl", 0),
        ] {
            let Err(Error::Syntax { at, .. }) = Penalty::parse(text, 1e-4) else {
                panic!("{text}")
            };
            assert_eq!(at, place, "{text}");
        }
        assert!(Penalty::parse("0*gl", 1e-4).is_err() && Penalty::parse("gl", 0.0).is_err());
        assert!(Penalty::parse(&"gl+".repeat(400), 1e-4).is_err());
        assert!(
            read("gl").with_eta(vec![1.0, 0.0]).is_err()
                && read("gl").with_eta(vec![1.0]).unwrap().check(2).is_err()
        );
    }

    #[test]
    fn weights_are_the_inverse_slopes_and_zero_stays_zero() {
        let r = [0.3, 1e-7, 2.5, 40.0];
        for text in [
            "log",
            "gl",
            "mf(0.6)",
            "mf(1)",
            "mkl",
            "log+gl",
            "0.5*log + 2*gl",
            "mf(0.5)+gl",
            "log+mf(.3)+mkl",
        ] {
            let penalty = read(text).with_eta(vec![1.0, 2.0, 0.5, 3.0]).unwrap();
            let beta = penalty.weights(&r);
            for k in 0..r.len() {
                let h = 1e-4 * r[k];
                let at = |x: f64| {
                    let mut moved = r;
                    moved[k] = x;
                    penalty.value(&moved)
                };
                let slope = (at(r[k] + h) - at(r[k] - h)) / h;
                assert!((beta[k] * slope - 1.0).abs() < 1e-5, "{text} {k}: {} {slope}", beta[k]);
            }
            let none = penalty.weights(&[0.0; 4]);
            let log_alone = text == "log";
            assert!(
                none.iter().all(|b| if log_alone { *b > 0.0 } else { *b == 0.0 }),
                "{text}: {none:?}"
            );
            assert_eq!(penalty.absorbing(), !log_alone);
            // One norm on the way to zero, the others not.
            let small = penalty.weights(&[1e-300, 1.0, 1.0, 1.0])[0];
            assert!(small.is_finite() && small >= 0.0, "{text}: {small}");
        }
    }

    #[test]
    fn the_quadratic_bound_lies_above_the_penalty() {
        let mut rng = crate::data::Rng::new(3);
        for text in ["log", "gl", "mf(0.4)", "mkl", "log+gl+mkl"] {
            let penalty = read(text);
            for _ in 0..2000 {
                let mut draw = || (0..4).map(|_| (4.0 * rng.normal()).exp()).collect::<Vec<f64>>();
                let (r, at) = (draw(), draw());
                let beta = penalty.weights(&at);
                let bound = penalty.value(&at)
                    + (0..4).map(|k| 0.5 * (r[k] - at[k]) / beta[k]).sum::<f64>();
                assert!(
                    penalty.value(&r) <= bound + 1e-9 * (1.0 + bound.abs()),
                    "{text}: {r:?} {at:?}"
                );
            }
        }
    }
}
