//! Is a ready-made matrix a kernel matrix at all?

use super::lanczos::extreme_eigenvalues;
use crate::{
    Error, Result,
    linalg::{Cholesky, Matrix},
};

/// Up to this many rows a factorisation, which takes n³/3 operations, proves what Lanczos steps suggest.
const PROVEN: usize = 3000;

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
    for i in 0..n {
        for j in 0..i {
            // Generous enough for values computed in single precision.
            if (k[(i, j)] - k[(j, i)]).abs() > 1e-6 * largest {
                return Err(Error::data(
                    format!("kernel `{name}`"),
                    format!("not symmetric: {} is {} but {} is {}", at(i, j), k[(i, j)], at(j, i), k[(j, i)]),
                    "a Gram matrix holds k(x_i, x_j) for the training rows in the same order both ways",
                ));
            }
        }
    }
    Ok(largest)
}

/// No eigenvalue below −1e-6 of the largest: what rounding in single precision may leave.
pub fn positive_semidefinite(k: &Matrix, name: &str) -> Result<()> {
    let (low, high) = extreme_eigenvalues(k);
    if low < -1e-6 * high.abs().max(low.abs()) {
        return Err(indefinite(name, &format!("eigenvalue {low:.3e} against the largest {high:.3e}")));
    }
    // Lanczos may miss a negative eigenvalue; a Cholesky factor of K + δI proves that there is none below −δ.
    if k.rows() <= PROVEN && high > 0.0 {
        let shift = 2e-6 * high;
        let mut shifted = k.clone();
        (0..k.rows()).for_each(|i| shifted[(i, i)] += shift);
        if Cholesky::new(shifted, name).is_err() {
            return Err(indefinite(name, &format!("an eigenvalue is below {:.3e}, the largest is {high:.3e}", -shift)));
        }
    }
    Ok(())
}

/// The error for an indefinite kernel.
pub fn indefinite(name: &str, evidence: &str) -> Error {
    Error::data(
        format!("kernel `{name}`"),
        format!("not positive semidefinite ({evidence})"),
        "it is not a kernel as it stands: set `indefinite` to shift, clip or flip, or use another similarity",
    )
}
