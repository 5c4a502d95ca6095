//! FASTA: `>name label=class …` and a sequence over the lines that follow.

use std::{io::BufRead, path::Path};

use super::{
    read::{Format, ReadTable},
    source::{self, Lines, shown},
    table::{Column, Table},
};
use crate::{Error, Result};

pub(super) const FORMAT: Format = Format {
    name: Some("fasta"),
    extensions: &["fa", "fasta", "fna", "faa"],
    detect: |start| start.starts_with(b">"),
    reader: ReadTable::Whole(read),
};

/// Reads a file as a table of text columns: `id`, which is never a feature, `sequence`, and one per
/// `key=value` that every header has, such as `label`. Where no header has a key, the words after
/// the name are the label if every header has exactly one.
pub fn read(path: &Path) -> Result<Table> {
    parse(source::open(path)?, path)
}

/// Reads text; `source` is what errors call it.
pub fn parse(input: impl BufRead, source: &Path) -> Result<Table> {
    let mut lines = Lines::new(input, source);
    let mut headers: Vec<String> = Vec::new();
    let mut sequences: Vec<String> = Vec::new();
    // The line of the last header, which must have a sequence.
    let mut open = 0;
    while let Some(line) = lines.next()? {
        let indent = line.len() - line.trim_start().len();
        let line = line.trim();
        if let Some(header) = line.strip_prefix('>') {
            let header = header.trim().to_string();
            if sequences.last().is_some_and(String::is_empty) {
                return Err(lines.error(
                    indent + 1,
                    format!("the record before (line {open}) has no sequence"),
                ));
            }
            if header.is_empty() {
                return Err(lines.error(indent + 2, "a header needs a name after `>`"));
            }
            open = lines.number;
            headers.push(header);
            sequences.push(String::new());
        } else if !line.is_empty() && !line.starts_with(';') {
            let bad = line
                .char_indices()
                .find(|(_, c)| !(c.is_alphabetic() || matches!(c, '*' | '-' | '.' | ' ')));
            let problem = match (bad, sequences.last_mut()) {
                (Some((at, c)), _) => Some((at + 1, format!("`{c}` is no letter of a sequence"))),
                (None, None) => {
                    Some((1, format!("expected `>` and a name first, found {}", shown(line))))
                }
                (None, Some(sequence)) => {
                    sequence.extend(line.chars().filter(|c| *c != ' '));
                    None
                }
            };
            if let Some((column, problem)) = problem {
                return Err(lines.error(indent + column, problem));
            }
        }
    }
    if headers.is_empty() {
        return Err(Error::file(
            source,
            "the file holds no sequence; a record is `>name` and lines of letters",
        ));
    }
    if sequences.last().is_some_and(String::is_empty) {
        return Err(Error::file(
            source,
            format!("line {open}, column 1: the last record has no sequence"),
        ));
    }
    let ids = headers
        .iter()
        .map(|h| h.split_whitespace().next().unwrap_or_default().to_string())
        .collect();
    let mut columns = vec![
        ("id".to_string(), Column::Text(ids)),
        ("sequence".to_string(), Column::Text(sequences)),
    ];
    columns.extend(fields(&headers));
    let mut table = Table::from_columns(columns, source)?;
    // The name of a record says nothing about it.
    table.extra.aside.push("id".into());
    Ok(table)
}

/// Columns of `key=value` fields that every header has.
fn fields(headers: &[String]) -> Vec<(String, Column)> {
    let pairs = |h: &str| -> Vec<(String, String)> {
        let words = h.split_whitespace().skip(1);
        words
            .filter_map(|w| w.split_once('='))
            .map(|(k, v)| (k.to_string(), v.to_string()))
            .collect()
    };
    let all: Vec<Vec<(String, String)>> = headers.iter().map(|h| pairs(h)).collect();
    let value = |pairs: &[(String, String)], key: &str| {
        pairs.iter().find(|(k, _)| k == key).map(|(_, v)| v.clone())
    };
    let mut columns: Vec<(String, Column)> = Vec::new();
    for (key, _) in &all[0] {
        let texts: Option<Vec<String>> = all.iter().map(|p| value(p, key)).collect();
        let new = !columns.iter().any(|(k, _)| k == key)
            && !matches!(key.as_str(), "id" | "sequence" | "");
        if let (Some(texts), true) = (texts, new) {
            columns.push((key.clone(), Column::of_texts(texts)));
        }
    }
    let second: Option<Vec<String>> = headers
        .iter()
        .map(|h| {
            let mut words = h.split_whitespace().skip(1);
            words.next().filter(|_| words.next().is_none()).map(String::from)
        })
        .collect();
    match second {
        Some(labels) if all.iter().all(Vec::is_empty) => {
            vec![("label".into(), Column::of_texts(labels))]
        }
        _ => columns,
    }
}
