//! Base kernels scaled by rows and columns, seen as terms of their own.

use std::{collections::HashMap, sync::Arc};

use crate::{
    gram::{AddRow, Basis, Budget, Factor, Gram, GramSource, Scratch, SingleKernel, add_factors, basis_bytes},
    linalg::Matrix,
};

/// Terms diag(s) K_m diag(s). A factor stays a factor: diag(s) L Lᵀ diag(s) has the factor diag(s) L.
pub struct LocalizedGramSet<'a> {
    base: &'a dyn GramSource,
    /// One vector over the samples per scale.
    scales: Vec<Vec<f64>>,
    /// Base term and scale of each term.
    terms: Vec<(usize, usize)>,
    factors: Vec<Option<Factor>>,
    room: Arc<Scratch>,
}

impl<'a> LocalizedGramSet<'a> {
    /// Every kernel in every region, region after region: term j·M + m is diag(c_j) K_m diag(c_j). `memberships` is samples × regions.
    pub fn cross(base: &'a dyn GramSource, memberships: &Matrix, room: Budget) -> Self {
        let (regions, kernels) = (memberships.cols(), base.n_terms());
        let terms: Vec<(usize, usize)> = (0..regions).flat_map(|j| (0..kernels).map(move |m| (m, j))).collect();
        let scales = columns(memberships);
        let found: Vec<&Factor> = (0..kernels).filter_map(|m| base.factor(m)).collect();
        let fits = fits(regions as u64 * basis_bytes(&found), room);
        // diag(s) B, once for the terms that share both.
        let mut bases: HashMap<(usize, usize), Arc<Basis>> = HashMap::new();
        let scaled = |&(m, j): &(usize, usize)| {
            let (f, s) = (base.factor(m).filter(|_| fits)?, &scales[j]);
            let basis = bases.entry((f.basis_id(), j)).or_insert_with(|| Arc::new(f.basis().scale_rows(s)));
            Some(f.scaled(s, Arc::clone(basis)))
        };
        let factors = terms.iter().map(scaled).collect();
        Self { base, scales, terms, factors, room: Arc::default() }
    }

    /// Every kernel with its own gate: term m is diag(η_m) K_m diag(η_m). `gates` is samples × kernels.
    pub fn paired(base: &'a dyn GramSource, gates: &Matrix, room: Budget) -> Self {
        let (terms, scales) = ((0..base.n_terms()).map(|m| (m, m)).collect(), columns(gates));
        let found = || (0..base.n_terms()).filter_map(|m| base.factor(m));
        let fits = fits(found().map(|f| 8 * (f.n() * f.rank()) as u64).sum(), room);
        let scaled = |m: usize| base.factor(m).filter(|_| fits).map(|f| f.scaled_alone(&scales[m]));
        let factors = (0..base.n_terms()).map(scaled).collect();
        Self { base, scales, terms, factors, room: Arc::default() }
    }

    /// s∘v for the scale of term `t`.
    fn scaled(&self, t: usize, v: &[f64]) -> Vec<f64> {
        self.scales[self.terms[t].1].iter().zip(v).map(|(s, v)| s * v).collect()
    }
}

impl LocalizedGramSet<'_> {
    /// Terms with weight that are no factors, scale by scale, so that kernels of one region are combined before they are scaled: one
    /// triangle.
    fn combine_others(&self, weights: &[f64]) -> Gram {
        let mut out = Gram::zeros(self.n_samples());
        let mut by_scale = vec![vec![0.0; self.base.n_terms()]; self.scales.len()];
        for (t, &(m, j)) in self.terms.iter().enumerate().filter(|(t, _)| self.factors[*t].is_none()) {
            by_scale[j][m] += weights[t];
        }
        self.base.combine_scaled(&by_scale, &self.scales, &mut out);
        out
    }

    /// Terms with weight that are factors, those of one kernel after one another: they have their numbers in common.
    fn active_factors(&self, weights: &[f64]) -> Vec<(f64, &Factor)> {
        let mut order: Vec<usize> = (0..weights.len()).filter(|&t| weights[t] != 0.0).collect();
        order.sort_by_key(|&t| self.terms[t]);
        order.into_iter().filter_map(|t| self.factors[t].as_ref().map(|f| (weights[t], f))).collect()
    }
}

/// Copies of factors are for speed: where they do not fit, terms are summed entry by entry.
fn fits(bytes: u64, room: Budget) -> bool {
    bytes <= room.bytes / 2
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

    fn factor(&self, t: usize) -> Option<&Factor> {
        self.factors[t].as_ref()
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

    fn combine(&self, weights: &[f64]) -> Gram {
        let mut out = self.combine_others(weights);
        add_factors(&self.active_factors(weights), &mut out);
        out.mirror();
        out
    }

    fn combine_single(&self, weights: &[f64]) -> Option<SingleKernel> {
        let factors = self.active_factors(weights);
        if factors.is_empty() {
            return None;
        }
        let others = weights.iter().filter(|w| **w != 0.0).count() > factors.len();
        let others = others.then(|| self.combine_others(weights));
        let rest = others.as_ref().map(|k| |i: usize, row: &mut [f64]| row.copy_from_slice(&k.row(i)[..=i]));
        let rest = rest.as_ref().map(|add| add as AddRow<'_>);
        SingleKernel::new(&factors, rest, self.n_samples(), &self.room)
    }

    fn quad_forms_of(&self, terms: &[usize], a: &[f64]) -> Vec<f64> {
        self.room.forms(terms, a, |t| self.factor(t), |terms| self.forms(terms, a))
    }
}

impl LocalizedGramSet<'_> {
    /// aᵀK_t a.
    fn forms(&self, terms: &[usize], a: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; terms.len()];
        let mut by_kernels: HashMap<Vec<usize>, Vec<Vec<usize>>> = HashMap::new();
        for j in 0..self.scales.len() {
            let own: Vec<usize> = (0..terms.len()).filter(|&k| self.terms[terms[k]].1 == j).collect();
            let kernels = own.iter().map(|&k| self.terms[terms[k]].0).collect();
            by_kernels.entry(kernels).or_default().push(own);
        }
        // Regions that ask for the same kernels ask together.
        for (kernels, places) in by_kernels.iter().filter(|(kernels, _)| !kernels.is_empty()) {
            let scaled: Vec<Vec<f64>> = places.iter().map(|own| self.scaled(terms[own[0]], a)).collect();
            for (own, forms) in places.iter().zip(self.base.quad_forms_of_each(kernels, &scaled)) {
                own.iter().zip(forms).for_each(|(&k, s)| out[k] = s);
            }
        }
        out
    }
}
