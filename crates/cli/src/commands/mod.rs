//! One file per command.

mod demo;
mod fit;
mod inspect;
mod kernels;
mod methods;
mod predict;
mod score;

use mercer::{
    Error, Model, Result,
    data::{Dataset, csv::Table},
    model::Input,
};

use crate::{Exit, args::Command};

/// Carries a command out.
pub fn run(command: Command) -> Result<Exit> {
    match command {
        Command::Demo(args) => demo::run(&args),
        Command::Fit(args) => fit::Plan::try_from(*args)?.run(),
        Command::Predict(args) => predict::run(&args),
        Command::Score(args) => score::run(&args),
        Command::Inspect(args) => inspect::run(&args),
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
