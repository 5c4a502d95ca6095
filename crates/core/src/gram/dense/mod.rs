//! Terms and combined kernels as matrices: packed triangles, both triangles, and entries in single
//! precision.

mod cell;
mod packed;
mod scratch;
mod single_kernel;
mod square;
mod sums;

pub(super) use cell::Inner;
pub(crate) use cell::{Cell, Each};
pub(super) use packed::Packed;
pub use scratch::Scratch;
pub use single_kernel::SingleKernel;
pub use square::{Gram, Square};
pub(crate) use sums::add_single;
pub(super) use sums::{add as add_factors, add_truncated};
