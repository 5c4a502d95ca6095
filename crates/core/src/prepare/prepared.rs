//! Kernel terms and targets, made ready for any number of fits: check, standardise, resolve the
//! bank, build the terms.

use std::time::Instant;

use super::{
    Samples,
    regions::{RegionColumn, Regions},
};
use crate::{
    Error, Result,
    data::{
        Dataset, Missing, Rows, Target,
        steps::{Plan, Steps},
    },
    gram::{Budget, BuildOptions, GramSet, GramSource, Groups, Scratch, Stack},
    kernels::{Function, KernelSpec, Normalize, language},
    model::Input,
    request::{GroupBy, TrainSpec},
};

/// Kernel terms and targets, ready for any number of fits that differ only in method, C, loss or
/// tolerance.
pub struct Prepared {
    pub(crate) samples: Samples,
    pub(crate) grams: GramSet,
    pub(crate) input: Input,
    /// The standardised table; `None` for ready-made kernels.
    pub(crate) table: Option<Rows>,
    /// How the table was made from the columns that the user gave.
    pub(super) plan: Plan,
    pub(crate) budget: Budget,
    /// Memory that the combined kernels of one fit leave to those of the next.
    pub(crate) scratch: Scratch,
    pub(crate) terms_of: TrainSpec,
    /// Regions that the user gave, or the values of the column that says them.
    pub(crate) regions: Option<Regions>,
    pub(super) region_column: Option<RegionColumn>,
    pub(super) warnings: Vec<String>,
    pub(super) began: Instant,
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
        let samples =
            Samples::new(data.len(), target, sample_weight).map_err(|e| data.located(e))?;
        let fewer = (samples.kept.len() < data.len()).then(|| data.select(&samples.kept));
        let kept = fewer.as_ref().unwrap_or(data);
        Self::from_kept(kept, samples, bank, spec, began).map_err(|e| kept.located(e))
    }

    /// Prepares the rows whose weight is not zero.
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
        if spec.normalize == Normalize::Spherical && kernels.iter().any(KernelSpec::is_precomputed)
        {
            return Err(spherical_ready_made());
        }
        let (kernels, mut warnings) = without_constant_kernels(kernels, &scaled)?;
        warnings.extend(imputed_views(&scaled, spec.missing));
        let (options, budget) = options(spec);
        let grams = GramSet::from_rows(scaled.rows(), &kernels, &options)?;
        warnings.extend_from_slice(grams.notes());
        let texts = raw.rows().sequences().len();
        let input = Input::Table { columns: raw.columns().to_vec(), texts, standardizer, kernels };
        let table = Some(scaled.rows().clone());
        let region_column =
            spec.method.region_column().map(|name| RegionColumn::of(&raw, name)).transpose()?;
        let prepared = Self::new(samples, grams, input, budget, spec.clone(), began);
        Ok(Self { table, plan, region_column, warnings, ..prepared })
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
        let prepared = Self::new(samples, grams, input, budget, spec.clone(), began);
        Ok(Self { warnings, ..prepared })
    }

    /// Puts together what rows and ready-made matrices have in common: no table, no regions.
    fn new(
        samples: Samples,
        grams: GramSet,
        input: Input,
        budget: Budget,
        terms_of: TrainSpec,
        began: Instant,
    ) -> Self {
        Self {
            samples,
            grams,
            input,
            table: None,
            plan: Plan::default(),
            budget,
            scratch: Scratch::default(),
            terms_of,
            regions: None,
            region_column: None,
            warnings: Vec::new(),
            began,
        }
    }

    /// Sentences that the user should read about the data and the kernels.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The names of the kernels, in the order of their weights.
    pub fn kernel_names(&self) -> Vec<String> {
        self.input.kernel_names().into_iter().map(String::from).collect()
    }

    /// The kernel terms that fits combine.
    pub fn grams(&self) -> &GramSet {
        &self.grams
    }

    /// Makes a part for cross-validation: some of the rows, with kernel terms of their own.
    pub(crate) fn part(
        &self,
        samples: Samples,
        grams: GramSet,
        input: Input,
        table: Option<Rows>,
    ) -> Self {
        let (terms_of, began) = (self.terms_of.clone(), Instant::now());
        let part = Self::new(samples, grams, input, self.budget, terms_of, began);
        Self { table, plan: self.plan.clone(), ..part }
    }

    /// The memory left for combined kernels, in bytes.
    pub(crate) fn budget_left(&self) -> Budget {
        let table = self.table.as_ref().map_or(0, Rows::bytes);
        self.budget.less(table).less(self.grams.bytes())
    }

    /// Says how kernel terms are built, within the memory that is left.
    pub(crate) fn options_left(&self, spec: &TrainSpec) -> BuildOptions {
        let (mut options, _) = options(spec);
        options.budget = self.budget_left();
        options
    }

    /// The standardised table with its kernels; `None` for ready-made ones.
    pub(crate) fn table_and_kernels(&self) -> Option<(&Rows, &[KernelSpec])> {
        match (&self.table, &self.input) {
            (Some(x), Input::Table { kernels, .. }) => Some((x, kernels.as_slice())),
            _ => None,
        }
    }

    /// Kernels rescaled by their penalties and summed in groups; `None` where nothing of the kind
    /// was asked for.
    pub(crate) fn groups(&self, spec: &TrainSpec) -> Result<Option<Groups<'_>>> {
        let terms = self.grams.n_terms();
        if spec.group_by == GroupBy::None && spec.penalties.is_none() {
            return Ok(None);
        }
        let penalties = spec.penalties.clone().unwrap_or_else(|| vec![1.0; terms]);
        if penalties.len() != terms {
            return Err(Error::shape(
                "penalties",
                format!("{terms} numbers, one per kernel"),
                penalties.len(),
            ));
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
}

pub(crate) fn options(spec: &TrainSpec) -> (BuildOptions, Budget) {
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

/// Tells for each view that rows lack what was put in its place.
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

/// Kernels whose columns are all constant on the training rows say nothing: they are left out and
/// named. None left is an error.
fn without_constant_kernels(
    kernels: Vec<KernelSpec>,
    data: &Dataset,
) -> Result<(Vec<KernelSpec>, Vec<String>)> {
    let x = data.rows();
    let constant: Vec<bool> = (0..x.cols()).map(|j| x.is_constant(j)).collect();
    if !constant.contains(&true) {
        return Ok((kernels, Vec::new()));
    }
    let (dropped, kept): (Vec<_>, Vec<_>) = kernels
        .into_iter()
        .partition(|k| !k.is_precomputed() && k.columns.iter().all(|&c| constant[c]));
    let names = |all: &[bool]| {
        let named: Vec<&str> =
            all.iter().zip(data.columns()).filter(|(c, _)| **c).map(|(_, n)| n.as_str()).collect();
        let shown = named.iter().take(5).map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ");
        if named.len() > 5 { format!("{shown} and {} more", named.len() - 5) } else { shown }
    };
    if kept.is_empty() {
        return Err(Error::data(
            format!("column {}", names(&constant)),
            format!(
                "constant on all {} training rows, and no kernel uses any other column",
                x.len()
            ),
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
