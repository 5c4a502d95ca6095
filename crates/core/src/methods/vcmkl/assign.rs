//! Which rule must reject which negative: kernel k-means and draws for a start, then the cheapest
//! assignment.
//!
//! In: a veto–consensus problem, or its rules.   Out: an owner for every negative.
//!   Page docs/methods/vcmkl.md.

use super::{Instance, RuleSolution};
use crate::{
    Result,
    data::Rng,
    gram::Gram,
    linalg::Matrix,
    localize::{drawn_clusters, kernel_kmeans},
    tuning::tuning,
};

tuning! { "assign"
    /// Runs of k-means that compete for a start.
    kmeans_runs: usize = 10;
    /// Draws for each start that is asked for, at most: with few negatives they repeat.
    draws_per_start: usize = 4;
}

/// The squared distance from a rule without a cluster, far above those between normalised rows.
const NO_CLUSTER: f64 = 1e6;
/// Rules with losses this close, as a share of the margin, are told apart by their decision values.
const TIE: f64 = 1e-9;
/// A path must be shorter by this share to count, so that rounding closes no cycle.
const ROUNDED_LENGTH: f64 = 1e-15;

/// Up to `count` different assignments. The first is the best of some kernel k-means on the
/// negatives, in the mean of the rules' kernels; the second the same by the direction in which
/// negatives lie from the consensus class, since one rule rejects what lies beyond one side of it.
/// The rest are draws of k-means++ as they are, of both kinds in turn: k-means would move them to
/// where negatives are dense, which may be just where two rules should meet (the corners of a
/// triangle), and from there all starts are one.
pub(super) fn starts(instance: &Instance<'_>, count: usize, seed: u64) -> Result<Vec<Vec<usize>>> {
    let similarity = mean_kernel(instance);
    let mut out = vec![best_clustering(instance, &similarity, seed)?];
    if count == 1 {
        return Ok(out);
    }
    let direction = directions(instance);
    let mut add = |owner: Vec<usize>| {
        if out.len() < count && !out.contains(&owner) {
            out.push(owner);
        }
        out.len() < count
    };
    if !add(best_clustering(instance, &direction, seed)?) {
        return Ok(out);
    }
    let mut rng = Rng::new(seed);
    for draw in 0..TUNING.draws_per_start * count {
        let labels = drawn_clusters(
            if draw % 2 == 0 { &similarity } else { &direction },
            clusters(instance),
            &mut rng,
        );
        if !add(numbered(instance, labels)) {
            break;
        }
    }
    Ok(out)
}

fn clusters(instance: &Instance<'_>) -> usize {
    instance.rules().min(instance.negatives.len())
}

/// The run of k-means with the lowest error; with ν, as close to it as the rules' least numbers
/// allow.
fn best_clustering(instance: &Instance<'_>, kernel: &Gram, seed: u64) -> Result<Vec<usize>> {
    let clusters = clusters(instance);
    let mut best: Option<(f64, Matrix)> = None;
    for run in 0..TUNING.kmeans_runs as u64 {
        let found = kernel_kmeans(kernel, clusters, 1, seed.wrapping_add(run))?;
        let distances = found.distances(kernel);
        let error = found.labels.iter().enumerate().map(|(k, &c)| distances[(k, c)]).sum();
        if best.as_ref().is_none_or(|b| error < b.0) {
            best = Some((error, distances));
        }
    }
    // A rule without a cluster costs more than any other.
    let mut cost = Matrix::zeros(instance.negatives.len(), instance.rules());
    cost.data_mut().fill(NO_CLUSTER);
    if let Some((_, distances)) = best {
        (0..cost.rows())
            .for_each(|k| cost.row_mut(k)[..clusters].copy_from_slice(distances.row(k)));
    }
    Ok(numbered(instance, share_out(&cost, &instance.min_counts())))
}

/// Owners by first appearance, where the rules' numbers mean nothing.
fn numbered(instance: &Instance<'_>, owner: Vec<usize>) -> Vec<usize> {
    if identical_kernels(instance) { in_order_of_appearance(&owner) } else { owner }
}

/// May rules be renumbered without changing the problem?
pub(super) fn identical_kernels(instance: &Instance<'_>) -> bool {
    let same_nu = (1..instance.rules()).all(|m| instance.nu(m) == instance.nu(0));
    same_nu && instance.kernels.iter().all(|k| std::ptr::eq(*k, instance.kernels[0]))
}

fn in_order_of_appearance(owner: &[usize]) -> Vec<usize> {
    let mut seen: Vec<usize> = Vec::new();
    owner
        .iter()
        .map(|m| {
            seen.iter().position(|s| s == m).unwrap_or_else(|| {
                seen.push(*m);
                seen.len() - 1
            })
        })
        .collect()
}

/// Every negative to the rule with the smallest loss (ties: the smallest decision value, then the
/// first rule), with at least the minimum number per rule.
pub(crate) fn reassign(instance: &Instance<'_>, inner: &RuleSolution) -> Vec<usize> {
    let losses = instance.negative_losses(inner);
    let mut cost = Matrix::zeros(losses.rows(), losses.cols());
    for (k, &i) in instance.negatives.iter().enumerate() {
        for m in 0..instance.rules() {
            let margin = inner.rho[m] + inner.f[(i, m)];
            let tie = TIE * margin / (1.0 + margin.abs());
            cost[(k, m)] = instance.cost[i] * (losses[(k, m)] + tie);
        }
    }
    share_out(&cost, &instance.min_counts())
}

/// The cheapest owner of every row with at least `least[m]` rows for column m: each lack is filled
/// along the cheapest chain of moves.
pub(super) fn share_out(cost: &Matrix, least: &[usize]) -> Vec<usize> {
    let rules = cost.cols();
    let cheapest = |row: &[f64]| (0..rules).fold(0, |b, m| if row[m] < row[b] { m } else { b });
    let mut owner: Vec<usize> = (0..cost.rows()).map(|k| cheapest(cost.row(k))).collect();
    loop {
        let mut count = vec![0usize; rules];
        owner.iter().for_each(|&m| count[m] += 1);
        let Some(lacking) = (0..rules).find(|&m| count[m] < least[m]) else { return owner };
        // Bellman–Ford towards the lacking rule; moving row k from a to b costs cost[k, b] −
        // cost[k, a].
        let mut distance = vec![f64::INFINITY; rules];
        let mut next: Vec<Option<(usize, usize)>> = vec![None; rules];
        distance[lacking] = 0.0;
        for _ in 0..rules {
            for (k, &from) in owner.iter().enumerate() {
                for to in (0..rules).filter(|&to| to != from) {
                    let length = cost[(k, to)] - cost[(k, from)] + distance[to];
                    if length + ROUNDED_LENGTH * length.abs() < distance[from] {
                        (distance[from], next[from]) = (length, Some((k, to)));
                    }
                }
            }
        }
        let spare = (0..rules).filter(|&m| count[m] > least[m] && distance[m].is_finite());
        let Some(mut at) = spare.min_by(|&a, &b| distance[a].total_cmp(&distance[b])) else {
            return owner;
        };
        for _ in 0..rules {
            let Some((k, to)) = next[at] else { break };
            owner[k] = to;
            at = to;
            if at == lacking {
                break;
            }
        }
    }
}

/// The mean of the rules' kernels on the negatives.
fn mean_kernel(instance: &Instance<'_>) -> Gram {
    let n = instance.negatives.len();
    let mut out = Gram::zeros(n);
    for (kernel, share) in distinct(instance) {
        for (own, &i) in out.data_mut().chunks_mut(n).zip(&instance.negatives) {
            let row = kernel.row(i);
            own.iter_mut().zip(&instance.negatives).for_each(|(o, &j)| *o += share * row[j]);
        }
    }
    out
}

/// Cosines between the negatives as seen from the centre of the positives, in the feature space of
/// the same mean.
fn directions(instance: &Instance<'_>) -> Gram {
    let mut out = mean_kernel(instance);
    let (n, positives) = (out.n(), instance.positives.len() as f64);
    // ⟨φ(x) − μ, φ(z) − μ⟩ = k(x, z) − ⟨φ(x), μ⟩ − ⟨φ(z), μ⟩ + ‖μ‖².
    let (mut along, mut square) = (vec![0.0; n], 0.0);
    for (kernel, share) in distinct(instance) {
        let toward = |i: usize| {
            let row = kernel.row(i);
            share * instance.positives.iter().map(|&j| row[j]).sum::<f64>() / positives
        };
        along.iter_mut().zip(&instance.negatives).for_each(|(a, &i)| *a += toward(i));
        square += instance.positives.iter().map(|&i| toward(i)).sum::<f64>() / positives;
    }
    let length = |a: usize| (out.row(a)[a] - 2.0 * along[a] + square).max(0.0).sqrt();
    let lengths: Vec<f64> = (0..n).map(length).collect();
    for (a, row) in out.data_mut().chunks_mut(n).enumerate() {
        for (b, o) in row.iter_mut().enumerate() {
            let size = lengths[a] * lengths[b];
            *o = if size > 0.0 { (*o - along[a] - along[b] + square) / size } else { 0.0 };
        }
    }
    out
}

/// Kernels of the rules with their share in the mean.
fn distinct<'a>(instance: &'a Instance<'_>) -> Vec<(&'a Gram, f64)> {
    if identical_kernels(instance) {
        return vec![(instance.kernels[0], 1.0)];
    }
    instance.kernels.iter().map(|k| (*k, 1.0 / instance.rules() as f64)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sharing_out_is_cheapest_among_all_assignments_with_the_counts() {
        let mut rng = Rng::new(3);
        for trial in 0..30 {
            let mut cost = Matrix::zeros(6, 3);
            cost.data_mut().iter_mut().for_each(|c| *c = rng.normal());
            let least = [[1, 1, 1], [2, 2, 2], [0, 3, 1], [4, 0, 2]][trial % 4];
            let total =
                |owner: &[usize]| owner.iter().enumerate().map(|(k, &m)| cost[(k, m)]).sum::<f64>();
            let enough = |owner: &[usize]| {
                (0..3).all(|m| owner.iter().filter(|&&o| o == m).count() >= least[m])
            };
            let all = (0..729usize)
                .map(|code| (0..6).map(|k| code / 3usize.pow(k) % 3).collect::<Vec<_>>());
            let best = all.filter(|o| enough(o)).map(|o| total(&o)).fold(f64::INFINITY, f64::min);
            let got = share_out(&cost, &least);
            assert!(enough(&got) && (total(&got) - best).abs() < 1e-12, "{trial}: {got:?}");
        }
    }
}
