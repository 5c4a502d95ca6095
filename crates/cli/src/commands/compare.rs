//! `mercer compare`: methods over the same splits.

use std::fmt::Write as _;

use mercer::{
    Result, TrainSpec,
    linalg::threads,
    report::{self, ReportData},
    request::MethodSpec,
    select::{Comparison, Contender, Grid, Splitting, contenders},
};

use super::{load::load, select};
use crate::{Exit, args::CompareArgs, output};

pub fn run(args: &CompareArgs) -> Result<Exit> {
    let CompareArgs { data, rows, request, study, .. } = args;
    select::check(study, None, data, rows, request)?;
    let common = Grid::parse(&args.grid, &MethodSpec::Uniform {})?;
    let spec = request.request(TrainSpec::default().method, study.seed)?;
    let loaded = load(data, rows, study.group_column.as_deref(), &request.bank, spec)?;
    let plain = match args.folds {
        Some(folds) => Splitting::Folds { folds, repeats: args.repeats },
        None => Splitting::Random { train: args.train, repeats: args.repeats },
    };
    let protocol =
        select::protocol(study, &loaded.target, plain, args.inner_folds, args.search_tol)?;
    let mut list = contenders(&args.methods, &loaded.spec, &common, &loaded.target)?;
    if request.bank.normalize.is_none() {
        list = list.into_iter().map(Contender::with_own_scaling).collect();
    }
    let splits =
        protocol.splitting.splits(&loaded.target, loaded.groups.as_deref(), protocol.seed)?.len();
    let ticker = select::ticker(study, splits);
    let work = loaded.study(&protocol, &ticker);
    let (journal, temporary) = select::journal(study.journal.as_deref(), &work.key(&list))?;
    let found = threads::install(study.work.threads, || work.compare(&list, &journal));
    ticker.finish();
    let Some(found) = found? else {
        return Ok(select::stopped(study.journal.as_deref().or(temporary.as_deref())));
    };
    let page = ReportData {
        title: format!("mercer: methods compared on {}", data.display()),
        command: output::command_line(),
        version: env!("CARGO_PKG_VERSION").into(),
        data: select::facts(data, &loaded),
        warnings: found.warnings.clone(),
        comparison: Some(found),
        ..ReportData::default()
    };
    select::finish(study, &page, temporary)?;
    if study.told.json {
        output::json(&page)?;
    } else if let Some(found) = &page.comparison {
        output::print(&words(found, args))?;
    }
    let runs = page.comparison.as_ref().map_or(&[][..], |found| &found.runs);
    let reason = runs.first().and_then(|run| run.error.as_deref());
    Ok(match reason.filter(|_| runs.iter().all(|run| run.error.is_some())) {
        None => Exit::Done,
        Some(reason) => {
            output::note(&format!(
                "error: every run failed, so that there is nothing to compare; the first ({}): {reason}",
                runs[0].method
            ));
            Exit::Failed
        }
    })
}

fn words(c: &Comparison, args: &CompareArgs) -> String {
    let mut out = String::new();
    for (name, value) in &c.protocol {
        let _ = writeln!(out, "{name:<11} {value}");
    }
    let _ = write!(out, "\n{}\n", report::comparison_table(c));
    for sentence in &c.verdict {
        let _ = writeln!(out, "{sentence}");
    }
    if let Some(group) = c.interchangeable.first() {
        let few: Vec<&str> = group.iter().take(4).map(String::as_str).collect();
        let more = if group.len() > few.len() { ", …" } else { "" };
        let _ = writeln!(
            out,
            "{} groups of kernels are interchangeable (alignment above 0.95), the heaviest: {}{more}.",
            c.interchangeable.len(),
            few.join(", ")
        );
    }
    for warning in &c.warnings {
        let _ = writeln!(out, "warning: {warning}");
    }
    if let Some(path) = &args.study.told.report {
        let _ = writeln!(out, "report in {}", path.display());
    }
    out
}
