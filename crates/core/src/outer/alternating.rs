//! Machine and closed-form weights in turn: monotone, without cuts, a second way to every convex
//! optimum.
//!
//! Solves  min over θ in Θ, f, b :  Σ_i c_i ℓ(y_i, f(x_i) + b) + ½ Σ_m ‖f_m‖²/θ_m.
//! In: terms K_1..K_M, a task, Θ.   Out: θ, a, b and a certified gap.
//!   Paper: [Kloft2011]; page docs/methods/lp.md.

use super::{Memory, Point, Problem, Run, active};
use crate::{
    Result,
    linalg::{Cholesky, Matrix},
    model::Fit,
    trace::Observer,
    tuning::tuning,
    weights::WeightSet,
};

tuning! { "alternating"
    /// Long steps that may fail before none is tried any more.
    failures_allowed: usize = 3;
    /// Points that Anderson's step looks back to. docs/methods/lp.md: three points tell how r moves
    /// with θ.
    points_remembered: usize = 3;
    /// A closed form that goes less than this share of the way to the answer, p below some 1.1,
    /// belongs to answers that move fast, and the step is then no longer than the last one
    /// suggests.
    short_step_share: f64 = 0.05;
    /// A weight grows or shrinks by a factor of at most exp of this in one step.
    longest_log_step: f64 = 4.0;
}

/// Weights below this share of the largest are zeros: alternation has made them so, and a logarithm
/// of less would mean nothing.
const ROUNDED_WEIGHT_SHARE: f64 = 1e-12;
/// Squares of differences are raised by this share of themselves, so that alike ones do not leave
/// the system singular.
const DIFFERENCE_GUARD: f64 = 1e-9;

/// Minimises over `set` by alternation, starting from what `memory` holds and leaving there what it
/// found.
///
/// `accelerate` (for sets whose answers are not zero): the fixed point is also that of the answer r
/// = argmax over Θ of ⟨s, θ⟩ to the dual vector, and on the ℓp ball the closed form is the damped
/// step θ^{1−ω} r^ω with ω = (p−1)/(p+1). [`AndersonSteps::next`] steps further, and learns from
/// how r moved with θ. A step that does not lower the objective is taken back.
pub fn fit(
    problem: &Problem<'_>,
    set: &dyn WeightSet,
    accelerate: bool,
    memory: &mut Memory,
    observer: &mut dyn Observer,
) -> Result<Fit> {
    let mut run = Run::new(problem, observer);
    let mut duals = memory.duals.take();
    // Alternation cannot revive a weight of zero.
    let remembered = memory.theta.take().filter(|theta| theta.iter().all(|t| *t > 0.0));
    let mut theta = remembered.unwrap_or_else(|| set.start(problem.grams.n_terms()));
    set.tighten(&mut theta);
    let mut chances = if accelerate { TUNING.failures_allowed } else { 0 };
    let mut steps = AndersonSteps::default();
    let mut base: Option<Point> = None;
    loop {
        let mut point = run.visit(theta, duals.as_deref())?;
        run.keep(&point);
        run.raise(point.lower_bound(set));
        run.record(active(&point.theta));
        if run.over() {
            memory.remember(run.best.as_ref());
            return run.finish();
        }
        duals = Some(point.duals());
        theta = closed_form(set, &point);
        if let Some(before) = base.take().filter(|before| before.primal <= point.primal) {
            point = before;
            (theta, steps, chances) =
                (closed_form(set, &point), AndersonSteps::default(), chances - 1);
        } else if chances > 0 {
            theta = steps.next(set, &point, &theta);
            base = Some(point);
        }
    }
}

/// Where weights were and where their answers lay, in logarithms: x = log θ and F = log r − x.
#[derive(Default)]
struct AndersonSteps {
    /// x and F of the last points, the oldest first.
    last: Vec<(Vec<f64>, Vec<f64>)>,
}

impl AndersonSteps {
    /// Anderson's step ([Anderson1965]): to where F would vanish if it were linear in x along the
    /// last steps, and ω F of what remains. Terms are weighted by what they contribute, θ_m s_m.
    fn next(&mut self, set: &dyn WeightSet, point: &Point, closed: &[f64]) -> Vec<f64> {
        let answer = set.support_point(&point.slope);
        let x: Vec<f64> = point.theta.iter().map(|t| t.ln()).collect();
        let f: Vec<f64> = answer.iter().zip(&x).map(|(r, x)| r.ln() - x).collect();
        // Terms without weight, now or then, have infinite logarithms and are left out.
        let inner = |a: &dyn Fn(usize) -> f64, b: &dyn Fn(usize) -> f64| -> f64 {
            let own = |m: usize| point.theta[m] * point.slope[m] * a(m) * b(m);
            (0..x.len()).map(own).filter(|product| product.is_finite()).sum()
        };
        let omega = self.damping(&x, &f, closed, &inner);
        let shares = self.shares(&f, &inner);
        let step = |m: usize| {
            let last = self.last.iter().zip(&shares);
            let (dx, df) = last.fold((0.0, 0.0), |(dx, df), ((y, g), s)| {
                (dx + s * (x[m] - y[m]), df + s * (f[m] - g[m]))
            });
            omega * (f[m] - df) - dx
        };
        // A weight that is or was zero takes its answer.
        let longest = TUNING.longest_log_step;
        let moved = |m: usize| {
            Some((x[m] + step(m).clamp(-longest, longest)).exp())
                .filter(|t| t.is_finite() && *t > 0.0)
        };
        let mut out: Vec<f64> = (0..x.len()).map(|m| moved(m).unwrap_or(answer[m])).collect();
        set.tighten(&mut out);
        if self.last.len() == TUNING.points_remembered {
            self.last.remove(0);
        }
        self.last.push((x, f));
        out
    }

    /// ω: the root of the closed form's own and, where that is short, no more than the last step
    /// suggests.
    fn damping(&self, x: &[f64], f: &[f64], closed: &[f64], inner: &TermProduct<'_>) -> f64 {
        let short = inner(&|m| closed[m].ln() - x[m], &|m| f[m]) / inner(&|m| f[m], &|m| f[m]);
        let omega = if short.is_finite() { short.clamp(0.0, 1.0).sqrt() } else { 1.0 };
        let Some((y, g)) = self.last.last().filter(|_| short < TUNING.short_step_share) else {
            return omega;
        };
        let (dx, df) = (|m: usize| x[m] - y[m], |m: usize| f[m] - g[m]);
        let secant = -inner(&dx, &df) / inner(&df, &df);
        if secant > 0.0 { omega.min(secant) } else { omega }
    }

    /// The combination of the last differences of F that comes closest to F now; zeros where they
    /// are too alike to say.
    fn shares(&self, f: &[f64], inner: &TermProduct<'_>) -> Vec<f64> {
        let mut square = Matrix::zeros(self.last.len(), self.last.len());
        let mut shares: Vec<f64> =
            self.last.iter().map(|(_, g)| inner(&|m| f[m] - g[m], &|m| f[m])).collect();
        for (j, (_, g)) in self.last.iter().enumerate() {
            let row = self.last.iter().map(|(_, h)| inner(&|m| f[m] - g[m], &|m| f[m] - h[m]));
            square.row_mut(j).iter_mut().zip(row).for_each(|(s, value)| *s = value);
            square[(j, j)] *= 1.0 + DIFFERENCE_GUARD;
        }
        match Cholesky::new(square, "differences of weights") {
            Ok(factored) => factored.solve(&mut shares),
            Err(_) => shares.fill(0.0),
        }
        shares
    }
}

/// The weighted inner product of two functions of the terms.
type TermProduct<'a> = dyn Fn(&dyn Fn(usize) -> f64, &dyn Fn(usize) -> f64) -> f64 + 'a;

/// Kloft et al. 2011: for fixed f_m the best θ minimises Σ ‖f_m‖²/θ_m with ‖f_m‖² = θ_m² s_m; on
/// the ℓp ball θ_m ∝ ‖f_m‖^{2/(p+1)}.
fn closed_form(set: &dyn WeightSet, point: &Point) -> Vec<f64> {
    let mut theta = set.best_response(&point.sq_norms());
    let largest = theta.iter().copied().fold(0.0, f64::max);
    theta.iter_mut().for_each(|t| *t = if *t <= ROUNDED_WEIGHT_SHARE * largest { 0.0 } else { *t });
    theta
}
