//! The methods by the names users type, each with its own parameters.

use serde::{Deserialize, Serialize};

use super::{Slot, Value, VcmklSpec, number_or_inf};
use crate::{
    Error, Result,
    weights::{ElasticNet, LpBall, Penalty, PerRegion, Separable},
};

/// How kernel weights are found: a method with its parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "snake_case", deny_unknown_fields)]
pub enum MethodSpec {
    /// Equal weights 1/M.
    Uniform {},
    /// One constraint on the weights, an elastic net.
    Gmkl(Gmkl),
    /// One constraint on the weights, an ℓp ball.
    Lp(Lp),
    /// The best single kernel by cross-validation on the training rows.
    Single(Single),
    /// Each kernel weighted by its own alignment with the target.
    Align {},
    /// The combination with the largest alignment with the target.
    Alignf {},
    /// Concave group selection terms, minimised by majorise–minimise.
    Smkl(Smkl),
    /// Convex localized MKL: a weight vector per region, soft or (`hlmkl`) hard.
    Clmkl(Clmkl),
    /// Localized MKL by a gate over the kernels, learned with the machine.
    Lmkl(Lmkl),
    /// ℓp-GLMKL: a weight vector per group, learned with the machine, groups by multi-kernel k-means.
    Glmkl(Glmkl),
    /// Group-sensitive MKL: softmax weights per group, groups by k-means on the average kernel.
    Gsmkl(Gsmkl),
    /// Veto–consensus: the smallest of several rules decides.
    Vcmkl(VcmklSpec),
}

/// Parameters of `gmkl`, which constrains the weights by v Σθ + (1−v) Σθ^p ≤ 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gmkl {
    /// Share of the ℓ1 term: 0 leaves the ℓp term alone, 1 the ℓ1 term.
    pub v: f64,
    /// Exponent of the other term, at least 1; the paper has 2.
    pub p: f64,
    /// The solver that finds the weights.
    pub solver: Solver,
}

impl Default for Gmkl {
    fn default() -> Self {
        Self { v: 0.5, p: 2.0, solver: Solver::Auto }
    }
}

/// Parameters of `lp`, which constrains the weights by ‖θ‖_p ≤ 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lp {
    /// Norm of the weights, at least 1; with p = ∞ every weight is 1.
    #[serde(with = "number_or_inf")]
    pub p: f64,
    /// The solver that finds the weights.
    pub solver: Solver,
}

impl Default for Lp {
    /// With p = 2 the sum of the weights, and so what an error costs, grows with the root of their number: docs/defaults.md.
    fn default() -> Self {
        Self { p: 4.0 / 3.0, solver: Solver::Auto }
    }
}

/// Parameters of `single`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Single {
    /// Number of folds of the cross-validation that chooses the kernel.
    pub folds: usize,
    /// Seed that draws the folds.
    pub seed: u64,
}

impl Default for Single {
    fn default() -> Self {
        Self { folds: 5, seed: 0 }
    }
}

/// Parameters of `smkl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Smkl {
    /// A sum of terms, e.g. `log+gl`, `0.5*log + mf(0.5)`, `mkl`.
    pub penalty: String,
    /// The number added inside the logarithm.
    pub eps: f64,
}

impl Default for Smkl {
    fn default() -> Self {
        Self { penalty: "log+gl".into(), eps: 1e-4 }
    }
}

/// Parameters of `clmkl` and `hlmkl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Clmkl {
    /// Number of regions, where they are found by clustering.
    pub n_clusters: usize,
    /// How even the memberships are; `None` means the middle of the reachable range.
    pub evenness: Option<Evenness>,
    /// Exponent of the constraint in each region.
    #[serde(with = "number_or_inf")]
    pub p: f64,
    /// Elastic net v Σθ + (1−v) Σθ^p ≤ 1 in each region; `None` means the ℓp ball.
    pub v: Option<f64>,
    /// Kernel whose feature space is clustered: in the kernel language, or the number of a base kernel; `None` means their average.
    pub cluster_kernel: Option<String>,
    /// Number of starts of the clustering.
    pub n_init: usize,
    /// Column that says the region, instead of clustering.
    pub regions: Option<String>,
    /// Seed that draws the starts.
    pub seed: u64,
}

impl Default for Clmkl {
    fn default() -> Self {
        Self {
            n_clusters: 3,
            evenness: None,
            p: 2.0,
            v: None,
            cluster_kernel: None,
            n_init: 10,
            regions: None,
            seed: 0,
        }
    }
}

/// Parameters of `lmkl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lmkl {
    /// Form of the gate.
    pub gate: GateName,
    /// Kernel in whose feature space the gate is linear, as for [`Clmkl::cluster_kernel`].
    pub gate_kernel: Option<String>,
    /// Number of starts: equal gates first, then random ones.
    pub n_init: usize,
    /// Seed that draws the random starts.
    pub seed: u64,
}

impl Default for Lmkl {
    fn default() -> Self {
        Self { gate: GateName::Softmax, gate_kernel: None, n_init: 1, seed: 0 }
    }
}

/// Parameters of `glmkl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Glmkl {
    /// Number of groups, where they are found by clustering.
    pub n_groups: usize,
    /// Norm of each group's weights, at least 1; weights enter squared, so 2 is sparse and larger is not.
    pub p: f64,
    /// Column that says the group, instead of clustering.
    pub groups: Option<String>,
    /// Number of starts: equal weights first, then random ones.
    pub n_init: usize,
    /// Seed of the clustering and of the random starts.
    pub seed: u64,
}

impl Default for Glmkl {
    fn default() -> Self {
        Self { n_groups: 3, p: 4.0, groups: None, n_init: 1, seed: 0 }
    }
}

/// Parameters of `gsmkl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gsmkl {
    /// Number of groups, where they are found by clustering.
    pub n_groups: usize,
    /// Column that says the group, instead of clustering.
    pub groups: Option<String>,
    /// Number of starts: equal weights first, then random ones.
    pub n_init: usize,
    /// Seed of the clustering and of the random starts.
    pub seed: u64,
}

impl Default for Gsmkl {
    fn default() -> Self {
        Self { n_groups: 3, groups: None, n_init: 1, seed: 0 }
    }
}

/// Solvers that reach the same optimum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Solver {
    /// The level method for the elastic net and for p below 1.2, alternation above; `Interior` for many rows in low-rank storage.
    #[default]
    Auto,
    /// Cutting planes with projections onto level sets.
    Level,
    /// Machine and closed-form weights in turn.
    Alternating,
    /// Weights and multipliers in one interior-point method; hinge or ε-insensitive loss on low-rank kernels.
    Interior,
    /// Reduced gradient with line search (SimpleMKL); p = 1 only.
    ReducedGradient,
    /// Cutting planes alone (SILP); p = 1 only.
    Silp,
}

/// How even memberships in regions are.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Evenness {
    /// Average evenness, in (1/regions, 1].
    Average(f64),
    /// The word `hard`.
    Word(EvennessWord),
}

impl Evenness {
    /// Every row belongs to one region.
    pub const HARD: Self = Self::Word(EvennessWord::Hard);
}

/// Evenness in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EvennessWord {
    /// Every row belongs to one region.
    Hard,
}

/// Forms of a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GateName {
    /// η_m ∝ exp(z_m): kernels compete.
    #[default]
    Softmax,
    /// η_m = 1/(1 + exp(−z_m)): each on its own.
    Sigmoid,
}

impl MethodSpec {
    /// Its name in the catalogue.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Uniform {} => "uniform",
            Self::Gmkl(_) => "gmkl",
            Self::Lp(_) => "lp",
            Self::Single(_) => "single",
            Self::Align {} => "align",
            Self::Alignf {} => "alignf",
            Self::Smkl(_) => "smkl",
            Self::Clmkl(Clmkl { evenness: Some(Evenness::HARD), .. }) => "hlmkl",
            Self::Clmkl(_) => "clmkl",
            Self::Lmkl(_) => "lmkl",
            Self::Glmkl(_) => "glmkl",
            Self::Gsmkl(_) => "gsmkl",
            Self::Vcmkl(_) => "vcmkl",
        }
    }

    /// Names of the method's own parameters and where they lie, in the order of its struct.
    fn slots(&mut self) -> Vec<(&'static str, Slot<'_>)> {
        match self {
            Self::Uniform {} | Self::Align {} | Self::Alignf {} => Vec::new(),
            Self::Gmkl(Gmkl { v, p, solver }) => {
                vec![("v", Slot::Number(v)), ("p", Slot::Number(p)), ("solver", Slot::Solver(solver))]
            }
            Self::Lp(Lp { p, solver }) => vec![("p", Slot::Exponent(p)), ("solver", Slot::Solver(solver))],
            Self::Single(Single { folds, seed }) => vec![("folds", Slot::Count(folds)), ("seed", Slot::Seed(seed))],
            Self::Smkl(Smkl { penalty, eps }) => vec![("penalty", Slot::Text(penalty)), ("eps", Slot::Number(eps))],
            Self::Clmkl(Clmkl { n_clusters, evenness, p, v, cluster_kernel, n_init, regions, seed }) => vec![
                ("n_clusters", Slot::Count(n_clusters)),
                ("evenness", Slot::Evenness(evenness)),
                ("p", Slot::Exponent(p)),
                ("v", Slot::OptionalNumber(v)),
                ("cluster_kernel", Slot::OptionalText(cluster_kernel)),
                ("n_init", Slot::Count(n_init)),
                ("regions", Slot::OptionalText(regions)),
                ("seed", Slot::Seed(seed)),
            ],
            Self::Lmkl(Lmkl { gate, gate_kernel, n_init, seed }) => vec![
                ("gate", Slot::Gate(gate)),
                ("gate_kernel", Slot::OptionalText(gate_kernel)),
                ("n_init", Slot::Count(n_init)),
                ("seed", Slot::Seed(seed)),
            ],
            Self::Glmkl(Glmkl { n_groups, p, groups, n_init, seed }) => vec![
                ("n_groups", Slot::Count(n_groups)),
                ("p", Slot::Number(p)),
                ("groups", Slot::OptionalText(groups)),
                ("n_init", Slot::Count(n_init)),
                ("seed", Slot::Seed(seed)),
            ],
            Self::Gsmkl(Gsmkl { n_groups, groups, n_init, seed }) => vec![
                ("n_groups", Slot::Count(n_groups)),
                ("groups", Slot::OptionalText(groups)),
                ("n_init", Slot::Count(n_init)),
                ("seed", Slot::Seed(seed)),
            ],
            Self::Vcmkl(own) => own.slots(),
        }
    }

    /// Names and values of the method's own parameters, in the order of its struct.
    pub fn parameters(&self) -> Vec<(&'static str, Value)> {
        self.clone().slots().into_iter().map(|(name, slot)| (name, slot.get())).collect()
    }

    /// The value of one of its own parameters; `None` where it has none of that name.
    pub fn get(&self, name: &str) -> Option<Value> {
        self.parameters().into_iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// Gives one of its own parameters another value. Whether the value is in its range is for [`super::TrainSpec::check`] to say.
    pub fn set(&mut self, name: &str, value: &Value) -> Result<()> {
        let method = self.name();
        let own: Vec<&str> = self.parameters().into_iter().map(|(known, _)| known).collect();
        let Some((_, slot)) = self.slots().into_iter().find(|(known, _)| *known == name) else {
            let has = if own.is_empty() { "no parameters".to_string() } else { own.join(", ") };
            return Err(Error::param(name, format!("left out for {method}, which has {has}"), value));
        };
        let expected = slot.expected();
        slot.set(value).ok_or_else(|| Error::param(name, expected, value))
    }

    /// Do weights depend on where a row lies?
    pub fn is_localized(&self) -> bool {
        matches!(self, Self::Clmkl(_) | Self::Lmkl(_) | Self::Glmkl(_) | Self::Gsmkl(_))
    }

    /// The column that says the region or group.
    pub fn region_column(&self) -> Option<&str> {
        match self {
            Self::Clmkl(own) => own.regions.as_deref(),
            Self::Glmkl(own) => own.groups.as_deref(),
            Self::Gsmkl(own) => own.groups.as_deref(),
            _ => None,
        }
    }

    /// Θ, over all regions; `None` for methods that fix, penalise or gate the weights instead.
    pub(crate) fn weight_set(&self, regions: usize) -> Result<Option<Box<dyn Separable>>> {
        Ok(match self {
            Self::Gmkl(own) => Some(Box::new(ElasticNet::new(own.v, own.p)?)),
            Self::Lp(own) => Some(Box::new(LpBall::new(own.p)?)),
            Self::Clmkl(Clmkl { p, v: None, .. }) => Some(Box::new(PerRegion::new(LpBall::new(*p)?, regions))),
            Self::Clmkl(Clmkl { p, v: Some(v), .. }) => {
                Some(Box::new(PerRegion::new(ElasticNet::new(*v, *p)?, regions)))
            }
            _ => None,
        })
    }

    /// The method with another share of the ℓ1 term, where `v` can be left to cross-validation.
    pub(crate) fn with_v(&self, v: f64) -> Self {
        match self {
            Self::Gmkl(own) => Self::Gmkl(Gmkl { v, ..*own }),
            other => other.clone(),
        }
    }

    /// The parameters of the method whose models are several rules.
    pub(crate) fn rules(&self) -> Option<&VcmklSpec> {
        if let Self::Vcmkl(own) = self { Some(own) } else { None }
    }

    /// The parameters of the method whose gate lies in a kernel's feature space.
    pub(crate) fn kernel_gate(&self) -> Option<&Lmkl> {
        if let Self::Lmkl(own) = self { Some(own) } else { None }
    }

    /// Norm in which the weights of a group of rows are 1.
    pub(crate) fn group_norm(&self) -> f64 {
        if let Self::Glmkl(own) = self { own.p } else { 1.0 }
    }

    /// Are regions that clustering finds soft?
    pub(crate) fn finds_soft_regions(&self) -> bool {
        matches!(self, Self::Clmkl(Clmkl { evenness: None, .. }))
    }

    /// The penalty on the weights, for the method that penalises them.
    pub(crate) fn penalty(&self) -> Result<Option<Penalty>> {
        let Self::Smkl(own) = self else { return Ok(None) };
        Penalty::parse(&own.penalty, own.eps).map(Some)
    }

    pub(super) fn check(&self) -> Result<()> {
        let least = |name: &str, value: usize| {
            if value == 0 { Err(Error::param(name, "at least 1", 0)) } else { Ok(()) }
        };
        match self {
            Self::Gmkl(own) => ElasticNet::new(own.v, own.p).map(|_| ()),
            Self::Lp(own) => LpBall::new(own.p).map(|_| ()),
            Self::Smkl(own) => Penalty::parse(&own.penalty, own.eps).map(|_| ()),
            Self::Single(own) if own.folds < 2 => Err(Error::param("folds", "at least 2", own.folds)),
            Self::Uniform {} | Self::Single(_) | Self::Align {} | Self::Alignf {} | Self::Vcmkl(_) => Ok(()),
            Self::Clmkl(Clmkl { n_clusters, evenness, p, v, n_init, .. }) => {
                least("n_clusters", *n_clusters)?;
                least("n_init", *n_init)?;
                if let Some(Evenness::Average(e)) = evenness
                    && !(*e > 0.0 && *e <= 1.0)
                {
                    return Err(Error::param("evenness", "above 0 and at most 1, or hard", e));
                }
                match v {
                    Some(v) => ElasticNet::new(*v, *p).map(|_| ()),
                    None => LpBall::new(*p).map(|_| ()),
                }
            }
            Self::Lmkl(own) => least("n_init", own.n_init),
            Self::Glmkl(Glmkl { n_groups, n_init, p, .. }) => {
                least("n_groups", *n_groups)?;
                least("n_init", *n_init)?;
                if p.is_finite() && *p >= 1.0 { Ok(()) } else { Err(Error::param("p", "a finite number ≥ 1", p)) }
            }
            Self::Gsmkl(own) => least("n_groups", own.n_groups).and_then(|()| least("n_init", own.n_init)),
        }
    }
}
