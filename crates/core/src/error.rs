//! The one error type. An error names the thing, what was expected, what came, and what to do about it.

use std::path::{Path, PathBuf};

/// Why a request could not be carried out. Not converging is not an error: see [`crate::trace::Status`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A parameter outside its range.
    #[error("parameter `{name}` must be {expected}, got {got}")]
    Param {
        /// The parameter, as the user writes it.
        name: String,
        /// The allowed values.
        expected: String,
        /// What came.
        got: String,
    },
    /// Two things that must agree in size do not.
    #[error("{what}: expected {expected}, got {got}")]
    Shape {
        /// What has the wrong shape.
        what: String,
        /// The shape that would do.
        expected: String,
        /// The shape that came.
        got: String,
    },
    /// The data cannot be used as they are.
    #[error("{what}: {problem}; {remedy}")]
    Data {
        /// The column, row, matrix or kernel at fault.
        what: String,
        /// What is wrong with it.
        problem: String,
        /// What the user can do.
        remedy: String,
    },
    /// A text that does not follow its grammar; the message points at the character.
    #[error("{expected}\n  {input}\n  {caret:>width$}", caret = "^", width = .at + 1)]
    Syntax {
        /// The whole text.
        input: String,
        /// Offending position, counted in characters from 0.
        at: usize,
        /// What was expected there, and what stands there.
        expected: String,
    },
    /// More memory is needed than the budget allows.
    #[error("{what} needs {need} of memory and the budget is {budget}; {remedy}")]
    Memory {
        /// What would have been allocated.
        what: String,
        /// Size needed, for people.
        need: String,
        /// Size allowed, for people.
        budget: String,
        /// What the user can do.
        remedy: String,
    },
    /// A file that cannot be read, written or trusted.
    #[error("{}: {problem}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What went wrong.
        problem: String,
    },
    /// Arithmetic broke down (a factorisation met a non-positive pivot, values overflowed).
    #[error("{what} failed numerically: {problem}")]
    Numerical {
        /// The computation.
        what: String,
        /// What was seen.
        problem: String,
    },
}

impl Error {
    pub(crate) fn memory(what: impl Into<String>, need: u64, budget: u64, remedy: &str) -> Self {
        let (need, budget) = (human_bytes(need), human_bytes(budget));
        Self::Memory { what: what.into(), need, budget, remedy: remedy.into() }
    }

    /// A [`Error::Param`].
    pub fn param(name: &str, expected: impl Into<String>, got: impl ToString) -> Self {
        Self::Param { name: name.into(), expected: expected.into(), got: got.to_string() }
    }

    /// A [`Error::Shape`].
    pub fn shape(what: impl Into<String>, expected: impl ToString, got: impl ToString) -> Self {
        Self::Shape { what: what.into(), expected: expected.to_string(), got: got.to_string() }
    }

    /// A [`Error::Data`].
    pub fn data(what: impl Into<String>, problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Data { what: what.into(), problem: problem.into(), remedy: remedy.into() }
    }

    /// A [`Error::File`].
    pub fn file(path: &Path, problem: impl ToString) -> Self {
        Self::File { path: path.to_path_buf(), problem: problem.to_string() }
    }

    /// A [`Error::Numerical`].
    pub fn numerical(what: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Numerical { what: what.into(), problem: problem.into() }
    }
}

/// 12.3 MiB.
pub fn human_bytes(bytes: u64) -> String {
    let mut value = bytes as f64;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if value < 1024.0 {
            return if unit == "B" { format!("{bytes} B") } else { format!("{value:.1} {unit}") };
        }
        value /= 1024.0;
    }
    format!("{value:.1} TiB")
}
