//! A tall matrix in single precision with products in double precision, for steps that are
//! corrected later.

use rayon::prelude::*;

use super::super::dense::{Each, Inner};
use crate::{
    linalg::{Matrix, axpy, wide},
    tuning::tuning,
};

tuning! { "single_columns"
    /// Rows whose multiples one task sums. The number fixes the order of sums, whatever the number
    /// of threads.
    rows_per_sum: usize = 512;
    /// Least number of rows whose inner products one task computes.
    rows_per_task: usize = 64;
}

/// A matrix of many rows and few columns in single precision, row after row.
pub struct SingleColumns {
    cols: usize,
    data: Vec<f32>,
}

impl SingleColumns {
    /// An empty matrix with memory for this number of rows.
    pub(crate) fn with_capacity(rows: usize, cols: usize) -> Self {
        Self { cols, data: Vec::with_capacity(rows * cols) }
    }

    /// Adds the rows of a block, and rounds them in the block too.
    pub(crate) fn push(&mut self, block: &mut Matrix) {
        let before = self.data.len();
        self.data.resize(before + block.data().len(), 0.0);
        let rows = self.data[before..]
            .par_chunks_mut(self.cols)
            .zip(block.data_mut().par_chunks_mut(self.cols));
        rows.for_each(|(to, from)| {
            for (t, f) in to.iter_mut().zip(from) {
                *t = *f as f32;
                *f = f64::from(*t);
            }
        });
    }

    /// The product self · x, in double precision.
    pub fn times(&self, x: &[f64]) -> Vec<f64> {
        self.data
            .par_chunks(self.cols)
            .with_min_len(TUNING.rows_per_task)
            .map(|row| wide(Inner(row, x)))
            .collect()
    }

    /// The product selfᵀ · v. Runs of rows are summed on their own and in order, whatever the
    /// number of threads.
    pub fn transposed_times(&self, v: &[f64]) -> Vec<f64> {
        let runs = self
            .data
            .par_chunks(TUNING.rows_per_sum * self.cols)
            .zip(v.par_chunks(TUNING.rows_per_sum));
        let parts: Vec<Vec<f64>> = runs
            .map(|(rows, v)| {
                let mut out = vec![0.0; self.cols];
                rows.chunks_exact(self.cols)
                    .zip(v)
                    .for_each(|(row, v)| wide(Each(&mut out, row, |o: &mut f64, x| *o += v * x)));
                out
            })
            .collect();
        let mut out = vec![0.0; self.cols];
        parts.iter().for_each(|part| axpy(1.0, part, &mut out));
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        data::synthetic,
        gram::{BuildOptions, GramSet, GramSource, LowRankSum, Storage},
        kernels::language,
    };

    /// K_θ of kernels in shared bases.
    fn kernel(n: usize) -> LowRankSum {
        let (x, _) = synthetic::toy1(n, 4);
        let specs = language::parse("rbf(1|4), poly(2) on each").unwrap().resolve(&x).unwrap();
        let options = BuildOptions { storage: Storage::LowRank, ..BuildOptions::default() };
        let grams = GramSet::from_table(x.features(), &specs, &options).unwrap();
        let active: Vec<_> =
            (0..grams.n_terms()).map(|t| (0.5 + t as f64, grams.factor(t).unwrap())).collect();
        LowRankSum::new(&active)
    }

    #[test]
    fn columns_in_bases_are_those_of_the_factor() {
        let n = 9000; // more than one block
        let k = kernel(n).truncated(1e-9);
        let (root, rank) = (k.root(), k.rank());
        assert_eq!(root.cols(), rank);
        let wave =
            |len: usize, step: f64| (0..len).map(|i| (i as f64 * step).sin()).collect::<Vec<f64>>();
        let near = |a: &[f64], b: &[f64], relative: f64| {
            let size = b.iter().fold(0.0f64, |m, x| m.max(x.abs()));
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() <= relative * size)
        };
        let (v, x) = (wave(n, 0.37), wave(rank + 1, 0.61));
        assert!(near(&k.root_times(&x[..rank]), &root.times(&x[..rank]), 1e-12));
        assert!(near(&k.root_transposed_times(&v), &root.transposed_times(&v), 1e-12));
        let ones = Matrix::from_parts(n, 1, vec![1.0; n]);
        let whole = crate::linalg::side_by_side(&[&root, &ones]);
        let weight: Vec<f64> = v.iter().map(|v| 1.1 + v).collect();
        let expected = whole.weighted_gram(&weight);
        let (exact, none) = k.weighted_gram(&[&ones], &weight, false);
        assert!(none.is_none() && near(exact.data(), expected.data(), 1e-12));
        let (close, rounded) = k.weighted_gram(&[&ones], &weight, true);
        let rounded = rounded.unwrap();
        assert!(near(close.data(), expected.data(), 1e-6) && close.data() != exact.data());
        assert!(near(&rounded.times(&x), &whole.times(&x), 1e-6));
        assert!(near(&rounded.transposed_times(&v), &whole.transposed_times(&v), 1e-6));
    }
}
