//! K_t a for every term at once, in the coordinates of the bases.

use rayon::prelude::*;

use super::{super::GramSource, Basis, Factor, sum::by_basis};
use crate::{
    linalg::{Matrix, axpy, dot, gemm_nt, gemm_single},
    tuning::tuning,
};

tuning! { "images"
    /// Rows of the matrix of all images that one task computes.
    rows_per_task: usize = 256;
    /// Least number of terms whose coordinates one task computes.
    terms_per_task: usize = 16;
}

/// The images K_t a of one vector a under every term t.
pub struct Images<'a> {
    n: usize,
    groups: Vec<ImageGroup<'a>>,
    /// The images of terms that are matrices, or whose columns lie one after another.
    dense: Vec<(usize, Vec<f64>)>,
    /// aᵀ K_t a, term by term.
    forms: Vec<f64>,
}

/// The factor of a term whose image is known best by its coordinates in a basis.
fn shared(grams: &dyn GramSource, t: usize) -> Option<&Factor> {
    grams.factor(t).filter(|f| !f.basis().is_column_major())
}

/// The terms of one basis.
struct ImageGroup<'a> {
    basis: &'a Basis,
    terms: Vec<usize>,
    /// A row per term: K_t a = B · row.
    coords: Matrix,
}

impl<'a> Images<'a> {
    /// The images of a vector over all samples.
    pub fn new(grams: &'a dyn GramSource, a: &[f64]) -> Self {
        let (n, count) = (a.len(), grams.n_terms());
        let numbered: Vec<(f64, &Factor)> =
            (0..count).filter_map(|t| shared(grams, t).map(|factor| (t as f64, factor))).collect();
        let mut forms = vec![0.0; count];
        let found: Vec<(ImageGroup<'_>, Vec<f64>)> =
            by_basis(&numbered).into_par_iter().map(|group| ImageGroup::new(&group, a)).collect();
        let mut groups = Vec::new();
        for (group, own) in found {
            group.terms.iter().zip(own).for_each(|(&t, form)| forms[t] = form);
            groups.push(group);
        }
        let dense: Vec<(usize, Vec<f64>)> = (0..count)
            .into_par_iter()
            .filter(|&t| shared(grams, t).is_none())
            .map(|t| {
                let mut own = vec![0.0; n];
                grams.apply(t, a, &mut own);
                (t, own)
            })
            .collect();
        dense.iter().for_each(|(t, own)| forms[*t] = dot(a, own).max(0.0));
        Self { n, groups, dense, forms }
    }

    /// aᵀ K_t a for every term.
    pub fn forms(&self) -> &[f64] {
        &self.forms
    }

    /// The combination Σ_t x_t K_t a.
    pub fn times(&self, x: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; self.n];
        let parts: Vec<Vec<f64>> = self.groups.par_iter().map(|group| group.times(x)).collect();
        parts.iter().for_each(|part| axpy(1.0, part, &mut out));
        self.dense.iter().for_each(|(t, own)| axpy(x[*t], own, &mut out));
        out
    }

    /// All images as a matrix with a row per sample and a column per term.
    pub fn matrix(&self) -> Matrix {
        let (n, count) = (self.n, self.forms.len());
        let mut out = Matrix::zeros(n, count);
        out.data_mut().par_chunks_mut(TUNING.rows_per_task * count.max(1)).enumerate().for_each(
            |(b, rows)| {
                let first = b * TUNING.rows_per_task;
                self.groups.iter().for_each(|group| group.put(first, count, rows));
                for (i, row) in rows.chunks_exact_mut(count).enumerate() {
                    self.dense.iter().for_each(|(t, own)| row[*t] = own[first + i]);
                }
            },
        );
        out
    }

    /// All images in single precision, a row per term.
    pub fn single(&self) -> Vec<f32> {
        let mut out = vec![0.0; self.n * self.forms.len()];
        let made: Vec<Vec<f32>> = self.groups.par_iter().map(ImageGroup::single).collect();
        for (group, made) in self.groups.iter().zip(&made) {
            let rows = group.terms.iter().zip(made.chunks_exact(self.n));
            rows.for_each(|(t, own)| out[t * self.n..(t + 1) * self.n].copy_from_slice(own));
        }
        for (t, own) in &self.dense {
            let row = out[t * self.n..(t + 1) * self.n].iter_mut().zip(own);
            row.for_each(|(o, x)| *o = *x as f32);
        }
        out
    }
}

impl<'a> ImageGroup<'a> {
    /// The images of the terms of one basis, with their forms aᵀ K_t a.
    fn new(group: &[(f64, &'a Factor)], a: &[f64]) -> (Self, Vec<f64>) {
        let basis: &Basis = group[0].1.basis();
        let projected = basis.transposed_times(a);
        let mut coords = Matrix::zeros(group.len(), basis.cols());
        let rows = coords
            .data_mut()
            .par_chunks_mut(basis.cols().max(1))
            .with_min_len(TUNING.terms_per_task);
        let forms = rows.zip(group).map(|(own, (_, f))| match f.coords() {
            None => {
                own.copy_from_slice(&projected);
                dot(&projected, &projected)
            }
            Some(c) => {
                let w = c.times(&projected);
                c.add_transposed(&w, own);
                dot(&w, &w)
            }
        });
        let forms = forms.collect();
        (Self { basis, terms: group.iter().map(|(t, _)| *t as usize).collect(), coords }, forms)
    }

    fn times(&self, x: &[f64]) -> Vec<f64> {
        let own: Vec<f64> = self.terms.iter().map(|&t| x[t]).collect();
        self.basis.times(&self.coords.transposed_times(&own))
    }

    /// Writes the columns of its terms in some rows of the matrix, from row `first` on.
    fn put(&self, first: usize, count: usize, rows: &mut [f64]) {
        let (depth, width, height) = (self.basis.cols(), self.terms.len(), rows.len() / count);
        let mut block = vec![0.0; height * width];
        let basis = self.basis.rows();
        gemm_nt(
            height,
            width,
            depth,
            &basis.data()[first * depth..],
            self.coords.data(),
            &mut block,
            width,
        );
        for (row, own) in rows.chunks_exact_mut(count).zip(block.chunks_exact(width)) {
            self.terms.iter().zip(own).for_each(|(&t, x)| row[t] = *x);
        }
    }

    fn single(&self) -> Vec<f32> {
        let (depth, n) = (self.basis.cols(), self.basis.n());
        let coords: Vec<f32> = self.coords.data().iter().map(|&x| x as f32).collect();
        let mut out = vec![0.0; n * self.terms.len()];
        gemm_single(
            (self.terms.len(), depth, n),
            (&coords, depth, 1),
            (self.basis.column_major_single(), n, 1),
            (&mut out, n),
        );
        out
    }
}
