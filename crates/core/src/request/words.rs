//! The words that parameters of methods can be.

use serde::{Deserialize, Serialize};

/// Solvers that reach the same optimum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Solver {
    /// The level method for the elastic net and for p below 1.2, alternation above; `Interior` for
    /// many rows in low-rank storage.
    #[default]
    Auto,
    /// Cutting planes with projections onto level sets.
    Level,
    /// Machine and closed-form weights in turn.
    Alternating,
    /// Weights and multipliers in one interior-point method; hinge or ε-insensitive loss on
    /// low-rank kernels.
    Interior,
    /// Reduced gradient with line search (SimpleMKL); p = 1 only.
    ReducedGradient,
    /// Cutting planes alone (SILP); p = 1 only.
    Silp,
}

/// How even memberships in regions are.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Evenness {
    /// Average evenness, in (1/regions, 1].
    Average(f64),
    /// The word `hard`.
    Word(EvennessWord),
}

impl Evenness {
    /// Every row belongs to one region.
    pub const HARD: Self = Self::Word(EvennessWord::Hard);
}

/// Evenness in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EvennessWord {
    /// Every row belongs to one region.
    Hard,
}

/// Forms of a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GateName {
    /// η_m ∝ exp(z_m): kernels compete.
    #[default]
    Softmax,
    /// η_m = 1/(1 + exp(−z_m)): each on its own.
    Sigmoid,
}
