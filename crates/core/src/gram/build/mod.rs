//! From kernels and data to stored terms.

mod assembly;
mod pairs;
mod raw;

pub(super) use assembly::{Assembly, Built};
pub use assembly::{Budget, BuildOptions, Storage, gram_block};
pub(super) use raw::{OnSphere, Raw, Wanted};
