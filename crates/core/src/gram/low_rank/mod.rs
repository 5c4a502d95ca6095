//! Terms of low rank: K ≈ L Lᵀ with L = B Rᵀ, the basis B shared by terms that live in nearly one space.

mod basis;
mod factor;
mod images;
mod pivots;
mod share;
mod single_columns;
mod sum;

pub(super) use basis::FEW_ROWS;
pub use basis::Frame;
pub use factor::{Basis, Extension, Factor};
pub(crate) use images::Images;
pub(crate) use pivots::RankLimit;
pub(super) use share::share;
pub use single_columns::Rounded;
pub use sum::LowRank;
pub(crate) use sum::{EXACT, basis_bytes};
pub(super) use sum::{Inside, Projected, by_basis, file_bytes, to_files};
