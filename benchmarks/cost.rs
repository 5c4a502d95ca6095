//! What a fit costs against the number of rows and of kernels, for every method: the numbers of
//! docs/figures/cost-*.svg.
//!
//!     cargo run --release -p mercer --example bench_cost [LIMIT] [METHOD,…] [N,…] [M,…]
//!
//! Gaussian kernels of different widths on all of ten standard normal columns, stored as triangles:
//! 20 kernels on 250 to 4,000 rows, and 10 to 400 kernels on 500 rows. C = 1, relative gap 10⁻³,
//! one thread, kernels built beforehand. A method is asked for nothing larger once a fit took LIMIT
//! seconds (default 10). Prints a CSV: bytes are those of the stored terms, gap is empty where
//! there is none.

use std::time::Instant;

use mercer::{
    Error, Result, TrainSpec,
    data::{Dataset, Rng, Target},
    gram::{GramSource, Storage},
    linalg::{Matrix, threads},
    prepare::Prepared,
    request::MethodSpec,
    trace::Silent,
};

const COLUMNS: usize = 10;
/// Fits that are quicker than this are repeated, and their median is printed.
const QUICK: f64 = 1.0;
const REPEATS: usize = 5;

fn data(n: usize) -> Result<(Dataset, Target)> {
    let mut rng = Rng::new(7);
    let x = Matrix::new(n, COLUMNS, (0..n * COLUMNS).map(|_| rng.normal()).collect())?;
    let signal = |r: &[f64]| (2.0 * r[0]).sin() + r[1] * r[1] - 1.0 + r[2] * r[3];
    let labels = (0..n).map(|i| usize::from(signal(x.row(i)) + 0.5 * rng.normal() > 0.0)).collect();
    let names = (1..=COLUMNS).map(|j| format!("x{j}")).collect();
    Ok((
        Dataset::new(x, names)?,
        Target::Classes { names: vec!["no".into(), "yes".into()], labels },
    ))
}

/// Widths from 0.5 to 16 in equal ratios.
fn spec(terms: usize) -> TrainSpec {
    let ratio = 5.0 / (terms.max(2) - 1) as f64;
    let widths: Vec<String> =
        (0..terms).map(|k| format!("{:.6}", 2f64.powf(ratio * k as f64 - 1.0))).collect();
    TrainSpec {
        kernels: format!("rbf({}) on all", widths.join("|")),
        storage: Storage::Dense,
        memory: Some(8 << 30),
        ..TrainSpec::default()
    }
}

/// Fits of every method that is still in the race, on one size.
fn measure(n: usize, terms: usize, methods: &mut Vec<&str>, limit: f64) -> Result<()> {
    let (x, y) = data(n)?;
    let base = spec(terms);
    let prepared = Prepared::from_table(&x, &y, None, &base)?;
    let bytes = prepared.grams().bytes();
    let mut failed = None;
    methods.retain(|&method| {
        let fit = || -> Result<bool> {
            let spec = TrainSpec { method: MethodSpec::named(method)?, ..base.clone() };
            let (mut seconds, mut last) = (Vec::new(), None);
            while seconds.len() < REPEATS && seconds.iter().sum::<f64>() < QUICK {
                let began = Instant::now();
                last = Some(prepared.fit(&spec, &mut Silent)?.certificate());
                seconds.push(began.elapsed().as_secs_f64());
            }
            seconds.sort_by(f64::total_cmp);
            let median = seconds[seconds.len() / 2];
            let Some(c) = last else { return Ok(false) };
            let gap = if c.gap.is_finite() { format!("{:.2e}", c.gap) } else { String::new() };
            let (iterations, status) = (c.iterations, c.status.as_str());
            println!(
                "{method},{},{terms},{bytes},{median:.6},{iterations},{gap},{status}",
                prepared.grams().n_samples()
            );
            Ok(median < limit)
        };
        fit().unwrap_or_else(|e| {
            failed.get_or_insert(e);
            false
        })
    });
    failed.map_or(Ok(()), Err)
}

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let text = |k: usize, default: &'static str| args.get(k).map_or(default, String::as_str);
    let whole = |list: &str| -> Result<Vec<usize>> {
        let one = |s: &str| {
            s.parse().map_err(|_| Error::param("sizes", "whole numbers, comma between", s))
        };
        list.split(',').map(one).collect()
    };
    let limit: f64 =
        text(0, "10").parse().map_err(|_| Error::param("LIMIT", "seconds", text(0, "10")))?;
    let methods: Vec<&str> =
        text(1, "uniform,gmkl,l1,l2,align,alignf,smkl,clmkl,hlmkl,lmkl,glmkl,gsmkl,vcmkl")
            .split(',')
            .collect();
    let (sizes, counts) =
        (whole(text(2, "250,500,1000,2000,4000"))?, whole(text(3, "10,20,50,100,200,400"))?);
    println!("method,rows,kernels,bytes,seconds,iterations,gap,status");
    threads::install(Some(1), || {
        let mut left = methods.clone();
        sizes.iter().try_for_each(|&n| measure(n, 20, &mut left, limit))?;
        let mut left = methods.clone();
        counts.iter().filter(|m| **m != 20).try_for_each(|&m| measure(500, m, &mut left, limit))
    })
}
