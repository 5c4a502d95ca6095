//! `mercer kernels`: the kernel language, a check of a text in it, and what a bank looks like on a
//! table.

use std::fmt::Write as _;

use mercer::{
    Error, Result, TrainSpec,
    kernels::language,
    linalg::threads,
    prepare::Prepared,
    report::{self, AlignmentPanel, ReportData, significant, table},
    train::Diagnosis,
};
use serde_json::json;

use super::load::{Loaded, check_outputs, grams, load};
use crate::{Exit, args::KernelsArgs, output};

/// Kernels that are listed unless all are asked for.
const SHOWN: usize = 20;
/// Pairs of kernels that are listed as most alike.
const PAIRS: usize = 5;

/// Width of the column of the help in which kernels, scopes and numbers stand.
const USAGE_WIDTH: usize = 22;

const HELP_GROUPS: &str = "\
A bank of kernels is written as groups, separated by `;`. A group is kernels, then the columns they look at:

  rbf(0.5|1|2), poly(1..3) on all, each; linear on cols(1-4, age)

Kernels
";

const HELP_REST: &str = "
Kernels of text columns, one kernel per column (dna, rna, protein or free may follow; without it the letters decide)
  spectrum(lengths)     words of k letters in common
  mismatch(lengths, m)  the same up to m mismatches
  wd(degrees)           positions with the same d letters; wd(1..20, shift = 2) lets them stand apart
  wdsum(degrees)        the weighted sum of wd(1) to wd(d)
  alignment(blosum62)   products of local alignment scores with training sequences; also pam50; gaps cost 11, then 1
  wl(rounds)            labelled graphs, `C C O; 0-1 1-2` or JSON: subtrees in common

Kernels computed elsewhere
  precomputed(view)     values of a view, or of a file, against the training rows

Columns (after `on`; `all` when left out)
  all                   every column at once
  each                  one kernel per column
  cols(1-4, age)        these, by number counted from 1 or by name; names may be quoted
  bands(5)              five contiguous runs of columns
  view(name)            a named group of columns

Numbers
  0.5   2^-3            plain, or a power
  1|2|5                 a list
  1..3   2^-3..2^6      a range; powers step by exponent

Banks with a name
  auto                  rbf(auto), poly(1..3) on all; rbf(deviation) on each, the latter to 100 columns
  paper                 rbf(2^-3..2^6), poly(1..3) on all, each

`mercer kernels --check TEXT` reads a text and prints it in its canonical form.
";

/// The kernel language on one page; the kernels of numbers as the core lists them.
fn help() -> String {
    let mut out = HELP_GROUPS.to_string();
    for kernel in language::number_kernels() {
        let indented = kernel.meaning.replace('\n', &format!("\n{:1$}", "", USAGE_WIDTH + 2));
        let width = USAGE_WIDTH.max(kernel.usage.len() + 2);
        let _ = writeln!(out, "  {:<width$}{indented}", kernel.usage);
    }
    out + HELP_REST
}

pub fn run(args: &KernelsArgs) -> Result<Exit> {
    if let Some(path) = &args.data {
        let report = [("--report", args.report.as_deref())];
        check_outputs(&report, path, None, &grams(args.bank.kernels.as_deref(), &args.rows.gram)?)?;
        let spec = args.bank.request(TrainSpec::default().method, args.seed);
        let Loaded { data, target, weight, spec, key, .. } =
            load(path, &args.rows, None, &args.bank, spec)?;
        let found = threads::install(args.run.threads, || {
            Prepared::from_table(&data, &target, weight.as_deref(), &spec)?.diagnose()
        })?;
        if let Some(to) = &args.report {
            output::write_file(
                to,
                report::html(&page(args, (&key, &spec.kernels), &found)).as_bytes(),
            )?;
        }
        if args.run.json {
            output::json(&json!(found))?;
        } else {
            output::print(&words(&found, args.all))?;
        }
        return Ok(Exit::Done);
    }
    if let Some(target) = &args.rows.target {
        return Err(Error::param("target", "given with the data whose column it is", target));
    }
    match &args.check {
        Some(text) => {
            let canonical = language::parse(text)?.to_string();
            if args.run.json {
                output::json(&json!({ "text": text, "canonical": canonical }))?;
            } else {
                output::print(&format!("{canonical}\n"))?;
            }
        }
        None if args.run.json => output::json(&json!({ "help": help() }))?,
        None => output::print(&help())?,
    }
    Ok(Exit::Done)
}

fn words(found: &Diagnosis, all: bool) -> String {
    let panel = AlignmentPanel::new(found);
    let ranked = panel.ranked();
    let shown = if all { ranked.len() } else { ranked.len().min(SHOWN) };
    let line = |&t: &usize| {
        let k = &found.kernels[t];
        vec![
            k.name.clone(),
            format!("{:.3}", k.alignment),
            significant(k.trace, 4),
            significant(k.effective_rank, 3),
            k.rank.map_or_else(|| "–".into(), |r| r.to_string()),
            if k.condition.is_finite() { format!("{:.1e}", k.condition) } else { "∞".into() },
        ]
    };
    let headers = ["kernel", "alignment", "trace", "effective rank", "rank", "condition"];
    let lines: Vec<Vec<String>> = ranked[..shown].iter().map(line).collect();
    let mut out = format!(
        "{} rows, {} kernels\n\n{}",
        found.n_samples,
        ranked.len(),
        table(&headers, &lines)
    );
    if ranked.len() > shown {
        let _ =
            writeln!(out, "… and {} more, which align less with the target", ranked.len() - shown);
    }
    let m = ranked.len();
    let mut pairs: Vec<(usize, usize)> =
        (0..m).flat_map(|s| (s + 1..m).map(move |t| (s, t))).collect();
    pairs.sort_by(|a, b| found.between[b.0][b.1].total_cmp(&found.between[a.0][a.1]));
    pairs.truncate(PAIRS);
    if !pairs.is_empty() {
        let line = |&(s, t): &(usize, usize)| {
            vec![
                panel.kernels[s].clone(),
                panel.kernels[t].clone(),
                format!("{:.3}", found.between[s][t]),
            ]
        };
        let lines: Vec<Vec<String>> = pairs.iter().map(line).collect();
        let _ = write!(
            out,
            "\nkernels most alike\n\n{}",
            table(&["kernel", "and", "alignment"], &lines)
        );
    }
    for warning in &found.warnings {
        let _ = write!(out, "\nwarning: {warning}\n");
    }
    out
}

fn page(args: &KernelsArgs, (target, kernels): (&str, &str), found: &Diagnosis) -> ReportData {
    let shown = |path: &Option<std::path::PathBuf>| {
        path.as_ref().map_or_else(String::new, |p| p.display().to_string())
    };
    ReportData {
        title: format!("mercer: kernels on {}", shown(&args.data)),
        command: output::command_line(),
        version: env!("CARGO_PKG_VERSION").into(),
        data: vec![
            ("file".into(), shown(&args.data)),
            ("rows".into(), found.n_samples.to_string()),
            ("target".into(), target.into()),
            ("kernels".into(), kernels.into()),
        ],
        alignment: Some(AlignmentPanel::new(found)),
        warnings: found.warnings.clone(),
        ..ReportData::default()
    }
}
