//! The global minimum over all hard assignments, by best-first branch and bound: for small
//! problems, and as a check on the others.
//!
//! Solves  min over owners of the negatives :  P(λ).
//! In: a veto–consensus problem, an effort.   Out: the best rules, with a proven lower bound.
//!   Page docs/methods/vcmkl.md.
//!
//! A node has an owner for some negatives. P with the other rows of λ set to zero is a lower bound
//! on all its completions, because P does not fall when λ grows. With ν the bound is −∞ until every
//! rule owns its minimum, and little is pruned before that.

use std::{cmp::Ordering, collections::BinaryHeap};

use super::{
    FoundRules, Instance, RuleSolution,
    assign::identical_kernels,
    solvers::{Effort, ccp},
};
use crate::{
    Result,
    linalg::Matrix,
    outer::Recorder,
    trace::{Silent, Status, relative_gap},
};

/// The owner of a negative that is not decided yet.
const FREE: usize = usize::MAX;
/// Quadratic programs per allowed iteration. It is part of what `max_iter` means, so it is no
/// tuning.
const PROGRAMS_PER_ITERATION: usize = 100;
/// A node is recorded each time this many negatives are decided, so that traces stay short.
const RECORDED_DEPTHS: usize = 4;

/// A partial assignment with its lower bound.
struct Node {
    bound: f64,
    owner: Vec<usize>,
    assigned: usize,
    /// The negative that is decided next.
    branch: usize,
}

impl PartialEq for Node {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for Node {}
impl PartialOrd for Node {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Node {
    /// The heap's top has the lowest bound; of equal ones the deepest, then the first in order of
    /// owners.
    fn cmp(&self, other: &Self) -> Ordering {
        let by_bound = other.bound.total_cmp(&self.bound);
        by_bound.then(self.assigned.cmp(&other.assigned)).then_with(|| other.owner.cmp(&self.owner))
    }
}

/// Proves J's minimum, up to `effort.tol`; stops after 100 · `max_iter` quadratic programs with the
/// gap that is left.
pub fn exact(
    instance: &Instance<'_>,
    effort: Effort,
    recorder: &mut Recorder<'_>,
) -> Result<FoundRules> {
    let mut best = ccp(instance, effort, &mut Recorder::new(&mut Silent))?;
    // Proofs compare P of assignments, of which J is a lower bound at the same rules.
    let (symmetric, least, count) =
        (identical_kernels(instance), instance.min_counts(), instance.negatives.len());
    let mut heap = BinaryHeap::new();
    heap.push(Node { bound: f64::NEG_INFINITY, owner: vec![FREE; count], assigned: 0, branch: 0 });
    let mut calls = best.qp_calls;
    let mut lower = f64::NEG_INFINITY;
    let slack = |value: f64| 0.5 * effort.tol * value.abs();
    while let Some(node) = heap.pop() {
        lower = node.bound.min(best.objective);
        let proven = node.bound >= best.objective - slack(best.objective);
        if node.assigned.is_multiple_of(RECORDED_DEPTHS) || proven {
            recorder.record(
                best.objective,
                lower,
                relative_gap(best.objective, lower),
                best.inner.active(),
            );
        }
        if proven || recorder.stopped || calls >= PROGRAMS_PER_ITERATION * effort.max_iter {
            heap.push(node);
            break;
        }
        let used = node.owner.iter().filter(|&&m| m != FREE).max().map_or(0, |m| m + 1);
        // Rules that may be renumbered: one new rule at a time.
        let choices = if symmetric { instance.rules().min(used + 1) } else { instance.rules() };
        for m in 0..choices {
            let mut owner = node.owner.clone();
            owner[node.branch] = m;
            let assigned = node.assigned + 1;
            if lacking(&owner, &least) > count - assigned {
                continue;
            }
            let lambda = partial(instance, &owner);
            if !instance.bounded(&lambda) {
                let branch = owner.iter().position(|&o| o == FREE).unwrap_or(0);
                heap.push(Node { bound: f64::NEG_INFINITY, owner, assigned, branch });
                continue;
            }
            let inner = instance.solve(&lambda, None)?;
            calls += 1;
            if assigned == count {
                let objective = inner.primal;
                if objective < best.objective {
                    best = FoundRules { inner, lambda, objective, ..best };
                }
                continue;
            }
            if inner.dual >= best.objective - slack(best.objective) {
                continue;
            }
            let branch = worst_off(instance, &inner, &owner);
            heap.push(Node { bound: inner.dual, owner, assigned, branch });
        }
    }
    // Nothing open: everything left was worse than the best by more than the slack, or is the best.
    let bound = heap.peek().map_or(f64::INFINITY, |n| n.bound);
    let lower = bound.min(best.objective - slack(best.objective)).max(lower.min(best.objective));
    let proven = bound >= best.objective - slack(best.objective);
    recorder.record(
        best.objective,
        lower,
        relative_gap(best.objective, lower),
        best.inner.active(),
    );
    let status = if proven { Status::Optimal } else { recorder.status_at_rest(false) };
    Ok(FoundRules { lower, status, qp_calls: calls, ..best })
}

/// How many negatives the rules still lack to have the least number each.
fn lacking(owner: &[usize], least: &[usize]) -> usize {
    let owned = |r: usize| owner.iter().filter(|&&o| o == r).count();
    least.iter().enumerate().map(|(r, least)| least.saturating_sub(owned(r))).sum()
}

/// The open negative that is worst off even at its cheapest rule: it is decided next.
fn worst_off(instance: &Instance<'_>, inner: &RuleSolution, owner: &[usize]) -> usize {
    let losses = instance.negative_losses(inner);
    let least_loss = |k: usize| losses.row(k).iter().copied().fold(f64::INFINITY, f64::min);
    let open = (0..owner.len()).filter(|&k| owner[k] == FREE);
    open.fold(FREE, |b, k| if b == FREE || least_loss(k) > least_loss(b) { k } else { b })
}

/// λ of a partial assignment: rows of negatives that are not decided are zero.
fn partial(instance: &Instance<'_>, owner: &[usize]) -> Matrix {
    let mut lambda = Matrix::zeros(owner.len(), instance.rules());
    owner.iter().enumerate().filter(|(_, m)| **m != FREE).for_each(|(k, &m)| lambda[(k, m)] = 1.0);
    lambda
}
