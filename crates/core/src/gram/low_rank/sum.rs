//! Sums of low-rank terms: one small matrix per basis that several terms share.
//!
//! Terms L_m = B R_mᵀ in one basis add up to Σ w_m L_m L_mᵀ = B W Bᵀ with the small matrix W = Σ
//! w_m R_mᵀ R_m.

use std::{collections::HashMap, sync::Arc};

use rayon::prelude::*;

use super::{
    super::Forms,
    Basis, Factor, SingleColumns,
    middle::{EXACT, Middle, depth},
};
use crate::{
    linalg::{Matrix, axpy, dot, gemm_nt},
    tuning::tuning,
};

tuning! { "low_rank_sum"
    /// Rows of the factor F that one task computes: enough for a matrix product to be fast, few
    /// enough for all threads to have some.
    rows_per_task: usize = 256;
    /// Rows of the factor F that are in memory at a time while Fᵀ diag(w) F is summed.
    rows_at_once: usize = 8192;
    /// Bases whose products with a vector are summed by one task. The number fixes the order of
    /// sums, whatever the number of threads.
    bases_per_task: usize = 32;
    /// Least number of terms that one task prepares: preparing a term alone takes less time than
    /// handing it to a thread.
    terms_per_task: usize = 8;
}

/// Terms grouped by their basis, groups in the order of first appearance.
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

/// The sum K = Σ weight · L Lᵀ over some terms, kept as one small matrix W per basis: K = Σ B W Bᵀ.
#[derive(Debug, Clone)]
pub struct LowRankSum {
    parts: Vec<(Arc<Basis>, Middle)>,
}

impl LowRankSum {
    /// The sum of weighted factors, of which most questions below need at least one.
    pub fn new(active: &[(f64, &Factor)]) -> Self {
        let part =
            |group: &Vec<(f64, &Factor)>| (Arc::clone(group[0].1.basis()), Middle::new(group));
        Self {
            parts: by_basis(active)
                .par_iter()
                .with_min_len(TUNING.terms_per_task)
                .map(part)
                .collect(),
        }
    }

    /// The number that [`LowRankSum::rank`] would be for these terms, found without summing them.
    pub fn rank_of(active: &[(f64, &Factor)]) -> usize {
        by_basis(active).iter().map(|group| group[0].1.basis().cols().min(depth(group))).sum()
    }

    /// Has the sum no term?
    pub(crate) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// The pairs (B, W), a pair per basis.
    pub(crate) fn pieces(&self) -> Vec<(&Basis, &Middle)> {
        self.parts.iter().map(|(basis, middle)| (&**basis, middle)).collect()
    }

    /// The trace of the sum K.
    pub(crate) fn trace(&self) -> f64 {
        self.parts.iter().map(|(basis, middle)| middle.trace(basis)).sum()
    }

    /// Number of samples over which the terms stand.
    pub fn n(&self) -> usize {
        self.parts[0].0.n()
    }

    /// Columns of the factor with nothing left out, at most.
    pub fn rank(&self) -> usize {
        self.parts.iter().map(|(_, middle)| middle.rank()).sum()
    }

    /// The product K v.
    pub fn times(&self, v: &[f64]) -> Vec<f64> {
        self.times_and_squares(v).0
    }

    /// K v, and the forms vᵀ K_t v of the terms that share their basis with no other.
    pub fn times_with_forms(&self, v: &[f64]) -> (Vec<f64>, Forms) {
        let (out, squares) = self.times_and_squares(v);
        (out, Forms::new(squares))
    }

    /// K v, and ‖Bᵀv‖² for the bases of one term.
    fn times_and_squares(&self, v: &[f64]) -> (Vec<f64>, Vec<(&Arc<Basis>, f64)>) {
        let sum = |parts: &'_ [(Arc<Basis>, Middle)]| {
            let (mut out, mut squares) = (vec![0.0; v.len()], Vec::new());
            for (k, (basis, middle)) in parts.iter().enumerate() {
                let u = basis.transposed_times(v);
                if matches!(middle, Middle::Multiple(..)) {
                    squares.push((k, dot(&u, &u)));
                }
                axpy(1.0, &basis.times(&middle.times(u)), &mut out);
            }
            (out, squares)
        };
        let sums: Vec<_> = self.parts.par_chunks(TUNING.bases_per_task).map(sum).collect();
        let mut out = vec![0.0; v.len()];
        sums.iter().for_each(|(sum, _)| axpy(1.0, sum, &mut out));
        let squares = self.parts.chunks(TUNING.bases_per_task).zip(sums);
        let squares = squares
            .flat_map(|(parts, (_, own))| own.into_iter().map(|(k, square)| (&parts[k].0, square)));
        (out, squares.collect())
    }

    /// The principal submatrix of the rows `index`.
    #[must_use]
    pub fn select(&self, index: &[usize]) -> Self {
        let parts =
            self.parts.iter().map(|(b, middle)| (Arc::new(b.select_rows(index)), middle.clone()));
        Self { parts: parts.collect() }
    }

    /// A factor F with F Fᵀ ≈ K, which leaves out at most the share `tolerance` of the trace.
    pub fn truncated_root(&self, tolerance: f64) -> Matrix {
        self.truncated(tolerance).root()
    }

    /// The sum with at most the share `tolerance` of the trace left out, where the columns of a
    /// basis that several terms share are orthonormal. Every W is then a root of few rows.
    #[must_use]
    pub fn truncated(&self, tolerance: f64) -> Self {
        let traces: Vec<f64> =
            self.parts.iter().map(|(basis, middle)| middle.trace(basis)).collect();
        let allowed = tolerance * traces.iter().sum::<f64>() / traces.len() as f64;
        let share = |trace: f64| {
            if tolerance > EXACT { allowed / trace.max(f64::MIN_POSITIVE) } else { EXACT }
        };
        // Terms with columns of their own leave out those that count least in all of them.
        let alone: Vec<(f64, &[f64])> =
            self.parts.iter().filter_map(|(b, middle)| middle.squares(b)).collect();
        let least =
            if tolerance > EXACT { least_of(&alone, allowed * alone.len() as f64) } else { 0.0 };
        let truncated = |((basis, middle), trace): (&(Arc<Basis>, Middle), &f64)| {
            let middle = match middle {
                Middle::Multiple(weight, columns) => {
                    Middle::Multiple(*weight, basis.columns_down_to(least / weight).min(*columns))
                }
                other => other.truncated(share(*trace)),
            };
            (Arc::clone(basis), middle)
        };
        Self {
            parts: self
                .parts
                .par_iter()
                .with_min_len(TUNING.terms_per_task)
                .zip(&traces)
                .map(truncated)
                .collect(),
        }
    }

    /// A factor F with F Fᵀ = K.
    pub fn root(&self) -> Matrix {
        let roots = self.truncated(EXACT);
        let (n, cols) = (self.n(), roots.rank());
        let mut out = Matrix::zeros(n, cols);
        roots.put(0, &[], out.data_mut(), cols);
        out
    }

    /// F x, where K = F Fᵀ is the factorisation by roots that [`LowRankSum::truncated`] leaves.
    pub fn root_times(&self, x: &[f64]) -> Vec<f64> {
        let (mut out, mut at) = (vec![0.0; self.n()], 0);
        for (basis, middle) in &self.parts {
            let own = &x[at..at + middle.rank()];
            at += own.len();
            match middle {
                Middle::Multiple(weight, _) => {
                    let all: Vec<f64> = own
                        .iter()
                        .copied()
                        .chain(std::iter::repeat(0.0))
                        .take(basis.cols())
                        .collect();
                    axpy(weight.sqrt(), &basis.times(&all), &mut out);
                }
                Middle::Root(s) | Middle::Square(s) => {
                    axpy(1.0, &basis.times(&s.transposed_times(own)), &mut out);
                }
            }
        }
        out
    }

    /// Fᵀ v for the factor F of [`LowRankSum::root_times`].
    pub fn root_transposed_times(&self, v: &[f64]) -> Vec<f64> {
        let own = |(basis, middle): &(Arc<Basis>, Middle)| {
            let u = basis.transposed_times(v);
            match middle {
                Middle::Multiple(weight, columns) => {
                    u[..*columns].iter().map(|u| weight.sqrt() * u).collect()
                }
                Middle::Root(s) | Middle::Square(s) => s.times(&u),
            }
        };
        self.parts.iter().flat_map(own).collect()
    }

    /// The lower triangle of Eᵀ diag(w) E for E = [F more]. E is made block by block; with `single`
    /// its entries are rounded to single precision first, and E is returned too.
    pub fn weighted_gram(
        &self,
        more: &[&Matrix],
        w: &[f64],
        single: bool,
    ) -> (Matrix, Option<SingleColumns>) {
        let cols = self.rank() + more.iter().map(|m| m.cols()).sum::<usize>();
        let mut kept = single.then(|| SingleColumns::with_capacity(w.len(), cols));
        let (mut out, mut block) = (Matrix::zeros(cols, cols), Matrix::default());
        for (b, w) in w.chunks(TUNING.rows_at_once).enumerate() {
            if block.rows() != w.len() {
                block = Matrix::zeros(w.len(), cols);
            }
            self.put(b * TUNING.rows_at_once, more, block.data_mut(), cols);
            if let Some(kept) = &mut kept {
                kept.push(&mut block);
            }
            block.add_weighted_gram(w, &mut out);
        }
        (out, kept)
    }

    /// Writes rows of [F more] from row `first` on; each has `cols` columns.
    fn put(&self, first: usize, more: &[&Matrix], out: &mut [f64], cols: usize) {
        out.par_chunks_mut(TUNING.rows_per_task * cols.max(1)).enumerate().for_each(|(b, rows)| {
            let (first, count, mut at) = (first + b * TUNING.rows_per_task, rows.len() / cols, 0);
            rows.fill(0.0);
            for (basis, middle) in &self.parts {
                let (depth, width) = (basis.cols(), middle.rank());
                let rows = &mut rows[at..];
                match middle {
                    Middle::Multiple(weight, _) => {
                        for (i, row) in rows.chunks_mut(cols).enumerate() {
                            let own = basis.row(first + i);
                            row[..width]
                                .iter_mut()
                                .zip(&*own)
                                .for_each(|(o, x)| *o = weight.sqrt() * x);
                        }
                    }
                    Middle::Root(s) | Middle::Square(s) => {
                        let basis = basis.rows();
                        gemm_nt(
                            count,
                            width,
                            depth,
                            &basis.data()[first * depth..],
                            s.data(),
                            rows,
                            cols,
                        );
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

/// A threshold for weighted squares of columns: those below it add up to no more than `allowed`,
/// and it is nearly the largest such number.
fn least_of(columns: &[(f64, &[f64])], allowed: f64) -> f64 {
    // Squares are sorted into bins by their exponent and the first two bits after it.
    let mut sums = vec![0.0; 1 << 13];
    for (weight, squares) in columns {
        squares
            .iter()
            .for_each(|s| sums[((weight * s).to_bits() >> 50 & 0x1fff) as usize] += weight * s);
    }
    let mut left = allowed;
    let fits = |sum: &f64| {
        left -= sum;
        left < 0.0
    };
    sums.iter().position(fits).map_or(f64::INFINITY, |at| f64::from_bits((at as u64) << 50))
}
