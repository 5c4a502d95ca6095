//! The kernels as the steps of the joint method see them: the combined one, and what each makes of
//! the multipliers.

use rayon::prelude::*;

use super::{TUNING, combined, few_factors};
use crate::{
    gram::{Gram, GramSource, Images, LowRankSum},
    linalg::Matrix,
};

/// K_θ or something close.
pub(super) enum StepKernel {
    /// A truncated factor, to be kept in single precision if `single`.
    Factor { factor: LowRankSum, single: bool },
    /// A matrix of all entries.
    Matrix(Gram),
}

impl StepKernel {
    /// K_θ without this share of its trace.
    pub(super) fn of(grams: &dyn GramSource, theta: &[f64], share: f64) -> Self {
        match few_factors(grams) {
            Some(factors) => Self::Factor {
                factor: combined(&factors, theta).truncated(share),
                single: share > TUNING.single_precision_trace_share,
            },
            None => Self::Matrix(grams.combine_truncated(theta, share)),
        }
    }
}

/// V = [K_1 a … K_M a].
pub(super) enum TermImages<'a> {
    /// A matrix with a column per term.
    Exact(Matrix),
    /// V in the coordinates of the terms, and for the steps a row per term in single precision.
    Single { exact: Images<'a>, rows: Vec<f32> },
}

impl TermImages<'_> {
    /// K_m a of one term, for steps.
    pub(super) fn column(&self, m: usize) -> Vec<f64> {
        match self {
            Self::Exact(v) => v.column(m),
            Self::Single { exact, rows } => {
                let n = rows.len() / exact.forms().len();
                rows[m * n..(m + 1) * n].iter().map(|x| f64::from(*x)).collect()
            }
        }
    }

    /// V x in double precision: decision values.
    pub(super) fn decision(&self, x: &[f64]) -> Vec<f64> {
        match self {
            Self::Exact(v) => v.times(x),
            Self::Single { exact, .. } => exact.times(x),
        }
    }

    /// V x for steps.
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

    /// Vᵀ v for steps.
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
