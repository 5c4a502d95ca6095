//! The kernels that carry weight at the optimum, and their weights almost exactly.
//!
//! A certified gap of 10⁻³ leaves open which kernels have weight: interior points give every kernel some, and other solvers stop elsewhere. So
//! the answer over a set that selects kernels is sought on the few that may have weight, where a step costs little, until the conditions
//!   ½ s_m ≤ λ φ'(0) and θ_m = 0,   or   ½ s_m = λ φ'(θ_m) and θ_m > 0
//! tell them apart. Kernels found without weight leave, and the others are solved again, until none leaves. One pass over all kernels then
//! proves the bound for the whole problem; kernels that should have had a chance join, and the search begins again.
//! In: a run that is certified, and where its solver stands.   Out: weights with exact zeros, certified again.

use super::{
    super::{
        Point, Problem, Run,
        zeros::{MACHINE, least, thresholds},
    },
    Joint, Kernel, SLOW, Values, combined_size, many_on_few_rows, possible,
    reduce_support::fewer,
};
use crate::{
    Result,
    gram::{EXACT, Groups, Images},
    linalg::{Matrix, dot},
    machine::{Solution, Task, interior::State},
    trace::relative_gap,
    weights::Separable,
};

/// Relative gap at which kernels with and without weight are told apart: multipliers are then known to about its root.
const TOLD_APART: f64 = 1e-10;
/// Nor need the gap be closed further than this share of the tolerance where every kernel has this many times, or this fraction of, what would
/// leave open whether it has weight.
const SOON_ENOUGH: f64 = 1e-2;
const CLEAR: f64 = 1e2;
/// Steps on the kernels that may have weight, at most.
const MAX_STEPS: usize = 40;
/// A step leaves out of K_θ this share of the gap that is open before it: far less than the step closes, so that no more steps are needed.
const LEFT_OUT: f64 = 1e-2;
/// Steps that end further from the optimum than this relative gap tell nothing apart; what they find is certified in any case.
const CLOSE: f64 = 1e-2;
/// Steps end where the products of all pairs add up to less than this share of the objective: what is left is rounding.
const SPENT: f64 = 1e-13;
/// Steps in a row that do not close the gap by a tenth end the walk.
const FLAT: usize = 5;
/// Kernels leave this many times at most before they are looked at as a whole, and others join as often.
const MAX_ROUNDS: usize = 6;
/// A kernel may have weight unless its own, as a share of the largest, is less than this times the share of its multiplier that it lacks. In the
/// 72 fits of `EARLY` a tenth of this kept a seventh more kernels and saved 2 of 352 steps.
const MAY_HAVE: f64 = 1e-2;
/// A kernel joins where ½ s_m exceeds λ φ'(0) by this share of it: less than that moves the objective by no more than the square.
const MISSED: f64 = 1e-6;
/// How near a start is to the point it comes from: products of pairs add up to this share of the objective at least, the next where steps from
/// there do not help.
const NEAR: [f64; 3] = [1e-4, 1e-2, 1.0];

/// Multipliers with their slacks, weights with theirs, and λ.
#[derive(Clone)]
struct Place {
    machine: State,
    theta: Vec<f64>,
    slack: Vec<f64>,
    price: f64,
}

/// Takes weights that are exactly zero where the optimum's are as the answer of `run`: from where `state` stands, or else from the best point.
/// False where that cannot be done, or is not certified.
pub fn settle(run: &mut Run<'_>, set: &dyn Separable, state: Option<&Joint<'_>>) -> Result<bool> {
    let problem = run.problem;
    let (n, terms) = (problem.grams.n_samples(), problem.grams.n_terms());
    if !set.selects() || set.groups(terms).len() > 1 || !many_on_few_rows(n, terms) || !possible(problem) {
        return Ok(false);
    }
    if let Some(state) = state
        && settle_from(run, set, state.may_have_weight(), &|kept| state.place().of(kept))?
    {
        return Ok(true);
    }
    let Some(best) = run.best.clone().filter(|_| run.optimal()) else { return Ok(false) };
    let open = run.upper() - run.lower;
    let kept: Vec<usize> = (0..terms).filter(|&m| best.theta[m] > 0.0).collect();
    for share in NEAR {
        let apart = open.max(share * best.primal);
        if settle_from(run, set, kept.clone(), &|kept| Place::near(&best, kept, problem, set, apart))? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn settle_from(
    run: &mut Run<'_>,
    set: &dyn Separable,
    mut kept: Vec<usize>,
    start: &dyn Fn(&[usize]) -> Place,
) -> Result<bool> {
    let problem = run.problem;
    for round in 1..=MAX_ROUNDS {
        let place = start(&kept);
        let Some((point, left, missed)) = find(problem, set, kept, place) else { break };
        run.raise(point.lower_bound(set));
        if missed.is_empty() || round == MAX_ROUNDS {
            // Where prices are high a machine solved at these weights comes closer than steps can.
            let (theta, duals) = (point.theta.clone(), point.duals());
            return Ok(run.replace_if_certified(point) || {
                let solved = run.visit_to(MACHINE * problem.tol, theta, Some(&duals))?;
                run.raise(solved.lower_bound(set));
                run.replace_if_certified(solved)
            });
        }
        kept = [left, missed].concat();
        kept.sort_unstable();
    }
    Ok(false)
}

/// The best point on the kernels `left`, what is left of them with weight, and the others that should have some; `None` where steps do not come
/// near enough to tell.
fn find(
    problem: &Problem<'_>,
    set: &dyn Separable,
    mut left: Vec<usize>,
    mut place: Place,
) -> Option<(Point, Vec<usize>, Vec<usize>)> {
    let mut rounds = 0;
    loop {
        let grams = Groups::subset(problem.grams, &left);
        let inner = Problem { grams: &grams, parts: problem.parts.clone(), ..*problem };
        let mut own = Joint::at(place, &inner);
        if own.walk_to(&inner, set) > CLOSE {
            return None;
        }
        let theta = own.with_zeros(set);
        let stay: Vec<usize> = (0..theta.len()).filter(|&m| theta[m] > 0.0).collect();
        rounds += 1;
        let last = stay.len() == left.len() || rounds == MAX_ROUNDS;
        let whole = last.then(|| own.whole(problem, set, grams.expand(&theta)));
        left = stay.iter().map(|&m| left[m]).collect();
        if let Some((point, beyond)) = whole {
            let missed = beyond.into_iter().filter(|m| left.binary_search(m).is_err()).collect();
            return Some((point, left, missed));
        }
        place = own.place().of(&stay);
        stay.iter().enumerate().for_each(|(k, &m)| place.theta[k] = theta[m]);
    }
}

impl Place {
    /// On some of the kernels alone.
    fn of(mut self, kept: &[usize]) -> Self {
        self.theta = kept.iter().map(|&m| self.theta[m]).collect();
        self.slack = kept.iter().map(|&m| self.slack[m]).collect();
        self
    }

    /// Strictly inside all bounds, near a point, with products of pairs that add up to `apart`.
    fn near(best: &Point, kept: &[usize], problem: &Problem<'_>, set: &dyn Separable, apart: f64) -> Self {
        let task = &problem.parts[0].task;
        let mut machine = State::new(task, problem.machine.kink().unwrap_or(0.0), combined_size(problem, &best.theta));
        let half: Vec<f64> = kept.iter().map(|&m| best.slope[m]).collect();
        let mut theta: Vec<f64> = kept.iter().map(|&m| best.theta[m]).collect();
        let price = enough(set, &half) / set.phi(f64::MIN_POSITIVE)[1];
        let product = apart / (machine.count() + kept.len() as f64);
        let solution = &best.solutions[0];
        machine = machine.near(task, &solution.a, &solution.f, product);
        let largest = theta.iter().copied().fold(0.0, f64::max);
        // Where a weight and its slack are both zero they share the product in the units of the largest weight and of λ.
        let least = (product * price / largest).sqrt();
        let slack = theta.iter_mut().zip(&half).map(|(theta, half)| {
            let slack = price * set.phi(theta.max(f64::MIN_POSITIVE))[1] - half;
            *theta = theta.max(product / slack.max(least));
            slack.max(product / *theta)
        });
        let slack = slack.collect();
        Self { machine, theta, slack, price }
    }
}

/// λ φ'(0), where `half` holds ½ s of all kernels that have weight.
fn enough(set: &dyn Separable, half: &[f64]) -> f64 {
    thresholds(set, half)[0].1
}

impl<'a> Joint<'a> {
    /// Kernels whose weight is not clearly on its way to zero.
    fn may_have_weight(&self) -> Vec<usize> {
        self.stay_or_go().enumerate().filter(|(_, ratio)| *ratio >= MAY_HAVE).map(|(m, _)| m).collect()
    }

    fn place(&self) -> Place {
        Place {
            machine: self.machine.clone(),
            theta: self.theta.clone(),
            slack: self.slack.clone(),
            price: self.price[0],
        }
    }

    fn at(place: Place, problem: &Problem<'a>) -> Self {
        let Place { machine, theta, slack, price } = place;
        let groups = std::iter::once(0..theta.len()).collect();
        let (a, half, values) = (Vec::new(), Vec::new(), Values::Exact(Matrix::default()));
        let mut own = Self { machine, theta, slack, price: vec![price], groups, a, values, half, pairs: f64::INFINITY };
        own.look(problem.grams, &problem.parts[0].task, true);
        own
    }

    /// What a kernel's weight is as a share of the largest, over the share of λ φ'(θ) that its multiplier lacks: on the way to the optimum this
    /// grows without bound where the weight stays, and vanishes where it goes.
    fn stay_or_go(&self) -> impl Iterator<Item = f64> {
        let largest = self.theta.iter().copied().fold(0.0, f64::max);
        let pairs = self.half.iter().zip(&self.slack);
        self.theta.iter().zip(pairs).map(move |(theta, (half, slack))| theta / largest * (half + slack) / slack)
    }

    /// Is no kernel left of which that cannot be said yet?
    fn told_apart(&self) -> bool {
        !self.stay_or_go().any(|ratio| (1.0 / CLEAR..=CLEAR).contains(&ratio))
    }

    /// Steps until the gap is all but closed, or every kernel is told apart, or they no longer help; ends where the gap was least, and tells it.
    fn walk_to(&mut self, problem: &Problem<'a>, set: &dyn Separable) -> f64 {
        let task: &Task<'_> = &problem.parts[0].task;
        let (mut best, mut closest, mut slow) = (self.place(), f64::INFINITY, 0);
        for _ in 0..MAX_STEPS {
            let point = self.point(problem, set, self.theta.clone());
            // What truncation left out of kernels is not there for these steps.
            let gap = relative_gap(point.primal, point.dual_sum - set.support(&self.half));
            slow = if gap > SLOW * closest { slow + 1 } else { 0 };
            if gap < closest {
                (best, closest) = (self.place(), gap);
            }
            let told = gap <= SOON_ENOUGH * problem.tol && self.told_apart();
            if told || gap <= TOLD_APART || slow == FLAT || self.pairs <= SPENT * point.primal {
                break;
            }
            self.step(task, set, Kernel::of(problem.grams, &self.theta, (LEFT_OUT * gap).max(EXACT)));
            self.look(problem.grams, task, true);
        }
        if slow > 0 {
            *self = Self::at(best, problem);
        }
        closest
    }

    /// The weights, zero where they lack more of their multiplier than they have of the largest weight; on the simplex, with as few of those that
    /// are alike as make the same decision values.
    fn with_zeros(&self, set: &dyn Separable) -> Vec<f64> {
        let least = least(&self.theta);
        let own = |(theta, ratio): (&f64, f64)| if ratio < 1.0 || *theta < least { 0.0 } else { *theta };
        let mut theta: Vec<f64> = self.theta.iter().zip(self.stay_or_go()).map(own).collect();
        if set.phi(1.0)[2] == 0.0 {
            fewer(&mut theta, &|m| {
                let mut column = self.values.column(m);
                column.push(1.0);
                column
            });
        }
        theta
    }

    /// What these multipliers prove for the whole problem with the weights `theta`, and all kernels beyond what gives weight.
    fn whole(&self, problem: &Problem<'_>, set: &dyn Separable, mut theta: Vec<f64>) -> (Point, Vec<usize>) {
        set.tighten(&mut theta);
        let images = Images::new(problem.grams, &self.a);
        let (forms, square) = (images.forms(), dot(&self.a, &self.a));
        let slope = (0..theta.len()).map(|m| 0.5 * (forms[m] + problem.grams.residual(m) * square)).collect();
        let mut solution = Solution::new(&problem.parts[0].task, self.a.clone(), images.times(&theta));
        solution.dual_response = Some(self.machine.dual_response());
        let (primal, dual_sum) = (solution.primal, solution.dual_sum);
        let needed = (1.0 + MISSED) * self.price[0] * set.phi(f64::MIN_POSITIVE)[1];
        let beyond = (0..theta.len()).filter(|m| 0.5 * forms[*m] > needed).collect();
        (Point { theta, solutions: vec![solution], primal, dual_sum, slope, images: None }, beyond)
    }
}
