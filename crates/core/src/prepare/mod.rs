//! What stands around a method: checked samples, prepared kernel terms, folds, regions, and the
//! model made from its fits.

mod assemble;
mod flat;
mod fold;
mod inner_fold;
mod job;
mod local;
mod prepared;
mod regions;
mod samples;

pub(crate) use flat::is_constant;
pub use fold::{Fold, Source, Tested};
pub(crate) use inner_fold::InnerFold;
pub(crate) use job::Job;
pub(crate) use local::LocalParts;
pub use prepared::Prepared;
pub use regions::Regions;
pub(crate) use regions::{Placed, Placing, one_hot};
pub(crate) use samples::{MachineTask, Samples};
