//! The learning problem and its convex inner problem at fixed λ.
//!
//! Rules f_m(x) = ⟨w_m, φ_m(x)⟩ + b_m, hinge losses ξ_im = [ρ_m − y_i f_m(x_i)]_+, costs c_i.
//! Solves  P(λ) = min over w, b, ρ :
//!   ½ Σ ‖w_m‖² − Σ ν_m ρ_m + Σ_{I+} c_i max_m ξ_im + Σ_{I−} c_i Σ_m λ_im ξ_im
//! with ρ_m = 1 and no ν (fixed margin), or ρ_m ≥ 0 free (multi-ν), through its dual
//!         φ(λ) = min over α ≥ 0 :  ½ Σ α_mᵀ Q_m α_m − [fixed] Σ α,   α_im ≤ c_i λ_im (I−),  Σ_m α_im ≤ c_i (I+),  yᵀα_m = 0,  [ν] 1ᵀα_m = ν_m;
//! P(λ) = −φ(λ), and P is concave in λ with ∂P/∂λ_im = c_i ξ_im.
//! In: a Gram matrix per rule, signs, costs, λ.
//!   Out: α, b, ρ, decision values, and both objective values, which certify each other.

use super::interior::{self, Block};
use crate::{
    Error, Result,
    gram::Gram,
    linalg::{Matrix, axpy, dot},
    tuning::tuning,
};

tuning! { "vcmkl_inner"
    /// Relative gap to which inner problems are solved: J is compared between assignments that
    /// differ little.
    accuracy: f64 = 1e-11;
    /// Relative gap to which problems are solved while a working set is being found: such solutions
    /// find most of the rows that matter.
    working_set_accuracy: f64 = 1e-4;
    /// A problem with more variables than this is solved on a working set.
    most_direct_variables: usize = 500;
    /// Negatives, and positives, that a rule's working set begins with at least, and rows that join
    /// it at a time.
    least_working_rows: usize = 24;
    /// A row of a similar solution is in the first working set if its multiplier exceeds this share
    /// of its cost.
    carried_multiplier_share: f64 = 1e-7;
    /// No row is added to the working set where the relative gap on all rows is below this.
    close_gap: f64 = 1e-8;
    /// Rows are added whose constraint is violated by more than this times the root of the
    /// accuracy, in units of the margin.
    violation_factor: f64 = 10.0;
    /// Rows are added only if their constraint is violated by more than this, in units of the
    /// margin.
    least_violation: f64 = 1e-7;
}

/// With ν, sums of costs that come this close to a bound, as a share of it, are taken to reach it.
const ROUNDED_SUM: f64 = 1e-9;
/// Numbers of rows and shares of λ are known to this accuracy.
const ROUNDED_COUNT: f64 = 1e-12;
/// With fixed margins, objectives below this share of the sum of costs are zero.
const ZERO_COST_SHARE: f64 = 1e-12;
/// With ν, objectives below this share of what the rewards could be worth are zero.
const ZERO_REWARD_SHARE: f64 = 1e-4;
/// With ν, a φ below this share of what counts as zero is zero up to rounding.
const ROUNDED_ZERO_SHARE: f64 = 1e-6;

/// What fixes the scale of the rules.
#[derive(Debug, Clone, PartialEq)]
pub enum Margin {
    /// Fixed margins, ρ_m = 1.
    Fixed,
    /// ρ_m is learned at the reward ν_m.
    Nu(Vec<f64>),
}

/// One veto–consensus problem. The positives are the consensus class.
pub struct Instance<'a> {
    /// Gram matrix of every rule, over all samples.
    pub kernels: Vec<&'a Gram>,
    /// Samples of the consensus class.
    pub positives: Vec<usize>,
    /// Samples of the other class.
    pub negatives: Vec<usize>,
    /// The cost c_i of every sample.
    pub cost: Vec<f64>,
    /// Fixed margins or ν.
    pub margin: Margin,
}

/// The inner problem solved at one λ.
#[derive(Debug, Clone, PartialEq)]
pub struct RuleSolution {
    /// The multipliers α, samples × rules.
    pub alpha: Matrix,
    /// The decision values f_m(x_i), bias included, samples × rules.
    pub f: Matrix,
    /// The bias b_m of every rule.
    pub bias: Vec<f64>,
    /// The margin ρ_m of every rule.
    pub rho: Vec<f64>,
    /// The squared norm ‖w_m‖² of every rule.
    pub norms: Vec<f64>,
    /// P at (w, b, ρ): an upper bound on P(λ).
    pub primal: f64,
    /// −φ at α: a lower bound.
    pub dual: f64,
}

impl RuleSolution {
    /// The number of rules that are not constant.
    pub fn active(&self) -> usize {
        self.norms.iter().filter(|n| **n > 0.0).count()
    }
}

impl<'a> Instance<'a> {
    /// Checks shapes, costs and, for ν, that the problem is bounded below for some λ.
    pub fn new(kernels: Vec<&'a Gram>, y: &[f64], cost: Vec<f64>, margin: Margin) -> Result<Self> {
        let of =
            |sign: bool| (0..y.len()).filter(|&i| (y[i] > 0.0) == sign).collect::<Vec<usize>>();
        let (positives, negatives) = (of(true), of(false));
        if positives.is_empty() || negatives.is_empty() {
            return Err(Error::data(
                "target",
                "one of the two classes has no row",
                "rules need rows of both classes",
            ));
        }
        let instance = Self { kernels, positives, negatives, cost, margin };
        instance.check_nu()?;
        Ok(instance)
    }

    /// The number of rules.
    pub fn rules(&self) -> usize {
        self.kernels.len()
    }

    /// Reward of rule m's margin; 0 with fixed margins.
    pub fn nu(&self, m: usize) -> f64 {
        match &self.margin {
            Margin::Fixed => 0.0,
            Margin::Nu(nu) => nu[m],
        }
    }

    fn check_nu(&self) -> Result<()> {
        let Margin::Nu(nu) = &self.margin else { return Ok(()) };
        let total = |rows: &[usize]| rows.iter().map(|&i| self.cost[i]).sum::<f64>();
        let (sum, positive, negative) =
            (nu.iter().sum::<f64>(), total(&self.positives), total(&self.negatives));
        // At equality the minimum is not attained.
        if sum / 2.0 >= positive * (1.0 - ROUNDED_SUM) {
            let expected = format!(
                "numbers with a sum below {:.6} (twice the price of all consensus rows)",
                2.0 * positive
            );
            return Err(Error::param("nu", expected, sum));
        }
        let counts = self.min_counts();
        if counts.iter().sum::<usize>() > self.negatives.len() {
            let expected = format!(
                "small enough that every rule can own more than ν_m / (2 × the price of a row) of the {} rows outside the consensus \
                 (below a sum of {:.6}, less rounding to whole rows)",
                self.negatives.len(),
                2.0 * negative
            );
            return Err(Error::param(
                "nu",
                expected,
                format!("{sum} in all, which asks for {counts:?} rows"),
            ));
        }
        Ok(())
    }

    /// Negatives that each rule must own for P to be bounded below and attained: 0 with fixed
    /// margins.
    pub fn min_counts(&self) -> Vec<usize> {
        let cheapest = self.negatives.iter().map(|&i| self.cost[i]).fold(f64::INFINITY, f64::min);
        match &self.margin {
            Margin::Fixed => vec![0; self.rules()],
            Margin::Nu(nu) => nu
                .iter()
                .map(|nu| (nu / (2.0 * cheapest) + ROUNDED_COUNT).floor() as usize + 1)
                .collect(),
        }
    }

    /// Is P(λ) finite and attained?
    pub fn bounded(&self, lambda: &Matrix) -> bool {
        let mass = |m: usize| {
            self.negatives
                .iter()
                .enumerate()
                .map(|(k, &i)| self.cost[i] * lambda[(k, m)])
                .sum::<f64>()
        };
        (0..self.rules())
            .all(|m| self.nu(m) == 0.0 || mass(m) > self.nu(m) / 2.0 * (1.0 + ROUNDED_COUNT))
    }

    /// λ of a hard assignment: `owner[k]` is the rule that must reject negative k.
    pub fn hard(&self, owner: &[usize]) -> Matrix {
        let mut lambda = Matrix::zeros(self.negatives.len(), self.rules());
        owner.iter().enumerate().for_each(|(k, &m)| lambda[(k, m)] = 1.0);
        lambda
    }

    /// ξ_im of a sample and a rule.
    pub fn loss(&self, inner: &RuleSolution, i: usize, m: usize, sign: f64) -> f64 {
        (inner.rho[m] - sign * inner.f[(i, m)]).max(0.0)
    }

    /// Losses of the negatives, negatives × rules: ∂P/∂λ divided by the costs.
    pub fn negative_losses(&self, inner: &RuleSolution) -> Matrix {
        let mut out = Matrix::zeros(self.negatives.len(), self.rules());
        for (k, &i) in self.negatives.iter().enumerate() {
            (0..self.rules()).for_each(|m| out[(k, m)] = self.loss(inner, i, m, -1.0));
        }
        out
    }

    /// The part of the objective that does not depend on how negatives are shared out.
    fn common(&self, inner: &RuleSolution) -> f64 {
        let worst =
            |i: usize| (0..self.rules()).map(|m| self.loss(inner, i, m, 1.0)).fold(0.0, f64::max);
        let positive: f64 = self.positives.iter().map(|&i| self.cost[i] * worst(i)).sum();
        let reward: f64 = (0..self.rules()).map(|m| self.nu(m) * inner.rho[m]).sum();
        0.5 * inner.norms.iter().sum::<f64>() + positive - reward
    }

    /// P's objective at given rules.
    pub fn value(&self, inner: &RuleSolution, lambda: &Matrix) -> f64 {
        let xi = self.negative_losses(inner);
        self.common(inner)
            + self
                .negatives
                .iter()
                .enumerate()
                .map(|(k, &i)| self.cost[i] * dot(xi.row(k), lambda.row(k)))
                .sum::<f64>()
    }

    /// The learning objective at given rules: negatives pay their cheapest rule.
    pub fn learning_objective(&self, inner: &RuleSolution) -> f64 {
        let xi = self.negative_losses(inner);
        let least = |k: usize| xi.row(k).iter().copied().fold(f64::INFINITY, f64::min);
        self.common(inner)
            + self.negatives.iter().enumerate().map(|(k, &i)| self.cost[i] * least(k)).sum::<f64>()
    }

    /// Solves the inner problem at λ. `similar` is a solution for a similar λ, whose support is a
    /// good guess.
    pub fn solve(&self, lambda: &Matrix, similar: Option<&RuleSolution>) -> Result<RuleSolution> {
        if !self.bounded(lambda) {
            return Err(Error::param(
                "λ",
                "such that every rule owns enough rows for its ν",
                "a rule that owns too few",
            ));
        }
        let whole = self.working_set(lambda, |_, _| true);
        let variables: usize = whole.iter().map(Vec::len).sum();
        if variables <= TUNING.most_direct_variables {
            return self.solve_on(lambda, &whole, TUNING.accuracy).map(|(inner, _)| inner);
        }
        let mut chosen = match similar {
            Some(similar) => {
                let least = |i: usize| TUNING.carried_multiplier_share * self.cost[i];
                self.working_set(lambda, |i, m| similar.alpha[(i, m)] > least(i))
            }
            None => vec![Vec::new(); self.rules()],
        };
        for (m, (chosen, whole)) in chosen.iter_mut().zip(&whole).enumerate() {
            self.fill_working_set(m, chosen, whole);
        }
        let mut accuracy = TUNING.working_set_accuracy;
        loop {
            let (inner, xi) = self.solve_on(lambda, &chosen, accuracy)?;
            let scale = inner.primal.abs().max(self.zero_objective());
            let close = inner.primal - inner.dual <= TUNING.close_gap * scale;
            let allowed = TUNING.violation_factor * accuracy.sqrt();
            let added = if close {
                0
            } else {
                self.add_violators(&inner, &xi, &whole, &mut chosen, allowed)
            };
            if added == 0 && accuracy <= TUNING.accuracy {
                return Ok(inner);
            }
            if added == 0 {
                accuracy = TUNING.accuracy;
            }
        }
    }

    /// Brings a rule's working set to a number of negatives and positives that are evenly spread
    /// over its samples and can carry twice what ν asks for.
    fn fill_working_set(&self, m: usize, chosen: &mut Vec<usize>, whole: &[usize]) {
        let total: f64 = (0..self.rules()).map(|m| self.nu(m)).sum();
        let cheapest =
            |rows: &[usize]| rows.iter().map(|&i| self.cost[i]).fold(f64::INFINITY, f64::min);
        let first = whole.len().saturating_sub(self.positives.len());
        let mut is_chosen = vec![false; self.cost.len()];
        chosen.iter().for_each(|&i| is_chosen[i] = true);
        for (part, nu) in [(&whole[..first], self.nu(m)), (&whole[first..], total)] {
            let enough = TUNING.least_working_rows
                + if nu > 0.0 { (nu / cheapest(part)).ceil() as usize } else { 0 };
            let free: Vec<usize> = part.iter().copied().filter(|&i| !is_chosen[i]).collect();
            let need = enough.saturating_sub(part.len() - free.len()).min(free.len());
            chosen.extend((0..need).map(|k| free[k * free.len() / need]));
        }
    }

    /// Samples of every rule that `pick` picks among those that may carry a multiplier: positives,
    /// and negatives it owns a share of.
    fn working_set(&self, lambda: &Matrix, pick: impl Fn(usize, usize) -> bool) -> Vec<Vec<usize>> {
        (0..self.rules())
            .map(|m| {
                let own = self
                    .negatives
                    .iter()
                    .enumerate()
                    .filter(|(k, _)| lambda[(*k, m)] > 0.0)
                    .map(|(_, &i)| i);
                let own: Vec<usize> = own.collect();
                // A rule that owns nothing is the constant ρ.
                let positives: &[usize] = if own.is_empty() { &[] } else { &self.positives };
                own.iter().chain(positives).copied().filter(|&i| pick(i, m)).collect()
            })
            .collect()
    }

    /// Adds the samples whose constraint the solution violates by more than `allowed`, the worst
    /// first; returns how many.
    fn add_violators(
        &self,
        inner: &RuleSolution,
        xi: &[f64],
        whole: &[Vec<usize>],
        chosen: &mut [Vec<usize>],
        allowed: f64,
    ) -> usize {
        let allowed =
            allowed.max(TUNING.least_violation) * inner.rho.iter().copied().fold(0.0, f64::max);
        let mut added = 0;
        let mut is_positive = vec![false; self.cost.len()];
        self.positives.iter().for_each(|&i| is_positive[i] = true);
        for (m, (whole, chosen)) in whole.iter().zip(chosen).enumerate() {
            let mut inside = vec![false; self.cost.len()];
            chosen.iter().for_each(|&i| inside[i] = true);
            let violation = |i: usize| {
                if is_positive[i] {
                    inner.rho[m] - inner.f[(i, m)] - xi[i]
                } else {
                    inner.rho[m] + inner.f[(i, m)]
                }
            };
            let mut found: Vec<(f64, usize)> = whole
                .iter()
                .filter(|&&i| !inside[i])
                .map(|&i| (violation(i), i))
                .filter(|v| v.0 > allowed)
                .collect();
            found.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            found.truncate((chosen.len() / 2).max(TUNING.least_working_rows));
            added += found.len();
            chosen.extend(found.iter().map(|v| v.1));
        }
        added
    }

    /// Solves with multipliers on `chosen` alone; also the multipliers of the positives' sums.
    fn solve_on(
        &self,
        lambda: &Matrix,
        chosen: &[Vec<usize>],
        accuracy: f64,
    ) -> Result<(RuleSolution, Vec<f64>)> {
        let mut share = Matrix::zeros(self.cost.len(), self.rules());
        for (k, &i) in self.negatives.iter().enumerate() {
            share.row_mut(i).copy_from_slice(lambda.row(k));
        }
        let mut is_positive = vec![false; self.cost.len()];
        self.positives.iter().for_each(|&i| is_positive[i] = true);
        // Positives in use, and the number of the sum of each.
        let mut used: Vec<usize> =
            chosen.iter().flatten().copied().filter(|&i| is_positive[i]).collect();
        used.sort_unstable();
        used.dedup();
        let active: Vec<usize> = (0..self.rules()).filter(|&m| !chosen[m].is_empty()).collect();
        let linear = if self.margin == Margin::Fixed { -1.0 } else { 0.0 };
        let block = |&m: &usize| {
            let (positives, negatives): (Vec<usize>, Vec<usize>) =
                chosen[m].iter().partition(|&&i| is_positive[i]);
            Block {
                kernel: self.kernels[m],
                upper: negatives.iter().map(|&i| self.cost[i] * share[(i, m)]).collect(),
                row: positives.iter().map(|i| used.partition_point(|u| u < i)).collect(),
                linear: vec![linear; chosen[m].len()],
                mass: (self.margin != Margin::Fixed).then(|| self.nu(m)),
                index: [negatives, positives].concat(),
            }
        };
        let blocks: Vec<Block<'_>> = active.iter().map(block).collect();
        let limit: Vec<f64> = used.iter().map(|&i| self.cost[i]).collect();
        let mut alpha = Matrix::zeros(self.cost.len(), self.rules());
        let (mut bias, mut rho) = (vec![1.0; self.rules()], vec![1.0; self.rules()]);
        let mut xi = vec![0.0; self.cost.len()];
        if !blocks.is_empty() {
            let solved = interior::solve(&blocks, &limit, accuracy, self.zero_objective())?;
            for (k, (&m, block)) in active.iter().zip(&blocks).enumerate() {
                block.index.iter().zip(&solved.x[k]).for_each(|(&i, x)| alpha[(i, m)] = *x);
                bias[m] = solved.bias[k];
                if let Some(r) = solved.rho.get(k) {
                    rho[m] = r.max(0.0);
                }
            }
            used.iter().zip(&solved.xi).for_each(|(&i, x)| xi[i] = *x);
        }
        Ok((self.inner(alpha, bias, rho, lambda), xi))
    }

    /// A size below which objectives are zero: what rewards alone could be worth with ν; nothing to
    /// speak of with fixed margins.
    fn zero_objective(&self) -> f64 {
        let mean = |k: &Gram| (0..k.n()).map(|i| k.row(i)[i]).sum::<f64>() / k.n() as f64;
        let reward: f64 =
            self.kernels.iter().enumerate().map(|(m, k)| 0.5 * self.nu(m).powi(2) * mean(k)).sum();
        match self.margin {
            Margin::Fixed => ZERO_COST_SHARE * self.cost.iter().sum::<f64>(),
            Margin::Nu(_) => ZERO_REWARD_SHARE * reward,
        }
    }

    /// With ν, a φ that is zero up to rounding, because the reduced hulls of the classes meet.
    pub(super) fn rounded_zero(&self) -> f64 {
        ROUNDED_ZERO_SHARE * self.zero_objective()
    }

    /// Decision values, norms and objectives that follow from multipliers.
    pub(crate) fn inner(
        &self,
        alpha: Matrix,
        bias: Vec<f64>,
        rho: Vec<f64>,
        lambda: &Matrix,
    ) -> RuleSolution {
        let (n, rules) = (alpha.rows(), self.rules());
        let mut sign = vec![1.0; n];
        self.negatives.iter().for_each(|&i| sign[i] = -1.0);
        let (mut f, mut norms) = (Matrix::zeros(n, rules), Vec::new());
        for m in 0..rules {
            let mut own = vec![0.0; n];
            for i in (0..n).filter(|&i| alpha[(i, m)] != 0.0) {
                axpy(sign[i] * alpha[(i, m)], self.kernels[m].row(i), &mut own);
            }
            norms.push((0..n).map(|i| sign[i] * alpha[(i, m)] * own[i]).sum::<f64>().max(0.0));
            (0..n).for_each(|i| f[(i, m)] = own[i] + bias[m]);
        }
        let gain =
            if self.margin == Margin::Fixed { alpha.data().iter().sum::<f64>() } else { 0.0 };
        let dual = gain - 0.5 * norms.iter().sum::<f64>();
        let mut inner = RuleSolution { alpha, f, bias, rho, norms, primal: 0.0, dual };
        inner.primal = self.value(&inner, lambda);
        inner
    }

    /// Solves for rule m alone, the others as they are in `inner`: a positive then pays only what
    /// exceeds its loss at the other rules.
    pub(super) fn solve_rule(
        &self,
        m: usize,
        lambda: &Matrix,
        inner: &RuleSolution,
    ) -> Result<RuleSolution> {
        let mut next = inner.clone();
        let own: Vec<usize> = (0..self.negatives.len()).filter(|&k| lambda[(k, m)] > 0.0).collect();
        (0..self.cost.len()).for_each(|i| next.alpha[(i, m)] = 0.0);
        (next.bias[m], next.rho[m]) = (1.0, 1.0);
        if !own.is_empty() {
            let others = |i: usize| {
                (0..self.rules())
                    .filter(|&o| o != m)
                    .map(|o| self.loss(inner, i, o, 1.0))
                    .fold(0.0, f64::max)
            };
            let reward = if self.margin == Margin::Fixed { -1.0 } else { 0.0 };
            let block = Block {
                kernel: self.kernels[m],
                index: own
                    .iter()
                    .map(|&k| self.negatives[k])
                    .chain(self.positives.iter().copied())
                    .collect(),
                upper: own.iter().map(|&k| self.cost[self.negatives[k]] * lambda[(k, m)]).collect(),
                row: (0..self.positives.len()).collect(),
                linear: own
                    .iter()
                    .map(|_| reward)
                    .chain(self.positives.iter().map(|&i| reward + others(i)))
                    .collect(),
                mass: (self.margin != Margin::Fixed).then(|| self.nu(m)),
            };
            let limit: Vec<f64> = self.positives.iter().map(|&i| self.cost[i]).collect();
            let blocks = [block];
            let solved = interior::solve(&blocks, &limit, TUNING.accuracy, self.zero_objective())?;
            blocks[0].index.iter().zip(&solved.x[0]).for_each(|(&i, x)| next.alpha[(i, m)] = *x);
            next.bias[m] = solved.bias[0];
            next.rho[m] = solved.rho.first().map_or(1.0, |r| r.max(0.0));
        }
        let RuleSolution { alpha, bias, rho, .. } = next;
        Ok(self.inner(alpha, bias, rho, lambda))
    }
}
