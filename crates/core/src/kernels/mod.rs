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
pub use function::{Distance, Function, Pair};
pub use normalize::Normalizer;
pub use points::{Numeric, Points, Together};
pub use strings::{Alphabet, MAX_SHIFT, MAX_WORD, Scoring, Text};
pub use waves::{Frequencies, Law, Waves};

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

/// One base kernel, fully resolved: what the model file stores.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KernelSpec {
    /// The function of two rows.
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
