//! Small dense linear algebra and the thread pool: what the solvers stand on.

mod cholesky;
mod eigen;
mod exp;
mod matrix;
pub(crate) mod mehrotra;
mod numbers;
pub mod threads;
mod vector;

pub use cholesky::Cholesky;
pub use eigen::SymmetricEigen;
pub use exp::exp_scaled;
pub use matrix::Matrix;
pub(crate) use matrix::side_by_side;
#[cfg(test)]
pub(crate) use numbers::COPIES;
pub(crate) use numbers::{in_large_pages, zeros};
pub(crate) use vector::{
    Strided, Wide, axpy, axpy_four, dots, gemm, gemm_nt, gemm_single, l1_distance, l1_distances,
    sq_distances, wide,
};
pub use vector::{dot, sq_distance};
