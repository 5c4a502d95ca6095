//! The certificate of a saved model, recomputed from its training data.
//!
//! [`verify`] solves nothing. The kernel terms are built anew from the rows and the model's own
//! request, the stored multipliers a, weights θ and biases b are put back, and every number that
//! the certificate rests on is computed again:
//!
//! - the objective at (θ, a, b), with θ checked to lie in its set: an upper bound on the optimum;
//! - A(a) − ½·support(s), with a checked to be feasible: a lower bound; for methods without one,
//!   how far the weights are from rest;
//! - for localized weights the memberships or gates of the rows, from the model's own functions,
//!   and the terms scaled by them;
//! - for veto–consensus rules J, and what reassigning the rejected rows would gain;
//! - the decision values K_θ a + b on the training rows, which the model's stored functions must
//!   reproduce.
//!
//! A fit may have stated a better lower bound than this: methods for sparse weights combine several
//! dual vectors, and the file keeps one, which proves little where Θ has corners. [`prove`] runs
//! the method again from the stored solution for a bound as good as the fit's.

mod checked;
mod places;
mod rules;
mod same;

use checked::{Checked, regions};
use same::{same_classes, same_input, same_rows};

use crate::{
    Error, Model, Result,
    data::{Dataset, Target},
    model::{Certificate, FittedMachine, Prediction},
    prepare::Prepared,
    request::TrainSpec,
    trace::{Observer, Status, relative_gap},
};

/// Objectives that agree to this, relative to their size, are the same.
pub const SAME_OBJECTIVE: f64 = 1e-6;
/// Training data that agree to this, relative to their size, are the same: what rounding in another
/// place may change.
pub(super) const SAME_DATA: f64 = 1e-9;
/// Slack in the constraints on θ and a: rounding.
pub(super) const FEASIBLE: f64 = 1e-8;
/// Decision values that agree to this, relative to the largest, are the same: low-rank functions of
/// new points go through a triangular solve, and kernels stored in single precision are rounded.
pub(super) const SAME_DECISION: f64 = 1e-5;

/// What a certificate is worth.
#[derive(Debug, Clone, PartialEq)]
pub struct Verification {
    /// What the model says of itself.
    pub stated: Certificate,
    /// What its weights, multipliers and biases prove on these rows; status and iterations are the
    /// stated ones.
    pub recomputed: Certificate,
    /// What a new run from the stored solution proves of it; only by [`prove`], and only where the
    /// method has a lower bound.
    pub proven: Option<Certificate>,
    /// The largest difference between the stored decision functions and K_θ a + b on the training
    /// rows, relative to the largest value.
    pub drift: f64,
    /// Where weights are penalised: how far they would still move, relative to their size (the
    /// largest over machines). Where gates are learned: the largest derivative of the objective by
    /// a parameter of the gate, relative to the objective. For rules: what solving again with every
    /// negative at its cheapest rule would gain, relative to the objective.
    pub change: Option<f64>,
    /// What does not hold, in plain words.
    pub findings: Vec<String>,
    /// Is there nothing to find?
    pub agrees: bool,
}

/// Recomputes the certificate of `model` from the rows it was fitted on. Rows that cannot be those
/// are an error; rows that can, and for which the certificate does not hold, are a [`Verification`]
/// that does not agree.
pub fn verify(
    model: &Model,
    data: &Dataset,
    target: &Target,
    sample_weight: Option<&[f64]>,
) -> Result<Verification> {
    let (spec, prepared) = prepare(model, data, target, sample_weight)?;
    let rows = data.select(&prepared.samples.kept);
    if let Some(own) = spec.method.rules() {
        return prepared.verify_rules(&spec, own, model, &rows);
    }
    let decision = model.decision(&rows)?;
    Checked::new(&prepared, &spec, model, &rows)?.verification(model, &decision)
}

/// [`verify`], and if the certificate holds, a run of the method from the stored weights and
/// multipliers for a lower bound of its own.
pub fn prove(
    model: &Model,
    data: &Dataset,
    target: &Target,
    sample_weight: Option<&[f64]>,
    observer: &mut dyn Observer,
) -> Result<Verification> {
    let (spec, prepared) = prepare(model, data, target, sample_weight)?;
    let rows = data.select(&prepared.samples.kept);
    if let Some(own) = spec.method.rules() {
        return prepared.verify_rules(&spec, own, model, &rows);
    }
    let decision = model.decision(&rows)?;
    let checked = Checked::new(&prepared, &spec, model, &rows)?;
    let mut memories = checked.memories();
    let mut found = checked.verification(model, &decision)?;
    if found.agrees && found.recomputed.gap.is_finite() {
        // Fixed weights are proved by their own multipliers.
        let dual = match spec.method.weight_set(regions(model))? {
            None => found.recomputed.dual,
            Some(_) => prepared
                .fit_from(&spec, &mut memories, observer)?
                .certificate()
                .dual
                .max(found.recomputed.dual),
        };
        let gap = relative_gap(found.recomputed.primal, dual);
        found.proven = Some(Certificate { dual, gap, ..found.recomputed });
    }
    Ok(found)
}

/// The request and the kernel terms on these rows, which must be those of the fit as far as the
/// model can tell.
fn prepare(
    model: &Model,
    data: &Dataset,
    target: &Target,
    sample_weight: Option<&[f64]>,
) -> Result<(TrainSpec, Prepared)> {
    let spec = model.request.clone();
    same_classes(model, target)?;
    let prepared = Prepared::from_table(data, target, sample_weight, &spec)?;
    if prepared.samples.kept.len() != model.n_samples {
        return Err(other_rows(format!(
            "{} rows, and the fit had {}",
            prepared.samples.kept.len(),
            model.n_samples
        )));
    }
    same_input(&model.input, &prepared.input)?;
    if let Some(x) = &prepared.table {
        same_rows(model, x, &prepared.samples.kept)?;
    }
    Ok((spec, prepared))
}

/// The multipliers of the kept rows.
pub(super) fn multipliers(machine: &FittedMachine, kept: &[usize]) -> Result<Vec<f64>> {
    let mut a = vec![0.0; kept.len()];
    for (row, value) in machine.support.iter().zip(&machine.dual_coef) {
        let at = kept
            .binary_search(row)
            .map_err(|_| other_rows(format!("row {} has no weight now", row + 1)))?;
        a[at] = *value;
    }
    Ok(a)
}

pub(super) fn other_rows(problem: impl Into<String>) -> Error {
    let problem = format!("these are not the rows the model was fitted on: {}", problem.into());
    Error::data(
        "data",
        problem,
        "give the training rows, in their order, with the same target and weights",
    )
}

/// What the model says of itself and does not follow from its request and its own numbers.
pub(super) fn wrong_words(model: &Model, expected: &Prediction, tol: f64) -> Vec<String> {
    let mut found = Vec::new();
    if let (
        Prediction::Classification { scheme: stored, .. },
        Prediction::Classification { scheme: requested, classes },
    ) = (&model.task, expected)
        && stored != requested
        && classes.len() > 2
    {
        found.push(format!(
            "the model combines its machines {}, and its request says {}",
            stored.as_str(),
            requested.as_str()
        ));
    }
    // The sum over machines follows from theirs.
    for c in model
        .shared
        .iter()
        .chain(model.machines.iter().map(|m| &m.certificate))
        .filter(|c| !c.dual.is_nan())
    {
        let proves = relative_gap(c.primal, c.dual);
        if c.gap.is_nan() || c.gap < proves * (1.0 - SAME_OBJECTIVE) - f64::EPSILON {
            found.push(format!(
                "a gap of {:.1e} is stated, and the stated bounds prove {proves:.1e}",
                c.gap
            ));
        } else if c.status == Status::Optimal
            && model.shared.is_none()
            && c.gap > tol * (1.0 + SAME_OBJECTIVE)
        {
            found.push(format!(
                "`optimal` is stated with a gap of {:.1e}, above the tolerance {tol:.1e}",
                c.gap
            ));
        }
    }
    found
}
