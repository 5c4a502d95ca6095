//! One visit to a weight vector: combine, solve, and the numbers an outer method needs back.

use std::cell::Cell;

use rayon::prelude::*;

use super::{Point, Problem, Recorder, rounding::Slack, spread};
use crate::{
    Error, Result,
    gram::GramSource,
    linalg::{Matrix, dot},
    machine::{Combined, Solution, Stop},
    model::{Certificate, Fit, FitPart},
    trace::{Observer, Status, relative_gap},
    tuning::tuning,
};

tuning! { "run"
    /// Machines that are asked for this relative gap or a larger one may work on entries in single
    /// precision.
    single_precision_gap: f64 = 1e-6;
    /// A machine is solved to this share of the gap that is open: more accuracy would be wasted,
    /// less would hide progress.
    machine_gap_share: f64 = 0.1;
    /// The first visit, which knows no gap, is solved as if this one were open.
    first_gap: f64 = 1e-2;
    /// The absolute gap that ends a machine is at most this share of the relative one's in units of
    /// the best objective: it matters only where the objective is tiny beside that of the best
    /// constant.
    absolute_accuracy_share: f64 = 0.1;
    /// A machine is solved as if at most this gap were open.
    largest_gap: f64 = 0.1;
}

/// Machines need not come closer than this share of the objective of the best constant, unless the
/// objective itself is so small that it matters: differences below it are rounding.
const ROUNDED_OBJECTIVE_SHARE: f64 = 1e-13;
/// Rounding is measured where one digit of the objective of the best constant exceeds this share of
/// the gap allowed.
const STEEP_TOLERANCE_SHARE: f64 = 0.1;

/// The state of a run: bounds, best point, trace.
pub struct Run<'a> {
    /// The problem that is solved.
    pub problem: &'a Problem<'a>,
    recorder: Recorder<'a>,
    /// Objective of the best constant: the scale of relative quantities.
    scale: f64,
    /// Best point, by its primal value.
    pub best: Option<Point>,
    /// The best lower bound so far.
    pub lower: f64,
    /// The rounding in the bounds of the best point, and the objective by which that point is
    /// known.
    slack: Cell<Option<(f64, Slack)>>,
}

impl<'a> Run<'a> {
    /// Starts a run that has visited no point yet.
    pub fn new(problem: &'a Problem<'a>, observer: &'a mut dyn Observer) -> Self {
        let scale = problem.parts.iter().map(|p| p.task.constant_objective()).sum();
        let (recorder, lower) = (Recorder::new(observer), f64::NEG_INFINITY);
        Self { problem, recorder, scale, best: None, lower, slack: Cell::new(None) }
    }

    /// The best upper bound so far.
    pub fn upper(&self) -> f64 {
        self.best.as_ref().map_or(f64::INFINITY, |p| p.primal)
    }

    /// Relative gap between the bounds; with what rounding may hide, from where that decides
    /// whether the gap is small enough.
    pub fn gap(&self) -> f64 {
        if self.best.is_none() || self.lower == f64::NEG_INFINITY {
            return f64::INFINITY;
        }
        let plain = relative_gap(self.upper(), self.lower);
        if plain > self.problem.tol && !self.is_steep() {
            return plain;
        }
        let (upper, lower) = self.slack().widen(self.upper(), self.lower);
        relative_gap(upper, lower)
    }

    /// Are costs so high that the last digits of decision values could cost more than the tolerance
    /// allows?
    fn is_steep(&self) -> bool {
        f64::EPSILON * self.scale > STEEP_TOLERANCE_SHARE * self.problem.tol * self.upper().abs()
    }

    /// What rounding may have done to the bounds of the best point.
    fn slack(&self) -> Slack {
        let Some(best) = &self.best else { return Slack::default() };
        match self.slack.get() {
            Some((known, slack)) if known.to_bits() == best.primal.to_bits() => slack,
            _ => {
                let slack = Slack::of(self.problem, best);
                self.slack.set(Some((best.primal, slack)));
                slack
            }
        }
    }

    /// Is what is left between the bounds rounding, which no further step makes smaller?
    fn is_spent(&self) -> bool {
        let (upper, lower) = (self.upper(), self.lower);
        if !self.gap().is_finite() {
            return false;
        }
        let Some((_, slack)) =
            self.slack.get().filter(|(known, _)| known.to_bits() == upper.to_bits())
        else {
            return false;
        };
        let rounding = slack.upper + slack.lower;
        rounding > self.problem.tol * upper.abs().max(lower.abs()) && upper - lower <= rounding
    }

    /// Is the best point certified to the tolerance?
    pub fn optimal(&self) -> bool {
        self.gap() <= self.problem.tol
    }

    /// Has an observer asked to stop?
    pub fn stopped(&self) -> bool {
        self.recorder.stopped
    }

    /// Number of iterations recorded.
    pub fn iterations(&self) -> usize {
        self.recorder.trace.len()
    }

    /// Should the outer loop end?
    pub fn over(&self) -> bool {
        self.optimal()
            || self.stopped()
            || self.iterations() >= self.problem.max_iter
            || self.is_spent()
    }

    /// Solves the machine at θ, warm from `start`, accurately enough for the gap that is open.
    pub fn visit(&self, theta: Vec<f64>, start: Option<&[Vec<f64>]>) -> Result<Point> {
        self.visit_to(self.inner_accuracy(), theta, start)
    }

    /// Solves the machine at θ to a relative gap.
    pub fn visit_to(
        &self,
        relative: f64,
        theta: Vec<f64>,
        start: Option<&[Vec<f64>]>,
    ) -> Result<Point> {
        let (mut point, _) = self.solve(relative, theta, start)?;
        let all: Vec<usize> = (0..self.problem.grams.n_terms()).collect();
        point.slope = self.slope(&point.duals(), &point.solutions, &all);
        Ok(point)
    }

    /// Solves the machine at θ to a relative gap, with slopes of the kernels that have weight
    /// alone; the others are left 0.
    pub fn visit_active(
        &self,
        relative: f64,
        theta: Vec<f64>,
        start: Option<&[Vec<f64>]>,
    ) -> Result<Point> {
        let (mut point, _) = self.solve(relative, theta, start)?;
        let active: Vec<usize> =
            (0..point.theta.len()).filter(|&t| point.theta[t] != 0.0).collect();
        point.slope = vec![0.0; point.theta.len()];
        active
            .iter()
            .zip(self.slope(&point.duals(), &point.solutions, &active))
            .for_each(|(&t, g)| point.slope[t] = g);
        Ok(point)
    }

    /// The accuracy [`Run::visit`] asks for.
    pub fn inner_accuracy(&self) -> f64 {
        TUNING.machine_gap_share * self.gap_for_machines()
    }

    /// The gap that is open, as far as machines should know it.
    pub fn gap_for_machines(&self) -> f64 {
        let open = if self.gap().is_finite() {
            self.gap().min(TUNING.largest_gap)
        } else {
            TUNING.first_gap
        };
        open.max(self.problem.tol)
    }

    /// Solves the machine at θ like [`Run::visit_to`], and also returns K_θ and K_t a for every
    /// term.
    pub fn visit_keeping(
        &self,
        relative: f64,
        theta: Vec<f64>,
        start: Option<&[Vec<f64>]>,
    ) -> Result<(Point, Combined)> {
        let (mut point, kernel) = self.solve(relative, theta, start)?;
        let duals = point.duals();
        point.images = self.images(&duals);
        point.slope = self.cut(&duals, point.images.as_ref(), &point.solutions).1;
        Ok((point, kernel))
    }

    /// Solves for a point without its slope, and K_θ.
    fn solve(
        &self,
        relative: f64,
        theta: Vec<f64>,
        start: Option<&[Vec<f64>]>,
    ) -> Result<(Point, Combined)> {
        let rounding = 4.0 * f64::EPSILON * self.scale;
        let needed = if self.best.is_some() {
            TUNING.absolute_accuracy_share * relative * self.upper().abs()
        } else {
            0.0
        };
        let absolute = (ROUNDED_OBJECTIVE_SHARE * self.scale).min(needed.max(rounding));
        let stop = Stop { absolute, relative };
        let (solutions, kernel) = solve_at(self.problem, self.problem.grams, &theta, start, stop)?;
        let primal = solutions.iter().map(|s| s.primal).sum();
        let dual_sum = solutions.iter().map(|s| s.dual_sum).sum();
        Ok((Point { theta, solutions, primal, dual_sum, slope: Vec::new(), images: None }, kernel))
    }

    /// ½ (s_m + residual_m ‖a‖²) of some terms, summed over parts. Of `solutions` at these
    /// multipliers, forms that are known are taken.
    fn slope(&self, duals: &[Vec<f64>], solutions: &[Solution], terms: &[usize]) -> Vec<f64> {
        let grams = self.problem.grams;
        let mut slope = vec![0.0; terms.len()];
        for (part, a) in self.problem.parts.iter().zip(duals) {
            let square = dot(a, a);
            let s = match part.rows {
                None => match solutions.iter().find(|s| s.a == *a) {
                    Some(solution) => solution.forms.of(grams, terms, a),
                    None => grams.quad_forms_of(terms, a),
                },
                Some(rows) => grams.quad_forms_of(terms, &spread(a, rows, grams.n_samples())),
            };
            for ((g, s), &t) in slope.iter_mut().zip(s).zip(terms) {
                *g += 0.5 * (s + grams.residual(t) * square);
            }
        }
        slope
    }

    /// K_t a, a row per term, where every term is a matrix: a pass over all of them, of which much
    /// can be made.
    fn images(&self, duals: &[Vec<f64>]) -> Option<Matrix> {
        let grams = self.problem.grams;
        let ([part], [a]) = (self.problem.parts.as_slice(), duals) else { return None };
        if part.rows.is_some() || (0..grams.n_terms()).any(|t| grams.factor(t).is_some()) {
            return None;
        }
        let mut images = Matrix::zeros(grams.n_terms(), a.len());
        images
            .data_mut()
            .par_chunks_mut(a.len())
            .enumerate()
            .for_each(|(t, own)| grams.apply(t, a, own));
        Some(images)
    }

    /// A(a) and the slope of the cut that multipliers prove, with no machine solved, from their
    /// images where they are at hand. Of `solutions` at these multipliers, forms that are known are
    /// taken.
    pub fn cut(
        &self,
        duals: &[Vec<f64>],
        images: Option<&Matrix>,
        solutions: &[Solution],
    ) -> (f64, Vec<f64>) {
        let value = self
            .problem
            .parts
            .iter()
            .zip(duals)
            .map(|(p, a)| p.task.loss.dual_sum(p.task.y, a, p.task.cost))
            .sum();
        let Some(images) = images else {
            let all: Vec<usize> = (0..self.problem.grams.n_terms()).collect();
            return (value, self.slope(duals, solutions, &all));
        };
        let (a, square) = (&duals[0], dot(&duals[0], &duals[0]));
        let form =
            |t: usize| dot(a, images.row(t)).max(0.0) + self.problem.grams.residual(t) * square;
        (value, (0..images.rows()).map(|t| 0.5 * form(t)).collect())
    }

    /// Keeps `point` if it is the best so far.
    pub fn keep(&mut self, point: &Point) {
        if point.primal < self.upper() {
            self.best = Some(point.clone());
        }
    }

    /// Takes `point` as the answer even if its primal value is not the lowest, provided it is
    /// certified to the tolerance.
    pub fn replace_if_certified(&mut self, point: Point) -> bool {
        let certified = relative_gap(point.primal, self.lower) <= self.problem.tol && {
            let slack = Slack::of(self.problem, &point);
            self.slack.set(Some((point.primal, slack)));
            let (upper, lower) = slack.widen(point.primal, self.lower);
            relative_gap(upper, lower) <= self.problem.tol
        };
        if certified {
            self.best = Some(point);
        }
        certified
    }

    /// Raises the lower bound.
    pub fn raise(&mut self, bound: f64) {
        self.lower = self.lower.max(bound);
    }

    /// Records one iteration and asks the observer.
    pub fn record(&mut self, active: usize) {
        let (objective, dual, gap) = (self.upper(), self.lower, self.gap());
        self.record_values(objective, dual, gap, active);
    }

    /// Records an iteration on part of the problem: its objective is an upper bound for the whole,
    /// which the best point need not have reached yet.
    pub fn record_upper(&mut self, upper: f64, active: usize) {
        let (upper, lower) = (self.upper().min(upper), self.lower);
        self.record_values(upper, lower, relative_gap(upper, lower), active);
    }

    /// Records an iteration with the caller's own numbers, for methods without a duality gap.
    pub fn record_values(&mut self, objective: f64, dual: f64, gap: f64, active: usize) {
        self.recorder.record(objective, dual, gap, active);
    }

    /// The status of a run without a duality gap that ends, at rest or before.
    pub fn status_at_rest(&self, at_rest: bool) -> Status {
        self.recorder.status_at_rest(at_rest)
    }

    /// The best point as a fit, with what the bounds prove once rounding is counted in.
    pub fn finish(self) -> Result<Fit> {
        let (primal, dual) = self.slack().widen(self.upper(), self.lower);
        let gap = relative_gap(primal, dual);
        let status = self.recorder.status((gap <= self.problem.tol).then_some(Status::Optimal));
        let warning = self.is_spent().then(|| {
            format!(
                "rounding alone may hide a gap of {:.0e} here, so that none of {:.0e} can be proved in double precision, whatever the number \
                 of iterations; a smaller C, or kernels brought to one scale (`normalize`), leave more to prove with",
                relative_gap(self.upper() + self.slack().upper, self.upper() - self.slack().lower),
                self.problem.tol
            )
        });
        let mut fit = self.finish_as(primal, dual, gap, status)?;
        fit.warnings.extend(warning);
        Ok(fit)
    }

    /// The best point as a fit, with the caller's own certificate.
    pub fn finish_as(self, primal: f64, dual: f64, gap: f64, status: Status) -> Result<Fit> {
        let Some(best) = self.best else {
            return Err(Error::numerical("the fit", "no iteration produced a finite objective"));
        };
        let n = self.problem.grams.n_samples();
        let parts = self.problem.parts.iter().zip(best.solutions).map(|(part, s)| FitPart {
            dual: part.rows.map_or_else(|| s.a.clone(), |rows| spread(&s.a, rows, n)),
            bias: s.bias,
            fitted: s.f.iter().map(|f| f + s.bias).collect(),
            primal: s.primal,
            lower: s.dual,
        });
        let certificate =
            Certificate { primal, dual, gap, status, iterations: self.recorder.trace.len() };
        let (trace, warnings) = (self.recorder.trace, Vec::new());
        Ok(Fit { weights: best.theta, parts: parts.collect(), certificate, trace, warnings })
    }
}

/// Solves the machines of all parts for the kernel Σ θ_t K_t of `grams`, which need not be the
/// problem's own, and that kernel.
pub fn solve_at(
    p: &Problem<'_>,
    grams: &dyn GramSource,
    theta: &[f64],
    start: Option<&[Vec<f64>]>,
    stop: Stop,
) -> Result<(Vec<Solution>, Combined)> {
    let single = stop.relative >= TUNING.single_precision_gap
        && p.parts.iter().all(|part| part.rows.is_none());
    let kernel = Combined::new(grams, theta, p.budget, p.machine, single.then_some(&p.scratch))?;
    let solve = |k: usize| {
        let (part, start) = (&p.parts[k], start.map(|s| s[k].as_slice()));
        match part.rows {
            None => p.machine.solve(&kernel, &part.task, start, stop),
            Some(rows) => p.machine.solve(&kernel.select(rows), &part.task, start, stop),
        }
    };
    let solutions: Vec<Solution> = if p.parts.len() == 1 {
        vec![solve(0)?]
    } else {
        (0..p.parts.len()).into_par_iter().map(solve).collect::<Result<_>>()?
    };
    Ok((solutions, kernel))
}
