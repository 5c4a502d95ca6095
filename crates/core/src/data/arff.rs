//! ARFF: `@attribute name kind` lines, then rows of comma-separated values, dense or sparse
//! (`{2 0.5, 7 yes}`).

use std::{io::BufRead, path::Path};

use super::{
    read::{Format, ReadTable},
    source::{self, Lines, shown},
    table::{Column, Table},
};
use crate::{Error, Result};

pub(super) const FORMAT: Format = Format {
    name: Some("arff"),
    extensions: &["arff"],
    detect: |_| false,
    reader: ReadTable::Whole(read),
};

/// Reads a file: numeric attributes become numeric columns, nominal, string and date ones text; `?`
/// is missing.
pub fn read(path: &Path) -> Result<Table> {
    parse(source::open(path)?, path)
}

struct Attribute {
    name: String,
    /// The values of a nominal attribute; `None` for a number or a text.
    nominal: Option<Vec<String>>,
    numeric: bool,
}

/// A part of a line, or the column of the mistake, counted from 1, and what is wrong there.
type Parsed<T> = std::result::Result<T, (usize, String)>;

/// Where a value stands in its line, from 1, and what it says; `None` for a missing one.
type ArffField = (usize, Option<String>);

/// Reads text; `source` is what errors call it.
pub fn parse(input: impl BufRead, source: &Path) -> Result<Table> {
    let mut lines = Lines::new(input, source);
    let mut attributes: Vec<Attribute> = Vec::new();
    let mut columns: Vec<Column> = Vec::new();
    let mut in_data = false;
    let mut row: Vec<ArffField> = Vec::new();
    loop {
        let parsed = match lines.next()? {
            None => break,
            Some(line) if line.trim().is_empty() || line.trim_start().starts_with('%') => Ok(()),
            Some(line) if in_data => values(line, &attributes, &mut row)
                .and_then(|()| push(&row, &attributes, &mut columns)),
            Some(line) => declare(line, &mut attributes, &mut in_data),
        };
        parsed.map_err(|(column, problem)| lines.error(column, problem))?;
        if in_data && columns.is_empty() {
            if attributes.is_empty() {
                return Err(lines.error(1, "@data comes before any @attribute"));
            }
            let empty = |a: &Attribute| {
                if a.numeric { Column::Numeric(vec![]) } else { Column::Text(vec![]) }
            };
            columns = attributes.iter().map(empty).collect();
        }
    }
    if !in_data {
        return Err(Error::file(source, "the file has no line @data; is this an ARFF file?"));
    }
    Table::from_columns(attributes.into_iter().map(|a| a.name).zip(columns).collect(), source)
}

fn declare(line: &str, attributes: &mut Vec<Attribute>, in_data: &mut bool) -> Parsed<()> {
    let start = line.len() - line.trim_start().len();
    let word = line.split_whitespace().next().unwrap_or_default();
    let mut scanner = Scanner { line, at: start + word.len() };
    match word.to_ascii_lowercase().as_str() {
        "@relation" => Ok(()),
        "@data" => {
            *in_data = true;
            Ok(())
        }
        "@attribute" => {
            scanner.space();
            let at = scanner.at;
            let name = scanner.value(&[])?;
            if attributes.iter().any(|a| a.name == name) {
                return Err((
                    at + 1,
                    format!("two attributes are called `{name}`; rename one of them"),
                ));
            }
            scanner.space();
            let at = scanner.at;
            if scanner.eat('{') {
                let mut values = Vec::new();
                loop {
                    values.push(scanner.value(&[',', '}'])?);
                    scanner.space();
                    if scanner.eat('}') {
                        break;
                    }
                    if !scanner.eat(',') {
                        return Err((
                            scanner.at + 1,
                            "expected `,` or `}` in the list of values".into(),
                        ));
                    }
                }
                attributes.push(Attribute { name, nominal: Some(values), numeric: false });
                return Ok(());
            }
            let kind = scanner.value(&[])?;
            let numeric = match kind.to_ascii_lowercase().as_str() {
                "numeric" | "real" | "integer" => true,
                "string" | "date" => false,
                _ => {
                    return Err((
                        at + 1,
                        format!(
                            "expected numeric, real, integer, string, date or {{…}}, found {}",
                            shown(&kind)
                        ),
                    ));
                }
            };
            attributes.push(Attribute { name, nominal: None, numeric });
            Ok(())
        }
        _ => Err((
            start + 1,
            format!("expected @relation, @attribute or @data, found {}", shown(word)),
        )),
    }
}

/// The values of one line.
fn values(line: &str, attributes: &[Attribute], row: &mut Vec<ArffField>) -> Parsed<()> {
    row.clear();
    let mut scanner = Scanner { line, at: 0 };
    scanner.space();
    if scanner.eat('{') {
        // What a sparse row leaves out is 0, or the first nominal value.
        let zero = |a: &Attribute| {
            Some(a.nominal.as_ref().and_then(|v| v.first().cloned()).unwrap_or_else(|| "0".into()))
        };
        row.extend(attributes.iter().map(|a| (1, zero(a))));
        scanner.space();
        while !scanner.eat('}') {
            scanner.space();
            let at = scanner.at;
            let index = scanner.value(&[])?;
            let place = index.parse::<usize>().ok().filter(|i| *i < attributes.len());
            let Some(place) = place else {
                let last = attributes.len() - 1;
                return Err((
                    at + 1,
                    format!(
                        "expected an attribute number from 0 to {last}, found {}",
                        shown(&index)
                    ),
                ));
            };
            row[place] = scanner.field(&[',', '}'])?;
            scanner.space();
            if !scanner.eat(',') && !scanner.peek('}') {
                return Err((scanner.at + 1, "expected `,` or `}`".into()));
            }
        }
        return Ok(());
    }
    loop {
        row.push(scanner.field(&[',', '\t'])?);
        scanner.space();
        if scanner.at >= line.len() {
            break;
        }
        if !scanner.eat(',') && !scanner.eat('\t') {
            return Err((scanner.at + 1, "expected `,`".into()));
        }
    }
    if row.len() != attributes.len() {
        let at = row.get(attributes.len()).map_or(line.len() + 1, |(at, _)| *at);
        return Err((
            at,
            format!("has {} values where {} attributes were declared", row.len(), attributes.len()),
        ));
    }
    Ok(())
}

fn push(row: &[ArffField], attributes: &[Attribute], columns: &mut [Column]) -> Parsed<()> {
    for (((at, value), attribute), column) in row.iter().zip(attributes).zip(columns) {
        match (column, value) {
            (Column::Numeric(numbers), None) => numbers.push(f64::NAN),
            (Column::Numeric(numbers), Some(text)) => {
                let name = &attribute.name;
                numbers.push(text.parse().map_err(|_| {
                    (*at, format!("attribute `{name}` is numeric, found {}", shown(text)))
                })?);
            }
            (Column::Text(texts), None) => texts.push("?".into()),
            (Column::Text(texts), Some(text)) => {
                if attribute.nominal.as_ref().is_some_and(|v| !v.contains(text)) {
                    return Err((
                        *at,
                        format!("{} is no value of attribute `{}`", shown(text), attribute.name),
                    ));
                }
                texts.push(text.clone());
            }
        }
    }
    Ok(())
}

/// Reads one line from left to right; `at` is the byte it has come to.
struct Scanner<'a> {
    line: &'a str,
    at: usize,
}

impl Scanner<'_> {
    fn rest(&self) -> &str {
        &self.line[self.at..]
    }

    fn space(&mut self) {
        self.at = self.line.len() - self.rest().trim_start_matches([' ', '\r']).len();
    }

    fn peek(&self, c: char) -> bool {
        self.rest().starts_with(c)
    }

    fn eat(&mut self, c: char) -> bool {
        let found = self.peek(c);
        self.at += if found { c.len_utf8() } else { 0 };
        found
    }

    /// A value in quotes (backslash escapes) or up to one of `ends`, or to white space where none
    /// is given.
    fn value(&mut self, ends: &[char]) -> Parsed<String> {
        self.at = self.line.len() - self.rest().trim_start_matches([' ', '\t', '\r']).len();
        let start = self.at;
        let Some(quote) = self.rest().chars().next().filter(|c| matches!(c, '\'' | '"')) else {
            let stops = |c: char| {
                if ends.is_empty() { c.is_whitespace() || c == '{' } else { ends.contains(&c) }
            };
            let end = self.rest().find(stops).unwrap_or(self.rest().len());
            let text = self.rest()[..end].trim().to_string();
            self.at += end;
            return if text.is_empty() {
                Err((start + 1, "expected a value".into()))
            } else {
                Ok(text)
            };
        };
        let mut text = String::new();
        let mut chars = self.rest().char_indices().skip(1);
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' => text.extend(chars.next().map(|(_, c)| c)),
                c if c == quote => {
                    self.at += at + c.len_utf8();
                    return Ok(text);
                }
                c => text.push(c),
            }
        }
        Err((start + 1, "opens a quote that is never closed".into()))
    }

    /// A value of a row; missing where it is a bare `?`.
    fn field(&mut self, ends: &[char]) -> Parsed<ArffField> {
        self.space();
        let (at, bare) = (self.at + 1, self.peek('?'));
        let text = self.value(ends)?;
        Ok((at, Some(text).filter(|t| !(bare && t == "?"))))
    }
}
