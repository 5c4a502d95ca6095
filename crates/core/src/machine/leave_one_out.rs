//! The ξα estimate: the leave-one-out error of a support vector machine from one fit.
//!
//! [Joachims2000]: sample i can be misclassified by the machine trained without it only if ρ α_i
//! R² + ξ_i ≥ 1, with α_i = |a_i|, slack ξ_i, R² ≥ k(x_i, x_i) − k(x_i, x_j) for all pairs, and ρ = 2.
//! So the share of such samples is at least the leave-one-out error of the machine at these kernel
//! weights; what choosing the weights anew would change is not covered.

use rayon::prelude::*;

use super::{Combined, Solution, Task};
use crate::{Error, Result, gram::EXACT, linalg::dot};

/// The ρ for which the estimate is a bound; ρ = 1 is the usual approximation, smaller and without a
/// proof for machines with a bias.
pub const PROVEN_RHO: f64 = 2.0;

/// The share of samples with ρ α_i R² + ξ_i ≥ 1, for the hinge.
pub fn xi_alpha(kernel: &Combined, task: &Task<'_>, solution: &Solution, rho: f64) -> Result<f64> {
    if task.loss.name() != "hinge" {
        return Err(Error::param("loss", "hinge for the ξα estimate", task.loss.name()));
    }
    let reach = rho * widest(kernel);
    let doubtful = |i: &usize| {
        let slack = task.loss.value(task.y[*i], solution.f[*i] + solution.bias);
        reach * solution.a[*i].abs() + slack >= 1.0
    };
    Ok((0..task.y.len()).filter(doubtful).count() as f64 / task.y.len() as f64)
}

/// R² = max over i, j of K_ii − K_ij.
fn widest(kernel: &Combined) -> f64 {
    let kernel = &*kernel.truncated(EXACT);
    let spread =
        |own: f64, row: &mut dyn Iterator<Item = f64>| own - row.fold(f64::INFINITY, f64::min);
    let of = |i: usize| match kernel {
        Combined::Dense(k) => spread(k.row(i)[i], &mut k.row(i).iter().copied()),
        Combined::Single(k) => {
            let entry = |x: &f32| f64::from(*x);
            spread(entry(&k.rows().row(i)[i]), &mut k.rows().row(i).iter().map(entry))
        }
        Combined::Factor(f) => {
            spread(dot(f.row(i), f.row(i)), &mut (0..f.rows()).map(|j| dot(f.row(i), f.row(j))))
        }
        Combined::Bases(_) => 0.0,
    };
    (0..kernel.n()).into_par_iter().map(of).reduce(|| 0.0, f64::max)
}
