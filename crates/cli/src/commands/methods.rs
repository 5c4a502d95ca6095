//! `mercer methods`: the catalogue.

use mercer::{Result, report::table};
use serde::Serialize;
use serde_json::json;

use crate::{Exit, args::MethodsArgs, output};

/// Stands in for the core's catalogue until that exists.
#[derive(Debug, Serialize)]
struct Entry {
    name: &'static str,
    summary: &'static str,
    certificate: &'static str,
    parameters: &'static [&'static str],
}

const CATALOGUE: &[Entry] = &[
    Entry { name: "uniform", summary: "equal weights 1/M on all kernels", certificate: "gap", parameters: &[] },
    Entry {
        name: "gmkl",
        summary: "elastic-net constraint on the weights: v=0 is L2, v=1 is L1",
        certificate: "gap",
        parameters: &["v", "p", "solver"],
    },
];

/// The names that can be typed.
pub fn names() -> Vec<&'static str> {
    CATALOGUE.iter().map(|entry| entry.name).collect()
}

pub fn run(args: &MethodsArgs) -> Result<Exit> {
    if args.json {
        output::json(&json!({ "methods": CATALOGUE }))?;
    } else {
        let row = |e: &Entry| [e.name, e.summary, e.certificate, &e.parameters.join(", ")].map(String::from).to_vec();
        let rows: Vec<Vec<String>> = CATALOGUE.iter().map(row).collect();
        output::print(&table(&["name", "what it is", "certificate", "parameters"], &rows))?;
    }
    Ok(Exit::Done)
}
