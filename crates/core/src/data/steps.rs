//! Preprocessing of spectra and other ordered columns: steps that change each row for itself,
//! recorded in the model and done again on new rows.
//!
//! ```text
//! steps := group (";" group)*
//! group := step ("," step)* ["on" view(name)]
//! step  := average(k) | difference(k) | difference(k, keep) | snv
//! ```
//!
//! Without `on`, steps run over each view of numbers, or over all columns where there are no views.

use std::{fmt, ops::Range};

use serde::{Deserialize, Serialize};

use super::Dataset;
use crate::{Error, Result, linalg::Matrix};

/// One step, on a run of columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// The mean of every k neighbours: k times fewer columns (the last may average fewer).
    Average(usize),
    /// Differences of neighbours, k times over: k columns fewer. With `keep`, after the columns
    /// themselves.
    Difference {
        /// How many times differences are taken.
        order: usize,
        /// Are the columns kept?
        keep: bool,
    },
    /// Standard normal variate: each row to mean 0 and deviation 1 over its columns.
    Snv,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Average(k) => write!(f, "average({k})"),
            Self::Difference { order, keep: false } => write!(f, "difference({order})"),
            Self::Difference { order, keep: true } => write!(f, "difference({order}, keep)"),
            Self::Snv => f.write_str("snv"),
        }
    }
}

impl Step {
    /// Names of the columns it makes.
    fn names(self, names: &[String]) -> Result<Vec<String>> {
        match self {
            Self::Snv => Ok(names.to_vec()),
            Self::Average(k) => {
                let name = |run: &[String]| match run {
                    [one] => one.clone(),
                    _ => format!("{}..{}", run[0], run[run.len() - 1]),
                };
                Ok(names.chunks(k).map(name).collect())
            }
            Self::Difference { order, keep } if order < names.len() => {
                let new = names[..names.len() - order].iter().map(|n| format!("d{order}({n})"));
                Ok(if keep { names.iter().cloned().chain(new).collect() } else { new.collect() })
            }
            Self::Difference { .. } => Err(Error::data(
                self.to_string(),
                format!("there are {} columns to take differences of", names.len()),
                "use it on more columns",
            )),
        }
    }

    fn row(self, row: &[f64]) -> Vec<f64> {
        match self {
            Self::Average(k) => {
                row.chunks(k).map(|c| c.iter().sum::<f64>() / c.len() as f64).collect()
            }
            Self::Difference { order, keep } => {
                let mut out = row.to_vec();
                for _ in 0..order {
                    out = out.windows(2).map(|w| w[1] - w[0]).collect();
                }
                if keep { row.iter().copied().chain(out).collect() } else { out }
            }
            Self::Snv => {
                let n = row.len() as f64;
                let mean = row.iter().sum::<f64>() / n;
                let deviation = (row.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n).sqrt();
                // A flat row stays flat.
                let scale = if deviation > 1e-12 * mean.abs() { deviation } else { 1.0 };
                row.iter().map(|v| (v - mean) / scale).collect()
            }
        }
    }
}

/// Steps as they were written.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Steps {
    groups: Vec<(Vec<Step>, Option<String>)>,
}

/// Steps with the runs of dense columns they change, ascending: what a model stores.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Plan {
    runs: Vec<(Range<usize>, Vec<Step>)>,
}

impl Steps {
    /// Reads a text; an empty one is no steps.
    pub fn parse(text: &str) -> Result<Self> {
        let mut groups = Vec::new();
        // Where each part stands, for the error's caret.
        let mut at = 0;
        for part in text.split(';').filter(|_| !text.trim().is_empty()) {
            let (steps, view) = match part.split_once(" on ") {
                Some((steps, scope)) => (
                    steps,
                    Some(view(scope).ok_or_else(|| {
                        syntax(text, at + steps.len() + 4, "expected view(name)")
                    })?),
                ),
                None => (part, None),
            };
            let mut all = Vec::new();
            let mut inside = at;
            for step in outside_brackets(steps) {
                all.push(step_of(step.trim()).ok_or_else(|| {
                    let start = inside + step.len() - step.trim_start().len();
                    syntax(
                        text,
                        start,
                        "expected a step: average(k), difference(k), difference(k, keep) or snv",
                    )
                })?);
                inside += step.len() + 1;
            }
            groups.push((all, view));
            at += part.len() + 1;
        }
        Ok(Self { groups })
    }

    /// The columns of `data` that each step changes.
    pub fn plan(&self, data: &Dataset) -> Result<Plan> {
        let mut runs: Vec<(Range<usize>, Vec<Step>)> = Vec::new();
        if !self.groups.is_empty() && data.rows().sparse().is_some() {
            return Err(Error::data(
                "preprocessing",
                "the data are stored sparsely",
                "give dense columns",
            ));
        }
        for (steps, view) in &self.groups {
            for run in scope(data, view.as_deref())? {
                match runs.iter_mut().find(|(known, _)| *known == run) {
                    Some((_, before)) => before.extend(steps),
                    None => runs.push((run, steps.clone())),
                }
            }
        }
        runs.sort_by_key(|(run, _)| run.start);
        Ok(Plan { runs })
    }
}

/// Runs of dense columns: those of the view named, or of every view of numbers, or all.
fn scope(data: &Dataset, view: Option<&str>) -> Result<Vec<Range<usize>>> {
    let features = data.feature_columns();
    let numeric = |range: &Range<usize>| range.clone().all(|c| features.contains(&c));
    let views: Vec<Range<usize>> = match view {
        Some(name) => match data.views().iter().find(|v| v.name == name) {
            Some(v) if numeric(&v.columns) => vec![v.columns.clone()],
            Some(_) => {
                return Err(Error::data(
                    format!("view `{name}`"),
                    "holds no features as numbers",
                    "name another",
                ));
            }
            None => {
                return Err(Error::data(
                    format!("view `{name}`"),
                    "is not in the data",
                    "name one of the views",
                ));
            }
        },
        None => data.views().iter().map(|v| v.columns.clone()).filter(numeric).collect(),
    };
    match (views.is_empty(), features.as_slice()) {
        (false, _) => Ok(views),
        (true, [first, .., last]) if last - first + 1 == features.len() => {
            Ok(std::iter::once(*first..last + 1).collect())
        }
        _ => Err(Error::data(
            "preprocessing",
            "there is no run of numeric columns",
            "name a view of numbers",
        )),
    }
}

impl Plan {
    /// No steps at all.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Where a column ends up.
    fn moved(&self, column: usize, names: &[String]) -> Result<usize> {
        let mut out = column;
        for (run, steps) in self.runs.iter().filter(|(run, _)| run.end <= column) {
            out = out + Self::names(run, steps, names)?.len() - run.len();
        }
        Ok(out)
    }

    fn names(run: &Range<usize>, steps: &[Step], names: &[String]) -> Result<Vec<String>> {
        let own =
            names.get(run.clone()).ok_or_else(|| Error::shape("columns", run.end, names.len()))?;
        steps.iter().try_fold(own.to_vec(), |names, step| step.names(&names))
    }

    /// Names of all columns afterwards.
    pub fn columns(&self, names: &[String]) -> Result<Vec<String>> {
        let (mut out, mut at) = (Vec::new(), 0);
        for (run, steps) in &self.runs {
            out.extend_from_slice(names.get(at..run.start).unwrap_or_default());
            out.extend(Self::names(run, steps, names)?);
            at = run.end;
        }
        out.extend_from_slice(names.get(at..).unwrap_or_default());
        Ok(out)
    }

    /// A view's columns afterwards.
    pub(super) fn view(&self, columns: &Range<usize>, names: &[String]) -> Result<Range<usize>> {
        let start = self.moved(columns.start, names)?;
        let whole = self.runs.iter().find(|(run, _)| run == columns);
        match whole {
            Some((run, steps)) => Ok(start..start + Self::names(run, steps, names)?.len()),
            None => Ok(start..self.moved(columns.end, names)?),
        }
    }

    /// The numbers of `x` after this step.
    pub(super) fn numbers(&self, x: &Matrix) -> Result<Matrix> {
        let mut data = Vec::new();
        for i in 0..x.rows() {
            let (row, mut at) = (x.row(i), 0);
            for (run, steps) in &self.runs {
                data.extend_from_slice(&row[at..run.start]);
                data.extend(
                    steps.iter().fold(row[run.clone()].to_vec(), |row, step| step.row(&row)),
                );
                at = run.end;
            }
            data.extend_from_slice(&row[at..]);
        }
        Matrix::new(x.rows(), data.len() / x.rows().max(1), data)
    }
}

fn syntax(text: &str, byte: usize, expected: &str) -> Error {
    let at = text.get(..byte).map_or(0, |before| before.chars().count());
    Error::Syntax { input: text.into(), at, expected: expected.into() }
}

/// `view(name)`, perhaps in quotes.
fn view(text: &str) -> Option<String> {
    let name = text.trim().strip_prefix("view(")?.strip_suffix(')')?.trim();
    let bare = name.strip_prefix('"').and_then(|n| n.strip_suffix('"')).unwrap_or(name);
    (!bare.is_empty()).then(|| bare.to_string())
}

/// Parts between commas that are not inside brackets.
fn outside_brackets(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0);
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

fn step_of(text: &str) -> Option<Step> {
    if text == "snv" {
        return Some(Step::Snv);
    }
    let (word, inside) = text.strip_suffix(')')?.split_once('(')?;
    let (number, keep) =
        inside.split_once(',').map_or((inside, None), |(n, k)| (n, Some(k.trim())));
    let number: usize = number.trim().parse().ok().filter(|k| (1..=1_000_000).contains(k))?;
    match (word.trim(), keep) {
        ("average", None) => Some(Step::Average(number)),
        ("difference", None) => Some(Step::Difference { order: number, keep: false }),
        ("difference", Some("keep")) => Some(Step::Difference { order: number, keep: true }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::View;

    fn data() -> Dataset {
        let x = Matrix::new(
            2,
            7,
            vec![1.0, 2.0, 4.0, 7.0, 9.0, 5.0, 6.0, 3.0, 3.0, 3.0, 3.0, 8.0, 5.0, 7.0],
        )
        .unwrap();
        let views = vec![
            View { name: "s".into(), columns: 0..5 },
            View { name: "t".into(), columns: 5..7 },
        ];
        Dataset::new(x, vec![]).unwrap().with_views(views).unwrap()
    }

    fn done(text: &str) -> Dataset {
        let plan = Steps::parse(text).unwrap().plan(&data()).unwrap();
        data().after(&plan).unwrap()
    }

    #[test]
    fn steps_change_their_run_and_move_the_rest() {
        let d = done("average(2) on view(s)");
        assert_eq!(d.columns(), ["x1..x2", "x3..x4", "x5", "x6", "x7"]);
        assert_eq!(d.features().row(0), [1.5, 5.5, 9.0, 5.0, 6.0]);
        assert_eq!(d.views()[1], View { name: "t".into(), columns: 3..5 });
        let d = done("difference(2, keep) on view(s)");
        assert_eq!(d.features().row(0), [1.0, 2.0, 4.0, 7.0, 9.0, 1.0, 1.0, -1.0, 5.0, 6.0]);
        assert_eq!((d.views()[0].columns.clone(), d.columns()[5].as_str()), (0..8, "d2(x1)"));
        let d = done("difference(1), snv on view(s); difference(1) on view(t)");
        assert_eq!((d.features().cols(), d.features()[(0, 4)]), (5, 1.0));
        let sum: f64 = d.features().row(0)[..4].iter().sum();
        assert!(
            sum.abs() < 1e-12
                && (d.features().row(0)[..4].iter().map(|v| v * v).sum::<f64>() - 4.0).abs()
                    < 1e-12
        );
        // Row 2: differences 0, 0, 0, 5.
        assert!((d.features()[(1, 3)] - 3f64.sqrt()).abs() < 1e-12);
        // Without `on`, every view for itself.
        assert_eq!(done("average(9)").features().row(0), [4.6, 5.5]);
        let plain = Dataset::new(Matrix::new(1, 3, vec![1.0, 2.0, 6.0]).unwrap(), vec![]).unwrap();
        let plan = Steps::parse("average(3)").unwrap().plan(&plain).unwrap();
        assert_eq!(plain.after(&plan).unwrap().features().data(), [3.0]);
        assert!(Steps::parse("  ").unwrap().plan(&plain).unwrap().is_empty());
    }

    #[test]
    fn mistakes_point_at_the_character() {
        for (text, at) in [
            ("averag(2)", 0),
            ("snv, average(0)", 5),
            ("snv; difference(2, kept)", 5),
            ("snv on s", 7),
        ] {
            let e = Steps::parse(text).unwrap_err();
            assert!(matches!(e, Error::Syntax { at: found, .. } if found == at), "{text}: {e}");
        }
        let plan = |text: &str| Steps::parse(text).unwrap().plan(&data());
        assert!(plan("snv on view(z)").unwrap_err().to_string().contains("view `z`"));
        let long = plan("difference(5) on view(s)").unwrap();
        assert!(data().after(&long).unwrap_err().to_string().contains("there are 5 columns"));
    }
}
