//! Terms and combined kernels as matrices: packed triangles, both triangles, and entries in single precision.

mod packed;
mod single_kernel;
mod square;
mod sums;

pub(crate) use packed::{Cell, Each};
pub(super) use packed::{Inner, Packed};
pub use single_kernel::{AddRow, Scratch, SingleKernel};
pub use square::{Gram, Square};
pub(super) use sums::add_truncated;
pub(crate) use sums::{add as add_factors, add_single};
