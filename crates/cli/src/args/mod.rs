//! What can be typed. Nothing here opens a file or computes: texts become checked values, no more.

mod catalogue;
mod data;
mod method;
#[cfg(test)]
mod reach;
mod request;
mod study;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use mercer::{data::Span, kernels::Normalize};

pub use data::{DataArgs, TableArgs};
pub use method::MethodArgs;
pub use request::{BankArgs, RequestArgs};
pub use study::{CompareArgs, ReportArgs, ReproduceArgs, StudyArgs, TuneArgs};

use crate::{
    progress::Show,
    values::{bytes, named, named_file, positive, span, threads},
};

const EXIT_CODES: &str = "\
Exit codes: 0 done; 1 tolerance not reached (only with --strict) or certificate not verified; 2 error;
130 interrupted, best model so far (or every finished run) saved.";

/// Multiple kernel learning with certified duality gaps.
#[derive(Debug, Parser)]
#[command(name = "mercer", version, arg_required_else_help = true, after_help = EXIT_CODES)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Fit several methods to generated data: a table and an HTML report
    Demo(DemoArgs),
    /// Learn kernel weights and a machine from a table
    Fit(Box<FitArgs>),
    /// Predict the rows of a table
    Predict(PredictArgs),
    /// Measure predictions against known answers
    Score(ScoreArgs),
    /// Show what a model has learned and how sure it is
    Inspect(InspectArgs),
    /// Recompute the certificate of a model from the rows it was fitted on
    Verify(VerifyArgs),
    /// Write kernel values of rows to a file
    Gram(GramArgs),
    /// Score every setting of one method by cross-validation
    Tune(Box<TuneArgs>),
    /// Compare methods over the same splits, parameters chosen inside, with paired tests and a
    /// verdict
    Compare(Box<CompareArgs>),
    /// Run a paper's experiments and put ours beside its numbers
    Reproduce(ReproduceArgs),
    /// Write the HTML page of what `compare --json` or `tune --json` saved
    Report(ReportArgs),
    /// List the methods
    Methods(MethodsArgs),
    /// Explain the kernel language, check a text in it, or show what a bank looks like on a table
    Kernels(KernelsArgs),
}

#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Where the report goes
    #[arg(long, default_value = "report.html", value_name = "FILE")]
    pub out: PathBuf,
    /// Seed of the data, the split and the folds
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    #[command(flatten)]
    pub run: RunArgs,
}

/// The help of DATA, with the formats that the core reads.
fn data_help() -> String {
    let formats = mercer::data::format_names();
    format!(
        "One row per sample: {formats} (.gz or .zst too), or a TOML file that names several views"
    )
}

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub struct FitArgs {
    #[arg(help = data_help())]
    pub data: PathBuf,
    #[command(flatten)]
    pub rows: DataArgs,
    /// Where the model goes
    #[arg(long, short, default_value = "model.mercer", value_name = "FILE")]
    pub output: PathBuf,
    #[command(flatten)]
    pub method: MethodArgs,
    #[command(flatten)]
    pub request: RequestArgs,
    #[command(flatten)]
    pub work: WorkArgs,
    #[command(flatten)]
    pub told: OutputArgs,
    /// Folds in which the report measures the request and equal weights on rows held out; 0:
    /// training rows only
    #[arg(long, default_value_t = 5, value_name = "N", help_heading = "Output")]
    pub report_folds: usize,
    /// Exit with 1 when the tolerance was not reached
    #[arg(long, help_heading = "Output")]
    pub strict: bool,
}

// How long, and on how many threads.
#[derive(Debug, Args)]
pub struct WorkArgs {
    /// Stop after so many seconds and keep what is done: the best model so far, or the runs that
    /// are finished
    #[arg(long, value_parser = positive, value_name = "SECONDS", help_heading = "Effort")]
    pub time_limit: Option<f64>,
    /// Threads (default: one per core); results do not depend on it
    #[arg(long, value_parser = threads, value_name = "N", help_heading = "Effort")]
    pub threads: Option<usize>,
}

// What is said, and where.
#[derive(Debug, Args)]
pub struct OutputArgs {
    /// Also write an HTML report
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub report: Option<PathBuf>,
    /// One JSON object on standard output; of `tune` and `compare`, `mercer report` makes a page of
    /// it later
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    /// No progress; of `fit`, no summary
    #[arg(long, short, conflicts_with = "verbose", help_heading = "Output")]
    pub quiet: bool,
    /// A line of progress per iteration or finished run, also where standard error is no terminal
    #[arg(long, short, help_heading = "Output")]
    pub verbose: bool,
}

impl OutputArgs {
    /// How progress is shown.
    pub fn show(&self) -> Show {
        Show::new(self.quiet, self.verbose)
    }
}

// What every command that computes takes. (A doc comment would become the help text of the
// command.)
#[derive(Debug, Args)]
pub struct RunArgs {
    /// Threads (default: one per core)
    #[arg(long, value_parser = threads, value_name = "N")]
    pub threads: Option<usize>,
    /// One JSON object on standard output
    #[arg(long)]
    pub json: bool,
}

// Rows that a model has not seen.
#[derive(Debug, Args)]
pub struct NewArgs {
    /// Use these rows only: `1-500`, or `1-500:2` for every second one
    #[arg(long, value_parser = span, value_name = "A-B[:STEP]")]
    pub rows: Option<Span>,
    /// Kernel values of these rows against the training rows, under the name of the fit; may be
    /// given several times
    #[arg(long, value_parser = named_file, value_name = "NAME=FILE")]
    pub gram: Vec<(String, PathBuf)>,
}

#[derive(Debug, Args)]
pub struct PredictArgs {
    /// Model written by `mercer fit`
    pub model: PathBuf,
    /// Data with the columns the model was fitted on, in any order; others are ignored
    pub data: PathBuf,
    #[command(flatten)]
    pub new: NewArgs,
    /// Write csv here instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Also give the decision values; for pairs of classes, their votes
    #[arg(long)]
    pub decision: bool,
    /// Also give the probability of each class (models with the logistic loss)
    #[arg(long)]
    pub probabilities: bool,
    #[command(flatten)]
    pub run: RunArgs,
}

#[derive(Debug, Args)]
pub struct ScoreArgs {
    /// Model written by `mercer fit`
    pub model: PathBuf,
    /// Data with the model's columns and the answers
    pub data: PathBuf,
    /// Column with the answers: its name, or its number (1 is the first, -1 the last) [default:
    /// what the data name]
    #[arg(long, short, value_name = "COL", allow_negative_numbers = true)]
    pub target: Option<String>,
    #[command(flatten)]
    pub new: NewArgs,
    #[command(flatten)]
    pub run: RunArgs,
}

#[derive(Debug, Args)]
pub struct GramArgs {
    /// One row per sample, in any format that `fit` reads
    pub data: PathBuf,
    /// Kernels, in the kernel language [default: what the data name, else auto]
    #[arg(long, short, value_name = "TEXT")]
    pub kernels: Option<String>,
    /// Where the values go: .npz, an archive with `grams` (rows, columns, kernels) and `names`;
    /// .npy, the stack alone; .csv, one kernel
    #[arg(long, short, default_value = "grams.npz", value_name = "FILE")]
    pub output: PathBuf,
    /// Values against these training rows instead of the rows themselves
    #[arg(long, value_name = "DATA")]
    pub train: Option<PathBuf>,
    #[command(flatten)]
    pub table: TableArgs,
    /// How each kernel is scaled
    #[arg(long, default_value = "none",
        value_parser = named::<Normalize>(&["trace", "multiplicative", "spherical", "center", "none"]))]
    pub normalize: Normalize,
    /// Bring columns to mean 0, deviation 1 first, by the training rows
    #[arg(long)]
    pub standardize: bool,
    /// Memory for the data and the kernel values, e.g. 512M or 4G [default: half the machine's]
    #[arg(long, value_parser = bytes, value_name = "SIZE")]
    pub memory: Option<u64>,
    #[command(flatten)]
    pub run: RunArgs,
}

#[derive(Debug, Args)]
pub struct InspectArgs {
    /// Model written by `mercer fit`
    pub model: PathBuf,
    /// Show every kernel, also those with weight zero
    #[arg(long)]
    pub all: bool,
    /// Also write an HTML report
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// One JSON object on standard output
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub struct VerifyArgs {
    /// Model written by `mercer fit`
    pub model: PathBuf,
    /// The data it was fitted on
    pub data: PathBuf,
    /// The column it was fitted to: its name, or its number (1 is the first, -1 the last) [default:
    /// what the data name]
    #[arg(long, short, value_name = "COL", allow_negative_numbers = true)]
    pub target: Option<String>,
    /// The rows it was fitted on
    #[arg(long, value_parser = span, value_name = "A-B[:STEP]")]
    pub rows: Option<Span>,
    /// The column that held the weight of each row
    #[arg(long, value_name = "COL", allow_negative_numbers = true)]
    pub weight_column: Option<String>,
    /// Ready-made kernel values of the rows, under the name of the fit; may be given several times
    #[arg(long, value_parser = named_file, value_name = "NAME=FILE")]
    pub gram: Vec<(String, PathBuf)>,
    /// Run the method again from the stored solution, for a lower bound as good as the fit's
    #[arg(long)]
    pub prove: bool,
    #[command(flatten)]
    pub run: RunArgs,
}

#[derive(Debug, Args)]
pub struct MethodsArgs {
    /// One JSON object on standard output
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct KernelsArgs {
    /// Parse this text and print its canonical form
    #[arg(long, value_name = "TEXT", conflicts_with = "data")]
    pub check: Option<String>,
    /// Data in any format that `fit` reads: show how each kernel aligns with the target, its trace,
    /// rank and conditioning
    pub data: Option<PathBuf>,
    #[command(flatten)]
    pub rows: DataArgs,
    #[command(flatten)]
    pub bank: BankArgs,
    /// Seed of landmarks and frequencies
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Show every kernel, not only those that align best with the target
    #[arg(long)]
    pub all: bool,
    /// Also write an HTML report with the alignments of all pairs
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    #[command(flatten)]
    pub run: RunArgs,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory as _;
        Cli::command().debug_assert();
    }

    #[test]
    fn every_listed_name_is_one_the_library_knows() {
        let base = ["mercer", "fit", "x.csv", "--target", "y"];
        let choices = [
            (
                "--solver",
                "auto level alternating interior reduced_gradient reduced-gradient silp ccp am sgd pddp exact",
            ),
            ("--rules", "1 5 auto"),
            ("--objective", "opt1 as-printed as_printed"),
            ("--loss", "hinge squared_hinge squared-hinge logistic epsilon_insensitive squared"),
            ("--multi-class", "ovr ovo"),
            ("--group-by", "none scope"),
            ("--p", "1 2.5 inf"),
            ("--v", "0 0.5 auto"),
            ("-C", "10 1e-3 auto scale"),
            ("--normalize", "trace multiplicative spherical center none"),
            ("--storage", "auto dense dense-f32 low-rank"),
            ("--approx", "none nystrom(200) rff(50)"),
            ("--task", "auto classify regress"),
            ("--missing", "refuse zero mean"),
            ("--indefinite", "refuse shift clip flip"),
            ("--gate", "softmax sigmoid"),
            ("--evenness", "0.5 hard"),
        ];
        for (flag, names) in choices {
            for name in names.split(' ') {
                let parsed = Cli::try_parse_from(base.into_iter().chain([flag, name]));
                assert!(parsed.is_ok(), "{flag} {name}: {parsed:?}");
            }
        }
        for wrong in [
            ["--loss", "hinges"],
            ["--approx", "nystrom"],
            ["--p", "nan"],
            ["--p", "-inf"],
            ["-C", "automatic"],
            ["--v", "scale"],
            ["--multi-class", "one"],
        ] {
            assert!(Cli::try_parse_from(base.into_iter().chain(wrong)).is_err(), "{wrong:?}");
        }
    }
}
