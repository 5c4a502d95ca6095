//! What a fit is asked for. One struct serves the library, the program, Python and the model file.

use serde::{Deserialize, Serialize};

use super::{Penalty, vcmkl::VcmklSpec};
use crate::{
    Error, Result,
    gram::Storage,
    kernels::Normalize,
    model::Scheme,
    weights::{ElasticNet, LpBall},
};

/// How kernel weights are found: the names users type.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "snake_case", deny_unknown_fields)]
pub enum MethodSpec {
    /// Equal weights 1/M.
    Uniform {},
    /// Elastic-net constraint v Σθ + (1−v) Σθ^p ≤ 1.
    Gmkl {
        /// Between 0 (ℓp) and 1 (L1).
        v: f64,
        /// At least 1; 2 in the paper.
        p: f64,
        /// How it is solved.
        solver: Solver,
    },
    /// ‖θ‖_p ≤ 1; p = ∞ lets every weight be 1.
    Lp {
        /// At least 1, or infinite.
        #[serde(with = "infinite")]
        p: f64,
        /// How it is solved.
        solver: Solver,
    },
    /// The best single kernel by cross-validation on the training rows.
    Single {
        /// Folds.
        folds: usize,
        /// Of the folds.
        seed: u64,
    },
    /// Concave group selection terms, by majorise–minimise.
    Smkl {
        /// A sum of terms, e.g. `log+gl`, `0.5*log + mf(0.5)`, `mkl`.
        penalty: String,
        /// Inside the logarithm.
        eps: f64,
    },
    /// Veto–consensus: the smallest of several rules decides.
    Vcmkl(VcmklSpec),
}

impl MethodSpec {
    /// Its name in the catalogue.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Uniform {} => "uniform",
            Self::Gmkl { .. } => "gmkl",
            Self::Lp { .. } => "lp",
            Self::Single { .. } => "single",
            Self::Smkl { .. } => "smkl",
            Self::Vcmkl(_) => "vcmkl",
        }
    }
}

/// JSON has no infinity: p = ∞ is written as the text "inf".
mod infinite {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    #[derive(Serialize, Deserialize)]
    #[serde(untagged)]
    enum Number {
        Finite(f64),
        Text(String),
    }

    #[allow(clippy::trivially_copy_pass_by_ref)] // the signature serde asks for
    pub fn serialize<S: Serializer>(value: &f64, to: S) -> Result<S::Ok, S::Error> {
        if value.is_finite() { Number::Finite(*value) } else { Number::Text("inf".into()) }.serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
        match Number::deserialize(from)? {
            Number::Finite(value) => Ok(value),
            Number::Text(text) => text.parse().map_err(|_| D::Error::custom("p must be a number or \"inf\"")),
        }
    }
}

/// The same for a p that may be left out.
pub(super) mod infinite_option {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    struct Number(#[serde(with = "super::infinite")] f64);

    #[allow(clippy::trivially_copy_pass_by_ref, clippy::ref_option)] // the signature serde asks for
    pub fn serialize<S: Serializer>(value: &Option<f64>, to: S) -> Result<S::Ok, S::Error> {
        value.map(Number).serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
        Ok(Option::<Number>::deserialize(from)?.map(|n| n.0))
    }
}

/// Roads to the same optimum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Solver {
    /// The level method for the elastic net and for p below 1.2, alternation above.
    #[default]
    Auto,
    /// Cutting planes with projections onto level sets.
    Level,
    /// Machine and closed-form weights in turn.
    Alternating,
    /// Reduced gradient with line search (SimpleMKL); p = 1 only.
    ReducedGradient,
    /// Cutting planes alone (SILP); p = 1 only.
    Silp,
}

/// Losses users can name; `None` in [`TrainSpec`] means hinge for classes, epsilon-insensitive for values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LossName {
    /// max(0, 1 − y f)
    Hinge,
    /// ½ max(0, 1 − y f)²
    SquaredHinge,
    /// log(1 + exp(−y f))
    Logistic,
    /// max(0, |f − y| − ε)
    EpsilonInsensitive,
    /// ½ (f − y)²
    Squared,
}

impl LossName {
    /// What users type.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Hinge => "hinge",
            Self::SquaredHinge => "squared_hinge",
            Self::Logistic => "logistic",
            Self::EpsilonInsensitive => "epsilon_insensitive",
            Self::Squared => "squared",
        }
    }
}

/// How classes are weighted against each other.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClassWeight {
    /// Every sample costs the same.
    #[default]
    None,
    /// n / (classes · count): rare classes cost more.
    Balanced,
    /// A factor per class name; classes not named keep 1.
    Given(Vec<(String, f64)>),
}

/// Which kernels share one weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GroupBy {
    /// None: a weight each.
    #[default]
    None,
    /// Those on the same columns: a feature, band or view is in or out.
    Scope,
}

/// Everything a fit is asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[allow(clippy::struct_excessive_bools)] // a request is a list of independent switches
pub struct TrainSpec {
    /// How weights are found.
    pub method: MethodSpec,
    /// The bank, in the kernel language.
    pub kernels: String,
    /// How base kernels are scaled.
    pub normalize: Normalize,
    /// Bring columns to mean 0, deviation 1 (training rows); ignored for ready-made kernels.
    pub standardize: bool,
    /// Price of the sum of losses.
    pub c: f64,
    /// The loss.
    pub loss: Option<LossName>,
    /// Half-width of the tube; `None` means 0.1·std(y).
    pub epsilon: Option<f64>,
    /// Per-class factors on C.
    pub class_weight: ClassWeight,
    /// How more than two classes become machines.
    pub multi_class: Scheme,
    /// One weight vector for all machines, minimising the sum of their objectives?
    pub shared_weights: bool,
    /// Is there a constant term?
    pub fit_intercept: bool,
    /// Kernels that share one weight and so enter or leave together.
    pub group_by: GroupBy,
    /// One η > 0 per kernel: Θ then constrains η θ, so a kernel with a larger η is dearer. `None` means 1 for all.
    pub penalties: Option<Vec<f64>>,
    /// Relative duality gap to reach.
    pub tol: f64,
    /// Outer iterations at most.
    pub max_iter: usize,
    /// May methods that select kernels work on few at a time? The certificate speaks of all either way.
    pub working_set: bool,
    /// Storage of kernel matrices.
    pub storage: Storage,
    /// Memory budget in bytes; `None` means half the machine's memory.
    pub memory: Option<u64>,
}

impl Default for TrainSpec {
    fn default() -> Self {
        Self {
            method: MethodSpec::Gmkl { v: 0.5, p: 2.0, solver: Solver::Auto },
            kernels: "auto".into(),
            normalize: Normalize::Multiplicative,
            standardize: true,
            c: 1.0,
            loss: None,
            epsilon: None,
            class_weight: ClassWeight::None,
            multi_class: Scheme::OneVsRest,
            shared_weights: false,
            fit_intercept: true,
            group_by: GroupBy::None,
            penalties: None,
            tol: 1e-3,
            max_iter: 500,
            working_set: true,
            storage: Storage::Auto,
            memory: None,
        }
    }
}

impl TrainSpec {
    /// Refuses parameters outside their ranges, naming them.
    pub fn check(&self) -> Result<()> {
        let positive = |name: &str, value: f64| {
            if value.is_finite() && value > 0.0 {
                return Ok(());
            }
            Err(Error::param(name, "a finite number > 0", value))
        };
        positive("C", self.c)?;
        positive("tol", self.tol)?;
        if self.max_iter == 0 {
            return Err(Error::param("max_iter", "at least 1", 0));
        }
        if let ClassWeight::Given(pairs) = &self.class_weight {
            for (class, weight) in pairs {
                positive(&format!("class_weight[{class}]"), *weight)?;
            }
        }
        for (t, eta) in self.penalties.iter().flatten().enumerate() {
            positive(&format!("penalties[{}]", t + 1), *eta)?;
        }
        match &self.method {
            MethodSpec::Gmkl { v, p, .. } => ElasticNet::new(*v, *p).map(|_| ()),
            MethodSpec::Lp { p, .. } => LpBall::new(*p).map(|_| ()),
            MethodSpec::Smkl { penalty, eps } => Penalty::parse(penalty, *eps).map(|_| ()),
            MethodSpec::Vcmkl(own) => own.check(self),
            MethodSpec::Single { folds, .. } if *folds < 2 => Err(Error::param("folds", "at least 2", folds)),
            MethodSpec::Single { .. } if self.group_by != GroupBy::None || self.penalties.is_some() => {
                Err(Error::param("group_by and penalties", "left out for single, which weighs no kernels", "given"))
            }
            _ => Ok(()),
        }
    }

    /// Relative trace residual at which low-rank factors stop: small enough not to be seen in a gap of `tol` with large C, and never
    /// below what rounding allows.
    pub fn rank_tolerance(&self) -> f64 {
        (1e-7 * self.tol).clamp(1e-15, 1e-10)
    }

    /// May a fit of one start from the other's result, prices rescaled?
    pub(super) fn differs_only_in_price_and_method(&self, other: &Self) -> bool {
        let like =
            Self { c: other.c, method: other.method.clone(), tol: other.tol, max_iter: other.max_iter, ..self.clone() };
        like == *other && self.rank_tolerance() == other.rank_tolerance()
    }

    /// Do both ask for the same kernel terms?
    pub(super) fn same_terms(&self, other: &Self) -> bool {
        self.kernels == other.kernels
            && self.normalize == other.normalize
            && self.standardize == other.standardize
            && self.storage == other.storage
            && self.memory == other.memory
            && self.rank_tolerance() == other.rank_tolerance()
    }
}
