//! Certificates and equivalences: every fit proves its quality, and two roads give one answer.

use mercer::{
    Model, TrainSpec,
    data::{Dataset, Standardizer, Target, synthetic},
    gram::{Budget, BuildOptions, GramSet, GramSource, Scratch, Stack},
    kernels::{Normalize, language},
    linalg::{Matrix, threads},
    loss::Hinge,
    machine::{Fitting, Task},
    outer::{Memory, Part, Problem, level},
    prepare::Prepared,
    request::Scheme,
    request::{ClassWeight, Gmkl, GroupBy, LossName, MethodSpec, Solver, Storage},
    trace::{Silent, Status},
    weights::ElasticNet,
};

fn gmkl(v: f64, solver: Solver) -> MethodSpec {
    MethodSpec::Gmkl(Gmkl { v, p: 2.0, solver })
}

fn spec(method: MethodSpec) -> TrainSpec {
    let kernels = "rbf(0.5|1|2), poly(1..2) on all; rbf(1), linear on each".into();
    TrainSpec { method, kernels, c: 5.0, ..TrainSpec::default() }
}

fn fit(data: &Dataset, target: &Target, spec: &TrainSpec) -> Model {
    mercer::train(data, target, None, spec, &mut Silent).unwrap()
}

fn primal(model: &Model) -> f64 {
    model.machines[0].certificate.primal
}

fn close(a: f64, b: f64, relative: f64) -> bool {
    (a - b).abs() <= relative * a.abs().max(b.abs())
}

fn both_tasks() -> [(Dataset, Target, Vec<LossName>); 2] {
    let (x, y) = synthetic::toy1(60, 3);
    let (u, v) = synthetic::sinc(60, 0.1, 3).unwrap();
    let for_classes =
        vec![LossName::Hinge, LossName::SquaredHinge, LossName::Logistic, LossName::Squared];
    [
        (x, y, for_classes),
        (u, v, vec![LossName::EpsilonInsensitive, LossName::Squared, LossName::Huber]),
    ]
}

#[test]
fn every_loss_set_road_and_storage_is_certified() {
    for (x, y, losses) in both_tasks() {
        for loss in losses {
            let mut objectives = Vec::new();
            for v in [0.0, 0.3, 0.7, 1.0] {
                for storage in [Storage::Dense, Storage::DenseF32, Storage::LowRank, Storage::Auto]
                {
                    let spec = TrainSpec {
                        loss: Some(loss),
                        storage,
                        tol: 1e-4,
                        ..spec(gmkl(v, Solver::Level))
                    };
                    let model = fit(&x, &y, &spec);
                    let c = model.machines[0].certificate;
                    assert!(
                        c.status == Status::Optimal && c.gap <= 1e-4 && c.dual <= c.primal,
                        "{loss:?} v={v}: {c:?}"
                    );
                    objectives.push((v, c.primal));
                }
                let first = objectives.iter().find(|o| o.0 == v).unwrap().1;
                assert!(
                    objectives.iter().filter(|o| o.0 == v).all(|o| close(o.1, first, 2e-4)),
                    "{loss:?} v={v}"
                );
                let alternating = TrainSpec {
                    loss: Some(loss),
                    tol: if v == 1.0 { 1e-3 } else { 1e-4 },
                    max_iter: 2000,
                    ..spec(gmkl(v, Solver::Alternating))
                };
                let other = fit(&x, &y, &alternating);
                assert_eq!(
                    other.machines[0].certificate.status,
                    Status::Optimal,
                    "{loss:?} v={v} alternating"
                );
                assert!(
                    close(primal(&other), first, 2e-3),
                    "{loss:?} v={v}: {} {first}",
                    primal(&other)
                );
                // Alternation never goes up (but for the inner gap, a tenth of the outer one).
                for pair in other.machines[0].trace.windows(2) {
                    assert!(pair[1].objective <= pair[0].objective * (1.0 + 1e-12));
                }
            }
        }
    }
}

#[test]
fn general_p_is_certified_by_both_roads() {
    let (x, y) = synthetic::toy1(50, 8);
    for p in [1.0, 1.2, 1.5, 3.0, 6.0] {
        for v in [0.0, 0.4] {
            let road = |solver, tol| TrainSpec {
                tol,
                max_iter: 3000,
                ..spec(MethodSpec::Gmkl(Gmkl { v, p, solver }))
            };
            let level = fit(&x, &y, &road(Solver::Level, 1e-5));
            let other = fit(&x, &y, &road(Solver::Alternating, 1e-3));
            assert_eq!(level.status(), Status::Optimal, "p={p} v={v}");
            assert!(close(primal(&level), primal(&other), 1.1e-3), "p={p} v={v}");
        }
    }
}

#[test]
fn without_an_intercept_every_loss_road_and_storage_is_certified() {
    for (x, y, losses) in both_tasks() {
        for loss in losses {
            for v in [0.0, 0.5, 1.0] {
                let base = TrainSpec {
                    loss: Some(loss),
                    fit_intercept: false,
                    ..spec(gmkl(v, Solver::Level))
                };
                let mut objectives = Vec::new();
                for storage in [Storage::Dense, Storage::LowRank] {
                    let model = fit(&x, &y, &TrainSpec { storage, tol: 1e-8, ..base.clone() });
                    let m = &model.machines[0];
                    assert!(
                        m.certificate.gap <= 1e-8 && m.intercept == 0.0,
                        "{loss:?} v={v}: {:?}",
                        m.certificate
                    );
                    objectives.push(m.certificate.primal);
                }
                assert!(
                    close(objectives[0], objectives[1], 1e-7),
                    "{loss:?} v={v}: {objectives:?}"
                );
                let method = gmkl(v, Solver::Alternating);
                let other = fit(&x, &y, &TrainSpec { method, tol: 1e-3, max_iter: 2000, ..base });
                assert_eq!(other.status(), Status::Optimal, "{loss:?} v={v} alternating");
                assert!(close(primal(&other), objectives[0], 2e-3), "{loss:?} v={v} alternating");
            }
        }
    }
}

/// b is a constant kernel B of boundless weight: with K + B and no intercept the optimum grows by
/// b²/(2B) at most.
#[test]
fn an_intercept_is_a_large_constant_kernel() {
    let large = 1e4;
    for (x, y, losses) in both_tasks() {
        let specs = language::parse("rbf(1) on all").unwrap().resolve(&x).unwrap();
        let k = mercer::gram::gram_block(&x, None, &specs, Normalize::None).unwrap().remove(0);
        let shifted: Vec<f64> = k.data().iter().map(|v| v + large).collect();
        for loss in losses {
            let train = |data: &[f64], fit_intercept| {
                let stack = Stack { rows: 60, cols: 60, terms: 1, data };
                let normalize = Normalize::None;
                let base = TrainSpec {
                    loss: Some(loss),
                    fit_intercept,
                    normalize,
                    ..spec(MethodSpec::Uniform {})
                };
                let spec = TrainSpec { tol: 1e-9, storage: Storage::Dense, ..base };
                mercer::train_precomputed(stack, &y, None, &spec, &mut Silent).unwrap()
            };
            let (with, without) = (train(k.data(), true), train(&shifted, false));
            let growth = (primal(&without) - primal(&with)) / primal(&with);
            let most = with.machines[0].intercept.powi(2) / (2.0 * large * primal(&with));
            assert!(growth >= -2e-9 && growth <= most + 2e-9, "{loss:?}: {growth:e} of {most:e}");
        }
    }
}

#[test]
fn logistic_models_know_probabilities() {
    let (x, y) = synthetic::toy1(60, 16);
    let logistic = |scheme| TrainSpec {
        loss: Some(LossName::Logistic),
        multi_class: scheme,
        ..spec(gmkl(0.5, Solver::Level))
    };
    let two = fit(&x, &y, &logistic(Scheme::OneVsRest));
    let decision = two.decision(&x).unwrap();
    let p = two.probabilities(&decision).unwrap();
    for i in 0..60 {
        let second = 1.0 / (1.0 + (-decision[(i, 0)]).exp());
        assert!((p[(i, 1)] - second).abs() < 1e-14 && (p[(i, 0)] - (1.0 - second)).abs() < 1e-14);
    }
    // The bias makes the mean probability of a class its frequency, to the accuracy of the fit.
    let Target::Classes { labels, .. } = &y else { panic!() };
    let frequency = labels.iter().sum::<usize>() as f64 / 60.0;
    assert!((p.column(1).iter().sum::<f64>() / 60.0 - frequency).abs() < 1e-9);

    let three =
        Target::classes(&(0..60).map(|i| ["red", "green", "blue"][i % 3]).collect::<Vec<_>>());
    let given = Matrix::new(3, 3, vec![0.2, -1.0, 3.0, -900.0, -901.0, -902.0, 800.0, 0.0, -800.0])
        .unwrap();
    let rest = fit(&x, &three, &logistic(Scheme::OneVsRest)).probabilities(&given).unwrap();
    let sigmoid = |d: f64| 1.0 / (1.0 + (-d).exp());
    let total: f64 = given.row(0).iter().map(|d| sigmoid(*d)).sum();
    // Pairs that agree with scores s are exactly their softmax.
    let scores = [0.3, -1.2, 2.0];
    let pairs =
        Scheme::pairs(3).into_iter().map(|(low, high)| scores[high] - scores[low]).collect();
    let by_pairs = fit(&x, &three, &logistic(Scheme::OneVsOne));
    let one = by_pairs.probabilities(&Matrix::new(1, 3, pairs).unwrap()).unwrap();
    let softmax: f64 = scores.iter().map(|s| s.exp()).sum();
    for c in 0..3 {
        assert!((rest[(0, c)] - sigmoid(given[(0, c)]) / total).abs() < 1e-14);
        assert!((one[(0, c)] - scores[c].exp() / softmax).abs() < 1e-14);
    }
    for p in [&rest, &by_pairs.probabilities(&given).unwrap()] {
        assert!((0..3).all(|i| (p.row(i).iter().sum::<f64>() - 1.0).abs() < 1e-12), "{p:?}");
    }
    assert!(fit(&x, &y, &spec(gmkl(0.5, Solver::Level))).probabilities(&decision).is_none());
}

#[test]
fn low_rank_and_dense_agree_and_use_less_room() {
    for (x, y, losses) in both_tasks() {
        for loss in losses {
            let with = |storage| TrainSpec {
                loss: Some(loss),
                storage,
                tol: 1e-8,
                ..spec(gmkl(0.5, Solver::Level))
            };
            let (dense, low) =
                (fit(&x, &y, &with(Storage::Dense)), fit(&x, &y, &with(Storage::LowRank)));
            assert!(close(primal(&dense), primal(&low), 1e-6), "{loss:?}");
            let (a, b) = (dense.decision(&x).unwrap(), low.decision(&x).unwrap());
            assert!(a.data().iter().zip(b.data()).all(|(a, b)| (a - b).abs() < 1e-3), "{loss:?}");
        }
    }
}

#[test]
fn one_kernel_is_a_plain_machine_whatever_the_set() {
    let (x, y) = synthetic::toy1(60, 4);
    let with =
        |method| TrainSpec { method, kernels: "rbf(1)".into(), tol: 1e-9, ..TrainSpec::default() };
    let plain = fit(&x, &y, &with(MethodSpec::Uniform {}));
    for v in [0.0, 0.5, 1.0] {
        let model = fit(&x, &y, &with(gmkl(v, Solver::Level)));
        assert!(close(primal(&plain), primal(&model), 1e-8));
        assert!(close(model.machines[0].weights[0], 1.0, 1e-12));
    }
}

#[test]
fn duplicated_kernels_share_weight_below_v_1() {
    let (x, y) = synthetic::toy1(60, 5);
    // The same column twice, under two names.
    let features = x.features().select_cols(&[0, 0, 1, 2]);
    let twice = Dataset::new(features, ["a", "copy", "b", "c"].map(String::from).to_vec()).unwrap();
    for v in [0.0, 0.5, 0.9] {
        let kernels = "rbf(0.5), linear on each".to_string();
        let model =
            fit(&twice, &y, &TrainSpec { kernels, tol: 1e-9, ..spec(gmkl(v, Solver::Level)) });
        let w = &model.machines[0].weights;
        assert!((w[0] - w[2]).abs() < 1e-5 && (w[1] - w[3]).abs() < 1e-5, "v={v}: {w:?}");
        assert!(w[0] > 0.0);
    }
}

#[test]
fn fewer_kernels_are_active_as_v_grows_and_zeros_are_exact() {
    let (x, y) = synthetic::toy1(100, 6);
    let count = |v| {
        let model = fit(
            &x,
            &y,
            &TrainSpec { kernels: "paper".into(), tol: 1e-5, ..spec(gmkl(v, Solver::Level)) },
        );
        model.machines[0].weights.iter().filter(|w| **w != 0.0).count()
    };
    let counts: Vec<usize> = [0.0, 0.2, 0.5, 0.8, 1.0].map(count).to_vec();
    assert_eq!(counts[0], 273);
    assert!(counts.windows(2).all(|w| w[1] <= w[0]) && counts[4] < 40, "{counts:?}");
}

#[test]
fn a_working_set_of_kernels_gives_the_same_certified_answer() {
    let (x, y) = synthetic::toy1(50, 21);
    for v in [0.5, 1.0] {
        let with = |working_set| TrainSpec {
            kernels: "rbf(2^-10..2^10), laplace(2^-10..2^10), poly(1..6) on all, each".into(),
            normalize: Normalize::Trace,
            c: 100.0,
            working_set,
            tol: 1e-4,
            ..spec(gmkl(v, Solver::Level))
        };
        let (few, all) = (fit(&x, &y, &with(true)), fit(&x, &y, &with(false)));
        assert!(few.machines[0].weights.len() >= 1000, "large enough to be worth it");
        assert_eq!((few.status(), all.status()), (Status::Optimal, Status::Optimal), "v={v}");
        // Each lies above the other's certified lower bound.
        let (a, b) = (few.machines[0].certificate, all.machines[0].certificate);
        assert!(
            a.dual <= b.primal && b.dual <= a.primal && close(a.primal, b.primal, 2e-4),
            "v={v}: {a:?} {b:?}"
        );
    }
}

#[test]
fn pairs_and_shared_weights_of_several_classes() {
    let (x, _) = synthetic::toy1(90, 22);
    let texts: Vec<&str> = (0..90)
        .map(|i| {
            let r = x.features().row(i);
            if r[0] > 0.66 {
                "high"
            } else if r[0] > 0.33 {
                "middle"
            } else if r[1] > 0.5 {
                "low right"
            } else {
                "low left"
            }
        })
        .collect();
    let y = Target::classes(&texts);
    let Target::Classes { labels: truth, .. } = &y else { panic!() };
    for multi_class in [Scheme::OneVsRest, Scheme::OneVsOne] {
        for shared_weights in [false, true] {
            let with = |c| TrainSpec {
                multi_class,
                shared_weights,
                c,
                tol: 1e-4,
                ..spec(gmkl(0.5, Solver::Level))
            };
            let model = fit(&x, &y, &with(20.0));
            let name = format!("{multi_class:?} shared {shared_weights}");
            assert_eq!(model.machines.len(), if multi_class == Scheme::OneVsRest { 4 } else { 6 });
            assert_eq!(model.machine_names().len(), model.machines.len());
            assert!(model.status() == Status::Optimal && model.certificate().gap <= 1e-4, "{name}");
            assert_eq!(shared_weights, model.shared.is_some());
            let same = model.machines.windows(2).all(|m| m[0].weights == m[1].weights);
            assert_eq!(same, shared_weights, "{name}");
            let Target::Classes { labels, .. } = model.predict(&x).unwrap() else { panic!() };
            let right = labels.iter().zip(truth).filter(|(a, b)| a == b).count();
            assert!(right > 80, "{name}: {right} of 90 training rows");
            assert_eq!(model.class_scores(&model.decision(&x).unwrap()).cols(), 4);
            let back = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
            assert_eq!(back, model);
            if shared_weights {
                // One weight vector for all cannot beat a weight vector for each.
                let own = fit(&x, &y, &TrainSpec { shared_weights: false, ..with(20.0) });
                assert!(model.certificate().primal >= own.certificate().dual, "{name}");
            }
        }
    }
}

#[test]
fn kernels_in_a_group_enter_together_and_penalties_are_scales() {
    let (x, y) = synthetic::toy1(60, 24);
    let base = TrainSpec {
        kernels: "rbf(0.5|1), poly(2) on each".into(),
        tol: 1e-7,
        ..spec(gmkl(0.8, Solver::Level))
    };
    let grouped = fit(&x, &y, &TrainSpec { group_by: GroupBy::Scope, ..base.clone() });
    assert_eq!(grouped.status(), Status::Optimal);
    let w = &grouped.machines[0].weights;
    assert!(w.chunks(3).all(|g| g[0] == g[1] && g[1] == g[2]) && w.contains(&0.0), "{w:?}");
    let plain = fit(&x, &y, &base);
    let penalties = |eta: f64| Some((0..60).map(|t| if t < 3 { eta } else { 1.0 }).collect());
    let same = fit(&x, &y, &TrainSpec { penalties: penalties(1.0), ..base.clone() });
    assert!(close(primal(&plain), primal(&same), 1e-6));
    // The first feature's kernels matter here; made dear, they lose weight and the objective rises.
    let dear = fit(&x, &y, &TrainSpec { penalties: penalties(50.0), ..base.clone() });
    let first = |m: &Model| m.machines[0].weights[..3].iter().sum::<f64>();
    assert!(first(&dear) < 0.2 * first(&plain) && primal(&dear) > primal(&plain));
    // Doubling every penalty halves all weights: the same as kernels of half the size, i.e. half
    // the price and half the objective.
    let all =
        fit(&x, &y, &TrainSpec { penalties: Some(vec![2.0; 60]), c: 2.0 * base.c, ..base.clone() });
    assert!(close(primal(&all), 2.0 * primal(&plain), 1e-6));
    let (a, b) = (all.decision(&x).unwrap(), plain.decision(&x).unwrap());
    assert!(a.data().iter().zip(b.data()).all(|(a, b)| (a - b).abs() < 1e-2));
    let short = TrainSpec { penalties: Some(vec![1.0; 2]), ..base };
    assert!(
        mercer::train(&x, &y, None, &short, &mut Silent)
            .unwrap_err()
            .to_string()
            .contains("60 numbers")
    );
}

#[test]
fn a_path_reaches_the_objectives_of_cold_fits() {
    let (x, y) = synthetic::toy1(70, 23);
    for method in [
        gmkl(0.0, Solver::Alternating),
        gmkl(0.5, Solver::Level),
        gmkl(1.0, Solver::Level),
        MethodSpec::Uniform {},
    ] {
        let specs: Vec<TrainSpec> =
            (0..6).map(|k| TrainSpec { c: 0.3 * 3f64.powi(k), ..spec(method.clone()) }).collect();
        let prepared = Prepared::from_table(&x, &y, None, &specs[0]).unwrap();
        let models = prepared.path(&specs, &mut Silent).unwrap();
        for (warm, spec) in models.iter().zip(&specs) {
            let cold = prepared.fit(spec, &mut Silent).unwrap().machines[0].certificate;
            let warm = warm.machines[0].certificate;
            assert!(
                warm.status == Status::Optimal
                    && warm.dual <= cold.primal
                    && cold.dual <= warm.primal,
                "{method:?}"
            );
        }
    }
    // v and p may change along the way: bounds hold for every set.
    let specs: Vec<TrainSpec> =
        (0..5).map(|k| spec(gmkl(0.25 * f64::from(k), Solver::Level))).collect();
    let prepared = Prepared::from_table(&x, &y, None, &specs[0]).unwrap();
    for (warm, spec) in prepared.path(&specs, &mut Silent).unwrap().iter().zip(&specs) {
        let cold = prepared.fit(spec, &mut Silent).unwrap();
        assert!(close(primal(warm), primal(&cold), 1.1e-3));
    }
    let other = TrainSpec { standardize: false, ..specs[0].clone() };
    assert!(prepared.path(&[specs[0].clone(), other], &mut Silent).is_err());
}

#[test]
fn kernels_over_c_at_c_times_the_price_give_the_same_answer() {
    // Unit trace divides by n what unit mean diagonal does not: (K/c, c·C) is the same problem
    // times c.
    let (x, y) = synthetic::toy1(60, 7);
    let kernels = "rbf(0.5|1|2) on all, each".to_string();
    let with = |normalize, c| TrainSpec {
        normalize,
        c,
        kernels: kernels.clone(),
        tol: 1e-8,
        ..spec(gmkl(0.5, Solver::Level))
    };
    let raw = fit(&x, &y, &with(Normalize::None, 2.0));
    let trace = fit(&x, &y, &with(Normalize::Trace, 120.0));
    assert!(close(60.0 * primal(&raw), primal(&trace), 1e-7));
    let (a, b) = (raw.decision(&x).unwrap(), trace.decision(&x).unwrap());
    assert!(a.data().iter().zip(b.data()).all(|(a, b)| (a - b).abs() < 1e-4));
}

#[test]
fn integer_weights_are_repetitions_and_zero_weights_are_absences() {
    let (x, y) = synthetic::toy1(40, 9);
    let base = TrainSpec {
        standardize: false,
        normalize: Normalize::None,
        tol: 1e-9,
        kernels: "rbf(1), linear on all".into(),
        ..spec(gmkl(0.5, Solver::Level))
    };
    let weights: Vec<f64> = (0..40).map(|i| f64::from(i % 3)).collect();
    let repeated: Vec<usize> = (0..40).flat_map(|i| vec![i; i % 3]).collect();
    let weighted = mercer::train(&x, &y, Some(&weights), &base, &mut Silent).unwrap();
    let copies = fit(&x.select(&repeated), &y.select(&repeated), &base);
    assert!(close(primal(&weighted), primal(&copies), 1e-8));
    let (a, b) = (weighted.decision(&x).unwrap(), copies.decision(&x).unwrap());
    assert!(a.data().iter().zip(b.data()).all(|(a, b)| (a - b).abs() < 1e-3));
    assert!(weighted.machines[0].support.iter().all(|&i| weights[i] > 0.0));
    // The same for ready-made matrices, where whole rows and columns must go.
    let specs = language::parse(&base.kernels).unwrap().resolve(&x).unwrap();
    let blocks = mercer::gram::gram_block(&x, None, &specs, Normalize::None).unwrap();
    let data = mercer_testkit::oracle::stack(&blocks);
    let stack = Stack { rows: 40, cols: 40, terms: 2, data: &data };
    let ready = mercer::train_precomputed(stack, &y, Some(&weights), &base, &mut Silent).unwrap();
    assert!(close(primal(&ready), primal(&copies), 1e-8));
    let c = ready.decision_precomputed(stack).unwrap();
    assert!(a.data().iter().zip(c.data()).all(|(a, b)| (a - b).abs() < 1e-3));
}

#[test]
fn class_weights_multiply_the_price() {
    let (x, y) = synthetic::toy1(60, 10);
    let Target::Classes { names, labels } = &y else { panic!() };
    let given = ClassWeight::Given(vec![(names[1].clone(), 3.0)]);
    let by_class =
        fit(&x, &y, &TrainSpec { class_weight: given, ..spec(gmkl(0.5, Solver::Level)) });
    let weights: Vec<f64> = labels.iter().map(|&l| if l == 1 { 3.0 } else { 1.0 }).collect();
    let by_row =
        mercer::train(&x, &y, Some(&weights), &spec(gmkl(0.5, Solver::Level)), &mut Silent)
            .unwrap();
    assert_eq!(by_class.machines, by_row_without_time(&by_row, &by_class));
}

/// Traces carry seconds, which differ between runs.
fn by_row_without_time(model: &Model, like: &Model) -> Vec<mercer::model::FittedMachine> {
    let mut machines = model.machines.clone();
    for (m, l) in machines.iter_mut().zip(&like.machines) {
        m.trace.iter_mut().zip(&l.trace).for_each(|(a, b)| a.seconds = b.seconds);
    }
    machines
}

#[test]
fn results_are_the_same_bits_for_any_number_of_threads() {
    for (x, y, losses) in both_tasks() {
        for (loss, storage) in
            losses.iter().flat_map(|l| [Storage::Auto, Storage::Dense].map(|s| (*l, s)))
        {
            let spec = TrainSpec { loss: Some(loss), storage, ..spec(gmkl(0.5, Solver::Level)) };
            let one = threads::install(Some(1), || fit(&x, &y, &spec));
            let two = threads::install(Some(2), || fit(&x, &y, &spec));
            let five = threads::install(Some(5), || fit(&x, &y, &spec));
            for other in [&two, &five] {
                assert_eq!(one.machines, by_row_without_time(other, &one));
                assert_eq!(one.predictor, other.predictor);
            }
        }
    }
}

#[test]
fn a_truncated_model_predicts_with_the_factors_own_extension() {
    let (x, y) = synthetic::sinc(80, 0.1, 2).unwrap();
    for normalize in [
        Normalize::Trace,
        Normalize::Multiplicative,
        Normalize::Spherical,
        Normalize::Center,
        Normalize::None,
    ] {
        let base = spec(gmkl(0.5, Solver::Level));
        let base = TrainSpec { normalize, storage: Storage::LowRank, scale_target: false, ..base };
        let prepared = Prepared::from_table(&x, &y, None, &base).unwrap();
        let model = prepared.fit(&base, &mut Silent).unwrap();
        // On training rows the extension must give exactly what the machine saw: the bias is best
        // for those values.
        let f = model.decision(&x).unwrap();
        let Target::Values(values) = &y else { panic!() };
        let epsilon = model.request.epsilon.unwrap();
        let loss: f64 = f
            .data()
            .iter()
            .zip(values)
            .map(|(f, y)| 5.0 * ((f - y).abs() - epsilon).max(0.0))
            .sum();
        let m = &model.machines[0];
        let mut norm = 0.0;
        for (i, a) in m.support.iter().zip(&m.dual_coef) {
            norm += 0.5 * a * (f[(*i, 0)] - m.intercept);
        }
        assert!(
            close(loss + norm, m.certificate.primal, 1e-6),
            "{normalize:?}: {} {}",
            loss + norm,
            m.certificate.primal
        );
    }
}

#[test]
fn bounds_of_truncated_terms_bracket_the_true_optimum() {
    let (x, y) = synthetic::toy1(60, 15);
    let specs = language::parse("rbf(0.3|1) on all, each").unwrap().resolve(&x).unwrap();
    let build = |storage, rank_tolerance| {
        let budget = Budget { bytes: 1 << 30 };
        let options = BuildOptions {
            normalize: Normalize::Multiplicative,
            storage,
            rank_tolerance,
            budget,
            ..BuildOptions::default()
        };
        GramSet::from_table(x.features(), &specs, &options).unwrap()
    };
    let Target::Classes { labels, .. } = &y else { panic!() };
    let signs: Vec<f64> = labels.iter().map(|&l| 2.0 * l as f64 - 1.0).collect();
    let cost = vec![2.0; 60];
    let fit = |grams: &GramSet, tol| {
        let fitting = Fitting::Hinge(Hinge);
        let problem = Problem {
            grams,
            parts: vec![Part {
                task: Task { y: &signs, cost: &cost, loss: fitting.loss(), intercept: true },
                rows: None,
            }],
            machine: &*fitting.machine(),
            budget: Budget { bytes: 1 << 30 },
            scratch: Scratch::default(),
            tol,
            max_iter: 40,
            working_set: false,
            screening: false,
        };
        let set = ElasticNet::new(0.5, 2.0).unwrap();
        level(&problem, &set, &mut Memory::default(), &mut Silent).unwrap().certificate
    };
    let truth = fit(&build(Storage::Dense, 0.0), 1e-9).primal;
    for tolerance in [1e-1, 1e-2, 1e-4, 1e-6] {
        let grams = build(Storage::LowRank, tolerance);
        let left: f64 = (0..specs.len()).map(|t| grams.residual(t)).sum();
        let c = fit(&grams, 1e-6);
        assert!(
            left > 0.0 && c.dual <= truth && c.primal >= truth,
            "{tolerance:e}: {c:?} around {truth}"
        );
        // What truncation hides must show in the gap: no certificate where the residual is large.
        assert_eq!(c.status == Status::Optimal, c.gap <= 1e-6, "{tolerance:e}: {c:?}");
        assert!(tolerance < 1e-3 || c.gap > 1e-3, "{tolerance:e}: {c:?}");
    }
}

#[test]
fn models_survive_their_file_and_refuse_damage() {
    let (x, y) = synthetic::toy1(50, 11);
    let three =
        Target::classes(&(0..50).map(|i| ["red", "green", "blue"][i % 3]).collect::<Vec<_>>());
    for (target, normalize) in
        [(&y, Normalize::Multiplicative), (&three, Normalize::Spherical), (&y, Normalize::Center)]
    {
        let model = fit(&x, target, &TrainSpec { normalize, ..spec(gmkl(0.5, Solver::Level)) });
        let bytes = model.to_bytes().unwrap();
        let back = Model::from_bytes(&bytes).unwrap();
        assert_eq!(model, back);
        assert_eq!(model.decision(&x).unwrap(), back.decision(&x).unwrap());
        for cut in [0, 7, 8, 100, bytes.len() / 2, bytes.len() - 1] {
            assert!(Model::from_bytes(&bytes[..cut]).is_err(), "cut at {cut}");
        }
        for at in (0..bytes.len()).step_by(bytes.len() / 997 + 1) {
            let mut altered = bytes.clone();
            altered[at] ^= 0x10;
            assert!(Model::from_bytes(&altered).is_err(), "byte {at} altered");
        }
        let mut longer = bytes.clone();
        longer.extend_from_slice(b"more");
        assert!(Model::from_bytes(&longer).is_err());
    }
}

#[test]
fn bad_input_is_named() {
    let (x, y) = synthetic::toy1(30, 13);
    let message = |data: &Dataset, target: &Target, spec: &TrainSpec| {
        mercer::train(data, target, None, spec, &mut Silent).unwrap_err().to_string()
    };
    let base = spec(gmkl(0.5, Solver::Level));
    let one = Target::classes(&["a"; 30]);
    assert!(message(&x, &one, &base).contains("only one class, `a`"));
    assert!(message(&x, &y.select(&[0, 1]), &base).contains("30 values"));
    for (bad, name) in [
        (TrainSpec { c: -1.0, ..base.clone() }, "`C`"),
        (TrainSpec { c: f64::NAN, ..base.clone() }, "`C`"),
        (TrainSpec { tol: 0.0, ..base.clone() }, "`tol`"),
        (TrainSpec { max_iter: 0, ..base.clone() }, "`max_iter`"),
        (TrainSpec { loss: Some(LossName::EpsilonInsensitive), ..base.clone() }, "`loss`"),
        (TrainSpec { method: gmkl(1.5, Solver::Level), ..base.clone() }, "`v`"),
        (TrainSpec { memory: Some(1000), ..base.clone() }, "budget is 1000 B"),
    ] {
        let got = message(&x, &y, &bad);
        assert!(got.contains(name), "{got}");
    }
    let values = Target::Values((0..30).map(f64::from).collect());
    for (target, loss, allowed) in [
        (&y, LossName::EpsilonInsensitive, "hinge, squared_hinge, logistic or squared for classes"),
        (&values, LossName::Logistic, "epsilon_insensitive, squared or huber for values"),
        (&values, LossName::SquaredHinge, "epsilon_insensitive, squared or huber for values"),
    ] {
        let got = message(&x, target, &TrainSpec { loss: Some(loss), ..base.clone() });
        assert!(got.contains(allowed) && got.contains(loss.as_str()), "{got}");
    }
    let constant =
        Dataset::new(Matrix::new(30, 1, vec![2.0; 30]).unwrap(), vec!["flat".into()]).unwrap();
    assert!(message(&constant, &y, &base).contains("`flat`"));
    // A constant column among others only costs its kernels.
    let mut features = Matrix::zeros(30, 2);
    (0..30).for_each(|i| features[(i, 0)] = x.features()[(i, 0)]);
    let partly = Dataset::new(features, vec!["a".into(), "flat".into()]).unwrap();
    let model = fit(&partly, &y, &TrainSpec { kernels: "rbf(1) on each".into(), ..base.clone() });
    assert!(model.warnings[0].contains("`flat`") && model.kernel_names() == ["rbf(1) on a"]);
    let asymmetric = [1.0, 0.5, 0.2, 1.0];
    let indefinite = [0.0, 1.0, 1.0, 0.0];
    let negative = [-1.0, 0.0, 0.0, 1.0];
    for (data, word) in
        [(&asymmetric, "not symmetric"), (&indefinite, "semidefinite"), (&negative, "semidefinite")]
    {
        for normalize in [Normalize::None, Normalize::Multiplicative, Normalize::Trace] {
            let stack = Stack { rows: 2, cols: 2, terms: 1, data };
            let labels = Target::classes(&["a", "b"]);
            let spec = TrainSpec { normalize, ..base.clone() };
            let got = mercer::train_precomputed(stack, &labels, None, &spec, &mut Silent)
                .unwrap_err()
                .to_string();
            assert!(got.contains(word), "{normalize:?}: {got}");
        }
    }
}

#[test]
fn standardisation_is_part_of_the_model() {
    let (x, y) = synthetic::toy1(50, 14);
    let moved: Vec<f64> = x.features().data().iter().map(|v| 1e3 * v - 77.0).collect();
    let moved = Dataset::new(Matrix::new(50, 20, moved).unwrap(), x.columns().to_vec()).unwrap();
    let model = fit(&x, &y, &spec(gmkl(0.5, Solver::Level)));
    let other = fit(&moved, &y, &spec(gmkl(0.5, Solver::Level)));
    assert!(close(primal(&model), primal(&other), 2e-3));
    let same = Standardizer::fit(x.features()).apply(x.features()).unwrap();
    let by_hand = Dataset::new(same, x.columns().to_vec()).unwrap();
    let raw =
        fit(&by_hand, &y, &TrainSpec { standardize: false, ..spec(gmkl(0.5, Solver::Level)) });
    assert_eq!(raw.decision(&by_hand).unwrap(), model.decision(&x).unwrap());
}
