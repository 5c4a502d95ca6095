//! Equal weights 1/M for all kernels: the baseline that every method which learns weights has to
//! beat.

use super::Method;
use crate::{
    Model, Result,
    outer::{Memory, fixed},
    prepare::Job,
    trace::Observer,
};

/// Weights that differ by less than this share are equal: what rounding may change.
const EQUAL: f64 = 1e-8;

/// The method `uniform`, which has no parameters.
pub(super) struct Uniform;

impl Method for Uniform {
    fn fit(
        &self,
        job: &Job<'_>,
        memories: &mut Vec<Memory>,
        observer: &mut dyn Observer,
    ) -> Result<Model> {
        job.fit_global(memories, observer, &mut |problem, memory, observer| {
            let terms = problem.grams.n_terms();
            fixed(problem, vec![1.0 / terms as f64; terms], memory, observer)
        })
    }

    fn wrong_weights(&self, theta: &[f64]) -> Option<String> {
        let equal = 1.0 / theta.len() as f64;
        let differs = theta.iter().any(|t| (t - equal).abs() > EQUAL * equal);
        differs.then(|| "the weights are not all equal".into())
    }
}
