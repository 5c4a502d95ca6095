//! Soft memberships from squared distances, and how even they are.
//!
//! c_j(x) = exp(−τ (d²_j − min d²)) / Σ_l exp(−τ (d²_l − min d²)); the average evenness AE(τ) of
//! [Lei2016] is the mean numerator. AE(0) = 1, AE never rises with τ, and as τ → ∞ it tends to the
//! mean share of clusters that are nearest: 1/l without ties.

use super::kmeans::nearest;
use crate::{Error, Result, linalg::Matrix};

/// A larger τ could overflow, so the search ends there.
const LARGEST_TAU: f64 = 1e300;
/// Halvings that find τ: more than double precision can tell apart.
const HALVINGS: usize = 200;

/// Memberships of every row of `distances` (squared, up to a constant per row); `None` is τ = ∞:
/// the nearest cluster alone, ties to the first.
pub fn memberships(distances: &Matrix, tau: Option<f64>) -> Matrix {
    let mut out = Matrix::zeros(distances.rows(), distances.cols());
    for i in 0..distances.rows() {
        place(distances.row(i), tau, out.row_mut(i));
    }
    out
}

/// The memberships of one row.
pub(super) fn place(distances: &[f64], tau: Option<f64>, out: &mut [f64]) {
    let closest = nearest(distances);
    let Some(tau) = tau else {
        out.fill(0.0);
        out[closest] = 1.0;
        return;
    };
    out.iter_mut().zip(distances).for_each(|(o, d)| *o = (-tau * (d - distances[closest])).exp());
    let total: f64 = out.iter().sum();
    out.iter_mut().for_each(|o| *o /= total);
}

/// The average evenness AE(τ) of the memberships.
pub fn evenness(distances: &Matrix, tau: f64) -> f64 {
    mean_over_rows(distances, |d, least| (-tau * (d - least)).exp())
}

/// AE(∞), and AE(0) = 1: targets between them can be reached, the first only in the limit.
pub fn evenness_range(distances: &Matrix) -> (f64, f64) {
    (mean_over_rows(distances, |d, least| f64::from(d <= least)), 1.0)
}

fn mean_over_rows(distances: &Matrix, term: impl Fn(f64, f64) -> f64) -> f64 {
    let mut total = 0.0;
    for i in 0..distances.rows() {
        let row = distances.row(i);
        let least = row.iter().copied().fold(f64::INFINITY, f64::min);
        total += row.iter().map(|&d| term(d, least)).sum::<f64>();
    }
    total / distances.data().len() as f64
}

/// The τ with AE(τ) = target, by bisection; `None` means the middle of what can be reached.
pub fn sharpness(distances: &Matrix, target: Option<f64>) -> Result<f64> {
    let (low, high) = evenness_range(distances);
    let target = target.unwrap_or(0.5 * (low + high));
    if target.is_nan() || target > 1.0 || target <= low {
        // With one region, or centres that coincide, every τ gives the same memberships.
        if low == 1.0 && target == 1.0 {
            return Ok(0.0);
        }
        let expected = format!(
            "above {low:.4}, where every row belongs to its nearest region alone (that is \"hard\"), and at most 1"
        );
        return Err(Error::param("evenness", expected, target));
    }
    let (mut left, mut right) = (0.0, 1.0);
    while evenness(distances, right) > target {
        right *= 2.0;
        if right > LARGEST_TAU {
            return Err(Error::param(
                "evenness",
                format!("further above {low:.4}, the limit"),
                target,
            ));
        }
    }
    for _ in 0..HALVINGS {
        let middle = 0.5 * (left + right);
        if evenness(distances, middle) > target { left = middle } else { right = middle }
    }
    Ok(0.5 * (left + right))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distances() -> Matrix {
        Matrix::new(3, 3, vec![0.0, 1.0, 4.0, 2.0, 0.5, 1.0, 3.0, 0.2, 0.1]).unwrap()
    }

    #[test]
    fn bisection_meets_its_target_and_evenness_falls() {
        let d = distances();
        let mut last = 1.0 + 1e-12;
        for target in [1.0, 0.9, 0.6, 0.4, 0.34] {
            let tau = sharpness(&d, Some(target)).unwrap();
            let got = evenness(&d, tau);
            assert!((got - target).abs() < 1e-9 && got < last, "{target}: {got}");
            last = got;
        }
        let c = memberships(&d, Some(2.0));
        assert!((0..3).all(|i| (c.row(i).iter().sum::<f64>() - 1.0).abs() < 1e-15));
        let hard = memberships(&d, None);
        assert_eq!(hard.data(), [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]);
        let far = memberships(&d, Some(1e6));
        assert!(far.data().iter().zip(hard.data()).all(|(a, b)| (a - b).abs() < 1e-15));
    }

    #[test]
    fn targets_out_of_reach_are_refused_with_the_range() {
        let message = sharpness(&distances(), Some(0.3)).unwrap_err().to_string();
        assert!(message.contains("evenness") && message.contains("0.3333"), "{message}");
        // Two centres coincide: nothing below (2 + 2 + 2) / 6 of two-way ties.
        let tied = Matrix::new(2, 3, vec![0.0, 0.0, 1.0, 1.0, 1.0, 2.0]).unwrap();
        assert!((evenness_range(&tied).0 - 2.0 / 3.0).abs() < 1e-15);
        assert!(sharpness(&tied, Some(0.5)).is_err());
        let one = Matrix::new(2, 1, vec![0.3, 0.7]).unwrap();
        assert_eq!(sharpness(&one, None).unwrap(), 0.0);
    }
}
