//! `mercer tune`: every setting of one method.

use std::fmt::Write as _;

use mercer::{
    Result, TrainSpec,
    linalg::threads,
    prepare::Source,
    report::{self, ReportData},
    request::MethodSpec,
    select::{Contender, Grid, Splitting, Tuning, fingerprint, tune},
    trace::Silent,
};

use super::select;
use crate::{Exit, output, select_args::TuneArgs};

/// Settings printed.
const SHOWN: usize = 20;

pub fn run(args: &TuneArgs) -> Result<Exit> {
    select::check(&args.work, args.output.as_deref(), &args.data, &args.bank)?;
    let method = MethodSpec::named(&args.method)?;
    let grid = Grid::parse(&args.grid, &method)?;
    let loaded = select::load(&args.data, &args.bank, args.work.seed)?;
    let spec = TrainSpec { method, ..loaded.spec.clone() };
    let spec = if args.bank.normalize.is_none() { spec.with_own_scaling() } else { spec };
    let contender = Contender { label: args.method.clone(), spec, grid };
    let plain = Splitting::Folds { folds: args.folds, repeats: args.repeats };
    let protocol = select::protocol(&args.work, &loaded.target, plain, 2, 0.01)?;
    let source = Source::Table(&loaded.data);
    let (weight, groups) = (loaded.weight.as_deref(), loaded.groups.as_deref());
    let key = fingerprint(source, &loaded.target, weight, groups, &protocol, &contender);
    let splits = protocol.splitting.splits(&loaded.target, groups, protocol.seed)?.len();
    let (journal, temporary) = select::journal(args.work.journal.as_deref(), &key)?;
    let ticker = select::ticker(&args.work, splits);
    let found = threads::install(args.work.threads, || {
        tune(source, &loaded.target, weight, groups, &contender, &protocol, &journal, &ticker)
    });
    ticker.finish();
    let Some(found) = found? else {
        return Ok(select::stopped(args.work.journal.as_deref().or(temporary.as_deref())));
    };
    if let Some(path) = &args.output {
        threads::install(args.work.threads, || {
            mercer::train(&loaded.data, &loaded.target, weight, &found.spec, &mut Silent)
        })?
        .save(path)?;
    }
    let page = ReportData {
        title: format!("mercer: {} tuned on {}", args.method, args.data.data.display()),
        command: output::command_line(),
        version: env!("CARGO_PKG_VERSION").into(),
        data: select::facts(&args.data, &loaded),
        tuning: Some(found),
        ..ReportData::default()
    };
    select::finish(&args.work, &page, temporary)?;
    if args.work.json {
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
    if let Some(path) = &args.work.report {
        let _ = writeln!(out, "report in {}", path.display());
    }
    out
}
