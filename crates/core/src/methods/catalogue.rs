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
];

/// Every method.
pub fn catalogue() -> &'static [MethodInfo] {
    METHODS
}
