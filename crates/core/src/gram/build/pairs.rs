//! The number per pair of rows that all kernels of a scope start from, as one table.
//!
//! Over many columns products come from matrix products, and squared distances from ‖x − z‖² =
//! ‖x‖² + ‖z‖² − 2 ⟨x, z⟩ with columns centred. Where that loses digits, rows being close for their
//! length, the distance is taken from the rows themselves.

use rayon::prelude::*;

use super::super::Gram;
use crate::{
    kernels::{Numeric, Pair},
    linalg::{Matrix, dot, gemm_nt},
    tuning::tuning,
};

tuning! { "pairs"
    /// Number of columns from which on a matrix product is faster than pair by pair.
    columns_for_product: usize = 8;
    /// Rows of the table that one task fills.
    rows_per_task: usize = 64;
}

/// A distance below this share of both lengths has lost more than three digits.
/// A matter of accuracy, not of speed.
const CLOSE: f64 = 1e-3;

/// The table of pair numbers, both triangles.
pub(super) fn pair_table(pair: Pair, x: &Numeric) -> Gram {
    let mut table = Gram::zeros(x.rows());
    match (pair, x.dense()) {
        (Pair::Product, Some(rows)) if rows.cols() >= TUNING.columns_for_product => {
            products(rows, 1.0, &mut table);
        }
        (Pair::SquaredDistance, Some(rows)) if rows.cols() >= TUNING.columns_for_product => {
            squared_distances(rows, &mut table);
        }
        _ => table.data_mut().par_chunks_mut(x.rows()).enumerate().for_each(|(i, row)| {
            row[..=i].iter_mut().enumerate().for_each(|(j, o)| *o = x.pair(pair, i, x, j));
        }),
    }
    table.mirror();
    table
}

/// Adds the lower triangle of scale · X Xᵀ.
fn products(x: &Matrix, scale: f64, table: &mut Gram) {
    let (n, depth) = (x.rows(), x.cols());
    table.data_mut().par_chunks_mut(TUNING.rows_per_task * n).enumerate().for_each(
        |(block, out)| {
            let (first, count) = (block * TUNING.rows_per_task, out.len() / n);
            let own: Vec<f64> =
                x.data()[first * depth..][..count * depth].iter().map(|v| scale * v).collect();
            gemm_nt(count, first + count, depth, &own, x.data(), out, n);
        },
    );
}

fn squared_distances(x: &Matrix, table: &mut Gram) {
    let n = x.rows();
    let centred = centred(x);
    let squares: Vec<f64> = (0..n).map(|i| dot(centred.row(i), centred.row(i))).collect();
    products(&centred, -2.0, table);
    table.data_mut().par_chunks_mut(n).enumerate().for_each(|(i, row)| {
        let own = squares[i];
        row[..i].iter_mut().zip(&squares).for_each(|(d, other)| *d += own + other);
        for j in 0..i {
            if row[j] < CLOSE * (own + squares[j]) {
                row[j] = Pair::SquaredDistance.of(x.row(i), x.row(j));
            }
        }
        row[i] = 0.0;
    });
}

/// Every column less its mean.
fn centred(x: &Matrix) -> Matrix {
    let mut means = x.transposed_times(&vec![1.0; x.rows()]);
    means.iter_mut().for_each(|m| *m /= x.rows() as f64);
    let mut out = x.clone();
    for row in out.data_mut().chunks_exact_mut(x.cols()) {
        row.iter_mut().zip(&means).for_each(|(v, m)| *v -= m);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{data::Rng, linalg::threads};

    /// Rows of which some are equal, some nearly so, far from the origin.
    fn rows(n: usize, cols: usize) -> Numeric {
        let mut rng = Rng::new(7);
        let mut x = Matrix::zeros(n, cols);
        for i in 0..n {
            for j in 0..cols {
                x[(i, j)] = if i % 5 == 1 { x[(i - 1, j)] } else { 1e3 + rng.normal() };
            }
            if i % 10 == 1 {
                x[(i, 0)] += 1e-7;
            }
        }
        Numeric::of(&x.into(), &(0..cols).collect::<Vec<_>>())
    }

    #[test]
    fn tables_match_pairs_to_twelve_digits_on_any_number_of_threads() {
        for (n, cols) in [(1, 9), (70, 8), (150, 33)] {
            let x = rows(n, cols);
            for pair in [Pair::SquaredDistance, Pair::Product] {
                let table = threads::install(Some(1), || pair_table(pair, &x));
                assert_eq!(table, threads::install(Some(3), || pair_table(pair, &x)));
                for i in 0..n {
                    for j in 0..n {
                        let truth = x.pair(pair, i, &x, j);
                        assert!(
                            (table.row(i)[j] - truth).abs() <= 1e-12 * truth,
                            "{pair:?} ({i}, {j})"
                        );
                    }
                }
            }
        }
    }
}
