//! A saved certificate holds on its own rows and on no others.

use mercer::{
    Model, TrainSpec,
    data::{Dataset, Rng, Target, synthetic},
    kernels::Normalize,
    linalg::Matrix,
    model::Prediction,
    request::Scheme,
    request::{
        ClassWeight, Gmkl, GroupBy, LossName, MethodSpec, Nu, RuleCount, RuleSolver, Smkl, Solver,
        Storage, VcmklSpec,
    },
    trace::{Silent, Status},
    train::{Verification, prove, verify},
};

fn spec(method: MethodSpec) -> TrainSpec {
    let kernels = "rbf(auto), poly(1..2) on all; rbf(1), linear on each".into();
    TrainSpec { method, kernels, c: 5.0, ..TrainSpec::default() }
}

fn gmkl() -> TrainSpec {
    spec(MethodSpec::Gmkl(Gmkl { v: 0.5, p: 2.0, solver: Solver::Auto }))
}

fn fit(data: &Dataset, target: &Target, weight: Option<&[f64]>, spec: &TrainSpec) -> Model {
    let model = mercer::train(data, target, weight, spec, &mut Silent).unwrap();
    // What is verified is what a file says.
    Model::from_bytes(&model.to_bytes().unwrap()).unwrap()
}

fn holds(data: &Dataset, target: &Target, spec: &TrainSpec) -> Verification {
    let found = verify(&fit(data, target, None, spec), data, target, None).unwrap();
    assert!(found.agrees && found.findings.is_empty(), "{spec:?}: {found:?}");
    found
}

/// A new run from the stored solution proves a gap that is at most the sum of both runs'; one
/// vector proves no more.
fn proves(data: &Dataset, target: &Target, spec: &TrainSpec) {
    let model = fit(data, target, None, spec);
    let found = prove(&model, data, target, None, &mut Silent).unwrap();
    let (alone, proven) = (found.recomputed, found.proven.unwrap());
    assert!(
        found.agrees && proven.gap <= 2.0 * spec.tol && proven.gap <= alone.gap,
        "{spec:?}: {found:?}"
    );
    // Up to rounding: one linear solve may leave the bounds equal to the last digits.
    assert!(
        alone.dual <= alone.primal * (1.0 + 1e-12) && proven.dual >= alone.dual,
        "{spec:?}: {found:?}"
    );
}

fn three_classes(n: usize) -> (Dataset, Target) {
    let mut rng = Rng::new(4);
    let labels: Vec<usize> = (0..n).map(|i| i % 3).collect();
    let x = labels
        .iter()
        .flat_map(|&l| [l as f64 + rng.normal(), (l * l) as f64 - rng.normal()])
        .collect();
    let names = ["a", "b", "c"].map(String::from).to_vec();
    (
        Dataset::new(Matrix::new(n, 2, x).unwrap(), vec![]).unwrap(),
        Target::Classes { names, labels },
    )
}

#[test]
fn every_convex_certificate_holds_and_can_be_proved_again() {
    let (x, y) = synthetic::toy1(60, 3);
    let (u, v) = synthetic::sinc(60, 0.1, 3).unwrap();
    for method in
        ["uniform", "gmkl", "l1", "l2", "single"].map(|name| MethodSpec::named(name).unwrap())
    {
        for storage in [Storage::Dense, Storage::DenseF32, Storage::LowRank, Storage::Auto] {
            for loss in
                [LossName::Hinge, LossName::SquaredHinge, LossName::Logistic, LossName::Squared]
            {
                let spec = TrainSpec { loss: Some(loss), storage, ..spec(method.clone()) };
                proves(&x, &y, &spec);
            }
            for loss in [LossName::EpsilonInsensitive, LossName::Squared, LossName::Huber] {
                proves(&u, &v, &TrainSpec { loss: Some(loss), storage, ..spec(method.clone()) });
            }
        }
        for normalize in
            [Normalize::Trace, Normalize::Spherical, Normalize::Center, Normalize::None]
        {
            let c = if normalize == Normalize::Trace { 500.0 } else { 5.0 };
            holds(&x, &y, &TrainSpec { normalize, c, standardize: false, ..spec(method.clone()) });
        }
    }
}

#[test]
fn several_machines_and_weighted_rows_hold() {
    let (x, y) = three_classes(60);
    for multi_class in [Scheme::OneVsRest, Scheme::OneVsOne] {
        for (shared_weights, fit_intercept) in
            [(false, true), (true, true), (false, false), (true, false)]
        {
            proves(&x, &y, &TrainSpec { multi_class, shared_weights, fit_intercept, ..gmkl() });
        }
    }
    for method in ["uniform", "gmkl"].map(|name| MethodSpec::named(name).unwrap()) {
        // 3 kernels on all columns, 2 on each of two.
        let penalties = Some(vec![1.0, 2.0, 0.5, 1.0, 1.0, 3.0, 1.0]);
        let kernels = "rbf(1), poly(1..2) on all; rbf(1), linear on each".to_string();
        for group_by in [GroupBy::None, GroupBy::Scope] {
            proves(
                &x,
                &y,
                &TrainSpec {
                    kernels: kernels.clone(),
                    group_by,
                    penalties: penalties.clone(),
                    ..spec(method.clone())
                },
            );
        }
    }
    let weight: Vec<f64> = (0..60).map(|i| [0.0, 1.0, 2.5, 1.0][i % 4]).collect();
    let model =
        fit(&x, &y, Some(&weight), &TrainSpec { class_weight: ClassWeight::Balanced, ..gmkl() });
    assert!(verify(&model, &x, &y, Some(&weight)).unwrap().agrees);
    let message = verify(&model, &x, &y, None).unwrap_err().to_string();
    assert!(message.contains("60 rows, and the fit had 45"), "{message}");
    let heavier: Vec<f64> = weight.iter().map(|w| 1.5 * w).collect();
    assert!(!verify(&model, &x, &y, Some(&heavier)).unwrap().agrees);
}

#[test]
fn stationary_points_are_at_rest() {
    let (x, y) = synthetic::toy1(80, 3);
    let (u, v) = three_classes(90);
    for penalty in ["log+gl", "gl", "mf(0.5)", "mkl", "log"] {
        let smkl = |c: f64| TrainSpec {
            c,
            ..spec(MethodSpec::Smkl(Smkl { penalty: penalty.into(), eps: 1e-4 }))
        };
        for loss in [LossName::Hinge, LossName::Logistic, LossName::Squared] {
            let found =
                holds(&x, &y, &TrainSpec { loss: Some(loss), max_iter: 5000, ..smkl(20.0) });
            assert!(found.recomputed.gap.is_nan() && found.recomputed.dual.is_nan(), "{found:?}");
            assert!(found.change.unwrap() <= 1e-3, "{penalty} {loss:?}: {found:?}");
        }
        for shared_weights in [false, true] {
            holds(&u, &v, &TrainSpec { shared_weights, max_iter: 5000, ..smkl(20.0) });
        }
    }
    let model =
        fit(&x, &y, None, &TrainSpec { c: 20.0, ..spec(MethodSpec::named("smkl").unwrap()) });
    let mut altered = model.clone();
    altered.machines[0].weights.iter_mut().for_each(|w| *w *= 1.1);
    let found = verify(&altered, &x, &y, None).unwrap();
    assert!(found.findings.iter().any(|f| f.contains("not at rest")), "{found:?}");
}

#[test]
fn localized_certificates_hold() {
    let (x, y) = synthetic::four_gaussians(70, 3);
    let (u, v) = synthetic::sinc(50, 0.1, 3).unwrap();
    let (r, s) = three_classes(60);
    let kernels = "rbf(0.5|2), linear on all; rbf(1) on each".to_string();
    let of = |name: &str| TrainSpec {
        kernels: kernels.clone(),
        ..spec(MethodSpec::named(name).unwrap())
    };
    for name in ["clmkl", "hlmkl"] {
        proves(&x, &y, &of(name));
        proves(&u, &v, &of(name));
        proves(&r, &s, &TrainSpec { shared_weights: true, group_by: GroupBy::Scope, ..of(name) });
    }
    for name in ["lmkl", "glmkl", "gsmkl"] {
        for (data, target) in [(&x, &y), (&u, &v)] {
            if name == "gsmkl" && matches!(target, Target::Values(_)) {
                continue;
            }
            let found = holds(data, target, &of(name));
            assert!(found.recomputed.gap.is_nan() && found.change.unwrap() < 0.1, "{found:?}");
        }
        for shared_weights in [false, true] {
            holds(&r, &s, &TrainSpec { shared_weights, ..of(name) });
        }
        let model = fit(&x, &y, None, &of(name));
        let told = |alter: &dyn Fn(&mut Model)| {
            let mut altered = model.clone();
            alter(&mut altered);
            verify(&altered, &x, &y, None).unwrap().findings.join("; ")
        };
        assert!(told(&|m| m.machines[0].certificate.primal *= 0.999).contains("is stated"));
        assert!(told(&|m| m.machines[0].intercept += 0.1).contains("objective"));
        assert!(
            told(&|m| m.machines[0].dual_coef.iter_mut().for_each(|a| *a *= 0.9))
                .contains("prove no more")
        );
        assert!(told(&|m| m.machines[0].weights[0] += 0.1).contains("the gate gives"));
    }
    // A smooth objective is at rest where it says so.
    let smooth = TrainSpec { loss: Some(LossName::Squared), ..of("lmkl") };
    let model = fit(&x, &y, None, &TrainSpec { max_iter: 3000, ..smooth });
    if model.certificate().status == Status::Stationary {
        assert!(verify(&model, &x, &y, None).unwrap().change.unwrap() <= 1e-3);
    }
}

#[test]
fn rules_hold() {
    let (x, y) = synthetic::four_gaussians(60, 5);
    let (r, s) = three_classes(45);
    for solver in [RuleSolver::Ccp, RuleSolver::Am, RuleSolver::Sgd, RuleSolver::Pddp] {
        for nu in [None, Some(Nu::All(0.1))] {
            if solver == RuleSolver::Sgd && nu.is_some() {
                continue;
            }
            let own =
                VcmklSpec { n_rules: RuleCount::Fixed(2), solver, nu, ..VcmklSpec::default() };
            let spec = TrainSpec {
                kernels: "rbf(1), linear on all".into(),
                ..spec(MethodSpec::Vcmkl(own))
            };
            let found = holds(&x, &y, &spec);
            assert!(found.change.is_none_or(|gain| gain <= 1e-6), "{found:?}");
            if solver == RuleSolver::Ccp {
                holds(&r, &s, &spec);
            }
        }
    }
    let model = fit(&x, &y, None, &spec(MethodSpec::named("vcmkl").unwrap()));
    let told = |alter: &dyn Fn(&mut Model)| {
        let mut altered = model.clone();
        alter(&mut altered);
        verify(&altered, &x, &y, None).unwrap().findings.join("; ")
    };
    assert_eq!(told(&|_| ()), "");
    assert!(
        told(&|m| m.rules.as_mut().unwrap().machines[0].certificate.primal *= 0.999)
            .contains("is stated")
    );
    assert!(
        told(&|m| m.machines.iter_mut().for_each(|rule| rule.intercept -= 0.5))
            .contains("objective")
    );
    let first = |m: &mut Model| {
        m.machines.iter_mut().flat_map(|rule| &mut rule.dual_coef).take(1).for_each(|a| *a *= 2.0);
    };
    assert!(told(&first).contains("multipliers"));
}

fn with_value(data: &Dataset, row: usize, column: usize, value: f64) -> Dataset {
    let mut x = data.features().clone();
    x[(row, column)] = value;
    Dataset::new(x, data.columns().to_vec()).unwrap()
}

#[test]
fn other_rows_are_refused_and_named() {
    let (x, y) = synthetic::toy1(50, 5);
    let refused = |spec: &TrainSpec, x2: &Dataset, y2: &Target| {
        verify(&fit(&x, &y, None, spec), x2, y2, None).unwrap_err().to_string()
    };
    let changed = with_value(&x, 7, 2, x.features()[(7, 2)] + 0.25);
    let message = refused(&gmkl(), &changed, &y);
    assert!(
        message.contains("not the rows the model was fitted on: column `x3` has mean"),
        "{message}"
    );
    // Without standardisation the model's own rows tell.
    let plain = TrainSpec { standardize: false, kernels: "rbf(2) on all".into(), ..gmkl() };
    let support = fit(&x, &y, None, &plain).predictor.row_ids()[0];
    let message = refused(&plain, &with_value(&x, support, 2, 9.0), &y);
    assert!(message.contains(&format!("row {} differs in column `x3`", support + 1)), "{message}");
    let order: Vec<usize> = (0..50).rev().collect();
    let message = refused(&gmkl(), &x.select(&order), &y.select(&order));
    assert!(message.contains("differs in column"), "{message}");
    let fewer: Vec<usize> = (0..49).collect();
    assert!(
        refused(&gmkl(), &x.select(&fewer), &y.select(&fewer))
            .contains("49 rows, and the fit had 50")
    );
    let Target::Classes { labels, .. } = &y else { panic!("toy1 has classes") };
    let renamed =
        Target::Classes { names: vec!["no".into(), "yes".into()], labels: labels.clone() };
    assert!(refused(&gmkl(), &x, &renamed).contains("classes no, yes"));
    assert!(refused(&gmkl(), &x, &Target::Values(vec![0.0; 50])).contains("numbers on the other"));
}

#[test]
fn a_certificate_that_does_not_hold_is_found_out() {
    let (x, y) = synthetic::toy1(50, 6);
    let model = fit(&x, &y, None, &gmkl());
    let Target::Classes { names, mut labels } = y.clone() else { panic!("toy1 has classes") };
    let row = model.machines[0].support[0];
    labels[row] = 1 - labels[row];
    let found = verify(&model, &x, &Target::Classes { names, labels }, None).unwrap();
    assert!(!found.agrees && found.findings.iter().any(|f| f.contains("objective")), "{found:?}");
    assert!(
        found.findings.iter().any(|f| f.contains(&format!("multiplier of row {}", row + 1))),
        "{found:?}"
    );
    let told = |alter: &dyn Fn(&mut Model)| {
        let mut altered = model.clone();
        alter(&mut altered);
        let found = verify(&altered, &x, &y, None).unwrap();
        assert!(!found.agrees);
        found.findings.join("; ")
    };
    assert!(
        told(&|m| m.machines[0].weights.iter_mut().for_each(|w| *w *= 1.1))
            .contains("of their constraint")
    );
    assert!(told(&|m| m.machines[0].weights[0] = -1.0).contains("weight of kernel 1 is -1"));
    assert!(told(&|m| m.machines[0].dual_coef[0] *= 0.5).contains("add up to"));
    assert!(told(&|m| m.machines[0].intercept += 0.1).contains("decision functions"));
    assert!(told(&|m| m.machines[0].certificate.primal *= 0.999).contains("is stated"));
    assert!(told(&|m| m.machines[0].certificate.dual *= 1.1).contains("stated lower bound"));
}

#[test]
fn what_changes_predictions_or_contradicts_itself_is_found() {
    let (x, y) = three_classes(60);
    let model = fit(&x, &y, None, &gmkl());
    let finds = |change: &dyn Fn(&mut Model), word: &str| {
        let mut changed = model.clone();
        change(&mut changed);
        let found = verify(&changed, &x, &y, None).unwrap();
        assert!(
            !found.agrees && found.findings.iter().any(|f| f.contains(word)),
            "{word}: {found:?}"
        );
    };
    finds(
        &|m| {
            let Prediction::Classification { scheme, .. } = &mut m.task else { return };
            *scheme = Scheme::OneVsOne;
        },
        "one_vs_one",
    );
    finds(&|m| m.machines[1].certificate.gap = 0.0, "the stated bounds prove");
    finds(&|m| m.machines[1].certificate.gap = 0.5, "`optimal` is stated");
    finds(&|m| m.machines[0].dual_coef[0] = f64::NAN, "outside its bounds");
}

/// The bytes of a model with the first number of a tensor replaced, and a checksum that fits.
fn with_number(model: &Model, tensor: &str, value: f64) -> Vec<u8> {
    let mut bytes = model.to_bytes().unwrap();
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let header: serde_json::Value = serde_json::from_slice(&bytes[8..8 + length]).unwrap();
    let at = 8 + length + header[tensor]["data_offsets"][0].as_u64().unwrap() as usize;
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
    let key = b"\"crc32\":\"";
    let digits = bytes.windows(key.len()).position(|w| w == key).unwrap() + key.len();
    bytes[digits..digits + 8].copy_from_slice(b"00000000");
    let sum = format!("{:08x}", crc32fast::hash(&bytes));
    bytes[digits..digits + 8].copy_from_slice(sum.as_bytes());
    bytes
}

#[test]
fn models_with_numbers_that_are_none_are_refused() {
    let (x, y) = synthetic::toy1(40, 3);
    let model = fit(&x, &y, None, &gmkl());
    for tensor in ["rows", "weights.0", "dual_coef.0", "term_coef.0"] {
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let told =
                Model::from_bytes(&with_number(&model, tensor, value)).unwrap_err().to_string();
            assert!(
                told.contains(&format!("`{tensor}`")) && told.contains(&value.to_string()),
                "{told}"
            );
        }
        Model::from_bytes(&with_number(&model, tensor, 0.5)).unwrap();
    }
    // Numbers that are, and whose products are not.
    let huge = Model::from_bytes(&with_number(&model, "term_coef.0", 1e308)).unwrap();
    let far = Dataset::new(Matrix::new(1, 20, vec![1e200; 20]).unwrap(), vec![]).unwrap();
    let told = huge.predict(&far).unwrap_err().to_string();
    assert!(told.contains("row 1"), "{told}");
}
