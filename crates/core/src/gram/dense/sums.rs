//! Combined kernels as matrices, from terms of low rank: few large products.
//!
//! Σ B W Bᵀ over all bases is Σ Uᵀ V with the rows of Bᵀ in V and those of W Bᵀ in U, or Vᵀ V with
//! the rows of S Bᵀ in V and W = SᵀS.

use std::borrow::Cow;

use rayon::prelude::*;

use super::{
    super::{
        Basis, Factor, LowRankSum,
        low_rank::{Middle, by_basis},
    },
    Gram, Square,
    cell::Cell,
};
use crate::{
    linalg::{Strided, gemm, gemm_single},
    tuning::tuning,
};

tuning! { "sums"
    /// Rows of the combined matrix that one task fills: a multiple of the rows that the matrix
    /// product treats in registers.
    rows_per_task: usize = 48;
    /// Rows of V gathered at a time, where no basis alone has more: a product this deep no longer
    /// pays for writing to the result.
    rows_of_v_at_once: usize = 1024;
}

/// The precision of a sum.
pub(crate) trait Real: Cell {
    /// Numbers in this precision.
    fn of(numbers: &[f64]) -> Cow<'_, [Self]>;
    /// The rows of Bᵀ, one after another.
    fn column_major(basis: &Basis) -> Cow<'_, [Self]>;
    /// Adds a b to c, for shape (m, k, n); c has a row stride.
    fn gemm(
        shape: (usize, usize, usize),
        a: Strided<'_, Self>,
        b: Strided<'_, Self>,
        c: (&mut [Self], usize),
    );
}

/// Entries to which products in precision T are added.
pub(crate) trait Sum<T>: Cell {
    fn add_product(
        shape: (usize, usize, usize),
        a: Strided<'_, T>,
        b: Strided<'_, T>,
        c: (&mut [Self], usize),
    );
}

impl<T: Real> Sum<T> for T {
    fn add_product(
        shape: (usize, usize, usize),
        a: Strided<'_, T>,
        b: Strided<'_, T>,
        c: (&mut [T], usize),
    ) {
        T::gemm(shape, a, b, c);
    }
}

impl Sum<f32> for f64 {
    fn add_product(
        shape: (usize, usize, usize),
        a: Strided<'_, f32>,
        b: Strided<'_, f32>,
        c: (&mut [f64], usize),
    ) {
        let (rows, _, cols) = shape;
        let mut own = vec![0.0; rows * cols];
        gemm_single(shape, a, b, (&mut own, cols));
        for (c, own) in c.0.chunks_mut(c.1).zip(own.chunks_exact(cols)) {
            c.iter_mut().zip(own).for_each(|(c, x)| *c += f64::from(*x));
        }
    }
}

impl Real for f64 {
    /// Numbers in this precision.
    fn of(numbers: &[f64]) -> Cow<'_, [Self]> {
        Cow::Borrowed(numbers)
    }

    fn column_major(basis: &Basis) -> Cow<'_, [Self]> {
        basis.column_major()
    }

    fn gemm(
        shape: (usize, usize, usize),
        a: Strided<'_, Self>,
        b: Strided<'_, Self>,
        c: (&mut [Self], usize),
    ) {
        gemm(shape, a, b, c);
    }
}

impl Real for f32 {
    /// Numbers in this precision.
    fn of(numbers: &[f64]) -> Cow<'_, [Self]> {
        Cow::Owned(numbers.iter().map(|&x| x as Self).collect())
    }

    fn column_major(basis: &Basis) -> Cow<'_, [Self]> {
        Cow::Borrowed(basis.column_major_single())
    }

    fn gemm(
        shape: (usize, usize, usize),
        a: Strided<'_, Self>,
        b: Strided<'_, Self>,
        c: (&mut [Self], usize),
    ) {
        gemm_single(shape, a, b, c);
    }
}

/// Adds Σ weight · L Lᵀ to the lower triangle of `out`.
pub fn add(active: &[(f64, &Factor)], out: &mut Gram) {
    let groups = by_basis(active);
    let parts: Vec<(&Basis, Middle)> =
        groups.iter().map(|g| (&**g[0].1.basis(), Middle::new(g))).collect();
    add_all::<f64, f64>(&parts.iter().map(|(b, middle)| (*b, middle)).collect::<Vec<_>>(), out);
}

/// Adds Σ weight · L Lᵀ in single precision, with up to a share of the trace left out: whole terms
/// of which hardly anything is there, and parts of a shared basis that hardly count.
pub fn add_truncated(active: &[(f64, &Factor)], share: f64, out: &mut Gram) {
    let traces: Vec<f64> = active.iter().map(|(w, f)| w * f.trace_of_square()).collect();
    let allowed = 0.5 * share * traces.iter().sum::<f64>();
    let least = allowed / traces.len().max(1) as f64;
    let kept: Vec<(f64, &Factor)> =
        active.iter().zip(&traces).filter(|(_, t)| **t > least).map(|(f, _)| *f).collect();
    if !kept.is_empty() {
        let sum = LowRankSum::new(&kept);
        add_all::<f32, f64>(&sum.truncated(allowed / sum.trace()).pieces(), out);
    }
}

/// Adds Σ B W Bᵀ to the lower triangle of `out`.
pub(crate) fn add_all<T: Real, S: Sum<T>>(mut parts: &[(&Basis, &Middle)], out: &mut Square<S>) {
    let mut buffers: [Vec<T>; 2] = [Vec::new(), Vec::new()];
    while !parts.is_empty() {
        let mut depth = 0;
        let fitting = parts.iter().take_while(|(_, middle)| {
            depth += middle.rank();
            depth <= TUNING.rows_of_v_at_once
        });
        let count = fitting.count().max(1);
        add_some(&parts[..count], &mut buffers, out);
        parts = &parts[count..];
    }
}

/// Adds some of the parts, with V and, where it differs, U gathered in the two buffers.
fn add_some<T: Real, S: Sum<T>>(
    parts: &[(&Basis, &Middle)],
    [right, left]: &mut [Vec<T>; 2],
    out: &mut Square<S>,
) {
    let n = out.n();
    let depth = parts.iter().map(|(_, middle)| middle.rank()).sum::<usize>();
    let fill = |buffer: &mut Vec<T>, is_left: bool| {
        buffer.clear();
        buffer.resize(n * depth, T::default());
        let (mut rest, mut tasks) = (&mut buffer[..], Vec::new());
        for &(basis, middle) in parts {
            let (own, after) = rest.split_at_mut(n * middle.rank());
            tasks.push((basis, middle, own));
            rest = after;
        }
        tasks
            .into_par_iter()
            .for_each(|(basis, middle, own)| put::<T>(basis, middle, is_left, own));
    };
    fill(right, false);
    let differ = parts.iter().any(|(_, middle)| matches!(middle, Middle::Square(_)));
    if differ {
        fill(left, true);
    }
    add_rows(if differ { left } else { right }, right, out);
}

/// Writes the rows of V, or of U, that one basis gives.
fn put<T: Real>(basis: &Basis, middle: &Middle, is_left: bool, out: &mut [T]) {
    let n = basis.n();
    match middle {
        Middle::Multiple(weight, _) => {
            if !basis.write_head(weight.sqrt(), out, T::from_f64) {
                out.iter_mut()
                    .zip(&*T::column_major(basis))
                    .for_each(|(o, x)| *o = T::from_f64(weight.sqrt() * x.to_f64()));
            }
        }
        Middle::Square(_) if !is_left => out.copy_from_slice(&T::column_major(basis)[..out.len()]),
        Middle::Square(s) | Middle::Root(s) => {
            T::gemm(
                (s.rows(), s.cols(), n),
                (&T::of(s.data()), s.cols(), 1),
                (&T::column_major(basis), n, 1),
                (out, n),
            );
        }
    }
}

/// Adds leftᵀ right to the lower triangle of `out`, for rows of n numbers.
fn add_rows<T: Real, S: Sum<T>>(left: &[T], right: &[T], out: &mut Square<S>) {
    let n = out.n();
    let depth = right.len() / n.max(1);
    out.data_mut().par_chunks_mut(TUNING.rows_per_task * n.max(1)).enumerate().for_each(
        |(b, rows)| {
            let (first, count) = (b * TUNING.rows_per_task, rows.len() / n);
            if depth > 0 {
                S::add_product(
                    (count, depth, first + count),
                    (&left[first..], 1, n),
                    (right, n, 1),
                    (rows, n),
                );
            }
        },
    );
}

/// Adds rowsᵀ rows to the lower triangle of `out`.
pub fn add_single(rows: &[f32], out: &mut Gram) {
    add_rows(rows, rows, out);
}
