//! Squared loss: one factorisation.
//!
//! Solves  min over a, b :  ½ Σ c_i (f_i + b − y_i)² + ½ aᵀKa,  f = Ka,
//!   which is (K + D) a + b 1 = y, 1ᵀa = 0 with D = diag(1/c).
//! In: K, the task.   Out: a and b to rounding.

use super::{Combined, Machine, Solution, Stop, Task, has_few_columns, system::WeightedSystem};
use crate::Result;

/// Ridge regression.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ridge;

impl Machine for Ridge {
    fn likes_factor(&self, n: usize, rank: usize) -> bool {
        has_few_columns(rank, n)
    }

    fn solve(
        &self,
        kernel: &Combined,
        task: &Task<'_>,
        _: Option<&[f64]>,
        _: Stop,
    ) -> Result<Solution> {
        let (mut a, _) =
            WeightedSystem::new(kernel, task.cost)?.solve(task.y, task.intercept.then_some(0.0));
        if task.intercept {
            // The constraint holds to rounding; the certificate wants it exactly.
            let mean = a.iter().sum::<f64>() / a.len() as f64;
            a.iter_mut().for_each(|x| *x -= mean);
        }
        let f = kernel.times(&a);
        Ok(Solution::new(task, a, f))
    }

    fn dual_response(&self, task: &Task<'_>, _: &Solution) -> Vec<f64> {
        task.cost.to_vec()
    }
}
