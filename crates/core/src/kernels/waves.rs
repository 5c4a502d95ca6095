//! Random Fourier features of Gaussian and Laplace kernels.
//!
//! k(x, z) = E cos ωᵀ(x − z), where the entries of ω are normal with deviation 1/width for `rbf`,
//! and Cauchy with scale 1/width for `laplace` [Rahimi2007]. With D draws of ω, φ(x) = √(1/D) (cos
//! ω_kᵀx, sin ω_kᵀx)_k gives ⟨φ(x), φ(z)⟩ = mean of cos ω_kᵀ(x − z): unbiased, and 1 at x = z.

use rayon::prelude::*;

use super::{Distance, Function};
use crate::{
    data::Rng,
    linalg::{Matrix, dots},
};

/// How frequencies at unit width are distributed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Law {
    /// The standard normal law, of Gaussian kernels.
    Normal,
    /// The standard Cauchy law, of kernels that fall with the ℓ₁ distance.
    Cauchy,
}

impl Law {
    /// All of them with their words.
    pub const ALL: [(Self, &'static str); 2] = [(Self::Normal, "normal"), (Self::Cauchy, "cauchy")];
}

/// Frequencies at unit width: a row for each of some columns.
#[derive(Debug, Clone, PartialEq)]
pub struct Frequencies {
    /// The law that the frequencies were drawn from.
    pub law: Law,
    /// The frequencies at width 1, columns × draws.
    pub draws: Matrix,
}

impl Frequencies {
    /// Those of a column depend on the seed, the law and its number alone, and fewer are the first
    /// of more.
    pub fn draw(law: Law, seed: u64, columns: &[usize], count: usize) -> Self {
        let mut draws = Matrix::zeros(columns.len(), count);
        for (k, &column) in columns.iter().enumerate() {
            let own = (2 * column as u64 + law as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let mut rng = Rng::new(seed ^ own);
            draws.row_mut(k).iter_mut().for_each(|w| {
                *w = match law {
                    Law::Normal => rng.normal(),
                    Law::Cauchy => (std::f64::consts::PI * (rng.uniform() - 0.5)).tan(),
                };
            });
        }
        Self { law, draws }
    }
}

impl Function {
    /// The law of its frequencies and the width they are divided by, where it has random Fourier
    /// features.
    pub fn spectrum(self) -> Option<(Law, f64)> {
        match self {
            Self::Rbf { width } => Some((Law::Normal, width)),
            Self::Laplace { width } | Self::Gauss { distance: Distance::L1, width } => {
                Some((Law::Cauchy, width))
            }
            _ => None,
        }
    }
}

/// φ of one kernel.
#[derive(Debug, Clone, PartialEq)]
pub struct Waves {
    /// The frequencies at the kernel's width, draws × columns.
    frequencies: Matrix,
}

impl Waves {
    /// From the rows `at` of the frequencies, one per column of the kernel; `None` where it has
    /// none of this law.
    pub fn new(function: Function, from: &Frequencies, at: &[usize]) -> Option<Self> {
        let (law, width) = function.spectrum()?;
        let mut frequencies = from.draws.select_rows(at).transposed();
        frequencies.data_mut().iter_mut().for_each(|w| *w /= width);
        (law == from.law).then_some(Self { frequencies })
    }

    /// How many features a row has: a cosine and a sine per draw.
    pub fn len(&self) -> usize {
        2 * self.frequencies.rows()
    }

    /// Does a row have no features?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes the features φ(x) of one row.
    pub fn map(&self, x: &[f64], out: &mut [f64]) {
        let count = self.frequencies.rows();
        let scale = (1.0 / count as f64).sqrt();
        let (cos, sin) = out.split_at_mut(count);
        dots(x, self.frequencies.data(), cos);
        for (c, s) in cos.iter_mut().zip(sin) {
            let (sine, cosine) = c.sin_cos();
            (*c, *s) = (scale * cosine, scale * sine);
        }
    }

    /// φ of every row.
    pub fn map_rows(&self, x: &Matrix) -> Matrix {
        let mut out = Matrix::zeros(x.rows(), self.len());
        out.data_mut()
            .par_chunks_mut(self.len().max(1))
            .enumerate()
            .for_each(|(i, out)| self.map(x.row(i), out));
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::dot;

    /// The mean over seeds approaches k, at the rate that the spread over seeds says.
    #[test]
    fn features_are_unbiased() {
        let x = Matrix::new(4, 2, vec![0.0, 0.1, 0.7, -0.4, -1.0, 2.0, 0.3, 0.3]).unwrap();
        let kernels = [
            Function::Rbf { width: 0.8 },
            Function::Laplace { width: 1.5 },
            Function::Gauss { distance: Distance::L1, width: 0.7 },
        ];
        for f in kernels {
            let (law, _) = f.spectrum().unwrap();
            let (seeds, k) = (400, f.block(&x, &x));
            for (i, j) in [(0, 1), (0, 2), (1, 2), (2, 3)] {
                let value = |seed| {
                    let phi = Waves::new(f, &Frequencies::draw(law, seed, &[3, 8], 16), &[0, 1])
                        .unwrap()
                        .map_rows(&x);
                    assert!((dot(phi.row(i), phi.row(i)) - 1.0).abs() < 1e-14);
                    dot(phi.row(i), phi.row(j))
                };
                let values: Vec<f64> = (0..seeds).map(value).collect();
                let mean = values.iter().sum::<f64>() / seeds as f64;
                let spread =
                    values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (seeds - 1) as f64;
                let error = (spread / seeds as f64).sqrt();
                // One seed of 400 sets; 4 deviations.
                assert!(
                    (mean - k[(i, j)]).abs() < 4.0 * error && error < 0.01,
                    "{f:?}: {mean} {}",
                    k[(i, j)]
                );
            }
        }
        assert!(Function::Linear.spectrum().is_none());
    }

    #[test]
    fn fewer_draws_are_the_first_of_more_and_columns_differ() {
        let (some, more) = (
            Frequencies::draw(Law::Normal, 5, &[1, 4], 6),
            Frequencies::draw(Law::Normal, 5, &[4], 9),
        );
        assert_eq!(some.draws.row(1), &more.draws.row(0)[..6]);
        assert_ne!(some.draws.row(0), some.draws.row(1));
    }
}
