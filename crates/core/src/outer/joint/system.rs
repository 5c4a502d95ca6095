//! The bordered system of a joint step, in two forms of the same size of answer.

use std::ops::Range;

use rayon::prelude::*;

use super::{Joint, Kernel, Step, Values};
use crate::{
    Result,
    gram::{Gram, LowRankSum, SingleColumns, add_single},
    linalg::{Cholesky, Matrix, axpy, dot},
    machine::Task,
    weights::Separable,
};

/// Of the diagonal, where weights or the bias are all but undetermined.
const RIDGE: f64 = 1e-12;
const WHAT: &str = "the system of a joint step";

/// What a step solves for fixed θ and a.
pub(super) struct System {
    dual_response: Vec<f64>,
    intercept: bool,
    /// φ, φ' and φ'' of all weights, and Λ.
    phi: Vec<[f64; 3]>,
    stiff: Vec<f64>,
    form: Form,
}

enum Form {
    /// For w, β and δθ: as many equations as columns of [F 1 V].
    Columns {
        /// F, and all columns where rounding is allowed.
        kernel: LowRankSum,
        rounded: Option<SingleColumns>,
        /// Columns before V.
        first: usize,
        factored: Cholesky,
        /// L⁻¹Φ of every group, and ΦᵀG⁻¹Φ.
        borders: Vec<Vec<f64>>,
        corner: Cholesky,
    },
    /// For δa, with S = diag(1/e) + K_θ + V Λ⁻¹ Vᵀ: as many equations as rows.
    Rows {
        factored: Cholesky,
        /// S⁻¹1.
        ones: Vec<f64>,
        /// U = V Λ⁻¹ Φ, a row per group, and S⁻¹U.
        borders: Vec<Vec<f64>>,
        solved: Vec<Vec<f64>>,
        /// ΦᵀΛ⁻¹Φ − UᵀS⁻¹U.
        corner: Cholesky,
    },
}

/// The right-hand sides: of the multipliers, of the weights, of their sums.
struct Right<'a> {
    machine: &'a [f64],
    weights: Vec<f64>,
    /// −Σ a_i.
    sum: f64,
    /// 1 − Σφ of every group.
    open: Vec<f64>,
}

/// δf + β, β, δθ and δλ.
type Answer = (Vec<f64>, f64, Vec<f64>, Vec<f64>);

impl System {
    pub(super) fn new(state: &Joint<'_>, task: &Task<'_>, set: &dyn Separable, kernel: Kernel) -> Result<Self> {
        let dual_response = state.machine.dual_response();
        let phi: Vec<[f64; 3]> = state.theta.iter().map(|&t| set.phi(t)).collect();
        let mut stiff = vec![0.0; phi.len()];
        for (price, group) in state.price.iter().zip(&state.groups) {
            group.clone().for_each(|m| stiff[m] = price * phi[m][2] + state.slack[m] / state.theta[m]);
        }
        let form = match (kernel, &state.values) {
            (Kernel::Thin { thin: k, rounded }, Values::Exact(values)) if k.rank() + stiff.len() < k.n() => {
                Form::columns((k, rounded), values, &state.groups, &dual_response, task.intercept, &stiff, &phi)?
            }
            (Kernel::Thin { thin: k, .. }, values) => {
                Form::rows(values, &state.groups, Gram::from_matrix(k.root().outer()), &dual_response, &stiff, &phi)?
            }
            (Kernel::Whole(k), values) => Form::rows(values, &state.groups, k, &dual_response, &stiff, &phi)?,
        };
        Ok(Self { dual_response, intercept: task.intercept, phi, stiff, form })
    }

    /// Corrections of a step that pay, at most: fewer where an answer costs nearly as much as the system.
    pub(super) fn corrections(&self) -> usize {
        match self.form {
            Form::Columns { .. } => 3,
            Form::Rows { .. } => 1,
        }
    }

    /// The Newton step towards pairs of the machine equal to `goal` and θ ζ equal to `weight_goal`.
    pub(super) fn solve(
        &self,
        state: &Joint<'_>,
        decision: &[f64],
        goal: &dyn Fn(usize) -> [f64; 2],
        weight_goal: &dyn Fn(usize) -> f64,
    ) -> Step {
        let terms = state.theta.len();
        let aim = state.machine.aim(decision, &self.dual_response, goal);
        let miss: Vec<f64> = (0..terms).map(|m| weight_goal(m) - state.theta[m] * state.slack[m]).collect();
        let (mut weights, mut open) = (vec![0.0; terms], Vec::new());
        for (price, group) in state.price.iter().zip(&state.groups) {
            for m in group.clone() {
                let rest = price * self.phi[m][1] - state.half[m] - state.slack[m];
                weights[m] = miss[m] / state.theta[m] - rest;
            }
            open.push(1.0 - group.clone().map(|m| self.phi[m][0]).sum::<f64>());
        }
        let sum = -state.machine.multipliers().iter().sum::<f64>();
        let right = Right { machine: &aim.right, weights, sum, open };
        let (df, bias, theta, price) = self.answer(state, right);
        let machine = state.machine.changes(&aim, &df);
        let slack = (0..terms).map(|m| (miss[m] - state.slack[m] * theta[m]) / state.theta[m]).collect();
        Step { machine, bias, theta, slack, price }
    }

    fn answer(&self, state: &Joint<'_>, right: Right<'_>) -> Answer {
        match &self.form {
            Form::Columns { kernel, rounded, first, factored, borders, corner } => {
                let scaled: Vec<f64> = right.machine.iter().zip(&self.dual_response).map(|(r, e)| r * e).collect();
                let exact = || {
                    let mut x = kernel.root_transposed_times(&scaled);
                    x.extend(self.intercept.then(|| scaled.iter().sum::<f64>()));
                    x.extend(state.values.transposed_times(&scaled));
                    x
                };
                let mut x = rounded.as_ref().map_or_else(exact, |all| all.transposed_times(&scaled));
                if self.intercept {
                    x[first - 1] -= right.sum;
                }
                x[*first..].iter_mut().zip(&right.weights).for_each(|(x, t)| *x += t);
                factored.solve_lower(&mut x);
                let mut price: Vec<f64> = borders.iter().zip(&right.open).map(|(b, open)| dot(b, &x) - open).collect();
                corner.solve(&mut price);
                borders.iter().zip(&price).for_each(|(b, p)| axpy(-p, b, &mut x));
                factored.solve_upper(&mut x);
                let bias = if self.intercept { x[first - 1] } else { 0.0 };
                let rounded = rounded.as_ref().map(|all| all.times(&x));
                let theta = x.split_off(*first);
                let df = rounded.unwrap_or_else(|| {
                    let mut df = kernel.root_times(&x);
                    df.iter_mut().zip(state.values.times(&theta)).for_each(|(f, v)| *f += bias + v);
                    df
                });
                (df, bias, theta, price)
            }
            Form::Rows { factored, ones, borders, solved, corner } => {
                // S δa + β 1 − U δλ = right − V Λ⁻¹ t.
                let soft: Vec<f64> = right.weights.iter().zip(&self.stiff).map(|(t, s)| t / s).collect();
                let mut change = state.values.times(&soft);
                change.iter_mut().zip(right.machine).for_each(|(c, r)| *c = r - *c);
                factored.solve(&mut change);
                // Uᵀδa − ΦᵀΛ⁻¹Φ δλ = open − ΦᵀΛ⁻¹t, and 1ᵀδa = sum.
                let answer = |group: &Range<usize>| group.clone().map(|m| self.phi[m][1] * soft[m]).sum::<f64>();
                let missing = state.groups.iter().zip(borders).zip(&right.open);
                let mut price: Vec<f64> = missing.map(|((g, u), open)| dot(u, &change) + answer(g) - open).collect();
                corner.solve(&mut price);
                let mut bias = 0.0;
                if self.intercept {
                    let mut along: Vec<f64> = borders.iter().map(|u| dot(u, ones)).collect();
                    let inside: Vec<f64> = solved.iter().map(|z| z.iter().sum()).collect();
                    corner.solve(&mut along);
                    let total = change.iter().sum::<f64>() + dot(&inside, &price) - right.sum;
                    bias = total / (ones.iter().sum::<f64>() + dot(&inside, &along));
                    axpy(-bias, &along, &mut price);
                    axpy(-bias, ones, &mut change);
                }
                solved.iter().zip(&price).for_each(|(z, p)| axpy(*p, z, &mut change));
                let mut theta = state.values.transposed_times(&change);
                for (group, p) in state.groups.iter().zip(&price) {
                    group.clone().for_each(|m| {
                        theta[m] = (theta[m] + right.weights[m] - p * self.phi[m][1]) / self.stiff[m];
                    });
                }
                let df =
                    right.machine.iter().zip(&change).zip(&self.dual_response).map(|((r, a), e)| r - a / e).collect();
                (df, bias, theta, price)
            }
        }
    }
}

impl Form {
    /// From F, with columns rounded or not, and V.
    fn columns(
        (kernel, round): (LowRankSum, bool),
        values: &Matrix,
        groups: &[Range<usize>],
        dual_response: &[f64],
        intercept: bool,
        stiff: &[f64],
        phi: &[[f64; 3]],
    ) -> Result<Self> {
        let (rank, ones) = (kernel.rank(), Matrix::from_parts(dual_response.len(), 1, vec![1.0; dual_response.len()]));
        let first = rank + usize::from(intercept);
        let more: &[&Matrix] = if intercept { &[&ones, values] } else { &[values] };
        let (mut inner, rounded) = kernel.weighted_gram(more, dual_response, round);
        let cols = inner.cols();
        (0..rank).for_each(|k| inner[(k, k)] += 1.0);
        stiff.iter().enumerate().for_each(|(m, s)| inner[(first + m, first + m)] += s);
        (rank..cols).for_each(|k| inner[(k, k)] *= 1.0 + RIDGE);
        let factored = Cholesky::new(inner, WHAT)?;
        let border = |group: &Range<usize>| {
            let mut column = vec![0.0; cols];
            group.clone().for_each(|m| column[first + m] = phi[m][1]);
            factored.solve_lower(&mut column);
            column
        };
        let borders: Vec<Vec<f64>> = groups.iter().map(border).collect();
        let corner = Cholesky::new(products(&borders, &borders), WHAT)?;
        Ok(Self::Columns { kernel, rounded, first, factored, borders, corner })
    }

    /// From the lower triangle of K_θ.
    fn rows(
        values: &Values<'_>,
        groups: &[Range<usize>],
        mut kernel: Gram,
        dual_response: &[f64],
        stiff: &[f64],
        phi: &[[f64; 3]],
    ) -> Result<Self> {
        let (n, soft): (usize, Vec<f64>) = (dual_response.len(), stiff.iter().map(|s| 1.0 / s.sqrt()).collect());
        match values {
            Values::Exact(v) => {
                let mut scaled = v.clone();
                let rows = scaled.data_mut().par_chunks_mut(stiff.len());
                rows.for_each(|row| row.iter_mut().zip(&soft).for_each(|(x, s)| *x *= s));
                axpy(1.0, scaled.outer().data(), kernel.data_mut());
            }
            Values::Single { rows, .. } => {
                let mut scaled = rows.clone();
                let rows = scaled.par_chunks_mut(n).zip(&soft);
                rows.for_each(|(row, s)| row.iter_mut().for_each(|x| *x *= *s as f32));
                add_single(&scaled, &mut kernel);
            }
        }
        let mut inner = kernel.into_matrix();
        (0..n).for_each(|i| inner[(i, i)] = inner[(i, i)] * (1.0 + RIDGE) + 1.0 / dual_response[i]);
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
            corner[(g, g)] += own * (1.0 + RIDGE);
        }
        let corner = Cholesky::new(corner, WHAT)?;
        Ok(Self::Rows { ones: behind(&vec![1.0; n]), factored, borders, solved, corner })
    }
}

/// All products of two lists of vectors.
fn products(left: &[Vec<f64>], right: &[Vec<f64>]) -> Matrix {
    let mut out = Matrix::zeros(left.len(), right.len());
    for (j, l) in left.iter().enumerate() {
        right.iter().enumerate().for_each(|(k, r)| out[(j, k)] = dot(l, r));
    }
    out
}
