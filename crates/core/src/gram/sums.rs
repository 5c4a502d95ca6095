//! Combined kernels as matrices, from terms of low rank: few large products.
//!
//! Σ B W Bᵀ over all bases is Σ Uᵀ V with the rows of Bᵀ in V and those of W Bᵀ in U, or Vᵀ V with the rows of S Bᵀ in V and W = SᵀS.

use std::{
    borrow::Cow,
    sync::{Arc, Mutex, PoisonError},
};

use rayon::prelude::*;

use super::{
    Factor, Frame, Gram, Square,
    packed::{Cell, Packed},
    panel::{Inside, LowRank, by_basis},
};
use crate::linalg::{Strided, axpy, gemm, gemm_single};

/// Rows of the combined matrix that one task fills; rows of V gathered at a time, where one basis has no more.
const ROWS: usize = 64;
const DEPTH: usize = 512;

/// Precision of sums.
trait Real: Copy + Default + Send + Sync + 'static {
    fn of(numbers: &[f64]) -> Cow<'_, [Self]>;
    /// Bᵀ.
    fn turned(basis: &Frame) -> Cow<'_, [Self]>;
    fn scaled(self, weight: f64) -> Self;
    /// c ← c + a b for (m, k, n), c with a row stride.
    fn gemm(shape: (usize, usize, usize), a: Strided<'_, Self>, b: Strided<'_, Self>, c: (&mut [Self], usize));
}

/// Entries to which products in some precision are added: c ← c + a b.
trait Sum<T>: Cell {
    fn add_product(shape: (usize, usize, usize), a: Strided<'_, T>, b: Strided<'_, T>, c: (&mut [Self], usize));
}

impl<T: Real + Cell> Sum<T> for T {
    fn add_product(shape: (usize, usize, usize), a: Strided<'_, T>, b: Strided<'_, T>, c: (&mut [T], usize)) {
        T::gemm(shape, a, b, c);
    }
}

impl Sum<f32> for f64 {
    fn add_product(shape: (usize, usize, usize), a: Strided<'_, f32>, b: Strided<'_, f32>, c: (&mut [f64], usize)) {
        let (rows, _, cols) = shape;
        let mut own = vec![0.0; rows * cols];
        gemm_single(shape, a, b, (&mut own, cols));
        for (c, own) in c.0.chunks_mut(c.1).zip(own.chunks_exact(cols)) {
            c.iter_mut().zip(own).for_each(|(c, x)| *c += f64::from(*x));
        }
    }
}

impl Real for f64 {
    fn of(numbers: &[f64]) -> Cow<'_, [Self]> {
        Cow::Borrowed(numbers)
    }

    fn turned(basis: &Frame) -> Cow<'_, [Self]> {
        Cow::Owned(basis.transposed().into_numbers())
    }

    fn scaled(self, weight: f64) -> Self {
        weight * self
    }

    fn gemm(shape: (usize, usize, usize), a: Strided<'_, Self>, b: Strided<'_, Self>, c: (&mut [Self], usize)) {
        gemm(shape, a, b, c);
    }
}

impl Real for f32 {
    fn of(numbers: &[f64]) -> Cow<'_, [Self]> {
        Cow::Owned(numbers.iter().map(|&x| x as Self).collect())
    }

    fn turned(basis: &Frame) -> Cow<'_, [Self]> {
        Cow::Borrowed(basis.turned())
    }

    fn scaled(self, weight: f64) -> Self {
        weight as Self * self
    }

    fn gemm(shape: (usize, usize, usize), a: Strided<'_, Self>, b: Strided<'_, Self>, c: (&mut [Self], usize)) {
        gemm_single(shape, a, b, c);
    }
}

/// out += Σ weight · L Lᵀ on the lower triangle.
pub fn add(active: &[(f64, &Factor)], out: &mut Gram) {
    let groups = by_basis(active);
    let parts: Vec<(&Frame, Inside)> = groups.iter().map(|g| (&**g[0].1.basis(), Inside::new(g))).collect();
    add_all::<f64, f64>(&parts.iter().map(|(b, inside)| (*b, inside)).collect::<Vec<_>>(), out);
}

/// In single precision, and a share of the trace may be left out: terms that hardly count, and of a basis that others share what hardly
/// counts.
pub fn add_rough(active: &[(f64, &Factor)], share: f64, out: &mut Gram) {
    let traces: Vec<f64> = active.iter().map(|(w, f)| w * f.trace_of_square()).collect();
    let allowed = 0.5 * share * traces.iter().sum::<f64>();
    let least = allowed / traces.len().max(1) as f64;
    let kept: Vec<(f64, &Factor)> = active.iter().zip(&traces).filter(|(_, t)| **t > least).map(|(f, _)| *f).collect();
    let groups = by_basis(&kept);
    let left_out = allowed / groups.len().max(1) as f64;
    let thinned = |group: &Vec<(f64, &Factor)>| {
        let (basis, inside) = (group[0].1.basis(), Inside::new(group));
        inside.thinner(left_out / inside.trace(basis))
    };
    let thin: Vec<Inside> = groups.par_iter().map(thinned).collect();
    let parts: Vec<(&Frame, &Inside)> = groups.iter().map(|g| &**g[0].1.basis()).zip(&thin).collect();
    add_all::<f32, f64>(&parts, out);
}

/// out += Σ B W Bᵀ on the lower triangle.
fn add_all<T: Real, S: Sum<T>>(mut parts: &[(&Frame, &Inside)], out: &mut Square<S>) {
    let mut room: [Vec<T>; 2] = [Vec::new(), Vec::new()];
    while !parts.is_empty() {
        let mut depth = 0;
        let fitting = parts.iter().take_while(|(basis, inside)| {
            depth += inside.rank(basis);
            depth <= DEPTH
        });
        let count = fitting.count().max(1);
        add_some(&parts[..count], &mut room, out);
        parts = &parts[count..];
    }
}

/// V and, where it differs, U of all parts are gathered in `room`.
fn add_some<T: Real, S: Sum<T>>(parts: &[(&Frame, &Inside)], [right, left]: &mut [Vec<T>; 2], out: &mut Square<S>) {
    let n = out.n();
    let depth = parts.iter().map(|(basis, inside)| inside.rank(basis)).sum::<usize>();
    let fill = |room: &mut Vec<T>, is_left: bool| {
        room.clear();
        room.resize(n * depth, T::default());
        let (mut rest, mut tasks) = (&mut room[..], Vec::new());
        for &(basis, inside) in parts {
            let (own, after) = rest.split_at_mut(n * inside.rank(basis));
            tasks.push((basis, inside, own));
            rest = after;
        }
        tasks.into_par_iter().for_each(|(basis, inside, own)| put::<T>(basis, inside, is_left, own));
    };
    fill(right, false);
    let differ = parts.iter().any(|(_, inside)| matches!(inside, Inside::Square(_)));
    if differ {
        fill(left, true);
    }
    add_rows(if differ { left } else { right }, right, out);
}

/// Rows of V, or of U, for one basis.
fn put<T: Real>(basis: &Frame, inside: &Inside, is_left: bool, out: &mut [T]) {
    let (turned, n) = (T::turned(basis), basis.rows());
    match inside {
        Inside::Multiple(weight) => {
            out.iter_mut().zip(&*turned).for_each(|(o, x)| *o = x.scaled(weight.sqrt()));
        }
        Inside::Square(_) if !is_left => out.copy_from_slice(&turned[..out.len()]),
        Inside::Square(s) | Inside::Root(s) => {
            T::gemm((s.rows(), s.cols(), n), (&T::of(s.data()), s.cols(), 1), (&turned, n, 1), (out, n));
        }
    }
}

/// out += leftᵀ right on the lower triangle, for rows of n numbers.
fn add_rows<T: Real, S: Sum<T>>(left: &[T], right: &[T], out: &mut Square<S>) {
    let n = out.n();
    let depth = right.len() / n.max(1);
    out.data_mut().par_chunks_mut(ROWS * n.max(1)).enumerate().for_each(|(b, rows)| {
        let (first, count) = (b * ROWS, rows.len() / n);
        if depth > 0 {
            S::add_product((count, depth, first + count), (&left[first..], 1, n), (right, n, 1), (rows, n));
        }
    });
}

/// out += rowsᵀ rows on the lower triangle.
pub fn add_single(rows: &[f32], out: &mut Gram) {
    add_rows(rows, rows, out);
}

/// Mean diagonals for which no entry that counts over- or underflows.
const SINGLE: std::ops::Range<f64> = 1e-20..1e20;

/// Share of the trace of the terms of low rank that near entries do without.
const LEFT_OUT: f64 = 5e-4;

/// A combined kernel in single precision, a little left out, for solvers that correct their course with exact products.
#[derive(Debug, Clone)]
pub struct Near {
    rows: Square<f32>,
    /// The terms that are matrices, and those that are factors.
    rest: Option<Packed<f64>>,
    factors: LowRank,
    room: Arc<Room>,
}

/// Where the numbers of the last combined kernel were, for the next one: fresh pages cost about as much as what is written to them.
#[derive(Debug, Default)]
pub struct Room(Mutex<(Option<Square<f32>>, Option<Packed<f64>>)>);

impl Room {
    fn take(&self, n: usize, whole: bool) -> (Option<Square<f32>>, Option<Packed<f64>>) {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let packed = if whole { held.1.take() } else { None };
        (held.0.take().filter(|k| k.n() == n), packed.filter(|k| k.n() == n))
    }
}

impl Drop for Near {
    fn drop(&mut self) {
        let mut held = self.room.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.0 = Some(std::mem::take(&mut self.rows));
        if let Some(rest) = self.rest.take() {
            held.1 = Some(rest);
        }
    }
}

impl Near {
    /// Of some factors and other terms, of which `rest` adds up entries (i, 0..=i); `None` where single precision ends.
    pub fn new(
        active: &[(f64, &Factor)],
        rest: Option<&(dyn Fn(usize, &mut [f64]) + Sync)>,
        n: usize,
        room: &Arc<Room>,
    ) -> Option<Self> {
        let (rows, packed) = room.take(n, rest.is_some());
        let mut rows = rows.unwrap_or_else(|| Square::zeros(n));
        let rest = rest.map(|fill| {
            let mut rest = packed.unwrap_or_else(|| Packed::zeros(n));
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
        let factors = LowRank::new(active);
        if !active.is_empty() {
            let thin = factors.thinner(LEFT_OUT);
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
        let Some(rest) = &self.rest else { return self.factors.times(v) };
        let mut out = rest.times(v);
        if !self.factors.parts.is_empty() {
            axpy(1.0, &self.factors.times(v), &mut out);
        }
        out
    }
}
