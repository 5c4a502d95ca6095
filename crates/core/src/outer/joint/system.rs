//! The bordered system of a joint step, in two forms of the same size of answer.

use std::ops::Range;

use rayon::prelude::*;

use super::{
    StepKernel, TUNING, TermImages,
    point::{JointPoint, JointStep},
};
use crate::{
    Result,
    gram::{Gram, LowRankSum, SingleColumns, add_single},
    linalg::{Cholesky, Matrix, axpy, dot},
    machine::Task,
    weights::Separable,
};

/// Diagonals are raised by this share of themselves, so that rounding does not leave the matrix
/// indefinite where weights or the bias are almost undetermined.
const DIAGONAL_GUARD: f64 = 1e-12;
/// What errors call the system.
const WHAT: &str = "the system of a joint step";

/// The linear system of a step at fixed θ and a, factored.
pub(super) struct JointSystem {
    dual_response: Vec<f64>,
    intercept: bool,
    /// φ, φ' and φ'' of all weights, and Λ.
    phi: Vec<[f64; 3]>,
    stiff: Vec<f64>,
    form: SystemForm,
}

/// The two eliminations: over the columns of [F 1 V], or over the rows.
enum SystemForm {
    Columns(ColumnForm),
    Rows(RowForm),
}

/// The system for w, β and δθ: as many equations as columns of [F 1 V].
struct ColumnForm {
    kernel: LowRankSum,
    /// [F 1 V] in single precision, where that is allowed.
    rounded: Option<SingleColumns>,
    /// Number of columns before V.
    first: usize,
    factored: Cholesky,
    /// L⁻¹Φ, a column per group.
    borders: Vec<Vec<f64>>,
    /// The Cholesky factor of ΦᵀG⁻¹Φ.
    corner: Cholesky,
}

/// The system for δa, with S = diag(1/e) + K_θ + V Λ⁻¹ Vᵀ: as many equations as rows.
struct RowForm {
    factored: Cholesky,
    /// The solution S⁻¹1 for the bias.
    ones: Vec<f64>,
    /// U = V Λ⁻¹ Φ, a row per group.
    borders: Vec<Vec<f64>>,
    /// S⁻¹U, a row per group.
    solved: Vec<Vec<f64>>,
    /// ΦᵀΛ⁻¹Φ − UᵀS⁻¹U, factored.
    corner: Cholesky,
}

/// The right-hand sides of the multipliers, the weights and their sums.
struct Right<'a> {
    machine: &'a [f64],
    weights: Vec<f64>,
    /// The sum −Σ a_i that the step has to close.
    sum: f64,
    /// 1 − Σφ of every group.
    open: Vec<f64>,
}

/// δf + β, β, δθ and δλ.
type Answer = (Vec<f64>, f64, Vec<f64>, Vec<f64>);

impl JointSystem {
    pub(super) fn new(
        point: &JointPoint<'_>,
        task: &Task<'_>,
        set: &dyn Separable,
        kernel: StepKernel,
    ) -> Result<Self> {
        let dual_response = point.machine.dual_response();
        let phi: Vec<[f64; 3]> = point.theta.iter().map(|&t| set.phi(t)).collect();
        let mut stiff = vec![0.0; phi.len()];
        for (multiplier, group) in point.multiplier.iter().zip(&point.groups) {
            group
                .clone()
                .for_each(|m| stiff[m] = multiplier * phi[m][2] + point.slack[m] / point.theta[m]);
        }
        let (images, groups) = (&point.images, &point.groups);
        let form = match (kernel, images) {
            (StepKernel::Factor { factor, single }, TermImages::Exact(v))
                if factor.rank() + stiff.len() < factor.n() =>
            {
                let intercept = task.intercept;
                let columns = ColumnForm::new(
                    (factor, single),
                    v,
                    groups,
                    &dual_response,
                    intercept,
                    &stiff,
                    &phi,
                )?;
                SystemForm::Columns(columns)
            }
            (StepKernel::Factor { factor, .. }, _) => {
                let matrix = Gram::from_matrix(factor.root().outer());
                SystemForm::Rows(RowForm::new(
                    images,
                    groups,
                    matrix,
                    &dual_response,
                    &stiff,
                    &phi,
                )?)
            }
            (StepKernel::Matrix(k), _) => {
                SystemForm::Rows(RowForm::new(images, groups, k, &dual_response, &stiff, &phi)?)
            }
        };
        Ok(Self { dual_response, intercept: task.intercept, phi, stiff, form })
    }

    /// Corrections of a step that pay, at most.
    pub(super) fn corrections(&self) -> usize {
        match self.form {
            SystemForm::Columns(_) => TUNING.column_form_corrections,
            SystemForm::Rows(_) => TUNING.row_form_corrections,
        }
    }

    /// The Newton step towards pairs of the machine equal to `goal` and θ ζ equal to `weight_goal`.
    pub(super) fn solve(
        &self,
        point: &JointPoint<'_>,
        decision: &[f64],
        goal: &dyn Fn(usize) -> [f64; 2],
        weight_goal: &dyn Fn(usize) -> f64,
    ) -> JointStep {
        let terms = point.theta.len();
        let target = point.machine.newton_target(decision, &self.dual_response, goal);
        let miss: Vec<f64> =
            (0..terms).map(|m| weight_goal(m) - point.theta[m] * point.slack[m]).collect();
        let (mut weights, mut open) = (vec![0.0; terms], Vec::new());
        for (multiplier, group) in point.multiplier.iter().zip(&point.groups) {
            for m in group.clone() {
                let rest = multiplier * self.phi[m][1] - point.half[m] - point.slack[m];
                weights[m] = miss[m] / point.theta[m] - rest;
            }
            open.push(1.0 - group.clone().map(|m| self.phi[m][0]).sum::<f64>());
        }
        let sum = -point.machine.multipliers().iter().sum::<f64>();
        let right = Right { machine: &target.right, weights, sum, open };
        let (df, bias, theta, multiplier) = self.answer(point, &right);
        let machine = point.machine.changes(&target, &df);
        let slack =
            (0..terms).map(|m| (miss[m] - point.slack[m] * theta[m]) / point.theta[m]).collect();
        JointStep { machine, bias, theta, slack, multiplier }
    }

    fn answer(&self, point: &JointPoint<'_>, right: &Right<'_>) -> Answer {
        match &self.form {
            SystemForm::Columns(columns) => self.answer_by_columns(columns, point, right),
            SystemForm::Rows(rows) => self.answer_by_rows(rows, point, right),
        }
    }

    fn answer_by_columns(
        &self,
        form: &ColumnForm,
        point: &JointPoint<'_>,
        right: &Right<'_>,
    ) -> Answer {
        let ColumnForm { kernel, rounded, first, factored, borders, corner } = form;
        let scaled: Vec<f64> =
            right.machine.iter().zip(&self.dual_response).map(|(r, e)| r * e).collect();
        let exact = || {
            let mut x = kernel.root_transposed_times(&scaled);
            x.extend(self.intercept.then(|| scaled.iter().sum::<f64>()));
            x.extend(point.images.transposed_times(&scaled));
            x
        };
        let mut x = rounded.as_ref().map_or_else(exact, |all| all.transposed_times(&scaled));
        if self.intercept {
            x[first - 1] -= right.sum;
        }
        x[*first..].iter_mut().zip(&right.weights).for_each(|(x, t)| *x += t);
        factored.solve_lower(&mut x);
        let mut multiplier: Vec<f64> =
            borders.iter().zip(&right.open).map(|(b, open)| dot(b, &x) - open).collect();
        corner.solve(&mut multiplier);
        borders.iter().zip(&multiplier).for_each(|(b, p)| axpy(-p, b, &mut x));
        factored.solve_upper(&mut x);
        let bias = if self.intercept { x[first - 1] } else { 0.0 };
        let rounded = rounded.as_ref().map(|all| all.times(&x));
        let theta = x.split_off(*first);
        let df = rounded.unwrap_or_else(|| {
            let mut df = kernel.root_times(&x);
            df.iter_mut().zip(point.images.times(&theta)).for_each(|(f, v)| *f += bias + v);
            df
        });
        (df, bias, theta, multiplier)
    }

    fn answer_by_rows(&self, form: &RowForm, point: &JointPoint<'_>, right: &Right<'_>) -> Answer {
        let RowForm { factored, ones, borders, solved, corner } = form;
        // S δa + β 1 − U δλ = right − V Λ⁻¹ t.
        let soft: Vec<f64> = right.weights.iter().zip(&self.stiff).map(|(t, s)| t / s).collect();
        let mut change = point.images.times(&soft);
        change.iter_mut().zip(right.machine).for_each(|(c, r)| *c = r - *c);
        factored.solve(&mut change);
        // Uᵀδa − ΦᵀΛ⁻¹Φ δλ = open − ΦᵀΛ⁻¹t, and 1ᵀδa = sum.
        let answer =
            |group: &Range<usize>| group.clone().map(|m| self.phi[m][1] * soft[m]).sum::<f64>();
        let missing = point.groups.iter().zip(borders).zip(&right.open);
        let mut multiplier: Vec<f64> =
            missing.map(|((g, u), open)| dot(u, &change) + answer(g) - open).collect();
        corner.solve(&mut multiplier);
        let mut bias = 0.0;
        if self.intercept {
            let mut along: Vec<f64> = borders.iter().map(|u| dot(u, ones)).collect();
            let inside: Vec<f64> = solved.iter().map(|z| z.iter().sum()).collect();
            corner.solve(&mut along);
            let total = change.iter().sum::<f64>() + dot(&inside, &multiplier) - right.sum;
            bias = total / (ones.iter().sum::<f64>() + dot(&inside, &along));
            axpy(-bias, &along, &mut multiplier);
            axpy(-bias, ones, &mut change);
        }
        solved.iter().zip(&multiplier).for_each(|(z, p)| axpy(*p, z, &mut change));
        let mut theta = point.images.transposed_times(&change);
        for (group, p) in point.groups.iter().zip(&multiplier) {
            group.clone().for_each(|m| {
                theta[m] = (theta[m] + right.weights[m] - p * self.phi[m][1]) / self.stiff[m];
            });
        }
        let df = right
            .machine
            .iter()
            .zip(&change)
            .zip(&self.dual_response)
            .map(|((r, a), e)| r - a / e)
            .collect();
        (df, bias, theta, multiplier)
    }
}

impl ColumnForm {
    /// Factors the system from F, its columns in single precision or not, and V.
    fn new(
        (kernel, round): (LowRankSum, bool),
        values: &Matrix,
        groups: &[Range<usize>],
        dual_response: &[f64],
        intercept: bool,
        stiff: &[f64],
        phi: &[[f64; 3]],
    ) -> Result<Self> {
        let (rank, ones) = (
            kernel.rank(),
            Matrix::from_parts(dual_response.len(), 1, vec![1.0; dual_response.len()]),
        );
        let first = rank + usize::from(intercept);
        let more: &[&Matrix] = if intercept { &[&ones, values] } else { &[values] };
        let (mut inner, rounded) = kernel.weighted_gram(more, dual_response, round);
        let cols = inner.cols();
        (0..rank).for_each(|k| inner[(k, k)] += 1.0);
        stiff.iter().enumerate().for_each(|(m, s)| inner[(first + m, first + m)] += s);
        (rank..cols).for_each(|k| inner[(k, k)] *= 1.0 + DIAGONAL_GUARD);
        let factored = Cholesky::new(inner, WHAT)?;
        let border = |group: &Range<usize>| {
            let mut column = vec![0.0; cols];
            group.clone().for_each(|m| column[first + m] = phi[m][1]);
            factored.solve_lower(&mut column);
            column
        };
        let borders: Vec<Vec<f64>> = groups.iter().map(border).collect();
        let corner = Cholesky::new(products(&borders, &borders), WHAT)?;
        Ok(Self { kernel, rounded, first, factored, borders, corner })
    }
}

impl RowForm {
    /// Factors the system from the lower triangle of K_θ.
    fn new(
        values: &TermImages<'_>,
        groups: &[Range<usize>],
        mut kernel: Gram,
        dual_response: &[f64],
        stiff: &[f64],
        phi: &[[f64; 3]],
    ) -> Result<Self> {
        let (n, soft): (usize, Vec<f64>) =
            (dual_response.len(), stiff.iter().map(|s| 1.0 / s.sqrt()).collect());
        match values {
            TermImages::Exact(v) => {
                let mut scaled = v.clone();
                let rows = scaled.data_mut().par_chunks_mut(stiff.len());
                rows.for_each(|row| row.iter_mut().zip(&soft).for_each(|(x, s)| *x *= s));
                axpy(1.0, scaled.outer().data(), kernel.data_mut());
            }
            TermImages::Single { rows, .. } => {
                let mut scaled = rows.clone();
                let rows = scaled.par_chunks_mut(n).zip(&soft);
                rows.for_each(|(row, s)| row.iter_mut().for_each(|x| *x *= *s as f32));
                add_single(&scaled, &mut kernel);
            }
        }
        let mut inner = kernel.into_matrix();
        (0..n).for_each(|i| {
            inner[(i, i)] = inner[(i, i)] * (1.0 + DIAGONAL_GUARD) + 1.0 / dual_response[i];
        });
        let factored = Cholesky::new(inner, WHAT)?;
        let behind = |v: &[f64]| {
            let mut v = v.to_vec();
            factored.solve(&mut v);
            v
        };
        let border = |group: &Range<usize>| {
            let mut column = vec![0.0; stiff.len()];
            group.clone().for_each(|m| column[m] = phi[m][1] / stiff[m]);
            values.times(&column)
        };
        let borders: Vec<Vec<f64>> = groups.iter().map(border).collect();
        let solved: Vec<Vec<f64>> = borders.iter().map(|u| behind(u)).collect();
        let mut corner = products(&borders, &solved);
        corner.data_mut().iter_mut().for_each(|x| *x = -*x);
        for (g, group) in groups.iter().enumerate() {
            let own: f64 = group.clone().map(|m| phi[m][1] * phi[m][1] / stiff[m]).sum();
            corner[(g, g)] += own * (1.0 + DIAGONAL_GUARD);
        }
        let corner = Cholesky::new(corner, WHAT)?;
        Ok(Self { ones: behind(&vec![1.0; n]), factored, borders, solved, corner })
    }
}

/// The inner products of two lists of vectors.
fn products(left: &[Vec<f64>], right: &[Vec<f64>]) -> Matrix {
    let mut out = Matrix::zeros(left.len(), right.len());
    for (j, l) in left.iter().enumerate() {
        right.iter().enumerate().for_each(|(k, r)| out[(j, k)] = dot(l, r));
    }
    out
}
