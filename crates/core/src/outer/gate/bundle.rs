//! Gradients of nearby points: where a function has kinks, their shortest mean vanishes at a
//! stationary point, and no single one does.

use std::collections::VecDeque;

use super::{
    Element, Gate, Gated, TUNING,
    quasi_newton::{add, inner},
};
use crate::linalg::dot;

/// A mean of gradients that could be shortened by less than this share of its square is the
/// shortest: less is rounding.
const ROUNDED_GAIN: f64 = 1e-14;
/// Gradients of the points visited last.
#[derive(Default)]
pub(super) struct GradientBundle(VecDeque<(Element, Element)>);

impl GradientBundle {
    /// Adds the gradient at a point, and drops the oldest one where there are too many.
    pub fn push(&mut self, at: &Element, point: &Gated) {
        if self.0.len() == TUNING.gradients_remembered {
            self.0.pop_front();
        }
        self.0.push_back((at.clone(), point.direction.clone()));
    }

    /// The largest entry of the shortest mean of the gradients within `radius` of a point: where it
    /// is nothing, the point is stationary in the sense of Goldstein.
    pub fn slope(&self, gate: &dyn Gate, at: &Element, radius: f64) -> f64 {
        let nearby =
            self.0.iter().filter(|(point, _)| gate.largest_argument(&point.minus(at)) <= radius);
        let gradients: Vec<&Element> = nearby.map(|(_, gradient)| gradient).collect();
        shortest_mean(&gradients).image.iter().fold(0.0, |m: f64, g| m.max(g.abs()))
    }
}

/// The shortest vector in the convex hull, by moving weight between the two vectors that gain most.
fn shortest_mean(vectors: &[&Element]) -> Element {
    let count = vectors.len();
    let products: Vec<Vec<f64>> =
        vectors.iter().map(|x| vectors.iter().map(|y| inner(x, y)).collect()).collect();
    let mut share = vec![0.0; count];
    share[0] = 1.0;
    for _ in 0..TUNING.shortest_mean_moves * count {
        let along: Vec<f64> = products.iter().map(|row| dot(row, &share)).collect();
        let low = (0..count).fold(0, |b, i| if along[i] < along[b] { i } else { b });
        let used = (0..count).filter(|&i| share[i] > 0.0);
        let high = used.reduce(|b, i| if along[i] > along[b] { i } else { b }).unwrap_or(low);
        let bend = products[low][low] + products[high][high] - 2.0 * products[low][high];
        let gain = along[high] - along[low];
        if gain <= ROUNDED_GAIN * along[high].abs() || bend <= 0.0 {
            break;
        }
        let moved = (gain / bend).min(share[high]);
        share[high] -= moved;
        share[low] += moved;
    }
    let mut out = vectors[0].clone();
    out.scale(share[0]);
    vectors
        .iter()
        .zip(&share)
        .skip(1)
        .filter(|(_, s)| **s > 0.0)
        .fold(out, |out, (v, s)| add(&out, *s, v))
}
