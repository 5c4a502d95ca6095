//! Extreme eigenvalues of a symmetric matrix from a few matrix–vector products.

use crate::{
    linalg::{axpy, dot},
    tuning::tuning,
};

tuning! { "lanczos"
    /// Number of steps: eigenvalues at the ends of a spectrum stand still to a few digits by then.
    steps: usize = 40;
}

/// Number of halvings in a bisection: more than it takes to reach two neighbouring numbers.
const HALVINGS: usize = 200;

/// Estimates (smallest, largest) eigenvalue by Lanczos with full re-orthogonalisation: both lie
/// inside the true range, and the ends are found first. The matrix is known by its products:
/// `apply(v, out)` writes K v.
pub fn extreme_eigenvalues_of(n: usize, apply: impl Fn(&[f64], &mut [f64])) -> (f64, f64) {
    let mut basis: Vec<Vec<f64>> = Vec::new();
    let (mut diagonal, mut off) = (Vec::new(), Vec::<f64>::new());
    // Any fixed start without symmetry will do.
    let mut q: Vec<f64> = (0..n).map(|i| 1.0 + (i as f64 * 0.754_877_666).fract()).collect();
    normalise(&mut q);
    for _ in 0..TUNING.steps.min(n) {
        let mut next = vec![0.0; n];
        apply(&q, &mut next);
        diagonal.push(dot(&next, &q));
        basis.push(q);
        for _ in 0..2 {
            for b in &basis {
                axpy(-dot(&next, b), b, &mut next);
            }
        }
        let length = normalise(&mut next);
        let scale = diagonal.iter().fold(0.0f64, |m, d| m.max(d.abs()));
        if length <= 1e-13 * scale {
            break;
        }
        off.push(length);
        q = next;
    }
    off.truncate(diagonal.len() - 1);
    (tridiagonal_end(&diagonal, &off, false), tridiagonal_end(&diagonal, &off, true))
}

fn normalise(v: &mut [f64]) -> f64 {
    let length = dot(v, v).sqrt();
    if length > 0.0 {
        v.iter_mut().for_each(|x| *x /= length);
    }
    length
}

/// The smallest or largest eigenvalue of a tridiagonal matrix, by bisection on Sturm counts.
fn tridiagonal_end(d: &[f64], e: &[f64], largest: bool) -> f64 {
    let radius =
        |i: usize| e.get(i).map_or(0.0, |x| x.abs()) + if i > 0 { e[i - 1].abs() } else { 0.0 };
    let mut low = (0..d.len()).fold(f64::INFINITY, |m, i| m.min(d[i] - radius(i)));
    let mut high = (0..d.len()).fold(f64::NEG_INFINITY, |m, i| m.max(d[i] + radius(i)));
    let wanted = if largest { d.len() } else { 1 };
    for _ in 0..HALVINGS {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break;
        }
        let mut below = 0;
        let mut q = 1.0;
        for i in 0..d.len() {
            let coupling = if i > 0 { e[i - 1] * e[i - 1] / q } else { 0.0 };
            q = d[i] - middle - coupling;
            if q == 0.0 {
                q = f64::MIN_POSITIVE;
            }
            below += usize::from(q < 0.0);
        }
        if below >= wanted { high = middle } else { low = middle }
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::Matrix;

    #[test]
    fn finds_both_ends_of_a_known_spectrum() {
        // Second difference matrix: eigenvalues 2 − 2 cos(kπ/(n+1)).
        let n = 30;
        let mut k = Matrix::zeros(n, n);
        for i in 0..n {
            k[(i, i)] = 2.0;
            if i > 0 {
                k[(i, i - 1)] = -1.0;
                k[(i - 1, i)] = -1.0;
            }
        }
        let (low, high) = extreme_eigenvalues_of(n, |v, out| out.copy_from_slice(&k.times(v)));
        let angle = std::f64::consts::PI / (n as f64 + 1.0);
        assert!((low - (2.0 - 2.0 * angle.cos())).abs() < 1e-9);
        assert!((high - (2.0 + 2.0 * angle.cos())).abs() < 1e-9);
    }
}
