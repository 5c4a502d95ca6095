//! Holds a fit of ready-made kernels to the values that its model predicts for its own training
//! rows.

use super::verify::multipliers;
use crate::{
    Model, Result,
    gram::Stack,
    kernels::{Indefinite, Normalize},
    linalg::dot,
    outer::{NEGLIGIBLE_ROUNDING_SHARE, Slack, again, expected, times},
    prepare::Prepared,
    request::TrainSpec,
    trace::{Status, relative_gap},
};

impl Prepared {
    /// Makes the stated objective at least that of the model's own predictions for the training
    /// rows. Centred kernels differ most: a model adds kernel values as they are and a constant,
    /// where the fit has centred them first.
    pub(super) fn held_to_predictions(
        &self,
        mut model: Model,
        stack: Stack<'_>,
        spec: &TrainSpec,
    ) -> Result<Model> {
        let shifted = spec.indefinite == Indefinite::Shift;
        if model.localized.is_some() || model.rules.is_some() || model.shared.is_some() || shifted {
            return Ok(model);
        }
        // The bounds are those of the problem that was fitted, whose targets were divided by this.
        let unit = self.samples.unit(spec);
        let (fitting, tasks) = (self.samples.fitting(spec)?, self.samples.machines(spec)?);
        let mut answers = Vec::with_capacity(tasks.len());
        for machine in &model.machines {
            let mut a = multipliers(machine, &self.samples.kept)?;
            a.iter_mut().for_each(|a| *a /= unit);
            answers.push(a);
        }
        let mut machines = tasks.iter().zip(&model.machines).zip(&answers);
        let exact = machines.all(|((task, machine), a)| {
            let fitted = task.part(&fitting, spec).task;
            let off = expected(&self.grams, &machine.weights, &fitted, a);
            off <= NEGLIGIBLE_ROUNDING_SHARE * spec.tol * machine.certificate.primal.abs()
        });
        if exact && spec.normalize != Normalize::Center {
            return Ok(model);
        }
        let decision = model.decision_precomputed(stack)?;
        for (k, (task, a)) in tasks.iter().zip(answers).enumerate() {
            let machine = &mut model.machines[k];
            let rows = task.rows.clone().unwrap_or_else(|| (0..a.len()).collect());
            let pick = |v: &[f64]| rows.iter().map(|&i| v[i]).collect::<Vec<f64>>();
            let own_a = pick(&a);
            let own_f = pick(&times(&self.grams, &machine.weights, &a));
            let fitted = task.part(&fitting, spec).task;
            let second = pick(&again(&self.grams, &machine.weights, &a));
            let slack =
                Slack::of_sums(&fitted, (&own_a, &own_f, machine.intercept / unit), &second);
            let half = 0.5 * dot(&own_a, &own_f) + slack.form;
            let f: Vec<f64> =
                rows.iter().map(|&i| decision[(self.samples.kept[i], k)] / unit).collect();
            let own = fitting.loss().total(&task.y, &f, 0.0, &task.cost) + half;
            let c = &mut machine.certificate;
            if c.dual.is_nan() || own <= c.primal {
                continue;
            }
            (c.primal, c.gap) = (own, relative_gap(own, c.dual));
            if c.status == Status::Optimal && c.gap > spec.tol {
                c.status = Status::MaxIterations;
            }
        }
        Ok(model)
    }
}
