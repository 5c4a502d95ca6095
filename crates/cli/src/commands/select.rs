//! What `tune` and `compare` share: data, the common request, splits, the journal.

use std::path::{Path, PathBuf};

use mercer::{
    Result, TrainSpec,
    data::{Column, Dataset, Target, steps::Steps},
    metrics::Metric,
    report::{self, ReportData},
    select::{Journal, Protocol, Splitting},
};

use crate::{
    Exit, output,
    progress::{Show, catch_interrupt_saying},
    select_args::{BankArgs, DataArgs, WorkArgs},
    ticker::Ticker,
};

/// What all runs start from.
pub struct Loaded {
    pub data: Dataset,
    pub target: Target,
    pub weight: Option<Vec<f64>>,
    pub groups: Option<Vec<usize>>,
    pub spec: TrainSpec,
    pub key: String,
}

/// Refuses outputs that cannot be, before any work is done.
pub fn check(work: &WorkArgs, model: Option<&Path>, data: &DataArgs, bank: &BankArgs) -> Result<()> {
    let grams = super::with_named_files(bank.kernels.as_deref(), &data.gram)?;
    let outputs = [("--output", model), ("--report", work.report.as_deref()), ("--journal", work.journal.as_deref())];
    output::check(&outputs, &super::inputs(&data.data, &grams))
}

/// Reads the data and makes the request that all fits share.
pub fn load(args: &DataArgs, bank: &BankArgs, seed: u64) -> Result<Loaded> {
    Steps::parse(&bank.preprocess)?;
    let grams = super::with_named_files(bank.kernels.as_deref(), &args.gram)?;
    let table = super::read(&args.data, args.rows, &grams)?;
    let key = super::target_key(args.target.as_deref(), &table)?;
    let target = table.target(key, args.task)?;
    super::check_epsilon(bank.epsilon, &target)?;
    let mut exclude: Vec<&str> = args.exclude.iter().map(String::as_str).collect();
    exclude.push(key);
    exclude.extend(args.weight_column.as_deref());
    exclude.extend(args.group_column.as_deref());
    let only: Option<Vec<&str>> = args.columns.as_ref().map(|c| c.iter().map(String::as_str).collect());
    let data = table.dataset(&exclude, only.as_deref())?;
    let weight = super::weights(&table, args.weight_column.as_deref())?;
    let groups = args.group_column.as_deref().map(|name| table.column(name).map(numbered)).transpose()?;
    let kernels = bank.kernels.as_deref().or(table.kernels()).unwrap_or("auto").to_string();
    let spec = TrainSpec {
        kernels,
        normalize: bank.normalize.unwrap_or(TrainSpec::default().normalize),
        standardize: !bank.no_standardize,
        scale_target: !bank.no_scale_target,
        preprocess: bank.preprocess.clone(),
        missing: bank.missing,
        indefinite: bank.indefinite,
        loss: bank.loss,
        epsilon: bank.epsilon,
        multi_class: bank.multi_class,
        shared_weights: bank.shared_weights,
        class_weight: bank.class_weight.clone().unwrap_or_default(),
        tol: bank.tol,
        max_iter: bank.max_iter,
        memory: bank.memory,
        approx: bank.approx,
        approx_seed: seed,
        ..TrainSpec::default()
    };
    spec.check()?;
    Ok(Loaded { data, target, weight, groups, spec, key: key.to_string() })
}

/// Equal values as equal numbers.
fn numbered(column: &Column) -> Vec<usize> {
    let texts: Vec<String> = match column {
        Column::Numeric(values) => values.iter().map(ToString::to_string).collect(),
        Column::Text(texts) => texts.clone(),
    };
    let mut names = texts.clone();
    names.sort();
    names.dedup();
    texts.iter().map(|t| names.binary_search(t).unwrap_or(0)).collect()
}

/// The protocol that was typed.
pub fn protocol(work: &WorkArgs, target: &Target, plain: Splitting, inner: usize, search_tol: f64) -> Result<Protocol> {
    let metric = work.metric.as_deref().map_or_else(|| Ok(Metric::default_for(target)), Metric::named)?;
    let splitting = match (work.time, work.leave_one_out, plain) {
        (true, _, Splitting::Folds { folds, .. }) => Splitting::Time { folds },
        (true, _, Splitting::Random { repeats, .. }) => Splitting::Time { folds: repeats },
        (_, true, _) => Splitting::LeaveOneOut,
        (_, _, plain) => plain,
    };
    let protocol = Protocol { splitting, seed: work.seed, metric, folds: inner, search_tol, abandon: work.abandon };
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
pub fn ticker(work: &WorkArgs, splits: usize) -> Ticker {
    catch_interrupt_saying("finished runs are kept, and the same command goes on from them");
    Ticker::new(Show::new(work.quiet, work.verbose), "", workers(work.threads).min(splits))
}

pub fn workers(threads: Option<usize>) -> usize {
    threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// After the work: the page, and the journal that nobody asked for is removed.
pub fn finish(work: &WorkArgs, page: &ReportData, temporary: Option<PathBuf>) -> Result<()> {
    if let Some(path) = &work.report {
        output::write_file(path, report::html(page).as_bytes())?;
    }
    if let Some(path) = temporary {
        let _ = std::fs::remove_file(path);
    }
    Ok(())
}

pub fn stopped(journal: Option<&Path>) -> Exit {
    let place = journal.map_or_else(String::new, |p| format!(" in {}", p.display()));
    output::note(&format!("stopped; finished runs are kept{place}: the same command goes on from there"));
    Exit::Interrupted
}

/// The data in words.
pub fn facts(args: &DataArgs, loaded: &Loaded) -> Vec<(String, String)> {
    let classes = match &loaded.target {
        Target::Values(_) => format!("{}, a number", loaded.key),
        Target::Classes { names, labels } => {
            let count = |c: usize| labels.iter().filter(|l| **l == c).count();
            let told: Vec<String> = names.iter().enumerate().map(|(c, n)| format!("{n} ({})", count(c))).collect();
            format!("{}: {}", loaded.key, told.join(", "))
        }
    };
    let missing = if loaded.spec.standardize { "; columns standardised on training rows" } else { "" };
    [
        ("file", args.data.display().to_string()),
        ("rows", loaded.data.len().to_string()),
        ("columns", loaded.data.columns().len().to_string()),
        ("target", classes),
        ("kernels", format!("{}{missing}", loaded.spec.kernels)),
    ]
    .map(|(k, v)| (k.to_string(), v))
    .to_vec()
}
