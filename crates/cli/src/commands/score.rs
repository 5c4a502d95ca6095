//! `mercer score`: predictions against known answers.

use mercer::{
    Model, Result,
    data::csv::{Table, TaskHint},
    linalg::threads,
    model::Task,
    report::{significant, table},
};
use serde_json::{Map, Value, json};

use crate::{Exit, args::ScoreArgs, output, scores};

pub fn run(args: &ScoreArgs) -> Result<Exit> {
    let model = Model::load(&args.model)?;
    let rows = Table::read(&args.data)?;
    let hint = match model.task {
        Task::Classification { .. } => TaskHint::Classify,
        Task::Regression => TaskHint::Regress,
    };
    let truth = scores::in_model_classes(rows.target(&args.target, hint)?, &model, &args.target)?;
    let data = super::features(&rows, &model)?;
    let decision = threads::install(args.threads, || model.decision(&data))?;
    let measured = scores::all(&truth, &model.decide(&decision), &decision)?;
    if args.json {
        let key = |name: &str| name.replace('²', "2").replace(' ', "_").to_lowercase();
        let values: Map<String, Value> = measured.iter().map(|(name, value)| (key(name), json!(value))).collect();
        output::json(&json!({ "rows": data.len(), "scores": values }))?;
    } else {
        let shown = |value: Option<f64>| value.map_or_else(|| "–".into(), |v| significant(v, 4));
        let lines: Vec<Vec<String>> = measured.iter().map(|(name, v)| vec![(*name).to_string(), shown(*v)]).collect();
        output::print(&format!("{} rows\n\n{}", data.len(), table(&["measure", "value"], &lines)))?;
    }
    Ok(Exit::Done)
}
