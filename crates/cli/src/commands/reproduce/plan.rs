//! What `experiment.toml` says, and the data it names.

use std::path::{Path, PathBuf};

use mercer::{
    Error, Result, TrainSpec,
    data::{self, Dataset, Table, Target, TaskHint, array, source, split, synthetic},
    kernels::Normalize,
    request::Scheme,
    select::{Contender, Grid},
};
use serde::Deserialize;

use super::pixels;
use crate::commands::load::target_key;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    pub title: String,
    #[serde(default)]
    pub notes: String,
    /// Rows of other packages in got.csv, and the road to them.
    pub peers: Option<String>,
    /// Repeats with `--quick`, which runs the parts marked so.
    pub quick_repeats: usize,
    pub seed: u64,
    pub part: Vec<Part>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub struct Part {
    pub name: String,
    /// Which table or figure.
    pub table: String,
    /// A generated set, made anew for every repeat, and its rows …
    pub generated: Option<String>,
    /// … or files below the data folder with the same columns, their target column, and how many
    /// rows to draw from them.
    #[serde(default)]
    file: Files,
    target: Option<String>,
    /// Numbers in the target column are names of classes.
    #[serde(default)]
    classify: bool,
    rows: Option<usize>,
    #[serde(default)]
    exclude: Vec<String>,
    /// Classes that make up the class `1`; the others are `0`.
    positive: Option<Vec<String>>,
    /// An image: labelled pixels are rows, and windows of these widths around them give means and
    /// deviations of every channel.
    windows: Option<Vec<usize>>,
    /// What stands in for data that are gone.
    pub substitute: Option<String>,
    pub methods: Vec<Entry>,
    kernels: String,
    normalize: Normalize,
    #[serde(default = "yes")]
    standardize: bool,
    /// Values are brought to deviation 1 before they are fitted; papers fit them in their own
    /// units.
    #[serde(default = "yes")]
    scale_target: bool,
    #[serde(default)]
    preprocess: String,
    multi_class: Option<Scheme>,
    max_iter: Option<usize>,
    grid: String,
    /// Parameters chosen once, on the training part of the first repeat, instead of in every one.
    #[serde(default)]
    pub choose_once: bool,
    pub folds: usize,
    /// Of the fits that are reported: kernels are counted, so it has to be small.
    pub tol: f64,
    pub metric: String,
    /// Factor on the metric, 100 for percent.
    #[serde(default = "one")]
    pub scale: f64,
    pub train: f64,
    pub repeats: usize,
    #[serde(default)]
    pub quick: bool,
    /// Kernels are counted per machine, not over all of them.
    #[serde(default)]
    pub per_machine: bool,
    /// What differs from the paper, and why.
    #[serde(default)]
    pub discussion: String,
}

fn one() -> f64 {
    1.0
}

fn yes() -> bool {
    true
}

/// One file, or several with the same columns, one after the other.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Files {
    One(String),
    Several(Vec<String>),
}

impl Default for Files {
    fn default() -> Self {
        Self::Several(Vec::new())
    }
}

impl Files {
    fn names(&self) -> &[String] {
        match self {
            Self::One(name) => std::slice::from_ref(name),
            Self::Several(names) => names,
        }
    }
}

/// A method in the notation of `compare`, or one with a name and kernels of its own.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum Entry {
    Plain(String),
    Own { label: String, method: String, kernels: Option<String> },
}

impl Entry {
    pub fn label(&self) -> &str {
        match self {
            Self::Plain(method) => method,
            Self::Own { label, .. } => label,
        }
    }
}

impl Part {
    pub fn heading(&self) -> String {
        let data = self.generated.clone().unwrap_or_else(|| self.file.names().join(", "));
        let instead =
            self.substitute.as_ref().map_or_else(String::new, |s| format!(" (substitute: {s})"));
        format!("{} ({}): {data}{instead}", self.name, self.table)
    }

    pub fn contender(&self, entry: &Entry) -> Result<Contender> {
        let (method, kernels) = match entry {
            Entry::Plain(method) => (method, None),
            Entry::Own { method, kernels, .. } => (method, kernels.as_ref()),
        };
        let plain = TrainSpec::default();
        let base = TrainSpec {
            kernels: kernels.unwrap_or(&self.kernels).clone(),
            normalize: self.normalize,
            standardize: self.standardize,
            scale_target: self.scale_target,
            preprocess: self.preprocess.clone(),
            multi_class: self.multi_class.unwrap_or(plain.multi_class),
            max_iter: self.max_iter.unwrap_or(plain.max_iter),
            tol: self.tol,
            ..plain
        };
        let common = Grid::parse(&self.grid, &base.method)?;
        Ok(Contender {
            label: entry.label().to_string(),
            ..Contender::parse(method, &base, &common)?
        })
    }

    /// Data of one repeat.
    pub fn load(&self, seed: u64) -> Result<(Dataset, Target)> {
        match (&self.generated, self.file.names()) {
            (Some(name), []) => self.generate(name, seed),
            (None, [_, ..]) => self.read(),
            _ => Err(Error::param("part", "either generated or file", format!("`{}`", self.name))),
        }
    }

    fn generate(&self, name: &str, seed: u64) -> Result<(Dataset, Target)> {
        let rows = self.rows.unwrap_or(300);
        let polygon = |sides| {
            synthetic::polygon(rows, sides, 0.0, seed).map(|(data, target, _)| (data, target))
        };
        match name {
            "toy1" => Ok(synthetic::toy1(rows, seed)),
            "toy2" => Ok(synthetic::toy2(rows, seed)),
            "four_gaussians" => Ok(synthetic::four_gaussians(rows, seed)),
            "triangle" => polygon(3),
            "square" => polygon(4),
            other => Err(Error::param(
                "generated",
                "toy1, toy2, four_gaussians, triangle or square",
                format!("`{other}`"),
            )),
        }
    }

    fn read(&self) -> Result<(Dataset, Target)> {
        let folder = std::env::var_os("MERCER_DATA_DIR")
            .map_or_else(|| "../shared/data".into(), PathBuf::from);
        let paths: Vec<PathBuf> = self.file.names().iter().map(|name| folder.join(name)).collect();
        if let Some(path) = paths.iter().find(|p| !p.is_file()) {
            return Err(Error::file(
                path,
                "is not there; MERCER_DATA_DIR names the folder with the data sets",
            ));
        }
        let (data, target) = match &self.windows {
            Some(windows) => pixels::rows(&array::read(&paths[0])?, windows, &paths[0])?,
            None => self.table(&paths)?,
        };
        let target = match (&self.positive, target) {
            (Some(positive), Target::Classes { names, labels }) => {
                let is_one: Vec<bool> = names.iter().map(|n| positive.contains(n)).collect();
                let labels = labels.into_iter().map(|l| usize::from(is_one[l])).collect();
                Target::Classes { names: ["0", "1"].map(String::from).to_vec(), labels }
            }
            (_, target) => target,
        };
        match self.rows.filter(|rows| *rows < data.len()) {
            Some(rows) => {
                let (drawn, _) =
                    split::stratified_split(&target, 1.0 - rows as f64 / data.len() as f64, 0)?;
                Ok((data.select(&drawn), target.select(&drawn)))
            }
            None => Ok((data, target)),
        }
    }

    fn table(&self, paths: &[PathBuf]) -> Result<(Dataset, Target)> {
        let table = if let [path] = paths { data::read(path)? } else { joined(paths)? };
        let key = target_key(self.target.as_deref(), &table)?;
        let mut exclude: Vec<&str> = self.exclude.iter().map(String::as_str).collect();
        exclude.push(key);
        let task = if self.classify { TaskHint::Classify } else { TaskHint::Auto };
        Ok((table.dataset(&exclude, None)?, table.target(key, task)?))
    }
}

/// CSV files with the same header, one after the other.
fn joined(paths: &[PathBuf]) -> Result<Table> {
    let mut text = Vec::new();
    for (k, path) in paths.iter().enumerate() {
        let bytes = source::read_all(path)?;
        let header = bytes.iter().position(|b| *b == b'\n').map_or(bytes.len(), |at| at + 1);
        let shared = text.len() >= header && text[..header] == bytes[..header];
        if k > 0 && !shared {
            return Err(Error::file(path, "has other columns than the files before it"));
        }
        text.extend_from_slice(if k == 0 { &bytes } else { &bytes[header..] });
        if text.last() != Some(&b'\n') {
            text.push(b'\n');
        }
    }
    Table::parse(&text, b',', paths.first().map_or(Path::new(""), PathBuf::as_path))
}
