//! Kernel weights and multipliers in one interior-point method, for many rows and kernels of low
//! rank or for very many kernels.
//!
//! Solves  min over θ in Θ, f, b :  Σ_i c_i ℓ(y_i, f(x_i) + b) + ½ Σ_m ‖f_m‖²/θ_m
//!   for a piecewise linear loss and a separable Θ.
//! In: terms K_1..K_M, a task, Θ = { θ ≥ 0 : Σ_group φ(θ_m) ≤ 1 }.
//!   Out: θ, a, b and a certified gap.   Papers: [Mehrotra1992],
//! [Gondzio1996]; page docs/methods/gmkl.md.
//!
//! With v_m = K_m a and s_m = aᵀK_m a the optimum is where the multipliers solve the machine at f =
//! Σ θ_m v_m, and
//!   ½ s_m + ζ_m = λ φ'(θ_m),   θ_m ζ_m = 0,   Σ_group φ(θ_m) = 1.
//! A Newton step on these, products of pairs set to μ instead of 0, with K_θ ≈ F Fᵀ and e, right of
//! [`InteriorDual`], is
//!   δa = e (right − F w − β 1 − V δθ),   w = Fᵀδa,   1ᵀδa = 0,   −Vᵀδa + Λ δθ + Φ δλ = t,
//!     Φᵀδθ = 1 − Σφ,   Λ = λφ'' + ζ/θ:
//! for E = [F 1 V] one positive definite system with the matrix Eᵀ diag(e) E + diag(1, 0, Λ),
//! bordered by Φ. It costs n·columns² a step and no n × n matrix; with fewer rows than columns the
//! same system is solved in a, at n²·columns. Each step's a and θ prove both bounds with no machine
//! solved. Steps are computed with a truncated F, which leaves out a small share of the trace, and
//! both bounds with the kernels themselves.

mod face;
mod point;
mod reduce_support;
mod system;
#[cfg(test)]
mod tests;
mod values;

pub use face::settle;
use point::JointPoint;
use system::JointSystem;
use values::{StepKernel, TermImages};

use super::{Memory, Problem, Run};
use crate::{
    Error, Result,
    gram::{Factor, GramSource, LowRankSum},
    machine::{self, interior::InteriorDual},
    model::Fit,
    trace::Observer,
    tuning::tuning,
    weights::Separable,
};

tuning! { "joint"
    /// The method is taken only where K_m a, over all kernels and rows, are at most this many
    /// numbers (8 bytes each, 2 GiB).
    most_image_values: usize = 1 << 28;
    /// The method is taken only up to this many rows where the kernel is needed as a matrix: a step
    /// costs the cube of the rows.
    most_matrix_rows: usize = 5000;
    /// With at least as many kernels as rows the method is taken only where a step costs at most
    /// this many multiplications, n²·M.
    most_multiplications_with_many_kernels: usize = 10_000_000_000;
    /// The method ends after this many steps; the level method goes on from where they lead.
    most_steps: usize = 80;
    /// Share of the trace that the first F leaves out at most. docs/performance.md, "Many rows": a
    /// hundredth of the trace, or 5/n if that is less.
    first_truncated_trace_share: f64 = 1e-2;
    /// The first F leaves out at most this share of the trace divided by the number of rows: what
    /// is left out counts beside the barrier, and grows with the rows. docs/performance.md, "Many
    /// rows".
    first_truncated_trace_per_row: f64 = 5.0;
    /// Share of the trace that the first matrix leaves out where terms are no factors: each step
    /// sums it anew, and the first few need not be exact. docs/performance.md, "What made the
    /// difference".
    first_truncated_matrix_trace_share: f64 = 0.2;
    /// Less is left out where the products of pairs add up to less than this share of the gap: the
    /// rest of it is due to what is left out. docs/performance.md, "Many rows".
    pairs_behind_gap_share: f64 = 0.3;
    /// Less is left out of a matrix where a step leaves more than this share of the gap open.
    stalled_matrix_gap_share: f64 = 0.65;
    /// The share of the trace that is left out is multiplied by this where less is to be left out.
    truncation_factor: f64 = 0.1;
    /// The share of the trace that is left out is raised to this power where several steps in a row
    /// hardly helped.
    truncation_power: f64 = 1.5;
    /// Corrections of a step that pay in the form for many rows, at most: each costs one solution.
    /// docs/performance.md, "Many rows": at 20,000 rows one pair held all others up in most steps.
    column_form_corrections: usize = 3;
    /// Corrections of a step that pay in the form for many kernels, where a solution costs nearly
    /// as much as the system.
    row_form_corrections: usize = 1;
    /// A correction is made for a step of this times the present length, plus
    /// `correction_length_added`.
    correction_length_factor: f64 = 1.5;
    /// What is added to the length that a correction is made for, in units of the whole step.
    correction_length_added: f64 = 0.3;
    /// The next correction is tried where the last one gained this share of the way to the length
    /// it was made for.
    correction_gain_share: f64 = 0.1;
    /// Corrections leave products of pairs alone that lie within this factor of their target.
    product_spread_factor: f64 = 10.0;
    /// Columns of E are kept in single precision where a larger share of the trace than this is
    /// left out.
    single_precision_trace_share: f64 = 1e-6;
    /// V is kept in single precision for steps with a matrix that leaves out a larger share of the
    /// trace than this.
    single_precision_images_trace_share: f64 = 1e-4;
    /// From this relative gap on the kernels that may have weight are few enough, and known well
    /// enough, to go on with them alone. Measured on 2026-11-19 with halves of Toy 1, Heart and
    /// WDBC, 72 fits: from 0.2, 0.05 and 0.01 on they took 236, 287 and 312 steps with all kernels
    /// and 576, 570 and 352 with some.
    face_gap: f64 = 1e-2;
    /// Where the search for the face did not lead to a certified answer it is tried again at this
    /// share of the gap.
    next_face_gap_share: f64 = 0.1;
    /// Where an answer with zeros is not certified yet, steps go on to this share of the gap
    /// allowed.
    tighter_tolerance_share: f64 = 0.3;
    /// A weight is a zero in the answer if, in units of the largest, it is smaller than this times
    /// its slack in units of its slope: the numbers are tried in turn until the answer is
    /// certified.
    zero_weight_shares: [f64; 4] = [1e-1, 1e-2, 1e-3, 1e-4];
}

/// Can the method solve this problem? Kernels that are no factors need a matrix of all rows.
fn possible(problem: &Problem<'_>) -> bool {
    let (n, terms) = (problem.grams.n_samples(), problem.grams.n_terms());
    let all_rows = matches!(&problem.parts[..], [part] if part.rows.is_none());
    let matrix_fits =
        8 * n as u64 * n as u64 <= problem.budget.bytes && n <= TUNING.most_matrix_rows;
    all_rows
        && problem.machine.kink().is_some()
        && n.saturating_mul(terms) <= TUNING.most_image_values
        && (matrix_fits || (terms < n && factors(problem.grams).is_some()))
}

/// Share of the trace that the first F leaves out (`as_factors`), or the first matrix.
fn first_truncation(n: usize, as_factors: bool) -> f64 {
    if as_factors {
        TUNING.first_truncated_trace_share.min(TUNING.first_truncated_trace_per_row / n as f64)
    } else {
        TUNING.first_truncated_matrix_trace_share
    }
}

/// All terms as factors, if they are.
fn factors(grams: &dyn GramSource) -> Option<Vec<&Factor>> {
    (0..grams.n_terms()).map(|t| grams.factor(t)).collect()
}

/// All terms as factors where that makes a small system: there are fewer terms than rows.
fn few_factors(grams: &dyn GramSource) -> Option<Vec<&Factor>> {
    factors(grams).filter(|f| f.len() < grams.n_samples())
}

/// Are there at least as many kernels as rows, and few enough of both for steps in the multipliers?
fn many_kernels_on_few_rows(n: usize, terms: usize) -> bool {
    terms >= n
        && n.saturating_mul(n).saturating_mul(terms)
            <= TUNING.most_multiplications_with_many_kernels
}

/// Is this method faster than the others? It is with many rows and factors of few columns, and with
/// more kernels than rows where few of them get weight.
fn pays(problem: &Problem<'_>, set: &dyn Separable) -> bool {
    let (n, terms) = (problem.grams.n_samples(), problem.grams.n_terms());
    let one_group = set.groups(terms).len() == 1;
    if set.selects() && one_group && many_kernels_on_few_rows(n, terms) {
        return true;
    }
    let columns = || {
        factors(problem.grams).map(|f| {
            combined(&f, &set.start(terms)).truncated(first_truncation(n, true)).rank() + terms
        })
    };
    problem.machine.solves_in_bases(n) && columns().is_some_and(|c| machine::has_few_columns(c, n))
}

/// Another method for the same problem.
pub type Alternative<'a> = &'a dyn Fn(&mut Memory, &mut dyn Observer) -> Result<Fit>;

/// Minimises over `set` by this method where it is the faster one, or wherever it is possible if
/// `always`; `otherwise` is the other method, which also goes on where steps no longer help.
pub fn fit_or(
    problem: &Problem<'_>,
    set: &dyn Separable,
    always: bool,
    memory: &mut Memory,
    observer: &mut dyn Observer,
    otherwise: Alternative<'_>,
) -> Result<Fit> {
    match possible(problem) {
        // Only the other methods can begin where the last fit ended.
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
    let mut point = JointPoint::start(problem, set, few_factors(problem.grams).is_some());
    let mut run = Run::new(problem, observer);
    point.run(&mut run, set)?;
    if run.optimal() && set.phi(1.0)[2] == 0.0 {
        point.accept_reduced_support(&mut run, set);
    }
    memory.remember(run.best.as_ref());
    if !run.over() {
        return Ok(None);
    }
    memory.prover = Some(vec![point.into_multipliers()]);
    run.finish().map(Some)
}

/// K_θ as one factor.
fn combined(factors: &[&Factor], theta: &[f64]) -> LowRankSum {
    LowRankSum::new(&theta.iter().copied().zip(factors.iter().copied()).collect::<Vec<_>>())
}

/// The mean of K_θ's diagonal.
fn mean_diagonal(problem: &Problem<'_>, theta: &[f64]) -> f64 {
    let grams = problem.grams;
    theta.iter().enumerate().map(|(t, w)| w * grams.trace(t)).sum::<f64>()
        / grams.n_samples() as f64
}
