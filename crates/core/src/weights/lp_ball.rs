//! The ℓp ball of [Kloft2011]:  Θ = { θ ≥ 0 : ‖θ‖_p ≤ 1 },  1 ≤ p ≤ ∞.
//!
//! p = 1 is the simplex (sparse weights), p = ∞ the box [0, 1]^M (no selection at all). All answers
//! are closed forms in powers of ratios to the largest entry, so that neither p close to 1, where
//! 1/(p − 1) is huge, nor a large p overflows.

use std::ops::Range;

use super::{Separable, WeightSet, root};
use crate::{Error, Result};

/// The ball ‖θ‖_p ≤ 1 in the positive orthant.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LpBall {
    p: f64,
}

impl LpBall {
    /// p ≥ 1; infinity is allowed.
    pub fn new(p: f64) -> Result<Self> {
        if p.is_nan() || p < 1.0 {
            return Err(Error::param("p", "a number ≥ 1, or inf", p));
        }
        Ok(Self { p })
    }

    /// θ_m ∝ values_m^power on the boundary.
    fn powers(self, values: &[f64], power: f64) -> Vec<f64> {
        let largest = largest(values);
        if largest <= 0.0 {
            return self.start(values.len());
        }
        let mut theta: Vec<f64> = values.iter().map(|v| (v / largest).powf(power)).collect();
        self.tighten(&mut theta);
        theta
    }
}

fn largest(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}

impl WeightSet for LpBall {
    /// The dual of Kloft et al. 2011: θ_m ∝ s_m^{1/(p−1)}, so that ⟨s, θ⟩ = ‖s‖_{p*} with 1/p +
    /// 1/p* = 1.
    fn support_point(&self, s: &[f64]) -> Vec<f64> {
        if self.p > 1.0 {
            return self.powers(s, 1.0 / (self.p - 1.0));
        }
        if largest(s) <= 0.0 {
            return self.start(s.len());
        }
        let winner = (0..s.len()).fold(0, |b, i| if s[i] > s[b] { i } else { b });
        (0..s.len()).map(|i| f64::from(i == winner)).collect()
    }

    /// q_m/θ_m² = λ p θ_m^{p−1}:  θ_m ∝ q_m^{1/(p+1)}.
    fn best_response(&self, sq_norms: &[f64]) -> Vec<f64> {
        self.powers(sq_norms, 1.0 / (self.p + 1.0))
    }

    fn project(&self, point: &[f64]) -> Vec<f64> {
        if self.p == f64::INFINITY {
            return point.iter().map(|x| x.clamp(0.0, 1.0)).collect();
        }
        let clipped: Vec<f64> = point.iter().map(|x| x.max(0.0)).collect();
        if self.load(&clipped) <= 1.0 {
            return clipped;
        }
        // θ + λ p θ^{p−1} = z, coordinate by coordinate; λ so that the constraint is tight.
        let coordinate = |z: f64, lambda: f64| {
            if self.p == 1.0 {
                (z - lambda).max(0.0)
            } else {
                root::increasing(|t| t + lambda * self.p * t.powf(self.p - 1.0) - z, z)
            }
        };
        let at = |lambda: f64| clipped.iter().map(|&z| coordinate(z, lambda)).collect::<Vec<_>>();
        let mut theta = at(root::decreasing(|lambda| self.load(&at(lambda)) - 1.0, 1.0));
        self.tighten(&mut theta);
        theta
    }

    fn start(&self, n_terms: usize) -> Vec<f64> {
        vec![(n_terms as f64).powf(-1.0 / self.p); n_terms]
    }

    fn load(&self, theta: &[f64]) -> f64 {
        let largest = largest(theta);
        if self.p == f64::INFINITY || largest == 0.0 {
            return largest;
        }
        largest * theta.iter().map(|t| (t / largest).powf(self.p)).sum::<f64>().powf(1.0 / self.p)
    }

    fn tighten(&self, theta: &mut [f64]) {
        for _ in 0..2 {
            let load = self.load(theta);
            // The second time only what rounding pushed outside.
            if load > 0.0 && load != 1.0 {
                theta.iter_mut().for_each(|t| *t /= load);
            }
        }
    }
}

/// Σ θ_m^p ≤ 1; for p = ∞ one constraint θ_m ≤ 1 per term.
impl Separable for LpBall {
    fn phi(&self, t: f64) -> [f64; 3] {
        let p = self.p;
        if p == 1.0 || p == f64::INFINITY {
            [t, 1.0, 0.0]
        } else if p == 2.0 {
            [t * t, 2.0 * t, 2.0]
        } else {
            [t.powf(p), p * t.powf(p - 1.0), p * (p - 1.0) * t.powf(p - 2.0)]
        }
    }

    fn groups(&self, n_terms: usize) -> Vec<Range<usize>> {
        if self.p == f64::INFINITY {
            return (0..n_terms).map(|m| m..m + 1).collect();
        }
        std::iter::once(0..n_terms).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::dot;

    /// ‖s‖_{p*} against the support, far from where powers of the plain numbers would survive.
    #[test]
    fn extreme_exponents_neither_overflow_nor_vanish() {
        for scale in [1e-200, 1.0, 1e200] {
            let s: Vec<f64> = [3.0, 1.0, 2.999, 0.0, 3.0].iter().map(|x| x * scale).collect();
            let mut last = 0.0;
            for p in [1.0, 1.0 + 1e-12, 1.0 + 1e-6, 1.001, 1.1, 2.0, 10.0, 1e3, 1e6, f64::INFINITY]
            {
                let set = LpBall::new(p).unwrap();
                let (support, response) = (set.support_point(&s), set.best_response(&s));
                for theta in [&support, &response, &set.project(&s)] {
                    assert!(theta.iter().all(|t| t.is_finite() && *t >= 0.0), "p={p}: {theta:?}");
                    assert!(set.load(theta) <= 1.0 + 1e-12, "p={p}");
                }
                let value = dot(&s, &support);
                // The balls grow with p, from max s to Σ s.
                assert!(
                    value >= last * (1.0 - 1e-12) && value >= 3.0 * scale * (1.0 - 1e-12),
                    "p={p}: {value:e}"
                );
                last = value;
            }
            assert!((last / scale - 9.999).abs() < 1e-12);
        }
    }

    #[test]
    fn p_below_1_is_refused() {
        for p in [0.99, 0.0, -1.0, f64::NAN] {
            assert!(LpBall::new(p).unwrap_err().to_string().contains("`p`"));
        }
    }
}
