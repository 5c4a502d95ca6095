//! Which rows and columns of which data.

use std::path::PathBuf;

use clap::Args;
use mercer::data::{Span, TaskHint};

use crate::values::{named_file, span, task};

// What every command takes that reads a table. (A doc comment would become the help text of the
// command.)
#[derive(Debug, Args)]
pub struct TableArgs {
    /// Use these rows only: `1-500`, or `1-500:2` for every second one
    #[arg(long, value_parser = span, value_name = "A-B[:STEP]")]
    pub rows: Option<Span>,
    /// Use these columns only
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "A,B",
        allow_hyphen_values = true,
        conflicts_with = "exclude"
    )]
    pub columns: Option<Vec<String>>,
    /// Leave these columns out
    #[arg(long, value_delimiter = ',', value_name = "A,B", allow_hyphen_values = true)]
    pub exclude: Vec<String>,
}

// What every command takes that learns from rows.
#[derive(Debug, Args)]
pub struct DataArgs {
    /// Column to predict: its name, or its number (1 is the first, -1 the last) [default: what the
    /// data name]
    #[arg(long, short, value_name = "COL", allow_negative_numbers = true)]
    pub target: Option<String>,
    /// What to learn; `auto`: classes for text and for 2 to 10 distinct integers, else numbers
    #[arg(long, default_value = "auto", value_parser = task())]
    pub task: TaskHint,
    /// Column with the weight of each row
    #[arg(long, value_name = "COL", allow_negative_numbers = true)]
    pub weight_column: Option<String>,
    /// Ready-made kernel values of the rows, for `precomputed(NAME)`; may be given several times
    #[arg(long, value_parser = named_file, value_name = "NAME=FILE")]
    pub gram: Vec<(String, PathBuf)>,
    #[command(flatten)]
    pub table: TableArgs,
}
