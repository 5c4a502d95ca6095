//! Terms of one set while they are built: factors where they are cheap, triangles elsewhere, never
//! beyond the budget.

use rayon::prelude::*;

use super::{
    super::{
        Factor, GramSet,
        dense::Packed,
        impute::{Imputation, Imputed},
        low_rank::{self, FEW_ROWS, share},
        precomputed::{Repaired, check, repair},
        stored::Stored,
    },
    BuildOptions, Built, Storage,
    raw::Raw,
};
use crate::{
    Error, Result,
    data::Missing,
    kernels::{Indefinite, Normalize},
    linalg::Matrix,
    tuning::tuning,
};

tuning! { "assembly"
    /// Largest share of the budget that factors may take before their bases move into files:
    /// solvers need the rest.
    factors_memory_share: f64 = 0.5;
}

/// A kernel whose term is to be built.
pub(crate) struct Item<'a> {
    /// The place of its term.
    pub term: usize,
    /// The name of the kernel in messages.
    pub name: &'a str,
    /// The raw values of the kernel.
    pub raw: &'a dyn Raw,
}

/// The raw triangles of some terms from one pass over pairs of rows, where that is possible.
pub(super) type OnePass<'a> = dyn Fn(&[usize]) -> Option<Vec<Packed<f64>>> + 'a;

/// The terms built so far and their bytes.
pub(crate) struct Assembly<'a> {
    pub options: &'a BuildOptions,
    n: usize,
    built: Vec<Option<Built>>,
    /// Bytes of memory taken so far.
    pub(super) bytes: u64,
    maps: Vec<Option<Matrix>>,
    repaired: Vec<bool>,
    imputations: Vec<Option<Imputation>>,
    missing: Missing,
    notes: Vec<String>,
}

impl<'a> Assembly<'a> {
    /// No term yet of `terms` over n samples; `missing` is the rule for rows that lack a view.
    pub fn new(options: &'a BuildOptions, n: usize, terms: usize, missing: Missing) -> Self {
        let (maps, imputations, repaired) =
            (vec![None; terms], vec![None; terms], vec![false; terms]);
        let (built, notes) = ((0..terms).map(|_| None).collect(), Vec::new());
        Self { options, n, built, bytes: 0, maps, repaired, imputations, missing, notes }
    }

    /// The same assembly with bytes of the budget already taken: those of the table that the
    /// kernels are computed from.
    pub fn beside(self, bytes: u64) -> Self {
        Self { bytes: self.bytes + bytes, ..self }
    }

    /// Builds the terms of kernels on columns that the rows `absent` lack.
    pub(super) fn add_imputed(&mut self, batch: &[Item<'_>], absent: &[bool]) -> Result<()> {
        if self.options.normalize == Normalize::Spherical {
            let got = "spherical, and rows lack a view";
            return Err(Error::param(
                "normalize",
                "one of trace, multiplicative, center, none",
                got,
            ));
        }
        let own = Imputation { absent: absent.to_vec(), missing: self.missing };
        let raws: Vec<Imputed<'_>> =
            batch.iter().map(|item| Imputed::new(item.raw, &own)).collect();
        let wrapped = batch.iter().zip(&raws).map(|(item, raw)| Item {
            term: item.term,
            name: item.name,
            raw,
        });
        self.add(&wrapped.collect::<Vec<_>>(), &|_| None)?;
        batch.iter().for_each(|item| self.imputations[item.term] = Some(own.clone()));
        Ok(())
    }

    /// Builds the term of a precomputed matrix, checked and where asked for repaired.
    pub(super) fn add_precomputed(
        &mut self,
        t: usize,
        name: &str,
        k: Matrix,
        how: Indefinite,
    ) -> Result<()> {
        self.options.refuse_precomputed()?;
        check::symmetric(&k, name)?;
        let k = match repair(&k, name, how)? {
            None => k,
            Some(repaired) => self.repair(t, repaired),
        };
        self.add(&[Item { term: t, name, raw: &k }], &|_| None)
    }

    /// Notes a repair of term t, and returns the repaired matrix.
    pub fn repair(&mut self, t: usize, repaired: Repaired) -> Matrix {
        self.maps[t] = repaired.map;
        self.repaired[t] = true;
        self.notes.push(repaired.note);
        repaired.matrix
    }

    /// Builds terms: factors in parallel, then triangles for the rest in the widest form that still
    /// fits. `together` computes the raw triangles of some terms of the batch in one pass, where
    /// that is possible.
    pub(super) fn add(&mut self, batch: &[Item<'_>], together: &OnePass<'_>) -> Result<()> {
        let factors: Vec<Option<Built>> = batch
            .par_iter()
            .map(|item| self.options.factor(item.raw, item.name))
            .collect::<Result<_>>()?;
        let mut rest = Vec::new();
        for (item, factor) in batch.iter().zip(factors) {
            match factor {
                Some(factor) => self.place(item.term, factor),
                None => rest.push(item),
            }
        }
        let single = self.reserve(rest.len())?;
        let terms: Vec<usize> = rest.iter().map(|item| item.term).collect();
        // In one pass all triangles are wide at once: not where they do not fit.
        let raw = if single || rest.len() < 2 { None } else { together(&terms) };
        let raw: Vec<Option<Packed<f64>>> = raw.map_or_else(
            || rest.iter().map(|_| None).collect(),
            |all| all.into_iter().map(Some).collect(),
        );
        let triangle = |(item, raw): (&&Item<'_>, Option<Packed<f64>>)| {
            let fill = |i: usize, rows: &mut [&mut [f64]]| item.raw.head_of_column(i, rows[0]);
            let k = raw.unwrap_or_else(|| Packed::several(self.n, 1, fill).swap_remove(0));
            self.options.triangle(k, item.name, single)
        };
        let built: Vec<Built> = rest.par_iter().zip(raw).map(triangle).collect::<Result<_>>()?;
        terms.iter().zip(built).for_each(|(&t, built)| self.place(t, built));
        Ok(())
    }

    /// Takes a finished term in.
    pub fn place(&mut self, t: usize, built: Built) {
        if let Stored::Factor(f) = &built.term {
            self.bytes += bytes(&[f]);
        }
        self.built[t] = Some(built);
    }

    /// Counts the bytes of some triangles before they are there, and says whether they are to be in
    /// single precision.
    pub fn reserve(&mut self, count: usize) -> Result<bool> {
        let count = count as u64;
        let (wide, narrow) = (
            self.bytes + count * Packed::<f64>::bytes(self.n),
            count * Packed::<f32>::bytes(self.n),
        );
        let single = self.options.storage == Storage::DenseF32
            || (self.options.storage == Storage::Auto && wide > self.options.budget.bytes);
        self.bytes = if single { self.bytes + narrow } else { wide };
        self.options.budget.check(
            format!("storing {} kernels of {} samples", self.built.len(), self.n),
            self.bytes,
            "raise the budget, use fewer kernels or rows, or smoother kernels (wider ones have lower rank)",
        )?;
        Ok(single)
    }

    /// The factors among the terms of every scope.
    fn factors(&mut self, scopes: &[&[usize]]) -> Vec<Vec<&mut Factor>> {
        let mut place = vec![None; self.built.len()];
        scopes
            .iter()
            .enumerate()
            .for_each(|(s, terms)| terms.iter().for_each(|&t| place[t] = Some(s)));
        let mut found: Vec<Vec<&mut Factor>> = scopes.iter().map(|_| Vec::new()).collect();
        for (built, place) in self.built.iter_mut().zip(place) {
            if let (Some(Built { term: Stored::Factor(f), .. }), Some(s)) = (built, place) {
                found[s].push(f);
            }
        }
        found
    }

    /// Bytes of the factors of some scopes, bases included.
    fn factor_bytes(&mut self, scopes: &[&[usize]]) -> u64 {
        let own =
            |factors: &Vec<&mut Factor>| bytes(&factors.iter().map(|f| &**f).collect::<Vec<_>>());
        self.factors(scopes).iter().map(own).sum()
    }

    /// Puts the factors of every scope into bases that they share: those with most columns first,
    /// or in the order given. With few rows it does so only where the factors would take too much
    /// of the budget otherwise. Bases that still take too much move into files.
    pub fn share(&mut self, scopes: &[&[usize]], widest_first: bool) -> Result<()> {
        let most = (TUNING.factors_memory_share * self.options.budget.bytes as f64) as u64;
        if self.n < FEW_ROWS && self.bytes <= most {
            return Ok(());
        }
        let (before, tolerance) = (self.bytes, self.options.rank_tolerance);
        // A factor that has used up its declared rank spans a space of its own.
        let alone = self.options.approx.rank(usize::MAX);
        let others = before - self.factor_bytes(scopes);
        self.factors(scopes).into_par_iter().for_each(|mut factors| {
            if widest_first {
                factors.sort_by_key(|f| std::cmp::Reverse(f.rank()));
            }
            share(
                factors.into_iter().filter(|f| f.rank() < alone).collect(),
                tolerance,
                widest_first,
            );
        });
        if others + self.factor_bytes(scopes) > most {
            self.factors(scopes).into_iter().try_for_each(low_rank::to_files)?;
        }
        self.bytes = others + self.factor_bytes(scopes);
        Ok(())
    }

    /// The set of all terms, each of which has been built.
    pub fn finish(self) -> GramSet {
        let mut set = GramSet {
            n: self.n,
            terms: Vec::new(),
            normalizers: Vec::new(),
            roots: Vec::new(),
            maps: self.maps,
            imputations: self.imputations,
            notes: self.notes,
            errors: Vec::new(),
            repaired: self.repaired,
            missing: self.missing,
        };
        for built in self.built.into_iter().flatten() {
            set.terms.push(built.term);
            set.normalizers.push(built.normalizer);
            set.roots.push(built.roots);
            set.errors.extend(built.error);
        }
        set
    }
}

/// Bytes of factors with their bases.
fn bytes(factors: &[&Factor]) -> u64 {
    factors.iter().map(|f| f.bytes()).sum::<u64>() + low_rank::basis_bytes(factors)
}
