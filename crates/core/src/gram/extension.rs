//! Terms on new rows: a combination of training rows becomes a function of a new one.

use super::{GramSet, GramSource, impute::Imputation, stored::Stored};
use crate::{
    data::Missing,
    kernels::Normalizer,
    linalg::{axpy, dot},
};

/// A term's share of the decision function, for new points.
#[derive(Debug, Clone, PartialEq)]
pub struct Extension {
    /// The part that varies with the new point.
    pub combination: Combination,
    /// The part that does not.
    pub offset: f64,
    /// What stands for the varying part where a new row lacks what the term reads.
    pub absent: f64,
}

/// A linear combination of raw (unnormalised, or spherically normalised) kernel values or features.
#[derive(Debug, Clone, PartialEq)]
pub enum Combination {
    /// Σ coef_j k(x_index_j, x).
    Samples {
        /// The training rows that count.
        index: Vec<usize>,
        /// One coefficient for each of them.
        coef: Vec<f64>,
    },
    /// ⟨coef, φ(x)⟩ with the kernel's exact features.
    Monomials {
        /// One coefficient per feature.
        coef: Vec<f64>,
    },
    /// ⟨coef, φ(x)⟩ with random Fourier features.
    Waves {
        /// One coefficient per feature.
        coef: Vec<f64>,
        /// Seed of the frequencies.
        seed: u64,
    },
}

/// A share of Σ|a| below which Σ a counts as zero: with a bias it is, up to the rounding of the
/// solver.
const BALANCED: f64 = 1e-9;

impl GramSet {
    /// The function Σ_i a_i k_t(x_i, ·) for new points, and what it is for one that lacks what the
    /// term reads.
    pub fn extension(&self, t: usize, a: &[f64]) -> Extension {
        let (mut combination, offset) = match &self.terms[t] {
            Stored::Factor(f) => f.extension(a),
            Stored::Dense(_) | Stored::DenseF32(_) => combination_of(&self.normalizers[t], a),
        };
        if let Combination::Samples { index, coef } = &mut combination {
            if !self.roots[t].is_empty() {
                coef.iter_mut().zip(&*index).for_each(|(c, &i)| *c /= self.roots[t][i]);
            }
            if let Some(map) = &self.maps[t] {
                let mut mapped = vec![0.0; self.n];
                index.iter().zip(&*coef).for_each(|(&i, c)| axpy(*c, map.row(i), &mut mapped));
                (*index, *coef) = ((0..self.n).collect(), mapped);
            }
            if let Some(imputation) = &self.imputations[t] {
                (*index, *coef) = imputation.spread(index, coef);
            }
        }
        Extension { combination, offset, absent: self.absent(t, a, offset) }
    }

    /// The varying part of Σ_i a_i k_t(x_i, ·) for a new row that lacks what the term reads: the
    /// mean over the training rows that have it, or zero, as the set's rule for missing views says.
    fn absent(&self, t: usize, a: &[f64], offset: f64) -> f64 {
        if self.missing != Missing::Mean {
            return 0.0;
        }
        let mut values = vec![0.0; a.len()];
        self.apply(t, a, &mut values);
        let has =
            |i: &usize| self.imputations[t].as_ref().is_none_or(|m: &Imputation| !m.absent[*i]);
        let rows: Vec<usize> = (0..a.len()).filter(has).collect();
        rows.iter().map(|&i| values[i]).sum::<f64>() / rows.len().max(1) as f64 - offset
    }
}

/// Σ_i a_i k(x_i, ·) of a normalised kernel in raw values, and its constant part.
fn combination_of(normalizer: &Normalizer, a: &[f64]) -> (Combination, f64) {
    let (mut coef, mut offset) = (a.to_vec(), 0.0);
    match normalizer {
        Normalizer::Scale { divisor } => coef.iter_mut().for_each(|c| *c /= divisor),
        Normalizer::Spherical => {}
        Normalizer::Center { row_means, grand_mean } => {
            // Σ a_i (k_i − mean_j k_j − r_i + g): the mean over all rows vanishes where Σ a_i = 0,
            // as it does with every bias.
            let total: f64 = a.iter().sum();
            offset = grand_mean * total - dot(row_means, a);
            if total.abs() > BALANCED * a.iter().map(|x| x.abs()).sum::<f64>() {
                coef.iter_mut().for_each(|c| *c -= total / a.len() as f64);
            }
        }
    }
    let index: Vec<usize> = (0..a.len()).filter(|&i| coef[i] != 0.0).collect();
    let coef = index.iter().map(|&i| coef[i]).collect();
    (Combination::Samples { index, coef }, offset)
}
