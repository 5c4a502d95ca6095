//! The join of a data description: the rows of several files side by side, each file a view.

use std::{
    collections::{BTreeSet, HashMap},
    path::Path,
};

use super::{
    Sparse,
    description::{Description, FilePart, ViewEntry, bank},
    table::{Column, ColumnGroup, Extra, Table},
};
use crate::{Error, Result};

/// One table from the files of a description.
pub(super) fn join(
    description: &Description,
    labels: Option<FilePart>,
    parts: Vec<FilePart>,
    path: &Path,
) -> Result<Table> {
    check_ids(description, labels.as_ref(), &parts, path)?;
    let base = labels.as_ref().unwrap_or(&parts[0]);
    let mut joined = Joined::new(description, base);
    joined.columns.extend(labels.map(|labels| labels.columns).unwrap_or_default());
    joined.extra.aside = joined.columns.iter().map(|(name, _)| name.clone()).collect();
    for (view, part) in description.view.iter().zip(parts) {
        joined.add(view, part, description.target.as_ref(), path)?;
    }
    joined.extra.kernels = bank(description);
    joined.table(path)
}

/// Either all files have ids or none has.
fn check_ids(
    description: &Description,
    labels: Option<&FilePart>,
    parts: &[FilePart],
    path: &Path,
) -> Result<()> {
    let with_ids = labels.into_iter().chain(parts).filter(|p| p.ids.is_some()).count();
    if with_ids > 0 && with_ids < parts.len() + usize::from(labels.is_some()) {
        let mut views = description.view.iter().zip(parts);
        let without = views.find(|(_, p)| p.ids.is_none()).map_or("labels", |(v, _)| v.name());
        let problem = format!("`{without}` has no id column, other files have");
        return Err(Error::file(
            path,
            format!("{problem}; give every file one, or none to join by row"),
        ));
    }
    if let Some(id) = description.id.as_ref().filter(|_| with_ids == 0) {
        return Err(Error::file(path, format!("no file has the id column `{id}`")));
    }
    Ok(())
}

/// The table while views are added to it.
struct Joined {
    /// Number of rows, which the labels decide, or else the first view.
    n: usize,
    /// The id of each row, where rows are joined on ids.
    ids: Option<Vec<String>>,
    columns: Vec<(String, Column)>,
    extra: Extra,
    /// Sparse columns of each view that has some, and where they begin among all sparse columns.
    sparse: Vec<(Sparse, usize)>,
    /// Views of sparse columns, which count their columns from the first sparse one.
    sparse_groups: Vec<ColumnGroup>,
}

impl Joined {
    fn new(description: &Description, base: &FilePart) -> Self {
        let id_column = |ids: &Vec<String>| {
            (description.id.clone().unwrap_or_else(|| "id".into()), Column::Text(ids.clone()))
        };
        Self {
            n: base.rows,
            ids: base.ids.clone(),
            columns: base.ids.iter().map(id_column).collect(),
            extra: Extra { target: description.target.clone(), ..Extra::default() },
            sparse: Vec::new(),
            sparse_groups: Vec::new(),
        }
    }

    /// Adds the columns of a view, and the target column where the view holds it.
    fn add(
        &mut self,
        view: &ViewEntry,
        mut part: FilePart,
        target: Option<&String>,
        path: &Path,
    ) -> Result<()> {
        let places = places_of(view, &part, self.ids.as_deref(), self.n, path)?;
        let absent: Vec<usize> = (0..self.n).filter(|&i| places[i].is_none()).collect();
        let unused = part.rows - (self.n - absent.len());
        if unused > 0 {
            let name = view.name();
            let note = format!(
                "view `{name}`: {unused} rows have ids that no other row has, and are not used"
            );
            self.extra.notes.push(note);
        }
        if view.gram && part.ids.is_some() && part.columns.len() == part.rows {
            part.columns = reordered_square(&part, &places);
        }
        let group =
            |columns| ColumnGroup { name: view.name().into(), columns, gram: view.gram, absent };
        let start = self.columns.len();
        let end = self.add_dense(view, part.columns, target, &places);
        match part.sparse {
            Some((names, sparse)) => {
                let first = self.extra.sparse_names.len();
                self.add_sparse(view, &names, &sparse, &places);
                let group = group(first..self.extra.sparse_names.len());
                if end > start {
                    self.extra.groups.push(ColumnGroup { columns: start..end, ..group.clone() });
                }
                self.sparse_groups.push(group);
            }
            None if end > start => self.extra.groups.push(group(start..end)),
            None => return Err(Error::file(path, format!("{} has no columns left", view.place))),
        }
        Ok(())
    }

    /// Adds the columns that a view keeps, then the target column; says where the former end.
    fn add_dense(
        &mut self,
        view: &ViewEntry,
        columns: Vec<(String, Column)>,
        target: Option<&String>,
        places: &[Option<usize>],
    ) -> usize {
        let mut target_column = None;
        // The labels' column of that name is the target, where there is one.
        let has_target =
            target.is_some_and(|target| self.columns.iter().any(|(name, _)| name == target));
        for (name, column) in columns {
            let is_target = target == Some(&name);
            if is_target && !has_target {
                target_column = Some((name, spread(&column, places)));
            } else if !is_target
                && view.columns.as_ref().is_none_or(|c| c.contains(&name))
                && !view.exclude.contains(&name)
            {
                self.columns.push((format!("{}.{name}", view.name()), spread(&column, places)));
            }
        }
        let end = self.columns.len();
        self.columns.extend(target_column);
        end
    }

    fn add_sparse(
        &mut self,
        view: &ViewEntry,
        names: &[String],
        sparse: &Sparse,
        places: &[Option<usize>],
    ) {
        let first = self.extra.sparse_names.len();
        self.extra.sparse_names.extend(names.iter().map(|name| format!("{}.{name}", view.name())));
        let mut rows = Sparse::new(sparse.cols());
        for place in places {
            let (c, v) = place.map_or((&[][..], &[][..]), |i| sparse.row(i));
            rows.push_row(c.iter().copied().zip(v.iter().copied()));
        }
        self.sparse.push((rows, first));
    }

    /// The sparse columns of all views side by side.
    fn all_sparse(&self) -> Option<Sparse> {
        if self.sparse.is_empty() {
            return None;
        }
        let mut all = Sparse::new(self.extra.sparse_names.len());
        for i in 0..self.n {
            let entries = self.sparse.iter().flat_map(|(s, first)| {
                let (c, v) = s.row(i);
                c.iter().map(|c| c + *first as u32).zip(v.iter().copied())
            });
            all.push_row(entries.collect::<Vec<_>>());
        }
        Some(all)
    }

    fn table(mut self, path: &Path) -> Result<Table> {
        self.extra.sparse = self.all_sparse();
        // Sparse columns are counted after all others.
        let width = self.columns.len();
        let moved = self
            .sparse_groups
            .into_iter()
            .map(|g| ColumnGroup { columns: g.columns.start + width..g.columns.end + width, ..g });
        self.extra.groups.extend(moved);
        if self.columns.is_empty() {
            // A table has a dense column at least; this one numbers the rows.
            self.columns
                .push(("row".into(), Column::Numeric((1..=self.n).map(|i| i as f64).collect())));
        }
        let mut table = Table::from_columns(self.columns, path)?;
        table.extra = self.extra;
        Ok(table)
    }
}

/// The columns of a square matrix in the order of the whole, as its rows will be; those of rows
/// that it lacks are never read.
fn reordered_square(part: &FilePart, places: &[Option<usize>]) -> Vec<(String, Column)> {
    let zeros = || Column::Numeric(vec![0.0; part.rows]);
    let column = |at: Option<usize>| at.map_or_else(zeros, |at| part.columns[at].1.clone());
    places.iter().enumerate().map(|(j, at)| ((j + 1).to_string(), column(*at))).collect()
}

/// The row of `part` for each row of the whole.
fn places_of(
    view: &ViewEntry,
    part: &FilePart,
    ids: Option<&[String]>,
    n: usize,
    path: &Path,
) -> Result<Vec<Option<usize>>> {
    let (Some(ids), Some(own)) = (ids, &part.ids) else {
        if part.rows != n {
            let problem = format!("{} has {} rows where {n} were expected", view.place, part.rows);
            return Err(Error::file(
                path,
                format!("{problem}; join files of different rows on an `id` column"),
            ));
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
        Column::Numeric(v) => {
            Column::Numeric(places.iter().map(|p| p.map_or(0.0, |i| v[i])).collect())
        }
        Column::Text(t) => Column::Text(
            places.iter().map(|p| p.map_or_else(|| "?".into(), |i| t[i].clone())).collect(),
        ),
    }
}
