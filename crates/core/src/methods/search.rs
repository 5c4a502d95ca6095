//! A plain k-fold search over ready-made requests, and the choice of C and v that rests on it.

use serde::{Deserialize, Serialize};

use super::{MethodSpec, Prepared, TrainSpec, samples::Samples};
use crate::{
    Model, Result,
    data::{Dataset, Target, split},
    gram::Stack,
    kernels::Normalize,
    metrics,
    trace::Observer,
};

/// What a fit learns from, less the answers: a table, or ready-made kernel matrices of shape (n, n, M).
#[derive(Clone, Copy)]
pub enum Source<'a> {
    /// Rows and columns.
    Table(&'a Dataset),
    /// Kernel values between the rows.
    Ready(Stack<'a>),
}

impl Source<'_> {
    /// Refuses answers and weights that do not fit the rows.
    fn check(self, target: &Target, weight: Option<&[f64]>) -> Result<()> {
        let rows = match self {
            Self::Table(data) => data.len(),
            Self::Ready(stack) => stack.check_square().map(|()| stack.rows)?,
        };
        Samples::new(rows, target, weight).map(|_| ())
    }

    /// Terms between the rows `rows`.
    fn prepare(self, rows: &[usize], target: &Target, weight: Option<&[f64]>, spec: &TrainSpec) -> Result<Prepared> {
        let target = target.select(rows);
        let weight: Option<Vec<f64>> = weight.map(|w| rows.iter().map(|&i| w[i]).collect());
        match self {
            Self::Table(data) => Prepared::from_table(&data.select(rows), &target, weight.as_deref(), spec),
            Self::Ready(stack) => {
                let data = stack.block(rows, rows);
                let stack = Stack { rows: rows.len(), cols: rows.len(), data: &data, ..stack };
                Prepared::from_stack(stack, &target, weight.as_deref(), spec)
            }
        }
    }

    /// What a model of the rows `train` says about the rows `test`.
    fn predict(self, model: &Model, train: &[usize], test: &[usize]) -> Result<Target> {
        match self {
            Self::Table(data) => model.predict(&data.select(test)),
            Self::Ready(stack) => {
                let data = stack.block(test, train);
                let block = Stack { rows: test.len(), cols: train.len(), data: &data, ..stack };
                Ok(model.decide(&model.decision_precomputed(block)?))
            }
        }
    }
}

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
/// training. The observer sees every fit; once it asks to stop, each ends at its next iteration.
pub fn grid_search(
    source: Source<'_>,
    target: &Target,
    sample_weight: Option<&[f64]>,
    specs: &[TrainSpec],
    (folds, seed): (usize, u64),
    observer: &mut dyn Observer,
) -> Result<Search> {
    source.check(target, sample_weight)?;
    let mut scores = vec![Vec::new(); specs.len()];
    for (train, test) in split::stratified_kfold(target, folds, seed)? {
        let truth = target.select(&test);
        let mut s = 0;
        for same_terms in specs.chunk_by(TrainSpec::same_terms) {
            let prepared = source.prepare(&train, target, sample_weight, &same_terms[0])?;
            for path in same_terms.chunk_by(TrainSpec::differs_only_in_price_and_method) {
                for model in prepared.path(path, observer)? {
                    scores[s].push(score(&source.predict(&model, &train, &test)?, &truth)?);
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

/// Parameters left to cross-validation on the training rows. Their values in the request count for nothing, and those found take their
/// place in the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Choices {
    /// C.
    pub c: bool,
    /// v of the elastic net.
    pub v: bool,
    /// Folds at most: no more than the smallest class has rows.
    pub folds: usize,
    /// Of the folds.
    pub seed: u64,
}

impl Default for Choices {
    fn default() -> Self {
        Self { c: false, v: false, folds: 5, seed: 0 }
    }
}

/// The request with C and v as its `choose` wants them. C is one of 0.1, 1, …, 1000 (times n for unit-trace kernels, whose scale is n
/// times smaller); for SMKL one of seven prices from where its grids start, each √10 times the last. v is one of 0.1, 0.3, …, 0.9. Of
/// equals the smallest v wins, then the smallest C.
pub fn choose(
    source: Source<'_>,
    target: &Target,
    sample_weight: Option<&[f64]>,
    spec: &TrainSpec,
    observer: &mut dyn Observer,
) -> Result<TrainSpec> {
    spec.check()?;
    let Choices { c, v, folds, seed } = spec.choose;
    if !c && !v {
        return Ok(spec.clone());
    }
    let methods: Vec<MethodSpec> = match (&spec.method, v) {
        (MethodSpec::Gmkl { p, solver, .. }, true) => {
            [0.1, 0.3, 0.5, 0.7, 0.9].map(|v| MethodSpec::Gmkl { v, p: *p, solver: *solver }).to_vec()
        }
        (other, _) => vec![other.clone()],
    };
    source.check(target, sample_weight)?;
    let prices = if c { prices(source, target, sample_weight, spec)? } else { vec![spec.c] };
    let specs: Vec<TrainSpec> = methods
        .iter()
        .flat_map(|method| prices.iter().map(|&c| TrainSpec { method: method.clone(), c, ..spec.clone() }))
        .collect();
    let folds = folds.min(smallest_class(target)).max(2);
    let best = grid_search(source, target, sample_weight, &specs, (folds, seed), observer)?.best;
    Ok(specs[best].clone())
}

/// The values of C to try.
fn prices(source: Source<'_>, target: &Target, sample_weight: Option<&[f64]>, spec: &TrainSpec) -> Result<Vec<f64>> {
    let all: Vec<usize> = (0..target.len()).collect();
    if let MethodSpec::Smkl { .. } = spec.method {
        let start = source.prepare(&all, target, sample_weight, spec)?.collapse_threshold(spec)?;
        if start.start().is_finite() {
            return Ok(start.grid(7, 10f64.sqrt()));
        }
    }
    let scale = if spec.normalize == Normalize::Trace { all.len() as f64 } else { 1.0 };
    Ok((-1..=3).map(|e| scale * 10f64.powi(e)).collect())
}

/// Rows of the smallest class that has any; all rows for values.
fn smallest_class(target: &Target) -> usize {
    let Target::Classes { names, labels } = target else { return target.len() };
    let mut count = vec![0; names.len()];
    labels.iter().for_each(|&l| count[l] += 1);
    count.into_iter().filter(|c| *c > 0).min().unwrap_or(0)
}
