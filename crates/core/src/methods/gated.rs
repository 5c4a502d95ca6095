//! Gates learned with the machine.
//!
//! Solves  min over z :  V(z) = max over a :  A(a) − ½ Σ_m (η_m∘a)ᵀ K_m (η_m∘a),   η = η(z) the gate of every kernel at every sample,
//! to a stationary point. In: terms K_1..K_M, a task (or several that share the gate), a gate.   Out: z, a, b.   Papers: [Gonen2008] with the
//! gate of [Lei2016], [Fu2016], [Yang2009]; pages docs/methods/lmkl.md, glmkl.md, gsmkl.md.
//!
//! For fixed z this is one machine, and by Danskin's theorem ∂V/∂η_im = −a_i (K_m (η_m∘a))_i: K_m v products are all that is needed.
//! The step is a quasi-Newton one, taken in the gate's own geometry, at most 1 in every argument (every vertex of a softmax is stationary:
//! a long step would end there) and shortened until V falls; so V never rises.

mod gate;
mod quasi_newton;

pub use gate::{Gate, GroupGate, KernelGate};
pub use quasi_newton::Element;
use quasi_newton::{History, add, inner};
use rayon::prelude::*;

use super::evaluate::{Point, Problem, Run, active, solve_at, spread};
use crate::{
    Error, Result,
    data::Rng,
    linalg::{Matrix, dot},
    localize::LocalizedGramSet,
    machine::{Solution, Stop},
    model::Fit,
    trace::{Observer, Status},
};

/// The machine's relative gap: never coarser, never finer.
const ACCURACY: (f64, f64) = (1e-6, 1e-13);
/// Sufficient decrease, and trials before a direction is given up.
const DECREASE: f64 = 1e-4;
const TRIALS: usize = 25;
/// Largest change of a gate's argument in one step.
const LONGEST: f64 = 1.0;
/// Where V has kinks: how far apart, in the gate's arguments, gradients may be taken to count as one, and how many.
const NEARBY: f64 = 1e-2;
const BUNDLE: usize = 24;
/// Steps over which V must stand still where gradients jump from step to step, and steps over which it may fall by no more than the
/// tolerance where progress is slow.
const WINDOW: usize = 10;
const LONG: usize = 50;
/// Steps after which remembered curvature is dropped.
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
    let (primal, dual_sum) = (gated.value, gated.solutions.iter().map(|s| s.dual_sum).sum());
    let theta = gate.weights(&gated.gates, &gated.parameters);
    let slope = vec![0.0; theta.len()];
    run.best = Some(Point { theta, solutions: gated.solutions.clone(), primal, dual_sum, slope });
    Ok((run.finish_as(primal, f64::NAN, f64::NAN, status)?, gated))
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
    let mut accuracy = (1e-3 * tol).clamp(ACCURACY.1, ACCURACY.0);
    let mut at = first;
    let mut now = visit(problem, gate, at.clone(), accuracy, duals)?;
    let mut history = History::default();
    let (mut decrease, mut steps) = (f64::INFINITY, 0);
    let mut recent: Vec<(f64, f64)> = Vec::new();
    loop {
        let size = now.value.abs().max(f64::MIN_POSITIVE);
        run.record_values(now.value.min(lowest), f64::NAN, now.slope / size, active_gates(&now.gates));
        // Gradient and progress both at rest, and no closed gate that should be open, as far as the machine's accuracy tells; a gradient
        // that is nothing needs no step to prove it.
        let shut = gate.pull(&now.parameters, &now.gradient) <= tol.max(3.0 * accuracy.sqrt()) * size;
        let at_rest = now.slope <= 0.1 * tol * size && shut;
        if at_rest && (decrease <= 0.01 * tol * size || now.slope <= 1e-9 * size) {
            return Ok((now, Status::Stationary));
        }
        // The same over a few steps: around a kink, progress and gradient need not be small at once.
        recent.push((now.value, now.slope));
        if let Some(first) = recent.len().checked_sub(WINDOW) {
            let window = &recent[first..];
            let still = window[0].0 - now.value <= 0.01 * tol * size;
            if still && shut && window.iter().any(|(_, slope)| *slope <= 0.1 * tol * size) {
                return Ok((now, Status::Stationary));
            }
        }
        // Fifty steps that together gain less than the tolerance, with a gradient below it.
        let slow = recent.len().checked_sub(LONG).is_some_and(|k| recent[k].0 - now.value <= tol * size);
        if slow && shut && now.slope <= tol * size {
            return Ok((now, Status::Stationary));
        }
        if run.stopped() {
            return Ok((now, Status::Stopped));
        }
        steps += 1;
        if steps > problem.max_iter {
            return Ok((now, Status::MaxIterations));
        }
        if decrease <= 0.01 * tol * size {
            // No progress and yet a slope: V may have a kink here.
            match around_kink(problem, gate, &at, &now, accuracy, 0.1 * tol * size)? {
                Kink::Stationary(slope) if shut => {
                    run.record_values(now.value.min(lowest), f64::NAN, slope / size, active_gates(&now.gates));
                    return Ok((now, Status::Stationary));
                }
                Kink::Lower(step, point) => {
                    decrease = now.value - point.value;
                    history.clear();
                    at = add(&at, 1.0, &step);
                    now = *point;
                    continue;
                }
                _ => {}
            }
        }
        let next = loop {
            let scaling = gate.scaling(&now.parameters, &now.gradient);
            let direction = history.direction(&now.direction, scaling.as_deref());
            let reach = (LONGEST, TRIALS);
            if let Some(found) = search(problem, gate, (&at, &now), &direction, accuracy, reach, &mut |_, _| {})? {
                break Some(found);
            }
            if !history.is_empty() {
                history.clear();
            } else if accuracy > ACCURACY.1 {
                // Descent holds up to the machine's gap: ask for a smaller one.
                accuracy = (1e-2 * accuracy).max(ACCURACY.1);
                let start = now.duals();
                let again = visit(problem, gate, at.clone(), accuracy, Some(&start))?;
                if again.value <= now.value {
                    now = again;
                }
            } else {
                break None;
            }
        };
        // Nowhere lower as far as numbers can tell: at rest if the gradient says so too.
        let Some((step, point)) = next else {
            let status = if now.slope <= 0.1 * tol * size { Status::Stationary } else { Status::MaxIterations };
            return Ok((now, status));
        };
        decrease = now.value - point.value;
        // Old curvature misleads where the scaling has moved on: begin anew now and then.
        if steps % RESTART == 0 {
            history.clear();
        }
        let change = point.direction.minus(&now.direction);
        history.push(step.clone(), change);
        at = add(&at, 1.0, &step);
        now = point;
    }
}

/// A point along `direction` where V has fallen enough, and the step to it; `failed` sees the points where it has not.
fn search(
    problem: &Problem<'_>,
    gate: &dyn Gate,
    (at, now): (&Element, &Gated),
    direction: &Element,
    accuracy: f64,
    (longest, trials): (f64, usize),
    failed: &mut dyn FnMut(f64, &Gated),
) -> Result<Option<(Element, Gated)>> {
    let slope = inner(&now.direction, direction);
    let reach = gate.largest_argument(direction);
    if slope.is_nan() || slope >= 0.0 || reach == 0.0 {
        return Ok(None);
    }
    let start = now.duals();
    let mut length = (longest / reach).min(if trials == TRIALS { 1.0 } else { f64::INFINITY });
    for _ in 0..trials {
        let trial = add(at, length, direction);
        let step = trial.minus(at);
        let point = visit(problem, gate, trial, accuracy, Some(&start))?;
        if point.value <= now.value + DECREASE * length * slope && point.value < now.value {
            return Ok(Some((step, point)));
        }
        failed(length * reach, &point);
        // The parabola through V, its slope and the trial, kept within [0.1, 0.5].
        let bend = point.value - now.value - length * slope;
        let ideal = if bend > 0.0 { -slope * length * length / (2.0 * bend) } else { 0.5 * length };
        length = ideal.clamp(0.1 * length, 0.5 * length);
    }
    Ok(None)
}

/// What gradients around a point say.
enum Kink {
    /// Some mean of gradients nearby is nothing (its largest entry is returned): stationary in the sense of Goldstein.
    Stationary(f64),
    /// A step that lowers V.
    Lower(Element, Box<Gated>),
    /// Neither was found.
    Unclear,
}

/// V is a maximum over multipliers, and where these are not unique it has a kink: no single gradient vanishes there. Their shortest mean
/// does, or points down; every trial that fails adds the gradient it found.
fn around_kink(
    problem: &Problem<'_>,
    gate: &dyn Gate,
    at: &Element,
    now: &Gated,
    accuracy: f64,
    small: f64,
) -> Result<Kink> {
    let mut gradients = vec![now.direction.clone()];
    let mut lower: Option<(Element, Gated)> = None;
    while gradients.len() < BUNDLE {
        let mut mean = shortest_mean(&gradients);
        let slope = mean.image.iter().fold(0.0, |m: f64, g| m.max(g.abs()));
        if slope <= small {
            return Ok(Kink::Stationary(slope));
        }
        mean.scale(-1.0);
        let before = gradients.len();
        let mut note = |distance: f64, point: &Gated| {
            if distance <= NEARBY {
                gradients.push(point.direction.clone());
            }
        };
        if let Some((step, point)) = search(problem, gate, (at, now), &mean, accuracy, (NEARBY, 3), &mut note)? {
            // A step that gains next to nothing says more by its gradient.
            if now.value - point.value >= 1e-2 * small {
                return Ok(Kink::Lower(step, Box::new(point)));
            }
            gradients.push(point.direction.clone());
            if lower.as_ref().is_none_or(|(_, l)| point.value < l.value) {
                lower = Some((step, point));
            }
        }
        if gradients.len() == before {
            break;
        }
    }
    Ok(lower.map_or(Kink::Unclear, |(step, point)| Kink::Lower(step, Box::new(point))))
}

/// The shortest vector in the convex hull, by moving weight between the two vectors that gain most.
fn shortest_mean(vectors: &[Element]) -> Element {
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
    let largest = gates.data().iter().copied().fold(0.0, f64::max);
    let open = |m: usize| f64::from(gates.column(m).iter().any(|g| *g > 1e-6 * largest));
    active(&(0..gates.cols()).map(open).collect::<Vec<_>>())
}
