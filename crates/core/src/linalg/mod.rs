//! Small dense linear algebra and the thread pool: what the solvers stand on.

mod matrix;
pub mod threads;

pub use matrix::Matrix;
