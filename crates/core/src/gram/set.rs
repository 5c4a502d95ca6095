//! The stored terms of one problem and the three passes every method makes over them.

use std::sync::Arc;

use rayon::prelude::*;

use super::{
    ApproxError, Combination, Extension, Factor, Gram, GramSource, Scratch, SingleKernel, combine_each,
    dense::{self, Packed},
    impute::Imputation,
    low_rank,
};
use crate::{
    data::Missing,
    kernels::Normalizer,
    linalg::{Matrix, axpy, dot},
};

/// One stored term.
#[derive(Debug, Clone)]
pub(crate) enum Stored {
    /// K ≈ L Lᵀ.
    Factor(Factor),
    /// Packed triangle.
    Dense(Packed<f64>),
    /// Packed triangle, rounded: certificates then speak of the rounded matrix.
    DenseF32(Packed<f32>),
}

/// Kernel terms in memory, normalised.
#[derive(Debug, Clone)]
pub struct GramSet {
    pub(super) n: usize,
    pub(super) terms: Vec<Stored>,
    pub(super) normalizers: Vec<Normalizer>,
    /// √k(x_i, x_i) before spherical normalisation; empty for the others.
    pub(super) roots: Vec<Vec<f64>>,
    /// What repairing a ready-made matrix does to values of new rows.
    pub(super) maps: Vec<Option<Matrix>>,
    /// Rows that lack what a term reads.
    pub(super) imputations: Vec<Option<Imputation>>,
    /// Things the user should know, in plain words.
    pub(super) notes: Vec<String>,
    /// Where terms stand in for kernels, how far off they are.
    pub(super) errors: Vec<ApproxError>,
    /// For combined kernels.
    pub(super) room: Arc<Scratch>,
}

impl GramSet {
    /// What was done to the kernels that nobody asked for, in plain words.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// How far each term is from the kernel that it stands in for; empty where kernels are as they are.
    pub fn approximation(&self) -> &[ApproxError] {
        &self.errors
    }

    /// The varying part of Σ_i a_i k_t(x_i, ·) for a new row that lacks what the term reads; `offset` is that of its extension.
    pub fn absent_value(&self, t: usize, a: &[f64], offset: f64, missing: Missing) -> f64 {
        if missing != Missing::Mean {
            return 0.0;
        }
        let mut values = vec![0.0; a.len()];
        self.apply(t, a, &mut values);
        let present = |i: &usize| self.imputations[t].as_ref().is_none_or(|m| !m.absent[*i]);
        let rows: Vec<usize> = (0..a.len()).filter(present).collect();
        rows.iter().map(|&i| values[i]).sum::<f64>() / rows.len().max(1) as f64 - offset
    }

    /// Bytes the terms take.
    pub fn bytes(&self) -> u64 {
        let own = |t: &Stored| match t {
            Stored::Factor(f) => f.bytes(),
            Stored::Dense(_) => Packed::<f64>::bytes(self.n),
            Stored::DenseF32(_) => Packed::<f32>::bytes(self.n),
        };
        let factors: Vec<&Factor> = (0..self.terms.len()).filter_map(|t| self.factor(t)).collect();
        self.terms.iter().map(own).sum::<u64>() + low_rank::basis_bytes(&factors)
    }

    /// How the terms are stored, in words.
    pub fn describe(&self) -> String {
        let factors: Vec<&Factor> = (0..self.terms.len()).filter_map(|t| self.factor(t)).collect();
        let ranks: Vec<usize> = factors.iter().map(|f| f.rank()).collect();
        let in_files = match low_rank::file_bytes(&factors) {
            0 => String::new(),
            bytes => format!(" and {} in files", super::human_bytes(bytes)),
        };
        let f32s = self.terms.iter().filter(|t| matches!(t, Stored::DenseF32(_))).count();
        let mean = ranks.iter().sum::<usize>() as f64 / ranks.len().max(1) as f64;
        format!(
            "{} low-rank (mean rank {mean:.1}), {} dense f64, {f32s} dense f32; {}{in_files}",
            ranks.len(),
            self.terms.len() - ranks.len() - f32s,
            super::human_bytes(self.bytes()),
        )
    }

    /// The function Σ_i a_i k_t(x_i, ·) for new points.
    pub fn extension(&self, t: usize, a: &[f64]) -> Extension {
        let mut extension = match &self.terms[t] {
            Stored::Factor(f) => f.extension(a),
            Stored::Dense(_) | Stored::DenseF32(_) => {
                let (mut coef, mut offset) = (a.to_vec(), 0.0);
                match &self.normalizers[t] {
                    Normalizer::Scale { divisor } => coef.iter_mut().for_each(|c| *c /= divisor),
                    Normalizer::Spherical => {}
                    Normalizer::Center { row_means, grand_mean } => {
                        // Σ a_i (k_i − mean_j k_j − r_i + g): the mean over all rows is gone where Σ a_i = 0, as with every bias.
                        let total: f64 = a.iter().sum();
                        offset = grand_mean * total - dot(row_means, a);
                        if total.abs() > 1e-9 * a.iter().map(|x| x.abs()).sum::<f64>() {
                            coef.iter_mut().for_each(|c| *c -= total / a.len() as f64);
                        }
                    }
                }
                let index: Vec<usize> = (0..a.len()).filter(|&i| coef[i] != 0.0).collect();
                let coef = index.iter().map(|&i| coef[i]).collect();
                Extension { combination: Combination::Samples { index, coef }, offset }
            }
        };
        if let (Combination::Samples { index, coef }, false) = (&mut extension.combination, self.roots[t].is_empty()) {
            coef.iter_mut().zip(index).for_each(|(c, &mut i)| *c /= self.roots[t][i]);
        }
        if let Combination::Samples { index, coef } = &mut extension.combination {
            if let Some(map) = &self.maps[t] {
                let mut mapped = vec![0.0; self.n];
                index.iter().zip(&*coef).for_each(|(&i, c)| axpy(*c, map.row(i), &mut mapped));
                (*index, *coef) = ((0..self.n).collect(), mapped);
            }
            if let Some(imputation) = &self.imputations[t] {
                (*index, *coef) = imputation.spread(index, coef);
            }
        }
        extension
    }
}

impl GramSet {
    /// The terms with weight that are matrices, row by row (each output row stays in cache while all terms stream past): one triangle.
    fn combine_dense(&self, weights: &[f64]) -> Gram {
        let (mut out, active) = (Gram::zeros(self.n), self.active_dense(weights));
        out.data_mut().par_chunks_mut(self.n).enumerate().for_each(|(i, row)| active.add_row(i, &mut row[..=i]));
        out
    }

    fn active_dense(&self, weights: &[f64]) -> Dense<'_> {
        let mut dense = Dense { double: Vec::new(), single: Vec::new() };
        for (term, &w) in self.terms.iter().zip(weights).filter(|(_, w)| **w != 0.0) {
            match term {
                Stored::Dense(k) => dense.double.push((w, k)),
                Stored::DenseF32(k) => dense.single.push((w, k)),
                Stored::Factor(_) => {}
            }
        }
        dense
    }

    /// The terms with weight that are factors.
    fn active_factors(&self, weights: &[f64]) -> Vec<(f64, &Factor)> {
        let active = weights.iter().enumerate().filter(|(_, w)| **w != 0.0);
        active.filter_map(|(t, &w)| self.factor(t).map(|f| (w, f))).collect()
    }
}

/// Matrices with their weights.
struct Dense<'a> {
    double: Vec<(f64, &'a Packed<f64>)>,
    single: Vec<(f64, &'a Packed<f32>)>,
}

impl Dense<'_> {
    fn is_empty(&self) -> bool {
        self.double.is_empty() && self.single.is_empty()
    }

    fn add_row(&self, i: usize, out: &mut [f64]) {
        Packed::add_rows(&self.double, i, out);
        Packed::add_rows(&self.single, i, out);
    }
}

/// out_i += weight · s_i · row_i · s on the lower triangle.
fn accumulate_rows(
    n: usize,
    out: &mut Gram,
    weight: f64,
    scale: Option<&[f64]>,
    row: impl Fn(usize, f64, &mut [f64]) + Sync,
) {
    out.data_mut().par_chunks_mut(n).enumerate().for_each(|(i, out)| match scale {
        None => row(i, weight, &mut out[..=i]),
        Some(s) => {
            let mut buffer = vec![0.0; i + 1];
            row(i, weight * s[i], &mut buffer);
            out.iter_mut().zip(&buffer).zip(s).for_each(|((o, b), s)| *o += b * s);
        }
    });
}

impl GramSource for GramSet {
    fn n_samples(&self) -> usize {
        self.n
    }

    fn n_terms(&self) -> usize {
        self.terms.len()
    }

    fn accumulate(&self, t: usize, weight: f64, scale: Option<&[f64]>, out: &mut Gram) {
        match &self.terms[t] {
            Stored::Dense(k) => accumulate_rows(self.n, out, weight, scale, |i, w, row| k.add_row(i, w, row)),
            Stored::DenseF32(k) => accumulate_rows(self.n, out, weight, scale, |i, w, row| k.add_row(i, w, row)),
            Stored::Factor(f) => {
                let rows = f.rows();
                accumulate_rows(self.n, out, weight, scale, |i, w, row| {
                    row.iter_mut().enumerate().for_each(|(j, o)| *o += w * dot(rows.row(i), rows.row(j)));
                });
            }
        }
    }

    fn apply(&self, t: usize, v: &[f64], out: &mut [f64]) {
        match &self.terms[t] {
            Stored::Dense(k) => k.apply(v, out),
            Stored::DenseF32(k) => k.apply(v, out),
            Stored::Factor(f) => f.times(&f.project(v), out),
        }
    }

    fn row(&self, t: usize, i: usize, out: &mut [f64]) {
        match &self.terms[t] {
            Stored::Dense(k) => k.full_row(i, out),
            Stored::DenseF32(k) => k.full_row(i, out),
            Stored::Factor(f) => f.times(&f.row(i), out),
        }
    }

    fn factor(&self, t: usize) -> Option<&Factor> {
        match &self.terms[t] {
            Stored::Factor(f) => Some(f),
            _ => None,
        }
    }

    fn combine(&self, weights: &[f64]) -> Gram {
        let mut out = self.combine_dense(weights);
        dense::add_factors(&self.active_factors(weights), &mut out);
        out.mirror();
        out
    }

    fn combine_truncated(&self, weights: &[f64], share: f64) -> Gram {
        let mut out = self.combine_dense(weights);
        dense::add_truncated(&self.active_factors(weights), share, &mut out);
        out
    }

    fn trace(&self, t: usize) -> f64 {
        match &self.terms[t] {
            Stored::Factor(f) => f.trace_of_square() + f.residual,
            Stored::Dense(k) => k.trace(),
            Stored::DenseF32(k) => k.trace(),
        }
    }

    fn combine_single(&self, weights: &[f64]) -> Option<SingleKernel> {
        let (factors, dense) = (self.active_factors(weights), self.active_dense(weights));
        let rest = |i: usize, row: &mut [f64]| dense.add_row(i, row);
        SingleKernel::new(&factors, (!dense.is_empty()).then_some(&rest), self.n, &self.room)
    }

    fn quad_forms_of(&self, terms: &[usize], a: &[f64]) -> Vec<f64> {
        let compute = |terms: &[usize]| self.quad_forms_of_each(terms, &[a.to_vec()]).swap_remove(0);
        self.room.forms(terms, a, |t| self.factor(t), compute)
    }

    fn quad_forms_of_each(&self, terms: &[usize], vectors: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let factors: Vec<&Factor> = terms.iter().filter_map(|&t| self.factor(t)).collect();
        let projected = low_rank::Projected::each(&factors, vectors);
        let forms = |&t: &usize| match &self.terms[t] {
            Stored::Dense(k) => k.quad_forms(vectors),
            Stored::DenseF32(k) => k.quad_forms(vectors),
            Stored::Factor(f) => projected.iter().map(|p| p.sq_norm(f)).collect(),
        };
        let by_term: Vec<Vec<f64>> = terms.par_iter().map(forms).collect();
        (0..vectors.len()).map(|k| by_term.iter().map(|forms| forms[k].max(0.0)).collect()).collect()
    }

    fn combine_scaled(&self, weights: &[Vec<f64>], scales: &[Vec<f64>], out: &mut Gram) {
        if weights.iter().any(|w| !self.active_factors(w).is_empty()) {
            return combine_each(self, weights, scales, out);
        }
        let active: Vec<Dense<'_>> = weights.iter().map(|w| self.active_dense(w)).collect();
        let pairs = || active.iter().zip(scales);
        out.data_mut().par_chunks_mut(self.n).enumerate().for_each_init(Vec::new, |buffer, (i, row)| {
            for (active, scale) in pairs().filter(|(_, s)| s[i] != 0.0) {
                buffer.clear();
                buffer.resize(i + 1, 0.0);
                active.add_row(i, buffer);
                row.iter_mut().zip(&*buffer).zip(scale).for_each(|((o, k), s)| *o += scale[i] * s * k);
            }
        });
    }
}
