//! L1-MKL by reduced gradients, the SimpleMKL of [Rakotomamonjy2008].
//!
//! Solves  min over θ ≥ 0, Σ θ_m = 1 :  J(θ),   J(θ) = min over f, b :
//!   Σ_i c_i ℓ(y_i, f(x_i) + b) + ½ Σ_m ‖f_m‖²/θ_m.
//! In: terms K_1..K_M, a task.   Out: θ, a, b and a certified gap.   Page docs/methods/lp.md.
//!
//! A machine at θ gives J and its gradient −½ s_m. The step follows the gradient reduced to the
//! simplex (conjugate to the last step while no weight comes or goes), first from face to face as
//! long as J falls to the end, then by a line search.

use super::{
    Memory, Point, Problem, Run, active,
    level::{Cuts, clean},
};
use crate::{
    Result,
    linalg::{axpy, dot},
    model::Fit,
    trace::Observer,
    tuning::tuning,
    weights::Separable,
};

tuning! { "reduced_gradient"
    /// Machines per line search at most.
    most_line_search_machines: usize = 6;
    /// The line search ends where the slope has fallen to this share of the first.
    flat_slope_share: f64 = 0.1;
    /// A trial of the line search lies at least this share of the bracket away from either end.
    least_bracket_share: f64 = 0.01;
    /// The slope at the far end of the line search counts as at least this share of the first
    /// slope.
    least_end_slope_share: f64 = 1e-3;
    /// Largest number of lower bounds that are kept.
    cuts_kept: usize = 60;
    /// Accuracy of the lower bound, as a share of the gap still open.
    bound_gap_share: f64 = 1e-2;
    /// Machines are solved to this share of the gap that is open: slopes decide here, and they are
    /// less exact than values.
    machine_gap_share: f64 = 0.01;
    /// Where the machine's inaccuracy hides the descent, that share is multiplied by this.
    tightening_factor: f64 = 0.1;
    /// That share never falls below this one.
    least_machine_gap_share: f64 = 1e-9;
}

/// Minimises over the simplex `set`, starting from what `memory` holds and leaving there what it
/// found.
pub fn fit(
    problem: &Problem<'_>,
    set: &dyn Separable,
    memory: &mut Memory,
    observer: &mut dyn Observer,
) -> Result<Fit> {
    let start = match memory.theta.take() {
        Some(theta) => clean(set, theta),
        None => set.start(problem.grams.n_terms()),
    };
    let (run, cuts) = (Run::new(problem, observer), std::mem::take(&mut memory.cuts));
    let mut search =
        ReducedGradient { run, set, cuts, last: None, gap_share: TUNING.machine_gap_share };
    let mut point = search.visit(start, memory.duals.take().as_deref())?;
    loop {
        search.certify(&point);
        if search.run.over() {
            memory.remember(search.run.best.as_ref());
            memory.cuts = search.cuts;
            return search.run.finish();
        }
        let before = point.primal;
        point = search.step(point)?;
        // Where the machine's inaccuracy hides the descent, it has to shrink.
        if point.primal >= before {
            search.gap_share =
                (TUNING.tightening_factor * search.gap_share).max(TUNING.least_machine_gap_share);
            search.last = None;
        }
    }
}

/// A run of the method.
struct ReducedGradient<'a> {
    run: Run<'a>,
    set: &'a dyn Separable,
    cuts: Cuts,
    /// Reduced gradient and direction of the last step, unless it ended on a face.
    last: Option<(Vec<f64>, Vec<f64>)>,
    /// Machines are solved to this share of the gap that is open.
    gap_share: f64,
}

impl ReducedGradient<'_> {
    fn visit(&mut self, theta: Vec<f64>, start: Option<&[Vec<f64>]>) -> Result<Point> {
        let point =
            self.run.visit_to(self.gap_share * self.run.gap_for_machines(), theta, start)?;
        self.run.keep(&point);
        self.run.raise(point.lower_bound(self.set));
        self.cuts.push(point.dual_sum, point.slope.clone(), point.duals(), None);
        Ok(point)
    }

    /// Records one iteration. Where the last dual vector alone does not prove optimality, all of
    /// them together may.
    fn certify(&mut self, point: &Point) {
        if !self.run.optimal() {
            let mu = self
                .cuts
                .bound(
                    self.set,
                    &point.theta,
                    TUNING.bound_gap_share * (self.run.upper() - self.run.lower),
                )
                .0;
            self.run.raise(self.cuts.aggregate(self.set, &mu).0);
            self.cuts.trim(self.set, &mu, TUNING.cuts_kept);
        }
        self.run.record(active(&point.theta));
    }

    /// Makes one pass of SimpleMKL's outer loop.
    fn step(&mut self, mut point: Point) -> Result<Point> {
        let mut direction = self.direction(&point);
        // No way down from here, or only the machine's inaccuracy hides it.
        if direction.iter().all(|d| *d == 0.0) {
            return self.visit(point.theta.clone(), Some(&point.duals()));
        }
        // "Descent direction update": from face to face while J falls all the way; it is convex, so
        // the slope at the end tells.
        while let Some((vanishing, longest)) = to_the_face(&point.theta, &direction) {
            let mut theta = moved(&point.theta, longest, &direction);
            theta[vanishing] = 0.0;
            let end = self.visit(clean(self.set, theta), Some(&point.duals()))?;
            let end_slope = slope(&end, &direction);
            if end_slope > 0.0 {
                return self.line_search(point, &direction, longest, end_slope);
            }
            (point, self.last) = (end, None);
            direction[vanishing] = 0.0;
            balance(&mut direction, &point.theta);
            if slope(&point, &direction) >= 0.0 {
                break;
            }
        }
        Ok(point)
    }

    /// The reduced gradient R, made conjugate to the last direction: D = R + β D_last, β = ⟨R, R −
    /// R_last⟩₊ / ‖R_last‖² (Polak–Ribière), while the same weights move and as long as it
    /// descends. Plain reduced gradients zigzag between faces.
    fn direction(&mut self, point: &Point) -> Vec<f64> {
        let reduced = reduced_gradient(point);
        let mut direction = reduced.clone();
        if let Some((before, last)) = &self.last
            && before.iter().zip(&reduced).all(|(b, r)| (*b == 0.0) == (*r == 0.0))
        {
            let beta = (dot(&reduced, &reduced) - dot(&reduced, before)) / dot(before, before);
            axpy(beta.max(0.0), last, &mut direction);
            balance(&mut direction, &point.theta);
            if slope(point, &direction) >= 0.0 {
                direction.clone_from(&reduced);
            }
        }
        self.last = Some((reduced, direction.clone()));
        direction
    }

    /// Finds the zero of the slope of J along the direction by false position, halving the weight
    /// of an end that stays (Illinois): J is convex, and its slope is known at every machine
    /// solved.
    fn line_search(
        &mut self,
        point: Point,
        direction: &[f64],
        longest: f64,
        end_slope: f64,
    ) -> Result<Point> {
        let first = slope(&point, direction);
        let (mut low, mut low_slope) = (0.0, first);
        let (mut high, mut high_slope) =
            (longest, end_slope.max(-TUNING.least_end_slope_share * first));
        let (theta, mut best) = (point.theta.clone(), point);
        for _ in 0..TUNING.most_line_search_machines {
            let share = (low_slope / (low_slope - high_slope))
                .clamp(TUNING.least_bracket_share, 1.0 - TUNING.least_bracket_share);
            let at = low + (high - low) * share;
            let trial =
                self.visit(clean(self.set, moved(&theta, at, direction)), Some(&best.duals()))?;
            let here = slope(&trial, direction);
            if trial.primal < best.primal {
                best = trial;
            }
            if here.abs() <= TUNING.flat_slope_share * first.abs() {
                break;
            }
            if here < 0.0 {
                (low, low_slope) = (at, here);
                high_slope *= 0.5;
            } else {
                (high, high_slope) = (at, here);
                low_slope *= 0.5;
            }
        }
        Ok(best)
    }
}

/// d/dγ J(θ + γ D) = −⟨½ s, D⟩.
fn slope(point: &Point, direction: &[f64]) -> f64 {
    -dot(&point.slope, direction)
}

/// SimpleMKL: D_m = ∂J/∂θ_μ − ∂J/∂θ_m with μ the largest weight; 0 where θ_m = 0 would become
/// negative.
fn reduced_gradient(point: &Point) -> Vec<f64> {
    let reference = point.slope[largest(&point.theta)];
    let of = |(t, g): (&f64, &f64)| if *t == 0.0 && *g <= reference { 0.0 } else { g - reference };
    let mut direction: Vec<f64> = point.theta.iter().zip(&point.slope).map(of).collect();
    balance(&mut direction, &point.theta);
    direction
}

/// Sets the change D_μ of the largest weight so that Σ D = 0.
fn balance(direction: &mut [f64], theta: &[f64]) {
    let largest = largest(theta);
    direction[largest] = 0.0;
    direction[largest] = -direction.iter().sum::<f64>();
}

fn largest(theta: &[f64]) -> usize {
    (0..theta.len()).fold(0, |b, m| if theta[m] > theta[b] { m } else { b })
}

/// The weight that vanishes first along the direction, and after which step.
fn to_the_face(theta: &[f64], direction: &[f64]) -> Option<(usize, f64)> {
    let step = |m: usize| -theta[m] / direction[m];
    (0..theta.len())
        .filter(|&m| direction[m] < 0.0)
        .map(|m| (m, step(m)))
        .min_by(|a, b| a.1.total_cmp(&b.1))
}

fn moved(theta: &[f64], step: f64, direction: &[f64]) -> Vec<f64> {
    let mut out = theta.to_vec();
    axpy(step, direction, &mut out);
    out.iter_mut().for_each(|t| *t = t.max(0.0));
    out
}
