//! From precomputed kernels to terms: one pass checks them, then factors are found by their
//! columns, and triangles where there is no factor.

use rayon::prelude::*;

use super::{
    super::{
        BuildOptions, GramSet,
        build::{Assembly, Built, Raw},
        dense::Packed,
        stored::Stored,
    },
    Stack, check,
    repair::repair,
};
use crate::{
    Result,
    data::Missing,
    kernels::{Indefinite, Normalize},
    linalg::Matrix,
    tuning::tuning,
};

tuning! { "precomputed"
    /// Bytes of triangles that are in memory at a time while kernels are proved positive
    /// semidefinite.
    batch_bytes: usize = 1 << 26;
}

impl GramSet {
    /// The terms of precomputed kernels, which must be square, finite, symmetric and positive
    /// semidefinite.
    pub fn from_stack(stack: Stack<'_>, names: &[String], options: &BuildOptions) -> Result<Self> {
        Self::from_stack_repaired(stack, names, options, Indefinite::Refuse)
    }

    /// The terms of precomputed kernels, which must be square, finite and symmetric; those that are
    /// not positive semidefinite are treated as asked.
    pub fn from_stack_repaired(
        stack: Stack<'_>,
        names: &[String],
        options: &BuildOptions,
        how: Indefinite,
    ) -> Result<Self> {
        options.refuse_precomputed()?;
        let (n, terms) = (stack.rows, stack.terms);
        let mut assembly = Assembly::new(options, n, terms, Missing::Refuse);
        let probe = check::probe(n);
        let (seen, images) = stack.read(&probe);
        let mut doubtful = (0..terms).filter(|&t| seen.doubtful(t));
        doubtful.try_for_each(|t| check::symmetric(&stack.kernel(t), &names[t]).map(|_| ()))?;
        let scaled = !matches!(options.normalize, Normalize::Center | Normalize::Spherical);
        // A factor that acts like its matrix on the probe proves that the matrix is positive
        // semidefinite.
        let factor = |t: usize| {
            let found = options.factor(&StackValues { stack, t }, &names[t]);
            let image = || images[t..].iter().step_by(terms).copied().collect();
            let like = |built: &Built| matches!(&built.term, Stored::Factor(f) if check::is_like_factor(image(), &probe, f));
            let sure = scaled && matches!(&found, Ok(Some(built)) if like(built));
            (found, sure)
        };
        let found: Vec<(Result<Option<Built>>, bool)> =
            (0..terms).into_par_iter().map(factor).collect();
        let mut others = Vec::new();
        for (t, (found, sure)) in found.into_iter().enumerate() {
            match found {
                Ok(Some(built)) if sure => assembly.place(t, built),
                found => others.push((t, found)),
            }
        }
        assembly.reserve(0)?;
        let at_once = (TUNING.batch_bytes as u64 / Packed::<f64>::bytes(n).max(1)).max(1) as usize;
        while !others.is_empty() {
            let rest = others.split_off(at_once.min(others.len()));
            assembly.add_doubtful(&stack, names, std::mem::replace(&mut others, rest), how)?;
        }
        assembly.share(&[&(0..terms).collect::<Vec<_>>()], false)?;
        Ok(assembly.finish())
    }
}

/// A kernel that is still to be proved positive semidefinite, with the factor that was found for
/// it.
type Doubtful = (usize, Result<Option<Built>>);

impl Assembly<'_> {
    /// Terms of kernels that are positive semidefinite or made so: factors, or their triangles.
    fn add_doubtful(
        &mut self,
        stack: &Stack<'_>,
        names: &[String],
        kernels: Vec<Doubtful>,
        how: Indefinite,
    ) -> Result<()> {
        let options = self.options;
        let triangles = stack.triangles(&kernels.iter().map(|(t, _)| *t).collect::<Vec<_>>());
        let prove = |scratch: &mut Matrix, ((t, found), mut k): (Doubtful, Packed<f64>)| {
            let (name, proof) = (&names[t], check::positive_semidefinite(&k, &names[t], scratch));
            if proof.is_ok() || how == Indefinite::Refuse {
                // What is wrong with an indefinite matrix is a better message than that it cannot
                // be normalised.
                return proof.and(found).map(|built| (t, k, built, None));
            }
            let fixed = repair(&stack.kernel(t), name, how)?;
            if let Some(fixed) = &fixed {
                k = Packed::lower(&fixed.matrix);
            }
            options.factor(&k, name).map(|built| (t, k, built, fixed))
        };
        let proved: Vec<Result<_>> = kernels
            .into_par_iter()
            .zip(triangles)
            .map_init(Matrix::default, |scratch, pair| prove(scratch, pair))
            .collect();
        let mut missing = Vec::new();
        // In order, so that the error is that of the first.
        for proved in proved {
            let (t, k, built, fixed) = proved?;
            if let Some(fixed) = fixed {
                self.repair(t, fixed);
            }
            match built {
                Some(built) => self.place(t, built),
                None => missing.push((t, k)),
            }
        }
        let single = self.reserve(missing.len())?;
        let dense: Vec<(usize, Result<Built>)> = missing
            .into_par_iter()
            .map(|(t, k)| (t, options.triangle(k, &names[t], single)))
            .collect();
        dense.into_iter().try_for_each(|(t, built)| built.map(|built| self.place(t, built)))
    }
}

/// The raw values of one kernel of a stack.
struct StackValues<'a> {
    stack: Stack<'a>,
    t: usize,
}

impl Raw for StackValues<'_> {
    fn diagonal(&self) -> Vec<f64> {
        (0..self.stack.rows).map(|i| self.stack.cell(i, i)[self.t]).collect()
    }

    fn head_of_column(&self, j: usize, out: &mut [f64]) {
        // Symmetric: a row is a column.
        let row = self.stack.data[j * self.stack.cols * self.stack.terms + self.t..]
            .iter()
            .step_by(self.stack.terms);
        out.iter_mut().zip(row).for_each(|(o, x)| *o = *x);
    }
}
