//! From data to model: check, standardise, build the kernel terms, fit every machine, keep what prediction needs.

use std::time::Instant;

use super::{ClassWeight, LossName, Problem, TrainSpec};
use crate::{
    Error, Model, Result,
    data::{Dataset, Standardizer, Target},
    gram::{Budget, BuildOptions, GramSet, Stack},
    kernels::{KernelSpec, Normalize, language},
    linalg::Matrix,
    loss::{EpsilonInsensitive, Hinge, Squared},
    machine::{Fitting, Task},
    model::{Fit, Input, Machine, Predictor, Task as Prediction},
    trace::Observer,
};

/// Fits a table.
pub fn train(
    data: &Dataset,
    target: &Target,
    sample_weight: Option<&[f64]>,
    spec: &TrainSpec,
    observer: &mut dyn Observer,
) -> Result<Model> {
    Prepared::from_table(data, target, sample_weight, spec)?.fit(spec, observer)
}

/// Fits ready-made Gram matrices, `stack` of shape (n, n, M).
pub fn train_precomputed(
    stack: Stack<'_>,
    target: &Target,
    sample_weight: Option<&[f64]>,
    spec: &TrainSpec,
    observer: &mut dyn Observer,
) -> Result<Model> {
    Prepared::from_stack(stack, target, sample_weight, spec)?.fit(spec, observer)
}

/// Kernel terms and targets, ready for any number of fits that differ only in method, C, loss or tolerance.
pub struct Prepared {
    samples: Samples,
    grams: GramSet,
    input: Input,
    /// The standardised table, for tables.
    table: Option<Matrix>,
    budget: Budget,
    terms_of: TrainSpec,
    warnings: Vec<String>,
    began: Instant,
}

impl Prepared {
    /// Standardises, resolves the bank and builds its terms.
    pub fn from_table(
        data: &Dataset,
        target: &Target,
        sample_weight: Option<&[f64]>,
        spec: &TrainSpec,
    ) -> Result<Self> {
        let began = Instant::now();
        spec.check()?;
        let bank = language::parse(&spec.kernels)?;
        let samples = Samples::new(data.len(), target, sample_weight)?;
        let data = if samples.kept.len() == data.len() { data.clone() } else { data.select(&samples.kept) };
        let standardizer = spec.standardize.then(|| Standardizer::fit(data.features()));
        let x = match &standardizer {
            Some(s) => s.apply(data.features())?,
            None => data.features().clone(),
        };
        let scaled = Dataset::new(x, data.columns().to_vec())?.with_views(data.views().to_vec())?;
        let (kernels, warnings) = without_constant_kernels(bank.resolve(&scaled)?, &scaled)?;
        let (options, budget) = options(spec);
        let grams = GramSet::from_table(scaled.features(), &kernels, &options)?;
        let input = Input::Table { columns: data.columns().to_vec(), standardizer, kernels };
        let table = Some(scaled.features().clone());
        Ok(Self { samples, grams, input, table, budget, terms_of: spec.clone(), warnings, began })
    }

    /// Checks and stores ready-made matrices.
    pub fn from_stack(
        stack: Stack<'_>,
        target: &Target,
        sample_weight: Option<&[f64]>,
        spec: &TrainSpec,
    ) -> Result<Self> {
        let began = Instant::now();
        spec.check()?;
        let (n, m) = (stack.rows, stack.terms);
        if stack.cols != n || n == 0 || m == 0 || stack.data.len() != n * n * m {
            let got = format!("({}, {}, {})", stack.rows, stack.cols, stack.terms);
            return Err(Error::shape("ready-made kernels", "(n, n, kernels), kernel axis last, none of them 0", got));
        }
        if spec.normalize == Normalize::Spherical {
            return Err(Error::param(
                "normalize",
                "one of trace, multiplicative, center, none for ready-made kernels",
                "spherical, which needs k(x, x) of new rows",
            ));
        }
        let samples = Samples::new(n, target, sample_weight)?;
        let names: Vec<String> = (1..=m).map(|t| format!("kernel {t}")).collect();
        let (options, budget) = options(spec);
        let grams = if samples.kept.len() == n {
            GramSet::from_stack(stack, &names, &options)?
        } else {
            let data = select_stack(stack, &samples.kept);
            let kept = samples.kept.len();
            GramSet::from_stack(Stack { rows: kept, cols: kept, terms: m, data: &data }, &names, &options)?
        };
        let input = Input::Precomputed { n_train: n, kernels: names };
        Ok(Self { samples, grams, input, table: None, budget, terms_of: spec.clone(), warnings: Vec::new(), began })
    }

    /// The kernel terms.
    pub fn grams(&self) -> &GramSet {
        &self.grams
    }

    /// Fits every machine. `spec` must ask for the same kernel terms as the one given at preparation.
    pub fn fit(&self, spec: &TrainSpec, observer: &mut dyn Observer) -> Result<Model> {
        spec.check()?;
        if !spec.same_terms(&self.terms_of) {
            return Err(Error::param(
                "spec",
                "the kernels, scaling, storage and tolerance class prepared for",
                "others",
            ));
        }
        let fitting = self.samples.fitting(spec)?;
        let machine = fitting.machine();
        let room = Budget { bytes: self.budget.bytes.saturating_sub(self.grams.bytes()) };
        let class_factors = self.samples.class_factors(&spec.class_weight)?;
        let cost: Vec<f64> = self.samples.weights.iter().zip(&class_factors).map(|(w, c)| spec.c * w * c).collect();
        let mut fits = Vec::new();
        for y in self.samples.machine_targets() {
            let problem = Problem {
                grams: &self.grams,
                task: Task { y: &y, cost: &cost, loss: fitting.loss() },
                machine: &*machine,
                room,
                tol: spec.tol,
                max_iter: spec.max_iter,
            };
            fits.push(spec.method.fit(&problem, observer)?);
        }
        self.assemble(fits, spec, &fitting)
    }

    fn assemble(&self, fits: Vec<Fit>, spec: &TrainSpec, fitting: &Fitting) -> Result<Model> {
        let table = match (&self.table, &self.input) {
            (Some(x), Input::Table { kernels, .. }) => Some((x, kernels.as_slice())),
            _ => None,
        };
        let mut predictor = Predictor::new(&fits, &self.grams, table, spec.normalize);
        predictor.rename_rows(&self.samples.kept);
        let machines = fits
            .into_iter()
            .map(|fit| {
                let support: Vec<usize> = (0..fit.dual.len()).filter(|&i| fit.dual[i] != 0.0).collect();
                Machine {
                    weights: fit.weights,
                    dual_coef: support.iter().map(|&i| fit.dual[i]).collect(),
                    support: support.iter().map(|&i| self.samples.kept[i]).collect(),
                    intercept: fit.bias,
                    certificate: fit.certificate,
                    trace: fit.trace,
                }
            })
            .collect();
        let mut filled = spec.clone();
        filled.memory = Some(self.budget.bytes);
        filled.loss = Some(match fitting {
            Fitting::Hinge(_) => LossName::Hinge,
            Fitting::EpsilonInsensitive(_) => LossName::EpsilonInsensitive,
            Fitting::Squared(_) => LossName::Squared,
        });
        if let Fitting::EpsilonInsensitive(l) = fitting {
            filled.epsilon = Some(l.epsilon());
        }
        Ok(Model {
            task: self.samples.prediction(),
            input: self.input.clone(),
            spec: serde_json::to_value(&filled)
                .map_err(|e| Error::numerical("recording the request", e.to_string()))?,
            machines,
            predictor,
            warnings: self.warnings.clone(),
            n_samples: self.samples.kept.len(),
            seconds: self.began.elapsed().as_secs_f64(),
            version: env!("CARGO_PKG_VERSION").into(),
            storage: (self.grams.describe(), self.budget.bytes),
        })
    }
}

fn options(spec: &TrainSpec) -> (BuildOptions, Budget) {
    let budget = Budget::new(spec.memory);
    let options = BuildOptions {
        normalize: spec.normalize,
        storage: spec.storage,
        rank_tolerance: spec.rank_tolerance(),
        budget,
    };
    (options, budget)
}

fn select_stack(stack: Stack<'_>, kept: &[usize]) -> Vec<f64> {
    let cell = |i: usize, j: usize| &stack.data[(i * stack.cols + j) * stack.terms..][..stack.terms];
    kept.iter().flat_map(|&i| kept.iter().flat_map(move |&j| cell(i, j).iter().copied())).collect()
}

/// Kernels whose columns are all constant on the training rows say nothing: they are left out and named. None left is an error.
fn without_constant_kernels(kernels: Vec<KernelSpec>, data: &Dataset) -> Result<(Vec<KernelSpec>, Vec<String>)> {
    let x = data.features();
    let constant: Vec<bool> = (0..x.cols()).map(|j| (1..x.rows()).all(|i| x[(i, j)] == x[(0, j)])).collect();
    if !constant.contains(&true) {
        return Ok((kernels, Vec::new()));
    }
    let (dropped, kept): (Vec<_>, Vec<_>) = kernels.into_iter().partition(|k| k.columns.iter().all(|&c| constant[c]));
    let names = |all: &[bool]| {
        let named: Vec<&str> = all.iter().zip(data.columns()).filter(|(c, _)| **c).map(|(_, n)| n.as_str()).collect();
        let shown = named.iter().take(5).map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ");
        if named.len() > 5 { format!("{shown} and {} more", named.len() - 5) } else { shown }
    };
    if kept.is_empty() {
        return Err(Error::data(
            format!("column {}", names(&constant)),
            format!("constant on all {} training rows, and no kernel uses any other column", x.rows()),
            "give at least one column that varies",
        ));
    }
    let warnings = if dropped.is_empty() {
        Vec::new()
    } else {
        vec![format!(
            "constant on the training rows: {}; {} kernels on them were left out",
            names(&constant),
            dropped.len()
        )]
    };
    Ok((kept, warnings))
}

/// The training samples as machines see them: rows with weight 0 are gone.
struct Samples {
    /// Their positions in what the user gave.
    kept: Vec<usize>,
    target: Target,
    weights: Vec<f64>,
}

impl Samples {
    fn new(n: usize, target: &Target, sample_weight: Option<&[f64]>) -> Result<Self> {
        if target.len() != n {
            return Err(Error::shape("target", format!("{n} values, one per row"), target.len()));
        }
        let weights = match sample_weight {
            None => vec![1.0; n],
            Some(w) if w.len() != n => {
                return Err(Error::shape("sample weights", format!("{n} values, one per row"), w.len()));
            }
            Some(w) => w.to_vec(),
        };
        if let Some(i) = weights.iter().position(|w| !w.is_finite() || *w < 0.0) {
            let got = format!("{} for row {}", weights[i], i + 1);
            return Err(Error::param("sample_weight", "finite numbers ≥ 0", got));
        }
        let kept: Vec<usize> = (0..n).filter(|&i| weights[i] > 0.0).collect();
        if kept.is_empty() {
            return Err(Error::param("sample_weight", "positive for at least one row", "zero for all"));
        }
        let target = target.select(&kept);
        match &target {
            Target::Values(values) => {
                if let Some(i) = values.iter().position(|v| !v.is_finite()) {
                    return Err(Error::data(
                        "target",
                        format!("row {} is {}", kept[i] + 1, values[i]),
                        "NaN and infinity are not accepted: drop the row",
                    ));
                }
            }
            Target::Classes { names, labels } => {
                if let Some(i) = labels.iter().position(|&l| l >= names.len()) {
                    return Err(Error::shape("class labels", format!("indices below {}", names.len()), labels[i]));
                }
                let present = (0..names.len()).filter(|c| labels.contains(c)).count();
                if present < 2 || present < names.len() {
                    let missing = (0..names.len()).find(|c| !labels.contains(c)).map_or("", |c| names[c].as_str());
                    let problem = if present < 2 {
                        format!("only one class, `{}`, occurs", labels.first().map_or("", |&l| names[l].as_str()))
                    } else {
                        format!("class `{missing}` has no row with a positive weight")
                    };
                    return Err(Error::data(
                        "target",
                        problem,
                        "a classifier needs rows of at least two classes, and of every class named",
                    ));
                }
            }
        }
        Ok(Self { weights: kept.iter().map(|&i| weights[i]).collect(), kept, target })
    }

    fn fitting(&self, spec: &TrainSpec) -> Result<Fitting> {
        match (&self.target, spec.loss) {
            (Target::Classes { .. }, None | Some(LossName::Hinge)) => Ok(Fitting::Hinge(Hinge)),
            (_, Some(LossName::Squared)) => Ok(Fitting::Squared(Squared)),
            (Target::Values(y), None | Some(LossName::EpsilonInsensitive)) => {
                let epsilon = spec.epsilon.unwrap_or_else(|| 0.1 * deviation(y));
                Ok(Fitting::EpsilonInsensitive(EpsilonInsensitive::new(epsilon)?))
            }
            (Target::Classes { .. }, Some(_)) => {
                Err(Error::param("loss", "hinge or squared for classes", "epsilon_insensitive"))
            }
            (Target::Values(_), Some(_)) => {
                Err(Error::param("loss", "epsilon_insensitive or squared for values", "hinge"))
            }
        }
    }

    fn class_factors(&self, class_weight: &ClassWeight) -> Result<Vec<f64>> {
        let Target::Classes { names, labels } = &self.target else {
            return match class_weight {
                ClassWeight::None => Ok(vec![1.0; self.weights.len()]),
                _ => Err(Error::param("class_weight", "left out for regression", "a weighting of classes")),
            };
        };
        let factors: Vec<f64> = match class_weight {
            ClassWeight::None => vec![1.0; names.len()],
            ClassWeight::Balanced => {
                let count = |c: usize| labels.iter().filter(|&&l| l == c).count();
                (0..names.len()).map(|c| labels.len() as f64 / (names.len() * count(c)) as f64).collect()
            }
            ClassWeight::Given(pairs) => {
                if let Some((unknown, _)) = pairs.iter().find(|(class, _)| !names.contains(class)) {
                    return Err(Error::param(
                        "class_weight",
                        format!("keyed by the classes {}", names.join(", ")),
                        unknown,
                    ));
                }
                let factor = |name: &String| pairs.iter().find(|(class, _)| class == name).map_or(1.0, |(_, w)| *w);
                names.iter().map(factor).collect()
            }
        };
        Ok(labels.iter().map(|&l| factors[l]).collect())
    }

    /// ±1 per machine, or the values: one machine for two classes (positive = the second), one per class beyond.
    fn machine_targets(&self) -> Vec<Vec<f64>> {
        match &self.target {
            Target::Values(values) => vec![values.clone()],
            Target::Classes { names, labels } => {
                let against_rest = |c: usize| labels.iter().map(|&l| if l == c { 1.0 } else { -1.0 }).collect();
                if names.len() == 2 { vec![against_rest(1)] } else { (0..names.len()).map(against_rest).collect() }
            }
        }
    }

    fn prediction(&self) -> Prediction {
        match &self.target {
            Target::Values(_) => Prediction::Regression,
            Target::Classes { names, .. } => Prediction::Classification { classes: names.clone() },
        }
    }
}

/// Population standard deviation.
fn deviation(y: &[f64]) -> f64 {
    let mean = y.iter().sum::<f64>() / y.len() as f64;
    (y.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / y.len() as f64).sqrt()
}
