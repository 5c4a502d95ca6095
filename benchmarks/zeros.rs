//! Do two solvers name the same kernels? `auto` and `level` on random parts of several data sets.
//!
//!     cargo run --release -p mercer --example bench_zeros [SPLITS [SETS [NORMALIZATIONS [PRICES [SHARE]]]]]
//!     cargo run --release -p mercer --example bench_zeros 20 heart,ionosphere,toy1,toy2,wdbc trace,multiplicative 1,100 0.5
//!
//! Prints a Markdown table with a row for each set, normalisation, price C (times the rows for
//! unit-trace kernels), v and tolerance: the mean number of kernels that each solver selects, the
//! mean number that carry 99 % of the weight, the largest difference between the two solvers on one
//! split, fits that are not certified, fits with a weight that is not zero but below a millionth of
//! the largest, and seconds. Data sets are read from the folder that MERCER_DATA_DIR names, by
//! default ../shared/data; a set that is not there is named and left out. Set ZEROS_EACH to see
//! every fit.

use std::{path::PathBuf, time::Instant};

use mercer::{
    Result, TrainSpec,
    data::{Dataset, Table, Target, TaskHint, split, synthetic},
    kernels::Normalize,
    linalg::threads,
    prepare::Prepared,
    request::{Gmkl, MethodSpec, Solver},
    trace::{Silent, Status},
};

const VS: [f64; 3] = [0.3, 0.5, 1.0];
const TOLERANCES: [f64; 2] = [1e-3, 1e-5];
const SOLVERS: [Solver; 2] = [Solver::Auto, Solver::Level];
/// The share of the weight whose kernels are counted.
const MOST: f64 = 0.99;
/// A weight below this share of the largest is no zero, and should be.
const DUST: f64 = 1e-6;

/// What one fit selects.
struct Selection {
    kernels: usize,
    carrying: usize,
    dust: bool,
    certified: bool,
    gap: f64,
    seconds: f64,
}

fn argument(at: usize, default: &str) -> String {
    std::env::args().nth(at).unwrap_or_else(|| default.into())
}

fn data(name: &str) -> Option<(Dataset, Target)> {
    match name {
        "toy1" => return Some(synthetic::toy1(150, 1)),
        "toy2" => return Some(synthetic::toy2(150, 1)),
        _ => {}
    }
    let file = if name == "heart" { "heart_statlog" } else { name };
    let folder = std::env::var_os("MERCER_DATA_DIR")
        .map_or_else(|| PathBuf::from("../shared/data"), PathBuf::from);
    let table = Table::read(&folder.join(format!("{file}/{file}.csv"))).ok()?;
    Some((table.dataset(&["label"], None).ok()?, table.target("label", TaskHint::Auto).ok()?))
}

fn select(prepared: &Prepared, spec: &TrainSpec) -> Result<Selection> {
    let began = Instant::now();
    let model = prepared.fit(spec, &mut Silent)?;
    let seconds = began.elapsed().as_secs_f64();
    let mut weights = model.machines[0].weights.clone();
    weights.sort_by(|a, b| b.total_cmp(a));
    let (largest, total) = (weights[0], weights.iter().sum::<f64>());
    let (mut sum, mut carrying) = (0.0, 0);
    while sum < MOST * total {
        sum += weights[carrying];
        carrying += 1;
    }
    let certificate = model.machines[0].certificate;
    Ok(Selection {
        kernels: weights.iter().filter(|w| **w > 0.0).count(),
        carrying,
        dust: weights.iter().any(|w| *w > 0.0 && *w < DUST * largest),
        certified: certificate.status == Status::Optimal && certificate.gap <= spec.tol,
        gap: certificate.gap,
        seconds,
    })
}

fn main() -> Result<()> {
    let splits: u64 = argument(1, "20").parse().unwrap_or(20);
    let (sets, scalings) =
        (argument(2, "heart,ionosphere,toy1,toy2,wdbc"), argument(3, "trace,multiplicative"));
    let prices: Vec<f64> = argument(4, "1").split(',').filter_map(|p| p.parse().ok()).collect();
    let share: f64 = argument(5, "0.5").parse().unwrap_or(0.5);
    println!(
        "| set | scaling | C | v | tol | kernels, auto / level | 99 %, auto / level | apart at most | uncertified | dust, auto / level | s, auto / level |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    for set in sets.split(',') {
        let Some((x, y)) = data(set) else {
            eprintln!("{set}: not found; set MERCER_DATA_DIR to the folder of the data sets");
            continue;
        };
        for scaling in scalings.split(',') {
            let normalize =
                if scaling == "trace" { Normalize::Trace } else { Normalize::Multiplicative };
            threads::install(Some(1), || {
                sweep((set, &x, &y), (scaling, normalize), &prices, (splits, share))
            })?;
        }
    }
    Ok(())
}

fn sweep(
    (set, x, y): (&str, &Dataset, &Target),
    (scaling, normalize): (&str, Normalize),
    prices: &[f64],
    (splits, share): (u64, f64),
) -> Result<()> {
    let settings: Vec<(f64, f64, f64)> = prices
        .iter()
        .flat_map(|&price| VS.into_iter().flat_map(move |v| TOLERANCES.map(|tol| (price, v, tol))))
        .collect();
    let mut found: Vec<Vec<[Selection; 2]>> = settings.iter().map(|_| Vec::new()).collect();
    for seed in 0..splits {
        let drawn = match set {
            "toy1" => Some(synthetic::toy1((300.0 * share) as usize, seed)),
            "toy2" => Some(synthetic::toy2((300.0 * share) as usize, seed)),
            _ => None,
        };
        let (x, y) = if let Some(drawn) = drawn {
            drawn
        } else {
            let (rows, _) = split::stratified_split(y, share, seed)?;
            (x.select(&rows), y.select(&rows))
        };
        for (at, &(price, v, tol)) in settings.iter().enumerate() {
            let c = if normalize == Normalize::Trace { price * x.len() as f64 } else { price };
            let spec = |solver| TrainSpec {
                kernels: "paper".into(),
                normalize,
                c,
                tol,
                method: MethodSpec::Gmkl(Gmkl { v, p: 2.0, solver }),
                ..TrainSpec::default()
            };
            let prepared = Prepared::from_table(&x, &y, None, &spec(Solver::Auto))?;
            let [auto, level] = SOLVERS.map(|solver| select(&prepared, &spec(solver)));
            let both = [auto?, level?];
            if std::env::var_os("ZEROS_EACH").is_some() {
                let [a, l] = &both;
                eprintln!(
                    "{set} {scaling} C {price} v {v} tol {tol:e} split {seed}: {} {} kernels, {} {} carry, gaps {:.1e} {:.1e}, {:.4} {:.4} s",
                    a.kernels,
                    l.kernels,
                    a.carrying,
                    l.carrying,
                    a.gap,
                    l.gap,
                    a.seconds,
                    l.seconds
                );
            }
            found[at].push(both);
        }
    }
    for ((price, v, tol), fits) in settings.into_iter().zip(&found) {
        let mean = |of: &dyn Fn(&Selection) -> f64, k: usize| {
            fits.iter().map(|f| of(&f[k])).sum::<f64>() / splits as f64
        };
        let pair =
            |of: &dyn Fn(&Selection) -> f64| format!("{:.1} / {:.1}", mean(of, 0), mean(of, 1));
        let apart = fits.iter().map(|[a, l]| a.kernels.abs_diff(l.kernels)).max().unwrap_or(0);
        let count =
            |k: usize, of: &dyn Fn(&Selection) -> bool| fits.iter().filter(|f| of(&f[k])).count();
        let uncertified = count(0, &|s| !s.certified) + count(1, &|s| !s.certified);
        println!(
            "| {set} | {scaling} | {price} | {v} | {tol:e} | {} | {} | {apart} | {uncertified} | {} / {} | {:.3} / {:.3} |",
            pair(&|s| s.kernels as f64),
            pair(&|s| s.carrying as f64),
            count(0, &|s| s.dust),
            count(1, &|s| s.dust),
            mean(&|s| s.seconds, 0),
            mean(&|s| s.seconds, 1),
        );
    }
    Ok(())
}
