//! Gates learned with the machine.
//!
//! Solves  min over z :  V(z) = max over a :  A(a) − ½ Σ_m (η_m∘a)ᵀ K_m (η_m∘a),   η = η(z) the gate of every kernel at every sample,
//! to a stationary point. In: terms K_1..K_M, a task (or several that share the gate), a gate.   Out: z, a, b.   Papers: [Gonen2008] with the
//! gate of [Lei2016], [Fu2016], [Yang2009]; pages docs/methods/lmkl.md, glmkl.md, gsmkl.md.
//!
//! For fixed z this is one machine, and by Danskin's theorem ∂V/∂η_im = −a_i (K_m (η_m∘a))_i: K_m v products are all that is needed.
//! The step is a quasi-Newton one, taken in the gate's own geometry, at most 1 in every argument or half of what the largest has grown to
//! (every vertex of a softmax is stationary: a long step would end there), and searched until V falls enough; so V never rises.

mod form;
mod quasi_newton;

use std::collections::VecDeque;

pub use form::{Gate, GroupGate, KernelGate};
pub use quasi_newton::Element;
use quasi_newton::{History, add, inner};
use rayon::prelude::*;

use super::{Point, Problem, Run, active, solve_at, spread, zeros::least};
use crate::{
    Error, Result,
    data::Rng,
    gram::Scratch,
    linalg::{Matrix, dot},
    localize::LocalizedGramSet,
    machine::{Solution, Stop},
    model::Fit,
    trace::{Observer, Status},
};

/// The machine's relative gap in units of the tolerance, at first and at last, and the range both are kept in.
const COARSEST: f64 = 1e-3;
const FINEST: f64 = 1e-6;
const ACCURACY: (f64, f64) = (1e-6, 1e-13);
/// Sufficient decrease, steepness left over, growth of a step that is too short, and trials before a direction is given up.
const DECREASE: f64 = 1e-4;
const CURVATURE: f64 = 0.9;
const EXPANSION: f64 = 3.0;
const TRIALS: usize = 15;
/// Largest change of a gate's argument in one step.
const LONGEST: f64 = 1.0;
/// The same in units of the largest argument, once those have grown.
const STRETCH: f64 = 0.5;
/// Where V has kinks: how far apart, in the gate's arguments and in units of the tolerance, gradients may be taken to count as one, and how
/// many are remembered.
const NEARBY: f64 = 10.0;
const BUNDLE: usize = 24;
/// Steps over which V may fall by no more than the tolerance where progress is slow.
const LONG: usize = 50;
/// Steps after which remembered curvature is dropped where the scaling has moved on.
const RESTART: usize = 25;

/// A solved gate.
#[derive(Clone)]
pub struct Gated {
    /// z.
    pub parameters: Vec<f64>,
    /// η, samples × kernels.
    pub gates: Matrix,
    /// V.
    pub value: f64,
    /// max |∂V/∂z|.
    pub slope: f64,
    /// ∂V/∂z.
    pub gradient: Vec<f64>,
    solutions: Vec<Solution>,
    direction: Element,
}

/// V at `parameters` with its gradient, the machines solved to a relative gap.
pub fn gate_value(problem: &Problem<'_>, gate: &dyn Gate, parameters: &[f64], accuracy: f64) -> Result<Gated> {
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
    let local = LocalizedGramSet::paired(grams, &gates, problem.room);
    let scale: f64 = problem.parts.iter().map(|p| p.task.constant_objective()).sum();
    let stop = Stop { absolute: 1e-14 * scale, relative };
    let (solutions, _) = solve_at(problem, &local, &vec![1.0; grams.n_terms()], start, stop, &Scratch::default())?;
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
        let first = if start == 0 { gate.element(vec![0.0; gate.size()]) } else { random_start(gate, &mut rng) };
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
    let gated = without_dust(problem, gate, gated)?;
    let (primal, dual_sum) = (gated.value, gated.solutions.iter().map(|s| s.dual_sum).sum());
    let theta = gate.weights(&gated.gates, &gated.parameters);
    let slope = vec![0.0; theta.len()];
    run.best = Some(Point { theta, solutions: gated.solutions.clone(), primal, dual_sum, slope, images: None });
    Ok((run.finish_as(primal, f64::NAN, f64::NAN, status)?, gated))
}

/// The same with gates shut that are all but shut: steps of a softmax bring a weight near zero, never to it. As it was where V would rise by
/// more than the tolerance.
fn without_dust(problem: &Problem<'_>, gate: &dyn Gate, gated: Gated) -> Result<Gated> {
    let weights = gate.weights(&gated.gates, &gated.parameters);
    let kernels = gated.gates.cols();
    // Weights of a kernel gate are one group, those of a group gate one for each group.
    let shut: Vec<bool> = weights.chunks(kernels).flat_map(|own| own.iter().map(|w| *w < least(own))).collect();
    if !shut.contains(&true) {
        return Ok(gated);
    }
    let at = gate.element(gate.with_shut(&gated.parameters, &shut));
    let accuracy = (FINEST * problem.tol).max(ACCURACY.1);
    let without = visit(problem, gate, at, accuracy, Some(&gated.duals()))?;
    let risen = without.value - gated.value;
    Ok(if risen <= problem.tol * gated.value.abs() { without } else { gated })
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

/// One run of descent. Values above `lowest`, which an earlier start reached, are not recorded.
fn descend(
    run: &mut Run<'_>,
    problem: &Problem<'_>,
    gate: &dyn Gate,
    first: Element,
    duals: Option<&[Vec<f64>]>,
    lowest: f64,
) -> Result<(Gated, Status)> {
    let tol = problem.tol;
    let finest = (FINEST * tol).max(ACCURACY.1);
    let mut accuracy = (COARSEST * tol).clamp(ACCURACY.1, ACCURACY.0);
    let mut now = visit(problem, gate, first.clone(), accuracy, duals)?;
    let mut at = first;
    let mut history = History::default();
    let mut bundle = Bundle::default();
    let mut values = Vec::new();
    let mut decrease = f64::INFINITY;
    loop {
        let size = now.value.abs().max(f64::MIN_POSITIVE);
        let small = 0.1 * tol * size;
        bundle.push(&at, &now);
        // Where multipliers are not unique V has a kink, and no single gradient vanishes there: their shortest mean does.
        let slope =
            if now.slope > small && decrease <= tol * size { bundle.slope(gate, &at, NEARBY * tol) } else { now.slope };
        run.record_values(now.value.min(lowest), f64::NAN, slope / size, active_gates(&now.gates));
        // Gradient and progress both at rest, and no closed gate that should be open, as far as the machine's accuracy tells; a gradient
        // that is nothing needs no step to prove it.
        let shut = gate.pull(&now.parameters, &now.gradient) <= tol.max(3.0 * accuracy.sqrt()) * size;
        if slope <= small && shut && (decrease <= 0.01 * tol * size || now.slope <= 1e-9 * size) {
            return Ok((now, Status::Stationary));
        }
        // Many steps that together gain less than the tolerance, with a gradient below it.
        values.push(now.value);
        let slow = values.len().checked_sub(LONG).is_some_and(|k| values[k] - now.value <= tol * size);
        if slow && shut && slope <= tol * size {
            return Ok((now, Status::Stationary));
        }
        if run.stopped() {
            return Ok((now, Status::Stopped));
        }
        if values.len() >= problem.max_iter {
            return Ok((now, Status::MaxIterations));
        }
        let next = loop {
            let scaling = gate.scaling(&now.parameters, &now.gradient);
            if scaling.is_some() && values.len() % RESTART == 0 {
                history.clear();
            }
            let direction = history.direction(&now.direction, scaling.as_deref());
            let failed = &mut |trial: &Element, point: &Gated| bundle.push(trial, point);
            if let Some(found) = search(problem, gate, (&at, &now), &direction, accuracy, failed)? {
                break Some(found);
            }
            if !history.is_empty() {
                history.clear();
            } else if accuracy > finest {
                // Descent holds up to the machine's gap: ask for a smaller one.
                accuracy = (1e-2 * accuracy).max(finest);
                let start = now.duals();
                let again = visit(problem, gate, at.clone(), accuracy, Some(&start))?;
                if again.value <= now.value {
                    now = again;
                }
            } else {
                break None;
            }
        };
        // Nowhere lower as far as numbers can tell: at rest if gradients nearby say so too.
        let Some((trial, point)) = next else {
            let rest = bundle.slope(gate, &at, NEARBY * tol) <= small && shut;
            return Ok((now, if rest { Status::Stationary } else { Status::MaxIterations }));
        };
        decrease = now.value - point.value;
        history.push(trial.minus(&at), point.direction.minus(&now.direction));
        (at, now) = (trial, point);
    }
}

/// A point along `direction` where V has fallen enough and no longer falls as steeply (the weak conditions of Wolfe, which serve where V
/// has kinks, too); `passed` sees the other points tried.
fn search(
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
    let longest = LONGEST.max(STRETCH * gate.largest_argument(at)) / reach;
    let (mut low, mut high, mut length) = (0.0, f64::INFINITY, longest.min(1.0));
    let (mut start, mut rise) = (now.duals(), 0.0);
    let mut best: Option<(Element, Gated)> = None;
    for _ in 0..TRIALS {
        let trial = add(at, length, direction);
        let point = visit(problem, gate, trial.clone(), accuracy, Some(&start))?;
        let falls = point.value <= now.value + DECREASE * length * slope && point.value < now.value;
        if falls {
            let steep = inner(&point.direction, direction) < CURVATURE * slope;
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
            (EXPANSION * length).min(longest)
        } else if low > 0.0 {
            0.5 * (low + high)
        } else {
            // The parabola through V, its slope and the trial, kept within [0.1, 0.5].
            let bend = rise - length * slope;
            let ideal = if bend > 0.0 { -slope * length * length / (2.0 * bend) } else { 0.5 * length };
            ideal.clamp(0.1 * length, 0.5 * length)
        };
        if best.is_some() && high - low <= 0.1 * high {
            break;
        }
    }
    Ok(best)
}

/// Gradients of the points visited last.
#[derive(Default)]
struct Bundle(VecDeque<(Element, Element)>);

impl Bundle {
    fn push(&mut self, at: &Element, point: &Gated) {
        if self.0.len() == BUNDLE {
            self.0.pop_front();
        }
        self.0.push_back((at.clone(), point.direction.clone()));
    }

    /// The largest entry of the shortest mean of the gradients within `radius` of a point: where it is nothing, the point is stationary in
    /// the sense of Goldstein.
    fn slope(&self, gate: &dyn Gate, at: &Element, radius: f64) -> f64 {
        let near = self.0.iter().filter(|(point, _)| gate.largest_argument(&point.minus(at)) <= radius);
        let gradients: Vec<&Element> = near.map(|(_, gradient)| gradient).collect();
        shortest_mean(&gradients).image.iter().fold(0.0, |m: f64, g| m.max(g.abs()))
    }
}

/// The shortest vector in the convex hull, by moving weight between the two vectors that gain most.
fn shortest_mean(vectors: &[&Element]) -> Element {
    let count = vectors.len();
    let products: Vec<Vec<f64>> = vectors.iter().map(|x| vectors.iter().map(|y| inner(x, y)).collect()).collect();
    let mut share = vec![0.0; count];
    share[0] = 1.0;
    for _ in 0..100 * count {
        let along: Vec<f64> = products.iter().map(|row| dot(row, &share)).collect();
        let low = (0..count).fold(0, |b, i| if along[i] < along[b] { i } else { b });
        let used = (0..count).filter(|&i| share[i] > 0.0);
        let high = used.reduce(|b, i| if along[i] > along[b] { i } else { b }).unwrap_or(low);
        let bend = products[low][low] + products[high][high] - 2.0 * products[low][high];
        let gain = along[high] - along[low];
        if gain <= 1e-14 * along[high].abs() || bend <= 0.0 {
            break;
        }
        let moved = (gain / bend).min(share[high]);
        share[high] -= moved;
        share[low] += moved;
    }
    let mut out = vectors[0].clone();
    out.scale(share[0]);
    vectors.iter().zip(&share).skip(1).filter(|(_, s)| **s > 0.0).fold(out, |out, (v, s)| add(&out, *s, v))
}

/// Kernels with a gate above 10⁻⁶ of the largest somewhere.
fn active_gates(gates: &Matrix) -> usize {
    let least = least(gates.data());
    let open = |m: usize| f64::from(gates.column(m).iter().any(|g| *g > least));
    active(&(0..gates.cols()).map(open).collect::<Vec<_>>())
}
