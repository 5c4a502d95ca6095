//! The forms in which one term is stored, and what each answers.

use rayon::prelude::*;

use super::{Factor, Gram, dense::Packed, low_rank::Projected};
use crate::linalg::dot;

/// A term in the form in which it is kept.
#[derive(Debug, Clone)]
pub(crate) enum Stored {
    /// K ≈ L Lᵀ.
    Factor(Factor),
    /// A packed triangle in double precision.
    Dense(Packed<f64>),
    /// A packed triangle rounded to single precision: certificates then speak of the rounded
    /// matrix.
    DenseF32(Packed<f32>),
}

impl Stored {
    pub(super) fn factor(&self) -> Option<&Factor> {
        match self {
            Self::Factor(f) => Some(f),
            Self::Dense(_) | Self::DenseF32(_) => None,
        }
    }

    /// Bytes that the term takes, without the basis of a factor.
    pub(super) fn bytes(&self) -> u64 {
        match self {
            Self::Factor(f) => f.bytes(),
            Self::Dense(k) => Packed::<f64>::bytes(k.n()),
            Self::DenseF32(k) => Packed::<f32>::bytes(k.n()),
        }
    }

    /// out += weight · diag(scale) K diag(scale) on the lower triangle; `None` means all ones.
    pub(super) fn accumulate(&self, weight: f64, scale: Option<&[f64]>, out: &mut Gram) {
        match self {
            Self::Dense(k) => accumulate_rows(out, weight, scale, |i, w, row| k.add_row(i, w, row)),
            Self::DenseF32(k) => {
                accumulate_rows(out, weight, scale, |i, w, row| k.add_row(i, w, row));
            }
            Self::Factor(f) => {
                let rows = f.rows();
                accumulate_rows(out, weight, scale, |i, w, row| {
                    row.iter_mut()
                        .enumerate()
                        .for_each(|(j, o)| *o += w * dot(rows.row(i), rows.row(j)));
                });
            }
        }
    }

    /// out = K v.
    pub(super) fn apply(&self, v: &[f64], out: &mut [f64]) {
        match self {
            Self::Dense(k) => k.apply(v, out),
            Self::DenseF32(k) => k.apply(v, out),
            Self::Factor(f) => f.times(&f.project(v), out),
        }
    }

    /// out = row i of K.
    pub(super) fn row(&self, i: usize, out: &mut [f64]) {
        match self {
            Self::Dense(k) => k.full_row(i, out),
            Self::DenseF32(k) => k.full_row(i, out),
            Self::Factor(f) => f.times(&f.row(i), out),
        }
    }

    /// The trace of K, what truncation left out included.
    pub(super) fn trace(&self) -> f64 {
        match self {
            Self::Factor(f) => f.trace_of_square() + f.residual,
            Self::Dense(k) => k.trace(),
            Self::DenseF32(k) => k.trace(),
        }
    }

    /// aᵀ K a for several vectors a, whose projections onto all bases are known.
    pub(super) fn quad_forms(&self, vectors: &[Vec<f64>], projected: &[Projected]) -> Vec<f64> {
        match self {
            Self::Dense(k) => k.quad_forms(vectors),
            Self::DenseF32(k) => k.quad_forms(vectors),
            Self::Factor(f) => projected.iter().map(|p| p.sq_norm(f)).collect(),
        }
    }
}

/// out_i += weight · s_i · row_i · s on the lower triangle.
fn accumulate_rows(
    out: &mut Gram,
    weight: f64,
    scale: Option<&[f64]>,
    row: impl Fn(usize, f64, &mut [f64]) + Sync,
) {
    let n = out.n();
    out.data_mut().par_chunks_mut(n).enumerate().for_each(|(i, out)| match scale {
        None => row(i, weight, &mut out[..=i]),
        Some(s) => {
            let mut buffer = vec![0.0; i + 1];
            row(i, weight * s[i], &mut buffer);
            out.iter_mut().zip(&buffer).zip(s).for_each(|((o, b), s)| *o += b * s);
        }
    });
}

/// The matrices in a sum, with their weights.
pub(super) struct Matrices<'a> {
    double: Vec<(f64, &'a Packed<f64>)>,
    single: Vec<(f64, &'a Packed<f32>)>,
}

impl<'a> Matrices<'a> {
    /// The terms with weight that are matrices; `None` where there is none.
    pub(super) fn new(terms: &'a [Stored], weights: &[f64]) -> Option<Self> {
        let mut out = Self { double: Vec::new(), single: Vec::new() };
        for (term, &w) in terms.iter().zip(weights).filter(|(_, w)| **w != 0.0) {
            match term {
                Stored::Dense(k) => out.double.push((w, k)),
                Stored::DenseF32(k) => out.single.push((w, k)),
                Stored::Factor(_) => {}
            }
        }
        (!out.double.is_empty() || !out.single.is_empty()).then_some(out)
    }

    /// Adds entries (i, 0..=i) of the sum.
    pub(super) fn add_row(&self, i: usize, out: &mut [f64]) {
        Packed::add_rows(&self.double, i, out);
        Packed::add_rows(&self.single, i, out);
    }
}
