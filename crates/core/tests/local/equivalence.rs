//! Two roads, one answer.

use mercer::{
    Model, TrainSpec,
    data::{Dataset, Target, synthetic},
    gram::Stack,
    kernels::Normalize,
    linalg::Matrix,
    model::NewRows,
    prepare::{Prepared, Regions},
    request::{
        Clmkl, Evenness, GateName, Glmkl, Gmkl, Gsmkl, Lmkl, Lp, MethodSpec, Solver, Storage,
    },
    trace::{Silent, Status},
};

use super::{clmkl, close, farthest, fit, glmkl, named, primal, spec, with_v};

#[test]
fn one_region_is_the_global_method() {
    let (x, y) = synthetic::toy1(60, 3);
    let tight = |method| TrainSpec { tol: 1e-7, max_iter: 3000, ..spec(method) };
    for p in [1.0, 1.1, 4.0 / 3.0, 2.0, 4.0, f64::INFINITY] {
        for level in [None, Some(Evenness::HARD)] {
            let local = fit(&x, &y, &tight(clmkl(1, level, p)));
            let global = fit(&x, &y, &tight(MethodSpec::Lp(Lp { p, solver: Solver::Auto })));
            assert!(
                close(primal(&local), primal(&global), 2e-7),
                "p = {p}: {} {}",
                primal(&local),
                primal(&global)
            );
            let (f, g) = (local.decision(&x).unwrap(), global.decision(&x).unwrap());
            assert!(
                farthest(f.data(), g.data()) < 2e-2,
                "p = {p}: {:e}",
                farthest(f.data(), g.data())
            );
        }
    }
    for v in [0.2, 0.7, 1.0] {
        let local = fit(&x, &y, &tight(with_v(clmkl(1, None, 2.0), v)));
        let global =
            fit(&x, &y, &tight(MethodSpec::Gmkl(Gmkl { v, p: 2.0, solver: Solver::Auto })));
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
        let model = prepared
            .with_regions(Regions::Memberships(even))
            .unwrap()
            .fit(&local, &mut Silent)
            .unwrap();
        let method = MethodSpec::Lp(Lp { p, solver: Solver::Auto });
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
        let both = prepared
            .with_regions(Regions::Labels(labels))
            .unwrap()
            .fit(&local, &mut Silent)
            .unwrap();
        let mut apart = 0.0;
        for rows in [(0..25).collect::<Vec<_>>(), (25..60).collect()] {
            let own = fit(
                &x.select(&rows),
                &y.select(&rows),
                &plain(MethodSpec::Lp(Lp { p, solver: Solver::Auto })),
            );
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
            MethodSpec::Clmkl(Clmkl { regions, .. }) => *regions = Some("x20".into()),
            MethodSpec::Glmkl(Glmkl { groups, .. }) | MethodSpec::Gsmkl(Gsmkl { groups, .. }) => {
                *groups = Some("x20".into());
            }
            _ => unreachable!(),
        }
        let by_column = fit(&x, &y, &spec(column));
        assert!(matches!(by_column.status(), Status::Optimal | Status::Stationary), "{method}");
        // Regions are numbered by the order of the values.
        let labels = (0..60).map(|i| [1, 0, 2][i % 3]).collect();
        let prepared = Prepared::from_table(&x, &y, None, &spec(named(method))).unwrap();
        let by_label = prepared
            .with_regions(Regions::Labels(labels))
            .unwrap()
            .fit(&spec(named(method)), &mut Silent)
            .unwrap();
        assert_eq!(by_column.machines[0].weights, by_label.machines[0].weights, "{method}");
        let c = by_column.memberships(NewRows::Table(&x), None).unwrap();
        assert_eq!(c[0].row(1), [1.0, 0.0, 0.0]);
        let mut strange = x.features().clone();
        strange[(2, 19)] = 8.0;
        let strange = Dataset::new(strange, x.columns().to_vec()).unwrap();
        let message = by_column.decision(&strange).unwrap_err().to_string();
        assert!(
            message.contains("x20")
                && message.contains("row 3 has 8")
                && message.contains("-1, 3.5, 7"),
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
        let distance =
            |x: &[f64], z: &[f64]| x.iter().zip(z).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
        let cell = |i: usize, j: usize| {
            let (x, z) = (a.features().row(i), b.features().row(j));
            let mut out: Vec<f64> =
                [0.5f64, 1.0, 3.0].map(|w| (-distance(x, z) / (2.0 * w * w)).exp()).to_vec();
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
                assert!(
                    close(primal(&table), primal(&ready), 1e-5),
                    "{name}: {} {}",
                    primal(&table),
                    primal(&ready)
                );
                let view = Stack { rows: 23, cols: 60, terms: 4, data: &block };
                let rows = [NewRows::Table(&new), NewRows::Kernels(view)];
                let c = [
                    table.memberships(rows[0], None).unwrap(),
                    ready.memberships(rows[1], None).unwrap(),
                ];
                let w = [
                    table.local_weights(rows[0], None).unwrap(),
                    ready.local_weights(rows[1], None).unwrap(),
                ];
                assert!(farthest(c[0][0].data(), c[1][0].data()) < 1e-3, "{name}");
                assert!(farthest(w[0][0].data(), w[1][0].data()) < 1e-2, "{name}");
                let (f, g) =
                    (table.decision(&new).unwrap(), ready.decision_precomputed(view).unwrap());
                assert!(
                    farthest(f.data(), g.data()) < 1e-2,
                    "{name}: {:e}",
                    farthest(f.data(), g.data())
                );
            }
        }
    }
}

/// f on the training rows, from the model's stored functions, against what the certificate speaks
/// of: at the optimum of the hinge loss rows with a multiplier strictly inside its bounds lie on
/// the margin.
#[test]
fn stored_functions_are_the_ones_that_were_certified() {
    let (x, y) = synthetic::four_gaussians(100, 1);
    let Target::Classes { labels, .. } = &y else { unreachable!() };
    for method in ["clmkl", "hlmkl", "lmkl", "glmkl", "gsmkl"] {
        for kernels in
            ["rbf(0.3|1|3), linear on all, each", "poly(1..3) on all, each; rbf(1) on each"]
        {
            let spec = TrainSpec {
                method: named(method),
                kernels: kernels.into(),
                tol: 1e-6,
                ..TrainSpec::default()
            };
            let model = fit(&x, &y, &spec);
            let f = model.decision(&x).unwrap();
            let machine = &model.machines[0];
            let mut free = 0;
            for (&i, a) in machine
                .support
                .iter()
                .zip(&machine.dual_coef)
                .filter(|(_, a)| a.abs() > 0.02 && a.abs() < 0.98)
            {
                let margin = f[(i, 0)] * if labels[i] == 1 { 1.0 } else { -1.0 };
                assert!(
                    (margin - 1.0).abs() < 2e-2,
                    "{method} {kernels}: row {i} with {a} at {margin}"
                );
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
    let with = |text: &str| {
        MethodSpec::Lmkl(Lmkl {
            gate: GateName::Softmax,
            gate_kernel: Some(text.into()),
            n_init: 1,
            seed: 0,
        })
    };
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
    // Near the origin, where neither gate is zero in floating point.
    let mut middle = new.features().clone();
    middle.data_mut().iter_mut().for_each(|x| *x *= 0.05);
    (0..2).for_each(|j| middle[(2, j)] = 0.5 * (middle[(0, j)] + middle[(1, j)]));
    let w =
        own.local_weights(NewRows::Table(&Dataset::new(middle, vec![]).unwrap()), None).unwrap();
    let (at, ends) = (log_odds(&w[0], 2), [log_odds(&w[0], 0), log_odds(&w[0], 1)]);
    assert!((at - 0.5 * (ends[0] + ends[1])).abs() < 1e-9, "{at} {ends:?}");
    let loaded = Model::from_bytes(&own.to_bytes().unwrap()).unwrap();
    assert_eq!(loaded.decision(&new).unwrap(), own.decision(&new).unwrap());
}

#[test]
fn one_group_is_lp_with_half_the_exponent() {
    let (x, y) = synthetic::toy1(60, 6);
    for p in [2.0, 3.0, 4.0, 6.0] {
        // A gradient bounds the value less tightly than a gap does.
        let grouped = fit(&x, &y, &TrainSpec { tol: 2e-5, ..spec(glmkl(1, p)) });
        let lp = fit(
            &x,
            &y,
            &TrainSpec {
                tol: 1e-6,
                ..spec(MethodSpec::Lp(Lp { p: p / 2.0, solver: Solver::Auto }))
            },
        );
        assert!(
            close(primal(&grouped), primal(&lp), 1e-4),
            "p = {p}: {} {}",
            primal(&grouped),
            primal(&lp)
        );
        assert!(primal(&grouped) >= primal(&lp) * (1.0 - 2e-6), "p = {p}");
        let effective: Vec<f64> = grouped.machines[0].weights.iter().map(|b| b * b).collect();
        let norm: f64 = effective.iter().map(|e| e.powf(p / 2.0)).sum();
        assert!((norm - 1.0).abs() < 1e-12);
        if p > 2.0 {
            assert!(farthest(&effective, &lp.machines[0].weights) < 3e-2, "p = {p}");
        }
    }
}
