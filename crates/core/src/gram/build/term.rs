//! One term from raw kernel values: a factor where that pays, else a packed triangle.

use super::{
    super::{Approx, ApproxError, Factor, RankLimit, dense::Packed, stored::Stored},
    BuildOptions, Storage,
    raw::{OnSphere, Raw, Wanted},
};
use crate::{
    Result,
    kernels::{Normalize, Normalizer},
    tuning::tuning,
};

tuning! { "term"
    /// The tolerance of a factor is relative to this multiple of the trace that varies: what is
    /// left out may exceed the tolerance by as much.
    varying_trace_excess: f64 = 8.0;
    /// Number of rows from which on that multiple is the whole excess. With fewer rows
    /// proportionally more is allowed, because the share of a gap that is due to truncation grows
    /// with the number of rows.
    strict_from_rows: f64 = 1.25e5;
}

/// A finished term with its constants.
pub(crate) struct Built {
    pub term: Stored,
    /// How raw values become normalised ones.
    pub(super) normalizer: Normalizer,
    /// √k(x_i, x_i) under spherical normalisation; else empty.
    pub(super) roots: Vec<f64>,
    /// How far the term is from its kernel, where it stands in for one.
    pub(super) error: Option<ApproxError>,
}

impl BuildOptions {
    /// The term as a factor, or `None` where that does not pay.
    pub(crate) fn factor(&self, raw: &dyn Raw, name: &str) -> Result<Option<Built>> {
        if self.approx != Approx::None {
            return self.stand_in(raw, name).map(Some);
        }
        if !self.may_factor() {
            return Ok(None);
        }
        let (roots, diagonal) = self.sphere(raw, name)?;
        if self.storage == Storage::Auto && !raw.promises(self.rank_limit(diagonal.len()).max_rank)
        {
            return Ok(None);
        }
        let wrapped = OnSphere { raw, roots: &roots };
        let raw = if roots.is_empty() { raw } else { &wrapped };
        let max_rank = self.rank_limit(diagonal.len()).max_rank;
        let found = raw.features(Wanted::Exact(max_rank)).map(Factor::monomials);
        let found = found.or_else(|| {
            let reduced = if roots.is_empty() { diagonal.clone() } else { raw.diagonal() };
            self.pivoted(raw, &reduced)
        });
        let Some(factor) = found else { return Ok(None) };
        self.normalized(factor, name, &diagonal, roots, None).map(Some)
    }

    /// A factor by pivoted Cholesky of what normalisation leaves of the kernel: where nearly all of
    /// the trace is one value that all entries have in common, and which centring or scaling takes
    /// away, less may be left out.
    fn pivoted(&self, raw: &dyn Raw, diagonal: &[f64]) -> Option<Factor> {
        let limit = self.rank_limit(diagonal.len());
        let to = |tolerance| {
            let limit = RankLimit { tolerance, ..limit };
            Factor::pivoted(diagonal, limit, |j, out| raw.head_of_column(j, out))
        };
        let mut factor = to(limit.tolerance)?;
        let share = self.varying_share(&factor, diagonal);
        if factor.residual > limit.tolerance * share * diagonal.iter().sum::<f64>() {
            factor = to(limit.tolerance * share).unwrap_or(factor);
        }
        factor.fineness = share;
        Some(factor)
    }

    /// The share of the trace, at most 1, that the tolerance is relative to: what is left once the
    /// value that all entries of K have in common is gone, times the factor by which that may be
    /// exceeded.
    fn varying_share(&self, factor: &Factor, diagonal: &[f64]) -> f64 {
        if !matches!(self.normalize, Normalize::Multiplicative | Normalize::Center) {
            return 1.0;
        }
        let (n, trace) = (diagonal.len() as f64, diagonal.iter().sum::<f64>());
        let excess = TUNING.varying_trace_excess * (TUNING.strict_from_rows / n).max(1.0);
        (excess * (1.0 - factor.row_sums().iter().sum::<f64>() / (n * trace))).clamp(0.0, 1.0)
    }

    /// The term of a raw factor whose diagonal is `diagonal`.
    pub(crate) fn normalized(
        &self,
        mut factor: Factor,
        name: &str,
        diagonal: &[f64],
        roots: Vec<f64>,
        error: Option<ApproxError>,
    ) -> Result<Built> {
        let normalizer = match self.normalize {
            // The diagonal was checked when the roots were taken.
            Normalize::Spherical => Normalizer::Spherical,
            other => Normalizer::fit(other, name, diagonal, || factor.row_sums())?,
        };
        match &normalizer {
            Normalizer::Spherical | Normalizer::Scale { divisor: 1.0 } => {}
            Normalizer::Scale { divisor } => factor.scale(*divisor),
            Normalizer::Center { .. } => factor.center(),
        }
        Ok(Built { term: Stored::Factor(factor), normalizer, roots, error })
    }

    /// The term as a packed triangle, from its raw values.
    pub(crate) fn triangle(&self, mut k: Packed<f64>, name: &str, single: bool) -> Result<Built> {
        let (n, (roots, diagonal)) = (k.n(), self.sphere(&k, name)?);
        if !roots.is_empty() {
            k.map_rows(|i, row| row.iter_mut().zip(&roots).for_each(|(v, r)| *v /= r * roots[i]));
        }
        let normalizer = Normalizer::fit(self.normalize, name, &diagonal, || {
            let mut sums = vec![0.0; n];
            k.apply(&vec![1.0; n], &mut sums);
            sums
        })?;
        match &normalizer {
            Normalizer::Spherical | Normalizer::Scale { divisor: 1.0 } => {}
            Normalizer::Scale { divisor } => {
                k.map_rows(|_, row| row.iter_mut().for_each(|v| *v /= divisor));
            }
            Normalizer::Center { row_means, grand_mean } => k.map_rows(|i, row| {
                let shift = grand_mean - row_means[i];
                row.iter_mut().zip(row_means).for_each(|(v, r)| *v += shift - r);
            }),
        }
        let term = if single { Stored::DenseF32(k.narrow()) } else { Stored::Dense(k) };
        Ok(Built { term, normalizer, roots, error: None })
    }

    /// √k(x_i, x_i) where normalisation is spherical (else empty), and the raw diagonal.
    pub(crate) fn sphere(&self, raw: &dyn Raw, name: &str) -> Result<(Vec<f64>, Vec<f64>)> {
        let diagonal = raw.diagonal();
        if self.normalize != Normalize::Spherical {
            return Ok((Vec::new(), diagonal));
        }
        Normalizer::fit(self.normalize, name, &diagonal, Vec::new)?;
        Ok((diagonal.iter().map(|d| d.sqrt()).collect(), diagonal))
    }
}
