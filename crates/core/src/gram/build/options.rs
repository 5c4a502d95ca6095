//! How terms are stored, and in how much memory.

use serde::{Deserialize, Serialize};

use super::super::{Approx, RankLimit};
use crate::{Error, Result, data::source::machine_memory, kernels::Normalize, tuning::tuning};

tuning! { "build_options"
    /// Rows per column of a factor, at least, where storage is free to choose. A factor of rank n/3
    /// takes two thirds of the memory of a packed triangle, and products with it as much less time.
    rows_per_column: usize = 3;
    /// Share of the machine's memory that kernels may take where no budget is given.
    machine_memory_share: f64 = 0.5;
}

/// Bytes of memory that a machine is taken to have where the system does not say.
const UNKNOWN_MEMORY_BYTES: u64 = 8 << 30;

/// The form in which kernel matrices are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Storage {
    /// The cheapest that fits, per kernel.
    #[default]
    Auto,
    /// Packed triangles of f64.
    Dense,
    /// Packed triangles of f32.
    DenseF32,
    /// Low-rank factors at any rank.
    LowRank,
}

/// A limit on the memory that kernel matrices may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// The limit in bytes.
    pub bytes: u64,
}

impl Budget {
    /// `None`: half the machine's memory (4 GiB where that cannot be read).
    pub fn new(bytes: Option<u64>) -> Self {
        let share = |memory: u64| (TUNING.machine_memory_share * memory as f64) as u64;
        Self {
            bytes: bytes.unwrap_or_else(|| share(machine_memory().unwrap_or(UNKNOWN_MEMORY_BYTES))),
        }
    }

    /// What is left of the budget once some bytes of it are taken.
    #[must_use]
    pub fn less(self, bytes: u64) -> Self {
        Self { bytes: self.bytes.saturating_sub(bytes) }
    }

    /// Refuses, before anything is allocated, what does not fit.
    pub fn check(self, what: impl Into<String>, need: u64, remedy: &str) -> Result<()> {
        if need <= self.bytes {
            return Ok(());
        }
        Err(Error::memory(what, need, self.bytes, remedy))
    }
}

/// Everything besides the data that stored terms depend on.
#[derive(Debug, Clone, Copy)]
pub struct BuildOptions {
    /// Scaling of every kernel.
    pub normalize: Normalize,
    /// The form in which terms are stored.
    pub storage: Storage,
    /// Relative trace residual at which a factor stops.
    pub rank_tolerance: f64,
    /// The memory that all terms may take.
    pub budget: Budget,
    /// The kernel that stands in for every kernel, if any does.
    pub approx: Approx,
    /// Seed of its landmarks or frequencies.
    pub seed: u64,
}

impl Default for BuildOptions {
    fn default() -> Self {
        let (normalize, storage, approx) = (Normalize::default(), Storage::Auto, Approx::None);
        Self {
            normalize,
            storage,
            rank_tolerance: 1e-10,
            budget: Budget::new(None),
            approx,
            seed: 0,
        }
    }
}

impl BuildOptions {
    /// How far a factor of n rows may go. One that would not fit the budget is given up before it
    /// is there.
    pub(super) fn rank_limit(&self, n: usize) -> RankLimit {
        let max_rank =
            if self.storage == Storage::LowRank { n } else { n / TUNING.rows_per_column };
        let fitting = self.budget.bytes / (size_of::<f64>() * n.max(1)) as u64;
        RankLimit {
            tolerance: self.rank_tolerance,
            max_rank: max_rank.min(usize::try_from(fitting).unwrap_or(max_rank)),
        }
    }

    /// May terms be factors?
    pub(super) fn may_factor(&self) -> bool {
        matches!(self.storage, Storage::Auto | Storage::LowRank)
    }
}
