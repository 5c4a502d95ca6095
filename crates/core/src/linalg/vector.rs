//! Vector primitives with a fixed order of summation: sixteen lanes, then the lanes in order. The
//! same code is compiled for wider registers too and chosen at run time; nothing is fused, so every
//! machine gets the same bits.

#![allow(clippy::inline_always)] // inlined into each instruction-set variant: that is the point

/// Partial sums of a product. It fixes the order of every sum, and is the length of an array: not
/// to be tuned at run time.
const LANES: usize = 16;
/// Below this length a call into another variant costs more than it saves. The check stands in
/// every inner loop: a constant, for the compiler to see it.
const SHORT: usize = 32;

/// Work that pays when registers are wide. `run`, and what it calls in its loops, must be inlined
/// for that.
pub trait Wide {
    /// The result of the work.
    type Out;
    /// Does the work and returns its result.
    fn run(self) -> Self::Out;
}

/// Runs `work` in code compiled for the widest registers that this machine has.
#[inline(always)]
pub fn wide<W: Wide>(work: W) -> W::Out {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has just been seen to have it.
        return unsafe { wide_avx2(work) };
    }
    work.run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn wide_avx2<W: Wide>(work: W) -> W::Out {
    work.run()
}

struct ProductSum<'a, T>(&'a [f64], &'a [f64], T);

impl<T: Fn(f64, f64) -> f64> Wide for ProductSum<'_, T> {
    type Out = f64;

    #[inline(always)]
    fn run(self) -> f64 {
        lanes(self.0, self.1, self.2)
    }
}

struct Sums<'a, T>(&'a [f64], &'a [f64], &'a mut [f64], T);

impl<T: Fn(f64, f64) -> f64> Wide for Sums<'_, T> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let Self(a, rows, out, term) = self;
        for (o, b) in out.iter_mut().zip(rows.chunks_exact(a.len())) {
            *o = lanes(a, b, &term);
        }
    }
}

struct Add<'a>(f64, &'a [f64], &'a mut [f64]);

impl Wide for Add<'_> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        for (y, &x) in self.2.iter_mut().zip(self.1) {
            *y += self.0 * x;
        }
    }
}

struct AddFour<'a>([f64; 4], [&'a [f64]; 4], &'a mut [f64]);

impl Wide for AddFour<'_> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let Self(w, [a, b, c, d], y) = self;
        let n = y.len();
        let (a, b, c, d) = (&a[..n], &b[..n], &c[..n], &d[..n]);
        for i in 0..n {
            y[i] = (((y[i] + w[0] * a[i]) + w[1] * b[i]) + w[2] * c[i]) + w[3] * d[i];
        }
    }
}

#[inline(always)]
fn lanes_sum(mut acc: [f64; LANES]) -> f64 {
    let mut width = LANES / 2;
    while width > 0 {
        for k in 0..width {
            acc[k] += acc[k + width];
        }
        width /= 2;
    }
    acc[0]
}

/// Σ term(a_i, b_i), sixteen partial sums wide.
#[inline(always)]
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

#[inline(always)]
fn sum(a: &[f64], b: &[f64], term: impl Fn(f64, f64) -> f64) -> f64 {
    if a.len() < SHORT { lanes(a, b, term) } else { wide(ProductSum(a, b, term)) }
}

/// The inner product of a and b over the shorter length.
#[inline]
pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    sum(a, b, |x, z| x * z)
}

/// The squared Euclidean distance of a and b.
#[inline]
pub fn sq_distance(a: &[f64], b: &[f64]) -> f64 {
    sum(a, b, |x, z| (x - z) * (x - z))
}

/// The ℓ1 distance of a and b.
#[inline]
pub fn l1_distance(a: &[f64], b: &[f64]) -> f64 {
    sum(a, b, |x, z| (x - z).abs())
}

/// `out[i]` = ⟨a, row i⟩, the same bits as from [`dot`], for rows of the length of `a`, which is
/// not 0.
pub fn dots(a: &[f64], rows: &[f64], out: &mut [f64]) {
    wide(Sums(a, rows, out, |x, z| x * z));
}

/// `out[i]` = ‖a − row i‖², the same bits as from [`sq_distance`], for rows of the length of `a`.
pub fn sq_distances(a: &[f64], rows: &[f64], out: &mut [f64]) {
    wide(Sums(a, rows, out, |x, z| (x - z) * (x - z)));
}

/// `out[i]` = ‖a − row i‖₁, the same bits as from [`l1_distance`], for rows of the length of `a`.
pub fn l1_distances(a: &[f64], rows: &[f64], out: &mut [f64]) {
    wide(Sums(a, rows, out, |x: f64, z: f64| (x - z).abs()));
}

/// Adds w x to the vector y.
#[inline]
pub fn axpy(w: f64, x: &[f64], y: &mut [f64]) {
    let work = Add(w, x, y);
    if work.2.len() < SHORT { work.run() } else { wide(work) }
}

/// Adds to y the sum w_1 x_1 + … + w_4 x_4, the same bits as from [`axpy`] with one after the
/// other, for x as long as y.
#[inline]
pub fn axpy_four(w: [f64; 4], x: [&[f64]; 4], y: &mut [f64]) {
    wide(AddFour(w, x, y));
}

/// c ← c + a bᵀ for row-major a (m × k), b (n × k), c (m × n with row stride `c_stride`).
///
/// # Panics
/// If a slice is too short for its shape.
pub fn gemm_nt(m: usize, n: usize, k: usize, a: &[f64], b: &[f64], c: &mut [f64], c_stride: usize) {
    if m == 0 || n == 0 || k == 0 {
        return;
    }
    assert!(
        a.len() >= m * k && b.len() >= n * k && c_stride >= n && c.len() >= (m - 1) * c_stride + n
    );
    let (k_, s_) = (k.cast_signed(), c_stride.cast_signed());
    // SAFETY: the assertion above bounds every access: rows of a, b and c lie inside their slices.
    unsafe {
        matrixmultiply::dgemm(
            m,
            k,
            n,
            1.0,
            a.as_ptr(),
            k_,
            1,
            b.as_ptr(),
            1,
            k_,
            1.0,
            c.as_mut_ptr(),
            s_,
            1,
        );
    }
}

/// A matrix with its row and its column stride.
pub type Strided<'a, T> = (&'a [T], usize, usize);

/// Does every access of a product lie inside its slices?
fn fits<T>(
    (m, k, n): (usize, usize, usize),
    a: Strided<'_, T>,
    b: Strided<'_, T>,
    c: (&[T], usize),
) -> bool {
    let last =
        |rows: usize, cols: usize, row: usize, col: usize| (rows - 1) * row + (cols - 1) * col;
    let inside = a.0.len() > last(m, k, a.1, a.2)
        && b.0.len() > last(k, n, b.1, b.2)
        && c.0.len() > last(m, n, c.1, 1);
    // Rows of the result must not overlap.
    inside && c.1 >= n
}

/// c ← c + a b for (m, k, n) and a, b with (row stride, column stride), c row-major with a row
/// stride.
///
/// # Panics
/// If a slice is too short for its shape.
pub fn gemm(
    (m, k, n): (usize, usize, usize),
    a: Strided<'_, f64>,
    b: Strided<'_, f64>,
    c: (&mut [f64], usize),
) {
    if m == 0 || n == 0 || k == 0 {
        return;
    }
    assert!(fits((m, k, n), a, b, (c.0, c.1)), "slices hold their matrices");
    let [ar, ac, br, bc, cr] = [a.1, a.2, b.1, b.2, c.1].map(usize::cast_signed);
    // SAFETY: the assertion above bounds every access.
    unsafe {
        matrixmultiply::dgemm(
            m,
            k,
            n,
            1.0,
            a.0.as_ptr(),
            ar,
            ac,
            b.0.as_ptr(),
            br,
            bc,
            1.0,
            c.0.as_mut_ptr(),
            cr,
            1,
        );
    }
}

/// [`gemm`] in single precision.
///
/// # Panics
/// If a slice is too short for its shape.
pub fn gemm_single(
    (m, k, n): (usize, usize, usize),
    a: Strided<'_, f32>,
    b: Strided<'_, f32>,
    c: (&mut [f32], usize),
) {
    if m == 0 || n == 0 || k == 0 {
        return;
    }
    assert!(fits((m, k, n), a, b, (c.0, c.1)), "slices hold their matrices");
    let [ar, ac, br, bc, cr] = [a.1, a.2, b.1, b.2, c.1].map(usize::cast_signed);
    // SAFETY: the assertion above bounds every access.
    unsafe {
        matrixmultiply::sgemm(
            m,
            k,
            n,
            1.0,
            a.0.as_ptr(),
            ar,
            ac,
            b.0.as_ptr(),
            br,
            bc,
            1.0,
            c.0.as_mut_ptr(),
            cr,
            1,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn primitives_match_the_obvious_loops() {
        let a: Vec<f64> = (0..77).map(|i| f64::from(i).sin()).collect();
        let b: Vec<f64> = (0..77).map(|i| f64::from(i * i % 11)).collect();
        let naive = |f: fn(f64, f64) -> f64| a.iter().zip(&b).map(|(&x, &z)| f(x, z)).sum::<f64>();
        assert!((dot(&a, &b) - naive(|x, z| x * z)).abs() < 1e-12);
        assert!((sq_distance(&a, &b) - naive(|x, z| (x - z).powi(2))).abs() < 1e-11);
        assert!((l1_distance(&a, &b) - naive(|x, z| (x - z).abs())).abs() < 1e-11);
        let (mut four, mut one) = (b.clone(), b.clone());
        axpy_four([0.1, 0.2, 0.3, 0.4], [&a, &b, &a, &b], &mut four);
        [(0.1, &a), (0.2, &b), (0.3, &a), (0.4, &b)]
            .iter()
            .for_each(|(w, x)| axpy(*w, x, &mut one));
        assert_eq!(four, one);
        // Both variants give the same bits.
        assert_eq!(wide(ProductSum(&a, &b, |x, z| x * z)), lanes(&a, &b, |x, z| x * z));
        for d in [1, 7, 20, 38] {
            let mut out = [[0.0; 2]; 3];
            dots(&a[..d], &b[..2 * d], &mut out[0]);
            sq_distances(&a[..d], &b[..2 * d], &mut out[1]);
            l1_distances(&a[..d], &b[..2 * d], &mut out[2]);
            let rows =
                |f: fn(&[f64], &[f64]) -> f64| [f(&a[..d], &b[..d]), f(&a[..d], &b[d..2 * d])];
            assert_eq!(out, [rows(dot), rows(sq_distance), rows(l1_distance)]);
        }
    }

    #[test]
    fn gemm_adds_a_b_transposed() {
        let (a, b) = ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [1.0, 0.0, -1.0, 2.0, 2.0, 2.0]);
        let mut c = vec![10.0; 2 * 3];
        gemm_nt(2, 2, 3, &a, &b, &mut c, 3);
        assert_eq!(c, [8.0, 22.0, 10.0, 8.0, 40.0, 10.0]);
    }
}
