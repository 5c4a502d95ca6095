//! A plain k-fold search over ready-made requests: what a quick choice of C needs.

use super::{Prepared, TrainSpec};
use crate::{
    Result,
    data::{Dataset, Target, split},
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
/// them, and nothing of a fold's test rows enters its training.
pub fn grid_search(data: &Dataset, target: &Target, specs: &[TrainSpec], folds: usize, seed: u64) -> Result<Search> {
    let mut scores = vec![Vec::new(); specs.len()];
    for (train, test) in split::stratified_kfold(target, folds, seed)? {
        let (x, y) = (data.select(&train), target.select(&train));
        let (x_test, y_test) = (data.select(&test), target.select(&test));
        let mut prepared: Option<(&TrainSpec, Prepared)> = None;
        for (s, spec) in specs.iter().enumerate() {
            let ready = match prepared.take() {
                Some((of, p)) if of.same_terms(spec) => (of, p),
                _ => (spec, Prepared::from_table(&x, &y, None, spec)?),
            };
            let predicted = ready.1.fit(spec, &mut Silent)?.predict(&x_test)?;
            scores[s].push(match (&predicted, &y_test) {
                (Target::Classes { labels, .. }, Target::Classes { labels: truth, .. }) => {
                    metrics::accuracy(truth, labels)?
                }
                (Target::Values(values), Target::Values(truth)) => -metrics::rmse(truth, values)?,
                _ => f64::NEG_INFINITY,
            });
            prepared = Some(ready);
        }
    }
    let mut search = Search { scores, best: 0 };
    search.best = (0..specs.len()).fold(0, |b, s| if search.mean(s) > search.mean(b) { s } else { b });
    Ok(search)
}
