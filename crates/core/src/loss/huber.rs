//! ½ r² for |r| ≤ δ, δ |r| − ½ δ² beyond, r = f − y: the squared loss with outliers at a price that
//! grows no faster than they do [Huber1964].

use super::{DOMAIN_SLACK, Loss, SmoothLoss, smooth::stationary_bias};
use crate::{Error, Result};

/// ½ r² for |r| ≤ δ, δ |r| − ½ δ² beyond.
#[derive(Debug, Clone, Copy)]
pub struct Huber {
    delta: f64,
}

impl Huber {
    /// The loss that turns from quadratic to linear at errors of δ > 0.
    pub fn new(delta: f64) -> Result<Self> {
        if delta.is_finite() && delta > 0.0 {
            return Ok(Self { delta });
        }
        Err(Error::param("epsilon", "a finite number > 0 for huber", delta))
    }
}

impl Loss for Huber {
    fn name(&self) -> &'static str {
        "huber"
    }

    fn value(&self, y: f64, f: f64) -> f64 {
        let quadratic = (f - y).abs().min(self.delta);
        quadratic * ((f - y).abs() - 0.5 * quadratic)
    }

    fn conjugate(&self, y: f64, u: f64) -> f64 {
        if u.abs() <= self.delta * (1.0 + DOMAIN_SLACK) {
            u * y + 0.5 * u * u
        } else {
            f64::INFINITY
        }
    }

    fn dual_interval(&self, _: f64) -> (f64, f64) {
        (-self.delta, self.delta)
    }

    fn conjugate_modulus(&self) -> f64 {
        1.0
    }

    fn best_bias(&self, y: &[f64], f: &[f64], cost: &[f64]) -> f64 {
        let b = stationary_bias(self, y, f, cost);
        // While every error is in the linear part the slope stays 0: until the first comes to its
        // end, as b falls or as it rises.
        let (mut falls, mut rises) = (f64::INFINITY, f64::INFINITY);
        for (y, f) in y.iter().zip(f) {
            let (error, beyond) = (f + b - y, (f + b - y).abs() - self.delta);
            if beyond < 0.0 {
                return b;
            }
            if error > 0.0 { falls = falls.min(beyond) } else { rises = rises.min(beyond) }
        }
        if falls.is_finite() && rises.is_finite() { b + 0.5 * (rises - falls) } else { b }
    }
}

impl SmoothLoss for Huber {
    fn slope(&self, y: f64, f: f64) -> f64 {
        (f - y).clamp(-self.delta, self.delta)
    }

    fn curvature(&self, y: f64, f: f64) -> f64 {
        if (f - y).abs() <= self.delta { 1.0 } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bias_is_the_middle_where_every_error_is_in_the_linear_part() {
        let loss = Huber::new(0.5).unwrap();
        let bias = |y: &[f64]| loss.best_bias(y, &vec![0.0; y.len()], &vec![1.0; y.len()]);
        assert!((bias(&[-3.0, 9.0]) - 3.0).abs() < 1e-12);
        assert!((bias(&[-5.0, -3.0, 9.0, 90.0]) - 3.0).abs() < 1e-12);
        // One outlier among four weighs as much as an error of δ does: 3 b = 0.5.
        assert!((bias(&[0.0, 0.0, 0.0, 1e6]) - 0.5 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn only_positive_numbers_are_taken() {
        for delta in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(Huber::new(delta).unwrap_err().to_string().contains("epsilon"));
        }
    }
}
