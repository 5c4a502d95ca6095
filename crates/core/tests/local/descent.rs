//! Certificates, descent, gradients.

use mercer::{
    TrainSpec,
    data::{Rng, synthetic},
    gram::GramSource,
    linalg::Matrix,
    outer::{Gate, GroupGate, KernelGate, gate_value},
    request::{Evenness, GateName, Glmkl, GroupBy, Lmkl, LossName, MethodSpec},
    trace::Status,
};
use mercer_testkit::oracle::cases;

use super::{Heights, clmkl, fit, glmkl, named, oracle::Small, primal, spec, with_v};

#[test]
fn every_convex_fit_is_certified() {
    let (x, y) = synthetic::toy1(50, 7);
    let (u, v) = synthetic::sinc(50, 0.1, 7).unwrap();
    for p in [1.0, 1.05, 1.333, 2.0, 3.0, 4.0] {
        for l in [1, 2, 3, 5, 10] {
            for level in [None, Some(Evenness::HARD), Some(Evenness::Average(0.9))] {
                if l == 1 && level == Some(Evenness::Average(0.9)) {
                    continue;
                }
                let losses = [
                    LossName::Hinge,
                    LossName::SquaredHinge,
                    LossName::Logistic,
                    LossName::Squared,
                ];
                let loss = losses[(l + p as usize) % 4];
                let c = fit(&x, &y, &TrainSpec { loss: Some(loss), ..spec(clmkl(l, level, p)) })
                    .certificate();
                assert!(
                    c.status == Status::Optimal && c.gap <= 1e-3 && c.dual <= c.primal,
                    "p {p} l {l} {loss:?}: {c:?}"
                );
                let loss = [LossName::EpsilonInsensitive, LossName::Squared][l % 2];
                let c = fit(&u, &v, &TrainSpec { loss: Some(loss), ..spec(clmkl(l, level, p)) })
                    .certificate();
                assert!(
                    c.status == Status::Optimal && c.gap <= 1e-3 && c.dual <= c.primal,
                    "p {p} l {l} {loss:?}: {c:?}"
                );
            }
        }
    }
    for net in [0.0, 0.3, 0.8, 1.0] {
        let method = with_v(clmkl(4, None, 2.0), net);
        let c = fit(&x, &y, &TrainSpec { group_by: GroupBy::Scope, ..spec(method.clone()) })
            .certificate();
        assert!(c.status == Status::Optimal && c.gap <= 1e-3, "v {net} grouped: {c:?}");
        let c = fit(&x, &y, &spec(method)).certificate();
        assert!(c.status == Status::Optimal && c.gap <= 1e-3, "v {net}: {c:?}");
    }
}

#[test]
fn gradients_are_finite_differences() {
    let case = cases("lmkl").into_iter().next().unwrap();
    let small = Small::new(&case);
    let grams = small.prepared.grams();
    let (n, kernels, mut rng) = (grams.n_samples(), grams.n_terms(), Rng::new(11));
    let k0 = grams.combine(&vec![1.0 / kernels as f64; kernels]);
    let labels: Vec<usize> = (0..n).map(|i| i % 3).collect();
    let v = Matrix::new(3, kernels, (0..3 * kernels).map(|_| rng.uniform()).collect()).unwrap();
    let kernel_gate = |form| KernelGate { kernel: &k0, kernels, form };
    let group_gate = |p| GroupGate { labels: &labels, p, alignments: &v };
    let gates: Vec<(&str, Box<dyn Gate>)> = vec![
        ("softmax", Box::new(kernel_gate(GateName::Softmax))),
        ("sigmoid", Box::new(kernel_gate(GateName::Sigmoid))),
        ("groups p = 1", Box::new(group_gate(1.0))),
        ("groups p = 1.5", Box::new(group_gate(1.5))),
        ("groups p = 2", Box::new(group_gate(2.0))),
        ("groups p = 4", Box::new(group_gate(4.0))),
    ];
    for (name, gate) in &gates {
        let z: Vec<f64> = (0..gate.size()).map(|_| 0.3 * rng.normal()).collect();
        small.problem(|problem| {
            let at = gate_value(problem, &**gate, &z, 1e-13).unwrap();
            let scale = at.slope;
            for _ in 0..12 {
                let k = rng.below(z.len());
                let value = |h: f64| {
                    let mut moved = z.clone();
                    moved[k] += h;
                    gate_value(problem, &**gate, &moved, 1e-13).unwrap().value
                };
                let h = 1e-5;
                let difference = (value(h) - value(-h)) / (2.0 * h);
                assert!(
                    (difference - at.gradient[k]).abs() < 1e-4 * scale,
                    "{name} {k}: {difference} {}",
                    at.gradient[k]
                );
            }
        });
    }
}

#[test]
fn learned_gates_come_to_rest_and_the_objective_never_rises() {
    let (x, y) = synthetic::four_gaussians(80, 5);
    let (u, v) = synthetic::sinc(60, 0.1, 5).unwrap();
    let sigmoid =
        MethodSpec::Lmkl(Lmkl { gate: GateName::Sigmoid, gate_kernel: None, n_init: 1, seed: 0 });
    let linear = MethodSpec::Lmkl(Lmkl {
        gate: GateName::Softmax,
        gate_kernel: Some("linear on all".into()),
        n_init: 1,
        seed: 0,
    });
    for method in [
        named("lmkl"),
        sigmoid,
        linear,
        glmkl(3, 1.0),
        glmkl(3, 2.0),
        glmkl(2, 4.0),
        named("gsmkl"),
    ] {
        for loss in [
            LossName::Hinge,
            LossName::Logistic,
            LossName::SquaredHinge,
            LossName::EpsilonInsensitive,
            LossName::Squared,
        ] {
            let (data, target) =
                if loss == LossName::EpsilonInsensitive || loss == LossName::Squared {
                    (&u, &v)
                } else {
                    (&x, &y)
                };
            let spec = TrainSpec {
                method: method.clone(),
                kernels: "rbf(0.3|1|3), linear on all".into(),
                loss: Some(loss),
                max_iter: 300,
                ..TrainSpec::default()
            };
            let mut heights = Heights::default();
            let model = mercer::train(data, target, None, &spec, &mut heights).unwrap();
            let c = model.certificate();
            assert_eq!(
                c.status,
                Status::Stationary,
                "{method:?} {loss:?} {c:?} {:?}",
                model.machines[0].trace.last()
            );
            assert!(c.gap.is_nan() && c.dual.is_nan());
            assert!(
                heights.0.windows(2).all(|w| w[1] <= w[0]),
                "{method:?} {loss:?}: {:?}",
                heights.0
            );
            assert!(heights.0.len() == 1 || heights.0.last() < heights.0.first());
        }
    }
}

#[test]
fn more_starts_are_never_worse() {
    let (x, y) = synthetic::four_gaussians(60, 6);
    let at = |n_init| {
        let method =
            MethodSpec::Glmkl(Glmkl { n_groups: 4, p: 2.0, groups: None, n_init, seed: 3 });
        primal(&fit(
            &x,
            &y,
            &TrainSpec {
                method,
                kernels: "rbf(0.3|1|3), linear on all, each".into(),
                ..TrainSpec::default()
            },
        ))
    };
    assert!(at(4) <= at(1));
}
