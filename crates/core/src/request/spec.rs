//! What a fit is asked for. One struct serves the library, the program, Python and the model file.

use serde::{Deserialize, Serialize};

use super::{Choices, Gmkl, MethodSpec, Scheme};
use crate::{
    Error, Result,
    data::Missing,
    gram::{Approx, Storage},
    kernels::{Indefinite, Normalize},
    loss::LossName,
};

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
    /// Parameters left to cross-validation by [`crate::train()`] and [`crate::train_precomputed`].
    pub choose: Choices,
    /// What an error costs; `None` means hinge for classes, epsilon-insensitive for values.
    pub loss: Option<LossName>,
    /// Half-width of the tube; `None` means 0.1·std(y).
    pub epsilon: Option<f64>,
    /// Divide values by their deviation over the training rows before they are fitted, so that C
    /// does not depend on the target's units? Predictions, multipliers, intercepts and `epsilon`
    /// stay in those units; objectives are those of the problem that was solved.
    pub scale_target: bool,
    /// Per-class factors on C.
    pub class_weight: ClassWeight,
    /// How more than two classes become machines.
    pub multi_class: Scheme,
    /// One weight vector for all machines, minimising the sum of their objectives?
    pub shared_weights: bool,
    /// Has every decision function a constant term?
    pub fit_intercept: bool,
    /// Kernels that share one weight and so enter or leave together.
    pub group_by: GroupBy,
    /// One η > 0 per kernel: Θ then constrains η θ, so a kernel with a larger η is dearer. `None`
    /// means 1 for all.
    pub penalties: Option<Vec<f64>>,
    /// Relative duality gap to reach.
    pub tol: f64,
    /// Outer iterations at most.
    pub max_iter: usize,
    /// May methods that select kernels work on few at a time? The certificate speaks of all either
    /// way.
    pub working_set: bool,
    /// May they leave kernels out once these are proved to have no weight? The optimum is the same
    /// either way.
    pub screening: bool,
    /// Preprocessing of ordered columns (see [`crate::data::steps`]); empty for none.
    pub preprocess: String,
    /// What is done with rows that lack a view.
    pub missing: Missing,
    /// What is done with ready-made matrices that are not positive semidefinite.
    pub indefinite: Indefinite,
    /// What stands in for every kernel.
    pub approx: Approx,
    /// Seed that draws the landmarks or frequencies of `approx`.
    pub approx_seed: u64,
    /// Storage of kernel matrices.
    pub storage: Storage,
    /// Memory budget in bytes; `None` means half the machine's memory.
    pub memory: Option<u64>,
}

impl Default for TrainSpec {
    fn default() -> Self {
        Self {
            method: MethodSpec::Gmkl(Gmkl::default()),
            kernels: "auto".into(),
            normalize: Normalize::Multiplicative,
            standardize: true,
            c: 1.0,
            choose: Choices::default(),
            loss: None,
            epsilon: None,
            scale_target: true,
            class_weight: ClassWeight::None,
            multi_class: Scheme::OneVsRest,
            shared_weights: false,
            fit_intercept: true,
            group_by: GroupBy::None,
            penalties: None,
            tol: 1e-3,
            max_iter: 500,
            working_set: true,
            screening: true,
            preprocess: String::new(),
            missing: Missing::Refuse,
            indefinite: Indefinite::Refuse,
            approx: Approx::None,
            approx_seed: 0,
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
        if self.choose.folds < 2 {
            return Err(Error::param("folds", "at least 2", self.choose.folds));
        }
        if self.choose.c && self.choose.scale {
            return Err(Error::param(
                "C",
                "left to cross-validation or to the scale of the kernels",
                "both",
            ));
        }
        if self.choose.v && !matches!(self.method, MethodSpec::Gmkl(_)) {
            return Err(Error::param(
                "v",
                format!("left out for {}, which has none", self.method.name()),
                "auto",
            ));
        }
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
        self.approx.check()?;
        if self.approx != Approx::None && matches!(self.storage, Storage::Dense | Storage::DenseF32)
        {
            return Err(Error::param(
                "storage",
                format!("auto or low-rank with approx = {}", self.approx),
                "dense",
            ));
        }
        self.method.check()?;
        if let MethodSpec::Vcmkl(own) = &self.method {
            own.check(self)?;
        }
        let gated = self.method.is_localized() && !matches!(self.method, MethodSpec::Clmkl(_));
        if (gated || matches!(self.method, MethodSpec::Single(_)))
            && (self.group_by != GroupBy::None || self.penalties.is_some())
        {
            let name = if self.penalties.is_some() { "penalties" } else { "group_by" };
            let why =
                if gated { "its weights differ from row to row" } else { "it weighs no kernels" };
            let expected = format!("left out with the method {}: {why}", self.method.name());
            return Err(Error::param(
                name,
                expected,
                if self.penalties.is_some() { "numbers" } else { "scope" },
            ));
        }
        Ok(())
    }

    /// The defaults for a method: those of [`TrainSpec::default`], and for `smkl`, which has no
    /// scale law, the scaling and price it was made for: unit trace, and C as large as the number
    /// of rows.
    pub fn for_method(method: MethodSpec) -> Self {
        Self { method, ..Self::default() }.with_own_scaling()
    }

    /// The request with the normalisation that its method has by default.
    #[must_use]
    pub fn with_own_scaling(mut self) -> Self {
        if let MethodSpec::Smkl(_) = self.method {
            self.normalize = Normalize::Trace;
            self.choose.scale = true;
        }
        self
    }

    /// The request without what a comparison asks of all methods and the best single kernel has no
    /// use for: it weighs no kernels, so that none can share a weight or be dearer.
    #[must_use]
    pub(crate) fn for_contender(mut self) -> Self {
        if let MethodSpec::Single(_) = self.method {
            (self.group_by, self.penalties) = (GroupBy::None, None);
        }
        self
    }

    /// The request with C in numbers, for so many training rows.
    pub(crate) fn with_c_in_numbers(&self, rows: usize) -> Self {
        let c = match (self.choose.scale, self.normalize) {
            (true, Normalize::Trace) => rows as f64,
            (true, _) => 1.0,
            (false, _) => self.c,
        };
        Self { c, ..self.clone() }
    }

    /// Relative trace residual at which low-rank factors stop: small enough not to be seen in a gap
    /// of `tol` with large C, and never below what rounding allows.
    pub fn rank_tolerance(&self) -> f64 {
        (1e-7 * self.tol).clamp(1e-15, 1e-10)
    }

    /// May a fit of one start from the other's result, rescaled by the ratio of their C?
    pub(crate) fn differs_only_in_c_and_method(&self, other: &Self) -> bool {
        let like = Self {
            c: other.c,
            method: other.method.clone(),
            tol: other.tol,
            max_iter: other.max_iter,
            ..self.clone()
        };
        like == *other && self.rank_tolerance() == other.rank_tolerance()
    }

    /// Do both ask for the same kernel terms?
    pub(crate) fn same_terms(&self, other: &Self) -> bool {
        self.kernels == other.kernels
            && self.normalize == other.normalize
            && self.standardize == other.standardize
            && self.preprocess == other.preprocess
            && self.missing == other.missing
            && self.indefinite == other.indefinite
            && self.approx == other.approx
            && self.approx_seed == other.approx_seed
            && self.storage == other.storage
            && self.memory == other.memory
            && self.rank_tolerance() == other.rank_tolerance()
    }
}
