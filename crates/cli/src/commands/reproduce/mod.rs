//! `mercer reproduce`: a paper's experiments, described in a file, run through the library's
//! `compare`; ours beside the paper's.
//!
//! What got.csv holds already is not run again: a table of many hours can be continued, and its
//! page made anew in a moment.

mod pixels;
mod plan;
mod rows;

use std::{
    fs,
    path::{Path, PathBuf},
};

use mercer::{
    Error, Result, TrainSpec,
    linalg::threads,
    metrics::Metric,
    prepare::Source,
    report,
    select::{Contender, Grid, Journal, Protocol, Splitting, Study},
};
use plan::{Entry, Experiment, Part};
use rows::{HEADERS, Row};

use super::select;
use crate::{
    Exit,
    args::ReproduceArgs,
    output,
    progress::{Show, catch_interrupt_saying},
    ticker::Ticker,
};

pub fn run(args: &ReproduceArgs) -> Result<Exit> {
    let name = format!("{:?}", args.paper).to_lowercase();
    let folder = args.folder.clone().unwrap_or_else(|| PathBuf::from("reproduce").join(&name));
    let plan = read_plan(&folder.join("experiment.toml"))?;
    let expected = rows::read_expected(&folder.join("expected.csv"))?;
    let known: Vec<&str> = plan.part.iter().map(|p| p.name.as_str()).collect();
    if let Some(wrong) = args.only.iter().find(|o| !known.contains(&o.as_str())) {
        return Err(Error::param(
            "only",
            format!("parts of {}", known.join(", ")),
            format!("`{wrong}`"),
        ));
    }
    // A quick run is a check: it leaves the committed results alone.
    let out = args.out.clone().or_else(|| (!args.quick).then(|| folder.clone()));
    if let Some(out) = &out {
        fs::create_dir_all(out).map_err(|e| {
            Error::file(out, format!("the folder for the results cannot be made ({e})"))
        })?;
        let files = ["got.csv", "page.md"].map(|name| out.join(name));
        output::check(&[("--out", Some(&files[0])), ("--out", Some(&files[1]))], &[])?;
    }
    let got = out.as_ref().filter(|_| !args.quick).map(|out| out.join("got.csv"));
    let mut rows = got.as_deref().map_or_else(|| Ok(Vec::new()), rows::read_got)?;
    if let Some(got) = got.as_deref().filter(|_| !rows.is_empty()) {
        output::note(&format!(
            "{} rows are in {} already and are not run again; to run everything anew, name another folder with --out",
            rows.len(),
            got.display()
        ));
    }
    catch_interrupt_saying("finished runs are kept, and the same command goes on from them");
    let parts: Vec<&Part> = plan.part.iter().filter(|p| !args.quick || p.quick).collect();
    let mut used = Vec::new();
    for part in parts.iter().filter(|p| args.only.is_empty() || args.only.contains(&p.name)) {
        let repeats = if args.quick { plan.quick_repeats.min(part.repeats) } else { part.repeats };
        let missing = missing(part, &rows, repeats);
        if !missing.is_empty() {
            let Some(new) = run_part(args, &plan, part, &missing, repeats, &mut used)? else {
                return Ok(select::stopped(None));
            };
            let again =
                |r: &Row| r.part == part.name && missing.iter().any(|m| m.label() == r.method);
            rows.retain(|r| !again(r));
            rows.extend(new);
            in_order(&mut rows, &known);
            if let Some(got) = &got {
                output::write_file(got, rows::csv(&rows).as_bytes())?;
            }
        }
        let table = report::table(&HEADERS, &rows::table(part, &rows, &expected));
        output::print(&format!("{}\n\n{table}\n", part.heading()))?;
    }
    if let Some(peers) = plan.peers.as_ref().filter(|_| !args.quick) {
        output::print(&format!("{}\n", peers.trim()))?;
    }
    if let Some(out) = out {
        let command =
            format!("mercer reproduce {name}{}", if args.quick { " --quick" } else { "" });
        let (got, page) = (out.join("got.csv"), out.join("page.md"));
        output::write_file(&got, rows::csv(&rows).as_bytes())?;
        output::write_file(
            &page,
            rows::page(&plan, &parts, &rows, &expected, &command).as_bytes(),
        )?;
        output::print(&format!("written: {}, {}\n", got.display(), page.display()))?;
    }
    for journal in used {
        let _ = fs::remove_file(journal);
    }
    Ok(Exit::Done)
}

fn read_plan(file: &Path) -> Result<Experiment> {
    if !file.is_file() {
        let hint = "is not there; run this in the source folder, or name the folder that holds it with --folder";
        return Err(Error::file(file, hint));
    }
    let text = fs::read_to_string(file).map_err(|e| Error::file(file, e))?;
    toml::from_str(&text).map_err(|e| Error::file(file, e.message()))
}

/// Methods of a part with a split that is not there.
fn missing<'a>(part: &'a Part, rows: &[Row], repeats: usize) -> Vec<&'a Entry> {
    let there = |m: &Entry, split: usize| {
        rows.iter().any(|r| r.part == part.name && r.method == m.label() && r.split == split)
    };
    part.methods.iter().filter(|m| (0..repeats).any(|split| !there(m, split))).collect()
}

/// By part; within one as they came.
fn in_order(rows: &mut [Row], parts: &[&str]) {
    rows.sort_by_key(|r| parts.iter().position(|p| *p == r.part));
}

fn run_part(
    args: &ReproduceArgs,
    plan: &Experiment,
    part: &Part,
    entries: &[&Entry],
    repeats: usize,
    used: &mut Vec<PathBuf>,
) -> Result<Option<Vec<Row>>> {
    let mut list = entries.iter().map(|m| part.contender(m)).collect::<Result<Vec<Contender>>>()?;
    let metric = Metric::named(&part.metric)?;
    let splitting = |repeats| Splitting::Random { train: part.train, repeats };
    let protocol = |repeats, seed| Protocol {
        folds: part.folds,
        ..Protocol::new(splitting(repeats), metric, seed)
    };
    let ticker = |prefix: String, jobs: usize| {
        Ticker::new(
            Show::new(args.quiet, args.verbose),
            &prefix,
            select::workers(args.threads).min(jobs),
        )
    };
    let mut journal = |key: &str| -> Result<Journal> {
        let (journal, temporary) = select::journal(None, key)?;
        used.extend(temporary);
        Ok(journal)
    };
    if part.choose_once {
        let (data, target) = part.load(plan.seed)?;
        let (train, _) = splitting(1).splits(&target, None, plan.seed)?.remove(0);
        let (data, target) = (data.select(&train), target.select(&train));
        let folds = Splitting::Folds { folds: part.folds, repeats: 1 };
        let inside = Protocol { splitting: folds, ..protocol(1, plan.seed) };
        for contender in &mut list {
            // Ranking needs less than counting.
            contender.spec.tol = part.tol.max(1e-3);
            let source = Source::Table(&data);
            let ticker = ticker(format!("{}, choosing: ", part.name), part.folds);
            let study = Study { watch: &ticker, ..Study::new(source, &target, &inside) };
            let journal = journal(&study.key(contender))?;
            let found = threads::install(args.threads, || study.tune(contender, &journal));
            ticker.finish();
            let Some(found) = found? else { return Ok(None) };
            let told = contender.grid.describe(&found.spec);
            contender.spec = TrainSpec { tol: part.tol, ..found.spec };
            contender.grid = Grid::parse(&single(&told), &contender.spec.method)?;
        }
    }
    let mut out = Vec::new();
    // A generated set is made anew for every repeat; a file is split anew.
    let rounds = if part.generated.is_some() { repeats } else { 1 };
    for round in 0..rounds {
        let seed = plan.seed + round as u64;
        let (data, target) = part.load(seed)?;
        let source = Source::Table(&data);
        let protocol = protocol(if rounds > 1 { 1 } else { repeats }, seed);
        // Those with the same kernels share them.
        for list in list.chunk_by(|a, b| a.spec.kernels == b.spec.kernels) {
            let prefix = if rounds > 1 {
                format!("{}, set {} of {rounds}: ", part.name, round + 1)
            } else {
                format!("{}: ", part.name)
            };
            let ticker = ticker(prefix, repeats);
            let study = Study { watch: &ticker, ..Study::new(source, &target, &protocol) };
            let journal = journal(&study.key(&list))?;
            let found = threads::install(args.threads, || study.compare(list, &journal));
            ticker.finish();
            let Some(found) = found? else { return Ok(None) };
            for run in found.runs {
                if let Some(error) = &run.error {
                    return Err(Error::data(
                        format!("{}, {}", part.name, run.method),
                        error,
                        "see the message",
                    ));
                }
                let split = run.split + round;
                out.push(Row::new(part, run, split, &found.kernels));
            }
        }
    }
    Ok(Some(out))
}

fn single(told: &[(String, String)]) -> String {
    told.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(";")
}
