//! Weights that are exactly zero, where a set of weights selects kernels.
//!
//! Solvers approach zero without reaching it, and what they leave behind is no selection: a weight
//! of 10⁻⁹ of the largest changes no prediction, yet its kernel would be reported as one that
//! matters. At the optimum, with g_m = ½ s_m,
//!   g_m ≤ λ φ'(0) and θ_m = 0,   or   g_m = λ φ'(θ_m) and θ_m > 0.
//! In: weights and g.   Out: the same weights with zeros where these conditions want them, to be
//!   certified by the caller.

use std::ops::Range;

use super::{Problem, Run, active};
use crate::{
    Result,
    model::{Certificate, Fit},
    trace::Silent,
    tuning::tuning,
    weights::{Separable, negligible_weight},
};

tuning! { "zeros"
    /// The gap of a machine solved to certify weights, as a share of the tolerance: nine tenths of
    /// it are left for the weights.
    machine_tolerance_share: f64 = 0.1;
    /// Every multiplier counts as lacking at least this share of λ φ'(0): at a gap of 10⁻³
    /// multipliers are known to 10⁻² or so.
    least_lacking_share: f64 = 1e-2;
}

/// λ φ'(0) of every group: what the g of a kernel must exceed to get weight, where `half` holds g
/// of all kernels that have some.
pub fn thresholds(set: &dyn Separable, half: &[f64]) -> Vec<(Range<usize>, f64)> {
    let best = set.support_point(half);
    let of = |group: Range<usize>| {
        let strongest =
            group.clone().fold(group.start, |b, m| if best[m] > best[b] { m } else { b });
        let multiplier = half[strongest] / set.phi(best[strongest])[1];
        (group, multiplier * set.phi(f64::MIN_POSITIVE)[1])
    };
    set.groups(half.len()).into_iter().map(of).collect()
}

/// θ without the weights that are below `small` of the largest of their group, times the share of λ
/// φ'(0) that their g lacks.
pub fn without_lacking(set: &dyn Separable, theta: &[f64], half: &[f64], small: f64) -> Vec<f64> {
    let mut out = theta.to_vec();
    for (group, needed) in thresholds(set, half) {
        let largest = theta[group.clone()].iter().copied().fold(0.0, f64::max);
        for m in group {
            let lacks = (1.0 - half[m] / needed).max(TUNING.least_lacking_share);
            out[m] = if theta[m] < small * lacks * largest { 0.0 } else { theta[m] };
        }
    }
    out
}

/// θ without the weights of every group that are too small to be a selection.
fn without_negligible(set: &dyn Separable, theta: &[f64]) -> Vec<f64> {
    let mut out = theta.to_vec();
    for group in set.groups(theta.len()) {
        let least = negligible_weight(&theta[group.clone()]);
        out[group].iter_mut().filter(|t| **t < least).for_each(|t| *t = 0.0);
    }
    out
}

/// The fit with exact zeros for weights that are too small to be a selection, whichever solver
/// found them: a machine is solved at the weights that are left. Where they are not certified as
/// the fit was, it stays as it is and says so.
pub fn settle(problem: &Problem<'_>, set: &dyn Separable, mut fit: Fit) -> Result<Fit> {
    let mut theta =
        if set.selects() { without_negligible(set, &fit.weights) } else { fit.weights.clone() };
    let gone = active(&fit.weights) - active(&theta);
    if gone == 0 {
        return Ok(fit);
    }
    set.tighten(&mut theta);
    let rows = problem.parts.iter().map(|part| part.rows);
    let duals: Vec<Vec<f64>> =
        fit.parts.iter().zip(rows).map(|(part, rows)| gather(&part.dual, rows)).collect();
    let mut observer = Silent;
    let mut run = Run::new(problem, &mut observer);
    run.raise(fit.certificate.dual);
    let point = run.visit_to(TUNING.machine_tolerance_share * problem.tol, theta, Some(&duals))?;
    run.raise(point.lower_bound(set));
    run.keep(&point);
    let gap = run.gap();
    if gap <= problem.tol.max(fit.certificate.gap) {
        let settled = run.finish()?;
        let Certificate { primal, dual, gap, .. } = settled.certificate;
        (fit.weights, fit.parts) = (settled.weights, settled.parts);
        fit.certificate = Certificate { primal, dual, gap, ..fit.certificate };
    } else {
        fit.warnings.push(format!(
            "{gone} of the selected kernels have weights below a millionth of the largest; without them the relative gap would be \
             {gap:.1e}, above the tolerance {:.1e}, so they stay",
            problem.tol
        ));
    }
    Ok(fit)
}

/// The entries of the rows given, or all entries.
fn gather(values: &[f64], rows: Option<&[usize]>) -> Vec<f64> {
    rows.map_or_else(|| values.to_vec(), |rows| rows.iter().map(|&i| values[i]).collect())
}
