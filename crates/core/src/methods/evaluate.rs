//! One visit to a weight vector: combine, solve, and the numbers an outer method needs back.

use std::time::Instant;

use crate::{
    Result,
    gram::{Budget, GramSource},
    linalg::dot,
    machine::{Combined, Machine, Solution, Stop, Task},
    model::{Certificate, Fit},
    trace::{IterRecord, Observer, Status, relative_gap},
    weights::WeightSet,
};

/// An optimisation problem over kernel weights.
pub struct Problem<'a> {
    /// The kernel terms.
    pub grams: &'a dyn GramSource,
    /// Targets, prices, loss.
    pub task: Task<'a>,
    /// Solves it for fixed weights.
    pub machine: &'a dyn Machine,
    /// Memory left for the combined kernel.
    pub room: Budget,
    /// Relative duality gap to reach.
    pub tol: f64,
    /// Outer iterations at most.
    pub max_iter: usize,
}

/// A solved weight vector.
#[derive(Debug, Clone)]
pub struct Point {
    /// θ.
    pub theta: Vec<f64>,
    /// The machine's answer for K_θ.
    pub solution: Solution,
    /// ½ (s_m + residual_m ‖a‖²): with A(a), a cut A(a) − ⟨slope, θ⟩ that is a lower bound for the true kernels, truncated or not.
    pub slope: Vec<f64>,
}

impl Point {
    /// A(a) − ½·support(s): what this dual vector proves about every θ in the set.
    pub fn lower_bound(&self, set: &dyn WeightSet) -> f64 {
        self.solution.dual_sum - set.support(&self.slope)
    }

    /// ‖w_m‖² = θ_m² s_m, up to the common factor ½.
    pub fn sq_norms(&self) -> Vec<f64> {
        self.theta.iter().zip(&self.slope).map(|(t, g)| t * t * g).collect()
    }
}

/// The state of a run: bounds, best point, trace.
pub struct Run<'a> {
    problem: &'a Problem<'a>,
    observer: &'a mut dyn Observer,
    began: Instant,
    /// Objective of the best constant: the scale of relative quantities.
    scale: f64,
    /// Best point, by its primal value.
    pub best: Option<Point>,
    /// Best lower bound.
    pub lower: f64,
    trace: Vec<IterRecord>,
    stopped: bool,
}

impl<'a> Run<'a> {
    /// Before the first iteration.
    pub fn new(problem: &'a Problem<'a>, observer: &'a mut dyn Observer) -> Self {
        let scale = problem.task.constant_objective();
        let (began, lower) = (Instant::now(), f64::NEG_INFINITY);
        Self { problem, observer, began, scale, best: None, lower, trace: Vec::new(), stopped: false }
    }

    /// Best upper bound.
    pub fn upper(&self) -> f64 {
        self.best.as_ref().map_or(f64::INFINITY, |p| p.solution.primal)
    }

    /// Relative gap between the bounds.
    pub fn gap(&self) -> f64 {
        if self.best.is_none() || self.lower == f64::NEG_INFINITY {
            return f64::INFINITY;
        }
        relative_gap(self.upper(), self.lower, self.scale)
    }

    /// Certified to the tolerance?
    pub fn optimal(&self) -> bool {
        self.gap() <= self.problem.tol
    }

    /// Iterations recorded.
    pub fn iterations(&self) -> usize {
        self.trace.len()
    }

    /// Should the outer loop end?
    pub fn over(&self) -> bool {
        self.optimal() || self.stopped || self.iterations() >= self.problem.max_iter
    }

    /// Solves the machine at θ, warm from `start`, accurately enough for the gap at hand: a tenth of what is still open makes progress,
    /// and more would be wasted. The first visit knows no gap.
    pub fn visit(&self, theta: Vec<f64>, start: Option<&Point>) -> Result<Point> {
        let open = if self.gap().is_finite() { self.gap().min(0.1) } else { 1e-2 };
        self.visit_to(0.1 * open.max(self.problem.tol), theta, start)
    }

    /// Solves the machine at θ to a relative gap.
    pub fn visit_to(&self, relative: f64, theta: Vec<f64>, start: Option<&Point>) -> Result<Point> {
        let p = self.problem;
        let kernel = Combined::new(p.grams, &theta, p.room, p.machine.likes_small_factors())?;
        let stop = Stop { absolute: 1e-13 * self.scale, relative };
        let solution = p.machine.solve(&kernel, &p.task, start.map(|s| s.solution.a.as_slice()), stop)?;
        let square = dot(&solution.a, &solution.a);
        let s = p.grams.quad_forms(&solution.a);
        let slope = s.iter().enumerate().map(|(t, s)| 0.5 * (s + p.grams.residual(t) * square)).collect();
        Ok(Point { theta, solution, slope })
    }

    /// Keeps `point` if it is the best so far.
    pub fn keep(&mut self, point: &Point) {
        if point.solution.primal < self.upper() {
            self.best = Some(point.clone());
        }
    }

    /// Takes `point` as the answer even if its primal value is not the lowest, provided it is certified to the tolerance.
    pub fn replace_if_certified(&mut self, point: Point) {
        if relative_gap(point.solution.primal, self.lower, self.scale) <= self.problem.tol {
            self.best = Some(point);
        }
    }

    /// Raises the lower bound.
    pub fn raise(&mut self, bound: f64) {
        self.lower = self.lower.max(bound);
    }

    /// Records one iteration and asks the observer.
    pub fn record(&mut self, active: usize) {
        let record = IterRecord {
            iteration: self.trace.len() + 1,
            objective: self.upper(),
            dual: self.lower,
            gap: self.gap(),
            active,
            seconds: self.began.elapsed().as_secs_f64(),
        };
        self.trace.push(record);
        self.stopped |= self.observer.on_iteration(&record).is_break();
    }

    /// The best point as a fit.
    pub fn finish(self) -> Result<Fit> {
        let (gap, upper, optimal, stopped) = (self.gap(), self.upper(), self.optimal(), self.stopped);
        let Some(best) = self.best else {
            return Err(crate::Error::numerical("the fit", "no iteration produced a finite objective"));
        };
        let status = match (optimal, stopped) {
            (true, _) => Status::Optimal,
            (false, true) => Status::Stopped,
            (false, false) => Status::MaxIterations,
        };
        let certificate = Certificate { primal: upper, dual: self.lower, gap, status, iterations: self.trace.len() };
        Ok(Fit { weights: best.theta, dual: best.solution.a, bias: best.solution.bias, certificate, trace: self.trace })
    }
}

/// Number of non-zero weights.
pub fn active(theta: &[f64]) -> usize {
    theta.iter().filter(|t| **t != 0.0).count()
}
