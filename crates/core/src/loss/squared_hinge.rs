//! ½ max(0, 1 − y f)², y = ±1: the support vector machine with squared slacks.

use super::{DOMAIN_SLACK, Loss, SmoothLoss, smooth::stationary_bias};

/// ½ max(0, 1 − y f)².
#[derive(Debug, Clone, Copy, Default)]
pub struct SquaredHinge;

impl Loss for SquaredHinge {
    fn name(&self) -> &'static str {
        "squared_hinge"
    }

    fn value(&self, y: f64, f: f64) -> f64 {
        0.5 * (1.0 - y * f).max(0.0).powi(2)
    }

    fn conjugate(&self, y: f64, u: f64) -> f64 {
        if u * y <= DOMAIN_SLACK { u * y + 0.5 * u * u } else { f64::INFINITY }
    }

    fn dual_interval(&self, y: f64) -> (f64, f64) {
        if y > 0.0 { (0.0, f64::INFINITY) } else { (f64::NEG_INFINITY, 0.0) }
    }

    fn conjugate_modulus(&self) -> f64 {
        1.0
    }

    fn best_bias(&self, y: &[f64], f: &[f64], cost: &[f64]) -> f64 {
        // Positives cost nothing from `left` on, negatives up to `right`: between the two, where
        // there is room, all b are best.
        let (mut left, mut right) = (f64::NEG_INFINITY, f64::INFINITY);
        for (y, f) in y.iter().zip(f) {
            if *y > 0.0 { left = left.max(y - f) } else { right = right.min(y - f) }
        }
        match (left.is_finite(), right.is_finite()) {
            (true, true) if left <= right => 0.5 * (left + right),
            (true, false) => left,
            (false, true) => right,
            _ => stationary_bias(self, y, f, cost),
        }
    }
}

impl SmoothLoss for SquaredHinge {
    fn slope(&self, y: f64, f: f64) -> f64 {
        -y * (1.0 - y * f).max(0.0)
    }

    fn curvature(&self, y: f64, f: f64) -> f64 {
        if y * f < 1.0 { 1.0 } else { 0.0 }
    }
}
