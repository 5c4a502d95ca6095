//! The paper's parametric dual descent.
use super::{Effort, Instance, Objective, Outcome, Watch};
use crate::{Error, Result};

/// Descends.
pub fn pddp(_: &Instance<'_>, _: Objective, _: Effort, _: &mut Watch<'_>) -> Result<Outcome> {
    Err(Error::param("solver", "ccp, am, sgd or exact", "pddp"))
}
