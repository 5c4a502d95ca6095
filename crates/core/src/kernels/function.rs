//! Kernel values. A kernel is a function of one number per pair of rows (their product or their
//! distance), so that one table of those numbers serves every width and degree over the same
//! columns.

use serde::{Deserialize, Serialize};

use super::{Indefinite, Text};
use crate::linalg::{
    Matrix, dot, dots, exp_scaled, l1_distance, l1_distances, sq_distance, sq_distances,
};

/// A kernel function of two feature vectors, or of two sequences.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Function {
    /// The inner product ⟨x, z⟩.
    Linear,
    /// (⟨x, z⟩ + offset)^degree
    Poly {
        /// The degree, at least 1.
        degree: u32,
        /// The constant, not negative.
        offset: f64,
    },
    /// exp(−‖x − z‖² / (2 width²))
    Rbf {
        /// The width, a positive number in units of the distance.
        width: f64,
    },
    /// exp(−‖x − z‖₁ / width)
    Laplace {
        /// The width, a positive number in units of the distance.
        width: f64,
    },
    /// 1 / (1 + ‖x − z‖² / width²)
    Cauchy {
        /// The distance at which the value is one half, a positive number.
        width: f64,
    },
    /// Σ_j 2 x_j z_j / (x_j + z_j), of numbers that are not negative.
    Chi2Sum,
    /// exp(−gamma Σ_j (x_j − z_j)² / (x_j + z_j)), of numbers that are not negative.
    Chi2 {
        /// The factor, a positive number per unit of the distance.
        gamma: f64,
    },
    /// Σ_j min(x_j, z_j), of numbers that are not negative.
    Intersection,
    /// tanh(slope ⟨x, z⟩ + offset); positive semidefinite on some data only, and refused on others.
    Sigmoid {
        /// The slope, a positive number.
        slope: f64,
        /// The constant, any number.
        offset: f64,
    },
    /// exp(−distance(x, z) / width).
    Gauss {
        /// The distance; each is of negative type, so that the kernel is positive semidefinite.
        distance: Distance,
        /// The width, a positive number in units of the distance.
        width: f64,
    },
    /// A kernel of sequences or of labelled graphs.
    Text(Text),
    /// Values computed elsewhere: column j of the kernel is its value against training row j.
    Precomputed {
        /// What was to be done if the training matrix had negative eigenvalues.
        indefinite: Indefinite,
    },
}

/// How far two rows of numbers lie apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Distance {
    /// The ℓ₁ distance ‖x − z‖₁.
    L1,
    /// ‖x − z‖, not squared.
    L2,
    /// Σ_j (x_j − z_j)² / (x_j + z_j), of numbers that are not negative.
    Chi2,
    /// Σ_j (√x_j − √z_j)², of numbers that are not negative.
    Hellinger,
}

impl Distance {
    /// All of them with their words.
    pub const ALL: [(Self, &'static str); 4] =
        [(Self::L1, "l1"), (Self::L2, "l2"), (Self::Chi2, "chi2"), (Self::Hellinger, "hellinger")];

    /// Its word in the kernel language.
    pub fn word(self) -> &'static str {
        Self::ALL.iter().find(|(d, _)| *d == self).map_or("", |(_, word)| word)
    }
}

impl Function {
    /// Is it defined for numbers that are not negative, and for no others?
    pub fn needs_non_negative(self) -> bool {
        use Distance::{Chi2, Hellinger};
        matches!(
            self,
            Self::Chi2Sum
                | Self::Chi2 { .. }
                | Self::Intersection
                | Self::Gauss { distance: Chi2 | Hellinger, .. }
        )
    }
}

/// The number per pair of rows that a kernel function starts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Pair {
    /// The inner product ⟨x, z⟩.
    Product,
    /// The squared Euclidean distance ‖x − z‖².
    SquaredDistance,
    /// The ℓ₁ distance ‖x − z‖₁.
    L1Distance,
    /// Σ (x − z)² / (x + z)
    Chi2Distance,
    /// Σ (√x − √z)²
    HellingerDistance,
    /// Σ 2 x z / (x + z)
    HarmonicSum,
    /// The sum of the smaller numbers, Σ min(x, z).
    Minimum,
}

impl Pair {
    /// The pair number of two rows.
    #[inline]
    pub fn of(self, x: &[f64], z: &[f64]) -> f64 {
        match self {
            Self::Product => dot(x, z),
            Self::SquaredDistance => sq_distance(x, z),
            Self::L1Distance => l1_distance(x, z),
            _ => x.iter().zip(z).map(|(&x, &z)| self.term(x, z)).sum(),
        }
    }

    /// What one column adds to it; a column that is 0 in both rows adds nothing.
    #[inline]
    pub(super) fn term(self, x: f64, z: f64) -> f64 {
        match self {
            Self::Product => x * z,
            Self::SquaredDistance => (x - z) * (x - z),
            Self::L1Distance => (x - z).abs(),
            Self::Chi2Distance => over((x - z) * (x - z), x + z),
            Self::HellingerDistance => (x.sqrt() - z.sqrt()).powi(2),
            Self::HarmonicSum => over(2.0 * x * z, x + z),
            Self::Minimum => x.min(z),
        }
    }

    /// `out[i]` = the value for row `x` and row i of `z`.
    pub fn row(self, x: &[f64], z: &Matrix, out: &mut [f64]) {
        let single = if let ([x], 1) = (x, z.cols()) { Some(*x) } else { None };
        let pairs = out.iter_mut().zip(z.data());
        match (self, single) {
            (Self::Product, Some(x)) => pairs.for_each(|(o, z)| *o = x * z),
            (Self::SquaredDistance, Some(x)) => pairs.for_each(|(o, z)| *o = (x - z) * (x - z)),
            (Self::L1Distance, Some(x)) => pairs.for_each(|(o, z)| *o = (x - z).abs()),
            (Self::Product, None) if !x.is_empty() => dots(x, z.data(), out),
            (Self::SquaredDistance, None) if !x.is_empty() => sq_distances(x, z.data(), out),
            (Self::L1Distance, None) if !x.is_empty() => l1_distances(x, z.data(), out),
            _ => out.iter_mut().enumerate().for_each(|(i, o)| *o = self.of(x, z.row(i))),
        }
    }
}

/// 0/0 is 0: where both rows have nothing, nothing is to be compared.
fn over(above: f64, below: f64) -> f64 {
    if below == 0.0 { 0.0 } else { above / below }
}

/// Distances come from pairs, all but the root of the squared one.
impl Distance {
    pub(super) fn pair(self) -> Pair {
        match self {
            Self::L1 => Pair::L1Distance,
            Self::L2 => Pair::SquaredDistance,
            Self::Chi2 => Pair::Chi2Distance,
            Self::Hellinger => Pair::HellingerDistance,
        }
    }

    /// The distance of two rows.
    pub fn of(self, x: &[f64], z: &[f64]) -> f64 {
        let value = self.pair().of(x, z);
        if self == Self::L2 { value.sqrt() } else { value }
    }
}

impl Function {
    /// What it starts from; `None` for kernels of sequences and ready-made ones.
    pub fn pair(self) -> Option<Pair> {
        match self {
            Self::Linear | Self::Poly { .. } | Self::Sigmoid { .. } => Some(Pair::Product),
            Self::Chi2Sum => Some(Pair::HarmonicSum),
            Self::Chi2 { .. } => Some(Pair::Chi2Distance),
            Self::Intersection => Some(Pair::Minimum),
            Self::Gauss { distance, .. } => Some(distance.pair()),
            Self::Rbf { .. } | Self::Cauchy { .. } => Some(Pair::SquaredDistance),
            Self::Laplace { .. } => Some(Pair::L1Distance),
            Self::Text(_) | Self::Precomputed { .. } => None,
        }
    }

    /// Is it ⟨x, z⟩ plus a constant?
    pub fn is_affine(self) -> bool {
        matches!(self, Self::Linear | Self::Poly { degree: 1, .. })
    }

    /// Turns pair numbers into kernel values, in place.
    pub fn finish(self, values: &mut [f64]) {
        match self {
            Self::Linear
            | Self::Chi2Sum
            | Self::Intersection
            | Self::Text(_)
            | Self::Precomputed { .. } => {}
            Self::Chi2 { gamma } => exp_scaled(-gamma, values),
            Self::Sigmoid { slope, offset } => {
                values.iter_mut().for_each(|v| *v = (slope * *v + offset).tanh());
            }
            Self::Gauss { distance, width } => {
                if distance == Distance::L2 {
                    values.iter_mut().for_each(|v| *v = v.sqrt());
                }
                exp_scaled(-1.0 / width, values);
            }
            Self::Poly { degree, offset } => {
                values.iter_mut().for_each(|v| *v = (*v + offset).powi(degree.cast_signed()));
            }
            Self::Rbf { width } => exp_scaled(-0.5 / (width * width), values),
            Self::Laplace { width } => exp_scaled(-1.0 / width, values),
            Self::Cauchy { width } => {
                values.iter_mut().for_each(|v| *v = 1.0 / (1.0 + *v / (width * width)));
            }
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
