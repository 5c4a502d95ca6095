//! The single-kernel learner for fixed weights.
//!
//! Solves  min over f, b :  Σ_i c_i ℓ(y_i, f(x_i) + b) + ½ ‖f‖²   for one kernel matrix K,
//! in the dual  max over a :  A(a) − ½ aᵀKa,  Σ_i a_i = 0,
//!   a_i in c_i·interval. Without an intercept b = 0 and the sum is free.
//! In: K (a matrix or a factor), the task, a start. Out: a, b and both objective values, whatever
//! the accuracy reached.

pub(crate) mod interior;
mod kernel;
mod kernel_rows;
mod leave_one_out;
mod newton;
mod ridge;
mod scan;
mod smo;
mod system;

pub use kernel::Combined;
pub use leave_one_out::{PROVEN_RHO, xi_alpha};
pub use newton::Newton;
pub use ridge::Ridge;
pub use smo::Smo;
use system::WeightedSystem;

use crate::{
    Result,
    gram::Forms,
    linalg::{Matrix, dot},
    loss::{EpsilonInsensitive, Hinge, Huber, Logistic, Loss, LossName, Squared, SquaredHinge},
    tuning::tuning,
};

tuning! { "machine"
    /// A system over the columns of a factor is taken where the factor has this many rows for each
    /// of them: one product of the factor with itself costs rows·columns², a factorisation over the
    /// rows a third of rows³.
    rows_per_column: usize = 2;
    /// Second derivatives of the optimal value leave out this share of the kernel's trace: steps
    /// built on them are checked by a machine.
    curvature_truncated_trace_share: f64 = 1e-4;
    /// In second derivatives a multiplier strictly between its bounds has this stiffness, in units
    /// of the inverse kernel, instead of an infinite one: large enough to count as free, small
    /// enough for the factorisation.
    free_response: f64 = 1e8;
}

/// Is a factor of `columns` columns and `rows` rows cheaper than the matrix?
pub(crate) fn has_few_columns(columns: usize, rows: usize) -> bool {
    TUNING.rows_per_column * columns < rows
}

/// What is fitted: targets, costs and a loss.
#[derive(Clone, Copy)]
pub struct Task<'a> {
    /// The targets; ±1 for classification.
    pub y: &'a [f64],
    /// c_i > 0: C times class and sample weights.
    pub cost: &'a [f64],
    /// The loss that is paid for every target.
    pub loss: &'a dyn Loss,
    /// Is there a bias b (and with it Σ a_i = 0), or is b = 0?
    pub intercept: bool,
}

impl Task<'_> {
    /// The objective of the best constant predictor: what relative quantities are measured against.
    pub fn constant_objective(&self) -> f64 {
        let zeros = vec![0.0; self.y.len()];
        self.loss.total(self.y, &zeros, self.best_bias(&zeros), self.cost)
    }

    /// The bias that is best for decision values f.
    pub fn best_bias(&self, f: &[f64]) -> f64 {
        if self.intercept { self.loss.best_bias(self.y, f, self.cost) } else { 0.0 }
    }
}

/// A dual feasible point with everything that follows from it.
#[derive(Debug, Clone)]
pub struct Solution {
    /// The signed multipliers a of all rows.
    pub a: Vec<f64>,
    /// The products K a: decision values on the training rows, without the bias.
    pub f: Vec<f64>,
    /// The bias that is best for f.
    pub bias: f64,
    /// Σ c ℓ(y, f + b) + ½ aᵀKa: an upper bound on the optimum.
    pub primal: f64,
    /// A(a) − ½ aᵀKa: a lower bound.
    pub dual: f64,
    /// The part A(a) of the lower bound that does not depend on K.
    pub dual_sum: f64,
    /// The answer of [`Machine::dual_response`], where the solver has found it on its way.
    pub dual_response: Option<Vec<f64>>,
    /// The forms aᵀ K_t a of terms, where the last product with K brought them.
    pub forms: Forms,
}

impl Solution {
    /// From a feasible a and f = K a.
    pub fn new(task: &Task<'_>, a: Vec<f64>, f: Vec<f64>) -> Self {
        let bias = task.best_bias(&f);
        let half = 0.5 * dot(&a, &f);
        let dual_sum = task.loss.dual_sum(task.y, &a, task.cost);
        let primal = task.loss.total(task.y, &f, bias, task.cost) + half;
        Self {
            a,
            f,
            bias,
            primal,
            dual: dual_sum - half,
            dual_sum,
            dual_response: None,
            forms: Forms::default(),
        }
    }

    /// The duality gap, primal − dual.
    pub fn gap(&self) -> f64 {
        self.primal - self.dual
    }
}

/// When a machine may stop: primal − dual ≤ max(absolute, relative · |primal|).
#[derive(Debug, Clone, Copy)]
pub struct Stop {
    /// In units of the objective.
    pub absolute: f64,
    /// As a fraction of it.
    pub relative: f64,
}

impl Stop {
    fn reached(self, s: &Solution) -> bool {
        s.gap() <= self.absolute.max(self.relative * s.primal.abs())
    }
}

/// Solves the problem above for one kernel.
pub trait Machine: Sync {
    /// Is a factor with `rank` columns better than the matrix of `n` rows, even where both fit?
    fn likes_factor(&self, n: usize, rank: usize) -> bool;

    /// Are products with a kernel of `n` rows that is known in its bases all it needs?
    fn solves_in_bases(&self, _n: usize) -> bool {
        false
    }

    /// Does it go on with exact products where rounded entries have led it astray?
    fn corrects(&self) -> bool {
        false
    }

    /// Half the width of the flat part of a piecewise linear loss, 0 for the hinge; `None` for
    /// others.
    fn kink(&self) -> Option<f64> {
        None
    }

    /// `start` is a dual feasible vector, typically the last solution for other weights: weights do
    /// not enter the constraints, so it stays feasible.
    fn solve(
        &self,
        kernel: &Combined,
        task: &Task<'_>,
        start: Option<&[f64]>,
        stop: Stop,
    ) -> Result<Solution>;

    /// w_i = −da_i/df_i at a solution: how multipliers follow decision values. Infinite where a
    /// kink of the loss lets them move freely, 0 where they are held.
    fn dual_response(&self, task: &Task<'_>, solution: &Solution) -> Vec<f64>;
}

/// Second derivatives of the optimal value by the kernel: v_jᵀ P v_k for the columns v, where −P v
/// is how the multipliers at `solution` answer when their decision values are raised by v (a row of
/// `columns` each). With v_m = K_m a this is the Hessian of the value of K_θ by θ. `None` where
/// more than `limit` multipliers move.
pub fn curvature(
    kernel: &Combined,
    dual_response: &[f64],
    intercept: bool,
    columns: &Matrix,
    limit: usize,
) -> Result<Option<Matrix>> {
    let kernel = &*kernel.truncated(TUNING.curvature_truncated_trace_share);
    let diagonal = kernel.diagonal();
    let size = diagonal.iter().sum::<f64>() / diagonal.len() as f64;
    // Free multipliers get a weight that is as good as infinite.
    let weight: Vec<f64> = dual_response
        .iter()
        .map(|w| w.min(TUNING.free_response / size.max(f64::MIN_POSITIVE)))
        .collect();
    let moving = weight.iter().filter(|w| **w > 0.0).count();
    let size = if let Combined::Factor(f) = kernel { moving.min(f.cols()) } else { moving };
    if size > limit {
        return Ok(None);
    }
    Ok(Some(WeightedSystem::new(kernel, &weight)?.quadratic(columns, intercept)))
}

/// Losses a machine exists for.
#[derive(Debug, Clone, Copy)]
pub enum Fitting {
    /// Support vector classification.
    Hinge(Hinge),
    /// Support vector classification with squared slacks.
    SquaredHinge(SquaredHinge),
    /// Logistic regression.
    Logistic(Logistic),
    /// Support vector regression.
    EpsilonInsensitive(EpsilonInsensitive),
    /// Ridge regression.
    Squared(Squared),
    /// Regression in which outliers are paid for linearly.
    Huber(Huber),
}

impl Fitting {
    /// The loss of that name; the number is its parameter, which only losses with
    /// [`LossName::default_epsilon`] read.
    pub fn new(name: LossName, epsilon: f64) -> Result<Self> {
        Ok(match name {
            LossName::Hinge => Self::Hinge(Hinge),
            LossName::SquaredHinge => Self::SquaredHinge(SquaredHinge),
            LossName::Logistic => Self::Logistic(Logistic),
            LossName::EpsilonInsensitive => {
                Self::EpsilonInsensitive(EpsilonInsensitive::new(epsilon)?)
            }
            LossName::Squared => Self::Squared(Squared),
            LossName::Huber => Self::Huber(Huber::new(epsilon)?),
        })
    }

    /// The name of the loss.
    pub fn name(&self) -> LossName {
        match self {
            Self::Hinge(_) => LossName::Hinge,
            Self::SquaredHinge(_) => LossName::SquaredHinge,
            Self::Logistic(_) => LossName::Logistic,
            Self::EpsilonInsensitive(_) => LossName::EpsilonInsensitive,
            Self::Squared(_) => LossName::Squared,
            Self::Huber(_) => LossName::Huber,
        }
    }

    /// The loss as a trait object.
    pub fn loss(&self) -> &dyn Loss {
        match self {
            Self::Hinge(l) => l,
            Self::SquaredHinge(l) => l,
            Self::Logistic(l) => l,
            Self::EpsilonInsensitive(l) => l,
            Self::Squared(l) => l,
            Self::Huber(l) => l,
        }
    }

    /// The machine that solves it.
    pub fn machine(&self) -> Box<dyn Machine> {
        match *self {
            Self::Hinge(_) => Box::new(Smo { kink: 0.0 }),
            Self::SquaredHinge(loss) => Box::new(Newton { loss }),
            Self::Logistic(loss) => Box::new(Newton { loss }),
            Self::EpsilonInsensitive(l) => Box::new(Smo { kink: l.epsilon() }),
            Self::Squared(_) => Box::new(Ridge),
            Self::Huber(loss) => Box::new(Newton { loss }),
        }
    }
}
