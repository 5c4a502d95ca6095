//! A step of Newton's method on the kernel weights.
//!
//! The optimal value J(θ) of the machine at K_θ has the gradient −g, g_m = ½ aᵀK_m a, and, where the multipliers that move stay the same,
//! the Hessian H_mk = (K_m a)ᵀ P (K_k a), with −P v the answer of the multipliers to decision values raised by v. The step minimises this
//! model over Θ, among the kernels that have weight or would get some, and not where a cut already says J is worse than at the best point.
//! Nothing rests on it: the next machine is solved at whatever weights come out.

use super::{
    super::{Point, Run, spread},
    clean,
    cuts::Cuts,
};
use crate::{
    linalg::{Matrix, dot},
    machine::{Combined, curvature},
    weights::Separable,
};

/// Kernels in the model at most: a step costs the cube of their number.
const MAX_TERMS: usize = 150;
/// Multipliers that move at most.
const MAX_MOVING: usize = 1500;
/// A kernel without weight joins when its slope is above this share of what would dual_response it some.
const NEARLY: f64 = 0.95;
/// A little of the Hessian's mean diagonal, where it is singular.
const RIDGE: f64 = 1e-9;

/// J around a point.
pub struct Model {
    /// Kernels that may have weight.
    terms: Vec<usize>,
    centre: Vec<f64>,
    gradient: Vec<f64>,
    hessian: Matrix,
}

impl Model {
    /// At `point`, solved with `kernel`; `None` where that is too dear or the Hessian cannot be had.
    pub fn new(run: &Run<'_>, set: &dyn Separable, point: &Point, kernel: &Combined) -> Option<Self> {
        let grams = run.problem.grams;
        let n = grams.n_samples();
        let terms = candidates(set, point);
        if terms.len() < 2 || terms.len() > MAX_TERMS || set.groups(point.theta.len()).len() > 1 {
            return None;
        }
        let mut hessian = Matrix::zeros(terms.len(), terms.len());
        for (part, solution) in run.problem.parts.iter().zip(&point.solutions) {
            let dual_response = run.problem.machine.dual_response(&part.task, solution);
            let a = part.rows.map_or_else(|| solution.a.clone(), |rows| spread(&solution.a, rows, n));
            let mut columns = Matrix::zeros(terms.len(), dual_response.len());
            let mut whole = vec![0.0; n];
            for (k, &t) in terms.iter().enumerate() {
                match &point.images {
                    Some(images) => whole.copy_from_slice(images.row(t)),
                    None => grams.apply(t, &a, &mut whole),
                }
                match part.rows {
                    None => columns.row_mut(k).copy_from_slice(&whole),
                    Some(rows) => columns.row_mut(k).iter_mut().zip(rows).for_each(|(o, &i)| *o = whole[i]),
                }
            }
            let selected = part.rows.map(|rows| kernel.select(rows));
            let kernel = selected.as_ref().unwrap_or(kernel);
            let h = curvature(kernel, &dual_response, part.task.intercept, &columns, MAX_MOVING).ok()??;
            hessian.data_mut().iter_mut().zip(h.data()).for_each(|(s, h)| *s += h);
        }
        let ridge = RIDGE * (0..terms.len()).map(|k| hessian[(k, k)]).sum::<f64>() / terms.len() as f64;
        (0..terms.len()).for_each(|k| hessian[(k, k)] += ridge);
        let pick = |v: &[f64]| -> Vec<f64> { terms.iter().map(|&t| v[t]).collect() };
        let (centre, gradient) = (pick(&point.theta), pick(&point.slope));
        Some(Self { terms, centre, gradient, hessian })
    }

    /// Where the model is least among the weights that no cut lifts above `level`.
    pub fn step(&self, set: &dyn Separable, cuts: &Cuts, level: f64, accuracy: f64) -> Option<Vec<f64>> {
        let model = (self.hessian.clone(), self.gradient.clone());
        let found = cuts.restrict(&self.terms).least(set, &self.centre, level, model, accuracy);
        if found.iter().any(|t| !t.is_finite()) {
            return None;
        }
        let mut theta = vec![0.0; cuts.n_terms()];
        self.terms.iter().zip(found).for_each(|(&t, x)| theta[t] = x);
        Some(clean(set, theta))
    }
}

/// Kernels with weight, and those whose slope nearly reaches what gives weight.
fn candidates(set: &dyn Separable, point: &Point) -> Vec<usize> {
    let Point { theta, slope, .. } = point;
    let steep: f64 = theta.iter().filter(|t| **t > 0.0).map(|&t| t * set.phi(t)[1]).sum();
    let threshold = NEARLY * dot(theta, slope) / steep * set.phi(f64::MIN_POSITIVE)[1];
    (0..theta.len()).filter(|&t| theta[t] > 0.0 || slope[t] >= threshold).collect()
}
