//! Kernel values that were computed elsewhere: checked, repaired where that is asked for, and
//! stored like other terms.

pub(super) mod check;
mod lanczos;
mod pass;
mod repair;
mod stack;
mod terms;

pub(crate) use lanczos::extreme_eigenvalues_of;
pub(super) use repair::{Repaired, repair};
pub use stack::Stack;
