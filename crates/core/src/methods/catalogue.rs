//! The list of methods that the program, Python, the documentation and the tests read.

use serde::Serialize;

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
];

/// Every method.
pub fn catalogue() -> &'static [MethodInfo] {
    METHODS
}
