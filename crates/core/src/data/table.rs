//! Tables: named, typed columns, and the way from them to features and a target.

use std::path::Path;

use super::{Dataset, Rows, Sequences, Sparse, Target, View};
use crate::{Error, Result, Told, linalg::Matrix};

/// One column of a table.
#[derive(Debug, Clone, PartialEq)]
pub enum Column {
    /// Every field is a number or missing; missing ones are NaN.
    Numeric(Vec<f64>),
    /// At least one field is neither; fields as written, without the space around them.
    Text(Vec<String>),
}

/// How a target column is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TaskHint {
    /// Text, or 2 to 10 distinct integers: classes. Anything else: values.
    #[default]
    Auto,
    /// Classes, whatever the column looks like.
    Classify,
    /// Values; the column must be numeric.
    Regress,
}

/// A table: named, typed columns.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Table {
    pub(super) names: Vec<String>,
    pub(super) columns: Vec<Column>,
    pub(super) n_rows: usize,
    pub(super) header: bool,
    /// Columns whose header field is blank, as a row index written by other tools is.
    pub(super) unnamed: Vec<usize>,
    /// The line of the file that each row begins at, counted from 1; empty where rows are not lines
    /// of one file.
    pub(super) lines: Vec<usize>,
    /// What only richer formats than delimited text have.
    pub(super) extra: Extra,
}

/// Columns stored sparsely, groups of columns, and what a data description says about their use.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Extra {
    /// Sparse columns; they are counted after the others.
    pub sparse: Option<Sparse>,
    pub sparse_names: Vec<String>,
    /// Named runs of columns, counted through.
    pub groups: Vec<ColumnGroup>,
    /// The column to predict, if the file says so.
    pub target: Option<String>,
    /// The bank to use, if the file says so.
    pub kernels: Option<String>,
    /// Columns that are never features: row names, and what a file of labels holds.
    pub aside: Vec<String>,
    /// What was done while reading that the user should know.
    pub notes: Vec<String>,
    /// Where each row stood in the file, if some were left out: its place among the columns of
    /// kernel values.
    pub places: Option<Vec<usize>>,
}

/// A named run of columns, as a view of the data is.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ColumnGroup {
    pub name: String,
    pub columns: std::ops::Range<usize>,
    /// Does it hold kernel values against the training rows?
    pub gram: bool,
    /// Rows that have nothing here.
    pub absent: Vec<usize>,
}

impl Column {
    /// Numbers where every text is one (or missing), else texts.
    pub(super) fn of_texts(texts: Vec<String>) -> Self {
        let numbers: Option<Vec<f64>> = texts.iter().map(|t| number(t)).collect();
        numbers.map_or_else(|| Self::Text(texts), Self::Numeric)
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Numeric(values) => values.len(),
            Self::Text(texts) => texts.len(),
        }
    }

    fn select(&self, index: &[usize]) -> Self {
        match self {
            Self::Numeric(values) => Self::Numeric(index.iter().map(|&i| values[i]).collect()),
            Self::Text(texts) => Self::Text(index.iter().map(|&i| texts[i].clone()).collect()),
        }
    }
}

impl Table {
    /// From named columns of equal length.
    pub(super) fn from_columns(columns: Vec<(String, Column)>, source: &Path) -> Result<Self> {
        let (names, columns): (Vec<String>, Vec<Column>) = columns.into_iter().unzip();
        let n_rows = columns.first().map_or(0, Column::len);
        if n_rows == 0 || columns.iter().any(|c| c.len() != n_rows) {
            let problem =
                if n_rows == 0 { "no rows of data" } else { "its columns differ in length" };
            return Err(Error::file(source, problem));
        }
        if let Some(j) = first_repeated(&names) {
            return Err(Error::file(
                source,
                format!("two columns are called `{}`; rename one of them", names[j]),
            ));
        }
        Ok(Self { names, columns, n_rows, header: true, ..Self::default() })
    }

    /// From sparse columns and perhaps one beside them.
    pub(super) fn from_sparse(
        beside: Option<(String, Column)>,
        names: Vec<String>,
        sparse: Sparse,
        source: &Path,
    ) -> Result<Self> {
        let n_rows = sparse.rows();
        let target = beside.as_ref().map(|(name, _)| name.clone());
        let mut table = match beside {
            Some(column) => Self::from_columns(vec![column], source)?,
            None => Self { n_rows, header: true, ..Self::default() },
        };
        table.extra =
            Extra { sparse: Some(sparse), sparse_names: names, target, ..Extra::default() };
        Ok(table)
    }

    /// Its own columns and their names, taken apart.
    pub(super) fn into_columns(self) -> (Vec<(String, Column)>, Extra) {
        (self.names.into_iter().zip(self.columns).collect(), self.extra)
    }

    /// An error about rows of this table, with their numbers in the file and, in delimited text,
    /// the lines they begin at.
    #[must_use]
    pub fn located(&self, error: Error) -> Error {
        let file_row = |row: usize| {
            self.extra.places.as_ref().and_then(|p| p.get(row).copied()).unwrap_or(row)
        };
        error.with_rows(|row| (file_row(row), self.lines.get(row).copied()))
    }

    /// The column to predict, if the file itself says so: `label` of LIBSVM text, `target` of a
    /// data description.
    pub fn default_target(&self) -> Option<&str> {
        self.extra.target.as_deref()
    }

    /// The bank to use, if the file itself says so.
    pub fn kernels(&self) -> Option<&str> {
        self.extra.kernels.as_deref()
    }

    /// What was done while reading that the user should know.
    pub fn notes(&self) -> &[String] {
        &self.extra.notes
    }

    /// The rows `index`, in that order.
    #[must_use]
    pub fn select_rows(&self, index: &[usize]) -> Self {
        let mut extra = self.extra.clone();
        extra.sparse = extra.sparse.map(|s| s.select_rows(index));
        extra.places =
            Some(index.iter().map(|&i| extra.places.as_ref().map_or(i, |p| p[i])).collect());
        for group in &mut extra.groups {
            group.absent = (0..index.len()).filter(|&i| group.absent.contains(&index[i])).collect();
        }
        let columns = self.columns.iter().map(|c| c.select(index)).collect();
        let lines = index.iter().filter_map(|&i| self.lines.get(i).copied()).collect();
        let (names, unnamed) = (self.names.clone(), self.unnamed.clone());
        Self { names, columns, n_rows: index.len(), header: self.header, unnamed, lines, extra }
    }

    /// Column names, in order.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Number of rows, the header not counted.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// A column by name or, where no column has that name, by position: 1 is the first, -1 the
    /// last.
    pub fn column(&self, key: &str) -> Result<&Column> {
        self.index(key).map(|j| &self.columns[j])
    }

    /// Features: the columns `only` in that order, or else every column not in `exclude`; text
    /// becomes sequences.
    pub fn dataset(&self, exclude: &[&str], only: Option<&[&str]>) -> Result<Dataset> {
        self.chosen(exclude, only).map_err(|e| self.located(e))
    }

    fn chosen(&self, exclude: &[&str], only: Option<&[&str]>) -> Result<Dataset> {
        let aside = self.extra.aside.iter().map(String::as_str);
        let excluded: Vec<usize> = exclude
            .iter()
            .copied()
            .chain(aside)
            .map(|key| self.index(key))
            .collect::<Result<_>>()?;
        let Some(only) = only else {
            let chosen: Vec<usize> = (0..self.width()).filter(|j| !excluded.contains(j)).collect();
            if let Some(j) = chosen.iter().find(|j| self.unnamed.contains(j)) {
                return Err(Error::data(
                    format!("column {}", j + 1),
                    "has no name in the header and may be a row index",
                    format!("exclude it as `{}`, or give it a name", j + 1),
                ));
            }
            return self.features(&chosen);
        };
        let chosen: Vec<usize> = only.iter().map(|key| self.index(key)).collect::<Result<_>>()?;
        if let Some(&j) = chosen.iter().find(|j| excluded.contains(j)) {
            return Err(Error::data(
                format!("column `{}`", self.name(j)),
                "is a feature column and excluded (or the target) at once",
                "remove it from one of the two",
            ));
        }
        if let Some(k) = first_repeated(&chosen) {
            let what = format!("column `{}`", self.name(chosen[k]));
            return Err(Error::data(what, "is named twice as a feature", "name each column once"));
        }
        self.features(&chosen)
    }

    /// Exactly `columns`, in that order: what a model asks for at prediction. Other columns are
    /// ignored.
    ///
    /// A file without a header that lacks some of the names but has exactly as many columns is
    /// taken by position.
    pub fn dataset_of(&self, columns: &[String]) -> Result<Dataset> {
        self.asked_for(columns).map_err(|e| self.located(e))
    }

    fn asked_for<'a>(&self, columns: &'a [String]) -> Result<Dataset> {
        // Sparse columns that this file never fills are columns of zeros.
        let places = self.places();
        let mut blank = self.width();
        let place = |name: &'a String| match places.get(name.as_str()) {
            Some(at) => Ok(*at),
            None if self.extra.sparse.is_some() && is_generated(name) => {
                blank += 1;
                Ok(blank - 1)
            }
            None => Err(name),
        };
        let by_name: std::result::Result<Vec<usize>, &String> = columns.iter().map(place).collect();
        match by_name {
            Ok(chosen) => {
                let called: std::collections::HashMap<usize, &String> =
                    chosen.iter().copied().zip(columns).collect();
                self.features_called(&chosen, &|j| {
                    called.get(&j).map_or_else(String::new, ToString::to_string)
                })
            }
            Err(_) if !self.header && self.names.len() == columns.len() => {
                let all: Vec<usize> = (0..columns.len()).collect();
                let by_position = self.features(&all)?;
                Ok(Dataset::from_rows(by_position.rows().clone(), columns.to_vec())?
                    .with_lines(self.lines.clone()))
            }
            Err(name) => Err(Error::data(
                format!("column `{name}`"),
                "is needed and not in the table",
                format!("add it ({})", nearest(name, &self.names)),
            )),
        }
    }

    /// The target column, by name or position as in [`Table::column`]. A missing value is refused,
    /// naming the row.
    pub fn target(&self, key: &str, task: TaskHint) -> Result<Target> {
        self.answers(key, task).map_err(|e| self.located(e))
    }

    fn answers(&self, key: &str, task: TaskHint) -> Result<Target> {
        let j = self.index(key)?;
        let missing = |row: usize| {
            Error::data(
                format!("target column `{}`", self.names[j]),
                Told::row(row, "has no value"),
                "fill it in or drop the row",
            )
        };
        match &self.columns[j] {
            Column::Text(texts) if task != TaskHint::Regress => {
                match texts.iter().position(|t| is_missing(t)) {
                    Some(row) => Err(missing(row)),
                    None => Ok(Target::classes(texts)),
                }
            }
            Column::Text(_) => self
                .numeric(j, "choose a numeric target, or classify")
                .map(|v| Target::Values(v.into())),
            Column::Numeric(values) => {
                if let Some(row) = values.iter().position(|v| !v.is_finite()) {
                    return Err(missing(row));
                }
                let classes =
                    task == TaskHint::Classify || (task == TaskHint::Auto && few_integers(values));
                Ok(if classes {
                    // + 0.0 makes one class of 0 and -0.
                    Target::classes(
                        &values.iter().map(|v| (v + 0.0).to_string()).collect::<Vec<_>>(),
                    )
                } else {
                    Target::Values(values.clone())
                })
            }
        }
    }

    /// Columns of either kind.
    fn width(&self) -> usize {
        self.names.len() + self.extra.sparse_names.len()
    }

    fn name(&self, j: usize) -> &str {
        let sparse =
            || self.extra.sparse_names.get(j - self.names.len()).map_or("", String::as_str);
        self.names.get(j).map_or_else(sparse, String::as_str)
    }

    /// Where each column stands, counted through.
    fn places(&self) -> std::collections::HashMap<&str, usize> {
        let names = self.names.iter().chain(&self.extra.sparse_names);
        names.enumerate().map(|(j, name)| (name.as_str(), j)).collect()
    }

    fn index(&self, key: &str) -> Result<usize> {
        let n = self.names.len();
        let by_position = || match key.trim().parse::<isize>() {
            Ok(p) if p != 0 && p.unsigned_abs() <= n => {
                Some(if p > 0 { p as usize - 1 } else { n - p.unsigned_abs() })
            }
            _ => None,
        };
        let sparse = || self.extra.sparse_names.iter().position(|name| name == key).map(|j| n + j);
        let found =
            self.names.iter().position(|name| name == key).or_else(sparse).or_else(by_position);
        found.ok_or_else(|| {
            let all: Vec<String> =
                self.names.iter().chain(&self.extra.sparse_names).cloned().collect();
            Error::data(
                format!("column `{key}`"),
                "is not in the table",
                format!("choose one of {}", nearest(key, &all)),
            )
        })
    }

    fn numeric(&self, j: usize, remedy: &str) -> Result<&[f64]> {
        match &self.columns[j] {
            Column::Numeric(values) => Ok(values),
            Column::Text(texts) => {
                let row = texts.iter().position(|t| number(t).is_none()).unwrap_or(0);
                let text = &texts[row];
                let (shown, rest) =
                    text.split_at(text.char_indices().nth(30).map_or(text.len(), |(end, _)| end));
                let dots = if rest.is_empty() { "" } else { "…" };
                let problem =
                    Told::from(format!("holds text, `{shown}{dots}` in row ")).and_row(row);
                Err(Error::data(format!("column `{}`", self.names[j]), problem, remedy))
            }
        }
    }

    /// Columns of numbers in the order chosen, then sparse ones, then those of text as sequences;
    /// with the views among them.
    fn features(&self, chosen: &[usize]) -> Result<Dataset> {
        self.features_called(chosen, &|j| self.name(j).to_string())
    }

    /// The chosen columns as features under the names that `name` gives.
    fn features_called(&self, chosen: &[usize], name: &dyn Fn(usize) -> String) -> Result<Dataset> {
        if chosen.is_empty() {
            return Err(Error::data("features", "no column is left", "exclude fewer columns"));
        }
        let own = |j: &usize| *j < self.names.len();
        let is_text = |j: &usize| matches!(self.columns[*j], Column::Text(_));
        let (texts, numbers): (Vec<usize>, Vec<usize>) =
            chosen.iter().copied().filter(own).partition(is_text);
        let sparse: Vec<usize> =
            chosen.iter().copied().filter(|j| !own(j)).map(|j| j - self.names.len()).collect();
        let mut values: Vec<&[f64]> = Vec::new();
        for &j in &numbers {
            values.push(self.numeric(j, "")?);
        }
        let data = (0..self.n_rows).flat_map(|i| values.iter().map(move |c| c[i])).collect();
        let mut sequences = Vec::new();
        for &j in &texts {
            if let Column::Text(t) = &self.columns[j] {
                sequences.push(Sequences::new(&self.names[j], t)?);
            }
        }
        let mut rows = Rows::new(Matrix::new(self.n_rows, numbers.len(), data)?, sequences)?;
        if let (Some(s), false) = (&self.extra.sparse, sparse.is_empty()) {
            let mut wide = s.clone();
            wide.widen(sparse.iter().max().map_or(0, |m| m + 1));
            rows = rows.with_sparse(wide.select_cols(&sparse))?;
        }
        let order: Vec<usize> = numbers
            .into_iter()
            .chain(sparse.into_iter().map(|j| j + self.names.len()))
            .chain(texts)
            .collect();
        let names = order.iter().map(|&j| name(j)).collect();
        self.with_groups(Dataset::from_rows(rows, names)?.with_lines(self.lines.clone()), &order)
    }

    /// Names the views of `data`, whose columns are the table's columns `order`. A view of which no
    /// column was chosen is gone.
    fn with_groups(&self, data: Dataset, order: &[usize]) -> Result<Dataset> {
        let mut views = Vec::new();
        let mut kept = Vec::new();
        for group in &self.extra.groups {
            let places: Vec<usize> =
                (0..order.len()).filter(|&k| group.columns.contains(&order[k])).collect();
            let (Some(&first), Some(&last)) = (places.first(), places.last()) else { continue };
            if last + 1 - first != places.len() {
                return Err(Error::data(
                    format!("view `{}`", group.name),
                    "its columns are not side by side",
                    "a view holds numbers or texts, not both: make two views of it",
                ));
            }
            views.push(View { name: group.name.clone(), columns: first..last + 1 });
            kept.push(group);
        }
        let mut data = data.with_views(views)?;
        if let Some(places) = &self.extra.places {
            data = data.with_places(places.clone())?;
        }
        for group in kept {
            data = if group.gram { data.with_gram(&group.name)? } else { data };
            data = data.with_absent(&group.name, &group.absent)?;
        }
        Ok(data)
    }
}

/// `x12`: a column without a name of its own.
fn is_generated(name: &str) -> bool {
    let digits = name.rsplit('.').next().unwrap_or(name).trim_start_matches('x');
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
}

/// The names a user may have meant by `key`: all of them while they are few, else the nearest ones.
pub(crate) fn nearest(key: &str, names: &[String]) -> String {
    // Names that fit in a message.
    const SHOWN: usize = 12;
    let key = key.to_lowercase();
    let mut order: Vec<&String> = names.iter().collect();
    if order.len() > SHOWN {
        order.sort_by_cached_key(|name| edit_distance(&key, &name.to_lowercase()));
        order.truncate(SHOWN);
    }
    let list: Vec<String> = order.iter().map(|name| format!("`{name}`")).collect();
    let rest = names.len() - order.len();
    if rest == 0 { list.join(", ") } else { format!("{} and {rest} more", list.join(", ")) }
}

/// Levenshtein distance over characters.
fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, &cb) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(ca != cb);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

fn is_missing(field: &str) -> bool {
    ["", "na", "n/a", "nan", "?", "null"]
        .iter()
        .any(|missing| field.trim().eq_ignore_ascii_case(missing))
}

/// A field as a number: NaN if it is missing, `None` if it is text.
pub(super) fn number(field: &str) -> Option<f64> {
    field.trim().parse().ok().or_else(|| is_missing(field).then_some(f64::NAN))
}

fn few_integers(values: &[f64]) -> bool {
    let mut distinct: Vec<f64> = Vec::new();
    for &value in values {
        if value.fract() != 0.0 || distinct.len() > 10 {
            return false;
        }
        if !distinct.contains(&value) {
            distinct.push(value);
        }
    }
    (2..=10).contains(&distinct.len())
}

/// Where an item stands for the second time.
pub(super) fn first_repeated<T: Eq + std::hash::Hash>(items: &[T]) -> Option<usize> {
    let mut seen = std::collections::HashSet::new();
    items.iter().position(|item| !seen.insert(item))
}

#[cfg(test)]
mod tests;
