//! Rows as one kernel sees them: its columns gathered, its sequences encoded.

use super::{
    Function, KernelSpec, Text,
    strings::{Encoded, Family},
};
use crate::{data::Rows, linalg::Matrix};

/// Kernels of sequences whose values come from one pass over pairs of rows: weighted degree kernels of all degrees.
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

    /// `out[t][j]` = k_t(x_i, x_j) for the first rows.
    pub fn row(&self, i: usize, out: &mut [&mut [f64]]) {
        self.0.row(i, out);
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
    Numbers(Matrix),
    Text(Encoded),
}

impl KernelSpec {
    /// `rows` as this kernel sees them.
    pub fn points(&self, rows: &Rows) -> Points {
        let body = match self.function {
            Function::Text(text) => {
                let sequences = self.columns.first().and_then(|&c| rows.sequence(c)).cloned().unwrap_or_default();
                Body::Text(text.encode(&sequences, &self.landmarks))
            }
            _ => Body::Numbers(rows.numbers().select_cols(&self.columns)),
        };
        Points { function: self.function, body }
    }
}

impl Points {
    /// Number of rows.
    pub fn len(&self) -> usize {
        match &self.body {
            Body::Numbers(x) => x.rows(),
            Body::Text(x) => x.len(),
        }
    }

    /// No rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The numbers, for kernels of numbers.
    pub fn numbers(&self) -> Option<&Matrix> {
        match &self.body {
            Body::Numbers(x) => Some(x),
            Body::Text(_) => None,
        }
    }

    /// A bound on the rank of the kernel matrix of these rows, where one is at hand; `enough` stands for all that is larger.
    pub fn rank_bound(&self, enough: usize) -> Option<usize> {
        match &self.body {
            Body::Numbers(_) => None,
            Body::Text(x) => Some(x.rank_bound(enough)),
        }
    }

    /// k(x_i, x_i) for every row.
    pub fn diagonal(&self) -> Vec<f64> {
        match &self.body {
            Body::Numbers(x) => self.function.diagonal(x),
            Body::Text(x) => x.diagonal(),
        }
    }

    /// `out[j]` = k(own row i, row j of `other`), for the first rows of `other`.
    pub fn row(&self, i: usize, other: &Self, out: &mut [f64]) {
        match (&self.body, &other.body) {
            (Body::Numbers(x), Body::Numbers(z)) => self.function.row(x.row(i), z, out),
            (Body::Text(x), Body::Text(z)) => x.row(i, z, out),
            // One kernel prepares both sides in one way.
            _ => out.fill(f64::NAN),
        }
    }

    /// All kernel values, own rows × rows of `other`.
    pub fn block(&self, other: &Self) -> Matrix {
        let mut out = Matrix::zeros(self.len(), other.len());
        (0..self.len()).for_each(|i| self.row(i, other, out.row_mut(i)));
        out
    }
}
