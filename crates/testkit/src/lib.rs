//! Naive twins, generators, law checkers and stored oracle cases: what the tests of every crate
//! share.

pub mod oracle;
pub mod strings;

use mercer::{
    kernels::{Distance, Function},
    linalg::Matrix,
    loss::{EpsilonInsensitive, Hinge, Huber, Logistic, Loss, SmoothLoss, Squared, SquaredHinge},
    machine::{Fitting, Task},
    weights::{ElasticNet, LpBall, Separable},
};

/// Every loss with its machine, once per interesting parameter.
///
/// # Panics
/// If a loss refuses the parameters listed here.
pub fn all_losses() -> Vec<Fitting> {
    vec![
        Fitting::Hinge(Hinge),
        Fitting::SquaredHinge(SquaredHinge),
        Fitting::Logistic(Logistic),
        Fitting::EpsilonInsensitive(EpsilonInsensitive::new(0.0).unwrap()),
        Fitting::EpsilonInsensitive(EpsilonInsensitive::new(0.3).unwrap()),
        Fitting::Squared(Squared),
        Fitting::Huber(Huber::new(0.2).unwrap()),
        Fitting::Huber(Huber::new(1.0).unwrap()),
    ]
}

/// Every loss that has a slope and a curvature.
///
/// # Panics
/// If a loss refuses the parameters listed here.
pub fn smooth_losses() -> Vec<Box<dyn SmoothLoss>> {
    vec![
        Box::new(SquaredHinge),
        Box::new(Logistic),
        Box::new(Squared),
        Box::new(Huber::new(0.7).unwrap()),
    ]
}

/// Is it a loss for y = ±1 only?
pub fn for_classes_only(loss: &dyn Loss) -> bool {
    ["hinge", "squared_hinge", "logistic"].contains(&loss.name())
}

/// The obvious machine: minimises Σ c ℓ*(y, −a/c) + ½ aᵀKa over one multiplier after another (over
/// every pair a_i + t, a_j − t in turn where there is a bias), by ternary search. Knows a loss only
/// by its conjugate. For a dozen samples at most.
pub fn naive_machine(k: &Matrix, task: &Task<'_>, sweeps: usize) -> Vec<f64> {
    let n = k.rows();
    let mut a = vec![0.0; n];
    let directions: Vec<(usize, Option<usize>)> = if task.intercept {
        (0..n).flat_map(|i| (0..i).map(move |j| (i, Some(j)))).collect()
    } else {
        (0..n).map(|i| (i, None)).collect()
    };
    // What infinite intervals are searched in.
    let far = 1e3 * task.cost.iter().copied().fold(0.0, f64::max);
    let room = |i: usize, a: f64| {
        let (low, high) = task.loss.dual_interval(task.y[i]);
        ((low * task.cost[i]).max(-far) - a, (high * task.cost[i]).min(far) - a)
    };
    for _ in 0..sweeps {
        for &(i, j) in &directions {
            let gradient = |i: usize| -> f64 { (0..n).map(|l| k[(i, l)] * a[l]).sum() };
            let price =
                |i: usize, a: f64| task.cost[i] * task.loss.conjugate(task.y[i], -a / task.cost[i]);
            let (mut low, mut high) = room(i, a[i]);
            let (mut slope, mut bend) = (gradient(i), k[(i, i)]);
            if let Some(j) = j {
                let (left, right) = room(j, a[j]);
                (low, high) = (low.max(-right), high.min(-left));
                slope -= gradient(j);
                bend += k[(j, j)] - 2.0 * k[(i, j)];
            }
            let value = |t: f64| {
                let second = j.map_or(0.0, |j| price(j, a[j] - t));
                price(i, a[i] + t) + second + t * (slope + 0.5 * t * bend)
            };
            for _ in 0..120 {
                let (left, right) = (low + (high - low) / 3.0, high - (high - low) / 3.0);
                if value(left) < value(right) { high = right } else { low = left }
            }
            let t = 0.5 * (low + high);
            a[i] += t;
            if let Some(j) = j {
                a[j] -= t;
            }
        }
    }
    a
}

/// Every weight set, once per interesting parameter.
///
/// # Panics
/// If a set refuses the parameters listed here.
pub fn all_weight_sets() -> Vec<(String, Box<dyn Separable>)> {
    let mut out: Vec<(String, Box<dyn Separable>)> = Vec::new();
    for v in [0.0, 0.3, 0.5, 0.9, 1.0] {
        for p in [1.3, 2.0, 4.0] {
            out.push((
                format!("elastic net v={v} p={p}"),
                Box::new(ElasticNet::new(v, p).unwrap()),
            ));
        }
    }
    for p in [1.0, 1.001, 1.05, 1.2, 4.0 / 3.0, 2.0, 4.0, 16.0, f64::INFINITY] {
        out.push((format!("ball p={p}"), Box::new(LpBall::new(p).unwrap())));
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
        Function::Cauchy { width: 0.6 },
        Function::Cauchy { width: 2.5 },
        Function::Gauss { distance: Distance::L1, width: 0.9 },
        Function::Gauss { distance: Distance::L2, width: 1.3 },
    ]
}

/// Every kernel function of numbers that are not negative, once per interesting parameter.
pub fn histogram_functions() -> Vec<Function> {
    vec![
        Function::Chi2Sum,
        Function::Chi2 { gamma: 0.4 },
        Function::Intersection,
        Function::Gauss { distance: Distance::Chi2, width: 1.5 },
        Function::Gauss { distance: Distance::Hellinger, width: 0.8 },
    ]
}

/// The obvious kernel value, one pair at a time.
pub fn naive_kernel(function: Function, x: &[f64], z: &[f64]) -> f64 {
    let product: f64 = x.iter().zip(z).map(|(a, b)| a * b).sum();
    let squared: f64 = x.iter().zip(z).map(|(a, b)| (a - b).powi(2)).sum();
    let chi2: f64 = x
        .iter()
        .zip(z)
        .filter(|(a, b)| *a + *b > 0.0)
        .map(|(a, b)| (a - b).powi(2) / (a + b))
        .sum();
    let taxicab: f64 = x.iter().zip(z).map(|(a, b)| (a - b).abs()).sum();
    match function {
        Function::Linear => product,
        Function::Poly { degree, offset } => (product + offset).powi(degree.cast_signed()),
        Function::Rbf { width } => (-squared / (2.0 * width * width)).exp(),
        Function::Laplace { width } | Function::Gauss { distance: Distance::L1, width } => {
            (-taxicab / width).exp()
        }
        Function::Cauchy { width } => width * width / (width * width + squared),
        Function::Chi2Sum => {
            x.iter().zip(z).filter(|(a, b)| *a + *b > 0.0).map(|(a, b)| 2.0 * a * b / (a + b)).sum()
        }
        Function::Chi2 { gamma } => (-gamma * chi2).exp(),
        Function::Intersection => x.iter().zip(z).map(|(a, b)| if a < b { *a } else { *b }).sum(),
        Function::Sigmoid { slope, offset } => (slope * product + offset).tanh(),
        Function::Gauss { distance: Distance::L2, width } => (-squared.sqrt() / width).exp(),
        Function::Gauss { distance: Distance::Chi2, width } => (-chi2 / width).exp(),
        Function::Gauss { distance: Distance::Hellinger, width } => {
            let roots: f64 = x.iter().zip(z).map(|(a, b)| a + b - 2.0 * (a * b).sqrt()).sum();
            (-roots / width).exp()
        }
        Function::Text(_) | Function::Precomputed { .. } => f64::NAN,
    }
}
