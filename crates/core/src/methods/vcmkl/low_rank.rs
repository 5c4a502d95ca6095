//! The Newton system (H + D + EᵀΣE) x + Aᵀη = r,  A x = q
//!   where every rule's kernel has a low rank: nothing of the size of H is factored.
//!
//! H = F Fᵀ with F of R columns, the factors of all rules side by side, and B = D + EᵀΣE couples
//! only the multipliers of one sample. Each sample's block is taken in variables where its sum
//! stands in the place of the freest member, so that Σ, which grows without bound, adds to a
//! diagonal entry and cancels nothing: B = L Lᵀ block by block. With W = L⁻¹ (F Aᵀ) and u = (Fᵀx,
//! η),
//!
//! ```text
//! (WᵀW + diag(I, 0)) u = Wᵀ L⁻¹r − (0, q),      x = L⁻ᵀ (L⁻¹r − W u),
//! ```
//!
//! which is the Newton system of the weights and biases themselves: R + e unknowns, O(N (R + e)²)
//! for N multipliers.

use crate::{
    Result,
    linalg::{Cholesky, Matrix, axpy, dot},
};

/// The diagonal of the equalities is raised by this share of itself, so that rounding does not
/// leave the matrix indefinite.
const EQUALITY_GUARD: f64 = 1e-15;

/// Multipliers of one sample, the freest last, and the lower triangle of its block.
struct Sample {
    members: Vec<usize>,
    lower: Vec<f64>,
}

/// The system, factored.
pub(super) struct LowRankSystem {
    samples: Vec<Sample>,
    /// W, a row per multiplier.
    scaled: Matrix,
    /// The Cholesky factor of WᵀW + diag(I, 0).
    small: Cholesky,
    /// The number R of columns of F.
    rank: usize,
}

impl LowRankSystem {
    /// `columns` is (F Aᵀ) with a row per multiplier, F of rank `rank`; `summed` and `sigma` are
    /// the sums and Σ; multipliers without a sum stand alone.
    pub fn new(
        columns: &Matrix,
        rank: usize,
        diagonal: &[f64],
        summed: &[(usize, usize)],
        sigma: &[f64],
    ) -> Result<Self> {
        let (n, width) = (columns.rows(), columns.cols());
        let mut of_sum = vec![Vec::new(); sigma.len()];
        let mut alone = vec![true; n];
        for &(i, row) in summed {
            of_sum[row].push(i);
            alone[i] = false;
        }
        let single = |i: usize| Sample { members: vec![i], lower: vec![diagonal[i].sqrt()] };
        let mut samples: Vec<Sample> = (0..n).filter(|&i| alone[i]).map(single).collect();
        for (mut members, &sigma) in
            of_sum.into_iter().zip(sigma).filter(|(members, _)| !members.is_empty())
        {
            let last = members.len() - 1;
            let freest = (0..=last)
                .fold(0, |b, k| if diagonal[members[k]] < diagonal[members[b]] { k } else { b });
            members.swap(freest, last);
            let own: Vec<f64> = members.iter().map(|&i| diagonal[i]).collect();
            samples.push(Sample { lower: block(&own, sigma), members });
        }
        let mut scaled = columns.clone();
        let mut own = vec![0.0; width];
        for sample in &samples {
            let (&pivot, others) = sample.members.split_last().unwrap_or((&0, &[]));
            own.copy_from_slice(scaled.row(pivot));
            others.iter().for_each(|&i| axpy(-1.0, &own, scaled.row_mut(i)));
            // Row after row of L⁻¹.
            for (a, &i) in sample.members.iter().enumerate() {
                own.copy_from_slice(scaled.row(i));
                let lower = &sample.lower[a * (a + 1) / 2..];
                sample.members[..a]
                    .iter()
                    .zip(lower)
                    .for_each(|(&j, l)| axpy(-l, scaled.row(j), &mut own));
                own.iter_mut().for_each(|x| *x /= lower[a]);
                scaled.row_mut(i).copy_from_slice(&own);
            }
        }
        let mut small = Matrix::zeros(width, width);
        for i in 0..n {
            let row = scaled.row(i);
            (0..width)
                .filter(|&r| row[r] != 0.0)
                .for_each(|r| axpy(row[r], &row[..=r], &mut small.row_mut(r)[..=r]));
        }
        (0..width).for_each(|r| {
            small[(r, r)] += if r < rank { 1.0 } else { EQUALITY_GUARD * small[(r, r)] }
        });
        Ok(Self { samples, scaled, small: Cholesky::new(small, "the rules' kernels")?, rank })
    }

    /// Turns r into x, in place, and returns η.
    pub fn solve(&self, v: &mut [f64], q: &[f64]) -> Vec<f64> {
        for Sample { members, lower } in &self.samples {
            let (&pivot, others) = members.split_last().unwrap_or((&0, &[]));
            others.iter().for_each(|&i| v[i] -= v[pivot]);
            for (a, &i) in members.iter().enumerate() {
                let row = &lower[a * (a + 1) / 2..];
                let rest: f64 = members[..a].iter().zip(row).map(|(&j, l)| l * v[j]).sum();
                v[i] = (v[i] - rest) / row[a];
            }
        }
        let mut inside = vec![0.0; self.scaled.cols()];
        v.iter().enumerate().for_each(|(i, v)| axpy(*v, self.scaled.row(i), &mut inside));
        inside[self.rank..].iter_mut().zip(q).for_each(|(u, q)| *u -= q);
        self.small.solve(&mut inside);
        v.iter_mut().enumerate().for_each(|(i, v)| *v -= dot(self.scaled.row(i), &inside));
        for Sample { members, lower } in &self.samples {
            for (a, &i) in members.iter().enumerate().rev() {
                let rest: f64 = (a + 1..members.len())
                    .map(|b| lower[b * (b + 1) / 2 + a] * v[members[b]])
                    .sum();
                v[i] = (v[i] - rest) / lower[a * (a + 1) / 2 + a];
            }
            let (&pivot, others) = members.split_last().unwrap_or((&0, &[]));
            others.iter().for_each(|&i| v[pivot] -= v[i]);
        }
        inside.split_off(self.rank)
    }
}

/// The lower Cholesky factor, row after row, of one sample's block in the variables (others …,
/// sum): the last entry of `own` is the pivot's.
fn block(own: &[f64], sigma: f64) -> Vec<f64> {
    let (last, pivot) = (own.len() - 1, own[own.len() - 1]);
    let entry = |a: usize, b: usize| match (a == last, b == last) {
        (true, true) => pivot + sigma,
        (true, false) | (false, true) => -pivot,
        (false, false) => pivot + if a == b { own[a] } else { 0.0 },
    };
    let mut lower = Vec::with_capacity((last + 1) * (last + 2) / 2);
    for a in 0..=last {
        for b in 0..=a {
            let (i, j) = (a * (a + 1) / 2, b * (b + 1) / 2);
            let rest: f64 = (0..b).map(|k| lower[i + k] * lower[j + k]).sum();
            let value: f64 = entry(a, b) - rest;
            // The last diagonal entry is σ and what the others leave of the pivot: never below σ.
            let floor = if a == last { sigma } else { own[a] };
            let value = if a == b {
                value.max(floor).max(f64::MIN_POSITIVE).sqrt()
            } else {
                value / lower[j + b]
            };
            lower.push(value);
        }
    }
    lower
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Rng;

    #[test]
    fn the_solution_is_that_of_the_whole_system() {
        let mut rng = Rng::new(1);
        // Two multipliers alone, one sum of three and one of a single multiplier; scales from 10⁻⁶
        // to 10⁶; one equality.
        let (n, rank, summed) = (6, 2, [(2, 0), (3, 0), (4, 0), (5, 1)]);
        let mut columns = Matrix::zeros(n, rank + 1);
        columns.data_mut().iter_mut().for_each(|f| *f = rng.normal());
        let diagonal = [1.0, 1e-3, 1e-6, 2.0, 1e3, 0.5];
        let sigma = [1e6, 0.1];
        let (x, eta): (Vec<f64>, f64) = ((0..n).map(|_| rng.normal()).collect(), rng.normal());
        let mut r: Vec<f64> =
            (0..n).map(|i| diagonal[i] * x[i] + columns[(i, rank)] * eta).collect();
        for i in 0..n {
            for j in 0..n {
                let sum = summed.iter().find(|s| s.0 == i).zip(summed.iter().find(|s| s.0 == j));
                let coupled = sum.filter(|(a, b)| a.1 == b.1).map_or(0.0, |(a, _)| sigma[a.1]);
                r[i] += (dot(&columns.row(i)[..rank], &columns.row(j)[..rank]) + coupled) * x[j];
            }
        }
        let q: f64 = (0..n).map(|i| columns[(i, rank)] * x[i]).sum();
        let got = LowRankSystem::new(&columns, rank, &diagonal, &summed, &sigma)
            .unwrap()
            .solve(&mut r, &[q]);
        assert!(
            x.iter().zip(&r).all(|(x, r)| (x - r).abs() < 1e-5) && (got[0] - eta).abs() < 1e-5,
            "{x:?} {r:?} {got:?}"
        );
    }
}
