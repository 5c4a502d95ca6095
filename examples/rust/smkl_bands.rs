//! Bands of spectra, after the SMKL paper's Tables 2, 4 and 6: SMKL (`log+gl`) against L1 and
//! uniform weights.
//!
//! cargo run --release -p mercer --example smkl_bands [-- ovarian | diesel | wheat] [splits]
//!
//! `MERCER_DATA_DIR` (default ../shared/data) holds `nir_diesel_swri/diesel_cetane.csv`,
//! `nir_wheat_kalivas/nir_wheat_kalivas.csv` and `ovarian_ms/ovarian_216x4000.csv`, which two lines
//! of Python make of the array file beside it:
//!
//!     d = numpy.load("ovarian_216x4000.npz"); head = ",".join(f"x{j}" for j in range(4000)) + ",label"
//!     numpy.savetxt("ovarian_216x4000.csv", numpy.c_[d["X"].astype(str), d["label"]], "%s", ",", header=head, comments="")
//!
//! Ovarian: 40 bands of 100 adjacent points, a linear kernel each. Diesel and wheat (five adjacent
//! points averaged, as in the paper): 10 bands, each the spectrum and its second differences, with
//! a linear, a cubic and two Gaussian kernels of widths √d/2 and 2√d, d the columns of a band.
//! Columns are standardised and kernels scaled to unit trace on the training rows. Random 80/20
//! splits; C, and for values the tube, by 5-fold cross-validation on the training rows, SMKL's grid
//! of C starting above the collapse threshold.

use std::{env, path::PathBuf};

use mercer::{
    Error, Model, Result, TrainSpec,
    data::{Dataset, Table, Target, TaskHint, View, split},
    kernels::Normalize,
    linalg::Matrix,
    model::Input,
    prepare::{Prepared, Source},
    request::{Gmkl, MethodSpec, Smkl, Solver},
    trace::Silent,
    train::grid_search,
};

fn main() -> Result<()> {
    let words: Vec<String> = env::args().skip(1).collect();
    let splits = words.iter().find_map(|w| w.parse().ok()).unwrap_or(30);
    for name in ["ovarian", "diesel", "wheat"] {
        if !words.iter().any(|w| w.parse::<u64>().is_err()) || words.iter().any(|w| w == name) {
            compare(name, splits)?;
        }
    }
    Ok(())
}

/// Data and the bank of kernels.
fn load(name: &str) -> Result<(Dataset, Target, String)> {
    let folder = env::var_os("MERCER_DATA_DIR")
        .map_or_else(|| PathBuf::from("../shared/data"), PathBuf::from);
    let (file, target) = match name {
        "ovarian" => ("ovarian_ms/ovarian_216x4000.csv", "label"),
        "diesel" => ("nir_diesel_swri/diesel_cetane.csv", "target"),
        _ => ("nir_wheat_kalivas/nir_wheat_kalivas.csv", "target"),
    };
    let table = Table::read(&folder.join(file))?;
    let (data, y) = (table.dataset(&[target], None)?, table.target(target, TaskHint::Auto)?);
    Ok(match name {
        "ovarian" => (data, y, "linear on bands(40)".into()),
        "diesel" => bands(data.features(), 10).map(|(x, bank)| (x, y, bank))?,
        _ => bands(&averaged(data.features(), 5)?, 10).map(|(x, bank)| (x, y, bank))?,
    })
}

/// Means of `width` adjacent columns; what is left over at the end is dropped.
fn averaged(x: &Matrix, width: usize) -> Result<Matrix> {
    let mean = |row: &[f64]| {
        row.chunks_exact(width).map(|c| c.iter().sum::<f64>() / width as f64).collect::<Vec<_>>()
    };
    Matrix::new(x.rows(), x.cols() / width, (0..x.rows()).flat_map(|i| mean(x.row(i))).collect())
}

/// Spectrum and second differences, band by band, each band a view with four kernels.
fn bands(x: &Matrix, count: usize) -> Result<(Dataset, String)> {
    let inner = x.cols() - 2;
    let ranges: Vec<_> =
        (0..count).map(|b| 1 + b * inner / count..1 + (b + 1) * inner / count).collect();
    let row = |i: usize| {
        let at = x.row(i);
        let second = move |j: usize| at[j - 1] - 2.0 * at[j] + at[j + 1];
        ranges
            .iter()
            .flat_map(move |r| at[r.clone()].iter().copied().chain(r.clone().map(second)))
            .collect::<Vec<_>>()
    };
    let wide = Matrix::new(x.rows(), 2 * inner, (0..x.rows()).flat_map(row).collect())?;
    let view = |(b, r): (usize, &std::ops::Range<usize>)| View {
        name: format!("b{}", b + 1),
        columns: 2 * (r.start - 1)..2 * (r.end - 1),
    };
    let views: Vec<View> = ranges.iter().enumerate().map(view).collect();
    let scopes: Vec<String> = views.iter().map(|v| format!("view({})", v.name)).collect();
    let root = (2.0 * inner as f64 / count as f64).sqrt();
    let bank = format!(
        "linear, poly(3), rbf({:.2}|{:.2}) on {}",
        0.5 * root,
        2.0 * root,
        scopes.join(", ")
    );
    Ok((Dataset::new(wide, vec![])?.with_views(views)?, bank))
}

/// One line of the table.
#[derive(Default)]
struct Scores {
    error: Vec<f64>,
    bands: Vec<f64>,
    kernels: Vec<f64>,
    c: Vec<f64>,
}

fn compare(name: &str, splits: u64) -> Result<()> {
    let (data, target, kernels) = load(name)?;
    println!("{name}: {} rows, {} columns; {kernels}", data.len(), data.columns().len());
    println!("{:8} {:>16} {:>12} {:>12} {:>10}", "method", "error", "bands", "kernels", "median C");
    let base = TrainSpec { kernels, normalize: Normalize::Trace, ..TrainSpec::default() };
    for (label, method) in [
        ("smkl", MethodSpec::Smkl(Smkl { penalty: "log+gl".into(), eps: 1e-4 })),
        ("L1", MethodSpec::Gmkl(Gmkl { v: 1.0, p: 2.0, solver: Solver::Level })),
        ("uniform", MethodSpec::Uniform {}),
    ] {
        let spec = TrainSpec { method, ..base.clone() };
        let mut scores = Scores::default();
        for seed in 1..=splits {
            let (train, test) = split::stratified_split(&target, 0.2, seed)?;
            let (x, y) = (data.select(&train), target.select(&train));
            let grid = grid(&x, &y, &spec)?;
            let best = &grid
                [grid_search(Source::Table(&x), &y, None, &grid, (5, seed), &mut Silent)?.best];
            // Tight, so that a kernel counted is not one that was merely slow to leave.
            let last = TrainSpec { tol: 1e-5, max_iter: 5000, ..best.clone() };
            let model = mercer::train(&x, &y, None, &last, &mut Silent)?;
            scores.error.push(error(
                &model.predict(&data.select(&test))?,
                &target.select(&test),
                &target,
            )?);
            let (bands, kernels) = used(&model);
            scores.bands.push(bands as f64);
            scores.kernels.push(kernels as f64);
            scores.c.push(best.c);
        }
        scores.c.sort_by(f64::total_cmp);
        let (error, bands, kernels) =
            (show(&scores.error), show(&scores.bands), show(&scores.kernels));
        println!(
            "{label:8} {error:>16} {bands:>12} {kernels:>12} {:>10.3}",
            scores.c[scores.c.len() / 2]
        );
    }
    Ok(())
}

/// Requests to choose from. SMKL: six values of C from the start of [`mercer::methods::Threshold`]
/// on. Others: 10 to 10⁴.
fn grid(x: &Dataset, y: &Target, spec: &TrainSpec) -> Result<Vec<TrainSpec>> {
    let prices = match spec.method {
        MethodSpec::Smkl(_) => {
            Prepared::from_table(x, y, None, spec)?.collapse_threshold(spec)?.grid(6, 2.0)
        }
        _ => (2..=8).map(|k| 10f64.powf(0.5 * f64::from(k))).collect(),
    };
    let tubes = match y {
        Target::Classes { .. } => vec![None],
        Target::Values(v) => [0.02, 0.1].map(|t| Some(t * variance(v).sqrt())).to_vec(),
    };
    let ask = |c: f64| tubes.iter().map(move |&epsilon| TrainSpec { c, epsilon, ..spec.clone() });
    Ok(prices.into_iter().flat_map(ask).collect())
}

/// Percentage wrong, or the mean squared error over the variance of the whole data set (the paper's
/// NMSE).
fn error(predicted: &Target, truth: &Target, whole: &Target) -> Result<f64> {
    match (predicted, truth, whole) {
        (Target::Classes { labels: p, .. }, Target::Classes { labels: t, .. }, _) => {
            Ok(100.0 * (1.0 - mercer::metrics::accuracy(t, p)?))
        }
        (Target::Values(p), Target::Values(t), Target::Values(all)) => {
            Ok(mercer::metrics::rmse(t, p)?.powi(2) / variance(all))
        }
        _ => Err(Error::data("target", "classes and values mixed", "use one")),
    }
}

/// Bands and kernels with a weight.
fn used(model: &Model) -> (usize, usize) {
    let Input::Table { kernels, .. } = &model.input else { return (0, 0) };
    let active = kernels.iter().zip(&model.machines[0].weights).filter(|(_, w)| **w != 0.0);
    let mut places: Vec<&[usize]> = active.map(|(k, _)| k.columns.as_slice()).collect();
    let kernels = places.len();
    places.sort_unstable();
    places.dedup();
    (places.len(), kernels)
}

fn variance(v: &[f64]) -> f64 {
    let mean = v.iter().sum::<f64>() / v.len() as f64;
    v.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / v.len() as f64
}

fn show(v: &[f64]) -> String {
    let mean = v.iter().sum::<f64>() / v.len() as f64;
    let sd = (v.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (v.len() as f64 - 1.0).max(1.0))
        .sqrt();
    format!("{mean:.3} ± {sd:.3}")
}
