//! k-means in a kernel's feature space.
//!
//! Minimises  Σ_i d²(x_i, S_{g(i)}),
//!   d²(x, S) = k(x, x) − 2/|S| Σ_{i∈S} k(x, x_i) + 1/|S|² Σ_{i,j∈S} k(x_i, x_j).
//! In: K, the number of clusters, starts, a seed.
//!   Out: labels of the best start, numbered by first appearance.

use rayon::prelude::*;

use crate::{
    Error, Result,
    data::Rng,
    gram::Gram,
    linalg::{Matrix, axpy},
};

/// Passes over the data at most: labels settle long before, so it only bounds the time.
const MOST_PASSES: usize = 200;
/// An error is lower only if it is by more than this share of the trace: less is rounding, and the
/// earlier start wins.
const ROUNDED_ERROR: f64 = 1e-12;

/// A partition of the training rows, with what placing a row needs besides kernel values.
#[derive(Debug, Clone, PartialEq)]
pub struct Clusters {
    /// The cluster of each row.
    pub labels: Vec<usize>,
    /// Number of rows in each cluster.
    pub sizes: Vec<usize>,
    /// 1/|S|² Σ_{i,j∈S} k(x_i, x_j): squared norm of each centre.
    pub centre_norms: Vec<f64>,
}

impl Clusters {
    /// From labels 0..l, each of which must occur.
    pub fn new(k: &Gram, labels: Vec<usize>) -> Result<Self> {
        let regions = labels.iter().max().map_or(0, |l| l + 1);
        if labels.len() != k.n() || regions == 0 {
            return Err(Error::shape(
                "regions",
                format!("{} labels, one per row", k.n()),
                labels.len(),
            ));
        }
        let mut sizes = vec![0usize; regions];
        labels.iter().for_each(|&l| sizes[l] += 1);
        if let Some(empty) = sizes.iter().position(|s| *s == 0) {
            return Err(Error::data(
                "regions",
                format!("region {} has no row", empty + 1),
                "number them without gaps",
            ));
        }
        let sums = cluster_sums(k, &labels, regions);
        Ok(Self::with_sums(labels, sizes, &sums))
    }

    fn with_sums(labels: Vec<usize>, sizes: Vec<usize>, sums: &Matrix) -> Self {
        let mut norms = vec![0.0; sizes.len()];
        labels.iter().enumerate().for_each(|(i, &l)| norms[l] += sums[(l, i)]);
        norms.iter_mut().zip(&sizes).for_each(|(n, &s)| *n /= (s * s) as f64);
        Self { labels, sizes, centre_norms: norms }
    }

    /// The number of clusters, at least 1.
    pub fn len(&self) -> usize {
        self.sizes.len()
    }

    /// Are there no clusters? There always are.
    pub fn is_empty(&self) -> bool {
        self.sizes.is_empty()
    }

    /// d²(x_i, S_g) less k(x_i, x_i), which does not depend on g: `rows × clusters`.
    pub fn distances(&self, k: &Gram) -> Matrix {
        self.distances_from(&cluster_sums(k, &self.labels, self.len()))
    }

    fn distances_from(&self, sums: &Matrix) -> Matrix {
        let mut out = sums.transposed();
        for i in 0..out.rows() {
            for (g, d) in out.row_mut(i).iter_mut().enumerate() {
                *d = self.centre_norms[g] - 2.0 * *d / self.sizes[g] as f64;
            }
        }
        out
    }

    /// The coefficients of d²(·, S_g) less k(x, x) on k(x_i, ·); the constant is `centre_norms[g]`.
    pub fn distance_coefficients(&self, g: usize) -> Vec<f64> {
        let share = -2.0 / self.sizes[g] as f64;
        self.labels.iter().map(|&l| if l == g { share } else { 0.0 }).collect()
    }
}

/// Σ_{l∈S_g} k(x_l, x_i) for every cluster and row.
fn cluster_sums(k: &Gram, labels: &[usize], clusters: usize) -> Matrix {
    let mut out = Matrix::zeros(clusters, k.n());
    out.data_mut().par_chunks_mut(k.n().max(1)).enumerate().for_each(|(g, sums)| {
        (0..k.n()).filter(|&l| labels[l] == g).for_each(|l| axpy(1.0, k.row(l), sums));
    });
    out
}

/// The best of `starts` runs of Lloyd's iteration from k-means++ starts.
pub fn kernel_kmeans(k: &Gram, clusters: usize, starts: usize, seed: u64) -> Result<Clusters> {
    let n = k.n();
    if clusters == 0 || clusters > n {
        let expected =
            format!("between 1 and the number of training rows; there are n_samples = {n}");
        return Err(Error::param("n_clusters", expected, clusters));
    }
    let diagonal: Vec<f64> = (0..n).map(|i| k.row(i)[i]).collect();
    let scale = diagonal.iter().sum::<f64>().abs();
    let mut rng = Rng::new(seed);
    let mut best: Option<(f64, Vec<usize>)> = None;
    for _ in 0..if clusters == 1 { 1 } else { starts.max(1) } {
        let (error, labels) =
            lloyd(k, &diagonal, plus_plus(k, &diagonal, clusters, &mut rng), clusters);
        if best.as_ref().is_none_or(|(lowest, _)| error < lowest - ROUNDED_ERROR * scale) {
            best = Some((error, labels));
        }
    }
    let (_, labels) = best.unwrap_or_default();
    Clusters::new(k, in_order_of_appearance(&labels, clusters))
}

/// A start of k-means as it is: every row with the nearest of `clusters` ≤ n rows, drawn by
/// k-means++ and numbered as drawn.
pub(crate) fn drawn_clusters(k: &Gram, clusters: usize, rng: &mut Rng) -> Vec<usize> {
    let diagonal: Vec<f64> = (0..k.n()).map(|i| k.row(i)[i]).collect();
    plus_plus(k, &diagonal, clusters, rng)
}

/// k-means++: centres are rows, each new one drawn with probability proportional to its squared
/// distance from the nearest so far.
fn plus_plus(k: &Gram, diagonal: &[f64], clusters: usize, rng: &mut Rng) -> Vec<usize> {
    let n = k.n();
    let distance = |i: usize, c: usize| (diagonal[i] + diagonal[c] - 2.0 * k.row(c)[i]).max(0.0);
    let mut centres = vec![rng.below(n)];
    let mut nearest: Vec<(f64, usize)> = (0..n).map(|i| (distance(i, centres[0]), 0)).collect();
    while centres.len() < clusters {
        let total: f64 = nearest.iter().map(|(d, _)| d).sum();
        let mut left = rng.uniform() * total;
        let drawn = nearest.iter().position(|(d, _)| {
            left -= d;
            left < 0.0
        });
        // All rows coincide with a centre, or rounding ran past the end: any row that is no centre
        // yet will do.
        let fresh = drawn.filter(|c| !centres.contains(c));
        let centre = fresh.or_else(|| (0..n).find(|i| !centres.contains(i))).unwrap_or(0);
        for (i, closest) in nearest.iter_mut().enumerate() {
            let d = distance(i, centre);
            if d < closest.0 {
                *closest = (d, centres.len());
            }
        }
        nearest[centre] = (0.0, centres.len());
        centres.push(centre);
    }
    nearest.into_iter().map(|(_, label)| label).collect()
}

/// Reassigns until labels repeat or the error no longer falls. A positive semidefinite K never lets
/// it rise. Sums over clusters follow the rows that move.
fn lloyd(k: &Gram, diagonal: &[f64], mut labels: Vec<usize>, clusters: usize) -> (f64, Vec<usize>) {
    let mut last = f64::INFINITY;
    let mut sums = cluster_sums(k, &labels, clusters);
    for _ in 0..MOST_PASSES {
        let mut sizes = vec![0usize; clusters];
        labels.iter().for_each(|&l| sizes[l] += 1);
        let distances = Clusters::with_sums(labels.clone(), sizes, &sums).distances_from(&sums);
        let error: f64 =
            labels.iter().enumerate().map(|(i, &l)| diagonal[i] + distances[(i, l)]).sum();
        let mut next: Vec<usize> = (0..labels.len()).map(|i| nearest(distances.row(i))).collect();
        repair(&mut next, diagonal, &distances, clusters);
        if next == labels || error >= last {
            return (error, labels);
        }
        for (i, (&from, &to)) in
            labels.iter().zip(&next).enumerate().filter(|(_, (from, to))| from != to)
        {
            axpy(-1.0, k.row(i), sums.row_mut(from));
            axpy(1.0, k.row(i), sums.row_mut(to));
        }
        (labels, last) = (next, error);
    }
    (last, labels)
}

/// Position of the smallest entry; ties go to the first.
pub(super) fn nearest(distances: &[f64]) -> usize {
    (0..distances.len()).fold(0, |b, g| if distances[g] < distances[b] { g } else { b })
}

/// An empty cluster takes the row farthest from its own centre, out of a cluster that has others.
fn repair(labels: &mut [usize], diagonal: &[f64], distances: &Matrix, clusters: usize) {
    let mut sizes = vec![0usize; clusters];
    labels.iter().for_each(|&l| sizes[l] += 1);
    for g in 0..clusters {
        if sizes[g] > 0 {
            continue;
        }
        let far = |i: usize| diagonal[i] + distances[(i, labels[i])];
        let movable = (0..labels.len()).filter(|&i| sizes[labels[i]] > 1);
        let Some(i) = movable.reduce(|b, i| if far(i) > far(b) { i } else { b }) else { return };
        sizes[labels[i]] -= 1;
        sizes[g] = 1;
        labels[i] = g;
    }
}

fn in_order_of_appearance(labels: &[usize], clusters: usize) -> Vec<usize> {
    let mut number = vec![None; clusters];
    let mut next = 0;
    let mut renumber = |l: usize| {
        *number[l].get_or_insert_with(|| {
            next += 1;
            next - 1
        })
    };
    labels.iter().map(|&l| renumber(l)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A linear kernel on points of a line.
    fn line(x: &[f64]) -> Gram {
        let mut k = Gram::zeros(x.len());
        let n = x.len();
        k.data_mut().iter_mut().enumerate().for_each(|(at, v)| *v = x[at / n] * x[at % n]);
        k
    }

    #[test]
    fn separate_groups_are_found_and_distances_are_those_of_the_line() {
        let x = [0.0, 10.0, 0.2, 10.4, 21.0, 0.1, 20.0];
        let found = kernel_kmeans(&line(&x), 3, 10, 1).unwrap();
        assert_eq!(found.labels, [0, 1, 0, 1, 2, 0, 2]);
        let d = found.distances(&line(&x));
        let centres = [0.1, 10.2, 20.5];
        for i in 0..x.len() {
            for g in 0..3 {
                let want = (x[i] - centres[g]).powi(2);
                assert!((x[i] * x[i] + d[(i, g)] - want).abs() < 1e-9, "{i} {g}");
            }
        }
    }

    #[test]
    fn as_many_clusters_as_rows_and_coinciding_rows_leave_no_cluster_empty() {
        for x in [vec![3.0, 1.0, 2.0, 7.0], vec![1.0; 4], vec![1.0, 1.0, 1.0, 2.0]] {
            let found = kernel_kmeans(&line(&x), 4, 5, 0).unwrap();
            assert_eq!(found.sizes, [1; 4], "{x:?}");
        }
        assert!(kernel_kmeans(&line(&[1.0, 2.0]), 3, 1, 0).is_err());
        assert!(kernel_kmeans(&line(&[1.0, 2.0]), 0, 1, 0).is_err());
    }

    #[test]
    fn a_run_of_lloyd_never_raises_the_error_and_ends_where_labels_are_nearest() {
        let mut rng = Rng::new(5);
        let x: Vec<f64> = (0..60).map(|_| rng.normal() * 3.0).collect();
        let k = line(&x);
        let diagonal: Vec<f64> = x.iter().map(|v| v * v).collect();
        for start in 0..5 {
            let first = plus_plus(&k, &diagonal, 4, &mut Rng::new(start));
            let error = |l: &[usize]| -> f64 {
                let d = Clusters::new(&k, l.to_vec()).unwrap().distances(&k);
                l.iter().enumerate().map(|(i, &l)| diagonal[i] + d[(i, l)]).sum()
            };
            let (value, labels) = lloyd(&k, &diagonal, first.clone(), 4);
            assert!(value <= error(&first) && (value - error(&labels)).abs() < 1e-9);
            let d = Clusters::new(&k, labels.clone()).unwrap().distances(&k);
            assert!(labels.iter().enumerate().all(|(i, &l)| nearest(d.row(i)) == l));
        }
    }
}
