//! `mercer inspect`: what a model has learned and how sure it is.

use mercer::{
    Model, Result,
    report::{self, MethodRow, ReportData, WeightPanel},
};

use crate::{Exit, args::InspectArgs, describe, output};

pub fn run(args: &InspectArgs) -> Result<Exit> {
    output::check(&[("--report", args.report.as_deref())], &[&args.model])?;
    let model = Model::load(&args.model)?;
    if let Some(path) = &args.report {
        output::write_file(path, report::html(&page(args, &model)).as_bytes())?;
    }
    if args.json {
        output::json(&describe::value(&model, args.all))?;
    } else {
        output::print(&describe::text(&model, args.all))?;
    }
    Ok(Exit::Done)
}

fn page(args: &InspectArgs, model: &Model) -> ReportData {
    let method = describe::method(model);
    ReportData {
        title: format!("mercer: {}", args.model.display()),
        command: output::command_line(),
        version: model.version.clone(),
        data: [
            ("training rows", Some(model.n_samples.to_string())),
            ("kernels as", report::approximation(model)),
        ]
        .into_iter()
        .filter_map(|(label, value)| Some((label.into(), value?)))
        .collect(),
        methods: vec![MethodRow::new(&method, model, None)],
        weights: vec![WeightPanel::new(&method, model)],
        traces: report::trace_lines(&method, model),
        outcome: None,
        alignment: None,
        comparison: None,
        tuning: None,
        warnings: model.warnings.clone(),
    }
}
