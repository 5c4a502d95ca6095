//! Features with names, grouped into views, and what is to be predicted from them.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::{Missing, Rows, Sequences, steps::Plan};
use crate::{Error, Result, Told, linalg::Matrix};

/// A named run of columns: one sensor, one descriptor, one source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct View {
    /// The name that `view(name)` in the kernel language refers to.
    pub name: String,
    /// Its columns in the data set.
    pub columns: Range<usize>,
}

/// Features with names: finite numbers and, beside them, sequences; one row per sample.
#[derive(Debug, Clone, PartialEq)]
pub struct Dataset {
    rows: Rows,
    columns: Vec<String>,
    views: Vec<View>,
    /// Views whose columns are kernel values against the training rows, by position among the
    /// views.
    grams: Vec<usize>,
    /// Where each row stands among the columns of those views: its number in the whole data, from
    /// 0.
    places: Vec<usize>,
    /// The line of a file that each row begins at, counted from 1; empty where rows are not lines
    /// of one file.
    lines: Vec<usize>,
}

impl Dataset {
    /// Features with their column names (`x1`, `x2`, … if empty). Refuses NaN and infinities,
    /// naming the column.
    pub fn new(features: Matrix, columns: Vec<String>) -> Result<Self> {
        Self::from_rows(features.into(), columns)
    }

    /// Numbers and sequences with their column names, those of the sequences last.
    pub fn from_rows(rows: Rows, columns: Vec<String>) -> Result<Self> {
        let columns = if columns.is_empty() {
            (1..=rows.cols()).map(|j| format!("x{j}")).collect()
        } else {
            columns
        };
        if columns.len() != rows.cols() {
            return Err(Error::shape("column names", rows.cols(), columns.len()));
        }
        if rows.is_empty() || rows.cols() == 0 {
            return Err(Error::data(
                "data",
                format!("{} rows and {} feature columns", rows.len(), rows.cols()),
                "at least one row and one numeric feature column are needed",
            ));
        }
        let features = rows.numbers();
        if let Some(at) = features.data().iter().position(|x| !x.is_finite()) {
            let (row, col) = (at / features.cols(), at % features.cols());
            return Err(Error::data(
                format!("column `{}`", columns[col]),
                Told::row(row, format!("is {}", features.data()[at])),
                "NaN and infinity are not accepted: fill in, drop the row, or leave the column out",
            ));
        }
        let places = (0..rows.len()).collect();
        Ok(Self { rows, columns, views: Vec::new(), grams: Vec::new(), places, lines: Vec::new() })
    }

    /// Adds a column of sequences after all others.
    pub fn with_sequences(mut self, name: String, sequences: Sequences) -> Result<Self> {
        if self.columns.contains(&name) {
            return Err(Error::data(
                format!("column `{name}`"),
                "is there already",
                "give it another name",
            ));
        }
        let all = self.rows.sequences().iter().cloned().chain([sequences]).collect();
        self.rows =
            Rows::new(self.rows.numbers().clone(), all)?.with_sparse(self.rows.take_sparse())?;
        self.columns.push(name);
        Ok(self)
    }

    /// Names views: runs of columns.
    pub fn with_views(mut self, views: Vec<View>) -> Result<Self> {
        for v in &views {
            if v.columns.is_empty() || v.columns.end > self.columns.len() {
                return Err(Error::shape(
                    format!("view `{}`", v.name),
                    format!("columns within 0..{}", self.columns.len()),
                    format!("{:?}", v.columns),
                ));
            }
        }
        self.views = views;
        Ok(self)
    }

    /// Marks the named view as a ready-made Gram matrix: kernel values against the training rows, a
    /// column each.
    pub fn with_gram(mut self, view: &str) -> Result<Self> {
        let at = self.view_at(view)?;
        let columns = self.views[at].columns.clone();
        if columns.end > self.features().cols() {
            return Err(Error::data(
                format!("view `{view}`"),
                "does not hold plain numbers",
                "give kernel values",
            ));
        }
        self.rows = self.rows.with_ready(columns);
        self.grams.push(at);
        Ok(self)
    }

    /// Says at which places the rows stand among the columns of Gram views.
    pub fn with_places(mut self, places: Vec<usize>) -> Result<Self> {
        if places.len() != self.len() {
            return Err(Error::shape("places of rows", self.len(), places.len()));
        }
        self.places = places;
        Ok(self)
    }

    /// Says at which lines of a file the rows begin, for messages.
    pub(super) fn with_lines(mut self, lines: Vec<usize>) -> Self {
        self.lines = lines;
        self
    }

    /// An error about these rows, with their numbers in the whole data and the lines of the file
    /// that they begin at.
    #[must_use]
    pub fn located(&self, error: Error) -> Error {
        error.with_rows(|row| {
            (self.places.get(row).copied().unwrap_or(row), self.lines.get(row).copied())
        })
    }

    /// Says which rows have nothing in the named view.
    pub fn with_absent(mut self, view: &str, rows: &[usize]) -> Result<Self> {
        let at = self.view_at(view)?;
        let mut absent = vec![false; self.len()];
        rows.iter().for_each(|&i| absent[i] = true);
        self.rows = self.rows.with_gap(self.views[at].columns.clone(), absent);
        Ok(self)
    }

    fn view_at(&self, name: &str) -> Result<usize> {
        let problem =
            || Error::data(format!("view `{name}`"), "is not in the data", "name one of the views");
        self.views.iter().position(|v| v.name == name).ok_or_else(problem)
    }

    /// Replaces the numbers of the dense columns; rows, names and views stay.
    pub fn with_numbers(&self, numbers: Matrix) -> Result<Self> {
        let checked = Self::from_rows(self.rows.with_numbers(numbers), self.columns.clone())?;
        // The rows of the clone share their numbers with `self`: nothing is copied to be thrown
        // away.
        Ok(Self { rows: checked.rows, ..self.clone() })
    }

    /// The data after preprocessing.
    pub fn after(&self, plan: &Plan) -> Result<Self> {
        if plan.is_empty() {
            return Ok(self.clone());
        }
        let names = plan.columns(&self.columns)?;
        let view = |v: &View| {
            Ok(View { name: v.name.clone(), columns: plan.view(&v.columns, &self.columns)? })
        };
        let views = self.views.iter().map(view).collect::<Result<Vec<_>>>()?;
        let rows = Rows::new(plan.numbers(self.features())?, self.rows.sequences().to_vec())?;
        let mut out = Self::from_rows(rows, names)?.with_views(views)?;
        for &at in &self.grams {
            out = out.with_gram(&self.views[at].name)?;
        }
        for (columns, absent) in self.rows.gaps() {
            out.rows = out.rows.with_gap(plan.view(&columns, &self.columns)?, absent.to_vec());
        }
        out.rows = out.rows.with_missing(self.rows.missing());
        out.places.clone_from(&self.places);
        Ok(out)
    }

    /// Sets the rule for rows that lack a view. `Refuse` is an error where one does, naming it.
    pub fn with_missing(mut self, missing: Missing) -> Result<Self> {
        self.check_missing(missing)?;
        self.rows = self.rows.with_missing(missing);
        Ok(self)
    }

    /// An error where rows lack a view and the rule is to refuse that.
    pub fn check_missing(&self, missing: Missing) -> Result<()> {
        if missing == Missing::Refuse {
            for view in &self.views {
                let absent =
                    self.rows.absent(&view.columns.clone().collect::<Vec<_>>()).unwrap_or_default();
                if let Some(row) = absent.iter().position(|a| *a) {
                    let count = absent.iter().filter(|a| **a).count();
                    return Err(Error::data(
                        format!("view `{}`", view.name),
                        Told::from(format!(
                            "{count} of {} rows have nothing in it, the first is row ",
                            self.len()
                        ))
                        .and_row(row),
                        "drop those rows, or impute kernel values with missing = zero or mean",
                    ));
                }
            }
        }
        Ok(())
    }

    /// Is the view, by position, a ready-made Gram matrix?
    pub fn is_gram(&self, view: usize) -> bool {
        self.grams.contains(&view)
    }

    /// Where each row stands among the columns of Gram views.
    pub fn places(&self) -> &[usize] {
        &self.places
    }

    /// Columns of features: numbers, stored either way, that are not kernel values.
    pub fn feature_columns(&self) -> Vec<usize> {
        let gram = |c: &usize| self.grams.iter().any(|&v| self.views[v].columns.contains(c));
        self.rows.numeric().into_iter().filter(|c| !gram(c)).collect()
    }

    /// Numbers and sequences without their names.
    pub fn rows(&self) -> &Rows {
        &self.rows
    }

    /// The numeric columns that are stored densely.
    pub fn features(&self) -> &Matrix {
        self.rows.numbers()
    }

    /// Column names: of numbers, then of sequences.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// Views, if any were named.
    pub fn views(&self) -> &[View] {
        &self.views
    }

    /// Number of samples, that is of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Never true: an empty data set cannot be made.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The rows `index`, in that order.
    #[must_use]
    pub fn select(&self, index: &[usize]) -> Self {
        Self {
            rows: self.rows.select_rows(index),
            columns: self.columns.clone(),
            views: self.views.clone(),
            grams: self.grams.clone(),
            places: index.iter().map(|&i| self.places[i]).collect(),
            lines: index.iter().filter_map(|&i| self.lines.get(i).copied()).collect(),
        }
    }
}

/// The quantity that is to be predicted.
#[derive(Debug, Clone, PartialEq)]
pub enum Target {
    /// Class labels: `labels[i]` indexes `names`, which are sorted (numerically if all are
    /// numbers).
    Classes {
        /// The names of the classes.
        names: Vec<String>,
        /// One index per sample.
        labels: Vec<usize>,
    },
    /// Numbers to regress on.
    Values(Vec<f64>),
}

impl Target {
    /// Class labels from texts; classes are sorted, as numbers where all are numbers.
    pub fn classes<S: AsRef<str>>(texts: &[S]) -> Self {
        let mut names: Vec<String> = texts.iter().map(|t| t.as_ref().to_string()).collect();
        names.sort();
        names.dedup();
        let numbers: Option<Vec<f64>> = names.iter().map(|n| n.parse().ok()).collect();
        if let Some(numbers) = numbers {
            let mut order: Vec<usize> = (0..names.len()).collect();
            order.sort_by(|&i, &j| numbers[i].total_cmp(&numbers[j]));
            names = order.into_iter().map(|i| names[i].clone()).collect();
        }
        let labels =
            texts.iter().map(|t| names.iter().position(|n| n == t.as_ref()).unwrap_or(0)).collect();
        Self::Classes { names, labels }
    }

    /// Number of samples, that is of rows.
    pub fn len(&self) -> usize {
        match self {
            Self::Classes { labels, .. } => labels.len(),
            Self::Values(values) => values.len(),
        }
    }

    /// No samples at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The rows `index`, in that order; class names are kept even where a class no longer occurs.
    #[must_use]
    pub fn select(&self, index: &[usize]) -> Self {
        match self {
            Self::Classes { names, labels } => Self::Classes {
                names: names.clone(),
                labels: index.iter().map(|&i| labels[i]).collect(),
            },
            Self::Values(values) => Self::Values(index.iter().map(|&i| values[i]).collect()),
        }
    }
}
