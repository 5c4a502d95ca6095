//! Stored numbers in either precision, and the loops over rows of them that are made into vector
//! instructions.

#![allow(clippy::inline_always)] // inlined into each instruction-set variant: that is the point

use crate::linalg::Wide;

/// Rows read side by side, so that memory has several streams to bring at once; the length of an
/// array, so not to be tuned at run time.
pub(super) const TOGETHER: usize = 4;
/// Partial sums of a product, always in the same order: two vectors of eight numbers; the length of
/// an array, so not to be tuned at run time.
const LANES: usize = 16;

/// A number as it is stored.
pub trait Cell: Copy + Default + Send + Sync + 'static {
    /// The stored number nearest to x.
    fn from_f64(x: f64) -> Self;
    /// The number in double precision.
    fn to_f64(self) -> f64;
}

impl Cell for f64 {
    #[inline]
    fn from_f64(x: f64) -> Self {
        x
    }
    #[inline]
    fn to_f64(self) -> f64 {
        self
    }
}

impl Cell for f32 {
    #[inline]
    fn from_f64(x: f64) -> Self {
        x as Self
    }
    #[inline]
    fn to_f64(self) -> f64 {
        f64::from(self)
    }
}

/// An action on numbers and stored cells, side by side.
pub(crate) struct Each<'a, T, F>(pub &'a mut [f64], pub &'a [T], pub F);

impl<T: Cell, F: Fn(&mut f64, f64)> Wide for Each<'_, T, F> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        for (o, x) in self.0.iter_mut().zip(self.1) {
            self.2(o, x.to_f64());
        }
    }
}

/// A row of the triangle met with v from both sides: out += v_i · row, and ⟨row, v⟩.
pub(super) struct Both<'a, T>(pub &'a [T], pub &'a [f64], pub f64, pub &'a mut [f64]);

impl<T: Cell> Wide for Both<'_, T> {
    type Out = f64;

    #[inline(always)]
    fn run(self) -> f64 {
        let Self(row, v, own, out) = self;
        let mut sums = [0.0; LANES];
        let (row, row_tail) = row.as_chunks::<LANES>();
        let (v, v_tail) = v.as_chunks::<LANES>();
        let (out, out_tail) = out.as_chunks_mut::<LANES>();
        for ((x, v), o) in row.iter().zip(v).zip(out) {
            // One loop for both is not made into vectors.
            let x = x.map(T::to_f64);
            (0..LANES).for_each(|k| sums[k] += x[k] * v[k]);
            (0..LANES).for_each(|k| o[k] += own * x[k]);
        }
        let mut sum: f64 = sums.iter().sum();
        for ((x, v), o) in row_tail.iter().zip(v_tail).zip(out_tail) {
            sum += x.to_f64() * v;
            *o += own * x.to_f64();
        }
        sum
    }
}

/// The inner product ⟨row, v⟩ as work for wide registers.
pub(crate) struct Inner<'a, T>(pub &'a [T], pub &'a [f64]);

impl<T: Cell> Wide for Inner<'_, T> {
    type Out = f64;

    #[inline(always)]
    fn run(self) -> f64 {
        let mut sums = [0.0; LANES];
        let (row, row_tail) = self.0.as_chunks::<LANES>();
        let (v, v_tail) = self.1.as_chunks::<LANES>();
        for (x, v) in row.iter().zip(v) {
            (0..LANES).for_each(|k| sums[k] += x[k].to_f64() * v[k]);
        }
        sums.iter().sum::<f64>()
            + row_tail.iter().zip(v_tail).map(|(x, v)| x.to_f64() * v).sum::<f64>()
    }
}

/// The sum out += Σ w · row over several rows, as work for wide registers.
pub(super) struct WeightedRows<'a, T>(
    pub [&'a [T]; TOGETHER],
    pub [f64; TOGETHER],
    pub &'a mut [f64],
);

impl<T: Cell> Wide for WeightedRows<'_, T> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let Self(rows, w, out) = self;
        let rows = rows.map(|row| &row[..out.len()]);
        for (j, o) in out.iter_mut().enumerate() {
            let mut sum = w[0] * rows[0][j].to_f64();
            (1..TOGETHER).for_each(|k| sum += w[k] * rows[k][j].to_f64());
            *o += sum;
        }
    }
}
