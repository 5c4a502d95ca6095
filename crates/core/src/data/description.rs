//! Any data file as a table; and data descriptions: TOML files that join several files into one table with named views.
//!
//! ```toml
//! target = "label"            # a column of the labels file, or of a view that leaves it out of its features
//! id = "sample"               # rows are joined on this column; without it, by their order
//! kernels = "linear on all"   # beside those of the views
//!
//! [labels]
//! file = "labels.csv"
//!
//! [[view]]
//! name = "fou"
//! file = "digits.npz"         # relative to this file
//! array = "fou"
//! kernels = "rbf(auto), linear"
//! ```

use std::{
    collections::{BTreeSet, HashMap},
    path::{Path, PathBuf},
};

use serde::Deserialize;

use super::{
    Sparse, arff,
    array::{self, Array, Values},
    fasta, libsvm, ready,
    source::{self, Span},
    table::{Column, ColumnGroup, Extra, Table, nearest},
};
use crate::{Error, Result};

/// Reads a file of any known format: delimited text, LIBSVM text, npy, npz, mat, ARFF, FASTA, or a data description (`.toml`). The
/// format is told by the extension below `.gz` and `.zst`, else by the first bytes.
pub fn read(path: &Path) -> Result<Table> {
    read_within(path, None, None)
}

/// Some rows of a file. LIBSVM text is read no further than the last of them, and the others are never held.
pub fn read_rows(path: &Path, rows: Span) -> Result<Table> {
    read_within(path, Some(rows), None)
}

/// All or some rows of a file whose rows may take `memory` bytes at most, half the machine's where that is left open. Sparse rows are
/// refused as soon as they do not fit, other files before they are read on.
pub fn read_within(path: &Path, rows: Option<Span>, memory: Option<u64>) -> Result<Table> {
    let memory = memory.unwrap_or_else(|| source::machine_memory().unwrap_or(8 << 30) / 2);
    if is_libsvm_file(path)? {
        return libsvm::read(path, rows, memory);
    }
    let table = read_whole(path)?;
    let Some(rows) = rows else { return Ok(table) };
    if rows.first > table.n_rows() {
        let got = format!("{}-{}", rows.first, rows.last);
        return Err(Error::param("rows", format!("within 1-{}", table.n_rows()), got));
    }
    Ok(table.select_rows(&(0..table.n_rows()).filter(|&i| rows.contains(i)).collect::<Vec<_>>()))
}

/// The file itself and, of a data description, every file that it names, whether or not they are there.
pub fn sources(path: &Path) -> Vec<PathBuf> {
    let mut found = vec![path.to_path_buf()];
    let mut next = 0;
    while let Some(at) = found.get(next).cloned() {
        next += 1;
        if source::extension(&at) != "toml" {
            continue;
        }
        let bytes = source::read_all(&at).unwrap_or_default();
        let Ok(told) = toml::from_str::<Description>(&String::from_utf8_lossy(&bytes)) else { continue };
        let folder = at.parent().unwrap_or(Path::new(""));
        let views = told.view.into_iter().flat_map(|view| std::iter::once(view.file).chain(view.ids));
        for file in views.chain(told.labels.map(|labels| labels.file)).map(|file| folder.join(file)) {
            if !found.contains(&file) {
                found.push(file);
            }
        }
    }
    found
}

/// Any format but LIBSVM text.
fn read_whole(path: &Path) -> Result<Table> {
    match source::extension(path).as_str() {
        "toml" => return description(path),
        "npy" | "npz" | "mat" => return from_arrays(array::read(path)?, path),
        "arff" => return arff::read(path),
        "fa" | "fasta" | "fna" | "faa" => return fasta::read(path),
        "csv" | "tsv" | "tab" => return Table::read(path),
        "parquet" => return Err(parquet(path)),
        _ => {}
    }
    let mut input = source::open(path)?;
    let start = input.fill_buf().map_err(|e| Error::file(path, e))?;
    match start {
        [0x93, b'N', b'U', b'M', ..] => from_arrays(array::read(path)?, path),
        [b'>', ..] => fasta::read(path),
        [b'P', b'A', b'R', b'1', ..] => Err(parquet(path)),
        _ => Table::read(path),
    }
}

fn parquet(path: &Path) -> Error {
    Error::file(
        path,
        "Parquet is not read by the program; convert it to csv, npy or npz, or fit in Python, where the frames of pandas.read_parquet and \
         polars.read_parquet are taken as they are",
    )
}

fn is_libsvm_file(path: &Path) -> Result<bool> {
    Ok(match source::extension(path).as_str() {
        "svm" | "libsvm" | "svmlight" => true,
        "toml" | "npy" | "npz" | "mat" | "arff" | "fa" | "fasta" | "fna" | "faa" | "csv" | "tsv" | "tab"
        | "parquet" => false,
        _ => is_libsvm(source::open(path)?.fill_buf().map_err(|e| Error::file(path, e))?),
    })
}

/// Does the first line look like `label 3:0.5 7:1`?
fn is_libsvm(start: &[u8]) -> bool {
    let line = start.split(|b| *b == b'\n').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    let mut words = line.split_whitespace().skip(1).take(8).peekable();
    // The last word may be cut.
    words.peek().is_some()
        && words.all(|w| w.split_once(':').is_some_and(|(c, _)| c == "qid" || c.parse::<u32>().is_ok()))
}

/// Arrays of one file as a table: one-dimensional ones are columns, two-dimensional ones views (or plain columns if there is but one).
fn from_arrays(arrays: Vec<(String, Array)>, path: &Path) -> Result<Table> {
    let matrices = arrays.iter().filter(|(_, a)| a.shape.len() == 2 && a.shape[1] > 1).count();
    let n = arrays.iter().find(|(_, a)| !a.shape.is_empty()).map_or(0, |(_, a)| a.shape[0]);
    let (mut columns, mut groups) = (Vec::new(), Vec::new());
    for (name, array) in arrays {
        let shape = array.shape.clone();
        if shape.first() != Some(&n) || shape.len() > 2 {
            let problem = format!("array `{name}` has shape {shape:?} and others have {n} rows");
            return Err(Error::file(path, format!("{problem}; name the arrays to use in a data description")));
        }
        let one = |name: &str| if name.is_empty() { "x1".to_string() } else { name.to_string() };
        let prefix = if matrices > 1 { format!("{name}.") } else { "x".into() };
        let start = columns.len();
        let single = shape.len() == 1 || shape[1] == 1;
        columns.extend(split_columns(array, |j| if single { one(&name) } else { format!("{prefix}{}", j + 1) }));
        if !single && matrices > 1 {
            groups.push(ColumnGroup { name, columns: start..columns.len(), gram: false, absent: Vec::new() });
        }
    }
    let mut table = Table::from_columns(columns, path)?;
    table.extra = Extra { groups, ..Extra::default() };
    Ok(table)
}

/// The columns of an array with at most two axes.
fn split_columns(array: Array, name: impl Fn(usize) -> String) -> Vec<(String, Column)> {
    let width = array.shape.get(1).copied().unwrap_or(1);
    match array.values {
        Values::Texts(texts) => (0..width)
            .map(|j| (name(j), Column::Text(texts.iter().skip(j).step_by(width.max(1)).cloned().collect())))
            .collect(),
        Values::Numbers(v) => (0..width)
            .map(|j| (name(j), Column::Numeric(v.iter().skip(j).step_by(width.max(1)).copied().collect())))
            .collect(),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    target: Option<String>,
    id: Option<String>,
    kernels: Option<String>,
    labels: Option<FileEntry>,
    #[serde(default)]
    view: Vec<ViewEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileEntry {
    file: PathBuf,
    array: Option<String>,
    id: Option<String>,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct ViewEntry {
    name: toml::Spanned<String>,
    file: PathBuf,
    array: Option<String>,
    id: Option<String>,
    columns: Option<Vec<String>>,
    #[serde(default)]
    exclude: Vec<String>,
    kernels: Option<String>,
    #[serde(default)]
    gram: bool,
    /// Of a Gram matrix: a text file with the id of each row, a line each.
    ids: Option<PathBuf>,
    /// What errors call it: its line and column in the description, and its name.
    #[serde(skip)]
    place: String,
}

impl ViewEntry {
    fn name(&self) -> &str {
        self.name.get_ref()
    }
}

/// A file of a description: rows with their ids, if it has any.
pub(super) struct Part {
    pub ids: Option<Vec<String>>,
    pub columns: Vec<(String, Column)>,
    pub sparse: Option<(Vec<String>, Sparse)>,
    pub rows: usize,
}

fn description(path: &Path) -> Result<Table> {
    let bytes = source::read_all(path)?;
    let wrong = |at: usize, problem: &str| Error::file(path, source::place_in(&bytes, at, problem));
    let text = std::str::from_utf8(&bytes).map_err(|e| wrong(e.valid_up_to(), "not valid UTF-8 text"))?;
    let mut told: Description =
        toml::from_str(text).map_err(|e| wrong(e.span().map_or(0, |s| s.start), e.message()))?;
    if told.view.is_empty() {
        return Err(Error::file(path, "names no view: add [[view]] with a name and a file"));
    }
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut cache = HashMap::new();
    let mut names = BTreeSet::new();
    for view in &mut told.view {
        let name = view.name.get_ref();
        view.place = source::place_in(&bytes, view.name.span().start, format!("view `{name}`"));
        if name.is_empty() || !names.insert(name.clone()) {
            let problem = if name.is_empty() { "a view has an empty name" } else { "two views have one name" };
            return Err(wrong(view.name.span().start, &format!("{problem} (`{name}`); give each its own")));
        }
    }
    let labels = told.labels.as_ref().map(|l| {
        let id = l.id.as_ref().or(told.id.as_ref());
        part(&folder.join(&l.file), l.array.as_deref(), id, false, &mut cache)
    });
    let labels = labels.transpose()?;
    let (mut parts, mut views) = (Vec::new(), Vec::new());
    for view in std::mem::take(&mut told.view) {
        let file = folder.join(&view.file);
        if view.gram
            && let Some(layers) = ready::stack(&file, view.array.as_deref(), &mut cache)?
        {
            for (t, layer) in layers.into_iter().enumerate() {
                let name = toml::Spanned::new(view.name.span(), ready::layer_name(view.name(), t));
                parts.push(with_row_names(layer, &view, folder)?);
                views.push(ViewEntry { name, ..view.clone() });
            }
            continue;
        }
        let id = view.id.as_ref().or(told.id.as_ref());
        let own = part(&file, view.array.as_deref(), id, view.gram, &mut cache)?;
        if view.ids.is_some() && !view.gram {
            let problem = format!("{} has `ids` and is no Gram matrix; name its column of ids as `id`", view.place);
            return Err(Error::file(path, problem));
        }
        parts.push(with_row_names(own, &view, folder)?);
        views.push(view);
    }
    told.view = views;
    join(&told, labels, parts, path)
}

/// A Gram matrix with the ids of its rows, where a file holds them.
fn with_row_names(mut part: Part, view: &ViewEntry, folder: &Path) -> Result<Part> {
    if let Some(ids) = &view.ids {
        part.ids = Some(row_names(&folder.join(ids), part.rows)?);
    }
    Ok(part)
}

pub(super) type Cache = HashMap<PathBuf, Vec<(String, Array)>>;

/// Reads one file of a description.
pub(super) fn part(
    path: &Path,
    array: Option<&str>,
    id: Option<&String>,
    gram: bool,
    cache: &mut Cache,
) -> Result<Part> {
    let table = match source::extension(path).as_str() {
        "npy" | "npz" | "mat" => {
            if !cache.contains_key(path) {
                cache.insert(path.to_path_buf(), array::read(path)?);
            }
            return array_part(path, array, &cache[path]);
        }
        // A Gram matrix as text has no header, even where its first row could pass for one.
        _ if gram => return ready::text_matrix(path),
        _ => read(path)?,
    };
    if array.is_some() {
        return Err(Error::file(path, "has no named arrays; leave `array` out"));
    }
    let rows = table.n_rows();
    let has_id = id.filter(|id| table.names().contains(id)).cloned();
    let (mut columns, extra) = table.into_columns();
    let ids = has_id.map(|id| {
        let at = columns.iter().position(|(name, _)| *name == id).unwrap_or(0);
        match columns.remove(at).1 {
            Column::Text(texts) => texts,
            Column::Numeric(values) => values.iter().map(ToString::to_string).collect(),
        }
    });
    columns.retain(|(name, _)| !extra.aside.contains(name));
    let sparse = extra.sparse.map(|s| (extra.sparse_names, s));
    Ok(Part { ids, columns, sparse, rows })
}

fn array_part(path: &Path, wanted: Option<&str>, arrays: &[(String, Array)]) -> Result<Part> {
    let found = match wanted {
        Some(name) => arrays.iter().find(|(n, _)| n == name),
        None if arrays.len() == 1 => arrays.first(),
        None => None,
    };
    let Some((_, array)) = found else {
        let names: Vec<String> = arrays.iter().map(|(n, _)| n.clone()).collect();
        let list = nearest(wanted.unwrap_or_default(), &names);
        let problem = wanted.map_or("holds several arrays".to_string(), |name| format!("has no array `{name}`"));
        return Err(Error::file(path, format!("{problem}; set `array` to one of {list}")));
    };
    if array.shape.is_empty() || array.shape.len() > 2 || array.shape[0] == 0 {
        return Err(Error::file(path, format!("the array has shape {:?}, expected rows and columns", array.shape)));
    }
    let single = array.shape.len() == 1;
    let name = |j: usize| if single { wanted.unwrap_or("1").to_string() } else { (j + 1).to_string() };
    Ok(Part { ids: None, columns: split_columns(array.clone(), name), sparse: None, rows: array.shape[0] })
}

/// The ids of `rows` rows, a line each.
fn row_names(path: &Path, rows: usize) -> Result<Vec<String>> {
    let mut lines = source::Lines::new(source::open(path)?, path);
    let mut names = Vec::new();
    while let Some(line) = lines.next()? {
        names.extend(Some(line.trim().to_string()).filter(|name| !name.is_empty()));
    }
    if names.len() != rows {
        return Err(Error::file(path, format!("names {} rows where the matrix has {rows}", names.len())));
    }
    Ok(names)
}

/// One table from the files of a description.
fn join(told: &Description, labels: Option<Part>, parts: Vec<Part>, path: &Path) -> Result<Table> {
    let mut columns: Vec<(String, Column)> = Vec::new();
    let mut extra = Extra { target: told.target.clone(), ..Extra::default() };
    let with_ids = labels.iter().chain(&parts).filter(|p| p.ids.is_some()).count();
    if with_ids > 0 && with_ids < parts.len() + usize::from(labels.is_some()) {
        let without = told.view.iter().zip(&parts).find(|(_, p)| p.ids.is_none()).map_or("labels", |(v, _)| v.name());
        let problem = format!("`{without}` has no id column, other files have");
        return Err(Error::file(path, format!("{problem}; give every file one, or none to join by row")));
    }
    if let Some(id) = told.id.as_ref().filter(|_| with_ids == 0) {
        return Err(Error::file(path, format!("no file has the id column `{id}`")));
    }
    let base = labels.as_ref().unwrap_or(&parts[0]);
    let (n, ids) = (base.rows, base.ids.clone());
    if let Some(ids) = &ids {
        columns.push((told.id.clone().unwrap_or_else(|| "id".into()), Column::Text(ids.clone())));
    }
    if let Some(l) = labels {
        columns.extend(l.columns);
    }
    extra.aside = columns.iter().map(|(name, _)| name.clone()).collect();
    let mut sparse: Vec<(Sparse, usize)> = Vec::new();
    let mut groups_of_sparse = Vec::new();
    for (view, part) in told.view.iter().zip(parts) {
        let places = places(view, &part, ids.as_deref(), n, path)?;
        let absent: Vec<usize> = (0..n).filter(|&i| places[i].is_none()).collect();
        let unused = part.rows - (n - absent.len());
        if unused > 0 {
            extra.notes.push(format!(
                "view `{}`: {unused} rows have ids that no other row has, and are not used",
                view.name()
            ));
        }
        let mut part = part;
        if view.gram && part.ids.is_some() && part.columns.len() == part.rows {
            // The columns of a square matrix are its rows; those of rows that it lacks are never read.
            let zeros = || Column::Numeric(vec![0.0; part.rows]);
            let column = |at: Option<usize>| at.map_or_else(zeros, |at| part.columns[at].1.clone());
            part.columns = places.iter().enumerate().map(|(j, at)| ((j + 1).to_string(), column(*at))).collect();
        }
        let mut chosen = Vec::new();
        let mut target = None;
        for (name, column) in part.columns {
            let is_target = told.target.as_ref() == Some(&name);
            if is_target && !columns.iter().any(|(c, _)| *c == name) {
                target = Some((name, spread(&column, &places)));
            } else if !is_target
                && view.columns.as_ref().is_none_or(|c| c.contains(&name))
                && !view.exclude.contains(&name)
            {
                chosen.push((format!("{}.{name}", view.name()), spread(&column, &places)));
            }
        }
        let start = columns.len();
        columns.extend(chosen);
        let end = columns.len();
        columns.extend(target);
        let group =
            |columns| ColumnGroup { name: view.name().into(), columns, gram: view.gram, absent: absent.clone() };
        if let Some((names, s)) = part.sparse {
            let first = extra.sparse_names.len();
            extra.sparse_names.extend(names.iter().map(|name| format!("{}.{name}", view.name())));
            groups_of_sparse.push(group(first..extra.sparse_names.len()));
            let index: Vec<Option<usize>> = places;
            let mut rows = Sparse::new(s.cols());
            for place in index {
                let (c, v) = place.map_or((&[][..], &[][..]), |i| s.row(i));
                rows.push_row(c.iter().copied().zip(v.iter().copied()));
            }
            sparse.push((rows, first));
        }
        if end > start {
            extra.groups.push(group(start..end));
        } else if !groups_of_sparse.iter().any(|g| g.name == view.name()) {
            return Err(Error::file(path, format!("{} has no columns left", view.place)));
        }
    }
    let width = columns.len();
    let moved = groups_of_sparse
        .into_iter()
        .map(|g| ColumnGroup { columns: g.columns.start + width..g.columns.end + width, ..g });
    extra.groups.extend(moved);
    extra.kernels = bank(told);
    if !sparse.is_empty() {
        let mut all = Sparse::new(extra.sparse_names.len());
        for i in 0..n {
            let entries = sparse.iter().flat_map(|(s, first)| {
                let (c, v) = s.row(i);
                c.iter().map(|c| c + *first as u32).zip(v.iter().copied())
            });
            all.push_row(entries.collect::<Vec<_>>());
        }
        extra.sparse = Some(all);
    }
    if columns.is_empty() {
        columns.push(("row".into(), Column::Numeric((1..=n).map(|i| i as f64).collect())));
    }
    let mut table = Table::from_columns(columns, path)?;
    table.extra = extra;
    Ok(table)
}

/// The row of `part` for each row of the whole.
fn places(view: &ViewEntry, part: &Part, ids: Option<&[String]>, n: usize, path: &Path) -> Result<Vec<Option<usize>>> {
    let (Some(ids), Some(own)) = (ids, &part.ids) else {
        if part.rows != n {
            let problem = format!("{} has {} rows where {n} were expected", view.place, part.rows);
            return Err(Error::file(path, format!("{problem}; join files of different rows on an `id` column")));
        }
        return Ok((0..n).map(Some).collect());
    };
    let mut at = HashMap::new();
    for (i, id) in own.iter().enumerate() {
        if at.insert(id, i).is_some() {
            return Err(Error::file(path, format!("{} has two rows with id `{id}`", view.place)));
        }
    }
    let mut seen = BTreeSet::new();
    if let Some(id) = ids.iter().find(|id| !seen.insert(*id)) {
        return Err(Error::file(path, format!("two rows have the id `{id}`")));
    }
    Ok(ids.iter().map(|id| at.get(id).copied()).collect())
}

/// Values in the order of the whole; rows that have none get a placeholder, which nothing reads.
pub(super) fn spread(column: &Column, places: &[Option<usize>]) -> Column {
    match column {
        Column::Numeric(v) => Column::Numeric(places.iter().map(|p| p.map_or(0.0, |i| v[i])).collect()),
        Column::Text(t) => {
            Column::Text(places.iter().map(|p| p.map_or_else(|| "?".into(), |i| t[i].clone())).collect())
        }
    }
}

/// The banks of all views, each on its view.
fn bank(told: &Description) -> Option<String> {
    let plain = |name: &str| name.chars().all(|c| c.is_alphanumeric() || c == '_') && name != "all";
    let quoted = |name: &str| if plain(name) { name.into() } else { format!("\"{}\"", name.replace('"', "\"\"")) };
    let own = |v: &ViewEntry| {
        let kernels = v.kernels.clone().or_else(|| v.gram.then(|| "precomputed".to_string()))?;
        Some(format!("{kernels} on view({})", quoted(v.name())))
    };
    let all: Vec<String> = told.view.iter().filter_map(own).chain(told.kernels.clone()).collect();
    (!all.is_empty()).then(|| all.join("; "))
}
