//! The Newton system of the interior-point method:  (H + D + EᵀΣE) dx + Aᵀ dη = r,  A dx = q,
//! where E sums over samples, D = z/x + w/t and Σ = ξ/s.
//!
//! It is factored through low-rank factors of H, as one matrix, or rule by rule: H_m + D_m for each
//! rule and one matrix of the size of the sums. A singular H_m (linear kernels) needs no care but a
//! ridge in the factorisation, whose effect a few rounds of refinement remove.

use rayon::prelude::*;

use super::{super::low_rank::LowRankSystem, Program, Residual, RuleIterate};
use crate::{
    Result,
    linalg::{Cholesky, Matrix, axpy, dot},
    tuning::tuning,
};

tuning! { "vcmkl_system"
    /// The system is factored as one matrix, which is more accurate, up to this many variables, and
    /// beyond them rule by rule.
    most_whole_variables: usize = 2500;
    /// Rounds of refinement at most.
    refinement_rounds: usize = 6;
    /// The first ridge of a factorisation, as a share of the largest diagonal entry of H:
    /// refinement removes its effect.
    first_ridge_share: f64 = 1e-10;
    /// The ridge becomes this many times larger while the factorisation fails.
    ridge_growth_factor: f64 = 100.0;
    /// A ridge above this share of the largest diagonal entry of H is given up.
    largest_ridge_share: f64 = 1e-3;
}

/// Refinement ends where the squared residual is below this share of the squared right-hand side:
/// rounding.
const ROUNDED_RESIDUAL: f64 = 1e-22;
/// The diagonal of the equalities' matrix is raised by this share of itself, so that rounding does
/// not leave it indefinite.
const EQUALITY_GUARD: f64 = 1e-13;

/// The Newton system at one iterate, factored.
pub(super) struct RulesSystem<'p> {
    program: &'p Program<'p>,
    diagonal: Vec<f64>,
    sigma: Vec<f64>,
    factored: Factored,
    /// Columns (H + D + EᵀΣE)⁻¹ Aᵀ.
    columns: Vec<Vec<f64>>,
    /// The Cholesky factor of A (H + D + EᵀΣE)⁻¹ Aᵀ.
    small: Option<Cholesky>,
}

/// H + D + EᵀΣE factored: through low-rank factors where there are any; as one matrix where it is
/// small; else rule by rule with a correction for the sums.
enum Factored {
    LowRank(LowRankSystem),
    Whole(Whole),
    Blocks {
        rules: Vec<Cholesky>,
        /// The Cholesky factor of I + Σ^½ (E (H+D)⁻¹ Eᵀ) Σ^½.
        coupling: Cholesky,
    },
}

impl<'p> RulesSystem<'p> {
    pub fn new(program: &'p Program<'p>, state: &RuleIterate) -> Result<Self> {
        let at = &program.at;
        let mut diagonal: Vec<f64> = state.z.iter().zip(&state.x).map(|(z, x)| z / x).collect();
        at.bounded.iter().enumerate().for_each(|(k, &i)| diagonal[i] += state.w[k] / state.t[k]);
        let sigma: Vec<f64> = state.xi.iter().zip(&state.s).map(|(xi, s)| xi / s).collect();
        if let Some((columns, rank)) = &program.factor {
            let factored = Factored::LowRank(LowRankSystem::new(
                columns, *rank, &diagonal, &at.summed, &sigma,
            )?);
            return Ok(Self {
                program,
                diagonal,
                sigma,
                factored,
                columns: Vec::new(),
                small: None,
            });
        }
        let factored = if program.y.len() <= TUNING.most_whole_variables {
            Factored::Whole(Whole::new(program, &diagonal, &sigma)?)
        } else {
            by_blocks(program, &diagonal, &sigma)?
        };
        let mut system =
            Self { program, diagonal, sigma, factored, columns: Vec::new(), small: None };
        let e = at.equalities.len();
        let columns = |k: usize| {
            let (mut unit, mut column) = (vec![0.0; e], vec![0.0; program.y.len()]);
            unit[k] = 1.0;
            program.add_equalities(&unit, &mut column);
            system.solve_inequalities(&mut column);
            column
        };
        let columns: Vec<Vec<f64>> = (0..e).into_par_iter().map(columns).collect();
        let mut small = Matrix::zeros(e, e);
        for (k, column) in columns.iter().enumerate() {
            small.row_mut(k).copy_from_slice(&program.equalities(column));
        }
        (0..e).for_each(|k| small[(k, k)] *= 1.0 + EQUALITY_GUARD);
        system.small = Some(Cholesky::new(small, "the equalities of the rules")?);
        system.columns = columns;
        Ok(system)
    }

    /// v ← (H + D + EᵀΣE)⁻¹ v.
    fn solve_inequalities(&self, v: &mut [f64]) {
        let (rules, coupling) = match &self.factored {
            Factored::LowRank(_) => return,
            Factored::Whole(whole) => return whole.solve(v),
            Factored::Blocks { rules, coupling } => (rules, coupling),
        };
        let p = self.program;
        let blocks =
            |v: &mut [f64]| (0..rules.len()).for_each(|m| rules[m].solve(&mut v[p.range(m)]));
        blocks(v);
        let mut q = p.sums(v);
        q.iter_mut().zip(&self.sigma).for_each(|(q, s)| *q *= s.sqrt());
        coupling.solve(&mut q);
        q.iter_mut().zip(&self.sigma).for_each(|(q, s)| *q *= s.sqrt());
        let mut back = vec![0.0; v.len()];
        p.at.summed.iter().for_each(|&(i, row)| back[i] = q[row]);
        blocks(&mut back);
        axpy(-1.0, &back, v);
    }

    /// (dx, dη) for right-hand sides r and q.
    fn solve_once(&self, mut r: Vec<f64>, q: &[f64]) -> (Vec<f64>, Vec<f64>) {
        if let Factored::LowRank(system) = &self.factored {
            let eta = system.solve(&mut r, q);
            return (r, eta);
        }
        self.solve_inequalities(&mut r);
        let mut eta: Vec<f64> =
            self.program.equalities(&r).iter().zip(q).map(|(a, q)| a - q).collect();
        if let Some(small) = &self.small {
            small.solve(&mut eta);
        }
        self.columns.iter().zip(&eta).for_each(|(column, e)| axpy(-e, column, &mut r));
        (r, eta)
    }

    /// (dx, dη) for right-hand sides r and q, refined against the matrix without its ridge for as
    /// long as that helps.
    fn solve(&self, r: &[f64], q: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let p = self.program;
        let left_over = |dx: &[f64], eta: &[f64]| {
            let mut rest = p.hessian_times(dx);
            rest.iter_mut().zip(&self.diagonal).zip(dx).for_each(|((l, d), x)| *l += d * x);
            let sums = p.sums(dx);
            p.at.summed.iter().for_each(|&(i, row)| rest[i] += self.sigma[row] * sums[row]);
            p.add_equalities(eta, &mut rest);
            rest.iter_mut().zip(r).for_each(|(l, r)| *l = r - *l);
            let equal: Vec<f64> = q.iter().zip(p.equalities(dx)).map(|(q, a)| q - a).collect();
            let size = dot(&rest, &rest) + dot(&equal, &equal);
            (rest, equal, size)
        };
        let (mut dx, mut eta) = self.solve_once(r.to_vec(), q);
        let (mut rest, mut equal, mut size) = left_over(&dx, &eta);
        let enough = ROUNDED_RESIDUAL * (dot(r, r) + dot(q, q));
        for _ in 0..TUNING.refinement_rounds {
            if size <= enough {
                break;
            }
            let (mut next_x, mut next_eta) = self.solve_once(rest, &equal);
            axpy(1.0, &dx, &mut next_x);
            axpy(1.0, &eta, &mut next_eta);
            let next = left_over(&next_x, &next_eta);
            if next.2.is_nan() || next.2 >= size {
                break;
            }
            (dx, eta) = (next_x, next_eta);
            (rest, equal, size) = next;
        }
        (dx, eta)
    }

    /// The Newton direction towards complementarity `target`, with second-order terms for the pairs
    /// (x, z), (t, w), (s, ξ).
    pub fn direction(
        &self,
        state: &RuleIterate,
        residual: &Residual,
        target: f64,
        second: &[Vec<f64>; 3],
    ) -> RuleIterate {
        let p = self.program;
        let lack = |v: &[f64], m: &[f64], second: &[f64]| -> Vec<f64> {
            v.iter().zip(m).zip(second).map(|((v, m), c)| target - v * m - c).collect()
        };
        let lack_x = lack(&state.x, &state.z, &second[0]);
        let lack_t = lack(&state.t, &state.w, &second[1]);
        let lack_s = lack(&state.s, &state.xi, &second[2]);
        let mut r: Vec<f64> = residual.dual.iter().map(|d| -d).collect();
        r.iter_mut().zip(&lack_x).zip(&state.x).for_each(|((r, l), x)| *r += l / x);
        p.at.bounded.iter().enumerate().for_each(|(k, &i)| r[i] -= lack_t[k] / state.t[k]);
        p.at.summed.iter().for_each(|&(i, row)| r[i] -= lack_s[row] / state.s[row]);
        let q: Vec<f64> = residual.equality.iter().map(|e| -e).collect();
        let (x, eta) = self.solve(&r, &q);
        let sums = p.sums(&x);
        let t: Vec<f64> = p.at.bounded.iter().map(|&i| -x[i]).collect();
        RuleIterate {
            z: (0..x.len()).map(|i| (lack_x[i] - state.z[i] * x[i]) / state.x[i]).collect(),
            w: (0..t.len()).map(|k| (lack_t[k] - state.w[k] * t[k]) / state.t[k]).collect(),
            xi: (0..sums.len()).map(|i| (lack_s[i] + state.xi[i] * sums[i]) / state.s[i]).collect(),
            s: sums.iter().map(|s| -s).collect(),
            x,
            t,
            eta,
        }
    }
}

/// One matrix for all rules, in variables where each sum stands in the place of its freest member
/// (`pivots`): Σ, which grows without bound, then adds to a diagonal entry and cancels nothing.
struct Whole {
    factor: Cholesky,
    /// For every sum: the member it replaces, and the others.
    pivots: Vec<(usize, Vec<usize>)>,
}

impl Whole {
    fn new(program: &Program<'_>, diagonal: &[f64], sigma: &[f64]) -> Result<Self> {
        let n = diagonal.len();
        let mut k = Matrix::zeros(n, n);
        for m in 0..program.blocks.len() {
            let range = program.range(m);
            range.clone().zip(0..).for_each(|(i, own)| {
                k.row_mut(i)[range.clone()].copy_from_slice(program.hessians[m].row(own));
                k[(i, i)] += diagonal[i];
            });
        }
        let mut members = vec![Vec::new(); sigma.len()];
        program.at.summed.iter().for_each(|&(i, row)| members[row].push(i));
        let mut pivots = Vec::new();
        for mut others in members {
            let freest = (0..others.len())
                .fold(0, |b, c| if diagonal[others[c]] < diagonal[others[b]] { c } else { b });
            let pivot = others.swap_remove(freest);
            pivots.push((pivot, others));
        }
        // x_pivot = sum − Σ others: subtract the pivot's row and column from those of the others.
        let mut own = vec![0.0; n];
        for (pivot, others) in &pivots {
            own.copy_from_slice(k.row(*pivot));
            others.iter().for_each(|&i| axpy(-1.0, &own, k.row_mut(i)));
        }
        for i in 0..n {
            let row = k.row_mut(i);
            pivots
                .iter()
                .for_each(|(pivot, others)| others.iter().for_each(|&j| row[j] -= row[*pivot]));
        }
        pivots.iter().zip(sigma).for_each(|((pivot, _), s)| k[(*pivot, *pivot)] += s);
        Ok(Self { factor: factor(k, program.largest())?, pivots })
    }

    fn solve(&self, v: &mut [f64]) {
        self.pivots
            .iter()
            .for_each(|(pivot, others)| others.iter().for_each(|&i| v[i] -= v[*pivot]));
        self.factor.solve(v);
        self.pivots
            .iter()
            .for_each(|(pivot, others)| others.iter().for_each(|&i| v[*pivot] -= v[i]));
    }
}

/// Every rule's own matrix, and what the sums add.
fn by_blocks(program: &Program<'_>, diagonal: &[f64], sigma: &[f64]) -> Result<Factored> {
    let largest = program.largest();
    let parts: Vec<(Cholesky, Matrix)> = (0..program.blocks.len())
        .into_par_iter()
        .map(|m| {
            let mut own = program.hessians[m].clone();
            diagonal[program.range(m)].iter().enumerate().for_each(|(i, d)| own[(i, i)] += d);
            let factor = factor(own, largest)?;
            let tail = factor.inverse_tail(program.blocks[m].negatives());
            Ok((factor, tail))
        })
        .collect::<Result<_>>()?;
    let root: Vec<f64> = sigma.iter().map(|s| s.sqrt()).collect();
    let mut coupling = Matrix::zeros(sigma.len(), sigma.len());
    for (block, (_, tail)) in program.blocks.iter().zip(&parts) {
        for (i, &to) in block.row.iter().enumerate() {
            let out = coupling.row_mut(to);
            block
                .row
                .iter()
                .zip(tail.row(i))
                .for_each(|(&from, t)| out[from] += root[to] * t * root[from]);
        }
    }
    (0..sigma.len()).for_each(|i| coupling[(i, i)] += 1.0);
    let rules = parts.into_iter().map(|(f, _)| f).collect();
    Ok(Factored::Blocks { rules, coupling: Cholesky::new(coupling, "the coupling of the rules")? })
}

/// The Cholesky factor of K with as much of a ridge as it takes; `largest` is the size of the
/// Hessian's diagonal.
fn factor(mut k: Matrix, largest: f64) -> Result<Cholesky> {
    let mut ridge = TUNING.first_ridge_share * largest;
    (0..k.rows()).for_each(|i| k[(i, i)] += ridge);
    loop {
        match Cholesky::new(k.clone(), "a rule's kernel matrix") {
            Err(_) if ridge < TUNING.largest_ridge_share * largest => {
                (0..k.rows()).for_each(|i| k[(i, i)] += (TUNING.ridge_growth_factor - 1.0) * ridge);
                ridge *= TUNING.ridge_growth_factor;
            }
            other => return other,
        }
    }
}
