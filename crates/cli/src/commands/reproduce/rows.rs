//! got.csv, expected.csv, and the page of both.

use std::{collections::HashMap, fmt::Write as _, fs, path::Path};

use mercer::{Error, Result, select::SplitRun};

use super::plan::{Entry, Experiment, Part};

/// A line of got.csv: one method on one split.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    pub part: String,
    pub method: String,
    pub split: usize,
    score: Option<f64>,
    kernels: Option<f64>,
    scopes: Option<f64>,
    iterations: Option<f64>,
    gap: Option<f64>,
    seconds: Option<f64>,
    chosen: String,
}

/// One number of the paper.
pub struct Expected {
    part: String,
    method: String,
    measure: String,
    mean: f64,
    sd: Option<f64>,
    repeats: f64,
}

const COLUMNS: [&str; 10] = [
    "part",
    "method",
    "split",
    "score",
    "kernels",
    "scopes",
    "iterations",
    "gap",
    "seconds",
    "chosen",
];

impl Row {
    pub fn new(part: &Part, run: SplitRun, split: usize, kernels: &[String]) -> Self {
        let chosen: Vec<String> = run.chosen.iter().map(|(k, v)| format!("{k}={v}")).collect();
        Self {
            part: part.name.clone(),
            split,
            score: run.score.map(|s| part.scale * s),
            kernels: Some(if part.per_machine { run.selected_each } else { run.selected as f64 }),
            scopes: Some(scopes(&run, kernels) as f64),
            iterations: Some(run.iterations as f64),
            gap: run.gap,
            seconds: Some(run.seconds),
            chosen: chosen.join(" "),
            method: run.method,
        }
    }

    fn measure(&self, name: &str) -> Option<f64> {
        match name {
            "score" => self.score,
            "kernels" => self.kernels,
            "scopes" => self.scopes,
            "iterations" => self.iterations,
            _ => self.seconds,
        }
    }
}

/// Sets of columns on which some kernel has a weight.
fn scopes(run: &SplitRun, kernels: &[String]) -> usize {
    let chosen = kernels.iter().zip(&run.weights).filter(|(_, w)| **w != 0.0);
    let mut scopes: Vec<&str> =
        chosen.map(|(k, _)| k.split_once(" on ").map_or("", |k| k.1)).collect();
    scopes.sort_unstable();
    scopes.dedup();
    scopes.len()
}

/// Lines after the header, cells by column.
fn cells<'a>(
    path: &Path,
    text: &'a str,
    needed: &[&str],
) -> Result<Vec<HashMap<&'a str, &'a str>>> {
    let mut lines = text.lines().filter(|l| !l.trim().is_empty()).enumerate();
    let header: Vec<&str> =
        lines.next().map_or_else(Vec::new, |(_, l)| l.split(',').map(str::trim).collect());
    if let Some(missing) = needed.iter().find(|n| !header.contains(n)) {
        return Err(Error::file(
            path,
            format!("has no column `{missing}`; expected {}", needed.join(",")),
        ));
    }
    let line = |(number, line): (usize, &'a str)| {
        let cells: Vec<&str> = line.split(',').map(str::trim).collect();
        if cells.len() != header.len() {
            let problem = format!(
                "line {}: expected {} cells, got {}",
                number + 1,
                header.len(),
                cells.len()
            );
            return Err(Error::file(path, problem));
        }
        Ok(header.iter().copied().zip(cells).collect())
    };
    lines.map(line).collect()
}

fn number(path: &Path, cells: &HashMap<&str, &str>, column: &str) -> Result<Option<f64>> {
    match cells.get(column).copied().unwrap_or_default() {
        "" => Ok(None),
        text => text
            .parse()
            .map(Some)
            .map_err(|_| Error::file(path, format!("`{text}` in column {column} is no number"))),
    }
}

/// What is there already; nothing where there is no file.
pub fn read_got(path: &Path) -> Result<Vec<Row>> {
    if !path.is_file() {
        return Ok(Vec::new());
    }
    let text = fs::read_to_string(path).map_err(|e| Error::file(path, e))?;
    let row = |c: &HashMap<&str, &str>| -> Result<Row> {
        let text = |column| c.get(column).copied().unwrap_or_default().to_string();
        let value = |column| number(path, c, column);
        Ok(Row {
            part: text("part"),
            method: text("method"),
            split: value("split")?.unwrap_or_default() as usize,
            score: value("score")?,
            kernels: value("kernels")?,
            scopes: value("scopes")?,
            iterations: value("iterations")?,
            gap: value("gap")?,
            seconds: value("seconds")?,
            chosen: text("chosen"),
        })
    };
    cells(path, &text, &["part", "method", "split", "score"])?.iter().map(row).collect()
}

pub fn csv(rows: &[Row]) -> String {
    let mut out = format!("{}\n", COLUMNS.join(","));
    let plain = |x: Option<f64>| x.map_or_else(String::new, |x| x.to_string());
    for r in rows {
        let (score, kernels, scopes) = (plain(r.score), plain(r.kernels), plain(r.scopes));
        let gap = r.gap.map_or_else(String::new, |g| format!("{g:.2e}"));
        let seconds = r.seconds.map_or_else(String::new, |s| format!("{s:.4}"));
        let iterations = plain(r.iterations);
        let (part, method, split, chosen) = (&r.part, &r.method, r.split, &r.chosen);
        let _ = writeln!(
            out,
            "{part},{method},{split},{score},{kernels},{scopes},{iterations},{gap},{seconds},{chosen}"
        );
    }
    out
}

pub fn read_expected(path: &Path) -> Result<Vec<Expected>> {
    let text = fs::read_to_string(path).map_err(|e| Error::file(path, e))?;
    let row = |c: &HashMap<&str, &str>| -> Result<Expected> {
        let text = |column| c.get(column).copied().unwrap_or_default().to_string();
        let needed = |column| {
            number(path, c, column)?.ok_or_else(|| {
                Error::file(path, format!("a line has no {column}: {}", text("part")))
            })
        };
        Ok(Expected {
            part: text("part"),
            method: text("method"),
            measure: text("measure"),
            mean: needed("mean")?,
            sd: number(path, c, "sd")?,
            repeats: needed("repeats")?,
        })
    };
    cells(path, &text, &["part", "method", "measure", "mean", "sd", "repeats"])?
        .iter()
        .map(row)
        .collect()
}

pub const HEADERS: [&str; 6] =
    ["method", "measure", "paper", "ours", "difference", "standard errors"];

/// Both, a row per method and measure: methods of the experiment first, then peers, then what only
/// the paper has.
pub fn table(part: &Part, rows: &[Row], expected: &[Expected]) -> Vec<Vec<String>> {
    let rows: Vec<&Row> = rows.iter().filter(|r| r.part == part.name).collect();
    let expected: Vec<&Expected> = expected.iter().filter(|e| e.part == part.name).collect();
    let mut methods: Vec<&str> = Vec::new();
    let named =
        part.methods.iter().map(Entry::label).filter(|m| rows.iter().any(|r| r.method == *m));
    let others =
        rows.iter().map(|r| r.method.as_str()).chain(expected.iter().map(|e| e.method.as_str()));
    for method in named.chain(others) {
        if !methods.contains(&method) {
            methods.push(method);
        }
    }
    let mut out = Vec::new();
    for method in methods {
        for measure in ["score", "kernels", "scopes", "iterations", "seconds"] {
            let own = rows.iter().filter(|r| r.method == method);
            let values: Vec<f64> = own.filter_map(|r| r.measure(measure)).collect();
            let paper = expected.iter().find(|e| e.method == method && e.measure == measure);
            let told = measure == "score" || expected.iter().any(|e| e.measure == measure);
            if told && (!values.is_empty() || paper.is_some()) {
                out.push(cells_of(method, measure, &values, paper.copied()));
            }
        }
    }
    out
}

fn cells_of(method: &str, measure: &str, values: &[f64], paper: Option<&Expected>) -> Vec<String> {
    let ours = (!values.is_empty()).then(|| mean_sd(values));
    let both = ours.zip(paper);
    let difference = both.map(|((mean, ..), e)| mean - e.mean);
    let error =
        both.map(|((_, sd, n), e)| (sd * sd / n + e.sd.unwrap_or(0.0).powi(2) / e.repeats).sqrt());
    // Seconds are of other machines.
    let ratio = difference
        .zip(error)
        .filter(|(_, e)| *e > 0.0 && measure != "seconds")
        .map(|(d, e)| d.abs() / e);
    let digits = |x: f64| if x.abs() < 5.0 { 3 } else { 1 };
    let plain = |mean: f64, sd: Option<f64>| {
        let n = digits(mean);
        sd.map_or_else(|| format!("{mean:.n$}"), |sd| format!("{mean:.n$} ± {sd:.n$}"))
    };
    let none = || "–".to_string();
    vec![
        method.to_string(),
        measure.to_string(),
        paper.map_or_else(none, |e| plain(e.mean, e.sd)),
        ours.map_or_else(none, |(mean, sd, n)| plain(mean, Some(sd).filter(|_| n > 1.0))),
        both.map_or_else(none, |((mean, ..), e)| {
            format!("{:+.*}", digits(mean).min(digits(e.mean)), mean - e.mean)
        }),
        ratio.map_or_else(none, |r| format!("{r:.1}{}", if r > 2.0 { " *" } else { "" })),
    ]
}

fn mean_sd(values: &[f64]) -> (f64, f64, f64) {
    let n = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
    (mean, variance.sqrt(), n)
}

/// Splits of every method of a part in words: `10`, or `5 to 10`.
fn splits(part: &Part, rows: &[Row]) -> String {
    let of = |m: &str| rows.iter().filter(|r| r.part == part.name && r.method == m).count();
    let counts: Vec<usize> =
        rows.iter().filter(|r| r.part == part.name).map(|r| of(&r.method)).collect();
    match (counts.iter().min(), counts.iter().max()) {
        (Some(a), Some(b)) if a < b => format!("{a} to {b} repeats"),
        (Some(1), _) => "1 repeat".into(),
        (Some(a), _) => format!("{a} repeats"),
        _ => "no rows".into(),
    }
}

pub fn page(
    plan: &Experiment,
    parts: &[&Part],
    rows: &[Row],
    expected: &[Expected],
    command: &str,
) -> String {
    let mut out = format!("# {}\n\n", plan.title);
    if command.ends_with("--quick") {
        out += "A quick run: generated data and few repeats. Its numbers are a check of the machinery, not of the paper.\n\n";
    }
    let _ = writeln!(out, "{}\n", plan.notes.trim());
    if let Some(peers) = &plan.peers {
        let _ = writeln!(out, "{}\n", peers.trim());
    }
    let _ = writeln!(
        out,
        "`{command}`, mercer {}, seeds from {}. Means ± standard deviations over repeats; the last column is the difference in standard\n\
         errors, marked where it is more than two.\n",
        env!("CARGO_PKG_VERSION"),
        plan.seed
    );
    for part in parts {
        let _ = writeln!(out, "## {}\n\n{}.\n", part.heading(), splits(part, rows));
        let _ = writeln!(out, "| {} |\n|{}", HEADERS.join(" | "), "---|".repeat(HEADERS.len()));
        for row in table(part, rows, expected) {
            let _ = writeln!(out, "| {} |", row.join(" | "));
        }
        out += "\n";
        if !part.discussion.trim().is_empty() && !command.ends_with("--quick") {
            let _ = writeln!(out, "{}\n", part.discussion.trim());
        }
    }
    out
}
