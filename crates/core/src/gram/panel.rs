//! Sums of low-rank terms: few large products, and one small matrix per basis that several terms share.
//!
//! Terms L_m = B R_mᵀ in one basis add up to Σ w_m L_m L_mᵀ = B W Bᵀ with the small matrix W = Σ w_m R_mᵀ R_m.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet, hash_map::Entry},
    sync::Arc,
};

use rayon::prelude::*;

use super::{
    Factor, Gram, GramSource,
    factor::{RankLimit, project},
};
use crate::{
    Result,
    linalg::{Matrix, axpy, dot, gemm_nt, gemm_nt_single},
};

/// Rows of the combined matrix that one task fills; rows of a factor that one task makes; columns of factors gathered at a time.
const ROWS: usize = 64;
const TALL: usize = 256;
const DEPTH: usize = 256;

/// Terms by their basis, in the order of first appearance.
fn by_basis<'a>(active: &[(f64, &'a Factor)]) -> Vec<Vec<(f64, &'a Factor)>> {
    let mut place: HashMap<usize, usize> = HashMap::new();
    let mut groups: Vec<Vec<(f64, &Factor)>> = Vec::new();
    for &(w, f) in active {
        let at = *place.entry(f.name()).or_insert(groups.len());
        if at == groups.len() {
            groups.push(Vec::new());
        }
        groups[at].push((w, f));
    }
    groups
}

/// a rᵀ.
pub(super) fn times_transposed(a: &Matrix, r: &Matrix) -> Matrix {
    Matrix::from_parts(a.rows(), r.rows(), product(a.data(), a.rows(), r.data(), r.rows()))
}

/// Rows √w R_m of all terms of one basis; `None` where it is the only term and R = I.
fn stacked(group: &[(f64, &Factor)]) -> Option<Matrix> {
    let cols = group[0].1.coords()?.cols();
    let mut data = Vec::new();
    for (w, r) in group.iter().filter_map(|(w, f)| f.coords().map(|r| (w.sqrt(), r))) {
        data.extend(r.data().iter().map(|x| w * x));
    }
    let mut out = Matrix::zeros(data.len() / cols, cols);
    out.data_mut().copy_from_slice(&data);
    Some(out)
}

/// W = Sᵀ S.
fn gathered(s: &Matrix) -> Matrix {
    let (rows, cols) = (s.rows(), s.cols());
    let transposed = s.transposed();
    let mut out = Matrix::zeros(cols, cols);
    gemm_nt(cols, cols, rows, transposed.data(), transposed.data(), out.data_mut(), cols);
    out
}

/// Precision of sums.
trait Real: Copy + Default + Send + Sync + 'static {
    fn of(numbers: &[f64]) -> Cow<'_, [Self]>;
    fn scaled(self, weight: f64) -> Self;
    /// c ← c + a bᵀ for row-major a (m × k), b (n × k), c (m × n).
    fn gemm_nt(m: usize, n: usize, k: usize, a: &[Self], b: &[Self], c: &mut [Self]);
    /// The same for c in double precision with a row stride.
    fn add_product(m: usize, n: usize, k: usize, a: &[Self], b: &[Self], c: &mut [f64], c_stride: usize);
}

impl Real for f64 {
    fn of(numbers: &[f64]) -> Cow<'_, [Self]> {
        Cow::Borrowed(numbers)
    }

    fn scaled(self, weight: f64) -> Self {
        weight * self
    }

    fn gemm_nt(m: usize, n: usize, k: usize, a: &[Self], b: &[Self], c: &mut [Self]) {
        gemm_nt(m, n, k, a, b, c, n);
    }

    fn add_product(m: usize, n: usize, k: usize, a: &[Self], b: &[Self], c: &mut [f64], c_stride: usize) {
        gemm_nt(m, n, k, a, b, c, c_stride);
    }
}

impl Real for f32 {
    fn of(numbers: &[f64]) -> Cow<'_, [Self]> {
        Cow::Owned(numbers.iter().map(|&x| x as Self).collect())
    }

    fn scaled(self, weight: f64) -> Self {
        weight as Self * self
    }

    fn gemm_nt(m: usize, n: usize, k: usize, a: &[Self], b: &[Self], c: &mut [Self]) {
        gemm_nt_single(m, n, k, a, b, c);
    }

    fn add_product(m: usize, n: usize, k: usize, a: &[Self], b: &[Self], c: &mut [f64], c_stride: usize) {
        let mut own = vec![0.0; m * n];
        gemm_nt_single(m, n, k, a, b, &mut own);
        for (c, own) in c.chunks_mut(c_stride).zip(own.chunks_exact(n)) {
            c.iter_mut().zip(own).for_each(|(c, x)| *c += f64::from(*x));
        }
    }
}

/// a rᵀ for row-major a with n rows and r with `cols`.
fn product<T: Real>(a: &[T], n: usize, r: &[T], cols: usize) -> Vec<T> {
    let (mut out, depth) = (vec![T::default(); n * cols], a.len() / n.max(1));
    if cols > 0 && depth > 0 {
        out.par_chunks_mut(TALL * cols).zip(a.par_chunks(TALL * depth)).for_each(|(out, a)| {
            T::gemm_nt(out.len() / cols, cols, depth, a, r, out);
        });
    }
    out
}

/// The terms of one basis as U Vᵀ.
struct Panel<'a, T: Real> {
    cols: usize,
    /// V.
    plain: Cow<'a, [T]>,
    /// U, where it is not a multiple of V.
    weighted: Option<Vec<T>>,
    weight: f64,
}

impl<'a, T: Real> Panel<'a, T> {
    /// With S of the terms, see [`stacked`], or the weight of the only one.
    fn new(basis: &'a Matrix, s: std::result::Result<&Matrix, f64>) -> Self {
        let (plain, cols) = (T::of(basis.data()), basis.cols());
        match s {
            Err(weight) => Self { cols, plain, weighted: None, weight },
            Ok(s) if s.rows() < s.cols() => Self::thin(basis, s),
            Ok(s) => {
                let (turned, mut w) = (s.transposed(), vec![T::default(); cols * cols]);
                let turned = T::of(turned.data());
                T::gemm_nt(cols, cols, s.rows(), &turned, &turned, &mut w);
                let weighted = Some(product(&plain, basis.rows(), &w, cols));
                Self { cols, plain, weighted, weight: 1.0 }
            }
        }
    }

    /// B SᵀS Bᵀ with few rows of S.
    fn thin(basis: &Matrix, s: &Matrix) -> Self {
        let plain = product(&T::of(basis.data()), basis.rows(), &T::of(s.data()), s.rows());
        Self { cols: s.rows(), plain: Cow::Owned(plain), weighted: None, weight: 1.0 }
    }
}

/// out += Σ weight · L Lᵀ on the lower triangle, as few large products.
pub fn add<'a>(active: &[(f64, &'a Factor)], out: &mut Gram) {
    let groups = by_basis(active);
    let panel = |group: &Vec<(f64, &'a Factor)>| -> Panel<'a, f64> {
        let s = stacked(group).ok_or(group[0].0);
        Panel::new(group[0].1.basis(), s.as_ref().map_err(|w| *w))
    };
    add_all(groups.iter().map(panel), out);
}

/// In single precision, and a share of the trace may be left out: terms that hardly count, and of a basis that others share what hardly
/// counts.
pub fn add_rough<'a>(active: &[(f64, &'a Factor)], share: f64, out: &mut Gram) {
    let traces: Vec<f64> = active.iter().map(|(w, f)| w * f.trace_of_square()).collect();
    let allowed = 0.5 * share * traces.iter().sum::<f64>();
    let least = allowed / traces.len().max(1) as f64;
    let kept: Vec<(f64, &'a Factor)> =
        active.iter().zip(&traces).filter(|(_, t)| **t > least).map(|(f, _)| *f).collect();
    let groups = by_basis(&kept);
    let left_out = allowed / groups.len().max(1) as f64;
    let panel = |group: &Vec<(f64, &'a Factor)>| -> Panel<'a, f32> {
        let basis = group[0].1.basis();
        let Some(s) = stacked(group) else { return Panel::new(basis, Err(group[0].0)) };
        let thin = root_to(&gathered(&s), left_out / dot(s.data(), s.data()));
        Panel::thin(basis, &thin.unwrap_or(s))
    };
    add_all(groups.iter().map(panel), out);
}

fn add_all<'a, T: Real>(panels: impl Iterator<Item = Panel<'a, T>>, out: &mut Gram) {
    let (mut now, mut depth): (Vec<Panel<'_, T>>, usize) = (Vec::new(), 0);
    let mut room = [Vec::new(), Vec::new()];
    for panel in panels {
        if depth > 0 && depth + panel.cols > DEPTH {
            add_panels(&now, depth, &mut room, out);
            (now, depth) = (Vec::new(), 0);
        }
        depth += panel.cols;
        now.push(panel);
    }
    add_panels(&now, depth, &mut room, out);
}

/// U and V of all panels are gathered in `room`.
fn add_panels<T: Real>(panels: &[Panel<'_, T>], depth: usize, room: &mut [Vec<T>; 2], out: &mut Gram) {
    let n = out.n();
    if depth == 0 {
        return;
    }
    let [plain, weighted] = room;
    plain.resize(n * depth, T::default());
    weighted.resize(n * depth, T::default());
    plain.par_chunks_mut(depth).zip(weighted.par_chunks_mut(depth)).enumerate().for_each(|(i, (plain, weighted))| {
        let mut at = 0;
        for p in panels {
            let (own, row) = (i * p.cols..(i + 1) * p.cols, at..at + p.cols);
            plain[row.clone()].copy_from_slice(&p.plain[own.clone()]);
            match &p.weighted {
                Some(u) => weighted[row].copy_from_slice(&u[own]),
                None => weighted[row].iter_mut().zip(&p.plain[own]).for_each(|(w, x)| *w = x.scaled(p.weight)),
            }
            at += p.cols;
        }
    });
    out.data_mut().par_chunks_mut(ROWS * n).enumerate().for_each(|(b, rows)| {
        let (first, count) = (b * ROWS, rows.len() / n);
        T::add_product(count, first + count, depth, &weighted[first * depth..], plain, rows, n);
    });
}

/// Mean diagonals for which no entry that counts over- or underflows.
const SINGLE: std::ops::Range<f64> = 1e-20..1e20;

/// A combined kernel computed in single precision, for solvers that correct their course with exact products.
#[derive(Debug, Clone)]
pub struct Near {
    rows: Gram,
    /// The terms that are matrices, and those that are factors.
    rest: Option<Gram>,
    factors: LowRank,
}

impl Near {
    /// Of at least one factor, and the lower triangle of the sum of other terms; `None` where single precision ends.
    pub fn new(active: &[(f64, &Factor)], rest: Option<Gram>, n: usize) -> Option<Self> {
        let part = |group: &Vec<(f64, &Factor)>| (Arc::clone(group[0].1.basis()), stacked(group).ok_or(group[0].0));
        let factors = LowRank { parts: by_basis(active).iter().map(part).collect() };
        let mut rows = rest.clone().unwrap_or_else(|| Gram::zeros(n));
        let panels = factors.parts.iter().map(|(basis, s)| Panel::<f32>::new(basis, s.as_ref().map_err(|w| *w)));
        add_all(panels, &mut rows);
        let size = (0..n).map(|i| rows.row(i)[i]).sum::<f64>() / n as f64;
        if !SINGLE.contains(&size) {
            return None;
        }
        rows.mirror();
        let rest = rest.map(|mut rest| {
            rest.mirror();
            rest
        });
        Some(Self { rows, rest, factors })
    }

    /// Every entry, to single precision.
    pub fn rows(&self) -> &Gram {
        &self.rows
    }

    /// K v, to double precision.
    pub fn times(&self, v: &[f64]) -> Vec<f64> {
        let mut out = self.factors.times(v);
        if let Some(rest) = &self.rest {
            axpy(1.0, &rest.times(v), &mut out);
        }
        out
    }
}

/// Σ weight · L Lᵀ as one small matrix per basis: K = Σ B W Bᵀ.
#[derive(Debug, Clone)]
pub struct LowRank {
    /// B, and S with W = SᵀS; without S, W is a multiple of the identity.
    parts: Vec<(Arc<Matrix>, std::result::Result<Matrix, f64>)>,
}

impl LowRank {
    /// Of at least one term.
    pub fn new(active: &[(f64, &Factor)]) -> Self {
        let part = |group: &Vec<(f64, &Factor)>| {
            let s = stacked(group).ok_or(group[0].0);
            (Arc::clone(group[0].1.basis()), s.map(|s| if s.rows() > s.cols() { root(&gathered(&s)) } else { s }))
        };
        Self { parts: by_basis(active).iter().map(part).collect() }
    }

    /// Number of samples.
    pub fn n(&self) -> usize {
        self.parts[0].0.rows()
    }

    /// Columns of the factor with nothing left out, at most.
    pub fn rank(&self) -> usize {
        self.parts.iter().map(|(b, s)| s.as_ref().map_or(b.cols(), Matrix::rows)).sum()
    }

    /// K v.
    pub fn times(&self, v: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; v.len()];
        for (basis, s) in &self.parts {
            let u = basis.transposed_times(v);
            let w = match s {
                Err(weight) => u.iter().map(|u| weight * u).collect(),
                Ok(s) => s.transposed_times(&s.times(&u)),
            };
            axpy(1.0, &basis.times(&w), &mut out);
        }
        out
    }

    /// The same for the rows `index` alone.
    #[must_use]
    pub fn select(&self, index: &[usize]) -> Self {
        let parts = self.parts.iter().map(|(b, s)| (Arc::new(b.select_rows(index)), s.clone()));
        Self { parts: parts.collect() }
    }

    /// F with F Fᵀ ≈ K: of every basis, whose columns should be orthonormal, the share `tolerance` of the whole trace may be left out.
    pub fn thin(&self, tolerance: f64) -> Matrix {
        self.thinner(tolerance).beside(&[], Vec::new())
    }

    /// The same kernel with as many rows of S as [`LowRank::thin`] has columns.
    #[must_use]
    pub fn thinner(&self, tolerance: f64) -> Self {
        if tolerance <= EXACT {
            return self.clone();
        }
        let traces: Vec<f64> = self
            .parts
            .iter()
            .map(|(b, s)| match s {
                Err(weight) => weight * dot(b.data(), b.data()),
                Ok(s) => dot(s.data(), s.data()),
            })
            .collect();
        let allowed = tolerance * traces.iter().sum::<f64>() / traces.len() as f64;
        // Small rows of S are merged into few: W = SᵀS by pivots, largest first.
        let thinned = |s: &Matrix, trace: f64| {
            root_to(&gathered(s), allowed / trace.max(f64::MIN_POSITIVE)).unwrap_or_else(|| s.clone())
        };
        let part = |((basis, s), trace): (&(Arc<Matrix>, std::result::Result<Matrix, f64>), &f64)| {
            (Arc::clone(basis), s.as_ref().map(|s| thinned(s, *trace)).map_err(|w| *w))
        };
        Self { parts: self.parts.iter().zip(&traces).map(part).collect() }
    }

    /// F with F Fᵀ = K and more columns beside it, in memory that may be there already.
    pub fn beside(&self, more: &[&Matrix], mut room: Vec<f64>) -> Matrix {
        let (n, cols) = (self.n(), self.rank() + more.iter().map(|m| m.cols()).sum::<usize>());
        room.resize(n * cols, 0.0);
        room.par_chunks_mut(TALL * cols.max(1)).enumerate().for_each(|(b, rows)| {
            let (first, count, mut at) = (b * TALL, rows.len() / cols, 0);
            rows.fill(0.0);
            for (basis, s) in &self.parts {
                let depth = basis.cols();
                match s {
                    Ok(s) => {
                        gemm_nt(
                            count,
                            s.rows(),
                            depth,
                            &basis.data()[first * depth..],
                            s.data(),
                            &mut rows[at..],
                            cols,
                        );
                        at += s.rows();
                    }
                    Err(weight) => {
                        for (i, row) in rows.chunks_exact_mut(cols).enumerate() {
                            let own = row[at..at + depth].iter_mut().zip(basis.row(first + i));
                            own.for_each(|(o, x)| *o = weight.sqrt() * x);
                        }
                        at += depth;
                    }
                }
            }
            for m in more {
                let rows = rows.chunks_exact_mut(cols).enumerate();
                rows.for_each(|(i, row)| row[at..at + m.cols()].copy_from_slice(m.row(first + i)));
                at += m.cols();
            }
        });
        Matrix::from_parts(n, cols, room)
    }
}

/// All columns of some matrices.
pub(super) fn side_by_side(blocks: &[Matrix]) -> Matrix {
    let (n, cols) = (blocks.first().map_or(0, Matrix::rows), blocks.iter().map(Matrix::cols).sum::<usize>());
    let mut out = Matrix::zeros(n, cols);
    out.data_mut().par_chunks_mut(cols.max(1)).enumerate().for_each(|(i, row)| {
        let mut at = 0;
        for b in blocks {
            row[at..at + b.cols()].copy_from_slice(b.row(i));
            at += b.cols();
        }
    });
    out
}

/// Tolerance at which nothing is left out.
pub const EXACT: f64 = 1e-15;

/// S with SᵀS = W.
fn root(w: &Matrix) -> Matrix {
    root_to(w, EXACT).unwrap_or_else(|| w.clone())
}

/// S with SᵀS ≈ W, a share of the trace left out: rows of S are columns of a pivoted Cholesky factor.
fn root_to(w: &Matrix, tolerance: f64) -> Option<Matrix> {
    let diagonal: Vec<f64> = (0..w.rows()).map(|i| w[(i, i)]).collect();
    let limit = RankLimit { tolerance: tolerance.max(EXACT), max_rank: w.rows() };
    let c = Factor::pivoted(&diagonal, limit, |j, out| out.copy_from_slice(w.row(j)))?;
    Some(c.rows().transposed())
}

/// Bᵀ a for the bases of some factors.
pub struct Projected {
    inside: HashMap<usize, Vec<f64>>,
}

impl Projected {
    /// Every basis once.
    pub fn new(factors: &[&Factor], a: &[f64]) -> Self {
        let inside = unique(factors).par_iter().map(|f| (f.name(), project(f.basis(), a))).collect();
        Self { inside }
    }

    /// ‖Lᵀa‖².
    pub fn sq_norm(&self, f: &Factor) -> f64 {
        let inside = &self.inside[&f.name()];
        match f.coords() {
            None => dot(inside, inside),
            Some(r) => (0..r.rows()).map(|j| dot(r.row(j), inside)).map(|x| x * x).sum(),
        }
    }
}

/// K_t a for every term, side by side: a row per sample, a column per term.
pub fn images(grams: &dyn GramSource, a: &[f64]) -> Matrix {
    let (n, terms) = (a.len(), grams.n_terms());
    let numbered: Vec<(f64, &Factor)> =
        (0..terms).filter_map(|t| grams.factor(t).map(|factor| (t as f64, factor))).collect();
    // Of every basis: which columns it fills, and their coordinates in it.
    let groups: Vec<(&Matrix, Vec<usize>, Matrix)> = by_basis(&numbered)
        .iter()
        .map(|group| {
            let basis: &Matrix = group[0].1.basis();
            let inside = basis.transposed_times(a);
            let mut coords = Matrix::zeros(group.len(), basis.cols());
            let rows = coords.data_mut().par_chunks_mut(basis.cols().max(1)).with_min_len(16);
            rows.zip(group).for_each(|(own, (_, f))| match f.coords() {
                None => own.copy_from_slice(&inside),
                Some(r) => (0..r.rows()).for_each(|j| axpy(dot(r.row(j), &inside), r.row(j), own)),
            });
            (basis, group.iter().map(|(t, _)| *t as usize).collect(), coords)
        })
        .collect();
    let dense: Vec<(usize, Vec<f64>)> = (0..terms)
        .into_par_iter()
        .filter(|&t| grams.factor(t).is_none())
        .map(|t| {
            let mut own = vec![0.0; n];
            grams.apply(t, a, &mut own);
            (t, own)
        })
        .collect();
    let mut out = Matrix::zeros(n, terms);
    out.data_mut().par_chunks_mut(TALL * terms.max(1)).enumerate().for_each(|(b, rows)| {
        let (first, count) = (b * TALL, rows.len() / terms);
        for (basis, columns, coords) in &groups {
            let (depth, width) = (basis.cols(), columns.len());
            let mut block = vec![0.0; count * width];
            gemm_nt(count, width, depth, &basis.data()[first * depth..], coords.data(), &mut block, width);
            for (row, own) in rows.chunks_exact_mut(terms).zip(block.chunks_exact(width)) {
                columns.iter().zip(own).for_each(|(&t, x)| row[t] = *x);
            }
        }
        for (i, row) in rows.chunks_exact_mut(terms).enumerate() {
            dense.iter().for_each(|(t, own)| row[*t] = own[first + i]);
        }
    });
    out
}

/// One factor per basis.
fn unique<'a>(factors: &[&'a Factor]) -> Vec<&'a Factor> {
    let mut seen = HashSet::new();
    factors.iter().copied().filter(|f| seen.insert(f.name())).collect()
}

/// Bytes in memory of all bases.
pub fn basis_bytes(factors: &[&Factor]) -> u64 {
    unique(factors).iter().map(|f| f.basis().resident()).sum()
}

/// Bytes of all bases that lie in files.
pub fn file_bytes(factors: &[&Factor]) -> u64 {
    unique(factors).iter().map(|f| size_of_val(f.basis().data()) as u64 - f.basis().resident()).sum()
}

/// Moves the bases of some factors into files.
pub fn to_files(factors: Vec<&mut Factor>) -> Result<()> {
    let mut moved: HashMap<usize, Arc<Matrix>> = HashMap::new();
    for factor in factors {
        let basis = match moved.entry(factor.name()) {
            Entry::Occupied(found) => Arc::clone(found.get()),
            Entry::Vacant(place) => Arc::clone(place.insert(Arc::new(factor.basis().to_file()?))),
        };
        factor.lie_in(basis);
    }
    Ok(())
}
