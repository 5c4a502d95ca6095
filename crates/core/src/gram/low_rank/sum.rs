//! Sums of low-rank terms: one small matrix per basis that several terms share.
//!
//! Terms L_m = B R_mᵀ in one basis add up to Σ w_m L_m L_mᵀ = B W Bᵀ with the small matrix W = Σ w_m R_mᵀ R_m.

use std::{
    borrow::Borrow,
    collections::{HashMap, HashSet, hash_map::Entry},
    sync::Arc,
};

use rayon::prelude::*;

use super::{
    Basis, Factor, SingleColumns,
    pivots::{Pivoted, RankLimit},
};
use crate::{
    Result,
    linalg::{Matrix, axpy, dot, gemm_nt},
};

/// Rows of a factor that one task makes, and that are there at a time.
const TALL: usize = 256;
const BLOCK: usize = 8192;
/// Bases whose products are summed on their own.
const TOGETHER: usize = 32;
/// Terms that one task prepares at least.
const MANY: usize = 8;

/// Terms by their basis, in the order of first appearance.
pub(crate) fn by_basis<'a>(active: &[(f64, &'a Factor)]) -> Vec<Vec<(f64, &'a Factor)>> {
    let mut place: HashMap<usize, usize> = HashMap::new();
    let mut groups: Vec<Vec<(f64, &Factor)>> = Vec::new();
    for &(w, f) in active {
        let at = *place.entry(f.basis_id()).or_insert(groups.len());
        if at == groups.len() {
            groups.push(Vec::new());
        }
        groups[at].push((w, f));
    }
    groups
}

/// The terms of one basis together: K = B W Bᵀ.
#[derive(Debug, Clone)]
pub(crate) enum Middle {
    /// The only term: W is a multiple of the identity on so many first columns, and 0 on the others.
    Multiple(f64, usize),
    /// W.
    Square(Matrix),
    /// S with W = SᵀS and fewer rows than columns.
    Root(Matrix),
}

impl Middle {
    pub(crate) fn new(group: &[(f64, &Factor)]) -> Self {
        match group[0].1.coords() {
            None => Self::Multiple(group[0].0, group[0].1.basis().cols()),
            Some(_) if depth(group) < group[0].1.basis().cols() => Self::Root(stacked(group)),
            Some(_) => Self::Square(square(group)),
        }
    }

    /// Columns of B, or of a factor.
    pub(crate) fn rank(&self) -> usize {
        match self {
            Self::Root(s) | Self::Square(s) => s.rows(),
            Self::Multiple(_, columns) => *columns,
        }
    }

    /// The trace of B W Bᵀ for orthonormal columns of B, or any columns of the only term.
    pub(crate) fn trace(&self, basis: &Basis) -> f64 {
        match self {
            Self::Multiple(weight, columns) => weight * basis.squares()[..*columns].iter().sum::<f64>(),
            Self::Square(w) => (0..w.rows()).map(|i| w[(i, i)]).sum(),
            Self::Root(s) => dot(s.data(), s.data()),
        }
    }

    /// Weight and squares of the columns of the only term.
    fn squares<'a>(&self, basis: &'a Basis) -> Option<(f64, &'a [f64])> {
        match self {
            Self::Multiple(weight, columns) => Some((*weight, &basis.squares()[..*columns])),
            _ => None,
        }
    }

    /// W u.
    fn times(&self, mut u: Vec<f64>) -> Vec<f64> {
        match self {
            Self::Multiple(weight, columns) => {
                u[..*columns].iter_mut().for_each(|u| *u *= weight);
                u[*columns..].fill(0.0);
                u
            }
            Self::Square(w) => w.times(&u),
            Self::Root(s) => s.transposed_times(&s.times(&u)),
        }
    }

    /// The same as a root with few rows, a share of the trace left out.
    fn truncated(&self, share: f64) -> Self {
        match self {
            Self::Square(w) => Self::Root(root_to(w, share)),
            Self::Root(s) if share > EXACT => Self::Root(root_to(&mirrored(s.transposed().outer()), share)),
            Self::Root(_) | Self::Multiple(..) => self.clone(),
        }
    }
}

/// Columns of all terms of one basis.
fn depth(group: &[(f64, &Factor)]) -> usize {
    group.iter().map(|(_, f)| f.rank()).sum()
}

/// Rows √w R of all terms of one basis.
fn stacked(group: &[(f64, &Factor)]) -> Matrix {
    let mut out = Matrix::zeros(depth(group), group[0].1.basis().cols());
    let rows = group.iter().filter_map(|(w, f)| f.coords().map(|c| (w.sqrt(), &c.rows)));
    let mut at = 0;
    for (w, r) in rows {
        (0..r.rows()).for_each(|j| axpy(w, r.row(j), &mut out.row_mut(at + j)[..r.cols()]));
        at += r.rows();
    }
    out
}

/// W = Σ w RᵀR.
fn square(group: &[(f64, &Factor)]) -> Matrix {
    let cols = group[0].1.basis().cols();
    let mut packed = vec![0.0; cols * (cols + 1) / 2];
    for (w, c) in group.iter().filter_map(|(w, f)| f.coords().map(|c| (*w, c))) {
        axpy(w, &c.square, &mut packed[..c.square.len()]);
    }
    let mut out = Matrix::zeros(cols, cols);
    let mut rest = &packed[..];
    for i in 0..cols {
        let (row, after) = rest.split_at(i + 1);
        out.row_mut(i)[..=i].copy_from_slice(row);
        rest = after;
    }
    mirrored(out)
}

/// Of a lower triangle both.
fn mirrored(mut w: Matrix) -> Matrix {
    for i in 0..w.rows() {
        (0..i).for_each(|j| w[(j, i)] = w[(i, j)]);
    }
    w
}

/// vᵀ L Lᵀ v by the name of the basis, which is L itself.
type Forms = Vec<(usize, f64)>;

/// Σ weight · L Lᵀ as one small matrix per basis: K = Σ B W Bᵀ.
#[derive(Debug, Clone)]
pub struct LowRankSum {
    pub(crate) parts: Vec<(Arc<Basis>, Middle)>,
}

impl LowRankSum {
    /// Of at least one term.
    pub fn new(active: &[(f64, &Factor)]) -> Self {
        let part = |group: &Vec<(f64, &Factor)>| (Arc::clone(group[0].1.basis()), Middle::new(group));
        Self { parts: by_basis(active).par_iter().with_min_len(MANY).map(part).collect() }
    }

    /// [`LowRankSum::rank`] of the same terms, with nothing summed.
    pub fn rank_of(active: &[(f64, &Factor)]) -> usize {
        by_basis(active).iter().map(|group| group[0].1.basis().cols().min(depth(group))).sum()
    }

    /// B and W of every basis.
    pub(crate) fn pieces(&self) -> Vec<(&Basis, &Middle)> {
        self.parts.iter().map(|(basis, inside)| (&**basis, inside)).collect()
    }

    /// tr K.
    pub(crate) fn trace(&self) -> f64 {
        self.parts.iter().map(|(basis, inside)| inside.trace(basis)).sum()
    }

    /// Number of samples.
    pub fn n(&self) -> usize {
        self.parts[0].0.n()
    }

    /// Columns of the factor with nothing left out, at most.
    pub fn rank(&self) -> usize {
        self.parts.iter().map(|(_, inside)| inside.rank()).sum()
    }

    /// K v.
    pub fn times(&self, v: &[f64]) -> Vec<f64> {
        self.times_with_forms(v).0
    }

    /// K v, and the forms of the terms that share no basis.
    pub(crate) fn times_with_forms(&self, v: &[f64]) -> (Vec<f64>, Forms) {
        let sum = |parts: &[(Arc<Basis>, Middle)]| {
            let (mut out, mut forms) = (vec![0.0; v.len()], Vec::new());
            for (basis, inside) in parts {
                let u = basis.transposed_times(v);
                if matches!(inside, Middle::Multiple(..)) {
                    forms.push((Arc::as_ptr(basis).addr(), dot(&u, &u)));
                }
                axpy(1.0, &basis.times(&inside.times(u)), &mut out);
            }
            (out, forms)
        };
        let sums: Vec<(Vec<f64>, Forms)> = self.parts.par_chunks(TOGETHER).map(sum).collect();
        let mut out = vec![0.0; v.len()];
        sums.iter().for_each(|(sum, _)| axpy(1.0, sum, &mut out));
        (out, sums.into_iter().flat_map(|(_, forms)| forms).collect())
    }

    /// The same for the rows `index` alone.
    #[must_use]
    pub fn select(&self, index: &[usize]) -> Self {
        let parts = self.parts.iter().map(|(b, inside)| (Arc::new(b.select_rows(index)), inside.clone()));
        Self { parts: parts.collect() }
    }

    /// F with F Fᵀ ≈ K: of every basis, whose columns should be orthonormal, the share `tolerance` of the whole trace may be left out.
    pub fn truncated_root(&self, tolerance: f64) -> Matrix {
        self.truncated(tolerance).root()
    }

    /// The same kernel with as many rows of S as [`LowRankSum::truncated_root`] has columns.
    #[must_use]
    pub fn truncated(&self, tolerance: f64) -> Self {
        let traces: Vec<f64> = self.parts.iter().map(|(basis, inside)| inside.trace(basis)).collect();
        let allowed = tolerance * traces.iter().sum::<f64>() / traces.len() as f64;
        let share = |trace: f64| if tolerance > EXACT { allowed / trace.max(f64::MIN_POSITIVE) } else { EXACT };
        // Terms with columns of their own leave out those that count least in all of them.
        let alone: Vec<(f64, &[f64])> = self.parts.iter().filter_map(|(b, inside)| inside.squares(b)).collect();
        let least = if tolerance > EXACT { least_of(&alone, allowed * alone.len() as f64) } else { 0.0 };
        let thinner = |((basis, inside), trace): (&(Arc<Basis>, Middle), &f64)| {
            let inside = match inside {
                Middle::Multiple(weight, columns) => {
                    Middle::Multiple(*weight, basis.columns_down_to(least / weight).min(*columns))
                }
                other => other.truncated(share(*trace)),
            };
            (Arc::clone(basis), inside)
        };
        Self { parts: self.parts.par_iter().with_min_len(MANY).zip(&traces).map(thinner).collect() }
    }

    /// F with F Fᵀ = K.
    pub fn root(&self) -> Matrix {
        let roots = self.truncated(EXACT);
        let (n, cols) = (self.n(), roots.rank());
        let mut out = Matrix::zeros(n, cols);
        roots.put(0, &[], out.data_mut(), cols);
        out
    }

    /// F x of the factor that this is as it stands, after [`LowRankSum::truncated`].
    pub fn root_times(&self, x: &[f64]) -> Vec<f64> {
        let (mut out, mut at) = (vec![0.0; self.n()], 0);
        for (basis, inside) in &self.parts {
            let own = &x[at..at + inside.rank()];
            at += own.len();
            match inside {
                Middle::Multiple(weight, _) => {
                    let all: Vec<f64> = own.iter().copied().chain(std::iter::repeat(0.0)).take(basis.cols()).collect();
                    axpy(weight.sqrt(), &basis.times(&all), &mut out);
                }
                Middle::Root(s) | Middle::Square(s) => axpy(1.0, &basis.times(&s.transposed_times(own)), &mut out),
            }
        }
        out
    }

    /// Fᵀ v.
    pub fn root_transposed_times(&self, v: &[f64]) -> Vec<f64> {
        let own = |(basis, inside): &(Arc<Basis>, Middle)| {
            let u = basis.transposed_times(v);
            match inside {
                Middle::Multiple(weight, columns) => u[..*columns].iter().map(|u| weight.sqrt() * u).collect(),
                Middle::Root(s) | Middle::Square(s) => s.times(&u),
            }
        };
        self.parts.iter().flat_map(own).collect()
    }

    /// Eᵀ diag(w) E, the lower triangle, for E = [F more], which is never there as a whole, or is rounded first and kept so.
    pub fn weighted_gram(&self, more: &[&Matrix], w: &[f64], rounded: bool) -> (Matrix, Option<SingleColumns>) {
        let cols = self.rank() + more.iter().map(|m| m.cols()).sum::<usize>();
        let mut kept = rounded.then(|| SingleColumns::with_room(w.len(), cols));
        let (mut out, mut block) = (Matrix::zeros(cols, cols), Matrix::default());
        for (b, w) in w.chunks(BLOCK).enumerate() {
            if block.rows() != w.len() {
                block = Matrix::zeros(w.len(), cols);
            }
            self.put(b * BLOCK, more, block.data_mut(), cols);
            if let Some(kept) = &mut kept {
                kept.push(&mut block);
            }
            block.add_weighted_gram(w, &mut out);
        }
        (out, kept)
    }

    /// Rows of [F more] from `first` on, each with so many columns.
    fn put(&self, first: usize, more: &[&Matrix], out: &mut [f64], cols: usize) {
        out.par_chunks_mut(TALL * cols.max(1)).enumerate().for_each(|(b, rows)| {
            let (first, count, mut at) = (first + b * TALL, rows.len() / cols, 0);
            rows.fill(0.0);
            for (basis, inside) in &self.parts {
                let (depth, width) = (basis.cols(), inside.rank());
                let rows = &mut rows[at..];
                match inside {
                    Middle::Multiple(weight, _) => {
                        for (i, row) in rows.chunks_mut(cols).enumerate() {
                            let own = basis.row(first + i);
                            row[..width].iter_mut().zip(&*own).for_each(|(o, x)| *o = weight.sqrt() * x);
                        }
                    }
                    Middle::Root(s) | Middle::Square(s) => {
                        let basis = basis.rows();
                        gemm_nt(count, width, depth, &basis.data()[first * depth..], s.data(), rows, cols);
                    }
                }
                at += width;
            }
            for m in more {
                let rows = rows.chunks_exact_mut(cols).enumerate();
                rows.for_each(|(i, row)| row[at..at + m.cols()].copy_from_slice(m.row(first + i)));
                at += m.cols();
            }
        });
    }
}

/// All columns of some matrices.
pub(crate) fn side_by_side<M: Borrow<Matrix> + Sync>(blocks: &[M]) -> Matrix {
    let (n, cols) =
        (blocks.first().map_or(0, |b| b.borrow().rows()), blocks.iter().map(|b| b.borrow().cols()).sum::<usize>());
    let mut out = Matrix::zeros(n, cols);
    out.data_mut().par_chunks_mut(cols.max(1)).enumerate().for_each(|(i, row)| {
        let mut at = 0;
        for b in blocks.iter().map(Borrow::borrow) {
            row[at..at + b.cols()].copy_from_slice(b.row(i));
            at += b.cols();
        }
    });
    out
}

/// A weighted square such that those of all columns below it add up to no more than `allowed`, nearly the largest.
fn least_of(columns: &[(f64, &[f64])], allowed: f64) -> f64 {
    // By exponent and two bits more.
    let mut sums = vec![0.0; 1 << 13];
    for (weight, squares) in columns {
        squares.iter().for_each(|s| sums[((weight * s).to_bits() >> 50 & 0x1fff) as usize] += weight * s);
    }
    let mut left = allowed;
    let fits = |sum: &f64| {
        left -= sum;
        left < 0.0
    };
    sums.iter().position(fits).map_or(f64::INFINITY, |at| f64::from_bits((at as u64) << 50))
}

/// Tolerance at which nothing is left out.
pub const EXACT: f64 = 1e-15;

/// S with SᵀS ≈ W, a share of the trace left out: rows of S are columns of a pivoted Cholesky factor.
fn root_to(w: &Matrix, share: f64) -> Matrix {
    let diagonal: Vec<f64> = (0..w.rows()).map(|i| w[(i, i)]).collect();
    let limit = RankLimit { tolerance: share.max(EXACT), max_rank: w.rows() };
    // All of W has its rank at most: there is always a factor.
    Pivoted::new(&diagonal, limit, |j, out| out.copy_from_slice(w.row(j)))
        .map_or_else(|| Matrix::zeros(0, w.cols()), |found| found.columns)
}

/// Bᵀ a for the bases of some factors.
pub struct Projected {
    inside: HashMap<usize, Vec<f64>>,
}

impl Projected {
    /// Of every vector; every basis is read once.
    pub fn each(factors: &[&Factor], vectors: &[Vec<f64>]) -> Vec<Self> {
        let own = |f: &&Factor| vectors.iter().map(|a| f.basis().transposed_times(a)).collect();
        let factors = unique(factors);
        let found: Vec<Vec<Vec<f64>>> = factors.par_iter().with_min_len(MANY).map(own).collect();
        let mut all: Vec<Self> = vectors.iter().map(|_| Self { inside: HashMap::with_capacity(found.len()) }).collect();
        for (f, inside) in factors.iter().zip(found) {
            all.iter_mut().zip(inside).for_each(|(own, inside)| _ = own.inside.insert(f.basis_id(), inside));
        }
        all
    }

    /// ‖Lᵀa‖².
    pub fn sq_norm(&self, f: &Factor) -> f64 {
        let inside = &self.inside[&f.basis_id()];
        match f.coords() {
            None => dot(inside, inside),
            Some(c) => c.times(inside).iter().map(|x| x * x).sum(),
        }
    }
}

/// One factor per basis.
fn unique<'a>(factors: &[&'a Factor]) -> Vec<&'a Factor> {
    let mut seen = HashSet::new();
    factors.iter().copied().filter(|f| seen.insert(f.basis_id())).collect()
}

/// Bytes in memory of all bases.
pub fn basis_bytes(factors: &[&Factor]) -> u64 {
    unique(factors).iter().map(|f| f.basis().bytes()[0]).sum()
}

/// Bytes of all bases that lie in files.
pub fn file_bytes(factors: &[&Factor]) -> u64 {
    let in_file = |[memory, all]: [u64; 2]| all - memory;
    unique(factors).iter().map(|f| in_file(f.basis().bytes())).sum()
}

/// Moves the bases of some factors into files.
pub fn to_files(factors: Vec<&mut Factor>) -> Result<()> {
    let mut moved: HashMap<usize, Arc<Basis>> = HashMap::new();
    for factor in factors {
        let basis = match moved.entry(factor.basis_id()) {
            Entry::Occupied(found) => Arc::clone(found.get()),
            Entry::Vacant(place) => Arc::clone(place.insert(Arc::new(factor.basis().to_file()?))),
        };
        factor.set_basis(basis);
    }
    Ok(())
}
