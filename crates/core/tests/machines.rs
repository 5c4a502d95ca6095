//! Every machine against its naive twin, with and without a bias, and at prices far from 1.

use mercer::{
    data::Rng,
    gram::Gram,
    kernels::Function,
    linalg::{Cholesky, Matrix, dot},
    machine::{Combined, Fitting, Solution, Stop, Task, curvature},
};
use mercer_testkit::{all_losses, for_classes_only, naive_machine};

struct Sample {
    k: Matrix,
    y: Vec<f64>,
    cost: Vec<f64>,
}

/// Noisy values of a smooth function, or their signs, with uneven prices around `c`.
fn sample(n: usize, c: f64, fitting: &Fitting, seed: u64) -> Sample {
    let mut rng = Rng::new(seed);
    let x = Matrix::new(n, 3, (0..3 * n).map(|_| rng.normal()).collect()).unwrap();
    let values = (0..n).map(|i| x[(i, 0)].sin() + x[(i, 1)] + 0.3 + 0.5 * rng.normal());
    let y = if for_classes_only(fitting.loss()) {
        values.map(f64::signum).collect()
    } else {
        values.collect()
    };
    let cost = (0..n).map(|i| c * [1.0, 0.3, 2.0][i % 3]).collect();
    Sample { k: Function::Rbf { width: 1.2 }.block(&x, &x), y, cost }
}

impl Sample {
    fn task<'a>(&'a self, fitting: &'a Fitting, intercept: bool) -> Task<'a> {
        Task { y: &self.y, cost: &self.cost, loss: fitting.loss(), intercept }
    }

    fn dense(&self) -> Combined {
        let mut gram = Gram::zeros(self.y.len());
        gram.data_mut().copy_from_slice(self.k.data());
        Combined::Dense(gram)
    }

    /// The first `cols` columns of the Cholesky factor of K.
    fn factor(&self, cols: usize) -> Combined {
        let n = self.y.len();
        let mut k = self.k.clone();
        (0..n).for_each(|i| k[(i, i)] += 1e-13);
        let factored = Cholesky::new(k, "a test kernel").unwrap();
        // L = K L⁻ᵀ, row by row.
        let mut l = Matrix::zeros(n, cols);
        for i in 0..n {
            let mut row = self.k.row(i).to_vec();
            factored.solve_lower(&mut row);
            l.row_mut(i).copy_from_slice(&row[..cols]);
        }
        Combined::Factor(l)
    }
}

fn exact() -> Stop {
    Stop { absolute: 0.0, relative: 1e-10 }
}

fn assert_feasible(s: &Solution, task: &Task<'_>, what: &str) {
    for (i, a) in s.a.iter().enumerate() {
        let (low, high) = task.loss.dual_interval(task.y[i]);
        assert!(*a >= low * task.cost[i] && *a <= high * task.cost[i], "{what}: a[{i}] = {a}");
    }
    let size: f64 = s.a.iter().map(|a| a.abs()).sum();
    let total: f64 = s.a.iter().sum();
    assert!(
        !task.intercept || total.abs() <= 1e-13 * size.max(1e-3),
        "{what}: Σ a = {total:e} of {size:e}"
    );
    assert!(task.intercept || s.bias == 0.0, "{what}: bias {}", s.bias);
}

#[test]
fn machines_agree_with_their_naive_twin() {
    for fitting in all_losses() {
        for intercept in [true, false] {
            for c in [0.3, 4.0] {
                let sample = sample(8, c, &fitting, 11);
                let task = sample.task(&fitting, intercept);
                let what = format!("{fitting:?} intercept {intercept} c {c}");
                let a = naive_machine(&sample.k, &task, 2000);
                let f = (0..8).map(|i| dot(sample.k.row(i), &a)).collect();
                let naive = Solution::new(&task, a, f);
                for kernel in [sample.dense(), sample.factor(8)] {
                    let got = fitting.machine().solve(&kernel, &task, None, exact()).unwrap();
                    assert_feasible(&got, &task, &what);
                    // Ternary search knows each multiplier to the root of machine precision, its
                    // value to the last digits.
                    assert!(
                        (got.dual - naive.dual).abs() <= 1e-8 * naive.dual.abs(),
                        "{what}: {got:?} {naive:?}"
                    );
                    let worst =
                        got.f.iter().zip(&naive.f).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
                    assert!(worst < 1e-4, "{what}: decision values off by {worst:e}");
                }
            }
        }
    }
}

#[test]
fn every_machine_closes_its_gap_at_any_price_in_any_form_from_any_start() {
    let n = 90;
    for fitting in all_losses() {
        for intercept in [true, false] {
            // The number of SMO's steps grows with the price: a high one with a tight gap is not
            // what it is for. Newton's multipliers are slopes times prices and bear the rounding of
            // decision values that often: where errors stay quadratic, 3e-9 of the optimum at 10⁶.
            let by_steps = matches!(fitting, Fitting::Hinge(_) | Fitting::EpsilonInsensitive(_));
            let most = if by_steps {
                4
            } else if matches!(fitting, Fitting::Huber(_)) {
                5
            } else {
                6
            };
            let prices = &[1e-4, 1e-2, 1.0, 1e2, 1e4, 1e6][..most];
            for &c in prices {
                let sample = sample(n, c, &fitting, 12);
                let task = sample.task(&fitting, intercept);
                let machine = fitting.machine();
                let relative = 1e-9;
                let stop = Stop { absolute: 0.0, relative };
                let mut objectives = Vec::new();
                // All columns: the same kernel. A fifth of them: another one, for the small form of
                // the systems.
                for (form, kernel) in [
                    ("dense", sample.dense()),
                    ("factor", sample.factor(n)),
                    ("small", sample.factor(n / 5)),
                ] {
                    let what = format!("{fitting:?} intercept {intercept} c {c} {form}");
                    let got = machine.solve(&kernel, &task, None, stop).unwrap();
                    assert_feasible(&got, &task, &what);
                    assert!(
                        got.gap() >= -1e-12 * got.primal && got.gap() <= relative * got.primal,
                        "{what}: {:e}",
                        got.gap() / got.primal
                    );
                    // f is K a and the bias is best for it.
                    let f = kernel.times(&got.a);
                    assert!(
                        f.iter().zip(&got.f).all(|(a, b)| (a - b).abs() <= 1e-9 * (1.0 + a.abs())),
                        "{what}"
                    );
                    // A feasible start far away.
                    let cheap: Vec<f64> = got.a.iter().map(|a| 0.1 * a).collect();
                    let warm = machine.solve(&kernel, &task, Some(&cheap), stop).unwrap();
                    assert!(
                        (warm.primal - got.primal).abs() <= 2.0 * relative * got.primal,
                        "{what}: warm"
                    );
                    objectives.push(got.primal);
                }
                // The factor is K's to a ridge of 1e-13, which the highest prices can see.
                assert!(
                    (objectives[0] - objectives[1]).abs() <= 1e-6 * objectives[0],
                    "{fitting:?} c {c}"
                );
            }
        }
    }
}

/// Without a bias optimality is a statement about each sample alone: a_i = −c ℓ'(f_i) for a smooth
/// loss, and for the others the multiplier stands at the bound, kink or in the interior that its
/// decision value asks for.
#[test]
fn optima_without_a_bias_satisfy_their_conditions_sample_by_sample() {
    let n = 120;
    for fitting in all_losses() {
        let sample = sample(n, 3.0, &fitting, 13);
        let task = sample.task(&fitting, false);
        let s = fitting
            .machine()
            .solve(&sample.dense(), &task, None, Stop { absolute: 0.0, relative: 1e-11 })
            .unwrap();
        let mut open = 0.0;
        for i in 0..n {
            // Fenchel–Young slack of sample i; their sum is the gap.
            let (y, c) = (task.y[i], task.cost[i]);
            let slack = c * (task.loss.value(y, s.f[i]) + task.loss.conjugate(y, -s.a[i] / c))
                + s.a[i] * s.f[i];
            assert!((-1e-12..=1e-8).contains(&slack), "{fitting:?}: sample {i} {slack:e}");
            open += slack;
        }
        assert!((open - s.gap()).abs() <= 1e-10 * s.primal, "{fitting:?}: {open:e} {:e}", s.gap());
    }
}

#[test]
fn the_curvature_by_kernel_weights_is_that_of_finite_differences() {
    for (seed, fitting) in all_losses().into_iter().enumerate() {
        for intercept in [true, false] {
            let n = 40;
            let one = sample(n, 1.5, &fitting, seed as u64);
            let two: Vec<f64> = one.k.data().iter().map(|k| k * k * k).collect();
            let task = one.task(&fitting, intercept);
            let kernel = |t: f64| {
                let mut gram = Gram::zeros(n);
                gram.data_mut()
                    .iter_mut()
                    .zip(one.k.data())
                    .zip(&two)
                    .for_each(|((g, a), b)| *g = a + t * b);
                Combined::Dense(gram)
            };
            let second = Matrix::new(n, n, two.clone()).unwrap();
            let times = |a: &[f64]| -> Vec<f64> { (0..n).map(|i| dot(second.row(i), a)).collect() };
            let machine = fitting.machine();
            let solve = |t: f64| {
                let stop = Stop { absolute: 0.0, relative: 1e-13 };
                machine.solve(&kernel(t), &task, None, stop).unwrap()
            };
            // The gradient by t is −½ aᵀK₂a.
            let gradient = |t: f64| {
                let a = solve(t).a;
                -0.5 * dot(&a, &times(&a))
            };
            let at = solve(0.7);
            let columns = Matrix::new(1, n, times(&at.a)).unwrap();
            let response = machine.dual_response(&task, &at);
            let h = curvature(&kernel(0.7), &response, intercept, &columns, n).unwrap().unwrap()
                [(0, 0)];
            let step = 1e-4;
            let difference = (gradient(0.7 + step) - gradient(0.7 - step)) / (2.0 * step);
            let what = format!("{} {intercept}: {h} {difference}", task.loss.name());
            assert!(h > 0.0 && (h - difference).abs() <= 2e-3 * h, "{what}");
            // The same from a factor, and nothing where more multipliers move than are wanted.
            let factor = one.factor(n);
            let (dense, low) = (one.dense(), &factor);
            let both = [&dense, low]
                .map(|k| curvature(k, &response, intercept, &columns, n).unwrap().unwrap()[(0, 0)]);
            assert!((both[0] - both[1]).abs() <= 1e-5 * both[0].abs(), "{what}: {both:?}");
            assert!(curvature(&dense, &response, intercept, &columns, 1).unwrap().is_none());
        }
    }
}
