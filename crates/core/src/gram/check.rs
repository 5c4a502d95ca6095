//! Is a ready-made matrix a kernel matrix at all?

use super::{Factor, lanczos::extreme_eigenvalues};
use crate::{
    Error, Result,
    kernels::Normalize,
    linalg::{Cholesky, Matrix, axpy, dot},
};

/// Up to this many rows a factorisation, which takes n³/3 operations, proves what Lanczos steps suggest.
const PROVEN: usize = 3000;
const POWER_STEPS: usize = 4;
/// Rows and columns compared at a time.
const TILE: usize = 32;

/// Square, finite, symmetric to rounding. Returns the largest absolute entry.
pub fn symmetric(k: &Matrix, name: &str) -> Result<f64> {
    let n = k.rows();
    let at = |i: usize, j: usize| format!("entry ({}, {})", i + 1, j + 1);
    if let Some(p) = k.data().iter().position(|x| !x.is_finite()) {
        return Err(Error::data(
            format!("kernel `{name}`"),
            format!("{} is {}", at(p / n, p % n), k.data()[p]),
            "kernel values must be finite numbers",
        ));
    }
    let largest = k.data().iter().fold(0.0f64, |m, x| m.max(x.abs()));
    // Generous enough for values computed in single precision.
    let differ = |&(i, j): &(usize, usize)| (k[(i, j)] - k[(j, i)]).abs() > 1e-6 * largest;
    // Tile by tile: both sides of a tile stay in the cache.
    let tiles = (0..n).step_by(TILE).flat_map(|first| (0..=first).step_by(TILE).map(move |left| (first, left)));
    for (first, left) in tiles {
        let mut pairs = (first..(first + TILE).min(n)).flat_map(|i| (left..(left + TILE).min(i)).map(move |j| (i, j)));
        if let Some((i, j)) = pairs.find(differ) {
            return Err(Error::data(
                format!("kernel `{name}`"),
                format!("not symmetric: {} is {} but {} is {}", at(i, j), k[(i, j)], at(j, i), k[(j, i)]),
                "a Gram matrix holds k(x_i, x_j) for the training rows in the same order both ways",
            ));
        }
    }
    Ok(largest)
}

/// No eigenvalue below −1e-6 of the largest: what rounding in single precision may leave. A Cholesky factor of K + δI proves that there is
/// none below −δ; only where there is no factor, or where it would take too long, Lanczos steps look for the eigenvalue.
pub fn positive_semidefinite(k: &Matrix, name: &str) -> Result<()> {
    if k.rows() <= PROVEN {
        let largest = largest_eigenvalue(k);
        let mut shifted = k.clone();
        (0..k.rows()).for_each(|i| shifted[(i, i)] += 2e-6 * largest);
        if largest > 0.0 && Cholesky::new(shifted, name).is_ok() {
            return Ok(());
        }
        let (low, high) = extreme_eigenvalues(k);
        let evidence = if low < -1e-6 * high.abs().max(low.abs()) {
            format!("eigenvalue {low:.3e} against the largest {high:.3e}")
        } else if high == 0.0 && low == 0.0 {
            return Ok(());
        } else {
            format!("an eigenvalue is below {:.3e}, the largest is {high:.3e}", -2e-6 * largest)
        };
        return Err(indefinite(name, &evidence));
    }
    let (low, high) = extreme_eigenvalues(k);
    if low < -1e-6 * high.abs().max(low.abs()) {
        return Err(indefinite(name, &format!("eigenvalue {low:.3e} against the largest {high:.3e}")));
    }
    Ok(())
}

/// A matrix that is not positive semidefinite can have a small residual diagonal and still differ from L Lᵀ: compare both on a
/// vector with no structure.
pub fn against_factor(k: &Matrix, factor: &Factor, normalize: Normalize, name: &str) -> Result<()> {
    if normalize == Normalize::Center || normalize == Normalize::Spherical {
        return positive_semidefinite(k, name);
    }
    let n = k.rows();
    let v: Vec<f64> = (0..n).map(|i| 2.0 * (0.5 + i as f64 * 0.618_033_988_749_895).fract() - 1.0).collect();
    let w = factor.project(&v);
    let mut stored = vec![0.0; n];
    factor.times(&w, &mut stored);
    let mut given: Vec<f64> = (0..n).map(|i| dot(k.row(i), &v)).collect();
    // `stored` is scaled; the best multiple of it must explain `given`.
    let ratio = dot(&given, &stored) / dot(&stored, &stored).max(f64::MIN_POSITIVE);
    let size = dot(&given, &given);
    axpy(-ratio, &stored, &mut given);
    if dot(&given, &given) > 1e-8 * size {
        return positive_semidefinite(k, name);
    }
    Ok(())
}

/// From below, by a few steps of the power method: kernels have one that stands out, or many alike, and both are found soon enough.
fn largest_eigenvalue(k: &Matrix) -> f64 {
    let n = k.rows();
    let mut v: Vec<f64> = (0..n).map(|i| 1.0 + (i as f64 * 0.754_877_666).fract()).collect();
    let mut value = 0.0;
    for _ in 0..POWER_STEPS {
        let length = dot(&v, &v).sqrt();
        if length == 0.0 {
            break;
        }
        v.iter_mut().for_each(|x| *x /= length);
        let next: Vec<f64> = (0..n).map(|i| dot(k.row(i), &v)).collect();
        value = dot(&v, &next);
        v = next;
    }
    value
}

/// The error for an indefinite kernel.
pub fn indefinite(name: &str, evidence: &str) -> Error {
    Error::data(
        format!("kernel `{name}`"),
        format!("not positive semidefinite ({evidence})"),
        "it is not a kernel as it stands: set `indefinite` to shift, clip or flip, or use another similarity",
    )
}
