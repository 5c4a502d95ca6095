//! Convex localized MKL.
//!
//! Solves  min over β, f, b :  Σ_i c_i ℓ(y_i, f(x_i) + b) + ½ Σ_jm ‖f_jm‖²/β_jm,   f(x) = Σ_j c_j(x) Σ_m f_jm(x),   β_j in Θ for every region j.
//! In: terms diag(c_j) K_m diag(c_j), region after region, a task, Θ.   Out: β, a, b and a certified gap.   Paper: [Lei2016]; page
//! docs/methods/clmkl.md.
//!
//! For fixed memberships this is global MKL over the product of the Θ, so every road to its optimum is one here.

use super::{
    alternating,
    evaluate::{Memory, Problem},
    joint, level,
    lp::{SMALL, STEADY},
    uniform, zeros,
};
use crate::{
    Result,
    model::Fit,
    trace::Observer,
    weights::{ElasticNet, LpBall, PerRegion},
};

/// Minimises over one ℓp ball per region (an elastic net where v is given), on terms that are already localized.
pub fn fit(
    problem: &Problem<'_>,
    regions: usize,
    (p, v): (f64, Option<f64>),
    memory: &mut Memory,
    observer: &mut dyn Observer,
) -> Result<Fit> {
    if p == f64::INFINITY && v.is_none() {
        return uniform::fit_at(problem, vec![1.0; problem.grams.n_terms()], memory, observer);
    }
    if let Some(v) = v {
        let set = PerRegion::new(ElasticNet::new(v, p)?, regions);
        let fit = joint::fit_or(problem, &set, false, memory, observer, &|m, o| level::fit(problem, &set, m, o));
        return zeros::settle(problem, &set, fit?);
    }
    let set = PerRegion::new(LpBall::new(p)?, regions);
    let fit = joint::fit_or(problem, &set, false, memory, observer, &|memory, observer| {
        if p < SMALL {
            return level::fit(problem, &set, memory, observer);
        }
        alternating::fit(problem, &set, p >= STEADY, memory, observer)
    });
    zeros::settle(problem, &set, fit?)
}
