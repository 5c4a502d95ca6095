//! `mercer reproduce`: a paper's experiments, described in a file, run through the library's `compare`; ours beside the paper's.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use mercer::{
    Error, Result, TrainSpec,
    data::{self, Dataset, Target, csv::TaskHint, synthetic},
    kernels::Normalize,
    linalg::threads,
    methods::Source,
    metrics::Metric,
    report::table,
    select::{Contender, Grid, Journal, Protocol, Run, Splitting, compare, fingerprint, tune},
};
use serde::Deserialize;

use super::select;
use crate::{
    Exit, output,
    progress::{Show, catch_interrupt_saying},
    select_args::{Paper, ReproduceArgs},
    ticker::Ticker,
};

/// What `experiment.toml` says. A part may say otherwise.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Experiment {
    title: String,
    #[serde(default)]
    notes: String,
    /// Repeats with `--quick`, which runs the parts marked so.
    quick_repeats: usize,
    seed: u64,
    part: Vec<Part>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Part {
    name: String,
    /// Which table or figure.
    table: String,
    /// A generated set, made anew for every repeat, and its rows …
    generated: Option<String>,
    rows: Option<usize>,
    /// … or a file below the data folder and its target column.
    file: Option<String>,
    target: Option<String>,
    #[serde(default)]
    exclude: Vec<String>,
    /// What stands in for data that are gone.
    substitute: Option<String>,
    methods: Vec<String>,
    kernels: String,
    normalize: Normalize,
    #[serde(default)]
    preprocess: String,
    grid: String,
    /// Parameters chosen once, on the training part of the first repeat, instead of in every one.
    #[serde(default)]
    choose_once: bool,
    folds: usize,
    /// Of the fits that are reported: kernels are counted, so it has to be small.
    tol: f64,
    metric: String,
    /// Factor on the metric, 100 for percent.
    #[serde(default = "one")]
    scale: f64,
    train: f64,
    repeats: usize,
    #[serde(default)]
    quick: bool,
}

fn one() -> f64 {
    1.0
}

/// Ours of one part.
struct Got {
    part: String,
    runs: Vec<(Run, usize)>,
    scale: f64,
}

/// One number of the paper.
struct Expected {
    part: String,
    method: String,
    measure: String,
    mean: f64,
    sd: Option<f64>,
    repeats: f64,
}

pub fn run(args: &ReproduceArgs) -> Result<Exit> {
    let name = format!("{:?}", args.paper).to_lowercase();
    let folder = args.folder.clone().unwrap_or_else(|| PathBuf::from("reproduce").join(&name));
    let file = folder.join("experiment.toml");
    if !file.is_file() {
        let own = matches!(args.paper, Paper::Clmkl | Paper::Glmkl | Paper::Vcmkl) && folder.join("run.py").is_file();
        let hint = if own {
            format!("is not there; this paper's experiments are run by `python {}`", folder.join("run.py").display())
        } else {
            "is not there; run this in the source folder, or name the folder that holds it with --folder".into()
        };
        return Err(Error::file(&file, hint));
    }
    let text = fs::read_to_string(&file).map_err(|e| Error::file(&file, e))?;
    let plan: Experiment = toml::from_str(&text).map_err(|e| Error::file(&file, e.message()))?;
    let expected = read_expected(&folder.join("expected.csv"))?;
    let known: Vec<&str> = plan.part.iter().map(|p| p.name.as_str()).collect();
    if let Some(wrong) = args.only.iter().find(|o| !known.contains(&o.as_str())) {
        return Err(Error::param("only", format!("parts of {}", known.join(", ")), format!("`{wrong}`")));
    }
    catch_interrupt_saying("finished runs are kept, and the same command goes on from them");
    let parts = plan.part.iter().filter(|p| !args.quick || p.quick);
    let parts: Vec<&Part> = parts.filter(|p| args.only.is_empty() || args.only.contains(&p.name)).collect();
    let (mut all, mut used) = (Vec::new(), Vec::new());
    for part in &parts {
        match run_part(args, &plan, part, &mut used)? {
            Some(got) => {
                output::print(&format!("{}\n\n{}\n", heading(part), table(&HEADERS, &rows(&got, &expected))))?;
                all.push(got);
            }
            None => return Ok(select::stopped(None)),
        }
    }
    let out = args.out.clone().unwrap_or(folder);
    output::write_file(&out.join("got.csv"), csv(&all).as_bytes())?;
    output::write_file(&out.join("page.md"), page(&plan, &parts, &all, &expected, args).as_bytes())?;
    for journal in used {
        let _ = fs::remove_file(journal);
    }
    output::print(&format!("written: {}, {}\n", out.join("got.csv").display(), out.join("page.md").display()))?;
    Ok(Exit::Done)
}

fn heading(part: &Part) -> String {
    let data = part.file.clone().or(part.generated.clone()).unwrap_or_default();
    let instead = part.substitute.as_ref().map_or_else(String::new, |s| format!(" (substitute: {s})"));
    format!("{} ({}): {data}{instead}", part.name, part.table)
}

/// Data of one repeat.
fn load(part: &Part, seed: u64) -> Result<(Dataset, Target)> {
    match (&part.generated, &part.file) {
        (Some(name), None) => {
            let rows = part.rows.unwrap_or(300);
            match name.as_str() {
                "toy1" => Ok(synthetic::toy1(rows, seed)),
                "toy2" => Ok(synthetic::toy2(rows, seed)),
                other => Err(Error::param("generated", "toy1 or toy2", format!("`{other}`"))),
            }
        }
        (None, Some(file)) => {
            let folder = std::env::var_os("MERCER_DATA_DIR").map_or_else(|| "../shared/data".into(), PathBuf::from);
            let path = folder.join(file);
            if !path.is_file() {
                return Err(Error::file(&path, "is not there; MERCER_DATA_DIR names the folder with the data sets"));
            }
            let table = data::read(&path)?;
            let key = super::target_key(part.target.as_deref(), &table)?;
            let mut exclude: Vec<&str> = part.exclude.iter().map(String::as_str).collect();
            exclude.push(key);
            Ok((table.dataset(&exclude, None)?, table.target(key, TaskHint::Auto)?))
        }
        _ => Err(Error::param("part", "either generated or file", format!("`{}`", part.name))),
    }
}

fn run_part(args: &ReproduceArgs, plan: &Experiment, part: &Part, used: &mut Vec<PathBuf>) -> Result<Option<Got>> {
    let repeats = if args.quick { plan.quick_repeats.min(part.repeats) } else { part.repeats };
    let base = TrainSpec {
        kernels: part.kernels.clone(),
        normalize: part.normalize,
        preprocess: part.preprocess.clone(),
        tol: part.tol,
        ..TrainSpec::default()
    };
    let common = Grid::parse(&part.grid, &base.method)?;
    let mut list =
        part.methods.iter().map(|m| Contender::parse(m, &base, &common)).collect::<Result<Vec<Contender>>>()?;
    let metric = Metric::named(&part.metric)?;
    let splitting = |repeats| Splitting::Random { train: part.train, repeats };
    let protocol = |repeats, seed| Protocol { folds: part.folds, ..Protocol::new(splitting(repeats), metric, seed) };
    let ticker = |prefix: String, jobs: usize| {
        Ticker::new(Show::new(args.quiet, args.verbose), &prefix, select::workers(args.threads).min(jobs))
    };
    let mut journal = |key: &str| -> Result<Journal> {
        let (journal, temporary) = select::journal(None, key)?;
        used.extend(temporary);
        Ok(journal)
    };
    if part.choose_once {
        let (data, target) = load(part, plan.seed)?;
        let (train, _) = splitting(1).splits(&target, None, plan.seed)?.remove(0);
        let (data, target) = (data.select(&train), target.select(&train));
        let folds = Splitting::Folds { folds: part.folds, repeats: 1 };
        let inside = Protocol { splitting: folds, ..protocol(1, plan.seed) };
        for contender in &mut list {
            // Ranking needs less than counting.
            contender.spec.tol = part.tol.max(1e-3);
            let source = Source::Table(&data);
            let journal = journal(&fingerprint(source, &target, None, None, &inside, contender))?;
            let ticker = ticker(format!("{}, choosing: ", part.name), part.folds);
            let found = threads::install(args.threads, || {
                tune(source, &target, None, None, contender, &inside, &journal, &ticker)
            });
            ticker.finish();
            let Some(found) = found? else { return Ok(None) };
            let told = contender.grid.describe(&found.spec);
            contender.spec = TrainSpec { tol: part.tol, ..found.spec };
            contender.grid = Grid::parse(&single(&told), &contender.spec.method)?;
        }
    }
    let mut runs = Vec::new();
    // A generated set is made anew for every repeat; a file is split anew.
    let rounds = if part.generated.is_some() { repeats } else { 1 };
    for round in 0..rounds {
        let seed = plan.seed + round as u64;
        let (data, target) = load(part, seed)?;
        let source = Source::Table(&data);
        let protocol = protocol(if rounds > 1 { 1 } else { repeats }, seed);
        let journal = journal(&fingerprint(source, &target, None, None, &protocol, &list))?;
        let prefix = if rounds > 1 {
            format!("{}, set {} of {rounds}: ", part.name, round + 1)
        } else {
            format!("{}: ", part.name)
        };
        let ticker = ticker(prefix, repeats);
        let found = threads::install(args.threads, || {
            compare(source, &target, None, None, &list, &protocol, &journal, &ticker)
        });
        ticker.finish();
        let Some(found) = found? else { return Ok(None) };
        for mut run in found.runs {
            if let Some(error) = &run.error {
                return Err(Error::data(format!("{}, {}", part.name, run.method), error, "see the message"));
            }
            let scopes = scopes(&run, &found.kernels);
            run.split += round;
            runs.push((run, scopes));
        }
    }
    Ok(Some(Got { part: part.name.clone(), runs, scale: part.scale }))
}

fn single(told: &[(String, String)]) -> String {
    told.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(";")
}

/// Sets of columns on which some kernel has a weight.
fn scopes(run: &Run, kernels: &[String]) -> usize {
    let chosen = kernels.iter().zip(&run.weights).filter(|(_, w)| **w != 0.0);
    let mut scopes: Vec<&str> = chosen.map(|(k, _)| k.split_once(" on ").map_or("", |k| k.1)).collect();
    scopes.sort_unstable();
    scopes.dedup();
    scopes.len()
}

fn read_expected(path: &Path) -> Result<Vec<Expected>> {
    let text = fs::read_to_string(path).map_err(|e| Error::file(path, e))?;
    let mut out = Vec::new();
    for (number, line) in text.lines().enumerate().skip(1).filter(|(_, l)| !l.trim().is_empty()) {
        let wrong = || Error::file(path, format!("line {}: expected part,method,measure,mean,sd,repeats", number + 1));
        let cells: Vec<&str> = line.split(',').map(str::trim).collect();
        let [part, method, measure, mean, sd, repeats] = cells.as_slice() else { return Err(wrong()) };
        out.push(Expected {
            part: (*part).into(),
            method: (*method).into(),
            measure: (*measure).into(),
            mean: mean.parse().map_err(|_| wrong())?,
            sd: if sd.is_empty() { None } else { Some(sd.parse().map_err(|_| wrong())?) },
            repeats: repeats.parse().map_err(|_| wrong())?,
        });
    }
    Ok(out)
}

const HEADERS: [&str; 6] = ["method", "measure", "paper", "ours", "difference", "standard errors"];

/// Both, a row per method and measure.
fn rows(got: &Got, expected: &[Expected]) -> Vec<Vec<String>> {
    let mut methods: Vec<&str> = Vec::new();
    for (run, _) in &got.runs {
        if !methods.contains(&run.method.as_str()) {
            methods.push(&run.method);
        }
    }
    let mut out = Vec::new();
    for method in methods {
        let own: Vec<&(Run, usize)> = got.runs.iter().filter(|(r, _)| r.method == method).collect();
        let numbers = |measure: &str| -> Vec<f64> {
            match measure {
                "score" => own.iter().filter_map(|(r, _)| r.score.map(|s| got.scale * s)).collect(),
                "kernels" => own.iter().map(|(r, _)| r.selected as f64).collect(),
                _ => own.iter().map(|(_, s)| *s as f64).collect(),
            }
        };
        let told: Vec<&str> = expected.iter().filter(|e| e.part == got.part).map(|e| e.measure.as_str()).collect();
        for measure in ["score", "kernels", "scopes"] {
            if measure != "score" && !told.contains(&measure) {
                continue;
            }
            let (mean, sd, n) = mean_sd(&numbers(measure));
            let paper = expected.iter().find(|e| e.part == got.part && e.method == method && e.measure == measure);
            let difference = paper.map(|e| mean - e.mean);
            let error = paper.map(|e| (sd * sd / n + e.sd.unwrap_or(0.0).powi(2) / e.repeats).sqrt());
            let ratio = difference.zip(error).filter(|(_, e)| *e > 0.0).map(|(d, e)| d.abs() / e);
            let digits = if mean.abs() < 5.0 && paper.is_none_or(|e| e.mean.abs() < 5.0) { 3 } else { 1 };
            let short = |x: f64| format!("{x:.digits$}");
            let plain = |m: f64, s: f64| format!("{} ± {}", short(m), short(s));
            out.push(vec![
                method.to_string(),
                measure.to_string(),
                paper.map_or_else(|| "–".into(), |e| e.sd.map_or_else(|| short(e.mean), |s| plain(e.mean, s))),
                plain(mean, sd),
                difference.map_or_else(|| "–".into(), |d| format!("{}{}", if d < 0.0 { "" } else { "+" }, short(d))),
                ratio.map_or_else(|| "–".into(), |r| format!("{r:.1}{}", if r > 2.0 { " *" } else { "" })),
            ]);
        }
    }
    out
}

fn mean_sd(values: &[f64]) -> (f64, f64, f64) {
    let n = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
    (mean, variance.sqrt(), n)
}

fn csv(all: &[Got]) -> String {
    let mut out = String::from("part,method,split,score,kernels,scopes,gap,seconds,chosen\n");
    for got in all {
        for (r, scopes) in &got.runs {
            let chosen: Vec<String> = r.chosen.iter().map(|(k, v)| format!("{k}={v}")).collect();
            let _ = writeln!(
                out,
                "{},{},{},{},{},{scopes},{},{:.4},{}",
                got.part,
                r.method,
                r.split,
                r.score.map_or_else(String::new, |s| (got.scale * s).to_string()),
                r.selected,
                r.gap.map_or_else(String::new, |g| format!("{g:.2e}")),
                r.seconds,
                chosen.join(" ")
            );
        }
    }
    out
}

fn page(plan: &Experiment, parts: &[&Part], all: &[Got], expected: &[Expected], args: &ReproduceArgs) -> String {
    let mut out = format!("# {}\n\n", plan.title);
    if args.quick {
        out += "A quick run: generated data and few repeats. Its numbers are a check of the machinery, not of the paper.\n\n";
    }
    let _ = writeln!(out, "{}\n", plan.notes.trim());
    let _ = writeln!(
        out,
        "`{}`, mercer {}, seeds from {}. Means ± standard deviations over repeats; the last column is the difference in standard\nerrors, \
         marked where it is more than two.\n",
        output::command_line(),
        env!("CARGO_PKG_VERSION"),
        plan.seed
    );
    for (part, got) in parts.iter().zip(all) {
        let _ = writeln!(out, "## {}\n", heading(part));
        let _ = writeln!(out, "| {} |\n|{}", HEADERS.join(" | "), "---|".repeat(HEADERS.len()));
        for row in rows(got, expected) {
            let _ = writeln!(out, "| {} |", row.join(" | "));
        }
        out += "\n";
    }
    out
}
