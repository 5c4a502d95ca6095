//! What can be typed after `tune`, `compare`, `reproduce` and `report`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use mercer::{
    TrainSpec,
    data::{Missing, Span, TaskHint},
    kernels::{Indefinite, Normalize},
    request::Scheme,
    request::{Approx, ClassWeight, LossName},
};

use crate::values::{bytes, class_weight, named, named_file, number, positive, span, task, threads};

const EXIT_CODES: &str = "\
Exit codes: 0 done; 2 error; 130 interrupted, every finished run kept: the same command goes on where this one stopped.";

/// Which data.
#[derive(Debug, Args)]
pub struct DataArgs {
    /// One row per sample, in any format that `fit` reads
    pub data: PathBuf,
    /// Column to predict: its name, or its number (1 is the first, -1 the last) [default: what the data name]
    #[arg(long, short, value_name = "COL", allow_negative_numbers = true)]
    pub target: Option<String>,
    /// Use these rows only: `1-500`, or `1-500:2` for every second one
    #[arg(long, value_parser = span, value_name = "A-B[:STEP]")]
    pub rows: Option<Span>,
    /// What to learn; `auto`: classes for text and for 2 to 10 distinct integers, else numbers
    #[arg(long, default_value = "auto", value_parser = task())]
    pub task: TaskHint,
    /// Use these columns only
    #[arg(long, value_delimiter = ',', value_name = "A,B", allow_hyphen_values = true, conflicts_with = "exclude")]
    pub columns: Option<Vec<String>>,
    /// Leave these columns out
    #[arg(long, value_delimiter = ',', value_name = "A,B", allow_hyphen_values = true)]
    pub exclude: Vec<String>,
    /// Column with the weight of each row
    #[arg(long, value_name = "COL", allow_negative_numbers = true)]
    pub weight_column: Option<String>,
    /// Column whose equal values stay in one part of every split
    #[arg(long, value_name = "COL", allow_negative_numbers = true)]
    pub group_column: Option<String>,
    /// Ready-made kernel values of the rows, for `precomputed(NAME)`; may be given several times
    #[arg(long, value_parser = named_file, value_name = "NAME=FILE")]
    pub gram: Vec<(String, PathBuf)>,
}

/// What all fits share.
#[derive(Debug, Args)]
pub struct BankArgs {
    /// Kernels, in the kernel language (see `mercer kernels`), or `auto`, or `paper` [default: what the data name, else auto]
    #[arg(long, short, value_name = "TEXT", help_heading = "Fits")]
    pub kernels: Option<String>,
    /// How each kernel is scaled [default: multiplicative; smkl: trace]
    #[arg(long, help_heading = "Fits",
        value_parser = named::<Normalize>(&["trace", "multiplicative", "spherical", "center", "none"]))]
    pub normalize: Option<Normalize>,
    /// Leave columns as they are instead of bringing them to mean 0, deviation 1 on the training rows
    #[arg(long, help_heading = "Fits")]
    pub no_standardize: bool,
    /// Steps on ordered columns: average(k), difference(k), difference(k, keep), snv; `… on view(name)`
    #[arg(long, default_value = "", hide_default_value = true, value_name = "STEPS", help_heading = "Fits")]
    pub preprocess: String,
    /// Rows that lack a view: an error, or their kernel values imputed in feature space
    #[arg(long, default_value = "refuse", value_parser = named::<Missing>(&["refuse", "zero", "mean"]), help_heading = "Fits")]
    pub missing: Missing,
    /// Ready-made matrices with negative eigenvalues: an error, or how they become kernels
    #[arg(long, default_value = "refuse", help_heading = "Fits",
        value_parser = named::<Indefinite>(&["refuse", "shift", "clip", "flip"]))]
    pub indefinite: Indefinite,
    /// Loss [default: hinge for classes, `epsilon_insensitive` for numbers]
    #[arg(long, help_heading = "Fits", value_parser = named::<LossName>(
        &["hinge", "squared_hinge", "logistic", "epsilon_insensitive", "squared"]))]
    pub loss: Option<LossName>,
    /// Half-width of the tube of `epsilon_insensitive` [default: 0.1 times the deviation of the target]
    #[arg(long, value_parser = number, allow_negative_numbers = true, help_heading = "Fits")]
    pub epsilon: Option<f64>,
    /// Leave numbers to predict in their own units, in which C then is, instead of bringing them to deviation 1 on the training rows
    #[arg(long, help_heading = "Fits")]
    pub no_scale_target: bool,
    /// More than two classes: a machine for each against the rest, or for each pair
    #[arg(long, default_value = "ovr", value_parser = named::<Scheme>(&["ovr", "ovo"]), help_heading = "Fits")]
    pub multi_class: Scheme,
    /// More than two classes: one weight vector for all machines
    #[arg(long, help_heading = "Fits")]
    pub shared_weights: bool,
    /// `balanced`, or a factor per class: `yes=5,no=1`
    #[arg(long, value_parser = class_weight, value_name = "WEIGHTS", allow_hyphen_values = true, help_heading = "Fits")]
    pub class_weight: Option<ClassWeight>,
    /// Relative duality gap to reach
    #[arg(long, default_value_t = TrainSpec::default().tol, value_parser = number, allow_negative_numbers = true, help_heading = "Fits")]
    pub tol: f64,
    /// Outer iterations at most
    #[arg(long, default_value_t = TrainSpec::default().max_iter, value_name = "N", help_heading = "Fits")]
    pub max_iter: usize,
    /// Memory for the kernels of one fit, e.g. 512M or 4G [default: half the machine's]
    #[arg(long, value_parser = bytes, value_name = "SIZE", help_heading = "Fits")]
    pub memory: Option<u64>,
    /// What stands in for every kernel, at a fixed rank: `nystrom(R)`, landmark rows; `rff(R)`, random Fourier features (rbf, laplace)
    #[arg(long, default_value_t = Approx::None, value_name = "HOW", help_heading = "Fits")]
    pub approx: Approx,
}

/// How the work is done and told.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub struct WorkArgs {
    /// What is measured, and what parameters are chosen by: accuracy, `balanced_accuracy`, auc, mcc, f1, `macro_f1`, `micro_f1`,
    /// `log_loss`, `cost(c1, c2)`, rmse, mae, r2, nmse [default: accuracy or rmse]
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
    /// Keep finished runs in this file and go on from it [default: one in the temporary folder, removed at the end]
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub journal: Option<PathBuf>,
    /// Threads (default: one per core); results do not depend on it
    #[arg(long, value_parser = threads, value_name = "N", help_heading = "Output")]
    pub threads: Option<usize>,
    /// Also write an HTML report
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub report: Option<PathBuf>,
    /// One JSON object on standard output; `mercer report` makes a page of it later
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    /// No progress
    #[arg(long, short, conflicts_with = "verbose", help_heading = "Output")]
    pub quiet: bool,
    /// A line of progress per finished run, also where standard error is no terminal
    #[arg(long, short, help_heading = "Output")]
    pub verbose: bool,
}

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub struct TuneArgs {
    #[command(flatten)]
    pub data: DataArgs,
    /// The method (see `mercer methods`); also `l1` and `l2`
    #[arg(long, short, default_value = "gmkl")]
    pub method: String,
    /// Settings to try: `C=0.1..1000; v=0..1:0.1`, `C=10^-1..10^3`, `p=1|1.5|2` [default: C in five steps of ten]
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
    pub bank: BankArgs,
    #[command(flatten)]
    pub work: WorkArgs,
}

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub struct CompareArgs {
    #[command(flatten)]
    pub data: DataArgs,
    /// Methods, with settings of their own in brackets: `all`, `l1, gmkl(v=0.5), smkl(C=1|10)`; uniform and single always take part
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
    pub bank: BankArgs,
    #[command(flatten)]
    pub work: WorkArgs,
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
    /// Folder that holds experiment.toml and expected.csv; got.csv and page.md go there [default: reproduce/PAPER]
    #[arg(long, value_name = "FOLDER")]
    pub folder: Option<PathBuf>,
    /// Where got.csv and page.md go instead; rows that are in this got.csv already are not run again
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
