//! Solvers over the kernel weights θ. They see kernel terms, a machine and a set Θ, and know no
//! paper's method.

mod alternating;
mod fixed;
mod gate;
mod joint;
mod level;
mod problem;
mod recorder;
mod reduced_gradient;
mod rounding;
mod run;
mod silp;
mod zeros;

pub(crate) use alternating::fit as alternating;
pub(crate) use fixed::fit_at as fixed;
pub use gate::{Element, Gate, Gated, GroupGate, KernelGate, fit_gate, gate_value};
pub(crate) use joint::fit_or as joint_or;
pub use level::Cuts;
pub use level::fit as level;
pub(crate) use level::sparse_or_level;
pub use problem::{Memory, Part, Point, Problem};
pub(crate) use problem::{active, spread};
pub use recorder::Recorder;
pub(crate) use reduced_gradient::fit as reduced_gradient;
pub(crate) use rounding::{NEGLIGIBLE_ROUNDING_SHARE, Slack, again, expected, larger, times};
pub(crate) use run::{Run, solve_at};
pub(crate) use silp::fit as silp;
pub(crate) use zeros::settle;
