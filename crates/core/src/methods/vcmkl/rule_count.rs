//! The number of rules by incremental cross-validation: one more rule as long as that helps.

use crate::{
    Error, Result,
    data::Target,
    gram::GramSource,
    prepare::{InnerFold, Job, Prepared, Samples},
    request::{MethodSpec, RuleCount, TrainSpec, VcmklSpec},
    trace::{Hidden, Observer},
};

/// Largest number of rules that is tried.
const MOST: usize = 10;
/// Number of steps without a gain after which the search ends.
const PATIENCE: usize = 2;

/// The smallest number of rules with the lowest cost over folds (errors, a false positive counted
/// `cost_ratio` times). Where the observer ends the search, the best of those that were tried; and
/// whether it did.
pub(super) fn choose(
    own: &VcmklSpec,
    job: &Job<'_>,
    observer: &mut dyn Observer,
) -> Result<(usize, bool)> {
    let split = (own.folds, own.seed);
    let folds: Vec<Trial<'_>> =
        InnerFold::all(job.prepared, job.request, split, "give n_rules as a number")?
            .map(|fold| Trial::new(fold?))
            .collect::<Result<_>>()?;
    let (mut best, mut lowest) = (1, f64::INFINITY);
    for rules in 1..=MOST {
        let method =
            MethodSpec::Vcmkl(VcmklSpec { n_rules: RuleCount::Fixed(rules), ..own.clone() });
        let request = TrainSpec { method, ..job.request.clone() };
        let cost = match folds
            .iter()
            .map(|fold| fold.cost(&request, own, observer))
            .sum::<Result<f64>>()
        {
            Ok(cost) => cost,
            // With ν only so many rules can be fed.
            Err(Error::Param { .. }) if rules > 1 => break,
            Err(e) => return Err(e),
        };
        if cost < lowest {
            (best, lowest) = (rules, cost);
        } else if rules >= best + PATIENCE {
            break;
        }
        if observer.on_pause().is_break() {
            break;
        }
    }
    Ok((best, observer.on_pause().is_break()))
}

/// A fold with its kernel terms.
struct Trial<'a> {
    rows: InnerFold<'a>,
    train: Prepared,
    test: Samples,
}

impl<'a> Trial<'a> {
    fn new(rows: InnerFold<'a>) -> Result<Self> {
        let (train, _) = rows.terms()?;
        let test = rows.test_samples();
        Ok(Self { rows, train, test })
    }

    /// Cost of the errors on the test rows of rules that are fitted to the training rows.
    fn cost(
        &self,
        request: &TrainSpec,
        own: &VcmklSpec,
        observer: &mut dyn Observer,
    ) -> Result<f64> {
        let model = self.train.fit(request, &mut Hidden(observer))?;
        let kernels: Vec<usize> = (0..self.train.grams.n_terms()).collect();
        let values = self.rows.decision(&model.predictor, &self.train, &kernels);
        let Some(rules) = &model.rules else {
            return Err(Error::numerical("cross-validation", "a fold has no rules"));
        };
        let predicted = model.decide(&rules.combine(&values));
        let (Target::Classes { labels: guess, names }, Target::Classes { labels, .. }) =
            (&predicted, &self.test.target)
        else {
            return Err(Error::numerical("cross-validation", "a fold predicts no classes"));
        };
        let consensus = usize::from(!rules.machines[0].negate);
        let cost = |guess: usize, label: usize| match (
            guess == label,
            names.len() == 2 && guess == consensus,
        ) {
            (true, _) => 0.0,
            (false, true) => own.cost_ratio,
            (false, false) => 1.0,
        };
        Ok(guess
            .iter()
            .zip(labels)
            .zip(&self.test.weights)
            .map(|((&g, &l), w)| w * cost(g, l))
            .sum())
    }
}
