//! The localized family: an independent solver's optima, two roads to one answer, gradients, certificates.

use std::ops::ControlFlow;

use mercer::{
    Model, TrainSpec,
    data::{Dataset, Rng, Target, synthetic},
    gram::{Budget, GramSource, Stack},
    kernels::Normalize,
    linalg::{Matrix, threads},
    localize::{
        Clusters, LocalizedGramSet, block_alignment, centred_alignments, evenness, kernel_kmeans, memberships,
        sharpness,
    },
    loss::Hinge,
    machine::{Fitting, Task},
    methods::{
        Evenness, Gate, GateName, GroupBy, GroupGate, KernelGate, LossName, MethodSpec, Part, Prepared, Problem,
        Regions, Solver, Storage, gate_value,
    },
    model::NewRows,
    trace::{IterRecord, Observer, Silent, Status},
    weights::{LpBall, PerRegion, Separable, WeightSet},
};
use mercer_testkit::oracle::{Case, cases, stack};

const BANK: &str = "rbf(0.5|1|2), poly(1..2) on all; rbf(1), linear on each";

fn named(name: &str) -> MethodSpec {
    MethodSpec::named(name).unwrap()
}

/// `clmkl` with some of its parameters changed.
fn clmkl(clusters: usize, level: Option<Evenness>, exponent: f64) -> MethodSpec {
    let MethodSpec::Clmkl { v, cluster_kernel, n_init, regions, seed, .. } = named("clmkl") else { unreachable!() };
    MethodSpec::Clmkl { n_clusters: clusters, evenness: level, p: exponent, v, cluster_kernel, n_init, regions, seed }
}

fn with_v(method: MethodSpec, net: f64) -> MethodSpec {
    let MethodSpec::Clmkl { n_clusters, evenness, p, cluster_kernel, n_init, regions, seed, .. } = method else {
        unreachable!()
    };
    MethodSpec::Clmkl { n_clusters, evenness, p, v: Some(net), cluster_kernel, n_init, regions, seed }
}

fn glmkl(groups: usize, norm: f64) -> MethodSpec {
    MethodSpec::Glmkl { n_groups: groups, p: norm, groups: None, n_init: 1, seed: 0 }
}

fn spec(method: MethodSpec) -> TrainSpec {
    TrainSpec { method, kernels: BANK.into(), c: 5.0, ..TrainSpec::default() }
}

fn fit(data: &Dataset, target: &Target, spec: &TrainSpec) -> Model {
    mercer::train(data, target, None, spec, &mut Silent).unwrap()
}

fn primal(model: &Model) -> f64 {
    model.certificate().primal
}

fn close(a: f64, b: f64, relative: f64) -> bool {
    (a - b).abs() <= relative * a.abs().max(b.abs())
}

fn farthest(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

fn transposed(m: &Matrix) -> Matrix {
    let mut out = Matrix::zeros(m.cols(), m.rows());
    for i in 0..m.rows() {
        for j in 0..m.cols() {
            out[(j, i)] = m[(i, j)];
        }
    }
    out
}

/// Checks that bounds bracket the optimum, and that the objective never rises.
struct Bracket {
    optimum: f64,
    last: f64,
    name: String,
}

impl Observer for Bracket {
    fn on_iteration(&mut self, r: &IterRecord) -> ControlFlow<()> {
        // The oracle knows its optimum to 1e-7.
        let slack = 2e-7 * self.optimum.abs();
        assert!(r.dual <= self.optimum + slack, "{}: lower bound {} above {}", self.name, r.dual, self.optimum);
        assert!(r.objective >= self.optimum - slack, "{}: {} below {}", self.name, r.objective, self.optimum);
        assert!(r.objective <= self.last, "{}: the objective rose", self.name);
        self.last = r.objective;
        ControlFlow::Continue(())
    }
}

/// Notes every objective.
#[derive(Default)]
struct Heights(Vec<f64>);

impl Observer for Heights {
    fn on_iteration(&mut self, r: &IterRecord) -> ControlFlow<()> {
        self.0.push(r.objective);
        ControlFlow::Continue(())
    }
}

// ------------------------------------------------------------------ oracle

fn case_loss(case: &Case) -> LossName {
    match case.text("input/loss") {
        "hinge" => LossName::Hinge,
        "eps" => LossName::EpsilonInsensitive,
        "squared" => LossName::Squared,
        "logistic" => LossName::Logistic,
        other => panic!("unknown loss {other}"),
    }
}

fn case_target(case: &Case, loss: LossName) -> Target {
    let y = case.vector("input/y");
    if matches!(loss, LossName::Hinge | LossName::Logistic) {
        return Target::classes(&y.iter().map(|v| format!("{v}")).collect::<Vec<_>>());
    }
    Target::Values(y)
}

/// The oracle's cone solver replaces an exponent by a nearby fraction: 1.333 by 1021/766.
fn case_exponent(case: &Case) -> f64 {
    let p = case.number("input/p");
    if p == 1.333 { 1021.0 / 766.0 } else { p }
}

#[test]
fn convex_localized_optima_and_predictions_are_the_oracles() {
    for case in cases("clmkl") {
        let (kernels, new) = (case.matrices("input/K"), case.matrices("input/Kt"));
        let (c, c_new) = (transposed(&case.matrix("input/c")), transposed(&case.matrix("input/c_test")));
        let (loss, optimum) = (case_loss(&case), case.number("expect/objective"));
        let (n, m) = (kernels[0].rows(), kernels.len());
        let (train, block) = (stack(&kernels), stack(&new));
        for storage in [Storage::Dense, Storage::LowRank] {
            for tol in [1e-3, 1e-6, 1e-9] {
                let spec = TrainSpec {
                    method: clmkl(3, None, case_exponent(&case)),
                    normalize: Normalize::None,
                    c: case.number("input/C"),
                    loss: Some(loss),
                    epsilon: Some(case.number("input/eps")),
                    tol,
                    max_iter: 3000,
                    storage,
                    ..TrainSpec::default()
                };
                let name = format!("{} {storage:?} tol {tol:e}", case.name);
                let view = Stack { rows: n, cols: n, terms: m, data: &train };
                let prepared = Prepared::from_stack(view, &case_target(&case, loss), None, &spec).unwrap();
                let prepared = prepared.with_regions(Regions::Memberships(c.clone())).unwrap();
                let mut watch = Bracket { optimum, last: f64::INFINITY, name: name.clone() };
                let model = prepared.fit(&spec, &mut watch).unwrap();
                let got = model.certificate();
                assert!(got.gap <= tol && got.status == Status::Optimal, "{name}: {got:?}");
                let error = (got.primal - optimum) / optimum;
                assert!(error > -1e-6 && error < (2.0 * tol).max(1e-5), "{name}: off by {error:e}");
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
                    assert!(model.decision_precomputed(view).is_err(), "memberships of new rows are needed");
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
        let level = if hard { Evenness::HARD } else { Evenness::Average(case.number("input/evenness")) };
        let loss = case_loss(&case);
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
        let prepared = Prepared::from_stack(view, &case_target(&case, loss), None, &spec).unwrap();
        let model = prepared.with_regions(Regions::Labels(labels)).unwrap().fit(&spec, &mut Silent).unwrap();
        for (rows, data, want) in [(n, &train, "input/c"), (new[0].rows(), &block, "input/c_test")] {
            let view = Stack { rows, cols: n, terms: m, data };
            let got = model.memberships(NewRows::Kernels(view), None).unwrap();
            let worst = farthest(got[0].data(), transposed(&case.matrix(want)).data());
            assert!(worst < 1e-9, "{} {want}: off by {worst:e}", case.name);
        }
    }
}

/// Ready-made kernels as terms, and a task to fit.
struct Small {
    prepared: Prepared,
    y: Vec<f64>,
    cost: Vec<f64>,
}

impl Small {
    fn new(case: &Case) -> Self {
        let kernels = case.matrices("input/K");
        let (n, m, y) = (kernels[0].rows(), kernels.len(), case.vector("input/y"));
        let spec = TrainSpec { normalize: Normalize::None, storage: Storage::Dense, ..TrainSpec::default() };
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
    fn problem<T>(&self, with: impl FnOnce(&Problem<'_>) -> T) -> T {
        let fitting = Fitting::Hinge(Hinge);
        let machine = fitting.machine();
        let task = Task { y: &self.y, cost: &self.cost, loss: fitting.loss(), intercept: true };
        let problem = Problem {
            grams: self.prepared.grams(),
            parts: vec![Part { task, rows: None }],
            machine: &*machine,
            room: Budget { bytes: 1 << 30 },
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
        let k0 = small
            .prepared
            .grams()
            .combine(&(0..small.prepared.grams().n_terms()).map(|m| f64::from(m == gate_index)).collect::<Vec<_>>());
        let kernels = small.prepared.grams().n_terms();
        let gate = KernelGate { kernel: &k0, kernels, form: GateName::Softmax };
        let z: Vec<f64> = [case.vector("input/R"), case.vector("input/v0")].concat();
        let at = small.problem(|p| gate_value(p, &gate, &z, 1e-12).unwrap());
        assert!(farthest(at.gates.data(), &case.vector("expect/eta")) < 1e-9);
        assert!(close(at.value, case.number("expect/objective"), 1e-6), "{}", at.value);
        let want: Vec<f64> = [case.vector("expect/dJ_dR"), case.vector("expect/dJ_dv0")].concat();
        let scale = want.iter().fold(0.0f64, |m, x| m.max(x.abs()));
        assert!(farthest(&at.gradient, &want) < 1e-4 * scale, "{:e}", farthest(&at.gradient, &want));
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
            (0..grams.n_terms()).for_each(|m| v[(g, m)] = block_alignment(grams, m, &rows, &small.y));
        }
        assert!(farthest(v.data(), &case.vector("expect/alignment")) < 1e-9, "{}", case.name);
        let (a, b) = (case.vector("input/a"), case.vector("input/b"));
        let z: Vec<f64> = (0..a.len()).map(|k| a[k] * v.data()[k] + b[k]).collect();
        let gate = GroupGate { labels: &labels, p, alignments: &v };
        assert!(farthest(gate.betas(&z).data(), &case.vector("expect/beta")) < 1e-9, "{}", case.name);
        let at = small.problem(|problem| gate_value(problem, &gate, &z, 1e-12).unwrap());
        assert!(close(at.value, case.number("expect/svm_objective"), 1e-6), "{}", case.name);
        let want = case.vector("expect/d_objective_d_b");
        let scale = want.iter().fold(0.0f64, |m, x| m.max(x.abs()));
        assert!(farthest(&at.gradient, &want) < 1e-4 * scale, "{}: {:?} {want:?}", case.name, at.gradient);
        // New rows: the nearest centre of the same weighted kernel.
        let clusters = Clusters::new(&grams.combine(&weights), labels.clone()).unwrap();
        let new = case.matrices("input/Kt");
        let nearest = |i: usize| {
            let distance = |g: usize| {
                let coef = clusters.distance_coefficients(g);
                let k0 = |l: usize| (0..new.len()).map(|m| weights[m] * new[m][(i, l)]).sum::<f64>();
                clusters.centre_norms[g] + (0..coef.len()).map(|l| coef[l] * k0(l)).sum::<f64>()
            };
            (0..groups).fold(0, |b, g| if distance(g) < distance(b) { g } else { b })
        };
        let found: Vec<f64> = (0..new[0].rows()).map(|i| nearest(i) as f64).collect();
        assert_eq!(found, case.vector("expect/labels_test"), "{}", case.name);
    }
}

// ------------------------------------------------------------------ terms and sets

#[test]
fn scaled_terms_are_what_they_say_in_every_storage() {
    let (x, y) = synthetic::toy1(40, 2);
    for storage in [Storage::Dense, Storage::LowRank, Storage::Auto] {
        let spec = TrainSpec { storage, ..spec(named("uniform")) };
        let prepared = Prepared::from_table(&x, &y, None, &spec).unwrap();
        let base = prepared.grams();
        let (n, kernels, mut rng) = (base.n_samples(), base.n_terms(), Rng::new(4));
        let c = Matrix::new(n, 3, (0..3 * n).map(|_| rng.uniform()).collect()).unwrap();
        let v: Vec<f64> = (0..n).map(|_| rng.normal()).collect();
        for room in [1u64 << 30, 0] {
            let local = LocalizedGramSet::cross(base, &c, Budget { bytes: room });
            assert_eq!(local.n_terms(), 3 * kernels);
            let theta: Vec<f64> =
                (0..local.n_terms()).map(|t| f64::from(u8::from(t % 3 != 1)) * (1.0 + t as f64)).collect();
            let (combined, forms) = (local.combine(&theta), local.quad_forms(&v));
            let mut sum = Matrix::zeros(n, n);
            for t in 0..local.n_terms() {
                let (m, j) = (t % kernels, t / kernels);
                let (mut product, mut row, mut form) = (vec![0.0; n], vec![0.0; n], 0.0);
                local.apply(t, &v, &mut product);
                for i in 0..n {
                    base.row(m, i, &mut row);
                    row.iter_mut().enumerate().for_each(|(l, k)| *k *= c[(i, j)] * c[(l, j)]);
                    let mut own = vec![0.0; n];
                    local.row(t, i, &mut own);
                    assert!(farthest(&own, &row) < 1e-12);
                    let naive: f64 = row.iter().zip(&v).map(|(k, v)| k * v).sum();
                    assert!((product[i] - naive).abs() < 1e-10, "{storage:?} term {t} row {i}");
                    form += v[i] * naive;
                    (0..n).for_each(|l| sum[(i, l)] += theta[t] * row[l]);
                }
                assert!((forms[t] - form).abs() < 1e-9, "{storage:?} term {t}");
                if let Some(f) = local.factor(t) {
                    let whole = base.factor(m).unwrap().row(3).iter().map(|x| c[(3, j)] * x).collect::<Vec<_>>();
                    assert!(farthest(&f.row(3), &whole) < 1e-14);
                    assert!(room > 0 && f.residual <= base.residual(m));
                }
            }
            let scale = sum.data().iter().fold(0.0f64, |m, x| m.max(x.abs()));
            assert!((0..n).all(|i| farthest(combined.row(i), sum.row(i)) < 1e-12 * scale), "{storage:?}");
        }
        let gates = Matrix::new(n, kernels, (0..n * kernels).map(|_| rng.uniform()).collect()).unwrap();
        let paired = LocalizedGramSet::paired(base, &gates, Budget { bytes: 1 << 30 });
        let (mut row, mut own) = (vec![0.0; n], vec![0.0; n]);
        paired.row(5, 7, &mut own);
        base.row(5, 7, &mut row);
        assert!((0..n).all(|l| (own[l] - gates[(7, 5)] * gates[(l, 5)] * row[l]).abs() < 1e-13));
    }
}

#[test]
fn the_product_of_sets_answers_region_by_region() {
    let (mut rng, regions, size) = (Rng::new(3), 3, 4);
    for p in [1.0, 1.5, 2.0, f64::INFINITY] {
        let (one, set) = (LpBall::new(p).unwrap(), PerRegion::new(LpBall::new(p).unwrap(), regions));
        let s: Vec<f64> = (0..12).map(|k| if k / size == 1 { 0.0 } else { rng.uniform() }).collect();
        let parts: f64 = s.chunks(size).map(|s| one.support(s)).sum();
        assert!(close(set.support(&s), parts, 1e-14));
        let response = set.best_response(&s);
        assert!(set.load(&response) <= 1.0 + 1e-12 && response[size..2 * size].iter().all(|t| *t > 0.0));
        let price = |theta: &[f64]| -> f64 { s.iter().zip(theta).filter(|(s, _)| **s > 0.0).map(|(s, t)| s / t).sum() };
        for _ in 0..50 {
            let mut other: Vec<f64> = (0..12).map(|_| rng.uniform() + 1e-3).collect();
            set.tighten(&mut other);
            assert!((set.load(&other) - 1.0).abs() < 1e-12);
            assert!(price(&response) <= price(&other) * (1.0 + 1e-12), "p = {p}");
        }
        let groups = set.groups(12);
        assert_eq!(groups.iter().map(ExactSizeIterator::len).sum::<usize>(), 12);
        let mut nothing = vec![0.0; 12];
        set.tighten(&mut nothing);
        assert_eq!(nothing, set.start(12));
    }
}

// ------------------------------------------------------------------ two roads, one answer

#[test]
fn one_region_is_the_global_method() {
    let (x, y) = synthetic::toy1(60, 3);
    let tight = |method| TrainSpec { tol: 1e-7, max_iter: 3000, ..spec(method) };
    for p in [1.0, 1.1, 4.0 / 3.0, 2.0, 4.0, f64::INFINITY] {
        for level in [None, Some(Evenness::HARD)] {
            let local = fit(&x, &y, &tight(clmkl(1, level, p)));
            let global = fit(&x, &y, &tight(MethodSpec::Lp { p, solver: Solver::Auto }));
            assert!(close(primal(&local), primal(&global), 2e-7), "p = {p}: {} {}", primal(&local), primal(&global));
            let (f, g) = (local.decision(&x).unwrap(), global.decision(&x).unwrap());
            assert!(farthest(f.data(), g.data()) < 2e-2, "p = {p}: {:e}", farthest(f.data(), g.data()));
        }
    }
    for v in [0.2, 0.7, 1.0] {
        let local = fit(&x, &y, &tight(with_v(clmkl(1, None, 2.0), v)));
        let global = fit(&x, &y, &tight(MethodSpec::Gmkl { v, p: 2.0, solver: Solver::Auto }));
        assert!(close(primal(&local), primal(&global), 2e-7), "v = {v}");
    }
}

#[test]
fn equal_memberships_are_the_global_method_at_a_lower_price() {
    let (x, y) = synthetic::toy1(50, 5);
    for (l, p) in [(2, 1.0), (3, 4.0 / 3.0), (4, 2.0)] {
        let kernels = "rbf(0.5|1|2), linear on all; rbf(1) on cols(1-4)".into();
        let local = TrainSpec { tol: 1e-6, kernels, ..spec(clmkl(l, None, p)) };
        let even = Matrix::new(50, l, vec![1.0 / l as f64; 50 * l]).unwrap();
        let prepared = Prepared::from_table(&x, &y, None, &local).unwrap();
        let model = prepared.with_regions(Regions::Memberships(even)).unwrap().fit(&local, &mut Silent).unwrap();
        let method = MethodSpec::Lp { p, solver: Solver::Auto };
        let global = fit(&x, &y, &TrainSpec { method, c: local.c / l as f64, ..local.clone() });
        assert!(close(primal(&model), l as f64 * primal(&global), 2e-6), "{l} regions, p = {p}");
    }
}

#[test]
fn hard_regions_are_the_limit_of_soft_ones() {
    let (x, y) = synthetic::four_gaussians(80, 2);
    let at = |level| fit(&x, &y, &TrainSpec { tol: 1e-7, ..spec(clmkl(4, Some(level), 2.0)) });
    let hard = at(Evenness::HARD);
    let mut last = f64::INFINITY;
    for excess in [1e-2, 1e-3, 1e-4, 1e-6, 1e-9] {
        let soft = at(Evenness::Average(0.25 + excess));
        let apart = (primal(&soft) - primal(&hard)).abs() / primal(&hard);
        assert!(apart <= last.max(1e-6), "{excess:e}: {apart:e} after {last:e}");
        last = apart;
    }
    assert!(last < 1e-5, "{last:e}");
    assert_eq!(MethodSpec::named("hlmkl").unwrap(), clmkl(3, Some(Evenness::HARD), 2.0));
}

#[test]
fn two_hard_regions_without_intercept_are_two_problems() {
    let (x, y) = synthetic::toy1(60, 9);
    let plain = |method| TrainSpec {
        fit_intercept: false,
        normalize: Normalize::None,
        standardize: false,
        tol: 1e-7,
        max_iter: 3000,
        ..spec(method)
    };
    for p in [1.0, 2.0] {
        let local = plain(clmkl(2, None, p));
        let labels: Vec<usize> = (0..60).map(|i| usize::from(i >= 25)).collect();
        let prepared = Prepared::from_table(&x, &y, None, &local).unwrap();
        let both = prepared.with_regions(Regions::Labels(labels)).unwrap().fit(&local, &mut Silent).unwrap();
        let mut apart = 0.0;
        for rows in [(0..25).collect::<Vec<_>>(), (25..60).collect()] {
            let own = fit(&x.select(&rows), &y.select(&rows), &plain(MethodSpec::Lp { p, solver: Solver::Auto }));
            apart += primal(&own);
        }
        assert!(close(primal(&both), apart, 3e-7), "p = {p}: {} {apart}", primal(&both));
    }
}

#[test]
fn regions_from_a_column_are_those_given_by_labels() {
    let (x, y) = synthetic::toy1(60, 4);
    let mut data = x.features().clone();
    (0..60).for_each(|i| data[(i, 19)] = [3.5, -1.0, 7.0][i % 3]);
    let x = Dataset::new(data, x.columns().to_vec()).unwrap();
    for method in ["clmkl", "hlmkl", "glmkl", "gsmkl"] {
        let mut column = named(method);
        match &mut column {
            MethodSpec::Clmkl { regions, .. } => *regions = Some("x20".into()),
            MethodSpec::Glmkl { groups, .. } | MethodSpec::Gsmkl { groups, .. } => *groups = Some("x20".into()),
            _ => unreachable!(),
        }
        let by_column = fit(&x, &y, &spec(column));
        assert!(matches!(by_column.status(), Status::Optimal | Status::Stationary), "{method}");
        // Regions are numbered by the order of the values.
        let labels = (0..60).map(|i| [1, 0, 2][i % 3]).collect();
        let prepared = Prepared::from_table(&x, &y, None, &spec(named(method))).unwrap();
        let by_label =
            prepared.with_regions(Regions::Labels(labels)).unwrap().fit(&spec(named(method)), &mut Silent).unwrap();
        assert_eq!(by_column.machines[0].weights, by_label.machines[0].weights, "{method}");
        let c = by_column.memberships(NewRows::Table(&x), None).unwrap();
        assert_eq!(c[0].row(1), [1.0, 0.0, 0.0]);
        let mut strange = x.features().clone();
        strange[(2, 19)] = 8.0;
        let strange = Dataset::new(strange, x.columns().to_vec()).unwrap();
        let message = by_column.decision(&strange).unwrap_err().to_string();
        assert!(
            message.contains("x20") && message.contains("row 3 has 8") && message.contains("-1, 3.5, 7"),
            "{message}"
        );
    }
}

#[test]
fn a_table_and_its_ready_made_kernels_give_the_same_model() {
    let (x, y) = synthetic::four_gaussians(60, 8);
    let (new, _) = synthetic::four_gaussians(23, 9);
    let kernels = "rbf(0.5|1|3), linear on all";
    let values = |a: &Dataset, b: &Dataset| -> Vec<f64> {
        let product = |x: &[f64], z: &[f64]| x.iter().zip(z).map(|(a, b)| a * b).sum::<f64>();
        let distance = |x: &[f64], z: &[f64]| x.iter().zip(z).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
        let cell = |i: usize, j: usize| {
            let (x, z) = (a.features().row(i), b.features().row(j));
            let mut out: Vec<f64> = [0.5f64, 1.0, 3.0].map(|w| (-distance(x, z) / (2.0 * w * w)).exp()).to_vec();
            out.push(product(x, z));
            out
        };
        (0..a.len()).flat_map(|i| (0..b.len()).flat_map(move |j| cell(i, j))).collect()
    };
    for method in ["clmkl", "hlmkl", "lmkl", "glmkl", "gsmkl"] {
        for storage in [Storage::Dense, Storage::LowRank] {
            for normalize in [Normalize::Multiplicative, Normalize::Center, Normalize::Trace] {
                let c = if normalize == Normalize::Trace { 60.0 } else { 1.0 };
                let spec = TrainSpec {
                    method: named(method),
                    kernels: kernels.into(),
                    standardize: false,
                    storage,
                    normalize,
                    c,
                    tol: 1e-6,
                    // Learned gates amplify what rounding changes: compare a few steps.
                    max_iter: if method.contains("clmkl") || method == "hlmkl" { 500 } else { 4 },
                    ..TrainSpec::default()
                };
                let table = fit(&x, &y, &spec);
                let (train, block) = (values(&x, &x), values(&new, &x));
                let view = Stack { rows: 60, cols: 60, terms: 4, data: &train };
                let ready = mercer::train_precomputed(view, &y, None, &spec, &mut Silent).unwrap();
                let name = format!("{method} {storage:?} {normalize:?}");
                assert!(close(primal(&table), primal(&ready), 1e-5), "{name}: {} {}", primal(&table), primal(&ready));
                let view = Stack { rows: 23, cols: 60, terms: 4, data: &block };
                let rows = [NewRows::Table(&new), NewRows::Kernels(view)];
                let c = [table.memberships(rows[0], None).unwrap(), ready.memberships(rows[1], None).unwrap()];
                let w = [table.local_weights(rows[0], None).unwrap(), ready.local_weights(rows[1], None).unwrap()];
                assert!(farthest(c[0][0].data(), c[1][0].data()) < 1e-3, "{name}");
                assert!(farthest(w[0][0].data(), w[1][0].data()) < 1e-2, "{name}");
                let (f, g) = (table.decision(&new).unwrap(), ready.decision_precomputed(view).unwrap());
                assert!(farthest(f.data(), g.data()) < 1e-2, "{name}: {:e}", farthest(f.data(), g.data()));
            }
        }
    }
}

/// f on the training rows, from the model's stored functions, against what the certificate speaks of: at the optimum of the hinge loss rows
/// with a multiplier strictly inside its bounds lie on the margin.
#[test]
fn stored_functions_are_the_ones_that_were_certified() {
    let (x, y) = synthetic::four_gaussians(100, 1);
    let Target::Classes { labels, .. } = &y else { unreachable!() };
    for method in ["clmkl", "hlmkl", "lmkl", "glmkl", "gsmkl"] {
        for kernels in ["rbf(0.3|1|3), linear on all, each", "poly(1..3) on all, each; rbf(1) on each"] {
            let spec = TrainSpec { method: named(method), kernels: kernels.into(), tol: 1e-6, ..TrainSpec::default() };
            let model = fit(&x, &y, &spec);
            let f = model.decision(&x).unwrap();
            let machine = &model.machines[0];
            let mut free = 0;
            for (&i, a) in
                machine.support.iter().zip(&machine.dual_coef).filter(|(_, a)| a.abs() > 0.02 && a.abs() < 0.98)
            {
                let margin = f[(i, 0)] * if labels[i] == 1 { 1.0 } else { -1.0 };
                assert!((margin - 1.0).abs() < 2e-2, "{method} {kernels}: row {i} with {a} at {margin}");
                free += 1;
            }
            assert!(free > 3, "{method} {kernels}: {free}");
        }
    }
}

#[test]
fn a_linear_gate_is_the_gate_of_the_linear_kernel() {
    let (x, y) = synthetic::four_gaussians(80, 3);
    let (new, _) = synthetic::four_gaussians(30, 4);
    let with =
        |text: &str| MethodSpec::Lmkl { gate: GateName::Softmax, gate_kernel: Some(text.into()), n_init: 1, seed: 0 };
    let spec = |method| TrainSpec {
        method,
        kernels: "rbf(1), linear on all".into(),
        normalize: Normalize::None,
        ..TrainSpec::default()
    };
    // Kernel 2 of the bank, and a kernel of the gate's own.
    let (own, base) = (fit(&x, &y, &spec(with("linear on all"))), fit(&x, &y, &spec(with("2"))));
    assert!(close(primal(&own), primal(&base), 1e-9));
    let (a, b) = (
        own.local_weights(NewRows::Table(&new), None).unwrap(),
        base.local_weights(NewRows::Table(&new), None).unwrap(),
    );
    assert!(farthest(a[0].data(), b[0].data()) < 1e-9);
    // Its argument is linear: log η_1/η_2 at the mean of two rows is the mean of the two.
    let log_odds = |m: &Matrix, i: usize| (m[(i, 0)] / m[(i, 1)]).ln();
    let mut middle = new.features().clone();
    (0..2).for_each(|j| middle[(2, j)] = 0.5 * (middle[(0, j)] + middle[(1, j)]));
    let w = own.local_weights(NewRows::Table(&Dataset::new(middle, vec![]).unwrap()), None).unwrap();
    assert!((log_odds(&w[0], 2) - 0.5 * (log_odds(&w[0], 0) + log_odds(&w[0], 1))).abs() < 1e-9);
    let loaded = Model::from_bytes(&own.to_bytes().unwrap()).unwrap();
    assert_eq!(loaded.decision(&new).unwrap(), own.decision(&new).unwrap());
}

#[test]
fn one_group_is_lp_with_half_the_exponent() {
    let (x, y) = synthetic::toy1(60, 6);
    for p in [2.0, 3.0, 4.0, 6.0] {
        let grouped = fit(&x, &y, &TrainSpec { tol: 1e-4, ..spec(glmkl(1, p)) });
        let lp = fit(&x, &y, &TrainSpec { tol: 1e-6, ..spec(MethodSpec::Lp { p: p / 2.0, solver: Solver::Auto }) });
        assert!(close(primal(&grouped), primal(&lp), 1e-4), "p = {p}: {} {}", primal(&grouped), primal(&lp));
        assert!(primal(&grouped) >= primal(&lp) * (1.0 - 2e-6), "p = {p}");
        let effective: Vec<f64> = grouped.machines[0].weights.iter().map(|b| b * b).collect();
        let norm: f64 = effective.iter().map(|e| e.powf(p / 2.0)).sum();
        assert!((norm - 1.0).abs() < 1e-12);
        if p > 2.0 {
            assert!(farthest(&effective, &lp.machines[0].weights) < 3e-2, "p = {p}");
        }
    }
}

// ------------------------------------------------------------------ certificates, descent, gradients

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
                let losses = [LossName::Hinge, LossName::SquaredHinge, LossName::Logistic, LossName::Squared];
                let loss = losses[(l + p as usize) % 4];
                let c = fit(&x, &y, &TrainSpec { loss: Some(loss), ..spec(clmkl(l, level, p)) }).certificate();
                assert!(
                    c.status == Status::Optimal && c.gap <= 1e-3 && c.dual <= c.primal,
                    "p {p} l {l} {loss:?}: {c:?}"
                );
                let loss = [LossName::EpsilonInsensitive, LossName::Squared][l % 2];
                let c = fit(&u, &v, &TrainSpec { loss: Some(loss), ..spec(clmkl(l, level, p)) }).certificate();
                assert!(
                    c.status == Status::Optimal && c.gap <= 1e-3 && c.dual <= c.primal,
                    "p {p} l {l} {loss:?}: {c:?}"
                );
            }
        }
    }
    for net in [0.0, 0.3, 0.8, 1.0] {
        let method = with_v(clmkl(4, None, 2.0), net);
        let c = fit(&x, &y, &TrainSpec { group_by: GroupBy::Scope, ..spec(method.clone()) }).certificate();
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
    let sigmoid = MethodSpec::Lmkl { gate: GateName::Sigmoid, gate_kernel: None, n_init: 1, seed: 0 };
    let linear =
        MethodSpec::Lmkl { gate: GateName::Softmax, gate_kernel: Some("linear on all".into()), n_init: 1, seed: 0 };
    for method in [named("lmkl"), sigmoid, linear, glmkl(3, 1.0), glmkl(3, 2.0), glmkl(2, 4.0), named("gsmkl")] {
        for loss in [
            LossName::Hinge,
            LossName::Logistic,
            LossName::SquaredHinge,
            LossName::EpsilonInsensitive,
            LossName::Squared,
        ] {
            let (data, target) =
                if loss == LossName::EpsilonInsensitive || loss == LossName::Squared { (&u, &v) } else { (&x, &y) };
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
            assert_eq!(c.status, Status::Stationary, "{method:?} {loss:?} {c:?} {:?}", model.machines[0].trace.last());
            assert!(c.gap.is_nan() && c.dual.is_nan());
            assert!(heights.0.windows(2).all(|w| w[1] <= w[0]), "{method:?} {loss:?}: {:?}", heights.0);
            assert!(heights.0.len() == 1 || heights.0.last() < heights.0.first());
        }
    }
}

#[test]
fn more_starts_are_never_worse() {
    let (x, y) = synthetic::four_gaussians(60, 6);
    let at = |n_init| {
        let method = MethodSpec::Glmkl { n_groups: 4, p: 2.0, groups: None, n_init, seed: 3 };
        primal(&fit(
            &x,
            &y,
            &TrainSpec { method, kernels: "rbf(0.3|1|3), linear on all, each".into(), ..TrainSpec::default() },
        ))
    };
    assert!(at(4) <= at(1));
}

// ------------------------------------------------------------------ what else must hold

#[test]
fn several_classes_share_regions_and_files_keep_every_bit() {
    let mut rng = Rng::new(12);
    let rows: Vec<f64> =
        (0..90).flat_map(|i| [f64::from(i % 3) + 0.5 * rng.normal(), f64::from(i % 2) + 0.5 * rng.normal()]).collect();
    let x = Dataset::new(Matrix::new(90, 2, rows).unwrap(), vec![]).unwrap();
    let y = Target::classes(&(0..90).map(|i| ["a", "b", "c"][i % 3]).collect::<Vec<_>>());
    for method in ["clmkl", "hlmkl", "lmkl", "glmkl", "gsmkl"] {
        for (shared_weights, multi_class) in [
            (false, mercer::model::Scheme::OneVsRest),
            (true, mercer::model::Scheme::OneVsRest),
            (false, mercer::model::Scheme::OneVsOne),
        ] {
            let spec = TrainSpec {
                method: named(method),
                kernels: "rbf(0.5|2), linear on all".into(),
                shared_weights,
                multi_class,
                ..TrainSpec::default()
            };
            let model = fit(&x, &y, &spec);
            let Target::Classes { labels, .. } = model.predict(&x).unwrap() else { unreachable!() };
            let right = labels.iter().enumerate().filter(|(i, l)| i % 3 == **l).count();
            assert!(right > 70, "{method} {shared_weights} {multi_class:?}: {right}");
            let bytes = model.to_bytes().unwrap();
            let loaded = Model::from_bytes(&bytes).unwrap();
            assert!(loaded.to_bytes().unwrap() == bytes);
            assert_eq!(loaded.decision(&x).unwrap(), model.decision(&x).unwrap());
            let weights = model.local_weights(NewRows::Table(&x), None).unwrap();
            assert!(weights.len() == 3 && weights[0].cols() == 3 && weights[0].rows() == 90);
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_bits_on_any_number_of_threads() {
    let (x, y) = synthetic::four_gaussians(150, 3);
    for method in ["clmkl", "hlmkl", "lmkl", "glmkl", "gsmkl"] {
        let spec = TrainSpec {
            method: named(method),
            kernels: "rbf(0.3|1|3), linear on all, each".into(),
            ..TrainSpec::default()
        };
        let bits = |n| threads::install(Some(n), || fit(&x, &y, &spec).decision(&x).unwrap());
        assert_eq!(bits(1), bits(3), "{method}");
    }
}

#[test]
fn tiny_and_one_class_groups_are_handled() {
    let (x, y) = synthetic::four_gaussians(30, 1);
    for method in [glmkl(15, 4.0), glmkl(30, 2.0), clmkl(30, Some(Evenness::HARD), 1.0), clmkl(12, None, 2.0)] {
        let spec =
            TrainSpec { method: method.clone(), kernels: "rbf(1|3), linear on all".into(), ..TrainSpec::default() };
        let model = fit(&x, &y, &spec);
        assert!(model.decision(&x).unwrap().data().iter().all(|f| f.is_finite()), "{method:?}");
    }
    // A region of one class only.
    let Target::Classes { labels, .. } = &y else { unreachable!() };
    for method in ["hlmkl", "glmkl", "gsmkl"] {
        let spec =
            TrainSpec { method: named(method), kernels: "rbf(1|3), linear on all".into(), ..TrainSpec::default() };
        let prepared = Prepared::from_table(&x, &y, None, &spec).unwrap();
        let model = prepared.with_regions(Regions::Labels(labels.clone())).unwrap().fit(&spec, &mut Silent).unwrap();
        assert!(model.decision(&x).unwrap().data().iter().all(|f| f.is_finite()), "{method}");
    }
}

#[test]
fn rows_of_weight_zero_are_as_good_as_absent() {
    let (x, y) = synthetic::four_gaussians(60, 4);
    let keep: Vec<usize> = (0..60).filter(|i| i % 5 != 0).collect();
    let weight: Vec<f64> = (0..60).map(|i| f64::from(u8::from(i % 5 != 0))).collect();
    for method in ["clmkl", "lmkl", "glmkl"] {
        let spec =
            TrainSpec { method: named(method), kernels: "rbf(0.3|1|3), linear on all".into(), ..TrainSpec::default() };
        let with = mercer::train(&x, &y, Some(&weight), &spec, &mut Silent).unwrap();
        let without = fit(&x.select(&keep), &y.select(&keep), &spec);
        assert_eq!(with.decision(&x).unwrap(), without.decision(&x).unwrap(), "{method}");
    }
}

#[test]
fn what_cannot_be_is_refused_in_words() {
    let (x, y) = synthetic::four_gaussians(20, 1);
    let refused = |spec: TrainSpec, part: &str| {
        let message = mercer::train(&x, &y, None, &spec, &mut Silent).unwrap_err().to_string();
        assert!(message.contains(part), "{part}: {message}");
    };
    refused(spec(clmkl(21, None, 2.0)), "n_clusters");
    refused(spec(clmkl(0, None, 2.0)), "n_clusters");
    refused(spec(clmkl(3, Some(Evenness::Average(0.2)), 2.0)), "evenness");
    refused(spec(clmkl(3, Some(Evenness::Average(1.5)), 2.0)), "evenness");
    refused(spec(clmkl(3, None, 0.5)), "`p`");
    refused(spec(glmkl(3, 0.9)), "`p`");
    refused(spec(glmkl(0, 2.0)), "n_groups");
    refused(TrainSpec { group_by: GroupBy::Scope, ..spec(named("lmkl")) }, "group_by");
    let gate =
        |text: &str| MethodSpec::Lmkl { gate: GateName::Softmax, gate_kernel: Some(text.into()), n_init: 1, seed: 0 };
    refused(spec(gate("99")), "gate_kernel");
    refused(spec(gate("rfb(1)")), "rfb");
    let mut column = named("hlmkl");
    if let MethodSpec::Clmkl { regions, .. } = &mut column {
        *regions = Some("nowhere".into());
    }
    refused(spec(column), "nowhere");
    let given = |regions| {
        let prepared = Prepared::from_table(&x, &y, None, &spec(named("clmkl"))).unwrap();
        prepared.with_regions(regions).and_then(|p| p.fit(&spec(named("clmkl")), &mut Silent)).unwrap_err().to_string()
    };
    assert!(given(Regions::Labels(vec![0; 5])).contains("20"));
    assert!(given(Regions::Labels((0..20).map(|i| 2 * (i % 2)).collect())).contains("region 2 has no row"));
    let uneven = Matrix::new(20, 2, vec![0.4; 40]).unwrap();
    assert!(given(Regions::Memberships(uneven)).contains("add up to 1"));
    let plain = fit(&x, &y, &spec(named("uniform")));
    assert!(plain.memberships(NewRows::Table(&x), None).unwrap_err().to_string().contains("clmkl"));
}

#[test]
fn clustering_alone_is_available_and_reproducible() {
    let (x, y) = synthetic::four_gaussians(120, 1);
    let prepared = Prepared::from_table(&x, &y, None, &spec(named("uniform"))).unwrap();
    let k = prepared.grams().combine(&vec![1.0; prepared.grams().n_terms()]);
    let (a, b) = (kernel_kmeans(&k, 4, 5, 1).unwrap(), kernel_kmeans(&k, 4, 5, 1).unwrap());
    assert_eq!(a, b);
    assert_eq!(a.labels[0], 0);
    let d = a.distances(&k);
    for target in [0.3, 0.5, 0.9] {
        assert!((evenness(&d, sharpness(&d, Some(target)).unwrap()) - target).abs() < 1e-9);
    }
    assert!(memberships(&d, None).data().iter().sum::<f64>() == 120.0);
}
