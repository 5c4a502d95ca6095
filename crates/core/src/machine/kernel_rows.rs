//! Rows of a combined kernel for a solver that revisits some of them again and again.

use std::borrow::Cow;

use rayon::prelude::*;

use crate::{
    gram::{Cell, Square},
    linalg::{Matrix, dot},
    tuning::tuning,
};

tuning! { "kernel_rows"
    /// Bytes for rows computed from a factor that are kept.
    cache_bytes: usize = 256 << 20;
    /// Least number of entries of a row that one task computes.
    entries_per_task: usize = 512;
}

/// Rows of K for a solver that revisits them.
pub(super) trait KernelRows {
    /// The number type of an entry.
    type Entry: Cell;
    /// Makes row i available. The two rows fetched last are.
    fn fetch(&mut self, i: usize);
    /// Row i, which was made available.
    fn get(&self, i: usize) -> &[Self::Entry];
    /// The principal submatrix of `index`.
    fn select(&self, index: &[usize]) -> Self;
}

/// Rows of a matrix in memory, the whole one or a shrunken one.
pub(super) struct DenseRows<'a, T: Cell>(pub Cow<'a, Square<T>>);

impl<T: Cell> KernelRows for DenseRows<'_, T> {
    type Entry = T;

    fn fetch(&mut self, _: usize) {}

    fn get(&self, i: usize) -> &[T] {
        self.0.row(i)
    }

    fn select(&self, index: &[usize]) -> Self {
        Self(Cow::Owned(self.0.select(index)))
    }
}

/// Rows computed from a factor when they are needed; the recently used ones are kept.
pub(super) struct FactorRows {
    factor: Matrix,
    /// The place of each row among the slots, or `EMPTY`.
    slot: Vec<usize>,
    slots: Vec<CacheSlot>,
    /// Number of rows that are kept at most.
    capacity: usize,
    /// Number of fetches so far: a slot used longest ago is used again first.
    clock: u64,
}

struct CacheSlot {
    row: usize,
    used: u64,
    values: Vec<f64>,
}

/// Marks a row that no slot holds.
const EMPTY: usize = usize::MAX;

impl FactorRows {
    pub(super) fn new(factor: Matrix) -> Self {
        let n = factor.rows();
        let capacity = (TUNING.cache_bytes / (8 * n.max(1))).clamp(2, n.max(2));
        Self { slot: vec![EMPTY; n], slots: Vec::new(), capacity, clock: 0, factor }
    }
}

impl KernelRows for FactorRows {
    type Entry = f64;

    fn fetch(&mut self, i: usize) {
        self.clock += 1;
        if self.slot[i] != EMPTY {
            self.slots[self.slot[i]].used = self.clock;
            return;
        }
        let at = if self.slots.len() < self.capacity {
            self.slots.push(CacheSlot {
                row: EMPTY,
                used: 0,
                values: vec![0.0; self.factor.rows()],
            });
            self.slots.len() - 1
        } else {
            (0..self.slots.len()).min_by_key(|&s| self.slots[s].used).unwrap_or(0)
        };
        let CacheSlot { row, used, values } = &mut self.slots[at];
        if *row != EMPTY {
            self.slot[*row] = EMPTY;
        }
        (*row, *used) = (i, self.clock);
        self.slot[i] = at;
        let (f, own) = (&self.factor, self.factor.row(i));
        values
            .par_iter_mut()
            .with_min_len(TUNING.entries_per_task)
            .enumerate()
            .for_each(|(j, v)| *v = dot(f.row(j), own));
    }

    fn get(&self, i: usize) -> &[f64] {
        &self.slots[self.slot[i]].values
    }

    fn select(&self, index: &[usize]) -> Self {
        Self::new(self.factor.select_rows(index))
    }
}
