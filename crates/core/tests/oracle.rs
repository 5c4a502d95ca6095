//! Same optimum as an independent generic solver on stored cases (tests/oracle says how they were
//! made).
//!
//! Tolerances are the oracle's own accuracy: objectives 1e-5 relative at gap 1e-6; weights and
//! predictions 1e-3 at gap 1e-9 where unique; closed forms 1e-9.

use std::ops::ControlFlow;

use mercer::{
    gram::Stack,
    kernels::{Normalize, Normalizer},
    request::{Gmkl, MethodSpec, Solver, Storage},
    trace::{IterRecord, Observer},
    weights::{ElasticNet, WeightSet},
};
use mercer_testkit::oracle::{Case, cases, stack, vector};

/// Checks that the bounds bracket the optimum in every iteration, and close in.
struct Bracket {
    optimum: f64,
    last: Option<IterRecord>,
    name: String,
}

impl Observer for Bracket {
    fn on_iteration(&mut self, r: &IterRecord) -> ControlFlow<()> {
        // The oracle knows its optimum to 1e-7.
        let slack = 2e-7 * self.optimum.abs();
        assert!(
            r.dual <= self.optimum + slack,
            "{}: lower bound {} above optimum {}",
            self.name,
            r.dual,
            self.optimum
        );
        assert!(
            r.objective >= self.optimum - slack,
            "{}: upper bound {} below {}",
            self.name,
            r.objective,
            self.optimum
        );
        if let Some(last) = self.last.filter(|l| l.iteration < r.iteration) {
            assert!(
                r.objective <= last.objective && r.dual >= last.dual,
                "{}: bounds drifted apart",
                self.name
            );
        }
        self.last = Some(*r);
        ControlFlow::Continue(())
    }
}

fn check(
    case: &Case,
    kernels: &[mercer::linalg::Matrix],
    new: &[mercer::linalg::Matrix],
    method: &MethodSpec,
) {
    let (n, m) = (kernels[0].rows(), kernels.len());
    let data = stack(kernels);
    let optimum = case.number("expect/objective");
    for storage in [Storage::Dense, Storage::LowRank] {
        for tol in [1e-3, 1e-6, 1e-9] {
            let spec = case.spec(method.clone(), tol, storage);
            let name = format!("{} {method:?} {storage:?} tol {tol:e}", case.name);
            let mut watch = Bracket { optimum, last: None, name: name.clone() };
            let stack_view = Stack { rows: n, cols: n, terms: m, data: &data };
            let model =
                mercer::train_precomputed(stack_view, &case.target(), None, &spec, &mut watch)
                    .unwrap();
            let got = &model.machines[0];
            assert!(got.certificate.gap <= tol, "{name}: {:?}", got.certificate);
            case.check_objective(got.certificate.primal, tol, &name);
            if tol > 1e-9 {
                continue;
            }
            if case.unique("theta") && matches!(method, MethodSpec::Gmkl(_)) {
                let worst = got
                    .weights
                    .iter()
                    .zip(case.vector("expect/theta"))
                    .map(|(a, b)| (a - b).abs())
                    .fold(0.0, f64::max);
                assert!(worst < 1e-3, "{name}: weights off by {worst:e}");
            }
            if case.unique("b") {
                let block = stack(new);
                let view = Stack { rows: new[0].rows(), cols: n, terms: m, data: &block };
                let f = model.decision_precomputed(view).unwrap();
                let worst = f
                    .data()
                    .iter()
                    .zip(case.vector("expect/f_test"))
                    .map(|(a, b)| (a - b).abs())
                    .fold(0.0, f64::max);
                assert!(worst < 1e-3, "{name}: predictions off by {worst:e}");
            }
        }
    }
}

#[test]
fn single_kernel_machines() {
    for case in cases("svm") {
        check(
            &case,
            &[case.matrix("input/K")],
            &[case.matrix("input/Kt")],
            &MethodSpec::Uniform {},
        );
    }
}

#[test]
fn elastic_net_by_the_level_method() {
    for case in cases("gmkl") {
        let (v, p) = (case.number("input/v"), case.maybe("input/p").unwrap_or(2.0));
        check(
            &case,
            &case.matrices("input/K"),
            &case.matrices("input/Kt"),
            &MethodSpec::Gmkl(Gmkl { v, p, solver: Solver::Level }),
        );
    }
}

#[test]
fn linear_minimisation_over_the_elastic_net() {
    for case in cases("linmin") {
        for row in case.at("expect/rows").as_array().unwrap() {
            let number = |key: &str| row[key].as_f64().unwrap();
            let g = vector(&row["g"]);
            let set = ElasticNet::new(number("v"), number("p")).unwrap();
            let (theta, want) = (set.support_point(&g), vector(&row["theta"]));
            assert!((set.support(&g) - number("value")).abs() <= 1e-9 * number("value"), "{row}");
            assert!(theta.iter().zip(&want).all(|(a, b)| (a - b).abs() < 1e-9), "{row}: {theta:?}");
        }
    }
}

#[test]
fn normalisations_of_training_and_new_rows() {
    for case in cases("normalise") {
        let kind = match case.text("input/how") {
            "trace" => Normalize::Trace,
            "multiplicative" => Normalize::Multiplicative,
            "spherical" => Normalize::Spherical,
            "center" => Normalize::Center,
            other => panic!("unknown normalisation {other}"),
        };
        let (mut k, raw, mut own) =
            (case.matrix("input/K"), case.matrix("input/Kt"), case.vector("input/kt_diag"));
        let train: Vec<f64> = (0..k.rows()).map(|i| k[(i, i)]).collect();
        let normalizer = Normalizer::fit_block(kind, &case.name, &k).unwrap();
        let mut kt = raw.clone();
        normalizer.apply_cross(&mut kt, &own, &train);
        normalizer.apply_self(&mut own, &raw);
        normalizer.apply_train(&mut k);
        for (got, want) in
            [(k.data(), "expect/K"), (kt.data(), "expect/Kt"), (&own, "expect/kt_diag")]
                .map(|(g, w)| (g, case.vector(w)))
        {
            let scale = want.iter().fold(0.0f64, |m, x| m.max(x.abs()));
            assert!(
                got.iter().zip(&want).all(|(a, b)| (a - b).abs() <= 1e-9 * scale),
                "{}",
                case.name
            );
        }
    }
}
