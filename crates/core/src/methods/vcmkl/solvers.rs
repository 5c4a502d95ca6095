//! Descent from hard assignments: `ccp` and `am`.
//!
//! Lowers  J(w, b, ρ) = ½ Σ ‖w_m‖² − Σ ν_m ρ_m + Σ_{I+} c_i max_m ξ_im + Σ_{I−} c_i min_m ξ_im
//!   to a stationary point.
//! In: a veto–consensus problem, an effort.   Out: rules, λ, J.
//!   Paper: [Zhou2016]; page docs/methods/vcmkl.md.
//! P is concave in λ, so replacing λ by the cheapest owner of every negative and solving again
//! never raises it.

use super::{
    Instance, Margin, RuleSolution,
    assign::{reassign, starts},
};
use crate::{Error, Result, linalg::Matrix, outer::Recorder, trace::Status, tuning::tuning};

tuning! { "ccp"
    /// Candidate starts for each start that is descended from to the end: the others are ranked
    /// after a few reassignments.
    candidates_per_start: usize = 4;
    /// Reassignments after which candidate starts are ranked.
    ranking_iterations: usize = 3;
}

/// A decrease of J below this share of it is the error of the inner solutions.
const ROUNDED_DECREASE: f64 = 1e-9;

/// How far a solver may go.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// Number of starts (`ccp` with fixed margins).
    pub starts: usize,
    /// Seed of k-means and of samples drawn.
    pub seed: u64,
    /// Relative change that ends `pddp` and `am`.
    pub tol: f64,
    /// Largest number of iterations.
    pub max_iter: usize,
}

/// The rules that a solver has found.
#[derive(Debug, Clone)]
pub struct FoundRules {
    /// The rules with their multipliers.
    pub inner: RuleSolution,
    /// How negatives are shared among the rules, negatives × rules.
    pub lambda: Matrix,
    /// J at the rules; for the printed PDDP, φ.
    pub objective: f64,
    /// A lower bound on J over all rules: `exact` only, NaN elsewhere.
    pub lower: f64,
    /// How the solver ended.
    pub status: Status,
    /// Number of quadratic programs solved.
    pub qp_calls: usize,
}

/// Convex–concave descent from several starts; the lowest J wins. Each record is the best J so far.
/// The best clustering is descended from to the end, and of the others those that are lowest after
/// a few reassignments.
pub fn ccp(
    instance: &Instance<'_>,
    effort: Effort,
    recorder: &mut Recorder<'_>,
) -> Result<FoundRules> {
    // With ν a lower J is no sign of better rules, so the best clustering decides.
    let descents = if instance.margin == Margin::Fixed { effort.starts.max(1) } else { 1 };
    let count = if descents > 1 { TUNING.candidates_per_start * descents } else { 1 };
    let mut calls = 0;
    let mut lowest = f64::INFINITY;
    let mut owners = starts(instance, count, effort.seed)?;
    if owners.len() > descents {
        let mut ranked = Vec::new();
        // The best clustering may begin badly and end well.
        for owner in owners.split_off(1) {
            let short =
                Effort { max_iter: TUNING.ranking_iterations.min(effort.max_iter), ..effort };
            let found = descend(instance, owner, short, Some(lowest), recorder)?;
            calls += found.qp_calls;
            lowest = lowest.min(found.objective);
            ranked.push((found.objective, owners_of(&found.lambda)));
            if recorder.stopped {
                break;
            }
        }
        ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
        owners.extend(ranked.into_iter().map(|(_, owner)| owner).take(descents - 1));
    }
    let mut best: Option<FoundRules> = None;
    for owner in owners {
        let found = descend(instance, owner, effort, Some(lowest), recorder)?;
        calls += found.qp_calls;
        lowest = lowest.min(found.objective);
        if best.as_ref().is_none_or(|b| found.objective < b.objective) {
            best = Some(found);
        }
        if recorder.stopped {
            break;
        }
    }
    let mut best = best.ok_or_else(|| Error::numerical("ccp", "no start"))?;
    best.qp_calls = calls;
    Ok(best)
}

/// The rule with the largest share of every negative: its owner where λ is hard.
pub(super) fn owners_of(lambda: &Matrix) -> Vec<usize> {
    let largest = |row: &[f64]| (0..row.len()).fold(0, |b, m| if row[m] > row[b] { m } else { b });
    (0..lambda.rows()).map(|k| largest(lambda.row(k))).collect()
}

/// Descent from one assignment; `known` is the best J of other starts, for the trace.
pub fn descend(
    instance: &Instance<'_>,
    mut owner: Vec<usize>,
    effort: Effort,
    known: Option<f64>,
    recorder: &mut Recorder<'_>,
) -> Result<FoundRules> {
    let mut inner = instance.solve(&instance.hard(&owner), None)?;
    let mut objective = instance.learning_objective(&inner);
    let (mut calls, mut at_rest) = (1, false);
    for _ in 0..effort.max_iter {
        let next_owner = reassign(instance, &inner);
        let moved = next_owner.iter().zip(&owner).filter(|(a, b)| a != b).count();
        recorder.record(
            known.unwrap_or(f64::INFINITY).min(objective),
            f64::NAN,
            moved as f64 / owner.len() as f64,
            inner.active(),
        );
        if moved == 0 || recorder.stopped {
            at_rest = moved == 0;
            break;
        }
        let next = instance.solve(&instance.hard(&next_owner), Some(&inner))?;
        calls += 1;
        let value = instance.learning_objective(&next);
        at_rest = value.is_nan() || value >= objective - ROUNDED_DECREASE * objective.abs();
        if value <= objective {
            (owner, inner, objective) = (next_owner, next, value);
        }
        if at_rest {
            break;
        }
    }
    let lambda = instance.hard(&owner);
    Ok(FoundRules {
        inner,
        lambda,
        objective,
        lower: f64::NAN,
        status: recorder.status_at_rest(at_rest),
        qp_calls: calls,
    })
}

/// Alternating minimisation, one rule at a time, from the best k-means start.
pub fn am(
    instance: &Instance<'_>,
    effort: Effort,
    recorder: &mut Recorder<'_>,
) -> Result<FoundRules> {
    let mut owner = starts(instance, 1, effort.seed)?.swap_remove(0);
    let rules = instance.rules();
    let constant = Matrix::zeros(instance.cost.len(), rules);
    let mut inner =
        instance.inner(constant, vec![1.0; rules], vec![1.0; rules], &instance.hard(&owner));
    let mut objective = f64::INFINITY;
    let (mut calls, mut at_rest) = (0, false);
    for _ in 0..effort.max_iter {
        let lambda = instance.hard(&owner);
        for m in 0..rules {
            inner = instance.solve_rule(m, &lambda, &inner)?;
            calls += 1;
        }
        let value = instance.learning_objective(&inner);
        let change = (objective - value) / value.abs().max(f64::MIN_POSITIVE);
        objective = value.min(objective);
        let next_owner = reassign(instance, &inner);
        let unmoved = next_owner == owner;
        recorder.record(objective, f64::NAN, change, inner.active());
        at_rest = unmoved && change <= effort.tol;
        if at_rest || recorder.stopped {
            break;
        }
        owner = next_owner;
    }
    let lambda = instance.hard(&owner);
    Ok(FoundRules {
        inner,
        lambda,
        objective,
        lower: f64::NAN,
        status: recorder.status_at_rest(at_rest),
        qp_calls: calls,
    })
}
