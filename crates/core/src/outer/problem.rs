//! The problem over kernel weights that every solver here is given, the points it visits, and what
//! it leaves for the next fit.

use super::level::{Cuts, Screen};
use crate::{
    gram::{Budget, GramSource, Scratch},
    linalg::Matrix,
    machine::{Machine, Solution, Task},
    weights::WeightSet,
};

/// One decision function of a problem.
#[derive(Clone, Copy)]
pub struct Part<'a> {
    /// Targets, costs and loss.
    pub task: Task<'a>,
    /// The rows it sees; `None` means all.
    pub rows: Option<&'a [usize]>,
}

/// An optimisation problem over kernel weights: one decision function, or several that share their
/// weights and whose objectives add up.
pub struct Problem<'a> {
    /// The kernel terms.
    pub grams: &'a dyn GramSource,
    /// The decision functions.
    pub parts: Vec<Part<'a>>,
    /// Solves a part for fixed weights.
    pub machine: &'a dyn Machine,
    /// Memory that the combined kernel may take.
    pub budget: Budget,
    /// Memory that one combined kernel leaves to the next, of this problem and of those cut from
    /// it.
    pub scratch: Scratch,
    /// Relative duality gap to reach.
    pub tol: f64,
    /// Outer iterations at most.
    pub max_iter: usize,
    /// May sparse sets be solved on few kernels at a time?
    pub working_set: bool,
    /// May kernels be left out once they are proved to have no weight?
    pub screening: bool,
}

/// The multipliers of a problem, part by part.
pub type Duals = Vec<Vec<f64>>;

/// Weights, multipliers and bounds that a fit leaves for the next one on the same data with other
/// C, v or p.
#[derive(Debug, Clone, Default)]
pub struct Memory {
    /// Weights of the best point.
    pub theta: Option<Vec<f64>>,
    /// Multipliers of every part.
    pub duals: Option<Duals>,
    /// Lower bounds, which hold for every set of weights.
    pub cuts: Cuts,
    /// The multipliers that prove the best lower bound, where they are not those of the best point.
    pub prover: Option<Duals>,
    /// The numbers that prove weights zero, while that is wanted.
    pub screen: Option<Screen>,
}

impl Memory {
    /// Weights and multipliers of a run's best point, for the next fit to start from.
    pub fn remember(&mut self, best: Option<&Point>) {
        self.theta = best.map(|p| p.theta.clone());
        self.duals = best.map(Point::duals);
    }

    /// Multiplies all costs by `factor`: multipliers scale with them, and A is homogeneous in (a,
    /// c), so A(a) scales by the factor and aᵀKa by its square. All bounds stay valid.
    pub fn rescale(&mut self, factor: f64) {
        for dual in self.duals.iter_mut().flatten() {
            dual.iter_mut().for_each(|a| *a *= factor);
        }
        self.cuts.rescale(factor);
    }
}

/// A solved weight vector.
#[derive(Debug, Clone)]
pub struct Point {
    /// The weights θ.
    pub theta: Vec<f64>,
    /// The machine's answer for K_θ, part by part.
    pub solutions: Vec<Solution>,
    /// Objective: an upper bound on the optimum.
    pub primal: f64,
    /// A(a), the part of the lower bound that does not depend on θ.
    pub dual_sum: f64,
    /// ½ (s_m + residual_m ‖a‖²): with A(a), a cut A(a) − ⟨slope, θ⟩ that is a lower bound for the
    /// true kernels, truncated or not.
    pub slope: Vec<f64>,
    /// K_t a for every term, where it took a pass over matrices to find and was asked for.
    pub images: Option<Matrix>,
}

impl Point {
    /// A(a) − ½·support(s): what this dual vector proves about every θ in the set.
    pub fn lower_bound(&self, set: &dyn WeightSet) -> f64 {
        self.dual_sum - set.support(&self.slope)
    }

    /// ‖w_m‖² = θ_m² s_m, up to the common factor ½.
    pub fn sq_norms(&self) -> Vec<f64> {
        self.theta.iter().zip(&self.slope).map(|(t, g)| t * t * g).collect()
    }

    /// The multipliers of this point, part by part.
    pub fn duals(&self) -> Duals {
        self.solutions.iter().map(|s| s.a.clone()).collect()
    }
}

/// Values of the rows `rows` in a vector over all n.
pub fn spread(values: &[f64], rows: &[usize], n: usize) -> Vec<f64> {
    let mut out = vec![0.0; n];
    rows.iter().zip(values).for_each(|(&i, v)| out[i] = *v);
    out
}

/// Number of non-zero weights.
pub fn active(theta: &[f64]) -> usize {
    theta.iter().filter(|t| **t != 0.0).count()
}
