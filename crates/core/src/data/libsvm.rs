//! LIBSVM and SVMlight text: `label column:value column:value … # comment`, columns counted from 1
//! and ascending.

use std::{io::BufRead, path::Path};

use super::{
    Sparse,
    read::{Format, ReadTable},
    source::{self, Lines, Span, shown},
    table::{Column, Table},
};
use crate::{Error, Result};

/// Name of the column that holds the labels.
pub const LABEL: &str = "label";
/// Columns that a file may have whatever it holds.
const WIDE: usize = 1 << 20;
/// Columns that a file may have for each of its entries, where it is wider: one wrong column number
/// cannot ask for gigabytes.
const WIDE_PER_ENTRY: usize = 16;

pub(super) const FORMAT: Format = Format {
    name: Some("LIBSVM"),
    extensions: &["svm", "libsvm", "svmlight"],
    detect: looks_like_libsvm,
    reader: ReadTable::Rows(read),
};

/// Does the first line look like `label 3:0.5 7:1`?
fn looks_like_libsvm(start: &[u8]) -> bool {
    let line = start.split(|b| *b == b'\n').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    let mut words = line.split_whitespace().skip(1).take(8).peekable();
    // The last word may be cut.
    words.peek().is_some()
        && words
            .all(|w| w.split_once(':').is_some_and(|(c, _)| c == "qid" || c.parse::<u32>().is_ok()))
}

/// Reads a file, or some rows of it: their entries that are not zero, and nothing else, are held,
/// in `memory` bytes at most.
pub fn read(path: &Path, rows: Option<Span>, memory: u64) -> Result<Table> {
    parse_within(source::open(path)?, rows, memory, path)
}

/// Reads text; `source` is what errors call it. Nothing is read beyond the last of `rows`.
pub fn parse(input: impl BufRead, rows: Option<Span>, source: &Path) -> Result<Table> {
    parse_within(input, rows, u64::MAX, source)
}

fn parse_within(
    input: impl BufRead,
    rows: Option<Span>,
    memory: u64,
    source: &Path,
) -> Result<Table> {
    let mut lines = Lines::new(input, source);
    let mut features = Sparse::new(0);
    let mut labels = Labels::default();
    let mut row: Vec<(u32, f64)> = Vec::new();
    let mut at = 0;
    // Where the last column was first seen.
    let mut widest = 1;
    while rows.is_none_or(|r| at < r.last) {
        let wanted = rows.is_none_or(|r| r.contains(at));
        let parsed = match lines.next()? {
            None => break,
            Some(line) => entries(line, &mut row).and_then(|content| match content {
                Content::Nothing => Ok(false),
                Content::Row(_) if !wanted => Ok(true),
                Content::Row(label) => labels
                    .push(label, features.rows())
                    .map(|()| true)
                    .map_err(|e| (indent(line) + 1, e)),
            }),
        };
        if !parsed.map_err(|(column, problem)| lines.error(column, problem))? {
            continue;
        }
        at += 1;
        if row.last().is_some_and(|(c, _)| *c as usize >= features.cols()) {
            widest = lines.number;
        }
        if wanted {
            features.push_row(row.iter().copied());
            if features.bytes() > memory {
                let what = format!("{}: the part up to row {}", source.display(), features.rows());
                let remedy = "read some of the rows (`--rows 1-100000`, or `--rows 1-9000000:100` for every hundredth) or raise \
                              the budget (`--memory`)";
                return Err(Error::memory(what, features.bytes(), memory, remedy));
            }
        } else {
            // Columns count whether or not their row is used.
            features.widen(row.last().map_or(0, |(c, _)| *c as usize + 1));
        }
    }
    if let Some(r) = rows.filter(|r| r.first > at) {
        return Err(Error::param(
            "rows",
            format!("within 1-{at}"),
            format!("{}-{}", r.first, r.last),
        ));
    }
    if features.rows() == 0 {
        return Err(Error::file(source, "the file holds no rows"));
    }
    if features.cols() == 0 {
        return Err(Error::file(
            source,
            "no row has an entry `column:value`; is this a LIBSVM file?",
        ));
    }
    if features.cols() > WIDE.max(WIDE_PER_ENTRY * features.entries()) {
        let (columns, entries) = (features.cols(), features.entries());
        let problem = format!(
            "line {widest}: column {columns} is far beyond the {entries} entries; renumber"
        );
        return Err(Error::file(source, problem));
    }
    let names = (1..=features.cols()).map(|j| format!("x{j}")).collect();
    let places = rows.map(|r| (0..at).filter(|&i| r.contains(i)).collect());
    let mut table = Table::from_sparse(
        labels.column().map(|c| (LABEL.to_string(), c)),
        names,
        features,
        source,
    )?;
    table.extra.places = places;
    Ok(table)
}

/// Bytes of white space before the text.
fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

enum Content<'a> {
    /// A blank line or a comment.
    Nothing,
    /// The label, where the line has one.
    Row(Option<&'a str>),
}

/// Splits a line; an error is (column, problem).
fn entries<'a>(
    line: &'a str,
    row: &mut Vec<(u32, f64)>,
) -> std::result::Result<Content<'a>, (usize, String)> {
    row.clear();
    let line = line.split('#').next().unwrap_or_default();
    let mut label = None;
    let mut first = true;
    let mut rest = line;
    loop {
        rest = rest.trim_start();
        if rest.is_empty() {
            return Ok(if first { Content::Nothing } else { Content::Row(label) });
        }
        let at = line.len() - rest.len() + 1;
        let end = rest.find(|c: char| c.is_whitespace()).unwrap_or(rest.len());
        let token = &rest[..end];
        rest = &rest[end..];
        match token.split_once(':') {
            None if first => label = Some(token),
            None => return Err((at, format!("expected column:value, found {}", shown(token)))),
            Some(("qid", _)) => {}
            Some((column, value)) => {
                let column: u32 = match column.parse() {
                    Ok(0) => return Err((at, "columns count from 1, found 0".into())),
                    Ok(c) if c < u32::MAX => c,
                    _ => {
                        return Err((
                            at,
                            format!("expected a column number, found {}", shown(column)),
                        ));
                    }
                };
                let number = value.parse::<f64>().ok().filter(|v| v.is_finite());
                let Some(value) = number else {
                    return Err((
                        at + token.len() - value.len(),
                        format!("expected a finite number, found {}", shown(value)),
                    ));
                };
                if row.last().is_some_and(|(last, _)| *last >= column - 1) {
                    return Err((
                        at,
                        format!(
                            "columns must ascend in a row, and {column} comes after {}",
                            row[row.len() - 1].0 + 1
                        ),
                    ));
                }
                row.push((column - 1, value));
            }
        }
        first = false;
    }
}

/// Labels as numbers while all are, as texts afterwards.
#[derive(Default)]
struct Labels {
    numbers: Vec<f64>,
    texts: Option<Vec<String>>,
    absent: bool,
}

impl Labels {
    fn push(&mut self, label: Option<&str>, so_far: usize) -> std::result::Result<(), String> {
        let Some(label) = label else {
            self.absent = true;
            return if so_far == 0 || self.count() == 0 {
                Ok(())
            } else {
                Err("this row has no label, rows before it have one".into())
            };
        };
        if self.absent {
            return Err("this row has a label, rows before it have none".into());
        }
        match (&mut self.texts, label.parse::<f64>()) {
            (Some(texts), _) => texts.push(label.to_string()),
            (None, Ok(number)) => self.numbers.push(number),
            (None, Err(_)) => {
                let mut texts: Vec<String> =
                    std::mem::take(&mut self.numbers).iter().map(ToString::to_string).collect();
                texts.push(label.to_string());
                self.texts = Some(texts);
            }
        }
        Ok(())
    }

    fn count(&self) -> usize {
        self.texts.as_ref().map_or(self.numbers.len(), Vec::len)
    }

    fn column(self) -> Option<Column> {
        match self.texts {
            _ if self.absent => None,
            Some(texts) => Some(Column::Text(texts)),
            None => Some(Column::Numeric(self.numbers)),
        }
    }
}
