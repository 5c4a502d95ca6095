//! Methods whose weights depend on where a row lies: regions, the fit, and what prediction needs.

use super::{
    Evenness, GateName, GroupGate, KernelGate, Memory, MethodSpec, Part, Prepared, Problem, TrainSpec, clmkl, fit_gate,
    gated::Gated, train::options,
};
use crate::{
    Error, Model, Result, Told,
    data::{Dataset, Rows},
    gram::{Combination, Gram, GramSet, GramSource},
    kernels::{KernelSpec, language},
    linalg::Matrix,
    localize::{
        Clusters, Gating, LocalizedGramSet, Placement, block_alignment, centred_alignments, kernel_kmeans, memberships,
        sharpness,
    },
    machine::{Fitting, Machine},
    model::{Expansion, Fit, Input, Localized, Predictor},
    trace::Observer,
};

/// Starts of the clustering that finds groups.
const GROUP_STARTS: usize = 10;
/// Rows of memberships add up to 1 within this.
const SUM: f64 = 1e-6;

/// Regions that the user gives instead of clustering.
#[derive(Debug, Clone, PartialEq)]
pub enum Regions {
    /// The region of every training row, counted from 0; a new row belongs to the region whose centre is nearest in feature space.
    Labels(Vec<usize>),
    /// Memberships of every training row, rows × regions, which add up to 1; those of new rows must be given as well.
    Memberships(Matrix),
}

impl Prepared {
    /// The same data with regions (or groups) given, one entry per row that the data had.
    pub fn with_regions(mut self, regions: Regions) -> Result<Self> {
        let kept = &self.samples.kept;
        let n = match &self.input {
            Input::Precomputed { n_train, .. } => *n_train,
            Input::Table { .. } => kept.last().map_or(0, |l| l + 1),
        };
        let entries = match &regions {
            Regions::Labels(labels) => labels.len(),
            Regions::Memberships(m) => m.rows(),
        };
        if entries < n || (kept.len() == n && entries != n) {
            return Err(Error::shape("regions", format!("{n} entries, one per training row"), entries));
        }
        self.regions = Some(match regions {
            Regions::Labels(labels) => Regions::Labels(kept.iter().map(|&i| labels[i]).collect()),
            Regions::Memberships(m) => {
                let m = m.select_rows(kept);
                check_memberships(&m)?;
                Regions::Memberships(m)
            }
        });
        Ok(self)
    }

    pub(super) fn fit_localized(
        &self,
        spec: &TrainSpec,
        parts: Vec<Part<'_>>,
        fitting: &Fitting,
        memories: &mut Vec<Memory>,
        observer: &mut dyn Observer,
    ) -> Result<Model> {
        let groups: Vec<Vec<Part<'_>>> =
            if spec.shared_weights { vec![parts] } else { parts.into_iter().map(|p| vec![p]).collect() };
        memories.resize(groups.len(), Memory::default());
        let machine = fitting.machine();
        let mut built = Built::default();
        if let MethodSpec::Clmkl { p, v, .. } = &spec.method {
            let grouped = self.groups(spec)?;
            let base: &dyn GramSource = grouped.as_ref().map_or(&self.grams, |g| g);
            let placed = self.regions_of(spec)?;
            let local = LocalizedGramSet::cross(base, &placed.memberships, self.room());
            let regions = placed.memberships.cols();
            for (k, (parts, memory)) in groups.into_iter().zip(memories).enumerate() {
                self.samples.announce(k, spec, observer);
                // Multipliers of another fit are feasible here; its weights and cuts belong to other terms.
                let mut own = Memory { duals: memory.duals.take(), ..Memory::default() };
                let mut fit =
                    clmkl::fit(&self.problem(spec, parts, &*machine, &local), regions, (*p, *v), &mut own, observer)?;
                *memory = Memory { duals: own.duals, ..Memory::default() };
                if let Some(groups) = &grouped {
                    let kernels = base.n_terms();
                    fit.weights = fit.weights.chunks(kernels).flat_map(|w| groups.expand(w)).collect();
                }
                self.to_target_units(&mut fit, spec);
                built.fits.push(fit);
            }
            built.add_gating(placed.gating(None));
            for fit in &built.fits {
                let weights: Vec<&[f64]> = fit.weights.chunks(self.grams.n_terms()).collect();
                let expand = |j: usize, dual: &[f64]| {
                    let scaled: Vec<f64> =
                        dual.iter().enumerate().map(|(i, a)| a * placed.memberships[(i, j)]).collect();
                    self.expand(weights[j], &scaled)
                };
                built.parts.extend(fit.parts.iter().flat_map(|p| (0..regions).map(move |j| expand(j, &p.dual))));
            }
        } else {
            let starts = match spec.method {
                MethodSpec::Lmkl { n_init, seed, .. }
                | MethodSpec::Glmkl { n_init, seed, .. }
                | MethodSpec::Gsmkl { n_init, seed, .. } => (n_init, seed),
                _ => (1, 0),
            };
            for (k, (parts, memory)) in groups.into_iter().zip(memories).enumerate() {
                self.samples.announce(k, spec, observer);
                let problem = self.problem(spec, parts, &*machine, &self.grams);
                let duals = memory.duals.take();
                let (mut fit, gated) = self.fit_gated(spec, &problem, starts, duals, &mut built, observer)?;
                self.to_target_units(&mut fit, spec);
                for part in &fit.parts {
                    for m in 0..self.grams.n_terms() {
                        let scaled: Vec<f64> =
                            part.dual.iter().zip(gated.gates.column(m)).map(|(a, g)| a * g).collect();
                        let mut own = Expansion::default();
                        own.add(m, 1.0, (&self.grams, m), &scaled);
                        built.parts.push(own);
                    }
                }
                built.fits.push(fit);
            }
        }
        let Built { fits, gatings, functions, parts, kernels } = built;
        let mut functions: Vec<Expansion> = functions.into_iter().chain(parts).collect();
        share_rows(&mut functions);
        let all: Option<(&Rows, Vec<KernelSpec>)> =
            self.table_and_kernels().map(|(x, base)| (x, [base, &kernels].concat()));
        let table = all.as_ref().map(|(x, kernels)| (*x, kernels.as_slice()));
        let mut predictor = Predictor::of(functions, table, spec.normalize);
        self.finish_predictor(&mut predictor);
        self.assemble(&fits, spec, fitting, predictor, Some(Localized { gatings, kernels }))
    }

    fn problem<'a>(
        &self,
        spec: &TrainSpec,
        parts: Vec<Part<'a>>,
        machine: &'a dyn Machine,
        grams: &'a dyn GramSource,
    ) -> Problem<'a> {
        let TrainSpec { tol, max_iter, working_set, screening, .. } = *spec;
        Problem { grams, parts, machine, room: self.room(), tol, max_iter, working_set, screening }
    }

    /// Σ_m weight_m Σ_i a_i k_m(x_i, ·).
    fn expand(&self, weights: &[f64], a: &[f64]) -> Expansion {
        let mut out = Expansion::default();
        for (m, &w) in weights.iter().enumerate().filter(|(_, w)| **w != 0.0) {
            out.add(m, w, (&self.grams, m), a);
        }
        out
    }

    /// The gate of one machine, or of several that share it, with the functions that new rows need.
    fn fit_gated(
        &self,
        spec: &TrainSpec,
        problem: &Problem<'_>,
        starts: (usize, u64),
        duals: Option<Vec<Vec<f64>>>,
        built: &mut Built,
        observer: &mut dyn Observer,
    ) -> Result<(Fit, Gated)> {
        if let MethodSpec::Lmkl { gate, gate_kernel, .. } = &spec.method {
            let source = self.placing_kernel(spec, "gate_kernel", gate_kernel.as_deref())?;
            let (kernel, kernels) = (source.gram(&self.grams), self.grams.n_terms());
            let form = KernelGate { kernel: &kernel, kernels, form: *gate };
            let (fit, gated) = fit_gate(problem, &form, starts, duals, observer)?;
            let n = kernel.n();
            let functions = (0..kernels).map(|m| {
                let coef: Vec<f64> = (0..n).map(|i| gated.parameters[i * kernels + m]).collect();
                source.expand(self, gated.parameters[n * kernels + m], &coef)
            });
            let placement = match gate {
                GateName::Softmax => Placement::Softmax,
                GateName::Sigmoid => Placement::Sigmoid,
            };
            let gating = Gating { placement, regions: kernels, weights: None };
            built.add_gating((gating, functions.collect(), source.kernels()));
            return Ok((fit, gated));
        }
        let targets = joint_target(problem);
        let (placed, p, aligned) = match &spec.method {
            // [Fu2016] (25): kernels enter the clustering with their centred alignments.
            MethodSpec::Glmkl { n_groups, p, seed, .. } => {
                let weights = centred_alignments(&self.grams, &targets);
                (self.groups_of(spec, weights, *n_groups, *seed)?, *p, true)
            }
            MethodSpec::Gsmkl { n_groups, seed, .. } => {
                let terms = self.grams.n_terms();
                (self.groups_of(spec, vec![1.0 / terms as f64; terms], *n_groups, *seed)?, 1.0, false)
            }
            other => return Err(Error::param("method", "a gated one", other.name())),
        };
        let labels = placed.labels()?;
        let groups = placed.memberships.cols();
        let mut alignments = Matrix::zeros(groups, self.grams.n_terms());
        if aligned {
            for g in 0..groups {
                let rows: Vec<usize> = (0..labels.len()).filter(|&i| labels[i] == g).collect();
                for m in 0..self.grams.n_terms() {
                    alignments[(g, m)] = block_alignment(&self.grams, m, &rows, &targets);
                }
            }
        }
        let gate = GroupGate { labels: &labels, p, alignments: &alignments };
        let (fit, gated) = fit_gate(problem, &gate, starts, duals, observer)?;
        let betas = gate.betas(&gated.parameters);
        built.add_gating(placed.gating(Some((0..groups).map(|g| betas.row(g).to_vec()).collect())));
        Ok((fit, gated))
    }

    /// Regions for [`MethodSpec::Clmkl`].
    fn regions_of(&self, spec: &TrainSpec) -> Result<Placed> {
        let MethodSpec::Clmkl { n_clusters, evenness, cluster_kernel, n_init, seed, .. } = &spec.method else {
            return Err(Error::param("method", "clmkl or hlmkl", spec.method.name()));
        };
        if let Some(placed) = self.regions_without_kernel(spec)? {
            return Ok(placed);
        }
        let source = self.placing_kernel(spec, "cluster_kernel", cluster_kernel.as_deref())?;
        let k = source.gram(&self.grams);
        let given = match &self.regions {
            Some(Regions::Labels(labels)) => Some(labels),
            _ => None,
        };
        let clusters = match given {
            Some(labels) => Clusters::new(&k, labels.clone())?,
            None => kernel_kmeans(&k, *n_clusters, *n_init, *seed)?,
        };
        let distances = clusters.distances(&k);
        let tau = match (evenness, given) {
            (Some(Evenness::Word(_)), _) | (None, Some(_)) => None,
            (Some(Evenness::Average(target)), _) => Some(sharpness(&distances, Some(*target))?),
            (None, None) => Some(sharpness(&distances, None)?),
        };
        // Regions that were given hold as they are; memberships in regions that were found follow the rule that places new rows.
        let c = match (tau, given) {
            (None, Some(labels)) => one_hot(labels, clusters.len()),
            _ => memberships(&distances, tau),
        };
        Ok(Placed::by_centres(self, c, tau, &clusters, source))
    }

    /// Hard groups in the feature space of Σ weight_m k_m.
    fn groups_of(&self, spec: &TrainSpec, weights: Vec<f64>, n_groups: usize, seed: u64) -> Result<Placed> {
        if let Some(placed) = self.regions_without_kernel(spec)? {
            return Ok(placed);
        }
        let source = PlacingKernel::Base(weights);
        let k = source.gram(&self.grams);
        let clusters = match &self.regions {
            Some(Regions::Labels(labels)) => Clusters::new(&k, labels.clone())?,
            _ => kernel_kmeans(&k, n_groups, GROUP_STARTS, seed)?,
        };
        Ok(Placed::by_centres(self, one_hot(&clusters.labels, clusters.len()), None, &clusters, source))
    }

    /// Regions that a column says or that were given as memberships: no kernel is needed to place rows.
    fn regions_without_kernel(&self, spec: &TrainSpec) -> Result<Option<Placed>> {
        let without = |memberships, placement| Placed { memberships, placement, functions: vec![], kernels: vec![] };
        if let Some(column) = spec.method.region_column() {
            let Some(RegionColumn { name, values: raw, .. }) =
                self.region_column.as_ref().filter(|c| c.asked == column)
            else {
                let expected = format!("the column that the data were prepared for, not `{column}`");
                return Err(Error::param("regions", expected, "another"));
            };
            let mut values = raw.clone();
            values.sort_by(f64::total_cmp);
            values.dedup();
            let label = |v: &f64| values.iter().position(|w| w == v).unwrap_or(0);
            let labels: Vec<usize> = raw.iter().map(label).collect();
            let c = one_hot(&labels, values.len());
            return Ok(Some(without(c, Placement::Column { column: name.clone(), values })));
        }
        match &self.regions {
            Some(Regions::Memberships(c)) => Ok(Some(without(c.clone(), Placement::Given))),
            _ => Ok(None),
        }
    }

    /// K₀ of a gate.
    pub(super) fn gate_gram(&self, spec: &TrainSpec, text: Option<&str>) -> Result<Gram> {
        Ok(self.placing_kernel(spec, "gate_kernel", text)?.gram(&self.grams))
    }

    /// The kernel in whose feature space rows are placed.
    fn placing_kernel(&self, spec: &TrainSpec, name: &str, text: Option<&str>) -> Result<PlacingKernel> {
        let terms = self.grams.n_terms();
        let Some(text) = text else { return Ok(PlacingKernel::Base(vec![1.0 / terms as f64; terms])) };
        if let Ok(number) = text.trim().parse::<usize>() {
            if number == 0 || number > terms {
                return Err(Error::param(name, format!("the number of a kernel, 1 to {terms}"), number));
            }
            return Ok(PlacingKernel::Base((1..=terms).map(|t| f64::from(t == number)).collect()));
        }
        let (Some(x), Input::Table { columns, .. }) = (&self.table, &self.input) else {
            return Err(Error::param(name, format!("the number of a ready-made kernel, 1 to {terms}"), text));
        };
        let data = Dataset::from_rows(x.clone(), self.plan.columns(columns)?)?;
        let kernels = language::parse(text)?.resolve(&data)?;
        let (mut build, _) = options(spec);
        build.budget = self.room();
        let grams = GramSet::from_rows(x, &kernels, &build)?;
        Ok(PlacingKernel::Own { grams, kernels, after: terms })
    }
}

/// Σ_m w_m k_m over base kernels, or the average of kernels of its own.
enum PlacingKernel {
    Base(Vec<f64>),
    Own { grams: GramSet, kernels: Vec<KernelSpec>, after: usize },
}

impl PlacingKernel {
    fn gram(&self, base: &GramSet) -> Gram {
        match self {
            Self::Base(weights) => base.combine(weights),
            Self::Own { grams, .. } => grams.combine(&vec![1.0 / grams.n_terms() as f64; grams.n_terms()]),
        }
    }

    /// constant + Σ_i coef_i k(x_i, ·).
    fn expand(&self, at: &Prepared, constant: f64, coef: &[f64]) -> Expansion {
        let base = &at.grams;
        let mut out = Expansion { constant, terms: Vec::new() };
        match self {
            Self::Base(weights) => {
                for (m, &w) in weights.iter().enumerate().filter(|(_, w)| **w != 0.0) {
                    out.add(m, w, (base, m), coef);
                }
            }
            Self::Own { grams, after, .. } => {
                let share = 1.0 / grams.n_terms() as f64;
                (0..grams.n_terms()).for_each(|t| out.add(after + t, share, (grams, t), coef));
            }
        }
        out
    }

    fn kernels(self) -> Vec<KernelSpec> {
        match self {
            Self::Base(_) => Vec::new(),
            Self::Own { kernels, .. } => kernels,
        }
    }
}

/// Where the training rows lie, and how new ones are placed.
struct Placed {
    memberships: Matrix,
    placement: Placement,
    functions: Vec<Expansion>,
    kernels: Vec<KernelSpec>,
}

impl Placed {
    fn by_centres(
        prepared: &Prepared,
        memberships: Matrix,
        tau: Option<f64>,
        clusters: &Clusters,
        source: PlacingKernel,
    ) -> Self {
        let function = |g: usize| source.expand(prepared, clusters.centre_norms[g], &clusters.distance_coefficients(g));
        let functions = (0..clusters.len()).map(function).collect();
        Self { memberships, placement: Placement::Clusters { tau }, functions, kernels: source.kernels() }
    }

    /// Groups of the rows, where each belongs to one.
    fn labels(&self) -> Result<Vec<usize>> {
        let own = |i: usize| self.memberships.row(i).iter().position(|c| *c == 1.0);
        let labels: Option<Vec<usize>> = (0..self.memberships.rows()).map(own).collect();
        labels.ok_or_else(|| Error::param("groups", "hard: every row belongs to one group", "soft memberships"))
    }

    fn gating(&self, weights: Option<Vec<Vec<f64>>>) -> (Gating, Vec<Expansion>, Vec<KernelSpec>) {
        let gating = Gating { placement: self.placement.clone(), regions: self.memberships.cols(), weights };
        (gating, self.functions.clone(), self.kernels.clone())
    }
}

/// What a model is assembled from.
#[derive(Default)]
struct Built {
    fits: Vec<Fit>,
    gatings: Vec<Gating>,
    functions: Vec<Expansion>,
    parts: Vec<Expansion>,
    kernels: Vec<KernelSpec>,
}

impl Built {
    fn add_gating(&mut self, (gating, functions, kernels): (Gating, Vec<Expansion>, Vec<KernelSpec>)) {
        self.gatings.push(gating);
        self.functions.extend(functions);
        // Every machine has the same kernels of its own.
        self.kernels = kernels;
    }
}

/// The column that says the region.
pub(super) struct RegionColumn {
    /// As the request names it.
    asked: String,
    name: String,
    values: Vec<f64>,
}

impl RegionColumn {
    /// By its name, or its number, 1 the first.
    pub fn of(data: &Dataset, asked: &str) -> Result<Self> {
        let columns = data.columns();
        let numbered = || asked.parse::<usize>().ok().and_then(|k| k.checked_sub(1)).filter(|&k| k < columns.len());
        let Some(at) = columns.iter().position(|c| c == asked).or_else(numbered) else {
            let listed = columns.iter().take(10).cloned().collect::<Vec<_>>().join(", ");
            return Err(Error::param("regions", format!("a column of the data ({listed})"), format!("`{asked}`")));
        };
        Ok(Self { asked: asked.into(), name: columns[at].clone(), values: data.features().column(at) })
    }
}

fn check_memberships(m: &Matrix) -> Result<()> {
    for i in 0..m.rows() {
        let (row, sum) = (m.row(i), m.row(i).iter().sum::<f64>());
        if !row.iter().all(|c| *c >= 0.0) || (sum - 1.0).abs().is_nan() || (sum - 1.0).abs() > SUM {
            return Err(Error::data(
                "regions",
                Told::row(i, format!("has the memberships {row:?}")),
                "they must not be negative and must add up to 1",
            ));
        }
    }
    Ok(())
}

fn one_hot(labels: &[usize], regions: usize) -> Matrix {
    let mut out = Matrix::zeros(labels.len(), regions);
    labels.iter().enumerate().for_each(|(i, &l)| out[(i, l)] = 1.0);
    out
}

/// The targets that alignments are measured against: a machine's own; where several share a gate, their sum over all rows.
fn joint_target(problem: &Problem<'_>) -> Vec<f64> {
    let mut out = vec![0.0; problem.grams.n_samples()];
    for part in &problem.parts {
        match part.rows {
            None => out.iter_mut().zip(part.task.y).for_each(|(o, y)| *o += y),
            Some(rows) => rows.iter().zip(part.task.y).for_each(|(&i, y)| out[i] += y),
        }
    }
    out
}

/// Functions of one kernel get the same rows, with zeros where they had none: kernel values of a new row are then computed once for all.
fn share_rows(functions: &mut [Expansion]) {
    let mut by_kernel: std::collections::BTreeMap<usize, Vec<&mut Combination>> = std::collections::BTreeMap::new();
    for (kernel, basis, _) in functions.iter_mut().flat_map(|f| &mut f.terms) {
        by_kernel.entry(*kernel).or_default().push(basis);
    }
    for bases in by_kernel.values_mut() {
        let mut all: Option<Vec<usize>> = None;
        let mut differ = false;
        for basis in bases.iter() {
            let Combination::Samples { index, .. } = &**basis else { continue };
            match &mut all {
                None => all = Some(index.clone()),
                Some(rows) if rows != index => {
                    differ = true;
                    rows.extend_from_slice(index);
                    rows.sort_unstable();
                    rows.dedup();
                }
                Some(_) => {}
            }
        }
        let Some(rows) = all.filter(|_| differ) else { continue };
        for basis in bases.iter_mut() {
            let Combination::Samples { index, coef } = &mut **basis else { continue };
            let mut shared = vec![0.0; rows.len()];
            index.iter().zip(coef.iter()).for_each(|(i, c)| shared[rows.partition_point(|r| r < i)] = *c);
            (*index, *coef) = (rows.clone(), shared);
        }
    }
}
