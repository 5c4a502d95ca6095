//! Ready-made kernel values beside a table: a matrix, or a stack of matrices as `mercer gram`
//! writes it.

use std::{collections::HashMap, path::Path};

use super::{
    array::{self, Array, Values, is_array_file},
    description::{ArrayCache, FilePart, part},
    join::spread,
    source,
    table::{Column, ColumnGroup, Table},
};
use crate::{Error, Result};

/// What the view of kernel `t`, counted from 0, of a stack is called.
pub(super) fn layer_name(stack: &str, t: usize) -> String {
    format!("{stack}.{}", t + 1)
}

/// Is `view` one that [`layer_name`] gives for this stack?
pub(crate) fn is_layer_of(stack: &str, view: &str) -> bool {
    let number = view.strip_prefix(stack).and_then(|rest| rest.strip_prefix('.'));
    number.is_some_and(|k| !k.is_empty() && k.bytes().all(|b| b.is_ascii_digit()))
}

/// The matrices of a file that holds a stack (rows, columns, kernels): the array named, or the only
/// one with three axes.
pub(super) fn stack(
    file: &Path,
    wanted: Option<&str>,
    cache: &mut ArrayCache,
) -> Result<Option<Vec<FilePart>>> {
    if !is_array_file(file) {
        return Ok(None);
    }
    if !cache.contains_key(file) {
        cache.insert(file.to_path_buf(), array::read(file)?);
    }
    let fits = |name: &str| wanted.is_none_or(|wanted| wanted == name);
    let mut found = cache[file].iter().filter(|(name, a)| a.shape.len() == 3 && fits(name));
    match (found.next(), found.next()) {
        (Some((_, one)), None) => layers(one, file).map(Some),
        _ => Ok(None),
    }
}

/// Numbers separated by commas, semicolons or white space, a row per line.
pub(super) fn text_matrix(path: &Path) -> Result<FilePart> {
    let mut lines = source::Lines::new(source::open(path)?, path);
    let mut columns: Vec<Vec<f64>> = Vec::new();
    let mut rows = 0;
    loop {
        let parsed = match lines.next()? {
            None => break,
            Some(line) => text_row(line, rows, &mut columns),
        };
        rows += usize::from(parsed.map_err(|(column, problem)| lines.error(column, problem))?);
    }
    if rows == 0 || columns.is_empty() {
        return Err(Error::file(path, "holds no numbers"));
    }
    let named = columns
        .into_iter()
        .enumerate()
        .map(|(j, v)| ((j + 1).to_string(), Column::Numeric(v)))
        .collect();
    Ok(FilePart { ids: None, columns: named, sparse: None, rows })
}

fn text_row(
    line: &str,
    rows: usize,
    columns: &mut Vec<Vec<f64>>,
) -> std::result::Result<bool, (usize, String)> {
    let separators = |c: char| c.is_whitespace() || c == ',' || c == ';';
    let mut count = 0;
    for field in line.split(separators).filter(|f| !f.is_empty()) {
        let at = field.as_ptr() as usize - line.as_ptr() as usize + 1;
        let value: f64 = field
            .parse()
            .map_err(|_| (at, format!("expected a number, found {}", source::shown(field))))?;
        if rows == 0 {
            columns.push(Vec::new());
        }
        let Some(column) = columns.get_mut(count) else {
            return Err((
                at,
                format!("has more than the {} numbers of the rows before", columns.len()),
            ));
        };
        column.push(value);
        count += 1;
    }
    if count != 0 && count != columns.len() {
        return Err((
            line.len() + 1,
            format!("has {count} numbers where {} were expected", columns.len()),
        ));
    }
    Ok(count > 0)
}

impl Table {
    /// Adds a view of ready-made kernel values, row by row: npy, npz or mat with one matrix, or
    /// numbers as text. A stack (rows, columns, kernels), as `mercer gram` writes it, becomes a
    /// view per kernel, `name.1`, `name.2`, …; `precomputed(name)` reads all.
    pub fn with_gram(self, name: &str, file: &Path) -> Result<Self> {
        let mut cache = HashMap::new();
        let parts: Vec<(String, FilePart)> = match stack(file, None, &mut cache)? {
            Some(layers) => {
                layers.into_iter().enumerate().map(|(t, p)| (layer_name(name, t), p)).collect()
            }
            None => vec![(name.to_string(), part(file, None, None, true, &mut cache)?)],
        };
        let (n, lines) = (self.n_rows(), self.lines.clone());
        let (mut columns, mut extra) = self.into_columns();
        let width = columns.len();
        for (view, mut part) in parts {
            // Of rows that were left out, kernel values are left out too.
            if let Some(places) = extra.places.as_ref().filter(|p| p.iter().all(|&i| i < part.rows))
            {
                let some: Vec<Option<usize>> = places.iter().copied().map(Some).collect();
                part.columns.iter_mut().for_each(|(_, column)| *column = spread(column, &some));
                part.rows = n;
            }
            if part.rows != n {
                let problem =
                    format!("has {} rows of kernel values, and the data have {n} rows", part.rows);
                return Err(Error::file(file, problem));
            }
            if extra.groups.iter().any(|g| g.name == view) {
                return Err(Error::file(
                    file,
                    format!("the data have a view `{view}` already; give it another name"),
                ));
            }
            let start = columns.len();
            columns.extend(part.columns.into_iter().map(|(c, v)| (format!("{view}.{c}"), v)));
            extra.groups.push(ColumnGroup {
                name: view,
                columns: start..columns.len(),
                gram: true,
                absent: Vec::new(),
            });
        }
        // Sparse columns are counted after all others.
        let more = columns.len() - width;
        for group in extra.groups.iter_mut().filter(|g| !g.gram && g.columns.start >= width) {
            group.columns = group.columns.start + more..group.columns.end + more;
        }
        let mut table = Self::from_columns(columns, file)?;
        table.extra = extra;
        table.lines = lines;
        Ok(table)
    }
}

/// The matrices of a stack with the kernel axis last.
fn layers(stack: &Array, file: &Path) -> Result<Vec<FilePart>> {
    let (Values::Numbers(values), &[rows, cols, terms]) = (&stack.values, stack.shape.as_slice())
    else {
        return Err(Error::file(file, "the stack does not hold numbers"));
    };
    let layer = |t: usize| {
        let column = |j: usize| (0..rows).map(|i| values[(i * cols + j) * terms + t]).collect();
        let columns =
            (0..cols).map(|j| ((j + 1).to_string(), Column::Numeric(column(j)))).collect();
        FilePart { ids: None, columns, sparse: None, rows }
    };
    Ok((0..terms).map(layer).collect())
}
