//! Veto–consensus rules: the independent solver's optima in both forms, gradients, descent, exactness.

use mercer::{
    gram::Gram,
    linalg::Matrix,
    methods::vcmkl::{Instance, Margin},
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
