//! `mercer tune`: every setting of one method.

use std::fmt::Write as _;

use mercer::{
    Result,
    linalg::threads,
    report::{self, ReportData},
    request::MethodSpec,
    select::{Contender, Grid, Splitting, Tuning},
    trace::Silent,
};

use super::{load::load, select};
use crate::{Exit, args::TuneArgs, output};

/// Settings printed.
const SHOWN: usize = 20;

pub fn run(args: &TuneArgs) -> Result<Exit> {
    let TuneArgs { data, rows, request, study, .. } = args;
    select::check(study, args.output.as_deref(), data, rows, request)?;
    let method = MethodSpec::named(&args.method)?;
    let grid = Grid::parse(&args.grid, &method)?;
    let spec = request.request(method, study.seed)?;
    let loaded = load(data, rows, study.group_column.as_deref(), &request.bank, spec)?;
    let contender = Contender { label: args.method.clone(), spec: loaded.spec.clone(), grid };
    let plain = Splitting::Folds { folds: args.folds, repeats: args.repeats };
    let protocol = select::protocol(study, &loaded.target, plain, 2, 0.01)?;
    let splits =
        protocol.splitting.splits(&loaded.target, loaded.groups.as_deref(), protocol.seed)?.len();
    let ticker = select::ticker(study, splits);
    let work = loaded.study(&protocol, &ticker);
    let (journal, temporary) = select::journal(study.journal.as_deref(), &work.key(&contender))?;
    let found = threads::install(study.work.threads, || work.tune(&contender, &journal));
    ticker.finish();
    let Some(found) = found? else {
        return Ok(select::stopped(study.journal.as_deref().or(temporary.as_deref())));
    };
    if let Some(path) = &args.output {
        threads::install(study.work.threads, || {
            mercer::train(
                &loaded.data,
                &loaded.target,
                loaded.weight.as_deref(),
                &found.spec,
                &mut Silent,
            )
        })?
        .save(path)?;
    }
    let page = ReportData {
        title: format!("mercer: {} tuned on {}", args.method, data.display()),
        command: output::command_line(),
        version: env!("CARGO_PKG_VERSION").into(),
        data: select::facts(data, &loaded),
        tuning: Some(found),
        ..ReportData::default()
    };
    select::finish(study, &page, temporary)?;
    if study.told.json {
        output::json(&page)?;
    } else if let Some(found) = &page.tuning {
        output::print(&words(found, args))?;
    }
    Ok(Exit::Done)
}

fn words(t: &Tuning, args: &TuneArgs) -> String {
    let mut out = format!("{}, {}\n\n{}", t.method, t.protocol, report::tuning_table(t, SHOWN));
    if t.settings.len() > SHOWN {
        let _ = writeln!(out, "… and {} more", t.settings.len() - SHOWN);
    }
    out += "\n";
    for sentence in report::found(t) {
        let _ = writeln!(out, "{sentence}");
    }
    if let Some(path) = &args.output {
        let _ = writeln!(out, "model of all rows in {}", path.display());
    }
    if let Some(path) = &args.study.told.report {
        let _ = writeln!(out, "report in {}", path.display());
    }
    out
}
