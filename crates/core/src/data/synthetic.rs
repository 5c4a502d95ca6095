//! Made-up data with a known answer; the same seed gives the same rows everywhere.

use std::f64::consts::{PI, TAU};

use super::{Dataset, Rng, Target};
use crate::{Error, Result, linalg::Matrix};

/// Toy 1 of the GMKL paper, eq. 28: y = sign(f₁(x₁) + f₁(x₂) + f₁(x₃) + N(0,1)), x uniform in the
/// unit cube of 20 dimensions. 17 features say nothing.
pub fn toy1(n: usize, seed: u64) -> (Dataset, Target) {
    toy(n, seed, |x| x[..3].iter().map(|&a| f1(a)).sum())
}

/// Toy 2 of the GMKL paper, eq. 29: f₁ on features 1–3, f₂ on 4–6, f₃ on 7–9, f₄ on 10–12, noise as
/// in [`toy1`].
pub fn toy2(n: usize, seed: u64) -> (Dataset, Target) {
    toy(n, seed, |x| {
        x.chunks(3).zip([f1, f2, f3, f4]).map(|(x, f)| x.iter().map(|&a| f(a)).sum::<f64>()).sum()
    })
}

/// Four Gaussians in the plane, two per class (GLMKL paper, §4.1); row i comes from component i mod
/// 4.
pub fn four_gaussians(n: usize, seed: u64) -> (Dataset, Target) {
    const COMPONENTS: [([f64; 2], [f64; 2], usize); 4] = [
        ([-1.0, 1.0], [0.8, 4.0], 1),
        ([3.0, 1.0], [0.8, 4.0], 1),
        ([-3.0, -3.0], [0.8, 2.0], 0),
        ([1.0, -3.0], [0.8, 2.0], 0),
    ];
    let mut rng = Rng::new(seed);
    let (rows, labels): (Vec<_>, _) = (0..n.max(1))
        .map(|i| {
            let (mean, variance, class) = COMPONENTS[i % 4];
            ([0, 1].map(|j| mean[j] + variance[j].sqrt() * rng.normal()), class)
        })
        .unzip();
    (drawn(&rows), plus_minus(labels))
}

/// Hidden subgroups, for veto–consensus: "1" lies uniformly inside a regular polygon of inradius 1
/// around the origin, "-1" outside, up to 1 beyond one of its sides; then every coordinate moves by
/// `noise`·N(0,1).
///
/// Rows alternate between the classes and negatives go round the sides. The third part is the side
/// each negative violates most (before the noise): side m faces the angle 2πm/sides.
pub fn polygon(
    n: usize,
    sides: usize,
    noise: f64,
    seed: u64,
) -> Result<(Dataset, Target, Vec<Option<usize>>)> {
    if sides < 3 {
        return Err(Error::param("sides", "at least 3", sides));
    }
    check_noise(noise)?;
    let mut rng = Rng::new(seed);
    let step = TAU / sides as f64;
    let half_side = (step / 2.0).tan();
    let (mut rows, mut labels, mut hidden) = (Vec::new(), Vec::new(), Vec::new());
    for i in 0..n.max(1) {
        let positive = i % 2 == 0;
        let side = if positive { rng.below(sides) } else { i / 2 % sides };
        // The polygon is a fan of equal triangles, one per side: height h has density ∝ h inside.
        // Beyond the side, the sector between the same two rays holds the points that violate it
        // most.
        let height = if positive { rng.uniform().sqrt() } else { 2.0 - rng.uniform() };
        let along = height * half_side * (2.0 * rng.uniform() - 1.0);
        let (sin, cos) = (step * side as f64).sin_cos();
        rows.push(
            [height * cos - along * sin, height * sin + along * cos]
                .map(|x| x + noise * rng.normal()),
        );
        labels.push(usize::from(positive));
        hidden.push((!positive).then_some(side));
    }
    let data = Dataset::new(matrix(&rows), Vec::new())?;
    Ok((data, plus_minus(labels), hidden))
}

/// Regression: y = sin(πx₁)/(πx₁) + ½x₂² + `noise`·N(0,1), x₁ … x₅ uniform between -3 and 3; three
/// features say nothing.
pub fn sinc(n: usize, noise: f64, seed: u64) -> Result<(Dataset, Target)> {
    check_noise(noise)?;
    let mut rng = Rng::new(seed);
    let (rows, values): (Vec<_>, _) = (0..n.max(1))
        .map(|_| {
            let x: [f64; 5] = std::array::from_fn(|_| 6.0 * rng.uniform() - 3.0);
            let a = PI * x[0];
            let wave = if a == 0.0 { 1.0 } else { a.sin() / a };
            (x, wave + 0.5 * x[1] * x[1] + noise * rng.normal())
        })
        .unzip();
    Ok((drawn(&rows), Target::Values(values)))
}

fn f1(a: f64) -> f64 {
    -2.0 * (2.0 * a).sin() + 1.0 - 2f64.cos()
}

fn f2(a: f64) -> f64 {
    a * a - 1.0 / 3.0
}

fn f3(a: f64) -> f64 {
    a - 0.5
}

fn f4(a: f64) -> f64 {
    (-a).exp() + (-1f64).exp() - 1.0
}

fn toy(n: usize, seed: u64, signal: impl Fn(&[f64; 20]) -> f64) -> (Dataset, Target) {
    let mut rng = Rng::new(seed);
    let (rows, labels): (Vec<_>, _) = (0..n.max(1))
        .map(|_| {
            let x: [f64; 20] = std::array::from_fn(|_| rng.uniform());
            (x, usize::from(signal(&x) + rng.normal() > 0.0))
        })
        .unzip();
    (drawn(&rows), plus_minus(labels))
}

fn check_noise(noise: f64) -> Result<()> {
    if noise.is_finite() && noise >= 0.0 {
        Ok(())
    } else {
        Err(Error::param("noise", "finite and not negative", noise))
    }
}

/// Both classes are named even where one was never drawn.
fn plus_minus(labels: Vec<usize>) -> Target {
    Target::Classes { names: vec!["-1".into(), "1".into()], labels }
}

fn matrix<const D: usize>(rows: &[[f64; D]]) -> Matrix {
    let mut out = Matrix::zeros(rows.len(), D);
    out.data_mut().copy_from_slice(rows.as_flattened());
    out
}

fn drawn<const D: usize>(rows: &[[f64; D]]) -> Dataset {
    match Dataset::new(matrix(rows), Vec::new()) {
        Ok(data) => data,
        // Callers draw at least one row, and every draw of `Rng` is finite.
        Err(e) => unreachable!("{e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn toy_functions_have_mean_0() {
        for (k, f) in [f1, f2, f3, f4].iter().enumerate() {
            // Midpoint rule with 10⁴ cells: error below max|f''|/24·10⁻⁸ < 10⁻⁷.
            let mean = (0..10_000).map(|i| f((f64::from(i) + 0.5) / 1e4)).sum::<f64>() / 1e4;
            assert!(mean.abs() < 1e-7, "f{}: {mean}", k + 1);
        }
    }

    #[test]
    fn toys_are_balanced_and_only_the_named_features_matter() {
        for (data, target) in [toy1(4000, 1), toy2(4000, 1)] {
            let Target::Classes { labels, names } = target else { panic!() };
            assert_eq!(
                (names, data.columns()[19].as_str()),
                (vec!["-1".to_string(), "1".to_string()], "x20")
            );
            let correlation = |j: usize| {
                let x = data.features().column(j);
                let cov: f64 =
                    x.iter().zip(&labels).map(|(x, &y)| (x - 0.5) * (2.0 * y as f64 - 1.0)).sum();
                cov / 4000.0 * 12f64.sqrt()
            };
            assert!((labels.iter().sum::<usize>() as f64 / 4000.0 - 0.5).abs() < 0.05);
            // f₁ falls over [0,1]; a correlation of nothing has deviation 1/√4000 = 0.016.
            assert!(correlation(0) < -0.1 && correlation(2) < -0.1);
            assert!((12..20).all(|j| correlation(j).abs() < 0.07));
        }
        assert_eq!(toy1(5, 3), toy1(5, 3));
        assert_ne!(toy1(5, 3).0, toy1(5, 4).0);
    }

    #[test]
    fn four_gaussians_have_their_moments() {
        let (data, target) = four_gaussians(8000, 2);
        let rows: Vec<usize> = (0..8000).filter(|i| i % 4 == 2).collect();
        assert_eq!(target.select(&rows[..2]), plus_minus(vec![0, 0]));
        let y = data.select(&rows).features().column(1);
        let mean = y.iter().sum::<f64>() / 2000.0;
        let var = y.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / 2000.0;
        assert!((mean + 3.0).abs() < 0.15 && (var - 2.0).abs() < 0.3, "{mean} {var}");
    }

    #[test]
    fn polygon_negatives_violate_their_side_most_and_positives_none() {
        for sides in [3, 4, 7] {
            let (data, target, hidden) = polygon(600, sides, 0.0, 5).unwrap();
            let Target::Classes { labels, .. } = target else { panic!() };
            for i in 0..600 {
                let x = data.features().row(i);
                let excess = |m: usize| {
                    let (sin, cos) = (TAU * m as f64 / sides as f64).sin_cos();
                    cos * x[0] + sin * x[1] - 1.0
                };
                let worst = (0..sides).max_by(|&a, &b| excess(a).total_cmp(&excess(b))).unwrap();
                match hidden[i] {
                    Some(side) => assert!(labels[i] == 0 && side == worst && excess(side) > 0.0),
                    None => assert!(labels[i] == 1 && excess(worst) <= 1e-12),
                }
            }
        }
        assert!(polygon(10, 2, 0.0, 0).is_err() && polygon(10, 3, f64::NAN, 0).is_err());
    }

    #[test]
    fn sinc_without_noise_is_its_formula() {
        let (data, target) = sinc(50, 0.0, 1).unwrap();
        let Target::Values(y) = target else { panic!() };
        for i in 0..50 {
            let x = data.features().row(i);
            assert!(x.len() == 5 && x.iter().all(|v| v.abs() <= 3.0));
            assert_eq!(y[i], (PI * x[0]).sin() / (PI * x[0]) + 0.5 * x[1] * x[1]);
        }
        assert!(sinc(5, -1.0, 0).is_err());
    }
}
