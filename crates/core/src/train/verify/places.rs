//! Where the training rows of a localized model lie, by its own functions.

use super::FEASIBLE;
use crate::{
    Error, Model, Result,
    data::Dataset,
    gram::{Budget, GramSource},
    linalg::Matrix,
    localize::{LocalizedGramSet, Placement},
    model::{FittedMachine, NewRows},
    outer::{Gate, GroupGate, KernelGate, larger},
    prepare::Prepared,
    request::{Lmkl, TrainSpec},
};

pub(super) struct Places {
    /// Memberships, or gates where they are paired with kernels: one matrix for all machines, or
    /// one each.
    scales: Vec<Matrix>,
    /// Has every kernel a gate of its own?
    pub paired: bool,
    /// Weights of the groups, machine by machine, where gates come from groups.
    betas: Vec<Option<Vec<Vec<f64>>>>,
    /// The group of every row, machine by machine.
    labels: Vec<Vec<usize>>,
}

impl Places {
    /// Places the rows by the model's own functions; `None` for global weights.
    pub fn of(spec: &TrainSpec, model: &Model, data: &Dataset) -> Result<Option<Self>> {
        let Some(localized) = &model.localized else { return Ok(None) };
        // Clusters that were found are soft unless the request says otherwise.
        let soft = spec.method.finds_soft_regions();
        let given = localized.gatings.iter().any(|g| match g.placement {
            Placement::Given => true,
            Placement::Clusters { tau: None } => soft,
            _ => false,
        });
        if given {
            return Err(Error::data(
                "model",
                "its regions were given with the training rows, and the file does not keep them",
                "models whose regions were found, or are a column, can be verified",
            ));
        }
        let memberships = model.memberships(NewRows::Table(data), None)?;
        let paired = localized.gating(0).is_paired();
        let largest =
            |row: &[f64]| (0..row.len()).fold(0, |b, j| if row[j] > row[b] { j } else { b });
        let labels = memberships
            .iter()
            .map(|c| (0..c.rows()).map(|i| largest(c.row(i))).collect())
            .collect();
        let gates = |(c, g): (&Matrix, &crate::localize::Gating)| {
            if paired { g.gates(c) } else { c.clone() }
        };
        let scales = memberships.iter().zip(&localized.gatings).map(gates).collect();
        let betas = localized.gatings.iter().map(|g| g.weights.clone()).collect();
        Ok(Some(Self { scales, paired, betas, labels }))
    }

    fn at(&self, k: usize) -> usize {
        if self.scales.len() == 1 { 0 } else { k }
    }

    /// Scales the kernel terms for machine k.
    pub fn grams<'a>(
        &self,
        grouped: &'a dyn GramSource,
        base: &'a dyn GramSource,
        k: usize,
        room: Budget,
    ) -> LocalizedGramSet<'a> {
        let scales = &self.scales[self.at(k)];
        if self.paired {
            LocalizedGramSet::paired(base, scales, room)
        } else {
            LocalizedGramSet::cross(grouped, scales, room)
        }
    }

    /// Says in words which stated weight is not that of the gate.
    pub fn wrong_weights(
        &self,
        spec: &TrainSpec,
        machine: &FittedMachine,
        k: usize,
    ) -> Option<String> {
        let gates = &self.scales[self.at(k)];
        let exponent = spec.method.group_norm();
        let own: Vec<f64> = match &self.betas[self.at(k)] {
            Some(betas) => {
                for (g, beta) in betas.iter().enumerate() {
                    let norm: f64 = beta.iter().map(|b| b.powf(exponent)).sum();
                    if (norm - 1.0).abs() > FEASIBLE || beta.iter().any(|b| *b < 0.0) {
                        return Some(format!(
                            "the weights of group {} have Σ β^p = {norm:.9}, not 1",
                            g + 1
                        ));
                    }
                }
                betas.concat()
            }
            None => (0..gates.cols())
                .map(|m| gates.column(m).iter().sum::<f64>() / gates.rows() as f64)
                .collect(),
        };
        let differs =
            own.iter().zip(&machine.weights).position(|(a, b)| (a - b).abs() > FEASIBLE.sqrt());
        differs.map(|m| {
            format!("weight {} is {}, and the gate gives {}", m + 1, machine.weights[m], own[m])
        })
    }

    /// The derivative ∂V/∂η of machine k from its multipliers over all rows.
    pub fn gate_gradient(&self, base: &dyn GramSource, k: usize, a: &[f64]) -> Matrix {
        let gates = &self.scales[self.at(k)];
        let mut out = Matrix::zeros(gates.rows(), gates.cols());
        let mut product = vec![0.0; a.len()];
        for m in 0..gates.cols() {
            let scaled: Vec<f64> = a.iter().zip(gates.column(m)).map(|(a, g)| a * g).collect();
            base.apply(m, &scaled, &mut product);
            (0..a.len()).for_each(|i| out[(i, m)] = -a[i] * product[i]);
        }
        out
    }

    /// The largest |∂V/∂z| over the parameters z of the gate.
    pub fn slope(
        &self,
        prepared: &Prepared,
        spec: &TrainSpec,
        k: usize,
        by_gate: &Matrix,
    ) -> Result<f64> {
        let (gates, k) = (&self.scales[self.at(k)], self.at(k));
        let steepest = |gate: &dyn Gate, z: Vec<f64>| {
            let gradient = gate.gradient(&gate.element(z), gates, by_gate);
            gradient.image.iter().fold(0.0, |m: f64, g| larger(m, g.abs()))
        };
        if let Some(Lmkl { gate, gate_kernel, .. }) = spec.method.kernel_gate() {
            let kernel = prepared.gate_gram(spec, gate_kernel.as_deref())?;
            let form = KernelGate { kernel: &kernel, kernels: gates.cols(), form: *gate };
            let size = form.size();
            return Ok(steepest(&form, vec![0.0; size]));
        }
        let Some(betas) = &self.betas[k] else { return Ok(f64::NAN) };
        let p = spec.method.group_norm();
        let alignments = Matrix::zeros(betas.len(), gates.cols());
        let form = GroupGate { labels: &self.labels[k], p, alignments: &alignments };
        Ok(steepest(&form, betas.concat().iter().map(|b| b.ln()).collect()))
    }
}
