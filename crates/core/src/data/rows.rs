//! The rows that kernels look at: numbers, sequences beside them, numbers stored sparsely, and what
//! rows lack.

use std::{borrow::Cow, sync::Arc};

use serde::{Deserialize, Serialize};

use super::{Sequences, Sparse, Standardizer};
use crate::{Error, Result, linalg::Matrix};

/// Samples without names. Columns are counted through: first those of numbers, then sparse ones,
/// then those of sequences.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Rows {
    /// Shared by all clones: a table is not copied on its way to kernels.
    numbers: Matrix,
    sequences: Arc<Vec<Sequences>>,
    sparse: Option<Sparse>,
    gaps: Vec<Gap>,
    missing: Missing,
    /// Dense columns that hold kernel values, which are never standardised.
    ready: Vec<usize>,
}

/// What is done with a row that lacks a view.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Missing {
    /// It is an error.
    #[default]
    Refuse,
    /// The row is the origin of the view's feature spaces: every kernel value is 0.
    Zero,
    /// The row is the mean, in feature space, of the training rows that have the view.
    Mean,
}

/// Rows that have nothing in a run of columns.
#[derive(Debug, Clone, PartialEq)]
struct Gap {
    columns: Vec<usize>,
    absent: Vec<bool>,
}

impl From<Matrix> for Rows {
    fn from(numbers: Matrix) -> Self {
        Self { numbers: numbers.shared(), ..Self::default() }
    }
}

impl Rows {
    /// Numbers and sequences of the same samples; a matrix without columns takes the number of rows
    /// of the sequences.
    pub fn new(numbers: Matrix, sequences: Vec<Sequences>) -> Result<Self> {
        let numbers = match sequences.first() {
            Some(first) if numbers.cols() == 0 => Matrix::zeros(first.len(), 0),
            _ => numbers,
        };
        match sequences.iter().find(|s| s.len() != numbers.rows()) {
            Some(odd) => {
                Err(Error::shape("sequences", format!("{} rows", numbers.rows()), odd.len()))
            }
            None => Ok(Self { sequences: Arc::new(sequences), ..Self::from(numbers) }),
        }
    }

    /// Adds sparse columns after the dense ones.
    pub fn with_sparse(mut self, sparse: Sparse) -> Result<Self> {
        if self.cols() == 0 {
            self.numbers = Matrix::zeros(sparse.rows(), 0);
        }
        if sparse.rows() != self.len() {
            return Err(Error::shape(
                "sparse columns",
                format!("{} rows", self.len()),
                sparse.rows(),
            ));
        }
        self.sparse = Some(sparse).filter(|s| s.cols() > 0);
        Ok(self)
    }

    /// Says that the rows in `absent` have nothing in `columns`, whatever stands there.
    #[must_use]
    pub fn with_gap(mut self, columns: std::ops::Range<usize>, absent: Vec<bool>) -> Self {
        if absent.contains(&true) {
            self.gaps.push(Gap { columns: columns.collect(), absent });
        }
        self
    }

    /// Sets the rule for what rows lack.
    #[must_use]
    pub fn with_missing(mut self, missing: Missing) -> Self {
        self.missing = missing;
        self
    }

    /// Marks some dense columns as kernel values.
    #[must_use]
    pub(super) fn with_ready(mut self, columns: std::ops::Range<usize>) -> Self {
        self.ready.extend(columns);
        self
    }

    /// These rows as if nothing were missing: placeholders are numbers like others.
    #[must_use]
    pub fn without_gaps(mut self) -> Self {
        self.gaps.clear();
        self.missing = Missing::Refuse;
        self
    }

    /// Means and scales of the dense columns, from the rows that have them; kernel values stay as
    /// they are.
    pub fn standardizer(&self) -> Standardizer {
        let mut out = Standardizer::fit(&self.numbers);
        for gap in &self.gaps {
            let present: Vec<usize> = (0..self.len()).filter(|&i| !gap.absent[i]).collect();
            for &c in gap.columns.iter().filter(|c| **c < self.numbers.cols()) {
                let own = Standardizer::fit(&self.numbers.select_rows(&present).select_cols(&[c]));
                (out.mean[c], out.scale[c]) = (own.mean[0], own.scale[0]);
            }
        }
        for &c in &self.ready {
            (out.mean[c], out.scale[c]) = (0.0, 1.0);
        }
        out
    }

    /// Do the columns hold kernel values?
    pub fn is_ready(&self, columns: &[usize]) -> bool {
        columns.iter().any(|c| self.ready.contains(c))
    }

    /// The rule for what rows lack.
    pub fn missing(&self) -> Missing {
        self.missing
    }

    /// Does no row lack anything?
    pub fn is_complete(&self) -> bool {
        self.gaps.is_empty()
    }

    /// Which rows lack any of the columns; `None` where none does.
    pub fn absent(&self, columns: &[usize]) -> Option<Vec<bool>> {
        let touched = self.gaps.iter().filter(|g| g.columns.iter().any(|c| columns.contains(c)));
        touched
            .map(|g| g.absent.clone())
            .reduce(|a, b| a.iter().zip(b).map(|(a, b)| *a || b).collect())
    }

    /// The rows that lack none of the columns.
    pub fn having(&self, columns: &[usize]) -> Cow<'_, Self> {
        match self.absent(columns) {
            None => Cow::Borrowed(self),
            Some(absent) => Cow::Owned(
                self.select_rows(&(0..self.len()).filter(|&i| !absent[i]).collect::<Vec<_>>()),
            ),
        }
    }

    /// Runs of columns that some rows lack, with those rows.
    pub(super) fn gaps(&self) -> impl Iterator<Item = (std::ops::Range<usize>, &[bool])> {
        let run =
            |c: &[usize]| c.first().copied().unwrap_or(0)..c.last().map_or(0, |last| last + 1);
        self.gaps.iter().map(move |g| (run(&g.columns), g.absent.as_slice()))
    }

    /// Bytes of the dense numbers, which clones share.
    pub(crate) fn bytes(&self) -> u64 {
        self.numbers.resident()
    }

    /// Number of samples, that is of rows.
    pub fn len(&self) -> usize {
        self.numbers.rows()
    }

    /// Are there no samples at all?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of columns of any kind.
    pub fn cols(&self) -> usize {
        self.text_start() + self.sequences.len()
    }

    /// The first sparse column.
    pub fn sparse_start(&self) -> usize {
        self.numbers.cols()
    }

    /// The first column of sequences.
    pub fn text_start(&self) -> usize {
        self.numbers.cols() + self.sparse.as_ref().map_or(0, Sparse::cols)
    }

    /// The numeric columns that are stored densely.
    pub fn numbers(&self) -> &Matrix {
        &self.numbers
    }

    /// Replaces the dense numbers; sequences and sparse columns stay.
    #[must_use]
    pub fn with_numbers(&self, numbers: Matrix) -> Self {
        Self {
            numbers: numbers.shared(),
            sequences: self.sequences.clone(),
            sparse: self.sparse.clone(),
            gaps: self.gaps.clone(),
            missing: self.missing,
            ready: self.ready.clone(),
        }
    }

    /// The columns of sequences.
    pub fn sequences(&self) -> &[Sequences] {
        &self.sequences
    }

    /// The sparse columns, if there are any.
    pub fn sparse(&self) -> Option<&Sparse> {
        self.sparse.as_ref()
    }

    /// The sparse columns, taken out.
    pub(super) fn take_sparse(&mut self) -> Sparse {
        self.sparse.take().unwrap_or_else(|| Sparse::empty(self.len()))
    }

    /// Column `column`, counted through, where it holds sequences.
    pub fn sequence(&self, column: usize) -> Option<&Sequences> {
        column.checked_sub(self.text_start()).and_then(|at| self.sequences.get(at))
    }

    /// Columns that hold numbers, stored either way.
    pub fn numeric(&self) -> Vec<usize> {
        (0..self.text_start()).collect()
    }

    /// Is column `column` the same in every row?
    pub fn is_constant(&self, column: usize) -> bool {
        match self.sequence(column) {
            Some(s) => (1..s.len()).all(|i| s.get(i) == s.get(0)),
            None => (1..self.len()).all(|i| self.value(i, column) == self.value(0, column)),
        }
    }

    /// The number in row i of a numeric column, stored either way.
    pub fn value(&self, i: usize, column: usize) -> f64 {
        match (&self.sparse, column.checked_sub(self.sparse_start())) {
            (Some(s), Some(at)) => {
                let (columns, values) = s.row(i);
                columns.binary_search(&(at as u32)).map_or(0.0, |k| values[k])
            }
            _ => self.numbers[(i, column)],
        }
    }

    /// The rows `index`, in that order.
    #[must_use]
    pub fn select_rows(&self, index: &[usize]) -> Self {
        let gaps = self.gaps.iter().map(|g| Gap {
            columns: g.columns.clone(),
            absent: index.iter().map(|&i| g.absent[i]).collect(),
        });
        Self {
            numbers: self.numbers.select_rows(index).shared(),
            sequences: Arc::new(self.sequences.iter().map(|s| s.select(index)).collect()),
            sparse: self.sparse.as_ref().map(|s| s.select_rows(index)),
            gaps: gaps.filter(|g| g.absent.contains(&true)).collect(),
            missing: self.missing,
            ready: self.ready.clone(),
        }
    }

    /// The columns `plain` stored densely (or as sequences) and the columns `sparse` stored
    /// sparsely, however they are stored here.
    #[must_use]
    pub fn gather(&self, plain: &[usize], sparse: &[usize]) -> Self {
        let start = self.sparse_start();
        let is_sparse = |c: &usize| (start..self.text_start()).contains(c);
        if !plain.iter().any(is_sparse) && sparse.iter().all(is_sparse) {
            return self.select_cols(&[plain, sparse].concat());
        }
        let dense = |columns: &[usize]| {
            let part = self.select_cols(columns);
            let written = part.sparse.as_ref().map(Sparse::to_dense).unwrap_or_default();
            // Numbers come first in `part`, in the order asked for; so do sparse ones after them.
            let mut from = (0..part.numbers.cols(), 0..written.cols());
            let mut out = Matrix::zeros(self.len(), columns.len());
            for (to, &c) in columns.iter().enumerate() {
                let (source, at) = if c < start {
                    (&part.numbers, from.0.next())
                } else {
                    (&written, from.1.next())
                };
                let at = at.unwrap_or(0);
                (0..self.len()).for_each(|i| out[(i, to)] = source[(i, at)]);
            }
            out
        };
        let numeric: Vec<usize> =
            plain.iter().copied().filter(|&c| self.sequence(c).is_none()).collect();
        let texts: Vec<usize> =
            plain.iter().copied().filter(|&c| self.sequence(c).is_some()).collect();
        let order: Vec<usize> = [numeric.as_slice(), sparse, &texts].concat();
        let place = |columns: &[usize]| {
            (0..order.len()).filter(|&k| columns.contains(&order[k])).collect::<Vec<_>>()
        };
        let gaps =
            self.gaps.iter().map(|g| Gap { columns: place(&g.columns), absent: g.absent.clone() });
        Self {
            numbers: dense(&numeric).shared(),
            sequences: Arc::new(texts.iter().filter_map(|&c| self.sequence(c).cloned()).collect()),
            sparse: Some(Sparse::from_dense(&dense(sparse))).filter(|_| !sparse.is_empty()),
            gaps: gaps.filter(|g| !g.columns.is_empty()).collect(),
            missing: self.missing,
            ready: Vec::new(),
        }
    }

    /// The columns `index`, counted through: of each kind in that order, dense ones first,
    /// sequences last.
    #[must_use]
    pub fn select_cols(&self, index: &[usize]) -> Self {
        let start = self.sparse_start();
        let numbers: Vec<usize> =
            index.iter().copied().filter(|&c| c < self.numbers.cols()).collect();
        let texts: Vec<usize> =
            index.iter().copied().filter(|&c| self.sequence(c).is_some()).collect();
        let sparse: Vec<usize> =
            index.iter().copied().filter(|&c| (start..self.text_start()).contains(&c)).collect();
        let order: Vec<usize> = [numbers.as_slice(), &sparse, &texts].concat();
        let place = |columns: &[usize]| {
            (0..order.len()).filter(|&k| columns.contains(&order[k])).collect::<Vec<_>>()
        };
        let gaps =
            self.gaps.iter().map(|g| Gap { columns: place(&g.columns), absent: g.absent.clone() });
        let sparse: Vec<usize> = sparse.iter().map(|c| c - start).collect();
        Self {
            numbers: self.numbers.select_cols(&numbers).shared(),
            sequences: Arc::new(texts.iter().filter_map(|&c| self.sequence(c).cloned()).collect()),
            sparse: self
                .sparse
                .as_ref()
                .filter(|_| !sparse.is_empty())
                .map(|s| s.select_cols(&sparse)),
            gaps: gaps.filter(|g| !g.columns.is_empty()).collect(),
            missing: self.missing,
            ready: place(&self.ready),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        data::synthetic,
        gram::GramSource,
        linalg::{COPIES, threads},
        prepare::Prepared,
        request::TrainSpec,
    };

    #[test]
    fn columns_are_counted_through() {
        let s = |texts: [&str; 3]| Sequences::new("s", texts).unwrap();
        let numbers = Matrix::new(3, 2, vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
        let rows = Rows::new(numbers, vec![s(["A", "C", "G"]), s(["x", "y", "z"])]).unwrap();
        assert_eq!((rows.len(), rows.cols()), (3, 4));
        assert_eq!(rows.sequence(3).unwrap().get(1), "y");
        assert!(rows.sequence(1).is_none() && rows.sequence(4).is_none());
        let part = rows.select_rows(&[2, 0]).select_cols(&[1, 3]);
        assert_eq!(
            (part.numbers().data(), part.sequence(1).unwrap().get(0)),
            (&[6.0, 2.0][..], "z")
        );
        let alone = rows.select_cols(&[2]);
        assert_eq!((alone.len(), alone.cols(), alone.numbers().cols()), (3, 1, 0));
        assert_eq!(Rows::new(Matrix::default(), vec![s(["A", "C", "G"])]).unwrap().len(), 3);
        assert!(Rows::new(Matrix::zeros(2, 1), vec![s(["A", "C", "G"])]).is_err());
        assert!(!rows.is_constant(0) && !rows.is_constant(2));
        assert!(
            rows.select_rows(&[1, 1]).is_constant(0) && rows.select_rows(&[1, 1]).is_constant(3)
        );
    }

    #[test]
    fn sparse_columns_follow_dense_ones_and_gaps_follow_their_columns() {
        let dense = Matrix::new(3, 2, vec![0.0, 2.0, 0.0, 0.0, 5.0, 0.0]).unwrap();
        let rows = Rows::from(Matrix::new(3, 1, vec![7.0, 8.0, 9.0]).unwrap());
        let rows = rows.with_sparse(Sparse::from_dense(&dense)).unwrap();
        let rows = rows.with_gap(1..3, vec![false, true, false]);
        assert_eq!((rows.cols(), rows.numeric()), (3, vec![0, 1, 2]));
        assert_eq!(
            (rows.absent(&[0]), rows.absent(&[0, 2])),
            (None, Some(vec![false, true, false]))
        );
        let part = rows.select_rows(&[1, 2]).select_cols(&[0, 2]);
        assert_eq!(
            (part.numbers().data(), part.sparse().unwrap().to_dense().data()),
            (&[8.0, 9.0][..], &[0.0; 2][..])
        );
        assert_eq!((part.absent(&[0]), part.absent(&[1])), (None, Some(vec![true, false])));
        assert!(rows.select_rows(&[0, 2]).absent(&[1]).is_none());
        assert!(part.is_constant(1) && !rows.is_constant(2));
        let alone = rows.select_cols(&[1]);
        assert_eq!((alone.len(), alone.cols(), alone.numbers().cols()), (3, 1, 0));
    }

    #[test]
    fn a_table_is_copied_at_most_once_on_its_way_to_kernels() {
        let (data, target) = synthetic::toy1(120, 3);
        let numbers = data.features().data().len();
        for (standardize, copies) in [(true, 1), (false, 0)] {
            let spec = TrainSpec {
                kernels: "rbf(1), poly(2), linear on all, each".into(),
                standardize,
                ..TrainSpec::default()
            };
            // One thread, which counts its copies.
            let found = threads::install(Some(1), || {
                COPIES.take();
                let prepared = Prepared::from_table(&data, &target, None, &spec).unwrap();
                assert!(prepared.grams().n_terms() > 3);
                COPIES.take()
            });
            assert_eq!(
                found.iter().filter(|n| **n == numbers).count(),
                copies,
                "standardize: {standardize}"
            );
        }
    }

    #[test]
    fn clones_share_their_numbers_until_one_is_written() {
        let x = Matrix::new(2, 2, vec![1.0, 2.0, 3.0, 4.0]).unwrap().shared();
        let mut y = x.clone();
        assert_eq!(x.data().as_ptr(), y.data().as_ptr());
        let rows = Rows::from(x.clone());
        assert_eq!(
            rows.clone().with_missing(Missing::Zero).numbers().data().as_ptr(),
            x.data().as_ptr()
        );
        y.data_mut()[0] = 7.0;
        assert_eq!((x.data()[0], y.data()[0]), (1.0, 7.0));
        assert_ne!(x.data().as_ptr(), y.data().as_ptr());
    }
}
