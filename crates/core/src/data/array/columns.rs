//! Arrays as columns of a table.

use std::path::Path;

use super::{Array, Values};
use crate::{
    Error, Result,
    data::table::{Column, ColumnGroup, Extra, Table},
};

/// Arrays of one file as a table: one-dimensional ones are columns, two-dimensional ones views (or
/// plain columns if there is but one).
pub(super) fn table(arrays: Vec<(String, Array)>, path: &Path) -> Result<Table> {
    let matrices = arrays.iter().filter(|(_, a)| a.shape.len() == 2 && a.shape[1] > 1).count();
    let n = arrays.iter().find(|(_, a)| !a.shape.is_empty()).map_or(0, |(_, a)| a.shape[0]);
    let (mut columns, mut groups) = (Vec::new(), Vec::new());
    for (name, array) in arrays {
        let shape = array.shape.clone();
        if shape.first() != Some(&n) || shape.len() > 2 {
            let problem = format!("array `{name}` has shape {shape:?} and others have {n} rows");
            return Err(Error::file(
                path,
                format!("{problem}; name the arrays to use in a data description"),
            ));
        }
        let one = |name: &str| if name.is_empty() { "x1".to_string() } else { name.to_string() };
        let prefix = if matrices > 1 { format!("{name}.") } else { "x".into() };
        let start = columns.len();
        let single = shape.len() == 1 || shape[1] == 1;
        columns.extend(columns_of(array, |j| {
            if single { one(&name) } else { format!("{prefix}{}", j + 1) }
        }));
        if !single && matrices > 1 {
            groups.push(ColumnGroup {
                name,
                columns: start..columns.len(),
                gram: false,
                absent: Vec::new(),
            });
        }
    }
    let mut table = Table::from_columns(columns, path)?;
    table.extra = Extra { groups, ..Extra::default() };
    Ok(table)
}

/// The columns of an array with at most two axes.
pub(in crate::data) fn columns_of(
    array: Array,
    name: impl Fn(usize) -> String,
) -> Vec<(String, Column)> {
    let width = array.shape.get(1).copied().unwrap_or(1);
    match array.values {
        Values::Texts(texts) => (0..width)
            .map(|j| {
                (
                    name(j),
                    Column::Text(texts.iter().skip(j).step_by(width.max(1)).cloned().collect()),
                )
            })
            .collect(),
        Values::Numbers(v) => (0..width)
            .map(|j| {
                (
                    name(j),
                    Column::Numeric(v.iter().skip(j).step_by(width.max(1)).copied().collect()),
                )
            })
            .collect(),
    }
}
