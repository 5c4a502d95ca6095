//! One basis for several factors: kernels of one scope (widths of a Gaussian, degrees of a polynomial) live almost in one space.
//!
//! Orthonormal columns Q are gathered from the factors, widest first, until every L_m is Q R_mᵀ up to a certified remainder.

use std::sync::Arc;

use rayon::prelude::*;

use super::Factor;
use crate::linalg::{Matrix, axpy, dot, gemm_nt};

/// ‖L − Q Rᵀ‖ ≤ this · tolerance · ‖L‖: aᵀKa is then off by half of what truncating the factor may leave.
const REMAINDER: f64 = 0.25;
/// Below this tolerance remainders are rounding.
const FINEST: f64 = 5e-14;
/// Columns treated by one task.
const CHUNK: usize = 16;
/// Rows of a column treated by one task.
const ROWS: usize = 2048;

/// Moves factors over the same samples, those of one scope after one another, into bases that they share. One that is mostly new to the
/// basis at hand begins the next.
pub(super) fn share(factors: Vec<&mut Factor>, tolerance: f64) {
    if tolerance < FINEST {
        return;
    }
    let mut group = Group::default();
    for factor in factors {
        if let Some(rejected) = group.take_in(factor, tolerance) {
            std::mem::take(&mut group).finish();
            group.take_in(rejected, tolerance);
        }
    }
    group.finish();
}

/// Factors in one basis to be.
#[derive(Default)]
struct Group<'a> {
    q: Columns,
    members: Vec<(&'a mut Factor, Vec<Vec<f64>>, f64)>,
}

impl<'a> Group<'a> {
    /// Gives the factor back where more than half of it would be new.
    fn take_in(&mut self, factor: &'a mut Factor, tolerance: f64) -> Option<&'a mut Factor> {
        let known = self.q.data.len();
        let room = if self.members.is_empty() { factor.rank() } else { factor.rank() / 2 };
        let Some((coords, error)) = self.q.take_in(&factor.rows(), REMAINDER * tolerance, room) else {
            self.q.data.truncate(known);
            return Some(factor);
        };
        self.members.push((factor, coords, error));
        None
    }

    fn finish(self) {
        if self.members.len() < 2 {
            return;
        }
        let basis = Arc::new(self.q.into_rows());
        for (factor, coords, error) in self.members {
            // Later factors have widened the basis.
            let mut r = Matrix::zeros(coords.len(), basis.cols());
            coords.iter().enumerate().for_each(|(j, c)| r.row_mut(j)[..c.len()].copy_from_slice(c));
            factor.move_into(&basis, r, error);
        }
    }
}

/// Orthonormal columns, one after the other.
#[derive(Default)]
struct Columns {
    n: usize,
    data: Vec<f64>,
}

impl Columns {
    fn len(&self) -> usize {
        self.data.len() / self.n.max(1)
    }

    fn get(&self, k: usize) -> &[f64] {
        &self.data[k * self.n..(k + 1) * self.n]
    }

    /// Coordinates of the columns of L, with what it takes to hold them added, and the norm of what is left out; `None` where that takes
    /// more than `room` columns.
    fn take_in(&mut self, l: &Matrix, remainder: f64, room: usize) -> Option<(Vec<Vec<f64>>, f64)> {
        self.n = l.rows();
        let (n, rank, known) = (self.n, l.cols(), self.len());
        let allowed = remainder * remainder * dot(l.data(), l.data());
        let mut left: Vec<f64> = vec![0.0; rank * n];
        for i in 0..n {
            for (j, &x) in l.row(i).iter().enumerate() {
                left[j * n + i] = x;
            }
        }
        let mut coords: Vec<Vec<f64>> = if known == 0 {
            vec![Vec::new(); rank]
        } else {
            left.par_chunks_mut(CHUNK * n).flat_map_iter(|part| self.subtract(part)).collect()
        };
        let mut norms: Vec<f64> = left.par_chunks(n).map(|c| dot(c, c)).collect();
        while norms.iter().sum::<f64>() > allowed {
            if self.len() == known + room {
                return None;
            }
            let widest = (0..rank).fold(0, |b, j| if norms[j] > norms[b] { j } else { b });
            let mut next = left[widest * n..(widest + 1) * n].to_vec();
            // Small remainders have lost their right angles: once more, at unit length.
            for _ in 0..2 {
                let length = dot(&next, &next).sqrt();
                next.iter_mut().for_each(|x| *x /= length);
                self.straighten(&mut next);
            }
            let length = dot(&next, &next).sqrt();
            next.iter_mut().for_each(|x| *x /= length);
            let shares: Vec<(f64, f64)> = left
                .par_chunks_mut(n)
                .map(|column| {
                    let share = dot(column, &next);
                    axpy(-share, &next, column);
                    (share, dot(column, column))
                })
                .collect();
            for ((c, norm), (share, now)) in coords.iter_mut().zip(&mut norms).zip(shares) {
                c.push(share);
                *norm = now;
            }
            self.data.extend_from_slice(&next);
        }
        Some((coords, norms.iter().sum::<f64>().sqrt()))
    }

    /// Takes away from `next` what lies inside.
    fn straighten(&self, next: &mut [f64]) {
        let inside: Vec<f64> =
            (0..self.len()).into_par_iter().with_min_len(4).map(|k| dot(self.get(k), next)).collect();
        next.par_chunks_mut(ROWS).enumerate().for_each(|(b, next)| {
            let rows = b * ROWS..b * ROWS + next.len();
            inside.iter().enumerate().for_each(|(k, c)| axpy(-c, &self.get(k)[rows.clone()], next));
        });
    }

    /// Coordinates of some columns, which are left with what lies outside.
    fn subtract(&self, columns: &mut [f64]) -> Vec<Vec<f64>> {
        let (n, known, count) = (self.n, self.len(), columns.len() / self.n);
        let mut r = vec![0.0; count * known];
        gemm_nt(count, known, n, columns, &self.data, &mut r, known);
        for (column, r) in columns.chunks_exact_mut(n).zip(r.chunks_exact(known)) {
            r.iter().enumerate().for_each(|(k, r)| axpy(-r, self.get(k), column));
        }
        r.chunks_exact(known).map(<[f64]>::to_vec).collect()
    }

    fn into_rows(self) -> Matrix {
        let mut rows = Matrix::zeros(self.n, self.len());
        for k in 0..self.len() {
            self.get(k).iter().enumerate().for_each(|(i, x)| rows[(i, k)] = *x);
        }
        rows
    }
}
