//! The elastic-net set of [Yang2011]:  Θ = { θ ≥ 0 : v Σ θ_m + (1 − v) Σ θ_m^p ≤ 1 }.
//!
//! v = 1 is the simplex (L1-MKL), v = 0 the ℓp ball (p = 2: L2-MKL); between them the set selects
//! kernels and still gives equal kernels equal weight.

use super::{Separable, WeightSet, root};
use crate::{Error, Result};

/// Newton's steps for one weight at most: they double the digits, and end when the weight no longer
/// falls.
const NEWTON_STEPS: usize = 50;

/// The set v Σ θ + (1 − v) Σ θ^p ≤ 1 of the positive orthant.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ElasticNet {
    v: f64,
    p: f64,
}

impl ElasticNet {
    /// 0 ≤ v ≤ 1, p ≥ 1. With p = 1 the second sum is the first: the set is the simplex whatever v.
    pub fn new(v: f64, p: f64) -> Result<Self> {
        if !(0.0..=1.0).contains(&v) {
            return Err(Error::param("v", "between 0 and 1", v));
        }
        if !p.is_finite() || p < 1.0 {
            return Err(Error::param("p", "a finite number ≥ 1", p));
        }
        Ok(if v == 1.0 || p == 1.0 { Self { v: 1.0, p: 2.0 } } else { Self { v, p } })
    }

    fn is_simplex(self) -> bool {
        self.v == 1.0
    }

    /// θ with φ'(θ) = slope (0 where the slope at 0 is already larger).
    fn inverse_slope(self, slope: f64) -> f64 {
        ((slope - self.v).max(0.0) / (self.p * (1.0 - self.v))).powf(1.0 / (self.p - 1.0))
    }

    /// [Yang2011] (18) with its multiplier solved: sort s; λ_k² = Σ_{i≤k} s_i² / (4(1−v) + k v²)
    /// for the largest k with s_k > v λ_k.
    fn multiplier_p2(self, s: &[f64]) -> f64 {
        let mut sorted: Vec<f64> = s.to_vec();
        sorted.sort_by(|a, b| b.total_cmp(a));
        let (mut sum, mut multiplier) = (0.0, 0.0);
        for (k, &x) in sorted.iter().enumerate() {
            sum += x * x;
            let lambda = (sum / (4.0 * (1.0 - self.v) + (k + 1) as f64 * self.v * self.v)).sqrt();
            if x <= self.v * lambda {
                break;
            }
            multiplier = lambda;
        }
        multiplier
    }

    /// θ > 0 with θ² φ'(θ) = target: Newton from above on a convex increasing function.
    fn response_coordinate(self, target: f64) -> f64 {
        if target <= 0.0 {
            return 0.0;
        }
        let high = self.p * (1.0 - self.v);
        let mut theta = (target / high).powf(1.0 / (self.p + 1.0));
        if self.v > 0.0 {
            theta = theta.min((target / self.v).sqrt());
        }
        for _ in 0..NEWTON_STEPS {
            let power = theta.powf(self.p - 1.0);
            let value = theta * theta * (self.v + high * power) - target;
            let slope = theta * (2.0 * self.v + (self.p + 1.0) * high * power);
            let next = theta - value / slope;
            if next.is_nan() || next >= theta || next <= 0.0 {
                break;
            }
            theta = next;
        }
        theta
    }
}

impl WeightSet for ElasticNet {
    fn support_point(&self, s: &[f64]) -> Vec<f64> {
        let largest = s.iter().copied().fold(0.0, f64::max);
        if largest <= 0.0 {
            return self.start(s.len());
        }
        if self.is_simplex() {
            let winner = (0..s.len()).fold(0, |b, i| if s[i] > s[b] { i } else { b });
            return (0..s.len()).map(|i| f64::from(i == winner)).collect();
        }
        // Scale-free: only the direction of s matters.
        let s: Vec<f64> = s.iter().map(|x| x / largest).collect();
        let at = |lambda: f64| s.iter().map(|x| self.inverse_slope(x / lambda)).collect::<Vec<_>>();
        let lambda = if self.p == 2.0 {
            self.multiplier_p2(&s)
        } else {
            root::decreasing(
                |lambda| self.load(&at(lambda)) - 1.0,
                1.0 / (self.v + self.p * (1.0 - self.v)),
            )
        };
        let mut theta = at(lambda);
        let over = self.load(&theta);
        if over > 1.0 {
            theta.iter_mut().for_each(|t| *t /= over);
        }
        theta
    }

    fn best_response(&self, sq_norms: &[f64]) -> Vec<f64> {
        let largest = sq_norms.iter().copied().fold(0.0, f64::max);
        if largest <= 0.0 {
            return self.start(sq_norms.len());
        }
        let q: Vec<f64> = sq_norms.iter().map(|x| x / largest).collect();
        // Stationarity: q/θ² = λ φ'(θ).
        let mut theta: Vec<f64> = if self.is_simplex() {
            q.iter().map(|x| x.sqrt()).collect()
        } else if self.v == 0.0 {
            q.iter().map(|x| x.powf(1.0 / (self.p + 1.0))).collect()
        } else {
            let at = |scale: f64| {
                q.iter().map(|x| self.response_coordinate(scale * x)).collect::<Vec<_>>()
            };
            at(root::increasing(|scale| self.load(&at(scale)) - 1.0, 1.0))
        };
        self.tighten(&mut theta);
        theta
    }

    fn project(&self, point: &[f64]) -> Vec<f64> {
        let clipped: Vec<f64> = point.iter().map(|x| x.max(0.0)).collect();
        if self.load(&clipped) <= 1.0 {
            return clipped;
        }
        // θ + λ φ'(θ) = z, coordinate by coordinate; λ so that the constraint is tight.
        let coordinate = |z: f64, lambda: f64| {
            let rest = z - lambda * self.v;
            if rest <= 0.0 {
                0.0
            } else if self.is_simplex() {
                rest
            } else {
                root::increasing(
                    |t| t + lambda * self.p * (1.0 - self.v) * t.powf(self.p - 1.0) - rest,
                    rest,
                )
            }
        };
        let at = |lambda: f64| clipped.iter().map(|&z| coordinate(z, lambda)).collect::<Vec<_>>();
        let mut theta = at(root::decreasing(|lambda| self.load(&at(lambda)) - 1.0, 1.0));
        self.tighten(&mut theta);
        theta
    }

    fn start(&self, n_terms: usize) -> Vec<f64> {
        let n = n_terms as f64;
        let c = if self.is_simplex() {
            1.0 / n
        } else if self.p == 2.0 {
            // The positive root, in the form that stays accurate for every v.
            (2.0 / n) / (self.v + (self.v * self.v + 4.0 * (1.0 - self.v) / n).sqrt())
        } else {
            root::increasing(|c| n * self.phi(c)[0] - 1.0, 1.0 / n)
        };
        vec![c; n_terms]
    }

    fn load(&self, theta: &[f64]) -> f64 {
        theta.iter().map(|&t| self.phi(t)[0]).sum()
    }
}

impl Separable for ElasticNet {
    fn phi(&self, t: f64) -> [f64; 3] {
        let (v, p, u) = (self.v, self.p, 1.0 - self.v);
        if u == 0.0 {
            [t, 1.0, 0.0]
        } else if p == 2.0 {
            [v * t + u * t * t, v + 2.0 * u * t, 2.0 * u]
        } else {
            [
                v * t + u * t.powf(p),
                v + u * p * t.powf(p - 1.0),
                u * p * (p - 1.0) * t.powf(p - 2.0),
            ]
        }
    }
}
