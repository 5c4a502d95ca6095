//! Vector primitives with a fixed order of summation: eight lanes, then the lanes in order.

const LANES: usize = 8;

fn lanes_sum(acc: [f64; LANES]) -> f64 {
    ((acc[0] + acc[4]) + (acc[1] + acc[5])) + ((acc[2] + acc[6]) + (acc[3] + acc[7]))
}

/// Σ term(a_i, b_i), eight partial sums wide.
#[inline]
fn lanes(a: &[f64], b: &[f64], term: impl Fn(f64, f64) -> f64) -> f64 {
    let n = a.len().min(b.len());
    let mut acc = [0.0; LANES];
    let (a_head, a_tail) = a[..n].as_chunks::<LANES>();
    let (b_head, b_tail) = b[..n].as_chunks::<LANES>();
    for (x, z) in a_head.iter().zip(b_head) {
        for k in 0..LANES {
            acc[k] += term(x[k], z[k]);
        }
    }
    lanes_sum(acc) + a_tail.iter().zip(b_tail).map(|(&x, &z)| term(x, z)).sum::<f64>()
}

/// ⟨a, b⟩ over the shorter length.
#[inline]
pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    lanes(a, b, |x, z| x * z)
}

/// ‖a − b‖².
#[inline]
pub fn sq_distance(a: &[f64], b: &[f64]) -> f64 {
    lanes(a, b, |x, z| (x - z) * (x - z))
}

/// ‖a − b‖₁.
#[inline]
pub fn l1_distance(a: &[f64], b: &[f64]) -> f64 {
    lanes(a, b, |x, z| (x - z).abs())
}

/// y ← y + w x.
#[inline]
pub fn axpy(w: f64, x: &[f64], y: &mut [f64]) {
    for (y, &x) in y.iter_mut().zip(x) {
        *y += w * x;
    }
}

/// c ← c + a bᵀ for row-major a (m × k), b (n × k), c (m × n with row stride `c_stride`).
///
/// # Panics
/// If a slice is too short for its shape.
pub fn gemm_nt(m: usize, n: usize, k: usize, a: &[f64], b: &[f64], c: &mut [f64], c_stride: usize) {
    if m == 0 || n == 0 || k == 0 {
        return;
    }
    assert!(a.len() >= m * k && b.len() >= n * k && c_stride >= n && c.len() >= (m - 1) * c_stride + n);
    let (k_, s_) = (k.cast_signed(), c_stride.cast_signed());
    // SAFETY: the assertion above bounds every access: rows of a, b and c lie inside their slices.
    unsafe { matrixmultiply::dgemm(m, k, n, 1.0, a.as_ptr(), k_, 1, b.as_ptr(), 1, k_, 1.0, c.as_mut_ptr(), s_, 1) }
}

/// c ← c + a b for (m, k, n) and a, b with (row stride, column stride), c row-major with a row stride.
pub(super) fn gemm(
    (m, k, n): (usize, usize, usize),
    (a, a_row, a_col): (&[f64], usize, usize),
    (b, b_row, b_col): (&[f64], usize, usize),
    (c, c_row): (&mut [f64], usize),
) {
    if m == 0 || n == 0 || k == 0 {
        return;
    }
    let last = |rows: usize, cols: usize, row: usize, col: usize| (rows - 1) * row + (cols - 1) * col;
    assert!(a.len() > last(m, k, a_row, a_col) && b.len() > last(k, n, b_row, b_col) && c.len() > last(m, n, c_row, 1));
    assert!(c_row >= n, "rows of the result must not overlap");
    let [ar, ac, br, bc, cr] = [a_row, a_col, b_row, b_col, c_row].map(usize::cast_signed);
    // SAFETY: the assertions above bound every access.
    unsafe { matrixmultiply::dgemm(m, k, n, 1.0, a.as_ptr(), ar, ac, b.as_ptr(), br, bc, 1.0, c.as_mut_ptr(), cr, 1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn primitives_match_the_obvious_loops() {
        let a: Vec<f64> = (0..37).map(|i| f64::from(i).sin()).collect();
        let b: Vec<f64> = (0..37).map(|i| f64::from(i * i % 11)).collect();
        let naive = |f: fn(f64, f64) -> f64| a.iter().zip(&b).map(|(&x, &z)| f(x, z)).sum::<f64>();
        assert!((dot(&a, &b) - naive(|x, z| x * z)).abs() < 1e-12);
        assert!((sq_distance(&a, &b) - naive(|x, z| (x - z).powi(2))).abs() < 1e-11);
        assert!((l1_distance(&a, &b) - naive(|x, z| (x - z).abs())).abs() < 1e-11);
    }

    #[test]
    fn gemm_adds_a_b_transposed() {
        let (a, b) = ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [1.0, 0.0, -1.0, 2.0, 2.0, 2.0]);
        let mut c = vec![10.0; 2 * 3];
        gemm_nt(2, 2, 3, &a, &b, &mut c, 3);
        assert_eq!(c, [8.0, 22.0, 10.0, 8.0, 40.0, 10.0]);
    }
}
