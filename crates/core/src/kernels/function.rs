//! Kernel values. A kernel is a function of one number per pair of rows (their product or their distance), so that
//! one table of those numbers serves every width and degree over the same columns.

use super::Function;
use crate::linalg::{Matrix, dot, exp_scaled, l1_distance, sq_distance};

/// The number per pair of rows that a kernel function starts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Pair {
    /// ⟨x, z⟩
    Product,
    /// ‖x − z‖²
    SquaredDistance,
    /// ‖x − z‖₁
    L1Distance,
}

impl Pair {
    /// Its value for one pair.
    #[inline]
    pub fn of(self, x: &[f64], z: &[f64]) -> f64 {
        match self {
            Self::Product => dot(x, z),
            Self::SquaredDistance => sq_distance(x, z),
            Self::L1Distance => l1_distance(x, z),
        }
    }

    /// `out[i]` = the value for row `x` and row i of `z`.
    pub fn row(self, x: &[f64], z: &Matrix, out: &mut [f64]) {
        if let ([x], 1) = (x, z.cols()) {
            let pairs = out.iter_mut().zip(z.data());
            match self {
                Self::Product => pairs.for_each(|(o, z)| *o = x * z),
                Self::SquaredDistance => pairs.for_each(|(o, z)| *o = (x - z) * (x - z)),
                Self::L1Distance => pairs.for_each(|(o, z)| *o = (x - z).abs()),
            }
        } else {
            out.iter_mut().enumerate().for_each(|(i, o)| *o = self.of(x, z.row(i)));
        }
    }
}

impl Function {
    /// What it starts from; `None` for kernels of sequences and ready-made ones.
    pub fn pair(self) -> Option<Pair> {
        match self {
            Self::Linear | Self::Poly { .. } => Some(Pair::Product),
            Self::Rbf { .. } => Some(Pair::SquaredDistance),
            Self::Laplace { .. } => Some(Pair::L1Distance),
            Self::Text(_) | Self::Precomputed { .. } => None,
        }
    }

    /// Turns pair numbers into kernel values, in place.
    pub fn finish(self, values: &mut [f64]) {
        match self {
            Self::Linear | Self::Text(_) | Self::Precomputed { .. } => {}
            Self::Poly { degree, offset } => {
                values.iter_mut().for_each(|v| *v = (*v + offset).powi(degree.cast_signed()));
            }
            Self::Rbf { width } => exp_scaled(-0.5 / (width * width), values),
            Self::Laplace { width } => exp_scaled(-1.0 / width, values),
        }
    }

    /// k(x_i, x_i) for every row. A kernel of sequences has no value on numbers: NaN.
    pub fn diagonal(self, x: &Matrix) -> Vec<f64> {
        let own = |i: usize| self.pair().map_or(f64::NAN, |pair| pair.of(x.row(i), x.row(i)));
        let mut values: Vec<f64> = (0..x.rows()).map(own).collect();
        self.finish(&mut values);
        values
    }

    /// Kernel values of row `x` against the first rows of `z`.
    pub fn row(self, x: &[f64], z: &Matrix, out: &mut [f64]) {
        match self.pair() {
            Some(pair) => pair.row(x, z, out),
            None => out.fill(f64::NAN),
        }
        self.finish(out);
    }

    /// All kernel values, `x.rows() × z.rows()`.
    pub fn block(self, x: &Matrix, z: &Matrix) -> Matrix {
        let mut out = Matrix::zeros(x.rows(), z.rows());
        (0..x.rows()).for_each(|i| self.row(x.row(i), z, out.row_mut(i)));
        out
    }
}
