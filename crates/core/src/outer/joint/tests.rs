//! The joint method beside the level method, and where it refuses.

use super::*;
use crate::{
    data::{Target, synthetic},
    gram::{Budget, BuildOptions, GramSet, GramSource, Scratch, Storage},
    kernels::{Normalize, language},
    loss::{EpsilonInsensitive, Hinge},
    machine::{Fitting, Task},
    outer::{Part, active, level},
    trace::{Silent, Status},
    weights::{ElasticNet, LpBall, PerRegion},
};

fn terms(n: usize, kernels: &str, storage: Storage) -> (GramSet, Vec<f64>) {
    let (x, y) = synthetic::toy1(n, 4);
    let specs = language::parse(kernels).unwrap().resolve(&x).unwrap();
    let budget = Budget { bytes: 1 << 30 };
    let options = BuildOptions {
        normalize: Normalize::Multiplicative,
        storage,
        rank_tolerance: 1e-13,
        budget,
        ..BuildOptions::default()
    };
    let Target::Classes { labels, .. } = y else { panic!("classes") };
    let signs = labels.iter().map(|&l| 2.0 * l as f64 - 1.0).collect();
    (GramSet::from_table(x.features(), &specs, &options).unwrap(), signs)
}

#[test]
fn meets_the_level_method_on_every_set() {
    // More columns than rows, fewer, and no factors at all.
    let wide = "rbf(0.5|2), poly(1..2) on each";
    compare(
        terms(90, wide, Storage::LowRank),
        &[(0.02, true), (3.0, true), (3.0, false), (100.0, true)],
    );
    compare(terms(200, "poly(1..2) on each", Storage::LowRank), &[(1.0, true), (1.0, false)]);
    compare(terms(60, wide, Storage::Dense), &[(3.0, true)]);
}

fn compare((grams, signs): (GramSet, Vec<f64>), prices: &[(f64, bool)]) {
    let n = signs.len();
    let values: Vec<f64> =
        signs.iter().enumerate().map(|(i, s)| s + (0.7 * i as f64).sin()).collect();
    let sets: [(&str, Box<dyn Separable>); 6] = [
        ("elastic net 0", Box::new(ElasticNet::new(0.0, 2.0).unwrap())),
        ("elastic net 0.5", Box::new(ElasticNet::new(0.5, 2.0).unwrap())),
        ("simplex", Box::new(LpBall::new(1.0).unwrap())),
        ("l1.5 ball", Box::new(LpBall::new(1.5).unwrap())),
        ("l4 ball", Box::new(LpBall::new(4.0).unwrap())),
        ("two balls", Box::new(PerRegion::new(LpBall::new(2.0).unwrap(), 2))),
    ];
    let tube = Fitting::EpsilonInsensitive(EpsilonInsensitive::new(0.3).unwrap());
    for (fitting, y) in [(Fitting::Hinge(Hinge), &signs), (tube, &values)] {
        for &(price, intercept) in prices {
            let cost: Vec<f64> =
                (0..n).map(|i| if i % 5 == 0 { 2.0 * price } else { price }).collect();
            let task = Task { y, cost: &cost, loss: fitting.loss(), intercept };
            let (machine, budget) = (fitting.machine(), Budget { bytes: 1 << 30 });
            let parts = vec![Part { task, rows: None }];
            let problem = Problem {
                grams: &grams,
                parts,
                machine: &*machine,
                budget,
                scratch: Scratch::default(),
                tol: 1e-5,
                max_iter: 500,
                working_set: false,
                screening: false,
            };
            for (name, set) in &sets {
                let set: &dyn Separable = &**set;
                let ours = fit(&problem, set, &mut Memory::default(), &mut Silent).unwrap();
                let told = format!("{name}, {fitting:?}, price {price}, bias {intercept}");
                let ours = ours.unwrap_or_else(|| panic!("{told}: no progress"));
                let other = level(&problem, set, &mut Memory::default(), &mut Silent).unwrap();
                let (a, b) = (ours.certificate, other.certificate);
                assert_eq!(a.status, Status::Optimal, "{told}: {a:?}");
                assert!(a.gap <= 1e-5 && a.iterations < 40, "{told}: {a:?}");
                let slip = 1e-9 * b.primal;
                assert!(
                    a.dual <= b.primal + slip && b.dual <= a.primal + slip,
                    "{told}: {a:?} {b:?}"
                );
                assert!(set.load(&ours.weights) <= 1.0 + 1e-12, "{told}");
                if *name == "simplex" && price == 3.0 {
                    assert!(
                        active(&ours.weights) < grams.n_terms() / 2,
                        "{told}: {}",
                        active(&ours.weights)
                    );
                }
            }
        }
    }
}

#[test]
fn roads_that_cannot_be_gone_are_refused() {
    let (grams, signs) = terms(30, "linear on each", Storage::LowRank);
    let cost = vec![1.0; 30];
    let fitting = Fitting::Logistic(crate::loss::Logistic);
    let task = Task { y: &signs, cost: &cost, loss: fitting.loss(), intercept: true };
    let problem = Problem {
        grams: &grams,
        parts: vec![Part { task, rows: None }],
        machine: &*fitting.machine(),
        budget: Budget { bytes: 1 << 30 },
        scratch: Scratch::default(),
        tol: 1e-3,
        max_iter: 10,
        working_set: false,
        screening: false,
    };
    let set = LpBall::new(2.0).unwrap();
    let run = |always| {
        let level: Alternative<'_> = &|memory, observer| level(&problem, &set, memory, observer);
        fit_or(&problem, &set, always, &mut Memory::default(), &mut Silent, level)
    };
    let error = run(true).unwrap_err().to_string();
    assert!(error.contains("solver") && error.contains("interior"), "{error}");
    assert!(run(false).is_ok());
}
