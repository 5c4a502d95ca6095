//! An interior-point method for quadratic programs whose Hessian is block diagonal and whose blocks meet only in sums over samples.
//!
//! Solves  min over x :  Σ_m ½ x_mᵀ H_m x_m + c_mᵀ x_m
//!         s.t.  x ≥ 0,  x_im ≤ u_im (negatives),  Σ_m x_im ≤ v_i (positives),  y_mᵀ x_m = 0,  and 1ᵀ x_m = ν_m where a mass is given.
//! In: for every rule m the Gram matrix, its rows and bounds.   Out: x with all multipliers, and the complementarity gap.
//!
//! Mehrotra's predictor and corrector. A step factors H_m + D_m for each rule and one matrix of the size of the sums; slacks of the
//! inequalities are exact in every iterate because the start is inside them. A singular H_m (linear kernels) needs no care but a ridge in
//! the factorisation, whose effect two rounds of refinement remove.

use rayon::prelude::*;

use super::thin::Thin;
use crate::{
    Result,
    gram::{Factor, Gram, RankLimit},
    linalg::{Cholesky, Matrix, axpy, dot},
};

const MAX_STEPS: usize = 80;
/// Share of the way to the border that a step may go.
const INSIDE: f64 = 0.995;
/// Up to so many variables the system is factored as one matrix.
const SMALL: usize = 2500;
/// Ranks of all rules together, as a share of the variables, up to which factors take the place of H; and what they leave of its trace.
const LOW: f64 = 0.3;
const LEFT: f64 = 1e-14;
/// An answer worse than this, or than what was asked for, is sought again without factors.
const POOR: f64 = 1e-8;
/// Rounds of refinement at most.
const REFINEMENTS: usize = 6;
/// Ridge of a factorisation, relative to the largest diagonal entry of H.
const RIDGE: f64 = 1e-10;

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
        if merit <= accuracy || worse > 5 || !merit.is_finite() {
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

/// The Newton system at one iterate, factored:  (H + D + EᵀΣE) dx + Aᵀ dη = r,  A dx = q,
/// where E sums over samples, D = z/x + w/t and Σ = ξ/s.
struct System<'p> {
    program: &'p Program<'p>,
    diagonal: Vec<f64>,
    sigma: Vec<f64>,
    factored: Factored,
    /// Columns (H + D + EᵀΣE)⁻¹ Aᵀ.
    columns: Vec<Vec<f64>>,
    /// Of A (H + D + EᵀΣE)⁻¹ Aᵀ.
    small: Option<Cholesky>,
}

/// H + D + EᵀΣE: through thin factors where there are; as it is where it is small, which is more accurate; else rule by rule with a
/// correction for the sums.
enum Factored {
    Thin(Thin),
    Whole(Whole),
    Blocks {
        rules: Vec<Cholesky>,
        /// Of I + Σ^½ (E (H+D)⁻¹ Eᵀ) Σ^½.
        coupling: Cholesky,
    },
}

impl<'p> System<'p> {
    fn new(program: &'p Program<'p>, state: &State) -> Result<Self> {
        let at = &program.at;
        let mut diagonal: Vec<f64> = state.z.iter().zip(&state.x).map(|(z, x)| z / x).collect();
        at.bounded.iter().enumerate().for_each(|(k, &i)| diagonal[i] += state.w[k] / state.t[k]);
        let sigma: Vec<f64> = state.xi.iter().zip(&state.s).map(|(xi, s)| xi / s).collect();
        if let Some((columns, rank)) = &program.factor {
            let factored = Factored::Thin(Thin::new(columns, *rank, &diagonal, &at.summed, &sigma)?);
            return Ok(Self { program, diagonal, sigma, factored, columns: Vec::new(), small: None });
        }
        let factored = if program.y.len() <= SMALL {
            Factored::Whole(Whole::new(program, &diagonal, &sigma)?)
        } else {
            by_blocks(program, &diagonal, &sigma)?
        };
        let mut system = Self { program, diagonal, sigma, factored, columns: Vec::new(), small: None };
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
        (0..e).for_each(|k| small[(k, k)] *= 1.0 + 1e-13);
        system.small = Some(Cholesky::new(small, "the equalities of the rules")?);
        system.columns = columns;
        Ok(system)
    }

    /// v ← (H + D + EᵀΣE)⁻¹ v.
    fn solve_inequalities(&self, v: &mut [f64]) {
        let (rules, coupling) = match &self.factored {
            Factored::Thin(_) => return,
            Factored::Whole(whole) => return whole.solve(v),
            Factored::Blocks { rules, coupling } => (rules, coupling),
        };
        let p = self.program;
        let blocks = |v: &mut [f64]| (0..rules.len()).for_each(|m| rules[m].solve(&mut v[p.range(m)]));
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
        if let Factored::Thin(thin) = &self.factored {
            let eta = thin.solve(&mut r, q);
            return (r, eta);
        }
        self.solve_inequalities(&mut r);
        let mut eta: Vec<f64> = self.program.equalities(&r).iter().zip(q).map(|(a, q)| a - q).collect();
        if let Some(small) = &self.small {
            small.solve(&mut eta);
        }
        self.columns.iter().zip(&eta).for_each(|(column, e)| axpy(-e, column, &mut r));
        (r, eta)
    }

    /// The same, refined against the matrix without its ridge for as long as that helps.
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
        let enough = 1e-22 * (dot(r, r) + dot(q, q));
        for _ in 0..REFINEMENTS {
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

    /// The Newton direction towards complementarity `target`, with second-order terms for the pairs (x, z), (t, w), (s, ξ).
    fn direction(&self, state: &State, residual: &Residual, target: f64, second: &[Vec<f64>; 3]) -> State {
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
        State {
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

/// One matrix for all rules, in variables where each sum stands in the place of its freest member (`pivots`): Σ, which grows without
/// bound, then adds to a diagonal entry and cancels nothing.
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
            let freest =
                (0..others.len()).fold(0, |b, c| if diagonal[others[c]] < diagonal[others[b]] { c } else { b });
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
            pivots.iter().for_each(|(pivot, others)| others.iter().for_each(|&j| row[j] -= row[*pivot]));
        }
        pivots.iter().zip(sigma).for_each(|((pivot, _), s)| k[(*pivot, *pivot)] += s);
        Ok(Self { factor: factor(k, program.largest())?, pivots })
    }

    fn solve(&self, v: &mut [f64]) {
        self.pivots.iter().for_each(|(pivot, others)| others.iter().for_each(|&i| v[i] -= v[*pivot]));
        self.factor.solve(v);
        self.pivots.iter().for_each(|(pivot, others)| others.iter().for_each(|&i| v[*pivot] -= v[i]));
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
            block.row.iter().zip(tail.row(i)).for_each(|(&from, t)| out[from] += root[to] * t * root[from]);
        }
    }
    (0..sigma.len()).for_each(|i| coupling[(i, i)] += 1.0);
    let rules = parts.into_iter().map(|(f, _)| f).collect();
    Ok(Factored::Blocks { rules, coupling: Cholesky::new(coupling, "the coupling of the rules")? })
}

/// K with as much of a ridge as it takes; `largest` is the size of the Hessian's diagonal.
fn factor(mut k: Matrix, largest: f64) -> Result<Cholesky> {
    let mut ridge = RIDGE * largest;
    (0..k.rows()).for_each(|i| k[(i, i)] += ridge);
    loop {
        match Cholesky::new(k.clone(), "a rule's kernel matrix") {
            Err(_) if ridge < 1e-3 * largest => {
                (0..k.rows()).for_each(|i| k[(i, i)] += 99.0 * ridge);
                ridge *= 100.0;
            }
            other => return other,
        }
    }
}
