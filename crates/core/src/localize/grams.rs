//! Base kernels scaled by rows and columns, seen as terms of their own.

use std::{collections::HashMap, sync::Arc};

use rayon::prelude::*;

use crate::{
    gram::{
        self, AddRow, Basis, Budget, Factor, Gram, GramSource, LowRankTerms, Scratch, SingleKernel,
        basis_bytes,
    },
    linalg::Matrix,
    tuning::tuning,
};

tuning! { "localized_grams"
    /// Largest share of the memory left that scaled copies of factors may take: the combined kernel
    /// needs the rest.
    factors_memory_share: f64 = 0.5;
}

/// Terms diag(s) K_m diag(s). A factor stays a factor: diag(s) L Lᵀ diag(s) has the factor diag(s)
/// L.
pub struct LocalizedGramSet<'a> {
    base: &'a dyn GramSource,
    /// The vectors s over the samples.
    scales: Vec<Vec<f64>>,
    /// Base term and scale of each term, by their places.
    terms: Vec<(usize, usize)>,
    /// The scaled factor of each term, where it is one and all of them fit.
    factors: Vec<Option<Factor>>,
}

impl<'a> LocalizedGramSet<'a> {
    /// Every kernel in every region, region after region: term j·M + m is diag(c_j) K_m diag(c_j).
    /// `memberships` is samples × regions, and `budget` the memory left.
    pub fn cross(base: &'a dyn GramSource, memberships: &Matrix, budget: Budget) -> Self {
        let (regions, kernels) = (memberships.cols(), base.n_terms());
        let terms: Vec<(usize, usize)> =
            (0..regions).flat_map(|j| (0..kernels).map(move |m| (m, j))).collect();
        let scales = columns(memberships);
        let found: Vec<&Factor> = (0..kernels).filter_map(|m| base.factor(m)).collect();
        let fits = fits(regions as u64 * basis_bytes(&found), budget);
        // diag(s) B is made once for the terms that share both.
        let mut bases: HashMap<(usize, usize), Arc<Basis>> = HashMap::new();
        let scaled = |&(m, j): &(usize, usize)| {
            let (f, s) = (base.factor(m).filter(|_| fits)?, &scales[j]);
            let basis =
                bases.entry((f.basis_id(), j)).or_insert_with(|| Arc::new(f.basis().scale_rows(s)));
            Some(f.scaled(s, Arc::clone(basis)))
        };
        let factors = terms.iter().map(scaled).collect();
        Self { base, scales, terms, factors }
    }

    /// Every kernel with its own gate: term m is diag(η_m) K_m diag(η_m). `gates` is samples ×
    /// kernels, and `budget` the memory left.
    pub fn paired(base: &'a dyn GramSource, gates: &Matrix, budget: Budget) -> Self {
        let (terms, scales) = ((0..base.n_terms()).map(|m| (m, m)).collect(), columns(gates));
        let found = || (0..base.n_terms()).filter_map(|m| base.factor(m));
        let fits = fits(found().map(|f| 8 * (f.n() * f.rank()) as u64).sum(), budget);
        let scaled = |m: usize| base.factor(m).filter(|_| fits).map(|f| f.scaled_alone(&scales[m]));
        let factors = (0..base.n_terms()).map(scaled).collect();
        Self { base, scales, terms, factors }
    }

    /// s∘v for the scale of term `t`.
    fn scaled(&self, t: usize, v: &[f64]) -> Vec<f64> {
        self.scales[self.terms[t].1].iter().zip(v).map(|(s, v)| s * v).collect()
    }
}

/// Do copies of factors fit? They are for speed: where they do not, terms are summed entry by
/// entry.
fn fits(bytes: u64, budget: Budget) -> bool {
    bytes <= (TUNING.factors_memory_share * budget.bytes as f64) as u64
}

fn columns(m: &Matrix) -> Vec<Vec<f64>> {
    (0..m.cols()).map(|j| m.column(j)).collect()
}

impl GramSource for LocalizedGramSet<'_> {
    fn n_samples(&self) -> usize {
        self.base.n_samples()
    }

    fn n_terms(&self) -> usize {
        self.terms.len()
    }

    fn accumulate(&self, t: usize, weight: f64, scale: Option<&[f64]>, out: &mut Gram) {
        let (m, j) = self.terms[t];
        match scale {
            None => self.base.accumulate(m, weight, Some(&self.scales[j]), out),
            Some(s) => self.base.accumulate(m, weight, Some(&self.scaled(t, s)), out),
        }
    }

    fn apply(&self, t: usize, v: &[f64], out: &mut [f64]) {
        let (m, j) = self.terms[t];
        self.base.apply(m, &self.scaled(t, v), out);
        out.iter_mut().zip(&self.scales[j]).for_each(|(o, s)| *o *= s);
    }

    fn row(&self, t: usize, i: usize, out: &mut [f64]) {
        let (m, j) = self.terms[t];
        self.base.row(m, i, out);
        let own = self.scales[j][i];
        out.iter_mut().zip(&self.scales[j]).for_each(|(o, s)| *o *= own * s);
    }

    fn low_rank(&self) -> Option<&dyn LowRankTerms> {
        Some(self)
    }

    /// (s∘a)ᵀE(s∘a) ≤ residual · max s² · ‖a‖².
    fn residual(&self, t: usize) -> f64 {
        let (m, j) = self.terms[t];
        self.base.residual(m) * self.scales[j].iter().fold(0.0f64, |largest, s| largest.max(s * s))
    }

    fn trace(&self, t: usize) -> f64 {
        let mut row = vec![0.0; self.n_samples()];
        let diagonal = (0..row.len()).map(|i| {
            self.row(t, i, &mut row);
            row[i]
        });
        diagonal.sum::<f64>() + self.residual(t)
    }

    fn trace_bound(&self, t: usize) -> f64 {
        let (m, j) = self.terms[t];
        let largest = self.scales[j].iter().fold(0.0, |m: f64, s| m.max(s.abs()));
        largest * largest * self.base.trace_bound(m)
    }

    /// Scale by scale, so that kernels of one region are combined before they are scaled.
    fn matrices<'b>(&'b self, weights: &[f64]) -> Option<AddRow<'b>> {
        let mut by_scale = vec![vec![0.0; self.base.n_terms()]; self.scales.len()];
        let mut any = false;
        for (t, &(m, j)) in
            self.terms.iter().enumerate().filter(|(t, _)| self.factors[*t].is_none())
        {
            by_scale[j][m] += weights[t];
            any |= weights[t] != 0.0;
        }
        if !any {
            return None;
        }
        let scaled = || by_scale.iter().zip(&self.scales);
        let has_factors =
            |w: &Vec<f64>| self.base.low_rank().is_some_and(|terms| !terms.active(w).is_empty());
        if by_scale.iter().any(has_factors) {
            // Factors of which no scaled copy fits.
            let sum = sum_of_scaled(self.base, scaled());
            return Some(Box::new(move |i, row| {
                row.iter_mut().zip(sum.row(i)).for_each(|(o, k)| *o += k);
            }));
        }
        let parts: Vec<(AddRow<'b>, &[f64])> =
            scaled().filter_map(|(w, s)| Some((self.base.matrices(w)?, s.as_slice()))).collect();
        Some(Box::new(move |i, row| {
            let mut buffer = Vec::new();
            for (add, s) in parts.iter().filter(|(_, s)| s[i] != 0.0) {
                buffer.clear();
                buffer.resize(i + 1, 0.0);
                add(i, &mut buffer);
                row.iter_mut().zip(&buffer).zip(*s).for_each(|((o, k), x)| *o += s[i] * x * k);
            }
        }))
    }

    /// Only where a factor has weight: the sum of scaled matrices takes so long that solvers gain
    /// nothing from single precision.
    fn combine_single(&self, weights: &[f64], scratch: &Scratch) -> Option<SingleKernel> {
        if self.active(weights).is_empty() {
            return None;
        }
        gram::combine_single(self, weights, scratch)
    }

    fn quad_forms_of_each(&self, terms: &[usize], vectors: &[Vec<f64>]) -> Vec<Vec<f64>> {
        vectors.iter().map(|a| self.forms(terms, a)).collect()
    }
}

impl LowRankTerms for LocalizedGramSet<'_> {
    fn factor(&self, t: usize) -> Option<&Factor> {
        self.factors[t].as_ref()
    }

    /// Factors of one kernel come one after another, because they have their numbers in common.
    fn active(&self, weights: &[f64]) -> Vec<(f64, &Factor)> {
        let mut order: Vec<usize> = (0..weights.len()).filter(|&t| weights[t] != 0.0).collect();
        order.sort_by_key(|&t| self.terms[t]);
        order
            .into_iter()
            .filter_map(|t| self.factors[t].as_ref().map(|f| (weights[t], f)))
            .collect()
    }
}

/// The lower triangle of Σ_j diag(s_j) (Σ_m weights_jm K_m) diag(s_j), combined kernel by combined
/// kernel.
fn sum_of_scaled<'a>(
    base: &dyn GramSource,
    scaled: impl Iterator<Item = (&'a Vec<f64>, &'a Vec<f64>)>,
) -> Gram {
    let n = base.n_samples();
    let mut out = Gram::zeros(n);
    for (weights, scale) in scaled.filter(|(w, _)| w.iter().any(|w| *w != 0.0)) {
        let sum = base.combine(weights);
        out.data_mut()
            .par_chunks_exact_mut(n)
            .enumerate()
            .filter(|(i, _)| scale[*i] != 0.0)
            .for_each(|(i, row)| {
                row[..=i]
                    .iter_mut()
                    .zip(sum.row(i))
                    .zip(scale)
                    .for_each(|((o, k), s)| *o += scale[i] * s * k);
            });
    }
    out
}

impl LocalizedGramSet<'_> {
    /// aᵀ K_t a for the terms named.
    fn forms(&self, terms: &[usize], a: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; terms.len()];
        let mut by_kernels: HashMap<Vec<usize>, Vec<Vec<usize>>> = HashMap::new();
        for j in 0..self.scales.len() {
            let own: Vec<usize> =
                (0..terms.len()).filter(|&k| self.terms[terms[k]].1 == j).collect();
            let kernels = own.iter().map(|&k| self.terms[terms[k]].0).collect();
            by_kernels.entry(kernels).or_default().push(own);
        }
        // Regions that ask for the same kernels ask together.
        for (kernels, places) in by_kernels.iter().filter(|(kernels, _)| !kernels.is_empty()) {
            let scaled: Vec<Vec<f64>> =
                places.iter().map(|own| self.scaled(terms[own[0]], a)).collect();
            for (own, forms) in places.iter().zip(self.base.quad_forms_of_each(kernels, &scaled)) {
                own.iter().zip(forms).for_each(|(&k, s)| out[k] = s);
            }
        }
        out
    }
}
