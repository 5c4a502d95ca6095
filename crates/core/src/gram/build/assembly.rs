//! From kernels and data to stored terms: factors where they are cheap, triangles elsewhere, never beyond the budget.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::{
    super::{
        Approx, ApproxError, Factor, GramSet, RankLimit,
        dense::Packed,
        impute::{Imputation, Imputed},
        low_rank::{self, FEW_ROWS, share},
        precomputed::{check, repair},
        set::Stored,
    },
    pairs::pair_table,
    raw::{Computed, OnSphere, Raw, Wanted},
};
use crate::{
    Error, Result,
    data::{Dataset, Missing, Rows, source::machine_memory},
    kernels::{Function, Indefinite, KernelSpec, Normalize, Normalizer, Numeric, Pair, Points, Together},
    linalg::Matrix,
};

/// Bytes of terms whose bases are not shared yet, about.
const WAITING: u64 = 1 << 25;

/// How kernel matrices are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Storage {
    /// The cheapest that fits, per kernel.
    #[default]
    Auto,
    /// Packed triangles of f64.
    Dense,
    /// Packed triangles of f32.
    DenseF32,
    /// Low-rank factors at any rank.
    LowRank,
}

/// How much memory kernel matrices may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Bytes.
    pub bytes: u64,
}

impl Budget {
    /// `None`: half the machine's memory (4 GiB where that cannot be read).
    pub fn new(bytes: Option<u64>) -> Self {
        Self { bytes: bytes.unwrap_or_else(|| machine_memory().unwrap_or(8 << 30) / 2) }
    }

    /// Refuses, before anything is allocated, what does not fit.
    pub fn check(self, what: impl Into<String>, need: u64, remedy: &str) -> Result<()> {
        if need <= self.bytes {
            return Ok(());
        }
        Err(Error::memory(what, need, self.bytes, remedy))
    }
}

/// What the stored terms depend on besides the data.
#[derive(Debug, Clone, Copy)]
pub struct BuildOptions {
    /// Scaling of every kernel.
    pub normalize: Normalize,
    /// Form of storage.
    pub storage: Storage,
    /// Relative trace residual at which a factor stops.
    pub rank_tolerance: f64,
    /// Limit.
    pub budget: Budget,
    /// What stands in for every kernel.
    pub approx: Approx,
    /// Of its landmarks or frequencies.
    pub seed: u64,
}

impl Default for BuildOptions {
    fn default() -> Self {
        let (normalize, storage, approx) = (Normalize::default(), Storage::Auto, Approx::None);
        Self { normalize, storage, rank_tolerance: 1e-10, budget: Budget::new(None), approx, seed: 0 }
    }
}

/// What is left out, in units of what varies, may be so many times the tolerance: its share of a gap grows with the rows, and from so many
/// rows on it must be the least.
const COMMON: f64 = 8.0;
const MANY_ROWS: f64 = 1.25e5;

/// A finished term with its constants.
pub(crate) struct Built {
    pub term: Stored,
    normalizer: Normalizer,
    roots: Vec<f64>,
    error: Option<ApproxError>,
}

impl BuildOptions {
    fn rank_limit(&self, n: usize) -> RankLimit {
        // A factor of rank n/3 takes two thirds of the room of a packed triangle. One that would not fit is given up before it is there.
        let max_rank = if self.storage == Storage::LowRank { n } else { n / 3 };
        let room = self.budget.bytes / (size_of::<f64>() * n.max(1)) as u64;
        RankLimit { tolerance: self.rank_tolerance, max_rank: max_rank.min(usize::try_from(room).unwrap_or(max_rank)) }
    }

    fn may_factor(&self) -> bool {
        matches!(self.storage, Storage::Auto | Storage::LowRank)
    }

    /// The term as a factor, or `None` where that does not pay.
    pub(crate) fn factor(&self, raw: &dyn Raw, name: &str) -> Result<Option<Built>> {
        if self.approx != Approx::None {
            return self.stand_in(raw, name).map(Some);
        }
        if !self.may_factor() {
            return Ok(None);
        }
        let (roots, diagonal) = self.sphere(raw, name)?;
        if self.storage == Storage::Auto && !raw.promises(self.rank_limit(diagonal.len()).max_rank) {
            return Ok(None);
        }
        let wrapped = OnSphere { raw, roots: &roots };
        let raw = if roots.is_empty() { raw } else { &wrapped };
        let limit = self.rank_limit(diagonal.len());
        let found = raw.features(Wanted::Exact(limit.max_rank)).map(Factor::monomials);
        let found = found.or_else(|| {
            let reduced = if roots.is_empty() { diagonal.clone() } else { raw.diagonal() };
            let to = |tolerance| {
                let limit = RankLimit { tolerance, ..limit };
                Factor::pivoted(&reduced, limit, |j, out| raw.head_of_column(j, out))
            };
            let mut factor = to(limit.tolerance)?;
            let share = self.varying_share(&factor, &reduced);
            if factor.residual > limit.tolerance * share * reduced.iter().sum::<f64>() {
                factor = to(limit.tolerance * share).unwrap_or(factor);
            }
            factor.fineness = share;
            Some(factor)
        });
        let Some(factor) = found else { return Ok(None) };
        self.normalized(factor, name, &diagonal, roots, None).map(Some)
    }

    /// What normalisation leaves of the trace, at most 1: the rest is one value that all entries of K have in common.
    fn varying_share(&self, factor: &Factor, diagonal: &[f64]) -> f64 {
        if !matches!(self.normalize, Normalize::Multiplicative | Normalize::Center) {
            return 1.0;
        }
        let (n, trace) = (diagonal.len() as f64, diagonal.iter().sum::<f64>());
        let many = COMMON * (MANY_ROWS / n).max(1.0);
        (many * (1.0 - factor.row_sums().iter().sum::<f64>() / (n * trace))).clamp(0.0, 1.0)
    }

    /// The term of a raw factor whose diagonal is `diagonal`.
    pub(crate) fn normalized(
        &self,
        mut factor: Factor,
        name: &str,
        diagonal: &[f64],
        roots: Vec<f64>,
        error: Option<ApproxError>,
    ) -> Result<Built> {
        let normalizer = match self.normalize {
            // Its diagonal was looked at before.
            Normalize::Spherical => Normalizer::Spherical,
            other => Normalizer::fit(other, name, diagonal, || factor.row_sums())?,
        };
        match &normalizer {
            Normalizer::Spherical | Normalizer::Scale { divisor: 1.0 } => {}
            Normalizer::Scale { divisor } => factor.scale(*divisor),
            Normalizer::Center { .. } => factor.center(),
        }
        Ok(Built { term: Stored::Factor(factor), normalizer, roots, error })
    }

    /// The term as a packed triangle, from its raw values.
    pub(crate) fn triangle(&self, mut k: Packed<f64>, name: &str, single: bool) -> Result<Built> {
        let (n, (roots, diagonal)) = (k.n(), self.sphere(&k, name)?);
        if !roots.is_empty() {
            k.map_rows(|i, row| row.iter_mut().zip(&roots).for_each(|(v, r)| *v /= r * roots[i]));
        }
        let normalizer = Normalizer::fit(self.normalize, name, &diagonal, || {
            let mut sums = vec![0.0; n];
            k.apply(&vec![1.0; n], &mut sums);
            sums
        })?;
        match &normalizer {
            Normalizer::Spherical | Normalizer::Scale { divisor: 1.0 } => {}
            Normalizer::Scale { divisor } => k.map_rows(|_, row| row.iter_mut().for_each(|v| *v /= divisor)),
            Normalizer::Center { row_means, grand_mean } => k.map_rows(|i, row| {
                let shift = grand_mean - row_means[i];
                row.iter_mut().zip(row_means).for_each(|(v, r)| *v += shift - r);
            }),
        }
        let term = if single { Stored::DenseF32(k.narrow()) } else { Stored::Dense(k) };
        Ok(Built { term, normalizer, roots, error: None })
    }

    /// √k(x_i, x_i) where normalisation is spherical (else empty), and the raw diagonal.
    pub(crate) fn sphere(&self, raw: &dyn Raw, name: &str) -> Result<(Vec<f64>, Vec<f64>)> {
        let diagonal = raw.diagonal();
        if self.normalize != Normalize::Spherical {
            return Ok((Vec::new(), diagonal));
        }
        Normalizer::fit(self.normalize, name, &diagonal, Vec::new)?;
        Ok((diagonal.iter().map(|d| d.sqrt()).collect(), diagonal))
    }
}

/// Raw triangles of some terms from one pass, where that is possible.
type OnePass<'a> = dyn Fn(&[usize]) -> Option<Vec<Packed<f64>>> + 'a;

/// Terms found so far and what they weigh.
pub(crate) struct Assembly<'a> {
    pub options: &'a BuildOptions,
    n: usize,
    built: Vec<Option<Built>>,
    /// In memory.
    bytes: u64,
    pub maps: Vec<Option<Matrix>>,
    imputations: Vec<Option<Imputation>>,
    pub notes: Vec<String>,
}

impl<'a> Assembly<'a> {
    pub fn new(options: &'a BuildOptions, n: usize, terms: usize) -> Self {
        let (maps, imputations) = (vec![None; terms], vec![None; terms]);
        let (built, notes) = ((0..terms).map(|_| None).collect(), Vec::new());
        Self { options, n, built, bytes: 0, maps, imputations, notes }
    }

    /// [`Assembly::add`] for kernels on columns that some rows lack.
    fn add_imputed(&mut self, batch: &[(usize, &str, &dyn Raw)], absent: &[bool], missing: Missing) -> Result<()> {
        if self.options.normalize == Normalize::Spherical {
            let got = "spherical, and rows lack a view";
            return Err(Error::param("normalize", "one of trace, multiplicative, center, none", got));
        }
        let own = Imputation { absent: absent.to_vec(), missing };
        let raws: Vec<Imputed<'_>> = batch.iter().map(|(_, _, raw)| Imputed::new(*raw, &own)).collect();
        let wrapped: Vec<(usize, &str, &dyn Raw)> =
            batch.iter().zip(&raws).map(|((t, name, _), raw)| (*t, *name, raw as &dyn Raw)).collect();
        self.add(&wrapped, &|_| None)?;
        batch.iter().for_each(|(t, ..)| self.imputations[*t] = Some(own.clone()));
        Ok(())
    }

    /// A ready-made matrix, checked and where asked for repaired.
    fn add_ready(&mut self, t: usize, name: &str, k: Matrix, how: Indefinite) -> Result<()> {
        self.options.refuse_ready_made()?;
        check::symmetric(&k, name)?;
        let k = match repair(&k, name, how)? {
            None => k,
            Some(fixed) => {
                self.maps[t] = fixed.map;
                self.notes.push(fixed.note);
                fixed.matrix
            }
        };
        self.add(&[(t, name, &k)], &|_| None)
    }

    /// Builds the terms `batch` (term, name, raw values): factors in parallel, then triangles for the rest in the widest form
    /// that still fits. `together` computes the raw triangles of some places of the batch in one pass, where that is possible.
    fn add(&mut self, batch: &[(usize, &str, &dyn Raw)], together: &OnePass<'_>) -> Result<()> {
        let factors: Vec<Option<Built>> =
            batch.par_iter().map(|(_, name, raw)| self.options.factor(*raw, name)).collect::<Result<_>>()?;
        let mut missing = Vec::new();
        for (item, factor) in batch.iter().zip(factors) {
            match factor {
                Some(factor) => self.place(item.0, factor),
                None => missing.push(*item),
            }
        }
        let single = self.reserve(missing.len())?;
        let terms: Vec<usize> = missing.iter().map(|(t, ..)| *t).collect();
        // In one pass all triangles are wide at once: not where they do not fit.
        let ready = if single || missing.len() < 2 { None } else { together(&terms) };
        let ready: Vec<Option<Packed<f64>>> =
            ready.map_or_else(|| missing.iter().map(|_| None).collect(), |all| all.into_iter().map(Some).collect());
        let dense: Vec<Built> = missing
            .par_iter()
            .zip(ready)
            .map(|((_, name, raw), ready)| {
                let fill = |i: usize, rows: &mut [&mut [f64]]| raw.head_of_column(i, rows[0]);
                let k = ready.unwrap_or_else(|| Packed::several(self.n, 1, fill).swap_remove(0));
                self.options.triangle(k, name, single)
            })
            .collect::<Result<_>>()?;
        for ((at, ..), term) in missing.iter().zip(dense) {
            self.place(*at, term);
        }
        Ok(())
    }

    /// Kernels of numbers, scope by scope, with no table of pairs.
    fn add_scopes(&mut self, rows: &Rows, scopes: &[(&[usize], Vec<usize>)], kernels: &[KernelSpec]) -> Result<()> {
        let numbers: Vec<Numeric> = scopes.iter().map(|(columns, _)| Numeric::of(rows, columns)).collect();
        let raws = scopes.iter().zip(&numbers).flat_map(|((columns, members), x)| {
            let raw = move |&t: &usize| {
                let function = kernels[t].function;
                function.pair().map(|pair| (t, Computed { function, pair, columns, x, pairs: None }))
            };
            members.iter().filter_map(raw)
        });
        let raws: Vec<(usize, Computed<'_>)> = raws.collect();
        let batch: Vec<(usize, &str, &dyn Raw)> =
            raws.iter().map(|(t, raw)| (*t, kernels[*t].name.as_str(), raw as &dyn Raw)).collect();
        self.add(&batch, &|_| None)
    }

    /// Takes a finished term in.
    pub fn place(&mut self, t: usize, built: Built) {
        if let Stored::Factor(f) = &built.term {
            self.bytes += weight(&[f]);
        }
        self.built[t] = Some(built);
    }

    /// Room for some triangles, before they are there; are they to be single?
    pub fn reserve(&mut self, count: usize) -> Result<bool> {
        let count = count as u64;
        let (wide, narrow) = (self.bytes + count * Packed::<f64>::bytes(self.n), count * Packed::<f32>::bytes(self.n));
        let single = self.options.storage == Storage::DenseF32
            || (self.options.storage == Storage::Auto && wide > self.options.budget.bytes);
        self.bytes = if single { self.bytes + narrow } else { wide };
        self.options.budget.check(
            format!("storing {} kernels of {} samples", self.built.len(), self.n),
            self.bytes,
            "raise the budget, use fewer kernels or rows, or smoother kernels (wider ones have lower rank)",
        )?;
        Ok(single)
    }

    /// The factors among the terms of every scope.
    fn factors(&mut self, scopes: &[&[usize]]) -> Vec<Vec<&mut Factor>> {
        let mut place = vec![None; self.built.len()];
        scopes.iter().enumerate().for_each(|(s, terms)| terms.iter().for_each(|&t| place[t] = Some(s)));
        let mut found: Vec<Vec<&mut Factor>> = scopes.iter().map(|_| Vec::new()).collect();
        for (built, place) in self.built.iter_mut().zip(place) {
            if let (Some(Built { term: Stored::Factor(f), .. }), Some(s)) = (built, place) {
                found[s].push(f);
            }
        }
        found
    }

    /// Bytes of the factors of some scopes, bases included.
    fn weight(&mut self, scopes: &[&[usize]]) -> u64 {
        let own = |factors: &Vec<&mut Factor>| weight(&factors.iter().map(|f| &**f).collect::<Vec<_>>());
        self.factors(scopes).iter().map(own).sum()
    }

    /// Puts the factors of every scope into bases that they share: those with most columns first, or in the order given. With few rows
    /// only where they would take more than half of the budget otherwise. Bases that do so still lie in files: solvers need the rest.
    pub fn share(&mut self, scopes: &[&[usize]], sort: bool) -> Result<()> {
        if self.n < FEW_ROWS && self.bytes <= self.options.budget.bytes / 2 {
            return Ok(());
        }
        let (before, tolerance, half) = (self.bytes, self.options.rank_tolerance, self.options.budget.bytes / 2);
        // One that has used up its declared rank has a space for itself.
        let alone = self.options.approx.rank(usize::MAX);
        let others = before - self.weight(scopes);
        self.factors(scopes).into_par_iter().for_each(|mut factors| {
            if sort {
                factors.sort_by_key(|f| std::cmp::Reverse(f.rank()));
            }
            share(factors.into_iter().filter(|f| f.rank() < alone).collect(), tolerance, sort);
        });
        if others + self.weight(scopes) > half {
            self.factors(scopes).into_iter().try_for_each(low_rank::to_files)?;
        }
        self.bytes = others + self.weight(scopes);
        Ok(())
    }

    pub fn finish(self) -> GramSet {
        let mut set = GramSet {
            n: self.n,
            terms: Vec::new(),
            normalizers: Vec::new(),
            roots: Vec::new(),
            maps: self.maps,
            imputations: self.imputations,
            notes: self.notes,
            errors: Vec::new(),
            room: std::sync::Arc::default(),
        };
        for built in self.built.into_iter().flatten() {
            set.terms.push(built.term);
            set.normalizers.push(built.normalizer);
            set.roots.push(built.roots);
            set.errors.extend(built.error);
        }
        set
    }
}

/// Bytes of factors with their bases.
fn weight(factors: &[&Factor]) -> u64 {
    factors.iter().map(|f| f.bytes()).sum::<u64>() + low_rank::basis_bytes(factors)
}

/// String kernels on one column, those that share a pass over pairs in one list.
fn families(text: &[usize], kernels: &[KernelSpec]) -> Vec<Vec<usize>> {
    let key = |t: usize| match kernels[t].function {
        Function::Text(text) => text.family(),
        _ => None,
    };
    let mut found: Vec<Vec<usize>> = Vec::new();
    for &t in text {
        match found.iter_mut().find(|f| key(f[0]) == key(t)) {
            Some(family) => family.push(t),
            None => found.push(vec![t]),
        }
    }
    found
}

impl GramSet {
    /// The terms of `kernels` on the rows of `x` (already standardised).
    pub fn from_table(x: &Matrix, kernels: &[KernelSpec], options: &BuildOptions) -> Result<Self> {
        Self::from_rows(&x.clone().into(), kernels, options)
    }

    /// The terms of `kernels` on `rows` (numbers already standardised).
    pub fn from_rows(rows: &Rows, kernels: &[KernelSpec], options: &BuildOptions) -> Result<Self> {
        let n = rows.len();
        let mut scopes: Vec<(&[usize], Vec<usize>)> = Vec::new();
        let mut position = std::collections::HashMap::new();
        for (t, k) in kernels.iter().enumerate() {
            let at = *position.entry(k.columns.as_slice()).or_insert(scopes.len());
            if at == scopes.len() {
                scopes.push((&k.columns, Vec::new()));
            }
            scopes[at].1.push(t);
        }
        let mut assembly = Assembly::new(options, n, kernels.len());
        // With few rows kernels of one column are soon made: all of them are shared out among threads at once.
        let plain = |(columns, members): &(&[usize], Vec<usize>)| {
            let of_pairs = |&t: &usize| {
                !matches!(kernels[t].function, Function::Sigmoid { .. }) && kernels[t].function.pair().is_some()
            };
            n < FEW_ROWS && columns.len() == 1 && rows.absent(columns).is_none() && members.iter().all(of_pairs)
        };
        let (small, scopes): (Vec<_>, Vec<_>) = scopes.into_iter().partition(plain);
        assembly.add_scopes(rows, &small, kernels)?;
        let mut waiting: Vec<&[usize]> = small.iter().map(|(_, members)| members.as_slice()).collect();
        let mut settled = 0;
        for (columns, members) in &scopes {
            let absent = rows.absent(columns);
            for &t in members {
                if let Function::Precomputed { indefinite } = kernels[t].function {
                    assembly.add_ready(t, &kernels[t].name, rows.numbers().select_cols(columns), indefinite)?;
                }
            }
            let text: Vec<usize> = members.iter().copied().filter(|&t| kernels[t].reads_text()).collect();
            for family in families(&text, kernels) {
                let points: Vec<Points> = family.par_iter().map(|&t| kernels[t].points(rows)).collect();
                let batch: Vec<(usize, &str, &dyn Raw)> =
                    family.iter().zip(&points).map(|(&t, p)| (t, kernels[t].name.as_str(), p as &dyn Raw)).collect();
                let together = |terms: &[usize]| {
                    let specs: Vec<&KernelSpec> = terms.iter().map(|&t| &kernels[t]).collect();
                    let together = Together::new(&specs, rows)?;
                    Some(Packed::several(n, specs.len(), |i, out| together.row(i, &together, out)))
                };
                match &absent {
                    Some(absent) => assembly.add_imputed(&batch, absent, rows.missing())?,
                    None => assembly.add(&batch, &together)?,
                }
            }
            if !text.is_empty() {
                continue;
            }
            let scope = Numeric::of(rows, columns);
            for &t in members.iter().filter(|&&t| matches!(kernels[t].function, Function::Sigmoid { .. })) {
                let points = kernels[t].points(rows);
                let k = Packed::lower(&points.block(&points));
                check::positive_semidefinite(&k, &kernels[t].name, &mut Matrix::default())?;
            }
            let mut pairs: Vec<Pair> = members.iter().filter_map(|&t| kernels[t].function.pair()).collect();
            pairs.sort_unstable();
            pairs.dedup();
            for pair in pairs {
                let of_pair: Vec<usize> =
                    members.iter().copied().filter(|&t| kernels[t].function.pair() == Some(pair)).collect();
                // One column is cheaper to recompute than to look up; a table must leave room for the terms.
                let table_bytes = 8 * (n as u64) * (n as u64);
                let worth = columns.len() > 1
                    && of_pair.len() > 1
                    && options.approx == Approx::None
                    && assembly.bytes + 2 * table_bytes <= options.budget.bytes;
                let table = worth.then(|| pair_table(pair, &scope));
                let raws: Vec<Computed<'_>> = of_pair
                    .iter()
                    .map(|&t| Computed {
                        function: kernels[t].function,
                        pair,
                        columns,
                        x: &scope,
                        pairs: table.as_ref(),
                    })
                    .collect();
                let batch: Vec<(usize, &str, &dyn Raw)> =
                    of_pair.iter().zip(&raws).map(|(&t, r)| (t, kernels[t].name.as_str(), r as &dyn Raw)).collect();
                match &absent {
                    Some(absent) => assembly.add_imputed(&batch, absent, rows.missing())?,
                    None => assembly.add(&batch, &|_| None)?,
                }
            }
            waiting.push(members);
            // Small scopes wait for each other: they are shared out among threads.
            if assembly.bytes > settled + WAITING.min(options.budget.bytes / 8) {
                assembly.share(&std::mem::take(&mut waiting), true)?;
                settled = assembly.bytes;
            }
        }
        assembly.share(&waiting, true)?;
        Ok(assembly.finish())
    }
}

/// Normalised kernel values of the rows of `x` against the rows of `train` (`None`: of `x` against itself), a matrix per kernel.
pub fn gram_block(
    x: &Dataset,
    train: Option<&Dataset>,
    kernels: &[KernelSpec],
    normalize: Normalize,
) -> Result<Vec<Matrix>> {
    kernels
        .par_iter()
        .map(|spec| {
            if spec.is_precomputed() {
                let remedy = "they are in their file already; leave them out";
                return Err(Error::data(format!("kernel `{}`", spec.name), "has ready-made values", remedy));
            }
            let rows = spec.points(x.rows());
            let Some(train) = train else {
                let mut k = rows.block(&rows);
                Normalizer::fit_block(normalize, &spec.name, &k)?.apply_train(&mut k);
                return Ok(k);
            };
            let base = spec.points(train.rows());
            let normalizer = Normalizer::fit_block(normalize, &spec.name, &base.block(&base))?;
            let mut k = rows.block(&base);
            normalizer.apply_cross(&mut k, &rows.diagonal(), &base.diagonal());
            Ok(k)
        })
        .collect()
}
