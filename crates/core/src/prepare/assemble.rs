//! From fits to a model: decision functions in the target's own units, and all that prediction
//! needs.

use super::{Prepared, samples::epsilon};
use crate::{
    Error, Model, Result,
    data::Target,
    machine::Fitting,
    model::{Certificate, Fit, FitPart, FittedMachine, Localized, Predictor},
    request::TrainSpec,
    trace::relative_gap,
};

impl Prepared {
    /// Brings the decision functions of a fit back to the target's own units.
    pub(crate) fn to_target_units(&self, fit: &mut Fit, spec: &TrainSpec) {
        let unit = self.samples.unit(spec);
        fit.parts.iter_mut().for_each(|p| p.rescale(unit));
    }

    /// Makes a model whose weights are the same for all rows.
    pub(crate) fn assemble_fits(
        &self,
        fits: &[Fit],
        spec: &TrainSpec,
        fitting: &Fitting,
    ) -> Result<Model> {
        let table = self.table_and_kernels();
        let mut predictor = Predictor::new(fits, &self.grams, table, spec.normalize);
        self.finish_predictor(&mut predictor);
        self.assemble(fits, spec, fitting, predictor, None)
    }

    /// Numbers the support rows as the data do, and adds the preprocessing that makes the columns.
    pub(crate) fn finish_predictor(&self, predictor: &mut Predictor) {
        predictor.rename_rows(&self.samples.kept);
        predictor.prepare_with(&self.plan);
    }

    pub(crate) fn assemble(
        &self,
        fits: &[Fit],
        spec: &TrainSpec,
        fitting: &Fitting,
        predictor: Predictor,
        localized: Option<Localized>,
    ) -> Result<Model> {
        if let Some(kernel) = predictor.overflow() {
            let names = self.input.kernel_names();
            let what = kernel
                .and_then(|k| names.get(k))
                .map_or("the constant".into(), |k| format!("kernel `{k}`"));
            let problem = "what the fit found for it is not finite: values of the kernel are too large or too small";
            return Err(Error::data(
                what,
                problem,
                "bring kernels to one scale near 1, or lower C",
            ));
        }
        let shared = fits.iter().find(|f| f.parts.len() > 1).map(|f| f.certificate);
        let machines =
            fits.iter().flat_map(|f| f.parts.iter().map(move |p| self.machine(f, p))).collect();
        let mut filled = spec.clone();
        filled.memory = Some(self.budget.bytes);
        filled.loss = Some(fitting.name());
        if let Target::Values(y) = &self.samples.target {
            filled.epsilon = epsilon(fitting.name(), spec, y).or(spec.epsilon);
        }
        let mut model = Model {
            task: self.samples.prediction(spec.multi_class),
            input: self.input.clone(),
            request: filled,
            machines,
            shared,
            rules: None,
            predictor,
            localized,
            warnings: self.warnings.clone(),
            n_samples: self.samples.kept.len(),
            seconds: self.began.elapsed().as_secs_f64(),
            version: env!("CARGO_PKG_VERSION").into(),
            storage: (self.grams.describe(), self.budget.bytes),
            approximation: self.grams.approximation().to_vec(),
        };
        for (name, fit) in model.machine_names().iter().zip(fits) {
            let told = |w: &String| if fits.len() > 1 { format!("{name}: {w}") } else { w.clone() };
            model.warnings.extend(fit.warnings.iter().map(told));
        }
        Ok(model)
    }

    /// Describes one decision function. Where weights are shared, its certificate is the machine's
    /// own at these weights.
    fn machine(&self, fit: &Fit, part: &FitPart) -> FittedMachine {
        let support: Vec<usize> = (0..part.dual.len()).filter(|&i| part.dual[i] != 0.0).collect();
        let certificate = if fit.parts.len() == 1 {
            fit.certificate
        } else {
            let (primal, dual) = (part.primal, part.lower);
            Certificate { primal, dual, gap: relative_gap(primal, dual), ..fit.certificate }
        };
        FittedMachine {
            weights: fit.weights.clone(),
            dual_coef: support.iter().map(|&i| part.dual[i]).collect(),
            support: support.iter().map(|&i| self.samples.kept[i]).collect(),
            intercept: part.bias,
            certificate,
            trace: fit.trace.clone(),
        }
    }
}
