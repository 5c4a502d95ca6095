//! How errors are paid: pointwise losses with their conjugates. Callers sum over samples; nobody
//! averages.
//!
//! With signed multipliers a (f(x) = Σ a_i k(x_i, x) + b) and cost c_i per sample, the dual of Σ
//! c_i ℓ(y_i, f_i) + ½ aᵀKa is A(a) − ½ aᵀKa with A(a) = −Σ c_i ℓ*(y_i, −a_i/c_i), subject to Σ a_i
//! = 0 (because of b) and a_i in c_i · `dual_interval`.

use serde::{Deserialize, Serialize};

mod epsilon_insensitive;
mod hinge;
mod huber;
mod logistic;
mod piecewise;
mod smooth;
mod squared;
mod squared_hinge;

pub use epsilon_insensitive::EpsilonInsensitive;
pub use hinge::Hinge;
pub use huber::Huber;
pub use logistic::Logistic;
pub use smooth::SmoothLoss;
pub(crate) use smooth::increasing_root;
pub use squared::Squared;
pub use squared_hinge::SquaredHinge;

/// A slope may leave the domain of a conjugate by this much, which rounding of multipliers can do.
const DOMAIN_SLACK: f64 = 1e-9;

/// The losses that users can name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LossName {
    /// max(0, 1 − y f)
    Hinge,
    /// ½ max(0, 1 − y f)²
    SquaredHinge,
    /// log(1 + exp(−y f))
    Logistic,
    /// max(0, |f − y| − ε)
    EpsilonInsensitive,
    /// ½ (f − y)²
    Squared,
    /// ½ r² for |r| ≤ ε, ε |r| − ½ ε² beyond, r = f − y
    Huber,
}

impl LossName {
    /// Every loss, in the order in which messages list them.
    pub const ALL: [Self; 6] = [
        Self::Hinge,
        Self::SquaredHinge,
        Self::Logistic,
        Self::EpsilonInsensitive,
        Self::Squared,
        Self::Huber,
    ];

    /// What users type, in the order of [`LossName::ALL`].
    pub const NAMES: [&'static str; Self::ALL.len()] = {
        let mut names = [""; Self::ALL.len()];
        let mut k = 0;
        while k < names.len() {
            names[k] = Self::ALL[k].as_str();
            k += 1;
        }
        names
    };

    /// The word that users type for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hinge => "hinge",
            Self::SquaredHinge => "squared_hinge",
            Self::Logistic => "logistic",
            Self::EpsilonInsensitive => "epsilon_insensitive",
            Self::Squared => "squared",
            Self::Huber => "huber",
        }
    }

    /// Can it be paid for a class, y = ±1?
    pub fn suits_classes(self) -> bool {
        !matches!(self, Self::EpsilonInsensitive | Self::Huber)
    }

    /// Can it be paid for a value?
    pub fn suits_values(self) -> bool {
        matches!(self, Self::EpsilonInsensitive | Self::Squared | Self::Huber)
    }

    /// The request's `epsilon` where it is left out, in the units of a target with this standard
    /// deviation; `None` for a loss that does not read it.
    pub fn default_epsilon(self, deviation: f64) -> Option<f64> {
        match self {
            Self::EpsilonInsensitive => Some(0.1 * deviation),
            // docs/defaults.md; equal values have no deviation, and any δ fits them.
            Self::Huber => Some(if deviation > 0.0 { 0.5 * deviation } else { 1.0 }),
            Self::Hinge | Self::SquaredHinge | Self::Logistic | Self::Squared => None,
        }
    }

    /// What `epsilon` is for this loss and its default, as the program's help says it; `None` for a
    /// loss that does not read it.
    pub fn epsilon_help(self) -> Option<&'static str> {
        match self {
            Self::EpsilonInsensitive => Some(
                "Half-width of the tube of `epsilon_insensitive` [default: 0.1 times the deviation of the target]",
            ),
            Self::Huber => Some(
                "error at which `huber` turns from quadratic to linear [default: 0.5 times the deviation of the target]",
            ),
            Self::Hinge | Self::SquaredHinge | Self::Logistic | Self::Squared => None,
        }
    }
}

/// A convex loss ℓ(y, f) of a target and a decision value.
pub trait Loss: Sync {
    /// The word that users type for it.
    fn name(&self) -> &'static str;

    /// The loss ℓ(y, f) of one sample.
    fn value(&self, y: f64, f: f64) -> f64;

    /// ℓ*(y, u) = sup_f u f − ℓ(y, f); infinite outside the domain.
    fn conjugate(&self, y: f64, u: f64) -> f64;

    /// Where a_i / c_i may lie.
    fn dual_interval(&self, y: f64) -> (f64, f64);

    /// κ ≥ 0 such that ℓ*(y, u) − ½ κ u² is convex in u: the inverse of the largest curvature of ℓ,
    /// 0 where ℓ has kinks.
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
