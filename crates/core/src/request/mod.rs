//! What a fit is asked for: one typed request, made once, and read by every command, estimator and
//! model file.

mod catalogue;
mod choices;
mod infinity;
mod method;
mod parameters;
mod scheme;
mod spec;
mod value;
mod vcmkl;
mod words;

pub use catalogue::{MethodInfo, Parameter, Targets, catalogue};
pub use choices::Choices;
use infinity::{number_or_inf, optional_number_or_inf};
pub use method::MethodSpec;
pub use parameters::*;
pub use scheme::Scheme;
pub use spec::{ClassWeight, GroupBy, TrainSpec};
use value::Slot;
pub use value::Value;
pub use vcmkl::{Auto, Nu, Objective, RuleCount, RuleSolver, VcmklSpec};
pub use words::{Evenness, EvennessWord, GateName, Solver};

pub use crate::{
    gram::{Approx, Storage},
    loss::LossName,
};
