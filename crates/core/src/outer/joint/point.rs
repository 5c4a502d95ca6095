//! The point of the joint method: multipliers and weights strictly inside their bounds, and how it
//! moves.

use std::ops::Range;

use super::{
    super::{Point, Problem, Run, active, level::working_set, zeros},
    InteriorDual, JointSystem, StepKernel, TUNING, TermImages, face, few_factors, first_truncation,
    mean_diagonal,
    reduce_support::reduce_support,
};
use crate::{
    Result,
    gram::{EXACT, GramSource, Images},
    linalg::{
        Matrix, axpy, dot,
        mehrotra::{self, Progress, centring},
    },
    machine::{
        Solution, Task,
        interior::{self, Change},
    },
    weights::Separable,
};

/// How much of the kernel the steps leave out, and whether they still help.
struct Truncation {
    /// The share of the trace that is left out.
    trace_share: f64,
    progress: Progress,
}

impl Truncation {
    /// Leaves less out where that is why the bounds, `open` apart, no longer come closer; false
    /// where nothing is left out and several steps in a row hardly helped. `pairs` is the sum of
    /// the products of all pairs.
    fn refine(&mut self, open: f64, pairs: f64, as_factors: bool) -> bool {
        let stalls =
            !as_factors && open > TUNING.stalled_matrix_gap_share * self.progress.smallest();
        self.progress.record(open);
        let impatient = self.progress.stalls();
        if impatient || stalls || pairs < TUNING.pairs_behind_gap_share * open {
            if self.trace_share > EXACT {
                let less = if impatient {
                    self.trace_share.powf(TUNING.truncation_power)
                } else {
                    TUNING.truncation_factor * self.trace_share
                };
                self.trace_share = less.max(EXACT);
                self.progress.forgive();
            } else if impatient {
                return false;
            }
        }
        true
    }
}

/// Multipliers and weights strictly inside their bounds, with what follows from them.
pub struct JointPoint<'a> {
    pub(super) machine: InteriorDual,
    pub(super) theta: Vec<f64>,
    /// ζ, the slack of every weight.
    pub(super) slack: Vec<f64>,
    /// λ of every group.
    pub(super) multiplier: Vec<f64>,
    pub(super) groups: Vec<Range<usize>>,
    /// Feasible multipliers a, to which V and ½ s belong.
    pub(super) a: Vec<f64>,
    pub(super) images: TermImages<'a>,
    /// ½ s_m of every term.
    pub(super) half: Vec<f64>,
    /// The sum of the products of all pairs.
    pub(super) pairs: f64,
}

/// The change that one step makes to everything.
pub struct JointStep {
    pub(super) machine: Vec<Change>,
    pub(super) bias: f64,
    pub(super) theta: Vec<f64>,
    pub(super) slack: Vec<f64>,
    pub(super) multiplier: Vec<f64>,
}

/// Products that a step aims at: of the machine's pairs, and of every weight and its slack.
struct Goals {
    machine: Vec<[f64; 2]>,
    weights: Vec<f64>,
}

impl Goals {
    fn solve(&self, system: &JointSystem, point: &JointPoint<'_>, decision: &[f64]) -> JointStep {
        system.solve(point, decision, &|k| self.machine[k], &|m| self.weights[m])
    }
}

impl<'a> JointPoint<'a> {
    /// Starts in the middle of all bounds; V is `exact` for systems with few columns.
    pub(super) fn start(problem: &Problem<'a>, set: &dyn Separable, exact: bool) -> Self {
        let task = &problem.parts[0].task;
        let theta = set.start(problem.grams.n_terms());
        let mut machine = InteriorDual::new(
            task,
            problem.machine.kink().unwrap_or(0.0),
            mean_diagonal(problem, &theta),
        );
        machine.close_sum(task);
        let (slack, half, groups) = (theta.clone(), theta.clone(), set.groups(theta.len()));
        let (multiplier, a, images) =
            (vec![0.0; groups.len()], Vec::new(), TermImages::Exact(Matrix::default()));
        let mut point = Self {
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
        point.evaluate(problem.grams, task, exact);
        let product = point.machine.set_even_slacks(task, &point.images.decision(&point.theta));
        for (multiplier, group) in point.multiplier.iter_mut().zip(&point.groups) {
            let steep = |m: usize| set.phi(point.theta[m])[1];
            let wanted =
                group.clone().map(|m| (point.half[m] + product / point.theta[m]) / steep(m));
            *multiplier = wanted.fold(0.0, f64::max);
            group.clone().for_each(|m| point.slack[m] = *multiplier * steep(m) - point.half[m]);
        }
        point
    }

    /// The feasible multipliers of this point.
    pub(super) fn into_multipliers(self) -> Vec<f64> {
        self.a
    }

    /// Computes V and s for the multipliers as they are.
    pub(super) fn evaluate(&mut self, grams: &'a dyn GramSource, task: &Task<'_>, exact: bool) {
        self.a = self.machine.feasible(task, false);
        self.images = TermImages::Exact(Matrix::default()); // the old ones leave memory before the new ones enter it
        let images = Images::new(grams, &self.a);
        self.half = images.forms().iter().map(|s| 0.5 * s).collect();
        self.images = if exact {
            TermImages::Exact(images.matrix())
        } else {
            TermImages::Single { rows: images.single(), exact: images }
        };
    }

    /// Makes steps until the gap is closed or they no longer help.
    pub(super) fn run(&mut self, run: &mut Run<'a>, set: &dyn Separable) -> Result<()> {
        let problem = run.problem;
        let trace_share =
            first_truncation(problem.grams.n_samples(), few_factors(problem.grams).is_some());
        let mut truncation = Truncation { trace_share, progress: Progress::new() };
        // On few rows a machine is soon solved.
        let cheap_machine = problem.grams.n_samples() < working_set::TUNING.least_terms;
        let mut face_gap = TUNING.face_gap.max(problem.tol);
        for _ in 0..TUNING.most_steps {
            let point = self.certify(problem, set, self.theta.clone());
            run.keep(&point);
            run.raise(point.lower_bound(set));
            run.record(active(&point.theta));
            let mut settled = run.optimal() && !set.selects();
            if run.gap() <= face_gap {
                face_gap = (TUNING.next_face_gap_share * run.gap()).max(problem.tol);
                settled |= face::settle(run, set, Some(self))?;
            }
            settled = settled || (run.optimal() && self.accept_zeros(run, set, cheap_machine)?);
            if settled || run.stopped() {
                return Ok(());
            }
            let tight = run.gap() <= TUNING.tighter_tolerance_share * problem.tol;
            let open = run.upper() - run.lower;
            if tight
                || run.iterations() >= problem.max_iter
                || !self.advance(problem, set, &mut truncation, open)
            {
                break;
            }
        }
        if run.optimal() && set.selects() && !cheap_machine {
            self.accept_zeros(run, set, true)?;
        }
        Ok(())
    }

    /// Makes one step where the bounds are `open` apart; false where steps no longer help.
    fn advance(
        &mut self,
        problem: &Problem<'a>,
        set: &dyn Separable,
        truncation: &mut Truncation,
        open: f64,
    ) -> bool {
        let task = &problem.parts[0].task;
        let as_factors = few_factors(problem.grams).is_some();
        if !truncation.refine(open, self.pairs, as_factors) {
            return false;
        }
        let trace_share = truncation.trace_share;
        // If the step cannot be made, the next gap is the same, and less is left out of the kernel
        // then, or the other method goes on.
        self.step(task, set, StepKernel::of(problem.grams, &self.theta, trace_share));
        self.evaluate(
            problem.grams,
            task,
            as_factors || trace_share < TUNING.single_precision_images_trace_share,
        );
        true
    }

    /// The point that the multipliers and these weights, brought to the boundary of Θ, prove.
    pub(super) fn certify(
        &self,
        problem: &Problem<'_>,
        set: &dyn Separable,
        mut theta: Vec<f64>,
    ) -> Point {
        set.tighten(&mut theta);
        let mut solution =
            Solution::new(&problem.parts[0].task, self.a.clone(), self.images.decision(&theta));
        solution.dual_response = Some(self.machine.dual_response());
        let square = dot(&self.a, &self.a);
        let slope = self
            .half
            .iter()
            .enumerate()
            .map(|(t, h)| h + 0.5 * problem.grams.residual(t) * square)
            .collect();
        let (primal, dual_sum) = (solution.primal, solution.dual_sum);
        Point { theta, solutions: vec![solution], primal, dual_sum, slope, images: None }
    }

    /// Takes weights with zeros as the answer, where they are certified too: with these multipliers
    /// or, if `solve`, with those of a machine solved at these weights.
    fn accept_zeros(&self, run: &mut Run<'_>, set: &dyn Separable, solve: bool) -> Result<bool> {
        for small in TUNING.zero_weight_shares {
            let point = self.certify(run.problem, set, self.without_small(small));
            let theta = point.theta.clone();
            if run.replace_if_certified(point) {
                return Ok(true);
            }
            if solve {
                let accuracy = zeros::TUNING.machine_tolerance_share * run.problem.tol;
                let solved = run.visit_to(accuracy, theta, Some(std::slice::from_ref(&self.a)))?;
                run.raise(solved.lower_bound(set));
                if run.replace_if_certified(solved) {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Takes as few kernels as make the same decision values and the same sums as the answer, if
    /// they are certified: on the simplex, kernels that are alike share a weight that one of them
    /// could have.
    pub(super) fn accept_reduced_support(&self, run: &mut Run<'_>, set: &dyn Separable) {
        let most = self.a.len() + self.groups.len();
        if run.best.as_ref().is_none_or(|best| active(&best.theta) <= most) {
            return;
        }
        let mut theta = self.theta.clone();
        reduce_support(&mut theta, &|m| {
            let sums = self.groups.iter().map(|group| f64::from(u8::from(group.contains(&m))));
            self.images.column(m).into_iter().chain(sums).collect()
        });
        run.replace_if_certified(self.certify(run.problem, set, theta));
    }

    /// θ without the weights that are small where their slack is not.
    fn without_small(&self, small: f64) -> Vec<f64> {
        let largest = self.theta.iter().copied().fold(0.0, f64::max);
        let keep = |(t, (half, slack)): (&f64, (&f64, &f64))| {
            t / largest >= small * slack / (half + slack)
        };
        let pairs = self.theta.iter().zip(self.half.iter().zip(&self.slack));
        pairs.map(|pair| if keep(pair) { *pair.0 } else { 0.0 }).collect()
    }

    /// Makes one step with K_θ or something close, unless its system cannot be solved.
    pub(super) fn step(&mut self, task: &Task<'_>, set: &dyn Separable, kernel: StepKernel) {
        if let Ok(system) = JointSystem::new(self, task, set, kernel) {
            self.predict_and_correct(&system);
        }
    }

    /// Predictor, corrector with Mehrotra's centring, and Gondzio's corrections.
    fn predict_and_correct(&mut self, system: &JointSystem) {
        let count = self.machine.pairs() + self.theta.len() as f64;
        let decision = self.images.decision(&self.theta);
        let predictor = system.solve(self, &decision, &|_| [0.0, 0.0], &|_| 0.0);
        let now = self.complementarity(&predictor, 0.0);
        let reached = self.complementarity(&predictor, self.step_to_boundary(&predictor));
        let target = centring(now, reached).clamp(0.0, 1.0) * now / count;
        let second_order =
            predictor.theta.iter().zip(&predictor.slack).map(|(t, s)| target - t * s);
        let goals = Goals {
            machine: predictor
                .machine
                .iter()
                .map(|c| interior::second_order_goal(target, *c))
                .collect(),
            weights: second_order.collect(),
        };
        let corrector = goals.solve(system, self, &decision);
        let (step, length) = self.correct_outliers(system, &decision, goals, target, corrector);
        let length = mehrotra::TUNING.boundary_share * length;
        if !step.theta.iter().chain([&length, &step.bias]).all(|x| x.is_finite()) {
            return;
        }
        self.pairs = self.complementarity(&step, length);
        self.machine.advance(&step.machine, step.bias, length);
        axpy(length, &step.theta, &mut self.theta);
        axpy(length, &step.slack, &mut self.slack);
        axpy(length, &step.multiplier, &mut self.multiplier);
    }

    /// [Gondzio1996]: a few products far from `target` hold a step up, so the step aims at less for
    /// them, as long as it gets longer so. Returns the step and its length to the boundary.
    fn correct_outliers(
        &self,
        system: &JointSystem,
        decision: &[f64],
        mut goals: Goals,
        target: f64,
        mut step: JointStep,
    ) -> (JointStep, f64) {
        let spread = TUNING.product_spread_factor;
        let towards = |product: f64| {
            let wanted = product.clamp(target / spread, target * spread);
            (wanted - product).max(-spread * target)
        };
        let mut length = self.step_to_boundary(&step);
        for _ in 0..system.corrections() {
            if length >= 1.0 {
                break;
            }
            let aimed = (TUNING.correction_length_factor * length + TUNING.correction_length_added)
                .min(1.0);
            self.machine.recentre(&step.machine, aimed, &mut goals.machine, &towards);
            for (m, goal) in goals.weights.iter_mut().enumerate() {
                *goal += towards(self.weight_product(m, &step, aimed));
            }
            let next = goals.solve(system, self, decision);
            let longer = self.step_to_boundary(&next);
            if longer <= length {
                break;
            }
            let gained = (longer - length) / (aimed - length);
            (step, length) = (next, longer);
            if gained < TUNING.correction_gain_share {
                break;
            }
        }
        (step, length)
    }

    /// The sum of the products of all pairs after a step of this length.
    fn complementarity(&self, step: &JointStep, length: f64) -> f64 {
        let products = (0..self.theta.len()).map(|m| self.weight_product(m, step, length));
        self.machine.complementarity(&step.machine, length) + products.sum::<f64>()
    }

    /// θ_m ζ_m after a step of this length.
    fn weight_product(&self, m: usize, step: &JointStep, length: f64) -> f64 {
        (self.theta[m] + length * step.theta[m]) * (self.slack[m] + length * step.slack[m])
    }

    /// The longest step up to 1 that keeps everything from going below 0.
    fn step_to_boundary(&self, step: &JointStep) -> f64 {
        let pairs = [
            (&self.theta, &step.theta),
            (&self.slack, &step.slack),
            (&self.multiplier, &step.multiplier),
        ];
        let pairs = pairs.into_iter().flat_map(|(x, d)| x.iter().zip(d));
        mehrotra::step_to_boundary(self.machine.step_to_boundary(&step.machine), pairs)
    }
}
