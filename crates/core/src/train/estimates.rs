//! What the training rows alone say about C and about the error to come.

use super::verify::multipliers;
use crate::{
    Error, Model, Result,
    gram::GramSource,
    machine::{Combined, Solution, xi_alpha},
    methods::{Threshold, collapse_threshold},
    model::FittedMachine,
    outer::Part,
    prepare::{Job, Prepared},
    request::TrainSpec,
};

impl Prepared {
    /// Finds where C begins to be large enough for the SMKL penalty of `spec`, in units of
    /// `spec.c`: the largest over machines that have weights of their own.
    pub fn collapse_threshold(&self, spec: &TrainSpec) -> Result<Threshold> {
        spec.check()?;
        let Some(penalty) = spec.method.penalty()? else {
            return Err(Error::param(
                "method",
                "smkl: others have no collapse threshold",
                spec.method.name(),
            ));
        };
        let fitting = self.samples.fitting(spec)?;
        let job = Job::new(self, spec, &fitting)?;
        let grouped = self.groups(spec)?;
        let grams: &dyn GramSource = grouped.as_ref().map_or(&self.grams, |g| g);
        let mut worst = Threshold { collapse: 0.0, escape: 0.0 };
        for parts in job.parts() {
            let mark = collapse_threshold(grams, &parts, &penalty);
            worst.collapse = worst.collapse.max(mark.collapse);
            worst.escape = worst.escape.max(mark.escape);
        }
        Ok(worst.times(spec.c))
    }

    /// Computes the ξα estimate of the leave-one-out error of every machine of `model`, fitted to
    /// `spec` on these rows; hinge only. With ρ = 2 it is a bound on that error at the weights
    /// found.
    pub fn xi_alpha(&self, spec: &TrainSpec, model: &Model, rho: f64) -> Result<Vec<f64>> {
        let (fitting, tasks) = (self.samples.fitting(spec)?, self.samples.machines(spec)?);
        if model.machines.len() != tasks.len() || model.n_samples != self.samples.kept.len() {
            return Err(Error::param(
                "model",
                "one fitted to this request on these rows",
                "another",
            ));
        }
        let solver = fitting.machine();
        let budget = self.budget_left();
        let estimate = |(part, machine): (&Part<'_>, &FittedMachine)| {
            let kernel = Combined::new(&self.grams, &machine.weights, budget, &*solver, None)?;
            let a = multipliers(machine, &self.samples.kept)?;
            let (kernel, a) = match part.rows {
                None => (kernel, a),
                Some(rows) => (kernel.select(rows), rows.iter().map(|&i| a[i]).collect()),
            };
            let f = kernel.times(&a);
            xi_alpha(&kernel, &part.task, &Solution::new(&part.task, a, f), rho)
        };
        let parts: Vec<Part<'_>> = tasks.iter().map(|t| t.part(&fitting, spec)).collect();
        parts.iter().zip(&model.machines).map(estimate).collect()
    }
}
