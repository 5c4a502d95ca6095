//! `mercer predict`: a prediction per row.

use std::fmt::Write as _;

use mercer::{
    Model, Result,
    data::{Target, csv::Table},
    linalg::{Matrix, threads},
    model::Task,
};
use serde_json::{Value, json};

use crate::{Exit, args::PredictArgs, output};

pub fn run(args: &PredictArgs) -> Result<Exit> {
    args.output.as_deref().map_or(Ok(()), output::check_writable)?;
    let model = Model::load(&args.model)?;
    let data = super::features(&Table::read(&args.data)?, &model)?;
    let decision = threads::install(args.threads, || model.decision(&data))?;
    let predicted = model.decide(&decision);
    let shown = args.decision.then_some(&decision);
    if let Some(path) = &args.output {
        output::write_file(path, csv(&model, &predicted, shown).as_bytes())?;
    }
    match (args.json, &args.output) {
        (true, path) => {
            let path = path.as_ref().map(|p| p.display().to_string());
            let mut value = json!({ "rows": data.len(), "predictions": values(&predicted), "output": path });
            if let Some(decision) = shown {
                value["decision"] = (0..decision.rows()).map(|i| json!(decision.row(i))).collect();
            }
            output::json(&value)?;
        }
        (false, Some(_)) => {}
        (false, None) => output::print(&csv(&model, &predicted, shown))?,
    }
    Ok(Exit::Done)
}

fn values(predicted: &Target) -> Vec<Value> {
    match predicted {
        Target::Classes { names, labels } => labels.iter().map(|&l| names[l].clone().into()).collect(),
        Target::Values(values) => values.iter().map(|&v| v.into()).collect(),
    }
}

fn csv(model: &Model, predicted: &Target, decision: Option<&Matrix>) -> String {
    let mut out = String::from("prediction");
    if let Some(decision) = decision {
        match &model.task {
            Task::Classification { classes, .. } if decision.cols() > 1 => {
                for class in classes {
                    let _ = write!(out, ",{}", quoted(&format!("decision_{class}")));
                }
            }
            _ => out += ",decision",
        }
    }
    out += "\n";
    for i in 0..predicted.len() {
        match predicted {
            Target::Classes { names, labels } => out += &quoted(&names[labels[i]]),
            Target::Values(values) => out += &values[i].to_string(),
        }
        for value in decision.map_or(&[][..], |d| d.row(i)) {
            let _ = write!(out, ",{value}");
        }
        out += "\n";
    }
    out
}

fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\n', '\r']) { format!("\"{}\"", field.replace('"', "\"\"")) } else { field.into() }
}
