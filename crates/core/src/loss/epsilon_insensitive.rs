//! max(0, |f − y| − ε): support vector regression.

use super::{DOMAIN_SLACK, Loss, piecewise::middle_minimiser};
use crate::{Error, Result};

/// max(0, |f − y| − ε).
#[derive(Debug, Clone, Copy)]
pub struct EpsilonInsensitive {
    epsilon: f64,
}

impl EpsilonInsensitive {
    /// The loss for a tube of half-width ε ≥ 0.
    pub fn new(epsilon: f64) -> Result<Self> {
        if epsilon.is_finite() && epsilon >= 0.0 {
            return Ok(Self { epsilon });
        }
        Err(Error::param("epsilon", "a finite number ≥ 0", epsilon))
    }

    /// Half the width of the tube.
    pub fn epsilon(&self) -> f64 {
        self.epsilon
    }
}

impl Loss for EpsilonInsensitive {
    fn name(&self) -> &'static str {
        "epsilon_insensitive"
    }

    fn value(&self, y: f64, f: f64) -> f64 {
        ((f - y).abs() - self.epsilon).max(0.0)
    }

    fn conjugate(&self, y: f64, u: f64) -> f64 {
        if u.abs() <= 1.0 + DOMAIN_SLACK { u * y + self.epsilon * u.abs() } else { f64::INFINITY }
    }

    fn dual_interval(&self, _: f64) -> (f64, f64) {
        (-1.0, 1.0)
    }

    fn best_bias(&self, y: &[f64], f: &[f64], cost: &[f64]) -> f64 {
        let kinks = (0..y.len())
            .flat_map(|i| [-self.epsilon, self.epsilon].map(|e| (y[i] - f[i] + e, cost[i])));
        middle_minimiser(kinks.collect(), -cost.iter().sum::<f64>())
    }
}
