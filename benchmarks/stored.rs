//! Fits from stored terms: what the solver costs once the kernels are there.
//!
//!     cargo run --release -p mercer --example bench_stored FOLDER METHOD [REPEATS] [C] [THREADS]
//!
//! FOLDER holds K.npy of shape (kernels, n, n) and y.npy with n labels, ±1. Prints the median of
//! the repeats, one thread unless told otherwise.

use std::{path::Path, time::Instant};

use mercer::{
    Error, Result, TrainSpec,
    data::{Target, array},
    gram::{GramSource, Stack},
    kernels::Normalize,
    linalg::threads,
    prepare::Prepared,
    request::{Gmkl, LossName, Lp, MethodSpec, Solver},
    trace::Silent,
};

/// Times that terms are stored, at most.
const MOST: usize = 21;

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number =
        |k: usize, default: f64| args.get(k).and_then(|s| s.parse().ok()).unwrap_or(default);
    let (Some(folder), Some(method)) = (args.first(), args.get(1)) else {
        return Err(Error::param("arguments", "FOLDER METHOD [REPEATS] [C] [THREADS]", "too few"));
    };
    let (repeats, c, count) = (number(2, 5.0) as usize, number(3, 1.0), number(4, 1.0) as usize);
    threads::install(Some(count), || run(Path::new(folder), method, repeats, c))
}

fn numbers(path: &Path) -> Result<(Vec<usize>, Vec<f64>)> {
    let array = array::read(path)?.swap_remove(0).1;
    let array::Values::Numbers(values) = array.values else {
        return Err(Error::param("file", "real numbers", path.display().to_string()));
    };
    Ok((array.shape, values))
}

fn run(folder: &Path, method: &str, repeats: usize, c: f64) -> Result<()> {
    let (shape, k) = numbers(&folder.join("K.npy"))?;
    let (_, y) = numbers(&folder.join("y.npy"))?;
    let [terms, n] = [shape[0], shape[1]];
    let mut data = vec![0.0; k.len()];
    for (t, term) in k.chunks_exact(n * n).enumerate() {
        term.iter().enumerate().for_each(|(at, v)| data[at * terms + t] = *v);
    }
    // gmkl:interior and the like name the solver too.
    let (method, solver) = method.split_once(':').unwrap_or((method, "auto"));
    let mut named = MethodSpec::named(method)?;
    if let MethodSpec::Gmkl(Gmkl { solver: own, .. }) | MethodSpec::Lp(Lp { solver: own, .. }) =
        &mut named
    {
        *own = match solver {
            "interior" => Solver::Interior,
            "level" => Solver::Level,
            _ => Solver::Auto,
        };
    }
    let spec = TrainSpec {
        c,
        normalize: Normalize::None,
        method: named,
        loss: Some(LossName::Hinge),
        ..TrainSpec::default()
    };
    let classes = vec!["-1".to_string(), "1".to_string()];
    let target = Target::Classes {
        names: classes,
        labels: y.iter().map(|&y| usize::from(y > 0.0)).collect(),
    };
    let stack = Stack { rows: n, cols: n, terms, data: &data };
    let (seconds, prepared) =
        timed(repeats.min(MOST), || Prepared::from_stack(stack, &target, None, &spec))?;
    println!("terms stored in {seconds:.4} s: {}", prepared.grams().describe());
    let (seconds, fit) = timed(repeats, || prepared.fit(&spec, &mut Silent))?;
    println!(
        "{} samples, {method}: {seconds:.4} s, {:?}",
        prepared.grams().n_samples(),
        fit.certificate()
    );
    Ok(())
}

/// Median of the seconds, and the last result.
fn timed<T>(repeats: usize, work: impl Fn() -> Result<T>) -> Result<(f64, T)> {
    let mut seconds = Vec::new();
    loop {
        let began = Instant::now();
        let result = work()?;
        seconds.push(began.elapsed().as_secs_f64());
        if seconds.len() >= repeats {
            seconds.sort_by(f64::total_cmp);
            return Ok((seconds[seconds.len() / 2], result));
        }
    }
}
