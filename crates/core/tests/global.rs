//! The global family: ℓp-norm MKL by all its roads, and the best single kernel.

use std::ops::ControlFlow;

use mercer::{
    Model, TrainSpec,
    data::{Dataset, Rng, Target, synthetic},
    gram::{Stack, gram_block},
    kernels::{Normalize, language},
    linalg::Matrix,
    model::Input,
    prepare::{Prepared, Source},
    request::Scheme,
    request::{
        Choices, Gmkl, LossName, Lp, MethodSpec, Single, Solver, Storage, TrainSpec as Spec,
    },
    trace::{IterRecord, Observer, Silent, Status},
    train::{choose, grid_search},
};
use mercer_testkit::oracle::{cases, stack};

const BANK: &str = "rbf(0.5|1|2), poly(1..2) on all; rbf(1), linear on each";

fn lp(p: f64, solver: Solver) -> MethodSpec {
    MethodSpec::Lp(Lp { p, solver })
}

fn spec(method: MethodSpec) -> TrainSpec {
    TrainSpec { method, kernels: BANK.into(), c: 5.0, max_iter: 3000, ..TrainSpec::default() }
}

fn fit(data: &Dataset, target: &Target, spec: &TrainSpec) -> Model {
    mercer::train(data, target, None, spec, &mut Silent).unwrap()
}

fn close(a: f64, b: f64, relative: f64) -> bool {
    (a - b).abs() <= relative * a.abs().max(b.abs())
}

fn near(a: &[f64], b: &[f64], accuracy: f64) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() <= accuracy)
}

fn tasks() -> Vec<(Dataset, Target, LossName)> {
    let (x, y) = synthetic::toy1(60, 3);
    let (u, v) = synthetic::sinc(60, 0.1, 3).unwrap();
    let classes = [LossName::Hinge, LossName::SquaredHinge, LossName::Logistic, LossName::Squared];
    let values = [LossName::EpsilonInsensitive, LossName::Squared, LossName::Huber];
    let with = |x: &Dataset, y: &Target, loss| (x.clone(), y.clone(), loss);
    classes
        .iter()
        .map(|l| with(&x, &y, *l))
        .chain(values.iter().map(|l| with(&u, &v, *l)))
        .collect()
}

/// Bounds bracket the optimum in every iteration and only close in.
struct Bracket {
    optimum: f64,
    last: (f64, f64),
    name: String,
}

impl Observer for Bracket {
    fn on_iteration(&mut self, r: &IterRecord) -> ControlFlow<()> {
        // The oracle knows its optimum to 1e-7.
        let slack = 2e-7 * self.optimum;
        assert!(
            r.dual <= self.optimum + slack && r.objective >= self.optimum - slack,
            "{}: {r:?}",
            self.name
        );
        assert!(r.objective <= self.last.0 && r.dual >= self.last.1, "{}: {r:?}", self.name);
        self.last = (r.objective, r.dual);
        ControlFlow::Continue(())
    }
}

#[test]
fn the_oracles_optimum_by_every_road() {
    for case in cases("lp_mkl") {
        let (p, optimum) = (case.number("input/p"), case.number("expect/objective"));
        let (kernels, new) = (case.matrices("input/K"), case.matrices("input/Kt"));
        let (n, terms, rows) = (kernels[0].rows(), kernels.len(), new[0].rows());
        let (data, block) = (stack(&kernels), stack(&new));
        let y =
            Target::classes(&case.vector("input/y").iter().map(f64::to_string).collect::<Vec<_>>());
        // The oracle's cone program takes p as a fraction with a denominator up to 1024 and rounds
        // this one.
        let p = if p == 1.333 { 1021.0 / 766.0 } else { p };
        let roads = if p == 1.0 {
            vec![Solver::Auto, Solver::Level, Solver::ReducedGradient, Solver::Silp]
        } else {
            vec![Solver::Auto, Solver::Level, Solver::Alternating]
        };
        for solver in roads {
            for storage in [Storage::Dense, Storage::LowRank] {
                for tol in [1e-3, 1e-6, 1e-9] {
                    let spec = TrainSpec {
                        normalize: Normalize::None,
                        c: case.number("input/C"),
                        tol,
                        storage,
                        ..spec(lp(p, solver))
                    };
                    let name = format!("{} {solver:?} {storage:?} tol {tol:e}", case.name);
                    let (last, name_of) = ((f64::INFINITY, f64::NEG_INFINITY), name.clone());
                    let mut watch = Bracket { optimum, last, name: name_of };
                    let ready = Stack { rows: n, cols: n, terms, data: &data };
                    let model =
                        mercer::train_precomputed(ready, &y, None, &spec, &mut watch).unwrap();
                    let got = &model.machines[0];
                    assert!(got.certificate.gap <= tol, "{name}: {:?}", got.certificate);
                    case.check_objective(got.certificate.primal, tol, &name);
                    if tol > 1e-9 {
                        continue;
                    }
                    if case.unique("theta") {
                        assert!(
                            near(&got.weights, &case.vector("expect/theta"), 1e-3),
                            "{name}: {:?}",
                            got.weights
                        );
                    }
                    let f = model
                        .decision_precomputed(Stack { rows, cols: n, terms, data: &block })
                        .unwrap();
                    assert!(
                        !case.unique("b") || near(f.data(), &case.vector("expect/f_test"), 1e-3),
                        "{name}"
                    );
                }
            }
        }
    }
}

#[test]
fn three_roads_to_l1_meet_and_their_zeros_are_exact() {
    for (x, y, loss) in tasks() {
        let with = |method| TrainSpec { loss: Some(loss), tol: 4e-6, ..spec(method) };
        let elastic =
            fit(&x, &y, &with(MethodSpec::Gmkl(Gmkl { v: 1.0, p: 2.0, solver: Solver::Level })));
        for solver in [Solver::Auto, Solver::Level, Solver::ReducedGradient, Solver::Silp] {
            let model = fit(&x, &y, &with(lp(1.0, solver)));
            let (got, want) = (model.certificate(), elastic.certificate());
            assert_eq!(got.status, Status::Optimal, "{loss:?} {solver:?}: {got:?}");
            assert!(
                close(got.primal, want.primal, 1e-5),
                "{loss:?} {solver:?}: {} {}",
                got.primal,
                want.primal
            );
            let (a, b) = (model.decision(&x).unwrap(), elastic.decision(&x).unwrap());
            assert!(near(a.data(), b.data(), 0.05), "{loss:?} {solver:?}");
            let weights = &model.machines[0].weights;
            assert!(close(weights.iter().sum(), 1.0, 1e-12), "{loss:?} {solver:?}");
            assert!(
                2 * weights.iter().filter(|w| **w != 0.0).count() < weights.len(),
                "{loss:?} {solver:?}"
            );
        }
    }
}

#[test]
fn l2_is_the_elastic_net_without_its_l1_part() {
    for (x, y, loss) in tasks() {
        let with = |method| TrainSpec { loss: Some(loss), tol: 1e-8, ..spec(method) };
        let elastic =
            fit(&x, &y, &with(MethodSpec::Gmkl(Gmkl { v: 0.0, p: 2.0, solver: Solver::Level })));
        for solver in [Solver::Level, Solver::Alternating] {
            let model = fit(&x, &y, &with(lp(2.0, solver)));
            assert!(
                close(model.certificate().primal, elastic.certificate().primal, 2e-8),
                "{loss:?} {solver:?}"
            );
            assert!(
                near(&model.machines[0].weights, &elastic.machines[0].weights, 1e-3),
                "{loss:?} {solver:?}"
            );
        }
    }
}

#[test]
fn p_infinite_is_uniform_at_m_times_the_price() {
    for (x, y, loss) in tasks() {
        let with = |method, c| TrainSpec { loss: Some(loss), tol: 1e-9, c, ..spec(method) };
        let sum = fit(&x, &y, &with(lp(f64::INFINITY, Solver::Auto), 2.0));
        let m = sum.machines[0].weights.len() as f64;
        let mean = fit(&x, &y, &with(MethodSpec::Uniform {}, 2.0 * m));
        assert!(
            sum.machines[0].weights.iter().all(|w| *w == 1.0) && sum.certificate().iterations == 1
        );
        assert!(close(m * sum.certificate().primal, mean.certificate().primal, 1e-8), "{loss:?}");
        let (a, b) = (sum.decision(&x).unwrap(), mean.decision(&x).unwrap());
        assert!(near(a.data(), b.data(), 1e-3), "{loss:?}");
        // Model files have no infinity of their own.
        let back = Model::from_bytes(&sum.to_bytes().unwrap()).unwrap();
        assert_eq!(back.request.method, lp(f64::INFINITY, Solver::Auto));
    }
}

#[test]
fn every_p_and_loss_is_certified_and_the_objective_never_rises() {
    for (x, y, loss) in tasks() {
        let mut last = f64::INFINITY;
        for p in [1.0, 1.05, 1.2, 4.0 / 3.0, 2.0, 4.0, 16.0, 1e3, f64::INFINITY] {
            let mut found = Vec::new();
            for solver in [Solver::Auto, Solver::Level, Solver::Alternating] {
                let tol = if p == 1.0 && solver == Solver::Alternating { 1e-3 } else { 1e-5 };
                let model =
                    fit(&x, &y, &TrainSpec { loss: Some(loss), tol, ..spec(lp(p, solver)) });
                let c = model.certificate();
                assert!(
                    c.status == Status::Optimal && c.gap <= tol && c.dual <= c.primal,
                    "{loss:?} p={p}: {c:?}"
                );
                let trace = &model.machines[0].trace;
                assert!(
                    trace.windows(2).all(|w| w[1].objective <= w[0].objective),
                    "{loss:?} p={p} {solver:?}"
                );
                found.push(c.primal);
            }
            assert!(found.iter().all(|o| close(*o, found[0], 1.1e-3)), "{loss:?} p={p}: {found:?}");
            assert!(close(found[0], found[1], 2e-5), "{loss:?} p={p}: {found:?}");
            // A larger p is a larger set.
            assert!(found[0] <= last * (1.0 + 1e-5), "{loss:?} p={p}");
            last = found[0];
        }
    }
}

#[test]
fn a_path_over_p_ends_where_cold_fits_do() {
    let (x, y, loss) = tasks().remove(0);
    let specs: Vec<TrainSpec> = [1.0, 1.1, 4.0 / 3.0, 2.0, f64::INFINITY, 1.0]
        .map(|p| TrainSpec { loss: Some(loss), tol: 1e-6, ..spec(lp(p, Solver::Auto)) })
        .to_vec();
    let prepared = Prepared::from_table(&x, &y, None, &specs[0]).unwrap();
    for (model, spec) in prepared.path(&specs, &mut Silent).unwrap().iter().zip(&specs) {
        let cold = prepared.fit(spec, &mut Silent).unwrap();
        assert_eq!(model.status(), Status::Optimal, "{:?}", spec.method);
        assert!(
            close(model.certificate().primal, cold.certificate().primal, 2e-6),
            "{:?}",
            spec.method
        );
    }
}

#[test]
fn shared_weights_reach_one_optimum_by_every_road() {
    let (x, _) = synthetic::toy1(60, 21);
    let y = thirds(&x);
    let with = |solver| TrainSpec { shared_weights: true, tol: 1e-5, ..spec(lp(1.0, solver)) };
    let level = fit(&x, &y, &with(Solver::Level)).certificate();
    for solver in [Solver::ReducedGradient, Solver::Silp] {
        let other = fit(&x, &y, &with(solver)).certificate();
        assert!(
            other.status == Status::Optimal && close(other.primal, level.primal, 1e-5),
            "{solver:?}: {other:?}"
        );
    }
}

/// Three classes that depend on the first column alone.
fn thirds(x: &Dataset) -> Target {
    let label = |i: usize| {
        let v = x.features()[(i, 0)];
        ["low", "middle", "high"][usize::from(v > -0.4) + usize::from(v > 0.4)]
    };
    Target::classes(&(0..x.len()).map(label).collect::<Vec<_>>())
}

#[test]
fn parameters_that_fit_no_road_are_named() {
    let (x, y, _) = tasks().remove(0);
    let message =
        |method| mercer::train(&x, &y, None, &spec(method), &mut Silent).unwrap_err().to_string();
    assert!(message(lp(0.5, Solver::Auto)).contains("`p`"));
    for solver in [Solver::ReducedGradient, Solver::Silp] {
        assert!(message(lp(2.0, solver)).contains("`solver`"));
    }
    assert!(message(MethodSpec::Single(Single { folds: 1, seed: 0 })).contains("`folds`"));
    let few = Target::classes(
        &(0..60).map(|i| if i == 0 { "rare" } else { ["a", "b"][i % 2] }).collect::<Vec<_>>(),
    );
    let single = spec(MethodSpec::Single(Single { folds: 5, seed: 0 }));
    assert!(
        mercer::train(&x, &few, None, &single, &mut Silent)
            .unwrap_err()
            .to_string()
            .contains("`rare`")
    );
}

/// Columns of standard normal numbers, the first of which decides.
fn one_informative(n: usize, columns: usize, seed: u64) -> (Dataset, Target, Target) {
    let mut rng = Rng::new(seed);
    let x = Matrix::new(n, columns, (0..n * columns).map(|_| rng.normal()).collect()).unwrap();
    let values: Vec<f64> = (0..n).map(|i| x[(i, 0)] + 0.5 * rng.normal()).collect();
    let classes = Target::classes(
        &values.iter().map(|v| if *v > 0.0 { "up" } else { "down" }).collect::<Vec<_>>(),
    );
    (Dataset::new(x, Vec::new()).unwrap(), classes, Target::Values(values))
}

fn single(kernels: &str) -> TrainSpec {
    let method = MethodSpec::Single(Single { folds: 5, seed: 7 });
    TrainSpec { method, kernels: kernels.into(), ..TrainSpec::default() }
}

fn chosen(model: &Model) -> usize {
    let all: Vec<usize> =
        model.machines.iter().map(|m| m.weights.iter().position(|w| *w == 1.0).unwrap()).collect();
    assert!(
        model.machines.iter().all(|m| m.weights.iter().sum::<f64>() == 1.0)
            && all.iter().all(|c| *c == all[0])
    );
    all[0]
}

#[test]
fn single_prefers_what_predicts_to_what_memorises() {
    // A narrow kernel on any column fits training rows perfectly, and kernels on noise are 18 of
    // 20.
    let (x, classes, values) = one_informative(80, 10, 1);
    for target in [&classes, &values] {
        let model = fit(&x, target, &single("rbf(0.001), linear on each"));
        assert_eq!(model.kernel_names()[chosen(&model)], "linear on x1");
        assert_eq!(model.status(), Status::Optimal);
    }
    let model = fit(&x, &thirds(&x), &single("rbf(0.001), rbf(1) on each"));
    assert_eq!(model.kernel_names()[chosen(&model)], "rbf(1) on x1");
    assert_eq!(model.machines.len(), 3);
}

#[test]
fn single_scores_folds_as_fits_without_them_would() {
    // The twin prepares every kernel by itself on every fold's training rows; kernels differ
    // little, so a leak would show.
    let (x, classes, values) = one_informative(60, 3, 2);
    let bank = "rbf(0.2|0.5|1|2|4), poly(1..3) on all; rbf(0.5|1|2) on each";
    let specs = language::parse(bank).unwrap().resolve(&x).unwrap();
    for (target, scheme) in [
        (&classes, Scheme::OneVsRest),
        (&values, Scheme::OneVsRest),
        (&thirds(&x), Scheme::OneVsRest),
        (&thirds(&x), Scheme::OneVsOne),
    ] {
        for normalize in [Normalize::Multiplicative, Normalize::Center, Normalize::Spherical] {
            let spec = TrainSpec { normalize, multi_class: scheme, tol: 1e-6, ..single(bank) };
            let one = |k: &str| Spec {
                method: MethodSpec::Uniform {},
                kernels: k.into(),
                ..spec.clone()
            };
            let scoped = |name: &str| match name.split_once(" on x") {
                Some((kernel, column)) => format!("{kernel} on cols({column})"),
                None => name.to_string(),
            };
            let twin: Vec<Spec> = specs.iter().map(|k| one(&scoped(&k.name))).collect();
            let search =
                grid_search(Source::Table(&x), target, None, &twin, (5, 7), &mut Silent).unwrap();
            let model = fit(&x, target, &spec);
            let (got, best) = (search.mean(chosen(&model)), search.mean(search.best));
            assert!(
                (got - best).abs() <= 1e-4 * best.abs(),
                "{normalize:?}: {got} {best} {search:?}"
            );
        }
        // Ready-made kernels: the same choice as from the table, whatever scales or centres them.
        for normalize in
            [Normalize::Multiplicative, Normalize::Trace, Normalize::Center, Normalize::None]
        {
            let base = TrainSpec {
                standardize: false,
                normalize,
                multi_class: scheme,
                tol: 1e-6,
                ..single(bank)
            };
            let data = stack(&gram_block(&x, None, &specs, Normalize::None).unwrap());
            let ready = Stack { rows: 60, cols: 60, terms: specs.len(), data: &data };
            let model = mercer::train_precomputed(ready, target, None, &base, &mut Silent).unwrap();
            assert_eq!(chosen(&model), chosen(&fit(&x, target, &base)), "{normalize:?}");
        }
    }
}

#[test]
fn single_respects_weights_and_survives_columns_that_are_constant_in_a_fold() {
    let (x, y, _) = one_informative(60, 4, 3);
    // The second column varies in one row only, so four folds of five see it vary and one does not.
    let mut features = x.features().clone();
    (0..60).for_each(|i| features[(i, 1)] = f64::from(i == 17));
    let x = Dataset::new(features, Vec::new()).unwrap();
    let spec = single("linear, rbf(1) on each");
    let model = fit(&x, &y, &spec);
    assert_eq!(model.kernel_names()[chosen(&model)], "linear on x1");
    // Rows whose class contradicts the first column and agrees with the third carry all the weight.
    let Target::Classes { labels, .. } = &y else { panic!() };
    let weights: Vec<f64> = (0..60)
        .map(|i| if (x.features()[(i, 2)] > 0.0) == (labels[i] == 1) { 1.0 } else { 1e-6 })
        .collect();
    let weighted = mercer::train(&x, &y, Some(&weights), &spec, &mut Silent).unwrap();
    let Input::Table { kernels, .. } = &weighted.input else { panic!() };
    assert_eq!(kernels[chosen(&weighted)].columns, [2]);
}

#[test]
fn kernels_proved_to_be_zero_are_left_out_and_the_answer_is_the_same() {
    let (x, y) = synthetic::toy1(60, 6);
    let mut spared = 0;
    for bank in ["paper", "rbf(2^-10..2^10), laplace(2^-10..2^10), poly(1..6) on all, each"] {
        for loss in [LossName::Squared, LossName::SquaredHinge, LossName::Logistic] {
            for (v, shared_weights) in [(0.5, false), (1.0, true)] {
                let method = MethodSpec::Gmkl(Gmkl { v, p: 2.0, solver: Solver::Auto });
                let target = if shared_weights { thirds(&x) } else { y.clone() };
                let with = |screening, working_set| {
                    let base = TrainSpec {
                        method: method.clone(),
                        kernels: bank.into(),
                        c: 0.05,
                        tol: 1e-6,
                        ..TrainSpec::default()
                    };
                    fit(
                        &x,
                        &target,
                        &TrainSpec {
                            screening,
                            working_set,
                            shared_weights,
                            loss: Some(loss),
                            ..base
                        },
                    )
                };
                for working_set in [false, true] {
                    let (on, off) = (with(true, working_set), with(false, working_set));
                    let told = format!("{bank} {loss:?} v={v}");
                    assert_eq!(
                        (on.status(), off.status()),
                        (Status::Optimal, Status::Optimal),
                        "{told}"
                    );
                    // Each lies above the other's certified lower bound.
                    let (a, b) = (on.certificate(), off.certificate());
                    assert!(
                        a.dual <= b.primal && b.dual <= a.primal && close(a.primal, b.primal, 2e-6),
                        "{told}: {a:?} {b:?}"
                    );
                    spared += usize::from(a.primal != b.primal);
                }
            }
        }
    }
    // Where nothing is left out both runs are the same to the last digit.
    assert!(spared > 6, "{spared}");
}

/// A request with a dozen kernels.
fn small(method: &str) -> TrainSpec {
    let kernels = "rbf(0.5|1|2), poly(1..2) on all; linear on cols(1-6)".into();
    TrainSpec {
        method: MethodSpec::named(method).unwrap(),
        kernels,
        c: 5.0,
        ..TrainSpec::default()
    }
}

#[test]
fn grid_search_prefers_a_price_that_works() {
    let (x, y) = synthetic::toy1(90, 12);
    let source = Source::Table(&x);
    let specs: Vec<TrainSpec> =
        [1e-6, 1.0, 10.0].map(|c| TrainSpec { c, ..small("gmkl") }).to_vec();
    let search = || grid_search(source, &y, None, &specs, (3, 1), &mut Silent).unwrap();
    assert!(search().scores.iter().all(|s| s.len() == 3) && search().best > 0, "{:?}", search());
    assert_eq!(search(), search());
    let both = Choices { c: true, v: true, folds: 3, seed: 1, ..Choices::default() };
    let chosen =
        choose(source, &y, None, &TrainSpec { choose: both, ..specs[0].clone() }, &mut Silent)
            .unwrap();
    assert!(
        chosen.c >= 0.1 && matches!(chosen.method, MethodSpec::Gmkl(Gmkl { v, .. }) if v > 0.0),
        "{chosen:?}"
    );
    let uniform = TrainSpec { choose: both, ..small("uniform") };
    assert!(
        choose(source, &y, None, &uniform, &mut Silent).unwrap_err().to_string().contains("`v`")
    );
}

#[test]
fn a_price_left_to_the_fit_is_the_one_that_search_finds() {
    let (x, y) = synthetic::toy1(70, 5);
    let choose = Choices { c: true, folds: 3, seed: 2, ..Choices::default() };
    for method in ["gmkl", "smkl"] {
        // The price in the request counts for nothing.
        let auto = TrainSpec { choose, c: 0.037, ..small(method) };
        let model = mercer::train(&x, &y, None, &auto, &mut Silent).unwrap();
        let found = &model.request;
        assert!(found.c > 0.05 && found.choose == choose, "{found:?}");
        let told = TrainSpec { choose: Choices::default(), ..found.clone() };
        let again = mercer::train(&x, &y, None, &told, &mut Silent).unwrap();
        assert_eq!(again.machines[0].weights, model.machines[0].weights);
        // Ready-made matrices of the same kernels lead to the same choice.
        let kernels = language::parse(&auto.kernels).unwrap().resolve(&x).unwrap();
        let ready = TrainSpec { standardize: false, ..auto.clone() };
        let table = mercer::train(&x, &y, None, &ready, &mut Silent).unwrap();
        let data = stack(&gram_block(&x, None, &kernels, Normalize::None).unwrap());
        let matrices = Stack { rows: 70, cols: 70, terms: kernels.len(), data: &data };
        let model = mercer::train_precomputed(matrices, &y, None, &ready, &mut Silent).unwrap();
        assert!((model.request.c / table.request.c - 1.0).abs() < 1e-6);
    }
    // A weight too few is an error, not a panic; two rows of a class allow two folds.
    let auto = TrainSpec { choose, ..small("gmkl") };
    assert!(mercer::train(&x, &y, Some(&[1.0]), &auto, &mut Silent).is_err());
    let rare = Target::Classes {
        names: vec!["a".into(), "b".into()],
        labels: (0..70).map(|i| usize::from(i < 2)).collect(),
    };
    assert!(mercer::train(&x, &rare, None, &auto, &mut Silent).is_ok());
}

/// Breaks at the k-th question that is no iteration.
struct Impatient(usize);

impl Observer for Impatient {
    fn on_iteration(&mut self, _: &IterRecord) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn on_pause(&mut self) -> ControlFlow<()> {
        self.0 -= 1;
        if self.0 == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

#[test]
fn the_search_for_a_single_kernel_can_be_stopped() {
    let (x, y, _) = tasks().remove(0);
    // 40 kernels: three questions in a fold, of which the last is between the folds.
    let widths: Vec<String> = (1..=40).map(|k| format!("{}", 0.1 * f64::from(k))).collect();
    let bank = format!("rbf({})", widths.join("|"));
    let spec =
        TrainSpec { kernels: bank, ..spec(MethodSpec::Single(Single { folds: 3, seed: 0 })) };
    let fit =
        |patience: usize| mercer::train(&x, &y, None, &spec, &mut Impatient(patience)).unwrap();
    let whole = fit(usize::MAX);
    assert_eq!((whole.status(), whole.warnings.len()), (Status::Optimal, 0));
    for (patience, words) in
        [(1, "in fold 1 of 3"), (3, "after fold 1 of 3"), (5, "in fold 2 of 3")]
    {
        let model = fit(patience);
        assert_eq!(model.status(), Status::Stopped, "{words}");
        assert!(model.warnings[0].ends_with(words), "{:?}", model.warnings);
        let best = model.machines[0].weights.iter().position(|w| *w == 1.0).unwrap();
        assert!(patience > 1 || best < 16, "kernel {best} was not tried");
    }
    // What was found after one whole fold is what that fold says, however long the next one went
    // on.
    assert_eq!(fit(3).machines[0].weights, fit(5).machines[0].weights);
}
