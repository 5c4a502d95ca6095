//! A symmetric matrix as its packed lower triangle, in either precision: half the numbers, half the
//! traffic.

use std::ops::Range;

use rayon::prelude::*;

use super::cell::{Both, Cell, Each, Inner, TOGETHER, WeightedRows};
use crate::linalg::{Matrix, axpy, in_large_pages, wide};

/// Tasks of a product K v: as many whatever the number of threads, so that the order of sums, and
/// with it the last digit, is always the same.
const PRODUCT_TASKS: usize = 8;

/// The lower triangle of a symmetric matrix: row i holds entries (i, 0..=i).
#[derive(Debug, Clone, Default)]
pub struct Packed<T> {
    n: usize,
    data: Vec<T>,
}

impl<T: Cell> Packed<T> {
    /// Bytes a matrix of size n takes.
    pub fn bytes(n: usize) -> u64 {
        (n as u64 * (n as u64 + 1) / 2) * size_of::<T>() as u64
    }

    /// A matrix of zeros.
    pub fn zeros(n: usize) -> Self {
        let data = vec![T::from_f64(0.0); n * (n + 1) / 2];
        in_large_pages(&data);
        Self { n, data }
    }

    /// The lower triangle of a square matrix.
    pub fn lower(k: &Matrix) -> Self {
        let data =
            (0..k.rows()).flat_map(|i| k.row(i)[..=i].iter().map(|&x| T::from_f64(x))).collect();
        Self { n: k.rows(), data }
    }

    /// Several matrices filled together: `fill(i, rows)` writes entries (i, 0..=i) of each.
    pub fn several(
        n: usize,
        count: usize,
        fill: impl Fn(usize, &mut [&mut [T]]) + Sync,
    ) -> Vec<Self> {
        let mut all: Vec<Self> = (0..count).map(|_| Self::zeros(n)).collect();
        Self::rows_of(&mut all).par_iter_mut().enumerate().for_each(|(i, rows)| fill(i, rows));
        all
    }

    /// Entries (i, 0..=i) of several matrices of one size, for every i.
    pub fn rows_of(all: &mut [Self]) -> Vec<Vec<&mut [T]>> {
        let (n, count) = (all.first().map_or(0, |k| k.n), all.len());
        let mut rows: Vec<Vec<&mut [T]>> = (0..n).map(|_| Vec::with_capacity(count)).collect();
        for k in all {
            rows.iter_mut().zip(k.rows_mut()).for_each(|(rows, own)| rows.push(own));
        }
        rows
    }

    /// Entries (i, 0..=i) for every i, to be changed.
    pub fn rows_mut(&mut self) -> Vec<&mut [T]> {
        let (mut rest, mut rows) = (self.data.as_mut_slice(), Vec::with_capacity(self.n));
        for i in 0..self.n {
            let (row, later) = rest.split_at_mut(i + 1);
            rows.push(row);
            rest = later;
        }
        rows
    }

    /// Number of rows, and of columns.
    pub fn n(&self) -> usize {
        self.n
    }

    /// Sum of the diagonal.
    pub fn trace(&self) -> f64 {
        (0..self.n).map(|i| self.row(i)[i].to_f64()).sum()
    }

    /// The stored row i, entries (i, 0..=i).
    pub fn row(&self, i: usize) -> &[T] {
        &self.data[i * (i + 1) / 2..(i + 1) * (i + 2) / 2]
    }

    /// Changes the stored rows (i, 0..=i) in place.
    pub fn map_rows(&mut self, mut change: impl FnMut(usize, &mut [T])) {
        self.rows_mut().into_iter().enumerate().for_each(|(i, row)| change(i, row));
    }

    /// The same matrix in single precision.
    pub fn narrow(&self) -> Packed<f32> {
        Packed { n: self.n, data: self.data.iter().map(|x| x.to_f64() as f32).collect() }
    }

    /// out[..=i] += w · row i.
    pub fn add_row(&self, i: usize, w: f64, out: &mut [f64]) {
        wide(Each(out, self.row(i), |o: &mut f64, v: f64| *o += w * v));
    }

    /// out[..=i] += Σ w · row i, over several matrices: some at a time, so that memory has several
    /// things to bring at once.
    pub fn add_rows(active: &[(f64, &Self)], i: usize, out: &mut [f64]) {
        let (together, rest) = active.as_chunks::<TOGETHER>();
        for some in together {
            wide(WeightedRows(some.map(|(_, k)| k.row(i)), some.map(|(w, _)| w), out));
        }
        rest.iter().for_each(|(w, k)| k.add_row(i, *w, out));
    }

    /// The whole of row i, upper part gathered, or its first entries.
    pub fn full_row(&self, i: usize, out: &mut [f64]) {
        for (o, &v) in out.iter_mut().zip(self.row(i)) {
            *o = v.to_f64();
        }
        for (j, o) in out.iter_mut().enumerate().skip(i + 1) {
            *o = self.data[j * (j + 1) / 2 + i].to_f64();
        }
    }

    /// out = K v, each stored entry read once.
    pub fn apply(&self, v: &[f64], out: &mut [f64]) {
        out.fill(0.0);
        self.add_product(0..self.n, v, out);
    }

    /// The product K v, by all threads.
    pub fn times(&self, v: &[f64]) -> Vec<f64> {
        let parts: Vec<Vec<f64>> = (0..PRODUCT_TASKS)
            .into_par_iter()
            .map(|k| {
                // Ends of the tasks, such that each reads as many entries.
                let end = |k: usize| {
                    (self.n as f64 * (k as f64 / PRODUCT_TASKS as f64).sqrt()).round() as usize
                };
                let mut out = vec![0.0; end(k + 1)];
                self.add_product(end(k)..end(k + 1), v, &mut out);
                out
            })
            .collect();
        let mut out = vec![0.0; self.n];
        parts.iter().for_each(|part| axpy(1.0, part, &mut out[..part.len()]));
        out
    }

    /// Adds to `out` what the stored rows in `range` bring to K v.
    fn add_product(&self, range: Range<usize>, v: &[f64], out: &mut [f64]) {
        for i in range {
            let (row, diagonal) = (&self.row(i)[..i], self.row(i)[i].to_f64());
            let sum = wide(Both(row, &v[..i], v[i], &mut out[..i]));
            out[i] += sum + diagonal * v[i];
        }
    }

    /// aᵀ K a for several a: every row is read once, and only where one of them is not zero.
    pub fn quad_forms(&self, vectors: &[Vec<f64>]) -> Vec<f64> {
        let mut totals = vec![0.0; vectors.len()];
        for i in 0..self.n {
            let (row, diagonal) = (&self.row(i)[..i], self.row(i)[i].to_f64());
            for (total, a) in totals.iter_mut().zip(vectors).filter(|(_, a)| a[i] != 0.0) {
                *total += a[i] * (2.0 * wide(Inner(row, &a[..i])) + diagonal * a[i]);
            }
        }
        totals
    }
}
