//! Seeded splits and folds: index lists, each ascending, that depend on nothing but the arguments.

use super::{Rng, Target};
use crate::{Error, Result};

/// Row indices to train on, row indices to test on.
pub type Split = (Vec<usize>, Vec<usize>);

/// One random split of `n` rows; both parts get at least one.
pub fn split(n: usize, test_fraction: f64, seed: u64) -> Result<Split> {
    part(&shuffled(n, seed), test_fraction)
}

/// One random split in which every class has its share (to within one row) of both parts.
pub fn stratified_split(target: &Target, test_fraction: f64, seed: u64) -> Result<Split> {
    part(&by_class(target, seed), test_fraction)
}

/// `k` folds of `n` rows, each row in exactly one test part.
pub fn kfold(n: usize, k: usize, seed: u64) -> Result<Vec<Split>> {
    folds(&shuffled(n, seed), k)
}

/// `k` folds over which every class is spread evenly (to within one row); plain folds for values.
pub fn stratified_kfold(target: &Target, k: usize, seed: u64) -> Result<Vec<Split>> {
    folds(&by_class(target, seed), k)
}

fn shuffled(n: usize, seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect();
    Rng::new(seed).shuffle(&mut order);
    order
}

/// Shuffled within each class, one class after the other: equal steps along this order take equal shares of each.
fn by_class(target: &Target, seed: u64) -> Vec<usize> {
    let mut order = shuffled(target.len(), seed);
    if let Target::Classes { labels, .. } = target {
        order.sort_by_key(|&i| labels[i]);
    }
    order
}

fn part(order: &[usize], test_fraction: f64) -> Result<Split> {
    let n = order.len();
    if !(test_fraction > 0.0 && test_fraction < 1.0) {
        return Err(Error::param("test_fraction", "between 0 and 1, both excluded", test_fraction));
    }
    if n < 2 {
        return Err(Error::data("data", format!("{n} rows cannot be split in two"), "bring at least 2"));
    }
    let n_test = ((n as f64 * test_fraction).round() as usize).clamp(1, n - 1);
    // Systematic sampling: rank r is a test row where r·n_test/n passes a whole number.
    let passes = |r: usize| (r as u128 + 1) * n_test as u128 / n as u128 > r as u128 * n_test as u128 / n as u128;
    Ok(divide(order, passes))
}

fn folds(order: &[usize], k: usize) -> Result<Vec<Split>> {
    if k < 2 || k > order.len() {
        return Err(Error::param("folds", format!("between 2 and the number of rows, {}", order.len()), k));
    }
    Ok((0..k).map(|fold| divide(order, |rank| rank % k == fold)).collect())
}

fn divide(order: &[usize], is_test: impl Fn(usize) -> bool) -> Split {
    let (mut train, mut test) = (Vec::new(), Vec::new());
    for (rank, &i) in order.iter().enumerate() {
        if is_test(rank) { test.push(i) } else { train.push(i) }
    }
    train.sort_unstable();
    test.sort_unstable();
    (train, test)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classes() -> Target {
        let labels = (0..103).map(|i| if i % 10 == 0 { 0 } else { 1 + i % 2 }).collect();
        Target::Classes { names: ["a", "b", "c"].map(String::from).to_vec(), labels }
    }

    fn count(target: &Target, rows: &[usize], class: usize) -> usize {
        let Target::Classes { labels, .. } = target else { return 0 };
        rows.iter().filter(|&&i| labels[i] == class).count()
    }

    fn assert_partition(n: usize, (train, test): &Split) {
        assert!(train.is_sorted() && test.is_sorted());
        let mut all = [train.as_slice(), test].concat();
        all.sort_unstable();
        assert_eq!(all, (0..n).collect::<Vec<_>>());
    }

    #[test]
    fn a_split_is_a_partition_that_the_seed_decides() {
        let s = split(10, 0.3, 1).unwrap();
        assert_partition(10, &s);
        assert_eq!(s.1.len(), 3);
        assert_eq!(s, split(10, 0.3, 1).unwrap());
        assert_ne!(s, split(10, 0.3, 2).unwrap());
        assert_eq!(split(2, 0.01, 0).unwrap().1.len(), 1);
        assert!(split(1, 0.5, 0).is_err());
        for bad in [0.0, 1.0, -0.1, f64::NAN] {
            assert!(split(10, bad, 0).is_err(), "{bad}");
        }
    }

    #[test]
    fn stratified_parts_hold_their_share_of_every_class() {
        let target = classes();
        let s = stratified_split(&target, 0.25, 3).unwrap();
        assert_partition(103, &s);
        assert_eq!(s.1.len(), 26);
        let all: Vec<usize> = (0..103).collect();
        for class in 0..3 {
            let share = count(&target, &all, class) as f64 * 26.0 / 103.0;
            assert!((count(&target, &s.1, class) as f64 - share).abs() <= 1.0);
        }
    }

    #[test]
    fn folds_test_every_row_once_and_spread_every_class() {
        let target = classes();
        for splits in [kfold(103, 5, 9).unwrap(), stratified_kfold(&target, 5, 9).unwrap()] {
            let mut tested: Vec<usize> = splits.iter().flat_map(|s| s.1.clone()).collect();
            tested.sort_unstable();
            assert_eq!(tested, (0..103).collect::<Vec<_>>());
            for s in &splits {
                assert_partition(103, s);
            }
        }
        for class in 0..3 {
            let counts = stratified_kfold(&target, 5, 9)
                .unwrap()
                .iter()
                .map(|s| count(&target, &s.1, class))
                .collect::<Vec<_>>();
            assert!(counts.iter().max().unwrap() - counts.iter().min().unwrap() <= 1, "{counts:?}");
        }
        let values = Target::Values(vec![0.0; 8]);
        assert_eq!(stratified_kfold(&values, 4, 5).unwrap(), kfold(8, 4, 5).unwrap());
        assert!(kfold(8, 1, 0).is_err() && kfold(8, 9, 0).is_err() && kfold(8, 8, 0).is_ok());
    }
}
