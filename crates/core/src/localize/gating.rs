//! From numbers that kernel values give to memberships and gate values of a row.

use serde::{Deserialize, Serialize};

use super::memberships::place;
use crate::{Error, Result, Told, linalg::Matrix};

/// The way in which rows are placed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Placement {
    /// Functions are squared distances to the centres of regions, up to a number common to all:
    /// memberships ∝ exp(−τ d²), or the nearest region alone where there is no τ.
    Clusters {
        /// The sharpness τ; `None` where memberships are hard.
        tau: Option<f64>,
    },
    /// η_m ∝ exp(z_m) over the kernels.
    Softmax,
    /// η_m = 1/(1 + exp(−z_m)).
    Sigmoid,
    /// A column of the table says the region.
    Column {
        /// The name of the column.
        column: String,
        /// The column's value in each region.
        values: Vec<f64>,
    },
    /// Memberships come with the rows.
    Given,
}

/// The rule that says where a row lies and how the parts of a decision function are weighed there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Gating {
    /// The way in which rows are placed.
    pub placement: Placement,
    /// Number of regions (of kernels, where every kernel has its own gate).
    pub regions: usize,
    /// Gate of each kernel in each region, where parts are kernels; `None` where parts are regions
    /// (or gates are the memberships).
    pub weights: Option<Vec<Vec<f64>>>,
}

impl Gating {
    /// Number of kernel functions that it evaluates on a row.
    pub fn functions(&self) -> usize {
        match self.placement {
            Placement::Clusters { .. } | Placement::Softmax | Placement::Sigmoid => self.regions,
            Placement::Column { .. } | Placement::Given => 0,
        }
    }

    /// Number of parts of a decision function.
    pub fn parts(&self) -> usize {
        self.weights.as_ref().and_then(|w| w.first()).map_or(self.regions, Vec::len)
    }

    /// Are parts kernels, rather than regions with a weight for every kernel?
    pub fn is_paired(&self) -> bool {
        self.weights.is_some() || matches!(self.placement, Placement::Softmax | Placement::Sigmoid)
    }

    /// Memberships of rows, `rows × regions`, from the values of its functions
    /// (`rows × functions`), the column's values, or what was given.
    pub fn memberships(
        &self,
        values: &Matrix,
        column: Option<&[f64]>,
        given: Option<&Matrix>,
    ) -> Result<Matrix> {
        let mut out = Matrix::zeros(values.rows(), self.regions);
        for i in 0..out.rows() {
            let row = out.row_mut(i);
            match &self.placement {
                Placement::Clusters { tau } => place(values.row(i), *tau, row),
                Placement::Softmax => softmax(values.row(i), row),
                Placement::Sigmoid => {
                    row.iter_mut().zip(values.row(i)).for_each(|(o, z)| *o = sigmoid(*z));
                }
                Placement::Column { column: name, values: known } => {
                    let value = column.and_then(|c| c.get(i)).copied().unwrap_or(f64::NAN);
                    let Some(j) = known.iter().position(|v| *v == value) else {
                        let listed =
                            known.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
                        return Err(Error::data(
                            format!("column `{name}`"),
                            Told::row(i, format!("has {value}, which names no region")),
                            format!("the regions of the fit are {listed}"),
                        ));
                    };
                    row[j] = 1.0;
                }
                Placement::Given => {
                    let Some(given) = given else {
                        return Err(Error::data(
                            "regions",
                            "the model was fitted with memberships of its own and cannot place rows",
                            "give the memberships of the new rows as well",
                        ));
                    };
                    if given.rows() != values.rows() || given.cols() != self.regions {
                        let expected = format!("({}, {})", values.rows(), self.regions);
                        return Err(Error::shape(
                            "memberships",
                            expected,
                            format!("({}, {})", given.rows(), given.cols()),
                        ));
                    }
                    row.copy_from_slice(given.row(i));
                }
            }
        }
        Ok(out)
    }

    /// Gate values of the parts, `rows × parts`.
    pub fn gates(&self, memberships: &Matrix) -> Matrix {
        match &self.weights {
            None => memberships.clone(),
            Some(weights) => weigh(memberships, weights),
        }
    }
}

/// The weights Σ_j c_j(x) w_jm for every row x and kernel m.
pub(crate) fn weigh(memberships: &Matrix, weights: &[Vec<f64>]) -> Matrix {
    let parts = weights.first().map_or(0, Vec::len);
    let mut out = Matrix::zeros(memberships.rows(), parts);
    for i in 0..out.rows() {
        for (c, w) in memberships.row(i).iter().zip(weights).filter(|(c, _)| **c != 0.0) {
            out.row_mut(i).iter_mut().zip(w).for_each(|(o, w)| *o += c * w);
        }
    }
    out
}

/// Writes exp(z − max z) over its sum.
pub(crate) fn softmax(z: &[f64], out: &mut [f64]) {
    let largest = z.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    out.iter_mut().zip(z).for_each(|(o, z)| *o = (z - largest).exp());
    let total: f64 = out.iter().sum();
    out.iter_mut().for_each(|o| *o /= total);
}

/// The logistic function 1/(1 + exp(−z)).
pub(crate) fn sigmoid(z: f64) -> f64 {
    1.0 / (1.0 + (-z).exp())
}
