//! log(1 + exp(−y f)), y = ±1: logistic regression, whose decision values are log odds.

use super::{DOMAIN_SLACK, Loss, SmoothLoss, smooth::stationary_bias};

/// log(1 + exp(−y f)).
#[derive(Debug, Clone, Copy, Default)]
pub struct Logistic;

impl Logistic {
    /// 1 / (1 + exp(−x)), without overflow.
    pub fn sigmoid(x: f64) -> f64 {
        let small = (-x.abs()).exp();
        if x >= 0.0 { 1.0 / (1.0 + small) } else { small / (1.0 + small) }
    }
}

impl Loss for Logistic {
    fn name(&self) -> &'static str {
        "logistic"
    }

    fn value(&self, y: f64, f: f64) -> f64 {
        let margin = y * f;
        (-margin).max(0.0) + (-margin.abs()).exp().ln_1p()
    }

    fn conjugate(&self, y: f64, u: f64) -> f64 {
        let t = -u * y;
        if !(-DOMAIN_SLACK..=1.0 + DOMAIN_SLACK).contains(&t) {
            return f64::INFINITY;
        }
        let entropy = |t: f64| if t > 0.0 { t * t.ln() } else { 0.0 };
        entropy(t) + if t < 1.0 { (1.0 - t) * (-t).ln_1p() } else { 0.0 }
    }

    fn dual_interval(&self, y: f64) -> (f64, f64) {
        if y > 0.0 { (0.0, 1.0) } else { (-1.0, 0.0) }
    }

    fn conjugate_modulus(&self) -> f64 {
        4.0
    }

    fn best_bias(&self, y: &[f64], f: &[f64], cost: &[f64]) -> f64 {
        stationary_bias(self, y, f, cost)
    }
}

impl SmoothLoss for Logistic {
    fn slope(&self, y: f64, f: f64) -> f64 {
        -y * Self::sigmoid(-y * f)
    }

    fn curvature(&self, _: f64, f: f64) -> f64 {
        let small = (-f.abs()).exp();
        small / ((1.0 + small) * (1.0 + small))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extreme_decision_values_neither_overflow_nor_lose_the_tail() {
        let l = Logistic;
        assert_eq!((l.value(1.0, -1e4), l.value(1.0, 1e4)), (1e4, 0.0));
        assert!((l.value(1.0, 40.0) / (-40.0f64).exp() - 1.0).abs() < 1e-15);
        assert_eq!(
            (l.slope(1.0, -1e4), l.slope(-1.0, 1e4), l.curvature(1.0, 1e4)),
            (-1.0, 1.0, 0.0)
        );
        // ℓ(f) + ℓ*(ℓ'(f)) = f ℓ'(f), in the tails too.
        for m in [-30.0, -3.0, 0.0, 3.0, 30.0, 300.0] {
            let u = l.slope(1.0, m);
            assert!(
                (l.value(1.0, m) + l.conjugate(1.0, u) - m * u).abs()
                    <= 1e-13 * l.value(1.0, m).max(1e-2),
                "{m}"
            );
        }
    }
}
