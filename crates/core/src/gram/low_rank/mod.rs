//! Terms of low rank: K ≈ L Lᵀ with L = B Rᵀ, the basis B shared by terms that live in nearly one
//! space.

mod bases;
mod basis;
mod factor;
mod images;
mod middle;
mod orthonormal;
mod pivots;
mod projected;
mod share;
mod single_columns;
mod sum;
mod turn;

pub(crate) use bases::basis_bytes;
pub(super) use bases::{file_bytes, to_files};
pub(crate) use basis::Basis;
pub(super) use basis::FEW_ROWS;
pub use factor::Factor;
pub(crate) use images::Images;
pub(crate) use middle::EXACT;
pub(super) use middle::Middle;
pub(crate) use pivots::RankLimit;
pub(super) use projected::Projected;
pub(super) use share::share;
pub(crate) use single_columns::SingleColumns;
pub use sum::LowRankSum;
pub(super) use sum::by_basis;
