//! Veto–consensus: g(x) = min_m f_m(x), so that a sample belongs to the consensus class only if
//! every rule agrees.
//!
//! Minimises  J(w, b, ρ) = ½ Σ_m ‖w_m‖² − Σ ν_m ρ_m + Σ_{I+} c_i max_m ξ_im + Σ_{I−} c_i min_m
//!   ξ_im,  ξ_im = [ρ_m − y_i f_m(x_i)]_+,
//! with ρ_m = 1 and no ν (fixed margins, the default) or ρ_m learned (multi-ν, Zhou, Hu and Spanos
//! 2016).
//! In: a kernel per rule, y, costs.
//!   Out: rules f_m, how the rejected class is shared among them, and a stationary J, or for
//!   `exact`
//! the proven minimum. Page docs/methods/vcmkl.md.

mod assign;
mod exact;
mod inner;
mod interior;
mod low_rank;
mod pddp;
mod region;
mod rule_count;
mod sgd;
mod solvers;
mod train;

pub use exact::exact;
pub use inner::{Instance, Margin, RuleSolution};
pub use pddp::pddp;
pub use sgd::sgd;
pub use solvers::{Effort, FoundRules, am, ccp, descend};

pub(crate) use assign::reassign;
pub(crate) use train::{Terms, negated, row_costs};
