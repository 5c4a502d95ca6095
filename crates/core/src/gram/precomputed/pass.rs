//! One pass over precomputed values, which are many: everything that can be learnt from reading
//! them once.

#![allow(clippy::inline_always)] // inlined into each instruction-set variant: that is the point

use rayon::prelude::*;

use super::{Stack, check};
use crate::linalg::{Wide, wide};

/// Rows read together, so that each entry of the upper triangle is brought once; the length of an
/// array, so not to be tuned at run time.
const ROWS: usize = 4;
/// Kernels read at a time, the width of a vector; the length of an array, so not to be tuned at run
/// time.
const LINE: usize = 8;

impl Stack<'_> {
    /// One pass over all values: what it shows, and T v for the lower triangle T of every kernel, a
    /// row per sample.
    pub(super) fn read(&self, probe: &[f64]) -> (Seen, Vec<f64>) {
        let (terms, next) = (self.terms, self.cols * self.terms);
        let mut images = vec![0.0; self.rows * terms];
        let blocks = images.par_chunks_mut(ROWS * terms.max(1)).enumerate();
        let seen = blocks.fold(
            || Seen::nothing(terms),
            |mut seen, (b, images)| {
                let (first, last) = (ROWS * b, ROWS * b + images.len() / terms);
                // Cells below and right of the diagonal block come four by four.
                let square = if last - first == ROWS { first } else { 0 };
                for j in 0..square {
                    let own = [0, 1, 2, 3].map(|r| self.cell(first + r, j));
                    wide(Pass {
                        own,
                        other: self.cells(j, first),
                        next,
                        v: probe[j],
                        seen: &mut seen,
                        images,
                    });
                }
                for (i, image) in (first..last).zip(images.chunks_exact_mut(terms)) {
                    for j in square..=i {
                        let (own, other) = ([self.cell(i, j)], self.cells(j, i));
                        wide(Pass {
                            own,
                            other,
                            next,
                            v: probe[j],
                            seen: &mut seen,
                            images: image,
                        });
                    }
                }
                seen
            },
        );
        let seen = seen.reduce(|| Seen::nothing(terms), Seen::with);
        (seen, images)
    }
}

/// What one pass over the values has shown of each kernel.
pub(super) struct Seen {
    /// The largest absolute entry.
    largest: Vec<f64>,
    /// The largest difference between the two sides of the diagonal.
    apart: Vec<f64>,
    /// A sum that is finite where all entries are.
    sum: Vec<f64>,
}

impl Seen {
    fn nothing(terms: usize) -> Self {
        Self { largest: vec![0.0; terms], apart: vec![0.0; terms], sum: vec![0.0; terms] }
    }

    fn with(mut self, other: Self) -> Self {
        self.largest.iter_mut().zip(&other.largest).for_each(|(x, y)| *x = larger(*x, *y));
        self.apart.iter_mut().zip(&other.apart).for_each(|(x, y)| *x = larger(*x, *y));
        self.sum.iter_mut().zip(&other.sum).for_each(|(x, y)| *x += y);
        self
    }

    /// Could kernel t fail [`check::symmetric`]?
    pub(super) fn doubtful(&self, t: usize) -> bool {
        !self.sum[t].is_finite() || self.apart[t] > check::APART * self.largest[t]
    }
}

/// One step of the pass: entries of all kernels in R rows and one column, those on the other side
/// of the diagonal, and what they add to the images.
struct Pass<'a, const R: usize> {
    own: [&'a [f64]; R],
    other: &'a [f64],
    /// Numbers from `other` to what it will be for the next column.
    next: usize,
    v: f64,
    seen: &'a mut Seen,
    images: &'a mut [f64],
}

impl<const R: usize> Wide for Pass<'_, R> {
    type Out = ();

    #[inline(always)]
    fn run(mut self) {
        let terms = self.own[0].len();
        let whole = terms / LINE * LINE;
        for t in (0..whole).step_by(LINE) {
            self.line::<LINE>(terms, t);
        }
        for t in whole..terms {
            self.line::<1>(terms, t);
        }
    }
}

impl<const R: usize> Pass<'_, R> {
    /// The entries of N kernels from kernel t on.
    #[inline(always)]
    fn line<const N: usize>(&mut self, terms: usize, t: usize) {
        let load = |numbers: &[f64], at: usize| -> [f64; N] {
            std::array::from_fn(|k| numbers[at..at + N][k])
        };
        let (mut largest, mut apart, mut sum) =
            (load(&self.seen.largest, t), load(&self.seen.apart, t), load(&self.seen.sum, t));
        for r in 0..R {
            fetch(self.other, self.next + r * terms + t);
            let (own, other, mut image) = (
                load(self.own[r], t),
                load(self.other, r * terms + t),
                load(self.images, r * terms + t),
            );
            for k in 0..N {
                let differ = own[k] - other[k];
                largest[k] = larger(own[k].abs(), largest[k]);
                apart[k] = larger(differ.abs(), apart[k]);
                sum[k] += differ;
                image[k] += self.v * own[k];
            }
            self.images[r * terms + t..][..N].copy_from_slice(&image);
        }
        self.seen.largest[t..t + N].copy_from_slice(&largest);
        self.seen.apart[t..t + N].copy_from_slice(&apart);
        self.seen.sum[t..t + N].copy_from_slice(&sum);
    }
}

/// Asks memory for the number at `at`, which will be read soon, if there is one.
#[inline(always)]
fn fetch(numbers: &[f64], at: usize) {
    #[cfg(target_arch = "x86_64")]
    if at < numbers.len() {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the address lies inside the slice, and nothing is read.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(numbers.as_ptr().add(at).cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (numbers, at);
}

/// The larger of two numbers in one instruction; `y` where `x` is not a number.
#[inline(always)]
fn larger(x: f64, y: f64) -> f64 {
    if x > y { x } else { y }
}
