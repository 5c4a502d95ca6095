//! Folds within the training rows of one fit. They choose a kernel, or a number of rules, before
//! the fit itself.
//!
//! A fold standardises and normalises by its own training rows, so nothing of its test rows is
//! seen. The kernels themselves (with automatic widths, which depend on features only) are those of
//! all training rows, so that every fold scores the same list.

use rayon::prelude::*;

use super::{Prepared, Samples};
use crate::{
    Error, Result,
    data::{Rows, Target, split},
    gram::{BuildOptions, GramSet, GramSource, Stack},
    kernels::KernelSpec,
    linalg::Matrix,
    model::{Input, Predictor},
    request::TrainSpec,
};

/// A fold of rows that are prepared already.
pub(crate) struct InnerFold<'a> {
    prepared: &'a Prepared,
    options: BuildOptions,
    /// Positions of its rows among those that are prepared.
    train: Vec<usize>,
    test: Vec<usize>,
    /// Standardised rows of both parts and the kernels between them; `None` for ready-made kernels.
    table: Option<Box<(Rows, Rows, Vec<KernelSpec>)>>,
}

impl<'a> InnerFold<'a> {
    /// The stratified folds, made one after the other. A class with a single row is refused, with
    /// `remedy` as what to do.
    pub fn all(
        prepared: &'a Prepared,
        request: &'a TrainSpec,
        (folds, seed): (usize, u64),
        remedy: &str,
    ) -> Result<impl Iterator<Item = Result<Self>>> {
        let samples = &prepared.samples;
        if let Target::Classes { names, labels } = &samples.target
            && let Some(rare) =
                (0..names.len()).find(|c| labels.iter().filter(|l| *l == c).count() < 2)
        {
            let problem = format!(
                "class `{}` has a single row, which cannot be both learned and tested",
                names[rare]
            );
            return Err(Error::data("target", problem, remedy));
        }
        let splits = split::stratified_kfold(&samples.target, folds, seed)?;
        Ok(splits.into_iter().map(move |(train, test)| {
            let learned: Vec<usize> = train.iter().map(|&i| samples.kept[i]).collect();
            Self::new(prepared, request, train, test).map_err(|e| e.in_rows(&learned))
        }))
    }

    fn new(
        prepared: &'a Prepared,
        request: &TrainSpec,
        train: Vec<usize>,
        test: Vec<usize>,
    ) -> Result<Self> {
        let table = match prepared.table_and_kernels() {
            None => None,
            Some((x, kernels)) => {
                let kernels = kernels.iter().map(|k| k.of_rows(&train)).collect();
                let (mut own, mut new) = (x.select_rows(&train), x.select_rows(&test));
                if request.standardize {
                    let standardizer = own.standardizer();
                    own = own.with_numbers(standardizer.apply(own.numbers())?);
                    new = new.with_numbers(standardizer.apply(new.numbers())?);
                }
                Some(Box::new((own, new, kernels)))
            }
        };
        Ok(Self { prepared, options: prepared.options_left(request), train, test, table })
    }

    /// Memory and storage for the fold's kernel terms.
    pub fn options(&self) -> &BuildOptions {
        &self.options
    }

    /// The samples of the training part, as the whole names them.
    pub fn train_samples(&self) -> Samples {
        self.prepared.samples.select(&self.train)
    }

    /// The samples of the test part.
    pub fn test_samples(&self) -> Samples {
        self.prepared.samples.select(&self.test)
    }

    /// Are its kernels computed from a table?
    pub fn has_table(&self) -> bool {
        self.table.is_some()
    }

    /// The training part with the terms of all kernels, and where each kernel stands among them:
    /// kernels that cannot be built there, because their columns are constant, are left out.
    pub fn terms(&self) -> Result<(Prepared, Vec<Option<usize>>)> {
        let Some(table) = &self.table else {
            let all: Vec<usize> = (0..self.prepared.grams.n_terms()).collect();
            return Ok((self.ready(&all)?, all.into_iter().map(Some).collect()));
        };
        let (x, _, kernels) = &**table;
        let (place, kernels, grams) = build(x, kernels, &self.options)?;
        let (columns, texts) = match &self.prepared.input {
            Input::Table { columns, texts, .. } => (columns.clone(), *texts),
            Input::Precomputed { .. } => (Vec::new(), 0),
        };
        let input = Input::Table { columns, texts, standardizer: None, kernels };
        Ok((self.prepared.part(self.train_samples(), grams, input, Some(x.clone())), place))
    }

    /// The training part with some of the ready-made kernels. Terms that were scaled or centred by
    /// all rows give a fold the same kernel as the raw ones once it has scaled or centred them by
    /// its own.
    pub fn ready(&self, kernels: &[usize]) -> Result<Prepared> {
        let (n, terms) = (self.train.len(), kernels.len());
        let names: Vec<String> = kernels.iter().map(|t| format!("kernel {}", t + 1)).collect();
        let data = self.block(&self.train, kernels);
        let grams = GramSet::from_stack(
            Stack { rows: n, cols: n, terms, data: &data },
            &names,
            &self.options,
        )?;
        let input = Input::Precomputed { n_train: n, kernels: names };
        // Rows of a fold of ready-made kernels are counted within it.
        let samples = Samples { kept: (0..n).collect(), ..self.train_samples() };
        Ok(self.prepared.part(samples, grams, input, None))
    }

    /// Decision values on the test rows of functions of the kernels of `terms`; `kernels` says
    /// which of the ready-made ones these are.
    pub fn decision(&self, predictor: &Predictor, terms: &Prepared, kernels: &[usize]) -> Matrix {
        if let (Some(table), Input::Table { kernels, .. }) = (&self.table, &terms.input) {
            let used = |columns: &[usize]| table.1.select_cols(columns);
            return predictor.evaluate_with(
                kernels,
                &used(predictor.columns()),
                &used(predictor.gram_columns()),
            );
        }
        let data = self.block(&self.test, kernels);
        let (rows, cols, terms) = (self.test.len(), self.train.len(), kernels.len());
        predictor.evaluate_precomputed(Stack { rows, cols, terms, data: &data })
    }

    /// Values of ready-made kernels between some rows and the training rows.
    fn block(&self, rows: &[usize], kernels: &[usize]) -> Vec<f64> {
        let (grams, n, terms) = (&self.prepared.grams, self.train.len(), kernels.len());
        let (mut all, mut out) = (vec![0.0; grams.n_samples()], vec![0.0; rows.len() * n * terms]);
        for (k, &t) in kernels.iter().enumerate() {
            for (r, &i) in rows.iter().enumerate() {
                grams.row(t, i, &mut all);
                self.train
                    .iter()
                    .enumerate()
                    .for_each(|(c, &j)| out[(r * n + c) * terms + k] = all[j]);
            }
        }
        out
    }
}

/// The terms of `kernels` on `x`, without those that cannot be built there because their columns
/// are constant.
fn build(
    x: &Rows,
    kernels: &[KernelSpec],
    options: &BuildOptions,
) -> Result<(Vec<Option<usize>>, Vec<KernelSpec>, GramSet)> {
    match GramSet::from_rows(x, kernels, options) {
        Ok(grams) => Ok(((0..kernels.len()).map(Some).collect(), kernels.to_vec(), grams)),
        Err(Error::Data { .. }) => {
            let alone =
                |k: &KernelSpec| GramSet::from_rows(x, std::slice::from_ref(k), options).is_ok();
            let good: Vec<bool> = kernels.par_iter().map(alone).collect();
            let specs: Vec<KernelSpec> =
                kernels.iter().zip(&good).filter(|(_, g)| **g).map(|(k, _)| k.clone()).collect();
            let mut next = 0..specs.len();
            let place = good.iter().map(|g| if *g { next.next() } else { None }).collect();
            let grams = GramSet::from_rows(x, &specs, options)?;
            Ok((place, specs, grams))
        }
        Err(e) => Err(e),
    }
}
