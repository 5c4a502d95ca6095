//! Which rule must reject which negative: kernel k-means for a start, then the cheapest assignment.

use super::{Inner, Instance};
use crate::{data::Rng, gram::Gram, linalg::Matrix};

/// k-means runs that compete for a start.
const RUNS: usize = 10;
const LLOYD: usize = 100;

/// Up to `count` different assignments from kernel k-means on the negatives in the mean of the rules' kernels, best clustering first.
pub(super) fn starts(instance: &Instance<'_>, count: usize, seed: u64) -> Vec<Vec<usize>> {
    let kernel = mean_kernel(instance);
    let mut runs: Vec<(f64, Vec<usize>)> = (0..RUNS.max(count) as u64)
        .map(|run| {
            let clusters = instance.rules().min(instance.negatives.len());
            let (distances, labels) = kmeans(&kernel, clusters, &mut Rng::new(seed.wrapping_add(run)));
            let error = labels.iter().enumerate().map(|(k, &c)| distances[(k, c)]).sum();
            let mut cost = Matrix::zeros(labels.len(), instance.rules());
            for k in 0..labels.len() {
                // A rule without a cluster costs more than any other.
                (0..instance.rules()).for_each(|m| cost[(k, m)] = if m < clusters { distances[(k, m)] } else { 1e6 });
            }
            (error, share_out(&cost, &instance.min_counts()))
        })
        .collect();
    runs.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut out: Vec<Vec<usize>> = Vec::new();
    for (_, owner) in runs {
        let owner = if identical_kernels(instance) { in_order_of_appearance(&owner) } else { owner };
        if out.len() < count && !out.contains(&owner) {
            out.push(owner);
        }
    }
    out
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

/// Every negative to the rule with the smallest loss (ties: the smallest decision value, then the first rule), with at least the minimum
/// number per rule.
pub(super) fn reassign(instance: &Instance<'_>, inner: &Inner) -> Vec<usize> {
    let losses = instance.negative_losses(inner);
    let mut cost = Matrix::zeros(losses.rows(), losses.cols());
    for (k, &i) in instance.negatives.iter().enumerate() {
        for m in 0..instance.rules() {
            let margin = inner.rho[m] + inner.f[(i, m)];
            let tie = 1e-9 * margin / (1.0 + margin.abs());
            cost[(k, m)] = instance.price[i] * (losses[(k, m)] + tie);
        }
    }
    share_out(&cost, &instance.min_counts())
}

/// The cheapest owner of every row with at least `least[m]` rows for column m: each lack is filled along the cheapest chain of moves.
pub(super) fn share_out(cost: &Matrix, least: &[usize]) -> Vec<usize> {
    let rules = cost.cols();
    let cheapest = |row: &[f64]| (0..rules).fold(0, |b, m| if row[m] < row[b] { m } else { b });
    let mut owner: Vec<usize> = (0..cost.rows()).map(|k| cheapest(cost.row(k))).collect();
    loop {
        let mut count = vec![0usize; rules];
        owner.iter().for_each(|&m| count[m] += 1);
        let Some(lacking) = (0..rules).find(|&m| count[m] < least[m]) else { return owner };
        // Bellman–Ford towards the lacking rule; moving row k from a to b costs cost[k, b] − cost[k, a].
        let mut distance = vec![f64::INFINITY; rules];
        let mut next: Vec<Option<(usize, usize)>> = vec![None; rules];
        distance[lacking] = 0.0;
        for _ in 0..rules {
            for (k, &from) in owner.iter().enumerate() {
                for to in (0..rules).filter(|&to| to != from) {
                    let length = cost[(k, to)] - cost[(k, from)] + distance[to];
                    if length + 1e-15 * length.abs() < distance[from] {
                        (distance[from], next[from]) = (length, Some((k, to)));
                    }
                }
            }
        }
        let spare = (0..rules).filter(|&m| count[m] > least[m] && distance[m].is_finite());
        let Some(mut at) = spare.min_by(|&a, &b| distance[a].total_cmp(&distance[b])) else { return owner };
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
fn mean_kernel(instance: &Instance<'_>) -> Matrix {
    let n = instance.negatives.len();
    let mut out = Matrix::zeros(n, n);
    let mut add = |k: &Gram, weight: f64| {
        for (a, &i) in instance.negatives.iter().enumerate() {
            let row = k.row(i);
            out.row_mut(a).iter_mut().zip(&instance.negatives).for_each(|(o, &j)| *o += weight * row[j]);
        }
    };
    if identical_kernels(instance) {
        add(instance.kernels[0], 1.0);
    } else {
        instance.kernels.iter().for_each(|k| add(k, 1.0 / instance.rules() as f64));
    }
    out
}

/// Kernel k-means with k-means++ seeding: squared distances to every centre, and labels.
fn kmeans(kernel: &Matrix, clusters: usize, rng: &mut Rng) -> (Matrix, Vec<usize>) {
    let n = kernel.rows();
    let pair = |i: usize, j: usize| (kernel[(i, i)] + kernel[(j, j)] - 2.0 * kernel[(i, j)]).max(0.0);
    let mut seeds = vec![rng.below(n)];
    while seeds.len() < clusters {
        let nearest: Vec<f64> =
            (0..n).map(|i| seeds.iter().map(|&s| pair(i, s)).fold(f64::INFINITY, f64::min)).collect();
        let mut left = rng.uniform() * nearest.iter().sum::<f64>();
        let drawn = nearest.iter().position(|d| {
            left -= d;
            left < 0.0
        });
        // All rows coincide with a seed: any other row will do.
        seeds.push(drawn.unwrap_or_else(|| (0..n).find(|i| !seeds.contains(i)).unwrap_or(0)));
    }
    let mut distances = Matrix::zeros(n, clusters);
    (0..n).for_each(|i| (0..clusters).for_each(|c| distances[(i, c)] = pair(i, seeds[c])));
    let nearest = |d: &[f64]| (0..clusters).fold(0, |b, c| if d[c] < d[b] { c } else { b });
    let mut labels: Vec<usize> = (0..n).map(|i| nearest(distances.row(i))).collect();
    for _ in 0..LLOYD {
        reseed_empty(&mut labels, &distances, clusters);
        distances = centre_distances(kernel, &labels, clusters);
        let next: Vec<usize> = (0..n).map(|i| nearest(distances.row(i))).collect();
        if next == labels {
            break;
        }
        labels = next;
    }
    (distances, labels)
}

/// An emptied cluster takes the row farthest from its own centre.
fn reseed_empty(labels: &mut [usize], distances: &Matrix, clusters: usize) {
    for c in 0..clusters {
        if labels.contains(&c) {
            continue;
        }
        let alone = |k: usize| labels.iter().filter(|&&l| l == labels[k]).count() < 2;
        let own = |k: usize| if alone(k) { f64::NEG_INFINITY } else { distances[(k, labels[k])] };
        let far = (0..labels.len()).fold(0, |b, k| if own(k) > own(b) { k } else { b });
        labels[far] = c;
    }
}

fn centre_distances(kernel: &Matrix, labels: &[usize], clusters: usize) -> Matrix {
    let n = labels.len();
    let mut sums = Matrix::zeros(n, clusters);
    for i in 0..n {
        let row = kernel.row(i);
        labels.iter().zip(row).for_each(|(&c, k)| sums[(i, c)] += k);
    }
    let (mut count, mut inside) = (vec![0.0; clusters], vec![0.0; clusters]);
    for (i, &c) in labels.iter().enumerate() {
        count[c] += 1.0;
        inside[c] += sums[(i, c)];
    }
    let mut out = Matrix::zeros(n, clusters);
    for i in 0..n {
        for c in 0..clusters {
            let size = f64::max(count[c], 1.0);
            out[(i, c)] = (kernel[(i, i)] - 2.0 * sums[(i, c)] / size + inside[c] / (size * size)).max(0.0);
        }
    }
    out
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
            let total = |owner: &[usize]| owner.iter().enumerate().map(|(k, &m)| cost[(k, m)]).sum::<f64>();
            let enough = |owner: &[usize]| (0..3).all(|m| owner.iter().filter(|&&o| o == m).count() >= least[m]);
            let all = (0..729usize).map(|code| (0..6).map(|k| code / 3usize.pow(k) % 3).collect::<Vec<_>>());
            let best = all.filter(|o| enough(o)).map(|o| total(&o)).fold(f64::INFINITY, f64::min);
            let got = share_out(&cost, &least);
            assert!(enough(&got) && (total(&got) - best).abs() < 1e-12, "{trial}: {got:?}");
        }
    }

    #[test]
    fn kmeans_finds_groups_that_lie_apart() {
        let x: Vec<f64> = (0..30).map(|i| 10.0 * f64::from(i % 3) + 0.1 * f64::from(i / 3)).collect();
        let mut kernel = Matrix::zeros(30, 30);
        (0..30).for_each(|i| (0..30).for_each(|j| kernel[(i, j)] = x[i] * x[j]));
        let best = (0..RUNS as u64)
            .map(|s| kmeans(&kernel, 3, &mut Rng::new(s)))
            .map(|(d, l)| (l.iter().enumerate().map(|(k, &c)| d[(k, c)]).sum::<f64>(), l))
            .min_by(|a, b| a.0.total_cmp(&b.0))
            .unwrap();
        assert!((0..30).all(|i| best.1[i] == best.1[i % 3]), "{best:?}");
    }
}
