//! The methods' own parameters: a struct each with its defaults, what users are told, and its
//! checks.

use serde::{Deserialize, Serialize};

use super::{
    Evenness, GateName, Slot, Solver,
    catalogue::{Parameter, plain, tried},
    number_or_inf,
};
use crate::{
    Error, Result,
    weights::{ElasticNet, LpBall, Penalty},
};

/// The seed that most methods have.
pub(super) const SEED: Parameter = plain("seed", "default 0");

fn at_least_one(name: &str, value: usize) -> Result<()> {
    if value == 0 { Err(Error::param(name, "at least 1", 0)) } else { Ok(()) }
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

impl Gmkl {
    /// The parameters, as users are told about them.
    pub(super) const PARAMETERS: &'static [Parameter] = &[
        tried("v", "0 is L2, 1 is L1; default 0.5", "0.1|0.5|0.9"),
        plain("p", "at least 1; default 2"),
        plain("solver", "auto, level, alternating, interior; default auto"),
    ];

    /// The parameters by their names.
    pub(super) fn slots(&mut self) -> Vec<(&'static str, Slot<'_>)> {
        let Self { v, p, solver } = self;
        vec![("v", Slot::Number(v)), ("p", Slot::Number(p)), ("solver", Slot::Solver(solver))]
    }

    /// Refuses a value outside its range, naming it.
    pub(super) fn check(&self) -> Result<()> {
        ElasticNet::new(self.v, self.p).map(|_| ())
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
    /// With p = 2 the sum of the weights, and so what an error costs, grows with the root of their
    /// number: docs/defaults.md.
    fn default() -> Self {
        Self { p: 4.0 / 3.0, solver: Solver::Auto }
    }
}

impl Lp {
    /// The parameters, as users are told about them.
    pub(super) const PARAMETERS: &'static [Parameter] = &[
        tried("p", "at least 1, or inf; default 4/3", "1.5|2|4"),
        plain(
            "solver",
            "auto, level, alternating, interior; for p = 1 also reduced_gradient = SimpleMKL, silp; default auto",
        ),
    ];

    /// The parameters by their names.
    pub(super) fn slots(&mut self) -> Vec<(&'static str, Slot<'_>)> {
        let Self { p, solver } = self;
        vec![("p", Slot::Exponent(p)), ("solver", Slot::Solver(solver))]
    }

    /// Refuses a value outside its range, naming it.
    pub(super) fn check(&self) -> Result<()> {
        LpBall::new(self.p).map(|_| ())
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

impl Single {
    /// The parameters, as users are told about them.
    // Folds within folds within splits: three are enough to rank kernels.
    pub(super) const PARAMETERS: &'static [Parameter] =
        &[tried("folds", "at least 2; default 5", "3"), SEED];

    /// The parameters by their names.
    pub(super) fn slots(&mut self) -> Vec<(&'static str, Slot<'_>)> {
        let Self { folds, seed } = self;
        vec![("folds", Slot::Count(folds)), ("seed", Slot::Seed(seed))]
    }

    /// Refuses a value outside its range, naming it.
    pub(super) fn check(&self) -> Result<()> {
        if self.folds < 2 { Err(Error::param("folds", "at least 2", self.folds)) } else { Ok(()) }
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

impl Smkl {
    /// The parameters, as users are told about them.
    pub(super) const PARAMETERS: &'static [Parameter] = &[
        plain("penalty", "sums of log, gl, mf(p), mkl; default log+gl"),
        plain("eps", "inside the logarithm; default 0.0001"),
    ];

    /// The parameters by their names.
    pub(super) fn slots(&mut self) -> Vec<(&'static str, Slot<'_>)> {
        let Self { penalty, eps } = self;
        vec![("penalty", Slot::Text(penalty)), ("eps", Slot::Number(eps))]
    }

    /// Refuses a value outside its range, naming it.
    pub(super) fn check(&self) -> Result<()> {
        Penalty::parse(&self.penalty, self.eps).map(|_| ())
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
    /// Kernel whose feature space is clustered: in the kernel language, or the number of a base
    /// kernel; `None` means their average.
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

/// The parameters that `clmkl` and `hlmkl` share.
const REGIONS: [Parameter; 7] = [
    plain("n_clusters", "at least 1; default 3"),
    plain("p", "at least 1, or inf; default 2"),
    plain("v", "elastic net in each region, 0 to 1"),
    plain("cluster_kernel", "default: the average"),
    plain("n_init", "starts; default 10"),
    plain("regions", "a column"),
    SEED,
];

const EVENNESS: Parameter =
    plain("evenness", "at most 1, or hard; default: the middle of its range");

impl Clmkl {
    /// The parameters of `hlmkl`, which says its evenness already.
    pub(super) const HARD_PARAMETERS: &'static [Parameter] = &REGIONS;

    /// The parameters, as users are told about them.
    pub(super) const PARAMETERS: &'static [Parameter] = &[
        REGIONS[0], EVENNESS, REGIONS[1], REGIONS[2], REGIONS[3], REGIONS[4], REGIONS[5],
        REGIONS[6],
    ];

    /// The parameters by their names.
    pub(super) fn slots(&mut self) -> Vec<(&'static str, Slot<'_>)> {
        let Self { n_clusters, evenness, p, v, cluster_kernel, n_init, regions, seed } = self;
        vec![
            ("n_clusters", Slot::Count(n_clusters)),
            ("evenness", Slot::Evenness(evenness)),
            ("p", Slot::Exponent(p)),
            ("v", Slot::OptionalNumber(v)),
            ("cluster_kernel", Slot::OptionalText(cluster_kernel)),
            ("n_init", Slot::Count(n_init)),
            ("regions", Slot::OptionalText(regions)),
            ("seed", Slot::Seed(seed)),
        ]
    }

    /// Refuses a value outside its range, naming it.
    pub(super) fn check(&self) -> Result<()> {
        at_least_one("n_clusters", self.n_clusters)?;
        at_least_one("n_init", self.n_init)?;
        if let Some(Evenness::Average(e)) = self.evenness
            && !(e > 0.0 && e <= 1.0)
        {
            return Err(Error::param("evenness", "above 0 and at most 1, or hard", e));
        }
        match self.v {
            Some(v) => ElasticNet::new(v, self.p).map(|_| ()),
            None => LpBall::new(self.p).map(|_| ()),
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

impl Lmkl {
    /// The parameters, as users are told about them.
    pub(super) const PARAMETERS: &'static [Parameter] = &[
        plain("gate", "softmax, sigmoid; default softmax"),
        plain("gate_kernel", "`linear on all` is the linear gate; default: the average"),
        plain("n_init", "starts; default 1"),
        SEED,
    ];

    /// The parameters by their names.
    pub(super) fn slots(&mut self) -> Vec<(&'static str, Slot<'_>)> {
        let Self { gate, gate_kernel, n_init, seed } = self;
        vec![
            ("gate", Slot::Gate(gate)),
            ("gate_kernel", Slot::OptionalText(gate_kernel)),
            ("n_init", Slot::Count(n_init)),
            ("seed", Slot::Seed(seed)),
        ]
    }

    /// Refuses a value outside its range, naming it.
    pub(super) fn check(&self) -> Result<()> {
        at_least_one("n_init", self.n_init)
    }
}

/// Parameters of `glmkl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Glmkl {
    /// Number of groups, where they are found by clustering.
    pub n_groups: usize,
    /// Norm of each group's weights, at least 1; weights enter squared, so 2 is sparse and larger
    /// is not.
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

impl Glmkl {
    /// The parameters, as users are told about them.
    pub(super) const PARAMETERS: &'static [Parameter] = &[
        plain("n_groups", "at least 1; default 3"),
        plain("p", "at least 1, 2 is sparse; default 4"),
        plain("groups", "a column"),
        plain("n_init", "starts; default 1"),
        SEED,
    ];

    /// The parameters by their names.
    pub(super) fn slots(&mut self) -> Vec<(&'static str, Slot<'_>)> {
        let Self { n_groups, p, groups, n_init, seed } = self;
        vec![
            ("n_groups", Slot::Count(n_groups)),
            ("p", Slot::Number(p)),
            ("groups", Slot::OptionalText(groups)),
            ("n_init", Slot::Count(n_init)),
            ("seed", Slot::Seed(seed)),
        ]
    }

    /// Refuses a value outside its range, naming it.
    pub(super) fn check(&self) -> Result<()> {
        at_least_one("n_groups", self.n_groups)?;
        at_least_one("n_init", self.n_init)?;
        let p = self.p;
        if p.is_finite() && p >= 1.0 {
            Ok(())
        } else {
            Err(Error::param("p", "a finite number ≥ 1", p))
        }
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

impl Gsmkl {
    /// The parameters, as users are told about them.
    pub(super) const PARAMETERS: &'static [Parameter] =
        &[Glmkl::PARAMETERS[0], Glmkl::PARAMETERS[2], Glmkl::PARAMETERS[3], SEED];

    /// The parameters by their names.
    pub(super) fn slots(&mut self) -> Vec<(&'static str, Slot<'_>)> {
        let Self { n_groups, groups, n_init, seed } = self;
        vec![
            ("n_groups", Slot::Count(n_groups)),
            ("groups", Slot::OptionalText(groups)),
            ("n_init", Slot::Count(n_init)),
            ("seed", Slot::Seed(seed)),
        ]
    }

    /// Refuses a value outside its range, naming it.
    pub(super) fn check(&self) -> Result<()> {
        at_least_one("n_groups", self.n_groups).and_then(|()| at_least_one("n_init", self.n_init))
    }
}
