//! One-shot weights from centred alignments with the target, then one machine: baselines that cost
//! no outer loop.
//!
//! With a_t = ⟨K_t^c, Σ_p y_p y_pᵀ⟩ over the machines p that share weights and M_st = ⟨K_s^c,
//! K_t^c⟩
//!   align:   θ_t ∝ a_t / √M_tt, each kernel by its own alignment;
//!   alignf:  θ ∝ argmax over v ≥ 0 of ⟨v, a⟩ / √(vᵀ M v), the combination with the largest
//!     alignment, that is
//!            argmin over v ≥ 0 of vᵀ M v − 2 ⟨v, a⟩, by an active set.
//! Both brought to Σ θ = 1, so that C means what it means for `uniform`. Pages
//! docs/methods/align.md and alignf.md.

use super::Method;
use crate::{
    Model, Result,
    gram::{centred_norms, centred_products, target_products},
    linalg::{Cholesky, Matrix, dot},
    outer::{Memory, Problem, fixed},
    prepare::Job,
    trace::Observer,
};

/// Number added to the unit diagonal of the correlations, so that kernels that are multiples of
/// each other can be told apart; a million times the rounding of a correlation.
const RIDGE: f64 = 1e-10;

/// The methods `align` and, jointly over all kernels, `alignf`; neither has parameters.
pub(super) struct Align {
    pub jointly: bool,
}

impl Method for Align {
    fn fit(
        &self,
        job: &Job<'_>,
        memories: &mut Vec<Memory>,
        observer: &mut dyn Observer,
    ) -> Result<Model> {
        job.fit_global(memories, observer, &mut |problem, memory, observer| {
            let theta = weights(problem, self.jointly)?;
            let lost = theta.is_none();
            let m = problem.grams.n_terms();
            let mut fit =
                fixed(problem, theta.unwrap_or_else(|| vec![1.0 / m as f64; m]), memory, observer)?;
            if lost {
                fit.warnings
                    .push("no kernel is aligned with the target; the weights are equal".into());
            }
            Ok(fit)
        })
    }
}

/// The weights that alignments give; `None` where no kernel is aligned with the target at all.
fn weights(problem: &Problem<'_>, jointly: bool) -> Result<Option<Vec<f64>>> {
    let (grams, m) = (problem.grams, problem.grams.n_terms());
    let mut aligned = vec![0.0; m];
    let mut products = Matrix::zeros(m, m);
    if jointly {
        let need = 8 * 10 * (m as u64) * (m as u64);
        problem.budget.check(
            format!("alignments of {m} kernels"),
            need,
            "use fewer kernels, or align",
        )?;
    }
    // Machines on the same rows have the same kernels: pairs of classes have rows of their own.
    let mut seen: Vec<Option<&[usize]>> = Vec::new();
    for part in &problem.parts {
        let own = target_products(grams, part.rows, part.task.y);
        aligned.iter_mut().zip(own).for_each(|(a, own)| *a += own);
        if seen.contains(&part.rows) {
            continue;
        }
        seen.push(part.rows);
        if jointly {
            let own = centred_products(grams, part.rows);
            products.data_mut().iter_mut().zip(own.data()).for_each(|(p, own)| *p += own);
        } else {
            let own = centred_norms(grams, part.rows);
            (0..m).for_each(|t| products[(t, t)] += own[t]);
        }
    }
    let norms: Vec<f64> = (0..m).map(|t| products[(t, t)].max(0.0).sqrt()).collect();
    let largest = norms.iter().copied().fold(0.0, f64::max);
    // A kernel that is constant once centred has nothing to align.
    let useful: Vec<usize> =
        (0..m).filter(|&t| norms[t] > 1e-12 * largest && aligned[t] > 0.0).collect();
    let scaled: Vec<f64> = useful.iter().map(|&t| aligned[t] / norms[t]).collect();
    let mut theta = vec![0.0; m];
    if jointly {
        let correlations = correlations(&products, &norms, &useful);
        let v = non_negative(&correlations, &scaled)?;
        useful.iter().zip(v).for_each(|(&t, v)| theta[t] = v / norms[t]);
    } else {
        useful.iter().zip(scaled).for_each(|(&t, a)| theta[t] = a);
    }
    let total: f64 = theta.iter().sum();
    theta.iter_mut().for_each(|w| *w /= total);
    Ok((total > 0.0).then_some(theta))
}

fn correlations(products: &Matrix, norms: &[f64], useful: &[usize]) -> Matrix {
    let mut out = Matrix::zeros(useful.len(), useful.len());
    for (i, &s) in useful.iter().enumerate() {
        for (j, &t) in useful.iter().enumerate() {
            out[(i, j)] = products[(s, t)] / (norms[s] * norms[t]);
        }
        out[(i, i)] = 1.0 + RIDGE;
    }
    out
}

/// Finds argmin over v ≥ 0 of vᵀ A v − 2 ⟨v, b⟩ for positive definite A with a unit diagonal: the
/// active set method for non-negative least squares. A coordinate enters where the slope b − A v is
/// largest; where a step would leave the orthant, it stops at the border and the coordinate that is
/// first there leaves.
pub fn non_negative(a: &Matrix, b: &[f64]) -> Result<Vec<f64>> {
    let m = b.len();
    let largest = b.iter().fold(0.0f64, |l, x| l.max(x.abs()));
    let (mut v, mut free) = (vec![0.0; m], vec![false; m]);
    // Each round lowers the objective; rounding alone could keep a coordinate coming and going.
    for _ in 0..3 * m {
        let slope: Vec<f64> = (0..m).map(|i| b[i] - dot(a.row(i), &v)).collect();
        let bound = (0..m).filter(|&i| !free[i]);
        let Some(enter) = bound.reduce(|k, i| if slope[i] > slope[k] { i } else { k }) else {
            break;
        };
        if slope[enter] <= 1e-10 * largest {
            break;
        }
        free[enter] = true;
        while free.contains(&true) {
            let index: Vec<usize> = (0..m).filter(|&i| free[i]).collect();
            let mut goal: Vec<f64> = index.iter().map(|&i| b[i]).collect();
            Cholesky::new(a.select_rows(&index).select_cols(&index), "correlations of kernels")?
                .solve(&mut goal);
            let reach = |k: &usize| v[index[*k]] / (v[index[*k]] - goal[*k]);
            let leaving = (0..goal.len())
                .filter(|&k| goal[k] <= 0.0)
                .min_by(|j, k| reach(j).total_cmp(&reach(k)));
            let step = leaving.as_ref().map_or(1.0, reach);
            for (&i, g) in index.iter().zip(&goal) {
                v[i] = (v[i] + step * (g - v[i])).max(0.0);
            }
            let Some(k) = leaving else { break };
            (v[index[k]], free[index[k]]) = (0.0, false);
        }
    }
    Ok(v)
}
