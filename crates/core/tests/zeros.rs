//! Zeros are zeros: whichever solver fits them, weights over a set that selects kernels are exactly
//! zero or matter.

use mercer::{
    Model, TrainSpec,
    data::{Dataset, Target, synthetic},
    kernels::Normalize,
    prepare::Prepared,
    request::{Gmkl, LossName, Lp, MethodSpec, Smkl, Solver},
    trace::{Silent, Status},
    weights::carrying,
};

/// A weight below this share of the largest that is not zero is dust.
const DUST: f64 = 1e-6;

fn gmkl(v: f64, solver: Solver) -> MethodSpec {
    MethodSpec::Gmkl(Gmkl { v, p: 2.0, solver })
}

/// Rows of a set of weights that are neither zero nor a millionth of the largest.
fn dust(model: &Model) -> usize {
    let kernels = model.kernel_names().len();
    let of = |weights: &[f64]| {
        let largest = weights.iter().copied().fold(0.0, f64::max);
        weights.iter().filter(|w| **w != 0.0 && **w < DUST * largest).count()
    };
    model.machines.iter().flat_map(|m| m.weights.chunks(kernels)).map(of).sum()
}

fn selected(model: &Model) -> usize {
    model.machines[0].weights.iter().filter(|w| **w != 0.0).count()
}

fn certified(model: &Model, tol: f64) -> bool {
    let c = model.certificate();
    c.status == Status::Optimal && c.gap <= tol && model.warnings.is_empty()
}

#[test]
fn two_solvers_name_the_same_kernels() {
    type Draw = fn(usize, u64) -> (Dataset, Target);
    let draws: [(&str, Draw); 2] = [("toy 1", synthetic::toy1), ("toy 2", synthetic::toy2)];
    for (name, draw) in draws {
        for (seed, normalize, price) in [
            (0, Normalize::Trace, 1.0),
            (1, Normalize::Multiplicative, 1.0),
            (2, Normalize::Multiplicative, 100.0),
        ] {
            let (x, y) = draw(100, seed);
            let c = if normalize == Normalize::Trace { price * x.len() as f64 } else { price };
            for (v, tol) in [(0.3, 1e-3), (0.5, 1e-5), (1.0, 1e-3), (1.0, 1e-5)] {
                let spec = |solver| {
                    let kernels = "paper".into();
                    TrainSpec {
                        kernels,
                        normalize,
                        c,
                        tol,
                        method: gmkl(v, solver),
                        ..TrainSpec::default()
                    }
                };
                let prepared = Prepared::from_table(&x, &y, None, &spec(Solver::Auto)).unwrap();
                let [auto, level] = [Solver::Auto, Solver::Level]
                    .map(|solver| prepared.fit(&spec(solver), &mut Silent).unwrap());
                let told = format!("{name}, seed {seed}, {normalize:?}, C {c}, v {v}, tol {tol}");
                assert!(certified(&auto, tol) && certified(&level, tol), "{told}");
                assert_eq!((dust(&auto), dust(&level)), (0, 0), "{told}");
                let (a, l) = (selected(&auto), selected(&level));
                assert!(a.abs_diff(l) <= 3, "{told}: {a} and {l} kernels");
                let weights = &auto.machines[0].weights;
                assert!(carrying(weights) <= a && a < weights.len(), "{told}");
            }
        }
    }
}

#[test]
fn every_road_ends_without_dust() {
    let (x, y) = synthetic::toy1(60, 5);
    let (u, z) = synthetic::sinc(60, 0.1, 5).unwrap();
    // More kernels than rows, and fewer.
    for bank in [
        "rbf(0.25|0.5|1|2|4), poly(1..3) on all, each",
        "rbf(0.5|1|2), linear on all; rbf(1) on each",
    ] {
        for (data, target, losses) in [
            (
                &x,
                &y,
                vec![
                    LossName::Hinge,
                    LossName::SquaredHinge,
                    LossName::Logistic,
                    LossName::Squared,
                ],
            ),
            (&u, &z, vec![LossName::EpsilonInsensitive, LossName::Squared]),
        ] {
            for loss in losses {
                for method in [
                    gmkl(1.0, Solver::Auto),
                    gmkl(0.5, Solver::Auto),
                    gmkl(0.5, Solver::Alternating),
                    MethodSpec::Lp(Lp { p: 1.0, solver: Solver::Level }),
                    MethodSpec::Lp(Lp { p: 1.0, solver: Solver::ReducedGradient }),
                    MethodSpec::Lp(Lp { p: 1.0, solver: Solver::Silp }),
                ] {
                    let told = format!("{bank}, {loss:?}, {method:?}");
                    let spec = TrainSpec {
                        kernels: bank.into(),
                        c: 10.0,
                        loss: Some(loss),
                        max_iter: 2000,
                        method,
                        ..TrainSpec::default()
                    };
                    let model = mercer::train(data, target, None, &spec, &mut Silent).unwrap();
                    assert_eq!(model.certificate().status, Status::Optimal, "{told}");
                    assert_eq!(dust(&model), 0, "{told}");
                }
            }
        }
    }
}

#[test]
fn kernels_that_the_logarithm_meant_to_remove_are_removed() {
    // Kernels of unit variance and a small price: many norms rest just below ε.
    let (x, y) = synthetic::toy1(120, 3);
    let mut remained = 0;
    for c in [0.3, 1.0, 3.0] {
        let method = MethodSpec::Smkl(Smkl { penalty: "log+gl".into(), eps: 1e-4 });
        let spec = TrainSpec { kernels: "paper".into(), c, method, ..TrainSpec::default() };
        let model = mercer::train(&x, &y, None, &spec, &mut Silent).unwrap();
        let weights = &model.machines[0].weights;
        let largest = weights.iter().copied().fold(0.0, f64::max);
        // A kernel at rest with ‖w‖² < ε has a weight of about ε.
        let remnants =
            weights.iter().filter(|w| **w > 0.0 && **w < 2e-4 && **w < 1e-3 * largest).count();
        assert_eq!(remnants, 0, "C {c}: {} of {} selected", selected(&model), weights.len());
        remained += selected(&model);
    }
    assert!(remained > 0);
}

#[test]
fn gates_that_are_all_but_shut_are_shut() {
    let (x, y) = synthetic::toy1(60, 2);
    for name in ["lmkl", "glmkl", "gsmkl"] {
        let method = MethodSpec::named(name).unwrap();
        let spec = TrainSpec {
            kernels: "rbf(0.5|1|2), poly(1..2) on all, each".into(),
            c: 10.0,
            method,
            ..TrainSpec::default()
        };
        let model = mercer::train(&x, &y, None, &spec, &mut Silent).unwrap();
        assert_eq!(dust(&model), 0, "{name}");
        let (values, again) = (model.decision(&x).unwrap(), model.certificate());
        assert!(values.data().iter().all(|f| f.is_finite()) && again.primal.is_finite(), "{name}");
    }
}
