//! An interior-point method for quadratic programs whose Hessian is block diagonal and whose blocks meet only in sums over samples.
//!
//! Solves  min over x :  Σ_m ½ x_mᵀ H_m x_m + c_mᵀ x_m
//!         s.t.  x ≥ 0,  x_im ≤ u_im (negatives),  Σ_m x_im ≤ v_i (positives),  y_mᵀ x_m = 0,  and 1ᵀ x_m = ν_m where a mass is given.
//! In: for every rule m the Gram matrix, its rows and bounds.   Out: x with all multipliers, and the complementarity gap.
//!
//! Mehrotra's predictor and corrector; the linear system of a step is in [`system`]. Slacks of the inequalities are exact in every iterate
//! because the start is inside them.

mod system;

use rayon::prelude::*;

use self::system::System;
use crate::{
    Result,
    gram::{Factor, Gram, RankLimit},
    linalg::{Matrix, axpy, dot},
};

const MAX_STEPS: usize = 80;
/// Share of the way to the border that a step may go.
const INSIDE: f64 = 0.995;
/// Ranks of all rules together, as a share of the variables, up to which factors take the place of H; and what they leave of its trace.
const LOW: f64 = 0.3;
const LEFT: f64 = 1e-14;
/// An answer worse than this, or than what was asked for, is sought again without factors.
const POOR: f64 = 1e-8;
/// Steps in a row that may be worse than the best while that is poor, and once it is not.
const PATIENCE: usize = 20;
const LITTLE_PATIENCE: usize = 5;

/// One rule's variables: its negatives first, then its positives.
pub(super) struct Block<'a> {
    pub kernel: &'a Gram,
    /// Samples.
    pub index: Vec<usize>,
    /// Upper bounds of the negatives, which come first.
    pub upper: Vec<f64>,
    /// The sum each positive belongs to.
    pub row: Vec<usize>,
    /// c.
    pub linear: Vec<f64>,
    /// ν, where the sum of the block is prescribed.
    pub mass: Option<f64>,
}

impl Block<'_> {
    fn negatives(&self) -> usize {
        self.upper.len()
    }

    fn sign(&self, i: usize) -> f64 {
        if i < self.upper.len() { -1.0 } else { 1.0 }
    }

    fn hessian(&self) -> Matrix {
        let n = self.index.len();
        let mut h = Matrix::zeros(n, n);
        for (i, &from) in self.index.iter().enumerate() {
            let (row, sign) = (self.kernel.row(from), self.sign(i));
            h.row_mut(i).iter_mut().zip(&self.index).enumerate().for_each(|(j, (h, &to))| {
                *h = sign * self.sign(j) * row[to];
            });
        }
        h
    }
}

/// A solved program.
pub(super) struct Solved {
    /// x, rule by rule.
    pub x: Vec<Vec<f64>>,
    /// Multipliers of the sums.
    pub xi: Vec<f64>,
    /// Multiplier b of yᵀx = 0, rule by rule.
    pub bias: Vec<f64>,
    /// ρ: minus the multiplier of the mass, where there is one.
    pub rho: Vec<f64>,
}

/// Iterate: primal variables, slacks t of upper bounds and s of sums, multipliers.
#[derive(Clone)]
struct State {
    x: Vec<f64>,
    z: Vec<f64>,
    t: Vec<f64>,
    w: Vec<f64>,
    s: Vec<f64>,
    xi: Vec<f64>,
    eta: Vec<f64>,
}

/// Where everything stands in flat vectors. Variables are numbered rule after rule.
struct Layout {
    /// First variable of every rule, and the number of variables.
    first: Vec<usize>,
    /// Variables that have an upper bound.
    bounded: Vec<usize>,
    /// (variable, sum) of the positives.
    summed: Vec<(usize, usize)>,
    /// (rule, is it a mass?, right-hand side) of the equalities.
    equalities: Vec<(usize, bool, f64)>,
}

struct Program<'a> {
    blocks: &'a [Block<'a>],
    limit: &'a [f64],
    hessians: Vec<Matrix>,
    /// (F Aᵀ) with H = F Fᵀ, and the rank of F, where that is thin.
    factor: Option<(Matrix, usize)>,
    linear: Vec<f64>,
    /// ±1 per variable.
    y: Vec<f64>,
    at: Layout,
}

/// Solves to a complementarity gap of `accuracy` relative to the objective or `floor`, whichever is larger, or as far as rounding allows.
/// Every block needs variables of both signs.
pub(super) fn solve(blocks: &[Block<'_>], limit: &[f64], accuracy: f64, floor: f64) -> Result<Solved> {
    let mut program = Program::new(blocks, limit);
    program.factor = program.thin_factor();
    if program.factor.is_some() {
        if let Ok((merit, state)) = iterate(&program, accuracy, floor)
            && merit <= POOR.max(accuracy)
        {
            return Ok(program.solved(state));
        }
        program.factor = None;
    }
    Ok(program.solved(iterate(&program, accuracy, floor)?.1))
}

/// The best iterate, and how far it is from the optimum.
fn iterate(program: &Program<'_>, accuracy: f64, floor: f64) -> Result<(f64, State)> {
    let mut state = program.start();
    // The best iterate: a late step may lose what rounding cannot hold.
    let mut best = (f64::INFINITY, state.clone());
    let mut worse = 0;
    for _ in 0..MAX_STEPS {
        let residual = program.residual(&state);
        let gap = state.complementarity();
        let scale = program.objective(&state.x).abs().max(floor);
        let merit = (gap + residual.cost(&state)) / scale;
        if merit < best.0 {
            best = (merit, state.clone());
            worse = 0;
        } else {
            worse += 1;
        }
        let patience = if best.0 > POOR { PATIENCE } else { LITTLE_PATIENCE };
        if merit <= accuracy || worse > patience || !merit.is_finite() {
            break;
        }
        let Some(next) = program.step(&state, &residual, gap)? else { break };
        state = next;
    }
    Ok(best)
}

struct Residual {
    dual: Vec<f64>,
    equality: Vec<f64>,
}

impl Residual {
    /// What the infeasibility is worth in units of the objective.
    fn cost(&self, state: &State) -> f64 {
        let dual: f64 = self.dual.iter().zip(&state.x).map(|(r, x)| (r * x).abs()).sum();
        dual + self.equality.iter().zip(&state.eta).map(|(r, e)| (r * e).abs()).sum::<f64>()
    }
}

impl State {
    fn pairs(&self) -> usize {
        self.x.len() + self.t.len() + self.s.len()
    }

    fn complementarity(&self) -> f64 {
        dot(&self.x, &self.z) + dot(&self.t, &self.w) + dot(&self.s, &self.xi)
    }

    /// The longest step along `d` that keeps everything ≥ 0, at most 1 / INSIDE.
    fn room(&self, d: &Self) -> f64 {
        let longest = |v: &[f64], d: &[f64]| {
            v.iter().zip(d).filter(|(_, d)| **d < 0.0).map(|(v, d)| -v / d).fold(1.0 / INSIDE, f64::min)
        };
        [(&self.x, &d.x), (&self.z, &d.z), (&self.t, &d.t), (&self.w, &d.w), (&self.s, &d.s), (&self.xi, &d.xi)]
            .map(|(v, d)| longest(v, d))
            .into_iter()
            .fold(f64::INFINITY, f64::min)
    }

    fn plus(&self, length: f64, d: &Self) -> Self {
        let sum = |v: &[f64], d: &[f64]| v.iter().zip(d).map(|(v, d)| v + length * d).collect();
        Self {
            x: sum(&self.x, &d.x),
            z: sum(&self.z, &d.z),
            t: sum(&self.t, &d.t),
            w: sum(&self.w, &d.w),
            s: sum(&self.s, &d.s),
            xi: sum(&self.xi, &d.xi),
            eta: sum(&self.eta, &d.eta),
        }
    }
}

impl<'a> Program<'a> {
    fn new(blocks: &'a [Block<'a>], limit: &'a [f64]) -> Self {
        let hessians: Vec<Matrix> = blocks.par_iter().map(Block::hessian).collect();
        let mut at = Layout { first: vec![0], bounded: Vec::new(), summed: Vec::new(), equalities: Vec::new() };
        let (mut linear, mut y) = (Vec::new(), Vec::new());
        for (m, block) in blocks.iter().enumerate() {
            let (first, n, negatives) = (at.first[m], block.index.len(), block.negatives());
            at.bounded.extend(first..first + negatives);
            at.summed.extend(block.row.iter().enumerate().map(|(k, &row)| (first + negatives + k, row)));
            at.equalities.push((m, false, 0.0));
            at.equalities.extend(block.mass.map(|mass| (m, true, mass)));
            linear.extend_from_slice(&block.linear);
            y.extend((0..n).map(|i| block.sign(i)));
            at.first.push(first + n);
        }
        Self { blocks, limit, hessians, factor: None, linear, y, at }
    }

    /// (F Aᵀ) and the rank of F, if the kernels of all rules have low ranks.
    fn thin_factor(&self) -> Option<(Matrix, usize)> {
        let n = self.y.len();
        let most = (LOW * n as f64) as usize;
        let mut factors = Vec::new();
        for h in &self.hessians {
            let limit = RankLimit { tolerance: LEFT, max_rank: most.min(h.rows()) };
            let diagonal: Vec<f64> = (0..h.rows()).map(|i| h[(i, i)]).collect();
            let factor = Factor::pivoted(&diagonal, limit, |j, out| out.copy_from_slice(h.row(j)))?;
            factors.push(factor.rows().into_owned());
        }
        let rank: usize = factors.iter().map(Matrix::cols).sum();
        if rank > most {
            return None;
        }
        let mut out = Matrix::zeros(n, rank + self.at.equalities.len());
        for (k, &(m, mass, _)) in self.at.equalities.iter().enumerate() {
            self.range(m).for_each(|i| out[(i, rank + k)] = if mass { 1.0 } else { self.y[i] });
        }
        let mut first = 0;
        for (m, f) in factors.iter().enumerate() {
            for (i, own) in self.range(m).zip(0..) {
                out.row_mut(i)[first..first + f.cols()].copy_from_slice(f.row(own));
            }
            first += f.cols();
        }
        Some((out, rank))
    }

    fn range(&self, m: usize) -> std::ops::Range<usize> {
        self.at.first[m]..self.at.first[m + 1]
    }

    /// The largest diagonal entry of H.
    fn largest(&self) -> f64 {
        let entries = self.hessians.iter().flat_map(|h| (0..h.rows()).map(|i| h[(i, i)]));
        entries.fold(f64::MIN_POSITIVE, f64::max)
    }

    /// H x.
    fn hessian_times(&self, x: &[f64]) -> Vec<f64> {
        (0..self.blocks.len())
            .into_par_iter()
            .flat_map_iter(|m| {
                let (h, x) = (&self.hessians[m], &x[self.range(m)]);
                (0..h.rows()).map(move |i| dot(h.row(i), x))
            })
            .collect()
    }

    fn objective(&self, x: &[f64]) -> f64 {
        0.5 * dot(x, &self.hessian_times(x)) + dot(&self.linear, x)
    }

    /// out += Aᵀ η.
    fn add_equalities(&self, eta: &[f64], out: &mut [f64]) {
        for (&(m, mass, _), &eta) in self.at.equalities.iter().zip(eta) {
            for i in self.range(m) {
                out[i] += if mass { eta } else { eta * self.y[i] };
            }
        }
    }

    /// A x.
    fn equalities(&self, x: &[f64]) -> Vec<f64> {
        let row = |&(m, mass, _): &(usize, bool, f64)| {
            self.range(m).map(|i| if mass { x[i] } else { self.y[i] * x[i] }).sum::<f64>()
        };
        self.at.equalities.iter().map(row).collect()
    }

    /// Sums over the samples.
    fn sums(&self, x: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; self.limit.len()];
        self.at.summed.iter().for_each(|&(i, row)| out[row] += x[i]);
        out
    }

    /// The middle of all bounds, with multipliers of the gradient's size.
    fn start(&self) -> State {
        let mut shares = vec![0usize; self.limit.len()];
        self.at.summed.iter().for_each(|&(_, row)| shares[row] += 1);
        let mut x = vec![0.0; self.y.len()];
        let upper: Vec<f64> = self.blocks.iter().flat_map(|b| b.upper.iter().copied()).collect();
        self.at.bounded.iter().zip(&upper).for_each(|(&i, u)| x[i] = 0.5 * u);
        for &(i, row) in &self.at.summed {
            x[i] = 0.5 * self.limit[row] / shares[row] as f64;
        }
        let mut gradient = self.hessian_times(&x);
        axpy(1.0, &self.linear, &mut gradient);
        let size = gradient.iter().fold(f64::MIN_POSITIVE, |m, g| m.max(g.abs()));
        State {
            z: vec![size; x.len()],
            t: self.at.bounded.iter().zip(&upper).map(|(&i, u)| u - x[i]).collect(),
            w: vec![size; upper.len()],
            s: self.limit.iter().map(|v| 0.5 * v).collect(),
            xi: vec![size; self.limit.len()],
            eta: vec![0.0; self.at.equalities.len()],
            x,
        }
    }

    fn residual(&self, state: &State) -> Residual {
        let mut dual = self.hessian_times(&state.x);
        axpy(1.0, &self.linear, &mut dual);
        axpy(-1.0, &state.z, &mut dual);
        self.at.bounded.iter().zip(&state.w).for_each(|(&i, w)| dual[i] += w);
        self.at.summed.iter().for_each(|&(i, row)| dual[i] += state.xi[row]);
        self.add_equalities(&state.eta, &mut dual);
        let mut equality = self.equalities(&state.x);
        self.at.equalities.iter().zip(&mut equality).for_each(|((_, _, right), r)| *r -= right);
        Residual { dual, equality }
    }

    /// One predictor–corrector step; `None` where no length is left.
    fn step(&self, state: &State, residual: &Residual, gap: f64) -> Result<Option<State>> {
        let system = System::new(self, state)?;
        let mu = gap / state.pairs() as f64;
        let zeros = |v: &[f64]| vec![0.0; v.len()];
        let none = [zeros(&state.x), zeros(&state.t), zeros(&state.s)];
        let predictor = system.direction(state, residual, 0.0, &none);
        let reach = state.plus(state.room(&predictor).min(1.0), &predictor).complementarity() / state.pairs() as f64;
        let products = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).collect::<Vec<f64>>();
        let second = [(&predictor.x, &predictor.z), (&predictor.t, &predictor.w), (&predictor.s, &predictor.xi)]
            .map(|(a, b)| products(a, b));
        let direction = system.direction(state, residual, (reach / mu).powi(3) * mu, &second);
        let length = (INSIDE * state.room(&direction)).min(1.0);
        if length.is_nan() || length <= 1e-10 {
            return Ok(None);
        }
        Ok(Some(state.plus(length, &direction)))
    }

    fn solved(&self, state: State) -> Solved {
        let x = (0..self.blocks.len()).map(|m| state.x[self.range(m)].to_vec()).collect();
        let (mut bias, mut rho) = (Vec::new(), Vec::new());
        for (&(_, mass, _), &eta) in self.at.equalities.iter().zip(&state.eta) {
            if mass { rho.push(-eta) } else { bias.push(eta) }
        }
        Solved { x, xi: state.xi, bias, rho }
    }
}
