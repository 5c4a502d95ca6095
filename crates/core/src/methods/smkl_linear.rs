//! Sparse selection of feature groups in a linear model: SMKL without kernels, for the squared
//! loss.
//!
//! Solves  min over w, b :  L(w, b) = g(r) + C Σ_i ½ (⟨w, x_i⟩ + b − y_i)²,
//!   r_k = Σ_{j in group k} w_j²,
//! to a stationary point, g a sum of group selection terms ([`Penalty`]).
//! In: X, y, a group per column, g, C.   Out: w, b, β, the value L.
//!   Paper: [Subrahmanya2010] Algorithm 1; page docs/methods/smkl.md.
//!
//! The paper's quadratic bound ½ Σ_j C_j w_j² with C_j = 1/β_k for j in group k makes each step a
//! diagonal ridge. It is solved in the
//! scaled variables v = S⁻¹w, S = diag(√β), so a group that is out (C_j = ∞) costs nothing:
//!   w = S (I + C Z'Z)⁻¹ C Z'y,  Z = X S, columns
//! and y centred, which removes b. With one linear kernel per group the kernel version takes the
//! same steps.

use super::smkl::{Threshold, relative_change};
use crate::{
    Error, Result,
    linalg::{Cholesky, Matrix, axpy, dot, gemm_nt},
    outer::Recorder,
    trace::{IterRecord, Observer, Status},
    weights::Penalty,
};

/// A table whose columns fall into groups.
#[derive(Debug, Clone, Copy)]
pub struct GroupedFeatures<'a> {
    /// Rows are samples.
    pub x: &'a Matrix,
    /// The targets y.
    pub y: &'a [f64],
    /// Group of every column, counted from 0 without gaps.
    pub groups: &'a [usize],
}

/// A linear model of few groups.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupedFit {
    /// The coefficients w, one per column; exact zeros where a group is out.
    pub coef: Vec<f64>,
    /// The intercept b.
    pub intercept: f64,
    /// The weight β of every group, as used in the last solve.
    pub weights: Vec<f64>,
    /// The objective L.
    pub value: f64,
    /// How the run ended.
    pub status: Status,
    /// One record per iteration: L, and ‖Δβ‖₁/‖β‖₁ in place of a gap.
    pub trace: Vec<IterRecord>,
}

impl GroupedFeatures<'_> {
    /// Iterates from equal weights, as the kernel version does, until ‖Δβ‖₁ ≤ tol ‖β‖₁.
    pub fn fit(
        &self,
        penalty: &Penalty,
        c: f64,
        tol: f64,
        max_iter: usize,
        observer: &mut dyn Observer,
    ) -> Result<GroupedFit> {
        let centred = Centred::new(self, penalty, c)?;
        let mut recorder = Recorder::new(observer);
        let mut beta = vec![1.0 / centred.n_groups as f64; centred.n_groups];
        let (mut step, mut status) = loop {
            let step = centred.solve(penalty, &beta)?;
            // [Subrahmanya2010] Algorithm 1: C_j(ŵ) from Table 1.
            let next = penalty.advance(&step.norms, &beta, false);
            let gap = relative_change(&next, &beta);
            let active = beta.iter().filter(|b| **b > 0.0).count();
            recorder.record(step.value, f64::NAN, gap, active);
            if Threshold::passed(penalty, &next, &step.norms, step.loss, centred.constant()) {
                return Err(Threshold::of(&centred.slopes(), penalty).error(c));
            }
            if gap <= tol {
                break (step, Status::Stationary);
            }
            if recorder.stopped || recorder.trace.len() >= max_iter {
                break (step, recorder.status_at_rest(false));
            }
            beta = next;
        };
        if let Some(kept) = penalty.prune(&step.norms, &beta, status == Status::Stationary) {
            (step, status, beta) = centred.solve_pruned(penalty, kept, status, tol, max_iter)?;
        }
        let trace = recorder.trace;
        let intercept = centred.mean_y - dot(&centred.mean_x, &step.coef);
        Ok(GroupedFit {
            coef: step.coef,
            intercept,
            weights: beta,
            value: step.value,
            status,
            trace,
        })
    }
}

/// Columns and targets with their means taken out.
struct Centred<'a> {
    /// Transposed: row j is column j of X.
    columns: Matrix,
    y: Vec<f64>,
    mean_x: Vec<f64>,
    mean_y: f64,
    groups: &'a [usize],
    n_groups: usize,
    c: f64,
}

/// The diagonal ridge at one β.
struct GroupRidge {
    coef: Vec<f64>,
    norms: Vec<f64>,
    /// The loss C Σ ℓ.
    loss: f64,
    value: f64,
}

impl<'a> Centred<'a> {
    fn new(data: &GroupedFeatures<'a>, penalty: &Penalty, c: f64) -> Result<Self> {
        let (n, d) = (data.x.rows(), data.x.cols());
        if data.y.len() != n || data.groups.len() != d || n == 0 || d == 0 {
            let got =
                format!("{n} × {d} with {} targets and {} groups", data.y.len(), data.groups.len());
            return Err(Error::shape(
                "grouped features",
                "a target per row and a group per column",
                got,
            ));
        }
        if !(c.is_finite() && c > 0.0) {
            return Err(Error::param("C", "a finite number > 0", c));
        }
        let n_groups = data.groups.iter().max().map_or(0, |g| g + 1);
        if let Some(empty) = (0..n_groups).find(|g| !data.groups.contains(g)) {
            return Err(Error::data(
                "groups",
                format!("group {empty} has no column"),
                "count them without gaps",
            ));
        }
        penalty.check(n_groups)?;
        let mean = |v: &[f64]| v.iter().sum::<f64>() / n as f64;
        let (mut columns, mut mean_x) = (Matrix::zeros(d, n), vec![0.0; d]);
        for j in 0..d {
            let column = data.x.column(j);
            mean_x[j] = mean(&column);
            columns.row_mut(j).iter_mut().zip(column).for_each(|(o, x)| *o = x - mean_x[j]);
        }
        let mean_y = mean(data.y);
        let y = data.y.iter().map(|y| y - mean_y).collect();
        Ok(Self { columns, y, mean_x, mean_y, groups: data.groups, n_groups, c })
    }

    /// Solves anew at pruned weights; where the weights before were stationary, until they are so
    /// again.
    fn solve_pruned(
        &self,
        penalty: &Penalty,
        mut beta: Vec<f64>,
        status: Status,
        tol: f64,
        max_iter: usize,
    ) -> Result<(GroupRidge, Status, Vec<f64>)> {
        let mut step = self.solve(penalty, &beta)?;
        for _ in 1..max_iter {
            let next = penalty.advance(&step.norms, &beta, false);
            if status != Status::Stationary || relative_change(&next, &beta) <= tol {
                return Ok((step, status, beta));
            }
            beta = next;
            step = self.solve(penalty, &beta)?;
        }
        let next = penalty.advance(&step.norms, &beta, false);
        let rests = status != Status::Stationary || relative_change(&next, &beta) <= tol;
        Ok((step, if rests { status } else { Status::MaxIterations }, beta))
    }

    /// C Σ ℓ of the best constant.
    fn constant(&self) -> f64 {
        0.5 * self.c * dot(&self.y, &self.y)
    }

    /// ‖C X_k'y‖² of every group: how hard the loss pulls at w = 0.
    fn slopes(&self) -> Vec<f64> {
        let mut out = vec![0.0; self.n_groups];
        for (j, &g) in self.groups.iter().enumerate() {
            out[g] += (self.c * dot(self.columns.row(j), &self.y)).powi(2);
        }
        out
    }

    /// The diagonal ridge for β, by the smaller of the two systems: (I + C Z'Z) v = C Z'y, or v =
    /// Z'u with (I/C + ZZ') u = y.
    fn solve(&self, penalty: &Penalty, beta: &[f64]) -> Result<GroupRidge> {
        let n = self.y.len();
        let active: Vec<usize> =
            (0..self.groups.len()).filter(|&j| beta[self.groups[j]] > 0.0).collect();
        let d = active.len();
        let scale: Vec<f64> = active.iter().map(|&j| beta[self.groups[j]].sqrt()).collect();
        let mut z = Matrix::zeros(d, n);
        for (row, (&j, s)) in active.iter().zip(&scale).enumerate() {
            z.row_mut(row).iter_mut().zip(self.columns.row(j)).for_each(|(z, x)| *z = s * x);
        }
        let project = |u: &[f64]| (0..d).map(|j| dot(z.row(j), u)).collect::<Vec<f64>>();
        let v = if d <= n {
            let mut system = Matrix::zeros(d, d);
            gemm_nt(d, d, n, z.data(), z.data(), system.data_mut(), d);
            system.data_mut().iter_mut().for_each(|x| *x *= self.c);
            (0..d).for_each(|j| system[(j, j)] += 1.0);
            let mut v: Vec<f64> = project(&self.y).iter().map(|x| self.c * x).collect();
            Cholesky::new(system, "the ridge system I + C Z'Z")?.solve(&mut v);
            v
        } else {
            let rows = Matrix::new(n, d, (0..n).flat_map(|i| z.column(i)).collect())?;
            let mut system = Matrix::zeros(n, n);
            gemm_nt(n, n, d, rows.data(), rows.data(), system.data_mut(), n);
            (0..n).for_each(|i| system[(i, i)] += 1.0 / self.c);
            let mut u = self.y.clone();
            Cholesky::new(system, "the ridge system I/C + ZZ'")?.solve(&mut u);
            project(&u)
        };
        let (mut coef, mut norms) = (vec![0.0; self.groups.len()], vec![0.0; self.n_groups]);
        let mut rest = self.y.clone();
        for ((&j, s), v) in active.iter().zip(&scale).zip(v) {
            coef[j] = s * v;
            norms[self.groups[j]] += coef[j] * coef[j];
            axpy(-coef[j], self.columns.row(j), &mut rest);
        }
        let loss = 0.5 * self.c * dot(&rest, &rest);
        let value = penalty.value(&norms) + loss;
        Ok(GroupRidge { coef, norms, loss, value })
    }
}
