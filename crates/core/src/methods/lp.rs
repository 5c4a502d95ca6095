//! ℓp-norm MKL.
//!
//! Solves  min over θ, f, b :  Σ_i c_i ℓ(y_i, f(x_i) + b) + ½ Σ_m ‖f_m‖²/θ_m,
//!   θ ≥ 0, ‖θ‖_p ≤ 1, 1 ≤ p ≤ ∞.
//! In: terms K_1..K_M, a task, p, a solver.   Out: θ, a, b and a certified gap.
//!   Paper: [Kloft2011]; page docs/methods/lp.md.

use super::Method;
use crate::{
    Error, Model, Result,
    model::Fit,
    outer::{
        Memory, Problem, alternating, fixed, joint_or, level, reduced_gradient, settle, silp,
        sparse_or_level,
    },
    prepare::Job,
    request::{Lp, Solver},
    trace::Observer,
    weights::LpBall,
};

/// Below this p alternation is slow and the level method is not.
pub(super) const SMALL: f64 = 1.2;
/// Below this p, answers to dual vectors are all but vertices, and steps towards them kill weights
/// that alternation cannot revive.
pub(super) const STEADY: f64 = 1.05;

impl Method for Lp {
    fn fit(
        &self,
        job: &Job<'_>,
        memories: &mut Vec<Memory>,
        observer: &mut dyn Observer,
    ) -> Result<Model> {
        job.fit_global(memories, observer, &mut |problem, memory, observer| {
            let fit = solve(self.p, self.solver, problem, memory, observer)?;
            settle(problem, &LpBall::new(self.p)?, fit)
        })
    }
}

/// Minimises by the solver asked for.
fn solve(
    p: f64,
    solver: Solver,
    problem: &Problem<'_>,
    memory: &mut Memory,
    observer: &mut dyn Observer,
) -> Result<Fit> {
    let set = LpBall::new(p)?;
    match solver {
        Solver::ReducedGradient | Solver::Silp if p != 1.0 => Err(Error::param(
            "solver",
            "auto, level, alternating or interior unless p = 1",
            format!("reduced_gradient or silp, which need p = 1, with p = {p}"),
        )),
        Solver::ReducedGradient => reduced_gradient(problem, &set, memory, observer),
        Solver::Silp => silp(problem, &set, memory, observer),
        // More weight never hurts, so all weights are 1: one step, whatever the solver.
        _ if p == f64::INFINITY => {
            fixed(problem, vec![1.0; problem.grams.n_terms()], memory, observer)
        }
        Solver::Auto | Solver::Interior => joint_or(
            problem,
            &set,
            solver == Solver::Interior,
            memory,
            observer,
            &|memory, observer| {
                let solver = if p < SMALL { Solver::Level } else { Solver::Alternating };
                solve(p, solver, problem, memory, observer)
            },
        ),
        Solver::Level if p == 1.0 => sparse_or_level(problem, &set, memory, observer),
        Solver::Level => level(problem, &set, memory, observer),
        Solver::Alternating => alternating(problem, &set, p >= STEADY, memory, observer),
    }
}
