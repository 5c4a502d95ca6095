//! Which parameters are left to cross-validation on the training rows.

use serde::{Deserialize, Serialize};

/// Parameters left to cross-validation on the training rows. Their values in the request count for
/// nothing, and those found take their place in the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Choices {
    /// Is C chosen among a few values?
    pub c: bool,
    /// C is 1 instead, or the number of training rows for unit-trace kernels, whose scale is that
    /// many times smaller.
    pub scale: bool,
    /// Is v of the elastic net chosen among a few values?
    pub v: bool,
    /// Folds at most: no more than the smallest class has rows.
    pub folds: usize,
    /// Seed that draws the folds.
    pub seed: u64,
}

impl Default for Choices {
    fn default() -> Self {
        Self { c: false, scale: false, v: false, folds: 5, seed: 0 }
    }
}
