//! One set per region: the product Θ × … × Θ of [Lei2016], where a term is a kernel in a region.

use std::ops::Range;

use super::{Separable, WeightSet};

/// Weight vectors of `regions` blocks of equal size, each in `set`.
pub struct PerRegion<S> {
    set: S,
    regions: usize,
}

impl<S> PerRegion<S> {
    /// `regions` copies of `set`.
    pub fn new(set: S, regions: usize) -> Self {
        Self { set, regions: regions.max(1) }
    }

    fn blocks<'v>(&self, values: &'v [f64]) -> impl Iterator<Item = &'v [f64]> {
        values.chunks((values.len() / self.regions).max(1))
    }
}

impl<S: WeightSet> WeightSet for PerRegion<S> {
    fn support_point(&self, s: &[f64]) -> Vec<f64> {
        self.blocks(s).flat_map(|s| self.set.support_point(s)).collect()
    }

    fn best_response(&self, sq_norms: &[f64]) -> Vec<f64> {
        self.blocks(sq_norms).flat_map(|q| self.set.best_response(q)).collect()
    }

    fn project(&self, point: &[f64]) -> Vec<f64> {
        self.blocks(point).flat_map(|p| self.set.project(p)).collect()
    }

    fn start(&self, n_terms: usize) -> Vec<f64> {
        let own = self.set.start(n_terms / self.regions);
        (0..self.regions).flat_map(|_| own.iter().copied()).collect()
    }

    /// The largest load of a region.
    fn load(&self, theta: &[f64]) -> f64 {
        self.blocks(theta).map(|t| self.set.load(t)).fold(0.0, f64::max)
    }

    fn tighten(&self, theta: &mut [f64]) {
        let size = (theta.len() / self.regions).max(1);
        for block in theta.chunks_mut(size) {
            // A region without weight starts anew: more weight never raises the objective.
            if block.iter().all(|&t| t == 0.0) {
                block.copy_from_slice(&self.set.start(size));
            }
            self.set.tighten(block);
        }
    }
}

impl<S: Separable> Separable for PerRegion<S> {
    fn phi(&self, theta: f64) -> [f64; 3] {
        self.set.phi(theta)
    }

    fn groups(&self, n_terms: usize) -> Vec<Range<usize>> {
        let size = n_terms / self.regions;
        let inside = self.set.groups(size);
        (0..self.regions)
            .flat_map(|j| inside.iter().map(move |g| j * size + g.start..j * size + g.end))
            .collect()
    }
}
