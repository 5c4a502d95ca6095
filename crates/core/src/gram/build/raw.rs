//! Raw kernel values on the training rows, column by column, whatever they come from.

use super::super::{Gram, dense::Packed};
use crate::{
    kernels::{Frequencies, Function, Monomials, Numeric, Pair, Points, Waves},
    linalg::Matrix,
};

/// Features of a kernel.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Wanted {
    /// Exact features, where there are at most this many.
    Exact(usize),
    /// Random features: this number of cosines, as many sines, and their seed.
    Waves(usize, u64),
}

/// Raw kernel values of one kernel on the training rows.
pub(crate) trait Raw: Sync {
    fn diagonal(&self) -> Vec<f64>;
    /// Entries (0..out.len(), j) of K.
    fn head_of_column(&self, j: usize, out: &mut [f64]);
    /// Entry (i, j) of K.
    fn value(&self, i: usize, j: usize) -> f64 {
        let mut head = vec![0.0; i.min(j) + 1];
        self.head_of_column(i.max(j), &mut head);
        head[i.min(j)]
    }
    /// Features, where there are any of the kind.
    fn features(&self, _wanted: Wanted) -> Option<Matrix> {
        None
    }
    /// Can the rank be expected to stay below `max`?
    fn promises(&self, _max: usize) -> bool {
        true
    }
}

/// A kernel function on the columns of its scope, with the scope's table of pair numbers where one
/// was made.
pub(crate) struct Computed<'a> {
    pub function: Function,
    pub pair: Pair,
    pub columns: &'a [usize],
    pub x: &'a Numeric,
    pub pairs: Option<&'a Gram>,
}

impl Raw for Computed<'_> {
    fn diagonal(&self) -> Vec<f64> {
        let mut values: Vec<f64> =
            (0..self.x.rows()).map(|i| self.x.pair(self.pair, i, self.x, i)).collect();
        self.function.finish(&mut values);
        values
    }

    fn head_of_column(&self, j: usize, out: &mut [f64]) {
        match self.pairs {
            Some(pairs) => out.copy_from_slice(&pairs.row(j)[..out.len()]),
            None => self.x.pair_row(self.pair, j, self.x, out),
        }
        self.function.finish(out);
    }

    fn value(&self, i: usize, j: usize) -> f64 {
        let mut value = [self.x.pair(self.pair, i, self.x, j)];
        self.function.finish(&mut value);
        value[0]
    }

    fn features(&self, wanted: Wanted) -> Option<Matrix> {
        match wanted {
            Wanted::Exact(max) => Monomials::of(self.function, self.x.cols(), max)
                .map(|m| m.map_rows(&self.x.to_dense())),
            Wanted::Waves(count, seed) => {
                let (law, _) = self.function.spectrum()?;
                let drawn = Frequencies::draw(law, seed, self.columns, count);
                let all: Vec<usize> = (0..self.columns.len()).collect();
                Waves::new(self.function, &drawn, &all).map(|w| w.map_rows(&self.x.to_dense()))
            }
        }
    }
}

impl Raw for Points {
    fn diagonal(&self) -> Vec<f64> {
        Points::diagonal(self)
    }

    fn head_of_column(&self, j: usize, out: &mut [f64]) {
        self.row(j, self, out);
    }

    fn promises(&self, max: usize) -> bool {
        // Features depend on each other, all letters of a position for one: the rank lies somewhat
        // below their number.
        let enough = max + max / 2;
        self.rank_bound(enough).is_none_or(|bound| bound < enough)
    }
}

impl Raw for Matrix {
    fn diagonal(&self) -> Vec<f64> {
        (0..self.rows()).map(|i| self[(i, i)]).collect()
    }

    fn head_of_column(&self, j: usize, out: &mut [f64]) {
        // Symmetric: a row is a column.
        out.copy_from_slice(&self.row(j)[..out.len()]);
    }
}

impl Raw for Packed<f64> {
    fn diagonal(&self) -> Vec<f64> {
        (0..self.n()).map(|i| self.row(i)[i]).collect()
    }

    fn head_of_column(&self, j: usize, out: &mut [f64]) {
        self.full_row(j, out);
    }
}

/// Raw values under spherical normalisation.
pub(crate) struct OnSphere<'a> {
    pub raw: &'a dyn Raw,
    pub roots: &'a [f64],
}

impl Raw for OnSphere<'_> {
    fn diagonal(&self) -> Vec<f64> {
        vec![1.0; self.roots.len()]
    }

    fn head_of_column(&self, j: usize, out: &mut [f64]) {
        self.raw.head_of_column(j, out);
        out.iter_mut().zip(self.roots).for_each(|(o, r)| *o /= r * self.roots[j]);
    }

    fn features(&self, wanted: Wanted) -> Option<Matrix> {
        let mut rows = self.raw.features(wanted)?;
        for (i, r) in self.roots.iter().enumerate() {
            rows.row_mut(i).iter_mut().for_each(|x| *x /= r);
        }
        Some(rows)
    }
}
