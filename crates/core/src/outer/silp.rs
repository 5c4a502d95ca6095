//! L1-MKL by cutting planes alone, the semi-infinite linear program of [Sonnenburg2006].
//!
//! Solves  min over θ in Θ, f, b :  Σ_i c_i ℓ(y_i, f(x_i) + b) + ½ Σ_m ‖f_m‖²/θ_m,
//!   Θ the simplex (any separable set would do),
//! as  min over θ in Θ, τ : τ  subject to  A(a) − ½ Σ_m θ_m aᵀK_m a ≤ τ  for every feasible a,
//!   adding the a that a machine finds most violated.
//! In: terms K_1..K_M, a task, Θ.   Out: θ, a, b and a certified gap.   Page docs/methods/lp.md.

use super::{Memory, Problem, Run, active, level::clean};
use crate::{Result, model::Fit, trace::Observer, tuning::tuning, weights::Separable};

tuning! { "silp"
    /// Largest number of constraints that are kept. Dropping some costs iterations, so the limit is
    /// wide.
    cuts_kept: usize = 200;
    /// Accuracy of the restricted master problem, as a share of the gap still open.
    master_gap_share: f64 = 1e-3;
}

/// Minimises over `set`, starting from what `memory` holds and leaving there what it found.
pub fn fit(
    problem: &Problem<'_>,
    set: &dyn Separable,
    memory: &mut Memory,
    observer: &mut dyn Observer,
) -> Result<Fit> {
    let mut run = Run::new(problem, observer);
    let cuts = &mut memory.cuts;
    let mut duals = memory.duals.take();
    let mut theta = match memory.theta.take() {
        Some(theta) => clean(set, theta),
        None => set.start(problem.grams.n_terms()),
    };
    loop {
        // The machine is the column generation step, …
        let point = run.visit(theta, duals.as_deref())?;
        run.keep(&point);
        run.raise(point.lower_bound(set));
        cuts.push(point.dual_sum, point.slope.clone(), point.duals(), None);
        // … the restricted master problem the bound, here with a proof whatever its accuracy.
        let (mu, next) =
            cuts.bound(set, &point.theta, TUNING.master_gap_share * (run.upper() - run.lower));
        run.raise(cuts.aggregate(set, &mu).0);
        run.record(active(&point.theta));
        if run.over() {
            memory.remember(run.best.as_ref());
            return run.finish();
        }
        cuts.trim(set, &mu, TUNING.cuts_kept);
        theta = clean(set, next);
        duals = Some(point.duals());
    }
}
