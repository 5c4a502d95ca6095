//! What solvers ask of kernel terms: six questions that every source answers, and some that a
//! source may answer faster.

use super::{Factor, Gram, Scratch, SingleKernel, combine::combine};
use crate::linalg::dot;

/// A sum of matrices, one row of its lower triangle at a time: `add(i, row)` adds entries (i,
/// 0..=i) to `row`.
pub type AddRow<'a> = Box<dyn Fn(usize, &mut [f64]) + Sync + 'a>;

/// Kernel terms K_1 … K_M over n shared samples.
///
/// The first six methods make a source. The others have answers that follow from those six; a
/// source overrides one where it knows a faster way or a capability of its own.
pub trait GramSource: Sync {
    /// Number of samples n.
    fn n_samples(&self) -> usize;

    /// Number of terms M.
    fn n_terms(&self) -> usize;

    /// out += weight · diag(scale) K_t diag(scale) on the lower triangle; `None` means all ones.
    fn accumulate(&self, t: usize, weight: f64, scale: Option<&[f64]>, out: &mut Gram);

    /// out = K_t v.
    fn apply(&self, t: usize, v: &[f64], out: &mut [f64]);

    /// out = row i of K_t.
    fn row(&self, t: usize, i: usize, out: &mut [f64]);

    /// The trace of K_t, what truncation left out included.
    fn trace(&self, t: usize) -> f64;

    /// The factors of terms stored at low rank, where the source has any.
    fn low_rank(&self) -> Option<&dyn LowRankTerms> {
        None
    }

    /// Trace of what truncation left out of a term: 0 ≤ aᵀ(K_t − stored)a ≤ residual · ‖a‖².
    fn residual(&self, t: usize) -> f64 {
        self.factor(t).map_or(0.0, |f| f.residual)
    }

    /// An upper bound on the trace of K_t that takes little work to find.
    fn trace_bound(&self, t: usize) -> f64 {
        self.trace(t)
    }

    /// Σ_t weights_t K_t over the terms that have no factor; `None` where no such term has weight.
    fn matrices<'a>(&'a self, weights: &[f64]) -> Option<AddRow<'a>> {
        let active =
            || weights.iter().enumerate().filter(|(t, w)| **w != 0.0 && self.factor(*t).is_none());
        active().next()?;
        let mut sum = Gram::zeros(self.n_samples());
        active().for_each(|(t, &w)| self.accumulate(t, w, None, &mut sum));
        Some(Box::new(move |i, row| row.iter_mut().zip(sum.row(i)).for_each(|(o, k)| *o += k)))
    }

    /// The lower triangle of Σ_t weights_t K_t, of which up to a share of the trace may be left out
    /// where that is faster.
    fn combine_truncated(&self, weights: &[f64], _share: f64) -> Gram {
        self.combine(weights)
    }

    /// Σ_t weights_t K_t with entries in single precision and exact products, in memory that
    /// `scratch` lends; `None` where the source does not offer that, or single precision cannot
    /// hold the sum.
    fn combine_single(&self, _weights: &[f64], _scratch: &Scratch) -> Option<SingleKernel> {
        None
    }

    /// aᵀ K_t a for the terms named, a list for each of several vectors a.
    fn quad_forms_of_each(&self, terms: &[usize], vectors: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let form = |t: usize, a: &[f64]| {
            let mut v = vec![0.0; a.len()];
            self.apply(t, a, &mut v);
            dot(a, &v).max(0.0)
        };
        vectors.iter().map(|a| terms.iter().map(|&t| form(t, a)).collect()).collect()
    }

    /// The factor of term t, where it is stored as one. Follows from [`GramSource::low_rank`].
    fn factor(&self, t: usize) -> Option<&Factor> {
        self.low_rank().and_then(|terms| terms.factor(t))
    }

    /// Σ_t weights_t K_t, both triangles. Follows from [`GramSource::matrices`] and
    /// [`GramSource::low_rank`].
    fn combine(&self, weights: &[f64]) -> Gram {
        combine(self, weights)
    }

    /// aᵀ K_t a for the terms named. Follows from [`GramSource::quad_forms_of_each`].
    fn quad_forms_of(&self, terms: &[usize], a: &[f64]) -> Vec<f64> {
        self.quad_forms_of_each(terms, &[a.to_vec()]).swap_remove(0)
    }

    /// aᵀ K_t a for every term. Follows from [`GramSource::quad_forms_of_each`].
    fn quad_forms(&self, a: &[f64]) -> Vec<f64> {
        self.quad_forms_of(&(0..self.n_terms()).collect::<Vec<_>>(), a)
    }
}

/// What a source knows of terms stored at low rank: K_t ≈ L_t L_tᵀ.
pub trait LowRankTerms: Sync {
    /// L_t with its certified residual, where the term is stored so.
    fn factor(&self, t: usize) -> Option<&Factor>;

    /// The factors in Σ_t weights_t K_t with their weights, in the order in which they are summed.
    fn active(&self, weights: &[f64]) -> Vec<(f64, &Factor)> {
        let active = weights.iter().enumerate().filter(|(_, w)| **w != 0.0);
        active.filter_map(|(t, &w)| self.factor(t).map(|f| (w, f))).collect()
    }
}
