//! Rows predicted per second.
//!
//!     cargo run --release -p mercer --example bench_predict [TRAINING ROWS [NEW ROWS]]
//!
//! Twenty standard normal columns; the class is the sign of sin(2x₁) + x₂² − 1 + x₃x₄ plus half a
//! standard normal, C = 1. Prints a Markdown table, best of three.

use std::time::Instant;

use mercer::{
    Error, Result, TrainSpec,
    data::{Dataset, Rng, Target},
    linalg::{Matrix, threads},
    prepare::Prepared,
    request::MethodSpec,
    trace::Silent,
};

const COLUMNS: usize = 20;

fn data(n: usize, seed: u64) -> Result<(Dataset, Target)> {
    let mut rng = Rng::new(seed);
    let x = Matrix::new(n, COLUMNS, (0..n * COLUMNS).map(|_| rng.normal()).collect())?;
    let class = |r: &[f64], noise: f64| {
        usize::from((2.0 * r[0]).sin() + r[1] * r[1] - 1.0 + r[2] * r[3] + 0.5 * noise > 0.0)
    };
    let labels = (0..n).map(|i| class(x.row(i), rng.normal())).collect();
    let names = (1..=COLUMNS).map(|j| format!("x{j}")).collect();
    Ok((
        Dataset::new(x, names)?,
        Target::Classes { names: vec!["no".into(), "yes".into()], labels },
    ))
}

fn main() -> Result<()> {
    let sizes = std::env::args()
        .skip(1)
        .map(|a| a.parse().map_err(|_| Error::param("ROWS", "a whole number", a)));
    let sizes: Vec<usize> = sizes.collect::<Result<_>>()?;
    let (old, new) =
        (sizes.first().copied().unwrap_or(2000), sizes.get(1).copied().unwrap_or(50_000));
    let ((x, y), (new, _)) = (data(old, 7)?, data(new, 8)?);
    println!(
        "| kernels | method | kernels used | stored rows | rows/s, one thread | rows/s, all threads |"
    );
    println!("|---|---|---|---|---|---|");
    for (kernels, method) in [
        ("linear on all", "uniform"),
        ("linear on all, each", "gmkl"),
        ("rbf(4) on all", "uniform"),
        ("rbf(2|4|8), poly(2|3) on all", "uniform"),
        ("rbf(2^-3..2^6), poly(1..3) on each", "gmkl"),
    ] {
        let spec = TrainSpec {
            kernels: kernels.into(),
            method: MethodSpec::named(method)?,
            ..TrainSpec::default()
        };
        let model = Prepared::from_table(&x, &y, None, &spec)?.fit(&spec, &mut Silent)?;
        let rate = |count: Option<usize>| {
            let mut best = f64::INFINITY;
            for _ in 0..3 {
                let began = Instant::now();
                threads::install(count, || model.decision(&new))?;
                best = best.min(began.elapsed().as_secs_f64());
            }
            Ok::<_, Error>(new.len() as f64 / best)
        };
        let (one, all) = (rate(Some(1))?, rate(None)?);
        let (used, stored) = (model.predictor.kernels().len(), model.predictor.row_ids().len());
        println!("| `{kernels}` | {method} | {used} | {stored} | {one:.0} | {all:.0} |");
    }
    Ok(())
}
