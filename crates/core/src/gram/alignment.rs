//! How kernels lie to each other and to a target: Frobenius products of centred kernel matrices.
//!
//! With H = I − 11ᵀ/n the centred matrix is K^c = H K H, and the centred alignment of two kernels
//! is ⟨K^c, L^c⟩ / (‖K^c‖ ‖L^c‖), between 0 and 1 for positive semidefinite ones. For a target y,
//! ⟨K^c, y yᵀ⟩ = (Hy)ᵀ K (Hy).

use rayon::prelude::*;

use super::GramSource;
use crate::linalg::{Matrix, dot, gemm_nt};

/// Parts of the rows that are summed apart: fixed, so that sums do not depend on the number of
/// threads.
const RUNS: usize = 8;

/// ⟨K_s^c, K_t^c⟩ for all pairs of terms over `rows` (`None`: all), M × M.
pub fn centred_products(grams: &dyn GramSource, rows: Option<&[usize]>) -> Matrix {
    let m = grams.n_terms();
    let runs = each_run(grams, rows, |panel, n, sum: &mut Vec<f64>| {
        sum.resize(m * m, 0.0);
        gemm_nt(m, m, n, panel, panel, sum, m);
    });
    let mut out = Matrix::zeros(m, m);
    for run in runs {
        out.data_mut().iter_mut().zip(run).for_each(|(o, v)| *o += v);
    }
    out
}

/// ‖K_t^c‖² for every term over `rows` (`None`: all).
pub fn centred_norms(grams: &dyn GramSource, rows: Option<&[usize]>) -> Vec<f64> {
    let mut out = vec![0.0; grams.n_terms()];
    let runs = each_run(grams, rows, |panel, n, sum: &mut Vec<f64>| {
        sum.resize(panel.len() / n, 0.0);
        sum.iter_mut().zip(panel.chunks_exact(n)).for_each(|(o, row)| *o += dot(row, row));
    });
    for run in runs {
        out.iter_mut().zip(run).for_each(|(o, v)| *o += v);
    }
    out
}

/// ⟨K_t^c, y yᵀ⟩ for every term; y belongs to `rows` (`None`: all).
pub fn target_products(grams: &dyn GramSource, rows: Option<&[usize]>, y: &[f64]) -> Vec<f64> {
    let mean = y.iter().sum::<f64>() / y.len() as f64;
    let mut a = vec![0.0; grams.n_samples()];
    for (k, y) in y.iter().enumerate() {
        a[rows.map_or(k, |r| r[k])] = y - mean;
    }
    grams.quad_forms(&a)
}

/// Calls `add(panel, n, sum)` for every row i of a run, where line t of the panel is row i of
/// K_t^c; a sum per run.
fn each_run(
    grams: &dyn GramSource,
    rows: Option<&[usize]>,
    add: impl Fn(&[f64], usize, &mut Vec<f64>) + Sync,
) -> Vec<Vec<f64>> {
    let all: Vec<usize> = (0..grams.n_samples()).collect();
    let rows = rows.unwrap_or(&all);
    let (n, m) = (rows.len(), grams.n_terms());
    let mut indicator = vec![0.0; grams.n_samples()];
    rows.iter().for_each(|&i| indicator[i] = 1.0 / n as f64);
    // Mean of each row, and of all.
    let means: Vec<(Vec<f64>, f64)> = (0..m)
        .into_par_iter()
        .map(|t| {
            let mut out = vec![0.0; grams.n_samples()];
            grams.apply(t, &indicator, &mut out);
            let own: Vec<f64> = rows.iter().map(|&i| out[i]).collect();
            let grand = own.iter().sum::<f64>() / n as f64;
            (own, grand)
        })
        .collect();
    (0..RUNS)
        .into_par_iter()
        .map(|run| {
            let (mut sum, mut row, mut panel) =
                (Vec::new(), vec![0.0; grams.n_samples()], vec![0.0; m * n]);
            for k in run * n / RUNS..(run + 1) * n / RUNS {
                for (t, line) in panel.chunks_exact_mut(n).enumerate() {
                    grams.row(t, rows[k], &mut row);
                    let (means, grand) = &means[t];
                    let shift = grand - means[k];
                    line.iter_mut()
                        .zip(rows)
                        .zip(means)
                        .for_each(|((o, &j), r)| *o = row[j] + shift - r);
                }
                add(&panel, n, &mut sum);
            }
            sum
        })
        .collect()
}
