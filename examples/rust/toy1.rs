//! Toy 1 of the GMKL paper with its protocol: 150 rows to learn from, 150 to test on, 273
//! unit-trace kernels, C by cross-validation on the training rows of one run (`each`: of every
//! run), 20 repeats.
//!
//! cargo run --release -p mercer --example toy1 [-- standardize] [each]

use mercer::{
    Result, TrainSpec,
    data::{Target, synthetic},
    kernels::Normalize,
    metrics,
    prepare::Source,
    request::{Gmkl, MethodSpec, Solver},
    trace::Silent,
    train::grid_search,
};

const REPEATS: u64 = 20;

fn main() -> Result<()> {
    let asked = |word: &str| std::env::args().any(|a| a == word);
    let (standardize, each) = (asked("standardize"), asked("each"));
    let gmkl = |v| MethodSpec::Gmkl(Gmkl { v, p: 2.0, solver: Solver::Level });
    let methods = [
        ("uniform", MethodSpec::Uniform {}),
        ("L2, v=0", gmkl(0.0)),
        ("GMKL, v=0.5", gmkl(0.5)),
        ("L1, v=1", gmkl(1.0)),
    ];
    println!("columns standardised: {standardize}");
    println!(
        "{:12} {:>7}  {:>14}  {:>14}  {:>9}",
        "method", "C", "accuracy", "kernels", "worst gap"
    );
    for (name, method) in methods {
        let spec = |c| TrainSpec {
            method: method.clone(),
            kernels: "paper".into(),
            normalize: Normalize::Trace,
            standardize,
            c,
            ..TrainSpec::default()
        };
        let grid: Vec<TrainSpec> = (0..=5).map(|e| spec(10f64.powi(e))).collect();
        let (train, test): (Vec<usize>, Vec<usize>) = ((0..150).collect(), (150..300).collect());
        let mut chosen = None;
        let (mut accuracy, mut kernels, mut gap) = (Vec::new(), Vec::new(), 0.0f64);
        for repeat in 1..=REPEATS {
            let (data, target) = synthetic::toy1(300, repeat);
            let (x, y) = (data.select(&train), target.select(&train));
            let best = match chosen {
                Some(best) if !each => best,
                _ => {
                    grid_search(Source::Table(&x), &y, None, &grid, (5, repeat), &mut Silent)?.best
                }
            };
            chosen = Some(best);
            let model = mercer::train(&x, &y, None, &grid[best], &mut Silent)?;
            let predicted = model.predict(&data.select(&test))?;
            let (Target::Classes { labels: got, .. }, Target::Classes { labels: truth, .. }) =
                (predicted, target.select(&test))
            else {
                continue;
            };
            accuracy.push(100.0 * metrics::accuracy(&truth, &got)?);
            kernels.push(model.machines[0].weights.iter().filter(|w| **w != 0.0).count() as f64);
            gap = gap.max(model.machines[0].certificate.gap);
        }
        let show = |v: &[f64]| {
            let mean = v.iter().sum::<f64>() / v.len() as f64;
            let sd =
                (v.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (v.len() - 1) as f64).sqrt();
            format!("{mean:.1} ± {sd:.1}")
        };
        let c = if each {
            "each".into()
        } else {
            chosen.map_or(String::new(), |b| grid[b].c.to_string())
        };
        println!("{name:12} {c:>7}  {:>14}  {:>14}  {gap:>9.1e}", show(&accuracy), show(&kernels));
    }
    Ok(())
}
