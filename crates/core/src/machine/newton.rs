//! Smooth losses: Newton's method in the primal.
//!
//! Solves  min over a, b :  P(a, b) = Σ_i c_i ℓ(y_i, f_i + b) + ½ aᵀKa,  f = Ka.
//! With g = c ℓ', W = diag(c ℓ'') at f + b, the optimum has a = −g and the step (δ, β) towards it
//! satisfies
//!   δ + W (Kδ + β 1) = ρ = −g − a,   1ᵀ(a + δ) = 0   (the last only with a bias, as is β):
//! where W vanishes δ is ρ, elsewhere (K + W⁻¹) δ + β 1 is known, a system of [`WeightedSystem`]. P
//! is convex along the step, so the step length is 1 or a root of its derivative.
//! In: K, the task, a start.
//!   Out: the dual feasible a = −g at the best b for f, for which both bounds hold.
//! For the squared hinge W is c on the samples inside the margin and 0 elsewhere, and the answer is
//! exact once these are found: the finite Newton method of [Keerthi2005], with a kernel.

use super::{
    Combined, Machine, Solution, Stop, Task, has_few_columns, interior::heavier_sign,
    system::WeightedSystem,
};
use crate::{
    Result,
    linalg::{axpy, dot},
    loss::{SmoothLoss, increasing_root},
    tuning::tuning,
};

tuning! { "newton"
    /// The method ends after this many steps with the best point it has found.
    most_steps: usize = 100;
    /// A whole step is taken where it lowers the objective by this share of what its slope promises
    /// (Armijo's rule); else the step ends where its slope vanishes.
    sufficient_decrease_share: f64 = 1e-4;
}

/// A curvature of the loss below this counts as none, and the multiplier then follows the slope
/// alone: dividing by it would only magnify rounding.
const NO_CURVATURE: f64 = 1e-12;

/// Newton's method for a smooth loss.
#[derive(Debug, Clone, Copy)]
pub struct Newton<L> {
    /// The loss; a task's own must be the same.
    pub loss: L,
}

impl<L: SmoothLoss> Machine for Newton<L> {
    fn likes_factor(&self, n: usize, rank: usize) -> bool {
        has_few_columns(rank, n)
    }

    fn solve(
        &self,
        kernel: &Combined,
        task: &Task<'_>,
        start: Option<&[f64]>,
        stop: Stop,
    ) -> Result<Solution> {
        let n = task.y.len();
        let a = start.map_or_else(|| vec![0.0; n], <[f64]>::to_vec);
        let f = if start.is_some() { kernel.times(&a) } else { vec![0.0; n] };
        let mut at = self.primal_point(task, a, f);
        let mut best = dual_point(kernel, task, &at);
        for _ in 0..TUNING.most_steps {
            if stop.reached(&best) {
                break;
            }
            let step = self.step(kernel, task, &at)?;
            let path = Path::new(&self.loss, task, &at, &step);
            let (length, settled) = (path.length(), path.settled());
            let PrimalPoint { mut a, mut f, .. } = at;
            axpy(length, &step.a, &mut a);
            axpy(length, &step.f, &mut f);
            at = self.primal_point(task, a, f);
            let point = dual_point(kernel, task, &at);
            if point.gap() < best.gap() {
                best = point;
            }
            if settled {
                break;
            }
        }
        Ok(best)
    }

    fn dual_response(&self, task: &Task<'_>, s: &Solution) -> Vec<f64> {
        (0..s.f.len())
            .map(|i| task.cost[i] * self.loss.curvature(task.y[i], s.f[i] + s.bias))
            .collect()
    }
}

/// A primal point with what follows from it.
struct PrimalPoint {
    a: Vec<f64>,
    /// The products f = K a.
    f: Vec<f64>,
    /// The bias that is best for f.
    bias: f64,
    /// g = c ℓ' at f + b.
    slope: Vec<f64>,
}

/// A Newton step: δ, Kδ and β.
struct NewtonStep {
    a: Vec<f64>,
    f: Vec<f64>,
    bias: f64,
}

impl<L: SmoothLoss> Newton<L> {
    fn primal_point(&self, task: &Task<'_>, a: Vec<f64>, f: Vec<f64>) -> PrimalPoint {
        let bias = task.best_bias(&f);
        let slope =
            (0..f.len()).map(|i| task.cost[i] * self.loss.slope(task.y[i], f[i] + bias)).collect();
        PrimalPoint { a, f, bias, slope }
    }

    fn step(&self, kernel: &Combined, task: &Task<'_>, at: &PrimalPoint) -> Result<NewtonStep> {
        let n = at.a.len();
        let curvature = |i: usize| self.loss.curvature(task.y[i], at.f[i] + at.bias);
        let weight: Vec<f64> = (0..n)
            .map(|i| {
                Some(curvature(i)).filter(|w| *w > NO_CURVATURE).map_or(0.0, |w| w * task.cost[i])
            })
            .collect();
        let rho: Vec<f64> = at.slope.iter().zip(&at.a).map(|(g, a)| -g - a).collect();
        let mut a: Vec<f64> =
            rho.iter().zip(&weight).map(|(r, w)| if *w > 0.0 { 0.0 } else { *r }).collect();
        let mut z = if a.iter().any(|x| *x != 0.0) { kernel.times(&a) } else { vec![0.0; n] };
        z.iter_mut()
            .enumerate()
            .for_each(|(i, z)| *z = if weight[i] > 0.0 { rho[i] / weight[i] - *z } else { 0.0 });
        let sum = task.intercept.then(|| -at.a.iter().chain(&a).sum::<f64>());
        let (rest, bias) = WeightedSystem::new(kernel, &weight)?.solve(&z, sum);
        axpy(1.0, &rest, &mut a);
        Ok(NewtonStep { f: kernel.times(&a), a, bias })
    }
}

/// a = −g, feasible by construction where Σ g = 0: what rounding leaves of that sum is taken from
/// the heavier sign.
fn dual_point(kernel: &Combined, task: &Task<'_>, at: &PrimalPoint) -> Solution {
    let mut a: Vec<f64> = at.slope.iter().map(|g| -g).collect();
    if task.intercept {
        let (sign, factor) = heavier_sign(&a);
        a.iter_mut().filter(|x| **x * sign > 0.0).for_each(|x| *x *= factor);
    }
    let f = kernel.times(&a);
    Solution::new(task, a, f)
}

/// P along a step of length t, but for its value at 0: Σ c ℓ(y, h + t φ) + t q₁ + ½ t² q₂.
struct Path<'a, L> {
    loss: &'a L,
    task: &'a Task<'a>,
    /// h = f + b and φ = Kδ + β.
    from: Vec<f64>,
    along: Vec<f64>,
    linear: f64,
    quadratic: f64,
    /// ½ aᵀKa at t = 0.
    half: f64,
}

impl<'a, L: SmoothLoss> Path<'a, L> {
    fn new(loss: &'a L, task: &'a Task<'a>, at: &PrimalPoint, step: &NewtonStep) -> Self {
        Self {
            loss,
            task,
            from: at.f.iter().map(|f| f + at.bias).collect(),
            along: step.f.iter().map(|f| f + step.bias).collect(),
            linear: dot(&step.a, &at.f),
            quadratic: dot(&step.a, &step.f),
            half: 0.5 * dot(&at.a, &at.f),
        }
    }

    fn value(&self, t: f64) -> f64 {
        let mut h = self.from.clone();
        axpy(t, &self.along, &mut h);
        self.loss.total(self.task.y, &h, 0.0, self.task.cost)
            + self.half
            + t * (self.linear + 0.5 * t * self.quadratic)
    }

    /// First and second derivative.
    fn slope(&self, t: f64) -> (f64, f64) {
        let (mut slope, mut bend) = (self.linear + t * self.quadratic, self.quadratic);
        for (i, along) in self.along.iter().enumerate() {
            let (y, h) = (self.task.y[i], self.from[i] + t * along);
            slope += self.task.cost[i] * self.loss.slope(y, h) * along;
            bend += self.task.cost[i] * self.loss.curvature(y, h) * along * along;
        }
        (slope, bend)
    }

    /// 1 where P still falls there or has fallen enough, else its minimiser.
    fn length(&self) -> f64 {
        let promised = self.slope(0.0).0;
        if self.slope(1.0).0 <= 0.0
            || self.value(1.0) <= self.value(0.0) + TUNING.sufficient_decrease_share * promised
        {
            return 1.0;
        }
        increasing_root(0.5, |t| self.slope(t))
    }

    /// Does the step promise no more than rounding?
    fn settled(&self) -> bool {
        -self.slope(0.0).0 <= f64::EPSILON * self.value(0.0).abs()
    }
}
