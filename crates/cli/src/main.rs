//! The program `mercer`. Arguments are parsed, a plan is made from them, the plan is carried out.

#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod args;
mod commands;
mod describe;
mod output;
mod progress;
mod scores;
mod ticker;
mod values;

use std::process::ExitCode;

use clap::Parser as _;

/// How a command ended; an error is not here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Done,
    /// `--strict`, and the tolerance was not reached.
    NotConverged,
    /// `verify`, and the certificate does not hold.
    NotVerified,
    /// `compare`, and every run failed.
    Failed,
    /// Stopped by Ctrl-C; the best model or all finished runs were saved.
    Interrupted,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Done => 0,
            Exit::NotConverged | Exit::NotVerified => 1,
            Exit::Failed => 2,
            Exit::Interrupted => 130,
        })
    }
}

fn main() -> ExitCode {
    let cli = match args::Cli::try_parse() {
        Ok(cli) => cli,
        // Also --help and --version, whose exit code is 0.
        Err(message) => {
            let _ = message.print();
            return ExitCode::from(u8::try_from(message.exit_code()).unwrap_or(2));
        }
    };
    match commands::run(cli.command) {
        Ok(exit) => exit.into(),
        Err(error) => {
            output::note(&format!("error: {error}"));
            ExitCode::from(2)
        }
    }
}
