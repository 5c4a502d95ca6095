//! The linear system behind squared losses and every Newton step.
//!
//! Solves  (K + D) x + b 1 = z,  1ᵀx = s   (without b: (K + D) x = z),  D = diag(1/w), w_i ≥ 0;
//!   w_i = 0 means x_i = 0.
//! With W = diag(w) over the rows A where w > 0, (K + D)⁻¹ = W½ (I + W½ K W½)⁻¹ W½, whose inner
//! matrix has no eigenvalue below 1 however uneven the weights. For K = F Fᵀ with fewer columns
//! than rows in A, (FFᵀ + D)⁻¹ = W − W F (I + FᵀWF)⁻¹ FᵀW.
//! With u = (K + D)⁻¹ 1 and v = (K + D)⁻¹ z:  b = (1ᵀv − s) / 1ᵀu,  x = v − b u.

use rayon::prelude::*;

use super::Combined;
use crate::{
    Error, Result,
    linalg::{Cholesky, Matrix, axpy, dot},
    tuning::tuning,
};

/// The system, factored.
pub(super) struct WeightedSystem<'a> {
    kernel: &'a Combined,
    n: usize,
    /// Rows with a positive weight, and √w there.
    rows: Vec<usize>,
    root: Vec<f64>,
    /// I + W½ K W½, or I + FᵀWF.
    factored: Cholesky,
    /// Is it the second form, over the columns of the factor?
    by_columns: bool,
    /// Rounds of refinement.
    rounds: usize,
}

/// What errors call the system.
const WHAT: &str = "the system I + W½KW½";
/// Shares of itself by which the diagonal is raised, in turn, while rounding leaves the matrix
/// indefinite: entries are rounded to 10⁻¹⁶ of the diagonal, and sums of a thousand of them to
/// 10⁻¹³. Refinement against the matrix itself takes most of that back, and the certificate is
/// computed from the multipliers that are found, so that what is left shows in the gap.
const DIAGONAL_GUARDS: [f64; 4] = [0.0, 1e-13, 1e-11, 1e-9];

tuning! { "weighted_system"
    /// Rounds of refinement where the diagonal was raised; one round suffices where it was not.
    refinement_rounds: usize = 10;
}

/// W½ K W½ on the rows in use, or FᵀWF where that is smaller (then true).
fn inner(
    kernel: &Combined,
    weight: &[f64],
    rows: &[usize],
    root: &[f64],
) -> Result<(Matrix, bool)> {
    let m = rows.len();
    Ok(match kernel {
        Combined::Dense(_) | Combined::Single(_) => {
            let mut inner = Matrix::zeros(m, m);
            inner.data_mut().par_chunks_mut(m.max(1)).with_min_len(64).enumerate().for_each(
                |(p, out)| {
                    // The factorisation reads the lower triangle only.
                    let row = kernel.lower_row(rows[p]).unwrap_or_default();
                    (0..=p).for_each(|q| out[q] = root[p] * root[q] * row[rows[q]]);
                },
            );
            (inner, false)
        }
        Combined::Bases(_) => return Err(Error::numerical(WHAT, "the kernel is not in one piece")),
        Combined::Factor(f) if f.cols() < m => (f.weighted_gram(weight), true),
        Combined::Factor(f) => {
            let mut scaled = f.select_rows(rows);
            (0..m).for_each(|p| scaled.row_mut(p).iter_mut().for_each(|x| *x *= root[p]));
            (scaled.outer(), false)
        }
    })
}

impl<'a> WeightedSystem<'a> {
    pub(super) fn new(kernel: &'a Combined, weight: &[f64]) -> Result<Self> {
        let rows: Vec<usize> = (0..weight.len()).filter(|&i| weight[i] > 0.0).collect();
        let root: Vec<f64> = rows.iter().map(|&i| weight[i].sqrt()).collect();
        let mut largest = 0.0;
        for raised in DIAGONAL_GUARDS {
            let (mut inner, by_columns) = inner(kernel, weight, &rows, &root)?;
            (0..inner.rows()).for_each(|p| inner[(p, p)] = (inner[(p, p)] + 1.0) * (1.0 + raised));
            largest = (0..inner.rows()).fold(largest, |m: f64, p| m.max(inner[(p, p)]));
            if let Ok(factored) = Cholesky::new(inner, WHAT) {
                let rounds = if raised == 0.0 { 1 } else { TUNING.refinement_rounds };
                return Ok(Self {
                    kernel,
                    n: weight.len(),
                    rows,
                    root,
                    factored,
                    by_columns,
                    rounds,
                });
            }
        }
        let problem = format!(
            "prices times kernel values reach {largest:.0e}, which is too much for double precision; lower C, or bring the kernels to one \
             scale (`normalize`)"
        );
        Err(Error::numerical(WHAT, problem))
    }

    /// x and b; `sum` is s, `None` where there is no b (which is then 0).
    pub(super) fn solve(&self, z: &[f64], sum: Option<f64>) -> (Vec<f64>, f64) {
        let mut x = self.invert(z);
        let Some(sum) = sum.filter(|_| !self.rows.is_empty()) else { return (x, 0.0) };
        let u = self.invert(&vec![1.0; z.len()]);
        let bias = (x.iter().sum::<f64>() - sum) / u.iter().sum::<f64>();
        axpy(-bias, &u, &mut x);
        (x, bias)
    }

    /// Vᵀ P V for the columns V, where P z is the x of [`WeightedSystem::solve`] at z and s = 0. To
    /// the accuracy of one factorisation.
    pub(super) fn quadratic(&self, columns: &Matrix, intercept: bool) -> Matrix {
        let q = columns.rows();
        let column = |k: usize| {
            if k < q {
                self.whiten(columns.row(k))
            } else {
                self.whiten(&vec![1.0; columns.cols()])
            }
        };
        // The last one is that of the constant.
        let white: Vec<(Vec<f64>, Vec<f64>)> =
            (0..q + usize::from(intercept)).map(column).collect();
        let product =
            |j: usize, k: usize| dot(&white[j].0, &white[k].0) - dot(&white[j].1, &white[k].1);
        let mut out = Matrix::zeros(q, q);
        for j in 0..q {
            for k in 0..=j {
                let mut value = product(j, k);
                if intercept && product(q, q) > 0.0 {
                    value -= product(j, q) * product(k, q) / product(q, q);
                }
                (out[(j, k)], out[(k, j)]) = (value, value);
            }
        }
        out
    }

    /// t and u with tᵀt' − uᵀu' = zᵀ (K + D)⁻¹ z' for any two z.
    fn whiten(&self, z: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let mut t: Vec<f64> =
            self.rows.iter().zip(&self.root).map(|(&i, root)| root * z[i]).collect();
        let Some(f) = self.factor() else {
            self.factored.solve_lower(&mut t);
            return (t, Vec::new());
        };
        let mut w = f.transposed_times(&self.spread(&t));
        self.factored.solve_lower(&mut w);
        (t, w)
    }

    /// (K + D)⁻¹ z, refined. Of several steps those are kept that make the residual smaller.
    fn invert(&self, z: &[f64]) -> Vec<f64> {
        let mut x = self.invert_once(z);
        let mut residual = self.residual(&x, z);
        for _ in 0..self.rounds {
            let mut next = x.clone();
            axpy(1.0, &self.invert_once(&residual), &mut next);
            if self.rounds == 1 {
                return next;
            }
            let left = self.residual(&next, z);
            if self.size(&left) >= self.size(&residual) {
                break;
            }
            (x, residual) = (next, left);
        }
        x
    }

    /// ‖r‖² on the rows in use.
    fn size(&self, residual: &[f64]) -> f64 {
        self.rows.iter().map(|&i| residual[i] * residual[i]).sum()
    }

    /// z − (K + D) x on the rows in use; elsewhere it says nothing.
    fn residual(&self, x: &[f64], z: &[f64]) -> Vec<f64> {
        let mut residual = self.kernel.times(x);
        residual.iter_mut().zip(z).for_each(|(r, z)| *r = z - *r);
        for (&i, root) in self.rows.iter().zip(&self.root) {
            residual[i] -= x[i] / (root * root);
        }
        residual
    }

    fn invert_once(&self, z: &[f64]) -> Vec<f64> {
        // W½ z on the rows in use.
        let mut t: Vec<f64> =
            self.rows.iter().zip(&self.root).map(|(&i, root)| root * z[i]).collect();
        match self.factor() {
            None => self.factored.solve(&mut t),
            Some(f) => {
                let mut w = f.transposed_times(&self.spread(&t));
                self.factored.solve(&mut w);
                let back = f.times(&w);
                t.iter_mut()
                    .zip(&self.rows)
                    .zip(&self.root)
                    .for_each(|((t, &i), root)| *t -= root * back[i]);
            }
        }
        self.spread(&t)
    }

    /// F, where the second form was taken.
    fn factor(&self) -> Option<&Matrix> {
        match self.kernel {
            Combined::Factor(f) if self.by_columns => Some(f),
            _ => None,
        }
    }

    /// W½ t on all rows.
    fn spread(&self, t: &[f64]) -> Vec<f64> {
        let mut x = vec![0.0; self.n];
        self.rows.iter().zip(&self.root).zip(t).for_each(|((&i, root), t)| x[i] = root * t);
        x
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{data::Rng, gram::Gram};

    #[test]
    fn every_form_satisfies_its_equations() {
        let (n, mut rng) = (60, Rng::new(3));
        for cols in [10, 40, 80] {
            let f = Matrix::new(n, cols, (0..n * cols).map(|_| rng.normal()).collect()).unwrap();
            let mut dense = Gram::zeros(n);
            dense.data_mut().copy_from_slice(f.outer().data());
            dense.mirror();
            let z: Vec<f64> = (0..n).map(|_| rng.normal()).collect();
            // A third of the rows out of use; weights over nine orders of magnitude.
            let weight: Vec<f64> = (0..n)
                .map(|i| if i % 3 == 0 { 0.0 } else { 10f64.powf(9.0 * rng.uniform() - 6.0) })
                .collect();
            for kernel in [Combined::Dense(dense), Combined::Factor(f)] {
                let system = WeightedSystem::new(&kernel, &weight).unwrap();
                for sum in [None, Some(0.7)] {
                    let (x, b) = system.solve(&z, sum);
                    let kx = kernel.times(&x);
                    for i in 0..n {
                        let left = weight[i] * (kx[i] + b - z[i]) + x[i];
                        assert!(left.abs() <= 1e-9 * (1.0 + weight[i]), "{cols}: row {i} {left:e}");
                    }
                    let total: f64 = x.iter().sum();
                    assert!(sum.map_or(b == 0.0, |s| (total - s).abs() < 1e-9), "{cols}: {total}");
                }
            }
        }
    }
}
