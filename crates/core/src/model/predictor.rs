//! Decision functions on new rows, touching only active kernels and the rows and columns they need.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::{Fit, FitPart};
use crate::{
    data::{Missing, Rows, steps::Plan},
    gram::{Basis, Extension, GramSet, Stack},
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

impl Term {
    fn coef(&self) -> &[f64] {
        match &self.basis {
            TermBasis::Samples { coef, .. } | TermBasis::Columns { coef, .. } | TermBasis::Monomials { coef } => coef,
        }
    }

    /// Do both need the same numbers of a row?
    fn shares(&self, other: &Self) -> bool {
        self.kernel == other.kernel
            && match (&self.basis, &other.basis) {
                (TermBasis::Samples { at, .. }, TermBasis::Samples { at: others, .. })
                | (TermBasis::Columns { at, .. }, TermBasis::Columns { at: others, .. }) => at == others,
                (TermBasis::Monomials { coef }, TermBasis::Monomials { coef: others }) => coef.len() == others.len(),
                _ => false,
            }
    }
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

/// A function of new rows: a constant and, kernel by kernel, combinations of kernel values or features.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Expansion {
    /// The constant.
    pub constant: f64,
    /// Kernel, combination, and its value for rows that lack what the kernel reads.
    pub terms: Vec<(usize, Basis, f64)>,
}

impl Expansion {
    /// Adds weight · Σ_i a_i k(x_i, ·) for term t of `grams`, which is called `kernel`; `missing` is the rule for rows that lack what it
    /// reads.
    pub fn add(&mut self, kernel: usize, weight: f64, (grams, t): (&GramSet, usize), a: &[f64], missing: Missing) {
        let Extension { mut basis, offset } = grams.extension(t, a);
        self.constant += weight * offset;
        let absent = grams.absent_value(t, a, offset, missing);
        let (Basis::Samples { coef, .. } | Basis::Monomials { coef }) = &mut basis;
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
        let parts = fits.iter().flat_map(|f| f.parts.iter().map(move |p| (f, p)));
        let expansion = |(fit, part): (&Fit, &FitPart)| {
            let mut out = Expansion { constant: part.bias, terms: Vec::new() };
            for (kernel, &weight) in fit.weights.iter().enumerate().filter(|(_, w)| **w != 0.0) {
                out.add(kernel, weight, (grams, kernel), &part.dual, missing);
            }
            out
        };
        Self::of(parts.map(expansion).collect(), table, normalize)
    }

    /// From functions of new rows.
    pub fn of(functions: Vec<Expansion>, table: Option<(&Rows, &[KernelSpec])>, normalize: Normalize) -> Self {
        let (mut columns, mut gram_columns, mut row_ids) = (Vec::new(), Vec::new(), Vec::new());
        let precomputed = |kernel: usize| table.map(|(_, k)| &k[kernel]).filter(|k| k.is_precomputed());
        for (kernel, basis, _) in functions.iter().flat_map(|f| &f.terms) {
            match (basis, precomputed(*kernel)) {
                (Basis::Samples { index, .. }, Some(spec)) => {
                    gram_columns.extend(index.iter().map(|&i| spec.columns[i]));
                }
                (Basis::Samples { index, .. }, None) => row_ids.extend_from_slice(index),
                (Basis::Monomials { .. }, _) => {}
            }
            if let Some((_, kernels)) = table.filter(|_| precomputed(*kernel).is_none()) {
                columns.extend_from_slice(&kernels[*kernel].columns);
            }
        }
        for list in [&mut columns, &mut row_ids, &mut gram_columns] {
            list.sort_unstable();
            list.dedup();
        }
        let stored = |kernel: usize, basis: Basis| match (basis, precomputed(kernel)) {
            (Basis::Samples { index, coef }, Some(spec)) => {
                let at = |i: &usize| gram_columns.partition_point(|c| *c < spec.columns[*i]);
                TermBasis::Columns { at: index.iter().map(at).collect(), coef }
            }
            (Basis::Samples { index, coef }, None) => {
                TermBasis::Samples { at: index.iter().map(|i| row_ids.partition_point(|r| r < i)).collect(), coef }
            }
            (Basis::Monomials { coef }, _) => TermBasis::Monomials { coef },
        };
        let term = |(kernel, basis, absent)| Term { kernel, basis: stored(kernel, basis), absent };
        let decision = |f: Expansion| Decision { constant: f.constant, terms: f.terms.into_iter().map(term).collect() };
        let decisions = functions.into_iter().map(decision).collect();
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
        let ready = self.ready(kernels);
        let mut out = Matrix::zeros(x.len(), machines);
        out.data_mut().par_chunks_mut(CHUNK * machines.max(1)).enumerate().for_each(|(c, out)| {
            let rows: Vec<usize> = (c * CHUNK..c * CHUNK + out.len() / machines).collect();
            let x = x.select_rows(&rows);
            let ready_made = ready_made.select_rows(&rows);
            out.chunks_mut(machines).for_each(|row| {
                row.iter_mut().zip(&self.decisions).for_each(|(o, d)| *o = d.constant);
            });
            ready.iter().for_each(|term| term.add(&x, &ready_made, self.spherical, machines, out));
        });
        out
    }

    /// Terms in their order, those that functions share gathered: kernel values of a row are computed once for all of them.
    fn ready<'a>(&'a self, kernels: &[KernelSpec]) -> Vec<Ready<'a>> {
        let mut out: Vec<(&Term, Ready<'a>)> = Vec::new();
        for (m, decision) in self.decisions.iter().enumerate() {
            for term in &decision.terms {
                match out.iter_mut().find(|(first, _)| first.shares(term)) {
                    Some((_, ready)) => ready.shares.push(Share::new(m, term)),
                    None => out.push((term, Ready::new(self, m, term, kernels))),
                }
            }
        }
        out.sort_by_key(|(term, _)| term.kernel);
        out.into_iter().map(|(_, ready)| ready).collect()
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
    /// The functions it is part of.
    shares: Vec<Share<'a>>,
}

/// What a kernel contributes to one function.
struct Share<'a> {
    function: usize,
    coef: &'a [f64],
    absent: f64,
}

impl<'a> Share<'a> {
    fn new(function: usize, term: &'a Term) -> Self {
        Self { function, coef: term.coef(), absent: term.absent }
    }
}

enum ReadyBasis<'a> {
    Samples(Points),
    Columns(&'a [usize]),
    Monomials(Option<Monomials>),
}

impl<'a> Ready<'a> {
    fn new(predictor: &Predictor, function: usize, term: &'a Term, kernels: &[KernelSpec]) -> Self {
        let mut spec = kernels[term.kernel].clone();
        if !spec.is_precomputed() {
            spec.columns.iter_mut().for_each(|c| *c = predictor.columns.partition_point(|u| u < c));
        }
        let basis = match &term.basis {
            TermBasis::Samples { at, .. } => ReadyBasis::Samples(spec.points(&predictor.rows.select_rows(at))),
            TermBasis::Columns { at, .. } => ReadyBasis::Columns(at),
            TermBasis::Monomials { coef } => {
                ReadyBasis::Monomials(Monomials::of(spec.function, spec.columns.len(), coef.len()))
            }
        };
        Self { spec, basis, shares: vec![Share::new(function, term)] }
    }

    /// Adds its shares to `out`, `functions` numbers per row of x.
    fn add(&self, x: &Rows, ready_made: &Rows, spherical: bool, functions: usize, out: &mut [f64]) {
        let absent = match &self.basis {
            ReadyBasis::Columns(at) => ready_made.absent(at),
            _ => x.absent(&self.spec.columns),
        };
        let points = (!matches!(self.basis, ReadyBasis::Columns(_))).then(|| self.spec.points(x));
        let squares = points.as_ref().filter(|_| spherical).map(Points::diagonal).unwrap_or_default();
        let numbers =
            points.as_ref().filter(|_| matches!(self.basis, ReadyBasis::Monomials(_))).and_then(Points::numbers);
        let mut values = vec![0.0; self.shares[0].coef.len()];
        for (i, out) in out.chunks_mut(functions).enumerate() {
            if absent.as_ref().is_some_and(|a| a[i]) {
                self.shares.iter().for_each(|s| out[s.function] += s.absent);
                continue;
            }
            match (&self.basis, &points, &numbers) {
                (ReadyBasis::Columns(at), ..) => {
                    let row = ready_made.numbers().row(i);
                    values.iter_mut().zip(*at).for_each(|(v, &c)| *v = row[c]);
                }
                (ReadyBasis::Samples(rows), Some(points), _) => points.row(i, rows, &mut values),
                (ReadyBasis::Monomials(Some(map)), _, Some(x)) => map.map(x.row(i), &mut values),
                _ => values.fill(0.0),
            }
            let divisor = match squares.get(i) {
                None => 1.0,
                Some(&square) if square > 0.0 => square.sqrt(),
                // A row of norm 0 has kernel value 0 with every other.
                Some(_) => f64::INFINITY,
            };
            self.shares.iter().for_each(|s| out[s.function] += dot(&values, s.coef) / divisor);
        }
    }
}
