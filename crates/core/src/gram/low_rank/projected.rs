//! A vector projected onto the bases of many factors, from which aᵀ K_t a follows for each of their
//! terms.

use std::collections::HashMap;

use rayon::prelude::*;

use super::{Factor, bases::one_per_basis, sum::TUNING};
use crate::linalg::dot;

/// Bᵀ a for the bases B of some factors.
pub struct Projected {
    /// The projection onto the basis with this id.
    by_basis: HashMap<usize, Vec<f64>>,
}

impl Projected {
    /// One projection for each of several vectors; every basis is read once.
    pub fn each(factors: &[&Factor], vectors: &[Vec<f64>]) -> Vec<Self> {
        let own = |f: &&Factor| vectors.iter().map(|a| f.basis().transposed_times(a)).collect();
        let factors = one_per_basis(factors);
        let found: Vec<Vec<Vec<f64>>> =
            factors.par_iter().with_min_len(TUNING.terms_per_task).map(own).collect();
        let mut all: Vec<Self> = vectors
            .iter()
            .map(|_| Self { by_basis: HashMap::with_capacity(found.len()) })
            .collect();
        for (f, inside) in factors.iter().zip(found) {
            all.iter_mut()
                .zip(inside)
                .for_each(|(own, inside)| _ = own.by_basis.insert(f.basis_id(), inside));
        }
        all
    }

    /// ‖Lᵀa‖² = aᵀ L Lᵀ a for one of those factors.
    pub fn sq_norm(&self, f: &Factor) -> f64 {
        let inside = &self.by_basis[&f.basis_id()];
        match f.coords() {
            None => dot(inside, inside),
            Some(c) => c.times(inside).iter().map(|x| x * x).sum(),
        }
    }
}
