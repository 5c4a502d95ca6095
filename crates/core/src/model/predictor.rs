//! Decision functions on new rows, touching only active kernels and the rows and columns they need.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::{Fit, FitPart};
use crate::{
    gram::{Basis, Extension, GramSet, Stack},
    kernels::{KernelSpec, Monomials, Normalize},
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
}

impl Term {
    fn coef(&self) -> &[f64] {
        match &self.basis {
            TermBasis::Samples { coef, .. } | TermBasis::Monomials { coef } => coef,
        }
    }

    /// Do both need the same numbers of a row?
    fn shares(&self, other: &Self) -> bool {
        self.kernel == other.kernel
            && match (&self.basis, &other.basis) {
                (TermBasis::Samples { at, .. }, TermBasis::Samples { at: others, .. }) => at == others,
                (TermBasis::Monomials { coef }, TermBasis::Monomials { coef: others }) => coef.len() == others.len(),
                _ => false,
            }
    }
}

/// See [`Basis`]; samples are counted within the stored rows.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum TermBasis {
    Samples { at: Vec<usize>, coef: Vec<f64> },
    Monomials { coef: Vec<f64> },
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
    pub(super) rows: Matrix,
    /// Divide by √k(x, x)?
    pub(super) spherical: bool,
    pub(super) decisions: Vec<Decision>,
}

/// A function of new rows: a constant and, kernel by kernel, combinations of kernel values or features.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Expansion {
    /// The constant.
    pub constant: f64,
    /// Kernel and combination.
    pub terms: Vec<(usize, Basis)>,
}

impl Expansion {
    /// Adds weight times a kernel's share.
    pub fn add(&mut self, kernel: usize, weight: f64, extension: Extension) {
        self.constant += weight * extension.offset;
        let mut basis = extension.basis;
        let (Basis::Samples { coef, .. } | Basis::Monomials { coef }) = &mut basis;
        coef.iter_mut().for_each(|c| *c *= weight);
        self.terms.push((kernel, basis));
    }
}

/// How a term stands in the model file's header; its numbers stand in tensors.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct TermHeader {
    pub kernel: usize,
    pub monomials: bool,
    pub len: usize,
}

impl Predictor {
    /// From fits on `grams`; `table` is the standardised training table with its kernels, absent for ready-made ones.
    pub fn new(fits: &[Fit], grams: &GramSet, table: Option<(&Matrix, &[KernelSpec])>, normalize: Normalize) -> Self {
        let parts = fits.iter().flat_map(|f| f.parts.iter().map(move |p| (f, p)));
        let expansion = |(fit, part): (&Fit, &FitPart)| {
            let active = fit.weights.iter().enumerate().filter(|(_, w)| **w != 0.0);
            let mut out = Expansion { constant: part.bias, terms: Vec::new() };
            active.for_each(|(kernel, &weight)| out.add(kernel, weight, grams.extension(kernel, &part.dual)));
            out
        };
        Self::of(parts.map(expansion).collect(), table, normalize)
    }

    /// From functions of new rows.
    pub fn of(functions: Vec<Expansion>, table: Option<(&Matrix, &[KernelSpec])>, normalize: Normalize) -> Self {
        let mut columns: Vec<usize> = Vec::new();
        let mut row_ids: Vec<usize> = Vec::new();
        for (kernel, basis) in functions.iter().flat_map(|f| &f.terms) {
            if let Basis::Samples { index, .. } = basis {
                row_ids.extend_from_slice(index);
            }
            if let Some((_, kernels)) = table {
                columns.extend_from_slice(&kernels[*kernel].columns);
            }
        }
        for list in [&mut columns, &mut row_ids] {
            list.sort_unstable();
            list.dedup();
        }
        let stored = |basis: Basis| match basis {
            Basis::Samples { index, coef } => {
                TermBasis::Samples { at: index.iter().map(|i| row_ids.partition_point(|r| r < i)).collect(), coef }
            }
            Basis::Monomials { coef } => TermBasis::Monomials { coef },
        };
        let decision = |f: Expansion| Decision {
            constant: f.constant,
            terms: f.terms.into_iter().map(|(kernel, basis)| Term { kernel, basis: stored(basis) }).collect(),
        };
        let decisions = functions.into_iter().map(decision).collect();
        let rows = table.map(|(x, _)| x.select_rows(&row_ids).select_cols(&columns)).unwrap_or_default();
        Self { columns, row_ids, rows, spherical: normalize == Normalize::Spherical, decisions }
    }

    /// Replaces row numbers by `names[number]`: training may have left rows out.
    pub fn rename_rows(&mut self, names: &[usize]) {
        self.row_ids.iter_mut().for_each(|i| *i = names[*i]);
    }

    /// Training columns that are needed, by index.
    pub fn columns(&self) -> &[usize] {
        &self.columns
    }

    /// Training rows that are kept, by index.
    pub fn row_ids(&self) -> &[usize] {
        &self.row_ids
    }

    /// Those rows and columns, standardised; empty for ready-made kernels.
    pub fn rows(&self) -> &Matrix {
        &self.rows
    }

    /// Decision values of `x`, whose columns are the needed ones, standardised.
    pub fn evaluate(&self, kernels: &[KernelSpec], x: &Matrix) -> Matrix {
        let machines = self.decisions.len();
        let ready = self.ready(kernels);
        let mut out = Matrix::zeros(x.rows(), machines);
        out.data_mut().par_chunks_mut(CHUNK * machines.max(1)).enumerate().for_each(|(c, out)| {
            out.chunks_mut(machines).for_each(|row| {
                row.iter_mut().zip(&self.decisions).for_each(|(o, d)| *o = d.constant);
            });
            ready.iter().for_each(|term| term.add(x, c * CHUNK, self.spherical, machines, out));
        });
        out
    }

    /// Terms in their order, those that functions share gathered: kernel values of a row are computed once for all of them.
    fn ready<'a>(&'a self, kernels: &'a [KernelSpec]) -> Vec<Ready<'a>> {
        let mut out: Vec<(&Term, Ready<'a>)> = Vec::new();
        for (m, decision) in self.decisions.iter().enumerate() {
            for term in &decision.terms {
                match out.iter_mut().find(|(first, _)| first.shares(term)) {
                    Some((_, ready)) => ready.coef.push((m, term.coef())),
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
    spec: &'a KernelSpec,
    /// Where its columns stand among the needed ones.
    columns: Vec<usize>,
    /// Its rows, or its monomials.
    basis: ReadyBasis,
    /// The functions it is part of, with their coefficients.
    coef: Vec<(usize, &'a [f64])>,
}

enum ReadyBasis {
    Samples(Matrix),
    Monomials(Option<Monomials>),
}

impl<'a> Ready<'a> {
    fn new(predictor: &Predictor, function: usize, term: &'a Term, kernels: &'a [KernelSpec]) -> Self {
        let spec = &kernels[term.kernel];
        let columns: Vec<usize> = spec.columns.iter().map(|c| predictor.columns.partition_point(|u| u < c)).collect();
        let basis = match &term.basis {
            TermBasis::Samples { at, .. } => ReadyBasis::Samples(predictor.rows.select_rows(at).select_cols(&columns)),
            TermBasis::Monomials { coef } => {
                ReadyBasis::Monomials(Monomials::of(spec.function, columns.len(), coef.len()))
            }
        };
        Self { spec, columns, basis, coef: vec![(function, term.coef())] }
    }

    /// Adds its share to `out`, rows of `functions` numbers from row `first` of x on.
    fn add(&self, x: &Matrix, first: usize, spherical: bool, functions: usize, out: &mut [f64]) {
        let function = self.spec.function;
        let mut own = vec![0.0; self.columns.len()];
        let mut values = vec![0.0; self.coef[0].1.len()];
        for (i, out) in out.chunks_mut(functions).enumerate() {
            let row = x.row(first + i);
            own.iter_mut().zip(&self.columns).for_each(|(o, &c)| *o = row[c]);
            match &self.basis {
                ReadyBasis::Samples(rows) => function.row(&own, rows, &mut values),
                ReadyBasis::Monomials(Some(map)) => map.map(&own, &mut values),
                ReadyBasis::Monomials(None) => values.fill(0.0),
            }
            let mut divisor = 1.0;
            if spherical {
                let mut square = [function.pair().of(&own, &own)];
                function.finish(&mut square);
                // A row of norm 0 has kernel value 0 with every other.
                divisor = if square[0] > 0.0 { square[0].sqrt() } else { f64::INFINITY };
            }
            self.coef.iter().for_each(|(m, coef)| out[*m] += dot(&values, coef) / divisor);
        }
    }
}
