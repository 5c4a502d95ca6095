//! Do the same kernels come out again? And which could stand in for each other?

use serde::{Deserialize, Serialize};

use super::SplitRun;
use crate::metrics::mean_interval;

/// One kernel over all splits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KernelStability {
    /// Its name, of the first split: automatic widths differ a little from split to split.
    pub kernel: String,
    /// Share of the splits in which it has a weight.
    pub frequency: f64,
    /// Mean share in the sum of weights.
    pub mean: f64,
    /// 95 % bootstrap interval of that mean over splits.
    pub interval: Option<(f64, f64)>,
}

/// The kernels of one method over all splits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stability {
    /// Label of the method.
    pub method: String,
    /// Those that ever had a weight, by mean share, largest first.
    pub kernels: Vec<KernelStability>,
    /// Mean over pairs of splits of the number of kernels chosen in both over the number chosen in
    /// either: 1 says always the same.
    pub overlap: Option<f64>,
}

/// The bank of every split and the place of each of its kernels in a common list. Where all splits
/// have as many kernels, kernels with the same place are the same but for automatic widths;
/// otherwise names decide.
pub(super) fn common(banks: &[Option<Vec<String>>]) -> (Vec<String>, Vec<Vec<usize>>) {
    let known: Vec<&Vec<String>> = banks.iter().flatten().collect();
    let Some(first) = known.first() else { return (Vec::new(), vec![Vec::new(); banks.len()]) };
    if known.iter().all(|b| b.len() == first.len()) {
        return ((*first).clone(), vec![(0..first.len()).collect(); banks.len()]);
    }
    let mut names: Vec<String> = Vec::new();
    let mut place = std::collections::HashMap::new();
    let mut places = Vec::new();
    for bank in banks {
        let own = bank.iter().flatten().map(|name| {
            *place.entry(name.clone()).or_insert_with(|| {
                names.push(name.clone());
                names.len() - 1
            })
        });
        places.push(own.collect());
    }
    (names, places)
}

impl Stability {
    pub(super) fn new(
        method: &str,
        runs: &[&SplitRun],
        names: &[String],
        places: &[Vec<usize>],
    ) -> Self {
        let mut shares = vec![vec![0.0; runs.len()]; names.len()];
        for (r, run) in runs.iter().enumerate() {
            for (m, w) in run.weights.iter().enumerate() {
                if let Some(&at) = places[run.split].get(m) {
                    shares[at][r] = *w;
                }
            }
        }
        let n = runs.len().max(1) as f64;
        let kernel = |(m, own): (usize, &Vec<f64>)| KernelStability {
            kernel: names[m].clone(),
            frequency: own.iter().filter(|w| **w != 0.0).count() as f64 / n,
            mean: own.iter().sum::<f64>() / n,
            interval: mean_interval(own, 0),
        };
        let used = |(_, own): &(usize, &Vec<f64>)| own.iter().any(|w| *w != 0.0);
        let mut kernels: Vec<KernelStability> =
            shares.iter().enumerate().filter(used).map(kernel).collect();
        kernels.sort_by(|a, b| b.mean.total_cmp(&a.mean));
        Self { method: method.into(), kernels, overlap: overlap(&shares, runs.len()) }
    }
}

/// Mean Jaccard index over pairs of splits.
fn overlap(shares: &[Vec<f64>], runs: usize) -> Option<f64> {
    let mut sum = 0.0;
    for i in 0..runs {
        for j in 0..i {
            let (mut both, mut either) = (0, 0);
            for own in shares {
                let (a, b) = (own[i] != 0.0, own[j] != 0.0);
                both += usize::from(a && b);
                either += usize::from(a || b);
            }
            sum +=
                if either == 0 { 1.0 } else { f64::from(both as u32) / f64::from(either as u32) };
        }
    }
    (runs > 1).then(|| sum / (runs * (runs - 1) / 2) as f64)
}

/// Kernels of which each aligns with the first of its group by more than `threshold`; `order` says
/// who comes first. Groups of one are left out.
pub fn interchangeable(between: &[Vec<f64>], order: &[usize], threshold: f64) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for &m in order {
        match groups.iter_mut().find(|g| between[g[0]][m] > threshold) {
            Some(group) => group.push(m),
            None => groups.push(vec![m]),
        }
    }
    groups.retain(|g| g.len() > 1);
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_that_say_the_same_form_groups() {
        let between = [
            [1.0, 0.99, 0.2, 0.1],
            [0.99, 1.0, 0.3, 0.1],
            [0.2, 0.3, 1.0, 0.97],
            [0.1, 0.1, 0.97, 1.0],
        ];
        let between: Vec<Vec<f64>> = between.iter().map(|r| r.to_vec()).collect();
        assert_eq!(interchangeable(&between, &[1, 2, 0, 3], 0.95), [vec![1, 0], vec![2, 3]]);
        assert!(interchangeable(&between, &[0, 1, 2, 3], 0.995).is_empty());
    }

    #[test]
    fn banks_of_different_sizes_meet_by_name() {
        let bank = |names: &[&str]| Some(names.iter().map(ToString::to_string).collect::<Vec<_>>());
        let (names, places) = common(&[bank(&["a", "b"]), None, bank(&["b", "c", "a"])]);
        assert_eq!(names, ["a", "b", "c"]);
        assert_eq!(places, [vec![0, 1], vec![], vec![1, 2, 0]]);
        let (names, places) = common(&[bank(&["w=1"]), bank(&["w=2"])]);
        assert_eq!((names, places), (vec!["w=1".to_string()], vec![vec![0], vec![0]]));
    }
}
