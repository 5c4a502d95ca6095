//! Time against the number of rows, up to hundreds of thousands: the bank `paper` on single
//! columns.
//!
//!     cargo run --release -p mercer --example bench_scale [ROWS[,ROWS…]] [normal | heavy] [METHOD] [GIB]
//!
//! Twenty independent columns, standard normal or heavy-tailed (Student's t with three degrees of
//! freedom); the class is the sign of sin(2x₁) + x₂² − 1 + x₃x₄ + |x₅| − 0.8 + tanh(x₆) plus half a
//! standard normal. Kernels: ten widths and three degrees on each column, 260 in all. C = 1, v =
//! 0.5, relative gap 10⁻³. GIB is the memory budget, else half the machine's. Prints a Markdown
//! table, and every step on the other output; the peak is that of the process so far.

use std::{ops::ControlFlow, time::Instant};

use mercer::{
    Error, Result, TrainSpec,
    data::{Dataset, Rng, Target},
    gram::GramSource,
    linalg::Matrix,
    prepare::Prepared,
    request::MethodSpec,
    trace::{IterRecord, Observer},
};

const COLUMNS: usize = 20;

/// Every step on the other output: the largest sizes take a while.
struct Progress;

impl Observer for Progress {
    fn on_iteration(&mut self, r: &IterRecord) -> ControlFlow<()> {
        eprintln!(
            "{:4} {:.6} gap {:.1e}, {} kernels, {:.1} s",
            r.iteration, r.objective, r.gap, r.active, r.seconds
        );
        ControlFlow::Continue(())
    }
}

fn data(n: usize, heavy: bool) -> Result<(Dataset, Target)> {
    let mut rng = Rng::new(7);
    let mut x = Matrix::zeros(n, COLUMNS);
    let mut labels = Vec::new();
    for i in 0..n {
        for v in x.row_mut(i) {
            let spread = if heavy {
                ((0..3).map(|_| rng.normal().powi(2)).sum::<f64>() / 3.0).sqrt()
            } else {
                1.0
            };
            *v = rng.normal() / spread;
        }
        let r = x.row(i);
        let signal =
            (2.0 * r[0]).sin() + r[1] * r[1] - 1.0 + r[2] * r[3] + r[4].abs() - 0.8 + r[5].tanh();
        labels.push(usize::from(signal + 0.5 * rng.normal() > 0.0));
    }
    let names = (1..=COLUMNS).map(|j| format!("x{j}")).collect();
    Ok((
        Dataset::new(x, names)?,
        Target::Classes { names: vec!["no".into(), "yes".into()], labels },
    ))
}

/// Peak resident memory of this process, where the system tells.
fn peak() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kib = status
        .lines()
        .find_map(|l| l.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse::<f64>().ok());
    kib.map_or_else(|| "?".into(), |k| format!("{:.2}", k / 1_048_576.0))
}

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let sizes = args.first().map_or("1000,2000,5000,10000,20000,50000", String::as_str);
    let heavy = args.get(1).is_some_and(|s| s == "heavy");
    let method = args.get(2).map_or("gmkl", String::as_str);
    println!(
        "| rows | columns of the factors | kernels (s) | fit (s) | iterations | objective | gap | kernels used | peak (GiB) |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for size in sizes.split(',') {
        let n =
            size.parse().map_err(|_| Error::param("ROWS", "whole numbers, comma between", size))?;
        let (x, y) = data(n, heavy)?;
        let spec = TrainSpec {
            kernels: "rbf(2^-3..2^6), poly(1..3) on each".into(),
            method: MethodSpec::named(method)?,
            memory: args.get(3).and_then(|s| s.parse::<u64>().ok()).map(|gib| gib << 30),
            ..TrainSpec::default()
        };
        let began = Instant::now();
        let prepared = Prepared::from_table(&x, &y, None, &spec)?;
        let built = began.elapsed().as_secs_f64();
        let began = Instant::now();
        let model = prepared.fit(&spec, &mut Progress)?;
        let (c, grams) = (model.certificate(), prepared.grams());
        let ranks: usize = (0..grams.n_terms())
            .filter_map(|t| grams.factor(t))
            .map(mercer::gram::Factor::rank)
            .sum();
        println!(
            "| {n} | {ranks} in {} | {built:.2} | {:.2} | {} | {:.6} | {:.1e} | {} | {} |",
            grams.describe().split("; ").last().unwrap_or_default(),
            began.elapsed().as_secs_f64(),
            c.iterations,
            c.primal,
            c.gap,
            model.machines[0].weights.iter().filter(|w| **w > 0.0).count(),
            peak(),
        );
    }
    Ok(())
}
