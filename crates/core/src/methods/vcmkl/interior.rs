//! An interior-point method for quadratic programs whose Hessian is block diagonal and whose blocks
//! meet only in sums over samples.
//!
//! Solves  min over x :  Σ_m ½ x_mᵀ H_m x_m + c_mᵀ x_m
//!         s.t.  x ≥ 0,  x_im ≤ u_im (negatives),  Σ_m x_im ≤ v_i (positives),  y_mᵀ x_m = 0,  and 1ᵀ x_m = ν_m where a mass is given.
//! In: for every rule m the Gram matrix, its rows and bounds.
//!   Out: x with all multipliers, and the complementarity gap.   Paper:
//! [Mehrotra1992].
//!
//! The linear system of a step is in [`system`]. Slacks of the inequalities are exact in every
//! iterate because the start is inside them.

mod system;

use rayon::prelude::*;

use self::system::RulesSystem;
use crate::{
    Result,
    gram::{Factor, Gram, RankLimit},
    linalg::{
        Matrix, axpy, dot,
        mehrotra::{self, centring},
    },
    tuning::tuning,
};

tuning! { "vcmkl_interior"
    /// The method ends after this many steps with the best iterate.
    most_steps: usize = 80;
    /// Factors take the place of H where the ranks of all rules together are at most this share of
    /// the variables.
    largest_rank_share: f64 = 0.3;
    /// An answer whose merit is above this, in units of the objective, and above what was asked
    /// for, is sought again without factors.
    poor_merit: f64 = 1e-8;
    /// Steps in a row that may be worse than the best iterate while that is poor.
    patience_steps_while_poor: usize = 20;
    /// Steps in a row that may be worse than the best iterate once that is not poor.
    patience_steps: usize = 5;
}

/// Factors leave out at most this share of the trace of H: rounding.
const FACTOR_ROUNDING: f64 = 1e-14;

/// One rule's variables: its negatives first, then its positives.
pub(super) struct Block<'a> {
    pub kernel: &'a Gram,
    /// The samples of the variables.
    pub index: Vec<usize>,
    /// Upper bounds of the negatives, which come first.
    pub upper: Vec<f64>,
    /// The sum each positive belongs to.
    pub row: Vec<usize>,
    /// The linear term c of the objective.
    pub linear: Vec<f64>,
    /// The sum ν of the block, where it is prescribed.
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

/// A program with its solution.
pub(super) struct Solved {
    /// The variables x, rule by rule.
    pub x: Vec<Vec<f64>>,
    /// Multipliers of the sums.
    pub xi: Vec<f64>,
    /// Multiplier b of yᵀx = 0, rule by rule.
    pub bias: Vec<f64>,
    /// ρ: minus the multiplier of the mass, where there is one.
    pub rho: Vec<f64>,
}

/// An iterate: variables x, slacks t of upper bounds and s of sums, and the multipliers z, w and ξ
/// of all three, η of the equalities.
#[derive(Clone)]
struct RuleIterate {
    x: Vec<f64>,
    z: Vec<f64>,
    t: Vec<f64>,
    w: Vec<f64>,
    s: Vec<f64>,
    xi: Vec<f64>,
    eta: Vec<f64>,
}

/// The places of everything in flat vectors. Variables are numbered rule after rule.
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
    /// (F Aᵀ) with H = F Fᵀ, and the rank of F, where that is low.
    factor: Option<(Matrix, usize)>,
    linear: Vec<f64>,
    /// The sign ±1 of every variable in the equalities.
    y: Vec<f64>,
    at: Layout,
}

/// Solves to a complementarity gap of `accuracy` relative to the objective or `floor`, whichever is
/// larger, or as far as rounding allows. Every block needs variables of both signs.
pub(super) fn solve(
    blocks: &[Block<'_>],
    limit: &[f64],
    accuracy: f64,
    floor: f64,
) -> Result<Solved> {
    let mut program = Program::new(blocks, limit);
    program.factor = program.low_rank_factor();
    if program.factor.is_some() {
        if let Ok((merit, state)) = iterate(&program, accuracy, floor)
            && merit <= TUNING.poor_merit.max(accuracy)
        {
            return Ok(program.solved(state));
        }
        program.factor = None;
    }
    Ok(program.solved(iterate(&program, accuracy, floor)?.1))
}

/// The best iterate, and how far it is from the optimum.
fn iterate(program: &Program<'_>, accuracy: f64, floor: f64) -> Result<(f64, RuleIterate)> {
    let mut state = program.start();
    // The best iterate: a late step may lose what rounding cannot hold.
    let mut best = (f64::INFINITY, state.clone());
    let mut worse = 0;
    for _ in 0..TUNING.most_steps {
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
        let poor = best.0 > TUNING.poor_merit;
        let patience = if poor { TUNING.patience_steps_while_poor } else { TUNING.patience_steps };
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
    /// The cost of the infeasibility in units of the objective.
    fn cost(&self, state: &RuleIterate) -> f64 {
        let dual: f64 = self.dual.iter().zip(&state.x).map(|(r, x)| (r * x).abs()).sum();
        dual + self.equality.iter().zip(&state.eta).map(|(r, e)| (r * e).abs()).sum::<f64>()
    }
}

impl RuleIterate {
    fn pairs(&self) -> usize {
        self.x.len() + self.t.len() + self.s.len()
    }

    fn complementarity(&self) -> f64 {
        dot(&self.x, &self.z) + dot(&self.t, &self.w) + dot(&self.s, &self.xi)
    }

    /// The longest step along `d` that keeps everything ≥ 0, at most `longest`.
    fn step_to_boundary(&self, longest: f64, d: &Self) -> f64 {
        let pairs = [
            (&self.x, &d.x),
            (&self.z, &d.z),
            (&self.t, &d.t),
            (&self.w, &d.w),
            (&self.s, &d.s),
            (&self.xi, &d.xi),
        ];
        mehrotra::step_to_boundary(longest, pairs.into_iter().flat_map(|(v, d)| v.iter().zip(d)))
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
        let mut at = Layout {
            first: vec![0],
            bounded: Vec::new(),
            summed: Vec::new(),
            equalities: Vec::new(),
        };
        let (mut linear, mut y) = (Vec::new(), Vec::new());
        for (m, block) in blocks.iter().enumerate() {
            let (first, n, negatives) = (at.first[m], block.index.len(), block.negatives());
            at.bounded.extend(first..first + negatives);
            at.summed
                .extend(block.row.iter().enumerate().map(|(k, &row)| (first + negatives + k, row)));
            at.equalities.push((m, false, 0.0));
            at.equalities.extend(block.mass.map(|mass| (m, true, mass)));
            linear.extend_from_slice(&block.linear);
            y.extend((0..n).map(|i| block.sign(i)));
            at.first.push(first + n);
        }
        Self { blocks, limit, hessians, factor: None, linear, y, at }
    }

    /// (F Aᵀ) and the rank of F, if the kernels of all rules have low ranks.
    fn low_rank_factor(&self) -> Option<(Matrix, usize)> {
        let n = self.y.len();
        let most = (TUNING.largest_rank_share * n as f64) as usize;
        let mut factors = Vec::new();
        for h in &self.hessians {
            let limit = RankLimit { tolerance: FACTOR_ROUNDING, max_rank: most.min(h.rows()) };
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

    /// The products H x.
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

    /// The equalities' left-hand sides A x.
    fn equalities(&self, x: &[f64]) -> Vec<f64> {
        let row = |&(m, mass, _): &(usize, bool, f64)| {
            self.range(m).map(|i| if mass { x[i] } else { self.y[i] * x[i] }).sum::<f64>()
        };
        self.at.equalities.iter().map(row).collect()
    }

    /// The sums of x over the samples.
    fn sums(&self, x: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; self.limit.len()];
        self.at.summed.iter().for_each(|&(i, row)| out[row] += x[i]);
        out
    }

    /// The middle of all bounds, with multipliers of the gradient's size.
    fn start(&self) -> RuleIterate {
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
        RuleIterate {
            z: vec![size; x.len()],
            t: self.at.bounded.iter().zip(&upper).map(|(&i, u)| u - x[i]).collect(),
            w: vec![size; upper.len()],
            s: self.limit.iter().map(|v| 0.5 * v).collect(),
            xi: vec![size; self.limit.len()],
            eta: vec![0.0; self.at.equalities.len()],
            x,
        }
    }

    fn residual(&self, state: &RuleIterate) -> Residual {
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

    /// Makes one predictor–corrector step; `None` where no length is left.
    fn step(
        &self,
        state: &RuleIterate,
        residual: &Residual,
        gap: f64,
    ) -> Result<Option<RuleIterate>> {
        let system = RulesSystem::new(self, state)?;
        let mu = gap / state.pairs() as f64;
        let zeros = |v: &[f64]| vec![0.0; v.len()];
        let none = [zeros(&state.x), zeros(&state.t), zeros(&state.s)];
        let predictor = system.direction(state, residual, 0.0, &none);
        let length = state.step_to_boundary(1.0, &predictor);
        let reached = state.plus(length, &predictor).complementarity() / state.pairs() as f64;
        let products =
            |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).collect::<Vec<f64>>();
        let second = [
            (&predictor.x, &predictor.z),
            (&predictor.t, &predictor.w),
            (&predictor.s, &predictor.xi),
        ]
        .map(|(a, b)| products(a, b));
        let direction = system.direction(state, residual, centring(mu, reached) * mu, &second);
        let inside = mehrotra::TUNING.boundary_share;
        let length = (inside * state.step_to_boundary(1.0 / inside, &direction)).min(1.0);
        if length.is_nan() || length <= mehrotra::TUNING.shortest_step_length {
            return Ok(None);
        }
        Ok(Some(state.plus(length, &direction)))
    }

    fn solved(&self, state: RuleIterate) -> Solved {
        let x = (0..self.blocks.len()).map(|m| state.x[self.range(m)].to_vec()).collect();
        let (mut bias, mut rho) = (Vec::new(), Vec::new());
        for (&(_, mass, _), &eta) in self.at.equalities.iter().zip(&state.eta) {
            if mass { rho.push(-eta) } else { bias.push(eta) }
        }
        Solved { x, xi: state.xi, bias, rho }
    }
}
