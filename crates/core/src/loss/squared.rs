//! ½ (f − y)²: kernel ridge regression, or the least-squares support vector machine for y = ±1.

use super::{Loss, SmoothLoss};

/// ½ (f − y)².
#[derive(Debug, Clone, Copy, Default)]
pub struct Squared;

impl Loss for Squared {
    fn name(&self) -> &'static str {
        "squared"
    }

    fn value(&self, y: f64, f: f64) -> f64 {
        0.5 * (f - y) * (f - y)
    }

    fn conjugate(&self, y: f64, u: f64) -> f64 {
        u * y + 0.5 * u * u
    }

    fn dual_interval(&self, _: f64) -> (f64, f64) {
        (f64::NEG_INFINITY, f64::INFINITY)
    }

    fn conjugate_modulus(&self) -> f64 {
        1.0
    }

    fn best_bias(&self, y: &[f64], f: &[f64], cost: &[f64]) -> f64 {
        let weighted: f64 = (0..y.len()).map(|i| cost[i] * (y[i] - f[i])).sum();
        weighted / cost.iter().sum::<f64>()
    }
}

impl SmoothLoss for Squared {
    fn slope(&self, y: f64, f: f64) -> f64 {
        f - y
    }

    fn curvature(&self, _: f64, _: f64) -> f64 {
        1.0
    }
}
