//! From kernels and data to stored terms.

mod assembly;
mod block;
mod options;
mod pairs;
mod raw;
mod schedule;
mod term;

pub(super) use assembly::Assembly;
pub use block::gram_block;
pub use options::{Budget, BuildOptions, Storage};
pub(super) use raw::{OnSphere, Raw, Wanted};
pub(super) use term::Built;
