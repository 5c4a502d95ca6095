//! What `tune` and `compare` share: what they refuse, splits, the journal, the end.

use std::path::{Path, PathBuf};

use mercer::{
    Result,
    data::Target,
    metrics::Metric,
    report::{self, ReportData},
    select::{Journal, Protocol, Splitting},
};

use super::load::{Loaded, check_outputs, grams};
use crate::{
    Exit,
    args::{DataArgs, RequestArgs, StudyArgs},
    output,
    progress::catch_interrupt_saying,
    ticker::Ticker,
};

/// Refuses outputs that cannot be, before any work is done.
pub fn check(
    study: &StudyArgs,
    model: Option<&Path>,
    data: &Path,
    rows: &DataArgs,
    request: &RequestArgs,
) -> Result<()> {
    let outputs = [
        ("--output", model),
        ("--report", study.told.report.as_deref()),
        ("--journal", study.journal.as_deref()),
    ];
    check_outputs(&outputs, data, None, &grams(request.bank.kernels.as_deref(), &rows.gram)?)
}

/// The protocol that was typed.
pub fn protocol(
    study: &StudyArgs,
    target: &Target,
    plain: Splitting,
    inner: usize,
    search_tol: f64,
) -> Result<Protocol> {
    let metric =
        study.metric.as_deref().map_or_else(|| Ok(Metric::default_for(target)), Metric::named)?;
    let splitting = match (study.time, study.leave_one_out, plain) {
        (true, _, Splitting::Folds { folds, .. }) => Splitting::Time { folds },
        (true, _, Splitting::Random { repeats, .. }) => Splitting::Time { folds: repeats },
        (_, true, _) => Splitting::LeaveOneOut,
        (_, _, plain) => plain,
    };
    let protocol = Protocol {
        splitting,
        seed: study.seed,
        metric,
        folds: inner,
        search_tol,
        abandon: study.abandon,
    };
    protocol.check(target)?;
    Ok(protocol)
}

/// The journal in its place, and whether it is to be removed at the end.
pub fn journal(given: Option<&Path>, key: &str) -> Result<(Journal, Option<PathBuf>)> {
    if let Some(path) = given {
        return Ok((Journal::open(path, key)?, None));
    }
    let path = std::env::temp_dir().join(format!("mercer-{key}.journal"));
    match Journal::open(&path, key) {
        Ok(journal) => Ok((journal, Some(path))),
        // No temporary folder, or another program at the same work: go on without.
        Err(e) => {
            output::note(&format!("note: no journal is kept: {e}"));
            Ok((Journal::none(), None))
        }
    }
}

/// The watch, with as many workers as there will be.
pub fn ticker(study: &StudyArgs, splits: usize) -> Ticker {
    catch_interrupt_saying("finished runs are kept, and the same command goes on from them");
    Ticker::new(study.told.show(), "", workers(study.work.threads).min(splits))
        .within(study.work.time_limit)
}

pub fn workers(threads: Option<usize>) -> usize {
    threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// After the work: the page, and the journal that nobody asked for is removed.
pub fn finish(study: &StudyArgs, page: &ReportData, temporary: Option<PathBuf>) -> Result<()> {
    if let Some(path) = &study.told.report {
        output::write_file(path, report::html(page).as_bytes())?;
    }
    if let Some(path) = temporary {
        let _ = std::fs::remove_file(path);
    }
    Ok(())
}

pub fn stopped(journal: Option<&Path>) -> Exit {
    let place = journal.map_or_else(String::new, |p| format!(" in {}", p.display()));
    output::note(&format!(
        "stopped; finished runs are kept{place}: the same command goes on from there"
    ));
    Exit::Interrupted
}

/// The data in words.
pub fn facts(data: &Path, loaded: &Loaded) -> Vec<(String, String)> {
    let classes = match &loaded.target {
        Target::Values(_) => format!("{}, a number", loaded.key),
        Target::Classes { names, labels } => {
            let count = |c: usize| labels.iter().filter(|l| **l == c).count();
            let told: Vec<String> =
                names.iter().enumerate().map(|(c, n)| format!("{n} ({})", count(c))).collect();
            format!("{}: {}", loaded.key, told.join(", "))
        }
    };
    let missing =
        if loaded.spec.standardize { "; columns standardised on training rows" } else { "" };
    [
        ("file", data.display().to_string()),
        ("rows", loaded.data.len().to_string()),
        ("columns", loaded.data.columns().len().to_string()),
        ("target", classes),
        ("kernels", format!("{}{missing}", loaded.spec.kernels)),
    ]
    .map(|(k, v)| (k.to_string(), v))
    .to_vec()
}
