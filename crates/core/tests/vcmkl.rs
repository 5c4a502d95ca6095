//! Veto–consensus rules: the independent solver's optima in both forms, gradients, descent, exactness.

use mercer::{
    gram::Gram,
    linalg::Matrix,
    data::Rng,
    methods::vcmkl::{Effort, Instance, Margin, Objective, Outcome, Watch, am, ccp, exact, pddp, sgd},
    trace::{IterRecord, Silent, Status},
};
use mercer_testkit::oracle::{Case, cases, vector};

fn gram(k: &Matrix) -> Gram {
    let mut out = Gram::zeros(k.rows());
    out.data_mut().copy_from_slice(k.data());
    out
}

fn instance<'a>(case: &Case, kernels: &'a [Gram]) -> Instance<'a> {
    let y = case.vector("input/y");
    let (plus, minus, margin) = match case.maybe("input/gamma") {
        Some(gamma) => {
            let l = y.len() as f64;
            (gamma / l, (1.0 - gamma) / l, Margin::Nu(case.vector("input/nu")))
        }
        None => {
            let c = case.vector("input/C");
            (c[0], c[1], Margin::Fixed)
        }
    };
    let price = y.iter().map(|&y| if y > 0.0 { plus } else { minus }).collect();
    Instance::new(kernels.iter().collect(), &y, price, margin).unwrap()
}

fn matrix(value: &serde_json::Value) -> Matrix {
    let rows = value.as_array().unwrap();
    Matrix::new(rows.len(), rows[0].as_array().unwrap().len(), vector(value)).unwrap()
}

/// Objectives of these cases are 10⁻³ and more, or zero.
fn close(got: f64, want: f64, tolerance: f64) -> bool {
    (got - want).abs() <= tolerance * want.abs().max(1e-4)
}

#[test]
fn inner_problem_of_the_oracle() {
    for case in cases("vcmkl") {
        let kernels: Vec<Gram> = case.matrices("input/K").iter().map(gram).collect();
        let new = case.matrices("input/Kt");
        let instance = instance(&case, &kernels);
        for at in case.at("expect/at_lambda").as_array().unwrap() {
            let number = |key: &str| at[key].as_f64().unwrap();
            let lambda = matrix(&at["lam"]);
            let got = instance.solve(&lambda, None).unwrap();
            let name = &case.name;
            assert!(close(got.dual, -number("phi"), 1e-6), "{name}: φ {} against {}", -got.dual, number("phi"));
            assert!(close(got.primal, number("primal"), 1e-6), "{name}: P {} {}", got.primal, number("primal"));
            assert!(close(got.primal, got.dual, 1e-6), "{name}: P {} −φ {}", got.primal, got.dual);
            if !at["b_rho_unique"].as_bool().unwrap() {
                continue;
            }
            let (losses, want) = (instance.negative_losses(&got), matrix(&at["grad_phi"]));
            for (k, &i) in instance.negatives.iter().enumerate() {
                for m in 0..instance.rules() {
                    // Where λ = 0 the multiplier of α ≤ 0 is not unique.
                    let gradient = -instance.price[i] * losses[(k, m)];
                    assert!(
                        lambda[(k, m)] == 0.0 || (gradient - want[(k, m)]).abs() < 1e-4 * instance.price[i],
                        "{name}: ∂φ/∂λ[{k},{m}] = {gradient} against {}",
                        want[(k, m)]
                    );
                }
            }
            let g = vector(&at["g_test"]);
            for (t, want) in g.iter().enumerate() {
                let rule = |m: usize| {
                    let sign = |i: usize| if instance.negatives.contains(&i) { -1.0 } else { 1.0 };
                    let value = |i: usize| sign(i) * got.alpha[(i, m)] * new[m][(t, i)];
                    (0..got.alpha.rows()).map(value).sum::<f64>() + got.bias[m]
                };
                let least = (0..instance.rules()).map(rule).fold(f64::INFINITY, f64::min);
                assert!((least - want).abs() < 1e-4 * want.abs().max(0.1), "{name}: g = {least} against {want}");
            }
        }
    }
}

const EFFORT: Effort = Effort { starts: 5, seed: 0, tol: 1e-6, max_iter: 500 };

type Solve = fn(&Instance<'_>, Effort, &mut Watch<'_>) -> mercer::Result<Outcome>;

fn run(solve: Solve, instance: &Instance<'_>, effort: Effort) -> (Outcome, Vec<IterRecord>) {
    let mut silent = Silent;
    let mut watch = Watch::new(&mut silent);
    let outcome = solve(instance, effort, &mut watch).unwrap();
    (outcome, watch.trace)
}

#[test]
fn exact_is_brute_force_and_descent_is_never_below_it() {
    for case in cases("vcmkl") {
        let kernels: Vec<Gram> = case.matrices("input/K").iter().map(gram).collect();
        let instance = instance(&case, &kernels);
        let want = case.number("expect/opt_value");
        let name = &case.name;
        assert_eq!(
            instance.min_counts(),
            case.vector("expect/min_count").iter().map(|c| *c as usize).collect::<Vec<_>>(),
            "{name}"
        );
        let (best, _) = run(exact, &instance, EFFORT);
        assert_eq!(best.status, Status::Optimal, "{name}");
        assert!(close(best.objective, want, 2e-6), "{name}: {} against {want}", best.objective);
        assert!(best.lower <= want + 2e-6 * want.abs() && best.lower >= best.objective - 1e-5 * want.abs());
        for (solver, solve) in [("ccp", ccp as Solve), ("am", am)] {
            let (found, trace) = run(solve, &instance, EFFORT);
            assert!(found.objective >= want - 1e-6 * want.abs(), "{name} {solver}: {} below {want}", found.objective);
            for pair in trace.windows(2) {
                let rise = pair[1].objective - pair[0].objective;
                assert!(rise <= 1e-8 * pair[0].objective.abs(), "{name} {solver}: J rose by {rise:e}");
            }
            assert_eq!(found.status, Status::Stationary, "{name} {solver}");
        }
    }
}

#[test]
fn gradient_is_a_difference_of_inner_optima() {
    for case in cases("vcmkl") {
        let kernels: Vec<Gram> = case.matrices("input/K").iter().map(gram).collect();
        let instance = instance(&case, &kernels);
        let at = &case.at("expect/at_lambda")[1];
        let lambda = matrix(&at["lam"]);
        let inner = instance.solve(&lambda, None).unwrap();
        let losses = instance.negative_losses(&inner);
        // Not along the simplex: P is defined, and its gradient known, for every λ ≥ 0.
        for (k, m) in [(0, 0), (1, 1), (2, 0)] {
            let moved = |h: f64| {
                let mut lambda = lambda.clone();
                lambda[(k, m)] += h;
                instance.solve(&lambda, None).unwrap().primal
            };
            let h = 1e-4;
            let difference = (moved(h) - moved(-h)) / (2.0 * h);
            let gradient = instance.price[instance.negatives[k]] * losses[(k, m)];
            // A kink of P may lie within h.
            let scale = instance.price[instance.negatives[k]] * inner.rho[m].max(1e-3);
            assert!((difference - gradient).abs() < 2e-3 * scale, "{}: {difference} and {gradient}", case.name);
        }
    }
}

#[test]
fn parametric_descent_goes_the_way_it_is_told() {
    for case in cases("vcmkl") {
        let kernels: Vec<Gram> = case.matrices("input/K").iter().map(gram).collect();
        let instance = instance(&case, &kernels);
        let name = &case.name;
        let go = |sign: Objective, effort: Effort| {
            let mut silent = Silent;
            let mut watch = Watch::new(&mut silent);
            (pddp(&instance, sign, effort, &mut watch).unwrap(), watch.trace)
        };
        let best = case.number("expect/opt_value");
        let (start, _) = go(Objective::Opt1, Effort { max_iter: 1, ..EFFORT });
        let (down, trace) = go(Objective::Opt1, Effort { tol: 1e-5, max_iter: 200, ..EFFORT });
        assert!(down.objective <= start.objective + 1e-9, "{name}: ended above its start");
        assert!(down.objective >= best - 2e-6 * best.abs().max(1e-4), "{name}: {} below {best}", down.objective);
        assert!(down.qp_calls <= trace.len() + 2, "{name}: {} programs in {} steps", down.qp_calls, trace.len());
        for pair in trace.windows(2) {
            assert!(pair[1].objective <= pair[0].objective, "{name}: the best value rose");
        }
        // As printed: φ falls towards the minimum of the convex problem in which negatives pay their worst rule.
        let limit = case.number("expect/pddp_phi");
        let (up, _) = go(Objective::AsPrinted, Effort { tol: 1e-7, max_iter: 500, ..EFFORT });
        let spread = (limit + best).abs().max(1e-4);
        println!("{name}: opt1 {} (start {}, best {best}) qp {}/{}; printed {} limit {limit} qp {}", down.objective, start.objective, down.qp_calls, trace.len(), up.objective, up.qp_calls);
        assert!(up.objective >= limit - 1e-5 * spread, "{name}: φ {} below its minimum {limit}", up.objective);
        assert!(up.objective <= limit + 0.05 * spread, "{name}: φ {} far above its minimum {limit}", up.objective);
        assert!(-up.inner.dual >= -start.objective - 1e-9 || up.objective <= -start.objective, "{name}");
    }
}

/// Positives inside a regular polygon, negatives around it, in the plane.
fn polygon(n: usize, sides: usize, seed: u64) -> (Matrix, Vec<f64>) {
    let mut rng = Rng::new(seed);
    let (mut x, mut y) = (Matrix::zeros(n, 2), Vec::new());
    let mut rows = 0;
    while rows < n {
        let point = [4.0 * rng.uniform() - 2.0, 4.0 * rng.uniform() - 2.0];
        let wall = |k: usize| {
            let angle = std::f64::consts::TAU * k as f64 / sides as f64;
            1.0 - angle.cos() * point[0] - angle.sin() * point[1]
        };
        let inside = (0..sides).map(wall).fold(f64::INFINITY, f64::min);
        let positive = rows % 2 == 0;
        if (inside > 0.0) == positive {
            x.row_mut(rows).copy_from_slice(&point);
            y.push(if positive { 1.0 } else { -1.0 });
            rows += 1;
        }
    }
    (x, y)
}

fn kernel(x: &Matrix, value: impl Fn(&[f64], &[f64]) -> f64) -> Gram {
    let mut out = Gram::zeros(x.rows());
    let n = x.rows();
    for i in 0..n {
        (0..n).for_each(|j| out.data_mut()[i * n + j] = value(x.row(i), x.row(j)));
    }
    out
}

#[test]
#[ignore = "time"]
fn bench() {
    for n in [400, 1000] {
        let (x, y) = polygon(n, 4, 3);
        let rbf = kernel(&x, |a, b| (-((a[0] - b[0]).powi(2) + (a[1] - b[1]).powi(2)) / 2.0).exp());
        let linear = kernel(&x, |a, b| a[0] * b[0] + a[1] * b[1]);
        for (name, k, rules) in [("rbf", &rbf, 8), ("linear", &linear, 4), ("linear", &linear, 8)] {
            for c in [1.0, 10.0, 100.0] {
            let instance = Instance::new(vec![k; rules], &y, vec![c; n], Margin::Fixed).unwrap();
            let began = std::time::Instant::now();
            let (found, trace) = run(ccp, &instance, Effort { starts: 3, ..EFFORT });
            println!(
                "{name} n {n} M {rules} C {c}: J {} P {} gap {:e} {:?} {} its {} QPs {:.2} s",
                found.objective, found.inner.primal, (found.inner.primal - found.inner.dual) / found.inner.primal,
                found.status, trace.len(), found.qp_calls, began.elapsed().as_secs_f64()
            );
            }
        }
    }
}
