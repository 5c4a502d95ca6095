//! The two sub-problems of the level method, by one structured interior-point method.
//!
//! Cuts value_i − ⟨slope_i, θ⟩ (i ≤ t) bound the objective from below over Θ = { θ ≥ 0 : Σ_group
//! φ(θ_m) ≤ 1 }. Solved are
//!   bound     min over θ in Θ, τ :  τ               subject to  value_i − ⟨slope_i, θ⟩ ≤ τ
//!   nearest   min over θ in Θ    :  ½ ‖θ − centre‖²  subject to  value_i − ⟨slope_i, θ⟩ ≤ level.
//!   least     the same with −⟨g, d⟩ + ½ dᵀHd, d = θ − centre, instead of the distance.
//! No answer is trusted: every multiplier vector gives a valid lower bound, and every θ is scaled
//! into Θ.

mod interior;

use interior::InteriorPoint;

use crate::{
    linalg::{Matrix, axpy, dot},
    weights::Separable,
};

/// Lower bounds on the objective, affine in θ.
#[derive(Debug, Clone, Default)]
pub struct Cuts {
    values: Vec<f64>,
    slopes: Vec<Vec<f64>>,
    /// The multipliers each cut comes from, part by part.
    duals: Vec<Vec<Vec<f64>>>,
    /// K_t a of those multipliers, where they are at hand.
    images: Vec<Option<Matrix>>,
}

impl Cuts {
    /// Adds value − ⟨slope, θ⟩, which `duals` prove, with their images where those may be of use.
    pub fn push(
        &mut self,
        value: f64,
        slope: Vec<f64>,
        duals: Vec<Vec<f64>>,
        images: Option<Matrix>,
    ) {
        self.values.push(value);
        self.slopes.push(slope);
        self.duals.push(duals);
        self.images.push(images);
    }

    /// The number M of kernels.
    pub fn n_terms(&self) -> usize {
        self.slopes.first().map_or(0, Vec::len)
    }

    /// These bounds where only the kernels `index` may have weight.
    #[must_use]
    pub fn restrict(&self, index: &[usize]) -> Self {
        let pick = |slope: &Vec<f64>| index.iter().map(|&t| slope[t]).collect();
        let (values, slopes) = (self.values.clone(), self.slopes.iter().map(pick).collect());
        Self { values, slopes, duals: self.duals.clone(), images: vec![None; self.images.len()] }
    }

    /// Σ μ_i a_i: feasible, because the constraints are convex, and at least as good a bound as the
    /// combination of cuts, because A is concave and every s_m convex in a.
    pub fn average(&self, mu: &[f64]) -> Vec<Vec<f64>> {
        let mut out: Vec<Vec<f64>> = self.duals[0].iter().map(|a| vec![0.0; a.len()]).collect();
        for (m, duals) in mu.iter().zip(&self.duals).filter(|(m, _)| **m > 0.0) {
            out.iter_mut().zip(duals).for_each(|(o, a)| axpy(*m, a, o));
        }
        out
    }

    /// K_t Σ μ_i a_i, where the images of all these are at hand.
    pub fn average_images(&self, mu: &[f64]) -> Option<Matrix> {
        let mut out: Option<Matrix> = None;
        for (m, images) in mu.iter().zip(&self.images).filter(|(m, _)| **m > 0.0) {
            let images = images.as_ref()?;
            let sum = out.get_or_insert_with(|| Matrix::zeros(images.rows(), images.cols()));
            axpy(*m, images.data(), sum.data_mut());
        }
        out
    }

    /// Rescales the bounds after all costs were multiplied by `factor`: values scale with it,
    /// slopes with its square.
    pub fn rescale(&mut self, factor: f64) {
        self.values.iter_mut().for_each(|v| *v *= factor);
        self.slopes.iter_mut().flatten().for_each(|s| *s *= factor * factor);
        self.duals.iter_mut().flatten().flatten().for_each(|a| *a *= factor);
        self.images
            .iter_mut()
            .flatten()
            .for_each(|v| v.data_mut().iter_mut().for_each(|v| *v *= factor));
    }

    /// The lower bound that the convex combination `mu` of cuts gives: Σ μ_i value_i − support(Σ
    /// μ_i slope_i), and that slope.
    pub fn aggregate(&self, set: &dyn Separable, mu: &[f64]) -> (f64, f64, Vec<f64>) {
        let mut slope = vec![0.0; self.slopes[0].len()];
        for (m, s) in mu.iter().zip(&self.slopes) {
            axpy(*m, s, &mut slope);
        }
        let value = dot(mu, &self.values);
        (value - set.support(&slope), value, slope)
    }

    /// Multipliers (on the simplex) of the best lower bound, to within `accuracy` of it, and the θ
    /// where the highest cut is lowest.
    pub fn bound(&self, set: &dyn Separable, start: &[f64], accuracy: f64) -> (Vec<f64>, Vec<f64>) {
        let (mut mu, theta) = InteriorPoint::new(self, set, start, None, None, accuracy).run();
        let total: f64 = mu.iter().sum();
        if !total.is_finite() || total <= 0.0 {
            return (vec![1.0 / mu.len() as f64; mu.len()], theta);
        }
        mu.iter_mut().for_each(|m| *m /= total);
        (mu, theta)
    }

    /// The point of the level set nearest to `centre`; cuts hold to within `accuracy`.
    pub fn nearest(
        &self,
        set: &dyn Separable,
        centre: &[f64],
        level: f64,
        accuracy: f64,
    ) -> Vec<f64> {
        InteriorPoint::new(self, set, centre, Some(level), None, accuracy).run().1
    }

    /// The point of the level set where −⟨gradient, d⟩ + ½ dᵀ hessian d, d = θ − centre, is least,
    /// to within `accuracy`.
    pub fn least(
        &self,
        set: &dyn Separable,
        centre: &[f64],
        level: f64,
        model: (Matrix, Vec<f64>),
        accuracy: f64,
    ) -> Vec<f64> {
        InteriorPoint::new(self, set, centre, Some(level), Some(model), accuracy).run().1
    }

    /// Keeps at most `limit` cuts: those with the largest multipliers, the newest, and the
    /// aggregate of all, which carries the bound.
    pub fn trim(&mut self, set: &dyn Separable, mu: &[f64], limit: usize) {
        if self.values.len() <= limit {
            return;
        }
        let (_, value, slope) = self.aggregate(set, mu);
        let (average, images) = (self.average(mu), self.average_images(mu));
        let newest = self.values.len() - 1;
        let mut order: Vec<usize> = (0..newest).collect();
        order.sort_by(|&i, &j| mu[j].total_cmp(&mu[i]).then(j.cmp(&i)));
        let mut keep: Vec<usize> = order.into_iter().take(limit / 2).chain([newest]).collect();
        keep.sort_unstable();
        self.values = keep.iter().map(|&i| self.values[i]).chain([value]).collect();
        self.slopes = keep.iter().map(|&i| self.slopes[i].clone()).chain([slope]).collect();
        self.duals = keep.iter().map(|&i| self.duals[i].clone()).chain([average]).collect();
        self.images = keep.iter().map(|&i| self.images[i].clone()).chain([images]).collect();
    }
}
