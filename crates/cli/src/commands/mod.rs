//! One file per command.

mod demo;
mod fit;
mod inspect;
mod kernels;
mod methods;
mod predict;
mod score;
mod verify;

use mercer::{
    Error, Model, Result,
    data::{
        Dataset, Target,
        csv::{Column, Table, TaskHint},
    },
    model::{Input, Task},
};

use crate::{Exit, args::Command, scores};

/// Carries a command out.
pub fn run(command: Command) -> Result<Exit> {
    match command {
        Command::Demo(args) => demo::run(&args),
        Command::Fit(args) => fit::Plan::try_from(*args)?.run(),
        Command::Predict(args) => predict::run(&args),
        Command::Score(args) => score::run(&args),
        Command::Inspect(args) => inspect::run(&args),
        Command::Verify(args) => verify::run(&args),
        Command::Methods(args) => methods::run(&args),
        Command::Kernels(args) => kernels::run(&args),
    }
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

/// The weight of each row, where a column holds it.
fn weights(table: &Table, key: Option<&str>) -> Result<Option<Vec<f64>>> {
    key.map(|key| match table.column(key)? {
        Column::Numeric(values) => Ok(values.clone()),
        Column::Text(_) => Err(Error::data(format!("weight column `{key}`"), "holds text", "choose a numeric column")),
    })
    .transpose()
}
