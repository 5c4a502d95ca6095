//! The localized family: an independent solver's optima, two roads to one answer, gradients,
//! certificates.

mod contract;
mod descent;
mod equivalence;
mod oracle;
mod terms;

use std::ops::ControlFlow;

use mercer::{
    Model, TrainSpec,
    data::{Dataset, Target},
    linalg::Matrix,
    request::{Clmkl, Evenness, Glmkl, MethodSpec},
    trace::{IterRecord, Observer, Silent},
};

const BANK: &str = "rbf(0.5|1|2), poly(1..2) on all; rbf(1), linear on each";

fn named(name: &str) -> MethodSpec {
    MethodSpec::named(name).unwrap()
}

/// `clmkl` with some of its parameters changed.
fn clmkl(clusters: usize, level: Option<Evenness>, exponent: f64) -> MethodSpec {
    let MethodSpec::Clmkl(Clmkl { v, cluster_kernel, n_init, regions, seed, .. }) = named("clmkl")
    else {
        unreachable!()
    };
    MethodSpec::Clmkl(Clmkl {
        n_clusters: clusters,
        evenness: level,
        p: exponent,
        v,
        cluster_kernel,
        n_init,
        regions,
        seed,
    })
}

fn with_v(method: MethodSpec, net: f64) -> MethodSpec {
    let MethodSpec::Clmkl(Clmkl {
        n_clusters,
        evenness,
        p,
        cluster_kernel,
        n_init,
        regions,
        seed,
        ..
    }) = method
    else {
        unreachable!()
    };
    MethodSpec::Clmkl(Clmkl {
        n_clusters,
        evenness,
        p,
        v: Some(net),
        cluster_kernel,
        n_init,
        regions,
        seed,
    })
}

fn glmkl(groups: usize, norm: f64) -> MethodSpec {
    MethodSpec::Glmkl(Glmkl { n_groups: groups, p: norm, groups: None, n_init: 1, seed: 0 })
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
        assert!(
            r.dual <= self.optimum + slack,
            "{}: lower bound {} above {}",
            self.name,
            r.dual,
            self.optimum
        );
        assert!(
            r.objective >= self.optimum - slack,
            "{}: {} below {}",
            self.name,
            r.objective,
            self.optimum
        );
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
