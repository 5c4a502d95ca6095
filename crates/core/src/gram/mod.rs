//! The one seam between kernels and solvers: an ordered list of kernel terms over shared samples.
//!
//! A term is stored as the cheapest of a low-rank factor with its certified residual, or a packed triangle; solvers cannot tell
//! which. A new backend implements [`GramSource`] and serves every method.

mod alignment;
mod approx;
mod build;
mod dense;
mod impute;
mod low_rank;
mod precomputed;
mod set;
mod subset;

pub use crate::error::human_bytes;
pub use alignment::{centred_norms, centred_products, target_products};
pub use approx::{Approx, ApproxError};
pub use build::{Budget, BuildOptions, Storage, gram_block};
pub use dense::{AddRow, Gram, Scratch, SingleKernel, Square};
pub(crate) use dense::{Cell, Each, add_factors, add_single};
pub use low_rank::{Basis, Combination, Extension, Factor, LowRankSum, SingleColumns};
pub(crate) use low_rank::{EXACT, Images, RankLimit, basis_bytes};
pub use precomputed::{Stack, extreme_eigenvalues_of};
pub use set::GramSet;
pub use subset::Groups;

use crate::linalg::dot;

/// Kernel terms K_1 … K_M over n shared samples.
pub trait GramSource: Sync {
    /// n.
    fn n_samples(&self) -> usize;

    /// M.
    fn n_terms(&self) -> usize;

    /// out += weight · diag(scale) K_t diag(scale) on the lower triangle; `None` means all ones.
    fn accumulate(&self, t: usize, weight: f64, scale: Option<&[f64]>, out: &mut Gram);

    /// out = K_t v.
    fn apply(&self, t: usize, v: &[f64], out: &mut [f64]);

    /// out = row i of K_t.
    fn row(&self, t: usize, i: usize, out: &mut [f64]);

    /// L with K_t ≈ L Lᵀ, where the term is stored so.
    fn factor(&self, t: usize) -> Option<&Factor>;

    /// Trace of what truncation left out: 0 ≤ aᵀ(K_t − stored)a ≤ residual · ‖a‖².
    fn residual(&self, t: usize) -> f64 {
        self.factor(t).map_or(0.0, |f| f.residual)
    }

    /// Σ_t weights_t K_t, both triangles.
    fn combine(&self, weights: &[f64]) -> Gram {
        let mut out = Gram::zeros(self.n_samples());
        for (t, &w) in weights.iter().enumerate().filter(|(_, w)| **w != 0.0) {
            self.accumulate(t, w, None, &mut out);
        }
        out.mirror();
        out
    }

    /// Its lower triangle, where a share of the trace may be left out if that is faster.
    fn combine_truncated(&self, weights: &[f64], _share: f64) -> Gram {
        self.combine(weights)
    }

    /// The same in single precision with exact products, where that is faster.
    fn combine_single(&self, _weights: &[f64]) -> Option<SingleKernel> {
        None
    }

    /// out += Σ_j diag(s_j) (Σ_t weights_jt K_t) diag(s_j) on the lower triangle.
    fn combine_scaled(&self, weights: &[Vec<f64>], scales: &[Vec<f64>], out: &mut Gram) {
        combine_each(self, weights, scales, out);
    }

    /// tr K_t, what truncation left out included.
    fn trace(&self, t: usize) -> f64;

    /// A number that tr K_t does not exceed, and that takes little work to find.
    fn trace_bound(&self, t: usize) -> f64 {
        self.trace(t)
    }

    /// s_t = aᵀ K_t a for every term.
    fn quad_forms(&self, a: &[f64]) -> Vec<f64> {
        self.quad_forms_of(&(0..self.n_terms()).collect::<Vec<_>>(), a)
    }

    /// s_t = aᵀ K_t a for the terms named.
    fn quad_forms_of(&self, terms: &[usize], a: &[f64]) -> Vec<f64> {
        let mut v = vec![0.0; a.len()];
        terms
            .iter()
            .map(|&t| {
                self.apply(t, a, &mut v);
                dot(a, &v).max(0.0)
            })
            .collect()
    }

    /// The same for several vectors.
    fn quad_forms_of_each(&self, terms: &[usize], vectors: &[Vec<f64>]) -> Vec<Vec<f64>> {
        vectors.iter().map(|a| self.quad_forms_of(terms, a)).collect()
    }
}

/// [`GramSource::combine_scaled`], scale by scale.
fn combine_each<G: GramSource + ?Sized>(grams: &G, weights: &[Vec<f64>], scales: &[Vec<f64>], out: &mut Gram) {
    let n = grams.n_samples();
    for (weights, scale) in weights.iter().zip(scales).filter(|(w, _)| w.iter().any(|w| *w != 0.0)) {
        let sum = grams.combine(weights);
        for (i, row) in out.data_mut().chunks_exact_mut(n).enumerate().filter(|(i, _)| scale[*i] != 0.0) {
            row[..=i].iter_mut().zip(sum.row(i)).zip(scale).for_each(|((o, k), s)| *o += scale[i] * s * k);
        }
    }
}

#[cfg(test)]
pub(crate) mod tests_support {
    use super::{Factor, RankLimit};
    use crate::linalg::Matrix;

    /// L with L Lᵀ = k to rounding.
    pub fn full_factor(k: &Matrix) -> Matrix {
        let diagonal: Vec<f64> = (0..k.rows()).map(|i| k[(i, i)]).collect();
        let limit = RankLimit { tolerance: 1e-15, max_rank: k.rows() };
        Factor::pivoted(&diagonal, limit, |j, out| out.copy_from_slice(k.row(j))).unwrap().rows().into_owned()
    }
}
