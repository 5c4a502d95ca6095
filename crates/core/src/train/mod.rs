//! From data to model: choose what was left to cross-validation, prepare the kernel terms, run the
//! method.

mod diagnose;
mod estimates;
mod held;
mod search;
mod verify;

pub use diagnose::{Diagnosis, KernelReport, diagnose, diagnose_precomputed};
pub(crate) use search::best_of;
pub use search::{Search, at_edge, c_values, choose, grid_search, search_folds};
pub use verify::{Verification, prove, verify};

use crate::{
    Error, Model, Result,
    data::{Dataset, Target},
    gram::Stack,
    outer::Memory,
    prepare::{Job, Prepared, Source},
    request::TrainSpec,
    trace::Observer,
};

/// Fits a table: the whole line from data to model.
pub fn train(
    data: &Dataset,
    target: &Target,
    sample_weight: Option<&[f64]>,
    spec: &TrainSpec,
    observer: &mut dyn Observer,
) -> Result<Model> {
    let (chosen, told) =
        search::choose_telling(Source::Table(data), target, sample_weight, spec, observer)?;
    fit_chosen(
        &Prepared::from_table(data, target, sample_weight, &chosen)?,
        (&chosen, told),
        spec,
        observer,
    )
}

/// Fits with the values that a search found, and adds the search's remarks to the model's warnings.
/// Where the observer ended the search, the model says so.
fn fit_chosen(
    prepared: &Prepared,
    (chosen, told): (&TrainSpec, Vec<String>),
    asked: &TrainSpec,
    observer: &mut dyn Observer,
) -> Result<Model> {
    let cut = (asked.choose.c || asked.choose.v) && observer.on_pause().is_break();
    let mut model = prepared.fit(chosen, observer)?;
    model.warnings.extend(told);
    if cut {
        model.note_stopped("the search for settings");
    }
    Ok(model)
}

/// Fits ready-made Gram matrices, `stack` of shape (n, n, M).
pub fn train_precomputed(
    stack: Stack<'_>,
    target: &Target,
    sample_weight: Option<&[f64]>,
    spec: &TrainSpec,
    observer: &mut dyn Observer,
) -> Result<Model> {
    let (chosen, told) =
        search::choose_telling(Source::Ready(stack), target, sample_weight, spec, observer)?;
    let prepared = Prepared::from_stack(stack, target, sample_weight, &chosen)?;
    let model = fit_chosen(&prepared, (&chosen, told), spec, observer)?;
    prepared.held_to_predictions(model, stack, &chosen)
}

impl Prepared {
    /// Fits every machine. `spec` must ask for the same kernel terms as the one given at
    /// preparation.
    pub fn fit(&self, spec: &TrainSpec, observer: &mut dyn Observer) -> Result<Model> {
        self.fit_from(spec, &mut Vec::new(), observer)
    }

    /// Fits requests in turn, each starting from the multipliers, weights and lower bounds of the
    /// one before: for sweeps over C, v or p. Requests may differ in nothing else.
    pub fn path(&self, specs: &[TrainSpec], observer: &mut dyn Observer) -> Result<Vec<Model>> {
        let mut memories: Vec<Memory> = Vec::new();
        let mut models = Vec::new();
        let specs: Vec<TrainSpec> =
            specs.iter().map(|s| s.with_c_in_numbers(self.samples.kept.len())).collect();
        for (k, spec) in specs.iter().enumerate() {
            if let Some(last) = k.checked_sub(1).map(|k| &specs[k]) {
                if !spec.differs_only_in_c_and_method(last) {
                    let got = format!("request {} differs in more", k + 1);
                    return Err(Error::param(
                        "path",
                        "requests that differ in C and the method's parameters only",
                        got,
                    ));
                }
                memories.iter_mut().for_each(|m| m.rescale(spec.c / last.c));
            }
            models.push(self.fit_from(spec, &mut memories, observer)?);
        }
        Ok(models)
    }

    pub(super) fn fit_from(
        &self,
        spec: &TrainSpec,
        memories: &mut Vec<Memory>,
        observer: &mut dyn Observer,
    ) -> Result<Model> {
        spec.check()?;
        let spec = &spec.with_c_in_numbers(self.samples.kept.len());
        if !spec.same_terms(&self.terms_of) {
            return Err(Error::param(
                "spec",
                "the kernels, scaling, storage and tolerance class prepared for",
                "others",
            ));
        }
        let fitting = self.samples.fitting(spec)?;
        spec.method.method().fit(&Job::new(self, spec, &fitting)?, memories, observer)
    }
}
