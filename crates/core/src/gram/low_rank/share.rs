//! One basis for several factors: kernels of one scope (widths of a Gaussian, degrees of a
//! polynomial) live almost in one space.
//!
//! Orthonormal columns Q are gathered from the factors, widest first, until every L_m is Q R_mᵀ up
//! to a certified remainder: what is left of a factor gives as many columns at once as its inner
//! products can tell apart, then what is left of that.

use std::sync::Arc;

use super::{Basis, Factor, orthonormal::Columns, turn::Turn};
use crate::{
    linalg::{Matrix, side_by_side},
    tuning::tuning,
};

tuning! { "share"
    /// Factors of one scope that are taken into a basis before all others are tried together: the
    /// widest two of one scope nearly always span the rest.
    factors_taken_first: usize = 2;
    /// Columns of a basis per column of a narrow factor of the same scope. Such a factor joins the
    /// basis even if all of it is new.
    columns_per_narrow_column: usize = 4;
    /// Largest share of a factor's columns that may be new to the basis at hand, unless it is
    /// narrow; otherwise it begins the next basis.
    new_columns_share: f64 = 0.5;
}

/// Bound on ‖L − Q Rᵀ‖ / (2 · tolerance · ‖L‖): aᵀKa is then off by half of what truncating the
/// factor may leave. A matter of the certificate, not of speed.
const REMAINDER: f64 = 0.125;
/// Below this tolerance remainders are rounding: no basis is shared.
const FINEST: f64 = 5e-14;

/// Moves factors over the same samples, those of one scope after one another, into bases that they
/// share. One that is mostly new to the basis at hand begins the next. Where all are
/// `of_one_scope`, the widest first, the first few are likely to hold the others.
pub(crate) fn share(mut factors: Vec<&mut Factor>, tolerance: f64, of_one_scope: bool) {
    if tolerance < FINEST {
        return;
    }
    let mut group = SharingGroup::default();
    factors.reverse();
    while let Some(factor) = factors.pop() {
        if let Some(rejected) = group.take_in(factor, tolerance, of_one_scope) {
            std::mem::take(&mut group).finish(tolerance);
            group.take_in(rejected, tolerance, of_one_scope);
        }
        if of_one_scope && group.members.len() == TUNING.factors_taken_first {
            factors = group.take_known(factors, tolerance);
        }
    }
    group.finish(tolerance);
}

/// Half the largest ‖L − Q Rᵀ‖ that a factor may be left with, in units of ‖L‖.
fn allowed(factor: &Factor, tolerance: f64) -> f64 {
    REMAINDER * (factor.fineness * tolerance).max(FINEST)
}

/// Factors that will share one basis.
#[derive(Default)]
struct SharingGroup<'a> {
    q: Columns,
    members: Vec<(&'a mut Factor, Matrix, f64)>,
}

impl<'a> SharingGroup<'a> {
    /// Takes a factor in, or gives it back where too much of it would be new. A narrow factor of
    /// the same scope is always taken.
    fn take_in(
        &mut self,
        factor: &'a mut Factor,
        tolerance: f64,
        of_one_scope: bool,
    ) -> Option<&'a mut Factor> {
        let known = self.q.blocks();
        let narrow =
            of_one_scope && TUNING.columns_per_narrow_column * factor.rank() < self.q.count();
        let whole = self.members.is_empty() || narrow;
        let most = if whole {
            factor.rank()
        } else {
            (TUNING.new_columns_share * factor.rank() as f64) as usize
        };
        let own = allowed(factor, tolerance);
        let Some((coords, error)) = self.q.take_in(&factor.rows(), own, most) else {
            self.q.truncate(known);
            return Some(factor);
        };
        self.members.push((factor, coords, error));
        None
    }

    /// Takes in the factors that need no new column, all in one pass, and gives the others back.
    fn take_known(&mut self, factors: Vec<&'a mut Factor>, tolerance: f64) -> Vec<&'a mut Factor> {
        let size = |f: &&mut Factor| (f.rank(), allowed(f, tolerance) * f.trace_of_square().sqrt());
        let sizes: Vec<(usize, f64)> = factors.iter().map(size).collect();
        let mut left = side_by_side(&factors.iter().map(|f| f.rows()).collect::<Vec<_>>());
        let (coords, squares) = (self.q.take_away(&mut left), left.column_squares());
        let (mut others, mut at) = (Vec::new(), 0);
        for (factor, (rank, most)) in factors.into_iter().zip(sizes) {
            let own = at..at + rank;
            at = own.end;
            let error = squares[own.clone()].iter().sum::<f64>().sqrt();
            if error <= most {
                self.members.push((factor, coords.select_rows(&own.collect::<Vec<_>>()), error));
            } else {
                others.push(factor);
            }
        }
        others
    }

    /// Moves the factors into their basis, where there are at least two.
    fn finish(self, tolerance: f64) {
        if self.members.len() < 2 {
            return;
        }
        // The basis is rotated so that the smoothest kernels need its first columns alone.
        let wide = self.q.into_matrix();
        let mut members = self.members;
        members.sort_by_key(|(factor, ..)| factor.rank());
        let mut turn = Turn::new(wide.cols());
        let width = |(f, coords, _): &(&mut Factor, Matrix, f64)| {
            turn.width_for(coords, allowed(f, tolerance))
        };
        let widths: Vec<usize> = members.iter().map(width).collect();
        turn.complete();
        let basis = Arc::new(Basis::new(wide.times_transposed(turn.rows())));
        for ((factor, coords, error), width) in members.into_iter().zip(widths) {
            let (coords, more) = turn.apply(&coords, width);
            factor.move_into(&basis, coords, error + more);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use crate::{
        data::{Dataset, Rng},
        gram::{BuildOptions, GramSet, GramSource, Storage},
        kernels::language,
        linalg::Matrix,
    };

    /// Normalisation divides what is all but a constant by what varies: what a factor leaves out
    /// must be small beside that.
    #[test]
    fn kernels_that_are_all_but_constant_are_as_exact_as_others() {
        let (n, mut rng) = (3000, Rng::new(5));
        let column = Matrix::new(n, 1, (0..n).map(|_| rng.normal()).collect()).unwrap();
        let x = Dataset::new(column, vec!["x".into()]).unwrap();
        let specs = language::parse("rbf(2^-3..2^7), poly(1..3)").unwrap().resolve(&x).unwrap();
        let options = BuildOptions { storage: Storage::LowRank, ..BuildOptions::default() };
        let set = GramSet::from_table(x.features(), &specs, &options).unwrap();
        let (mut bases, mut widest) = (HashMap::new(), 0);
        for t in 0..set.n_terms() {
            let factor = set.factor(t).unwrap();
            bases.insert(factor.basis_id(), factor.basis().cols());
            widest = widest.max(factor.rank());
            let (left, size) = (set.residual(t), set.trace(t) / n as f64);
            assert!(left <= 2e-4, "{}: {left:e} where the mean diagonal is {size}", specs[t].name);
        }
        assert!((0..set.n_terms()).any(|t| set.trace(t) > 1e4 * n as f64));
        let columns: usize = bases.values().sum();
        assert!(
            2 * columns < 3 * widest,
            "{columns} columns in {} bases, {widest} in one factor",
            bases.len()
        );
    }
}
