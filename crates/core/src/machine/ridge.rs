//! Squared loss: one factorisation.
//!
//! Optimality of ½ Σ c_i (f_i + b − y_i)² + ½ aᵀKa, f = Ka, is (K + D) a + b 1 = y, 1ᵀa = 0 with D = diag(1/c).
//! With u = (K + D)⁻¹ 1 and v = (K + D)⁻¹ y:  b = 1ᵀv / 1ᵀu,  a = v − b u.
//! For K = F Fᵀ with fewer columns than rows, (FFᵀ + D)⁻¹ = D⁻¹ − D⁻¹F (I + FᵀD⁻¹F)⁻¹ FᵀD⁻¹.

use super::{Combined, Machine, Solution, Stop, Task};
use crate::{
    Result,
    linalg::{Cholesky, Matrix, axpy, dot, gemm_nt},
};

/// Ridge regression with a bias.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ridge;

impl Machine for Ridge {
    fn likes_small_factors(&self) -> bool {
        true
    }

    fn solve(&self, kernel: &Combined, task: &Task<'_>, _: Option<&[f64]>, _: Stop) -> Result<Solution> {
        let system = System::new(kernel, task.cost)?;
        let u = system.solve(&vec![1.0; task.y.len()]);
        let v = system.solve(task.y);
        let bias = v.iter().sum::<f64>() / u.iter().sum::<f64>();
        let mut a = v;
        axpy(-bias, &u, &mut a);
        // The constraint holds to rounding; the certificate wants it exactly.
        let mean = a.iter().sum::<f64>() / a.len() as f64;
        a.iter_mut().for_each(|x| *x -= mean);
        let f = kernel.times(&a);
        Ok(Solution::new(task, a, f))
    }
}

enum System<'a> {
    Dense { kernel: &'a Combined, cost: &'a [f64], factored: Cholesky },
    Small { kernel: &'a Combined, f: &'a Matrix, cost: &'a [f64], factored: Cholesky },
}

const WHAT: &str = "the ridge system K + I/C";

impl<'a> System<'a> {
    fn new(kernel: &'a Combined, cost: &'a [f64]) -> Result<Self> {
        let n = kernel.n();
        match kernel {
            Combined::Factor(f) if f.cols() < n => {
                let r = f.cols();
                // FᵀD⁻¹F = (√c F)ᵀ(√c F), laid out with samples along the inner dimension.
                let mut scaled = Matrix::zeros(r, n);
                for i in 0..n {
                    let root = cost[i].sqrt();
                    f.row(i).iter().enumerate().for_each(|(j, x)| scaled[(j, i)] = root * x);
                }
                let mut small = Matrix::zeros(r, r);
                gemm_nt(r, r, n, scaled.data(), scaled.data(), small.data_mut(), r);
                (0..r).for_each(|j| small[(j, j)] += 1.0);
                Ok(Self::Small { kernel, f, cost, factored: Cholesky::new(small, WHAT)? })
            }
            _ => {
                let mut k = match kernel {
                    Combined::Dense(k) => k.clone().into_matrix(),
                    Combined::Factor(f) => {
                        let mut k = Matrix::zeros(n, n);
                        gemm_nt(n, n, f.cols(), f.data(), f.data(), k.data_mut(), n);
                        k
                    }
                };
                (0..n).for_each(|i| k[(i, i)] += 1.0 / cost[i]);
                Ok(Self::Dense { kernel, cost, factored: Cholesky::new(k, WHAT)? })
            }
        }
    }

    /// (K + D)⁻¹ rhs with one step of refinement.
    fn solve(&self, rhs: &[f64]) -> Vec<f64> {
        let mut x = self.solve_once(rhs);
        let (kernel, cost) = match self {
            Self::Dense { kernel, cost, .. } | Self::Small { kernel, cost, .. } => (kernel, cost),
        };
        let mut residual = kernel.times(&x);
        for i in 0..rhs.len() {
            residual[i] = rhs[i] - residual[i] - x[i] / cost[i];
        }
        axpy(1.0, &self.solve_once(&residual), &mut x);
        x
    }

    fn solve_once(&self, rhs: &[f64]) -> Vec<f64> {
        match self {
            Self::Dense { factored, .. } => {
                let mut x = rhs.to_vec();
                factored.solve(&mut x);
                x
            }
            Self::Small { f, cost, factored, .. } => {
                let mut x: Vec<f64> = rhs.iter().zip(*cost).map(|(r, c)| r * c).collect();
                let mut w = vec![0.0; f.cols()];
                x.iter().enumerate().for_each(|(i, &x)| axpy(x, f.row(i), &mut w));
                factored.solve(&mut w);
                for (i, x) in x.iter_mut().enumerate() {
                    *x -= cost[i] * dot(f.row(i), &w);
                }
                x
            }
        }
    }
}
