//! The number of rules by incremental cross-validation: one more rule as long as that helps.

use crate::{
    Error, Result,
    data::{Rows, Target, split},
    gram::{GramSet, GramSource, Stack},
    kernels::KernelSpec,
    methods::single,
    model::Input,
    prepare::{Prepared, Samples},
    request::{MethodSpec, RuleCount, TrainSpec, VcmklSpec},
    trace::{Hidden, Observer},
};

/// Rules at most.
const MOST: usize = 10;
/// Steps without a gain after which the search ends.
const PATIENCE: usize = 2;

/// A fold: what it trains on, and its test rows.
struct Fold {
    train: Prepared,
    test: Vec<usize>,
    rows: TestRows,
}

enum TestRows {
    Table(Box<Rows>),
    Ready(Vec<f64>),
}

impl Prepared {
    /// The smallest number of rules with the lowest cost over folds (errors, a false positive counted `cost_ratio` times). Where the observer
    /// ends the search, the best of those that were tried; and whether it did.
    pub(super) fn choose_rules(
        &self,
        spec: &TrainSpec,
        own: &VcmklSpec,
        observer: &mut dyn Observer,
    ) -> Result<(usize, bool)> {
        if let Target::Classes { names, labels } = &self.samples.target
            && let Some(rare) = (0..names.len()).find(|c| labels.iter().filter(|l| *l == c).count() < 2)
        {
            let problem = format!("class `{}` has a single row, which cannot be both learned and tested", names[rare]);
            return Err(Error::data("target", problem, "give n_rules as a number"));
        }
        let folds: Vec<Fold> = split::stratified_kfold(&self.samples.target, own.folds, own.seed)?
            .into_iter()
            .map(|(train, test)| self.fold(spec, &train, test))
            .collect::<Result<_>>()?;
        let (mut best, mut lowest) = (1, f64::INFINITY);
        for rules in 1..=MOST {
            let method = MethodSpec::Vcmkl(VcmklSpec { n_rules: RuleCount::Fixed(rules), ..own.clone() });
            let spec = TrainSpec { method, ..spec.clone() };
            let cost = match folds.iter().map(|fold| self.fold_cost(&spec, own, fold, observer)).sum::<Result<f64>>() {
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

    #[allow(clippy::single_match_else)] // two kinds of input, side by side
    fn fold(&self, spec: &TrainSpec, train: &[usize], test: Vec<usize>) -> Result<Fold> {
        let (samples, options) = (self.samples.select(train), self.options_left(spec));
        let (own, rows) = match (&self.table, &self.input) {
            (Some(x), Input::Table { columns, texts, kernels, .. }) => {
                let (mut own, mut new) = (x.select_rows(train), x.select_rows(&test));
                if spec.standardize {
                    let standardizer = own.standardizer();
                    own = own.with_numbers(standardizer.apply(own.numbers())?);
                    new = new.with_numbers(standardizer.apply(new.numbers())?);
                }
                let kernels: Vec<KernelSpec> = kernels.iter().map(|k| k.of_rows(train)).collect();
                let (_, kernels, grams) = single::build(&own, &kernels, &options)?;
                let input = Input::Table { columns: columns.clone(), texts: *texts, standardizer: None, kernels };
                (self.part(samples, grams, input, Some(own)), TestRows::Table(Box::new(new)))
            }
            _ => {
                let (n, terms) = (train.len(), self.grams.n_terms());
                let block = |rows: &[usize]| {
                    let (mut all, mut out) = (vec![0.0; self.grams.n_samples()], vec![0.0; rows.len() * n * terms]);
                    for t in 0..terms {
                        for (r, &i) in rows.iter().enumerate() {
                            self.grams.row(t, i, &mut all);
                            train.iter().enumerate().for_each(|(c, &j)| out[(r * n + c) * terms + t] = all[j]);
                        }
                    }
                    out
                };
                let names: Vec<String> = (1..=terms).map(|t| format!("kernel {t}")).collect();
                let data = block(train);
                let grams = GramSet::from_stack(Stack { rows: n, cols: n, terms, data: &data }, &names, &options)?;
                let input = Input::Precomputed { n_train: n, kernels: names };
                // Rows of a fold are counted within it.
                let samples = Samples { kept: (0..n).collect(), ..samples };
                (self.part(samples, grams, input, None), TestRows::Ready(block(&test)))
            }
        };
        Ok(Fold { train: own, test, rows })
    }

    fn fold_cost(&self, spec: &TrainSpec, own: &VcmklSpec, fold: &Fold, observer: &mut dyn Observer) -> Result<f64> {
        let model = fold.train.fit(spec, &mut Hidden(observer))?;
        let values = match (&fold.rows, &model.input) {
            (TestRows::Table(x), Input::Table { kernels, .. }) => {
                let used = |columns: &[usize]| x.select_cols(columns);
                let predictor = &model.predictor;
                predictor.evaluate_with(kernels, &used(predictor.columns()), &used(predictor.gram_columns()))
            }
            (TestRows::Ready(data), Input::Precomputed { n_train, kernels }) => model
                .predictor
                .evaluate_precomputed(Stack { rows: fold.test.len(), cols: *n_train, terms: kernels.len(), data }),
            _ => return Err(Error::numerical("cross-validation", "a fold's model expects other input")),
        };
        let Some(rules) = &model.rules else { return Err(Error::numerical("cross-validation", "a fold has no rules")) };
        let predicted = model.decide(&rules.combine(&values));
        let truth = self.samples.select(&fold.test);
        let (Target::Classes { labels: guess, names }, Target::Classes { labels, .. }) = (&predicted, &truth.target)
        else {
            return Err(Error::numerical("cross-validation", "a fold predicts no classes"));
        };
        let consensus = usize::from(!rules.machines[0].negate);
        let cost = |guess: usize, label: usize| match (guess == label, names.len() == 2 && guess == consensus) {
            (true, _) => 0.0,
            (false, true) => own.cost_ratio,
            (false, false) => 1.0,
        };
        Ok(guess.iter().zip(labels).zip(&truth.weights).map(|((&g, &l), w)| w * cost(g, l)).sum())
    }
}
