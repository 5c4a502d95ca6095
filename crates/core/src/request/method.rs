//! The methods by the names users type, each with its own parameters.

use serde::{Deserialize, Serialize};

use super::{
    Clmkl, Evenness, Glmkl, Gmkl, Gsmkl, Lmkl, Lp, Single, Slot, Smkl, Value, VcmklSpec,
    catalogue::{MethodInfo, Targets},
};
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
    /// ℓp-GLMKL: a weight vector per group, learned with the machine, groups by multi-kernel
    /// k-means.
    Glmkl(Glmkl),
    /// Group-sensitive MKL: softmax weights per group, groups by k-means on the average kernel.
    Gsmkl(Gsmkl),
    /// Veto–consensus: the smallest of several rules decides.
    Vcmkl(VcmklSpec),
}

/// The methods in the order in which they are listed.
pub(super) const METHODS: &[MethodInfo] = &[
    MethodInfo {
        name: "uniform",
        summary: "equal weights 1/M: the baseline to beat",
        certificate: "duality gap",
        parameters: &[],
        targets: Targets::Any,
    },
    MethodInfo {
        name: "gmkl",
        summary: "elastic-net constraint v Σθ + (1−v) Σθ^p ≤ 1: selects kernels, equal kernels get equal weight",
        certificate: "duality gap",
        parameters: Gmkl::PARAMETERS,
        targets: Targets::Any,
    },
    MethodInfo {
        name: "lp",
        summary: "ℓp-norm MKL, ‖θ‖_p ≤ 1: p = 1 is sparse (also `l1`), p = 2 (also `l2`), p = inf keeps all",
        certificate: "duality gap",
        parameters: Lp::PARAMETERS,
        targets: Targets::Any,
    },
    MethodInfo {
        name: "single",
        summary: "the best single kernel by cross-validation on the training rows",
        certificate: "duality gap",
        parameters: Single::PARAMETERS,
        targets: Targets::Any,
    },
    MethodInfo {
        name: "align",
        summary: "one-shot weights: each kernel by its centred alignment with the target",
        certificate: "duality gap",
        parameters: &[],
        targets: Targets::Any,
    },
    MethodInfo {
        name: "alignf",
        summary: "one-shot weights: the combination with the largest centred alignment with the target",
        certificate: "duality gap",
        parameters: &[],
        targets: Targets::Any,
    },
    MethodInfo {
        name: "smkl",
        summary: "concave group selection terms: fewer kernels than L1 at comparable error; \
                  normalize is trace and C scale by default",
        certificate: "stationarity",
        parameters: Smkl::PARAMETERS,
        targets: Targets::Any,
    },
    MethodInfo {
        name: "clmkl",
        summary: "convex localized MKL: kernel weights per region, soft regions from kernel k-means",
        certificate: "duality gap",
        parameters: Clmkl::PARAMETERS,
        targets: Targets::Any,
    },
    MethodInfo {
        name: "hlmkl",
        summary: "clmkl with hard regions: every row belongs to one",
        certificate: "duality gap",
        parameters: Clmkl::HARD_PARAMETERS,
        targets: Targets::Any,
    },
    MethodInfo {
        name: "lmkl",
        summary: "localized MKL: a gate over the kernels in a kernel's feature space, learned with the machine",
        certificate: "stationarity",
        parameters: Lmkl::PARAMETERS,
        targets: Targets::Any,
    },
    MethodInfo {
        name: "glmkl",
        summary: "ℓp-GLMKL: kernel weights per group, learned with the machine, groups from multi-kernel k-means",
        certificate: "stationarity",
        parameters: Glmkl::PARAMETERS,
        targets: Targets::Any,
    },
    MethodInfo {
        name: "gsmkl",
        summary: "group-sensitive MKL: softmax kernel weights per group",
        certificate: "stationarity",
        parameters: Gsmkl::PARAMETERS,
        targets: Targets::Any,
    },
    MethodInfo {
        name: "vcmkl",
        summary: "veto–consensus: a sample belongs to the consensus class only if every rule agrees, g = min f_m",
        certificate: "stationarity; a duality gap for solver exact",
        parameters: VcmklSpec::PARAMETERS,
        targets: Targets::TwoClasses,
    },
];

/// Names of [`MethodSpec::Lp`] with p said already.
const NORMS: [(&str, f64); 2] = [("l1", 1.0), ("l2", 2.0)];

impl MethodSpec {
    /// The method of that name with its default parameters: every name of the catalogue, and `l1`,
    /// `l2` for [`MethodSpec::Lp`].
    pub fn named(name: &str) -> Result<Self> {
        if let Some((_, p)) = NORMS.iter().find(|(known, _)| *known == name) {
            return Ok(Self::Lp(Lp { p: *p, ..Lp::default() }));
        }
        Ok(match name {
            "uniform" => Self::Uniform {},
            "gmkl" => Self::Gmkl(Gmkl::default()),
            "lp" => Self::Lp(Lp::default()),
            "single" => Self::Single(Single::default()),
            "align" => Self::Align {},
            "alignf" => Self::Alignf {},
            "smkl" => Self::Smkl(Smkl::default()),
            "clmkl" => Self::Clmkl(Clmkl::default()),
            "hlmkl" => Self::Clmkl(Clmkl { evenness: Some(Evenness::HARD), ..Clmkl::default() }),
            "lmkl" => Self::Lmkl(Lmkl::default()),
            "glmkl" => Self::Glmkl(Glmkl::default()),
            "gsmkl" => Self::Gsmkl(Gsmkl::default()),
            "vcmkl" => Self::Vcmkl(VcmklSpec::default()),
            other => {
                let known: Vec<&str> =
                    METHODS.iter().map(|m| m.name).chain(NORMS.map(|(name, _)| name)).collect();
                return Err(Error::param(
                    "method",
                    format!("one of {}", known.join(", ")),
                    format!("`{other}`"),
                ));
            }
        })
    }

    /// The parameter that such a name says already: p in `l1` and `l2`, the evenness in `hlmkl`.
    pub fn said_by_name(name: &str) -> Option<&'static str> {
        match name {
            "hlmkl" => Some("evenness"),
            _ => NORMS.iter().any(|(known, _)| *known == name).then_some("p"),
        }
    }

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
            Self::Gmkl(own) => own.slots(),
            Self::Lp(own) => own.slots(),
            Self::Single(own) => own.slots(),
            Self::Smkl(own) => own.slots(),
            Self::Clmkl(own) => own.slots(),
            Self::Lmkl(own) => own.slots(),
            Self::Glmkl(own) => own.slots(),
            Self::Gsmkl(own) => own.slots(),
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

    /// Gives one of its own parameters another value. Whether the value is in its range is for
    /// [`super::TrainSpec::check`] to say.
    pub fn set(&mut self, name: &str, value: &Value) -> Result<()> {
        let method = self.name();
        let own: Vec<&str> = self.parameters().into_iter().map(|(known, _)| known).collect();
        let Some((_, slot)) = self.slots().into_iter().find(|(known, _)| *known == name) else {
            let has = if own.is_empty() { "no parameters".to_string() } else { own.join(", ") };
            return Err(Error::param(
                name,
                format!("left out for {method}, which has {has}"),
                value,
            ));
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
            Self::Clmkl(Clmkl { p, v: None, .. }) => {
                Some(Box::new(PerRegion::new(LpBall::new(*p)?, regions)))
            }
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

    /// Refuses a parameter outside its range, naming it. What `vcmkl` asks of the rest of the
    /// request stands with its parameters.
    pub(super) fn check(&self) -> Result<()> {
        match self {
            Self::Uniform {} | Self::Align {} | Self::Alignf {} | Self::Vcmkl(_) => Ok(()),
            Self::Gmkl(own) => own.check(),
            Self::Lp(own) => own.check(),
            Self::Single(own) => own.check(),
            Self::Smkl(own) => own.check(),
            Self::Clmkl(own) => own.check(),
            Self::Lmkl(own) => own.check(),
            Self::Glmkl(own) => own.check(),
            Self::Gsmkl(own) => own.check(),
        }
    }
}
