//! The kernels as the steps of the joint method see them: the combined one, and what each makes of the multipliers.

use rayon::prelude::*;

use super::{ROUNDED, combined, thin};
use crate::{
    gram::{Gram, GramSource, Images, LowRankSum},
    linalg::Matrix,
};

/// K_θ or something close.
pub(super) enum Kernel {
    /// In few columns, to single precision if `rounded`.
    Thin { thin: LowRankSum, rounded: bool },
    /// Every entry.
    Whole(Gram),
}

impl Kernel {
    /// With a share of the trace left out.
    pub(super) fn of(grams: &dyn GramSource, theta: &[f64], share: f64) -> Self {
        match thin(grams) {
            Some(factors) => Self::Thin { thin: combined(&factors, theta).truncated(share), rounded: share > ROUNDED },
            None => Self::Whole(grams.combine_truncated(theta, share)),
        }
    }
}

/// V.
pub(super) enum Values<'a> {
    /// A column per term.
    Exact(Matrix),
    /// In the coordinates of the terms, and a row per term to single precision, for the steps.
    Single { exact: Images<'a>, rows: Vec<f32> },
}

impl Values<'_> {
    /// Of one term.
    pub(super) fn column(&self, m: usize) -> Vec<f64> {
        match self {
            Self::Exact(v) => v.column(m),
            Self::Single { exact, rows } => {
                let n = rows.len() / exact.forms().len();
                rows[m * n..(m + 1) * n].iter().map(|x| f64::from(*x)).collect()
            }
        }
    }

    /// V x, exactly.
    pub(super) fn decision(&self, x: &[f64]) -> Vec<f64> {
        match self {
            Self::Exact(v) => v.times(x),
            Self::Single { exact, .. } => exact.times(x),
        }
    }

    /// V x.
    pub(super) fn times(&self, x: &[f64]) -> Vec<f64> {
        match self {
            Self::Exact(v) => v.times(x),
            Self::Single { rows, .. } => {
                let n = rows.len() / x.len();
                let mut out = vec![0.0; n];
                for (x, row) in x.iter().zip(rows.chunks_exact(n)) {
                    out.iter_mut().zip(row).for_each(|(o, r)| *o += x * f64::from(*r));
                }
                out
            }
        }
    }

    /// Vᵀ v.
    pub(super) fn transposed_times(&self, v: &[f64]) -> Vec<f64> {
        match self {
            Self::Exact(values) => values.transposed_times(v),
            Self::Single { rows, .. } => {
                let own = |row: &[f32]| row.iter().zip(v).map(|(r, v)| f64::from(*r) * v).sum();
                rows.par_chunks_exact(v.len()).with_min_len(64).map(own).collect()
            }
        }
    }
}
