//! How good predictions are. Classes are indices into the target's names; every function checks
//! that lengths agree.

mod interval;
mod metric;

pub use interval::{bootstrap, mean_interval};
pub use metric::Metric;

use crate::{Error, Result, linalg::Matrix};

/// Share of samples whose class is right.
pub fn accuracy(truth: &[usize], predicted: &[usize]) -> Result<f64> {
    check(truth, predicted)?;
    Ok(truth.iter().zip(predicted).filter(|(t, p)| t == p).count() as f64 / truth.len() as f64)
}

/// Mean recall over the classes that occur in `truth`.
pub fn balanced_accuracy(truth: &[usize], predicted: &[usize]) -> Result<f64> {
    let classes = per_class(truth, predicted)?;
    let recalls: Vec<f64> =
        classes.iter().filter(|c| c.truth > 0).map(|c| c.correct as f64 / c.truth as f64).collect();
    Ok(recalls.iter().sum::<f64>() / recalls.len() as f64)
}

/// `table[t][p]`: how many samples of class t were predicted as p.
pub fn confusion(
    truth: &[usize],
    predicted: &[usize],
    n_classes: usize,
) -> Result<Vec<Vec<usize>>> {
    check(truth, predicted)?;
    let mut table = vec![vec![0; n_classes]; n_classes];
    for (&t, &p) in truth.iter().zip(predicted) {
        if t.max(p) >= n_classes {
            return Err(Error::shape("class indices", format!("below {n_classes}"), t.max(p)));
        }
        table[t][p] += 1;
    }
    Ok(table)
}

/// Area under the ROC curve: the chance that a positive's decision value exceeds a negative's, ties
/// counting half.
pub fn auc(positive: &[bool], decision: &[f64]) -> Result<f64> {
    check(positive, decision)?;
    if let Some(i) = decision.iter().position(|d| d.is_nan()) {
        return Err(Error::data(
            "decision values",
            format!("sample {} is NaN", i + 1),
            "the AUC needs an order",
        ));
    }
    let n_positive = positive.iter().filter(|&&p| p).count();
    let n_negative = positive.len() - n_positive;
    if n_positive == 0 || n_negative == 0 {
        let problem = format!("all {} samples are of one class", positive.len());
        return Err(Error::data(
            "AUC",
            problem,
            "it compares positives with negatives: bring samples of both",
        ));
    }
    let mut order: Vec<usize> = (0..decision.len()).collect();
    order.sort_by(|&i, &j| decision[i].total_cmp(&decision[j]));
    let (mut rank_sum, mut below) = (0.0, 0);
    for tied in order.chunk_by(|&i, &j| decision[i] == decision[j]) {
        let mid_rank = below as f64 + (tied.len() + 1) as f64 / 2.0;
        rank_sum += mid_rank * tied.iter().filter(|&&i| positive[i]).count() as f64;
        below += tied.len();
    }
    let (p, n) = (n_positive as f64, n_negative as f64);
    Ok((rank_sum - p * (p + 1.0) / 2.0) / (p * n))
}

/// Matthews correlation, for any number of classes; 0 where it is undefined (one class only on
/// either side).
pub fn mcc(truth: &[usize], predicted: &[usize]) -> Result<f64> {
    let classes = per_class(truth, predicted)?;
    let sum = |f: fn(&Class) -> f64| classes.iter().map(f).sum::<f64>();
    let n = truth.len() as f64;
    let covariance = n * sum(|c| c.correct as f64) - sum(|c| c.truth as f64 * c.predicted as f64);
    let variances = (n * n - sum(|c| (c.truth as f64).powi(2)))
        * (n * n - sum(|c| (c.predicted as f64).powi(2)));
    Ok(if variances == 0.0 { 0.0 } else { covariance / variances.sqrt() })
}

/// F1 of one class; 0 where it neither occurs nor is predicted.
pub fn f1(truth: &[usize], predicted: &[usize], positive: usize) -> Result<f64> {
    let classes = per_class(truth, predicted)?;
    Ok(classes.get(positive).map_or(0.0, Class::f1))
}

/// Mean F1 over the classes that occur in `truth` or `predicted`.
pub fn macro_f1(truth: &[usize], predicted: &[usize]) -> Result<f64> {
    let classes = per_class(truth, predicted)?;
    let scores: Vec<f64> =
        classes.iter().filter(|c| c.truth + c.predicted > 0).map(Class::f1).collect();
    Ok(scores.iter().sum::<f64>() / scores.len() as f64)
}

/// F1 from the counts of all classes together. Where every sample has one class this is the
/// accuracy, and it is here for that reason.
pub fn micro_f1(truth: &[usize], predicted: &[usize]) -> Result<f64> {
    let classes = per_class(truth, predicted)?;
    let sum = |f: fn(&Class) -> usize| classes.iter().map(f).sum::<usize>() as f64;
    Ok(2.0 * sum(|c| c.correct) / (sum(|c| c.truth) + sum(|c| c.predicted)))
}

/// Mean cost of an error: `c1` for a positive that was missed, `c2` for anything else taken for a
/// positive, and 1 for classes other than `positive` mistaken for each other.
pub fn cost(
    truth: &[usize],
    predicted: &[usize],
    positive: usize,
    (c1, c2): (f64, f64),
) -> Result<f64> {
    check(truth, predicted)?;
    let cost = |(&t, &p): (&usize, &usize)| match (t == p, t == positive, p == positive) {
        (true, ..) => 0.0,
        (_, true, _) => c1,
        (_, _, true) => c2,
        _ => 1.0,
    };
    Ok(truth.iter().zip(predicted).map(cost).sum::<f64>() / truth.len() as f64)
}

/// Mean −log of the probability given to the true class, a column per class; probabilities below
/// 10⁻¹⁵ count as that.
pub fn log_loss(truth: &[usize], probabilities: &Matrix) -> Result<f64> {
    if truth.len() != probabilities.rows() || truth.iter().any(|t| *t >= probabilities.cols()) {
        let got = format!("({}, {})", probabilities.rows(), probabilities.cols());
        return Err(Error::shape("probabilities", format!("({}, classes)", truth.len()), got));
    }
    check(truth, truth)?;
    let cost = |(i, &t): (usize, &usize)| -probabilities[(i, t)].max(1e-15).ln();
    Ok(truth.iter().enumerate().map(cost).sum::<f64>() / truth.len() as f64)
}

/// Root of the mean squared error.
pub fn rmse(truth: &[f64], predicted: &[f64]) -> Result<f64> {
    mean(truth, predicted, |t, p| (t - p).powi(2)).map(f64::sqrt)
}

/// The mean absolute error, in units of the target.
pub fn mae(truth: &[f64], predicted: &[f64]) -> Result<f64> {
    mean(truth, predicted, |t, p| (t - p).abs())
}

/// 1 − [`nmse`]: the share of the variance that is explained.
pub fn r2(truth: &[f64], predicted: &[f64]) -> Result<f64> {
    nmse(truth, predicted).map(|e| 1.0 - e)
}

/// Mean squared error over the variance of `truth`: 1 is what the mean achieves.
pub fn nmse(truth: &[f64], predicted: &[f64]) -> Result<f64> {
    let error = mean(truth, predicted, |t, p| (t - p).powi(2))?;
    let center = truth.iter().sum::<f64>() / truth.len() as f64;
    let variance = mean(truth, truth, |t, _| (t - center).powi(2))?;
    // A constant's mean may be off by a rounding error, so its variance need not be an exact zero.
    if variance <= (f64::EPSILON * center).powi(2) * truth.len() as f64 {
        let problem = format!("all {} values are equal", truth.len());
        return Err(Error::data(
            "true values",
            problem,
            "an error relative to their variance needs some: use rmse",
        ));
    }
    Ok(error / variance)
}

/// How often one class occurs in the truth, in the predictions, and in both at once.
#[derive(Debug, Clone, Default)]
struct Class {
    truth: usize,
    predicted: usize,
    correct: usize,
}

impl Class {
    fn f1(&self) -> f64 {
        2.0 * self.correct as f64 / (self.truth + self.predicted).max(1) as f64
    }
}

fn per_class(truth: &[usize], predicted: &[usize]) -> Result<Vec<Class>> {
    check(truth, predicted)?;
    let n_classes = truth.iter().chain(predicted).max().map_or(0, |c| c + 1);
    let mut classes = vec![Class::default(); n_classes];
    for (&t, &p) in truth.iter().zip(predicted) {
        classes[t].truth += 1;
        classes[p].predicted += 1;
        classes[t].correct += usize::from(t == p);
    }
    Ok(classes)
}

fn check<A, B>(truth: &[A], predicted: &[B]) -> Result<()> {
    if truth.len() != predicted.len() {
        return Err(Error::shape("predictions", truth.len(), predicted.len()));
    }
    if truth.is_empty() { Err(Error::shape("samples to score", "at least 1", 0)) } else { Ok(()) }
}

fn mean(truth: &[f64], predicted: &[f64], loss: impl Fn(f64, f64) -> f64) -> Result<f64> {
    check(truth, predicted)?;
    Ok(truth.iter().zip(predicted).map(|(&t, &p)| loss(t, p)).sum::<f64>() / truth.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRUTH: [usize; 8] = [0, 0, 0, 0, 0, 1, 1, 2];
    const GUESS: [usize; 8] = [0, 0, 0, 1, 2, 1, 0, 2];

    fn close(a: Result<f64>, b: f64) {
        let a = a.unwrap();
        assert!((a - b).abs() < 1e-12, "{a} {b}");
    }

    #[test]
    fn class_scores_by_hand() {
        close(accuracy(&TRUTH, &GUESS), 5.0 / 8.0);
        close(balanced_accuracy(&TRUTH, &GUESS), (3.0 / 5.0 + 1.0 / 2.0 + 1.0) / 3.0);
        assert_eq!(confusion(&TRUTH, &GUESS, 3).unwrap(), [[3, 1, 1], [1, 1, 0], [0, 0, 1]]);
        close(f1(&TRUTH, &GUESS, 0), 6.0 / 9.0);
        close(f1(&TRUTH, &GUESS, 7), 0.0);
        close(macro_f1(&TRUTH, &GUESS), (6.0 / 9.0 + 2.0 / 4.0 + 2.0 / 3.0) / 3.0);
        close(micro_f1(&TRUTH, &GUESS), 5.0 / 8.0);
        // One 1 missed (c1), one 0 taken for a 1 (c2), one 0 for a 2.
        close(cost(&TRUTH, &GUESS, 1, (4.0, 10.0)), 15.0 / 8.0);
        let p = Matrix::new(2, 2, vec![0.25, 0.75, 1.0, 0.0]).unwrap();
        close(log_loss(&[1, 1], &p), -(0.75f64.ln() + 1e-15f64.ln()) / 2.0);
        assert!(log_loss(&[2, 0], &p).is_err() && log_loss(&[0], &p).is_err());
        // (8·5 − (5·4 + 2·2 + 1·2)) / √((64 − 30)(64 − 24))
        close(mcc(&TRUTH, &GUESS), 14.0 / (34.0 * 40.0f64).sqrt());
        // Two classes: (TP·TN − FP·FN) / √(…), here TP 1, TN 2, FP 1, FN 1.
        close(mcc(&[0, 0, 0, 1, 1], &[0, 0, 1, 1, 0]), 1.0 / 6.0);
        close(mcc(&[0, 1], &[1, 1]), 0.0);
        // A class that was never there does not count.
        close(balanced_accuracy(&[0, 3], &[0, 3]), 1.0);
        close(macro_f1(&[0, 3], &[0, 3]), 1.0);
    }

    #[test]
    fn auc_counts_pairs_and_ties_half() {
        let positive = [true, false, true, false, false, true];
        let decision = [0.5, 0.5, 2.0, -1.0, 0.7, -1.0];
        let mut wins = 0.0;
        for i in 0..6 {
            for j in (0..6).filter(|&j| positive[i] && !positive[j]) {
                wins += if decision[i] > decision[j] {
                    1.0
                } else {
                    0.5 * f64::from(decision[i] == decision[j])
                };
            }
        }
        close(auc(&positive, &decision), wins / 9.0);
        close(auc(&[true, false], &[0.0, -0.0]), 0.5);
        assert!(auc(&[true, true], &[1.0, 2.0]).unwrap_err().to_string().contains("one class"));
        assert!(auc(&[true, false], &[f64::NAN, 2.0]).is_err());
    }

    #[test]
    fn value_scores_by_hand() {
        let (y, f) = ([1.0, 2.0, 3.0, 6.0], [1.0, 1.0, 5.0, 6.0]);
        close(rmse(&y, &f), (5.0f64 / 4.0).sqrt());
        close(mae(&y, &f), 3.0 / 4.0);
        close(nmse(&y, &f), 5.0 / 14.0);
        close(r2(&y, &f), 9.0 / 14.0);
        assert!(r2(&[0.1; 3], &[0.0; 3]).is_err());
    }

    #[test]
    fn lengths_are_checked() {
        assert!(accuracy(&[0], &[0, 1]).is_err() && accuracy(&[], &[]).is_err());
        assert!(
            rmse(&[], &[]).is_err() && auc(&[], &[]).is_err() && confusion(&[0], &[2], 2).is_err()
        );
    }
}
