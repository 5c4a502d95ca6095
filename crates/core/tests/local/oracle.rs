//! Against an independent solver: optima, memberships, gates, gradients.

use mercer::{
    TrainSpec,
    data::Target,
    gram::{Budget, GramSource, Scratch, Stack},
    kernels::Normalize,
    linalg::Matrix,
    localize::{Clusters, block_alignment, centred_alignments},
    loss::Hinge,
    machine::{Fitting, Task},
    model::NewRows,
    outer::{GroupGate, KernelGate, Part, Problem, gate_value},
    prepare::{Prepared, Regions},
    request::{Evenness, GateName, Storage},
    trace::{Silent, Status},
};
use mercer_testkit::oracle::{Case, cases, stack};

use super::{Bracket, clmkl, close, farthest, transposed};

/// The oracle's cone solver replaces an exponent by a nearby fraction: 1.333 by 1021/766.
fn case_exponent(case: &Case) -> f64 {
    let p = case.number("input/p");
    if p == 1.333 { 1021.0 / 766.0 } else { p }
}

#[test]
fn convex_localized_optima_and_predictions_are_the_oracles() {
    for case in cases("clmkl") {
        let (kernels, new) = (case.matrices("input/K"), case.matrices("input/Kt"));
        let (c, c_new) =
            (transposed(&case.matrix("input/c")), transposed(&case.matrix("input/c_test")));
        let optimum = case.number("expect/objective");
        let (n, m) = (kernels[0].rows(), kernels.len());
        let (train, block) = (stack(&kernels), stack(&new));
        for storage in [Storage::Dense, Storage::LowRank] {
            for tol in [1e-3, 1e-6, 1e-9] {
                let method = clmkl(3, None, case_exponent(&case));
                let spec = TrainSpec { max_iter: 3000, ..case.spec(method, tol, storage) };
                let name = format!("{} {storage:?} tol {tol:e}", case.name);
                let view = Stack { rows: n, cols: n, terms: m, data: &train };
                let prepared = Prepared::from_stack(view, &case.target(), None, &spec).unwrap();
                let prepared = prepared.with_regions(Regions::Memberships(c.clone())).unwrap();
                let mut watch = Bracket { optimum, last: f64::INFINITY, name: name.clone() };
                let model = prepared.fit(&spec, &mut watch).unwrap();
                let got = model.certificate();
                assert!(got.gap <= tol && got.status == Status::Optimal, "{name}: {got:?}");
                case.check_objective(got.primal, tol, &name);
                if tol > 1e-9 {
                    continue;
                }
                if case.unique("theta") {
                    let worst = farthest(&model.machines[0].weights, &case.vector("expect/theta"));
                    assert!(worst < 1e-3, "{name}: weights off by {worst:e}");
                }
                if case.unique("b") {
                    let view = Stack { rows: new[0].rows(), cols: n, terms: m, data: &block };
                    let f = model.decision_at(NewRows::Kernels(view), Some(&c_new)).unwrap();
                    let worst = farthest(f.data(), &case.vector("expect/f_test"));
                    assert!(worst < 1e-3, "{name}: predictions off by {worst:e}");
                    assert!(
                        model.decision_precomputed(view).is_err(),
                        "memberships of new rows are needed"
                    );
                }
            }
        }
    }
}

#[test]
fn memberships_of_training_and_new_rows_are_the_oracles() {
    for case in cases("clmkl") {
        let (kernels, new) = (case.matrices("input/K"), case.matrices("input/Kt"));
        let labels: Vec<usize> = case.vector("input/labels").iter().map(|l| *l as usize).collect();
        let hard = case.name.contains("hard");
        let level =
            if hard { Evenness::HARD } else { Evenness::Average(case.number("input/evenness")) };
        let loss = case.loss();
        let spec = TrainSpec {
            method: clmkl(3, Some(level), case_exponent(&case)),
            normalize: Normalize::None,
            loss: Some(loss),
            epsilon: Some(0.1),
            ..TrainSpec::default()
        };
        let (n, m) = (kernels[0].rows(), kernels.len());
        let (train, block) = (stack(&kernels), stack(&new));
        let view = Stack { rows: n, cols: n, terms: m, data: &train };
        let prepared = Prepared::from_stack(view, &case.target(), None, &spec).unwrap();
        let model = prepared
            .with_regions(Regions::Labels(labels))
            .unwrap()
            .fit(&spec, &mut Silent)
            .unwrap();
        for (rows, data, want) in [(n, &train, "input/c"), (new[0].rows(), &block, "input/c_test")]
        {
            let view = Stack { rows, cols: n, terms: m, data };
            let got = model.memberships(NewRows::Kernels(view), None).unwrap();
            let worst = farthest(got[0].data(), transposed(&case.matrix(want)).data());
            assert!(worst < 1e-9, "{} {want}: off by {worst:e}", case.name);
        }
    }
}

/// Ready-made kernels as terms, and a task to fit.
pub struct Small {
    pub prepared: Prepared,
    pub y: Vec<f64>,
    pub cost: Vec<f64>,
}

impl Small {
    pub fn new(case: &Case) -> Self {
        let kernels = case.matrices("input/K");
        let (n, m, y) = (kernels[0].rows(), kernels.len(), case.vector("input/y"));
        let spec = TrainSpec {
            normalize: Normalize::None,
            storage: Storage::Dense,
            ..TrainSpec::default()
        };
        let data = stack(&kernels);
        let target = Target::classes(&y.iter().map(ToString::to_string).collect::<Vec<_>>());
        let view = Stack { rows: n, cols: n, terms: m, data: &data };
        Self {
            prepared: Prepared::from_stack(view, &target, None, &spec).unwrap(),
            cost: vec![case.number("input/C"); n],
            y,
        }
    }

    /// What `with` makes of the problem.
    pub fn problem<T>(&self, with: impl FnOnce(&Problem<'_>) -> T) -> T {
        let fitting = Fitting::Hinge(Hinge);
        let machine = fitting.machine();
        let task = Task { y: &self.y, cost: &self.cost, loss: fitting.loss(), intercept: true };
        let problem = Problem {
            grams: self.prepared.grams(),
            parts: vec![Part { task, rows: None }],
            machine: &*machine,
            budget: Budget { bytes: 1 << 30 },
            scratch: Scratch::default(),
            tol: 1e-3,
            max_iter: 500,
            working_set: true,
            screening: true,
        };
        with(&problem)
    }
}

#[test]
fn gates_of_lmkl_and_their_gradients_are_the_oracles() {
    for case in cases("lmkl") {
        let small = Small::new(&case);
        let gate_index = case.number("input/gate") as usize;
        let k0 = small.prepared.grams().combine(
            &(0..small.prepared.grams().n_terms())
                .map(|m| f64::from(m == gate_index))
                .collect::<Vec<_>>(),
        );
        let kernels = small.prepared.grams().n_terms();
        let gate = KernelGate { kernel: &k0, kernels, form: GateName::Softmax };
        let z: Vec<f64> = [case.vector("input/R"), case.vector("input/v0")].concat();
        let at = small.problem(|p| gate_value(p, &gate, &z, 1e-12).unwrap());
        assert!(farthest(at.gates.data(), &case.vector("expect/eta")) < 1e-9);
        assert!(close(at.value, case.number("expect/objective"), 1e-6), "{}", at.value);
        let want: Vec<f64> = [case.vector("expect/dJ_dR"), case.vector("expect/dJ_dv0")].concat();
        let scale = want.iter().fold(0.0f64, |m, x| m.max(x.abs()));
        assert!(
            farthest(&at.gradient, &want) < 1e-4 * scale,
            "{:e}",
            farthest(&at.gradient, &want)
        );
    }
}

#[test]
fn groups_gates_and_gradients_of_glmkl_are_the_oracles() {
    for case in cases("glmkl") {
        let small = Small::new(&case);
        let grams = small.prepared.grams();
        let labels: Vec<usize> = case.vector("input/labels").iter().map(|l| *l as usize).collect();
        let (groups, p) = (case.number("input/G") as usize, case.number("input/p"));
        let weights = centred_alignments(grams, &small.y);
        assert!(farthest(&weights, &case.vector("expect/ckta")) < 1e-9, "{}", case.name);
        let mut v = Matrix::zeros(groups, grams.n_terms());
        for g in 0..groups {
            let rows: Vec<usize> = (0..labels.len()).filter(|&i| labels[i] == g).collect();
            (0..grams.n_terms())
                .for_each(|m| v[(g, m)] = block_alignment(grams, m, &rows, &small.y));
        }
        assert!(farthest(v.data(), &case.vector("expect/alignment")) < 1e-9, "{}", case.name);
        let (a, b) = (case.vector("input/a"), case.vector("input/b"));
        let z: Vec<f64> = (0..a.len()).map(|k| a[k] * v.data()[k] + b[k]).collect();
        let gate = GroupGate { labels: &labels, p, alignments: &v };
        assert!(
            farthest(gate.betas(&z).data(), &case.vector("expect/beta")) < 1e-9,
            "{}",
            case.name
        );
        let at = small.problem(|problem| gate_value(problem, &gate, &z, 1e-12).unwrap());
        assert!(close(at.value, case.number("expect/svm_objective"), 1e-6), "{}", case.name);
        let want = case.vector("expect/d_objective_d_b");
        let scale = want.iter().fold(0.0f64, |m, x| m.max(x.abs()));
        assert!(
            farthest(&at.gradient, &want) < 1e-4 * scale,
            "{}: {:?} {want:?}",
            case.name,
            at.gradient
        );
        // New rows: the nearest centre of the same weighted kernel.
        let clusters = Clusters::new(&grams.combine(&weights), labels.clone()).unwrap();
        let new = case.matrices("input/Kt");
        let nearest = |i: usize| {
            let distance = |g: usize| {
                let coef = clusters.distance_coefficients(g);
                let k0 =
                    |l: usize| (0..new.len()).map(|m| weights[m] * new[m][(i, l)]).sum::<f64>();
                clusters.centre_norms[g] + (0..coef.len()).map(|l| coef[l] * k0(l)).sum::<f64>()
            };
            (0..groups).fold(0, |b, g| if distance(g) < distance(b) { g } else { b })
        };
        let found: Vec<f64> = (0..new[0].rows()).map(|i| nearest(i) as f64).collect();
        assert_eq!(found, case.vector("expect/labels_test"), "{}", case.name);
    }
}
