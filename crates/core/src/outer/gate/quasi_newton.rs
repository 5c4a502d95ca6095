//! Limited-memory BFGS in a space whose inner product is not the plain one.

use crate::{
    linalg::{axpy, dot},
    tuning::tuning,
};

tuning! { "quasi_newton"
    /// Steps that the approximation of the Hessian remembers: each costs two vectors and two inner
    /// products a step.
    steps_remembered: usize = 40;
}

/// A pair of step and change counts only where the cosine between them exceeds this: below it the
/// curvature is rounding.
const LEAST_COSINE: f64 = 1e-10;

/// A vector with its image under the metric: ⟨x, y⟩ = x.coef · y.image. For functions of a kernel's
/// space, coefficients and values.
#[derive(Debug, Clone)]
pub struct Element {
    /// The coordinates of the vector.
    pub coef: Vec<f64>,
    /// The image of the coordinates under the metric.
    pub image: Vec<f64>,
}

impl Element {
    pub(super) fn scale(&mut self, by: f64) {
        self.coef.iter_mut().chain(&mut self.image).for_each(|x| *x *= by);
    }

    pub(super) fn minus(&self, other: &Self) -> Self {
        add(self, -1.0, other)
    }
}

/// The inner product ⟨x, y⟩ in the metric.
pub fn inner(x: &Element, y: &Element) -> f64 {
    dot(&x.coef, &y.image)
}

/// The vector x + w y.
pub fn add(x: &Element, w: f64, y: &Element) -> Element {
    let mut out = x.clone();
    axpy(w, &y.coef, &mut out.coef);
    axpy(w, &y.image, &mut out.image);
    out
}

/// The last steps, with the changes of the gradient that they made.
#[derive(Debug, Default)]
pub struct History {
    pairs: Vec<(Element, Element)>,
}

impl History {
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    pub fn clear(&mut self) {
        self.pairs.clear();
    }

    /// Keeps a pair along which the function bends upwards: only those describe a minimum.
    pub fn push(&mut self, step: Element, change: Element) {
        let bend = inner(&step, &change);
        if bend > LEAST_COSINE * (inner(&step, &step) * inner(&change, &change)).sqrt() {
            if self.pairs.len() == TUNING.steps_remembered {
                self.pairs.remove(0);
            }
            self.pairs.push((step, change));
        }
    }

    /// −H g by the two-loop recursion from the diagonal `scaling` (only where the metric is the
    /// plain one); −scaling∘g where nothing is remembered.
    pub fn direction(&self, gradient: &Element, scaling: Option<&[f64]>) -> Element {
        let scaled = |mut x: Element| {
            for (d, (c, i)) in
                scaling.unwrap_or_default().iter().zip(x.coef.iter_mut().zip(&mut x.image))
            {
                *c *= d;
                *i *= d;
            }
            x
        };
        let mut q = gradient.clone();
        let mut shares = Vec::new();
        for (step, change) in self.pairs.iter().rev() {
            let share = inner(step, &q) / inner(step, change);
            q = add(&q, -share, change);
            shares.push(share);
        }
        q = scaled(q);
        if let Some((step, change)) = self.pairs.last() {
            q.scale(inner(step, change) / inner(change, &scaled(change.clone())));
        }
        for ((step, change), share) in self.pairs.iter().zip(shares.into_iter().rev()) {
            let back = inner(change, &q) / inner(step, change);
            q = add(&q, share - back, step);
        }
        q.scale(-1.0);
        q
    }
}
