//! What the user brings: tables, targets, views; how they are split and standardised.

pub mod arff;
pub mod array;
pub mod csv;
pub mod fasta;
pub mod libsvm;
pub mod output;
pub mod source;
pub mod split;
pub mod standardize;
pub mod steps;
pub mod synthetic;

mod dataset;
mod description;
mod ready;
mod rng;
mod rows;
mod sequences;
mod sparse;
mod table;

pub use dataset::{Dataset, Target, View};
pub use description::{read, read_rows, read_within, sources};
pub(crate) use ready::is_layer_of;
pub use rng::Rng;
pub use rows::{Missing, Rows};
pub use sequences::Sequences;
pub use source::Span;
pub use sparse::Sparse;
pub(crate) use sparse::merged_sum;
pub use standardize::Standardizer;
pub(crate) use standardize::mean_and_deviation;
pub(crate) use table::nearest;
