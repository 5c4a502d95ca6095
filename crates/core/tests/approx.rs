//! Declared approximations: what stands in for a kernel, how far off it is said to be, and that
//! fits and predictions speak of it.

use mercer::{
    Model, TrainSpec,
    data::{Dataset, Missing, Rng, Rows, Sequences, Target, View, synthetic},
    gram::{Approx, ApproxError, BuildOptions, GramSet, GramSource, Stack, gram_block},
    kernels::{KernelSpec, Normalize, language},
    linalg::{Matrix, threads},
    model::NewRows,
    request::{LossName, MethodSpec, Storage},
    trace::{Silent, Status},
    train::{train_precomputed, verify},
};

const NUMBERS: &str =
    "rbf(0.5|2), laplace(1), gauss(l1, 2), poly(3), gauss(l2, 1) on all; rbf(1), linear on each";
const TEXTS: &str = "; spectrum(2), wd(3) on cols(s)";

/// Three columns of numbers and one of sequences.
fn rows(n: usize) -> Dataset {
    let mut rng = Rng::new(2);
    let numbers = Matrix::new(n, 3, (0..3 * n).map(|_| rng.normal()).collect()).unwrap();
    let mut text = || (0..12).map(|_| ['A', 'C', 'G', 'T'][rng.below(4)]).collect::<String>();
    let texts = Sequences::new("s", (0..n).map(|_| text())).unwrap();
    let names = ["a", "b", "c", "s"].map(String::from).to_vec();
    Dataset::from_rows(Rows::new(numbers, vec![texts]).unwrap(), names).unwrap()
}

fn bank(data: &Dataset, text: &str) -> Vec<KernelSpec> {
    language::parse(text).unwrap().resolve(data).unwrap()
}

fn terms(
    data: &Dataset,
    kernels: &[KernelSpec],
    normalize: Normalize,
    approx: Approx,
    seed: u64,
) -> GramSet {
    let options = BuildOptions { normalize, approx, seed, ..BuildOptions::default() };
    GramSet::from_rows(data.rows(), kernels, &options).unwrap()
}

fn matrix(set: &GramSet, t: usize) -> Matrix {
    let n = set.n_samples();
    let mut k = Matrix::zeros(n, n);
    (0..n).for_each(|i| set.row(t, i, k.row_mut(i)));
    k
}

#[test]
fn all_rows_as_landmarks_give_the_kernel_under_every_normalisation() {
    let data = rows(40);
    let kernels = bank(&data, &format!("{NUMBERS}{TEXTS}"));
    for normalize in [
        Normalize::Trace,
        Normalize::Multiplicative,
        Normalize::Spherical,
        Normalize::Center,
        Normalize::None,
    ] {
        let exact = gram_block(&data, None, &kernels, normalize).unwrap();
        // More landmarks than rows are all rows.
        for approx in [Approx::Nystrom(40), Approx::Nystrom(1000)] {
            let set = terms(&data, &kernels, normalize, approx, 0);
            for (t, k) in exact.iter().enumerate() {
                let size = k.data().iter().fold(0.0f64, |m, v| m.max(v.abs()));
                let off = matrix(&set, t)
                    .data()
                    .iter()
                    .zip(k.data())
                    .fold(0.0f64, |m, (a, b)| m.max((a - b).abs()));
                // What is left lies below the rank tolerance, 1e-10 of the trace.
                assert!(
                    off <= 1e-8 * size,
                    "{} {normalize:?}: {off:e} of {size:e}",
                    kernels[t].name
                );
                assert!(set.approximation()[t].value() <= 1e-9);
            }
        }
    }
}

#[test]
fn landmarks_lose_the_trace_that_is_reported_and_less_of_it_the_more_there_are() {
    let data = rows(60);
    let kernels = bank(&data, &format!("{NUMBERS}{TEXTS}"));
    let exact = gram_block(&data, None, &kernels, Normalize::None).unwrap();
    let mut last = vec![f64::INFINITY; kernels.len()];
    for rank in [1, 5, 20, 45] {
        let set = terms(&data, &kernels, Normalize::None, Approx::Nystrom(rank), 7);
        for (t, k) in exact.iter().enumerate() {
            let near = matrix(&set, t);
            let trace: f64 = (0..60).map(|i| k[(i, i)]).sum();
            let lost: f64 = (0..60).map(|i| k[(i, i)] - near[(i, i)]).sum();
            let ApproxError::Trace { relative } = set.approximation()[t] else { panic!() };
            assert!(
                (relative - lost / trace).abs() < 1e-12,
                "{}: {relative} {}",
                kernels[t].name,
                lost / trace
            );
            // Fewer landmarks are the first of more; what is below the tolerance may come and go.
            assert!(
                relative <= last[t] + 1e-9,
                "{}: {relative} after {}",
                kernels[t].name,
                last[t]
            );
            last[t] = relative;
            assert!(set.factor(t).unwrap().rank() <= rank && set.residual(t) < 1e-8 * trace);
        }
    }
    let seeds =
        [0, 1].map(|seed| terms(&data, &kernels, Normalize::None, Approx::Nystrom(20), seed));
    assert_ne!(seeds[0].approximation(), seeds[1].approximation());
}

#[test]
fn waves_are_off_by_what_is_estimated_and_less_the_more_there_are() {
    let data = Dataset::new(rows(60).features().clone(), vec![]).unwrap();
    let kernels = bank(
        &data,
        "rbf(0.7|2), laplace(1), gauss(l1, 2), poly(2) on all; rbf(1), laplace(3), linear on each",
    );
    let exact = gram_block(&data, None, &kernels, Normalize::None).unwrap();
    let mut first = Vec::new();
    for count in [16, 128, 1024] {
        let set = terms(&data, &kernels, Normalize::None, Approx::Rff(count), 3);
        for (t, k) in exact.iter().enumerate() {
            let near = matrix(&set, t);
            let all = (0..60).flat_map(|i| (0..60).map(move |j| (i, j))).filter(|(i, j)| i != j);
            let errors: Vec<f64> = all.map(|at| (k[at] - near[at]).abs()).collect();
            let truth = (errors.iter().map(|e| e * e).sum::<f64>() / errors.len() as f64).sqrt();
            let worst = errors.iter().fold(0.0f64, |m, e| m.max(*e));
            match set.approximation()[t] {
                ApproxError::Pairs { rms, standard_error, largest, pairs } => {
                    assert!(
                        (rms - truth).abs() < 4.0 * standard_error && standard_error < 0.1 * rms,
                        "{rms} {truth}"
                    );
                    assert!(largest <= worst + 1e-12 && largest > 0.5 * worst && pairs == 2000);
                    // About 1/√(draws), and never more than the deviation of a cosine.
                    assert!(rms < 1.5 * (2.0 / count as f64).sqrt(), "{}: {rms}", kernels[t].name);
                    assert!((0..60).all(|i| (near[(i, i)] - 1.0).abs() < 1e-12));
                }
                // Ten monomials and one: no more than asked for.
                ApproxError::Trace { relative } => assert!(relative == 0.0 && truth < 1e-12),
            }
            assert!(set.residual(t) == 0.0);
        }
        let values: Vec<f64> = set.approximation().iter().map(ApproxError::value).collect();
        if first.is_empty() {
            first.clone_from(&values);
        } else {
            assert!(
                values.iter().zip(&first).all(|(v, f)| *f == 0.0 || v < f),
                "{values:?} {first:?}"
            );
        }
    }
}

fn spec(method: &str, approx: Approx) -> TrainSpec {
    let kernels =
        "rbf(auto), laplace(2), linear on all; rbf(1), poly(2) on cols(1), cols(2)".into();
    let method = MethodSpec::named(method).unwrap();
    TrainSpec {
        method,
        kernels,
        c: 5.0,
        approx,
        approx_seed: 4,
        max_iter: 2000,
        ..TrainSpec::default()
    }
}

/// Certified, the same from its file, and verified from its rows; `new` rows are predicted alike.
fn holds(data: &Dataset, target: &Target, new: &Dataset, spec: &TrainSpec) -> Model {
    let model = mercer::train(data, target, None, spec, &mut Silent).unwrap();
    let told = format!("{} {} {:?}", spec.method.name(), spec.approx, spec.normalize);
    let certificate = model.certificate();
    assert!(
        matches!(certificate.status, Status::Optimal | Status::Stationary),
        "{told}: {certificate:?}"
    );
    assert!(certificate.gap.is_nan() || certificate.gap <= spec.tol, "{told}: {certificate:?}");
    assert_eq!(model.approximation.len(), model.kernel_names().len());
    let again = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
    assert!(
        again.predictor == model.predictor && again.approximation == model.approximation,
        "{told}"
    );
    assert_eq!(again.decision(new).unwrap(), model.decision(new).unwrap(), "{told}");
    let found = verify(&again, data, target, None).unwrap();
    assert!(found.agrees && found.drift < 1e-6, "{told}: {found:?}");
    model
}

#[test]
fn fits_of_every_method_are_certified_kept_and_verified() {
    let (x, y) = synthetic::toy1(60, 3);
    let (new, _) = synthetic::toy1(30, 8);
    for approx in [Approx::Nystrom(25), Approx::Rff(40)] {
        for method in [
            "uniform", "gmkl", "l1", "single", "align", "smkl", "clmkl", "hlmkl", "lmkl", "glmkl",
            "vcmkl",
        ] {
            let c = if method == "smkl" { 500.0 } else { 5.0 };
            holds(&x, &y, &new, &TrainSpec { c, ..spec(method, approx) });
        }
        for normalize in
            [Normalize::Trace, Normalize::Spherical, Normalize::Center, Normalize::None]
        {
            let c = if normalize == Normalize::Trace { 500.0 } else { 5.0 };
            holds(&x, &y, &new, &TrainSpec { normalize, c, ..spec("gmkl", approx) });
        }
        for loss in [LossName::SquaredHinge, LossName::Logistic, LossName::Squared] {
            holds(&x, &y, &new, &TrainSpec { loss: Some(loss), tol: 1e-5, ..spec("gmkl", approx) });
        }
        let (u, v) = synthetic::sinc(60, 0.1, 3).unwrap();
        holds(
            &u,
            &v,
            &u,
            &TrainSpec {
                kernels: "rbf(auto), laplace(2), linear on all".into(),
                ..spec("gmkl", approx)
            },
        );
    }
    // More features than rows.
    holds(&x, &y, &new, &spec("gmkl", Approx::Rff(300)));
    let gated = mercer::train(&x, &y, None, &spec("clmkl", Approx::Rff(40)), &mut Silent).unwrap();
    assert!(gated.memberships(NewRows::Table(&new), None).is_ok());
}

#[test]
fn sequences_and_missing_views_have_landmarks() {
    let data = rows(60);
    let y: Vec<f64> = (0..60).map(|i| data.features()[(i, 0)] + f64::from(i as u32 % 4)).collect();
    let target = Target::Values(y);
    let nystrom =
        TrainSpec { kernels: format!("rbf(1) on all{TEXTS}"), ..spec("gmkl", Approx::Nystrom(20)) };
    holds(&data, &target, &data, &nystrom);
    for missing in [Missing::Zero, Missing::Mean] {
        for approx in [Approx::Nystrom(20), Approx::Rff(60)] {
            let names = ["a", "b", "c"].map(String::from).to_vec();
            let view = |name: &str, columns| View { name: name.into(), columns };
            let numbers = Dataset::new(data.features().clone(), names).unwrap();
            let whole = numbers.with_views(vec![view("one", 0..1), view("two", 1..3)]).unwrap();
            let gapped =
                whole.clone().with_absent("two", &(0..60).step_by(5).collect::<Vec<_>>()).unwrap();
            let kernels = "rbf(1), laplace(2) on view(one), view(two)".into();
            let spec = TrainSpec { kernels, missing, ..spec("gmkl", approx) };
            holds(&gapped, &target, &whole, &spec);
        }
    }
}

#[test]
fn answers_depend_on_the_seed_and_not_on_threads() {
    let (x, y) = synthetic::toy1(60, 3);
    for approx in [Approx::Nystrom(20), Approx::Rff(32)] {
        let fit = |count: usize, approx_seed: u64| {
            let spec = TrainSpec { approx_seed, ..spec("gmkl", approx) };
            let model =
                threads::install(Some(count), || mercer::train(&x, &y, None, &spec, &mut Silent))
                    .unwrap();
            (model.decision(&x).unwrap(), model.predictor, model.approximation)
        };
        assert_eq!(fit(1, 4), fit(2, 4), "{approx}");
        assert_ne!(fit(1, 4).0, fit(1, 5).0, "{approx}");
    }
}

#[test]
fn what_cannot_be_is_refused_in_one_line() {
    let data = rows(30);
    let target = Target::Values((0..30).map(f64::from).collect());
    let refused = |spec: TrainSpec| {
        mercer::train(&data, &target, None, &spec, &mut Silent).unwrap_err().to_string()
    };
    let with =
        |kernels: &str, approx| TrainSpec { kernels: kernels.into(), ..spec("gmkl", approx) };
    let cases = [
        (
            with("rbf(1) on all", Approx::Nystrom(0)),
            "`approx` must be nystrom(r) with r of at least 1",
        ),
        (with("rbf(1) on all", Approx::Rff(0)), "an even r of at least 2"),
        (with("rbf(1) on all", Approx::Rff(5)), "got rff(5)"),
        (
            with("rbf(1) on all; spectrum(2) on cols(s)", Approx::Rff(20)),
            "kernel `spectrum(2, dna) on s`: has neither",
        ),
        (
            with("gauss(l2, 1) on all; spectrum(2) on cols(s)", Approx::Rff(20)),
            "approx = nystrom(r) takes every kernel",
        ),
        (
            with("poly(5) on all; spectrum(2) on cols(s)", Approx::Rff(20)),
            "nor at most 20 exact ones",
        ),
        (
            TrainSpec { storage: Storage::Dense, ..spec("gmkl", Approx::Rff(4)) },
            "auto or low-rank with approx = rff(4)",
        ),
        (
            TrainSpec {
                memory: Some(2000),
                ..with("rbf(1) on all; spectrum(2) on cols(s)", Approx::Nystrom(20))
            },
            "budget",
        ),
    ];
    for (spec, expected) in cases {
        let message = refused(spec);
        assert!(message.contains(expected) && !message.contains('\n'), "{message}\n{expected}");
    }
    let ready = Stack { rows: 2, cols: 2, terms: 1, data: &[1.0, 0.0, 0.0, 1.0] };
    let target = Target::Values(vec![0.0, 1.0]);
    let message =
        train_precomputed(ready, &target, None, &spec("gmkl", Approx::Nystrom(1)), &mut Silent)
            .unwrap_err();
    assert!(
        message.to_string().contains("`approx` must be none for ready-made kernels"),
        "{message}"
    );
}
