//! How errors are paid: pointwise losses with their conjugates. Callers sum over samples; nobody averages.
//!
//! With signed multipliers a (f(x) = Σ a_i k(x_i, x) + b) and cost c_i per sample, the dual of
//! Σ c_i ℓ(y_i, f_i) + ½ aᵀKa is A(a) − ½ aᵀKa with A(a) = −Σ c_i ℓ*(y_i, −a_i/c_i), subject to Σ a_i = 0 (because of b) and
//! a_i in c_i · `dual_interval`.

mod epsilon_insensitive;
mod hinge;
mod logistic;
mod piecewise;
mod smooth;
mod squared;
mod squared_hinge;

pub use epsilon_insensitive::EpsilonInsensitive;
pub use hinge::Hinge;
pub use logistic::Logistic;
pub use smooth::SmoothLoss;
pub(crate) use smooth::increasing_root;
pub use squared::Squared;
pub use squared_hinge::SquaredHinge;

/// A slope may leave the domain of a conjugate by this much, which rounding of multipliers can do.
const DOMAIN_SLACK: f64 = 1e-9;

/// A convex loss ℓ(y, f) of a target and a decision value.
pub trait Loss: Sync {
    /// The name that users type.
    fn name(&self) -> &'static str;

    /// The loss ℓ(y, f) of a decision value.
    fn value(&self, y: f64, f: f64) -> f64;

    /// ℓ*(y, u) = sup_f u f − ℓ(y, f); infinite outside the domain.
    fn conjugate(&self, y: f64, u: f64) -> f64;

    /// Where a_i / c_i may lie.
    fn dual_interval(&self, y: f64) -> (f64, f64);

    /// κ ≥ 0 such that ℓ*(y, u) − ½ κ u² is convex in u: the inverse of the largest curvature of ℓ, 0 where ℓ has kinks.
    fn conjugate_modulus(&self) -> f64 {
        0.0
    }

    /// A b that minimises Σ c_i ℓ(y_i, f_i + b): the middle where there are many.
    fn best_bias(&self, y: &[f64], f: &[f64], cost: &[f64]) -> f64;

    /// Σ c_i ℓ(y_i, f_i + b).
    fn total(&self, y: &[f64], f: &[f64], bias: f64, cost: &[f64]) -> f64 {
        (0..y.len()).map(|i| cost[i] * self.value(y[i], f[i] + bias)).sum()
    }

    /// A(a) = −Σ c_i ℓ*(y_i, −a_i/c_i).
    fn dual_sum(&self, y: &[f64], a: &[f64], cost: &[f64]) -> f64 {
        (0..y.len()).map(|i| -cost[i] * self.conjugate(y[i], -a[i] / cost[i])).sum()
    }
}
