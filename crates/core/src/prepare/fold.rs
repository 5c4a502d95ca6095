//! One split of the rows: kernel terms of the training part, and what a model says about the test
//! part.

use super::{Prepared, Samples};
use crate::{
    Model, Result,
    data::{Dataset, Target, split::Split},
    gram::Stack,
    linalg::Matrix,
    metrics::Metric,
    request::TrainSpec,
};

/// What a fit learns from, less the answers: a table, or ready-made kernel matrices of shape (n, n,
/// M).
#[derive(Clone, Copy)]
pub enum Source<'a> {
    /// A table, whose kernels are computed.
    Table(&'a Dataset),
    /// Ready-made kernel matrices between the rows.
    Ready(Stack<'a>),
}

impl Source<'_> {
    /// Refuses answers and weights that do not fit the rows.
    pub(crate) fn check(self, target: &Target, weight: Option<&[f64]>) -> Result<()> {
        let rows = match self {
            Self::Table(data) => data.len(),
            Self::Ready(stack) => stack.check_square().map(|()| stack.rows)?,
        };
        Samples::new(rows, target, weight).map(|_| ())
    }

    /// Prepares the kernel terms between the rows `rows`.
    pub(crate) fn prepare(
        self,
        rows: &[usize],
        target: &Target,
        weight: Option<&[f64]>,
        spec: &TrainSpec,
    ) -> Result<Prepared> {
        let target = target.select(rows);
        let weight: Option<Vec<f64>> = weight.map(|w| rows.iter().map(|&i| w[i]).collect());
        match self {
            Self::Table(data) => {
                Prepared::from_table(&data.select(rows), &target, weight.as_deref(), spec)
            }
            Self::Ready(stack) => {
                let data = stack.block(rows, rows);
                let stack = Stack { rows: rows.len(), cols: rows.len(), data: &data, ..stack };
                Prepared::from_stack(stack, &target, weight.as_deref(), spec)
                    .map_err(|e| e.in_rows(rows))
            }
        }
    }
}

/// One split of the rows: a training part with its kernel terms, kept for as long as requests ask
/// for the same ones, and a test part that nothing learned from.
pub struct Fold<'a> {
    source: Source<'a>,
    target: &'a Target,
    weight: Option<&'a [f64]>,
    train: Vec<usize>,
    test: Vec<usize>,
    pub(crate) terms: Option<Prepared>,
}

/// What a model says about the test part of a [`Fold`].
pub struct Tested {
    /// The right answers for the test rows.
    pub truth: Target,
    /// The answers that the model gives.
    pub predicted: Target,
    /// Scores of the test rows: a column per class, one in all for two classes or for values.
    pub scores: Matrix,
    /// Probabilities with a column per class, where the model has them.
    pub probabilities: Option<Matrix>,
}

impl Tested {
    /// Measures how good the answers are.
    pub fn score(&self, metric: Metric) -> Result<f64> {
        metric.evaluate(&self.truth, &self.predicted, &self.scores, self.probabilities.as_ref())
    }
}

impl<'a> Fold<'a> {
    /// Refuses answers and weights that do not fit the rows.
    pub fn new(
        source: Source<'a>,
        target: &'a Target,
        weight: Option<&'a [f64]>,
        split: Split,
    ) -> Result<Self> {
        source.check(target, weight)?;
        let (train, test) = split;
        Ok(Self { source, target, weight, train, test, terms: None })
    }

    /// Gives the kernel terms of the training rows as `spec` asks for them, made anew where the
    /// last ones differ.
    pub fn terms(&mut self, spec: &TrainSpec) -> Result<&Prepared> {
        let fits = |p: &Prepared| {
            spec.same_terms(&p.terms_of)
                && spec.method.region_column() == p.terms_of.method.region_column()
        };
        let terms = match self.terms.take().filter(fits) {
            Some(terms) => terms,
            None => self.source.prepare(&self.train, self.target, self.weight, spec)?,
        };
        Ok(self.terms.insert(terms))
    }

    /// Asks a model of the training rows about the test rows.
    pub fn test(&self, model: &Model) -> Result<Tested> {
        let decision = match self.source {
            Source::Table(data) => model.decision(&data.select(&self.test))?,
            Source::Ready(stack) => {
                let data = stack.block(&self.test, &self.train);
                let block =
                    Stack { rows: self.test.len(), cols: self.train.len(), data: &data, ..stack };
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

    /// The numbers of the test rows.
    pub fn test_rows(&self) -> &[usize] {
        &self.test
    }
}
