//! The combined kernel a machine works on: a matrix with both triangles, or a factor where a matrix would not fit.

use std::borrow::Cow;

use rayon::prelude::*;

use super::Machine;
use crate::{
    Result,
    gram::{Budget, Cell, EXACT, Factor, Gram, GramSource, LowRankSum, SingleKernel, Square},
    linalg::{Matrix, dot},
};

/// Σ θ_m K_m.
#[derive(Debug, Clone)]
pub enum Combined {
    /// Every entry.
    Dense(Gram),
    /// F with K = F Fᵀ.
    Factor(Matrix),
    /// Σ B W Bᵀ, for machines that need no more than products.
    Bases(LowRankSum),
    /// Every entry to single precision, and exact products.
    Single(SingleKernel),
}

impl Combined {
    /// Σ θ_t K_t: a matrix where it fits `room`, else in the bases of its terms, if every active term has one. Bases with few columns are
    /// taken even where the matrix fits, if the machine likes them. Where `near` entries will do, they may be rounded to single precision.
    pub fn new(
        grams: &dyn GramSource,
        weights: &[f64],
        room: Budget,
        machine: &dyn Machine,
        near: bool,
    ) -> Result<Self> {
        let n = grams.n_samples();
        let active = || weights.iter().enumerate().filter(|(_, w)| **w > 0.0);
        let factors: Option<Vec<(f64, &Factor)>> = active().map(|(t, w)| grams.factor(t).map(|f| (*w, f))).collect();
        let matrix_bytes = 8 * n as u64 * n as u64;
        let liked = |f: &Vec<(f64, &Factor)>| {
            !f.is_empty() && (matrix_bytes > room.bytes || machine.likes_factor(n, LowRankSum::rank_of(f)))
        };
        if let Some(factors) = factors.filter(liked) {
            let sum = LowRankSum::new(&factors);
            if machine.solves_in_bases(n) {
                return Ok(Self::Bases(sum));
            }
            let bytes = 8 * n as u64 * sum.rank() as u64;
            room.check("the combined factor", bytes, "raise the budget or use fewer kernels")?;
            return Ok(Self::Factor(sum.truncated_root(EXACT)));
        }
        let remedy = "raise the budget, or use fewer rows or only kernels of low rank, which need no such matrix";
        room.check(format!("the combined kernel matrix of {n} samples"), matrix_bytes, remedy)?;
        let near = if near && machine.corrects() { grams.combine_single(weights) } else { None };
        Ok(near.map_or_else(|| Self::Dense(grams.combine(weights)), Self::Single))
    }

    /// Number of samples.
    pub fn n(&self) -> usize {
        match self {
            Self::Dense(k) => k.n(),
            Self::Factor(f) => f.rows(),
            Self::Bases(k) => k.n(),
            Self::Single(k) => k.rows().n(),
        }
    }

    /// The kernel of the rows `index` alone.
    #[must_use]
    pub fn select(&self, index: &[usize]) -> Self {
        match self {
            Self::Dense(k) => Self::Dense(k.select(index)),
            Self::Factor(f) => Self::Factor(f.select_rows(index)),
            Self::Bases(k) => Self::Bases(k.select(index)),
            Self::Single(k) => Self::Dense(k.rows().select(index).widened()),
        }
    }

    /// K v.
    pub fn times(&self, v: &[f64]) -> Vec<f64> {
        match self {
            Self::Dense(k) => k.times(v),
            Self::Factor(f) => f.times(&f.transposed_times(v)),
            Self::Bases(k) => k.times(v),
            Self::Single(k) => k.times(v),
        }
    }

    /// k(x_i, x_i) for every i.
    pub fn diagonal(&self) -> Vec<f64> {
        match self {
            Self::Dense(k) => (0..k.n()).map(|i| k.row(i)[i]).collect(),
            Self::Single(k) => (0..self.n()).map(|i| f64::from(k.rows().row(i)[i])).collect(),
            Self::Factor(f) => (0..f.rows()).map(|i| dot(f.row(i), f.row(i))).collect(),
            Self::Bases(k) => Self::Factor(k.truncated_root(EXACT)).diagonal(),
        }
    }

    /// K v from entries that may be rounded, where they are there.
    pub(super) fn times_single(&self, v: &[f64]) -> Vec<f64> {
        match self {
            Self::Single(k) => k.rows().times(v),
            _ => self.times(v),
        }
    }

    /// Entries (i, 0..=i), where they are there.
    pub(super) fn lower_row(&self, i: usize) -> Option<Cow<'_, [f64]>> {
        match self {
            Self::Dense(k) => Some(Cow::Borrowed(&k.row(i)[..=i])),
            Self::Single(k) => Some(k.lower_row(i)),
            Self::Factor(_) | Self::Bases(_) => None,
        }
    }

    /// As one factor, in which a share of the trace may be left out: a matrix stays what it is.
    pub(super) fn truncated(&self, tolerance: f64) -> Cow<'_, Self> {
        match self {
            Self::Bases(k) => Cow::Owned(Self::Factor(k.truncated_root(tolerance))),
            _ => Cow::Borrowed(self),
        }
    }
}

/// Rows of K for a solver that revisits them.
pub(super) trait Rows {
    /// What entries are stored as.
    type Entry: Cell;
    /// Makes row i available; the two rows fetched last are.
    fn fetch(&mut self, i: usize);
    /// A row that is available.
    fn get(&self, i: usize) -> &[Self::Entry];
    /// The principal submatrix of `index`.
    fn select(&self, index: &[usize]) -> Self;
}

/// Rows that are there already, of the whole matrix or of a shrunken one.
pub(super) struct DenseRows<'a, T: Cell>(pub Cow<'a, Square<T>>);

impl<T: Cell> Rows for DenseRows<'_, T> {
    type Entry = T;

    fn fetch(&mut self, _: usize) {}

    fn get(&self, i: usize) -> &[T] {
        self.0.row(i)
    }

    fn select(&self, index: &[usize]) -> Self {
        Self(Cow::Owned(self.0.select(index)))
    }
}

/// Rows computed from a factor, the recently used ones kept.
pub(super) struct FactorRows {
    factor: Matrix,
    /// Slot of each row, or `EMPTY`.
    slot: Vec<usize>,
    slots: Vec<Slot>,
    capacity: usize,
    clock: u64,
}

struct Slot {
    row: usize,
    used: u64,
    values: Vec<f64>,
}

const EMPTY: usize = usize::MAX;
/// Room for cached rows.
const CACHE_BYTES: usize = 256 << 20;

impl FactorRows {
    pub(super) fn new(factor: Matrix) -> Self {
        let n = factor.rows();
        let capacity = (CACHE_BYTES / (8 * n.max(1))).clamp(2, n.max(2));
        Self { slot: vec![EMPTY; n], slots: Vec::new(), capacity, clock: 0, factor }
    }
}

impl Rows for FactorRows {
    type Entry = f64;

    fn fetch(&mut self, i: usize) {
        self.clock += 1;
        if self.slot[i] != EMPTY {
            self.slots[self.slot[i]].used = self.clock;
            return;
        }
        let at = if self.slots.len() < self.capacity {
            self.slots.push(Slot { row: EMPTY, used: 0, values: vec![0.0; self.factor.rows()] });
            self.slots.len() - 1
        } else {
            (0..self.slots.len()).min_by_key(|&s| self.slots[s].used).unwrap_or(0)
        };
        let Slot { row, used, values } = &mut self.slots[at];
        if *row != EMPTY {
            self.slot[*row] = EMPTY;
        }
        (*row, *used) = (i, self.clock);
        self.slot[i] = at;
        let (f, own) = (&self.factor, self.factor.row(i));
        values.par_iter_mut().with_min_len(512).enumerate().for_each(|(j, v)| *v = dot(f.row(j), own));
    }

    fn get(&self, i: usize) -> &[f64] {
        &self.slots[self.slot[i]].values
    }

    fn select(&self, index: &[usize]) -> Self {
        Self::new(self.factor.select_rows(index))
    }
}
