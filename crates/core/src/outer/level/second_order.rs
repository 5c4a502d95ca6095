//! A step of Newton's method on the kernel weights.
//!
//! The optimal value J(θ) of the machine at K_θ has the gradient −g, g_m = ½ aᵀK_m a, and, where
//! the multipliers that move stay the same, the Hessian H_mk = (K_m a)ᵀ P (K_k a), with −P v the
//! answer of the multipliers to decision values raised by v. The step minimises this model over Θ,
//! among the kernels that have weight or would get some, and not where a cut already says J is
//! worse than at the best point. Nothing rests on it: the next machine is solved at whatever
//! weights come out.

use super::{
    super::{Point, Run, spread},
    clean,
    cuts::Cuts,
};
use crate::{
    linalg::{Matrix, dot},
    machine::{Combined, curvature},
    tuning::tuning,
    weights::Separable,
};

tuning! { "second_order"
    /// A step is tried for at most this many kernels, because it costs the cube of their number.
    most_terms: usize = 150;
    /// A step is tried where at most this many multipliers move, because it costs the cube of their
    /// number.
    most_moving_multipliers: usize = 1500;
    /// A kernel without weight joins the model when its slope is above this share of what would
    /// give it some.
    joining_slope_share: f64 = 0.95;
}

/// The diagonal of the Hessian is raised by this share of its mean, so that alike kernels do not
/// leave it singular.
const HESSIAN_GUARD: f64 = 1e-9;

/// A quadratic model of J around a point.
pub struct QuadraticModel {
    /// Kernels that may have weight.
    terms: Vec<usize>,
    centre: Vec<f64>,
    gradient: Vec<f64>,
    hessian: Matrix,
}

impl QuadraticModel {
    /// The model at `point`, solved with `kernel`; `None` where it would cost too much or the
    /// Hessian cannot be computed.
    pub fn new(
        run: &Run<'_>,
        set: &dyn Separable,
        point: &Point,
        kernel: &Combined,
    ) -> Option<Self> {
        let grams = run.problem.grams;
        let n = grams.n_samples();
        let terms = candidates(set, point);
        if terms.len() < 2
            || terms.len() > TUNING.most_terms
            || set.groups(point.theta.len()).len() > 1
        {
            return None;
        }
        let mut hessian = Matrix::zeros(terms.len(), terms.len());
        for (part, solution) in run.problem.parts.iter().zip(&point.solutions) {
            let dual_response = run.problem.machine.dual_response(&part.task, solution);
            let a =
                part.rows.map_or_else(|| solution.a.clone(), |rows| spread(&solution.a, rows, n));
            let mut columns = Matrix::zeros(terms.len(), dual_response.len());
            let mut whole = vec![0.0; n];
            for (k, &t) in terms.iter().enumerate() {
                match &point.images {
                    Some(images) => whole.copy_from_slice(images.row(t)),
                    None => grams.apply(t, &a, &mut whole),
                }
                match part.rows {
                    None => columns.row_mut(k).copy_from_slice(&whole),
                    Some(rows) => {
                        columns.row_mut(k).iter_mut().zip(rows).for_each(|(o, &i)| *o = whole[i]);
                    }
                }
            }
            let selected = part.rows.map(|rows| kernel.select(rows));
            let kernel = selected.as_ref().unwrap_or(kernel);
            let h = curvature(
                kernel,
                &dual_response,
                part.task.intercept,
                &columns,
                TUNING.most_moving_multipliers,
            )
            .ok()??;
            hessian.data_mut().iter_mut().zip(h.data()).for_each(|(s, h)| *s += h);
        }
        let ridge = HESSIAN_GUARD * (0..terms.len()).map(|k| hessian[(k, k)]).sum::<f64>()
            / terms.len() as f64;
        (0..terms.len()).for_each(|k| hessian[(k, k)] += ridge);
        let pick = |v: &[f64]| -> Vec<f64> { terms.iter().map(|&t| v[t]).collect() };
        let (centre, gradient) = (pick(&point.theta), pick(&point.slope));
        Some(Self { terms, centre, gradient, hessian })
    }

    /// The weights where the model is least among those that no cut lifts above `level`.
    pub fn step(
        &self,
        set: &dyn Separable,
        cuts: &Cuts,
        level: f64,
        accuracy: f64,
    ) -> Option<Vec<f64>> {
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
    let threshold =
        TUNING.joining_slope_share * dot(theta, slope) / steep * set.phi(f64::MIN_POSITIVE)[1];
    (0..theta.len()).filter(|&t| theta[t] > 0.0 || slope[t] >= threshold).collect()
}
