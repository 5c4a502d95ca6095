//! The predictive artefact: kernels, constants, weights, certificate. Knows no training.

mod evaluate;
mod file;
mod localized;
mod predictor;
mod rules;

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

pub use localized::{Localized, NewRows};
pub use predictor::{Expansion, Predictor};
pub use rules::{Rule, RuleSet, Rules, Share};

use crate::{
    Error, Result, Told,
    data::{Dataset, Standardizer, Target},
    gram::{ApproxError, Stack},
    kernels::{KernelSpec, language},
    linalg::Matrix,
    request::{LossName, Scheme, TrainSpec},
    trace::{IterRecord, Status, relative_gap},
};

/// How the warning begins that a fit predicts a constant for its training rows: one class, or
/// values that hardly vary.
pub const FLAT: &str = "a constant on the training rows: ";

/// What an outer method returns.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    /// θ; exact zeros are zeros.
    pub weights: Vec<f64>,
    /// The decision functions that share these weights.
    pub parts: Vec<FitPart>,
    /// Proof of quality, for all parts together.
    pub certificate: Certificate,
    /// One record per outer iteration.
    pub trace: Vec<IterRecord>,
    /// Things the user should know, in plain words.
    pub warnings: Vec<String>,
}

/// One decision function of a fit.
#[derive(Debug, Clone, PartialEq)]
pub struct FitPart {
    /// Signed multipliers a, one per training row.
    pub dual: Vec<f64>,
    /// The constant b of the decision function.
    pub bias: f64,
    /// f(x_i) + b, one value per row that the machine was fitted to.
    pub fitted: Vec<f64>,
    /// Its own objective at the weights found.
    pub primal: f64,
    /// The machine's lower bound for these weights.
    pub lower: f64,
}

impl FitPart {
    /// The decision function times `unit`: from the units a target was fitted in to its own.
    /// Objectives stay those of the problem solved.
    pub fn rescale(&mut self, unit: f64) {
        self.bias *= unit;
        self.dual.iter_mut().chain(&mut self.fitted).for_each(|v| *v *= unit);
    }
}

/// What the model predicts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Prediction {
    /// Classes, in the order of [`Target::Classes`]. Two classes: one machine, positive = the
    /// second class. More: see [`Scheme`].
    Classification {
        /// The names of the classes, in the order of their numbers.
        classes: Vec<String>,
        /// How machines share out the classes.
        scheme: Scheme,
    },
    /// It predicts a number.
    Regression,
}

impl Prediction {
    /// The class or the pair of classes that each machine is for; one unnamed machine for values.
    pub fn machine_names(&self) -> Vec<String> {
        match self {
            Self::Classification { classes, .. } if classes.len() == 2 => vec![classes[1].clone()],
            Self::Classification { classes, scheme: Scheme::OneVsRest } => classes.clone(),
            Self::Classification { classes, scheme: Scheme::OneVsOne } => {
                Scheme::pairs(classes.len())
                    .iter()
                    .map(|&(i, j)| format!("{} or {}", classes[i], classes[j]))
                    .collect()
            }
            Self::Regression => vec![String::new()],
        }
    }

    /// Predicted classes or values from decision values.
    pub fn decide(&self, decision: &Matrix) -> Target {
        match self {
            Self::Regression => Target::Values(decision.column(0)),
            Self::Classification { classes, .. } => {
                let scores = self.class_scores(decision);
                let pick = |row: &[f64]| match row {
                    [d] => usize::from(*d > 0.0),
                    _ => (0..row.len()).fold(0, |b, k| if row[k] > row[b] { k } else { b }),
                };
                let labels = (0..scores.rows()).map(|i| pick(scores.row(i))).collect();
                Target::Classes { names: classes.clone(), labels }
            }
        }
    }

    /// One score per class (one in all for two classes): decision values themselves, or for pairs
    /// the votes of each class with the sum of its confidences, squeezed into (−⅓, ⅓), to break
    /// ties.
    pub fn class_scores(&self, decision: &Matrix) -> Matrix {
        let Self::Classification { classes, scheme: Scheme::OneVsOne } = self else {
            return decision.clone();
        };
        if classes.len() <= 2 {
            return decision.clone();
        }
        let mut scores = Matrix::zeros(decision.rows(), classes.len());
        for i in 0..decision.rows() {
            let mut confidence = vec![0.0; classes.len()];
            for ((low, high), d) in Scheme::pairs(classes.len()).into_iter().zip(decision.row(i)) {
                scores[(i, if *d > 0.0 { high } else { low })] += 1.0;
                confidence[high] += d;
                confidence[low] -= d;
            }
            for (s, c) in scores.row_mut(i).iter_mut().zip(confidence) {
                *s += c / (3.0 * (c.abs() + 1.0));
            }
        }
        scores
    }
}

/// What the model was fitted on and expects at prediction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Input {
    /// A table of these columns.
    Table {
        /// Every feature column of the training data, in order: numbers, then text.
        columns: Vec<String>,
        /// How many of them, at the end, hold text.
        #[serde(default)]
        texts: usize,
        /// Applied before any kernel.
        standardizer: Option<Standardizer>,
        /// The base kernels, in the order of their weights.
        kernels: Vec<KernelSpec>,
    },
    /// Ready-made kernel values against `n_train` training samples.
    Precomputed {
        /// The number of training samples.
        n_train: usize,
        /// Names of the kernels.
        kernels: Vec<String>,
    },
}

impl Input {
    /// Names of all base kernels.
    pub fn kernel_names(&self) -> Vec<&str> {
        match self {
            Self::Table { kernels, .. } => kernels.iter().map(|k| k.name.as_str()).collect(),
            Self::Precomputed { kernels, .. } => kernels.iter().map(String::as_str).collect(),
        }
    }
}

/// The numbers that prove how good a fit is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Certificate {
    /// The objective at the returned weights, dual vector and bias: an upper bound on the optimum.
    pub primal: f64,
    /// A lower bound on the optimum; NaN for non-convex methods.
    #[serde(with = "crate::trace::nan_as_null")]
    pub dual: f64,
    /// (primal − dual) relative to their size; NaN for non-convex methods.
    #[serde(with = "crate::trace::nan_as_null")]
    pub gap: f64,
    /// How the fit ended.
    pub status: Status,
    /// How many outer iterations the fit took.
    pub iterations: usize,
}

/// One decision function: binary classification and regression have one, several classes one per
/// class.
#[derive(Debug, Clone, PartialEq)]
pub struct FittedMachine {
    /// Weight of every base kernel; exact zeros are zeros. Localized: region after region, or the
    /// mean over training rows where every kernel has a gate of its own.
    pub weights: Vec<f64>,
    /// Training rows with a non-zero multiplier.
    pub support: Vec<usize>,
    /// The signed multipliers of the support rows.
    pub dual_coef: Vec<f64>,
    /// The constant term of the decision function.
    pub intercept: f64,
    /// The bounds that prove how close the fit is to an optimum.
    pub certificate: Certificate,
    /// One record per outer iteration.
    pub trace: Vec<IterRecord>,
}

/// A fitted model: what predicts, what it was fitted with, and its certificates.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// What it predicts: classes or numbers.
    pub task: Prediction,
    /// The data it expects.
    pub input: Input,
    /// The request it answers, with every default filled in.
    pub request: TrainSpec,
    /// The fitted machines, one per decision function.
    pub machines: Vec<FittedMachine>,
    /// The joint certificate where machines share their weights; each machine's own then speaks of
    /// its part at these weights.
    pub shared: Option<Certificate>,
    /// How machines are rules of fewer decisions; `None` for all methods but veto–consensus, where
    /// `machines` lists the rules.
    pub rules: Option<Rules>,
    /// What is needed to evaluate them on new rows, and nothing else.
    pub predictor: Predictor,
    /// How weights depend on the row, where they do.
    pub localized: Option<Localized>,
    /// Things the user should know, in plain words.
    pub warnings: Vec<String>,
    /// The number of training samples.
    pub n_samples: usize,
    /// Wall seconds of the fit.
    pub seconds: f64,
    /// Version of mercer that made it.
    pub version: String,
    /// How the kernels were stored, in words, and the memory budget in bytes that decided it.
    pub storage: (String, u64),
    /// How far each kernel is from the one it stands in for; empty where none was to.
    pub approximation: Vec<ApproxError>,
}

impl Model {
    /// Names of all base kernels, selected or not.
    pub fn kernel_names(&self) -> Vec<&str> {
        self.input.kernel_names()
    }

    /// What each machine decides: the positive class, the pair of classes, or just its number in a
    /// regression.
    pub fn machine_names(&self) -> Vec<String> {
        if let Some(rules) = &self.rules {
            return rules.names();
        }
        match &self.task {
            Prediction::Regression => {
                (1..=self.machines.len()).map(|k| format!("machine {k}")).collect()
            }
            classes @ Prediction::Classification { .. } => classes.machine_names(),
        }
    }

    /// Machines with weights of their own, or the first one for all that share theirs.
    pub fn own_weights(&self) -> Vec<(String, &FittedMachine)> {
        if self.shared.is_some() {
            return self
                .machines
                .first()
                .map(|m| ("all machines".to_string(), m))
                .into_iter()
                .collect();
        }
        self.machine_names().into_iter().zip(&self.machines).collect()
    }

    /// Every weight vector, one entry per kernel, with the machine, the region or both that it
    /// belongs to.
    pub fn weight_rows(&self) -> Vec<(String, Vec<f64>)> {
        let vectors = self.own_weights();
        let several = vectors.len() > 1;
        let kernels = self.kernel_names().len().max(1);
        let rows = |(name, machine): &(String, &FittedMachine)| {
            let rows: Vec<Vec<f64>> =
                machine.weights.chunks(kernels).map(<[f64]>::to_vec).collect();
            let count = rows.len();
            let told = |(j, row): (usize, Vec<f64>)| match (several, count) {
                (_, 1) => (name.clone(), row),
                (false, _) => (format!("region {}", j + 1), row),
                _ => (format!("{name}, region {}", j + 1), row),
            };
            rows.into_iter().enumerate().map(told).collect::<Vec<_>>()
        };
        vectors.iter().flat_map(rows).collect()
    }

    /// Does it predict a constant for its training rows, by its own warnings?
    pub fn is_flat(&self) -> bool {
        self.warnings.iter().any(|w| w.starts_with(FLAT))
    }

    /// The worst machine's status.
    pub fn status(&self) -> Status {
        self.certificate().status
    }

    /// One certificate for the whole model: the joint one, or sums over machines with the worst
    /// status.
    pub fn certificate(&self) -> Certificate {
        if let Some(joint) = self.shared {
            return joint;
        }
        if let Some(rules) = &self.rules {
            return rules.certificate();
        }
        let all = || self.machines.iter().map(|m| &m.certificate);
        let (primal, dual) =
            (all().map(|c| c.primal).sum::<f64>(), all().map(|c| c.dual).sum::<f64>());
        let gap = match self.machines.as_slice() {
            [one] => one.certificate.gap,
            _ if dual.is_nan() => f64::NAN,
            _ => relative_gap(primal, dual),
        };
        let status = all().map(|c| c.status).max().unwrap_or(Status::Stopped);
        Certificate { primal, dual, gap, status, iterations: all().map(|c| c.iterations).sum() }
    }

    /// The model is what could be had when a search before it was ended; `what` names the search.
    pub(crate) fn note_stopped(&mut self, what: &str) {
        self.warnings.push(format!(
            "{what} was stopped before its end: the best of what it had tried was used"
        ));
        let certificates = self.machines.iter_mut().map(|m| &mut m.certificate);
        let rules =
            self.rules.iter_mut().flat_map(|r| r.machines.iter_mut().map(|m| &mut m.certificate));
        certificates.chain(&mut self.shared).chain(rules).for_each(|c| c.status = Status::Stopped);
    }

    /// Decision values, `rows × machines`. Columns are matched by name where the data set has the
    /// names the model needs (extra columns are ignored), by position where the data have generated
    /// names and the training count.
    pub fn decision(&self, data: &Dataset) -> Result<Matrix> {
        self.decision_at(NewRows::Table(data), None)
    }

    /// Decision values from ready-made kernel values: `block` is (rows, n_train, kernels), kernel
    /// axis last.
    pub fn decision_precomputed(&self, block: Stack<'_>) -> Result<Matrix> {
        self.decision_at(NewRows::Kernels(block), None)
    }

    /// Decision values of machines as they are, or of rules combined.
    fn combined(&self, values: Matrix) -> Matrix {
        match &self.rules {
            Some(rules) => rules.combine(&values),
            None => values,
        }
    }

    /// Values of the predictor's functions.
    fn values(&self, rows: NewRows<'_>) -> Result<Matrix> {
        match rows {
            NewRows::Table(data) => self.values_of_table(data).map_err(|e| data.located(e)),
            NewRows::Kernels(block) => self.values_of_kernels(block),
        }
    }

    fn values_of_table(&self, data: &Dataset) -> Result<Matrix> {
        let Input::Table { columns, texts, standardizer, kernels } = &self.input else {
            return Err(Error::data(
                "model",
                "it was fitted on ready-made kernels",
                "give kernel values of the new rows against the training rows, shape (rows, n_train, kernels)",
            ));
        };
        data.check_missing(self.request.missing)?;
        let derived;
        let (data, columns) = if self.predictor.plan.is_empty() {
            (data, columns.as_slice())
        } else {
            // Steps look at whole runs of columns: all of the training columns, in their order.
            let all: Vec<usize> = (0..columns.len()).collect();
            let rows = data.rows().gather(&columns_of(data, columns, &all)?, &[]);
            derived = Dataset::from_rows(rows, columns.clone())?.after(&self.predictor.plan)?;
            (&derived, derived.columns())
        };
        let used = self.predictor.columns();
        let position = columns_of(data, columns, used)?;
        let ready_made =
            data.rows().gather(&columns_of(data, columns, self.predictor.gram_columns())?, &[]);
        let first_text = columns.len() - texts;
        let is_text = |j: usize| j >= first_text;
        for (&j, &at) in used.iter().zip(&position) {
            let (need, have) = (is_text(j), data.rows().sequence(at).is_some());
            if need != have {
                let kind = |text: bool| if text { "text" } else { "numbers" };
                return Err(Error::data(
                    format!("column `{}`", columns[j]),
                    format!("holds {} where the model needs {}", kind(have), kind(need)),
                    "give the columns the model was fitted on",
                ));
            }
        }
        let is_sparse = |j: &usize| (self.predictor.sparse_start()..first_text).contains(j);
        let places = |sparse: bool| -> Vec<usize> {
            used.iter()
                .zip(&position)
                .filter(|(j, _)| is_sparse(j) == sparse)
                .map(|(_, at)| *at)
                .collect()
        };
        let mut x = data.rows().gather(&places(false), &places(true));
        if let Some(s) = standardizer {
            let dense = used.iter().filter(|j| !is_text(**j) && !is_sparse(j));
            let pick = |v: &[f64]| dense.clone().map(|&j| v[j]).collect();
            let numbers =
                Standardizer { mean: pick(&s.mean), scale: pick(&s.scale) }.apply(x.numbers())?;
            x = x.with_numbers(numbers);
        }
        let all;
        let kernels = match &self.localized {
            Some(l) if !l.kernels.is_empty() => {
                all = [kernels.as_slice(), &l.kernels].concat();
                &all
            }
            _ => kernels,
        };
        let names: Vec<String> = used.iter().map(|&j| columns[j].clone()).collect();
        for spec in self.predictor.kernels().into_iter().map(|k| &kernels[k]) {
            if spec.function.needs_non_negative() || spec.reads_text() {
                let places: Vec<usize> =
                    spec.columns.iter().map(|c| used.partition_point(|u| u < c)).collect();
                language::not_negative(spec.function, &x, &places, &names)?;
                language::readable(spec.function, &x, &places, &names)?;
            }
        }
        Ok(self.predictor.evaluate_with(kernels, &x, &ready_made))
    }

    fn values_of_kernels(&self, block: Stack<'_>) -> Result<Matrix> {
        let Input::Precomputed { n_train, kernels } = &self.input else {
            return Err(Error::data(
                "model",
                "it was fitted on a table",
                "give the table's columns, not kernel values",
            ));
        };
        if block.cols != *n_train
            || block.terms != kernels.len()
            || block.data.len() != block.rows * block.cols * block.terms
        {
            return Err(Error::shape(
                "kernel values",
                format!("(rows, {n_train}, {})", kernels.len()),
                format!("({}, {}, {})", block.rows, block.cols, block.terms),
            ));
        }
        if let Some(at) = block.data.iter().position(|v| !v.is_finite()) {
            let row = at / (block.cols * block.terms);
            return Err(Error::data(
                "kernel values",
                Told::row(row, format!("has {}", block.data[at])),
                "they must be finite",
            ));
        }
        Ok(self.predictor.evaluate_precomputed(block))
    }

    /// Predicted classes or values from decision values.
    pub fn decide(&self, decision: &Matrix) -> Target {
        self.task.decide(decision)
    }

    /// Scores per class from decision values, as [`Prediction::class_scores`] says.
    pub fn class_scores(&self, decision: &Matrix) -> Matrix {
        self.task.class_scores(decision)
    }

    /// Probabilities of the classes, `rows × classes`, from decision values: for classifiers with
    /// the logistic loss, whose decision values are log odds.
    ///
    /// Two classes: the sigmoid. A machine per class: the sigmoids, brought to sum 1. Pairs, with
    /// log odds m_ij of class i against j: p_i ∝ 1 / (1 + Σ_j exp(−m_ij)), which is exact where the
    /// pairs agree with each other; the likeliest class can then differ from the one with most
    /// votes.
    pub fn probabilities(&self, decision: &Matrix) -> Option<Matrix> {
        let Prediction::Classification { classes, scheme } = &self.task else { return None };
        if self.request.loss != Some(LossName::Logistic) {
            return None;
        }
        let k = classes.len();
        let mut out = Matrix::zeros(decision.rows(), k);
        for i in 0..decision.rows() {
            let row = decision.row(i);
            // Log odds of each class against those it meets.
            let mut odds = vec![Vec::new(); k];
            if k > 2 && *scheme == Scheme::OneVsRest {
                odds.iter_mut().zip(row).for_each(|(o, d)| o.push(*d));
            } else {
                for ((low, high), d) in Scheme::pairs(k).into_iter().zip(row) {
                    odds[low].push(-d);
                    odds[high].push(*d);
                }
            }
            let shares: Vec<f64> =
                odds.iter().map(|m| -log_sum_exp(m.iter().map(|m| -m).chain([0.0]))).collect();
            let total = log_sum_exp(shares.iter().copied());
            out.row_mut(i).iter_mut().zip(shares).for_each(|(p, s)| *p = (s - total).exp());
        }
        Some(out)
    }

    /// The predicted classes or numbers of these rows: `decide(decision(data))`.
    pub fn predict(&self, data: &Dataset) -> Result<Target> {
        Ok(self.decide(&self.decision(data)?))
    }
}

/// log Σ exp(v), without overflow.
fn log_sum_exp(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let largest = values.clone().fold(f64::NEG_INFINITY, f64::max);
    largest + values.map(|v| (v - largest).exp()).sum::<f64>().ln()
}

/// Where in `data` the training columns `used` stand.
fn columns_of(data: &Dataset, training: &[String], used: &[usize]) -> Result<Vec<usize>> {
    let names = data.columns();
    let places: HashMap<&String, usize> =
        names.iter().enumerate().map(|(j, name)| (name, j)).collect();
    let by_name: Vec<Option<usize>> =
        used.iter().map(|&j| places.get(&training[j]).copied()).collect();
    if let Some(found) = by_name.iter().copied().collect::<Option<Vec<usize>>>() {
        return Ok(found);
    }
    let generated = names.iter().enumerate().all(|(j, n)| *n == format!("x{}", j + 1));
    if generated && names.len() == training.len() {
        return Ok(used.to_vec());
    }
    let missing =
        used.iter().zip(&by_name).find(|(_, at)| at.is_none()).map_or("", |(&j, _)| &training[j]);
    Err(Error::data(
        format!("column `{missing}`"),
        format!("the model needs it and the data have {} columns without it", names.len()),
        format!("give the columns the model was fitted on ({} in all)", training.len()),
    ))
}
