//! The list of methods that the program, Python, the documentation and the tests read.

use serde::Serialize;

use super::{Clmkl, Evenness, Glmkl, Gmkl, Gsmkl, Lmkl, Lp, MethodSpec, Single, Smkl, VcmklSpec};
use crate::{Error, Result};

/// What users are told about a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct MethodInfo {
    /// What users type; also the name of its page in docs/methods.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// What proves a fit.
    pub certificate: &'static str,
    /// Its own parameters.
    pub parameters: &'static str,
}

const METHODS: &[MethodInfo] = &[
    MethodInfo {
        name: "uniform",
        summary: "equal weights 1/M: the baseline to beat",
        certificate: "duality gap",
        parameters: "none",
    },
    MethodInfo {
        name: "gmkl",
        summary: "elastic-net constraint v Σθ + (1−v) Σθ^p ≤ 1: selects kernels, equal kernels get equal weight",
        certificate: "duality gap",
        parameters: "v (0 is L2, 1 is L1; default 0.5), p (default 2), solver (auto, level, alternating, interior)",
    },
    MethodInfo {
        name: "lp",
        summary: "ℓp-norm MKL, ‖θ‖_p ≤ 1: p = 1 is sparse (also `l1`), p = 2 (also `l2`), p = inf keeps all",
        certificate: "duality gap",
        parameters: "p (default 4/3), solver (auto, level, alternating, interior; for p = 1 also reduced_gradient = SimpleMKL, silp)",
    },
    MethodInfo {
        name: "single",
        summary: "the best single kernel by cross-validation on the training rows",
        certificate: "duality gap",
        parameters: "folds (default 5), seed",
    },
    MethodInfo {
        name: "align",
        summary: "one-shot weights: each kernel by its centred alignment with the target",
        certificate: "duality gap",
        parameters: "none",
    },
    MethodInfo {
        name: "alignf",
        summary: "one-shot weights: the combination with the largest centred alignment with the target",
        certificate: "duality gap",
        parameters: "none",
    },
    MethodInfo {
        name: "smkl",
        summary: "concave group selection terms: fewer kernels than L1 at comparable error",
        certificate: "stationarity",
        parameters: "penalty (default log+gl; sums of log, gl, mf(p), mkl), eps (default 1e-4); normalize is trace and C scale by default",
    },
    MethodInfo {
        name: "clmkl",
        summary: "convex localized MKL: kernel weights per region, soft regions from kernel k-means",
        certificate: "duality gap",
        parameters: "n_clusters (default 3), evenness (default: the middle of its range), p (default 2), v (elastic net), \
                     cluster_kernel, n_init, regions (a column), seed",
    },
    MethodInfo {
        name: "hlmkl",
        summary: "the same with hard regions: every row belongs to one",
        certificate: "duality gap",
        parameters: "those of clmkl without evenness",
    },
    MethodInfo {
        name: "lmkl",
        summary: "localized MKL: a gate over the kernels in a kernel's feature space, learned with the machine",
        certificate: "stationarity",
        parameters: "gate (softmax, sigmoid), gate_kernel (`linear on all` is the linear gate), n_init, seed",
    },
    MethodInfo {
        name: "glmkl",
        summary: "ℓp-GLMKL: kernel weights per group, learned with the machine, groups from multi-kernel k-means",
        certificate: "stationarity",
        parameters: "n_groups (default 3), p (default 4; 2 is sparse), groups (a column), n_init, seed",
    },
    MethodInfo {
        name: "gsmkl",
        summary: "group-sensitive MKL: softmax kernel weights per group",
        certificate: "stationarity",
        parameters: "n_groups (default 3), groups (a column), n_init, seed",
    },
    MethodInfo {
        name: "vcmkl",
        summary: "veto–consensus: a sample belongs to the consensus class only if every rule agrees, g = min f_m",
        certificate: "stationarity; a duality gap for solver exact",
        parameters: "n_rules (default 3, or auto), solver (ccp, am, sgd, pddp, exact), nu, gamma, cost_ratio, objective (opt1, \
                     as-printed), consensus, p, n_init, folds, seed",
    },
];

/// Every method.
pub fn catalogue() -> &'static [MethodInfo] {
    METHODS
}

impl MethodSpec {
    /// The method of that name with its default parameters: every name of the catalogue, and `l1`, `l2` for [`MethodSpec::Lp`].
    pub fn named(name: &str) -> Result<Self> {
        let lp = |p| Self::Lp(Lp { p, ..Lp::default() });
        Ok(match name {
            "uniform" => Self::Uniform {},
            "gmkl" => Self::Gmkl(Gmkl::default()),
            "lp" => Self::Lp(Lp::default()),
            "l2" => lp(2.0),
            "l1" => lp(1.0),
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
                let known: Vec<&str> = METHODS.iter().map(|m| m.name).chain(["l1", "l2"]).collect();
                return Err(Error::param("method", format!("one of {}", known.join(", ")), format!("`{other}`")));
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_in_the_catalogue_is_a_method_of_that_name() {
        for info in catalogue() {
            assert_eq!(MethodSpec::named(info.name).unwrap().name(), info.name);
        }
        assert_eq!(MethodSpec::named("l1").unwrap(), MethodSpec::Lp(Lp { p: 1.0, ..Lp::default() }));
        assert_eq!(MethodSpec::named("l2").unwrap(), MethodSpec::Lp(Lp { p: 2.0, ..Lp::default() }));
        assert!(
            MethodSpec::named("l3").unwrap_err().to_string().contains("gmkl, lp, single, align, alignf, smkl, clmkl")
        );
    }
}
