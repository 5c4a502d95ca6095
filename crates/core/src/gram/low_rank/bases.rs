//! What the bases of many factors weigh, and their way into files.

use std::{
    collections::{HashMap, HashSet, hash_map::Entry},
    sync::Arc,
};

use super::{Basis, Factor};
use crate::Result;

/// One factor of each basis.
pub(super) fn one_per_basis<'a>(factors: &[&'a Factor]) -> Vec<&'a Factor> {
    let mut seen = HashSet::new();
    factors.iter().copied().filter(|f| seen.insert(f.basis_id())).collect()
}

/// Bytes of memory that the bases of some factors take, each counted once.
pub fn basis_bytes(factors: &[&Factor]) -> u64 {
    one_per_basis(factors).iter().map(|f| f.basis().bytes()[0]).sum()
}

/// Bytes of the bases that lie in files, each counted once.
pub fn file_bytes(factors: &[&Factor]) -> u64 {
    let in_file = |[memory, all]: [u64; 2]| all - memory;
    one_per_basis(factors).iter().map(|f| in_file(f.basis().bytes())).sum()
}

/// Moves the bases of some factors into files.
pub fn to_files(factors: Vec<&mut Factor>) -> Result<()> {
    let mut moved: HashMap<usize, Arc<Basis>> = HashMap::new();
    for factor in factors {
        let basis = match moved.entry(factor.basis_id()) {
            Entry::Occupied(found) => Arc::clone(found.get()),
            Entry::Vacant(place) => Arc::clone(place.insert(Arc::new(factor.basis().to_file()?))),
        };
        factor.set_basis(basis);
    }
    Ok(())
}
