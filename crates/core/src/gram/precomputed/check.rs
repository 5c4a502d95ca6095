//! Checks that a precomputed matrix is a kernel matrix: finite, symmetric and positive
//! semidefinite.

use super::{
    super::{Factor, dense::Packed},
    lanczos::extreme_eigenvalues_of,
};
use crate::{
    Error, Result, Told,
    linalg::{Cholesky, Matrix, axpy, dot},
    tuning::tuning,
};

tuning! { "check"
    /// Largest number of rows at which a factorisation, of n³/3 operations, proves what Lanczos
    /// steps only suggest.
    proven_rows: usize = 3000;
    /// Steps of the power method that estimate the largest eigenvalue: kernels have one that stands
    /// out, or many alike, and both are found soon enough.
    power_steps: usize = 4;
    /// Side of the square tiles in which the two triangles are compared: two tiles fit the fastest
    /// cache.
    tile_rows: usize = 32;
}

/// An eigenvalue may be negative down to this share of the largest: what rounding in single
/// precision may leave.
const NEGATIVE_SHARE: f64 = 1e-6;
/// The shift δ of a proof, as a share of an estimate of the largest eigenvalue from below: twice
/// what may be negative.
const SHIFT: f64 = 2.0 * NEGATIVE_SHARE;

/// How far apart both sides of the diagonal may be, as a share of the largest entry: generous
/// enough for values computed in single precision.
pub const APART: f64 = 1e-6;

/// Refuses a matrix that is not finite or not symmetric to rounding; returns the largest absolute
/// entry.
pub fn symmetric(k: &Matrix, name: &str) -> Result<f64> {
    let n = k.rows();
    let at = |told: Told, i: usize, j: usize| {
        told.and("entry (").and_row(i).and(", ").and_row(j).and(")")
    };
    if let Some(p) = k.data().iter().position(|x| !x.is_finite()) {
        return Err(Error::data(
            format!("kernel `{name}`"),
            at("".into(), p / n, p % n).and(format!(" is {}", k.data()[p])),
            "kernel values must be finite numbers",
        ));
    }
    let largest = k.data().iter().fold(0.0f64, |m, x| m.max(x.abs()));
    let differ = |&(i, j): &(usize, usize)| (k[(i, j)] - k[(j, i)]).abs() > APART * largest;
    // Tile by tile: both sides of a tile stay in the cache.
    let tiles = (0..n)
        .step_by(TUNING.tile_rows)
        .flat_map(|first| (0..=first).step_by(TUNING.tile_rows).map(move |left| (first, left)));
    for (first, left) in tiles {
        let mut pairs = (first..(first + TUNING.tile_rows).min(n))
            .flat_map(|i| (left..(left + TUNING.tile_rows).min(i)).map(move |j| (i, j)));
        if let Some((i, j)) = pairs.find(differ) {
            let one = at("not symmetric: ".into(), i, j).and(format!(" is {} but ", k[(i, j)]));
            return Err(Error::data(
                format!("kernel `{name}`"),
                at(one, j, i).and(format!(" is {}", k[(j, i)])),
                "a Gram matrix holds k(x_i, x_j) for the training rows in the same order both ways",
            ));
        }
    }
    Ok(largest)
}

/// Refuses a matrix with an eigenvalue below −[`NEGATIVE_SHARE`] of the largest. A Cholesky factor
/// of K + δI proves that there is none below −δ; only where there is no such factor, or where it
/// would take too long, Lanczos steps look for the eigenvalue. `scratch` is memory to work in.
pub fn positive_semidefinite(k: &Packed<f64>, name: &str, scratch: &mut Matrix) -> Result<()> {
    if k.n() <= TUNING.proven_rows {
        // Most need no more than a smaller δ, known sooner: little of it in the factor, so that a
        // low rank shows, and the rest as slack.
        let shift = SHIFT * easy_eigenvalue(k);
        if shift > 0.0 && proven(k, 1e-3 * shift, 0.999 * shift, scratch) {
            return Ok(());
        }
        let largest = largest_eigenvalue(k);
        if largest > 0.0 && proven(k, SHIFT * largest, 0.0, scratch) {
            return Ok(());
        }
        let (low, high) = extreme_eigenvalues_of(k.n(), |v, out| k.apply(v, out));
        let evidence = if low < -NEGATIVE_SHARE * high.abs().max(low.abs()) {
            format!("eigenvalue {low:.3e} against the largest {high:.3e}")
        } else if high == 0.0 && low == 0.0 {
            return Ok(());
        } else {
            format!("an eigenvalue is below {:.3e}, the largest is {high:.3e}", -SHIFT * largest)
        };
        return Err(indefinite(name, &evidence));
    }
    let (low, high) = extreme_eigenvalues_of(k.n(), |v, out| k.apply(v, out));
    if low < -NEGATIVE_SHARE * high.abs().max(low.abs()) {
        return Err(indefinite(
            name,
            &format!("eigenvalue {low:.3e} against the largest {high:.3e}"),
        ));
    }
    Ok(())
}

/// Does [`Cholesky::proves`] show that K + (shift + slack) I is positive definite?
fn proven(k: &Packed<f64>, shift: f64, slack: f64, scratch: &mut Matrix) -> bool {
    let n = k.n();
    if scratch.rows() != n {
        *scratch = Matrix::zeros(n, n);
    }
    for (i, row) in scratch.data_mut().chunks_exact_mut(n).enumerate() {
        row[..=i].copy_from_slice(k.row(i));
        row[i] += shift;
    }
    Cholesky::proves(scratch, slack)
}

/// A vector with no structure and no small entry: every entry of a triangle must show.
pub fn probe(n: usize) -> Vec<f64> {
    let spread = |i: usize| (0.5 + i as f64 * 0.618_033_988_749_895).fract();
    (0..n).map(|i| if spread(i) < 0.5 { spread(i) - 1.0 } else { spread(i) }).collect()
}

/// A matrix that is not positive semidefinite can have a small residual diagonal and still differ
/// from L Lᵀ: are the lower triangles of both, `given` that of the matrix, alike on the probe?
pub fn is_like_factor(mut given: Vec<f64>, probe: &[f64], factor: &Factor) -> bool {
    let stored = factor.triangle_times(probe);
    // `stored` is scaled; the best multiple of it must explain `given`.
    let ratio = dot(&given, &stored) / dot(&stored, &stored).max(f64::MIN_POSITIVE);
    let size = dot(&given, &given);
    axpy(-ratio, &stored, &mut given);
    dot(&given, &given) <= 1e-8 * size
}

/// A lower bound on the largest eigenvalue at little cost: by the diagonal, and by the sum of all
/// entries, which is large where most of them are positive.
fn easy_eigenvalue(k: &Packed<f64>) -> f64 {
    let n = k.n();
    let sum: f64 = k.quad_forms(&[vec![1.0; n]]).iter().sum();
    (0..n).map(|i| k.row(i)[i]).fold(sum / n as f64, f64::max)
}

/// An estimate of the largest eigenvalue from below, by a few steps of the power method.
fn largest_eigenvalue(k: &Packed<f64>) -> f64 {
    let n = k.n();
    let mut v: Vec<f64> = (0..n).map(|i| 1.0 + (i as f64 * 0.754_877_666).fract()).collect();
    let mut value = 0.0;
    for _ in 0..TUNING.power_steps {
        let length = dot(&v, &v).sqrt();
        if length == 0.0 {
            break;
        }
        v.iter_mut().for_each(|x| *x /= length);
        let mut next = vec![0.0; n];
        k.apply(&v, &mut next);
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
