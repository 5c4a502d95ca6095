//! The one seam between kernels and solvers: an ordered list of kernel terms over shared samples.
//!
//! A term is stored as the cheapest of a low-rank factor with its certified residual, or a packed
//! triangle; solvers cannot tell which unless they ask [`GramSource::low_rank`]. A new backend
//! implements the six required methods of [`GramSource`] and serves every method.
//!
//! The rooms: `build` turns kernels and data into terms, `precomputed` does so with kernel values
//! computed elsewhere; `low_rank` and `dense` are the two kinds of storage; `set` holds the terms;
//! `subset` shows some of them, or sums of them, as a source of their own.

mod alignment;
mod approx;
mod build;
mod combine;
mod dense;
mod extension;
mod forms;
mod impute;
mod low_rank;
mod precomputed;
mod set;
mod source;
mod stored;
mod subset;

pub use crate::error::human_bytes;
pub(crate) use alignment::{centred_norms, centred_products, target_products};
pub use approx::{Approx, ApproxError};
pub use build::{Budget, BuildOptions, Storage, gram_block};
pub(crate) use combine::combine_single;
pub(crate) use dense::{Cell, Each, add_single};
pub use dense::{Gram, Scratch, SingleKernel, Square};
pub use extension::{Combination, Extension};
pub use forms::Forms;
pub(crate) use low_rank::{Basis, EXACT, Images, RankLimit, SingleColumns, basis_bytes};
pub use low_rank::{Factor, LowRankSum};
pub use precomputed::Stack;
pub(crate) use precomputed::extreme_eigenvalues_of;
pub use set::GramSet;
pub use source::{AddRow, GramSource, LowRankTerms};
pub(crate) use subset::Groups;

#[cfg(test)]
pub(crate) mod tests_support {
    use super::{Factor, RankLimit};
    use crate::linalg::Matrix;

    /// L with L Lᵀ = k to rounding.
    pub fn full_factor(k: &Matrix) -> Matrix {
        let diagonal: Vec<f64> = (0..k.rows()).map(|i| k[(i, i)]).collect();
        let limit = RankLimit { tolerance: 1e-15, max_rank: k.rows() };
        Factor::pivoted(&diagonal, limit, |j, out| out.copy_from_slice(k.row(j)))
            .unwrap()
            .rows()
            .into_owned()
    }
}
