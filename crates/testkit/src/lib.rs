//! Naive twins, generators, law checkers and stored oracle cases: what the tests of every crate share.

pub mod oracle;

use mercer::{
    kernels::Function,
    loss::{EpsilonInsensitive, Hinge, Loss, Squared},
    weights::{ElasticNet, Separable},
};

/// Every loss, once per interesting parameter.
///
/// # Panics
/// If a loss refuses the parameters listed here.
pub fn all_losses() -> Vec<Box<dyn Loss>> {
    vec![
        Box::new(Hinge),
        Box::new(EpsilonInsensitive::new(0.0).unwrap()),
        Box::new(EpsilonInsensitive::new(0.3).unwrap()),
        Box::new(Squared),
    ]
}

/// Every weight set, once per interesting parameter.
///
/// # Panics
/// If a set refuses the parameters listed here.
pub fn all_weight_sets() -> Vec<(String, Box<dyn Separable>)> {
    let mut out: Vec<(String, Box<dyn Separable>)> = Vec::new();
    for v in [0.0, 0.3, 0.5, 0.9, 1.0] {
        for p in [1.3, 2.0, 4.0] {
            out.push((format!("elastic net v={v} p={p}"), Box::new(ElasticNet::new(v, p).unwrap())));
        }
    }
    out
}

/// Every kernel function, once per interesting parameter.
pub fn all_functions() -> Vec<Function> {
    vec![
        Function::Linear,
        Function::Poly { degree: 1, offset: 1.0 },
        Function::Poly { degree: 3, offset: 0.5 },
        Function::Poly { degree: 2, offset: 0.0 },
        Function::Rbf { width: 0.4 },
        Function::Rbf { width: 3.0 },
        Function::Laplace { width: 0.7 },
    ]
}

/// The obvious kernel value, one pair at a time.
pub fn naive_kernel(function: Function, x: &[f64], z: &[f64]) -> f64 {
    let product: f64 = x.iter().zip(z).map(|(a, b)| a * b).sum();
    let squared: f64 = x.iter().zip(z).map(|(a, b)| (a - b).powi(2)).sum();
    let taxicab: f64 = x.iter().zip(z).map(|(a, b)| (a - b).abs()).sum();
    match function {
        Function::Linear => product,
        Function::Poly { degree, offset } => (product + offset).powi(degree.cast_signed()),
        Function::Rbf { width } => (-squared / (2.0 * width * width)).exp(),
        Function::Laplace { width } => (-taxicab / width).exp(),
    }
}
