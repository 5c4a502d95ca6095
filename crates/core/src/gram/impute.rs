//! Kernel values of rows that lack what the kernel reads.
//!
//! Such a row is the origin of the kernel's feature space (every value is 0) or the mean of the
//! training rows that have what it lacks. Either way K becomes S K Sᵀ with K the values among rows
//! that have it, so that it stays positive semidefinite.

use rayon::prelude::*;

use super::build::{Raw, Wanted};
use crate::{
    data::Missing,
    linalg::{Matrix, axpy},
};

/// Which rows lack a kernel's columns, and the rule for them.
#[derive(Debug, Clone)]
pub(super) struct Imputation {
    pub absent: Vec<bool>,
    pub missing: Missing,
}

impl Imputation {
    /// Coefficients of imputed rows as coefficients of the rows that stand for them.
    pub fn spread(&self, index: &[usize], coef: &[f64]) -> (Vec<usize>, Vec<f64>) {
        let mut all = vec![0.0; self.absent.len()];
        let mut shared = 0.0;
        for (&i, c) in index.iter().zip(coef) {
            if self.absent[i] { shared += c } else { all[i] += c }
        }
        if self.missing == Missing::Mean && shared != 0.0 {
            let present = self.absent.iter().filter(|a| !**a).count().max(1) as f64;
            all.iter_mut()
                .zip(&self.absent)
                .filter(|(_, a)| !**a)
                .for_each(|(c, _)| *c += shared / present);
        }
        let index: Vec<usize> = (0..all.len()).filter(|&i| all[i] != 0.0).collect();
        let coef = index.iter().map(|&i| all[i]).collect();
        (index, coef)
    }
}

/// Raw values with those of absent rows put in their place.
pub(super) struct Imputed<'a> {
    raw: &'a dyn Raw,
    own: &'a Imputation,
    /// Mean value of each row against the rows that are there, and the mean of those; zeros for the
    /// other rule.
    means: Vec<f64>,
    grand: f64,
}

impl<'a> Imputed<'a> {
    pub fn new(raw: &'a dyn Raw, own: &'a Imputation) -> Self {
        let n = own.absent.len();
        let (mut means, mut grand) = (vec![0.0; n], 0.0);
        let present: Vec<usize> = (0..n).filter(|&i| !own.absent[i]).collect();
        if own.missing == Missing::Mean && !present.is_empty() {
            let mean = |&j: &usize| {
                let mut column = vec![0.0; n];
                raw.head_of_column(j, &mut column);
                present.iter().map(|&i| column[i]).sum::<f64>() / present.len() as f64
            };
            let found: Vec<f64> = present.par_iter().map(mean).collect();
            present.iter().zip(&found).for_each(|(&i, m)| means[i] = *m);
            grand = found.iter().sum::<f64>() / present.len() as f64;
        }
        Self { raw, own, means, grand }
    }
}

impl Raw for Imputed<'_> {
    fn diagonal(&self) -> Vec<f64> {
        let own = self.raw.diagonal();
        own.into_iter()
            .zip(&self.own.absent)
            .map(|(d, a)| if *a { self.grand } else { d })
            .collect()
    }

    fn head_of_column(&self, j: usize, out: &mut [f64]) {
        let rows = 0..out.len();
        if self.own.absent[j] {
            rows.for_each(|i| out[i] = if self.own.absent[i] { self.grand } else { self.means[i] });
            return;
        }
        self.raw.head_of_column(j, out);
        rows.filter(|&i| self.own.absent[i]).for_each(|i| out[i] = self.means[j]);
    }

    fn features(&self, wanted: Wanted) -> Option<Matrix> {
        let mut rows = self.raw.features(wanted)?;
        let mut stand_in = vec![0.0; rows.cols()];
        if self.own.missing == Missing::Mean {
            let present: Vec<usize> = (0..rows.rows()).filter(|&i| !self.own.absent[i]).collect();
            present
                .iter()
                .for_each(|&i| axpy(1.0 / present.len() as f64, rows.row(i), &mut stand_in));
        }
        for i in (0..rows.rows()).filter(|&i| self.own.absent[i]) {
            rows.row_mut(i).copy_from_slice(&stand_in);
        }
        Some(rows)
    }
}
