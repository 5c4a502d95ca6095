//! Decision functions of new rows, chunk by chunk. What several functions or kernels need of a row
//! is computed once: a kernel is prepared once on the stored rows and once on each chunk; distances
//! and products serve all kernels that start from them; and where a kernel has features at hand,
//! its whole share of a function is one dot product, whatever the number of stored rows.

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use super::predictor::{Predictor, Term, TermBasis};
use crate::{
    data::Rows,
    kernels::{Directions, Frequencies, Function, KernelSpec, Monomials, Points, Together, Waves},
    linalg::{Matrix, dot},
};

/// The most numbers (of 8 bytes) that directions in feature space may take, all functions together,
/// 256 MiB; where they would take more, new rows are compared with the stored rows one by one.
const MAX_DIRECTIONS: usize = 1 << 25;

/// A predictor made ready for rows like those it was shown.
pub(super) struct Evaluation {
    constants: Vec<f64>,
    spherical: bool,
    parts: Vec<EvaluationPart>,
}

/// What the first evaluation makes for all later ones: for rows that lack nothing, and for others.
/// It is no part of a predictor's value.
#[derive(Default)]
pub(super) struct Cache([OnceLock<Arc<Evaluation>>; 2]);

impl Cache {
    /// What is there, or what `make` makes. Two threads may both make it, which is better than one
    /// waiting inside the other's work.
    pub fn get(&self, complete: bool, make: impl FnOnce() -> Evaluation) -> Arc<Evaluation> {
        let place = &self.0[usize::from(complete)];
        place.get().cloned().unwrap_or_else(|| {
            let made = Arc::new(make());
            place.set(Arc::clone(&made)).ok();
            made
        })
    }
}

impl Clone for Cache {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl PartialEq for Cache {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cache")
    }
}

enum EvaluationPart {
    StoredKernels(StoredKernels),
    Explicit(Explicit),
    Ready(KernelShare),
}

/// What a kernel adds to one function.
#[derive(Clone, Default)]
struct KernelShare {
    function: usize,
    /// Stored rows or Gram columns, by their places; nothing for features.
    at: Vec<usize>,
    coef: Vec<f64>,
    /// What it adds for a row that lacks what the kernel reads.
    absent: f64,
}

impl KernelShare {
    /// With rows counted among `rows`, both ascending: as many as these, they are these.
    fn within(mut self, rows: &[usize]) -> Self {
        let mut pairs: Vec<(usize, f64)> =
            places(&self.at, rows).into_iter().zip(self.coef).collect();
        pairs.sort_unstable_by_key(|(at, _)| *at);
        (self.at, self.coef) = pairs.into_iter().unzip();
        self
    }
}

/// All that one kernel adds in one form.
struct KernelShares {
    /// Its columns are counted among the needed ones.
    spec: KernelSpec,
    form: TermForm,
    shares: Vec<KernelShare>,
}

impl KernelShares {
    /// Shares of stored rows combined, one function each; `None` where the kernel has no features
    /// at hand, or too many.
    fn directions(&self, stored: &Rows) -> Option<Directions> {
        if !self.spec.has_features() {
            return None;
        }
        let at = union(self.shares.iter().map(|s| s.at.as_slice()));
        let rows = self.spec.points_at(stored, &at);
        let (dense, sparse) = rows.features()?;
        if (dense + sparse) * self.shares.len() > MAX_DIRECTIONS {
            return None;
        }
        let mut out = Directions::like(&rows, self.shares.len())?;
        for (k, share) in self.shares.iter().enumerate() {
            out.add(k, (&rows, &places(&share.at, &at)), &share.coef, |feature| feature);
        }
        Some(out)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum TermForm {
    Samples,
    Features,
    Columns,
}

impl Evaluation {
    /// For rows with the columns, and the gaps, of `x`.
    pub fn new(predictor: &Predictor, kernels: &[KernelSpec], x: &Rows) -> Self {
        let constants: Vec<f64> = predictor.decisions.iter().map(|d| d.constant).collect();
        let spherical = predictor.spherical;
        // Affine kernels add up to one, unless something is to be done kernel by kernel.
        let joins =
            !spherical && x.is_complete() && constants.len() * x.text_start() <= MAX_DIRECTIONS;
        let is_affine =
            |b: &KernelShares| joins && b.form != TermForm::Columns && b.spec.function.is_affine();
        let (affine, others): (Vec<_>, Vec<_>) =
            bundles(predictor, kernels).into_iter().partition(is_affine);
        let mut parts = Vec::new();
        if !affine.is_empty() {
            parts.push(EvaluationPart::Explicit(Explicit::joined(
                &affine,
                constants.len(),
                x,
                &predictor.rows,
            )));
        }
        let mut together: Vec<Vec<KernelShares>> = Vec::new();
        for bundle in others {
            match bundle.form {
                TermForm::Columns => {
                    parts.extend(bundle.shares.into_iter().map(EvaluationPart::Ready));
                }
                TermForm::Features => {
                    parts.push(EvaluationPart::Explicit(Explicit::mapped(
                        bundle,
                        &predictor.frequencies,
                    )));
                }
                TermForm::Samples => match bundle.directions(&predictor.rows) {
                    Some(directions) => {
                        parts
                            .push(EvaluationPart::Explicit(Explicit::combined(bundle, directions)));
                    }
                    None => match together.iter_mut().find(|g| g[0].spec.starts_like(&bundle.spec))
                    {
                        Some(group) => group.push(bundle),
                        None => together.push(vec![bundle]),
                    },
                },
            }
        }
        parts.extend(together.into_iter().map(|group| {
            EvaluationPart::StoredKernels(StoredKernels::new(group, &predictor.rows))
        }));
        Self { constants, spherical, parts }
    }

    /// Values of all functions, row after row.
    pub fn fill(&self, x: &Rows, ready_made: &Rows, out: &mut [f64]) {
        out.chunks_mut(self.constants.len()).for_each(|row| row.copy_from_slice(&self.constants));
        for part in &self.parts {
            match part {
                EvaluationPart::StoredKernels(stored) => {
                    stored.add(x, self.spherical, out, self.constants.len());
                }
                EvaluationPart::Explicit(explicit) => {
                    explicit.add(x, self.spherical, out, self.constants.len());
                }
                EvaluationPart::Ready(share) => {
                    let absent = ready_made.absent(&share.at);
                    for (i, out) in out.chunks_mut(self.constants.len()).enumerate() {
                        let row = ready_made.numbers().row(i);
                        out[share.function] += match &absent {
                            Some(absent) if absent[i] => share.absent,
                            _ => share
                                .at
                                .iter()
                                .zip(&share.coef)
                                .map(|(&c, coef)| coef * row[c])
                                .sum(),
                        };
                    }
                }
            }
        }
    }
}

/// Terms in the order of their kernels.
fn bundles(predictor: &Predictor, kernels: &[KernelSpec]) -> Vec<KernelShares> {
    let share = |function: usize, term: &Term| {
        let (form, at, coef) = match &term.basis {
            TermBasis::Samples { at, coef } => (TermForm::Samples, at.clone(), coef),
            TermBasis::Columns { at, coef } => (TermForm::Columns, at.clone(), coef),
            TermBasis::Features { coef } => (TermForm::Features, Vec::new(), coef),
        };
        (term.kernel, form, KernelShare { function, at, coef: coef.clone(), absent: term.absent })
    };
    let mut all: Vec<_> = predictor
        .decisions
        .iter()
        .enumerate()
        .flat_map(|(m, d)| d.terms.iter().map(move |t| share(m, t)))
        .collect();
    all.sort_by_key(|(kernel, form, _)| (*kernel, *form));
    let bundle = |same: &[(usize, TermForm, KernelShare)]| {
        let mut spec = kernels[same[0].0].clone();
        if !spec.is_precomputed() {
            spec.columns.iter_mut().for_each(|c| *c = predictor.columns.partition_point(|u| u < c));
        }
        KernelShares {
            spec,
            form: same[0].1,
            shares: same.iter().map(|(.., share)| share.clone()).collect(),
        }
    };
    all.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)).map(bundle).collect()
}

/// Kernels whose features are at hand: one function per share.
struct Explicit {
    spec: KernelSpec,
    features: Features,
    shares: Vec<KernelShare>,
}

enum Features {
    /// Combined: the coefficients are in the directions.
    Combined(Directions),
    Mapped(Option<FeatureMap>),
}

enum FeatureMap {
    Monomials(Monomials),
    Waves(Waves),
}

impl FeatureMap {
    fn len(&self) -> usize {
        match self {
            Self::Monomials(map) => map.len(),
            Self::Waves(map) => map.len(),
        }
    }

    fn map(&self, x: &[f64], out: &mut [f64]) {
        match self {
            Self::Monomials(map) => map.map(x, out),
            Self::Waves(map) => map.map(x, out),
        }
    }
}

impl Explicit {
    fn mapped(
        KernelShares { spec, shares, .. }: KernelShares,
        frequencies: &[Frequencies],
    ) -> Self {
        let count = shares.iter().map(|s| s.coef.len()).max().unwrap_or(0);
        let map = match spec.function.spectrum() {
            Some(_) => frequencies
                .iter()
                .find_map(|f| Waves::new(spec.function, f, &spec.columns))
                .map(FeatureMap::Waves),
            None => {
                Monomials::of(spec.function, spec.columns.len(), count).map(FeatureMap::Monomials)
            }
        };
        Self { spec, features: Features::Mapped(map), shares }
    }

    fn combined(KernelShares { spec, shares, .. }: KernelShares, directions: Directions) -> Self {
        Self { spec, features: Features::Combined(directions), shares }
    }

    /// The sum of affine kernels, on all numeric columns of `x`.
    fn joined(bundles: &[KernelShares], functions: usize, x: &Rows, stored: &Rows) -> Self {
        let mut directions =
            Directions::new(functions, (x.sparse_start(), x.text_start() - x.sparse_start()));
        for KernelShares { spec, form, shares } in bundles {
            let rows = spec.points(stored);
            for share in shares {
                if *form == TermForm::Samples {
                    directions.add(share.function, (&rows, &share.at), &share.coef, |feature| {
                        spec.columns[feature]
                    });
                    continue;
                }
                // The monomials are √offset, where there is one, and the columns.
                let (constants, weights) =
                    share.coef.split_at(share.coef.len().saturating_sub(spec.columns.len()));
                let root = rows.offset().sqrt();
                constants.iter().for_each(|c| directions.add_constant(share.function, c * root));
                for (&column, weight) in spec.columns.iter().zip(weights) {
                    directions.add_feature(share.function, column, *weight);
                }
            }
        }
        let spec = KernelSpec::new(Function::Linear, (0..x.text_start()).collect(), String::new());
        let share = |function| KernelShare { function, ..KernelShare::default() };
        Self {
            spec,
            features: Features::Combined(directions),
            shares: (0..functions).map(share).collect(),
        }
    }

    fn add(&self, x: &Rows, spherical: bool, out: &mut [f64], functions: usize) {
        let points = self.spec.points(x);
        let absent = x.absent(&self.spec.columns);
        let squares = if spherical { points.diagonal() } else { Vec::new() };
        let (map, numbers) = match &self.features {
            Features::Combined(_) => (None, None),
            Features::Mapped(map) => (map.as_ref(), points.numbers()),
        };
        let (mut values, mut mapped) =
            (vec![0.0; self.shares.len()], vec![0.0; map.map_or(0, FeatureMap::len)]);
        for (i, out) in out.chunks_mut(functions).enumerate() {
            if absent.as_ref().is_some_and(|a| a[i]) {
                self.shares.iter().for_each(|s| out[s.function] += s.absent);
                continue;
            }
            match (&self.features, map, &numbers) {
                (Features::Combined(directions), ..) => directions.values(&points, i, &mut values),
                (Features::Mapped(_), Some(map), Some(numbers)) => {
                    map.map(numbers.row(i), &mut mapped);
                    values
                        .iter_mut()
                        .zip(&self.shares)
                        .for_each(|(v, s)| *v = dot(&mapped, &s.coef));
                }
                _ => {}
            }
            let divisor = divisor(&squares, i);
            self.shares.iter().zip(&values).for_each(|(s, v)| out[s.function] += v / divisor);
        }
    }
}

/// Kernels that start from the same numbers per pair of rows.
struct StoredKernels {
    rows: PreparedRows,
    count: usize,
    kernels: Vec<Member>,
}

struct Member {
    spec: KernelSpec,
    /// Its rows among those of all kernels here.
    at: Vec<usize>,
    /// With their rows counted among those of the kernel, ascending.
    shares: Vec<KernelShare>,
}

/// Rows as kernels see them.
enum PreparedRows {
    /// One line of numbers for all kernels.
    Once(Points),
    /// A line per kernel, in one pass.
    Together(Together),
}

impl PreparedRows {
    fn new(kernels: &[&KernelSpec], rows: &Rows) -> Self {
        let together = if kernels.len() > 1 { Together::new(kernels, rows) } else { None };
        together.map_or_else(|| Self::Once(kernels[0].points(rows)), Self::Together)
    }

    /// Numbers of row i against all of `other`.
    fn row(&self, i: usize, other: &Self, out: &mut Matrix) {
        match (self, other) {
            (Self::Once(own), Self::Once(other)) => own.unfinished_row(i, other, out.row_mut(0)),
            (Self::Together(own), Self::Together(other)) => {
                let width = out.cols().max(1);
                own.row(i, other, &mut out.data_mut().chunks_mut(width).collect::<Vec<_>>());
            }
            // Both sides are prepared for the same kernels.
            _ => out.data_mut().fill(f64::NAN),
        }
    }
}

impl StoredKernels {
    fn new(bundles: Vec<KernelShares>, stored: &Rows) -> Self {
        let all = union(bundles.iter().flat_map(|b| b.shares.iter().map(|s| s.at.as_slice())));
        let specs: Vec<&KernelSpec> = bundles.iter().map(|b| &b.spec).collect();
        let rows = PreparedRows::new(&specs, &stored.select_rows(&all));
        let member = |KernelShares { spec, shares, .. }: KernelShares| {
            let own = union(shares.iter().map(|s| s.at.as_slice()));
            let shares = shares.into_iter().map(|s| s.within(&own)).collect();
            Member { spec, at: places(&own, &all), shares }
        };
        Self { rows, count: all.len(), kernels: bundles.into_iter().map(member).collect() }
    }

    fn add(&self, x: &Rows, spherical: bool, out: &mut [f64], functions: usize) {
        let specs: Vec<&KernelSpec> = self.kernels.iter().map(|k| &k.spec).collect();
        let points = PreparedRows::new(&specs, x);
        let absent = x.absent(&specs[0].columns);
        let squares: Vec<Vec<f64>> = match &points {
            _ if !spherical => vec![Vec::new(); specs.len()],
            PreparedRows::Once(points) => {
                specs.iter().map(|s| points.diagonal_of(s.function)).collect()
            }
            PreparedRows::Together(_) => specs.iter().map(|s| s.points(x).diagonal()).collect(),
        };
        let lines = if matches!(points, PreparedRows::Once(_)) { 1 } else { specs.len() };
        let mut numbers = Matrix::zeros(lines, self.count);
        let (mut values, mut some) = (Vec::new(), Vec::new());
        for (i, out) in out.chunks_mut(functions).enumerate() {
            if absent.as_ref().is_some_and(|a| a[i]) {
                self.kernels
                    .iter()
                    .flat_map(|k| &k.shares)
                    .for_each(|s| out[s.function] += s.absent);
                continue;
            }
            points.row(i, &self.rows, &mut numbers);
            for (k, kernel) in self.kernels.iter().enumerate() {
                let line = numbers.row(k.min(lines - 1));
                values.clear();
                values.extend(kernel.at.iter().map(|&j| line[j]));
                kernel.spec.function.finish(&mut values);
                let divisor = divisor(&squares[k], i);
                for share in &kernel.shares {
                    // All rows of the kernel, or some of them.
                    let values = if share.at.len() == values.len() {
                        &values
                    } else {
                        some.clear();
                        some.extend(share.at.iter().map(|&j| values[j]));
                        &some
                    };
                    out[share.function] += dot(values, &share.coef) / divisor;
                }
            }
        }
    }
}

/// What the values of row i are divided by: √k(x, x), or 1.
fn divisor(squares: &[f64], i: usize) -> f64 {
    match squares.get(i) {
        None => 1.0,
        Some(&square) if square > 0.0 => square.sqrt(),
        // A row of norm 0 has kernel value 0 with every other.
        Some(_) => f64::INFINITY,
    }
}

/// All that occur, ascending.
fn union<'a>(lists: impl Iterator<Item = &'a [usize]>) -> Vec<usize> {
    let mut all = lists.collect::<Vec<_>>().concat();
    all.sort_unstable();
    all.dedup();
    all
}

/// Where in `all`, ascending, the numbers `some` stand.
fn places(some: &[usize], all: &[usize]) -> Vec<usize> {
    some.iter().map(|i| all.partition_point(|a| a < i)).collect()
}
