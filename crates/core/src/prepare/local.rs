//! From fits whose weights depend on where a row lies to a model.

use super::{Job, Prepared, regions::Placing};
use crate::{
    Model, Result,
    data::Rows,
    gram::Combination,
    kernels::KernelSpec,
    localize::Gating,
    model::{Expansion, Fit, Localized, Predictor},
};

/// What a localized model is assembled from.
#[derive(Default)]
pub(crate) struct LocalParts {
    /// The fits, machine by machine.
    pub fits: Vec<Fit>,
    /// The decision functions of each region, or behind each gate.
    pub decisions: Vec<Expansion>,
    gatings: Vec<Gating>,
    functions: Vec<Expansion>,
    kernels: Vec<KernelSpec>,
}

impl LocalParts {
    /// Adds the placing of one machine, or of all.
    pub fn add_placing(&mut self, placing: Placing) {
        self.gatings.push(placing.gating);
        self.functions.extend(placing.functions);
        // Every machine has the same kernels of its own.
        self.kernels = placing.kernels;
    }

    /// The model.
    pub fn assemble(self, job: &Job<'_>) -> Result<Model> {
        let Self { fits, gatings, functions, decisions, kernels } = self;
        let mut functions: Vec<Expansion> = functions.into_iter().chain(decisions).collect();
        share_rows(&mut functions);
        let all: Option<(&Rows, Vec<KernelSpec>)> =
            job.prepared.table_and_kernels().map(|(x, base)| (x, [base, &kernels].concat()));
        let table = all.as_ref().map(|(x, kernels)| (*x, kernels.as_slice()));
        let mut predictor = Predictor::of(functions, table, job.request.normalize);
        job.prepared.finish_predictor(&mut predictor);
        let localized = Some(Localized { gatings, kernels });
        let mut model =
            job.prepared.assemble(&fits, job.request, job.fitting, predictor, localized)?;
        job.prepared.tell_if_fits_are_flat(&mut model, &fits);
        Ok(model)
    }
}

impl Prepared {
    /// Σ_m weight_m Σ_i a_i k_m(x_i, ·).
    pub(crate) fn expand(&self, weights: &[f64], a: &[f64]) -> Expansion {
        let mut out = Expansion::default();
        for (m, &w) in weights.iter().enumerate().filter(|(_, w)| **w != 0.0) {
            out.add(m, w, (&self.grams, m), a);
        }
        out
    }
}

/// Functions of one kernel get the same rows, with zeros where they had none: kernel values of a
/// new row are then computed once for all.
fn share_rows(functions: &mut [Expansion]) {
    let mut by_kernel: std::collections::BTreeMap<usize, Vec<&mut Combination>> =
        std::collections::BTreeMap::new();
    for (kernel, basis, _) in functions.iter_mut().flat_map(|f| &mut f.terms) {
        by_kernel.entry(*kernel).or_default().push(basis);
    }
    for bases in by_kernel.values_mut() {
        let mut all: Option<Vec<usize>> = None;
        let mut differ = false;
        for basis in bases.iter() {
            let Combination::Samples { index, .. } = &**basis else { continue };
            match &mut all {
                None => all = Some(index.clone()),
                Some(rows) if rows != index => {
                    differ = true;
                    rows.extend_from_slice(index);
                    rows.sort_unstable();
                    rows.dedup();
                }
                Some(_) => {}
            }
        }
        let Some(rows) = all.filter(|_| differ) else { continue };
        for basis in bases.iter_mut() {
            let Combination::Samples { index, coef } = &mut **basis else { continue };
            let mut shared = vec![0.0; rows.len()];
            index
                .iter()
                .zip(coef.iter())
                .for_each(|(i, c)| shared[rows.partition_point(|r| r < i)] = *c);
            (*index, *coef) = (rows.clone(), shared);
        }
    }
}
