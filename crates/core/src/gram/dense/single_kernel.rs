//! A combined kernel as solvers need it that correct their course: entries in single precision, products exact.

use std::{
    borrow::Cow,
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rayon::prelude::*;

use super::{
    super::{Factor, LowRankSum},
    Gram, Square,
    packed::Packed,
    sums::add_all,
};
use crate::linalg::axpy;

/// Mean diagonals for which no entry that counts over- or underflows.
const SINGLE: std::ops::Range<f64> = 1e-20..1e20;

/// Share of the trace of the terms of low rank that near entries do without.
const LEFT_OUT: f64 = 1e-3;

/// A combined kernel in single precision, a little left out, for solvers that correct their course with exact products.
#[derive(Debug, Clone)]
pub struct SingleKernel {
    rows: Square<f32>,
    /// The terms that are matrices, and those that are factors.
    rest: Option<Packed<f64>>,
    factors: LowRankSum,
    room: Arc<Scratch>,
}

/// Adds up entries (i, 0..=i).
pub type AddRow<'a> = &'a (dyn Fn(usize, &mut [f64]) + Sync);

/// Where the numbers of the last combined kernel were, for the next one: fresh pages cost about as much as what is written to them. And what
/// its last exact product has told about its terms.
#[derive(Debug, Default)]
pub struct Scratch {
    rows: Mutex<Option<Square<f32>>>,
    rest: Mutex<Option<Packed<f64>>>,
    forms: Mutex<(Vec<f64>, HashMap<usize, f64>)>,
}

impl Scratch {
    /// aᵀK_t a of some terms: of factors as the last product told, if it was with a, and of the others by `compute`.
    pub fn forms<'a>(
        &self,
        terms: &[usize],
        a: &[f64],
        factor: impl Fn(usize) -> Option<&'a Factor>,
        compute: impl FnOnce(&[usize]) -> Vec<f64>,
    ) -> Vec<f64> {
        let last = held(&self.forms);
        let known: Vec<Option<f64>> = if last.0 == a {
            terms.iter().map(|&t| factor(t).and_then(|f| last.1.get(&f.basis_id()).copied())).collect()
        } else {
            vec![None; terms.len()]
        };
        drop(last);
        let others: Vec<usize> =
            terms.iter().zip(&known).filter(|(_, known)| known.is_none()).map(|(t, _)| *t).collect();
        let mut computed = if others.is_empty() { Vec::new() } else { compute(&others) }.into_iter();
        known.into_iter().filter_map(|known| known.or_else(|| computed.next())).collect()
    }
}

fn held<T>(place: &Mutex<T>) -> MutexGuard<'_, T> {
    place.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for SingleKernel {
    fn drop(&mut self) {
        *held(&self.room.rows) = Some(std::mem::take(&mut self.rows));
        if let Some(rest) = self.rest.take() {
            *held(&self.room.rest) = Some(rest);
        }
    }
}

impl SingleKernel {
    /// Of some factors and the rest of the terms; `None` where single precision ends.
    pub fn new(active: &[(f64, &Factor)], rest: Option<AddRow<'_>>, n: usize, room: &Arc<Scratch>) -> Option<Self> {
        let mut rows = held(&room.rows).take().filter(|k| k.n() == n).unwrap_or_else(|| Square::zeros(n));
        let rest = rest.map(|fill| {
            let mut rest = held(&room.rest).take().filter(|k| k.n() == n).unwrap_or_else(|| Packed::zeros(n));
            rest.rows_mut().into_par_iter().zip(rows.data_mut().par_chunks_mut(n)).enumerate().for_each(
                |(i, (own, row))| {
                    own.fill(0.0);
                    fill(i, own);
                    row.iter_mut().zip(&*own).for_each(|(out, x)| *out = *x as f32);
                },
            );
            rest
        });
        if rest.is_none() {
            rows.data_mut().fill(0.0);
        }
        let factors = LowRankSum::new(active);
        if !active.is_empty() {
            let thin = factors.truncated(LEFT_OUT);
            add_all::<f32, f32>(&thin.pieces(), &mut rows);
            // What is left out goes to the diagonal: no direction shall seem flat that is not.
            let ridge = (factors.trace() - thin.trace()).max(0.0) / n as f64;
            (0..n).for_each(|i| rows.data_mut()[i * n + i] += ridge as f32);
        }
        let size = (0..n).map(|i| f64::from(rows.row(i)[i])).sum::<f64>() / n as f64;
        rows.mirror();
        let near = Self { rows, rest, factors, room: room.clone() };
        SINGLE.contains(&size).then_some(near)
    }

    /// Every entry, nearly.
    pub fn rows(&self) -> &Square<f32> {
        &self.rows
    }

    /// Every entry, to double precision.
    pub fn exact(&self) -> Gram {
        let mut out = Gram::zeros(self.rows.n());
        if let Some(rest) = &self.rest {
            let rows = out.data_mut().chunks_exact_mut(rest.n()).enumerate();
            rows.for_each(|(i, row)| row[..=i].copy_from_slice(rest.row(i)));
        }
        add_all::<f64, f64>(&self.factors.pieces(), &mut out);
        out.mirror();
        out
    }

    /// Entries (i, 0..=i), exact where they are known.
    pub fn lower_row(&self, i: usize) -> Cow<'_, [f64]> {
        match &self.rest {
            Some(rest) if self.factors.parts.is_empty() => Cow::Borrowed(rest.row(i)),
            _ => Cow::Owned(self.rows.row(i)[..=i].iter().map(|x| f64::from(*x)).collect()),
        }
    }

    /// K v, to double precision.
    pub fn times(&self, v: &[f64]) -> Vec<f64> {
        let (mut out, forms) = self.factors.times_with_forms(v);
        *held(&self.room.forms) = (v.to_vec(), forms.into_iter().collect());
        if let Some(rest) = &self.rest {
            axpy(1.0, &rest.times(v), &mut out);
        }
        out
    }
}
