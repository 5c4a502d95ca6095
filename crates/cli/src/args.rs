//! What can be typed. Nothing here opens a file or computes: texts become checked values, no more.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use mercer::{
    TrainSpec,
    data::csv::TaskHint,
    kernels::Normalize,
    methods::{ClassWeight, GroupBy, LossName, Storage},
    model::Scheme,
};
use serde_json::Value;

use crate::values::{bytes, class_weight, count_or_auto, exponent, named, positive, task, threads};

const EXIT_CODES: &str = "\
Exit codes: 0 done; 1 tolerance not reached (only with --strict) or certificate not verified; 2 error;
130 interrupted, best model so far saved.";

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
    /// List the methods
    Methods(MethodsArgs),
    /// Explain the kernel language, or check a text in it
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
    /// Threads (default: one per core)
    #[arg(long, value_name = "N", value_parser = threads)]
    pub threads: Option<usize>,
    /// One JSON object on standard output
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub struct FitArgs {
    /// Table (csv or tsv) with one row per sample
    pub data: PathBuf,
    /// Column to predict: its name, or its number (1 is the first, -1 the last)
    #[arg(long, short, value_name = "COL", allow_negative_numbers = true)]
    pub target: String,
    /// Where the model goes
    #[arg(long, short, default_value = "model.mercer", value_name = "FILE")]
    pub output: PathBuf,
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

    /// How weights are found (see `mercer methods`); also `l1` and `l2`
    #[arg(long, short, default_value = "gmkl", help_heading = "Method")]
    pub method: String,
    /// Kernels, in the kernel language (see `mercer kernels`), or `auto`, or `paper`
    #[arg(long, short, default_value = "auto", value_name = "TEXT", help_heading = "Method")]
    pub kernels: String,
    /// Price of the sum of losses
    #[arg(short = 'C', long = "cost", default_value_t = TrainSpec::default().c, value_name = "C", help_heading = "Method")]
    pub c: f64,
    /// gmkl: from 0 (all kernels share) to 1 (few kernels) [default: 0.5]
    #[arg(long, help_heading = "Method")]
    pub v: Option<f64>,
    /// lp: exponent of the norm, at least 1, or `inf`; gmkl: exponent of the smooth part [default: 2]; vcmkl: exponent of the norm of
    /// each rule's kernel weights [default: none are learned]
    #[arg(long, value_parser = exponent, help_heading = "Method")]
    pub p: Option<Value>,
    /// gmkl, lp: road to the optimum, `reduced_gradient` and `silp` for p = 1 [default: auto]; vcmkl: how rules are found
    /// [default: ccp]
    #[arg(long, help_heading = "Method", value_parser = named::<Value>(
        &["auto", "level", "alternating", "reduced_gradient", "silp", "ccp", "am", "sgd", "pddp", "exact"]))]
    pub solver: Option<Value>,
    /// smkl: a sum of the terms log, gl, mf(p) and mkl, e.g. `0.5*log + mf(0.5)` [default: log+gl]
    #[arg(long, value_name = "TERMS", help_heading = "Method")]
    pub penalty: Option<String>,
    /// smkl: inside the logarithm [default: 0.0001]
    #[arg(long, help_heading = "Method")]
    pub eps: Option<f64>,
    /// vcmkl: number of rules, or `auto` to choose it by cross-validation [default: 3]
    #[arg(long = "rules", value_parser = count_or_auto, value_name = "N", help_heading = "Method")]
    pub n_rules: Option<Value>,
    /// vcmkl: reward of each rule's margin, one for all or one per rule [default: none, margins are fixed]
    #[arg(long, value_delimiter = ',', value_name = "A,B", help_heading = "Method")]
    pub nu: Option<Vec<f64>>,
    /// vcmkl: share of the price for errors on the consensus class [default: both classes weigh the same]
    #[arg(long, help_heading = "Method")]
    pub gamma: Option<f64>,
    /// vcmkl: cost of a false positive over that of a false negative [default: 1]
    #[arg(long, help_heading = "Method")]
    pub cost_ratio: Option<f64>,
    /// vcmkl with `pddp`: down the learning objective, or as the paper prints it [default: opt1]
    #[arg(long, help_heading = "Method", value_parser = named::<Value>(&["opt1", "as_printed"]))]
    pub objective: Option<Value>,
    /// vcmkl: the class all rules must agree on, of two [default: the second]
    #[arg(long, value_name = "CLASS", allow_hyphen_values = true, help_heading = "Method")]
    pub consensus: Option<String>,
    /// vcmkl: starts of `ccp` [default: 3]
    #[arg(long, value_name = "N", help_heading = "Method")]
    pub n_init: Option<usize>,
    /// single, vcmkl with `--rules auto`: folds of the cross-validation [default: 5]
    #[arg(long, value_name = "N", help_heading = "Method")]
    pub folds: Option<usize>,
    /// single, vcmkl: seed of folds and starts [default: 0]
    #[arg(long, help_heading = "Method")]
    pub seed: Option<u64>,
    /// Loss [default: hinge for classes, `epsilon_insensitive` for numbers]
    #[arg(long, help_heading = "Method", value_parser = named::<LossName>(
        &["hinge", "squared_hinge", "logistic", "epsilon_insensitive", "squared"]))]
    pub loss: Option<LossName>,
    /// More than two classes: a machine for each against the rest, or for each pair
    #[arg(long, default_value = "ovr", value_parser = named::<Scheme>(&["ovr", "ovo"]), help_heading = "Method")]
    pub multi_class: Scheme,
    /// More than two classes: one weight vector for all machines
    #[arg(long, help_heading = "Method")]
    pub shared_weights: bool,
    /// `scope`: kernels on the same columns share one weight
    #[arg(long, default_value = "none", value_parser = named::<GroupBy>(&["none", "scope"]), help_heading = "Method")]
    pub group_by: GroupBy,
    /// A positive number per kernel: the larger, the dearer
    #[arg(long, value_delimiter = ',', value_name = "A,B", help_heading = "Method")]
    pub penalties: Option<Vec<f64>>,
    /// No constant term
    #[arg(long, help_heading = "Method")]
    pub no_intercept: bool,
    /// Half-width of the tube of `epsilon_insensitive` [default: 0.1 times the deviation of the target]
    #[arg(long, help_heading = "Method")]
    pub epsilon: Option<f64>,
    /// How each kernel is scaled
    #[arg(long, default_value = "multiplicative", help_heading = "Method",
        value_parser = named::<Normalize>(&["trace", "multiplicative", "spherical", "center", "none"]))]
    pub normalize: Normalize,
    /// Leave columns as they are instead of bringing them to mean 0, deviation 1
    #[arg(long, help_heading = "Method")]
    pub no_standardize: bool,
    /// `balanced`, or a factor per class: `yes=5,no=1`
    #[arg(long, value_parser = class_weight, value_name = "WEIGHTS", allow_hyphen_values = true, help_heading = "Method")]
    pub class_weight: Option<ClassWeight>,

    /// Relative duality gap to reach
    #[arg(long, default_value_t = TrainSpec::default().tol, help_heading = "Effort")]
    pub tol: f64,
    /// Outer iterations at most
    #[arg(long, default_value_t = TrainSpec::default().max_iter, value_name = "N", help_heading = "Effort")]
    pub max_iter: usize,
    /// Stop after so many seconds and keep the best model so far
    #[arg(long, value_parser = positive, value_name = "SECONDS", help_heading = "Effort")]
    pub time_limit: Option<f64>,
    /// Memory for kernels, e.g. 512M or 4G [default: half the machine's]
    #[arg(long, value_parser = bytes, value_name = "SIZE", help_heading = "Effort")]
    pub memory: Option<u64>,
    /// How kernels are stored
    #[arg(long, default_value = "auto", help_heading = "Effort",
        value_parser = named::<Storage>(&["auto", "dense", "dense-f32", "low-rank"]))]
    pub storage: Storage,
    /// Threads (default: one per core); results do not depend on it
    #[arg(long, value_parser = threads, value_name = "N", help_heading = "Effort")]
    pub threads: Option<usize>,

    /// Also write an HTML report
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub report: Option<PathBuf>,
    /// Exit with 1 when the tolerance was not reached
    #[arg(long, help_heading = "Output")]
    pub strict: bool,
    /// One JSON object on standard output
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    /// No progress, no summary
    #[arg(long, short, conflicts_with = "verbose", help_heading = "Output")]
    pub quiet: bool,
    /// A line of progress per iteration, also where standard error is no terminal
    #[arg(long, short, help_heading = "Output")]
    pub verbose: bool,
}

#[derive(Debug, Args)]
pub struct PredictArgs {
    /// Model written by `mercer fit`
    pub model: PathBuf,
    /// Table with the columns the model was fitted on, in any order; others are ignored
    pub data: PathBuf,
    /// Write csv here instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Also give the decision values; for pairs of classes, their votes
    #[arg(long)]
    pub decision: bool,
    /// Also give the probability of each class (models with the logistic loss)
    #[arg(long)]
    pub probabilities: bool,
    /// Threads (default: one per core)
    #[arg(long, value_parser = threads, value_name = "N")]
    pub threads: Option<usize>,
    /// One JSON object on standard output
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct ScoreArgs {
    /// Model written by `mercer fit`
    pub model: PathBuf,
    /// Table with the model's columns and the answers
    pub data: PathBuf,
    /// Column with the answers: its name, or its number (1 is the first, -1 the last)
    #[arg(long, short, value_name = "COL", allow_negative_numbers = true)]
    pub target: String,
    /// Threads (default: one per core)
    #[arg(long, value_parser = threads, value_name = "N")]
    pub threads: Option<usize>,
    /// One JSON object on standard output
    #[arg(long)]
    pub json: bool,
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
    /// The table it was fitted on
    pub data: PathBuf,
    /// The column it was fitted to: its name, or its number (1 is the first, -1 the last)
    #[arg(long, short, value_name = "COL", allow_negative_numbers = true)]
    pub target: String,
    /// The column that held the weight of each row
    #[arg(long, value_name = "COL", allow_negative_numbers = true)]
    pub weight_column: Option<String>,
    /// Run the method again from the stored solution, for a lower bound as good as the fit's
    #[arg(long)]
    pub prove: bool,
    /// Threads (default: one per core)
    #[arg(long, value_parser = threads, value_name = "N")]
    pub threads: Option<usize>,
    /// One JSON object on standard output
    #[arg(long)]
    pub json: bool,
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
    #[arg(long, value_name = "TEXT")]
    pub check: Option<String>,
    /// One JSON object on standard output
    #[arg(long)]
    pub json: bool,
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
            ("--solver", "auto level alternating reduced_gradient reduced-gradient silp ccp am sgd pddp exact"),
            ("--rules", "1 5 auto"),
            ("--objective", "opt1 as-printed as_printed"),
            ("--loss", "hinge squared_hinge squared-hinge logistic epsilon_insensitive squared"),
            ("--multi-class", "ovr ovo"),
            ("--group-by", "none scope"),
            ("--p", "1 2.5 inf"),
            ("--normalize", "trace multiplicative spherical center none"),
            ("--storage", "auto dense dense-f32 low-rank"),
            ("--task", "auto classify regress"),
        ];
        for (flag, names) in choices {
            for name in names.split(' ') {
                let parsed = Cli::try_parse_from(base.into_iter().chain([flag, name]));
                assert!(parsed.is_ok(), "{flag} {name}: {parsed:?}");
            }
        }
        for wrong in [["--loss", "hinges"], ["--p", "nan"], ["--p", "-inf"], ["--multi-class", "one"]] {
            assert!(Cli::try_parse_from(base.into_iter().chain(wrong)).is_err(), "{wrong:?}");
        }
    }
}
