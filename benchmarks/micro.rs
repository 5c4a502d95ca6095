//! What the parts of a fit cost, one by one, on one thread and on two.
//!
//!     cargo run --release -p mercer --example bench_micro [NAME[,NAME…] | all] [SECONDS | once]
//!
//! Every part is repeated for SECONDS (default 1) or 1,000 times, whichever comes first; printed
//! are median and minimum. "once" runs it once, in a function of its own: benchmarks/callgrind.sh
//! counts its instructions. The first part, reading 512 MiB, is the bandwidth that floors are
//! computed with. Data are generated; rates count the bytes of the stored terms.

use std::{hint::black_box, time::Instant};

use mercer::{
    Error, Result,
    data::{Dataset, Rng},
    gram::{Approx, Budget, BuildOptions, GramSet, GramSource, Storage},
    kernels::{KernelSpec, Normalize, language},
    linalg::{Matrix, dot, exp_scaled, threads},
    loss::Hinge,
    machine::{Combined, Machine, Smo, Stop, Task},
    outer::Cuts,
    weights::{ElasticNet, WeightSet},
};
use rayon::prelude::*;

/// Something to repeat.
struct Part {
    run: Box<dyn FnMut() + Send>,
    unit: Unit,
    /// Does it use more than one thread?
    parallel: bool,
}

/// What the seconds of one run are turned into.
enum Unit {
    /// ns for each of so many.
    Nanoseconds(usize, &'static str),
    /// ms and GB/s, of so many bytes.
    Bytes(u64),
    /// ms.
    Milliseconds,
}

impl Unit {
    fn show(&self, seconds: f64) -> String {
        match *self {
            Self::Nanoseconds(count, of) => format!("{:.3} ns/{of}", 1e9 * seconds / count as f64),
            Self::Bytes(bytes) => {
                format!("{:.3} ms, {:.1} GB/s", 1e3 * seconds, bytes as f64 / seconds / 1e9)
            }
            Self::Milliseconds => format!("{:.3} ms", 1e3 * seconds),
        }
    }
}

/// Name, what it is, and how it is set up.
type Entry = (&'static str, &'static str, fn() -> Result<Part>);

const PARTS: [Entry; 11] = [
    ("read", "read 512 MiB", || Ok(read())),
    ("exp", "exp of 4,096 numbers", || Ok(exp())),
    ("gram", "one Gaussian kernel, 20 columns, 1,000 rows", gram),
    ("bank", "13 kernels on each of 30 columns, 284 rows", bank),
    ("combine", "K_θ, 20 triangles of 1,000 rows", || Ok(combine(dense()?))),
    ("combine_low", "K_θ, 390 factors, 284 rows", || Ok(combine(low_rank()?))),
    ("forms", "aᵀK_m a, 20 triangles of 1,000 rows", || Ok(forms(dense()?))),
    ("forms_low", "aᵀK_m a, 390 factors, 284 rows", || Ok(forms(low_rank()?))),
    ("smo", "SMO, one kernel, 1,000 rows, gap 1e-3", smo),
    ("bound", "level method, LP: 400 kernels, 10 cuts", || level(true)),
    ("nearest", "level method, QP: 400 kernels, 10 cuts", || level(false)),
];

fn read() -> Part {
    let (values, ones) = (vec![1.0; 512 << 17], vec![1.0; 4096]);
    let bytes = 8 * values.len() as u64;
    let run = move || {
        black_box(
            values
                .par_chunks(1 << 16)
                .map(|c| c.chunks(4096).map(|c| dot(c, &ones)).sum::<f64>())
                .sum::<f64>(),
        );
    };
    Part { run: Box::new(run), unit: Unit::Bytes(bytes), parallel: true }
}

fn exp() -> Part {
    let values: Vec<f64> = (0..4096).map(|i| f64::from(i) * 1e-2).collect();
    let mut out = values.clone();
    let run = move || {
        out.copy_from_slice(&values);
        exp_scaled(-0.5, &mut out);
        black_box(&out);
    };
    Part { run: Box::new(run), unit: Unit::Nanoseconds(4096, "number"), parallel: false }
}

/// Standard normal columns.
fn rows(n: usize, columns: usize) -> Result<Dataset> {
    let mut rng = Rng::new(7);
    let x = Matrix::new(n, columns, (0..n * columns).map(|_| rng.normal()).collect())?;
    Dataset::new(x, (1..=columns).map(|j| format!("x{j}")).collect())
}

fn terms(data: &Dataset, kernels: &[KernelSpec], storage: Storage) -> Result<GramSet> {
    let budget = Budget { bytes: 8 << 30 };
    let (normalize, approx) = (Normalize::None, Approx::None);
    let options =
        BuildOptions { normalize, storage, rank_tolerance: 1e-6, budget, approx, seed: 0 };
    GramSet::from_rows(data.rows(), kernels, &options)
}

fn gram() -> Result<Part> {
    let data = rows(1000, 20)?;
    let kernels = language::parse("rbf(4) on all")?.resolve(&data)?;
    let run = move || drop(black_box(terms(&data, &kernels, Storage::Dense)));
    Ok(Part {
        run: Box::new(run),
        unit: Unit::Nanoseconds(1000 * 1001 / 2, "entry"),
        parallel: true,
    })
}

const BANK: &str = "rbf(2^-3..2^6), poly(1..3) on each";

fn bank() -> Result<Part> {
    let data = rows(284, 30)?;
    let kernels = language::parse(BANK)?.resolve(&data)?;
    let run = move || drop(black_box(terms(&data, &kernels, Storage::Auto)));
    Ok(Part { run: Box::new(run), unit: Unit::Milliseconds, parallel: true })
}

fn dense() -> Result<GramSet> {
    let data = rows(1000, 20)?;
    let widths: Vec<String> = (1..=20).map(|k| format!("{}", 0.5 * f64::from(k))).collect();
    let kernels = language::parse(&format!("rbf({}) on all", widths.join("|")))?.resolve(&data)?;
    terms(&data, &kernels, Storage::Dense)
}

fn low_rank() -> Result<GramSet> {
    let data = rows(284, 30)?;
    terms(&data, &language::parse(BANK)?.resolve(&data)?, Storage::Auto)
}

fn combine(grams: GramSet) -> Part {
    let unit = Unit::Bytes(grams.bytes());
    let weights: Vec<f64> = (1..=grams.n_terms()).map(|t| 1.0 / t as f64).collect();
    let run = move || drop(black_box(grams.combine(&weights)));
    Part { run: Box::new(run), unit, parallel: true }
}

fn forms(grams: GramSet) -> Part {
    let unit = Unit::Bytes(grams.bytes());
    let mut rng = Rng::new(8);
    let a: Vec<f64> = (0..grams.n_samples()).map(|_| rng.normal()).collect();
    let run = move || drop(black_box(grams.quad_forms(&a)));
    Part { run: Box::new(run), unit, parallel: true }
}

fn smo() -> Result<Part> {
    let data = rows(1000, 20)?;
    let kernels = language::parse("rbf(4) on all")?.resolve(&data)?;
    let kernel = Combined::Dense(terms(&data, &kernels, Storage::Dense)?.combine(&[1.0]));
    let mut rng = Rng::new(9);
    let signal = |r: &[f64]| (2.0 * r[0]).sin() + r[1] * r[1] - 1.0 + r[2] * r[3];
    let sign = |positive: bool| if positive { 1.0 } else { -1.0 };
    let x = data.features();
    let y: Vec<f64> =
        (0..1000).map(|i| sign(signal(x.row(i)) + 0.5 * rng.normal() > 0.0)).collect();
    let run = move || {
        let task = Task { y: &y, cost: &[1.0; 1000], loss: &Hinge, intercept: true };
        drop(black_box(Smo { kink: 0.0 }.solve(
            &kernel,
            &task,
            None,
            Stop { absolute: 0.0, relative: 1e-3 },
        )));
    };
    Ok(Part { run: Box::new(run), unit: Unit::Milliseconds, parallel: false })
}

/// Tangents of Σ_m w_m/(θ_m + 0.01), convex and falling like the objective of a fit, at points of
/// Θ.
fn level(bound: bool) -> Result<Part> {
    const TERMS: usize = 400;
    let set = ElasticNet::new(0.5, 2.0)?;
    let mut rng = Rng::new(10);
    let w: Vec<f64> = (0..TERMS).map(|_| rng.uniform().powi(8)).collect();
    let (mut cuts, mut theta) = (Cuts::default(), set.start(TERMS));
    let (mut upper, mut lower) = (f64::INFINITY, f64::NEG_INFINITY);
    for _ in 0..10 {
        let slope: Vec<f64> = w.iter().zip(&theta).map(|(w, t)| w / (t + 0.01).powi(2)).collect();
        let value: f64 = w.iter().zip(&theta).map(|(w, t)| w / (t + 0.01)).sum();
        upper = upper.min(value);
        cuts.push(value + dot(&slope, &theta), slope, vec![vec![0.0]], None);
        let (mu, _) = cuts.bound(&set, &theta, 1e-2 * (upper - lower).min(upper));
        lower = lower.max(cuts.aggregate(&set, &mu).0);
        theta = cuts.nearest(&set, &theta, lower + 0.3 * (upper - lower), 1e-2 * (upper - lower));
    }
    let (open, level) = (upper - lower, lower + 0.3 * (upper - lower));
    let run: Box<dyn FnMut() + Send> = if bound {
        Box::new(move || drop(black_box(cuts.bound(&set, &theta, 1e-2 * open))))
    } else {
        Box::new(move || drop(black_box(cuts.nearest(&set, &theta, level, 1e-2 * open))))
    };
    Ok(Part { run, unit: Unit::Milliseconds, parallel: false })
}

/// The function whose instructions benchmarks/callgrind.sh counts.
#[inline(never)]
fn measured(run: &mut (dyn FnMut() + Send)) {
    run();
}

/// Median and minimum of the seconds of a run.
fn time(part: &mut Part, count: usize, budget: f64) -> (f64, f64) {
    threads::install(Some(count), || {
        let (began, mut seconds) = (Instant::now(), Vec::new());
        measured(&mut *part.run);
        while seconds.is_empty() || seconds.len() < 1000 && began.elapsed().as_secs_f64() < budget {
            let began = Instant::now();
            measured(&mut *part.run);
            seconds.push(began.elapsed().as_secs_f64());
        }
        seconds.sort_by(f64::total_cmp);
        (seconds[seconds.len() / 2], seconds[0])
    })
}

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let wanted = args.first().map_or("all", String::as_str);
    let budget = args.get(1).map_or("1", String::as_str);
    let chosen = |name: &str| wanted == "all" || wanted.split(',').any(|w| w == name);
    if budget == "once" {
        for (_, _, part) in PARTS.iter().filter(|(name, ..)| chosen(name)) {
            let mut part = part()?;
            threads::install(Some(1), || measured(&mut *part.run));
        }
        return Ok(());
    }
    let budget: f64 =
        budget.parse().map_err(|_| Error::param("SECONDS", "a number or once", budget))?;
    println!(
        "| part | name | one thread: median | minimum | two threads: median | minimum | ratio |"
    );
    println!("|---|---|---|---|---|---|---|");
    for (name, what, part) in PARTS.iter().filter(|(name, ..)| chosen(name)) {
        let mut part = part()?;
        let (median, least) = time(&mut part, 1, budget);
        let show = |seconds: f64| part.unit.show(seconds);
        print!("| {what} | {name} | {} | {} |", show(median), show(least));
        if part.parallel {
            let (two, two_least) = time(&mut part, 2, budget);
            println!(
                " {} | {} | {:.2} |",
                part.unit.show(two),
                part.unit.show(two_least),
                median / two
            );
        } else {
            println!(" – | – | – |");
        }
    }
    Ok(())
}
