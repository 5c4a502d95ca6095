//! What the user brings: tables, targets, views; how they are split and standardised.

pub mod csv;
pub mod split;
pub mod standardize;
pub mod synthetic;

mod dataset;
mod rng;

pub use dataset::{Dataset, Target, View};
pub use rng::Rng;
pub use standardize::Standardizer;
