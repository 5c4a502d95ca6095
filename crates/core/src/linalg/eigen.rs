//! All eigenvalues and eigenvectors of a symmetric matrix: Householder reduction to tridiagonal
//! form, then QL steps with shifts.

use super::{Matrix, axpy, dot};
use crate::{Error, Result};

/// QL steps that one eigenvalue may take before that is an error; three or so is usual. A limit,
/// not a number to tune.
const STEPS: usize = 60;

/// A = Σ_k λ_k v_k v_kᵀ, λ_k the `values` and v_k the rows of `vectors`, in no particular order.
#[derive(Debug, Clone)]
pub struct SymmetricEigen {
    /// The eigenvalues λ_k, in no particular order.
    pub values: Vec<f64>,
    /// Eigenvectors, a row each, orthonormal.
    pub vectors: Matrix,
}

impl SymmetricEigen {
    /// The eigenvalues and eigenvectors of a symmetric matrix, of which both triangles are read.
    pub fn new(mut a: Matrix) -> Result<Self> {
        let n = a.rows();
        if a.cols() != n {
            return Err(Error::shape(
                "symmetric matrix",
                "as many rows as columns",
                format!("{n} × {}", a.cols()),
            ));
        }
        let (values, off, reflectors) = tridiagonal(&mut a);
        let mut out = Self { values, vectors: accumulate(n, &reflectors) };
        out.diagonalise(off)?;
        Ok(out)
    }

    /// The matrix Σ_k f(λ_k) v_k v_kᵀ.
    pub fn map(&self, f: impl Fn(f64) -> f64) -> Matrix {
        let n = self.values.len();
        let mut out = Matrix::zeros(n, n);
        for (k, &value) in self.values.iter().enumerate() {
            let (weight, v) = (f(value), self.vectors.row(k));
            if weight != 0.0 {
                (0..n).for_each(|i| axpy(weight * v[i], v, out.row_mut(i)));
            }
        }
        out
    }

    /// QL with implicit Wilkinson shifts on the tridiagonal matrix (values, off), rotations applied
    /// to the vectors.
    fn diagonalise(&mut self, mut off: Vec<f64>) -> Result<()> {
        let d = &mut self.values;
        let n = d.len();
        off.push(0.0);
        for l in 0..n {
            for step in 0.. {
                // The block from l ends where the coupling is lost in rounding.
                let small =
                    |m: &usize| off[*m].abs() <= f64::EPSILON * (d[*m].abs() + d[*m + 1].abs());
                let m = (l..n - 1).find(small).unwrap_or(n - 1);
                if m == l {
                    break;
                }
                if step == STEPS {
                    let problem = format!("eigenvalue {} of {n} did not settle", l + 1);
                    return Err(Error::numerical("the eigenvalues of a matrix", problem));
                }
                let g = (d[l + 1] - d[l]) / (2.0 * off[l]);
                let shift = d[l] - off[l] / (g + g.hypot(1.0).copysign(g));
                let (mut sine, mut cosine, mut moved) = (1.0, 1.0, 0.0);
                let mut g = d[m] - shift;
                let mut broke = false;
                for i in (l..m).rev() {
                    let (f, b) = (sine * off[i], cosine * off[i]);
                    let r = f.hypot(g);
                    off[i + 1] = r;
                    if r == 0.0 {
                        d[i + 1] -= moved;
                        off[m] = 0.0;
                        broke = true;
                        break;
                    }
                    (sine, cosine) = (f / r, g / r);
                    g = d[i + 1] - moved;
                    let r = (d[i] - g) * sine + 2.0 * cosine * b;
                    moved = sine * r;
                    d[i + 1] = g + moved;
                    g = cosine * r - b;
                    rotate(&mut self.vectors, i, cosine, sine);
                }
                if !broke {
                    d[l] -= moved;
                    off[l] = g;
                    off[m] = 0.0;
                }
            }
        }
        Ok(())
    }
}

/// Rotates rows i and i + 1 in their plane.
fn rotate(rows: &mut Matrix, i: usize, cosine: f64, sine: f64) {
    let n = rows.cols();
    let (upper, lower) = rows.data_mut().split_at_mut((i + 1) * n);
    for (x, y) in upper[i * n..].iter_mut().zip(&mut lower[..n]) {
        (*x, *y) = (cosine * *x - sine * *y, sine * *x + cosine * *y);
    }
}

/// A reflection I − β v vᵀ on the last coordinates.
struct Reflector {
    v: Vec<f64>,
    beta: f64,
}

/// T = Hᵀ A H: its diagonal, its off-diagonal, and the reflections whose product is H.
fn tridiagonal(a: &mut Matrix) -> (Vec<f64>, Vec<f64>, Vec<Reflector>) {
    let n = a.rows();
    let (mut diagonal, mut off, mut reflectors) = (Vec::new(), Vec::new(), Vec::new());
    for k in 0..n {
        diagonal.push(a[(k, k)]);
        if k + 1 == n {
            break;
        }
        let mut v = a.row(k)[k + 1..].to_vec();
        let length = dot(&v, &v).sqrt();
        if k + 2 == n || length == 0.0 {
            off.push(v[0]);
            reflectors.push(Reflector { v, beta: 0.0 });
            continue;
        }
        let pivot = -length.copysign(v[0]);
        v[0] -= pivot;
        let beta = 2.0 / dot(&v, &v);
        off.push(pivot);
        // A ← (I − β v vᵀ) A (I − β v vᵀ) = A − v wᵀ − w vᵀ on the trailing block.
        let mut w: Vec<f64> = (k + 1..n).map(|i| beta * dot(&a.row(i)[k + 1..], &v)).collect();
        let half = 0.5 * beta * dot(&w, &v);
        axpy(-half, &v, &mut w);
        for i in k + 1..n {
            let (vi, wi) = (v[i - k - 1], w[i - k - 1]);
            let row = &mut a.row_mut(i)[k + 1..];
            axpy(-vi, &w, row);
            axpy(-wi, &v, row);
        }
        reflectors.push(Reflector { v, beta });
    }
    (diagonal, off, reflectors)
}

/// Hᵀ, row after row, from the last reflection to the first.
fn accumulate(n: usize, reflectors: &[Reflector]) -> Matrix {
    let mut q = Matrix::zeros(n, n);
    (0..n).for_each(|i| q[(i, i)] = 1.0);
    // Hᵀ = H_last … H_first, so that each reflection is multiplied from the right: row ← row − β
    // ⟨row, v⟩ v.
    for (k, r) in reflectors.iter().enumerate().rev().filter(|(_, r)| r.beta != 0.0) {
        for i in k + 1..n {
            let row = &mut q.row_mut(i)[k + 1..];
            let factor = -r.beta * dot(row, &r.v);
            axpy(factor, &r.v, row);
        }
    }
    q
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Rng;

    fn check(a: &Matrix) {
        let n = a.rows();
        let e = SymmetricEigen::new(a.clone()).unwrap();
        let size = a.data().iter().fold(1.0f64, |m, x| m.max(x.abs()));
        let again = e.map(|x| x);
        let worst =
            again.data().iter().zip(a.data()).fold(0.0f64, |m, (x, y)| m.max((x - y).abs()));
        assert!(worst <= 1e-12 * size * n as f64, "{n}: {worst:e}");
        let one = e.map(|_| 1.0);
        let worst = (0..n * n)
            .fold(0.0f64, |m, k| m.max((one.data()[k] - f64::from(k % (n + 1) == 0)).abs()));
        assert!(worst <= 1e-12 * n as f64, "{n}: not orthonormal by {worst:e}");
    }

    #[test]
    fn a_matrix_is_the_sum_of_its_parts() {
        let mut rng = Rng::new(5);
        for n in [1, 2, 3, 10, 60] {
            let mut a = Matrix::zeros(n, n);
            for i in 0..n {
                for j in 0..=i {
                    let x = rng.normal();
                    (a[(i, j)], a[(j, i)]) = (x, x);
                }
            }
            check(&a);
            // Of low rank, with many eigenvalues equal.
            let x: Vec<f64> = (0..n).map(|_| rng.normal()).collect();
            let low = (0..n * n).map(|k| x[k / n] * x[k % n]).collect();
            check(&Matrix::new(n, n, low).unwrap());
        }
        let mut one = Matrix::zeros(7, 7);
        (0..7).for_each(|i| one[(i, i)] = 3.0);
        check(&one);
        check(&Matrix::zeros(4, 4));
    }

    #[test]
    fn known_eigenvalues() {
        let a = Matrix::new(2, 2, vec![2.0, 1.0, 1.0, 2.0]).unwrap();
        let mut values = SymmetricEigen::new(a).unwrap().values;
        values.sort_by(f64::total_cmp);
        assert!((values[0] - 1.0).abs() < 1e-14 && (values[1] - 3.0).abs() < 1e-14);
    }
}
