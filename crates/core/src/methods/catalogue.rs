//! The list of methods that the program, Python, the documentation and the tests read.

use serde::Serialize;

use super::{MethodSpec, Solver, vcmkl::VcmklSpec};
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
        parameters: "v (0 is L2, 1 is L1; default 0.5), p (default 2), solver (level, alternating)",
    },
    MethodInfo {
        name: "lp",
        summary: "ℓp-norm MKL, ‖θ‖_p ≤ 1: p = 1 is sparse (also `l1`), p = 2 (also `l2`), p = inf keeps all",
        certificate: "duality gap",
        parameters: "p (default 2), solver (auto, level, alternating; for p = 1 also reduced_gradient = SimpleMKL, silp)",
    },
    MethodInfo {
        name: "single",
        summary: "the best single kernel by cross-validation on the training rows",
        certificate: "duality gap",
        parameters: "folds (default 5), seed",
    },
    MethodInfo {
        name: "smkl",
        summary: "concave group selection terms: fewer kernels than L1 at comparable error",
        certificate: "stationarity",
        parameters: "penalty (default log+gl; sums of log, gl, mf(p), mkl), eps (default 1e-4)",
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
        let lp = |p| Self::Lp { p, solver: Solver::Auto };
        Ok(match name {
            "uniform" => Self::Uniform {},
            "gmkl" => Self::Gmkl { v: 0.5, p: 2.0, solver: Solver::Auto },
            "lp" | "l2" => lp(2.0),
            "l1" => lp(1.0),
            "single" => Self::Single { folds: 5, seed: 0 },
            "smkl" => Self::Smkl { penalty: "log+gl".into(), eps: 1e-4 },
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
        assert_eq!(MethodSpec::named("l1").unwrap(), MethodSpec::Lp { p: 1.0, solver: Solver::Auto });
        assert_eq!(MethodSpec::named("l2").unwrap(), MethodSpec::named("lp").unwrap());
        assert!(MethodSpec::named("l3").unwrap_err().to_string().contains("gmkl, lp, single, smkl"));
    }
}
