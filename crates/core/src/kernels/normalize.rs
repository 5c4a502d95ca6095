//! Kernel normalisation: constants from the training block alone, applied to training, cross and
//! self values.

use serde::{Deserialize, Serialize};

use super::Normalize;
use crate::{Error, Result, Told, linalg::Matrix};

/// The constants of one kernel's normalisation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Normalizer {
    /// K / divisor (1 for no normalisation).
    Scale {
        /// Trace, feature-space variance, or 1.
        divisor: f64,
    },
    /// K_ij / √(K_ii K_jj).
    Spherical,
    /// K_ij − r_i − r_j + g.
    Center {
        /// Mean kernel value of each training row.
        row_means: Vec<f64>,
        /// Mean of all kernel values.
        grand_mean: f64,
    },
}

impl Normalizer {
    /// From the diagonal and the row sums of the training block (row sums are asked for only where
    /// they are needed).
    pub fn fit(
        kind: Normalize,
        name: &str,
        diagonal: &[f64],
        row_sums: impl FnOnce() -> Vec<f64>,
    ) -> Result<Self> {
        let n = diagonal.len() as f64;
        let trace: f64 = diagonal.iter().sum();
        let largest = diagonal.iter().fold(0.0f64, |m, d| m.max(d.abs()));
        let checked = |divisor: f64, what: &str| {
            if !divisor.is_finite() || (largest > 0.0 && divisor.is_subnormal()) {
                return Err(Error::data(
                    format!("kernel `{name}`"),
                    format!(
                        "{what} is {divisor:e} on the training rows, which is too large or too small to divide by"
                    ),
                    "multiply the kernel by a number that brings its values near 1",
                ));
            }
            if divisor > 1e-12 * largest {
                return Ok(Self::Scale { divisor });
            }
            Err(Error::data(
                format!("kernel `{name}`"),
                format!(
                    "{what} is {divisor:e} on the training rows, so it cannot tell samples apart"
                ),
                "its columns are constant there: leave them out",
            ))
        };
        match kind {
            Normalize::None => Ok(Self::Scale { divisor: 1.0 }),
            Normalize::Trace => checked(trace, "its trace"),
            Normalize::Multiplicative => checked(
                trace / n - row_sums().iter().sum::<f64>() / (n * n),
                "its variance in feature space",
            ),
            Normalize::Spherical => match diagonal.iter().position(|&d| d.is_nan() || d <= 0.0) {
                None => Ok(Self::Spherical),
                Some(i) => Err(Error::data(
                    format!("kernel `{name}`"),
                    Told::row(
                        i,
                        format!("has k(x, x) = {}, which cannot be scaled to 1", diagonal[i]),
                    ),
                    "choose another normalisation or drop that row",
                )),
            },
            Normalize::Center => {
                let row_means: Vec<f64> = row_sums().iter().map(|s| s / n).collect();
                let grand_mean = row_means.iter().sum::<f64>() / n;
                Ok(Self::Center { row_means, grand_mean })
            }
        }
    }

    /// From a whole training block.
    pub fn fit_block(kind: Normalize, name: &str, k: &Matrix) -> Result<Self> {
        let diagonal: Vec<f64> = (0..k.rows()).map(|i| k[(i, i)]).collect();
        Self::fit(kind, name, &diagonal, || (0..k.rows()).map(|i| k.row(i).iter().sum()).collect())
    }

    /// Normalises the training block itself.
    pub fn apply_train(&self, k: &mut Matrix) {
        let diagonal: Vec<f64> = (0..k.rows()).map(|i| k[(i, i)]).collect();
        match self {
            Self::Center { row_means, grand_mean } => {
                for i in 0..k.rows() {
                    let shift = grand_mean - row_means[i];
                    k.row_mut(i).iter_mut().zip(row_means).for_each(|(v, r)| *v += shift - r);
                }
            }
            _ => self.apply_cross(k, &diagonal, &diagonal),
        }
    }

    /// Normalises new rows against the training columns. Self values (`own` of the rows, `train` of
    /// the columns) are used by `Spherical` alone.
    pub fn apply_cross(&self, k: &mut Matrix, own: &[f64], train: &[f64]) {
        for i in 0..k.rows() {
            let row = k.row_mut(i);
            match self {
                Self::Scale { divisor } => row.iter_mut().for_each(|v| *v /= divisor),
                Self::Spherical => {
                    row.iter_mut().zip(train).for_each(|(v, d)| *v /= (own[i] * d).sqrt());
                }
                Self::Center { row_means, grand_mean } => {
                    let shift = grand_mean - row.iter().sum::<f64>() / row.len() as f64;
                    row.iter_mut().zip(row_means).for_each(|(v, r)| *v += shift - r);
                }
            }
        }
    }

    /// Normalised self values of new rows, given their raw cross block.
    pub fn apply_self(&self, own: &mut [f64], raw_cross: &Matrix) {
        match self {
            Self::Scale { divisor } => own.iter_mut().for_each(|v| *v /= divisor),
            Self::Spherical => own.fill(1.0),
            Self::Center { grand_mean, .. } => {
                for (i, v) in own.iter_mut().enumerate() {
                    let row = raw_cross.row(i);
                    *v += grand_mean - 2.0 * row.iter().sum::<f64>() / row.len() as f64;
                }
            }
        }
    }
}
