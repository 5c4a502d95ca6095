//! What the user brings: tables, targets, views; how they are split and standardised.

pub mod csv;
pub mod split;
pub mod standardize;
pub mod synthetic;

mod dataset;
mod rng;
mod rows;
mod sequences;

pub use dataset::{Dataset, Target, View};
pub use rng::Rng;
pub use rows::Rows;
pub use sequences::Sequences;
pub use standardize::Standardizer;
