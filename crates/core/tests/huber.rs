//! The Huber loss: between the squared and the absolute loss, not led astray by outliers, certified
//! and searched as any other.

use mercer::{
    Model, TrainSpec,
    data::{Dataset, Target, synthetic},
    prepare::Source,
    request::{Choices, LossName, MethodSpec},
    trace::{Silent, Status},
    train::{choose, verify},
};

const BANK: &str = "rbf(0.5|1|2), poly(1..2) on all; linear on each";

fn spec(name: &str, loss: LossName, epsilon: Option<f64>) -> TrainSpec {
    let method = MethodSpec::named(name).unwrap();
    TrainSpec {
        kernels: BANK.into(),
        loss: Some(loss),
        epsilon,
        tol: 1e-6,
        ..TrainSpec::for_method(method)
    }
}

fn fit(data: &Dataset, target: &Target, spec: &TrainSpec) -> Model {
    let model = mercer::train(data, target, None, spec, &mut Silent).unwrap();
    Model::from_bytes(&model.to_bytes().unwrap()).unwrap()
}

fn values(target: &Target) -> Vec<f64> {
    let Target::Values(values) = target else { panic!("classes") };
    values.clone()
}

/// A wave, every tenth of whose values is off by 30 deviations and more, upwards.
fn with_outliers(n: usize) -> (Dataset, Target) {
    let (x, y) = synthetic::sinc(n, 0.1, 3).unwrap();
    let far = |(i, y): (usize, f64)| if i % 10 == 4 { y + 30.0 + (i as f64) } else { y };
    (x, Target::Values(values(&y).into_iter().enumerate().map(far).collect()))
}

#[test]
fn with_a_delta_that_no_error_reaches_it_is_the_squared_loss() {
    let (x, y) = synthetic::sinc(70, 0.1, 3).unwrap();
    let (new, _) = synthetic::sinc(40, 0.0, 4).unwrap();
    for method in ["uniform", "gmkl", "l1", "lp"] {
        let squared = fit(&x, &y, &spec(method, LossName::Squared, None));
        let huber = fit(&x, &y, &spec(method, LossName::Huber, Some(1e6)));
        let (a, b) = (squared.machines[0].certificate, huber.machines[0].certificate);
        // Both bounds of both hold for one optimum.
        assert!((a.primal - b.primal).abs() <= 2e-6 * a.primal, "{method}: {a:?} {b:?}");
        let (a, b) = (squared.decision(&new).unwrap(), huber.decision(&new).unwrap());
        let off = a.data().iter().zip(b.data()).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(off < 2e-2, "{method}: decision values differ by {off:e}");
    }
}

#[test]
fn outliers_lead_it_less_astray_than_the_squared_loss_and_every_fit_closes_its_gap() {
    let (x, y) = with_outliers(120);
    let (new, truth) = synthetic::sinc(80, 0.0, 4).unwrap();
    let truth = values(&truth);
    let error = |model: &Model| -> f64 {
        let f = model.decision(&new).unwrap();
        f.data().iter().zip(&truth).map(|(f, y)| (f - y).powi(2)).sum::<f64>() / truth.len() as f64
    };
    for method in ["uniform", "gmkl", "l1", "lp", "align", "clmkl"] {
        for c in [1e-2, 1.0, 1e2] {
            // δ of three deviations of the noise, far below that of the outliers, and by default.
            for epsilon in [Some(0.3), None] {
                let model = fit(&x, &y, &TrainSpec { c, ..spec(method, LossName::Huber, epsilon) });
                let certificate = model.machines[0].certificate;
                assert_eq!(
                    certificate.status,
                    Status::Optimal,
                    "{method} C = {c} {epsilon:?}: {certificate:?}"
                );
                assert!(
                    certificate.gap <= 1e-6 && certificate.dual <= certificate.primal,
                    "{method}: {certificate:?}"
                );
                let found = verify(&model, &x, &y, None).unwrap();
                assert!(
                    found.agrees && found.findings.is_empty(),
                    "{method} C = {c} {epsilon:?}: {found:?}"
                );
            }
        }
        let huber = error(&fit(&x, &y, &spec(method, LossName::Huber, Some(0.3))));
        let squared = error(&fit(&x, &y, &spec(method, LossName::Squared, None)));
        assert!(huber < 0.2 * squared, "{method}: {huber} against {squared}");
    }
}

#[test]
fn the_default_delta_is_recorded_follows_the_units_and_serves_equal_values() {
    let (x, y) = synthetic::sinc(60, 0.1, 3).unwrap();
    let y = values(&y);
    let recorded = |y: Vec<f64>| {
        fit(&x, &Target::Values(y), &spec("uniform", LossName::Huber, None)).request.epsilon
    };
    let (one, thousand) =
        (recorded(y.clone()).unwrap(), recorded(y.iter().map(|y| 1000.0 * y).collect()).unwrap());
    assert!((thousand / one - 1000.0).abs() < 1e-9 && one > 0.0);
    for value in [0.0, 0.1, 3e7] {
        let model = fit(&x, &Target::Values(vec![value; 60]), &spec("gmkl", LossName::Huber, None));
        let f = model.decision(&x).unwrap();
        assert!(
            f.data().iter().all(|f| (f - value).abs() <= 1e-9 * value.max(1.0)),
            "{value}: {:?}",
            f.data()
        );
    }
    let zero = spec("gmkl", LossName::Huber, Some(0.0));
    let refused =
        mercer::train(&x, &Target::Values(y), None, &zero, &mut Silent).unwrap_err().to_string();
    assert!(refused.contains("epsilon") && refused.contains("> 0"), "{refused}");
}

#[test]
fn cross_validation_finds_its_price() {
    let (x, y) = with_outliers(60);
    let choose_c = Choices { c: true, folds: 3, ..Choices::default() };
    let spec =
        TrainSpec { choose: choose_c, tol: 1e-3, ..spec("gmkl", LossName::Huber, Some(0.3)) };
    let found = choose(Source::Table(&x), &y, None, &spec, &mut Silent).unwrap();
    assert!(found.c > 0.0 && found.loss == Some(LossName::Huber) && found.epsilon == Some(0.3));
}
