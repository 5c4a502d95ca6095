//! One file per command.

mod compare;
mod demo;
mod fit;
mod gram;
mod inspect;
mod kernels;
mod methods;
mod predict;
mod report;
mod reproduce;
mod score;
mod select;
mod tune;
mod verify;

use std::path::{Path, PathBuf};

use mercer::{
    Error, Model, Result,
    data::{self, Column, Dataset, Span, Table, Target, TaskHint},
    kernels::language,
    model::{Input, Task},
};

use crate::{Exit, args::Command, output, scores};

/// Carries a command out.
pub fn run(command: Command) -> Result<Exit> {
    match command {
        Command::Demo(args) => demo::run(&args),
        Command::Fit(args) => fit::Plan::try_from(*args)?.run(),
        Command::Predict(args) => predict::run(&args),
        Command::Score(args) => score::run(&args),
        Command::Inspect(args) => inspect::run(&args),
        Command::Verify(args) => verify::run(&args),
        Command::Gram(args) => gram::run(&args),
        Command::Tune(args) => tune::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Reproduce(args) => reproduce::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Methods(args) => methods::run(&args),
        Command::Kernels(args) => kernels::run(&args),
    }
}

/// Reads data of any format; says what reading did that was not asked for.
fn read(path: &Path, rows: Option<Span>, grams: &[(String, PathBuf)]) -> Result<Table> {
    read_within(path, rows, grams, None)
}

/// The same in so many bytes.
fn read_within(path: &Path, rows: Option<Span>, grams: &[(String, PathBuf)], memory: Option<u64>) -> Result<Table> {
    let mut table = data::read_within(path, rows, memory)?;
    for (name, file) in grams {
        table = table.with_gram(name, file)?;
    }
    table.notes().iter().for_each(|note| output::note(&format!("note: {note}")));
    Ok(table)
}

/// The files of kernel values that were given, and those that a bank names: each is read as a view of its name.
fn with_named_files(bank: Option<&str>, given: &[(String, PathBuf)]) -> Result<Vec<(String, PathBuf)>> {
    let named = bank.map_or_else(|| Ok(Vec::new()), language::precomputed)?;
    let mut grams = given.to_vec();
    for name in named {
        // `grams.npz.2` is the second kernel of a stack.
        let stack = name.rsplit_once('.').filter(|(_, k)| !k.is_empty() && k.bytes().all(|b| b.is_ascii_digit()));
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

/// Everything that a command reads.
fn inputs<'a>(data: &'a Path, grams: &'a [(String, PathBuf)]) -> Vec<&'a Path> {
    std::iter::once(data).chain(grams.iter().map(|(_, file)| file.as_path())).collect()
}

/// The column to predict: the one typed, or the one the data name.
fn target_key<'a>(typed: Option<&'a str>, table: &'a Table) -> Result<&'a str> {
    typed.or_else(|| table.default_target()).ok_or_else(|| {
        let (some, all) = (table.names().iter().take(10), table.names().len());
        let listed = some.map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ");
        let more = if all > 10 { format!(" and {} more", all - 10) } else { String::new() };
        let remedy = format!("name it with --target COL; the columns are {listed}{more}");
        Error::data("the column to predict", "none was named, and the data do not say which it is", remedy)
    })
}

/// The columns of `table` that `model` asks for.
fn features(table: &Table, model: &Model) -> Result<Dataset> {
    match &model.input {
        Input::Table { columns, .. } => table.dataset_of(columns),
        Input::Precomputed { .. } => Err(Error::data(
            "model",
            "was fitted on ready-made kernel matrices and cannot read a table",
            "predict with it from Python",
        )),
    }
}

/// The column `key` as answers of the kind that `model` gives.
fn answers(table: &Table, model: &Model, key: &str) -> Result<Target> {
    let hint = match model.task {
        Task::Classification { .. } => TaskHint::Classify,
        Task::Regression => TaskHint::Regress,
    };
    scores::in_model_classes(table.target(key, hint)?, model, key)
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

/// The weight of each row, where a column holds it.
fn weights(table: &Table, key: Option<&str>) -> Result<Option<Vec<f64>>> {
    key.map(|key| match table.column(key)? {
        Column::Numeric(values) => Ok(values.clone()),
        Column::Text(_) => Err(Error::data(format!("weight column `{key}`"), "holds text", "choose a numeric column")),
    })
    .transpose()
}
