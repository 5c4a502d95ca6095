//! Kernel weights and multipliers in one interior-point method, for many rows and kernels of low rank or for very many kernels.
//!
//! Solves  min over θ in Θ, f, b :  Σ_i c_i ℓ(y_i, f(x_i) + b) + ½ Σ_m ‖f_m‖²/θ_m   for a piecewise linear loss and a separable Θ.
//! In: terms K_1..K_M, a task, Θ = { θ ≥ 0 : Σ_group φ(θ_m) ≤ 1 }.   Out: θ, a, b and a certified gap.
//!
//! With v_m = K_m a and s_m = aᵀK_m a the optimum is where the multipliers solve the machine at f = Σ θ_m v_m, and
//!   ½ s_m + ζ_m = λ φ'(θ_m),   θ_m ζ_m = 0,   Σ_group φ(θ_m) = 1.
//! A Newton step on these, products of pairs set to μ instead of 0, with K_θ ≈ F Fᵀ and e, right of [`State`], is
//!   δa = e (right − F w − β 1 − V δθ),   w = Fᵀδa,   1ᵀδa = 0,   −Vᵀδa + Λ δθ + Φ δλ = t,   Φᵀδθ = 1 − Σφ,   Λ = λφ'' + ζ/θ:
//! for E = [F 1 V] one positive definite system with the matrix Eᵀ diag(e) E + diag(1, 0, Λ), bordered by Φ. It costs n·columns² a step and no
//! n × n matrix; with fewer rows than columns the same system is solved in a, at n²·columns. Each step's a and θ prove both bounds with no
//! machine solved.
//! Steps are computed with a thinner F, a small share of the trace left out, and everything that counts with the kernels themselves.

mod face;
mod reduce_support;
mod system;
mod values;

use std::ops::Range;

pub use face::settle;
use reduce_support::fewer;
use system::System;
use values::{Kernel, Values};

use super::{Memory, Point, Problem, Run, active, level::working_set, zeros::MACHINE};
use crate::{
    Error, Result,
    gram::{EXACT, Factor, GramSource, Images, LowRankSum},
    linalg::{Matrix, axpy, dot},
    machine::{
        Solution, Task,
        interior::{self, Change, PATIENCE, SHORT_OF_BOUND, SLOW, State},
    },
    model::Fit,
    trace::Observer,
    weights::Separable,
};

/// Values of K_m a at most, over all kernels and rows.
const MAX_VALUES: usize = 1 << 28;
/// Rows at most where the kernel is needed as a matrix.
const MAX_MATRIX: usize = 5000;
/// Multiplications of a step at most where there are many kernels.
const MANY_KERNELS: usize = 10_000_000_000;
/// Steps at most; the level method goes on from where they lead.
const MAX_STEPS: usize = 80;
/// Share of the trace that the first F leaves out, at most, and times the number of rows: what is left out counts beside the barrier, and
/// grows with the rows.
const ROUGH: f64 = 1e-2;
const ROUGH_TRACE: f64 = 5.0;
/// The same where the kernel is a matrix: each step sums it anew, and the first few need not be exact.
const ROUGH_MATRIX: f64 = 0.2;
/// Less is left out where the products of pairs add up to less than this share of the gap: the rest of it is due to what is left out.
const BEHIND: f64 = 0.3;
/// So it is where a matrix is left with more than this share of the gap by a step.
const STALLS: f64 = 0.65;
/// By this factor.
const FINER: f64 = 0.1;
/// The next correction of a step is tried where the last one gained this share of the way to the length it was made for, and that is this
/// many times the length there is, and more.
const WORTH: f64 = 0.1;
const AHEAD: [f64; 2] = [1.5, 0.3];
/// Products within this factor of their target are left alone.
const APART: f64 = 10.0;
/// Columns may be rounded to single precision where a larger share of the trace is left out.
const ROUNDED: f64 = 1e-6;
/// V too, for steps with a matrix that leaves out more than this.
const SINGLE: f64 = 1e-4;
/// From this relative gap on the kernels that may have weight are few enough, and known well enough, to go on with them alone. Measured on
/// 2026-11-19 with halves of Toy 1, Heart and WDBC, 72 fits: from 0.2, 0.05 and 0.01 on they took 236, 287 and 312 steps with all kernels and
/// 576, 570 and 352 with some.
const EARLY: f64 = 1e-2;
/// Where that did not lead to a certified answer it is tried again at this share of the gap.
const NEARER: f64 = 0.1;
/// Where an answer with zeros is not certified yet, steps go on to this share of the gap allowed.
const FURTHER: f64 = 0.3;
/// A weight is a zero in the answer if, in units of the largest, it is smaller than this times its slack in units of its slope: the first
/// of these for which that is certified.
const SMALL: [f64; 4] = [1e-1, 1e-2, 1e-3, 1e-4];

/// Can a problem be solved so? Kernels that are no factors need a matrix of all rows.
fn possible(problem: &Problem<'_>) -> bool {
    let (n, terms) = (problem.grams.n_samples(), problem.grams.n_terms());
    let whole = matches!(&problem.parts[..], [part] if part.rows.is_none());
    let small = 8 * n as u64 * n as u64 <= problem.room.bytes && n <= MAX_MATRIX;
    whole
        && problem.machine.kink().is_some()
        && n.saturating_mul(terms) <= MAX_VALUES
        && (small || (terms < n && factors(problem.grams).is_some()))
}

/// Share of the trace that the first F leaves out, or the first matrix.
fn rough(n: usize, thin: bool) -> f64 {
    if thin { ROUGH.min(ROUGH_TRACE / n as f64) } else { ROUGH_MATRIX }
}

/// All terms as factors.
fn factors(grams: &dyn GramSource) -> Option<Vec<&Factor>> {
    (0..grams.n_terms()).map(|t| grams.factor(t)).collect()
}

/// The same where that makes a small system: fewer terms than rows.
fn thin(grams: &dyn GramSource) -> Option<Vec<&Factor>> {
    factors(grams).filter(|f| f.len() < grams.n_samples())
}

/// At least as many kernels as rows, and few enough of both for steps in the multipliers.
fn many_on_few_rows(n: usize, terms: usize) -> bool {
    terms >= n && n.saturating_mul(n).saturating_mul(terms) <= MANY_KERNELS
}

/// Is this the faster road? With many rows and thin factors, and with more kernels than rows where few of them get weight.
fn pays(problem: &Problem<'_>, set: &dyn Separable) -> bool {
    let (n, terms) = (problem.grams.n_samples(), problem.grams.n_terms());
    let one_set = set.groups(terms).len() == 1;
    if set.selects() && one_set && many_on_few_rows(n, terms) {
        return true;
    }
    let columns =
        || factors(problem.grams).map(|f| combined(&f, &set.start(terms)).truncated(rough(n, true)).rank() + terms);
    problem.machine.solves_in_bases(n) && columns().is_some_and(|c| 2 * c < n)
}

/// A method for the same problem.
pub type Method<'a> = &'a dyn Fn(&mut Memory, &mut dyn Observer) -> Result<Fit>;

/// Minimises over `set` where this is the faster road, or wherever it can be gone if `always`; `otherwise` is the other road, and goes on
/// where steps no longer help.
pub fn fit_or(
    problem: &Problem<'_>,
    set: &dyn Separable,
    always: bool,
    memory: &mut Memory,
    observer: &mut dyn Observer,
    otherwise: Method<'_>,
) -> Result<Fit> {
    match possible(problem) {
        // The other roads begin where the last fit ended.
        true if always || (memory.theta.is_none() && pays(problem, set)) => {
            if let Some(fit) = fit(problem, set, memory, observer)? {
                return Ok(fit);
            }
        }
        false if always => {
            let needs = "one of the other solvers for this problem: `interior` is for a hinge or epsilon-insensitive loss, for machines that \
                         learn from all rows and have weights of their own, and beyond 5000 rows for kernels stored at low rank";
            return Err(Error::param("solver", needs, "interior"));
        }
        _ => {}
    }
    otherwise(memory, observer)
}

/// Minimises over `set`; where steps no longer help, `None`, with the best point in `memory`.
fn fit(
    problem: &Problem<'_>,
    set: &dyn Separable,
    memory: &mut Memory,
    observer: &mut dyn Observer,
) -> Result<Option<Fit>> {
    let mut state = Joint::start(problem, set, thin(problem.grams).is_some());
    let mut run = Run::new(problem, observer);
    state.walk(&mut run, set)?;
    if run.optimal() && set.phi(1.0)[2] == 0.0 {
        state.fewer(&mut run, set);
    }
    memory.remember(run.best.as_ref());
    if !run.over() {
        return Ok(None);
    }
    memory.prover = Some(vec![state.a]);
    run.finish().map(Some)
}

/// K_θ.
fn combined(factors: &[&Factor], theta: &[f64]) -> LowRankSum {
    LowRankSum::new(&theta.iter().copied().zip(factors.iter().copied()).collect::<Vec<_>>())
}

/// The mean of K_θ's diagonal.
fn combined_size(problem: &Problem<'_>, theta: &[f64]) -> f64 {
    let grams = problem.grams;
    theta.iter().enumerate().map(|(t, w)| w * grams.trace(t)).sum::<f64>() / grams.n_samples() as f64
}

/// How much of the kernel steps leave out, and how they get on.
struct Pace {
    /// A share of the trace.
    tolerance: f64,
    /// How far apart the bounds were before the last step.
    last: f64,
    /// Steps in a row that hardly helped.
    slow: usize,
}

impl Pace {
    fn new(n: usize, thin: bool) -> Self {
        Self { tolerance: rough(n, thin), last: f64::INFINITY, slow: 0 }
    }
}

/// Multipliers and weights on their way, strictly inside their bounds.
pub struct Joint<'a> {
    machine: State,
    theta: Vec<f64>,
    /// ζ.
    slack: Vec<f64>,
    /// λ of every group.
    price: Vec<f64>,
    groups: Vec<Range<usize>>,
    /// Feasible multipliers a with V and ½ s.
    a: Vec<f64>,
    values: Values<'a>,
    half: Vec<f64>,
    /// The sum of the products of all pairs.
    pairs: f64,
}

/// Changes of everything.
struct Step {
    machine: Vec<Change>,
    bias: f64,
    theta: Vec<f64>,
    slack: Vec<f64>,
    price: Vec<f64>,
}

impl<'a> Joint<'a> {
    /// In the middle of all bounds; V is `exact` for systems with few columns.
    fn start(problem: &Problem<'a>, set: &dyn Separable, exact: bool) -> Self {
        let task = &problem.parts[0].task;
        let theta = set.start(problem.grams.n_terms());
        let mut machine = State::new(task, problem.machine.kink().unwrap_or(0.0), combined_size(problem, &theta));
        machine.centre(task);
        let (slack, half, groups) = (theta.clone(), theta.clone(), set.groups(theta.len()));
        let (price, a, values) = (vec![0.0; groups.len()], Vec::new(), Values::Exact(Matrix::default()));
        let mut state = Self { machine, theta, slack, price, groups, a, values, half, pairs: f64::INFINITY };
        state.look(problem.grams, task, exact);
        let product = state.machine.balance_all(task, &state.values.decision(&state.theta));
        for (price, group) in state.price.iter_mut().zip(&state.groups) {
            let steep = |m: usize| set.phi(state.theta[m])[1];
            let wanted = group.clone().map(|m| (state.half[m] + product / state.theta[m]) / steep(m));
            *price = wanted.fold(0.0, f64::max);
            group.clone().for_each(|m| state.slack[m] = *price * steep(m) - state.half[m]);
        }
        state
    }

    /// Finds V and s for the multipliers as they are.
    fn look(&mut self, grams: &'a dyn GramSource, task: &Task<'_>, exact: bool) {
        self.a = self.machine.feasible(task, false);
        self.values = Values::Exact(Matrix::default()); // before the next are there
        let images = Images::new(grams, &self.a);
        self.half = images.forms().iter().map(|s| 0.5 * s).collect();
        self.values = if exact {
            Values::Exact(images.matrix())
        } else {
            Values::Single { rows: images.single(), exact: images }
        };
    }

    /// Steps until the gap is closed or they no longer help.
    fn walk(&mut self, run: &mut Run<'a>, set: &dyn Separable) -> Result<()> {
        let problem = run.problem;
        let mut pace = Pace::new(problem.grams.n_samples(), thin(problem.grams).is_some());
        // On few rows a machine is soon solved.
        let soon = problem.grams.n_samples() < working_set::MIN_TERMS;
        let mut near = EARLY.max(problem.tol);
        for _ in 0..MAX_STEPS {
            let point = self.point(problem, set, self.theta.clone());
            run.keep(&point);
            run.raise(point.lower_bound(set));
            run.record(active(&point.theta));
            let mut settled = run.optimal() && !set.selects();
            if run.gap() <= near {
                near = (NEARER * run.gap()).max(problem.tol);
                settled |= face::settle(run, set, Some(self))?;
            }
            settled = settled || (run.optimal() && self.sparser(run, set, soon)?);
            if settled || run.stopped() {
                return Ok(());
            }
            let over = run.gap() <= FURTHER * problem.tol || run.iterations() >= problem.max_iter;
            let open = run.upper() - run.lower;
            if over || !self.advance(problem, set, &mut pace, open) {
                break;
            }
        }
        if run.optimal() && set.selects() && !soon {
            self.sparser(run, set, true)?;
        }
        Ok(())
    }

    /// A step where the bounds are `open` apart; false where steps no longer help.
    fn advance(&mut self, problem: &Problem<'a>, set: &dyn Separable, pace: &mut Pace, open: f64) -> bool {
        let task = &problem.parts[0].task;
        let thin = thin(problem.grams).is_some();
        let stalls = !thin && open > STALLS * pace.last;
        pace.slow = if open > SLOW * pace.last { pace.slow + 1 } else { 0 };
        pace.last = open;
        if pace.slow == PATIENCE || stalls || self.pairs < BEHIND * open {
            if pace.tolerance > EXACT {
                let finer = if pace.slow == PATIENCE { pace.tolerance.powf(1.5) } else { FINER * pace.tolerance };
                (pace.tolerance, pace.slow) = (finer.max(EXACT), 0);
            } else if pace.slow == PATIENCE {
                return false;
            }
        }
        // Without a step the point is the same, and so is the next gap: a finer F then, or the other road.
        self.step(task, set, Kernel::of(problem.grams, &self.theta, pace.tolerance));
        self.look(problem.grams, task, thin || pace.tolerance < SINGLE);
        true
    }

    /// What the multipliers and these weights, on the boundary of Θ, prove.
    fn point(&self, problem: &Problem<'_>, set: &dyn Separable, mut theta: Vec<f64>) -> Point {
        set.tighten(&mut theta);
        let mut solution = Solution::new(&problem.parts[0].task, self.a.clone(), self.values.decision(&theta));
        solution.dual_response = Some(self.machine.dual_response());
        let square = dot(&self.a, &self.a);
        let slope = self.half.iter().enumerate().map(|(t, h)| h + 0.5 * problem.grams.residual(t) * square).collect();
        let (primal, dual_sum) = (solution.primal, solution.dual_sum);
        Point { theta, solutions: vec![solution], primal, dual_sum, slope, images: None }
    }

    /// Takes weights with zeros as the answer, where they are certified too: with these multipliers or, if `solved`, with those of a machine
    /// solved at these weights.
    fn sparser(&self, run: &mut Run<'_>, set: &dyn Separable, solved: bool) -> Result<bool> {
        for small in SMALL {
            let point = self.point(run.problem, set, self.sparse(small));
            let theta = point.theta.clone();
            if run.replace_if_certified(point) {
                return Ok(true);
            }
            if solved {
                let solved = run.visit_to(MACHINE * run.problem.tol, theta, Some(std::slice::from_ref(&self.a)))?;
                run.raise(solved.lower_bound(set));
                if run.replace_if_certified(solved) {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// On the simplex alike kernels share a weight here that one of them could have: the answer is one with as few of them as make the same
    /// decision values and the same sums, if that is certified too.
    fn fewer(&self, run: &mut Run<'_>, set: &dyn Separable) {
        let most = self.a.len() + self.groups.len();
        if run.best.as_ref().is_none_or(|best| active(&best.theta) <= most) {
            return;
        }
        let mut theta = self.theta.clone();
        fewer(&mut theta, &|m| {
            let sums = self.groups.iter().map(|group| f64::from(u8::from(group.contains(&m))));
            self.values.column(m).into_iter().chain(sums).collect()
        });
        run.replace_if_certified(self.point(run.problem, set, theta));
    }

    /// θ without the weights that are small where their slack is not.
    fn sparse(&self, small: f64) -> Vec<f64> {
        let largest = self.theta.iter().copied().fold(0.0, f64::max);
        let keep = |(t, (half, slack)): (&f64, (&f64, &f64))| t / largest >= small * slack / (half + slack);
        let pairs = self.theta.iter().zip(self.half.iter().zip(&self.slack));
        pairs.map(|pair| if keep(pair) { *pair.0 } else { 0.0 }).collect()
    }

    /// One step with K_θ or something close; none where its system cannot be solved.
    fn step(&mut self, task: &Task<'_>, set: &dyn Separable, kernel: Kernel) {
        if let Ok(system) = System::new(self, task, set, kernel) {
            self.follow(&system);
        }
    }

    fn follow(&mut self, system: &System) {
        let count = self.machine.count() + self.theta.len() as f64;
        let decision = self.values.decision(&self.theta);
        // Straight at the solution first: how far that gets tells how much centring is needed.
        let straight = system.solve(self, &decision, &|_| [0.0, 0.0], &|_| 0.0);
        let now = self.complementarity(&straight, 0.0);
        let left = (self.complementarity(&straight, self.longest(&straight)) / now).clamp(0.0, 1.0);
        let target = left * left * left * now / count;
        let mut goals: Vec<[f64; 2]> = straight.machine.iter().map(|c| interior::corrected(target, *c)).collect();
        let second = straight.theta.iter().zip(&straight.slack).map(|(t, s)| target - t * s);
        let mut weight_goals: Vec<f64> = second.collect();
        let mut change = system.solve(self, &decision, &|k| goals[k], &|m| weight_goals[m]);
        let mut length = self.longest(&change);
        // A few products far from the others hold a step up: it aims at less for them as long as it gets further so (Gondzio1996).
        for _ in 0..system.corrections() {
            if length >= 1.0 {
                break;
            }
            let ahead = (AHEAD[0] * length + AHEAD[1]).min(1.0);
            let wanted = |product: f64| product.clamp(target / APART, target * APART);
            let towards = |product: f64| (wanted(product) - product).max(-APART * target);
            self.machine.recentre(&change.machine, ahead, &mut goals, &towards);
            for (m, goal) in weight_goals.iter_mut().enumerate() {
                *goal += towards(self.pair(m, &change, ahead));
            }
            let next = system.solve(self, &decision, &|k| goals[k], &|m| weight_goals[m]);
            let further = self.longest(&next);
            if further <= length {
                break;
            }
            let gained = (further - length) / (ahead - length);
            (change, length) = (next, further);
            if gained < WORTH {
                break;
            }
        }
        let length = SHORT_OF_BOUND * length;
        if !change.theta.iter().chain([&length, &change.bias]).all(|x| x.is_finite()) {
            return;
        }
        self.pairs = self.complementarity(&change, length);
        self.machine.advance(&change.machine, change.bias, length);
        axpy(length, &change.theta, &mut self.theta);
        axpy(length, &change.slack, &mut self.slack);
        axpy(length, &change.price, &mut self.price);
    }

    fn complementarity(&self, step: &Step, length: f64) -> f64 {
        let pairs = (0..self.theta.len()).map(|m| self.pair(m, step, length));
        self.machine.complementarity(&step.machine, length) + pairs.sum::<f64>()
    }

    /// θ_m ζ_m after a step of this length.
    fn pair(&self, m: usize, step: &Step, length: f64) -> f64 {
        (self.theta[m] + length * step.theta[m]) * (self.slack[m] + length * step.slack[m])
    }

    /// The longest step up to 1 that keeps everything from going below 0.
    fn longest(&self, step: &Step) -> f64 {
        let limit = |(x, d): (&f64, &f64)| if *d < 0.0 { -x / d } else { f64::INFINITY };
        let pairs = [(&self.theta, &step.theta), (&self.slack, &step.slack), (&self.price, &step.price)];
        let limits = pairs.into_iter().flat_map(|(x, d)| x.iter().zip(d)).map(limit);
        limits.fold(self.machine.longest(&step.machine), f64::min)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        data::{Target, synthetic},
        gram::{Budget, BuildOptions, GramSet, GramSource, Storage},
        kernels::{Normalize, language},
        loss::{EpsilonInsensitive, Hinge},
        machine::Fitting,
        outer::{Part, level},
        trace::{Silent, Status},
        weights::{ElasticNet, LpBall, PerRegion},
    };

    fn terms(n: usize, kernels: &str, storage: Storage) -> (GramSet, Vec<f64>) {
        let (x, y) = synthetic::toy1(n, 4);
        let specs = language::parse(kernels).unwrap().resolve(&x).unwrap();
        let budget = Budget { bytes: 1 << 30 };
        let options = BuildOptions {
            normalize: Normalize::Multiplicative,
            storage,
            rank_tolerance: 1e-13,
            budget,
            ..BuildOptions::default()
        };
        let Target::Classes { labels, .. } = y else { panic!("classes") };
        let signs = labels.iter().map(|&l| 2.0 * l as f64 - 1.0).collect();
        (GramSet::from_table(x.features(), &specs, &options).unwrap(), signs)
    }

    #[test]
    fn meets_the_level_method_on_every_set() {
        // More columns than rows, fewer, and no factors at all.
        let wide = "rbf(0.5|2), poly(1..2) on each";
        compare(terms(90, wide, Storage::LowRank), &[(0.02, true), (3.0, true), (3.0, false), (100.0, true)]);
        compare(terms(200, "poly(1..2) on each", Storage::LowRank), &[(1.0, true), (1.0, false)]);
        compare(terms(60, wide, Storage::Dense), &[(3.0, true)]);
    }

    fn compare((grams, signs): (GramSet, Vec<f64>), prices: &[(f64, bool)]) {
        let n = signs.len();
        let values: Vec<f64> = signs.iter().enumerate().map(|(i, s)| s + (0.7 * i as f64).sin()).collect();
        let sets: [(&str, Box<dyn Separable>); 6] = [
            ("elastic net 0", Box::new(ElasticNet::new(0.0, 2.0).unwrap())),
            ("elastic net 0.5", Box::new(ElasticNet::new(0.5, 2.0).unwrap())),
            ("simplex", Box::new(LpBall::new(1.0).unwrap())),
            ("l1.5 ball", Box::new(LpBall::new(1.5).unwrap())),
            ("l4 ball", Box::new(LpBall::new(4.0).unwrap())),
            ("two balls", Box::new(PerRegion::new(LpBall::new(2.0).unwrap(), 2))),
        ];
        let tube = Fitting::EpsilonInsensitive(EpsilonInsensitive::new(0.3).unwrap());
        for (fitting, y) in [(Fitting::Hinge(Hinge), &signs), (tube, &values)] {
            for &(price, intercept) in prices {
                let cost: Vec<f64> = (0..n).map(|i| if i % 5 == 0 { 2.0 * price } else { price }).collect();
                let task = Task { y, cost: &cost, loss: fitting.loss(), intercept };
                let (machine, room) = (fitting.machine(), Budget { bytes: 1 << 30 });
                let parts = vec![Part { task, rows: None }];
                let problem = Problem {
                    grams: &grams,
                    parts,
                    machine: &*machine,
                    room,
                    tol: 1e-5,
                    max_iter: 500,
                    working_set: false,
                    screening: false,
                };
                for (name, set) in &sets {
                    let set: &dyn Separable = &**set;
                    let ours = fit(&problem, set, &mut Memory::default(), &mut Silent).unwrap();
                    let told = format!("{name}, {fitting:?}, price {price}, bias {intercept}");
                    let ours = ours.unwrap_or_else(|| panic!("{told}: no progress"));
                    let other = level(&problem, set, &mut Memory::default(), &mut Silent).unwrap();
                    let (a, b) = (ours.certificate, other.certificate);
                    assert_eq!(a.status, Status::Optimal, "{told}: {a:?}");
                    assert!(a.gap <= 1e-5 && a.iterations < 40, "{told}: {a:?}");
                    let slip = 1e-9 * b.primal;
                    assert!(a.dual <= b.primal + slip && b.dual <= a.primal + slip, "{told}: {a:?} {b:?}");
                    assert!(set.load(&ours.weights) <= 1.0 + 1e-12, "{told}");
                    if *name == "simplex" && price == 3.0 {
                        assert!(active(&ours.weights) < grams.n_terms() / 2, "{told}: {}", active(&ours.weights));
                    }
                }
            }
        }
    }

    #[test]
    fn roads_that_cannot_be_gone_are_refused() {
        let (grams, signs) = terms(30, "linear on each", Storage::LowRank);
        let cost = vec![1.0; 30];
        let fitting = Fitting::Logistic(crate::loss::Logistic);
        let task = Task { y: &signs, cost: &cost, loss: fitting.loss(), intercept: true };
        let problem = Problem {
            grams: &grams,
            parts: vec![Part { task, rows: None }],
            machine: &*fitting.machine(),
            room: Budget { bytes: 1 << 30 },
            tol: 1e-3,
            max_iter: 10,
            working_set: false,
            screening: false,
        };
        let set = LpBall::new(2.0).unwrap();
        let run = |always| {
            let level: Method<'_> = &|memory, observer| level(&problem, &set, memory, observer);
            fit_or(&problem, &set, always, &mut Memory::default(), &mut Silent, level)
        };
        let error = run(true).unwrap_err().to_string();
        assert!(error.contains("solver") && error.contains("interior"), "{error}");
        assert!(run(false).is_ok());
    }
}
