//! `mercer demo`: generated data with a known answer, several methods, a table and a report.

use mercer::{
    Model, Result, TrainSpec,
    data::{Dataset, Target, split, synthetic},
    kernels::{Normalize, language::PAPER},
    linalg::threads,
    prepare::Source,
    report::{self, MethodRow, ReportData, WeightPanel, significant},
    request::MethodSpec,
    trace::Silent,
    train::grid_search,
};
use serde_json::json;

use crate::{Exit, args::DemoArgs, describe, output, scores};

/// As in the GMKL paper: 150 rows to learn from, 150 to test on, 273 unit-trace kernels on 20
/// columns.
const ROWS: usize = 300;
/// Unit-trace kernels need a C about n times larger than kernels of unit variance do.
const GRID: [f64; 3] = [10.0, 100.0, 1000.0];
const FOLDS: usize = 3;
/// What is fitted, as users name it.
const METHODS: [&str; 6] = ["uniform", "single", "l2", "gmkl", "l1", "smkl"];
/// The method whose kernels are listed.
const LISTED: usize = 3;

struct Fitted {
    label: &'static str,
    c: f64,
    model: Model,
    predicted: Target,
    row: MethodRow,
}

pub fn run(args: &DemoArgs) -> Result<Exit> {
    output::check(&[("--out", Some(&args.out))], &[])?;
    let (data, target) = synthetic::toy1(ROWS, args.seed);
    let (train, test) = split::stratified_split(&target, 0.5, args.seed)?;
    let learn = (data.select(&train), target.select(&train));
    let held = (data.select(&test), target.select(&test));
    let fits: Vec<Fitted> = threads::install(args.run.threads, || {
        METHODS.into_iter().map(|name| fit(name, &learn, &held, args.seed)).collect::<Result<_>>()
    })?;
    output::write_file(&args.out, report::html(&page(args, &fits, &held.1)?).as_bytes())?;
    if args.run.json {
        let value =
            |f: &Fitted| json!({ "c": f.c, "row": f.row, "fit": describe::value(&f.model, false) });
        output::json(
            &json!({ "report": args.out.display().to_string(), "methods": fits.iter().map(value).collect::<Vec<_>>() }),
        )?;
    } else {
        output::print(&words(args, &fits))?;
    }
    Ok(Exit::Done)
}

/// C with the best mean accuracy over folds (of equals the largest), then a fit on all of `learn`.
fn fit(
    label: &'static str,
    learn: &(Dataset, Target),
    held: &(Dataset, Target),
    seed: u64,
) -> Result<Fitted> {
    let with = |c: f64| -> Result<TrainSpec> {
        let method = MethodSpec::named(label)?;
        Ok(TrainSpec {
            method,
            kernels: "paper".into(),
            normalize: Normalize::Trace,
            c,
            ..TrainSpec::default()
        })
    };
    let specs = GRID.into_iter().map(with).collect::<Result<Vec<_>>>()?;
    let spec = &specs[grid_search(
        Source::Table(&learn.0),
        &learn.1,
        None,
        &specs,
        (FOLDS, seed),
        &mut Silent,
    )?
    .best];
    let model = mercer::train(&learn.0, &learn.1, None, spec, &mut Silent)?;
    let predicted = model.predict(&held.0)?;
    let row = MethodRow::new(label, &model, Some(scores::headline("test", &held.1, &predicted)?));
    Ok(Fitted { label, c: spec.c, model, predicted, row })
}

fn words(args: &DemoArgs, fits: &[Fitted]) -> String {
    let headers = ["method", "C", "test accuracy", "kernels (99 %)", "gap", "status", "time"];
    let row = |f: &Fitted| {
        let score = f.row.score.as_ref().map_or(f64::NAN, |s| s.value);
        vec![
            f.label.to_string(),
            f.c.to_string(),
            format!("{score:.3}"),
            format!("{} of {} ({})", f.row.selected, f.row.total, f.row.carrying),
            report::gap(f.row.gap),
            f.row.status.as_str().to_string(),
            report::seconds(f.row.seconds),
        ]
    };
    let table = report::table(&headers, &fits.iter().map(row).collect::<Vec<_>>());
    let listed = &fits[LISTED];
    let panel = WeightPanel::new(listed.label, &listed.model);
    let kernels: Vec<Vec<String>> = panel
        .ranked()
        .into_iter()
        .take(8)
        .filter(|(_, w)| *w > 0.0)
        .map(|(m, w)| vec![panel.kernels[m].clone(), significant(w, 3)])
        .collect();
    format!(
        "Toy 1: {ROWS} generated rows, half to learn from, half to test on. The class depends on x1, x2 and x3; the\n\
         other 17 columns are noise. C was chosen by {FOLDS}-fold cross-validation on the learning half.\n\n\
         {table}\nHeaviest kernels of {}:\n\n{}\nreport in {}\n",
        listed.label,
        report::table(&["kernel", "weight"], &kernels),
        args.out.display()
    )
}

fn page(args: &DemoArgs, fits: &[Fitted], truth: &Target) -> Result<ReportData> {
    let shown = &fits[LISTED];
    let cost = |f: &Fitted| (format!("C of {}", f.label), f.c.to_string());
    let facts = [
        ("data", format!("Toy 1, seed {}", args.seed)),
        ("rows", format!("{} to learn from, {} to test on", ROWS - truth.len(), truth.len())),
        ("columns", "20; the class depends on x1, x2 and x3 only, with noise".into()),
        ("kernels", format!("{PAPER}; unit trace")),
    ];
    Ok(ReportData {
        title: "mercer demo: which columns matter?".into(),
        command: output::command_line(),
        version: shown.model.version.clone(),
        data: facts
            .map(|(label, value)| (label.to_string(), value))
            .into_iter()
            .chain(fits.iter().map(cost))
            .collect(),
        methods: fits.iter().map(|f| f.row.clone()).collect(),
        weights: fits.iter().map(|f| WeightPanel::new(f.label, &f.model)).collect(),
        traces: fits.iter().flat_map(|f| report::trace_lines(f.label, &f.model)).collect(),
        outcome: Some(scores::outcome(
            format!("{}, test rows", shown.label),
            truth,
            &shown.predicted,
        )?),
        alignment: None,
        comparison: None,
        tuning: None,
        warnings: fits
            .iter()
            .flat_map(|f| f.model.warnings.iter().map(|w| format!("{}: {w}", f.label)))
            .collect(),
    })
}
