//! The one error type. An error names the thing, what was expected, what came, and what to do about
//! it.

use std::{
    fmt,
    path::{Path, PathBuf},
};

/// Why a request could not be carried out. Not converging is not an error: see
/// [`crate::trace::Status`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A parameter outside its range.
    #[error("parameter `{name}` must be {expected}, got {got}")]
    Param {
        /// The parameter, as the user writes it.
        name: String,
        /// The values that are allowed.
        expected: String,
        /// The value that came.
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
        /// What is wrong with it, and in which rows.
        problem: Told,
        /// What the user can do.
        remedy: String,
    },
    /// A text that does not follow its grammar; the message points at the character.
    #[error("{expected}\n  {input}\n  {caret:>width$}", caret = "^", width = .at + 1)]
    Syntax {
        /// The whole text that was read.
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
        /// The path of the file.
        path: PathBuf,
        /// What went wrong, in words.
        problem: String,
    },
    /// Arithmetic broke down (a factorisation met a non-positive pivot, values overflowed).
    #[error("{what} failed numerically: {problem}")]
    Numerical {
        /// The computation that broke down.
        what: String,
        /// What was seen, in words.
        problem: String,
    },
}

/// A text in which rows are kept as numbers until it is shown: the program counts rows from 1,
/// Python from 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told(Vec<Piece>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    /// A row, counted from 0, and the line of a file that it begins at, counted from 1.
    Row(usize, Option<usize>),
}

impl<T: Into<String>> From<T> for Told {
    fn from(text: T) -> Self {
        Self(vec![Piece::Text(text.into())])
    }
}

impl Told {
    /// Makes the text `row I` and then `rest`; `row` counts from 0.
    pub fn row(row: usize, rest: impl fmt::Display) -> Self {
        Self::from("row ").and_row(row).and(format!(" {rest}"))
    }

    /// Appends `text`.
    #[must_use]
    pub fn and(mut self, text: impl Into<String>) -> Self {
        self.0.push(Piece::Text(text.into()));
        self
    }

    /// Appends the number of a row, given from 0.
    #[must_use]
    pub fn and_row(mut self, row: usize) -> Self {
        self.0.push(Piece::Row(row, None));
        self
    }

    /// The text with rows counted from `first`.
    pub fn counting_from(&self, first: usize) -> String {
        let piece = |piece: &Piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Row(row, None) => (row + first).to_string(),
            Piece::Row(row, Some(line)) => format!("{} (line {line})", row + first),
        };
        self.0.iter().map(piece).collect()
    }
}

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.counting_from(1))
    }
}

impl Error {
    /// The message with rows counted from `first`; `to_string` counts from 1.
    pub fn counting_rows_from(&self, first: usize) -> String {
        match self {
            Self::Data { what, problem, remedy } => {
                format!("{what}: {}; {remedy}", problem.counting_from(first))
            }
            other => other.to_string(),
        }
    }

    /// Renumbers the rows that the error names, which are `rows` of a larger whole.
    #[must_use]
    pub fn in_rows(self, rows: &[usize]) -> Self {
        self.with_rows(|row| (rows.get(row).copied().unwrap_or(row), None))
    }

    /// Replaces each row (from 0) by its number in the data and the line of the file that it begins
    /// at.
    #[must_use]
    pub(crate) fn with_rows(mut self, place: impl Fn(usize) -> (usize, Option<usize>)) -> Self {
        if let Self::Data { problem, .. } = &mut self {
            for piece in &mut problem.0 {
                if let Piece::Row(row, None) = *piece {
                    let (row, line) = place(row);
                    *piece = Piece::Row(row, line);
                }
            }
        }
        self
    }

    pub(crate) fn memory(what: impl Into<String>, need: u64, budget: u64, remedy: &str) -> Self {
        let (need, budget) = (human_bytes(need), human_bytes(budget));
        Self::Memory { what: what.into(), need, budget, remedy: remedy.into() }
    }

    /// Makes an [`Error::Param`].
    pub fn param(name: &str, expected: impl Into<String>, got: impl ToString) -> Self {
        Self::Param { name: name.into(), expected: expected.into(), got: got.to_string() }
    }

    /// Makes an [`Error::Shape`].
    pub fn shape(what: impl Into<String>, expected: impl ToString, got: impl ToString) -> Self {
        Self::Shape { what: what.into(), expected: expected.to_string(), got: got.to_string() }
    }

    /// Makes an [`Error::Data`].
    pub fn data(
        what: impl Into<String>,
        problem: impl Into<Told>,
        remedy: impl Into<String>,
    ) -> Self {
        Self::Data { what: what.into(), problem: problem.into(), remedy: remedy.into() }
    }

    /// Makes an [`Error::File`].
    pub fn file(path: &Path, problem: impl ToString) -> Self {
        Self::File { path: path.to_path_buf(), problem: problem.to_string() }
    }

    /// Makes an [`Error::Numerical`].
    pub fn numerical(what: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Numerical { what: what.into(), problem: problem.into() }
    }
}

/// Writes a number of bytes for people, e.g. `12.3 MiB`.
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
