//! Rows as one kernel sees them: its columns gathered, its sequences encoded.

use std::borrow::Cow;

use super::{
    Distance, Function, KernelSpec, Pair, Text,
    strings::{Encoded, Family},
};
use crate::{
    data::{Rows, Sparse, merged_sum},
    linalg::Matrix,
};

/// Kernels of sequences whose values come from one pass over pairs of rows: weighted degree kernels
/// of all degrees.
pub struct Together(Family);

impl Together {
    /// `None` unless these kernels go together.
    pub fn new(kernels: &[&KernelSpec], rows: &Rows) -> Option<Self> {
        let texts: Option<Vec<Text>> = kernels
            .iter()
            .map(|k| match k.function {
                Function::Text(text) if k.columns == kernels[0].columns => Some(text),
                _ => None,
            })
            .collect();
        Family::new(&texts?, rows.sequence(*kernels.first()?.columns.first()?)?).map(Self)
    }

    /// `out[t][j]` = k_t(own row i, row j of `other`) for its first rows.
    pub fn row(&self, i: usize, other: &Self, out: &mut [&mut [f64]]) {
        self.0.row(i, &other.0, out);
    }
}

/// Rows prepared for one kernel. Both sides of a kernel value are prepared by the same kernel.
#[derive(Debug, Clone)]
pub struct Points {
    function: Function,
    body: Body,
}

#[derive(Debug, Clone)]
enum Body {
    Numbers(Numeric),
    Text(Encoded),
}

/// Numbers, of which the last columns may be stored sparsely. Products and distances of two rows
/// are sums over columns, so that both parts add up.
#[derive(Debug, Clone)]
pub struct Numeric {
    dense: Matrix,
    sparse: Option<Sparse>,
}

impl Numeric {
    /// The numeric columns `columns`, ascending.
    pub fn of(rows: &Rows, columns: &[usize]) -> Self {
        debug_assert!(columns.is_sorted_by(|a, b| a < b));
        if columns.len() == rows.text_start() {
            return Self { dense: rows.numbers().clone(), sparse: rows.sparse().cloned() };
        }
        if rows.sparse().is_none() {
            return Self { dense: rows.numbers().select_cols(columns), sparse: None };
        }
        let part = rows.select_cols(columns);
        Self { dense: part.numbers().clone(), sparse: part.sparse().cloned() }
    }

    /// The rows `index`, in that order.
    #[must_use]
    pub fn select_rows(&self, index: &[usize]) -> Self {
        Self {
            dense: self.dense.select_rows(index),
            sparse: self.sparse.as_ref().map(|s| s.select_rows(index)),
        }
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.dense.rows()
    }

    /// How many columns there are, dense and sparse.
    pub fn cols(&self) -> usize {
        self.dense.cols() + self.sparse.as_ref().map_or(0, Sparse::cols)
    }

    /// The columns, where none of them is stored sparsely.
    pub fn dense(&self) -> Option<&Matrix> {
        self.sparse.is_none().then_some(&self.dense)
    }

    /// The pair's value for row i and row j of `other`.
    pub fn pair(&self, pair: Pair, i: usize, other: &Self, j: usize) -> f64 {
        let dense = pair.of(self.dense.row(i), other.dense.row(j));
        dense + self.sparse_pair(pair, i, other, j)
    }

    fn sparse_pair(&self, pair: Pair, i: usize, other: &Self, j: usize) -> f64 {
        let (Some(x), Some(z)) = (&self.sparse, &other.sparse) else { return 0.0 };
        merged_sum(x.row(i), z.row(j), |a, b| pair.term(a, b))
    }

    /// How far rows i and j lie apart.
    pub fn distance(&self, distance: Distance, i: usize, j: usize) -> f64 {
        let value = self.pair(distance.pair(), i, self, j);
        if distance == Distance::L2 { value.sqrt() } else { value }
    }

    /// `out[j]` = the pair's value for row i and row j of `other`, for its first rows.
    pub fn pair_row(&self, pair: Pair, i: usize, other: &Self, out: &mut [f64]) {
        if self.dense.cols() > 0 || self.sparse.is_none() {
            pair.row(self.dense.row(i), &other.dense, out);
        } else {
            out.fill(0.0);
        }
        if self.sparse.is_some() {
            out.iter_mut().enumerate().for_each(|(j, o)| *o += self.sparse_pair(pair, i, other, j));
        }
    }

    /// All columns, zeros written out.
    pub fn to_dense(&self) -> Cow<'_, Matrix> {
        let Some(sparse) = &self.sparse else { return Cow::Borrowed(&self.dense) };
        let (written, d) = (sparse.to_dense(), self.dense.cols());
        let mut out = Matrix::zeros(self.rows(), self.cols());
        for i in 0..self.rows() {
            out.row_mut(i)[..d].copy_from_slice(self.dense.row(i));
            out.row_mut(i)[d..].copy_from_slice(written.row(i));
        }
        Cow::Owned(out)
    }
}

impl KernelSpec {
    /// Are its values inner products of features at hand, up to a constant?
    pub fn has_features(&self) -> bool {
        match self.function {
            Function::Text(text) => text.family().is_none(),
            function => function.is_affine(),
        }
    }

    /// Do both start from the same numbers per pair of rows, or do their values come from one pass?
    pub fn starts_like(&self, other: &Self) -> bool {
        self.columns == other.columns
            && match (self.function, other.function) {
                (Function::Text(own), Function::Text(other)) => {
                    own.family().is_some() && own.family() == other.family()
                }
                (own, other) => own.pair().is_some() && own.pair() == other.pair(),
            }
    }

    /// `rows` as this kernel sees them.
    pub fn points(&self, rows: &Rows) -> Points {
        self.prepared(rows, None)
    }

    /// The rows `index` of `rows` as this kernel sees them.
    pub fn points_at(&self, rows: &Rows, index: &[usize]) -> Points {
        self.prepared(rows, Some(index))
    }

    fn prepared(&self, rows: &Rows, index: Option<&[usize]>) -> Points {
        let body = if let Function::Text(text) = self.function {
            let all = self
                .columns
                .first()
                .and_then(|&c| rows.sequence(c))
                .map_or_else(Cow::default, Cow::Borrowed);
            let sequences =
                index.map_or_else(|| Cow::Borrowed(&*all), |index| Cow::Owned(all.select(index)));
            Body::Text(text.encode(&sequences, &self.landmarks))
        } else {
            let all = Numeric::of(rows, &self.columns);
            Body::Numbers(match index {
                Some(index) => all.select_rows(index),
                None => all,
            })
        };
        Points { function: self.function, body }
    }
}

impl Points {
    /// How many rows were prepared.
    pub fn len(&self) -> usize {
        match &self.body {
            Body::Numbers(x) => x.rows(),
            Body::Text(x) => x.len(),
        }
    }

    /// Were no rows prepared?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The numbers, for kernels of numbers.
    pub fn numbers(&self) -> Option<Cow<'_, Matrix>> {
        match &self.body {
            Body::Numbers(x) => Some(x.to_dense()),
            Body::Text(_) => None,
        }
    }

    /// A bound on the rank of the kernel matrix of these rows, where one is at hand; `enough`
    /// stands for all that is larger.
    pub fn rank_bound(&self, enough: usize) -> Option<usize> {
        match &self.body {
            Body::Numbers(_) => None,
            Body::Text(x) => Some(x.rank_bound(enough)),
        }
    }

    /// k(x_i, x_i) for every row.
    pub fn diagonal(&self) -> Vec<f64> {
        self.diagonal_of(self.function)
    }

    /// k(x, x) of every row for another kernel that starts from the same pair numbers.
    pub fn diagonal_of(&self, function: Function) -> Vec<f64> {
        let mut values = match &self.body {
            Body::Numbers(x) => {
                let own =
                    |i: usize| self.function.pair().map_or(f64::NAN, |pair| x.pair(pair, i, x, i));
                (0..x.rows()).map(own).collect()
            }
            Body::Text(x) => x.diagonal(),
        };
        function.finish(&mut values);
        values
    }

    /// `out[j]` = k(own row i, row j of `other`), for the first rows of `other`.
    pub fn row(&self, i: usize, other: &Self, out: &mut [f64]) {
        self.unfinished_row(i, other, out);
        self.function.finish(out);
    }

    /// What [`Function::finish`] turns into [`Points::row`].
    pub fn unfinished_row(&self, i: usize, other: &Self, out: &mut [f64]) {
        match (&self.body, &other.body, self.function.pair()) {
            (Body::Numbers(x), Body::Numbers(z), Some(pair)) => x.pair_row(pair, i, z, out),
            (Body::Text(x), Body::Text(z), _) => x.row(i, z, out),
            // One kernel prepares both sides in one way.
            _ => out.fill(f64::NAN),
        }
    }

    /// How many (dense, sparse) features there are, where kernel values are inner products of
    /// features at hand, up to a constant.
    pub fn features(&self) -> Option<(usize, usize)> {
        match &self.body {
            Body::Numbers(x) => self
                .function
                .is_affine()
                .then(|| (x.dense.cols(), x.sparse.as_ref().map_or(0, Sparse::cols))),
            Body::Text(Encoded::Scores(scores)) => Some((scores.cols(), 0)),
            Body::Text(Encoded::Counts(counts)) => Some((0, counts.features())),
            Body::Text(Encoded::Planes(..)) => None,
        }
    }

    /// What sparse features are called: words, and nothing for numbers.
    pub(super) fn keys(&self) -> &[u128] {
        match &self.body {
            Body::Text(Encoded::Counts(counts)) => counts.keys(),
            _ => &[],
        }
    }

    /// The constant in k(x, z) = ⟨φ(x), φ(z)⟩ + c.
    pub fn offset(&self) -> f64 {
        if let Function::Poly { offset, .. } = self.function { offset } else { 0.0 }
    }

    /// Dense features of row i.
    pub(super) fn dense_features(&self, i: usize) -> &[f64] {
        match &self.body {
            Body::Numbers(x) => x.dense.row(i),
            Body::Text(Encoded::Scores(scores)) => scores.row(i),
            Body::Text(_) => &[],
        }
    }

    /// Sparse features of row i and their values, words by their places among `keys` (ascending);
    /// what has no place there is left out.
    pub(super) fn each_sparse_feature(
        &self,
        i: usize,
        keys: &[u128],
        mut visit: impl FnMut(usize, f64),
    ) {
        match &self.body {
            Body::Numbers(Numeric { sparse: Some(x), .. }) => {
                let (columns, values) = x.row(i);
                columns.iter().zip(values).for_each(|(&c, &v)| visit(c as usize, v));
            }
            Body::Text(Encoded::Counts(counts)) => counts.each_in(i, keys, visit),
            _ => {}
        }
    }

    /// All kernel values, own rows × rows of `other`.
    pub fn block(&self, other: &Self) -> Matrix {
        let mut out = Matrix::zeros(self.len(), other.len());
        (0..self.len()).for_each(|i| self.row(i, other, out.row_mut(i)));
        out
    }
}
