//! Memory that one combined kernel leaves to the next.

use std::sync::{Arc, Mutex, PoisonError};

use super::{Square, packed::Packed};

/// Memory for combined kernels in single precision. A kernel takes it when it is made and leaves it
/// when it is dropped, so that the next one of the same size writes to pages that are there: fresh
/// pages cost about as much as what is written to them.
#[derive(Debug, Clone, Default)]
pub struct Scratch {
    buffers: Arc<Buffers>,
}

#[derive(Debug, Default)]
struct Buffers {
    rows: Mutex<Option<Square<f32>>>,
    triangle: Mutex<Option<Packed<f64>>>,
}

impl Scratch {
    /// A matrix of size n with any numbers in it.
    pub(super) fn take_rows(&self, n: usize) -> Square<f32> {
        take(&self.buffers.rows).filter(|k| k.n() == n).unwrap_or_else(|| Square::zeros(n))
    }

    /// A triangle of size n with any numbers in it.
    pub(super) fn take_triangle(&self, n: usize) -> Packed<f64> {
        take(&self.buffers.triangle).filter(|k| k.n() == n).unwrap_or_else(|| Packed::zeros(n))
    }

    /// Keeps a matrix for the next taker.
    pub(super) fn leave_rows(&self, rows: Square<f32>) {
        leave(&self.buffers.rows, rows);
    }

    /// Keeps a triangle for the next taker.
    pub(super) fn leave_triangle(&self, triangle: Packed<f64>) {
        leave(&self.buffers.triangle, triangle);
    }
}

fn take<T>(place: &Mutex<Option<T>>) -> Option<T> {
    place.lock().unwrap_or_else(PoisonError::into_inner).take()
}

fn leave<T>(place: &Mutex<Option<T>>, value: T) {
    *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
}
