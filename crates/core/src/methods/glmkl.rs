//! ℓp-GLMKL: a weight vector of unit ℓp norm per group of rows, learned with the machine.
//!
//! Solves  min over β, f, b :  Σ_i c_i ℓ(y_i, f(x_i) + b) + ½ Σ_m ‖f_m‖²,
//!   f(x) = Σ_m β_{g(x),m} f_m(x),   ‖β_g‖_p = 1 for every group g,
//! to a stationary point; the groups come from multi-kernel k-means.
//! In: terms K_1..K_M, a task, p, the number of groups.   Out: β, a, b, the value.
//!   Paper: [Fu2016]; page docs/methods/glmkl.md.

use super::{
    Method,
    gated::{self, FitGate},
};
use crate::{
    Model, Result,
    gram::GramSource,
    linalg::Matrix,
    localize::{block_alignment, centred_alignments},
    model::Fit,
    outer::{Gated, GroupGate, Memory, Problem},
    prepare::{Job, Placed, Placing},
    request::Glmkl,
    trace::Observer,
};

impl Method for Glmkl {
    fn fit(
        &self,
        job: &Job<'_>,
        memories: &mut Vec<Memory>,
        observer: &mut dyn Observer,
    ) -> Result<Model> {
        let prepared = job.prepared;
        gated::fit(job, (self.n_init, self.seed), memories, observer, &mut |problem, fit_gate| {
            let targets = joint_target(problem);
            // [Fu2016] (25): kernels enter the clustering with their centred alignments.
            let weights = centred_alignments(&prepared.grams, &targets);
            let placed = prepared.groups_of(job.request, weights, self.n_groups, self.seed)?;
            let (labels, terms) = (placed.labels()?, prepared.grams.n_terms());
            let mut alignments = Matrix::zeros(placed.memberships.cols(), terms);
            for g in 0..placed.memberships.cols() {
                let rows: Vec<usize> = (0..labels.len()).filter(|&i| labels[i] == g).collect();
                for m in 0..terms {
                    alignments[(g, m)] = block_alignment(&prepared.grams, m, &rows, &targets);
                }
            }
            fit_groups(&placed, &labels, self.p, &alignments, fit_gate)
        })
    }
}

/// Learns the weights of every group, starting from what the alignments say.
pub(super) fn fit_groups(
    placed: &Placed,
    labels: &[usize],
    p: f64,
    alignments: &Matrix,
    fit_gate: &mut FitGate<'_>,
) -> Result<((Fit, Gated), Placing)> {
    let gate = GroupGate { labels, p, alignments };
    let (fit, gated) = fit_gate(&gate)?;
    let betas = gate.betas(&gated.parameters);
    let placing = placed.gating(Some((0..betas.rows()).map(|g| betas.row(g).to_vec()).collect()));
    Ok(((fit, gated), placing))
}

/// The targets that alignments are measured against: a machine's own; where several share a gate,
/// their sum over all rows.
fn joint_target(problem: &Problem<'_>) -> Vec<f64> {
    let mut out = vec![0.0; problem.grams.n_samples()];
    for part in &problem.parts {
        match part.rows {
            None => out.iter_mut().zip(part.task.y).for_each(|(o, y)| *o += y),
            Some(rows) => rows.iter().zip(part.task.y).for_each(|(&i, y)| out[i] += y),
        }
    }
    out
}
