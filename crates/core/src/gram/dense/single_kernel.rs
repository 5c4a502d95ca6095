//! A combined kernel with entries in single precision and exact products, for solvers that correct
//! their course.

use std::borrow::Cow;

use rayon::prelude::*;

use super::{
    super::{AddRow, Factor, Forms, LowRankSum},
    Gram, Scratch, Square,
    packed::Packed,
    sums::add_all,
};
use crate::{linalg::axpy, tuning::tuning};

tuning! { "single_kernel"
    /// Share of the trace of the low-rank terms that entries in single precision do without. It
    /// goes to the diagonal instead, and products are exact, so that it costs the solver
    /// corrections and not its answer.
    truncated_trace_share: f64 = 1e-3;
}

/// Mean diagonals for which no entry that counts over- or underflows in single precision: its range
/// is about 1e-38 to 1e38, and entries beside a large diagonal, or products of two of them, need
/// half of that range in digits.
const SINGLE_RANGE: std::ops::Range<f64> = 1e-20..1e20;

/// A combined kernel in single precision, a little left out of its entries but not of its products.
#[derive(Debug, Clone)]
pub struct SingleKernel {
    rows: Square<f32>,
    /// The sum of the terms that are matrices, if there is any.
    matrices: Option<Packed<f64>>,
    /// The sum of the terms that are factors.
    factors: LowRankSum,
    /// Where the memory goes afterwards.
    scratch: Scratch,
}

impl Drop for SingleKernel {
    fn drop(&mut self) {
        self.scratch.leave_rows(std::mem::take(&mut self.rows));
        if let Some(matrices) = self.matrices.take() {
            self.scratch.leave_triangle(matrices);
        }
    }
}

impl SingleKernel {
    /// From weighted factors and the sum of all other terms; `None` where single precision cannot
    /// hold the entries.
    pub(crate) fn new(
        active: &[(f64, &Factor)],
        matrices: Option<AddRow<'_>>,
        n: usize,
        scratch: &Scratch,
    ) -> Option<Self> {
        let mut rows = scratch.take_rows(n);
        let matrices = matrices.map(|add| {
            let mut sum = scratch.take_triangle(n);
            sum.rows_mut()
                .into_par_iter()
                .zip(rows.data_mut().par_chunks_mut(n))
                .enumerate()
                .for_each(|(i, (own, row))| {
                    own.fill(0.0);
                    add(i, own);
                    row.iter_mut().zip(&*own).for_each(|(out, x)| *out = *x as f32);
                });
            sum
        });
        if matrices.is_none() {
            rows.data_mut().fill(0.0);
        }
        let factors = LowRankSum::new(active);
        if !active.is_empty() {
            let truncated = factors.truncated(TUNING.truncated_trace_share);
            add_all::<f32, f32>(&truncated.pieces(), &mut rows);
            // What is left out goes to the diagonal: no direction shall seem flat that is not.
            let ridge = (factors.trace() - truncated.trace()).max(0.0) / n as f64;
            (0..n).for_each(|i| rows.data_mut()[i * n + i] += ridge as f32);
        }
        let size = (0..n).map(|i| f64::from(rows.row(i)[i])).sum::<f64>() / n as f64;
        rows.mirror();
        let kernel = Self { rows, matrices, factors, scratch: scratch.clone() };
        SINGLE_RANGE.contains(&size).then_some(kernel)
    }

    /// Every entry, in single precision.
    pub fn rows(&self) -> &Square<f32> {
        &self.rows
    }

    /// Every entry, in double precision and with nothing left out.
    pub fn exact(&self) -> Gram {
        let mut out = Gram::zeros(self.rows.n());
        if let Some(matrices) = &self.matrices {
            let rows = out.data_mut().chunks_exact_mut(matrices.n()).enumerate();
            rows.for_each(|(i, row)| row[..=i].copy_from_slice(matrices.row(i)));
        }
        add_all::<f64, f64>(&self.factors.pieces(), &mut out);
        out.mirror();
        out
    }

    /// Entries (i, 0..=i): exact where no term is a factor, else in single precision.
    pub fn lower_row(&self, i: usize) -> Cow<'_, [f64]> {
        match &self.matrices {
            Some(matrices) if self.factors.is_empty() => Cow::Borrowed(matrices.row(i)),
            _ => Cow::Owned(self.rows.row(i)[..=i].iter().map(|x| f64::from(*x)).collect()),
        }
    }

    /// K v in double precision.
    pub fn times(&self, v: &[f64]) -> Vec<f64> {
        self.times_with_forms(v).0
    }

    /// K v in double precision, and the forms vᵀ K_t v that it takes no more work to find.
    pub fn times_with_forms(&self, v: &[f64]) -> (Vec<f64>, Forms) {
        let (mut out, forms) = self.factors.times_with_forms(v);
        if let Some(matrices) = &self.matrices {
            axpy(1.0, &matrices.times(v), &mut out);
        }
        (out, forms)
    }
}
