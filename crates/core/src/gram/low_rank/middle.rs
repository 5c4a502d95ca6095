//! Terms of one basis B, summed: Σ w_m L_m L_mᵀ = B W Bᵀ with the small matrix W = Σ w_m R_mᵀ R_m,
//! or a root of it.

use super::{
    Basis, Factor,
    pivots::{Pivoted, RankLimit},
};
use crate::linalg::{Matrix, axpy, dot};

/// The middle W of K = B W Bᵀ, the sum of the terms of one basis.
#[derive(Debug, Clone)]
pub(crate) enum Middle {
    /// One term alone: W is this multiple of the identity on this number of first columns, and 0 on
    /// the others.
    Multiple(f64, usize),
    /// The matrix W itself.
    Square(Matrix),
    /// A matrix S with W = SᵀS that has fewer rows than columns.
    Root(Matrix),
}

impl Middle {
    pub(crate) fn new(group: &[(f64, &Factor)]) -> Self {
        match group[0].1.coords() {
            None => Self::Multiple(group[0].0, group[0].1.basis().cols()),
            Some(_) if depth(group) < group[0].1.basis().cols() => Self::Root(stacked(group)),
            Some(_) => Self::Square(square(group)),
        }
    }

    /// Number of columns of a factor of B W Bᵀ.
    pub(crate) fn rank(&self) -> usize {
        match self {
            Self::Root(s) | Self::Square(s) => s.rows(),
            Self::Multiple(_, columns) => *columns,
        }
    }

    /// The trace of B W Bᵀ for orthonormal columns of B, or any columns of the only term.
    pub(crate) fn trace(&self, basis: &Basis) -> f64 {
        match self {
            Self::Multiple(weight, columns) => {
                weight * basis.squares()[..*columns].iter().sum::<f64>()
            }
            Self::Square(w) => (0..w.rows()).map(|i| w[(i, i)]).sum(),
            Self::Root(s) => dot(s.data(), s.data()),
        }
    }

    /// Weight and ‖column‖² for the columns of a term alone.
    pub(crate) fn squares<'a>(&self, basis: &'a Basis) -> Option<(f64, &'a [f64])> {
        match self {
            Self::Multiple(weight, columns) => Some((*weight, &basis.squares()[..*columns])),
            _ => None,
        }
    }

    /// The product W u with a vector u.
    pub(crate) fn times(&self, mut u: Vec<f64>) -> Vec<f64> {
        match self {
            Self::Multiple(weight, columns) => {
                u[..*columns].iter_mut().for_each(|u| *u *= weight);
                u[*columns..].fill(0.0);
                u
            }
            Self::Square(w) => w.times(&u),
            Self::Root(s) => s.transposed_times(&s.times(&u)),
        }
    }

    /// A root of W with few rows, which leaves out a share of the trace of W; one term alone stays
    /// as it is.
    pub(crate) fn truncated(&self, share: f64) -> Self {
        match self {
            Self::Square(w) => Self::Root(root_to(w, share)),
            Self::Root(s) if share > EXACT => {
                Self::Root(root_to(&mirrored(s.transposed().outer()), share))
            }
            Self::Root(_) | Self::Multiple(..) => self.clone(),
        }
    }
}

/// Number of columns of all terms of one basis together.
pub(crate) fn depth(group: &[(f64, &Factor)]) -> usize {
    group.iter().map(|(_, f)| f.rank()).sum()
}

/// The rows √w R of all terms of one basis, one below the other.
fn stacked(group: &[(f64, &Factor)]) -> Matrix {
    let mut out = Matrix::zeros(depth(group), group[0].1.basis().cols());
    let rows = group.iter().filter_map(|(w, f)| f.coords().map(|c| (w.sqrt(), &c.rows)));
    let mut at = 0;
    for (w, r) in rows {
        (0..r.rows()).for_each(|j| axpy(w, r.row(j), &mut out.row_mut(at + j)[..r.cols()]));
        at += r.rows();
    }
    out
}

/// The middle W = Σ w RᵀR of the terms of one basis.
fn square(group: &[(f64, &Factor)]) -> Matrix {
    let cols = group[0].1.basis().cols();
    let mut packed = vec![0.0; cols * (cols + 1) / 2];
    for (w, c) in group.iter().filter_map(|(w, f)| f.coords().map(|c| (*w, c))) {
        axpy(w, &c.square, &mut packed[..c.square.len()]);
    }
    let mut out = Matrix::zeros(cols, cols);
    let mut rest = &packed[..];
    for i in 0..cols {
        let (row, after) = rest.split_at(i + 1);
        out.row_mut(i)[..=i].copy_from_slice(row);
        rest = after;
    }
    mirrored(out)
}

/// A symmetric matrix from its lower triangle.
fn mirrored(mut w: Matrix) -> Matrix {
    for i in 0..w.rows() {
        (0..i).for_each(|j| w[(j, i)] = w[(i, j)]);
    }
    w
}

/// Share of a trace at and below which nothing is left out: a few units of the last digit.
pub const EXACT: f64 = 1e-15;

/// A matrix S with SᵀS ≈ W that leaves out a share of the trace of W: its rows are the columns of a
/// pivoted Cholesky factor.
fn root_to(w: &Matrix, share: f64) -> Matrix {
    let diagonal: Vec<f64> = (0..w.rows()).map(|i| w[(i, i)]).collect();
    let limit = RankLimit { tolerance: share.max(EXACT), max_rank: w.rows() };
    // All of W has its rank at most: there is always a factor.
    Pivoted::new(&diagonal, limit, |j, out| out.copy_from_slice(w.row(j)))
        .map_or_else(|| Matrix::zeros(0, w.cols()), |found| found.columns)
}
