//! How sure a measured number is.

use crate::data::Rng;

/// The 95 % percentile interval of `statistic` over `draws` resamples of `n` rows with replacement;
/// resamples on which it is undefined are left out, and `None` is the answer where half of them
/// are.
pub fn bootstrap(
    n: usize,
    draws: usize,
    seed: u64,
    statistic: impl Fn(&[usize]) -> Option<f64>,
) -> Option<(f64, f64)> {
    let mut rng = Rng::new(seed);
    let mut values: Vec<f64> = (0..if n == 0 { 0 } else { draws })
        .filter_map(|_| statistic(&(0..n).map(|_| rng.below(n)).collect::<Vec<_>>()))
        .filter(|v| v.is_finite())
        .collect();
    if values.is_empty() || 2 * values.len() < draws {
        return None;
    }
    values.sort_by(f64::total_cmp);
    let at = |q: f64| values[((values.len() - 1) as f64 * q).round() as usize];
    Some((at(0.025), at(0.975)))
}

/// The 95 % percentile bootstrap interval of the mean of `values`, one per fold or repeat; `None`
/// for fewer than three.
pub fn mean_interval(values: &[f64], seed: u64) -> Option<(f64, f64)> {
    if values.len() < 3 {
        return None;
    }
    let mean =
        |index: &[usize]| Some(index.iter().map(|&i| values[i]).sum::<f64>() / index.len() as f64);
    bootstrap(values.len(), 2000, seed, mean)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_of_a_mean_holds_it_and_shrinks_with_the_sample() {
        let values: Vec<f64> = (0..400).map(|i| f64::from(i % 20)).collect();
        let width = |n: usize| mean_interval(&values[..n], 1).map(|(a, b)| b - a).unwrap();
        let (low, high) = mean_interval(&values, 1).unwrap();
        assert!(low < 9.5 && 9.5 < high);
        // 1.96 · 5.77 / 20
        assert!((high - low - 2.0 * 0.565).abs() < 0.15, "{low} {high}");
        assert!(width(40) > 2.0 * width(400));
        assert_eq!(mean_interval(&values, 1), mean_interval(&values, 1));
        assert_eq!(mean_interval(&[1.0, 2.0], 1), None);
        assert_eq!(bootstrap(5, 100, 0, |_| None), None);
    }
}
