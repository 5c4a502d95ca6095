//! Later.
use super::Solver;
use super::evaluate::{Memory, Problem};
use crate::{Result, model::Fit, trace::Observer};

/// Later.
pub fn fit(_: &Problem<'_>, _p: f64, _: Solver, _: &mut Memory, _: &mut dyn Observer) -> Result<Fit> {
    unimplemented!()
}
