//! Gates learned with the machine.
//!
//! Solves  min over z :  V(z) = max over a :  A(a) − ½ Σ_m (η_m∘a)ᵀ K_m (η_m∘a),
//!   η = η(z) the gate of every kernel at every sample,
//! to a stationary point. In: terms K_1..K_M, a task (or several that share the gate), a gate.
//!   Out: z, a, b.   Papers: [Gonen2008] with the
//! gate of [Lei2016], [Fu2016], [Yang2009]; pages docs/methods/lmkl.md, glmkl.md, gsmkl.md.
//!
//! For fixed z this is one machine, and by Danskin's theorem ∂V/∂η_im = −a_i (K_m (η_m∘a))_i: K_m v
//! products are all that is needed. The step is a quasi-Newton one, taken in the gate's own
//! geometry, at most 1 in every argument or half of what the largest has grown to (every vertex of
//! a softmax is stationary: a long step would end there), and searched until V falls enough; so V
//! never rises.

mod bundle;
mod form;
mod quasi_newton;

use bundle::GradientBundle;
pub use form::{Gate, GroupGate, KernelGate};
pub use quasi_newton::Element;
use quasi_newton::{History, add, inner};
use rayon::prelude::*;

use super::{Point, Problem, Run, active, solve_at, spread};
use crate::{
    Error, Result,
    data::Rng,
    linalg::Matrix,
    localize::LocalizedGramSet,
    machine::{Solution, Stop},
    model::Fit,
    trace::{Observer, Status},
    tuning::tuning,
    weights::negligible_weight,
};

tuning! { "gate"
    /// The machine's relative gap at first, as a share of the tolerance: V and its gradient are
    /// only as exact as the machine.
    first_machine_tolerance_share: f64 = 1e-3;
    /// The machine's relative gap at last, as a share of the tolerance.
    last_machine_tolerance_share: f64 = 1e-6;
    /// The machine's relative gap is never larger than this.
    largest_machine_gap: f64 = 1e-6;
    /// The machine's relative gap is multiplied by this where it hides the descent.
    machine_gap_factor: f64 = 1e-2;
    /// A step must lower V by this share of what its slope promises (weak Wolfe conditions).
    sufficient_decrease_share: f64 = 1e-4;
    /// A step is too short while V falls more steeply at its end than this share of the first slope
    /// (weak Wolfe conditions).
    steep_slope_share: f64 = 0.9;
    /// A step that is too short is made this many times longer.
    step_growth_factor: f64 = 3.0;
    /// A step that is too long is shortened to this share of itself at the least and to half of it
    /// at the most.
    least_shortening_share: f64 = 0.1;
    /// The search along a direction ends where the bracket is this share of its far end, if a point
    /// in it is good enough.
    bracket_share: f64 = 0.1;
    /// Machines per direction at most.
    most_search_machines: usize = 15;
    /// Largest change of a gate's argument in one step: every vertex of a softmax is stationary,
    /// and a long step would end there.
    longest_step: f64 = 1.0;
    /// A step may also change arguments by this share of the largest, once those have grown.
    longest_step_share: f64 = 0.5;
    /// Where V has kinks, gradients count as taken at one point if the gate's arguments there
    /// differ by at most this many times the tolerance. docs/methods/lmkl.md: within 10 tol.
    same_point_tolerances: f64 = 10.0;
    /// Gradients that are remembered for that.
    gradients_remembered: usize = 24;
    /// The shortest mean of gradients is found in at most this many moves of weight for each
    /// gradient.
    shortest_mean_moves: usize = 100;
    /// The gradient is at rest below this share of the tolerance, in units of V.
    slope_tolerance_share: f64 = 0.1;
    /// V is at rest where its last step gained less than this share of the tolerance, in units of
    /// V.
    decrease_tolerance_share: f64 = 0.01;
    /// A gate that is shut counts as rightly so if opening it would lower V by less than this times
    /// the root of the machine's gap, in units of V: multipliers are known to about that root.
    pull_accuracy_factor: f64 = 3.0;
    /// A fit is at rest where it gained less than the tolerance over this many steps and the
    /// gradient is below the tolerance. docs/methods/lmkl.md: fifty steps.
    slow_steps: usize = 50;
    /// Remembered curvature is dropped after this many steps where the scaling has moved on.
    restart_steps: usize = 25;
}

/// The machine's relative gap is never smaller than this: less is rounding.
const ROUNDED_GAP: f64 = 1e-13;
/// The machine's absolute gap is never smaller than this share of the objective of the best
/// constant: less is rounding.
const ROUNDED_ABSOLUTE_GAP: f64 = 1e-14;
/// A gradient below this share of V is zero, and no step is needed to prove it.
const NO_SLOPE: f64 = 1e-9;

/// A gate with the machines solved at it.
#[derive(Clone)]
pub struct Gated {
    /// The parameters z of the gate.
    pub parameters: Vec<f64>,
    /// The gates η, samples × kernels.
    pub gates: Matrix,
    /// The value V of the machines.
    pub value: f64,
    /// The largest entry max |∂V/∂z| of the gradient.
    pub slope: f64,
    /// The gradient ∂V/∂z of the value.
    pub gradient: Vec<f64>,
    solutions: Vec<Solution>,
    direction: Element,
}

/// V at `parameters` with its gradient, the machines solved to a relative gap.
pub fn gate_value(
    problem: &Problem<'_>,
    gate: &dyn Gate,
    parameters: &[f64],
    accuracy: f64,
) -> Result<Gated> {
    visit(problem, gate, gate.element(parameters.to_vec()), accuracy, None)
}

fn visit(
    problem: &Problem<'_>,
    gate: &dyn Gate,
    at: Element,
    relative: f64,
    start: Option<&[Vec<f64>]>,
) -> Result<Gated> {
    let (grams, n) = (problem.grams, problem.grams.n_samples());
    let gates = gate.gates(&at);
    let local = LocalizedGramSet::paired(grams, &gates, problem.budget);
    let scale: f64 = problem.parts.iter().map(|p| p.task.constant_objective()).sum();
    let stop = Stop { absolute: ROUNDED_ABSOLUTE_GAP * scale, relative };
    let (solutions, _) = solve_at(problem, &local, &vec![1.0; grams.n_terms()], start, stop)?;
    let value = solutions.iter().map(|s| s.primal).sum();
    // ∂V/∂η_im = −a_i (K_m (η_m∘a))_i, summed over the decision functions.
    let duals: Vec<Vec<f64>> = problem
        .parts
        .iter()
        .zip(&solutions)
        .map(|(part, s)| part.rows.map_or_else(|| s.a.clone(), |rows| spread(&s.a, rows, n)))
        .collect();
    let columns: Vec<Vec<f64>> = (0..grams.n_terms())
        .into_par_iter()
        .map(|m| {
            let (mut total, mut product) = (vec![0.0; n], vec![0.0; n]);
            for a in &duals {
                let scaled: Vec<f64> = (0..n).map(|i| gates[(i, m)] * a[i]).collect();
                grams.apply(m, &scaled, &mut product);
                (0..n).for_each(|i| total[i] -= a[i] * product[i]);
            }
            total
        })
        .collect();
    let mut by_gate = Matrix::zeros(n, columns.len());
    for (m, column) in columns.iter().enumerate() {
        (0..n).for_each(|i| by_gate[(i, m)] = column[i]);
    }
    let direction = gate.gradient(&at, &gates, &by_gate);
    let gradient = direction.image.clone();
    let slope = gradient.iter().fold(0.0, |m: f64, g| m.max(g.abs()));
    Ok(Gated { parameters: at.coef, gates, value, slope, gradient, solutions, direction })
}

impl Gated {
    fn duals(&self) -> Vec<Vec<f64>> {
        self.solutions.iter().map(|s| s.a.clone()).collect()
    }
}

/// Minimises V from equal gates and `starts` − 1 random ones, and keeps the lowest.
pub fn fit_gate(
    problem: &Problem<'_>,
    gate: &dyn Gate,
    (starts, seed): (usize, u64),
    duals: Option<Vec<Vec<f64>>>,
    observer: &mut dyn Observer,
) -> Result<(Fit, Gated)> {
    let mut run = Run::new(problem, observer);
    let mut rng = Rng::new(seed);
    let mut best: Option<(Gated, Status)> = None;
    for start in 0..starts.max(1) {
        let first = if start == 0 {
            gate.element(vec![0.0; gate.size()])
        } else {
            random_start(gate, &mut rng)
        };
        let lowest = best.as_ref().map_or(f64::INFINITY, |(b, _)| b.value);
        let found = descend(&mut run, problem, gate, first, duals.as_deref(), lowest)?;
        if found.0.value < lowest {
            best = Some(found);
        }
        if run.stopped() {
            break;
        }
    }
    let Some((gated, status)) = best else {
        return Err(Error::numerical("the fit", "no start produced a finite objective"));
    };
    let gated = shut_negligible(problem, gate, gated)?;
    let (primal, dual_sum) = (gated.value, gated.solutions.iter().map(|s| s.dual_sum).sum());
    let theta = gate.weights(&gated.gates, &gated.parameters);
    let slope = vec![0.0; theta.len()];
    run.best = Some(Point {
        theta,
        solutions: gated.solutions.clone(),
        primal,
        dual_sum,
        slope,
        images: None,
    });
    Ok((run.finish_as(primal, f64::NAN, f64::NAN, status)?, gated))
}

/// Shuts gates that are almost shut, because steps of a softmax bring a weight near zero and never
/// to it; the gate stays as it is where V would rise by more than the tolerance.
fn shut_negligible(problem: &Problem<'_>, gate: &dyn Gate, gated: Gated) -> Result<Gated> {
    let weights = gate.weights(&gated.gates, &gated.parameters);
    let kernels = gated.gates.cols();
    // Weights of a kernel gate are one group, those of a group gate one for each group.
    let shut: Vec<bool> = weights
        .chunks(kernels)
        .flat_map(|own| own.iter().map(|w| *w < negligible_weight(own)))
        .collect();
    if !shut.contains(&true) {
        return Ok(gated);
    }
    let at = gate.element(gate.with_shut(&gated.parameters, &shut));
    let accuracy = last_accuracy(problem.tol);
    let without = visit(problem, gate, at, accuracy, Some(&gated.duals()))?;
    let risen = without.value - gated.value;
    Ok(if risen <= problem.tol * gated.value.abs() { without } else { gated })
}

/// The machine's relative gap at last.
fn last_accuracy(tol: f64) -> f64 {
    (TUNING.last_machine_tolerance_share * tol).max(ROUNDED_GAP)
}

/// Normal parameters, scaled so that the largest argument of the gate is 1.
fn random_start(gate: &dyn Gate, rng: &mut Rng) -> Element {
    let mut element = gate.element((0..gate.size()).map(|_| rng.normal()).collect());
    let largest = gate.largest_argument(&element);
    if largest > 0.0 {
        element.scale(1.0 / largest);
    }
    element
}

/// Descends from one start. Values above `lowest`, which an earlier start reached, are not
/// recorded.
fn descend(
    run: &mut Run<'_>,
    problem: &Problem<'_>,
    gate: &dyn Gate,
    first: Element,
    duals: Option<&[Vec<f64>]>,
    lowest: f64,
) -> Result<(Gated, Status)> {
    let mut descent = Descent::start(problem, gate, first, duals)?;
    loop {
        descent.bundle.push(&descent.at, &descent.now);
        let slope = descent.slope();
        let active = active_gates(&descent.now.gates);
        run.record_values(descent.now.value.min(lowest), f64::NAN, slope / descent.size(), active);
        let (shut, small_slope) = (descent.shut_gates_stay_shut(), descent.small_slope());
        let at_rest = descent.is_at_rest(slope, shut);
        descent.values.push(descent.now.value);
        if at_rest || descent.is_slow(slope, shut) {
            return Ok((descent.now, Status::Stationary));
        }
        if run.stopped() {
            return Ok((descent.now, Status::Stopped));
        }
        if descent.values.len() >= problem.max_iter {
            return Ok((descent.now, Status::MaxIterations));
        }
        // Where V is nowhere lower as far as numbers can tell, gradients nearby say whether the
        // point is at rest.
        let Some((at, now)) = descent.next_point()? else {
            let rest = descent.slope_nearby() <= small_slope && shut;
            return Ok((
                descent.now,
                if rest { Status::Stationary } else { Status::MaxIterations },
            ));
        };
        descent.move_to(at, now);
    }
}

/// A run of descent from one start.
struct Descent<'a> {
    problem: &'a Problem<'a>,
    gate: &'a dyn Gate,
    /// The machine's relative gap.
    accuracy: f64,
    at: Element,
    now: Gated,
    history: History,
    bundle: GradientBundle,
    /// V at every step.
    values: Vec<f64>,
    /// How much the last step lowered V.
    decrease: f64,
}

impl<'a> Descent<'a> {
    fn start(
        problem: &'a Problem<'a>,
        gate: &'a dyn Gate,
        at: Element,
        duals: Option<&[Vec<f64>]>,
    ) -> Result<Self> {
        let accuracy = (TUNING.first_machine_tolerance_share * problem.tol)
            .clamp(ROUNDED_GAP, TUNING.largest_machine_gap);
        let now = visit(problem, gate, at.clone(), accuracy, duals)?;
        let (history, bundle) = (History::default(), GradientBundle::default());
        Ok(Self {
            problem,
            gate,
            accuracy,
            at,
            now,
            history,
            bundle,
            values: Vec::new(),
            decrease: f64::INFINITY,
        })
    }

    /// |V|, the unit of slopes and decreases.
    fn size(&self) -> f64 {
        self.now.value.abs().max(f64::MIN_POSITIVE)
    }

    /// The slope below which a gradient is at rest.
    fn small_slope(&self) -> f64 {
        TUNING.slope_tolerance_share * self.problem.tol * self.size()
    }

    /// The slope of the shortest mean of the gradients nearby.
    fn slope_nearby(&self) -> f64 {
        self.bundle.slope(self.gate, &self.at, TUNING.same_point_tolerances * self.problem.tol)
    }

    /// The measure of rest: where multipliers are not unique V has a kink, and no single gradient
    /// vanishes there, but their shortest mean does.
    fn slope(&self) -> f64 {
        let maybe_kink =
            self.now.slope > self.small_slope() && self.decrease <= self.problem.tol * self.size();
        if maybe_kink { self.slope_nearby() } else { self.now.slope }
    }

    /// Would opening a gate that is shut lower V by no more than the machine's accuracy can tell?
    fn shut_gates_stay_shut(&self) -> bool {
        let pull = self.gate.pull(&self.now.parameters, &self.now.gradient);
        pull <= self.problem.tol.max(TUNING.pull_accuracy_factor * self.accuracy.sqrt())
            * self.size()
    }

    /// Are gradient and progress both at rest, and gates that are shut rightly so? A gradient of
    /// zero needs no step to prove it.
    fn is_at_rest(&self, slope: f64, shut: bool) -> bool {
        let size = self.size();
        let little = self.decrease <= TUNING.decrease_tolerance_share * self.problem.tol * size;
        slope <= self.small_slope() && shut && (little || self.now.slope <= NO_SLOPE * size)
    }

    /// Have many steps together gained less than the tolerance, with a gradient below it?
    fn is_slow(&self, slope: f64, shut: bool) -> bool {
        let allowed = self.problem.tol * self.size();
        let before = self.values.len().checked_sub(TUNING.slow_steps);
        before.is_some_and(|k| self.values[k] - self.now.value <= allowed)
            && shut
            && slope <= allowed
    }

    /// A lower point, found with less remembered curvature or a more exact machine if need be;
    /// `None` where there is none.
    fn next_point(&mut self) -> Result<Option<(Element, Gated)>> {
        let (problem, gate) = (self.problem, self.gate);
        loop {
            let scaling = gate.scaling(&self.now.parameters, &self.now.gradient);
            if scaling.is_some() && self.values.len().is_multiple_of(TUNING.restart_steps) {
                self.history.clear();
            }
            let direction = self.history.direction(&self.now.direction, scaling.as_deref());
            let bundle = &mut self.bundle;
            let passed = &mut |trial: &Element, point: &Gated| bundle.push(trial, point);
            let from = (&self.at, &self.now);
            if let Some(found) =
                line_search(problem, gate, from, &direction, self.accuracy, passed)?
            {
                return Ok(Some(found));
            }
            let last = last_accuracy(problem.tol);
            if !self.history.is_empty() {
                self.history.clear();
            } else if self.accuracy > last {
                // Descent holds up to the machine's gap: ask for a smaller one.
                self.accuracy = (TUNING.machine_gap_factor * self.accuracy).max(last);
                let again =
                    visit(problem, gate, self.at.clone(), self.accuracy, Some(&self.now.duals()))?;
                if again.value <= self.now.value {
                    self.now = again;
                }
            } else {
                return Ok(None);
            }
        }
    }

    fn move_to(&mut self, at: Element, now: Gated) {
        self.decrease = self.now.value - now.value;
        self.history.push(at.minus(&self.at), now.direction.minus(&self.now.direction));
        (self.at, self.now) = (at, now);
    }
}

/// A point along `direction` where V has fallen enough and no longer falls as steeply (the weak
/// conditions of Wolfe, which serve where V has kinks, too); `passed` sees the other points tried.
fn line_search(
    problem: &Problem<'_>,
    gate: &dyn Gate,
    (at, now): (&Element, &Gated),
    direction: &Element,
    accuracy: f64,
    passed: &mut dyn FnMut(&Element, &Gated),
) -> Result<Option<(Element, Gated)>> {
    let slope = inner(&now.direction, direction);
    let reach = gate.largest_argument(direction);
    if slope.is_nan() || slope >= 0.0 || reach == 0.0 {
        return Ok(None);
    }
    let longest =
        TUNING.longest_step.max(TUNING.longest_step_share * gate.largest_argument(at)) / reach;
    let (mut low, mut high, mut length) = (0.0, f64::INFINITY, longest.min(1.0));
    let (mut start, mut rise) = (now.duals(), 0.0);
    let mut best: Option<(Element, Gated)> = None;
    for _ in 0..TUNING.most_search_machines {
        let trial = add(at, length, direction);
        let point = visit(problem, gate, trial.clone(), accuracy, Some(&start))?;
        let falls = point.value <= now.value + TUNING.sufficient_decrease_share * length * slope
            && point.value < now.value;
        if falls {
            let steep = inner(&point.direction, direction) < TUNING.steep_slope_share * slope;
            if !steep || length >= longest {
                return Ok(Some((trial, point)));
            }
            low = length;
            start = point.duals();
            if let Some((trial, point)) = best.replace((trial, point)) {
                passed(&trial, &point);
            }
        } else {
            high = length;
            rise = point.value - now.value;
            passed(&trial, &point);
        }
        length = if high == f64::INFINITY {
            (TUNING.step_growth_factor * length).min(longest)
        } else if low > 0.0 {
            0.5 * (low + high)
        } else {
            // The least point of the parabola through V, its slope and the trial.
            let bend = rise - length * slope;
            let ideal =
                if bend > 0.0 { -slope * length * length / (2.0 * bend) } else { 0.5 * length };
            ideal.clamp(TUNING.least_shortening_share * length, 0.5 * length)
        };
        if best.is_some() && high - low <= TUNING.bracket_share * high {
            break;
        }
    }
    Ok(best)
}

/// The number of kernels with a gate somewhere that is no negligible share of the largest.
fn active_gates(gates: &Matrix) -> usize {
    let least = negligible_weight(gates.data());
    let open = |m: usize| f64::from(gates.column(m).iter().any(|g| *g > least));
    active(&(0..gates.cols()).map(open).collect::<Vec<_>>())
}
