//! Mehrotra's predictor–corrector method for the sub-problems of the level method.
//!
//! Solves  min over θ in Θ :  τ, or ½ ‖θ − centre‖², or a quadratic
//!   subject to cuts below τ, or below a level.
//! In: cuts, Θ, a centre.   Out: the multipliers of the cuts, and θ.   Paper: [Mehrotra1992].
//! The Hessian is mostly diagonal, so a step costs one Schur complement of size t + groups.

use std::ops::Range;

use super::Cuts;
use crate::{
    linalg::{
        Cholesky, Matrix, axpy, dot, gemm_nt,
        mehrotra::{self, centring},
    },
    tuning::tuning,
    weights::Separable,
};

tuning! { "level_interior"
    /// The method ends after this many steps with the point it has reached, which is valid whatever
    /// its accuracy.
    most_steps: usize = 80;
    /// The start is this share of the uniform point, the rest of it the centre: strictly inside,
    /// and near where the answer is expected.
    uniform_share: f64 = 0.2;
    /// The start is this much shorter than the boundary of Θ at least, as a factor on θ, or shorter
    /// where φ is not so steep that φ' vanishes.
    shortening: f64 = 0.9;
    /// The first slack of a cut is at least this share of the range of all cuts at the start.
    first_slack_share: f64 = 0.1;
    /// A projection is solved to this share of the accuracy asked for: a distance is quadratic in
    /// small numbers, where a bound is linear.
    projection_accuracy_share: f64 = 1e-3;
    /// A projection is never solved less accurately than this, in units of the scaled cuts, before
    /// `projection_accuracy_share`.
    coarsest_projection: f64 = 1e-9;
    /// The method ends where residuals and products have grown to this many times the smallest so
    /// far: rounding has taken over.
    diverging_factor: f64 = 1e3;
    /// A step is halved while it ends with a constraint value above this; the constraint itself is
    /// at most 1.
    largest_constraint: f64 = 2.0;
}

/// Products of pairs below this, in units of the scaled cuts, are rounding.
const ROUNDED_PRODUCTS: f64 = 1e-14;
/// Residuals below this, in units of the scaled cuts, are rounding.
const ROUNDED_RESIDUAL: f64 = 1e-13;
/// The diagonal of the Schur complement is raised by this share of itself: cuts that are almost the
/// same make it singular to rounding.
const SCHUR_GUARD: f64 = 1e-14;

/// One sub-problem and the point its solution has reached.
pub(super) struct InteriorPoint<'a> {
    set: &'a dyn Separable,
    groups: Vec<Range<usize>>,
    /// Values of the cuts, from the level and in units of the largest slope.
    values: Vec<f64>,
    slopes: Matrix,
    /// `None`: the bound problem, with its extra variable τ.
    centre: Option<&'a [f64]>,
    /// The objective −⟨g, d⟩ + ½ dᵀHd in d = θ − centre, scaled like the cuts, instead of ½ ‖d‖².
    quadratic: Option<(Matrix, Vec<f64>)>,
    /// The accuracy asked for, in units of the scaled cuts.
    accuracy: f64,
    theta: Vec<f64>,
    tau: f64,
    /// Slacks and multipliers: t cuts, then the groups.
    slack: Vec<f64>,
    multiplier: Vec<f64>,
    /// Multipliers of θ ≥ 0.
    z: Vec<f64>,
}

/// The change that one step makes to everything.
struct CutStep {
    theta: Vec<f64>,
    tau: f64,
    slack: Vec<f64>,
    multiplier: Vec<f64>,
    z: Vec<f64>,
}

impl<'a> InteriorPoint<'a> {
    pub fn new(
        cuts: &Cuts,
        set: &'a dyn Separable,
        centre: &'a [f64],
        level: Option<f64>,
        quadratic: Option<(Matrix, Vec<f64>)>,
        accuracy: f64,
    ) -> Self {
        let (t, q) = (cuts.values.len(), centre.len());
        // Values are measured from the level (or the largest cut) and in units of the largest
        // slope.
        let origin = level.unwrap_or_else(|| cuts.values.iter().copied().fold(f64::MIN, f64::max));
        let unit = cuts.slopes.iter().flatten().copied().fold(f64::MIN_POSITIVE, f64::max);
        let values: Vec<f64> = cuts.values.iter().map(|v| (v - origin) / unit).collect();
        let mut slopes = Matrix::zeros(t, q);
        for (i, s) in cuts.slopes.iter().enumerate() {
            slopes.row_mut(i).iter_mut().zip(s).for_each(|(o, x)| *o = x / unit);
        }
        // Strictly inside: mostly the centre, some of the uniform point, a little shorter, but not
        // so short that φ' vanishes (steep φ).
        let start = set.start(q);
        let mut theta: Vec<f64> = centre
            .iter()
            .zip(&start)
            .map(|(c, s)| (1.0 - TUNING.uniform_share) * c + TUNING.uniform_share * s)
            .collect();
        let largest = theta.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        let [value, slope, _] = set.phi(largest);
        let inside = TUNING.shortening.max(1.0 - value / (2.0 * slope * largest));
        theta.iter_mut().for_each(|t| *t *= inside);
        let groups = set.groups(q);
        let excess: Vec<f64> = (0..t).map(|i| values[i] - dot(slopes.row(i), &theta)).collect();
        let worst = excess.iter().copied().fold(f64::MIN, f64::max);
        let spread = worst - excess.iter().copied().fold(f64::MAX, f64::min);
        let pad =
            TUNING.first_slack_share * (spread + dot(slopes.row(t - 1), &theta).abs()).max(1e-12);
        let tau = if level.is_none() { worst + pad } else { 0.0 };
        let mut slack: Vec<f64> = excess.iter().map(|e| (tau - e).max(pad)).collect();
        slack.extend(
            groups.iter().map(|g| 1.0 - g.clone().map(|m| set.phi(theta[m])[0]).sum::<f64>()),
        );
        let mut multiplier = vec![1.0 / t as f64; t];
        let target = dot(&slack[..t], &multiplier) / t as f64;
        multiplier.extend(slack[t..].iter().map(|s| target / s));
        let z = theta.iter().map(|x| target / x).collect();
        let accuracy = accuracy / unit;
        let centre = level.map(|_| centre);
        let quadratic = quadratic.map(|(mut h, mut g)| {
            h.data_mut().iter_mut().chain(&mut g).for_each(|x| *x /= unit);
            (h, g)
        });
        Self {
            set,
            groups,
            values,
            slopes,
            centre,
            quadratic,
            accuracy,
            theta,
            tau,
            slack,
            multiplier,
            z,
        }
    }

    fn cuts(&self) -> usize {
        self.values.len()
    }

    /// The mean of the products of all pairs.
    fn complementarity(&self) -> f64 {
        let pairs = self.slack.len() + self.theta.len();
        (dot(&self.slack, &self.multiplier) + dot(&self.theta, &self.z)) / pairs as f64
    }

    /// Returns the cuts' multipliers and θ.
    pub fn run(mut self) -> (Vec<f64>, Vec<f64>) {
        let mut best = f64::INFINITY;
        for _ in 0..TUNING.most_steps {
            let (progress, residual) = (self.complementarity(), self.residual());
            let merit = progress + residual;
            let distance = self.centre.is_some() && self.quadratic.is_none();
            let enough = if distance {
                TUNING.projection_accuracy_share * self.accuracy.min(TUNING.coarsest_projection)
            } else {
                self.accuracy
            };
            let close = progress * (self.slack.len() + self.theta.len()) as f64
                <= enough.max(ROUNDED_PRODUCTS);
            let solved = close && residual <= self.accuracy.max(ROUNDED_RESIDUAL);
            if !merit.is_finite() || solved || merit > TUNING.diverging_factor * best {
                break;
            }
            best = best.min(merit);
            let Some(step) = self.newton(progress) else { break };
            let mut length = mehrotra::TUNING.boundary_share * self.step_to_boundary(&step);
            // Linearised constraints mislead where φ is steep: a step must not end far outside.
            while length >= mehrotra::TUNING.shortest_step_length
                && self.worst_group(&step, length) > TUNING.largest_constraint
            {
                length *= 0.5;
            }
            if length < mehrotra::TUNING.shortest_step_length {
                break;
            }
            self.advance(&step, length);
        }
        self.multiplier.truncate(self.values.len());
        (self.multiplier, self.theta)
    }

    /// Largest Σφ over the groups after a step.
    fn worst_group(&self, step: &CutStep, length: f64) -> f64 {
        let after = |m: usize| self.set.phi(self.theta[m] + length * step.theta[m])[0];
        self.groups.iter().map(|g| g.clone().map(after).sum()).fold(0.0, f64::max)
    }

    /// Largest violation of the optimality equations other than complementarity.
    fn residual(&self) -> f64 {
        let largest = |v: &[f64]| v.iter().fold(0.0f64, |m, x| m.max(x.abs()));
        largest(&self.primal_residual())
            .max(largest(&self.dual_residual()))
            .max(self.balance().abs())
    }

    /// 1 − Σ multipliers of the cuts (bound problem only).
    fn balance(&self) -> f64 {
        if self.centre.is_some() {
            0.0
        } else {
            1.0 - self.multiplier[..self.cuts()].iter().sum::<f64>()
        }
    }

    /// Constraint minus slack: τ − value + ⟨slope, θ⟩ − s for cuts, 1 − Σφ − s for groups.
    fn primal_residual(&self) -> Vec<f64> {
        let t = self.cuts();
        let cut = |i: usize| {
            self.tau - self.values[i] + dot(self.slopes.row(i), &self.theta) - self.slack[i]
        };
        let group = |(k, g): (usize, &Range<usize>)| {
            1.0 - g.clone().map(|m| self.set.phi(self.theta[m])[0]).sum::<f64>() - self.slack[t + k]
        };
        (0..t).map(cut).chain(self.groups.iter().enumerate().map(group)).collect()
    }

    /// ∇ objective − Σ λ slope + μ φ' − z.
    fn dual_residual(&self) -> Vec<f64> {
        let t = self.cuts();
        let mut r: Vec<f64> = self.z.iter().map(|z| -z).collect();
        if let Some(centre) = self.centre {
            let moved: Vec<f64> = self.theta.iter().zip(centre).map(|(x, c)| x - c).collect();
            match &self.quadratic {
                None => axpy(1.0, &moved, &mut r),
                Some((h, g)) => (0..r.len()).for_each(|m| r[m] += dot(h.row(m), &moved) - g[m]),
            }
        }
        for i in 0..t {
            axpy(-self.multiplier[i], self.slopes.row(i), &mut r);
        }
        for (k, g) in self.groups.iter().enumerate() {
            g.clone().for_each(|m| r[m] += self.multiplier[t + k] * self.set.phi(self.theta[m])[1]);
        }
        r
    }

    /// The corrector's step, with Mehrotra's centring.
    fn newton(&self, progress: f64) -> Option<CutStep> {
        let system = Linearised::new(self)?;
        let (rows, q) = (self.slack.len(), self.theta.len());
        let predictor = system.solve(self, &vec![0.0; rows], &vec![0.0; q]);
        let length = self.step_to_boundary(&predictor);
        let product = |x: &[f64], dx: &[f64], y: &[f64], dy: &[f64]| -> f64 {
            (0..x.len()).map(|i| (x[i] + length * dx[i]) * (y[i] + length * dy[i])).sum()
        };
        let after =
            (product(&self.slack, &predictor.slack, &self.multiplier, &predictor.multiplier)
                + product(&self.theta, &predictor.theta, &self.z, &predictor.z))
                / (rows + q) as f64;
        let target = progress * centring(progress, after);
        let row_target: Vec<f64> =
            (0..rows).map(|i| target - predictor.slack[i] * predictor.multiplier[i]).collect();
        let theta_target: Vec<f64> =
            (0..q).map(|m| target - predictor.theta[m] * predictor.z[m]).collect();
        Some(system.solve(self, &row_target, &theta_target))
    }

    /// The longest step, at most 1, that keeps everything non-negative.
    fn step_to_boundary(&self, step: &CutStep) -> f64 {
        let pairs = [
            (&self.theta, &step.theta),
            (&self.slack, &step.slack),
            (&self.multiplier, &step.multiplier),
            (&self.z, &step.z),
        ];
        mehrotra::step_to_boundary(1.0, pairs.into_iter().flat_map(|(x, dx)| x.iter().zip(dx)))
    }

    fn advance(&mut self, step: &CutStep, length: f64) {
        self.tau += length * step.tau;
        axpy(length, &step.theta, &mut self.theta);
        axpy(length, &step.slack, &mut self.slack);
        axpy(length, &step.multiplier, &mut self.multiplier);
        axpy(length, &step.z, &mut self.z);
    }
}

/// The Newton equations at one point, factored.
///
/// With D = H + μφ'' + z/θ (H the objective's Hessian, mostly diagonal) and B = [slopes; −φ'],
/// eliminating dz, ds and dθ = D⁻¹(e + Bᵀdν) leaves (B D⁻¹ Bᵀ + diag(s/ν)) dν + [1; 0] dτ = rhs,
/// and Σ dλ = balance fixes dτ.
struct Linearised {
    /// B D^{-1/2}.
    half: Matrix,
    root: Root,
    schur: Cholesky,
    primal: Vec<f64>,
    dual: Vec<f64>,
}

/// D^{-1/2}: L⁻ᵀ for D = L Lᵀ.
enum Root {
    Diagonal(Vec<f64>),
    Dense(Cholesky),
}

impl Root {
    /// v ← L⁻¹ v.
    fn lower(&self, v: &mut [f64]) {
        match self {
            Self::Diagonal(root) => v.iter_mut().zip(root).for_each(|(x, r)| *x *= r),
            Self::Dense(cholesky) => cholesky.solve_lower(v),
        }
    }

    /// v ← L⁻ᵀ v.
    fn upper(&self, v: &mut [f64]) {
        match self {
            Self::Diagonal(_) => self.lower(v),
            Self::Dense(cholesky) => cholesky.solve_upper(v),
        }
    }
}

impl Linearised {
    fn new(at: &InteriorPoint<'_>) -> Option<Self> {
        let (t, q, rows) = (at.cuts(), at.theta.len(), at.slack.len());
        let unit = at.centre.is_some() && at.quadratic.is_none();
        let mut curvature: Vec<f64> =
            (0..q).map(|m| at.z[m] / at.theta[m] + f64::from(unit)).collect();
        let mut half = Matrix::zeros(rows, q);
        for i in 0..t {
            half.row_mut(i).copy_from_slice(at.slopes.row(i));
        }
        for (k, g) in at.groups.iter().enumerate() {
            for m in g.clone() {
                let [_, slope, bend] = at.set.phi(at.theta[m]);
                half[(t + k, m)] = -slope;
                curvature[m] += at.multiplier[t + k] * bend;
            }
        }
        let root = match &at.quadratic {
            None => Root::Diagonal(curvature.iter().map(|d| 1.0 / d.sqrt()).collect()),
            Some((h, _)) => {
                let mut d = h.clone();
                (0..q).for_each(|m| d[(m, m)] += curvature[m]);
                Root::Dense(Cholesky::new(d, "a second-order step").ok()?)
            }
        };
        (0..rows).for_each(|i| root.lower(half.row_mut(i)));
        let mut schur = Matrix::zeros(rows, rows);
        gemm_nt(rows, rows, q, half.data(), half.data(), schur.data_mut(), rows);
        for i in 0..rows {
            // Near-duplicate cuts make the matrix singular to rounding.
            let ridge = SCHUR_GUARD * schur[(i, i)];
            schur[(i, i)] += at.slack[i] / at.multiplier[i] + ridge;
        }
        let schur = Cholesky::new(schur, "a level sub-problem").ok()?;
        Some(Self { half, root, schur, primal: at.primal_residual(), dual: at.dual_residual() })
    }

    /// The step towards complementarity products `row_target` (cuts and groups) and `theta_target`
    /// (θ ≥ 0).
    fn solve(&self, at: &InteriorPoint<'_>, row_target: &[f64], theta_target: &[f64]) -> CutStep {
        let (t, rows, q) = (at.cuts(), at.slack.len(), at.theta.len());
        // e = −dual residual + target/θ − z, already multiplied by D^{-1/2}.
        let mut e: Vec<f64> =
            (0..q).map(|m| theta_target[m] / at.theta[m] - at.z[m] - self.dual[m]).collect();
        self.root.lower(&mut e);
        let mut x: Vec<f64> = (0..rows)
            .map(|i| {
                row_target[i] / at.multiplier[i]
                    - at.slack[i]
                    - self.primal[i]
                    - dot(self.half.row(i), &e)
            })
            .collect();
        self.schur.solve(&mut x);
        let mut tau = 0.0;
        if at.centre.is_none() {
            let mut ones: Vec<f64> = (0..rows).map(|i| f64::from(i < t)).collect();
            self.schur.solve(&mut ones);
            tau = (x[..t].iter().sum::<f64>() - at.balance()) / ones[..t].iter().sum::<f64>();
            axpy(-tau, &ones, &mut x);
        }
        let mut theta = e;
        for i in 0..rows {
            axpy(x[i], self.half.row(i), &mut theta);
        }
        self.root.upper(&mut theta);
        let z = (0..q)
            .map(|m| (theta_target[m] - at.z[m] * theta[m]) / at.theta[m] - at.z[m])
            .collect();
        let slack = (0..rows)
            .map(|i| (row_target[i] - at.slack[i] * x[i]) / at.multiplier[i] - at.slack[i])
            .collect();
        CutStep { theta, tau, slack, multiplier: x, z }
    }
}
