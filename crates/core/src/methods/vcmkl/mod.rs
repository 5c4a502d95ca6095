//! Veto–consensus: g(x) = min_m f_m(x), so that a sample is positive only if every rule agrees.

mod assign;
mod exact;
mod inner;
mod interior;
mod solvers;

pub use exact::exact;
pub use inner::{Inner, Instance, Margin};
pub use solvers::{Effort, Outcome, Watch, am, ccp, descend, sgd};
