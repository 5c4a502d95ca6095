//! What the user brings: tables, targets, views; how they are split and standardised.

pub mod arff;
pub mod array;
pub mod fasta;
pub mod jsonl;
pub mod libsvm;
pub mod output;
pub mod source;
pub mod split;
pub mod standardize;
pub mod steps;
pub mod synthetic;

mod csv;
mod dataset;
mod description;
mod join;
mod read;
mod ready;
mod rng;
mod rows;
mod sequences;
mod sparse;
mod table;

pub use dataset::{Dataset, Target, View};
pub use read::{format_names, read, read_rows, read_within, sources};
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
pub use table::{Column, Table, TaskHint};

/// Every file format, in the order in which first bytes are looked at and the program's help lists
/// them. A file that none of them recognises is read as the first one: delimited text. A new reader
/// is a file with its `FORMAT`, and its line here.
const FORMATS: &[read::Format] = &[
    csv::FORMAT,
    libsvm::FORMAT,
    array::FORMAT,
    arff::FORMAT,
    fasta::FORMAT,
    jsonl::FORMAT,
    description::FORMAT,
    read::PARQUET,
];
