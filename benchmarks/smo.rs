//! The machine alone on one ready-made kernel: what LIBSVM is compared with at an equal gap.
//!
//!     cargo run --release -p mercer --example bench_smo FOLDER C GAP [REPEATS] [EPSILON]
//!
//! FOLDER holds K.npy of shape (n, n) and y.npy with n labels ±1, or n values where EPSILON, half
//! the width of the tube, is given. Prints median and minimum of the seconds on one thread, reading
//! apart, the objective and the relative gap reached, as one line of JSON.

use std::{path::Path, time::Instant};

use mercer::{
    Error, Result,
    data::array,
    gram::Gram,
    linalg::threads,
    loss::{EpsilonInsensitive, Hinge, Loss},
    machine::{Combined, Machine, Smo, Stop, Task},
};

fn numbers(path: &Path) -> Result<Vec<f64>> {
    match array::read(path)?.swap_remove(0).1.values {
        array::Values::Numbers(values) => Ok(values),
        array::Values::Texts(_) => {
            Err(Error::param("file", "real numbers", path.display().to_string()))
        }
    }
}

fn run(folder: &Path, c: f64, relative: f64, repeats: usize, epsilon: Option<f64>) -> Result<()> {
    let (k, y) = (numbers(&folder.join("K.npy"))?, numbers(&folder.join("y.npy"))?);
    let mut gram = Gram::zeros(y.len());
    gram.data_mut().copy_from_slice(&k);
    drop(k);
    let (kernel, cost) = (Combined::Dense(gram), vec![c; y.len()]);
    let tube = epsilon.map(EpsilonInsensitive::new).transpose()?;
    let loss: &dyn Loss = tube.as_ref().map_or(&Hinge, |l| l);
    let task = Task { y: &y, cost: &cost, loss, intercept: true };
    let machine = Smo { kink: epsilon.unwrap_or(0.0) };
    let mut seconds = Vec::new();
    let mut last = None;
    for _ in 0..repeats.max(1) {
        let began = Instant::now();
        last = Some(machine.solve(&kernel, &task, None, Stop { absolute: 0.0, relative })?);
        seconds.push(began.elapsed().as_secs_f64());
    }
    seconds.sort_by(f64::total_cmp);
    let (median, least) = (seconds[seconds.len() / 2], seconds[0]);
    let (primal, gap) = last.map_or((f64::NAN, f64::NAN), |s| (s.primal, s.gap() / s.primal));
    println!(
        "{{\"seconds\": {median:.6e}, \"minimum\": {least:.6e}, \"objective\": {primal:.8e}, \"gap\": {gap:.3e}}}"
    );
    Ok(())
}

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |k: usize| args.get(k).and_then(|s| s.parse::<f64>().ok());
    let (Some(folder), Some(c), Some(gap)) = (args.first(), number(1), number(2)) else {
        return Err(Error::param("arguments", "FOLDER C GAP [REPEATS] [EPSILON]", "too few"));
    };
    threads::install(Some(1), || {
        run(Path::new(folder), c, gap, number(3).unwrap_or(5.0) as usize, number(4))
    })
}
