//! The request that all commands share, as it is typed, and the typed request made from it: once,
//! here.

use clap::Args;
use mercer::{
    Result, TrainSpec,
    data::{Missing, steps::Steps},
    kernels::{Indefinite, Normalize},
    request::{Approx, ClassWeight, GroupBy, LossName, MethodSpec, Scheme, Storage},
};

use crate::values::{bytes, class_weight, named, number};

// Which kernels there are and how they are stored: all that a bank needs before anything is learned
// from it.
#[derive(Debug, Args)]
pub struct BankArgs {
    /// Kernels, in the kernel language (see `mercer kernels`), or `auto`, or `paper` [default: what
    /// the data name, else auto]
    #[arg(long, short, value_name = "TEXT", help_heading = "Kernels")]
    pub kernels: Option<String>,
    /// How each kernel is scaled [default: multiplicative; smkl: trace]
    #[arg(long, help_heading = "Kernels",
        value_parser = named::<Normalize>(&["trace", "multiplicative", "spherical", "center", "none"]))]
    pub normalize: Option<Normalize>,
    /// Leave columns as they are instead of bringing them to mean 0, deviation 1 on the training
    /// rows
    #[arg(long, help_heading = "Kernels")]
    pub no_standardize: bool,
    /// Steps on ordered columns: average(k), difference(k), difference(k, keep), snv;
    /// `… on view(name)`
    #[arg(
        long,
        default_value = "",
        hide_default_value = true,
        value_name = "STEPS",
        help_heading = "Kernels"
    )]
    pub preprocess: String,
    /// Rows that lack a view: an error, or their kernel values imputed in feature space
    #[arg(long, default_value = "refuse", help_heading = "Kernels",
        value_parser = named::<Missing>(&["refuse", "zero", "mean"]))]
    pub missing: Missing,
    /// Ready-made matrices with negative eigenvalues: an error, or how they become kernels
    #[arg(long, default_value = "refuse", help_heading = "Kernels",
        value_parser = named::<Indefinite>(&["refuse", "shift", "clip", "flip"]))]
    pub indefinite: Indefinite,
    /// What stands in for every kernel, at a fixed rank: `nystrom(R)`, landmark rows; `rff(R)`,
    /// random Fourier features (rbf, laplace)
    #[arg(long, default_value_t = Approx::None, value_name = "HOW", help_heading = "Kernels")]
    pub approx: Approx,
    /// How kernels are stored
    #[arg(long, default_value = "auto", help_heading = "Kernels",
        value_parser = named::<Storage>(&["auto", "dense", "dense-f32", "low-rank"]))]
    pub storage: Storage,
    /// Memory for kernels, of one fit where there are several, e.g. 512M or 4G [default: half the
    /// machine's]
    #[arg(long, value_parser = bytes, value_name = "SIZE", help_heading = "Kernels")]
    pub memory: Option<u64>,
}

// What is learned, and how exactly; what a method alone has is not here.
#[derive(Debug, Args)]
pub struct RequestArgs {
    #[command(flatten)]
    pub bank: BankArgs,
    /// Loss [default: hinge for classes, `epsilon_insensitive` for numbers]
    #[arg(long, help_heading = "Problem", value_parser = named::<LossName>(&LossName::NAMES))]
    pub loss: Option<LossName>,
    #[arg(long, value_parser = number, allow_negative_numbers = true, help_heading = "Problem", help = epsilon_help())]
    pub epsilon: Option<f64>,
    /// Leave numbers to predict in their own units, in which C then is, instead of bringing them to
    /// deviation 1 on the training rows
    #[arg(long, help_heading = "Problem")]
    pub no_scale_target: bool,
    /// `balanced`, or a factor per class: `yes=5,no=1`
    #[arg(long, value_parser = class_weight, value_name = "WEIGHTS", allow_hyphen_values = true, help_heading = "Problem")]
    pub class_weight: Option<ClassWeight>,
    /// More than two classes: a machine for each against the rest, or for each pair
    #[arg(long, default_value = "ovr", value_parser = named::<Scheme>(&["ovr", "ovo"]), help_heading = "Problem")]
    pub multi_class: Scheme,
    /// More than two classes: one weight vector for all machines
    #[arg(long, help_heading = "Problem")]
    pub shared_weights: bool,
    /// No constant term
    #[arg(long, help_heading = "Problem")]
    pub no_intercept: bool,
    /// `scope`: kernels on the same columns share one weight
    #[arg(long, default_value = "none", value_parser = named::<GroupBy>(&["none", "scope"]), help_heading = "Problem")]
    pub group_by: GroupBy,
    /// A positive number per kernel: the larger, the dearer
    #[arg(long, value_delimiter = ',', value_parser = number, allow_negative_numbers = true, value_name = "A,B", help_heading = "Problem")]
    pub penalties: Option<Vec<f64>>,
    /// Relative duality gap to reach
    #[arg(long, default_value_t = TrainSpec::default().tol, value_parser = number, allow_negative_numbers = true, help_heading = "Effort")]
    pub tol: f64,
    /// Outer iterations at most
    #[arg(long, default_value_t = TrainSpec::default().max_iter, value_name = "N", help_heading = "Effort")]
    pub max_iter: usize,
}

/// The help of `--epsilon`: what it is for each loss that reads it.
fn epsilon_help() -> String {
    LossName::ALL.into_iter().filter_map(LossName::epsilon_help).collect::<Vec<_>>().join("; ")
}

impl BankArgs {
    /// The typed request as far as it speaks of kernels. `seed` draws landmarks and frequencies.
    /// The bank itself may be left to the data (see [`crate::commands::load`]).
    pub fn request(&self, method: MethodSpec, seed: u64) -> TrainSpec {
        let own = match self.normalize {
            Some(normalize) => TrainSpec { method, normalize, ..TrainSpec::default() },
            None => TrainSpec::for_method(method),
        };
        TrainSpec {
            kernels: self.kernels.clone().unwrap_or(own.kernels),
            standardize: !self.no_standardize,
            preprocess: self.preprocess.clone(),
            missing: self.missing,
            indefinite: self.indefinite,
            approx: self.approx,
            approx_seed: seed,
            storage: self.storage,
            memory: self.memory,
            ..own
        }
    }
}

impl RequestArgs {
    /// The typed request for a method, checked.
    pub fn request(&self, method: MethodSpec, seed: u64) -> Result<TrainSpec> {
        let spec = TrainSpec {
            loss: self.loss,
            epsilon: self.epsilon,
            scale_target: !self.no_scale_target,
            class_weight: self.class_weight.clone().unwrap_or_default(),
            multi_class: self.multi_class,
            shared_weights: self.shared_weights,
            fit_intercept: !self.no_intercept,
            group_by: self.group_by,
            penalties: self.penalties.clone(),
            tol: self.tol,
            max_iter: self.max_iter,
            ..self.bank.request(method, seed)
        };
        spec.check()?;
        Steps::parse(&spec.preprocess)?;
        Ok(spec)
    }
}
