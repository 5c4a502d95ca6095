//! Scans of long vectors for their least values, written so that the compiler makes vector
//! instructions of them.

#![allow(clippy::inline_always)] // inlined into each instruction-set variant: that is the point

use std::ops::Range;

/// Numbers that the scans work on side by side: the width of a vector register of 512 bits. It is
/// an array length.
const LANES: usize = 8;
/// Numbers that a scan works on at a time, so that its buffers are small. It is an array length.
pub(super) const CHUNK: usize = 16 * LANES;

/// Twice the decrease that a line of this slope and curvature promises, 0 uphill.
#[inline(always)]
pub(super) fn promise(slope: f64, curvature: f64, flat: f64) -> f64 {
    let curvature = if curvature > flat { curvature } else { flat };
    let slope = if slope < 0.0 { slope } else { 0.0 };
    slope * slope / curvature
}

/// 0..n in parts. Loops over them are written out, for closures need not be compiled for the
/// instruction set of their caller.
#[inline(always)]
pub(super) fn chunks(n: usize) -> impl Iterator<Item = Range<usize>> {
    (0..n).step_by(CHUNK).map(move |start| start..(start + CHUNK).min(n))
}

/// The least value met so far, and where; ties go to the lowest place.
pub(super) struct Least {
    pub at: usize,
    pub value: f64,
}

impl Least {
    /// Before the first value.
    pub const NONE: Self = Self { at: 0, value: f64::INFINITY };

    /// Takes in values that begin at place `start`.
    #[inline(always)]
    pub fn meet(&mut self, start: usize, values: &[f64]) {
        let least = minimum(values);
        if least < self.value {
            let at = values.iter().position(|&v| v == least).unwrap_or(0);
            *self = Self { at: start + at, value: least };
        }
    }
}

/// The least of `values`; infinite where there are none.
#[inline(always)]
pub(super) fn minimum(values: &[f64]) -> f64 {
    let mut lanes = [f64::INFINITY; LANES];
    let (head, tail) = values.as_chunks::<LANES>();
    for block in head {
        for l in 0..LANES {
            lanes[l] = if block[l] < lanes[l] { block[l] } else { lanes[l] };
        }
    }
    lanes.iter().chain(tail).fold(f64::INFINITY, |m, &v| if v < m { v } else { m })
}
