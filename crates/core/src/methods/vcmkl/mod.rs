//! Veto–consensus: g(x) = min_m f_m(x), so that a sample is positive only if every rule agrees.

mod inner;
mod interior;

pub use inner::{Inner, Instance, Margin};
