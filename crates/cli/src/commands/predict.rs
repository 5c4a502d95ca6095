//! `mercer predict`: a prediction per row.

use std::{fmt::Write as _, path::Path};

use mercer::{
    Error, Model, Result,
    data::Target,
    linalg::{Matrix, threads},
    model::Prediction,
    request::LossName,
};
use serde_json::{Value, json};

use crate::{Exit, args::PredictArgs, output};

/// Numbers beside the prediction: what they are, and a column per class or one in all.
type Extra = (&'static str, Matrix);

pub fn run(args: &PredictArgs) -> Result<Exit> {
    let grams = args.new.gram.iter().map(|(_, file)| file.as_path());
    let inputs: Vec<&Path> = [args.model.as_path(), &args.data].into_iter().chain(grams).collect();
    output::check(&[("--output", args.output.as_deref())], &inputs)?;
    let model = Model::load(&args.model)?;
    let data = super::features(
        &super::load::read(&args.data, args.new.rows, &args.new.gram, None)?,
        &model,
    )?;
    let decision = threads::install(args.run.threads, || model.decision(&data))?;
    let predicted = model.decide(&decision);
    let mut extras: Vec<Extra> = Vec::new();
    if args.decision {
        extras.push(("decision", model.class_scores(&decision)));
    }
    if args.probabilities {
        extras.push(("probability", probabilities(&model, &decision)?));
    }
    if let Some(path) = &args.output {
        output::write_file(path, csv(&model, &predicted, &extras).as_bytes())?;
    }
    match (args.run.json, &args.output) {
        (true, path) => {
            let path = path.as_ref().map(|p| p.display().to_string());
            let mut value =
                json!({ "rows": data.len(), "predictions": values(&predicted), "output": path });
            for (name, numbers) in &extras {
                let key = if *name == "probability" { "probabilities" } else { name };
                value[key] = (0..numbers.rows()).map(|i| json!(numbers.row(i))).collect();
            }
            output::json(&value)?;
        }
        (false, Some(_)) => {}
        (false, None) => output::data(&csv(&model, &predicted, &extras))?,
    }
    Ok(Exit::Done)
}

fn probabilities(model: &Model, decision: &Matrix) -> Result<Matrix> {
    model.probabilities(decision).ok_or_else(|| {
        let loss = model.request.loss.map_or("unknown", LossName::as_str);
        Error::data(
            "model",
            format!("was fitted with the loss {loss}, which has no probabilities"),
            "fit classes with --loss logistic",
        )
    })
}

fn values(predicted: &Target) -> Vec<Value> {
    match predicted {
        Target::Classes { names, labels } => {
            labels.iter().map(|&l| names[l].clone().into()).collect()
        }
        Target::Values(values) => values.iter().map(|&v| v.into()).collect(),
    }
}

fn csv(model: &Model, predicted: &Target, extras: &[Extra]) -> String {
    let mut out = String::from("prediction");
    for (name, numbers) in extras {
        match &model.task {
            Prediction::Classification { classes, .. } if numbers.cols() > 1 => {
                for class in classes {
                    let _ = write!(out, ",{}", quoted(&format!("{name}_{class}")));
                }
            }
            _ => {
                let _ = write!(out, ",{name}");
            }
        }
    }
    out += "\n";
    for i in 0..predicted.len() {
        match predicted {
            Target::Classes { names, labels } => out += &quoted(&names[labels[i]]),
            Target::Values(values) => out += &values[i].to_string(),
        }
        for value in extras.iter().flat_map(|(_, numbers)| numbers.row(i)) {
            let _ = write!(out, ",{value}");
        }
        out += "\n";
    }
    out
}

fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.into()
    }
}
