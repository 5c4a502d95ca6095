//! The stored terms of one problem, as a source.

use rayon::prelude::*;

use super::{
    AddRow, ApproxError, Factor, Gram, GramSource, LowRankTerms, Scratch, SingleKernel, combine,
    impute::Imputation,
    low_rank::{self, Projected},
    stored::{Matrices, Stored},
};
use crate::{data::Missing, kernels::Normalizer, linalg::Matrix};

/// Kernel terms in memory, normalised.
#[derive(Debug, Clone)]
pub struct GramSet {
    pub(super) n: usize,
    pub(super) terms: Vec<Stored>,
    pub(super) normalizers: Vec<Normalizer>,
    /// √k(x_i, x_i) before spherical normalisation; empty for the others.
    pub(super) roots: Vec<Vec<f64>>,
    /// What repairing a precomputed matrix does to values of new rows.
    pub(super) maps: Vec<Option<Matrix>>,
    /// Was the matrix of the term repaired?
    pub(super) repaired: Vec<bool>,
    /// Training rows that lack what a term reads.
    pub(super) imputations: Vec<Option<Imputation>>,
    /// The rule for rows that lack a view.
    pub(super) missing: Missing,
    /// Sentences for the user about what was done to the kernels unasked.
    pub(super) notes: Vec<String>,
    /// How far terms are from the kernels that they stand in for.
    pub(super) errors: Vec<ApproxError>,
}

impl GramSet {
    /// Sentences for the user about what was done to the kernels unasked.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Was any precomputed matrix repaired, because it was not positive semidefinite?
    pub fn was_repaired(&self) -> bool {
        self.repaired.contains(&true)
    }

    /// The same terms under another rule for new rows that lack a view. Terms of a table have the
    /// rule of its rows.
    #[must_use]
    pub fn with_missing(self, missing: Missing) -> Self {
        Self { missing, ..self }
    }

    /// How far each term is from the kernel that it stands in for; empty where kernels are as they
    /// are.
    pub fn approximation(&self) -> &[ApproxError] {
        &self.errors
    }

    /// Bytes of memory that the terms take.
    pub fn bytes(&self) -> u64 {
        self.terms.iter().map(Stored::bytes).sum::<u64>() + low_rank::basis_bytes(&self.factors())
    }

    /// How the terms are stored, in words.
    pub fn describe(&self) -> String {
        let factors = self.factors();
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

    fn factors(&self) -> Vec<&Factor> {
        self.terms.iter().filter_map(Stored::factor).collect()
    }
}

impl GramSource for GramSet {
    fn n_samples(&self) -> usize {
        self.n
    }

    fn n_terms(&self) -> usize {
        self.terms.len()
    }

    fn accumulate(&self, t: usize, weight: f64, scale: Option<&[f64]>, out: &mut Gram) {
        self.terms[t].accumulate(weight, scale, out);
    }

    fn apply(&self, t: usize, v: &[f64], out: &mut [f64]) {
        self.terms[t].apply(v, out);
    }

    fn row(&self, t: usize, i: usize, out: &mut [f64]) {
        self.terms[t].row(i, out);
    }

    fn trace(&self, t: usize) -> f64 {
        self.terms[t].trace()
    }

    fn low_rank(&self) -> Option<&dyn LowRankTerms> {
        Some(self)
    }

    fn matrices<'a>(&'a self, weights: &[f64]) -> Option<AddRow<'a>> {
        let active = Matrices::new(&self.terms, weights)?;
        Some(Box::new(move |i, row| active.add_row(i, row)))
    }

    fn combine_truncated(&self, weights: &[f64], share: f64) -> Gram {
        combine::combine_truncated(self, weights, share)
    }

    fn combine_single(&self, weights: &[f64], scratch: &Scratch) -> Option<SingleKernel> {
        combine::combine_single(self, weights, scratch)
    }

    fn quad_forms_of_each(&self, terms: &[usize], vectors: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let factors: Vec<&Factor> = terms.iter().filter_map(|&t| self.terms[t].factor()).collect();
        let projected = Projected::each(&factors, vectors);
        let forms = |&t: &usize| self.terms[t].quad_forms(vectors, &projected);
        let by_term: Vec<Vec<f64>> = terms.par_iter().map(forms).collect();
        (0..vectors.len())
            .map(|k| by_term.iter().map(|forms| forms[k].max(0.0)).collect())
            .collect()
    }
}

impl LowRankTerms for GramSet {
    fn factor(&self, t: usize) -> Option<&Factor> {
        self.terms[t].factor()
    }
}
