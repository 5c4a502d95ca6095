//! Tests of `smo.rs`.

use super::*;
use crate::{
    data::Rng,
    gram::Gram,
    kernels::Function,
    linalg::Matrix,
    loss::{EpsilonInsensitive, Hinge, Loss},
};

fn problem(n: usize, seed: u64) -> (Matrix, Vec<f64>) {
    let mut rng = Rng::new(seed);
    let x = Matrix::new(n, 3, (0..3 * n).map(|_| rng.normal()).collect()).unwrap();
    let y = (0..n).map(|i| x[(i, 0)].sin() + x[(i, 1)] + 0.5 * rng.normal()).collect();
    (x, y)
}

#[test]
fn dense_factor_shrunk_and_warm_roads_meet_and_certify() {
    let sizes = [(40, 0.0), (700, 0.0), (40, 0.2), (700, 0.2)];
    for (n, kink, intercept) in sizes.into_iter().flat_map(|(n, k)| [(n, k, true), (n, k, false)]) {
        let (x, values) = problem(n, 5);
        let mut k = Gram::zeros(n);
        let block = Function::Rbf { width: 1.5 }.block(&x, &x);
        k.data_mut().copy_from_slice(block.data());
        let y: Vec<f64> =
            if kink > 0.0 { values } else { values.iter().map(|v| v.signum()).collect() };
        let tube = EpsilonInsensitive::new(kink).unwrap();
        let loss: &dyn Loss = if kink > 0.0 { &tube } else { &Hinge };
        let cost: Vec<f64> = (0..n).map(|i| if i % 3 == 0 { 20.0 } else { 5.0 }).collect();
        let task = Task { y: &y, cost: &cost, loss, intercept };
        let stop = Stop { absolute: 0.0, relative: 1e-8 };
        let smo = Smo { kink };
        let dense = smo.solve(&Combined::Dense(k.clone()), &task, None, stop).unwrap();
        assert!(dense.gap() >= 0.0 && dense.gap() <= 1e-8 * dense.primal);
        assert!(!intercept || dense.a.iter().sum::<f64>().abs() < 1e-9);
        assert!((0..n).all(|i| {
            let (l, h) = loss.dual_interval(y[i]);
            dense.a[i] >= l * cost[i] && dense.a[i] <= h * cost[i]
        }));
        let warm = smo.solve(&Combined::Dense(k), &task, Some(&dense.a), stop).unwrap();
        assert!((warm.primal - dense.primal).abs() <= 1e-8 * dense.primal);
        // The Cholesky factor of K + tiny ridge is a factor of (nearly) the same kernel.
        let limit = crate::gram::tests_support::full_factor(&block);
        let factor = smo.solve(&Combined::Factor(limit), &task, None, stop).unwrap();
        assert!(
            (factor.primal - dense.primal).abs() <= 1e-6 * dense.primal,
            "{} {}",
            factor.primal,
            dense.primal
        );
    }
}
