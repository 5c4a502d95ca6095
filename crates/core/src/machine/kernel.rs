//! The combined kernel a machine works on: a matrix with both triangles, or a factor where a matrix
//! would not fit.

use std::borrow::Cow;

use super::Machine;
use crate::{
    Result,
    gram::{Budget, EXACT, Factor, Forms, Gram, GramSource, LowRankSum, Scratch, SingleKernel},
    linalg::{Matrix, dot},
};

/// Σ θ_m K_m, in the form that its machine works on.
#[derive(Debug, Clone)]
pub enum Combined {
    /// Every entry, in double precision.
    Dense(Gram),
    /// A factor F with K = F Fᵀ.
    Factor(Matrix),
    /// The sum Σ B W Bᵀ in the bases of its terms, for machines that need no more than products.
    Bases(LowRankSum),
    /// Every entry in single precision, and exact products.
    Single(SingleKernel),
}

impl Combined {
    /// Σ θ_t K_t as a matrix where that fits `budget`, else in the bases of its terms, if every
    /// active term has one. Bases with few columns are taken even where the matrix fits, if the
    /// machine likes them. With `single`, entries of a matrix may be in single precision, in the
    /// memory given.
    pub fn new(
        grams: &dyn GramSource,
        weights: &[f64],
        budget: Budget,
        machine: &dyn Machine,
        single: Option<&Scratch>,
    ) -> Result<Self> {
        let n = grams.n_samples();
        let active = || weights.iter().enumerate().filter(|(_, w)| **w > 0.0);
        let factors: Option<Vec<(f64, &Factor)>> =
            active().map(|(t, w)| grams.factor(t).map(|f| (*w, f))).collect();
        let matrix_bytes = 8 * n as u64 * n as u64;
        let liked = |f: &Vec<(f64, &Factor)>| {
            !f.is_empty()
                && (matrix_bytes > budget.bytes || machine.likes_factor(n, LowRankSum::rank_of(f)))
        };
        if let Some(factors) = factors.filter(liked) {
            let sum = LowRankSum::new(&factors);
            if machine.solves_in_bases(n) {
                return Ok(Self::Bases(sum));
            }
            let bytes = 8 * n as u64 * sum.rank() as u64;
            budget.check("the combined factor", bytes, "raise the budget or use fewer kernels")?;
            return Ok(Self::Factor(sum.truncated_root(EXACT)));
        }
        let remedy = "raise the budget, or use fewer rows or only kernels of low rank, which need no such matrix";
        budget.check(format!("the combined kernel matrix of {n} samples"), matrix_bytes, remedy)?;
        let single = single
            .filter(|_| machine.corrects())
            .and_then(|scratch| grams.combine_single(weights, scratch));
        Ok(single.map_or_else(|| Self::Dense(grams.combine(weights)), Self::Single))
    }

    /// Number of samples of the kernel.
    pub fn n(&self) -> usize {
        match self {
            Self::Dense(k) => k.n(),
            Self::Factor(f) => f.rows(),
            Self::Bases(k) => k.n(),
            Self::Single(k) => k.rows().n(),
        }
    }

    /// The principal submatrix of the rows `index`.
    #[must_use]
    pub fn select(&self, index: &[usize]) -> Self {
        match self {
            Self::Dense(k) => Self::Dense(k.select(index)),
            Self::Factor(f) => Self::Factor(f.select_rows(index)),
            Self::Bases(k) => Self::Bases(k.select(index)),
            Self::Single(k) => Self::Dense(k.rows().select(index).widened()),
        }
    }

    /// The product K v.
    pub fn times(&self, v: &[f64]) -> Vec<f64> {
        match self {
            Self::Dense(k) => k.times(v),
            Self::Factor(f) => f.times(&f.transposed_times(v)),
            Self::Bases(k) => k.times(v),
            Self::Single(k) => k.times(v),
        }
    }

    /// The diagonal, K_ii for every sample i.
    pub fn diagonal(&self) -> Vec<f64> {
        match self {
            Self::Dense(k) => (0..k.n()).map(|i| k.row(i)[i]).collect(),
            Self::Single(k) => (0..self.n()).map(|i| f64::from(k.rows().row(i)[i])).collect(),
            Self::Factor(f) => (0..f.rows()).map(|i| dot(f.row(i), f.row(i))).collect(),
            Self::Bases(k) => Self::Factor(k.truncated_root(EXACT)).diagonal(),
        }
    }

    /// K v, and the forms vᵀ K_t v of terms that it takes no more work to find.
    pub fn times_with_forms(&self, v: &[f64]) -> (Vec<f64>, Forms) {
        match self {
            Self::Single(k) => k.times_with_forms(v),
            _ => (self.times(v), Forms::default()),
        }
    }

    /// K v from the entries in single precision, where there are such entries.
    pub(super) fn times_single(&self, v: &[f64]) -> Vec<f64> {
        match self {
            Self::Single(k) => k.rows().times(v),
            _ => self.times(v),
        }
    }

    /// Entries (i, 0..=i), where the kernel has entries.
    pub(super) fn lower_row(&self, i: usize) -> Option<Cow<'_, [f64]>> {
        match self {
            Self::Dense(k) => Some(Cow::Borrowed(&k.row(i)[..=i])),
            Self::Single(k) => Some(k.lower_row(i)),
            Self::Factor(_) | Self::Bases(_) => None,
        }
    }

    /// The kernel with up to a share of its trace left out, as one factor where it is known in
    /// bases; a matrix stays what it is.
    pub(super) fn truncated(&self, tolerance: f64) -> Cow<'_, Self> {
        match self {
            Self::Bases(k) => Cow::Owned(Self::Factor(k.truncated_root(tolerance))),
            _ => Cow::Borrowed(self),
        }
    }
}
