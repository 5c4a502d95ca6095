//! `mercer compare`: methods over the same splits.

use std::fmt::Write as _;

use mercer::{
    Result,
    linalg::threads,
    prepare::Source,
    report::{self, ReportData},
    request::MethodSpec,
    select::{Comparison, Contender, Grid, Splitting, compare, contenders, fingerprint},
};

use super::select;
use crate::{Exit, output, select_args::CompareArgs};

pub fn run(args: &CompareArgs) -> Result<Exit> {
    select::check(&args.work, None, &args.data, &args.bank)?;
    let loaded = select::load(&args.data, &args.bank, args.work.seed)?;
    let plain = match args.folds {
        Some(folds) => Splitting::Folds { folds, repeats: args.repeats },
        None => Splitting::Random { train: args.train, repeats: args.repeats },
    };
    let protocol = select::protocol(&args.work, &loaded.target, plain, args.inner_folds, args.search_tol)?;
    let common = Grid::parse(&args.grid, &MethodSpec::Uniform {})?;
    let mut list = contenders(&args.methods, &loaded.spec, &common, &loaded.target)?;
    if args.bank.normalize.is_none() {
        list = list.into_iter().map(Contender::with_own_scaling).collect();
    }
    let source = Source::Table(&loaded.data);
    let (weight, groups) = (loaded.weight.as_deref(), loaded.groups.as_deref());
    let key = fingerprint(source, &loaded.target, weight, groups, &protocol, &list);
    let splits = protocol.splitting.splits(&loaded.target, groups, protocol.seed)?.len();
    let (journal, temporary) = select::journal(args.work.journal.as_deref(), &key)?;
    let ticker = select::ticker(&args.work, splits);
    let found = threads::install(args.work.threads, || {
        compare(source, &loaded.target, weight, groups, &list, &protocol, &journal, &ticker)
    });
    ticker.finish();
    let Some(found) = found? else {
        return Ok(select::stopped(args.work.journal.as_deref().or(temporary.as_deref())));
    };
    let page = ReportData {
        title: format!("mercer: methods compared on {}", args.data.data.display()),
        command: output::command_line(),
        version: env!("CARGO_PKG_VERSION").into(),
        data: select::facts(&args.data, &loaded),
        warnings: found.warnings.clone(),
        comparison: Some(found),
        ..ReportData::default()
    };
    select::finish(&args.work, &page, temporary)?;
    if args.work.json {
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
    if let Some(path) = &args.work.report {
        let _ = writeln!(out, "report in {}", path.display());
    }
    out
}
