//! Quadratic forms aᵀ K_t a that come with a product K a.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
};

use super::{Basis, GramSource};

/// aᵀ K_t a of the terms that share their basis with no other, for the vector a of one product with
/// a combined kernel.
///
/// The product computes Lᵀa of such a term on its way, so that its form costs nothing more.
#[derive(Debug, Clone, Default)]
pub struct Forms {
    /// The form of the term whose basis lies at this address. The weak pointer keeps the address
    /// from being used again.
    by_basis: HashMap<usize, (Weak<Basis>, f64)>,
}

impl Forms {
    /// From the basis of each term and its form.
    pub(super) fn new(forms: Vec<(&Arc<Basis>, f64)>) -> Self {
        let entry = |(basis, form): (&Arc<Basis>, f64)| {
            (Arc::as_ptr(basis).addr(), (Arc::downgrade(basis), form))
        };
        Self { by_basis: forms.into_iter().map(entry).collect() }
    }

    /// aᵀ K_t a for the terms named of `grams`, where `a` is the vector of that product: known
    /// forms, and computed ones for the rest.
    pub fn of(&self, grams: &dyn GramSource, terms: &[usize], a: &[f64]) -> Vec<f64> {
        let known =
            |&t: &usize| self.by_basis.get(&grams.factor(t)?.basis_id()).map(|(_, form)| *form);
        let known: Vec<Option<f64>> = if self.by_basis.is_empty() {
            vec![None; terms.len()]
        } else {
            terms.iter().map(known).collect()
        };
        let others: Vec<usize> =
            terms.iter().zip(&known).filter(|(_, k)| k.is_none()).map(|(t, _)| *t).collect();
        let computed = if others.is_empty() { Vec::new() } else { grams.quad_forms_of(&others, a) };
        let mut computed = computed.into_iter();
        known.into_iter().filter_map(|known| known.or_else(|| computed.next())).collect()
    }
}
