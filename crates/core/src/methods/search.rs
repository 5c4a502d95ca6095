//! A plain k-fold search over ready-made requests: what a quick choice of C needs.

use super::{MethodSpec, Prepared, TrainSpec};
use crate::{
    Error, Result,
    data::{Dataset, Target, split},
    kernels::Normalize,
    metrics,
    trace::Silent,
};

/// Scores of a search.
#[derive(Debug, Clone, PartialEq)]
pub struct Search {
    /// Score of request s in fold f at `scores[s][f]`: accuracy, or −RMSE for values.
    pub scores: Vec<Vec<f64>>,
    /// The request with the largest mean; ties go to the earlier one.
    pub best: usize,
}

impl Search {
    /// Mean score of request `s`.
    pub fn mean(&self, s: usize) -> f64 {
        self.scores[s].iter().sum::<f64>() / self.scores[s].len() as f64
    }
}

/// Fits every request on the training part of every fold. Kernel terms are built once per fold for neighbouring requests that share
/// them, neighbours that differ in C or the method's parameters start from each other, and nothing of a fold's test rows enters its
/// training.
pub fn grid_search(data: &Dataset, target: &Target, specs: &[TrainSpec], folds: usize, seed: u64) -> Result<Search> {
    let mut scores = vec![Vec::new(); specs.len()];
    for (train, test) in split::stratified_kfold(target, folds, seed)? {
        let (x, y) = (data.select(&train), target.select(&train));
        let (x_test, y_test) = (data.select(&test), target.select(&test));
        let mut s = 0;
        for same_terms in specs.chunk_by(TrainSpec::same_terms) {
            let prepared = Prepared::from_table(&x, &y, None, &same_terms[0])?;
            for path in same_terms.chunk_by(TrainSpec::differs_only_in_price_and_method) {
                for model in prepared.path(path, &mut Silent)? {
                    scores[s].push(score(&model.predict(&x_test)?, &y_test)?);
                    s += 1;
                }
            }
        }
    }
    let mut search = Search { scores, best: 0 };
    search.best = (0..specs.len()).fold(0, |b, s| if search.mean(s) > search.mean(b) { s } else { b });
    Ok(search)
}

/// Accuracy, or −RMSE for values.
fn score(predicted: &Target, truth: &Target) -> Result<f64> {
    match (predicted, truth) {
        (Target::Classes { labels, .. }, Target::Classes { labels: truth, .. }) => metrics::accuracy(truth, labels),
        (Target::Values(values), Target::Values(truth)) => Ok(-metrics::rmse(truth, values)?),
        _ => Ok(f64::NEG_INFINITY),
    }
}

/// What [`choose`] may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Choices {
    /// C.
    pub c: bool,
    /// v of the elastic net.
    pub v: bool,
}

/// The request with C and v chosen by cross-validation on the training rows: C from 0.1 to 1000 (times n for unit-trace kernels, whose
/// scale is n times smaller), v from 0.1 to 0.9.
pub fn choose(
    data: &Dataset,
    target: &Target,
    spec: &TrainSpec,
    choices: Choices,
    folds: usize,
    seed: u64,
) -> Result<TrainSpec> {
    let scale = if spec.normalize == Normalize::Trace { data.len() as f64 } else { 1.0 };
    let prices: Vec<f64> = if choices.c { (-1..=3).map(|e| scale * 10f64.powi(e)).collect() } else { vec![spec.c] };
    let methods: Vec<MethodSpec> = match (&spec.method, choices.v) {
        (MethodSpec::Gmkl { p, solver, .. }, true) => {
            [0.1, 0.3, 0.5, 0.7, 0.9].map(|v| MethodSpec::Gmkl { v, p: *p, solver: *solver }).to_vec()
        }
        (other, true) => return Err(Error::param("v", "left out", format!("automatic for {}", other.name()))),
        (other, false) => vec![other.clone()],
    };
    let specs: Vec<TrainSpec> = methods
        .iter()
        .flat_map(|method| prices.iter().map(|&c| TrainSpec { method: method.clone(), c, ..spec.clone() }))
        .collect();
    if let [only] = specs.as_slice() {
        return Ok(only.clone());
    }
    Ok(specs[grid_search(data, target, &specs, folds, seed)?.best].clone())
}
