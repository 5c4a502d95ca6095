//! What can be typed after `tune`, `compare`, `reproduce` and `report`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{DataArgs, OutputArgs, RequestArgs, WorkArgs};
use crate::values::{positive, threads};

const EXIT_CODES: &str = "\
Exit codes: 0 done; 2 error; 130 interrupted or out of time, every finished run kept: the same command goes on where this one stopped.";

// How rows are cut and what is measured on them.
#[derive(Debug, Args)]
pub struct StudyArgs {
    /// Column whose equal values stay in one part of every split
    #[arg(long, value_name = "COL", allow_negative_numbers = true)]
    pub group_column: Option<String>,
    /// What is measured, and what parameters are chosen by: accuracy, `balanced_accuracy`, auc,
    /// mcc, f1, `macro_f1`, `micro_f1`, `log_loss`, `cost(c1, c2)`, rmse, mae, r2, nmse [default:
    /// accuracy or rmse]
    #[arg(long, value_name = "NAME")]
    pub metric: Option<String>,
    /// Rows are in the order of time: always train on what came before
    #[arg(long)]
    pub time: bool,
    /// Every row alone once
    #[arg(long, conflicts_with = "time")]
    pub leave_one_out: bool,
    /// Give up settings that are so far below the best after a fold [default: never]
    #[arg(long, value_parser = positive, value_name = "MARGIN")]
    pub abandon: Option<f64>,
    /// Seed of splits, folds, landmarks and frequencies
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Keep finished runs in this file and go on from it [default: one in the temporary folder,
    /// removed at the end]
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub journal: Option<PathBuf>,
    #[command(flatten)]
    pub work: WorkArgs,
    #[command(flatten)]
    pub told: OutputArgs,
}

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub struct TuneArgs {
    /// One row per sample, in any format that `fit` reads
    pub data: PathBuf,
    #[command(flatten)]
    pub rows: DataArgs,
    /// The method (see `mercer methods`); also `l1` and `l2`
    #[arg(long, short, default_value = "gmkl")]
    pub method: String,
    /// Settings to try: `C=0.1..1000; v=0..1:0.1`, `C=10^-1..10^3`, `p=1|1.5|2` [default: C in five
    /// steps of ten]
    #[arg(long, default_value = "", hide_default_value = true)]
    pub grid: String,
    /// Folds
    #[arg(long, default_value_t = 5, value_name = "N")]
    pub folds: usize,
    /// Times the whole cross-validation is done, each with other folds
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub repeats: usize,
    /// Fit the best setting to all rows and save the model there
    #[arg(long, short, value_name = "FILE", help_heading = "Output")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub request: RequestArgs,
    #[command(flatten)]
    pub study: StudyArgs,
}

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub struct CompareArgs {
    /// One row per sample, in any format that `fit` reads
    pub data: PathBuf,
    #[command(flatten)]
    pub rows: DataArgs,
    /// Methods, with settings of their own in brackets: `all`, `l1, gmkl(v=0.5), smkl(C=1|10)`;
    /// uniform and single always take part
    #[arg(long, short, default_value = "all")]
    pub methods: String,
    /// Settings all methods choose from inside each training part [default: C in steps of ten]
    #[arg(long, default_value = "", hide_default_value = true)]
    pub grid: String,
    /// Random splits, or times the whole cross-validation is done
    #[arg(long, default_value_t = 20, value_name = "N")]
    pub repeats: usize,
    /// Share of the rows that a random split learns from
    #[arg(long, default_value_t = 0.5, value_name = "SHARE", conflicts_with = "folds")]
    pub train: f64,
    /// Cross-validation with so many folds instead of random splits
    #[arg(long, value_name = "N")]
    pub folds: Option<usize>,
    /// Folds inside each training part, for choosing parameters
    #[arg(long, default_value_t = 3, value_name = "N")]
    pub inner_folds: usize,
    /// Relative gap of fits that only rank settings
    #[arg(long, default_value_t = 0.01, value_name = "TOL")]
    pub search_tol: f64,
    #[command(flatten)]
    pub request: RequestArgs,
    #[command(flatten)]
    pub study: StudyArgs,
}

/// Papers whose experiments are here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Paper {
    Gmkl,
    Smkl,
    Clmkl,
    Glmkl,
    Vcmkl,
}

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub struct ReproduceArgs {
    /// Which paper
    pub paper: Paper,
    /// Generated data and few repeats only, a check in seconds; writes files with --out alone
    #[arg(long)]
    pub quick: bool,
    /// Only these parts, by name
    #[arg(long, value_delimiter = ',', value_name = "A,B")]
    pub only: Vec<String>,
    /// Folder that holds experiment.toml and expected.csv; got.csv and page.md go there [default:
    /// reproduce/PAPER]
    #[arg(long, value_name = "FOLDER")]
    pub folder: Option<PathBuf>,
    /// Where got.csv and page.md go instead; rows that are in this got.csv already are not run
    /// again
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,
    /// Threads (default: one per core); results do not depend on it
    #[arg(long, value_parser = threads, value_name = "N")]
    pub threads: Option<usize>,
    /// No progress
    #[arg(long, short, conflicts_with = "verbose")]
    pub quiet: bool,
    /// A line of progress per finished run
    #[arg(long, short)]
    pub verbose: bool,
}

#[derive(Debug, Args)]
pub struct ReportArgs {
    /// What `compare --json` or `tune --json` wrote
    pub saved: PathBuf,
    /// Where the page goes
    #[arg(long, default_value = "report.html", value_name = "FILE")]
    pub out: PathBuf,
}
