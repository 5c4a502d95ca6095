//! One file per command.

mod compare;
mod demo;
mod fit;
mod gram;
mod inspect;
mod kernels;
pub mod load;
mod methods;
mod predict;
mod report;
mod reproduce;
mod score;
mod select;
mod tune;
mod verify;

use mercer::{
    Error, Model, Result,
    data::{Dataset, Table, Target, TaskHint},
    model::{Input, Prediction},
};

use crate::{Exit, args::Command, scores};

/// Carries a command out.
pub fn run(command: Command) -> Result<Exit> {
    match command {
        Command::Demo(args) => demo::run(&args),
        Command::Fit(args) => fit::Plan::new(*args)?.run(),
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
        Prediction::Classification { .. } => TaskHint::Classify,
        Prediction::Regression => TaskHint::Regress,
    };
    scores::in_model_classes(table.target(key, hint)?, model, key)
}
