//! Low-rank terms: K ≈ L Lᵀ by pivoted Cholesky with a certified residual, or by exact monomial
//! features.
//!
//! In: the diagonal of K and a way to get its columns. Out: L (n × r) and the trace of K − L Lᵀ,
//! which is positive semidefinite, so 0 ≤ aᵀ(K − L Lᵀ)a ≤ residual·‖a‖².
//!
//! A new point x has features φ(x) = L_PP⁻¹ k(P, x), P the pivots: the map that made the training
//! rows. So a linear function ⟨w, φ(x)⟩ is Σ_{j∈P} c_j k(x_j, x) with L_PPᵀ c = w.

use std::{borrow::Cow, sync::Arc};

use rayon::prelude::*;

use super::{
    super::Combination,
    Basis,
    pivots::{Pivoted, RankLimit},
};
use crate::{
    linalg::{Matrix, axpy, dot},
    tuning::tuning,
};

tuning! { "factor"
    /// Least number of rows that one task solves for, where a factor is found from landmarks.
    rows_per_task: usize = 64;
}

/// Where the columns of L come from.
#[derive(Debug, Clone, PartialEq)]
enum Map {
    /// Training samples, in the order they were chosen.
    Pivots(Vec<usize>),
    /// Exact features of the kernel.
    Monomials,
    /// Random Fourier features of this seed.
    Waves(u64),
}

/// K ≈ L Lᵀ (normalised), L = B Rᵀ with a basis B that several factors may share.
#[derive(Debug, Clone, PartialEq)]
pub struct Factor {
    /// The columns B of the basis.
    basis: Arc<Basis>,
    /// The coordinates R; `None` means the identity, a basis of its own.
    coords: Option<Arc<Coords>>,
    /// Rows of L at the pivots, where B is shared.
    pivot_rows: Option<Matrix>,
    /// Certified: aᵀKa ≤ ‖Lᵀa‖² + residual·‖a‖². The trace of K − L Lᵀ, and what sharing a basis
    /// and rounding add.
    pub residual: f64,
    map: Map,
    /// The row that centring subtracted from every row.
    mean: Option<Vec<f64>>,
    /// The number by which K was divided.
    divisor: f64,
    /// ‖L‖², where it is known without the columns of L.
    square: Option<f64>,
    /// Sharing a basis may leave out this times the tolerance: less than 1 where normalisation
    /// magnifies what is left out.
    pub(crate) fineness: f64,
}

/// Coordinates of the columns of L in a shared basis.
#[derive(Debug, Clone, PartialEq)]
pub struct Coords {
    /// R, a row per column of L, in the first columns of B.
    pub rows: Matrix,
    /// The lower triangle of RᵀR, row after row.
    pub square: Vec<f64>,
}

impl Coords {
    fn new(rows: Matrix) -> Self {
        let whole = rows.transposed().outer();
        let square = (0..whole.rows()).flat_map(|i| whole.row(i)[..=i].iter().copied()).collect();
        Self { rows, square }
    }

    /// The product R u, for which only the first coordinates of u count.
    pub fn times(&self, u: &[f64]) -> Vec<f64> {
        self.rows.times(&u[..self.rows.cols()])
    }

    /// Adds Rᵀ w to `out`.
    pub fn add_transposed(&self, w: &[f64], out: &mut [f64]) {
        let out = &mut out[..self.rows.cols()];
        w.iter().enumerate().for_each(|(j, w)| axpy(*w, self.rows.row(j), out));
    }
}

impl Factor {
    /// Pivoted Cholesky, the largest residual diagonal first; `None` when the limit is reached or
    /// it can be foreseen. `column(j, out)` writes column j of K.
    pub fn pivoted(
        diagonal: &[f64],
        limit: RankLimit,
        column: impl FnMut(usize, &mut [f64]),
    ) -> Option<Self> {
        let Pivoted { columns, pivots, left } = Pivoted::new(diagonal, limit, column)?;
        // Each diagonal entry was reduced `rank` times, each time with one rounding of its own
        // size.
        let rounding = (pivots.len() + 1) as f64 * f64::EPSILON * diagonal.iter().sum::<f64>();
        Some(Self::own(Basis::from_columns(columns), left + rounding, Map::Pivots(pivots)))
    }

    /// The kernel that agrees with K on all rows against the landmarks, and no other: K_nL K_LL⁻¹
    /// K_Ln (Williams2001), by a pivoted Cholesky of K_LL, so that landmarks that say nothing new
    /// are left out. With the share of the trace that it lacks.
    pub fn landmarks(
        landmarks: &[usize],
        diagonal: &[f64],
        tolerance: f64,
        column: impl Fn(usize, &mut [f64]),
    ) -> Option<(Self, f64)> {
        let (n, limit) = (diagonal.len(), RankLimit { tolerance, max_rank: landmarks.len() });
        let own: Vec<f64> = landmarks.iter().map(|&l| diagonal[l]).collect();
        let mut columns: Vec<Vec<f64>> = Vec::new();
        let inner = Pivoted::new(&own, limit, |j, out| {
            let mut full = vec![0.0; n];
            column(landmarks[j], &mut full);
            out.iter_mut().zip(landmarks).for_each(|(o, &l)| *o = full[l]);
            columns.push(full);
        })?;
        let chosen = &inner.pivots;
        let (triangle, rank) = (inner.columns.select_cols(chosen).transposed(), chosen.len());
        let mut rows = Matrix::zeros(n, rank);
        // Row i solves L_PP f = k(P, x_i), as new rows do.
        rows.data_mut()
            .par_chunks_mut(rank.max(1))
            .with_min_len(TUNING.rows_per_task)
            .enumerate()
            .for_each(|(i, f)| {
                for j in 0..rank {
                    let line = triangle.row(j);
                    f[j] = (columns[j][i] - dot(&line[..j], &f[..j])) / line[j];
                }
            });
        let pivots: Vec<usize> = chosen.iter().map(|&j| landmarks[j]).collect();
        // Rows of pivots are those of the triangle to the last bit, as for new points.
        pivots
            .iter()
            .enumerate()
            .for_each(|(j, &p)| rows.row_mut(p).copy_from_slice(triangle.row(j)));
        let lost: f64 =
            (0..n).map(|i| (diagonal[i] - dot(rows.row(i), rows.row(i))).max(0.0)).sum();
        let trace: f64 = diagonal.iter().sum();
        Some((
            Self::own(Basis::new(rows), 0.0, Map::Pivots(pivots)),
            if trace > 0.0 { lost / trace } else { 0.0 },
        ))
    }

    fn own(frame: Basis, residual: f64, map: Map) -> Self {
        let (basis, coords, pivot_rows) = (Arc::new(frame), None, None);
        Self {
            basis,
            coords,
            pivot_rows,
            residual,
            map,
            mean: None,
            divisor: 1.0,
            square: None,
            fineness: 1.0,
        }
    }

    /// A factor from exact features, one row per sample.
    pub fn monomials(rows: Matrix) -> Self {
        Self::own(Basis::new(rows), 0.0, Map::Monomials)
    }

    /// A factor from random Fourier features of this seed, one row per sample.
    pub fn waves(rows: Matrix, seed: u64) -> Self {
        Self::own(Basis::new(rows), 0.0, Map::Waves(seed))
    }

    /// Bytes that it takes beside its basis.
    pub fn bytes(&self) -> u64 {
        let coords =
            self.coords.iter().map(|c| size_of_val(c.rows.data()) + size_of_val(&c.square[..]));
        let pivots = self.pivot_rows.iter().map(|m| size_of_val(m.data()));
        coords.chain(pivots).sum::<usize>() as u64
    }

    /// Number of samples, the rows of L.
    pub fn n(&self) -> usize {
        self.basis.n()
    }

    /// Number of columns of L.
    pub fn rank(&self) -> usize {
        self.coords.as_ref().map_or(self.basis.cols(), |c| c.rows.rows())
    }

    /// The columns B of the basis.
    pub fn basis(&self) -> &Arc<Basis> {
        &self.basis
    }

    /// Replaces the basis by an equal one that lies elsewhere.
    pub(crate) fn set_basis(&mut self, basis: Arc<Basis>) {
        self.basis = basis;
    }

    /// A number that tells B from the other bases in memory: equal for factors that share it.
    pub fn basis_id(&self) -> usize {
        Arc::as_ptr(&self.basis).addr()
    }

    /// The coordinates R, where B is shared.
    pub fn coords(&self) -> Option<&Coords> {
        self.coords.as_deref()
    }

    /// The whole of L, a row per sample.
    pub fn rows(&self) -> Cow<'_, Matrix> {
        match &self.coords {
            None => self.basis.rows(),
            Some(c) => Cow::Owned(self.basis.rows().times_transposed(&c.rows)),
        }
    }

    /// Row i of L.
    pub fn row(&self, i: usize) -> Cow<'_, [f64]> {
        let own = self.basis.row(i);
        match &self.coords {
            None => own,
            Some(c) => Cow::Owned(c.times(&own)),
        }
    }

    /// Moves the factor into a shared basis: L ≈ B Rᵀ up to `error` in the Frobenius norm.
    pub(crate) fn move_into(&mut self, basis: &Arc<Basis>, coords: Matrix, error: f64) {
        if let Map::Pivots(pivots) = &self.map {
            self.pivot_rows = Some(self.rows().select_rows(pivots));
        }
        // ‖Lᵀa‖² ≤ (‖(B Rᵀ)ᵀa‖ + error ‖a‖)².
        let square = self.trace_of_square();
        let size = square.sqrt();
        self.square = Some(square);
        self.residual += error * (2.0 * size + error);
        (self.basis, self.coords) = (Arc::clone(basis), Some(Arc::new(Coords::new(coords))));
    }

    /// ‖L‖², the trace of L Lᵀ.
    pub fn trace_of_square(&self) -> f64 {
        self.square.unwrap_or_else(|| {
            let whole = |c: &Arc<Coords>| {
                let rows = self.basis.rows().times_transposed(&c.rows);
                dot(rows.data(), rows.data())
            };
            self.coords.as_ref().map_or_else(|| self.basis.squares().iter().sum(), whole)
        })
    }

    /// Σ_j (L Lᵀ)_ij for every i.
    pub fn row_sums(&self) -> Vec<f64> {
        let mut out = vec![0.0; self.n()];
        self.times(&self.project(&vec![1.0; self.n()]), &mut out);
        out
    }

    /// out = L w.
    pub fn times(&self, w: &[f64], out: &mut [f64]) {
        let mut inside = Vec::new();
        let w = match &self.coords {
            None => w,
            Some(c) => {
                inside.resize(self.basis.cols(), 0.0);
                c.add_transposed(w, &mut inside);
                &inside
            }
        };
        out.copy_from_slice(&self.basis.times(w));
    }

    /// T v for the lower triangle T of L Lᵀ: row i of it meets v in ⟨L_i, Σ_{j ≤ i} v_j L_j⟩.
    pub fn triangle_times(&self, v: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; v.len()];
        let columns = match &self.coords {
            None => self.basis.column_major(),
            Some(_) => Cow::Owned(self.rows().transposed().into_numbers()),
        };
        let (fours, rest) = columns.split_at(self.rank() / 4 * 4 * v.len());
        fours.chunks_exact(4 * v.len()).for_each(|four| add_triangle::<4>(four, v, &mut out));
        rest.chunks_exact(v.len()).for_each(|one| add_triangle::<1>(one, v, &mut out));
        out
    }

    /// K ← K / divisor; only before the basis is shared.
    pub fn scale(&mut self, divisor: f64) {
        Arc::make_mut(&mut self.basis).divide(divisor.sqrt());
        self.residual /= divisor;
        self.divisor *= divisor;
    }

    /// K ← H K H; only before the basis is shared.
    pub fn center(&mut self) {
        let n = self.n();
        let mut mean = self.project(&vec![1.0; n]);
        mean.iter_mut().for_each(|m| *m /= n as f64);
        Arc::make_mut(&mut self.basis).subtract(&mean);
        self.mean = Some(mean);
        // The part that all entries had in common is gone.
        self.fineness = 1.0;
    }

    /// The factor of diag(s) K diag(s), for solvers: it has no extension to new points of its own.
    /// `basis` is diag(s) B.
    #[must_use]
    pub fn scaled(&self, s: &[f64], basis: Arc<Basis>) -> Self {
        let largest = s.iter().fold(0.0f64, |m, s| m.max(s * s));
        Self {
            basis,
            residual: self.residual * largest,
            pivot_rows: None,
            square: None,
            ..self.clone()
        }
    }

    /// The factor of diag(s) K diag(s) with a basis of its own, as wide as L.
    #[must_use]
    pub fn scaled_alone(&self, s: &[f64]) -> Self {
        let alone = match &self.coords {
            None => self.basis.scale_rows(s),
            Some(_) => Basis::new(self.rows().scale_rows(s)),
        };
        Self { coords: None, ..self.scaled(s, Arc::new(alone)) }
    }

    /// The product Lᵀ a.
    pub fn project(&self, a: &[f64]) -> Vec<f64> {
        let projected = self.basis.transposed_times(a);
        match &self.coords {
            None => projected,
            Some(c) => c.times(&projected),
        }
    }

    /// The function Σ_i a_i k(x_i, ·) of the factored kernel, for new points: its varying part and
    /// its constant part.
    pub fn extension(&self, a: &[f64]) -> (Combination, f64) {
        let mut w = self.project(a);
        let offset = self.mean.as_ref().map_or(0.0, |mean| -dot(mean, &w));
        let Map::Pivots(pivots) = &self.map else {
            // Features of the normalised kernel are the raw ones over √divisor.
            let root = self.divisor.sqrt();
            w.iter_mut().for_each(|w| *w /= root);
            let combination = match self.map {
                Map::Waves(seed) => Combination::Waves { coef: w, seed },
                _ => Combination::Monomials { coef: w },
            };
            return (combination, offset);
        };
        // L_PPᵀ c = w, from the last pivot to the first.
        for j in (0..w.len()).rev() {
            let kept = self.pivot_rows.as_ref().map(|rows| Cow::Borrowed(rows.row(j)));
            let mut row = kept.unwrap_or_else(|| self.basis.row(pivots[j])).into_owned();
            if let Some(mean) = &self.mean {
                axpy(1.0, mean, &mut row);
            }
            w[j] /= row[j];
            let c = w[j];
            axpy(-c, &row[..j], &mut w[..j]);
        }
        w.iter_mut().for_each(|c| *c /= self.divisor);
        (Combination::Samples { index: pivots.clone(), coef: w }, offset)
    }
}

/// out += T v for the lower triangle T of Σ c cᵀ over some columns, all sums on their way at once.
fn add_triangle<const N: usize>(columns: &[f64], v: &[f64], out: &mut [f64]) {
    let (columns, mut sums): ([&[f64]; N], _) =
        (std::array::from_fn(|k| &columns[k * v.len()..(k + 1) * v.len()]), [0.0; N]);
    for (i, (v, out)) in v.iter().zip(out).enumerate() {
        for k in 0..N {
            sums[k] += v * columns[k][i];
            *out += columns[k][i] * sums[k];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::Function;

    fn line(n: usize) -> Matrix {
        Matrix::new(n, 1, (0..n).map(|i| (i as f64 * 0.77).sin() * 2.0).collect()).unwrap()
    }

    #[test]
    fn residual_bounds_the_error_and_extension_reproduces_training_rows() {
        let (x, f) = (line(60), Function::Rbf { width: 1.0 });
        let k = f.block(&x, &x);
        for (tolerance, center) in [(1e-3, false), (1e-8, false), (1e-12, true)] {
            let limit = RankLimit { tolerance, max_rank: 60 };
            let mut l =
                Factor::pivoted(&f.diagonal(&x), limit, |j, out| f.row(x.row(j), &x, out)).unwrap();
            assert!(l.residual <= 1.01 * tolerance * 60.0);
            let error = |i: usize, j: usize, l: &Factor| k[(i, j)] - dot(&l.row(i), &l.row(j));
            let trace: f64 = (0..60).map(|i| error(i, i, &l)).sum();
            assert!(trace <= l.residual && (0..60).all(|i| error(i, i, &l) >= -1e-14));
            l.scale(2.5);
            if center {
                l.center();
            }
            let a: Vec<f64> = (0..60).map(|i| f64::from(i % 7) - 3.0).collect();
            let w = l.project(&a);
            let (Combination::Samples { index, coef }, offset) = l.extension(&a) else { panic!() };
            for i in 0..60 {
                let ours: f64 =
                    index.iter().zip(&coef).map(|(&j, c)| c * k[(i, j)]).sum::<f64>() + offset;
                assert!((ours - dot(&l.row(i), &w)).abs() < 1e-8, "row {i}");
            }
        }
    }

    #[test]
    fn full_rank_is_refused_early() {
        let x = line(400);
        let f = Function::Laplace { width: 1e-3 };
        let mut columns = 0;
        let limit = RankLimit { tolerance: 1e-10, max_rank: 100 };
        let got = Factor::pivoted(&f.diagonal(&x), limit, |j, out| {
            columns += 1;
            f.row(x.row(j), &x, out);
        });
        assert!(got.is_none() && columns < 40, "{columns} columns were computed");
    }
}
