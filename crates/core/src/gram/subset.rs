//! Some of a source's terms, or sums of them, seen as a source of their own.

use super::{AddRow, Factor, Gram, GramSource, LowRankTerms};

/// Terms that are sums of a base's terms: a choice of kernels, kernels rescaled, or groups of
/// kernels that share a weight.
pub struct Groups<'a> {
    base: &'a dyn GramSource,
    members: Vec<Vec<(usize, f64)>>,
}

impl<'a> Groups<'a> {
    /// Term g is Σ factor · K_t over `members[g]` = (t, factor), … with positive factors.
    pub fn new(base: &'a dyn GramSource, members: Vec<Vec<(usize, f64)>>) -> Self {
        Self { base, members }
    }

    /// The terms `index` alone, in that order.
    pub fn subset(base: &'a dyn GramSource, index: &[usize]) -> Self {
        Self::new(base, index.iter().map(|&t| vec![(t, 1.0)]).collect())
    }

    /// Weights of the base's terms.
    pub fn expand(&self, weights: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; self.base.n_terms()];
        for (members, &w) in self.members.iter().zip(weights) {
            members.iter().for_each(|&(t, factor)| out[t] += w * factor);
        }
        out
    }

    /// The inverse of [`Groups::expand`]: `None` where no weights expand to these.
    pub fn contract(&self, weights: &[f64]) -> Option<Vec<f64>> {
        let own = |members: &Vec<(usize, f64)>| {
            members.first().map_or(0.0, |&(t, factor)| weights[t] / factor)
        };
        let theta: Vec<f64> = self.members.iter().map(own).collect();
        let same = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-12 * a.abs().max(b.abs());
        self.expand(&theta).iter().zip(weights).all(same).then_some(theta)
    }
}

impl GramSource for Groups<'_> {
    fn n_samples(&self) -> usize {
        self.base.n_samples()
    }

    fn n_terms(&self) -> usize {
        self.members.len()
    }

    fn accumulate(&self, t: usize, weight: f64, scale: Option<&[f64]>, out: &mut Gram) {
        self.members[t]
            .iter()
            .for_each(|&(m, factor)| self.base.accumulate(m, weight * factor, scale, out));
    }

    fn apply(&self, t: usize, v: &[f64], out: &mut [f64]) {
        self.sum(t, out, |m, buffer| self.base.apply(m, v, buffer));
    }

    fn row(&self, t: usize, i: usize, out: &mut [f64]) {
        self.sum(t, out, |m, buffer| self.base.row(m, i, buffer));
    }

    fn low_rank(&self) -> Option<&dyn LowRankTerms> {
        self.base.low_rank().map(|_| self as &dyn LowRankTerms)
    }

    fn residual(&self, t: usize) -> f64 {
        self.members[t].iter().map(|&(m, factor)| factor * self.base.residual(m)).sum()
    }

    fn trace(&self, t: usize) -> f64 {
        self.members[t].iter().map(|&(m, factor)| factor * self.base.trace(m)).sum()
    }

    fn trace_bound(&self, t: usize) -> f64 {
        self.members[t].iter().map(|&(m, factor)| factor * self.base.trace_bound(m)).sum()
    }

    fn matrices<'b>(&'b self, weights: &[f64]) -> Option<AddRow<'b>> {
        self.base.matrices(&self.expand(weights))
    }

    fn combine_truncated(&self, weights: &[f64], share: f64) -> Gram {
        self.base.combine_truncated(&self.expand(weights), share)
    }

    fn quad_forms_of_each(&self, terms: &[usize], vectors: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let all: Vec<usize> =
            terms.iter().flat_map(|&t| self.members[t].iter().map(|m| m.0)).collect();
        let sums = |forms: Vec<f64>| {
            let mut forms = forms.into_iter();
            let sum = |t: &usize| {
                self.members[*t].iter().zip(&mut forms).map(|((_, factor), s)| factor * s).sum()
            };
            terms.iter().map(sum).collect()
        };
        self.base.quad_forms_of_each(&all, vectors).into_iter().map(sums).collect()
    }
}

impl LowRankTerms for Groups<'_> {
    /// A group of one kernel that is not rescaled has the factor of that kernel.
    fn factor(&self, t: usize) -> Option<&Factor> {
        match self.members[t].as_slice() {
            [(m, 1.0)] => self.base.factor(*m),
            _ => None,
        }
    }

    /// The factors of all members: those of a group are summed one by one.
    fn active(&self, weights: &[f64]) -> Vec<(f64, &Factor)> {
        self.base.low_rank().map_or_else(Vec::new, |terms| terms.active(&self.expand(weights)))
    }
}

impl Groups<'_> {
    fn sum(&self, t: usize, out: &mut [f64], each: impl Fn(usize, &mut [f64])) {
        out.fill(0.0);
        let mut buffer = vec![0.0; out.len()];
        for &(m, factor) in &self.members[t] {
            each(m, &mut buffer);
            out.iter_mut().zip(&buffer).for_each(|(o, b)| *o += factor * b);
        }
    }
}
