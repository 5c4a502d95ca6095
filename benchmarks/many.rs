//! Very many kernels on few rows: Gaussians of many widths on every column.
//!
//!     cargo run --release -p mercer --example bench_many [WIDTHS] [METHOD] [FILE]
//!
//! FILE is a table with the class in its last column; without one 104 rows of 60 generated columns
//! take its place. At most 104 rows are used, by a fixed shuffle. Widths go from 0.1 to 31.6
//! standard deviations in equal ratios, C = 10, relative gap 10⁻³.

use std::{path::Path, time::Instant};

use mercer::{
    Result, TrainSpec,
    data::{Dataset, Rng, Target, TaskHint, read},
    gram::GramSource,
    linalg::Matrix,
    prepare::Prepared,
    request::MethodSpec,
    trace::Silent,
};

const ROWS: usize = 104;

fn generated() -> Result<(Dataset, Target)> {
    let mut rng = Rng::new(3);
    let x = Matrix::new(ROWS, 60, (0..60 * ROWS).map(|_| rng.normal()).collect())?;
    let labels = (0..ROWS)
        .map(|i| usize::from((2.0 * x[(i, 0)]).sin() + x[(i, 1)] + 0.5 * rng.normal() > 0.0))
        .collect();
    let names = (1..=60).map(|j| format!("x{j}")).collect();
    Ok((
        Dataset::new(x, names)?,
        Target::Classes { names: vec!["no".into(), "yes".into()], labels },
    ))
}

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let widths: usize = args.first().and_then(|s| s.parse().ok()).unwrap_or(1667);
    let method = args.get(1).map_or("gmkl", String::as_str);
    let (mut x, mut y) = match args.get(2) {
        None => generated()?,
        Some(file) => {
            let table = read(Path::new(file))?;
            (table.dataset(&["-1"], None)?, table.target("-1", TaskHint::Classify)?)
        }
    };
    if x.len() > ROWS {
        let mut rows: Vec<usize> = (0..x.len()).collect();
        Rng::new(1).shuffle(&mut rows);
        rows.truncate(ROWS);
        (x, y) = (x.select(&rows), y.select(&rows));
    }
    let ratio = 2.5 / (widths.max(2) - 1) as f64;
    let list: Vec<String> =
        (0..widths).map(|k| format!("{:.6}", 10f64.powf(ratio * k as f64 - 1.0))).collect();
    let kernels = format!("rbf({}) on each", list.join("|"));
    let spec =
        TrainSpec { kernels, method: MethodSpec::named(method)?, c: 10.0, ..TrainSpec::default() };
    let began = Instant::now();
    let prepared = Prepared::from_table(&x, &y, None, &spec)?;
    let built = began.elapsed().as_secs_f64();
    let model = prepared.fit(&spec, &mut Silent)?;
    let used = model.machines[0].weights.iter().filter(|w| **w > 0.0).count();
    let (terms, seconds) = (prepared.grams().n_terms(), began.elapsed().as_secs_f64());
    println!(
        "{terms} kernels, {method}: {built:.2} s to build, {seconds:.2} s in all, {used} used, {:?}",
        model.certificate()
    );
    Ok(())
}
