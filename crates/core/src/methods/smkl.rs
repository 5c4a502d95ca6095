//! Later.
use super::evaluate::{Memory, Problem};
use crate::{Result, model::Fit, trace::Observer};

/// Later.
pub fn fit(_: &Problem<'_>, _penalty: &str, _eps: f64, _: &mut Memory, _: &mut dyn Observer) -> Result<Fit> {
    unimplemented!()
}
