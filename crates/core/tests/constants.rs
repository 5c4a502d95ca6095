//! No silent constant: a fit does not depend on the units of its target, says so where it learned
//! nothing, and a constant wins no search.

use mercer::{
    Model, TrainSpec,
    data::{Dataset, Rng, Target, synthetic},
    gram::Stack,
    kernels::Normalize,
    linalg::Matrix,
    model::FLAT,
    prepare::Source,
    request::Scheme,
    request::{Choices, Gmkl, LossName, MethodSpec, Solver, catalogue},
    trace::Silent,
    train::{at_edge, choose, grid_search, verify},
};

const BANK: &str = "rbf(0.5|1|2), poly(1..2) on all; linear on each";
const UNITS: [f64; 4] = [1e-6, 0.7, 1_048_576.0, 1e6];

fn spec(name: &str) -> TrainSpec {
    TrainSpec { kernels: BANK.into(), ..TrainSpec::for_method(MethodSpec::named(name).unwrap()) }
}

fn fit(data: &Dataset, target: &Target, spec: &TrainSpec) -> Model {
    mercer::train(data, target, None, spec, &mut Silent).unwrap()
}

fn values(target: &Target) -> &[f64] {
    let Target::Values(values) = target else { panic!("classes") };
    values
}

fn times(target: &Target, unit: f64) -> Target {
    Target::Values(values(target).iter().map(|y| unit * y).collect())
}

fn farthest(a: &[f64], b: &[f64], unit: f64) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - unit * b).abs() / unit).fold(0.0, f64::max)
}

/// Every method for values with every loss for values.
fn regressors() -> Vec<TrainSpec> {
    let names = catalogue().iter().map(|m| m.name).filter(|n| *n != "vcmkl").chain(["l1"]);
    let losses = [LossName::EpsilonInsensitive, LossName::Squared, LossName::Huber];
    names.flat_map(|name| losses.map(|loss| TrainSpec { loss: Some(loss), ..spec(name) })).collect()
}

/// The bytes of a model in whose request the field is not there, as it was not in older files, with
/// a checksum that fits.
fn without_scale_target(model: &Model) -> Vec<u8> {
    let mut bytes = model.to_bytes().unwrap();
    let find =
        |bytes: &[u8], text: &[u8]| bytes.windows(text.len()).position(|w| w == text).unwrap();
    let field = br#"\"scale_target\":false,"#;
    let at = find(&bytes, field);
    bytes[at..at + field.len()].fill(b' ');
    let key = b"\"crc32\":\"";
    let at = find(&bytes, key) + key.len();
    bytes[at..at + 8].fill(b'0');
    let sum = format!("{:08x}", crc32fast::hash(&bytes));
    bytes[at..at + 8].copy_from_slice(sum.as_bytes());
    bytes
}

/// 95 rows of the class `a` and 5 of the class `b`, the first column of which says which is which.
fn unequal() -> (Dataset, Target) {
    let mut rng = Rng::new(4);
    let rare = |i: usize| i % 20 == 7;
    let rows: Vec<[f64; 4]> = (0..200)
        .map(|i| {
            [
                rng.normal() + if rare(i) { 4.0 } else { 0.0 },
                rng.normal(),
                rng.normal(),
                rng.normal(),
            ]
        })
        .collect();
    let labels: Vec<&str> = (0..200).map(|i| if rare(i) { "b" } else { "a" }).collect();
    (
        Dataset::new(Matrix::new(200, 4, rows.concat()).unwrap(), vec![]).unwrap(),
        Target::classes(&labels),
    )
}

#[test]
fn a_target_in_other_units_gives_the_same_fit_in_those_units() {
    let (x, y) = synthetic::sinc(70, 0.1, 3).unwrap();
    let (new, _) = synthetic::sinc(40, 0.0, 4).unwrap();
    for spec in regressors() {
        let name = format!("{} {:?}", spec.method.name(), spec.loss);
        let spec = TrainSpec { tol: 1e-6, max_iter: 3000, ..spec };
        let base = fit(&x, &y, &spec);
        let want = base.decision(&new).unwrap();
        for unit in UNITS {
            let model = fit(&x, &times(&y, unit), &spec);
            let off = farthest(model.decision(&new).unwrap().data(), want.data(), unit);
            // Division by the deviation rounds, but for powers of two; then the solver may take
            // another way to its tolerance.
            let slack = if unit.log2().fract() == 0.0 { 1e-13 } else { 1e-3 };
            assert!(off <= slack, "{name}: times {unit:e} off by {off:e}");
            let (a, b) = (&model.machines[0], &base.machines[0]);
            assert!((a.intercept / unit - b.intercept).abs() <= slack, "{name}");
            assert!(
                (a.certificate.primal - b.certificate.primal).abs()
                    <= 1e-6 * b.certificate.primal.abs(),
                "{name}"
            );
        }
    }
}

#[test]
fn so_it_does_on_ready_made_kernels_with_a_tube_in_the_targets_units_and_with_c_left_open() {
    let (x, y) = synthetic::sinc(60, 0.1, 5).unwrap();
    let rows: Vec<f64> = x.features().column(0);
    let kernel =
        |i: usize, j: usize| [rows[i] * rows[j], (-(rows[i] - rows[j]).powi(2) / 2.0).exp()];
    let data: Vec<f64> = (0..60)
        .flat_map(|i| (0..60).flat_map(move |j| [(i, j)]))
        .flat_map(|(i, j)| kernel(i, j))
        .collect();
    let stack = Stack { rows: 60, cols: 60, terms: 2, data: &data };
    for name in ["gmkl", "smkl", "single", "clmkl", "uniform"] {
        for open in [false, true] {
            let choose = Choices { c: open, folds: 3, ..Choices::default() };
            let at = |unit: f64| {
                let spec = TrainSpec { choose, epsilon: Some(0.05 * unit), ..spec(name) };
                mercer::train_precomputed(stack, &times(&y, unit), None, &spec, &mut Silent)
                    .unwrap()
            };
            let want = at(1.0);
            for unit in UNITS {
                let model = at(unit);
                assert_eq!(model.request.epsilon, Some(0.05 * unit), "{name}");
                let off = farthest(
                    model.decision_precomputed(stack).unwrap().data(),
                    want.decision_precomputed(stack).unwrap().data(),
                    unit,
                );
                assert!(off <= 1e-4, "{name}, C left open: {open}, times {unit:e}: off by {off:e}");
            }
        }
    }
}

/// With the tube, deviation s turns C into the plain problem's C·s.
#[test]
fn what_is_solved_is_the_plain_problem_at_another_price() {
    let (x, y) = synthetic::sinc(60, 0.1, 6).unwrap();
    let y = times(&y, 40.0);
    let (n, mean) = (60.0, values(&y).iter().sum::<f64>() / 60.0);
    let deviation = (values(&y).iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n).sqrt();
    for name in ["gmkl", "lp", "uniform", "clmkl"] {
        let scaled = TrainSpec { tol: 1e-8, max_iter: 5000, ..spec(name) };
        let plain = TrainSpec { scale_target: false, c: scaled.c * deviation, ..scaled.clone() };
        let (a, b) = (fit(&x, &y, &scaled), fit(&x, &y, &plain));
        let off = farthest(a.decision(&x).unwrap().data(), b.decision(&x).unwrap().data(), 1.0);
        assert!(off < 1e-2, "{name}: {off}");
        let (a, b) = (a.certificate().primal, b.certificate().primal);
        assert!((deviation.powi(2) * a - b).abs() < 1e-6 * b, "{name}: {a} {b}");
    }
}

#[test]
fn saved_fits_in_any_units_are_verified_and_older_files_state_the_plain_problem() {
    let (x, y) = synthetic::sinc(60, 0.1, 7).unwrap();
    let y = times(&y, 1e4);
    for spec in regressors() {
        let name = format!("{} {:?}", spec.method.name(), spec.loss);
        let saved = fit(&x, &y, &spec).to_bytes().unwrap();
        let found = verify(&Model::from_bytes(&saved).unwrap(), &x, &y, None).unwrap();
        assert!(found.agrees, "{name}: {found:?}");
        let other = verify(&Model::from_bytes(&saved).unwrap(), &x, &times(&y, 2.0), None).unwrap();
        assert!(!other.agrees, "{name}: another target passes");
    }
    let plain = TrainSpec { scale_target: false, c: 1e4, ..spec("gmkl") };
    let model = fit(&x, &y, &plain);
    let old = Model::from_bytes(&without_scale_target(&model)).unwrap();
    assert!(!old.request.scale_target);
    assert!(verify(&old, &x, &y, None).unwrap().agrees);
}

#[test]
fn equal_values_are_fitted_and_no_cause_for_a_warning() {
    let (x, _) = synthetic::sinc(30, 0.1, 8).unwrap();
    for value in [0.0, 0.1, -3e7, 1e-9] {
        for spec in regressors() {
            let model = fit(&x, &Target::Values(vec![value; 30]), &spec);
            let off = farthest(model.decision(&x).unwrap().data(), &[value; 30], 1.0);
            assert!(
                off <= 1e-9 * value.abs(),
                "{} {:?} {value}: {off}",
                spec.method.name(),
                spec.loss
            );
            assert!(!model.is_flat(), "{:?}", model.warnings);
        }
    }
}

#[test]
fn every_method_says_that_its_fit_is_a_constant() {
    let (x, y) = unequal();
    let (u, v) = synthetic::sinc(60, 0.1, 9).unwrap();
    for method in catalogue().iter().map(|m| m.name) {
        let low = |spec: TrainSpec| TrainSpec { c: 1e-5, choose: Choices::default(), ..spec };
        let model = fit(&x, &y, &low(spec(method)));
        // The rules of vcmkl price their classes alike.
        if method != "vcmkl" {
            let told =
                model.warnings.iter().filter(|w| w.starts_with(FLAT) && w.contains("`a`")).count();
            assert_eq!(told, 1, "{method}: {:?}", model.warnings);
            let model = fit(&u, &v, &low(spec(method)));
            assert!(model.is_flat(), "{method}: {:?}", model.warnings);
            let model =
                fit(&u, &v, &TrainSpec { c: 10.0, choose: Choices::default(), ..spec(method) });
            assert!(!model.is_flat() || method == "smkl", "{method}: {:?}", model.warnings);
        }
        let Target::Classes { labels, .. } = fit(&x, &y, &low(spec(method))).predict(&x).unwrap()
        else {
            panic!()
        };
        let one = labels.iter().all(|l| *l == labels[0]);
        assert!(method != "vcmkl" || one == model.is_flat(), "{method}: {:?}", model.warnings);
    }
}

#[test]
fn one_class_of_three_is_told_for_both_schemes() {
    let mut rng = Rng::new(5);
    let rows: Vec<f64> = (0..120).map(|_| rng.normal()).collect();
    let x = Dataset::new(Matrix::new(60, 2, rows).unwrap(), vec![]).unwrap();
    let labels: Vec<&str> = (0..60).map(|i| ["a", "a", "a", "a", "b", "c"][i % 6]).collect();
    let y = Target::classes(&labels);
    for multi_class in [Scheme::OneVsRest, Scheme::OneVsOne] {
        for shared_weights in [false, true] {
            let spec = TrainSpec { multi_class, shared_weights, c: 1e-6, ..spec("gmkl") };
            assert!(fit(&x, &y, &spec).is_flat(), "{multi_class:?}");
            let spec = TrainSpec { c: 1e4, ..spec };
            assert!(!fit(&x, &y, &spec).is_flat(), "{multi_class:?}");
        }
    }
}

#[test]
fn smkl_works_at_its_defaults_and_its_search_never_ends_in_a_constant() {
    let (x, y) = unequal();
    let model = fit(&x, &y, &spec("smkl"));
    assert_eq!(model.request.c, 200.0);
    assert!(!model.is_flat() && model.warnings.is_empty(), "{:?}", model.warnings);
    for normalize in [Normalize::Trace, Normalize::Multiplicative] {
        let choose = Choices { c: true, ..Choices::default() };
        let model = fit(&x, &y, &TrainSpec { normalize, choose, ..spec("smkl") });
        assert!(!model.is_flat(), "{normalize:?}: {:?}", model.warnings);
    }
    // Remnants of weights do not hide the collapse: it is judged by what is predicted, and the
    // remedy names a price.
    let plain = TrainSpec {
        choose: Choices::default(),
        normalize: Normalize::Multiplicative,
        c: 0.05,
        ..spec("smkl")
    };
    let told = fit(&x, &y, &plain).warnings;
    assert!(
        told.iter().any(|w| w.contains("use C of at least"))
            && told.iter().any(|w| w.starts_with(FLAT)),
        "{told:?}"
    );
}

#[test]
fn constants_win_only_where_all_are_and_ties_go_to_the_larger_price() {
    let (x, y) = unequal();
    let at = |c: f64| TrainSpec { c, ..spec("uniform") };
    let search = |prices: &[f64]| {
        let specs: Vec<TrainSpec> = prices.iter().map(|c| at(*c)).collect();
        grid_search(Source::Table(&x), &y, None, &specs, (4, 0), &mut Silent).unwrap()
    };
    let found = search(&[1e-6, 1e-5, 10.0]);
    assert_eq!((found.best, &found.flat[..]), (2, &[4, 4, 0][..]), "{found:?}");
    let all = search(&[1e-6, 1e-5, 1e-7]);
    assert_eq!((all.best, &all.flat[..]), (1, &[4, 4, 4][..]), "{all:?}");
    // Two clouds far apart: every price is right, and the largest is taken.
    let (x, y) = synthetic::four_gaussians(80, 1);
    let tied = [TrainSpec { c: 1.0, ..at(1.0) }, at(100.0), at(10.0)];
    let found = grid_search(Source::Table(&x), &y, None, &tied, (4, 0), &mut Silent).unwrap();
    let top = (0..3).map(|s| found.mean(s)).fold(f64::MIN, f64::max);
    let want = [1usize, 2, 0].into_iter().find(|&s| found.mean(s) > top - 1e-12);
    assert_eq!(Some(found.best), want, "{found:?}");
}

#[test]
fn the_edge_of_a_search_is_told_where_the_score_still_rises_there() {
    let rising = [(0.1, 0.5), (10.0, 0.9), (1.0, 0.7)];
    assert!(at_edge("C", 10.0, &rising).unwrap().contains("C = 10 is the largest"));
    assert!(
        at_edge("C", 0.1, &[(0.1, 0.9), (1.0, 0.8), (10.0, 0.7)]).unwrap().contains("smallest")
    );
    assert_eq!(at_edge("C", 1.0, &rising), None);
    assert_eq!(at_edge("C", 10.0, &[(0.1, 0.5), (1.0, 0.9), (10.0, 0.9)]), None);
    assert_eq!(at_edge("C", 10.0, &rising[..2]), None);
    // Noise: the smallest price does best, which the model says; `v` likewise.
    let (x, y) = synthetic::sinc(60, 3.0, 2).unwrap();
    let choose_all = Choices { c: true, v: true, folds: 3, ..Choices::default() };
    let request = TrainSpec { choose: choose_all, ..spec("gmkl") };
    let found = choose(Source::Table(&x), &y, None, &request, &mut Silent).unwrap();
    let told = fit(&x, &y, &request).warnings;
    let at_end = [0.1, 1000.0].contains(&found.c);
    assert_eq!(told.iter().any(|w| w.starts_with("C = ")), at_end, "{} {told:?}", found.c);
    let MethodSpec::Gmkl(Gmkl { v, solver: Solver::Auto, .. }) = found.method else { panic!() };
    assert!(told.iter().all(|w| !w.starts_with("v = ")) || [0.1, 0.9].contains(&v), "{v} {told:?}");
}
