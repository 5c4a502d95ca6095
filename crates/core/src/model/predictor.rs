//! Decision functions on new rows, touching only active kernels and the rows and columns they need.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::{
    Fit, FitPart,
    evaluate::{Cache, Evaluation},
};
use crate::{
    data::{Rows, steps::Plan},
    gram::{Combination, Extension, GramSet, Stack},
    kernels::{Frequencies, KernelSpec, Law, Normalize},
    linalg::Matrix,
};

/// New rows that one parallel task evaluates.
const CHUNK: usize = 128;

/// An active kernel's share of one decision function.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Term {
    /// The number of the base kernel.
    pub kernel: usize,
    /// Its function, weight included.
    pub basis: TermBasis,
    /// Its value for a row that lacks what it reads.
    pub absent: f64,
}

/// See [`Combination`]; samples are counted within the stored rows.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum TermBasis {
    Samples {
        at: Vec<usize>,
        coef: Vec<f64>,
    },
    /// Σ coef_k · (needed Gram column at_k): a ready-made kernel.
    Columns {
        at: Vec<usize>,
        coef: Vec<f64>,
    },
    /// ⟨coef, φ(x)⟩: random Fourier features where the kernel's function has them, else its
    /// monomials.
    Features {
        coef: Vec<f64>,
    },
}

/// One decision function: a constant and kernel terms.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Decision {
    pub constant: f64,
    pub terms: Vec<Term>,
}

/// Decision functions with the training rows and columns they need.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Predictor {
    /// Training columns in use, ascending.
    pub(super) columns: Vec<usize>,
    /// Training rows in use, ascending.
    pub(super) row_ids: Vec<usize>,
    /// Those rows and columns, standardised; empty for ready-made kernels.
    pub(super) rows: Rows,
    /// Divide by √k(x, x)?
    pub(super) spherical: bool,
    /// Columns from here on are stored sparsely.
    pub(super) sparse_start: usize,
    /// Training columns of ready-made kernels in use, ascending.
    pub(super) gram_columns: Vec<usize>,
    /// The frequencies of the columns in use, where kernels have random Fourier features.
    pub(super) frequencies: Vec<Frequencies>,
    /// How the columns are made from those of the data.
    pub(super) plan: Plan,
    pub(super) decisions: Vec<Decision>,
    pub(super) cache: Cache,
}

/// A function of new rows: a constant and, kernel by kernel, combinations of kernel values or
/// features.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Expansion {
    /// The constant that is added to all terms.
    pub constant: f64,
    /// Kernel, combination, and its value for rows that lack what the kernel reads.
    pub terms: Vec<(usize, Combination, f64)>,
}

impl Expansion {
    /// Adds weight · Σ_i a_i k(x_i, ·) for term t of `grams`, which is called `kernel`.
    pub fn add(&mut self, kernel: usize, weight: f64, (grams, t): (&GramSet, usize), a: &[f64]) {
        let Extension { combination: mut basis, offset, absent } = grams.extension(t, a);
        self.constant += weight * offset;
        let (Combination::Samples { coef, .. }
        | Combination::Monomials { coef }
        | Combination::Waves { coef, .. }) = &mut basis;
        coef.iter_mut().for_each(|c| *c *= weight);
        self.terms.push((kernel, basis, weight * absent));
    }
}

/// How a term stands in the model file's header; its numbers stand in tensors.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct TermHeader {
    pub kernel: usize,
    pub monomials: bool,
    pub len: usize,
    /// Does it read Gram columns, and not the stored rows?
    #[serde(default, skip_serializing_if = "is_false")]
    pub columns: bool,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub absent: f64,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // the signatures serde asks for
fn is_false(value: &bool) -> bool {
    !value
}

#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(value: &f64) -> bool {
    *value == 0.0
}

impl Predictor {
    /// A kernel with a coefficient that is not finite, if there is one; or none, and the constant
    /// is not.
    pub fn overflow(&self) -> Option<Option<usize>> {
        let term = |t: &Term| {
            let (TermBasis::Samples { coef, .. }
            | TermBasis::Columns { coef, .. }
            | TermBasis::Features { coef }) = &t.basis;
            !coef.iter().chain([&t.absent]).all(|c| c.is_finite())
        };
        let own = |d: &Decision| match d.terms.iter().find(|t| term(t)) {
            Some(t) => Some(Some(t.kernel)),
            None => (!d.constant.is_finite()).then_some(None),
        };
        self.decisions.iter().find_map(own)
    }

    /// From fits on `grams`; `table` is the standardised training table with its kernels, absent
    /// for ready-made ones.
    pub fn new(
        fits: &[Fit],
        grams: &GramSet,
        table: Option<(&Rows, &[KernelSpec])>,
        normalize: Normalize,
    ) -> Self {
        let parts = fits.iter().flat_map(|f| f.parts.iter().map(move |p| (f, p)));
        let expansion = |(fit, part): (&Fit, &FitPart)| {
            let mut out = Expansion { constant: part.bias, terms: Vec::new() };
            for (kernel, &weight) in fit.weights.iter().enumerate().filter(|(_, w)| **w != 0.0) {
                out.add(kernel, weight, (grams, kernel), &part.dual);
            }
            out
        };
        Self::of(parts.map(expansion).collect(), table, normalize)
    }

    /// From functions of new rows.
    pub fn of(
        functions: Vec<Expansion>,
        table: Option<(&Rows, &[KernelSpec])>,
        normalize: Normalize,
    ) -> Self {
        let (mut columns, mut gram_columns, mut row_ids) = (Vec::new(), Vec::new(), Vec::new());
        let mut drawn: Vec<(Law, u64, usize)> = Vec::new();
        let precomputed =
            |kernel: usize| table.map(|(_, k)| &k[kernel]).filter(|k| k.is_precomputed());
        for (kernel, basis, _) in functions.iter().flat_map(|f| &f.terms) {
            match (basis, precomputed(*kernel)) {
                (Combination::Samples { index, .. }, Some(spec)) => {
                    gram_columns.extend(index.iter().map(|&i| spec.columns[i]));
                }
                (Combination::Samples { index, .. }, None) => row_ids.extend_from_slice(index),
                (Combination::Waves { coef, seed }, _) => {
                    let law =
                        table.and_then(|(_, k)| k[*kernel].function.spectrum()).map(|(law, _)| law);
                    drawn.extend(law.map(|law| (law, *seed, coef.len() / 2)));
                }
                (Combination::Monomials { .. }, _) => {}
            }
            if let Some((_, kernels)) = table.filter(|_| precomputed(*kernel).is_none()) {
                columns.extend_from_slice(&kernels[*kernel].columns);
            }
        }
        for list in [&mut columns, &mut row_ids, &mut gram_columns] {
            list.sort_unstable();
            list.dedup();
        }
        let stored = |kernel: usize, basis: Combination| match (basis, precomputed(kernel)) {
            (Combination::Samples { index, coef }, Some(spec)) => {
                let at = |i: &usize| gram_columns.partition_point(|c| *c < spec.columns[*i]);
                TermBasis::Columns { at: index.iter().map(at).collect(), coef }
            }
            (Combination::Samples { index, coef }, None) => TermBasis::Samples {
                at: index.iter().map(|i| row_ids.partition_point(|r| r < i)).collect(),
                coef,
            },
            (Combination::Monomials { coef } | Combination::Waves { coef, .. }, _) => {
                TermBasis::Features { coef }
            }
        };
        let term = |(kernel, basis, absent)| Term { kernel, basis: stored(kernel, basis), absent };
        let decision = |f: Expansion| Decision {
            constant: f.constant,
            terms: f.terms.into_iter().map(term).collect(),
        };
        let decisions = functions.into_iter().map(decision).collect();
        let rows = table.map(|(x, _)| x.select_rows(&row_ids).select_cols(&columns).without_gaps());
        let sparse_start = table
            .filter(|(x, _)| x.sparse().is_some())
            .map_or(usize::MAX, |(x, _)| x.sparse_start());
        let (rows, spherical) = (rows.unwrap_or_default(), normalize == Normalize::Spherical);
        // All kernels of one law were drawn alike, so that one table serves them.
        let frequencies: Vec<Frequencies> = Law::ALL
            .iter()
            .filter_map(|(law, _)| drawn.iter().find(|d| d.0 == *law))
            .map(|&(law, seed, count)| Frequencies::draw(law, seed, &columns, count))
            .collect();
        let (plan, cache) = (Plan::default(), Cache::default());
        Self {
            columns,
            row_ids,
            rows,
            spherical,
            sparse_start,
            gram_columns,
            frequencies,
            plan,
            decisions,
            cache,
        }
    }

    /// Replaces row numbers by `names[number]`: training may have left rows out.
    pub fn rename_rows(&mut self, names: &[usize]) {
        self.row_ids.iter_mut().for_each(|i| *i = names[*i]);
    }

    /// Columns are made from those of the data by these steps.
    pub fn prepare_with(&mut self, plan: &Plan) {
        self.plan = plan.clone();
    }

    /// Training columns that are needed, by index (after preprocessing).
    pub fn columns(&self) -> &[usize] {
        &self.columns
    }

    /// Training columns of ready-made kernels that are needed, by index.
    pub fn gram_columns(&self) -> &[usize] {
        &self.gram_columns
    }

    /// The first training column that was stored sparsely; none where it is beyond all.
    pub fn sparse_start(&self) -> usize {
        self.sparse_start
    }

    /// Has every kernel that is evaluated by random Fourier features its frequencies?
    pub(super) fn has_frequencies(&self, kernels: &[KernelSpec]) -> bool {
        let count =
            |law: Law| self.frequencies.iter().find(|f| f.law == law).map(|f| 2 * f.draws.cols());
        self.decisions.iter().flat_map(|d| &d.terms).all(|term| match &term.basis {
            TermBasis::Features { coef } => {
                let spectrum = kernels.get(term.kernel).and_then(|k| k.function.spectrum());
                spectrum.is_none_or(|(law, _)| count(law) == Some(coef.len()))
            }
            _ => true,
        })
    }

    /// Kernels with a weight in any machine, ascending.
    pub fn kernels(&self) -> Vec<usize> {
        let mut all: Vec<usize> =
            self.decisions.iter().flat_map(|d| d.terms.iter().map(|t| t.kernel)).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Training rows that are kept, by index.
    pub fn row_ids(&self) -> &[usize] {
        &self.row_ids
    }

    /// Those rows and columns, standardised; empty for ready-made kernels.
    pub fn rows(&self) -> &Rows {
        &self.rows
    }

    /// Decision values of `x`, whose columns are the needed ones, standardised and stored as in
    /// training. `kernels` are those the predictor was made for.
    pub fn evaluate(&self, kernels: &[KernelSpec], x: &Rows) -> Matrix {
        self.evaluate_with(kernels, x, &Rows::from(Matrix::zeros(x.len(), 0)))
    }

    /// Decision values of new rows, with the needed values of ready-made kernels beside them.
    pub fn evaluate_with(&self, kernels: &[KernelSpec], x: &Rows, ready_made: &Rows) -> Matrix {
        let functions = self.decisions.len();
        let ready = self.cache.get(x.is_complete(), || Evaluation::new(self, kernels, x));
        let mut out = Matrix::zeros(x.len(), functions);
        out.data_mut().par_chunks_mut(CHUNK * functions.max(1)).enumerate().for_each(|(c, out)| {
            let rows: Vec<usize> = (c * CHUNK..c * CHUNK + out.len() / functions).collect();
            ready.fill(&x.select_rows(&rows), &ready_made.select_rows(&rows), out);
        });
        out
    }

    /// Decision values from kernel values against all training rows.
    pub fn evaluate_precomputed(&self, block: Stack<'_>) -> Matrix {
        let functions = self.decisions.len();
        let mut out = Matrix::zeros(block.rows, functions);
        out.data_mut().par_chunks_mut(functions.max(1)).enumerate().for_each(|(i, out)| {
            let values = &block.data[i * block.cols * block.terms..];
            for (out, decision) in out.iter_mut().zip(&self.decisions) {
                *out = decision.constant;
                for term in &decision.terms {
                    if let TermBasis::Samples { at, coef } = &term.basis {
                        let value = |k: usize| values[self.row_ids[k] * block.terms + term.kernel];
                        *out += at.iter().zip(coef).map(|(&k, c)| c * value(k)).sum::<f64>();
                    }
                }
            }
        });
        out
    }
}
