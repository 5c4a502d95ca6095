//! Data descriptions: TOML files that join several files into one table with named views.
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
    Sparse,
    array::{self, Array, columns_of, is_array_file},
    join::join,
    read::{Format, ReadTable, read},
    ready, source,
    table::{Column, Table, nearest},
};
use crate::{Error, Result};

pub(super) const FORMAT: Format = Format {
    name: None,
    extensions: &["toml"],
    detect: |_| false,
    reader: ReadTable::Whole(read_description),
};

/// The files that a description names, whether or not they are there; none for a file that is no
/// readable description.
pub(super) fn named_files(path: &Path) -> Vec<PathBuf> {
    if !FORMAT.extensions.contains(&source::extension(path).as_str()) {
        return Vec::new();
    }
    let bytes = source::read_all(path).unwrap_or_default();
    let Ok(description) = toml::from_str::<Description>(&String::from_utf8_lossy(&bytes)) else {
        return Vec::new();
    };
    let folder = path.parent().unwrap_or(Path::new(""));
    let views =
        description.view.into_iter().flat_map(|view| std::iter::once(view.file).chain(view.ids));
    views
        .chain(description.labels.map(|labels| labels.file))
        .map(|file| folder.join(file))
        .collect()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Description {
    pub target: Option<String>,
    pub id: Option<String>,
    kernels: Option<String>,
    labels: Option<FileEntry>,
    #[serde(default)]
    pub view: Vec<ViewEntry>,
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
pub(super) struct ViewEntry {
    name: toml::Spanned<String>,
    file: PathBuf,
    array: Option<String>,
    id: Option<String>,
    pub columns: Option<Vec<String>>,
    #[serde(default)]
    pub exclude: Vec<String>,
    kernels: Option<String>,
    #[serde(default)]
    pub gram: bool,
    /// For a Gram matrix, a text file with the id of each row on its own line.
    ids: Option<PathBuf>,
    /// What errors call it: its line and column in the description, and its name.
    #[serde(skip)]
    pub place: String,
}

impl ViewEntry {
    pub fn name(&self) -> &str {
        self.name.get_ref()
    }
}

/// A file of a description: rows with their ids, if it has any.
pub(super) struct FilePart {
    pub ids: Option<Vec<String>>,
    pub columns: Vec<(String, Column)>,
    pub sparse: Option<(Vec<String>, Sparse)>,
    pub rows: usize,
}

/// Reads the files that a description names, and joins them.
fn read_description(path: &Path) -> Result<Table> {
    let bytes = source::read_all(path)?;
    let wrong = |at: usize, problem: &str| Error::file(path, source::place_in(&bytes, at, problem));
    let text =
        std::str::from_utf8(&bytes).map_err(|e| wrong(e.valid_up_to(), "not valid UTF-8 text"))?;
    let mut description: Description =
        toml::from_str(text).map_err(|e| wrong(e.span().map_or(0, |s| s.start), e.message()))?;
    if description.view.is_empty() {
        return Err(Error::file(path, "names no view: add [[view]] with a name and a file"));
    }
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut cache = HashMap::new();
    let mut names = BTreeSet::new();
    for view in &mut description.view {
        let name = view.name.get_ref();
        view.place = source::place_in(&bytes, view.name.span().start, format!("view `{name}`"));
        if name.is_empty() || !names.insert(name.clone()) {
            let problem = if name.is_empty() {
                "a view has an empty name"
            } else {
                "two views have one name"
            };
            return Err(wrong(
                view.name.span().start,
                &format!("{problem} (`{name}`); give each its own"),
            ));
        }
    }
    let labels = description.labels.as_ref().map(|l| {
        let id = l.id.as_ref().or(description.id.as_ref());
        part(&folder.join(&l.file), l.array.as_deref(), id, false, &mut cache)
    });
    let labels = labels.transpose()?;
    let (mut parts, mut views) = (Vec::new(), Vec::new());
    for view in std::mem::take(&mut description.view) {
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
        let id = view.id.as_ref().or(description.id.as_ref());
        let own = part(&file, view.array.as_deref(), id, view.gram, &mut cache)?;
        if view.ids.is_some() && !view.gram {
            let problem = format!(
                "{} has `ids` and is no Gram matrix; name its column of ids as `id`",
                view.place
            );
            return Err(Error::file(path, problem));
        }
        parts.push(with_row_names(own, &view, folder)?);
        views.push(view);
    }
    description.view = views;
    join(&description, labels, parts, path)
}

/// A Gram matrix with the ids of its rows, where a file holds them.
fn with_row_names(mut part: FilePart, view: &ViewEntry, folder: &Path) -> Result<FilePart> {
    if let Some(ids) = &view.ids {
        part.ids = Some(row_names(&folder.join(ids), part.rows)?);
    }
    Ok(part)
}

/// Arrays by file, so that a file that several views name is read once.
pub(super) type ArrayCache = HashMap<PathBuf, Vec<(String, Array)>>;

/// Reads one file of a description.
pub(super) fn part(
    path: &Path,
    array: Option<&str>,
    id: Option<&String>,
    gram: bool,
    cache: &mut ArrayCache,
) -> Result<FilePart> {
    if is_array_file(path) {
        if !cache.contains_key(path) {
            cache.insert(path.to_path_buf(), array::read(path)?);
        }
        return array_part(path, array, &cache[path]);
    }
    if gram {
        // A Gram matrix as text has no header, even where its first row could pass for one.
        return ready::text_matrix(path);
    }
    let table = read(path)?;
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
    Ok(FilePart { ids, columns, sparse, rows })
}

fn array_part(path: &Path, wanted: Option<&str>, arrays: &[(String, Array)]) -> Result<FilePart> {
    let found = match wanted {
        Some(name) => arrays.iter().find(|(n, _)| n == name),
        None if arrays.len() == 1 => arrays.first(),
        None => None,
    };
    let Some((_, array)) = found else {
        let names: Vec<String> = arrays.iter().map(|(n, _)| n.clone()).collect();
        let list = nearest(wanted.unwrap_or_default(), &names);
        let problem = wanted
            .map_or("holds several arrays".to_string(), |name| format!("has no array `{name}`"));
        return Err(Error::file(path, format!("{problem}; set `array` to one of {list}")));
    };
    if array.shape.is_empty() || array.shape.len() > 2 || array.shape[0] == 0 {
        return Err(Error::file(
            path,
            format!("the array has shape {:?}, expected rows and columns", array.shape),
        ));
    }
    let single = array.shape.len() == 1;
    let name =
        |j: usize| if single { wanted.unwrap_or("1").to_string() } else { (j + 1).to_string() };
    Ok(FilePart {
        ids: None,
        columns: columns_of(array.clone(), name),
        sparse: None,
        rows: array.shape[0],
    })
}

/// The ids of `rows` rows, a line each.
fn row_names(path: &Path, rows: usize) -> Result<Vec<String>> {
    let mut lines = source::Lines::new(source::open(path)?, path);
    let mut names = Vec::new();
    while let Some(line) = lines.next()? {
        names.extend(Some(line.trim().to_string()).filter(|name| !name.is_empty()));
    }
    if names.len() != rows {
        return Err(Error::file(
            path,
            format!("names {} rows where the matrix has {rows}", names.len()),
        ));
    }
    Ok(names)
}

/// The banks of all views, each on its view.
pub(super) fn bank(description: &Description) -> Option<String> {
    let plain = |name: &str| name.chars().all(|c| c.is_alphanumeric() || c == '_') && name != "all";
    let quoted = |name: &str| {
        if plain(name) { name.into() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
    };
    let own = |v: &ViewEntry| {
        let kernels = v.kernels.clone().or_else(|| v.gram.then(|| "precomputed".to_string()))?;
        Some(format!("{kernels} on view({})", quoted(v.name())))
    };
    let all: Vec<String> =
        description.view.iter().filter_map(own).chain(description.kernels.clone()).collect();
    (!all.is_empty()).then(|| all.join("; "))
}
