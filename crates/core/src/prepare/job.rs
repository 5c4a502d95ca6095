//! One fit of prepared kernels: the request with its loss and its machines, as a method sees them.

use super::{MachineTask, Prepared};
use crate::{
    Model, Result,
    gram::GramSource,
    machine::{Fitting, Machine, Task},
    model::Fit,
    outer::{Memory, Part, Problem},
    request::TrainSpec,
    trace::Observer,
};

/// What a method fits.
pub(crate) struct Job<'a> {
    /// The training rows and their kernel terms.
    pub prepared: &'a Prepared,
    /// The request, with C as a number.
    pub request: &'a TrainSpec,
    /// The loss, with its parameters.
    pub fitting: &'a Fitting,
    /// Targets, costs and rows of every machine.
    pub tasks: Vec<MachineTask>,
    machine: Box<dyn Machine>,
}

/// Finds the weights of one machine, or of several that share them.
pub(crate) type Solve<'s> =
    dyn FnMut(&Problem<'_>, &mut Memory, &mut dyn Observer) -> Result<Fit> + 's;

impl<'a> Job<'a> {
    /// Refuses a loss that the target cannot have, and weights of classes that there are not.
    pub fn new(
        prepared: &'a Prepared,
        request: &'a TrainSpec,
        fitting: &'a Fitting,
    ) -> Result<Self> {
        let tasks = prepared.samples.machines(request)?;
        Ok(Self { prepared, request, fitting, tasks, machine: fitting.machine() })
    }

    /// The decision functions: together where they share weights, else one by one.
    pub fn parts(&self) -> Vec<Vec<Part<'_>>> {
        let parts: Vec<Part<'_>> =
            self.tasks.iter().map(|t| t.part(self.fitting, self.request)).collect();
        if self.request.shared_weights {
            vec![parts]
        } else {
            parts.into_iter().map(|p| vec![p]).collect()
        }
    }

    /// The optimisation problem of decision functions on kernel terms.
    pub fn problem<'b>(&'b self, parts: Vec<Part<'b>>, grams: &'b dyn GramSource) -> Problem<'b> {
        let TrainSpec { tol, max_iter, working_set, screening, .. } = *self.request;
        let (machine, budget) = (&*self.machine, self.prepared.budget_left());
        Problem {
            grams,
            parts,
            machine,
            budget,
            scratch: self.prepared.scratch.clone(),
            tol,
            max_iter,
            working_set,
            screening,
        }
    }

    /// Tells the observer that the machine, or the machines sharing weights, at `k` begin.
    pub fn announce(&self, k: usize, observer: &mut dyn Observer) {
        self.prepared.samples.announce(k, self.request, observer);
    }

    /// Finds weights that are the same for all rows, one vector per machine or one for all, and
    /// makes the model.
    pub fn fit_global(
        &self,
        memories: &mut Vec<Memory>,
        observer: &mut dyn Observer,
        solve: &mut Solve<'_>,
    ) -> Result<Model> {
        let fits = self.global_fits(memories, observer, solve)?;
        self.global_model(&fits)
    }

    /// Makes the model of fits whose weights are the same for all rows.
    pub fn global_model(&self, fits: &[Fit]) -> Result<Model> {
        let mut model = self.prepared.assemble_fits(fits, self.request, self.fitting)?;
        self.prepared.tell_if_fits_are_flat(&mut model, fits);
        Ok(model)
    }

    /// Finds weights as [`Job::fit_global`] does, and makes no model yet.
    pub fn global_fits(
        &self,
        memories: &mut Vec<Memory>,
        observer: &mut dyn Observer,
        solve: &mut Solve<'_>,
    ) -> Result<Vec<Fit>> {
        let grouped = self.prepared.groups(self.request)?;
        let grams: &dyn GramSource = grouped.as_ref().map_or(&self.prepared.grams, |g| g);
        let groups = self.parts();
        memories.resize(groups.len(), Memory::default());
        let mut fits = Vec::with_capacity(groups.len());
        for (k, (parts, memory)) in groups.into_iter().zip(memories).enumerate() {
            self.announce(k, observer);
            let mut fit = solve(&self.problem(parts, grams), memory, observer)?;
            if let Some(grouped) = &grouped {
                fit.weights = grouped.expand(&fit.weights);
            }
            self.prepared.to_target_units(&mut fit, self.request);
            fits.push(fit);
        }
        Ok(fits)
    }
}

impl MachineTask {
    /// The decision function that this task asks for.
    pub fn part<'a>(&'a self, fitting: &'a Fitting, request: &TrainSpec) -> Part<'a> {
        let task = Task {
            y: &self.y,
            cost: &self.cost,
            loss: fitting.loss(),
            intercept: request.fit_intercept,
        };
        Part { task, rows: self.rows.as_deref() }
    }
}
