//! From data to model: check, standardise, build the kernel terms, fit every machine, keep what prediction needs.

mod estimates;

use std::time::Instant;

use super::{
    GroupBy, LossName, Memory, MethodSpec, Part, Penalty, Problem, TrainSpec,
    flat::is_constant,
    localized::{RegionColumn, Regions},
    samples::{MachineTask, Samples, tube},
    search::{self, Source},
    single,
    smkl::collapse_warning,
};
use crate::{
    Error, Model, Result,
    data::{
        Dataset, Missing, Rows, Target,
        steps::{Plan, Steps},
    },
    gram::{Budget, BuildOptions, GramSet, GramSource, Groups, Stack},
    kernels::{Function, KernelSpec, Normalize, language},
    machine::{Fitting, Task},
    model::{Certificate, Fit, FitPart, Input, Localized, Machine, Predictor},
    trace::{Observer, Status, relative_gap},
};

/// Fits a table.
pub fn train(
    data: &Dataset,
    target: &Target,
    sample_weight: Option<&[f64]>,
    spec: &TrainSpec,
    observer: &mut dyn Observer,
) -> Result<Model> {
    let (chosen, told) = search::choose_telling(Source::Table(data), target, sample_weight, spec, observer)?;
    fit_chosen(&Prepared::from_table(data, target, sample_weight, &chosen)?, (&chosen, told), spec, observer)
}

/// Fits with the values that a search found and adds what there is to tell of them. Where the observer ended the search, the model says so.
fn fit_chosen(
    prepared: &Prepared,
    (chosen, told): (&TrainSpec, Vec<String>),
    asked: &TrainSpec,
    observer: &mut dyn Observer,
) -> Result<Model> {
    let cut = (asked.choose.c || asked.choose.v) && observer.on_pause().is_break();
    let mut model = prepared.fit(chosen, observer)?;
    model.warnings.extend(told);
    if cut {
        model.note_stopped("the search for settings");
    }
    Ok(model)
}

/// Fits ready-made Gram matrices, `stack` of shape (n, n, M).
pub fn train_precomputed(
    stack: Stack<'_>,
    target: &Target,
    sample_weight: Option<&[f64]>,
    spec: &TrainSpec,
    observer: &mut dyn Observer,
) -> Result<Model> {
    let (chosen, told) = search::choose_telling(Source::Ready(stack), target, sample_weight, spec, observer)?;
    let prepared = Prepared::from_stack(stack, target, sample_weight, &chosen)?;
    let model = fit_chosen(&prepared, (&chosen, told), spec, observer)?;
    prepared.held_to_predictions(model, stack, &chosen)
}

/// Kernel terms and targets, ready for any number of fits that differ only in method, C, loss or tolerance.
pub struct Prepared {
    pub(super) samples: Samples,
    pub(super) grams: GramSet,
    pub(super) input: Input,
    /// The standardised table, for tables.
    pub(super) table: Option<Rows>,
    /// How the table was made from the columns that the user gave.
    pub(super) plan: Plan,
    pub(super) budget: Budget,
    pub(super) terms_of: TrainSpec,
    /// Regions that the user gave, or the values of the column that says them.
    pub(super) regions: Option<Regions>,
    pub(super) region_column: Option<RegionColumn>,
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
        let samples = Samples::new(data.len(), target, sample_weight).map_err(|e| data.located(e))?;
        let fewer = (samples.kept.len() < data.len()).then(|| data.select(&samples.kept));
        let kept = fewer.as_ref().unwrap_or(data);
        Self::from_kept(kept, samples, bank, spec, began).map_err(|e| kept.located(e))
    }

    /// The same from the rows that have a weight.
    fn from_kept(
        data: &Dataset,
        samples: Samples,
        bank: language::Bank,
        spec: &TrainSpec,
        began: Instant,
    ) -> Result<Self> {
        let raw = data.clone().with_missing(spec.missing)?;
        let plan = Steps::parse(&spec.preprocess)?.plan(&raw)?;
        let data = raw.after(&plan)?;
        let standardizer = spec.standardize.then(|| data.rows().standardizer());
        let scaled = match &standardizer {
            Some(s) => data.with_numbers(s.apply(data.features())?)?,
            None => data,
        };
        let mut kernels = bank.resolve(&scaled)?;
        for function in kernels.iter_mut().map(|k| &mut k.function) {
            if let Function::Precomputed { indefinite } = function {
                *indefinite = spec.indefinite;
            }
        }
        if spec.normalize == Normalize::Spherical && kernels.iter().any(KernelSpec::is_precomputed) {
            return Err(spherical_ready_made());
        }
        let (kernels, mut warnings) = without_constant_kernels(kernels, &scaled)?;
        warnings.extend(imputed_views(&scaled, spec.missing));
        let (options, budget) = options(spec);
        let grams = GramSet::from_rows(scaled.rows(), &kernels, &options)?;
        let budget = budget.less(scaled.rows().bytes());
        warnings.extend_from_slice(grams.notes());
        let texts = raw.rows().sequences().len();
        let input = Input::Table { columns: raw.columns().to_vec(), texts, standardizer, kernels };
        let table = Some(scaled.rows().clone());
        let region_column = spec.method.region_column().map(|name| RegionColumn::of(&raw, name)).transpose()?;
        let (terms_of, regions) = (spec.clone(), None);
        Ok(Self { samples, grams, input, table, plan, budget, terms_of, regions, region_column, warnings, began })
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
        stack.check_square()?;
        let (n, m) = (stack.rows, stack.terms);
        if spec.normalize == Normalize::Spherical {
            return Err(spherical_ready_made());
        }
        let samples = Samples::new(n, target, sample_weight)?;
        let names: Vec<String> = (1..=m).map(|t| format!("kernel {t}")).collect();
        let (options, budget) = options(spec);
        let grams = if samples.kept.len() == n {
            GramSet::from_stack_repaired(stack, &names, &options, spec.indefinite)?
        } else {
            let data = stack.block(&samples.kept, &samples.kept);
            let kept = samples.kept.len();
            let part = Stack { rows: kept, cols: kept, terms: m, data: &data };
            GramSet::from_stack_repaired(part, &names, &options, spec.indefinite)
                .map_err(|e| e.in_rows(&samples.kept))?
        };
        let grams = grams.with_missing(spec.missing);
        let input = Input::Precomputed { n_train: n, kernels: names };
        let warnings = grams.notes().to_vec();
        let (table, plan, terms_of, regions, region_column) = (None, Plan::default(), spec.clone(), None, None);
        Ok(Self { samples, grams, input, table, plan, budget, terms_of, regions, region_column, warnings, began })
    }

    /// Things the user should know about them.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Names of the kernels.
    pub fn kernel_names(&self) -> Vec<String> {
        self.input.kernel_names().into_iter().map(String::from).collect()
    }

    /// The kernel terms.
    pub fn grams(&self) -> &GramSet {
        &self.grams
    }

    /// Some of the rows, with kernel terms of their own: for cross-validation.
    pub(super) fn part(&self, samples: Samples, grams: GramSet, input: Input, table: Option<Rows>) -> Self {
        let terms_of = self.terms_of.clone();
        Self {
            samples,
            grams,
            input,
            table,
            plan: self.plan.clone(),
            budget: self.budget,
            terms_of,
            regions: None,
            region_column: None,
            warnings: Vec::new(),
            began: Instant::now(),
        }
    }

    /// Bytes left for combined kernels.
    pub(super) fn room(&self) -> Budget {
        Budget { bytes: self.budget.bytes.saturating_sub(self.grams.bytes()) }
    }

    /// How kernel terms are built, with the memory that is left.
    pub(super) fn options_left(&self, spec: &TrainSpec) -> BuildOptions {
        let (mut options, _) = options(spec);
        options.budget.bytes = options.budget.bytes.saturating_sub(self.grams.bytes());
        options
    }

    /// Fits every machine. `spec` must ask for the same kernel terms as the one given at preparation.
    pub fn fit(&self, spec: &TrainSpec, observer: &mut dyn Observer) -> Result<Model> {
        self.fit_from(spec, &mut Vec::new(), observer)
    }

    /// Fits requests in turn, each starting from the multipliers, weights and lower bounds of the one before: for sweeps over C, v or p.
    /// Everything else must stay the same.
    pub fn path(&self, specs: &[TrainSpec], observer: &mut dyn Observer) -> Result<Vec<Model>> {
        let mut memories: Vec<Memory> = Vec::new();
        let mut models = Vec::new();
        let specs: Vec<TrainSpec> = specs.iter().map(|s| s.priced(self.samples.kept.len())).collect();
        for (k, spec) in specs.iter().enumerate() {
            if let Some(last) = k.checked_sub(1).map(|k| &specs[k]) {
                if !spec.differs_only_in_price_and_method(last) {
                    let got = format!("request {} differs in more", k + 1);
                    return Err(Error::param(
                        "path",
                        "requests that differ in C and the method's parameters only",
                        got,
                    ));
                }
                memories.iter_mut().for_each(|m| m.rescale(spec.c / last.c));
            }
            models.push(self.fit_from(spec, &mut memories, observer)?);
        }
        Ok(models)
    }

    pub(super) fn fit_from(
        &self,
        spec: &TrainSpec,
        memories: &mut Vec<Memory>,
        observer: &mut dyn Observer,
    ) -> Result<Model> {
        spec.check()?;
        let spec = &spec.priced(self.samples.kept.len());
        if !spec.same_terms(&self.terms_of) {
            return Err(Error::param(
                "spec",
                "the kernels, scaling, storage and tolerance class prepared for",
                "others",
            ));
        }
        let fitting = self.samples.fitting(spec)?;
        if let MethodSpec::Vcmkl(own) = &spec.method {
            return self.fit_rules(spec, own, &fitting, observer);
        }
        let machine = fitting.machine();
        let tasks = self.samples.machines(spec)?;
        let parts = parts(&tasks, &fitting, spec);
        if spec.method.is_localized() {
            return self.fit_localized(spec, parts, &fitting, memories, observer);
        }
        let grouped = self.groups(spec)?;
        let grams: &dyn GramSource = grouped.as_ref().map_or(&self.grams, |g| g);
        // One machine of several that always says no is nothing odd.
        let alone = (tasks.len() == 1).then(|| self.samples.prediction(spec.multi_class));
        let problem = |parts: Vec<Part<'_>>, memory: &mut Memory, observer: &mut dyn Observer| {
            let problem = Problem {
                grams,
                parts,
                machine: &*machine,
                room: Budget { bytes: self.budget.bytes.saturating_sub(self.grams.bytes()) },
                tol: spec.tol,
                max_iter: spec.max_iter,
                working_set: spec.working_set,
                screening: spec.screening,
            };
            let mut fit = spec.method.fit(&problem, memory, observer)?;
            if let MethodSpec::Smkl { penalty, eps } = &spec.method
                && (fit.weights.iter().all(|w| *w == 0.0) || is_constant(&fit, &problem.parts, alone.as_ref()))
            {
                fit.warnings.push(collapse_warning(&problem, &Penalty::parse(penalty, *eps)?, spec.c));
            }
            Ok(fit)
        };
        let groups = if spec.shared_weights { vec![parts] } else { parts.into_iter().map(|p| vec![p]).collect() };
        memories.resize(groups.len(), Memory::default());
        let mut stopped = None;
        if let MethodSpec::Single { folds, seed } = spec.method {
            let theta;
            (theta, stopped) = self.best_single(spec, folds, seed, observer)?;
            memories.iter_mut().for_each(|m| m.theta = Some(theta.clone()));
        }
        let mut fits: Vec<Fit> = groups
            .into_iter()
            .zip(memories)
            .enumerate()
            .map(|(k, (parts, memory))| {
                self.samples.announce(k, spec, observer);
                problem(parts, memory, observer)
            })
            .collect::<Result<_>>()?;
        if let Some(grouped) = &grouped {
            fits.iter_mut().for_each(|f| f.weights = grouped.expand(&f.weights));
        }
        fits.iter_mut().for_each(|f| self.to_target_units(f, spec));
        if let Some(warning) = stopped {
            fits.iter_mut().for_each(|f| f.certificate.status = Status::Stopped);
            fits[0].warnings.push(warning);
        }
        self.assemble_fits(&fits, spec, &fitting)
    }

    /// Decision functions of a fit in the target's own units.
    pub(super) fn to_target_units(&self, fit: &mut Fit, spec: &TrainSpec) {
        let unit = self.samples.unit(spec);
        fit.parts.iter_mut().for_each(|p| p.rescale(unit));
    }

    /// A model whose weights are the same for all rows.
    pub(super) fn assemble_fits(&self, fits: &[Fit], spec: &TrainSpec, fitting: &Fitting) -> Result<Model> {
        let table = self.table_and_kernels();
        let mut predictor = Predictor::new(fits, &self.grams, table, spec.normalize);
        self.finish_predictor(&mut predictor);
        self.assemble(fits, spec, fitting, predictor, None)
    }

    /// Rows by their numbers in the data, columns by the steps that make them.
    pub(super) fn finish_predictor(&self, predictor: &mut Predictor) {
        predictor.rename_rows(&self.samples.kept);
        predictor.prepare_with(&self.plan);
    }

    /// The standardised table with its kernels; `None` for ready-made ones.
    pub(super) fn table_and_kernels(&self) -> Option<(&Rows, &[KernelSpec])> {
        match (&self.table, &self.input) {
            (Some(x), Input::Table { kernels, .. }) => Some((x, kernels.as_slice())),
            _ => None,
        }
    }

    /// Kernels rescaled by their penalties and summed in groups; `None` where nothing of the kind was asked for.
    pub(super) fn groups(&self, spec: &TrainSpec) -> Result<Option<Groups<'_>>> {
        let terms = self.grams.n_terms();
        if spec.group_by == GroupBy::None && spec.penalties.is_none() {
            return Ok(None);
        }
        let penalties = spec.penalties.clone().unwrap_or_else(|| vec![1.0; terms]);
        if penalties.len() != terms {
            return Err(Error::shape("penalties", format!("{terms} numbers, one per kernel"), penalties.len()));
        }
        // K_θ = Σ (η θ) (K/η): constraining η θ is constraining the weights of K/η.
        let member = |t: usize| (t, 1.0 / penalties[t]);
        let members = match (&self.input, spec.group_by) {
            (_, GroupBy::None) => (0..terms).map(|t| vec![member(t)]).collect(),
            (Input::Precomputed { .. }, GroupBy::Scope) => {
                return Err(Error::param(
                    "group_by",
                    "left out for ready-made kernels, which have no columns",
                    "scope",
                ));
            }
            (Input::Table { kernels, .. }, GroupBy::Scope) => {
                let mut groups: Vec<Vec<(usize, f64)>> = Vec::new();
                for (t, kernel) in kernels.iter().enumerate() {
                    match groups.iter_mut().find(|g| kernels[g[0].0].columns == kernel.columns) {
                        Some(members) => members.push(member(t)),
                        None => groups.push(vec![member(t)]),
                    }
                }
                groups
            }
        };
        Ok(Some(Groups::new(&self.grams, members)))
    }

    /// θ of the best single kernel by cross-validation.
    fn best_single(
        &self,
        spec: &TrainSpec,
        folds: usize,
        seed: u64,
        observer: &mut dyn Observer,
    ) -> Result<(Vec<f64>, Option<String>)> {
        let rows = match (&self.table, &self.input) {
            (Some(x), Input::Table { kernels, .. }) => single::Rows::Table(x, kernels),
            _ => single::Rows::Ready(&self.grams),
        };
        single::choose(&rows, &self.samples, spec, &self.options_left(spec), (folds, seed), observer)
    }

    pub(super) fn assemble(
        &self,
        fits: &[Fit],
        spec: &TrainSpec,
        fitting: &Fitting,
        predictor: Predictor,
        localized: Option<Localized>,
    ) -> Result<Model> {
        if let Some(kernel) = predictor.overflow() {
            let names = self.input.kernel_names();
            let what = kernel.and_then(|k| names.get(k)).map_or("the constant".into(), |k| format!("kernel `{k}`"));
            let problem = "what the fit found for it is not finite: values of the kernel are too large or too small";
            return Err(Error::data(what, problem, "bring kernels to one scale near 1, or lower C"));
        }
        let shared = fits.iter().find(|f| f.parts.len() > 1).map(|f| f.certificate);
        let machines = fits.iter().flat_map(|f| f.parts.iter().map(move |p| self.machine(f, p))).collect();
        let mut filled = spec.clone();
        filled.memory = Some(self.budget.bytes);
        filled.loss = Some(match fitting {
            Fitting::Hinge(_) => LossName::Hinge,
            Fitting::SquaredHinge(_) => LossName::SquaredHinge,
            Fitting::Logistic(_) => LossName::Logistic,
            Fitting::EpsilonInsensitive(_) => LossName::EpsilonInsensitive,
            Fitting::Squared(_) => LossName::Squared,
        });
        if let (Fitting::EpsilonInsensitive(_), Target::Values(y)) = (fitting, &self.samples.target) {
            filled.epsilon = Some(tube(spec, y));
        }
        let mut model = Model {
            task: self.samples.prediction(spec.multi_class),
            input: self.input.clone(),
            spec: serde_json::to_value(&filled)
                .map_err(|e| Error::numerical("recording the request", e.to_string()))?,
            machines,
            shared,
            rules: None,
            predictor,
            localized,
            warnings: self.warnings.clone(),
            n_samples: self.samples.kept.len(),
            seconds: self.began.elapsed().as_secs_f64(),
            version: env!("CARGO_PKG_VERSION").into(),
            storage: (self.grams.describe(), self.budget.bytes),
            approximation: self.grams.approximation().to_vec(),
        };
        for (name, fit) in model.machine_names().iter().zip(fits) {
            let told = |w: &String| if fits.len() > 1 { format!("{name}: {w}") } else { w.clone() };
            model.warnings.extend(fit.warnings.iter().map(told));
        }
        if !matches!(spec.method, MethodSpec::Vcmkl(_)) {
            let values: Vec<Vec<f64>> = fits.iter().flat_map(|f| f.parts.iter().map(|p| p.fitted.clone())).collect();
            self.tell_if_flat(&mut model, &values);
        }
        Ok(model)
    }

    /// One decision function; where weights are shared its certificate is the machine's own for these weights.
    fn machine(&self, fit: &Fit, part: &FitPart) -> Machine {
        let support: Vec<usize> = (0..part.dual.len()).filter(|&i| part.dual[i] != 0.0).collect();
        let certificate = if fit.parts.len() == 1 {
            fit.certificate
        } else {
            let (primal, dual) = (part.primal, part.lower);
            Certificate { primal, dual, gap: relative_gap(primal, dual), ..fit.certificate }
        };
        Machine {
            weights: fit.weights.clone(),
            dual_coef: support.iter().map(|&i| part.dual[i]).collect(),
            support: support.iter().map(|&i| self.samples.kept[i]).collect(),
            intercept: part.bias,
            certificate,
            trace: fit.trace.clone(),
        }
    }
}

fn parts<'a>(tasks: &'a [MachineTask], fitting: &'a Fitting, spec: &TrainSpec) -> Vec<Part<'a>> {
    let part = |t: &'a MachineTask| Part {
        task: Task { y: &t.y, cost: &t.cost, loss: fitting.loss(), intercept: spec.fit_intercept },
        rows: t.rows.as_deref(),
    };
    tasks.iter().map(part).collect()
}

pub(super) fn options(spec: &TrainSpec) -> (BuildOptions, Budget) {
    let budget = Budget::new(spec.memory);
    let options = BuildOptions {
        normalize: spec.normalize,
        storage: spec.storage,
        rank_tolerance: spec.rank_tolerance(),
        budget,
        approx: spec.approx,
        seed: spec.approx_seed,
    };
    (options, budget)
}

fn spherical_ready_made() -> Error {
    Error::param(
        "normalize",
        "one of trace, multiplicative, center, none for ready-made kernels",
        "spherical, which needs k(x, x) of new rows",
    )
}

/// What was put in the place of views that rows lack.
fn imputed_views(data: &Dataset, missing: Missing) -> Vec<String> {
    let value = if missing == Missing::Mean { "the mean of the rows that have it" } else { "zero" };
    let told = |name: &str, columns: Vec<usize>| {
        let count = data.rows().absent(&columns)?.iter().filter(|a| **a).count();
        let rows = data.len();
        Some(format!(
            "view `{name}` is missing in {count} of {rows} rows: kernel values were imputed, in feature space, as {value}"
        ))
    };
    data.views().iter().filter_map(|v| told(&v.name, v.columns.clone().collect())).collect()
}

/// Kernels whose columns are all constant on the training rows say nothing: they are left out and named. None left is an error.
fn without_constant_kernels(kernels: Vec<KernelSpec>, data: &Dataset) -> Result<(Vec<KernelSpec>, Vec<String>)> {
    let x = data.rows();
    let constant: Vec<bool> = (0..x.cols()).map(|j| x.is_constant(j)).collect();
    if !constant.contains(&true) {
        return Ok((kernels, Vec::new()));
    }
    let (dropped, kept): (Vec<_>, Vec<_>) =
        kernels.into_iter().partition(|k| !k.is_precomputed() && k.columns.iter().all(|&c| constant[c]));
    let names = |all: &[bool]| {
        let named: Vec<&str> = all.iter().zip(data.columns()).filter(|(c, _)| **c).map(|(_, n)| n.as_str()).collect();
        let shown = named.iter().take(5).map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ");
        if named.len() > 5 { format!("{shown} and {} more", named.len() - 5) } else { shown }
    };
    if kept.is_empty() {
        return Err(Error::data(
            format!("column {}", names(&constant)),
            format!("constant on all {} training rows, and no kernel uses any other column", x.len()),
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
