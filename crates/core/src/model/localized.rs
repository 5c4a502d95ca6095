//! Models whose kernel weights depend on where a row lies: f(x) = Σ_j gate_j(x) f_j(x) + b.
//!
//! Parts f_j are ordinary kernel functions, and so is all that gates are computed from (distances
//! to centres, arguments of a softmax). The predictor evaluates them together; here they are put
//! together. Its functions are, in order: those of every gating, then the parts of every machine.

use serde::{Deserialize, Serialize};

use super::{Input, Model};
use crate::{
    Error, Result, Told,
    data::Dataset,
    gram::Stack,
    kernels::KernelSpec,
    linalg::{Matrix, dot},
    localize::{Gating, Placement, weigh},
};

/// What a localized model has besides its machines.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Localized {
    /// One for all machines, or one each.
    pub gatings: Vec<Gating>,
    /// Kernels that only gatings use; they follow the base kernels in the count of kernels.
    pub kernels: Vec<KernelSpec>,
}

impl Localized {
    /// The gating of machine `k`.
    pub fn gating(&self, k: usize) -> &Gating {
        &self.gatings[if self.gatings.len() == 1 { 0 } else { k }]
    }

    /// Functions that the predictor must hold for `machines` machines.
    pub(super) fn functions(&self, machines: usize) -> usize {
        let gates: usize = self.gatings.iter().map(Gating::functions).sum();
        gates + (0..machines).map(|k| self.gating(k).parts()).sum::<usize>()
    }

    /// Weight vectors of machine `k`: one per region, or one in all where every kernel has a gate
    /// of its own.
    pub fn weight_rows(&self, k: usize) -> usize {
        match self.gating(k) {
            Gating { placement: Placement::Softmax | Placement::Sigmoid, .. } => 1,
            gating => gating.regions,
        }
    }

    /// Is there a gating for every machine, and do its numbers fit each other?
    pub(super) fn is_consistent(&self, machines: usize, kernels: usize) -> bool {
        let sizes = |g: &Gating| {
            let column = match &g.placement {
                Placement::Column { values, .. } => values.len() == g.regions,
                _ => true,
            };
            let weights = g.weights.as_ref().is_none_or(|w| {
                w.len() == g.regions
                    && w.iter()
                        .all(|row| row.len() == g.parts() && row.iter().all(|x| x.is_finite()))
            });
            g.regions > 0 && column && weights && (!g.is_paired() || g.parts() == kernels)
        };
        (self.gatings.len() == 1 || self.gatings.len() == machines)
            && self.gatings.iter().all(sizes)
    }
}

/// Rows that a model has not seen.
#[derive(Debug, Clone, Copy)]
pub enum NewRows<'a> {
    /// Columns of a table.
    Table(&'a Dataset),
    /// Ready-made kernel values against the training rows.
    Kernels(Stack<'a>),
}

/// Where rows lie, and the values of all parts there.
struct RowPlaces {
    /// Per gating, `rows × regions`.
    memberships: Vec<Matrix>,
    values: Matrix,
    /// Column of `values` where the parts begin.
    parts: usize,
}

impl Model {
    /// Memberships of rows in the regions (gates of the kernels, where every kernel has its own),
    /// `rows × regions`: one matrix that holds for all machines, or one per machine. `given` is for
    /// models fitted with memberships that the user made.
    pub fn memberships(&self, rows: NewRows<'_>, given: Option<&Matrix>) -> Result<Vec<Matrix>> {
        Ok(self.place(self.localized_part()?, rows, given)?.memberships)
    }

    /// Weight of every kernel at every row, `rows × kernels`, one matrix per machine: Σ_j c_j(x)
    /// β_jm, or the gates themselves.
    pub fn local_weights(&self, rows: NewRows<'_>, given: Option<&Matrix>) -> Result<Vec<Matrix>> {
        let localized = self.localized_part()?;
        let placed = self.place(localized, rows, given)?;
        let weights = |(k, machine): (usize, &super::FittedMachine)| {
            let gating = localized.gating(k);
            let memberships = &placed.memberships[if localized.gatings.len() == 1 { 0 } else { k }];
            if gating.is_paired() {
                return gating.gates(memberships);
            }
            let rows: Vec<Vec<f64>> =
                machine.weights.chunks(self.kernel_names().len()).map(<[f64]>::to_vec).collect();
            weigh(memberships, &rows)
        };
        Ok(self.machines.iter().enumerate().map(weights).collect())
    }

    /// Decision values, `rows × machines`, as [`Model::decision`] gives them; `given` as in
    /// [`Model::memberships`].
    pub fn decision_at(&self, rows: NewRows<'_>, given: Option<&Matrix>) -> Result<Matrix> {
        let decision = self.any_decision(rows, given)?;
        let Some(at) = decision.data().iter().position(|d| !d.is_finite()) else {
            return Ok(decision);
        };
        let problem = Told::row(
            at / decision.cols(),
            format!("has the decision value {}", decision.data()[at]),
        );
        Err(Error::data("the prediction", problem, "its values are too large for this model"))
    }

    fn any_decision(&self, rows: NewRows<'_>, given: Option<&Matrix>) -> Result<Matrix> {
        let Some(localized) = &self.localized else {
            return self.values(rows).map(|v| self.combined(v));
        };
        let placed = self.place(localized, rows, given)?;
        let mut out = Matrix::zeros(placed.values.rows(), self.machines.len());
        let mut at = placed.parts;
        for (k, machine) in self.machines.iter().enumerate() {
            let gating = localized.gating(k);
            let gates =
                gating.gates(&placed.memberships[if localized.gatings.len() == 1 { 0 } else { k }]);
            for i in 0..out.rows() {
                let parts = &placed.values.row(i)[at..at + gating.parts()];
                out[(i, k)] = machine.intercept + dot(gates.row(i), parts);
            }
            at += gating.parts();
        }
        Ok(out)
    }

    fn localized_part(&self) -> Result<&Localized> {
        self.localized.as_ref().ok_or_else(|| {
            Error::data(
                "model",
                "its kernel weights do not depend on the row",
                "fit clmkl, lmkl, glmkl or gsmkl",
            )
        })
    }

    fn place(
        &self,
        localized: &Localized,
        rows: NewRows<'_>,
        given: Option<&Matrix>,
    ) -> Result<RowPlaces> {
        let values = self.values(rows)?;
        let (mut at, mut memberships) = (0, Vec::new());
        for gating in &localized.gatings {
            let own: Vec<usize> = (at..at + gating.functions()).collect();
            let column = match &gating.placement {
                Placement::Column { column, .. } => Some(self.raw_column(rows, column)?),
                _ => None,
            };
            let found = gating.memberships(&values.select_cols(&own), column.as_deref(), given);
            memberships.push(found.map_err(|e| match rows {
                NewRows::Table(data) => data.located(e),
                NewRows::Kernels(_) => e,
            })?);
            at += own.len();
        }
        Ok(RowPlaces { memberships, values, parts: at })
    }

    /// A training column of the new rows, as it stands in them.
    fn raw_column(&self, rows: NewRows<'_>, name: &str) -> Result<Vec<f64>> {
        let (NewRows::Table(data), Input::Table { columns, .. }) = (rows, &self.input) else {
            return Ok(Vec::new());
        };
        let used = columns.iter().position(|c| c == name).unwrap_or(0);
        Ok(data.features().column(super::columns_of(data, columns, &[used])?[0]))
    }
}
