//! Kernel–target alignments: how well a kernel's own similarity agrees with that of the targets.

use crate::{
    gram::GramSource,
    linalg::{axpy, dot},
};

/// A centred kernel whose squared norm is below this share of the kernel's own is constant: the
/// rest is rounding.
const ROUNDED_SQUARE: f64 = 1e-24;
/// Alignments that add up to less than this share of the targets' squares vanish: the rest is
/// rounding.
const ROUNDED_ALIGNMENT: f64 = 1e-12;

/// Centred alignments yᵀHKHy / (‖HKH‖_F n) of all terms, brought to sum 1: the weights of
/// multi-kernel k-means in ℓp-GLMKL. HKH is positive semidefinite, so none is negative; equal
/// weights where all vanish (a constant y). Uncentred targets give the same numbers.
pub fn centred_alignments(grams: &dyn GramSource, y: &[f64]) -> Vec<f64> {
    let (n, terms) = (grams.n_samples(), grams.n_terms());
    let mean = y.iter().sum::<f64>() / n as f64;
    let centred: Vec<f64> = y.iter().map(|v| v - mean).collect();
    let mut row = vec![0.0; n];
    let mut out = Vec::with_capacity(terms);
    for t in 0..terms {
        // ‖HKH‖² = ‖K‖² − 2n ‖r‖² + n² g², r the row means and g their mean.
        let (mut square, mut aligned, mut means) = (0.0, 0.0, Vec::with_capacity(n));
        for i in 0..n {
            grams.row(t, i, &mut row);
            square += dot(&row, &row);
            aligned += centred[i] * dot(&row, &centred);
            means.push(row.iter().sum::<f64>() / n as f64);
        }
        let grand = means.iter().sum::<f64>() / n as f64;
        let rest: f64 = means.iter().map(|r| (r - grand).powi(2)).sum();
        let norm = (square - n as f64 * (2.0 * rest + n as f64 * grand * grand)).max(0.0);
        let vanishes = norm <= ROUNDED_SQUARE * square;
        out.push(if vanishes { 0.0 } else { (aligned / norm.sqrt()).max(0.0) });
    }
    let total: f64 = out.iter().sum();
    let size = centred.iter().map(|v| v * v).sum::<f64>();
    if total.is_nan() || total <= ROUNDED_ALIGNMENT * size || total == 0.0 {
        return vec![1.0 / terms as f64; terms];
    }
    out.iter_mut().for_each(|f| *f /= total);
    out
}

/// Alignment y_gᵀK_g y_g / (‖K_g‖_F ‖y_g‖²) of term `t` on the rows `rows`, without centring; 0
/// where the block or the targets vanish.
pub fn block_alignment(grams: &dyn GramSource, t: usize, rows: &[usize], y: &[f64]) -> f64 {
    let n = grams.n_samples();
    let (mut full, mut row) = (vec![0.0; n], vec![0.0; rows.len()]);
    let own: Vec<f64> = rows.iter().map(|&i| y[i]).collect();
    let (mut square, mut product) = (0.0, vec![0.0; rows.len()]);
    for (k, &i) in rows.iter().enumerate() {
        grams.row(t, i, &mut full);
        row.iter_mut().zip(rows).for_each(|(r, &j)| *r = full[j]);
        square += dot(&row, &row);
        axpy(own[k], &row, &mut product);
    }
    let size = square.sqrt() * dot(&own, &own);
    if size > 0.0 { dot(&own, &product) / size } else { 0.0 }
}
