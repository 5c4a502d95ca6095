//! Data and request together: what every command that learns starts from.

use std::path::{Path, PathBuf};

use mercer::{
    Error, Result, TrainSpec,
    data::{self, Column, Dataset, Span, Table, Target},
    kernels::language,
    prepare::Source,
    select::{Protocol, Study, Watch},
};

use crate::{
    args::{BankArgs, DataArgs, TableArgs},
    output,
};

/// Data with their answers, and the request with the bank that the data name where none was typed.
pub struct Loaded {
    pub data: Dataset,
    pub target: Target,
    /// The weight of each row, where a column holds it.
    pub weight: Option<Vec<f64>>,
    /// The number of each row's group, where a column names it.
    pub groups: Option<Vec<usize>>,
    pub spec: TrainSpec,
    /// The column to predict.
    pub key: String,
}

impl Loaded {
    /// The work of `tune` and `compare` on these rows.
    pub fn study<'a>(&'a self, protocol: &'a Protocol, watch: &'a dyn Watch) -> Study<'a> {
        let (weight, groups) = (self.weight.as_deref(), self.groups.as_deref());
        Study {
            weight,
            groups,
            watch,
            ..Study::new(Source::Table(&self.data), &self.target, protocol)
        }
    }
}

/// Reads the data for a request. `group_column` says which rows stay together.
pub fn load(
    path: &Path,
    args: &DataArgs,
    group_column: Option<&str>,
    bank: &BankArgs,
    spec: TrainSpec,
) -> Result<Loaded> {
    let grams = grams(bank.kernels.as_deref(), &args.gram)?;
    let table = read(path, args.table.rows, &grams, spec.memory)?;
    let key = target_key(args.target.as_deref(), &table)?;
    let target = table.target(key, args.task)?;
    check_epsilon(spec.epsilon, &target)?;
    let others = args.weight_column.as_deref().into_iter().chain(group_column);
    let data =
        features(&table, &args.table, &std::iter::once(key).chain(others).collect::<Vec<_>>())?;
    let weight = weights(&table, args.weight_column.as_deref())?;
    let groups = group_column.map(|name| table.column(name).map(numbered)).transpose()?;
    let kernels = bank.kernels.as_deref().or(table.kernels()).map_or(spec.kernels, String::from);
    Ok(Loaded {
        data,
        target,
        weight,
        groups,
        spec: TrainSpec { kernels, ..spec },
        key: key.to_string(),
    })
}

/// Refuses outputs that cannot be, or that are among what is read: the data, files of kernel values
/// and `more`.
pub fn check_outputs(
    outputs: &[(&str, Option<&Path>)],
    data: &Path,
    more: Option<&Path>,
    grams: &[(String, PathBuf)],
) -> Result<()> {
    let files = grams.iter().map(|(_, file)| file.as_path());
    output::check(outputs, &std::iter::once(data).chain(more).chain(files).collect::<Vec<_>>())
}

/// Reads data of any format, in `memory` bytes at most; says what reading did that was not asked
/// for.
pub fn read(
    path: &Path,
    rows: Option<Span>,
    grams: &[(String, PathBuf)],
    memory: Option<u64>,
) -> Result<Table> {
    let mut table = data::read_within(path, rows, memory)?;
    for (name, file) in grams {
        table = table.with_gram(name, file)?;
    }
    table.notes().iter().for_each(|note| output::note(&format!("note: {note}")));
    Ok(table)
}

/// Files of kernel values that were given, and those that a bank names as `precomputed(FILE)`: each
/// is read as a view of its name.
pub fn grams(bank: Option<&str>, given: &[(String, PathBuf)]) -> Result<Vec<(String, PathBuf)>> {
    let named = bank.map_or_else(|| Ok(Vec::new()), language::precomputed)?;
    let mut grams = given.to_vec();
    for name in named {
        // `grams.npz.2` is the second kernel of a stack.
        let stack = name
            .rsplit_once('.')
            .filter(|(_, k)| !k.is_empty() && k.bytes().all(|b| b.is_ascii_digit()));
        let name = match stack {
            Some((stack, _)) if !Path::new(&name).is_file() => stack.to_string(),
            _ => name,
        };
        if Path::new(&name).is_file() && !grams.iter().any(|(known, _)| *known == name) {
            grams.push((name.clone(), name.into()));
        }
    }
    Ok(grams)
}

/// The columns to learn from: those typed, less `others`, which hold something else.
pub fn features(table: &Table, args: &TableArgs, others: &[&str]) -> Result<Dataset> {
    let exclude: Vec<&str> =
        args.exclude.iter().map(String::as_str).chain(others.iter().copied()).collect();
    let only: Option<Vec<&str>> =
        args.columns.as_ref().map(|c| c.iter().map(String::as_str).collect());
    table.dataset(&exclude, only.as_deref())
}

/// The column to predict: the one typed, or the one the data name.
pub fn target_key<'a>(typed: Option<&'a str>, table: &'a Table) -> Result<&'a str> {
    typed.or_else(|| table.default_target()).ok_or_else(|| {
        let (some, all) = (table.names().iter().take(10), table.names().len());
        let listed = some.map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ");
        let more = if all > 10 { format!(" and {} more", all - 10) } else { String::new() };
        let remedy = format!("name it with --target COL; the columns are {listed}{more}");
        Error::data(
            "the column to predict",
            "none was named, and the data do not say which it is",
            remedy,
        )
    })
}

/// The weight of each row, where a column holds it.
pub fn weights(table: &Table, key: Option<&str>) -> Result<Option<Vec<f64>>> {
    key.map(|key| match table.column(key)? {
        Column::Numeric(values) => Ok(values.clone()),
        Column::Text(_) => Err(Error::data(
            format!("weight column `{key}`"),
            "holds text",
            "choose a numeric column",
        )),
    })
    .transpose()
}

/// Refuses the half-width of a tube for classes, whose losses have none.
fn check_epsilon(epsilon: Option<f64>, target: &Target) -> Result<()> {
    match (epsilon, target) {
        (Some(epsilon), Target::Classes { .. }) => {
            Err(Error::param("epsilon", "left out for classes, whose losses have no tube", epsilon))
        }
        _ => Ok(()),
    }
}

/// Equal values as equal numbers.
fn numbered(column: &Column) -> Vec<usize> {
    let texts: Vec<String> = match column {
        Column::Numeric(values) => values.iter().map(ToString::to_string).collect(),
        Column::Text(texts) => texts.clone(),
    };
    let mut names = texts.clone();
    names.sort();
    names.dedup();
    texts.iter().map(|t| names.binary_search(t).unwrap_or(0)).collect()
}
