//! Terms of low rank: K ≈ L Lᵀ with L = B Rᵀ, the basis B shared by terms that live in nearly one space.

mod basis;
mod factor;
mod images;
mod pivots;
mod share;
mod single_columns;
mod sum;

pub use basis::Basis;
pub(super) use basis::FEW_ROWS;
pub use factor::{Combination, Extension, Factor};
pub(crate) use images::Images;
pub(crate) use pivots::RankLimit;
pub(super) use share::share;
pub use single_columns::SingleColumns;
pub use sum::LowRankSum;
pub(crate) use sum::{EXACT, basis_bytes};
pub(super) use sum::{Middle, Projected, by_basis, file_bytes, to_files};
