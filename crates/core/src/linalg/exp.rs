//! exp over a slice: the hot loop of every Gaussian kernel.
//!
//! x = n ln 2 + r with |r| ≤ ½ ln 2, exp(x) = 2ⁿ · p(r) with the degree-13 Taylor polynomial: at
//! most one unit in the last place from the correctly rounded value over the whole range. The same
//! code is compiled for several instruction sets and chosen once at run time; they may differ in
//! the last bit, so "same answer" means the same machine level.

// The tail of the series and the two halves of ln 2 are meant to the last digit.
#![allow(clippy::excessive_precision, clippy::unreadable_literal)]

/// The first digits of ln 2, few enough for a product with a whole number to be exact, and the
/// rest.
const LN2_HI: f64 = 6.931_471_803_691_238_164_90e-01;
const LN2_LO: f64 = 1.908_214_929_270_587_700_02e-10;
/// 1.5·2⁵²: adding it rounds to the nearest integer and leaves that integer in the low bits.
const ROUND: f64 = 6_755_399_441_055_744.0;
/// 1/k! for k = 13, 12, …, 0.
const TAYLOR: [f64; 14] = [
    1.605904383682161460e-10,
    2.087675698786809898e-09,
    2.505210838544171878e-08,
    2.755731922398589065e-07,
    2.755731922398589065e-06,
    2.480158730158730159e-05,
    1.984126984126984127e-04,
    1.388888888888888889e-03,
    8.333333333333333333e-03,
    4.166666666666666667e-02,
    1.666666666666666667e-01,
    0.5,
    1.0,
    1.0,
];

#[inline(always)]
#[allow(clippy::inline_always)] // inlined into each instruction-set variant: that is the point
fn exp_one<const FMA: bool>(x: f64) -> f64 {
    let fma = |a: f64, b: f64, c: f64| if FMA { a.mul_add(b, c) } else { a * b + c };
    let clamped = x.clamp(-708.39, 709.78);
    let shifted = fma(clamped, std::f64::consts::LOG2_E, ROUND);
    let n = shifted - ROUND;
    let r = fma(-n, LN2_LO, fma(-n, LN2_HI, clamped));
    let mut p = TAYLOR[0];
    for &c in &TAYLOR[1..] {
        p = fma(p, r, c);
    }
    // 2ⁿ by adding n to the exponent bits; n stands in the low bits of `shifted`.
    let scaled = f64::from_bits(p.to_bits().wrapping_add(shifted.to_bits() << 52));
    if x < -708.39 { 0.0 } else { scaled }
}

#[inline(always)]
#[allow(clippy::inline_always)]
fn exp_all<const FMA: bool>(scale: f64, values: &mut [f64]) {
    for v in values {
        *v = exp_one::<FMA>(scale * *v);
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn exp_avx2(scale: f64, values: &mut [f64]) {
    exp_all::<true>(scale, values);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx512vl,fma")]
fn exp_avx512(scale: f64, values: &mut [f64]) {
    exp_all::<true>(scale, values);
}

/// `values[i] ← exp(scale · values[i])`; the arguments must not be NaN and not above 709.
pub fn exp_scaled(scale: f64, values: &mut [f64]) {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("fma")
        {
            // SAFETY: the processor has just been seen to have these features.
            return unsafe { exp_avx512(scale, values) };
        }
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            // SAFETY: as above.
            return unsafe { exp_avx2(scale, values) };
        }
    }
    exp_all::<{ cfg!(target_arch = "aarch64") }>(scale, values);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn within_two_ulp_of_std_everywhere() {
        let xs: Vec<f64> =
            (0..200_000).map(|i| -708.0 + 708.5 * f64::from(i) / 200_000.0).collect();
        for variant in [exp_scaled, exp_all::<false>] {
            let mut got = xs.clone();
            variant(1.0, &mut got);
            for (&x, &g) in xs.iter().zip(&got) {
                let want = x.exp();
                assert!(
                    (g - want).abs() <= 2.0 * f64::EPSILON * want,
                    "exp({x}) = {g}, std says {want}"
                );
            }
        }
    }

    #[test]
    fn underflow_is_zero_and_zero_is_one() {
        let mut v = [-800.0, -1e9, 0.0, -0.0];
        exp_scaled(1.0, &mut v);
        assert_eq!(v, [0.0, 0.0, 1.0, 1.0]);
    }
}
