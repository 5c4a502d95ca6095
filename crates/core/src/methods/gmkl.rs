//! Multiple kernel learning under an elastic-net constraint.
//!
//! Solves  min over θ, f, b :  Σ_i c_i ℓ(y_i, f(x_i) + b) + ½ Σ_m ‖f_m‖²/θ_m,
//!   θ ≥ 0, v Σ θ + (1−v) Σ θ^p ≤ 1.
//! In: terms K_1..K_M, a task, v, p, a solver.   Out: θ, a, b and a certified gap.
//!   Paper: [Yang2011]; page docs/methods/gmkl.md.

use super::Method;
use crate::{
    Error, Model, Result,
    model::Fit,
    outer::{Memory, Problem, alternating, joint_or, settle, sparse_or_level},
    prepare::Job,
    request::{Gmkl, Solver},
    trace::Observer,
    weights::ElasticNet,
};

impl Method for Gmkl {
    fn fit(
        &self,
        job: &Job<'_>,
        memories: &mut Vec<Memory>,
        observer: &mut dyn Observer,
    ) -> Result<Model> {
        job.fit_global(memories, observer, &mut |problem, memory, observer| {
            solve(self, problem, memory, observer)
        })
    }
}

fn solve(
    own: &Gmkl,
    problem: &Problem<'_>,
    memory: &mut Memory,
    observer: &mut dyn Observer,
) -> Result<Fit> {
    let set = ElasticNet::new(own.v, own.p)?;
    let fit = match own.solver {
        Solver::Level => sparse_or_level(problem, &set, memory, observer),
        Solver::Auto | Solver::Interior => {
            let asked = own.solver == Solver::Interior;
            joint_or(problem, &set, asked, memory, observer, &|memory, observer| {
                sparse_or_level(problem, &set, memory, observer)
            })
        }
        Solver::Alternating => alternating(problem, &set, false, memory, observer),
        Solver::ReducedGradient | Solver::Silp => Err(Error::param(
            "solver",
            "auto, level, alternating or interior for gmkl",
            "reduced_gradient or silp, which are for the method lp with p = 1",
        )),
    };
    settle(problem, &set, fit?)
}
