//! The kernels that carry weight at the optimum, and their weights almost exactly.
//!
//! A certified gap of 10⁻³ leaves open which kernels have weight: interior points give every kernel
//! some, and other solvers stop elsewhere. So the answer over a set that selects kernels is sought
//! on the few that may have weight, where a step costs little, until the conditions
//!   ½ s_m ≤ λ φ'(0) and θ_m = 0,   or   ½ s_m = λ φ'(θ_m) and θ_m > 0
//! tell them apart. Kernels found without weight leave, and the others are solved again, until none
//! leaves. One pass over all kernels then proves the bound for the whole problem; kernels that
//! should have had a chance join, and the search begins again.
//! In: a run that is certified, and where its solver stands.
//!   Out: weights with exact zeros, certified again.

use super::{
    super::{
        Point, Problem, Run,
        zeros::{self, thresholds},
    },
    InteriorDual, StepKernel, TermImages, many_kernels_on_few_rows, mean_diagonal,
    point::JointPoint,
    possible,
    reduce_support::reduce_support,
};
use crate::{
    Result,
    gram::{EXACT, Groups, Images},
    linalg::{Matrix, dot, mehrotra::Progress},
    machine::{Solution, Task},
    trace::relative_gap,
    tuning::tuning,
    weights::{Separable, negligible_weight},
};

tuning! { "face"
    /// Relative gap at which kernels with and without weight are decided: multipliers are then
    /// known to about its root.
    deciding_gap: f64 = 1e-10;
    /// Nor need the gap be closed further than this share of the tolerance where no kernel is
    /// undecided.
    deciding_tolerance_share: f64 = 1e-2;
    /// A kernel is undecided while its weight over what its multiplier lacks lies within this
    /// factor of 1.
    deciding_factor: f64 = 1e2;
    /// Steps on the kernels that may have weight, at most.
    most_steps: usize = 40;
    /// A step leaves out of K_θ this share of the gap that is open before it: far less than the
    /// step closes, so that no more steps are needed.
    truncated_gap_share: f64 = 1e-2;
    /// Steps that end further from the optimum than this relative gap decide nothing; what they
    /// find is certified in any case.
    largest_final_gap: f64 = 1e-2;
    /// Steps end where the products of all pairs add up to less than this share of the objective:
    /// what is left is rounding.
    spent_objective_share: f64 = 1e-13;
    /// Steps end after this many in a row that hardly closed the gap.
    patience_steps: usize = 5;
    /// Kernels leave this many times at most before all kernels are looked at, and others join as
    /// often.
    most_rounds: usize = 6;
    /// A kernel may have weight unless its own, as a share of the largest, is less than this times
    /// the share of its multiplier that it lacks. In the 72 fits measured for `joint.face_gap` a
    /// tenth of this kept a seventh more kernels and saved 2 of 352 steps.
    possible_weight_share: f64 = 1e-2;
    /// A kernel joins where ½ s_m exceeds λ φ'(0) by this share of it: less than that moves the
    /// objective by no more than the square.
    joining_excess_share: f64 = 1e-6;
    /// A start near a certified point has products of pairs that add up to at least this share of
    /// the objective; the next is taken where steps from there do not help.
    start_pairs_objective_shares: [f64; 3] = [1e-4, 1e-2, 1.0];
}

/// Where steps begin: multipliers with their slacks, weights with theirs, and λ.
#[derive(Clone)]
struct StepStart {
    machine: InteriorDual,
    theta: Vec<f64>,
    slack: Vec<f64>,
    multiplier: f64,
}

/// What steps on some of the kernels have found.
struct FaceAnswer {
    /// The best point, with what it proves for the whole problem.
    point: Point,
    /// The kernels with weight.
    active: Vec<usize>,
    /// The kernels without weight that should have some.
    missed: Vec<usize>,
}

/// Takes weights that are exactly zero where the optimum's are as the answer of `run`: from where
/// `joint` stands, or else from the best point. False where that cannot be done, or is not
/// certified.
pub fn settle(
    run: &mut Run<'_>,
    set: &dyn Separable,
    joint: Option<&JointPoint<'_>>,
) -> Result<bool> {
    let problem = run.problem;
    let (n, terms) = (problem.grams.n_samples(), problem.grams.n_terms());
    if !set.selects()
        || set.groups(terms).len() > 1
        || !many_kernels_on_few_rows(n, terms)
        || !possible(problem)
    {
        return Ok(false);
    }
    if let Some(joint) = joint
        && settle_from(run, set, joint.may_have_weight(), &|kept| {
            joint.step_start().restricted_to(kept)
        })?
    {
        return Ok(true);
    }
    let Some(best) = run.best.clone().filter(|_| run.optimal()) else { return Ok(false) };
    let open = run.upper() - run.lower;
    let kept: Vec<usize> = (0..terms).filter(|&m| best.theta[m] > 0.0).collect();
    for share in TUNING.start_pairs_objective_shares {
        let pairs = open.max(share * best.primal);
        if settle_from(run, set, kept.clone(), &|kept| {
            StepStart::near(&best, kept, problem, set, pairs)
        })? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Searches for the face from `start` on the kernels `kept`; kernels that should have had a chance
/// join, and the search begins again.
fn settle_from(
    run: &mut Run<'_>,
    set: &dyn Separable,
    mut kept: Vec<usize>,
    start: &dyn Fn(&[usize]) -> StepStart,
) -> Result<bool> {
    let problem = run.problem;
    for round in 1..=TUNING.most_rounds {
        let from = start(&kept);
        let Some(FaceAnswer { point, active, missed }) = find_face(problem, set, kept, from) else {
            break;
        };
        run.raise(point.lower_bound(set));
        if missed.is_empty() || round == TUNING.most_rounds {
            // Where C is large a machine solved at these weights comes closer than steps can.
            let (theta, duals) = (point.theta.clone(), point.duals());
            return Ok(run.replace_if_certified(point) || {
                let accuracy = zeros::TUNING.machine_tolerance_share * problem.tol;
                let solved = run.visit_to(accuracy, theta, Some(&duals))?;
                run.raise(solved.lower_bound(set));
                run.replace_if_certified(solved)
            });
        }
        kept = [active, missed].concat();
        kept.sort_unstable();
    }
    Ok(false)
}

/// Solves on the kernels `kept`, and again on those that have weight, until none leaves; `None`
/// where steps do not come near enough to the optimum to decide.
fn find_face(
    problem: &Problem<'_>,
    set: &dyn Separable,
    mut kept: Vec<usize>,
    mut start: StepStart,
) -> Option<FaceAnswer> {
    let mut rounds = 0;
    loop {
        let grams = Groups::subset(problem.grams, &kept);
        let inner = Problem {
            grams: &grams,
            parts: problem.parts.clone(),
            scratch: problem.scratch.clone(),
            ..*problem
        };
        let mut own = JointPoint::at(start, &inner);
        if own.run_restricted(&inner, set) > TUNING.largest_final_gap {
            return None;
        }
        let theta = own.with_zeros(set);
        let stay: Vec<usize> = (0..theta.len()).filter(|&m| theta[m] > 0.0).collect();
        rounds += 1;
        let last = stay.len() == kept.len() || rounds == TUNING.most_rounds;
        let whole = last.then(|| own.certify_for_all(problem, set, grams.expand(&theta)));
        kept = stay.iter().map(|&m| kept[m]).collect();
        if let Some((point, beyond)) = whole {
            let missed = beyond.into_iter().filter(|m| kept.binary_search(m).is_err()).collect();
            return Some(FaceAnswer { point, active: kept, missed });
        }
        start = own.step_start().restricted_to(&stay);
        stay.iter().enumerate().for_each(|(k, &m)| start.theta[k] = theta[m]);
    }
}

impl StepStart {
    /// This start for a problem with some of the kernels alone.
    fn restricted_to(mut self, kept: &[usize]) -> Self {
        self.theta = kept.iter().map(|&m| self.theta[m]).collect();
        self.slack = kept.iter().map(|&m| self.slack[m]).collect();
        self
    }

    /// A start strictly inside all bounds, near a point, with products of pairs that add up to
    /// `pairs`.
    fn near(
        best: &Point,
        kept: &[usize],
        problem: &Problem<'_>,
        set: &dyn Separable,
        pairs: f64,
    ) -> Self {
        let task = &problem.parts[0].task;
        let size = mean_diagonal(problem, &best.theta);
        let mut machine = InteriorDual::new(task, problem.machine.kink().unwrap_or(0.0), size);
        let half: Vec<f64> = kept.iter().map(|&m| best.slope[m]).collect();
        let mut theta: Vec<f64> = kept.iter().map(|&m| best.theta[m]).collect();
        let multiplier = least_form(set, &half) / set.phi(f64::MIN_POSITIVE)[1];
        let product = pairs / (machine.pairs() + kept.len() as f64);
        let solution = &best.solutions[0];
        machine = machine.start_near(task, &solution.a, &solution.f, product);
        let largest = theta.iter().copied().fold(0.0, f64::max);
        // Where a weight and its slack are both zero they share the product in the units of the
        // largest weight and of λ.
        let least = (product * multiplier / largest).sqrt();
        let slack = theta.iter_mut().zip(&half).map(|(theta, half)| {
            let slack = multiplier * set.phi(theta.max(f64::MIN_POSITIVE))[1] - half;
            *theta = theta.max(product / slack.max(least));
            slack.max(product / *theta)
        });
        let slack = slack.collect();
        Self { machine, theta, slack, multiplier }
    }
}

/// λ φ'(0), the least ½ s_m that gives a kernel weight, where `half` holds ½ s of all kernels that
/// have some.
fn least_form(set: &dyn Separable, half: &[f64]) -> f64 {
    thresholds(set, half)[0].1
}

impl<'a> JointPoint<'a> {
    /// Kernels whose weight is not clearly on its way to zero.
    fn may_have_weight(&self) -> Vec<usize> {
        let possible = |(_, ratio): &(usize, f64)| *ratio >= TUNING.possible_weight_share;
        self.weight_over_lack().enumerate().filter(possible).map(|(m, _)| m).collect()
    }

    /// A start from this point, where all kernels are one group.
    fn step_start(&self) -> StepStart {
        StepStart {
            machine: self.machine.clone(),
            theta: self.theta.clone(),
            slack: self.slack.clone(),
            multiplier: self.multiplier[0],
        }
    }

    /// The point at a start, where all kernels are one group.
    fn at(start: StepStart, problem: &Problem<'a>) -> Self {
        let StepStart { machine, theta, slack, multiplier } = start;
        let groups = std::iter::once(0..theta.len()).collect();
        let (a, half, images) = (Vec::new(), Vec::new(), TermImages::Exact(Matrix::default()));
        let multiplier = vec![multiplier];
        let mut own = Self {
            machine,
            theta,
            slack,
            multiplier,
            groups,
            a,
            images,
            half,
            pairs: f64::INFINITY,
        };
        own.evaluate(problem.grams, &problem.parts[0].task, true);
        own
    }

    /// Every kernel's weight as a share of the largest, over the share of λ φ'(θ) that its
    /// multiplier lacks: on the way to the optimum this grows without bound where the weight stays,
    /// and vanishes where it goes.
    fn weight_over_lack(&self) -> impl Iterator<Item = f64> {
        let largest = self.theta.iter().copied().fold(0.0, f64::max);
        let pairs = self.half.iter().zip(&self.slack);
        self.theta
            .iter()
            .zip(pairs)
            .map(move |(theta, (half, slack))| theta / largest * (half + slack) / slack)
    }

    /// Is it clear of every kernel whether it has weight?
    fn is_decided(&self) -> bool {
        let factor = TUNING.deciding_factor;
        !self.weight_over_lack().any(|ratio| (1.0 / factor..=factor).contains(&ratio))
    }

    /// Makes steps until the gap is all but closed, or every kernel is decided, or steps no longer
    /// help; ends where the gap was smallest, and returns that gap.
    fn run_restricted(&mut self, problem: &Problem<'a>, set: &dyn Separable) -> f64 {
        let task: &Task<'_> = &problem.parts[0].task;
        let (mut best, mut progress) = (self.step_start(), Progress::new());
        for _ in 0..TUNING.most_steps {
            let point = self.certify(problem, set, self.theta.clone());
            // What truncation left out of kernels is not there for these steps.
            let gap = relative_gap(point.primal, point.dual_sum - set.support(&self.half));
            if gap < progress.smallest() {
                best = self.step_start();
            }
            progress.record(gap);
            let decided = gap <= TUNING.deciding_tolerance_share * problem.tol && self.is_decided();
            let spent = self.pairs <= TUNING.spent_objective_share * point.primal;
            if decided
                || gap <= TUNING.deciding_gap
                || progress.slow_steps() == TUNING.patience_steps
                || spent
            {
                break;
            }
            let trace_share = (TUNING.truncated_gap_share * gap).max(EXACT);
            self.step(task, set, StepKernel::of(problem.grams, &self.theta, trace_share));
            self.evaluate(problem.grams, task, true);
        }
        if progress.slow_steps() > 0 {
            *self = Self::at(best, problem);
        }
        progress.smallest()
    }

    /// The weights, zero where they lack more of their multiplier than they have of the largest
    /// weight; on the simplex, with as few of those that are alike as make the same decision
    /// values.
    fn with_zeros(&self, set: &dyn Separable) -> Vec<f64> {
        let least = negligible_weight(&self.theta);
        let own =
            |(theta, ratio): (&f64, f64)| if ratio < 1.0 || *theta < least { 0.0 } else { *theta };
        let mut theta: Vec<f64> = self.theta.iter().zip(self.weight_over_lack()).map(own).collect();
        if set.phi(1.0)[2] == 0.0 {
            reduce_support(&mut theta, &|m| {
                let mut column = self.images.column(m);
                column.push(1.0);
                column
            });
        }
        theta
    }

    /// The point that these multipliers prove for the whole problem with the weights `theta`, and
    /// all kernels beyond what gives weight.
    fn certify_for_all(
        &self,
        problem: &Problem<'_>,
        set: &dyn Separable,
        mut theta: Vec<f64>,
    ) -> (Point, Vec<usize>) {
        set.tighten(&mut theta);
        let images = Images::new(problem.grams, &self.a);
        let (forms, square) = (images.forms(), dot(&self.a, &self.a));
        let slope = (0..theta.len())
            .map(|m| 0.5 * (forms[m] + problem.grams.residual(m) * square))
            .collect();
        let mut solution =
            Solution::new(&problem.parts[0].task, self.a.clone(), images.times(&theta));
        solution.dual_response = Some(self.machine.dual_response());
        let (primal, dual_sum) = (solution.primal, solution.dual_sum);
        let needed = (1.0 + TUNING.joining_excess_share)
            * self.multiplier[0]
            * set.phi(f64::MIN_POSITIVE)[1];
        let beyond = (0..theta.len()).filter(|m| 0.5 * forms[*m] > needed).collect();
        (Point { theta, solutions: vec![solution], primal, dual_sum, slope, images: None }, beyond)
    }
}
