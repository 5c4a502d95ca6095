//! Critical regions: polyhedra of λ on which the same constraints of the inner problem are active
//! and α(λ) is affine.
//!
//! Inside a region the multipliers split into zeros, those at their upper bound c_i λ_im, and free
//! ones x_F; B are the positives whose sum is
//! full. Then  [[Q_FF, Aᵀ], [A, 0]] [x_F; η] = [−c_F − Q_FU x_U; d − A_U x_U]
//!   with the rows of A: y and (for ν) 1 per rule, one per member of
//! B. Everything on the right is affine in λ. The paper's formulas invert Q_m, which is singular
//! for linear kernels; this system is factored with a small regularisation instead, which
//! refinement removes: x_F may then be one of many, w and φ are not.

use super::{Instance, Margin, RuleSolution};
use crate::linalg::{Matrix, dot};

/// Slack in the signs that define a region, relative to the margins or costs.
const SIGN_SLACK: f64 = 1e-6;
/// A region must reproduce the φ of the solution it comes from to this share.
const REPRODUCED_SHARE: f64 = 1e-6;
/// A φ smaller than this share of the sum of ‖w_m‖² is compared with that share instead.
const LEAST_NORM_SHARE: f64 = 1e-3;
/// The matrix is regularised by this share of its largest diagonal entry; refinement removes the
/// effect.
const REGULARISATION: f64 = 1e-9;
/// Rounds of refinement that remove the regularisation.
const REFINEMENT_ROUNDS: usize = 5;
/// A system is solved where its residual is below this share of the right-hand side.
const SOLVED_SHARE: f64 = 1e-7;

/// Where a multiplier stands in a region.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Activity {
    Zero,
    Upper,
    Free,
}

/// A critical region, with the factored system that gives its solutions.
pub(super) struct Region {
    kind: Vec<Vec<Activity>>,
    /// (sample, rule) of the free variables.
    free: Vec<(usize, usize)>,
    /// Positives whose sum is full.
    full: Vec<usize>,
    /// Is a sum among them?
    is_full: Vec<bool>,
    system: Lu,
    matrix: Matrix,
}

impl Region {
    /// The region of a solution; `None` where its active sets do not reproduce it.
    pub fn new(instance: &Instance<'_>, lambda: &Matrix, inner: &RuleSolution) -> Option<Self> {
        let (n, rules) = (instance.cost.len(), instance.rules());
        let share = shares(instance, lambda);
        let sign = signs(instance);
        let mut kind = vec![vec![Activity::Zero; rules]; n];
        let mut is_full = vec![false; n];
        // A multiplier against the slack it belongs to: whichever is larger, each in its own units,
        // is the active one.
        let size = |m: usize| instance.kernels[m].row(0)[0].abs().max(f64::MIN_POSITIVE);
        let worst =
            |i: usize| (0..rules).map(|m| instance.loss(inner, i, m, 1.0)).fold(0.0, f64::max);
        for i in 0..n {
            let positive = sign[i] > 0.0;
            let sum: f64 = inner.alpha.row(i).iter().sum();
            let xi = worst(i);
            is_full[i] = positive && (instance.cost[i] - sum) * size(0) < xi;
            for m in 0..rules {
                let (a, loss) = (inner.alpha[(i, m)], inner.rho[m] - sign[i] * inner.f[(i, m)]);
                let upper = instance.cost[i] * share[(i, m)];
                kind[i][m] = if positive {
                    // Only the worst rules of a positive that pays carry multipliers.
                    if a * size(m) > (xi - loss).max(0.0) { Activity::Free } else { Activity::Zero }
                } else if loss > (upper - a) * size(m) {
                    Activity::Upper
                } else if a * size(m) > -loss {
                    Activity::Free
                } else {
                    Activity::Zero
                };
            }
        }
        let free: Vec<(usize, usize)> = (0..n)
            .flat_map(|i| (0..rules).map(move |m| (i, m)))
            .filter(|&(i, m)| kind[i][m] == Activity::Free)
            .collect();
        let full: Vec<usize> = (0..n).filter(|&i| is_full[i]).collect();
        let matrix = equations(instance, &free, &full, &sign);
        let system = Lu::regularised(&matrix, free.len());
        let region = Self { kind, free, full, is_full, system, matrix };
        let again = region.at(instance, lambda)?;
        let scale = inner
            .dual
            .abs()
            .max(LEAST_NORM_SHARE * inner.norms.iter().sum::<f64>())
            .max(f64::MIN_POSITIVE);
        ((again.dual - inner.dual).abs() <= REPRODUCED_SHARE * scale).then_some(region)
    }

    /// The solution at λ, if λ lies in the region.
    pub fn at(&self, instance: &Instance<'_>, lambda: &Matrix) -> Option<RuleSolution> {
        let (n, rules) = (instance.cost.len(), instance.rules());
        let (share, sign) = (shares(instance, lambda), signs(instance));
        let fixed = instance.margin == Margin::Fixed;
        let masses = if fixed { 0 } else { rules };
        let mut alpha = Matrix::zeros(n, rules);
        for i in 0..n {
            for m in (0..rules).filter(|&m| self.kind[i][m] == Activity::Upper) {
                alpha[(i, m)] = instance.cost[i] * share[(i, m)];
            }
        }
        let at_bounds = instance.inner(alpha.clone(), vec![0.0; rules], vec![1.0; rules], lambda);
        let f = self.free.len();
        let mut right = vec![0.0; self.matrix.rows()];
        for (a, &(i, m)) in self.free.iter().enumerate() {
            right[a] = f64::from(u8::from(fixed)) - sign[i] * at_bounds.f[(i, m)];
        }
        for m in 0..rules {
            let column = (0..n).map(|i| alpha[(i, m)]);
            right[f + m] = -column.clone().zip(&sign).map(|(a, s)| a * s).sum::<f64>();
            if !fixed {
                right[f + rules + m] = instance.nu(m) - column.sum::<f64>();
            }
        }
        self.full
            .iter()
            .enumerate()
            .for_each(|(b, &i)| right[f + rules + masses + b] = instance.cost[i]);
        let x = self.system.refine(&self.matrix, &right)?;
        self.free.iter().zip(&x).for_each(|(&(i, m), x)| alpha[(i, m)] = *x);
        let bias: Vec<f64> = x[f..f + rules].to_vec();
        let rho = if fixed {
            vec![1.0; rules]
        } else {
            x[f + rules..f + 2 * rules].iter().map(|e| -e).collect()
        };
        let mut xi = vec![0.0; n];
        self.full.iter().zip(&x[f + rules + masses..]).for_each(|(&i, x)| xi[i] = *x);
        // A rule without free variables has a constant that its equations leave open.
        for m in 0..rules {
            if self.free.iter().all(|&(_, o)| o != m) {
                return None;
            }
        }
        let inner = instance.inner(alpha, bias, rho, lambda);
        self.contains(instance, &inner, &share, &sign, &xi).then_some(inner)
    }

    /// Do all signs that make the solution optimal hold?
    fn contains(
        &self,
        instance: &Instance<'_>,
        inner: &RuleSolution,
        share: &Matrix,
        sign: &[f64],
        xi: &[f64],
    ) -> bool {
        let unit = inner.rho.iter().copied().fold(0.0, f64::max).max(1e-12);
        (0..sign.len()).all(|i| {
            let slack = SIGN_SLACK * instance.cost[i];
            let sum: f64 = inner.alpha.row(i).iter().sum();
            let positive = sign[i] > 0.0;
            let in_sum = !positive
                || (sum <= instance.cost[i] + slack
                    && (!self.is_full[i] || xi[i] >= -SIGN_SLACK * unit));
            in_sum
                && (0..inner.rho.len()).all(|m| {
                    let (a, loss) = (inner.alpha[(i, m)], inner.rho[m] - sign[i] * inner.f[(i, m)]);
                    match self.kind[i][m] {
                        Activity::Free => {
                            a >= -slack
                                && (positive || a <= instance.cost[i] * share[(i, m)] + slack)
                        }
                        Activity::Zero => loss <= xi[i] + SIGN_SLACK * unit,
                        Activity::Upper => loss >= -SIGN_SLACK * unit,
                    }
                })
        })
    }
}

/// The matrix [[Q_FF, Aᵀ], [A, 0]] of a region's free variables and full sums.
fn equations(
    instance: &Instance<'_>,
    free: &[(usize, usize)],
    full: &[usize],
    sign: &[f64],
) -> Matrix {
    let rules = instance.rules();
    let masses = if instance.margin == Margin::Fixed { 0 } else { rules };
    let (f, size) = (free.len(), free.len() + rules + masses + full.len());
    let mut matrix = Matrix::zeros(size, size);
    for (a, &(i, m)) in free.iter().enumerate() {
        for (b, &(j, o)) in free.iter().enumerate() {
            if m == o {
                matrix[(a, b)] = sign[i] * sign[j] * instance.kernels[m].row(i)[j];
            }
        }
        let mut put = |row: usize, value: f64| {
            matrix[(a, row)] = value;
            matrix[(row, a)] = value;
        };
        put(f + m, sign[i]);
        if masses > 0 {
            put(f + rules + m, 1.0);
        }
        if let Ok(row) = full.binary_search(&i) {
            put(f + rules + masses + row, 1.0);
        }
    }
    matrix
}

/// λ of every sample: zero for positives.
fn shares(instance: &Instance<'_>, lambda: &Matrix) -> Matrix {
    let mut out = Matrix::zeros(instance.cost.len(), instance.rules());
    for (k, &i) in instance.negatives.iter().enumerate() {
        out.row_mut(i).copy_from_slice(lambda.row(k));
    }
    out
}

fn signs(instance: &Instance<'_>) -> Vec<f64> {
    let mut sign = vec![1.0; instance.cost.len()];
    instance.negatives.iter().for_each(|&i| sign[i] = -1.0);
    sign
}

/// L U with row exchanges.
struct Lu {
    lu: Matrix,
    order: Vec<usize>,
}

impl Lu {
    /// Factors [[Q + δ, Aᵀ], [A, −δ]], which is never singular.
    fn regularised(matrix: &Matrix, first: usize) -> Self {
        let n = matrix.rows();
        let mut lu = matrix.clone();
        let delta = REGULARISATION * (0..n).fold(1e-300, |m: f64, i| m.max(matrix[(i, i)].abs()));
        (0..n).for_each(|i| lu[(i, i)] += if i < first { delta } else { -delta });
        let mut order: Vec<usize> = (0..n).collect();
        for k in 0..n {
            let pivot =
                (k..n).fold(k, |b, i| if lu[(i, k)].abs() > lu[(b, k)].abs() { i } else { b });
            if pivot != k {
                order.swap(k, pivot);
                let (top, bottom) = lu.data_mut().split_at_mut(pivot * n);
                top[k * n..(k + 1) * n].swap_with_slice(&mut bottom[..n]);
            }
            let (top, bottom) = lu.data_mut().split_at_mut((k + 1) * n);
            let own = &top[k * n..];
            if own[k] == 0.0 {
                continue;
            }
            for row in bottom.chunks_exact_mut(n) {
                row[k] /= own[k];
                let factor = row[k];
                if factor != 0.0 {
                    row[k + 1..].iter_mut().zip(&own[k + 1..]).for_each(|(r, o)| *r -= factor * o);
                }
            }
        }
        Self { lu, order }
    }

    fn solve(&self, b: &[f64]) -> Vec<f64> {
        let n = b.len();
        let mut x: Vec<f64> = self.order.iter().map(|&i| b[i]).collect();
        for i in 0..n {
            x[i] -= dot(&self.lu.row(i)[..i], &x[..i]);
        }
        for i in (0..n).rev() {
            let row = self.lu.row(i);
            x[i] = (x[i] - dot(&row[i + 1..], &x[i + 1..])) / row[i];
        }
        x
    }

    /// A solution of the system without its regularisation; `None` where it has none.
    fn refine(&self, matrix: &Matrix, b: &[f64]) -> Option<Vec<f64>> {
        let mut x = self.solve(b);
        for _ in 0..REFINEMENT_ROUNDS {
            let rest: Vec<f64> =
                b.iter().enumerate().map(|(i, b)| b - dot(matrix.row(i), &x)).collect();
            self.solve(&rest).iter().zip(&mut x).for_each(|(d, x)| *x += d);
        }
        let off = b
            .iter()
            .enumerate()
            .map(|(i, b)| (b - dot(matrix.row(i), &x)).abs())
            .fold(0.0, f64::max);
        let size = b.iter().fold(0.0f64, |m, b| m.max(b.abs()));
        (off <= SOLVED_SHARE * size).then_some(x)
    }
}
