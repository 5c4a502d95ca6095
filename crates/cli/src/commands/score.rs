//! `mercer score`: predictions against known answers.

use mercer::{
    Model, Result,
    linalg::threads,
    report::{Outcome, significant, table},
};
use serde_json::{Map, Value, json};

use crate::{
    Exit,
    args::ScoreArgs,
    output,
    scores::{self, Scores},
};

pub fn run(args: &ScoreArgs) -> Result<Exit> {
    let model = Model::load(&args.model)?;
    let rows = super::load::read(&args.data, args.new.rows, &args.new.gram, None)?;
    let truth =
        super::answers(&rows, &model, super::load::target_key(args.target.as_deref(), &rows)?)?;
    let data = super::features(&rows, &model)?;
    let decision = threads::install(args.run.threads, || model.decision(&data))?;
    let predicted = model.decide(&decision);
    let measured = scores::all(&truth, &predicted, &model.class_scores(&decision))?;
    let outcome = scores::outcome(String::new(), &truth, &predicted)?;
    if args.run.json {
        output::json(&value(data.len(), &measured, &outcome))?;
    } else {
        output::print(&words(data.len(), &measured, &outcome))?;
    }
    Ok(Exit::Done)
}

fn value(rows: usize, measured: &Scores, outcome: &Outcome) -> Value {
    let key = |name: &str| name.replace('²', "2").replace(' ', "_").to_lowercase();
    let values: Map<String, Value> =
        measured.iter().map(|(name, value)| (key(name), json!(value))).collect();
    let mut out = json!({ "rows": rows, "scores": values });
    if let Outcome::Confusion { classes, counts, .. } = outcome {
        let class = |c: scores::ClassScore| json!({ "class": c.class, "rows": c.rows, "precision": c.precision, "recall": c.recall, "f1": c.f1 });
        out["classes"] = scores::per_class(classes, counts).into_iter().map(class).collect();
        out["confusion"] = json!(counts);
    }
    out
}

fn words(rows: usize, measured: &Scores, outcome: &Outcome) -> String {
    let shown = |value: Option<f64>| value.map_or_else(|| "–".into(), |v| significant(v, 4));
    let lines: Vec<Vec<String>> =
        measured.iter().map(|(name, v)| vec![(*name).to_string(), shown(*v)]).collect();
    let mut out = format!("{rows} rows\n\n{}", table(&["measure", "value"], &lines));
    if let Outcome::Confusion { classes, counts, .. } = outcome {
        let class = |c: scores::ClassScore| {
            vec![
                c.class,
                c.rows.to_string(),
                shown(c.precision),
                shown(c.recall),
                shown(Some(c.f1)),
            ]
        };
        let each: Vec<Vec<String>> =
            scores::per_class(classes, counts).into_iter().map(class).collect();
        out.push('\n');
        out += &table(&["class", "rows", "precision", "recall", "F1"], &each);
        let headers: Vec<&str> = std::iter::once("true \\ predicted")
            .chain(classes.iter().map(String::as_str))
            .collect();
        let line = |(class, counts): (&String, &Vec<usize>)| {
            std::iter::once(class.clone()).chain(counts.iter().map(ToString::to_string)).collect()
        };
        let confusion: Vec<Vec<String>> = classes.iter().zip(counts).map(line).collect();
        out.push('\n');
        out += &table(&headers, &confusion);
    }
    out
}
