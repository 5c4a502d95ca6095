//! What can be typed. Nothing here opens a file or computes: texts become checked values, no more.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use mercer::{
    TrainSpec,
    data::{Missing, Span, TaskHint},
    kernels::{Indefinite, Normalize},
    request::Scheme,
    request::{Approx, ClassWeight, GateName, GroupBy, LossName, Storage},
};
use serde_json::Value;

use crate::select_args::{CompareArgs, ReportArgs, ReproduceArgs, TuneArgs};
use crate::values::{
    Setting, bytes, class_weight, count_or_auto, evenness, exponent, named, named_file, number, positive, price,
    setting, span, task, threads,
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
    /// Compare methods over the same splits, parameters chosen inside, with paired tests and a verdict
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
    format!("One row per sample: {formats} (.gz or .zst too), or a TOML file that names several views")
}

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub struct FitArgs {
    #[arg(help = data_help())]
    pub data: PathBuf,
    /// Column to predict: its name, or its number (1 is the first, -1 the last) [default: what the data name]
    #[arg(long, short, value_name = "COL", allow_negative_numbers = true)]
    pub target: Option<String>,
    /// Use these rows only: `1-500`, or `1-500:2` for every second one
    #[arg(long, value_parser = span, value_name = "A-B[:STEP]")]
    pub rows: Option<Span>,
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
    /// Ready-made kernel values of the rows, for `precomputed(NAME)`; may be given several times
    #[arg(long, value_parser = named_file, value_name = "NAME=FILE")]
    pub gram: Vec<(String, PathBuf)>,

    /// How weights are found (see `mercer methods`); also `l1` and `l2`
    #[arg(long, short, default_value = "gmkl", help_heading = "Method")]
    pub method: String,
    /// Price of the sum of losses; `auto`: by cross-validation on the training rows; `scale`: 1, or for `--normalize trace` the number of
    /// training rows [default: 1; smkl: scale]
    #[arg(short = 'C', long = "cost", value_name = "C", value_parser = price, allow_negative_numbers = true, help_heading = "Method")]
    pub c: Option<Setting>,
    /// gmkl: from 0 (all kernels share) to 1 (few kernels), or `auto` [default: 0.5]; clmkl, hlmkl: the same in each region
    #[arg(long, value_parser = setting, allow_negative_numbers = true, help_heading = "Method")]
    pub v: Option<Setting>,
    /// Kernels, in the kernel language (see `mercer kernels`), or `auto`, or `paper` [default: what the data name, else auto]
    #[arg(long, short, value_name = "TEXT", help_heading = "Method")]
    pub kernels: Option<String>,
    /// lp [default: 4/3], clmkl, hlmkl: exponent of the norm, at least 1, or `inf`; gmkl: exponent of the smooth part [default: 2];
    /// glmkl: norm of a group's weights [default: 4]; vcmkl: of each rule's kernel weights [default: none are learned]
    #[arg(long, value_parser = exponent, allow_negative_numbers = true, help_heading = "Method")]
    pub p: Option<Value>,
    /// gmkl, lp: road to the optimum, `reduced_gradient` and `silp` for p = 1 [default: auto]; vcmkl: how rules are found
    /// [default: ccp]
    #[arg(long, help_heading = "Method", value_parser = named::<Value>(
        &["auto", "level", "alternating", "interior", "reduced_gradient", "silp", "ccp", "am", "sgd", "pddp", "exact"]))]
    pub solver: Option<Value>,
    /// smkl: a sum of the terms log, gl, mf(p) and mkl, e.g. `0.5*log + mf(0.5)` [default: log+gl]
    #[arg(long, value_name = "TERMS", help_heading = "Method")]
    pub penalty: Option<String>,
    /// smkl: inside the logarithm [default: 0.0001]
    #[arg(long, value_parser = number, allow_negative_numbers = true, help_heading = "Method")]
    pub eps: Option<f64>,
    /// vcmkl: number of rules, or `auto` to choose it by cross-validation [default: 3]
    #[arg(long = "rules", value_parser = count_or_auto, value_name = "N", help_heading = "Method")]
    pub n_rules: Option<Value>,
    /// vcmkl: reward of each rule's margin, one for all or one per rule [default: none, margins are fixed]
    #[arg(long, value_delimiter = ',', value_parser = number, allow_negative_numbers = true, value_name = "A,B", help_heading = "Method")]
    pub nu: Option<Vec<f64>>,
    /// vcmkl: share of the price for errors on the consensus class [default: both classes weigh the same]
    #[arg(long, value_parser = number, allow_negative_numbers = true, help_heading = "Method")]
    pub gamma: Option<f64>,
    /// vcmkl: cost of a false positive over that of a false negative [default: 1]
    #[arg(long, value_parser = number, allow_negative_numbers = true, help_heading = "Method")]
    pub cost_ratio: Option<f64>,
    /// vcmkl with `pddp`: down the learning objective, or as the paper prints it [default: opt1]
    #[arg(long, help_heading = "Method", value_parser = named::<Value>(&["opt1", "as_printed"]))]
    pub objective: Option<Value>,
    /// vcmkl: the class all rules must agree on, of two [default: the second]
    #[arg(long, value_name = "CLASS", allow_hyphen_values = true, help_heading = "Method")]
    pub consensus: Option<String>,
    /// Folds of the cross-validation: single, C or v left to `auto`, vcmkl with `--rules auto` [default: 5]
    #[arg(long, value_name = "N", help_heading = "Method")]
    pub folds: Option<usize>,
    /// Seed of folds, clustering, random starts, landmarks and frequencies [default: 0]
    #[arg(long, help_heading = "Method")]
    pub seed: Option<u64>,
    /// clmkl, hlmkl: regions that clustering finds [default: 3]
    #[arg(long, value_name = "N", help_heading = "Localized")]
    pub n_clusters: Option<usize>,
    /// clmkl: average evenness of memberships, or `hard` [default: the middle of the reachable range]
    #[arg(long, value_name = "E", value_parser = evenness, help_heading = "Localized")]
    pub evenness: Option<Value>,
    /// clmkl, hlmkl: kernel to cluster with, in the kernel language or by its number [default: the average]
    #[arg(long, value_name = "KERNEL", help_heading = "Localized")]
    pub cluster_kernel: Option<String>,
    /// clmkl, hlmkl: column that says the region, instead of clustering
    #[arg(long, value_name = "COL", help_heading = "Localized")]
    pub regions: Option<String>,
    /// glmkl, gsmkl: groups that clustering finds [default: 3]
    #[arg(long, value_name = "N", help_heading = "Localized")]
    pub n_groups: Option<usize>,
    /// glmkl, gsmkl: column that says the group, instead of clustering
    #[arg(long, value_name = "COL", help_heading = "Localized")]
    pub groups: Option<String>,
    /// lmkl: form of the gate [default: softmax]
    #[arg(long, value_parser = named::<GateName>(&["softmax", "sigmoid"]), help_heading = "Localized")]
    pub gate: Option<GateName>,
    /// lmkl: kernel in whose feature space the gate is linear [default: the average]
    #[arg(long, value_name = "KERNEL", help_heading = "Localized")]
    pub gate_kernel: Option<String>,
    /// Starts: of the clustering (clmkl, hlmkl) [default: 10] of the gate (lmkl, glmkl, gsmkl) [default: 1] or of `ccp` (vcmkl) [default: 3]
    #[arg(long, value_name = "N", help_heading = "Localized")]
    pub n_init: Option<usize>,
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
    #[arg(long, value_delimiter = ',', value_parser = number, allow_negative_numbers = true, value_name = "A,B", help_heading = "Method")]
    pub penalties: Option<Vec<f64>>,
    /// No constant term
    #[arg(long, help_heading = "Method")]
    pub no_intercept: bool,
    /// Half-width of the tube of `epsilon_insensitive` [default: 0.1 times the deviation of the target]
    #[arg(long, value_parser = number, allow_negative_numbers = true, help_heading = "Method")]
    pub epsilon: Option<f64>,
    /// Leave numbers to predict in their own units, in which C then is, instead of bringing them to deviation 1
    #[arg(long, help_heading = "Method")]
    pub no_scale_target: bool,
    /// How each kernel is scaled [default: multiplicative; smkl: trace]
    #[arg(long, help_heading = "Method",
        value_parser = named::<Normalize>(&["trace", "multiplicative", "spherical", "center", "none"]))]
    pub normalize: Option<Normalize>,
    /// Leave columns as they are instead of bringing them to mean 0, deviation 1
    #[arg(long, help_heading = "Method")]
    pub no_standardize: bool,
    /// Steps on ordered columns: average(k), difference(k), difference(k, keep), snv; `… on view(name)`
    #[arg(long, default_value = "", hide_default_value = true, value_name = "STEPS", help_heading = "Method")]
    pub preprocess: String,
    /// Rows that lack a view: an error, or their kernel values imputed in feature space
    #[arg(long, default_value = "refuse", value_parser = named::<Missing>(&["refuse", "zero", "mean"]), help_heading = "Method")]
    pub missing: Missing,
    /// Ready-made matrices with negative eigenvalues: an error, or how they become kernels
    #[arg(long, default_value = "refuse", help_heading = "Method",
        value_parser = named::<Indefinite>(&["refuse", "shift", "clip", "flip"]))]
    pub indefinite: Indefinite,
    /// `balanced`, or a factor per class: `yes=5,no=1`
    #[arg(long, value_parser = class_weight, value_name = "WEIGHTS", allow_hyphen_values = true, help_heading = "Method")]
    pub class_weight: Option<ClassWeight>,

    /// Relative duality gap to reach
    #[arg(long, default_value_t = TrainSpec::default().tol, value_parser = number, allow_negative_numbers = true, help_heading = "Effort")]
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
    /// What stands in for every kernel, at a fixed rank: `nystrom(R)`, landmark rows; `rff(R)`, random Fourier features (rbf, laplace)
    #[arg(long, default_value_t = Approx::None, value_name = "HOW", help_heading = "Effort")]
    pub approx: Approx,
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
    /// Folds in which the report measures the request and equal weights on rows held out; 0: training rows only
    #[arg(long, default_value_t = 5, value_name = "N", help_heading = "Output")]
    pub report_folds: usize,
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

// What every command that computes takes. (A doc comment would become the help text of the command.)
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
    /// Kernel values of these rows against the training rows, under the name of the fit; may be given several times
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
    /// Column with the answers: its name, or its number (1 is the first, -1 the last) [default: what the data name]
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
    /// Where the values go: .npz, an archive with `grams` (rows, columns, kernels) and `names`; .npy, the stack alone; .csv, one kernel
    #[arg(long, short, default_value = "grams.npz", value_name = "FILE")]
    pub output: PathBuf,
    /// Values against these training rows instead of the rows themselves
    #[arg(long, value_name = "DATA")]
    pub train: Option<PathBuf>,
    /// Leave these columns out (what the data name as target is left out anyway)
    #[arg(long, value_delimiter = ',', value_name = "A,B", allow_hyphen_values = true)]
    pub exclude: Vec<String>,
    /// Use these rows only: `1-500`, or `1-500:2` for every second one
    #[arg(long, value_parser = span, value_name = "A-B[:STEP]")]
    pub rows: Option<Span>,
    /// How each kernel is scaled
    #[arg(long, default_value = "none",
        value_parser = named::<Normalize>(&["trace", "multiplicative", "spherical", "center", "none"]))]
    pub normalize: Normalize,
    /// Bring columns to mean 0, deviation 1 first, by the training rows
    #[arg(long)]
    pub standardize: bool,
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
    /// The column it was fitted to: its name, or its number (1 is the first, -1 the last) [default: what the data name]
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
    /// Data in any format that `fit` reads: show how each kernel aligns with the target, its trace, rank and conditioning
    pub data: Option<PathBuf>,
    /// Column to predict: its name, or its number (1 is the first, -1 the last) [default: what the data name]
    #[arg(long, short, value_name = "COL", allow_negative_numbers = true, requires = "data")]
    pub target: Option<String>,
    /// What the target is; `auto`: classes for text and for 2 to 10 distinct integers, else numbers
    #[arg(long, default_value = "auto", value_parser = task())]
    pub task: TaskHint,
    /// Kernels, in the kernel language [default: what the data name, else auto]
    #[arg(long, short, value_name = "TEXT")]
    pub kernels: Option<String>,
    /// Use these columns only
    #[arg(long, value_delimiter = ',', value_name = "A,B", allow_hyphen_values = true, conflicts_with = "exclude")]
    pub columns: Option<Vec<String>>,
    /// Leave these columns out
    #[arg(long, value_delimiter = ',', value_name = "A,B", allow_hyphen_values = true)]
    pub exclude: Vec<String>,
    /// How each kernel is scaled
    #[arg(long, default_value = "multiplicative",
        value_parser = named::<Normalize>(&["trace", "multiplicative", "spherical", "center", "none"]))]
    pub normalize: Normalize,
    /// Leave columns as they are instead of bringing them to mean 0, deviation 1
    #[arg(long)]
    pub no_standardize: bool,
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
