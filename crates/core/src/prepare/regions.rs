//! Regions of the rows: given, said by a column, or found by clustering; and the kernel in whose
//! feature space rows are placed.

use super::{Prepared, prepared::options};
use crate::{
    Error, Result, Told,
    data::Dataset,
    gram::{Gram, GramSet, GramSource},
    kernels::{KernelSpec, language},
    linalg::Matrix,
    localize::{Clusters, Gating, Placement, kernel_kmeans},
    model::{Expansion, Input},
    request::TrainSpec,
};

/// Number of starts of the clustering that finds groups; ten, as for [`crate::request::Clmkl`].
const GROUP_STARTS: usize = 10;
/// Memberships of a row may add up to 1 with this error: given with seven digits, they may be
/// rounded.
const SUM: f64 = 1e-6;

/// Regions that the user gives instead of clustering.
#[derive(Debug, Clone, PartialEq)]
pub enum Regions {
    /// The region of every training row, counted from 0; a new row belongs to the region whose
    /// centre is nearest in feature space.
    Labels(Vec<usize>),
    /// Memberships of every training row, rows × regions, which add up to 1; those of new rows must
    /// be given as well.
    Memberships(Matrix),
}

impl Prepared {
    /// Takes regions (or groups) that the user gives, one entry per row that the data had.
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
            return Err(Error::shape(
                "regions",
                format!("{n} entries, one per training row"),
                entries,
            ));
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

    /// Finds hard groups in the feature space of Σ weight_m k_m, or takes those given.
    pub(crate) fn groups_of(
        &self,
        spec: &TrainSpec,
        weights: Vec<f64>,
        n_groups: usize,
        seed: u64,
    ) -> Result<Placed> {
        if let Some(placed) = self.regions_without_kernel(spec)? {
            return Ok(placed);
        }
        let source = PlacingKernel::Base(weights);
        let k = source.gram(&self.grams);
        let clusters = match &self.regions {
            Some(Regions::Labels(labels)) => Clusters::new(&k, labels.clone())?,
            _ => kernel_kmeans(&k, n_groups, GROUP_STARTS, seed)?,
        };
        Ok(Placed::by_centres(
            self,
            one_hot(&clusters.labels, clusters.len()),
            None,
            &clusters,
            source,
        ))
    }

    /// Takes the regions that a column says or that were given as memberships: no kernel is needed
    /// to place rows in them.
    pub(crate) fn regions_without_kernel(&self, spec: &TrainSpec) -> Result<Option<Placed>> {
        let without = |memberships, placement| Placed {
            memberships,
            placement,
            functions: vec![],
            kernels: vec![],
        };
        if let Some(column) = spec.method.region_column() {
            let Some(RegionColumn { name, values: raw, .. }) =
                self.region_column.as_ref().filter(|c| c.asked == column)
            else {
                let expected =
                    format!("the column that the data were prepared for, not `{column}`");
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

    /// Computes K₀, the kernel in whose feature space a gate is linear.
    pub(crate) fn gate_gram(&self, spec: &TrainSpec, text: Option<&str>) -> Result<Gram> {
        Ok(self.placing_kernel(spec, "gate_kernel", text)?.gram(&self.grams))
    }

    /// Reads the kernel in whose feature space rows are placed: in the kernel language, or the
    /// number of a base kernel.
    pub(crate) fn placing_kernel(
        &self,
        spec: &TrainSpec,
        name: &str,
        text: Option<&str>,
    ) -> Result<PlacingKernel> {
        let terms = self.grams.n_terms();
        let Some(text) = text else {
            return Ok(PlacingKernel::Base(vec![1.0 / terms as f64; terms]));
        };
        if let Ok(number) = text.trim().parse::<usize>() {
            if number == 0 || number > terms {
                return Err(Error::param(
                    name,
                    format!("the number of a kernel, 1 to {terms}"),
                    number,
                ));
            }
            return Ok(PlacingKernel::Base((1..=terms).map(|t| f64::from(t == number)).collect()));
        }
        let (Some(x), Input::Table { columns, .. }) = (&self.table, &self.input) else {
            return Err(Error::param(
                name,
                format!("the number of a ready-made kernel, 1 to {terms}"),
                text,
            ));
        };
        let data = Dataset::from_rows(x.clone(), self.plan.columns(columns)?)?;
        let kernels = language::parse(text)?.resolve(&data)?;
        let (mut build, _) = options(spec);
        build.budget = self.budget_left();
        let grams = GramSet::from_rows(x, &kernels, &build)?;
        Ok(PlacingKernel::Own { grams: Box::new(grams), kernels, after: terms })
    }
}

/// A kernel that places rows: Σ_m w_m k_m over base kernels, or the average of kernels of its own.
pub(crate) enum PlacingKernel {
    Base(Vec<f64>),
    Own { grams: Box<GramSet>, kernels: Vec<KernelSpec>, after: usize },
}

impl PlacingKernel {
    pub fn gram(&self, base: &GramSet) -> Gram {
        match self {
            Self::Base(weights) => base.combine(weights),
            Self::Own { grams, .. } => {
                grams.combine(&vec![1.0 / grams.n_terms() as f64; grams.n_terms()])
            }
        }
    }

    /// Makes the function constant + Σ_i coef_i k(x_i, ·).
    pub fn expand(&self, at: &Prepared, constant: f64, coef: &[f64]) -> Expansion {
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
                (0..grams.n_terms()).for_each(|t| out.add(after + t, share, (&**grams, t), coef));
            }
        }
        out
    }

    pub fn kernels(self) -> Vec<KernelSpec> {
        match self {
            Self::Base(_) => Vec::new(),
            Self::Own { kernels, .. } => kernels,
        }
    }
}

/// Where the training rows lie, and how new ones are placed.
pub(crate) struct Placed {
    pub memberships: Matrix,
    placement: Placement,
    functions: Vec<Expansion>,
    kernels: Vec<KernelSpec>,
}

impl Placed {
    pub fn by_centres(
        prepared: &Prepared,
        memberships: Matrix,
        tau: Option<f64>,
        clusters: &Clusters,
        source: PlacingKernel,
    ) -> Self {
        let function = |g: usize| {
            source.expand(prepared, clusters.centre_norms[g], &clusters.distance_coefficients(g))
        };
        let functions = (0..clusters.len()).map(function).collect();
        Self {
            memberships,
            placement: Placement::Clusters { tau },
            functions,
            kernels: source.kernels(),
        }
    }

    /// The group of every row; refuses soft memberships.
    pub fn labels(&self) -> Result<Vec<usize>> {
        let own = |i: usize| self.memberships.row(i).iter().position(|c| *c == 1.0);
        let labels: Option<Vec<usize>> = (0..self.memberships.rows()).map(own).collect();
        labels.ok_or_else(|| {
            Error::param("groups", "hard: every row belongs to one group", "soft memberships")
        })
    }

    pub fn gating(&self, weights: Option<Vec<Vec<f64>>>) -> Placing {
        let gating =
            Gating { placement: self.placement.clone(), regions: self.memberships.cols(), weights };
        Placing { gating, functions: self.functions.clone(), kernels: self.kernels.clone() }
    }
}

/// How a model places new rows: the gating, the functions it reads, and kernels that serve it
/// alone.
pub(crate) struct Placing {
    pub gating: Gating,
    pub functions: Vec<Expansion>,
    pub kernels: Vec<KernelSpec>,
}

/// The column that says the region.
pub(super) struct RegionColumn {
    /// The name or number by which the request asks for it.
    asked: String,
    name: String,
    values: Vec<f64>,
}

impl RegionColumn {
    /// Finds the column by its name, or by its number, counted from 1.
    pub fn of(data: &Dataset, asked: &str) -> Result<Self> {
        let columns = data.columns();
        let numbered = || {
            asked
                .parse::<usize>()
                .ok()
                .and_then(|k| k.checked_sub(1))
                .filter(|&k| k < columns.len())
        };
        let Some(at) = columns.iter().position(|c| c == asked).or_else(numbered) else {
            let listed = columns.iter().take(10).cloned().collect::<Vec<_>>().join(", ");
            return Err(Error::param(
                "regions",
                format!("a column of the data ({listed})"),
                format!("`{asked}`"),
            ));
        };
        Ok(Self {
            asked: asked.into(),
            name: columns[at].clone(),
            values: data.features().column(at),
        })
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

pub(crate) fn one_hot(labels: &[usize], regions: usize) -> Matrix {
    let mut out = Matrix::zeros(labels.len(), regions);
    labels.iter().enumerate().for_each(|(i, &l)| out[(i, l)] = 1.0);
    out
}
