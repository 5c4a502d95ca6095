//! Is a difference real? Paired tests over the same splits.
//!
//! Splits of one data set share rows, so their differences are not independent and the plain t-test
//! finds too much. The corrected resampled t-test ([Nadeau2003]) replaces the variance of the mean,
//! s²/k, by s² (1/k + n_test/n_train).

use serde::{Deserialize, Serialize};

/// One method against another over the same splits.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Paired {
    /// Mean difference of the metric, the first less the second.
    pub difference: f64,
    /// 95 % interval of the difference by the corrected variance; `None` for fewer than two splits.
    pub interval: Option<(f64, f64)>,
    /// p of the paired t-test, two-sided.
    pub t_test: Option<f64>,
    /// p of Wilcoxon's signed-rank test, two-sided.
    pub wilcoxon: Option<f64>,
    /// p of the corrected resampled t-test, two-sided: the one verdicts rest on.
    pub corrected: Option<f64>,
}

/// All tests of `a` against `b`; `ratio` is n_test/n_train.
pub fn paired(a: &[f64], b: &[f64], ratio: f64) -> Paired {
    let d: Vec<f64> = a.iter().zip(b).map(|(x, y)| x - y).collect();
    let k = d.len() as f64;
    let difference = d.iter().sum::<f64>() / k;
    if d.len() < 2 {
        return Paired {
            difference,
            interval: None,
            t_test: None,
            wilcoxon: None,
            corrected: None,
        };
    }
    let variance = d.iter().map(|x| (x - difference).powi(2)).sum::<f64>() / (k - 1.0);
    let p = |error: f64| {
        if error > 0.0 {
            2.0 * student_tail(difference.abs() / error, k - 1.0)
        } else if difference == 0.0 {
            1.0
        } else {
            // The same difference on every split: its spread says nothing, so all that is left is
            // that every sign agrees.
            2f64.powf(1.0 - k)
        }
    };
    let (plain, corrected) = ((variance / k).sqrt(), (variance * (1.0 / k + ratio)).sqrt());
    let half = student_quantile(0.975, k - 1.0) * corrected;
    Paired {
        difference,
        interval: Some((difference - half, difference + half)),
        t_test: Some(p(plain)),
        wilcoxon: Some(wilcoxon(&d)),
        corrected: Some(p(corrected)),
    }
}

/// Holm's adjustment: p values that may be compared with 5 % although several were looked at.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&i, &j| p[i].total_cmp(&p[j]));
    let (mut out, mut last) = (vec![1.0; p.len()], 0.0f64);
    for (rank, &i) in order.iter().enumerate() {
        last = last.max((p[i] * (p.len() - rank) as f64).min(1.0));
        out[i] = last;
    }
    out
}

/// Two-sided p of the signed-rank test: exact for up to 25 differences without ties, the normal
/// approximation with corrections for ties and continuity otherwise. Zero differences are left out.
fn wilcoxon(differences: &[f64]) -> f64 {
    let mut d: Vec<f64> = differences.iter().copied().filter(|x| *x != 0.0).collect();
    let n = d.len();
    if n == 0 {
        return 1.0;
    }
    d.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
    let (mut positive, mut below, mut ties) = (0.0, 0usize, 0.0);
    for tied in d.chunk_by(|a, b| a.abs() == b.abs()) {
        let size = tied.len() as f64;
        let rank = below as f64 + f64::midpoint(size, 1.0);
        positive += rank * tied.iter().filter(|x| **x > 0.0).count() as f64;
        below += tied.len();
        ties += size * size * size - size;
    }
    let total = (n * (n + 1) / 2) as f64;
    let smaller = positive.min(total - positive);
    if n <= 25 && ties == 0.0 {
        // Ways to reach each sum of ranks.
        let mut ways = vec![0.0f64; n * (n + 1) / 2 + 1];
        ways[0] = 1.0;
        for rank in 1..=n {
            for sum in (rank..ways.len()).rev() {
                ways[sum] += ways[sum - rank];
            }
        }
        let tail: f64 = ways[..=smaller as usize].iter().sum();
        return (2.0 * tail / 2f64.powf(n as f64)).min(1.0);
    }
    let m = n as f64;
    let variance = m * (m + 1.0) * (2.0 * m + 1.0) / 24.0 - ties / 48.0;
    if variance <= 0.0 {
        return 1.0;
    }
    let z = ((total / 2.0 - smaller - 0.5).max(0.0)) / variance.sqrt();
    // A normal is a Student with very many degrees of freedom.
    (2.0 * student_tail(z, 1e8)).min(1.0)
}

/// P(T > t) for t ≥ 0: half the incomplete beta function at df/(df + t²).
fn student_tail(t: f64, df: f64) -> f64 {
    0.5 * incomplete_beta(df / (df + t * t), 0.5 * df, 0.5)
}

/// The t with P(T ≤ t) = p, for p ≥ ½, by bisection.
pub(super) fn student_quantile(p: f64, df: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    while student_tail(high, df) > 1.0 - p && high < 1e12 {
        high *= 2.0;
    }
    for _ in 0..200 {
        let middle = f64::midpoint(low, high);
        if student_tail(middle, df) > 1.0 - p { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

/// Regularised I_x(a, b), by the continued fraction of its series (Lentz's way of evaluating it).
fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    // The fraction converges fast below the mean only.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(1.0 - x, b, a);
    }
    let front =
        (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (-x).ln_1p()).exp() / a;
    let tiny = 1e-300;
    let safe = |v: f64| if v.abs() < tiny { tiny } else { v };
    let (mut c, mut d) = (1.0, 1.0 / safe(1.0 - (a + b) * x / (a + 1.0)));
    let mut sum = d;
    for m in 1..10_000 {
        let m = f64::from(m);
        for numerator in [
            m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0)),
        ] {
            d = 1.0 / safe(1.0 + numerator * d);
            c = safe(1.0 + numerator / c);
            sum *= c * d;
        }
        if (c * d - 1.0).abs() < 1e-15 {
            break;
        }
    }
    (front * sum).clamp(0.0, 1.0)
}

/// ln Γ(x), x > 0: Stirling's series after moving x above 15.
fn ln_gamma(x: f64) -> f64 {
    let (mut x, mut shift) = (x, 0.0);
    while x < 15.0 {
        shift += x.ln();
        x += 1.0;
    }
    let i = 1.0 / (x * x);
    let series =
        (1.0 / 12.0 - i * (1.0 / 360.0 - i * (1.0 / 1260.0 - i * (1.0 / 1680.0 - i / 1188.0)))) / x;
    (x - 0.5) * x.ln() - x + 0.5 * std::f64::consts::TAU.ln() + series - shift
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64, tol: f64) {
        assert!((a - b).abs() <= tol * b.abs().max(1e-12), "{a} {b}");
    }

    #[test]
    fn student_and_gamma_meet_closed_forms() {
        close(ln_gamma(0.5), std::f64::consts::PI.sqrt().ln(), 1e-13);
        close(ln_gamma(6.0), 120f64.ln(), 1e-13);
        for t in [0.0, 0.3, 1.0, 4.0, 50.0] {
            // One degree of freedom is Cauchy's law, two has a closed form.
            close(student_tail(t, 1.0), 0.5 - f64::atan(t) / std::f64::consts::PI, 1e-10);
            close(student_tail(t, 2.0), 0.5 * (1.0 - t / (2.0 + t * t).sqrt()), 1e-9);
        }
        // The familiar table value for 19 degrees of freedom, and the normal's.
        close(student_quantile(0.975, 19.0), 2.093_024, 1e-6);
        close(student_quantile(0.975, 1e8), 1.959_964, 1e-5);
    }

    #[test]
    fn tests_by_hand() {
        let (a, b) = ([0.80, 0.82, 0.79, 0.85, 0.81], [0.78, 0.79, 0.80, 0.80, 0.77]);
        let found = paired(&a, &b, 1.0);
        // d = 2, 3, −1, 5, 4 hundredths: mean 2.6, variance 5.3.
        close(found.difference, 0.026, 1e-10);
        let t = 2.6 / (5.3f64 / 5.0).sqrt();
        close(found.t_test.unwrap(), 2.0 * student_tail(t, 4.0), 1e-9);
        let corrected = 2.6 / (5.3f64 * (0.2 + 1.0)).sqrt();
        close(found.corrected.unwrap(), 2.0 * student_tail(corrected, 4.0), 1e-9);
        // Rank sums 14 and 1: of 32 signs, 2 have a sum of at most 1.
        close(found.wilcoxon.unwrap(), 2.0 * 2.0 / 32.0, 1e-12);
        assert!(found.corrected > found.t_test);
        let (low, high) = found.interval.unwrap();
        assert!(low < 0.0 && high > 0.026);
        assert_eq!(paired(&a, &a, 0.5).corrected, Some(1.0));
        assert_eq!(paired(&[2.0, 3.0], &[1.0, 2.0], 0.5).corrected, Some(0.5));
        assert_eq!(paired(&a[..1], &b[..1], 0.5).t_test, None);
    }

    #[test]
    fn the_exact_and_the_approximate_signed_rank_test_agree() {
        let d: Vec<f64> =
            (1..=25).map(|i| f64::from(i) * if i % 3 == 0 { -1.0 } else { 1.0 }).collect();
        // Negative ranks 3, 6, …, 24 sum to 108 of 325; the normal law has mean 162.5 and variance
        // 25·26·51/24.
        let z = (162.5 - 108.0 - 0.5) / (25.0f64 * 26.0 * 51.0 / 24.0).sqrt();
        assert!((wilcoxon(&d) - 2.0 * student_tail(z, 1e8)).abs() < 3e-3, "{}", wilcoxon(&d));
        // Ties take the approximation: doubling every difference keeps the share of signs and
        // sharpens the answer.
        assert!(wilcoxon(&[d.as_slice(), &d].concat()) < wilcoxon(&d));
        assert_eq!(wilcoxon(&[0.0, 0.0]), 1.0);
    }

    #[test]
    fn holm_is_monotone_and_bounded() {
        let adjusted = holm(&[0.01, 0.04, 0.03, 0.5]);
        for (got, want) in adjusted.iter().zip([0.04, 0.09, 0.09, 0.5]) {
            close(*got, want, 1e-12);
        }
    }
}
