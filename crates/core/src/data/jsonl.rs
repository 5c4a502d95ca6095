//! JSON lines: one object per line is one row, its keys name the columns.

use std::{collections::HashMap, fmt, io::BufRead, path::Path};

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};

use super::{
    Column, Table,
    read::{Format, ReadTable},
    source::{self, Lines},
};
use crate::{Error, Result};

pub(super) const FORMAT: Format = Format {
    name: Some("jsonl"),
    extensions: &["jsonl", "ndjson"],
    detect: |start| start.starts_with(b"{\""),
    reader: ReadTable::Whole(read),
};

/// Reads a file: columns of numbers, `true` (1) and `false` (0) are numeric, all others text. A key
/// that a row lacks, or `null`, is missing.
pub fn read(path: &Path) -> Result<Table> {
    parse(source::open(path)?, path)
}

/// Reads text; `source` is what errors call it.
pub fn parse(input: impl BufRead, source: &Path) -> Result<Table> {
    let mut lines = Lines::new(input, source);
    let mut table = JsonColumns::default();
    let mut starts = Vec::new();
    loop {
        let row = match lines.next()? {
            None => break,
            Some(line) if line.trim().is_empty() => continue,
            Some(line) => serde_json::from_str::<JsonRow>(line),
        };
        let row = row.map_err(|e| lines.error(e.column().max(1), problem(&e)))?;
        table.push(row);
        starts.push(lines.number);
    }
    if starts.is_empty() {
        return Err(Error::file(source, "holds no rows"));
    }
    let mut table = Table::from_columns(table.finish(), source)?;
    table.lines = starts;
    Ok(table)
}

/// What the parser found, without its own words for the place.
fn problem(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ").map_or(text.as_str(), |(problem, _)| problem).to_string()
}

/// The columns while rows are added, in the order in which their keys were first seen.
#[derive(Default)]
struct JsonColumns {
    rows: usize,
    at: HashMap<String, usize>,
    named: Vec<(String, Vec<JsonValue>)>,
}

impl JsonColumns {
    fn push(&mut self, row: JsonRow) {
        for (name, field) in row.0 {
            let at = self.at.get(&name).copied().unwrap_or_else(|| {
                self.at.insert(name.clone(), self.named.len());
                self.named.push((name, vec![JsonValue::Missing; self.rows]));
                self.named.len() - 1
            });
            self.named[at].1.push(field);
        }
        self.rows += 1;
        self.named.iter_mut().for_each(|(_, fields)| fields.resize(self.rows, JsonValue::Missing));
    }

    fn finish(self) -> Vec<(String, Column)> {
        self.named.into_iter().map(|(name, fields)| (name, column(fields))).collect()
    }
}

fn column(fields: Vec<JsonValue>) -> Column {
    let number = |field: &JsonValue| match field {
        JsonValue::Number(value) => Some(*value),
        JsonValue::Missing => Some(f64::NAN),
        JsonValue::Text(_) => None,
    };
    let numbers: Option<Vec<f64>> = fields.iter().map(number).collect();
    let text = |field| match field {
        JsonValue::Text(text) => text,
        JsonValue::Number(value) => value.to_string(),
        JsonValue::Missing => String::new(),
    };
    numbers.map_or_else(|| Column::Text(fields.into_iter().map(text).collect()), Column::Numeric)
}

/// One object, its keys in the order of the text.
struct JsonRow(Vec<(String, JsonValue)>);

/// One value of an object; lists and objects are refused.
#[derive(Clone)]
enum JsonValue {
    Number(f64),
    Text(String),
    Missing,
}

impl<'de> Deserialize<'de> for JsonRow {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        deserializer.deserialize_map(RowVisitor)
    }
}

struct RowVisitor;

impl<'de> Visitor<'de> for RowVisitor {
    type Value = JsonRow;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object, as in {\"age\": 41, \"city\": \"Rio\"}")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<JsonRow, A::Error> {
        let mut fields: Vec<(String, JsonValue)> = Vec::new();
        while let Some((name, field)) = map.next_entry()? {
            if fields.iter().any(|(known, _)| *known == name) {
                return Err(A::Error::custom(format!(
                    "the key `{name}` stands twice in one object"
                )));
            }
            fields.push((name, field));
        }
        Ok(JsonRow(fields))
    }
}

impl<'de> Deserialize<'de> for JsonValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        deserializer.deserialize_any(FieldVisitor)
    }
}

struct FieldVisitor;

impl Visitor<'_> for FieldVisitor {
    type Value = JsonValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, a text, true, false or null")
    }

    fn visit_f64<E>(self, value: f64) -> std::result::Result<JsonValue, E> {
        Ok(JsonValue::Number(value))
    }

    fn visit_i64<E>(self, value: i64) -> std::result::Result<JsonValue, E> {
        Ok(JsonValue::Number(value as f64))
    }

    fn visit_u64<E>(self, value: u64) -> std::result::Result<JsonValue, E> {
        Ok(JsonValue::Number(value as f64))
    }

    fn visit_bool<E>(self, value: bool) -> std::result::Result<JsonValue, E> {
        Ok(JsonValue::Number(f64::from(u8::from(value))))
    }

    fn visit_str<E>(self, value: &str) -> std::result::Result<JsonValue, E> {
        Ok(JsonValue::Text(value.to_string()))
    }

    fn visit_unit<E>(self) -> std::result::Result<JsonValue, E> {
        Ok(JsonValue::Missing)
    }
}
