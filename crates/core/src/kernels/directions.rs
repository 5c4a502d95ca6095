//! Kernels that are inner products of features at hand, k(x, z) = ⟨φ(x), φ(z)⟩ + c: a combination
//! of kernel values is one direction in feature space and a constant, however many rows it was made
//! of.

use super::Points;
use crate::linalg::{Matrix, axpy, dot};

/// Functions f_k(x) = ⟨w_k, φ(x)⟩ + b_k.
#[derive(Debug, Clone)]
pub struct Directions {
    constants: Vec<f64>,
    /// Coefficients of features that every row fills: functions × features.
    dense: Matrix,
    /// Coefficients of features of which a row fills few: features × functions.
    sparse: Matrix,
    /// What sparse features are called, where they have names: words.
    keys: Vec<u128>,
}

impl Directions {
    /// `functions` functions that are 0 everywhere, of (dense, sparse) features.
    pub fn new(functions: usize, (dense, sparse): (usize, usize)) -> Self {
        let (dense, sparse) = (Matrix::zeros(functions, dense), Matrix::zeros(sparse, functions));
        Self { constants: vec![0.0; functions], dense, sparse, keys: Vec::new() }
    }

    /// Zero coefficients for the features that `rows` have; `None` where their kernel has none at
    /// hand.
    pub fn like(rows: &Points, functions: usize) -> Option<Self> {
        let sizes = rows.features()?;
        Some(Self { keys: rows.keys().to_vec(), ..Self::new(functions, sizes) })
    }

    /// f_function += weight · (feature), features being counted through: dense ones first.
    pub fn add_feature(&mut self, function: usize, feature: usize, weight: f64) {
        match feature.checked_sub(self.dense.cols()) {
            None => self.dense[(function, feature)] += weight,
            Some(at) => self.sparse[(at, function)] += weight,
        }
    }

    /// Adds a constant to the values of one function.
    pub fn add_constant(&mut self, function: usize, constant: f64) {
        self.constants[function] += constant;
    }

    /// f_function += Σ_k coef_k · k(row at_k of `rows`, ·), whose feature j is called `name(j)`
    /// here.
    pub fn add(
        &mut self,
        function: usize,
        (rows, at): (&Points, &[usize]),
        coef: &[f64],
        name: impl Fn(usize) -> usize,
    ) {
        for (&i, c) in at.iter().zip(coef) {
            let dense = rows.dense_features(i);
            dense.iter().enumerate().for_each(|(j, v)| self.add_feature(function, name(j), c * v));
            rows.each_sparse_feature(i, rows.keys(), |j, v| {
                self.add_feature(function, name(dense.len() + j), c * v);
            });
            self.add_constant(function, c * rows.offset());
        }
    }

    /// `out[k]` = f_k(row i of `x`), which is prepared as the rows were that the functions were
    /// made of.
    pub fn values(&self, x: &Points, i: usize, out: &mut [f64]) {
        let features = x.dense_features(i);
        for (k, out) in out.iter_mut().enumerate() {
            *out = self.constants[k] + dot(self.dense.row(k), features);
        }
        match out {
            [out] => x.each_sparse_feature(i, &self.keys, |j, v| *out += v * self.sparse.data()[j]),
            _ => x.each_sparse_feature(i, &self.keys, |j, v| axpy(v, self.sparse.row(j), out)),
        }
    }
}
