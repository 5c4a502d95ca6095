//! A path over twenty values of C against twenty cold fits.
//!
//!     cargo run --release -p mercer --example bench_path [REPEATS]
//!
//! Prints a Markdown table. "Cold" counts what twenty separate fits of a table cost, kernels
//! included; "cold, kernels ready" starts from kernel terms built once, so that only the warm
//! starts are left to tell; "path" starts from ready kernels too. Times are medians of the repeats,
//! which take turns, on one thread. Objectives agree when they differ by no more than the tolerance
//! allows.

use std::time::Instant;

use mercer::{
    Result, TrainSpec, data::synthetic, kernels::Normalize, linalg::threads, model::Certificate,
    prepare::Prepared, request::MethodSpec, trace::Silent,
};

/// C in equal ratios, for unit-trace kernels on n rows.
fn prices(n: usize) -> Vec<f64> {
    (0..20).map(|k| n as f64 * 10f64.powf(-1.0 + 3.0 * f64::from(k) / 19.0)).collect()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() -> Result<()> {
    let repeats: usize = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(3);
    println!(
        "| rows | method | cold (s) | cold, kernels ready (s) | path (s) | cold / path | ready / path | iterations, cold / path | largest gap | objectives differ by |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for n in [150, 400] {
        for method in ["l1", "gmkl", "l2"] {
            threads::install(Some(1), || compare(n, method, repeats))?;
        }
    }
    Ok(())
}

fn compare(n: usize, method: &str, repeats: usize) -> Result<()> {
    let (x, y) = synthetic::toy1(n, 1);
    let method_spec = MethodSpec::named(method)?;
    let base = TrainSpec {
        kernels: "paper".into(),
        normalize: Normalize::Trace,
        method: method_spec,
        ..TrainSpec::default()
    };
    let specs: Vec<TrainSpec> =
        prices(n).into_iter().map(|c| TrainSpec { c, ..base.clone() }).collect();
    let prepared = Prepared::from_table(&x, &y, None, &base)?;
    let (mut cold, mut ready, mut path) = (Vec::new(), Vec::new(), Vec::new());
    let (mut alone, mut along): (Vec<Certificate>, Vec<Certificate>) = (Vec::new(), Vec::new());
    for _ in 0..repeats {
        let began = Instant::now();
        alone = specs
            .iter()
            .map(|s| Ok(mercer::train(&x, &y, None, s, &mut Silent)?.certificate()))
            .collect::<Result<_>>()?;
        cold.push(began.elapsed().as_secs_f64());
        let began = Instant::now();
        for spec in &specs {
            prepared.fit(spec, &mut Silent)?;
        }
        ready.push(began.elapsed().as_secs_f64());
        let began = Instant::now();
        along =
            prepared.path(&specs, &mut Silent)?.iter().map(mercer::Model::certificate).collect();
        path.push(began.elapsed().as_secs_f64());
    }
    let (cold, ready, path) = (median(cold), median(ready), median(path));
    let gap = alone.iter().chain(&along).map(|c| c.gap).fold(0.0, f64::max);
    let apart = alone
        .iter()
        .zip(&along)
        .map(|(a, b)| (a.primal - b.primal).abs() / a.primal)
        .fold(0.0, f64::max);
    let iterations = |all: &[Certificate]| all.iter().map(|c| c.iterations).sum::<usize>();
    println!(
        "| {n} | {method} | {cold:.2} | {ready:.2} | {path:.2} | {:.1} | {:.1} | {} / {} | {gap:.1e} | {apart:.1e} |",
        cold / path,
        ready / path,
        iterations(&alone),
        iterations(&along)
    );
    Ok(())
}
