//! The best single kernel: the support vector machine baseline that weight learning has to beat.
//!
//! Chooses  t = argmax over kernels of the mean over folds of score(machine on K_t, fitted without the fold; the fold's rows),
//! accuracy or −RMSE, ties to the first; then solves  min over f, b :  Σ_i c_i ℓ(y_i, f(x_i) + b) + ½ ‖f‖²  for K_t on all rows.
//! In: terms K_1..K_M, samples, folds.   Out: θ = e_t, a, b and the machine's certified gap.   Page docs/methods/single.md.
//!
//! A fold standardises and normalises by its own training rows, so nothing of its test rows is seen; kernels themselves (with automatic
//! widths, which depend on features only) are those of all training rows, so that all folds score the same list.

use rayon::prelude::*;

use super::Method;
use crate::{
    Error, Model, Result,
    data::{self, Target, split},
    gram::{BuildOptions, GramSet, GramSource, Groups, Stack},
    kernels::KernelSpec,
    linalg::Matrix,
    machine::Fitting,
    model::{Fit, Input, Predictor},
    outer::{Memory, Part, Problem, fixed},
    prepare::{Job, MachineTask, Samples},
    request::{Single, TrainSpec},
    trace::{Observer, Silent, Status},
};

impl Method for Single {
    fn fit(&self, job: &Job<'_>, memories: &mut Vec<Memory>, observer: &mut dyn Observer) -> Result<Model> {
        let prepared = job.prepared;
        let rows = match (&prepared.table, &prepared.input) {
            (Some(x), Input::Table { kernels, .. }) => Rows::Table(x, kernels),
            _ => Rows::Ready(&prepared.grams),
        };
        let options = prepared.options_left(job.request);
        let folds = (self.folds, self.seed);
        let (theta, stopped) = choose(&rows, &prepared.samples, job.request, &options, folds, observer)?;
        let mut fits = job.global_fits(memories, observer, &mut |problem, memory, observer| {
            fixed(problem, theta.clone(), memory, observer)
        })?;
        if let Some(warning) = stopped {
            fits.iter_mut().for_each(|f| f.certificate.status = Status::Stopped);
            fits[0].warnings.push(warning);
        }
        job.global_model(&fits)
    }
}

/// What folds are cut from.
enum Rows<'a> {
    /// The training table (standardised or not: folds standardise anew) and its kernels.
    Table(&'a data::Rows, &'a [KernelSpec]),
    /// Ready-made terms. Scaled or centred by all rows, they give a fold the same kernel as the raw ones once it has scaled or centred
    /// them by its own.
    Ready(&'a GramSet),
}

/// Kernels scored between two questions to the observer.
const AT_ONCE: usize = 16;

/// Weight 1 on the kernel that predicts best on rows it was not fitted to, one for all machines of the model. Where the observer ends the
/// search, the best by the folds that were done (in the first fold, of the kernels that were tried), and a word about it.
fn choose(
    rows: &Rows<'_>,
    samples: &Samples,
    spec: &TrainSpec,
    options: &BuildOptions,
    (folds, seed): (usize, u64),
    observer: &mut dyn Observer,
) -> Result<(Vec<f64>, Option<String>)> {
    if let Target::Classes { names, labels } = &samples.target
        && let Some(rare) = (0..names.len()).find(|c| labels.iter().filter(|l| *l == c).count() < 2)
    {
        let problem = format!("class `{}` has a single row, which cannot be both learned and tested", names[rare]);
        return Err(Error::data("target", problem, "cross-validation needs at least two rows of every class"));
    }
    let terms = match rows {
        Rows::Table(_, kernels) => kernels.len(),
        Rows::Ready(grams) => grams.n_terms(),
    };
    let mut totals = vec![0.0; terms];
    let mut stopped = None;
    'folds: for (k, (train, test)) in split::stratified_kfold(&samples.target, folds, seed)?.into_iter().enumerate() {
        let learned: Vec<usize> = train.iter().map(|&i| samples.kept[i]).collect();
        let fold = Fold::new(rows, samples, spec, options, train, test).map_err(|e| e.in_rows(&learned))?;
        let mut scores: Vec<f64> = Vec::with_capacity(terms);
        while scores.len() < terms {
            let next = scores.len()..terms.min(scores.len() + AT_ONCE);
            scores.extend(next.into_par_iter().map(|t| fold.score(t)).collect::<Result<Vec<_>>>()?);
            if scores.len() < terms && observer.on_pause().is_break() {
                if k == 0 {
                    totals = scores;
                }
                stopped = Some(format!("the search for the best kernel was stopped in fold {} of {folds}", k + 1));
                break 'folds;
            }
        }
        totals.iter_mut().zip(scores).for_each(|(sum, s)| *sum += s);
        if k + 1 < folds && observer.on_pause().is_break() {
            stopped = Some(format!("the search for the best kernel was stopped after fold {} of {folds}", k + 1));
            break;
        }
    }
    let best = (0..totals.len()).fold(0, |b, t| if totals[t] > totals[b] { t } else { b });
    Ok(((0..terms).map(|t| f64::from(t == best)).collect(), stopped))
}

struct Fold<'a> {
    spec: &'a TrainSpec,
    options: &'a BuildOptions,
    kernels: Kernels<'a>,
    fitting: Fitting,
    tasks: Vec<MachineTask>,
    /// What targets were divided by.
    unit: f64,
    test: Samples,
}

enum Kernels<'a> {
    /// Standardised rows and the terms that can be built on them: `place[t]` among `specs` and `grams`.
    Table {
        train: Box<data::Rows>,
        test: Box<data::Rows>,
        specs: Vec<KernelSpec>,
        place: Vec<Option<usize>>,
        grams: GramSet,
    },
    Ready {
        grams: &'a GramSet,
        train: Vec<usize>,
        test: Vec<usize>,
    },
}

impl<'a> Fold<'a> {
    fn new(
        rows: &Rows<'a>,
        samples: &Samples,
        spec: &'a TrainSpec,
        options: &'a BuildOptions,
        train: Vec<usize>,
        test: Vec<usize>,
    ) -> Result<Self> {
        let (own, test_samples) = (samples.select(&train), samples.select(&test));
        let kernels = match rows {
            Rows::Ready(grams) => Kernels::Ready { grams, train, test },
            Rows::Table(x, kernels) => {
                let kernels: Vec<KernelSpec> = kernels.iter().map(|k| k.of_rows(&train)).collect();
                let (mut train, mut test) = (x.select_rows(&train), x.select_rows(&test));
                if spec.standardize {
                    let standardizer = train.standardizer();
                    train = train.with_numbers(standardizer.apply(train.numbers())?);
                    test = test.with_numbers(standardizer.apply(test.numbers())?);
                }
                let (place, specs, grams) = build(&train, &kernels, options)?;
                Kernels::Table { train: Box::new(train), test: Box::new(test), specs, place, grams }
            }
        };
        let (fitting, tasks) = (own.fitting(spec)?, own.machines(spec)?);
        let unit = own.unit(spec);
        Ok(Self { spec, options, kernels, fitting, tasks, unit, test: test_samples })
    }

    /// How well kernel t alone predicts the test rows.
    fn score(&self, t: usize) -> Result<f64> {
        let decision = match &self.kernels {
            Kernels::Table { train, test, specs, place, grams } => match place[t] {
                None => self.constant(),
                Some(at) => {
                    let fit = self.fit(&Groups::subset(grams, &[at]), grams.n_terms(), at)?;
                    let (normalize, missing) = (self.spec.normalize, self.spec.missing);
                    let predictor = Predictor::imputing(&[fit], grams, Some((train, specs)), normalize, missing);
                    let ready_made = test.select_cols(predictor.gram_columns());
                    predictor.evaluate_with(specs, &test.select_cols(predictor.columns()), &ready_made)
                }
            },
            Kernels::Ready { grams, train, test } => {
                let block = |rows: &[usize]| -> Vec<f64> {
                    let mut all = vec![0.0; grams.n_samples()];
                    let mut out = Vec::with_capacity(rows.len() * train.len());
                    for &i in rows {
                        grams.row(t, i, &mut all);
                        out.extend(train.iter().map(|&j| all[j]));
                    }
                    out
                };
                let n = train.len();
                let (own, new) = (block(train), block(test));
                let name = [format!("kernel {}", t + 1)];
                match GramSet::from_stack(Stack { rows: n, cols: n, terms: 1, data: &own }, &name, self.options) {
                    Err(Error::Data { .. }) => self.constant(),
                    Err(e) => return Err(e),
                    Ok(grams) => {
                        let fit = self.fit(&grams, 1, 0)?;
                        let stack = Stack { rows: test.len(), cols: n, terms: 1, data: &new };
                        Predictor::new(&[fit], &grams, None, self.spec.normalize).evaluate_precomputed(stack)
                    }
                }
            }
        };
        let task = self.test.prediction(self.spec.multi_class);
        Ok(score(&self.test.target, &task.decide(&decision), &self.test.weights))
    }

    fn parts(&self) -> Vec<Part<'_>> {
        self.tasks.iter().map(|t| t.part(&self.fitting, self.spec)).collect()
    }

    /// All machines on the one term of `grams`; weights as a vector over `terms` with a 1 at `at`.
    fn fit(&self, grams: &dyn GramSource, terms: usize, at: usize) -> Result<Fit> {
        let problem = Problem {
            grams,
            parts: self.parts(),
            machine: &*self.fitting.machine(),
            budget: self.options.budget,
            tol: self.spec.tol,
            max_iter: 1,
            working_set: false,
            screening: false,
        };
        let mut fit = fixed(&problem, vec![1.0], &mut Memory::default(), &mut Silent)?;
        fit.weights = (0..terms).map(|t| f64::from(t == at)).collect();
        fit.parts.iter_mut().for_each(|p| p.rescale(self.unit));
        Ok(fit)
    }

    /// A kernel that is constant on the fold's training rows predicts what no kernel predicts.
    fn constant(&self) -> Matrix {
        let constant = |p: &Part<'_>| self.unit * p.task.best_bias(&vec![0.0; p.task.y.len()]);
        let biases = self.parts().iter().map(constant).collect::<Vec<_>>();
        let mut out = Matrix::zeros(self.test.kept.len(), biases.len());
        (0..out.rows()).for_each(|i| out.row_mut(i).copy_from_slice(&biases));
        out
    }
}

/// The terms of `kernels` on `x`, without those that cannot be built there because their columns are constant.
pub(super) fn build(
    x: &data::Rows,
    kernels: &[KernelSpec],
    options: &BuildOptions,
) -> Result<(Vec<Option<usize>>, Vec<KernelSpec>, GramSet)> {
    match GramSet::from_rows(x, kernels, options) {
        Ok(grams) => Ok(((0..kernels.len()).map(Some).collect(), kernels.to_vec(), grams)),
        Err(Error::Data { .. }) => {
            let alone = |k: &KernelSpec| GramSet::from_rows(x, std::slice::from_ref(k), options).is_ok();
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

/// Share of the weight that is predicted right, or −root mean squared error.
fn score(truth: &Target, predicted: &Target, weights: &[f64]) -> f64 {
    let mean = |value: &dyn Fn(usize) -> f64| {
        weights.iter().enumerate().map(|(i, w)| w * value(i)).sum::<f64>() / weights.iter().sum::<f64>()
    };
    match (truth, predicted) {
        (Target::Classes { labels: y, .. }, Target::Classes { labels: p, .. }) => mean(&|i| f64::from(y[i] == p[i])),
        (Target::Values(y), Target::Values(p)) => -mean(&|i| (y[i] - p[i]).powi(2)).sqrt(),
        _ => f64::NEG_INFINITY,
    }
}
