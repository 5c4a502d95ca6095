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

/// Every row alone once.
pub fn leave_one_out(n: usize) -> Result<Vec<Split>> {
    if n < 2 {
        return Err(Error::data(
            "data",
            format!("{n} rows cannot be split in two"),
            "bring at least 2",
        ));
    }
    Ok((0..n).map(|out| ((0..n).filter(|&i| i != out).collect(), vec![out])).collect())
}

/// `k` folds in which rows of one group stay together; groups are dealt out in random order, each
/// to the fold with the fewest rows.
pub fn group_kfold(groups: &[usize], k: usize, seed: u64) -> Result<Vec<Split>> {
    let members = members(groups, seed);
    if k < 2 || k > members.len() {
        return Err(Error::param(
            "folds",
            format!("between 2 and the number of groups, {}", members.len()),
            k,
        ));
    }
    // Large groups first, so that the last ones can even out what they left.
    let mut order: Vec<usize> = (0..members.len()).collect();
    order.sort_by_key(|&g| std::cmp::Reverse(members[g].len()));
    let mut folds = vec![Vec::new(); k];
    for g in order {
        let emptiest = (0..k).fold(0, |b, f| if folds[f].len() < folds[b].len() { f } else { b });
        folds[emptiest].extend_from_slice(&members[g]);
    }
    Ok(folds.into_iter().map(|test| complement(groups.len(), test)).collect())
}

/// One random split in which rows of one group stay together: groups in random order go to the test
/// part until it has its share.
pub fn group_split(groups: &[usize], test_fraction: f64, seed: u64) -> Result<Split> {
    let members = members(groups, seed);
    if !(test_fraction > 0.0 && test_fraction < 1.0) {
        return Err(Error::param("test_fraction", "between 0 and 1, both excluded", test_fraction));
    }
    if members.len() < 2 {
        return Err(Error::data(
            "groups",
            "all rows are of one group",
            "a split needs at least two",
        ));
    }
    let wanted = groups.len() as f64 * test_fraction;
    let mut test = members[0].clone();
    for group in &members[1..members.len() - 1] {
        // A group joins if that brings the size closer to the share.
        if test.len() as f64 + group.len() as f64 / 2.0 > wanted {
            break;
        }
        test.extend_from_slice(group);
    }
    Ok(complement(groups.len(), test))
}

/// `k` splits of rows in the order of time: the rows are cut into k + 1 runs, and split i tests run
/// i + 1 after training on all before.
pub fn time_ordered(n: usize, k: usize) -> Result<Vec<Split>> {
    if k == 0 || k >= n {
        return Err(Error::param(
            "folds",
            format!("between 1 and the number of rows less one, {}", n.max(1) - 1),
            k,
        ));
    }
    let cut = |i: usize| i * n / (k + 1);
    Ok((1..=k).map(|i| ((0..cut(i)).collect(), (cut(i)..cut(i + 1)).collect())).collect())
}

/// Rows of each group, groups in random order.
fn members(groups: &[usize], seed: u64) -> Vec<Vec<usize>> {
    let mut names = groups.to_vec();
    names.sort_unstable();
    names.dedup();
    Rng::new(seed).shuffle(&mut names);
    names.iter().map(|g| (0..groups.len()).filter(|&i| groups[i] == *g).collect()).collect()
}

fn complement(n: usize, mut test: Vec<usize>) -> Split {
    test.sort_unstable();
    ((0..n).filter(|i| test.binary_search(i).is_err()).collect(), test)
}

fn shuffled(n: usize, seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect();
    Rng::new(seed).shuffle(&mut order);
    order
}

/// Shuffled within each class, one class after the other: equal steps along this order take equal
/// shares of each.
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
        return Err(Error::data(
            "data",
            format!("{n} rows cannot be split in two"),
            "bring at least 2",
        ));
    }
    let n_test = ((n as f64 * test_fraction).round() as usize).clamp(1, n - 1);
    // Systematic sampling: rank r is a test row where r·n_test/n passes a whole number.
    let passes = |r: usize| {
        (r as u128 + 1) * n_test as u128 / n as u128 > r as u128 * n_test as u128 / n as u128
    };
    Ok(divide(order, passes))
}

fn folds(order: &[usize], k: usize) -> Result<Vec<Split>> {
    if k < 2 || k > order.len() {
        return Err(Error::param(
            "folds",
            format!("between 2 and the number of rows, {}", order.len()),
            k,
        ));
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

    #[test]
    fn groups_stay_together() {
        let groups: Vec<usize> = (0..60).map(|i| (i * i) % 11).collect();
        let splits = group_kfold(&groups, 3, 4).unwrap();
        let apart = |(train, test): &Split| {
            test.iter().all(|t| train.iter().all(|i| groups[*i] != groups[*t]))
        };
        let mut tested: Vec<usize> = splits.iter().flat_map(|s| s.1.clone()).collect();
        tested.sort_unstable();
        assert_eq!(tested, (0..60).collect::<Vec<_>>());
        for s in splits.iter().chain([&group_split(&groups, 0.3, 1).unwrap()]) {
            assert_partition(60, s);
            assert!(apart(s));
            assert!((8..=32).contains(&s.1.len()), "{}", s.1.len());
        }
        assert!(group_kfold(&[1, 1, 2], 3, 0).is_err() && group_split(&[1, 1], 0.5, 0).is_err());
    }

    #[test]
    fn time_only_moves_forward_and_every_row_is_left_out_once() {
        for (train, test) in time_ordered(23, 4).unwrap() {
            assert!(!train.is_empty() && !test.is_empty());
            assert_eq!(train.last().unwrap() + 1, test[0]);
        }
        assert_eq!(time_ordered(5, 4).unwrap()[3], ((0..4).collect(), vec![4]));
        assert!(time_ordered(5, 0).is_err() && time_ordered(5, 5).is_err());
        assert_eq!(leave_one_out(3).unwrap()[1], (vec![0, 2], vec![1]));
        assert!(leave_one_out(1).is_err());
    }
}
