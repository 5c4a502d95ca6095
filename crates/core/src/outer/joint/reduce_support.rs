//! Reduces weights to as few kernels as make the same decision values.
//!
//! In: θ ≥ 0 and a column of values for every term.
//!   Out: θ' ≥ 0 with Σ θ'_m v_m = Σ θ_m v_m, and no more of its entries positive than a
//! column has values (Carathéodory). Terms come one by one, the strongest first, into a basis of
//! columns; the weight of one that depends on those there goes over to them, until it has none or
//! one of them has none and gives it its place.

use crate::linalg::{Matrix, axpy, dot};

/// A column that differs by less than this from what the others span, in units of its largest
/// value, depends on them. It guards a division, and decides nothing else: dependent columns differ
/// by rounding alone, some 10⁻¹³.
const DEPENDENT: f64 = 1e-6;

/// Moves weight between terms until those that have some have independent columns.
pub(super) fn reduce_support(theta: &mut [f64], column: &dyn Fn(usize) -> Vec<f64>) {
    let mut order: Vec<usize> = (0..theta.len()).filter(|&m| theta[m] > 0.0).collect();
    order.sort_by(|&i, &j| theta[j].total_cmp(&theta[i]).then(i.cmp(&j)));
    let rows = order.first().map_or(0, |&m| column(m).len());
    // The inverse of the basis, whose columns are unit vectors where no term has come yet.
    let mut inverse = Matrix::zeros(rows, rows);
    (0..rows).for_each(|i| inverse[(i, i)] = 1.0);
    let mut held: Vec<Option<usize>> = vec![None; rows];
    for j in order {
        let values = column(j);
        let size = values.iter().fold(0.0f64, |m, v| m.max(v.abs()));
        let shares: Vec<f64> = (0..rows).map(|i| dot(inverse.row(i), &values)).collect();
        let free = (0..rows).filter(|&i| held[i].is_none() && shares[i].abs() > DEPENDENT * size);
        let place = free.max_by(|&i, &k| shares[i].abs().total_cmp(&shares[k].abs()));
        let Some(i) = place.or_else(|| hand_over(theta, j, &held, &shares)) else { continue };
        held[i] = Some(j);
        let mut own = inverse.row(i).to_vec();
        own.iter_mut().for_each(|x| *x /= shares[i]);
        for (k, share) in shares.iter().enumerate().filter(|(k, _)| *k != i) {
            axpy(-share, &own, inverse.row_mut(k));
        }
        inverse.row_mut(i).copy_from_slice(&own);
    }
}

/// Moves weight from term j to those whose columns, times `shares`, add up to its own; returns the
/// place of the one whose weight is used up first, if that is not j.
fn hand_over(theta: &mut [f64], j: usize, held: &[Option<usize>], shares: &[f64]) -> Option<usize> {
    let others =
        || held.iter().zip(shares).enumerate().filter_map(|(i, (m, s))| m.map(|m| (i, m, *s)));
    let (mut moved, mut place) = (theta[j], None);
    for (i, m, share) in others().filter(|(.., share)| *share < -DEPENDENT) {
        if theta[m] < -share * moved {
            (moved, place) = (theta[m] / -share, Some(i));
        }
    }
    others().for_each(|(_, m, share)| theta[m] = (theta[m] + moved * share).max(0.0));
    theta[j] -= moved;
    if let Some(m) = place.map_or(Some(j), |i| held[i]) {
        theta[m] = 0.0;
    }
    place
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Rng;

    #[test]
    fn values_stay_and_weights_become_few() {
        let mut rng = Rng::new(3);
        for (rows, terms, copies) in [(1, 5, 1), (6, 40, 1), (20, 300, 3), (30, 20, 1)] {
            let mut columns = Matrix::zeros(terms, rows);
            for m in 0..terms {
                let twin = m / copies * copies;
                let own: Vec<f64> = if m == twin {
                    // The first value is one of a sum of weights.
                    (0..rows).map(|i| if i == 0 { 1.0 } else { rng.normal() }).collect()
                } else {
                    columns.row(twin).to_vec()
                };
                columns.row_mut(m).copy_from_slice(&own);
            }
            let before: Vec<f64> = (0..terms)
                .map(|m| if m % 7 == 3 { 0.0 } else { rng.uniform() / terms as f64 })
                .collect();
            let mut theta = before.clone();
            reduce_support(&mut theta, &|m| columns.row(m).to_vec());
            let told = format!("{rows} rows, {terms} terms, {copies} copies");
            let (ours, theirs) =
                (columns.transposed_times(&theta), columns.transposed_times(&before));
            assert!(ours.iter().zip(&theirs).all(|(a, b)| (a - b).abs() < 1e-9), "{told}");
            assert!(theta.iter().all(|&t| t >= 0.0), "{told}");
            let count = |theta: &[f64]| theta.iter().filter(|t| **t > 0.0).count();
            assert!(count(&theta) <= rows.min(count(&before)), "{told}: {}", count(&theta));
        }
    }
}
