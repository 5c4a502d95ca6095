//! Rows of which few entries are not zero.

use std::sync::Arc;

use crate::{Error, Result, Told, linalg::Matrix};

/// Compressed sparse rows. A copy shares the entries: they may be most of the machine's memory.
#[derive(Debug, Clone, PartialEq)]
pub struct Sparse {
    cols: usize,
    stored: Arc<SparseEntries>,
}

/// The entries of row i stand at `starts[i]..starts[i + 1]`, columns ascending.
#[derive(Debug, Clone, PartialEq)]
struct SparseEntries {
    starts: Vec<usize>,
    columns: Vec<u32>,
    values: Vec<f64>,
}

impl Default for Sparse {
    fn default() -> Self {
        Self::new(0)
    }
}

impl Sparse {
    fn of(cols: usize, starts: Vec<usize>, columns: Vec<u32>, values: Vec<f64>) -> Self {
        Self { cols, stored: Arc::new(SparseEntries { starts, columns, values }) }
    }

    /// Makes a matrix of `cols` columns that has no rows yet.
    pub fn new(cols: usize) -> Self {
        Self::of(cols, vec![0], Vec::new(), Vec::new())
    }

    /// `rows` rows without columns.
    pub fn empty(rows: usize) -> Self {
        Self::of(0, vec![0; rows + 1], Vec::new(), Vec::new())
    }

    /// From its three arrays, checked: starts ascend from 0 to the number of entries, columns
    /// ascend in every row.
    pub fn from_parts(
        cols: usize,
        starts: Vec<usize>,
        columns: Vec<u32>,
        values: Vec<f64>,
    ) -> Result<Self> {
        let bad = |problem: Told| {
            Error::data(
                "sparse matrix",
                problem,
                "give row starts, ascending column numbers and values (CSR)",
            )
        };
        if starts.first() != Some(&0)
            || starts.last() != Some(&columns.len())
            || columns.len() != values.len()
        {
            return Err(bad("its three arrays do not fit together".into()));
        }
        if starts.windows(2).any(|w| w[0] > w[1] || w[1] > columns.len()) {
            return Err(bad("its row starts do not ascend".into()));
        }
        let out = Self::of(cols, starts, columns, values);
        for i in 0..out.rows() {
            let (columns, values) = out.row(i);
            if columns.windows(2).any(|w| w[0] >= w[1])
                || columns.last().is_some_and(|&c| c as usize >= cols)
            {
                return Err(bad(Told::row(
                    i,
                    format!("has columns that do not ascend within 0..{cols}"),
                )));
            }
            if let Some(v) = values.iter().find(|v| !v.is_finite()) {
                return Err(bad(Told::row(i, format!("holds {v}"))));
            }
        }
        Ok(out)
    }

    /// The entries of a dense matrix that are not zero.
    pub fn from_dense(x: &Matrix) -> Self {
        let mut out = Self::new(x.cols());
        for i in 0..x.rows() {
            let entries = x.row(i).iter().enumerate().filter(|(_, v)| **v != 0.0);
            out.push_row(entries.map(|(j, v)| (j as u32, *v)));
        }
        out
    }

    /// Adds a row of (column, value), columns ascending; zeros are not stored, new columns widen
    /// the matrix.
    pub fn push_row(&mut self, entries: impl IntoIterator<Item = (u32, f64)>) {
        let stored = Arc::make_mut(&mut self.stored);
        for (column, value) in entries {
            self.cols = self.cols.max(column as usize + 1);
            if value != 0.0 {
                stored.columns.push(column);
                stored.values.push(value);
            }
        }
        stored.starts.push(stored.columns.len());
    }

    /// How many rows it has.
    pub fn rows(&self) -> usize {
        self.stored.starts.len() - 1
    }

    /// How many columns it has, filled or not.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Makes room for columns in which no row has an entry.
    pub fn widen(&mut self, cols: usize) {
        self.cols = self.cols.max(cols);
    }

    /// Entries that are not zero.
    pub fn entries(&self) -> usize {
        self.stored.values.len()
    }

    /// What they take, in bytes.
    pub fn bytes(&self) -> u64 {
        (self.stored.starts.len() * size_of::<usize>()
            + self.entries() * (size_of::<u32>() + size_of::<f64>())) as u64
    }

    /// Columns and values of row i.
    pub fn row(&self, i: usize) -> (&[u32], &[f64]) {
        let SparseEntries { starts, columns, values } = &*self.stored;
        let at = starts[i]..starts[i + 1];
        (&columns[at.clone()], &values[at])
    }

    /// Row starts, columns, values.
    pub fn parts(&self) -> (&[usize], &[u32], &[f64]) {
        (&self.stored.starts, &self.stored.columns, &self.stored.values)
    }

    /// The rows `index`, copied in that order.
    #[must_use]
    pub fn select_rows(&self, index: &[usize]) -> Self {
        let (mut starts, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
        for &i in index {
            let row = self.row(i);
            columns.extend_from_slice(row.0);
            values.extend_from_slice(row.1);
            starts.push(columns.len());
        }
        Self::of(self.cols, starts, columns, values)
    }

    /// The columns `index` (each once), copied in that order.
    #[must_use]
    pub fn select_cols(&self, index: &[usize]) -> Self {
        const GONE: u32 = u32::MAX;
        if index.len() == self.cols && index.iter().enumerate().all(|(to, &from)| to == from) {
            return self.clone();
        }
        let mut place = vec![GONE; self.cols];
        index.iter().enumerate().for_each(|(to, &from)| place[from] = to as u32);
        let ascending = index.is_sorted();
        let mut out = Self::new(index.len());
        let mut row: Vec<(u32, f64)> = Vec::new();
        for i in 0..self.rows() {
            let (columns, values) = self.row(i);
            let kept = columns.iter().map(|&c| place[c as usize]).zip(values.iter().copied());
            row.clear();
            row.extend(kept.filter(|(c, _)| *c != GONE));
            if !ascending {
                row.sort_unstable_by_key(|(c, _)| *c);
            }
            out.push_row(row.iter().copied());
        }
        out
    }

    /// With zeros written out.
    pub fn to_dense(&self) -> Matrix {
        let mut out = Matrix::zeros(self.rows(), self.cols);
        for i in 0..self.rows() {
            let (columns, values) = self.row(i);
            let row = out.row_mut(i);
            columns.iter().zip(values).for_each(|(&c, v)| row[c as usize] = *v);
        }
        out
    }
}

/// Σ over columns of `both(x, z)`, where a column that neither row fills counts nothing; `x` and
/// `z` as from [`Sparse::row`].
pub(crate) fn merged_sum(
    x: (&[u32], &[f64]),
    z: (&[u32], &[f64]),
    both: impl Fn(f64, f64) -> f64,
) -> f64 {
    let (mut i, mut j, mut sum) = (0, 0, 0.0);
    while i < x.0.len() && j < z.0.len() {
        match x.0[i].cmp(&z.0[j]) {
            std::cmp::Ordering::Less => {
                sum += both(x.1[i], 0.0);
                i += 1;
            }
            std::cmp::Ordering::Greater => {
                sum += both(0.0, z.1[j]);
                j += 1;
            }
            std::cmp::Ordering::Equal => {
                sum += both(x.1[i], z.1[j]);
                i += 1;
                j += 1;
            }
        }
    }
    sum += x.1[i..].iter().map(|&v| both(v, 0.0)).sum::<f64>();
    sum + z.1[j..].iter().map(|&v| both(0.0, v)).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Rng;

    fn random(rows: usize, cols: usize, seed: u64) -> Matrix {
        let mut rng = Rng::new(seed);
        let data =
            (0..rows * cols).map(|_| if rng.below(3) == 0 { rng.normal() } else { 0.0 }).collect();
        Matrix::new(rows, cols, data).unwrap()
    }

    #[test]
    fn selections_agree_with_the_dense_twin() {
        let dense = random(20, 7, 1);
        let sparse = Sparse::from_dense(&dense);
        assert_eq!(sparse.to_dense(), dense);
        assert_eq!(sparse.select_rows(&[3, 3, 0]).to_dense(), dense.select_rows(&[3, 3, 0]));
        for columns in [vec![1, 4, 6], vec![6, 0, 2], vec![]] {
            assert_eq!(
                sparse.select_cols(&columns).to_dense().data(),
                dense.select_cols(&columns).data()
            );
        }
        let (starts, columns, values) = sparse.parts();
        let again =
            Sparse::from_parts(7, starts.to_vec(), columns.to_vec(), values.to_vec()).unwrap();
        assert_eq!(again, sparse);
    }

    #[test]
    fn merged_sums_are_those_of_dense_rows() {
        let dense = random(2, 40, 2);
        let sparse = Sparse::from_dense(&dense);
        let square = |a: f64, b: f64| (a - b) * (a - b);
        let ours = merged_sum(sparse.row(0), sparse.row(1), square);
        let theirs: f64 = dense.row(0).iter().zip(dense.row(1)).map(|(a, b)| square(*a, *b)).sum();
        assert!((ours - theirs).abs() < 1e-12);
    }

    #[test]
    fn parts_that_do_not_fit_are_refused() {
        let make = |starts: &[usize], columns: &[u32], values: &[f64]| {
            Sparse::from_parts(3, starts.to_vec(), columns.to_vec(), values.to_vec()).is_ok()
        };
        assert!(make(&[0, 1, 3], &[2, 0, 1], &[1.0, 2.0, 3.0]));
        assert!(!make(&[0, 2, 3], &[2, 0, 1], &[1.0, 2.0, 3.0]));
        assert!(!make(&[0, 1, 3], &[3, 0, 1], &[1.0, 2.0, 3.0]));
        assert!(!make(&[0, 4, 3], &[2, 0, 1], &[1.0, 2.0, 3.0]));
        assert!(!make(&[0, 1], &[2, 0, 1], &[1.0, 2.0, 3.0]));
        assert!(!make(&[], &[], &[]));
        assert!(!make(&[0, 1], &[0], &[f64::NAN]));
    }
}
