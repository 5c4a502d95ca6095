//! Base kernels: what they are, how they are written, how they are scaled.

use serde::{Deserialize, Serialize};

pub mod language;

mod directions;
mod features;
mod function;
mod normalize;
mod points;
mod strings;
mod waves;

pub use directions::Directions;
pub use features::Monomials;
pub use function::Pair;
pub use normalize::Normalizer;
pub use points::{Numeric, Points, Together};
pub use strings::{Alphabet, MAX_SHIFT, MAX_WORD, Scoring, Text};
pub use waves::{Frequencies, Law, Waves};

/// A kernel function of two feature vectors, or of two sequences.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Function {
    /// ⟨x, z⟩
    Linear,
    /// (⟨x, z⟩ + offset)^degree
    Poly {
        /// At least 1.
        degree: u32,
        /// Not negative.
        offset: f64,
    },
    /// exp(−‖x − z‖² / (2 width²))
    Rbf {
        /// Positive.
        width: f64,
    },
    /// exp(−‖x − z‖₁ / width)
    Laplace {
        /// Positive.
        width: f64,
    },
    /// Σ_j 2 x_j z_j / (x_j + z_j), of numbers that are not negative.
    Chi2Sum,
    /// exp(−gamma Σ_j (x_j − z_j)² / (x_j + z_j)), of numbers that are not negative.
    Chi2 {
        /// Positive.
        gamma: f64,
    },
    /// Σ_j min(x_j, z_j), of numbers that are not negative.
    Intersection,
    /// tanh(slope ⟨x, z⟩ + offset); positive semidefinite on some data only, and refused on others.
    Sigmoid {
        /// Positive.
        slope: f64,
        /// Any number.
        offset: f64,
    },
    /// exp(−distance(x, z) / width).
    Gauss {
        /// Of negative type, so that the kernel is positive semidefinite.
        distance: Distance,
        /// Positive.
        width: f64,
    },
    /// Of sequences.
    Text(Text),
    /// Values computed elsewhere: column j of the kernel is its value against training row j.
    Precomputed {
        /// What was to be done if the training matrix had negative eigenvalues.
        indefinite: Indefinite,
    },
}

/// What is done with a ready-made matrix that is not positive semidefinite.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Indefinite {
    /// It is an error.
    #[default]
    Refuse,
    /// The lowest eigenvalue is taken off the diagonal; values of new rows stay as they are.
    Shift,
    /// Negative eigenvalues become 0; values of new rows are projected likewise.
    Clip,
    /// Negative eigenvalues change their sign; values of new rows are reflected likewise.
    Flip,
}

/// How far two rows of numbers lie apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Distance {
    /// ‖x − z‖₁
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
            Self::Chi2Sum | Self::Chi2 { .. } | Self::Intersection | Self::Gauss { distance: Chi2 | Hellinger, .. }
        )
    }
}

/// One base kernel, fully resolved: what the model file stores.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KernelSpec {
    /// The function.
    pub function: Function,
    /// The feature columns it sees, by index into the data set; a kernel of sequences sees one.
    pub columns: Vec<usize>,
    /// What people read, e.g. `rbf(0.5) on x3`.
    pub name: String,
    /// Training sequences that a kernel of local alignment compares with; none for others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub landmarks: Vec<String>,
}

impl KernelSpec {
    /// A kernel without landmarks.
    pub fn new(function: Function, columns: Vec<usize>, name: String) -> Self {
        Self { function, columns, name, landmarks: Vec::new() }
    }

    /// Does it read sequences, and not numbers?
    pub fn reads_text(&self) -> bool {
        matches!(self.function, Function::Text(_))
    }

    /// Are its values ready-made?
    pub fn is_precomputed(&self) -> bool {
        matches!(self.function, Function::Precomputed { .. })
    }

    /// The kernel of the training rows `rows` alone: a ready-made one then has fewer columns.
    #[must_use]
    pub fn of_rows(&self, rows: &[usize]) -> Self {
        let mut out = self.clone();
        if self.is_precomputed() {
            out.columns = rows.iter().map(|&i| self.columns[i]).collect();
        }
        out
    }
}

/// How a base kernel is scaled; constants come from the training rows alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Normalize {
    /// K / tr K.
    Trace,
    /// K / c with c the variance in feature space: afterwards the variance is 1.
    #[default]
    Multiplicative,
    /// K_ij / √(K_ii K_jj).
    Spherical,
    /// H K H with H = I − 11ᵀ/n.
    Center,
    /// K as it is.
    None,
}
