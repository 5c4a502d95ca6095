//! Kernels of fixed rank that stand in for those asked for, and how far off they are.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use super::{
    BuildOptions, Factor,
    build::{Built, OnSphere, Raw, Wanted},
};
use crate::{Error, Result, data::Rng, linalg::dot};

/// Pairs of rows on which the error of random features is measured: an estimate of the error to
/// about two percent. It is reported with its number of pairs, so it is no number to tune.
const PAIRS: usize = 2000;

/// The kernel that stands in for every kernel of the bank. It is then the kernel of the model:
/// certificates and predictions speak of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Approx {
    /// Nothing: kernels as they are.
    #[default]
    None,
    /// K_nL K_LL⁻¹ K_Ln with this number of landmark rows L, drawn at random.
    Nystrom(usize),
    /// This number of random Fourier features, cosines and sines in pairs.
    Rff(usize),
}

impl Approx {
    /// Refuses ranks that cannot be.
    pub fn check(self) -> Result<()> {
        match self {
            Self::Nystrom(0) => {
                Err(Error::param("approx", "nystrom(r) with r of at least 1", self))
            }
            Self::Rff(r) if r == 0 || r % 2 == 1 => Err(Error::param(
                "approx",
                "rff(r) with an even r of at least 2, cosines and sines in pairs",
                self,
            )),
            _ => Ok(()),
        }
    }

    /// Columns that a factor of n rows has at most.
    pub(super) fn rank(self, n: usize) -> usize {
        match self {
            Self::None => n,
            Self::Nystrom(r) => r.min(n),
            Self::Rff(r) => r,
        }
    }
}

impl fmt::Display for Approx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Nystrom(r) => write!(f, "nystrom({r})"),
            Self::Rff(r) => write!(f, "rff({r})"),
        }
    }
}

impl FromStr for Approx {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let plain: String = text.chars().filter(|c| !c.is_whitespace()).collect();
        let rank = |name: &str| {
            plain.strip_prefix(name)?.strip_prefix('(')?.strip_suffix(')')?.parse().ok()
        };
        match (plain.as_str(), rank("nystrom"), rank("rff")) {
            ("none", ..) => Ok(Self::None),
            (_, Some(r), _) => Ok(Self::Nystrom(r)),
            (.., Some(r)) => Ok(Self::Rff(r)),
            _ => Err(Error::param("approx", "none, nystrom(r) or rff(r)", format!("`{text}`"))),
        }
    }
}

impl TryFrom<String> for Approx {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl From<Approx> for String {
    fn from(approx: Approx) -> Self {
        approx.to_string()
    }
}

/// How far a stand-in K̂ is from its kernel K on the training rows, before both are scaled or
/// centred.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "measure", rename_all = "snake_case")]
pub enum ApproxError {
    /// The error over all rows, exactly. K − K̂ is positive semidefinite, so no entry is off by
    /// more than the trace.
    Trace {
        /// tr(K − K̂) / tr K.
        relative: f64,
    },
    /// The error over pairs of distinct rows drawn at random; k(x, x) = 1.
    Pairs {
        /// Root mean square of k − k̂.
        rms: f64,
        /// Standard error of `rms` as an estimate for all pairs.
        standard_error: f64,
        /// Largest |k − k̂| seen.
        largest: f64,
        /// Number of pairs drawn.
        pairs: usize,
    },
}

impl ApproxError {
    /// The relative trace, or the root mean square.
    pub fn value(&self) -> f64 {
        match *self {
            Self::Trace { relative } => relative,
            Self::Pairs { rms, .. } => rms,
        }
    }

    /// Measured on pairs of n rows; `off(i, j)` is k − k̂.
    fn on_pairs(n: usize, seed: u64, off: impl Fn(usize, usize) -> f64) -> Self {
        let mut rng = Rng::new(seed);
        let mut pair = || {
            let (i, j) = (rng.below(n), rng.below((n - 1).max(1)));
            (i, if j < i { j } else { (j + 1).min(n - 1) })
        };
        let errors: Vec<f64> = (0..PAIRS).map(|_| pair()).map(|(i, j)| off(i, j).abs()).collect();
        let count = PAIRS as f64;
        let square = errors.iter().map(|e| e * e).sum::<f64>() / count;
        let spread = errors.iter().map(|e| (e * e - square).powi(2)).sum::<f64>() / (count - 1.0);
        let rms = square.sqrt();
        // The standard error of a root is that of the square over twice the root.
        let standard_error = if rms > 0.0 { (spread / count).sqrt() / (2.0 * rms) } else { 0.0 };
        Self::Pairs {
            rms,
            standard_error,
            largest: errors.iter().fold(0.0, |m, e| e.max(m)),
            pairs: PAIRS,
        }
    }
}

impl BuildOptions {
    /// The term that stands in for a kernel: exact features where they are no more than asked for,
    /// else the declared approximation.
    pub(super) fn stand_in(&self, raw: &dyn Raw, name: &str) -> Result<Built> {
        let (roots, _) = self.sphere(raw, name)?;
        let wrapped = OnSphere { raw, roots: &roots };
        let raw = if roots.is_empty() { raw } else { &wrapped };
        let diagonal = raw.diagonal();
        let n = diagonal.len();
        let rank = self.approx.rank(n);
        let what = || format!("kernel `{name}` as {} of {n} samples", self.approx);
        // Kernel values at the landmarks stand beside the factor while it is made.
        self.budget.check(
            what(),
            (2 * size_of::<f64>() * n * rank) as u64,
            "raise the budget, or ask for less",
        )?;
        let exact = raw.features(Wanted::Exact(rank)).map(Factor::monomials);
        let (factor, error) = match (exact, self.approx) {
            (Some(exact), _) => (exact, ApproxError::Trace { relative: 0.0 }),
            (None, Approx::Rff(_)) => {
                let rows = raw.features(Wanted::Waves(rank / 2, self.seed)).ok_or_else(|| {
                    let problem = format!("has neither random Fourier features nor at most {rank} exact ones");
                    let remedy = "rbf, laplace and gauss(l1) have random ones; approx = nystrom(r) takes every kernel";
                    Error::data(format!("kernel `{name}`"), problem, remedy)
                })?;
                let off = |i: usize, j: usize| raw.value(i, j) - dot(rows.row(i), rows.row(j));
                let error = ApproxError::on_pairs(n, self.seed, off);
                (Factor::waves(rows, self.seed), error)
            }
            (None, _) => {
                let chosen = landmarks(n, rank, self.seed);
                let column = |j: usize, out: &mut [f64]| raw.head_of_column(j, out);
                let found = Factor::landmarks(&chosen, &diagonal, self.rank_tolerance, column);
                let (factor, relative) =
                    found.ok_or_else(|| Error::numerical(what(), "no factor was found"))?;
                (factor, ApproxError::Trace { relative })
            }
        };
        // Constants are those of what stands in.
        let own: Vec<f64> = (0..n).map(|i| dot(&factor.row(i), &factor.row(i))).collect();
        self.normalized(factor, name, &own, roots, Some(error))
    }

    /// Refuses an approximation where kernel values are given and nothing can stand in for them.
    pub(super) fn refuse_precomputed(&self) -> Result<()> {
        match self.approx {
            Approx::None => Ok(()),
            other => Err(Error::param("approx", "none for ready-made kernels", other)),
        }
    }
}

/// Landmark rows, uniform without replacement; fewer of them are the first of more.
fn landmarks(n: usize, rank: usize, seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect();
    Rng::new(seed).shuffle(&mut order);
    order.truncate(rank);
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_back() {
        for approx in [Approx::None, Approx::Nystrom(200), Approx::Rff(16)] {
            assert_eq!(approx.to_string().parse::<Approx>().unwrap(), approx);
            assert_eq!(
                serde_json::from_value::<Approx>(serde_json::json!(approx)).unwrap(),
                approx
            );
        }
        assert_eq!(" nystrom( 7 ) ".parse::<Approx>().unwrap(), Approx::Nystrom(7));
        for text in [
            "",
            "nystrom",
            "nystrom()",
            "nystrom(-3)",
            "nystrom(2.5)",
            "rff(4",
            "poly(3)",
            "rff(4)x",
        ] {
            assert!(text.parse::<Approx>().is_err(), "{text}");
        }
        assert!(
            [Approx::Nystrom(0), Approx::Rff(0), Approx::Rff(7)].iter().all(|a| a.check().is_err())
        );
    }

    #[test]
    fn pairs_are_distinct_rows_and_the_error_is_that_of_all() {
        let all = ApproxError::on_pairs(9, 4, |i, j| {
            assert!(i != j && i < 9 && j < 9);
            if i < j { 0.5 } else { -1.0 }
        });
        let ApproxError::Pairs { rms, standard_error, largest, .. } = all else { panic!() };
        let truth = (0.5f64 * (0.25 + 1.0)).sqrt();
        assert!(
            (rms - truth).abs() < 4.0 * standard_error && standard_error < 0.02 && largest == 1.0,
            "{rms}"
        );
    }

    #[test]
    fn fewer_landmarks_are_the_first_of_more() {
        let (some, more) = (landmarks(50, 7, 3), landmarks(50, 20, 3));
        assert_eq!(some, more[..7]);
        let mut all = landmarks(50, 80, 3);
        all.sort_unstable();
        assert_eq!(all, (0..50).collect::<Vec<_>>());
    }
}
