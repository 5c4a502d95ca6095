//! Decision functions on new rows, touching only active kernels and the rows and columns they need.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::Fit;
use crate::{
    data::{Missing, Rows, steps::Plan},
    gram::{Basis, GramSet, Stack},
    kernels::{KernelSpec, Monomials, Normalize, Points},
    linalg::{Matrix, dot},
};

/// New rows that one task evaluates.
const CHUNK: usize = 128;

/// An active kernel's share of one decision function.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Term {
    /// Which base kernel.
    pub kernel: usize,
    /// Its function, weight included.
    pub basis: TermBasis,
    /// Its value for a row that lacks what it reads.
    pub absent: f64,
}

/// See [`Basis`]; samples are counted within the stored rows.
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
    Monomials {
        coef: Vec<f64>,
    },
}

/// One decision function.
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
    /// How the columns are made from those of the data.
    pub(super) plan: Plan,
    pub(super) decisions: Vec<Decision>,
}

/// How a term stands in the model file's header; its numbers stand in tensors.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct TermHeader {
    pub kernel: usize,
    pub monomials: bool,
    pub len: usize,
    /// Of Gram columns?
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
    /// From fits on `grams`; `table` is the standardised training table with its kernels, absent for ready-made ones.
    pub fn new(fits: &[Fit], grams: &GramSet, table: Option<(&Rows, &[KernelSpec])>, normalize: Normalize) -> Self {
        Self::imputing(fits, grams, table, normalize, Missing::Refuse)
    }

    /// The same, with a rule for new rows that lack a view.
    pub fn imputing(
        fits: &[Fit],
        grams: &GramSet,
        table: Option<(&Rows, &[KernelSpec])>,
        normalize: Normalize,
        missing: Missing,
    ) -> Self {
        let mut columns: Vec<usize> = Vec::new();
        let mut gram_columns: Vec<usize> = Vec::new();
        let mut row_ids: Vec<usize> = Vec::new();
        let mut decisions = Vec::new();
        for (fit, part) in fits.iter().flat_map(|f| f.parts.iter().map(move |p| (f, p))) {
            let mut decision = Decision { constant: part.bias, terms: Vec::new() };
            for (kernel, &weight) in fit.weights.iter().enumerate().filter(|(_, w)| **w != 0.0) {
                let extension = grams.extension(kernel, &part.dual);
                decision.constant += weight * extension.offset;
                let absent = weight * grams.absent_value(kernel, &part.dual, extension.offset, missing);
                let spec = table.map(|(_, kernels)| &kernels[kernel]);
                let scaled = |coef: Vec<f64>| coef.into_iter().map(|c| weight * c).collect();
                let basis = match extension.basis {
                    Basis::Samples { index, coef } if let Some(spec) = spec.filter(|s| s.is_precomputed()) => {
                        let at: Vec<usize> = index.iter().map(|&i| spec.columns[i]).collect();
                        gram_columns.extend_from_slice(&at);
                        TermBasis::Columns { at, coef: scaled(coef) }
                    }
                    Basis::Samples { index, coef } => {
                        row_ids.extend_from_slice(&index);
                        TermBasis::Samples { at: index, coef: scaled(coef) }
                    }
                    Basis::Monomials { coef } => TermBasis::Monomials { coef: scaled(coef) },
                };
                if let Some(spec) = spec.filter(|s| !s.is_precomputed()) {
                    columns.extend_from_slice(&spec.columns);
                }
                decision.terms.push(Term { kernel, basis, absent });
            }
            decisions.push(decision);
        }
        for list in [&mut columns, &mut row_ids, &mut gram_columns] {
            list.sort_unstable();
            list.dedup();
        }
        for term in decisions.iter_mut().flat_map(|d| &mut d.terms) {
            match &mut term.basis {
                TermBasis::Samples { at, .. } => {
                    at.iter_mut().for_each(|i| *i = row_ids.partition_point(|r| r < i));
                }
                TermBasis::Columns { at, .. } => {
                    at.iter_mut().for_each(|i| *i = gram_columns.partition_point(|c| c < i));
                }
                TermBasis::Monomials { .. } => {}
            }
        }
        let rows = table.map(|(x, _)| x.select_rows(&row_ids).select_cols(&columns).without_gaps());
        let sparse_start = table.filter(|(x, _)| x.sparse().is_some()).map_or(usize::MAX, |(x, _)| x.sparse_start());
        let (rows, spherical) = (rows.unwrap_or_default(), normalize == Normalize::Spherical);
        let plan = Plan::default();
        Self { columns, row_ids, rows, spherical, sparse_start, gram_columns, plan, decisions }
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

    /// Kernels with a weight in any machine, ascending.
    pub fn kernels(&self) -> Vec<usize> {
        let mut all: Vec<usize> = self.decisions.iter().flat_map(|d| d.terms.iter().map(|t| t.kernel)).collect();
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

    /// Decision values of `x`, whose columns are the needed ones, standardised.
    pub fn evaluate(&self, kernels: &[KernelSpec], x: &Rows) -> Matrix {
        self.evaluate_with(kernels, x, &Rows::from(Matrix::zeros(x.len(), 0)))
    }

    /// The same with the needed values of ready-made kernels.
    pub fn evaluate_with(&self, kernels: &[KernelSpec], x: &Rows, ready_made: &Rows) -> Matrix {
        let machines = self.decisions.len();
        let ready: Vec<Vec<Ready<'_>>> =
            self.decisions.iter().map(|d| d.terms.iter().map(|t| Ready::new(self, t, kernels)).collect()).collect();
        let mut out = Matrix::zeros(x.len(), machines);
        out.data_mut().par_chunks_mut(CHUNK * machines.max(1)).enumerate().for_each(|(c, out)| {
            let rows: Vec<usize> = (c * CHUNK..c * CHUNK + out.len() / machines).collect();
            let x = x.select_rows(&rows);
            let ready_made = ready_made.select_rows(&rows);
            for (m, terms) in ready.iter().enumerate() {
                let mut total = vec![self.decisions[m].constant; x.len()];
                for term in terms {
                    term.add(&x, &ready_made, self.spherical, &mut total);
                }
                total.iter().enumerate().for_each(|(i, v)| out[i * machines + m] = *v);
            }
        });
        out
    }

    /// Decision values from kernel values against all training rows.
    pub fn evaluate_precomputed(&self, block: Stack<'_>) -> Matrix {
        let mut out = Matrix::zeros(block.rows, self.decisions.len());
        for (m, decision) in self.decisions.iter().enumerate() {
            for i in 0..block.rows {
                let values = &block.data[i * block.cols * block.terms..];
                let mut total = decision.constant;
                for term in &decision.terms {
                    if let TermBasis::Samples { at, coef } = &term.basis {
                        let value = |k: usize| values[self.row_ids[k] * block.terms + term.kernel];
                        total += at.iter().zip(coef).map(|(&k, c)| c * value(k)).sum::<f64>();
                    }
                }
                out[(i, m)] = total;
            }
        }
        out
    }
}

/// A term with its rows gathered.
struct Ready<'a> {
    /// Its columns counted among the needed ones.
    spec: KernelSpec,
    /// Its rows, or its monomials.
    basis: ReadyBasis<'a>,
    coef: &'a [f64],
    absent: f64,
}

enum ReadyBasis<'a> {
    Samples(Points),
    Columns(&'a [usize]),
    Monomials(Option<Monomials>),
}

impl<'a> Ready<'a> {
    fn new(predictor: &Predictor, term: &'a Term, kernels: &[KernelSpec]) -> Self {
        let mut spec = kernels[term.kernel].clone();
        if !spec.is_precomputed() {
            spec.columns.iter_mut().for_each(|c| *c = predictor.columns.partition_point(|u| u < c));
        }
        let (basis, coef) = match &term.basis {
            TermBasis::Samples { at, coef } => {
                (ReadyBasis::Samples(spec.points(&predictor.rows.select_rows(at))), coef)
            }
            TermBasis::Columns { at, coef } => (ReadyBasis::Columns(at), coef),
            TermBasis::Monomials { coef } => {
                (ReadyBasis::Monomials(Monomials::of(spec.function, spec.columns.len(), coef.len())), coef)
            }
        };
        Self { spec, basis, coef, absent: term.absent }
    }

    fn add(&self, x: &Rows, ready_made: &Rows, spherical: bool, total: &mut [f64]) {
        if let ReadyBasis::Columns(at) = &self.basis {
            let absent = ready_made.absent(at);
            for (i, total) in total.iter_mut().enumerate() {
                let row = ready_made.numbers().row(i);
                *total += match &absent {
                    Some(absent) if absent[i] => self.absent,
                    _ => at.iter().zip(self.coef).map(|(&c, coef)| coef * row[c]).sum::<f64>(),
                };
            }
            return;
        }
        let absent = x.absent(&self.spec.columns);
        let points = self.spec.points(x);
        let squares = if spherical { points.diagonal() } else { Vec::new() };
        let numbers = points.numbers().filter(|_| matches!(self.basis, ReadyBasis::Monomials(_)));
        let mut values = vec![0.0; self.coef.len()];
        for (i, total) in total.iter_mut().enumerate() {
            if absent.as_ref().is_some_and(|a| a[i]) {
                *total += self.absent;
                continue;
            }
            match (&self.basis, &numbers) {
                (ReadyBasis::Samples(rows), _) => points.row(i, rows, &mut values),
                (ReadyBasis::Monomials(Some(map)), Some(x)) => map.map(x.row(i), &mut values),
                (ReadyBasis::Monomials(_) | ReadyBasis::Columns(_), _) => values.fill(0.0),
            }
            let value = dot(&values, self.coef);
            *total += match squares.get(i) {
                None => value,
                Some(&square) if square > 0.0 => value / square.sqrt(),
                // A row of norm 0 has kernel value 0 with every other.
                Some(_) => 0.0,
            };
        }
    }
}
