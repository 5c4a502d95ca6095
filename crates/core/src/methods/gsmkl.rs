//! Group-sensitive multiple kernel learning: softmax kernel weights per group of rows, learned with
//! the machine.
//!
//! Solves the problem of ℓp-GLMKL with p = 1, from equal weights; the groups come from k-means on
//! the average kernel.
//! In: terms K_1..K_M, a task, the number of groups.   Out: β, a, b, the value.
//!   Paper: [Yang2009]; page docs/methods/gsmkl.md.

use super::{Method, gated, glmkl::fit_groups};
use crate::{
    Model, Result, gram::GramSource, linalg::Matrix, outer::Memory, prepare::Job, request::Gsmkl,
    trace::Observer,
};

impl Method for Gsmkl {
    fn fit(
        &self,
        job: &Job<'_>,
        memories: &mut Vec<Memory>,
        observer: &mut dyn Observer,
    ) -> Result<Model> {
        let prepared = job.prepared;
        gated::fit(job, (self.n_init, self.seed), memories, observer, &mut |_, fit_gate| {
            let terms = prepared.grams.n_terms();
            let equal = vec![1.0 / terms as f64; terms];
            let placed = prepared.groups_of(job.request, equal, self.n_groups, self.seed)?;
            let none = Matrix::zeros(placed.memberships.cols(), terms);
            fit_groups(&placed, &placed.labels()?, 1.0, &none, fit_gate)
        })
    }
}
