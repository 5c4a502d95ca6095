//! `mercer methods`: the catalogue.

use mercer::{Result, report::table, request::catalogue};
use serde_json::json;

use crate::{Exit, args::MethodsArgs, output};

pub fn run(args: &MethodsArgs) -> Result<Exit> {
    if args.json {
        output::json(&json!({ "methods": catalogue() }))?;
    } else {
        let rows: Vec<Vec<String>> = catalogue()
            .iter()
            .map(|m| {
                [m.name, m.summary, m.certificate, &m.parameter_line()].map(String::from).to_vec()
            })
            .collect();
        output::print(&table(&["name", "what it is", "certificate", "parameters"], &rows))?;
    }
    Ok(Exit::Done)
}
