//! max(0, 1 − y f), y = ±1: the support vector machine.

use super::{DOMAIN_SLACK, Loss, piecewise::middle_minimiser};

/// max(0, 1 − y f).
#[derive(Debug, Clone, Copy, Default)]
pub struct Hinge;

impl Loss for Hinge {
    fn name(&self) -> &'static str {
        "hinge"
    }

    fn value(&self, y: f64, f: f64) -> f64 {
        (1.0 - y * f).max(0.0)
    }

    fn conjugate(&self, y: f64, u: f64) -> f64 {
        if (-1.0 - DOMAIN_SLACK..=DOMAIN_SLACK).contains(&(u * y)) { u * y } else { f64::INFINITY }
    }

    fn dual_interval(&self, y: f64) -> (f64, f64) {
        if y > 0.0 { (0.0, 1.0) } else { (-1.0, 0.0) }
    }

    fn best_bias(&self, y: &[f64], f: &[f64], cost: &[f64]) -> f64 {
        // In b each sample bends once, at y − f: from −c to 0 for y = +1, from 0 to c for y = −1.
        let start = -(0..y.len()).filter(|&i| y[i] > 0.0).map(|i| cost[i]).sum::<f64>();
        middle_minimiser((0..y.len()).map(|i| (y[i] - f[i], cost[i])).collect(), start)
    }
}
