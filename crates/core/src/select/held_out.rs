//! What the report of one fit says of rows that the fit has not seen.

use super::{Comparison, Contender, Grid, Journal, Protocol, Splitting, Study, Watch};
use crate::{
    Result,
    data::Target,
    metrics::Metric,
    prepare::Source,
    request::{Choices, GroupBy, MethodSpec, TrainSpec},
};

/// Values of v that each fold tries where v is left to the fit.
const SHARES: &str = "v=0.1..0.9:0.2";

/// The request and equal weights at the same C over folds of the rows, each measured where it was
/// not fitted; what was left to cross-validation is chosen inside every fold. `label` is what the
/// request is called. `None` where the watch stopped it.
pub fn held_out(
    (source, target, weight): (Source<'_>, &Target, Option<&[f64]>),
    (label, spec): (&str, &TrainSpec),
    folds: usize,
    watch: &dyn Watch,
) -> Result<Option<Comparison>> {
    let contenders = with_baseline(label, spec)?;
    let protocol =
        Protocol::new(Splitting::Folds { folds, repeats: 1 }, Metric::default_for(target), 0);
    let study = Study { weight, watch, ..Study::new(source, target, &protocol) };
    let Some(mut found) = study.compare(&contenders, &Journal::none())? else { return Ok(None) };
    // The fit on all rows has alignments and traces of its own.
    found.aligned = None;
    found.runs.iter_mut().filter_map(|r| r.detail.as_mut()).for_each(|d| d.trace.clear());
    Ok(Some(found))
}

/// Equal weights, and the request where it is for anything else.
fn with_baseline(label: &str, spec: &TrainSpec) -> Result<Vec<Contender>> {
    let Choices { c, v, scale, .. } = spec.choose;
    let fixed = if c { String::new() } else { format!("C={}", spec.c) };
    let own = if v { format!("{fixed};{SHARES}") } else { fixed.clone() };
    let plain = TrainSpec { choose: Choices { scale, ..Choices::default() }, ..spec.clone() };
    let uniform = TrainSpec {
        method: MethodSpec::Uniform {},
        shared_weights: false,
        group_by: GroupBy::None,
        penalties: None,
        ..plain.clone()
    };
    let contender = |label: &str, spec: TrainSpec, grid: &str| -> Result<Contender> {
        Ok(Contender { label: label.into(), grid: Grid::parse(grid, &spec.method)?, spec })
    };
    let mut list = vec![contender("uniform", uniform, &fixed)?];
    if !matches!(spec.method, MethodSpec::Uniform {}) {
        list.push(contender(label, plain, &own)?);
    }
    Ok(list)
}
