//! The paper's parametric dual descent, in two signs.
//!
//! Solves  min over λ :  P(λ) (`opt1`), or φ(λ) = −P(λ) (`as-printed`), λ in the product of
//!   simplices.
//! In: a veto–consensus problem, a sign, an effort.   Out: λ, the rules at λ.
//!   Paper: [Zhou2016] Algorithm 1; page docs/methods/vcmkl.md.
//!
//! Moves λ along the projected gradient of the inner optimum, where ∂φ/∂λ_im = −c_i ξ_im. `opt1`
//! goes down P = −φ, the learning objective. `as-printed` goes down φ, that is up P: the printed
//! algorithm lost the sign when the inner problem was replaced by its dual. Where λ lies in a
//! critical region seen before, the solution is its affine piece and no quadratic program is
//! solved.

use super::{
    Effort, FoundRules, Instance, Margin, RuleSolution,
    assign::{reassign, starts},
    region::Region,
};
use crate::{Result, linalg::Matrix, outer::Recorder, request::Objective, tuning::tuning};

tuning! { "pddp"
    /// Length of the first step, in units of √|I−|; step t is this over √t (docs/methods/vcmkl.md:
    /// the paper's constants are not known in advance).
    first_step_length: f64 = 0.5;
    /// The run is at rest after this many steps without a better value.
    patience_steps: usize = 10;
    /// A value is better only if it is lower by this share of the tolerance, and a change below it
    /// ends the run.
    rest_tolerance_share: f64 = 0.1;
}

/// What keeps φ finite is exceeded by this share, and by this much, so that rounding does not undo
/// it.
const MASS_MARGIN: f64 = 1e-6;
/// A column sum is reached when it lacks less than this share.
const ROUNDED_SUM: f64 = 1e-9;
/// Rounds of raising the columns of a projection at most.
const PROJECTION_ROUNDS: usize = 50;
/// Halvings that find how far a column is raised: more than double precision can tell apart.
const PROJECTION_HALVINGS: usize = 60;

/// Runs from the best k-means start. The outcome is the best λ visited, by P for `opt1` (with every
/// row moved to its cheapest rule at the end, which cannot raise P) and by φ for `as-printed`;
/// `objective` is that value.
pub fn pddp(
    instance: &Instance<'_>,
    sign: Objective,
    effort: Effort,
    recorder: &mut Recorder<'_>,
) -> Result<FoundRules> {
    let owner = starts(instance, 1, effort.seed)?.swap_remove(0);
    let mut lambda = instance.hard(&owner);
    let floors = floors(instance, sign);
    let mut visits = Visits { instance, regions: Vec::new(), calls: 0 };
    // The value that falls: P, or φ = −P.
    let falling =
        |inner: &RuleSolution| if sign == Objective::Opt1 { inner.primal } else { -inner.dual };
    let mut inner = visits.solve(&lambda)?;
    let mut best = (falling(&inner), lambda.clone(), inner.clone());
    let (mut at_rest, mut since) = (false, 0);
    let mut last = best.0;
    for t in 1..=effort.max_iter {
        let gradient = gradient(instance, sign, &inner);
        let norm = gradient.data().iter().map(|g| g * g).sum::<f64>().sqrt();
        if norm == 0.0 {
            at_rest = true;
            recorder.record(best.0, f64::NAN, 0.0, inner.active());
            break;
        }
        // Diminishing normalised steps: the constants of the paper's step size are not known in
        // advance.
        let step =
            TUNING.first_step_length * (gradient.rows() as f64).sqrt() / (t as f64).sqrt() / norm;
        let mut moved = lambda.clone();
        moved.data_mut().iter_mut().zip(gradient.data()).for_each(|(l, g)| *l -= step * g);
        let next = project(&moved, &floors);
        let distance =
            next.data().iter().zip(lambda.data()).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        lambda = next;
        inner = visits.solve(&lambda)?;
        let value = falling(&inner);
        let change = (value - last).abs() / last.abs().max(f64::MIN_POSITIVE);
        last = value;
        since = if value < best.0 - TUNING.rest_tolerance_share * effort.tol * best.0.abs() {
            0
        } else {
            since + 1
        };
        if value < best.0 {
            best = (value, lambda.clone(), inner.clone());
        }
        recorder.record(best.0, f64::NAN, change, inner.active());
        // φ ≥ 0 with ν: at zero it is at its minimum, and every rule is a constant.
        let nothing_left = sign == Objective::AsPrinted
            && instance.margin != Margin::Fixed
            && value <= instance.rounded_zero();
        at_rest = nothing_left
            || distance == 0.0
            || change <= TUNING.rest_tolerance_share * effort.tol
            || since >= TUNING.patience_steps;
        if at_rest || recorder.stopped {
            break;
        }
    }
    let (objective, lambda, inner) =
        if sign == Objective::Opt1 { visits.round(best)? } else { best };
    Ok(FoundRules {
        inner,
        lambda,
        objective,
        lower: f64::NAN,
        status: recorder.status_at_rest(at_rest),
        qp_calls: visits.calls,
    })
}

/// The gradient by λ of the value that falls: c_i ξ_im for P, −c_i ξ_im for φ.
fn gradient(instance: &Instance<'_>, sign: Objective, inner: &RuleSolution) -> Matrix {
    let losses = instance.negative_losses(inner);
    let mut gradient = Matrix::zeros(losses.rows(), losses.cols());
    for (k, &i) in instance.negatives.iter().enumerate() {
        let up = if sign == Objective::Opt1 { instance.cost[i] } else { -instance.cost[i] };
        (0..losses.cols()).for_each(|m| gradient[(k, m)] = up * losses[(k, m)]);
    }
    gradient
}

/// Solutions at λ, from known regions where possible.
struct Visits<'a, 'b> {
    instance: &'a Instance<'b>,
    regions: Vec<Region>,
    calls: usize,
}

impl Visits<'_, '_> {
    fn solve(&mut self, lambda: &Matrix) -> Result<RuleSolution> {
        if let Some(known) = self.regions.iter().rev().find_map(|r| r.at(self.instance, lambda)) {
            return Ok(known);
        }
        let inner = self.instance.solve(lambda, None)?;
        self.calls += 1;
        self.regions.extend(Region::new(self.instance, lambda, &inner));
        Ok(inner)
    }

    /// The value, λ and rules with every row moved to its cheapest rule, where that does not raise
    /// P.
    fn round(&mut self, best: (f64, Matrix, RuleSolution)) -> Result<(f64, Matrix, RuleSolution)> {
        let hard = self.instance.hard(&reassign(self.instance, &best.2));
        let rounded = self.solve(&hard)?;
        Ok(if rounded.primal <= best.0 { (rounded.primal, hard, rounded) } else { best })
    }
}

/// Smallest column sums of λ. `opt1`: the whole numbers that hard assignments need, so that all
/// corners of the polytope are hard and none lies below the best of them. `as-printed`: what keeps
/// φ finite, with a small margin, in units of λ for the cheapest negative.
fn floors(instance: &Instance<'_>, sign: Objective) -> Vec<f64> {
    let counts = instance.min_counts();
    let cheapest =
        instance.negatives.iter().map(|&i| instance.cost[i]).fold(f64::INFINITY, f64::min);
    let floor = |m: usize| match (sign, instance.nu(m) / (2.0 * cheapest)) {
        (_, 0.0) => 0.0,
        (Objective::Opt1, _) => counts[m] as f64,
        (Objective::AsPrinted, mass) => {
            (mass * (1.0 + MASS_MARGIN) + MASS_MARGIN).min(counts[m] as f64)
        }
    };
    (0..instance.rules()).map(floor).collect()
}

/// The nearest λ whose rows lie in the simplex and whose columns sum to at least `floors`: rows of
/// λ + μ are projected, and μ_m ≥ 0 is raised until column m has its sum.
pub(super) fn project(point: &Matrix, floors: &[f64]) -> Matrix {
    let rules = floors.len();
    let mut lift = vec![0.0; rules];
    let at = |lift: &[f64]| {
        let mut out = point.clone();
        for k in 0..out.rows() {
            let row = out.row_mut(k);
            row.iter_mut().zip(lift).for_each(|(r, l)| *r += l);
            simplex(row);
        }
        out
    };
    let sum = |lambda: &Matrix, m: usize| (0..lambda.rows()).map(|k| lambda[(k, m)]).sum::<f64>();
    let mut out = at(&lift);
    for _ in 0..PROJECTION_ROUNDS {
        let Some(lacking) = (0..rules).find(|&m| sum(&out, m) < floors[m] * (1.0 - ROUNDED_SUM))
        else {
            break;
        };
        let spread = point.data().iter().fold(1.0f64, |s, p| s.max(p.abs()));
        let (mut low, mut high) = (lift[lacking], lift[lacking] + 4.0 * spread + 2.0);
        for _ in 0..PROJECTION_HALVINGS {
            lift[lacking] = 0.5 * (low + high);
            if sum(&at(&lift), lacking) < floors[lacking] {
                low = lift[lacking];
            } else {
                high = lift[lacking];
            }
        }
        lift[lacking] = high;
        out = at(&lift);
    }
    out
}

/// Projects a row onto the simplex.
fn simplex(row: &mut [f64]) {
    let mut sorted = row.to_vec();
    sorted.sort_by(|a, b| b.total_cmp(a));
    let (mut sum, mut shift) = (0.0, 0.0);
    for (k, v) in sorted.iter().enumerate() {
        sum += v;
        let candidate = (sum - 1.0) / (k + 1) as f64;
        if *v > candidate {
            shift = candidate;
        }
    }
    row.iter_mut().for_each(|r| *r = (*r - shift).max(0.0));
}
