//! A plain k-fold search over ready-made requests, and the choice of C and v that rests on it.

use serde::{Deserialize, Serialize};

use super::{MethodSpec, Prepared, TrainSpec, samples::Samples};
use crate::{
    Model, Result,
    data::{
        Dataset, Target,
        split::{self, Split},
    },
    gram::Stack,
    kernels::Normalize,
    linalg::Matrix,
    metrics::Metric,
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
                Prepared::from_stack(stack, &target, weight.as_deref(), spec).map_err(|e| e.in_rows(rows))
            }
        }
    }
}

/// One split of the rows: a training part with its kernel terms, kept for as long as requests ask for the same ones, and a test part
/// that nothing learned from.
pub struct Fold<'a> {
    source: Source<'a>,
    target: &'a Target,
    weight: Option<&'a [f64]>,
    train: Vec<usize>,
    test: Vec<usize>,
    terms: Option<Prepared>,
}

/// What a model says about the test part of a [`Fold`].
pub struct Tested {
    /// The right answers.
    pub truth: Target,
    /// The model's.
    pub predicted: Target,
    /// A column per class, one in all for two classes or for values.
    pub scores: Matrix,
    /// A column per class, where the model has probabilities.
    pub probabilities: Option<Matrix>,
}

impl Tested {
    /// How good the answers are.
    pub fn score(&self, metric: Metric) -> Result<f64> {
        metric.evaluate(&self.truth, &self.predicted, &self.scores, self.probabilities.as_ref())
    }
}

impl<'a> Fold<'a> {
    /// Refuses answers and weights that do not fit the rows.
    pub fn new(source: Source<'a>, target: &'a Target, weight: Option<&'a [f64]>, split: Split) -> Result<Self> {
        source.check(target, weight)?;
        let (train, test) = split;
        Ok(Self { source, target, weight, train, test, terms: None })
    }

    /// Kernel terms of the training rows, as `spec` wants them.
    pub fn terms(&mut self, spec: &TrainSpec) -> Result<&Prepared> {
        let fits = |p: &Prepared| {
            spec.same_terms(&p.terms_of) && spec.method.region_column() == p.terms_of.method.region_column()
        };
        let terms = match self.terms.take().filter(fits) {
            Some(terms) => terms,
            None => self.source.prepare(&self.train, self.target, self.weight, spec)?,
        };
        Ok(self.terms.insert(terms))
    }

    /// Fits the requests to the training rows in turn; neighbours that differ in C or the method's parameters start from each other.
    pub fn fit(&mut self, specs: &[TrainSpec], observer: &mut dyn Observer) -> Result<Vec<Model>> {
        let mut models = Vec::with_capacity(specs.len());
        for path in specs.chunk_by(|a, b| a.same_terms(b) && a.differs_only_in_price_and_method(b)) {
            models.extend(self.terms(&path[0])?.path(path, observer)?);
        }
        Ok(models)
    }

    /// What a model of the training rows says about the test rows.
    pub fn test(&self, model: &Model) -> Result<Tested> {
        let decision = match self.source {
            Source::Table(data) => model.decision(&data.select(&self.test))?,
            Source::Ready(stack) => {
                let data = stack.block(&self.test, &self.train);
                let block = Stack { rows: self.test.len(), cols: self.train.len(), data: &data, ..stack };
                model.decision_precomputed(block)?
            }
        };
        Ok(Tested {
            truth: self.target.select(&self.test),
            predicted: model.decide(&decision),
            scores: model.class_scores(&decision),
            probabilities: model.probabilities(&decision),
        })
    }

    /// Scores of the requests on the test rows, larger is better: [`Metric::utility`].
    pub fn scores(&mut self, specs: &[TrainSpec], metric: Metric, observer: &mut dyn Observer) -> Result<Vec<f64>> {
        let models = self.fit(specs, observer)?;
        models.iter().map(|m| Ok(metric.utility(self.test(m)?.score(metric)?))).collect()
    }

    /// Rows of the test part.
    pub fn test_rows(&self) -> &[usize] {
        &self.test
    }
}

/// Scores of a search.
#[derive(Debug, Clone, PartialEq)]
pub struct Search {
    /// Score of request s in fold f at `scores[s][f]`, larger is better: accuracy, or −RMSE for values, unless another metric was named.
    /// A request that was given up has fewer.
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
    let fold = |split| Fold::new(source, target, sample_weight, split);
    let mut folds = split::stratified_kfold(target, folds, seed)?.into_iter().map(fold).collect::<Result<Vec<_>>>()?;
    // Terms of one fold at a time.
    search_folds(&mut folds, specs, Metric::default_for(target), None, false, observer)
}

/// The same on given folds, by a given metric. A request whose mean over the folds so far is more than `abandon` below the best one's is
/// not fitted again; once the observer asks to stop, no further fold is begun. `keep` leaves each fold its kernel terms, for the next search
/// on it.
pub fn search_folds(
    folds: &mut [Fold<'_>],
    specs: &[TrainSpec],
    metric: Metric,
    abandon: Option<f64>,
    keep: bool,
    observer: &mut dyn Observer,
) -> Result<Search> {
    let mut search = Search { scores: vec![Vec::new(); specs.len()], best: 0 };
    let mut alive: Vec<usize> = (0..specs.len()).collect();
    let of = folds.len();
    for (k, fold) in folds.iter_mut().enumerate() {
        observer.on_fold(Some((k + 1, of)));
        let chosen: Vec<TrainSpec> = alive.iter().map(|&s| specs[s].clone()).collect();
        for (&s, score) in alive.iter().zip(fold.scores(&chosen, metric, observer)?) {
            search.scores[s].push(score);
        }
        if !keep {
            fold.terms = None;
        }
        search.best = alive.iter().fold(alive[0], |b, &s| if search.mean(s) > search.mean(b) { s } else { b });
        if let Some(margin) = abandon {
            alive.retain(|&s| search.mean(search.best) - search.mean(s) <= margin);
        }
        if observer.on_pause().is_break() {
            break;
        }
    }
    observer.on_fold(None);
    Ok(search)
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

/// The values of C to try for a request that leaves it to cross-validation.
pub fn prices(
    source: Source<'_>,
    target: &Target,
    sample_weight: Option<&[f64]>,
    spec: &TrainSpec,
) -> Result<Vec<f64>> {
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
