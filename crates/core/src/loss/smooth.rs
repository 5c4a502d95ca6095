//! Losses with a slope and a curvature, and the roots of monotone functions they lead to.

use super::Loss;

/// Steps in the search for a root at most: it ends by itself long before.
const ROOT_STEPS: usize = 300;

/// A loss that is differentiable in f, its slope almost everywhere so too.
pub trait SmoothLoss: Loss {
    /// The slope ∂ℓ/∂f of the loss.
    fn slope(&self, y: f64, f: f64) -> f64;

    /// ∂²ℓ/∂f² ≥ 0; where the slope bends, either side's.
    fn curvature(&self, y: f64, f: f64) -> f64;
}

/// b with Σ c_i ℓ'(y_i, f_i + b) = 0 to machine precision.
pub(super) fn stationary_bias(loss: &impl SmoothLoss, y: &[f64], f: &[f64], cost: &[f64]) -> f64 {
    increasing_root(0.0, |b| {
        (0..y.len()).fold((0.0, 0.0), |(slope, bend), i| {
            let at = f[i] + b;
            (slope + cost[i] * loss.slope(y[i], at), bend + cost[i] * loss.curvature(y[i], at))
        })
    })
}

/// A root of a non-decreasing function, given as (value, derivative); the finite end of the search
/// if there is none.
///
/// Newton's method while its steps at least halve and stay between the signs seen so far; otherwise
/// the middle of that bracket, or, while one side is open, a step twice as long. Ends when x no
/// longer changes, so the answer does not depend on a tolerance.
pub(crate) fn increasing_root(start: f64, at: impl Fn(f64) -> (f64, f64)) -> f64 {
    let (mut low, mut high) = (f64::NEG_INFINITY, f64::INFINITY);
    let (mut x, mut last) = (start, 1.0f64);
    for _ in 0..ROOT_STEPS {
        let (value, derivative) = at(x);
        if value == 0.0 || value.is_nan() {
            break;
        }
        *(if value < 0.0 { &mut low } else { &mut high }) = x;
        let newton = -value / derivative;
        let step = if newton.abs() <= 0.5 * last && (low..=high).contains(&(x + newton)) {
            newton
        } else if low.is_finite() && high.is_finite() {
            0.5 * (low + high) - x
        } else {
            -2.0 * last * value.signum()
        };
        let next = x + step;
        if next == x {
            break;
        }
        (x, last) = (next, step.abs());
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_of_smooth_kinked_flat_and_far_functions() {
        for (root, f) in [
            (3.0f64.cbrt(), (|x: f64| (x.powi(3) - 3.0, 3.0 * x * x)) as fn(f64) -> (f64, f64)),
            (-1e9, |x| (x + 1e9, 1.0)),
            (40.0, |x| ((x - 40.0).tanh(), (x - 40.0).cosh().powi(-2))),
            (0.25, |x| if x < 0.25 { (x - 0.25, 1.0) } else { (1e6 * (x - 0.25), 1e6) }),
            (-7.0, |x| (if x < -7.0 { -1.0 } else { 1.0 }, 0.0)),
            (2.0, |x| ((x - 2.0).powi(5), 5.0 * (x - 2.0).powi(4))),
        ] {
            for start in [0.0, -100.0, 55.5] {
                let got = increasing_root(start, f);
                assert!(
                    (got - root).abs() <= 1e-12 * root.abs().max(1.0),
                    "{got} instead of {root}"
                );
            }
        }
    }
}
