//! Σ_t weights_t K_t of any source: its matrices row by row, then its factors by few large
//! products.

use rayon::prelude::*;

use super::{
    Factor, Gram, GramSource, Scratch, SingleKernel,
    dense::{add_factors, add_truncated},
};

/// Σ_t weights_t K_t, both triangles.
pub(crate) fn combine<G: GramSource + ?Sized>(grams: &G, weights: &[f64]) -> Gram {
    let mut out = matrices(grams, weights);
    add_factors(&factors(grams, weights), &mut out);
    out.mirror();
    out
}

/// The lower triangle of Σ_t weights_t K_t, of which up to a share of the trace of the factors is
/// left out.
pub(crate) fn combine_truncated<G: GramSource + ?Sized>(
    grams: &G,
    weights: &[f64],
    share: f64,
) -> Gram {
    let mut out = matrices(grams, weights);
    add_truncated(&factors(grams, weights), share, &mut out);
    out
}

/// Σ_t weights_t K_t with entries in single precision and exact products; `None` where single
/// precision cannot hold it.
pub(crate) fn combine_single<G: GramSource + ?Sized>(
    grams: &G,
    weights: &[f64],
    scratch: &Scratch,
) -> Option<SingleKernel> {
    SingleKernel::new(&factors(grams, weights), grams.matrices(weights), grams.n_samples(), scratch)
}

/// The factors in a sum, with their weights.
pub(super) fn factors<'a, G: GramSource + ?Sized>(
    grams: &'a G,
    weights: &[f64],
) -> Vec<(f64, &'a Factor)> {
    grams.low_rank().map_or_else(Vec::new, |terms| terms.active(weights))
}

/// The lower triangle of the terms that have no factor. An output row stays in the cache while all
/// terms stream past it.
fn matrices<G: GramSource + ?Sized>(grams: &G, weights: &[f64]) -> Gram {
    let n = grams.n_samples();
    let mut out = Gram::zeros(n);
    if let Some(add) = grams.matrices(weights) {
        out.data_mut().par_chunks_mut(n).enumerate().for_each(|(i, row)| add(i, &mut row[..=i]));
    }
    out
}
