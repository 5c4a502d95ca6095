//! The sets Θ of kernel weights. A set answers three questions, and every method and every
//! certificate is built from them.

mod elastic_net;
mod lp_ball;
mod penalty;
mod per_region;
mod root;

use std::ops::Range;

pub use elastic_net::ElasticNet;
pub use lp_ball::LpBall;
pub use penalty::Penalty;
pub(crate) use penalty::largest;
pub use per_region::PerRegion;

use crate::linalg::dot;

/// Reports count the kernels that carry this share of the weight beside those whose weight is not
/// zero: which of the very small weights are exactly zero can depend on rounding, and so on the
/// processor; which kernels carry nearly all of the weight does not.
pub const CARRYING_SHARE: f64 = 0.99;

/// How many kernels, the heaviest first, carry [`CARRYING_SHARE`] of the weight.
pub fn carrying(weights: &[f64]) -> usize {
    let mut sorted = weights.to_vec();
    sorted.sort_by(|a, b| b.total_cmp(a));
    let total: f64 = sorted.iter().sum();
    let (mut sum, mut count) = (0.0, 0);
    while sum < CARRYING_SHARE * total {
        sum += sorted[count];
        count += 1;
    }
    count
}

/// A weight below this share of the largest is no selection: the smallest share that a paper counts
/// ([Subrahmanya2010], section 4), and far below the share of 10⁻³ that a certificate of 10⁻⁵ can
/// tell from zero. It defines what a fit reports, so it is no tuning.
pub(crate) const NEGLIGIBLE_WEIGHT_SHARE: f64 = 1e-6;

/// The largest weight of a group that is too small to be a selection.
pub(crate) fn negligible_weight(group: &[f64]) -> f64 {
    NEGLIGIBLE_WEIGHT_SHARE * largest(group)
}

/// A compact convex set of non-negative weight vectors that contains a neighbourhood of 0 in the
/// positive orthant.
pub trait WeightSet: Sync {
    /// argmax over θ in Θ of ⟨s, θ⟩ for s ≥ 0; a positive feasible point where s = 0.
    fn support_point(&self, s: &[f64]) -> Vec<f64>;

    /// max over θ in Θ of ⟨s, θ⟩: gives every convex method its lower bound A(a) − ½·support(s).
    fn support(&self, s: &[f64]) -> f64 {
        dot(s, &self.support_point(s))
    }

    /// argmin over θ in Θ of Σ_m q_m / θ_m for q ≥ 0 (0/0 = 0); q = 0 gives [`WeightSet::start`].
    fn best_response(&self, sq_norms: &[f64]) -> Vec<f64>;

    /// The nearest point of Θ.
    fn project(&self, point: &[f64]) -> Vec<f64>;

    /// Equal weights on the boundary.
    fn start(&self, n_terms: usize) -> Vec<f64>;

    /// A gauge of the constraint: θ is in Θ if and only if this is at most 1.
    fn load(&self, theta: &[f64]) -> f64;

    /// Scales θ ≠ 0 along its ray to the boundary. More weight never raises the objective.
    fn tighten(&self, theta: &mut [f64]) {
        let at = |c: f64| self.load(&theta.iter().map(|t| c * t).collect::<Vec<_>>()) - 1.0;
        if theta.iter().all(|&t| t == 0.0) {
            return;
        }
        let c = root::increasing(at, 1.0);
        theta.iter_mut().for_each(|t| *t *= c);
        // Rounding must not push the point outside.
        let over = self.load(theta);
        if over > 1.0 {
            theta.iter_mut().for_each(|t| *t /= over);
        }
    }
}

/// A set given by Σ over each group of φ(θ_m) ≤ 1 with one smooth convex φ: what the level method's
/// sub-problems need.
pub trait Separable: WeightSet {
    /// φ(θ), φ'(θ), φ''(θ) for θ > 0.
    fn phi(&self, theta: f64) -> [f64; 3];

    /// Are some weights exactly zero at an optimum? Only a slope at 0 keeps them there.
    fn selects(&self) -> bool {
        let slope = |theta: f64| self.phi(theta)[1];
        slope(1e-300) > 0.5 * slope(1e-150)
    }

    /// Terms that share one constraint.
    fn groups(&self, n_terms: usize) -> Vec<Range<usize>> {
        std::iter::once(0..n_terms).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::carrying;

    #[test]
    fn kernels_that_carry_the_weight_are_counted() {
        assert_eq!(carrying(&[]), 0);
        assert_eq!(carrying(&[0.0, 0.0]), 0);
        assert_eq!(carrying(&[1.0, 1e-12, 0.0, 1e-9]), 1);
        assert_eq!(carrying(&[0.25; 4]), 4);
        assert_eq!(carrying(&[0.005, 0.5, 0.495]), 2);
    }
}
