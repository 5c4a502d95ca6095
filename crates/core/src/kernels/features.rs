//! Exact finite features of linear and polynomial kernels: (⟨x, z⟩ + c)^d = ⟨φ(x), φ(z)⟩ with one
//! feature per monomial.
//!
//! Write c as one more coordinate √c. Then (⟨x, z⟩ + c)^d = Σ over multi-indices k with |k| = d of
//! d!/(k₀! … k_q!) · u^k v^k for u = (√c, x), v = (√c, z).

use super::Function;
use crate::linalg::Matrix;

/// The monomials of a polynomial kernel on `dim` coordinates.
#[derive(Debug, Clone, PartialEq)]
pub struct Monomials {
    dim: usize,
    offset_root: f64,
    /// Per feature: its factor √(multinomial) and the coordinates multiplied (0 is √c, j is x_j),
    /// `degree` each.
    terms: Vec<(f64, Vec<u32>)>,
}

impl Monomials {
    /// The features of `function` on `dim` coordinates, if it has at most `max` of them.
    pub fn of(function: Function, dim: usize, max: usize) -> Option<Self> {
        let (degree, offset) = match function {
            Function::Linear => (1, 0.0),
            Function::Poly { degree, offset } => (degree as usize, offset),
            _ => return None,
        };
        // Without an offset the coordinate √c = 0 kills every monomial it is in.
        let first = u32::from(offset == 0.0);
        let coordinates = dim + usize::from(offset != 0.0);
        if binomial(coordinates + degree - 1, degree) > max as f64 {
            return None;
        }
        let mut terms = Vec::new();
        let mut index = vec![first; degree];
        loop {
            terms.push((multinomial(&index).sqrt(), index.clone()));
            // Next non-decreasing index: raise the last coordinate that can be raised, level the
            // rest with it.
            let Some(at) = index.iter().rposition(|&j| (j as usize) < dim) else { break };
            let raised = index[at] + 1;
            index[at..].fill(raised);
        }
        Some(Self { dim, offset_root: offset.sqrt(), terms })
    }

    /// How many features a row has.
    pub fn len(&self) -> usize {
        self.terms.len()
    }

    /// Never: there is at least one monomial.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Writes the features φ(x) of one row.
    pub fn map(&self, x: &[f64], out: &mut [f64]) {
        debug_assert_eq!(x.len(), self.dim);
        let coordinate = |j: u32| if j == 0 { self.offset_root } else { x[j as usize - 1] };
        for (o, (factor, index)) in out.iter_mut().zip(&self.terms) {
            *o = index.iter().fold(*factor, |product, &j| product * coordinate(j));
        }
    }

    /// φ of every row.
    pub fn map_rows(&self, x: &Matrix) -> Matrix {
        let mut out = Matrix::zeros(x.rows(), self.len());
        for i in 0..x.rows() {
            self.map(x.row(i), out.row_mut(i));
        }
        out
    }
}

fn binomial(n: usize, k: usize) -> f64 {
    (0..k).fold(1.0, |b, i| b * (n - i) as f64 / (i + 1) as f64).round()
}

/// d! / Π k_j! for a sorted index of length d.
fn multinomial(index: &[u32]) -> f64 {
    let mut value = 1.0;
    let mut run = 0;
    for (i, &j) in index.iter().enumerate() {
        run = if i > 0 && index[i - 1] == j { run + 1 } else { 1 };
        value *= (i + 1) as f64 / f64::from(run);
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_reproduce_the_kernel() {
        let x = Matrix::new(3, 3, vec![0.5, -1.0, 2.0, 0.0, 3.0, 1.0, -2.0, 0.1, 0.7]).unwrap();
        let (lin, poly) = (Function::Linear, |degree, offset| Function::Poly { degree, offset });
        for (f, count) in [
            (lin, 3),
            (poly(1, 1.0), 4),
            (poly(2, 1.0), 10),
            (poly(3, 0.5), 20),
            (poly(3, 0.0), 10),
        ] {
            let m = Monomials::of(f, 3, 100).unwrap();
            assert_eq!(m.len(), count);
            let (phi, k) = (m.map_rows(&x), f.block(&x, &x));
            for i in 0..3 {
                for j in 0..3 {
                    let got = crate::linalg::dot(phi.row(i), phi.row(j));
                    assert!((got - k[(i, j)]).abs() <= 1e-12 * k[(i, i)].max(k[(j, j)]));
                }
            }
        }
        assert!(Monomials::of(poly(20, 1.0), 60, 1000).is_none());
        assert!(Monomials::of(Function::Rbf { width: 1.0 }, 1, 1000).is_none());
    }
}
