//! The order in which the kernels of a table become terms, so that work is shared among kernels and
//! memory stays within the budget.
//!
//! Kernels on the same columns make a scope. Scopes of one column and few rows are built all at
//! once, for all threads to have work. Other scopes come one after another: string kernels family
//! by family, each family in one pass over pairs of rows; kernels of numbers from one table of pair
//! numbers where several of them start from the same. Factors of scopes wait until there are some,
//! and then share bases.

use std::collections::HashMap;

use rayon::prelude::*;

use super::{
    super::{Approx, GramSet, dense::Packed, low_rank::FEW_ROWS, precomputed::check},
    BuildOptions,
    assembly::{Assembly, Item},
    pairs::pair_table,
    raw::Computed,
};
use crate::{
    Result,
    data::Rows,
    kernels::{Function, KernelSpec, Numeric, Pair, Points, Together},
    linalg::Matrix,
    tuning::tuning,
};

tuning! { "schedule"
    /// Bytes of factors, about, that wait for their bases to be shared: enough scopes for all
    /// threads to have one.
    waiting_bytes: usize = 1 << 25;
    /// Largest share of the budget that may wait.
    waiting_memory_share: f64 = 0.125;
}

/// Kernels on the same columns.
struct ColumnScope<'a> {
    columns: &'a [usize],
    /// Places of the kernels.
    members: Vec<usize>,
}

/// The kernels scope by scope, in the order of first appearance.
fn scopes(kernels: &[KernelSpec]) -> Vec<ColumnScope<'_>> {
    let mut scopes: Vec<ColumnScope<'_>> = Vec::new();
    let mut place = HashMap::new();
    for (t, kernel) in kernels.iter().enumerate() {
        let at = *place.entry(kernel.columns.as_slice()).or_insert(scopes.len());
        if at == scopes.len() {
            scopes.push(ColumnScope { columns: &kernel.columns, members: Vec::new() });
        }
        scopes[at].members.push(t);
    }
    scopes
}

impl GramSet {
    /// The terms of `kernels` on the rows of `x` (already standardised).
    pub fn from_table(x: &Matrix, kernels: &[KernelSpec], options: &BuildOptions) -> Result<Self> {
        Self::from_rows(&x.clone().into(), kernels, options)
    }

    /// The terms of `kernels` on `rows` (numbers already standardised).
    pub fn from_rows(rows: &Rows, kernels: &[KernelSpec], options: &BuildOptions) -> Result<Self> {
        let assembly =
            Assembly::new(options, rows.len(), kernels.len(), rows.missing()).beside(rows.bytes());
        let mut schedule = Schedule { rows, kernels, assembly };
        let (small, scopes): (Vec<_>, Vec<_>) =
            scopes(kernels).into_iter().partition(|scope| schedule.is_small(scope));
        schedule.add_small(&small)?;
        let mut waiting: Vec<&[usize]> =
            small.iter().map(|scope| scope.members.as_slice()).collect();
        let most_waiting = ((TUNING.waiting_memory_share * options.budget.bytes as f64) as u64)
            .min(TUNING.waiting_bytes as u64);
        let mut settled = rows.bytes();
        for scope in &scopes {
            schedule.add_precomputed(scope)?;
            // Factors of strings rarely have a space in common.
            if schedule.add_texts(scope)? {
                continue;
            }
            schedule.add_numbers(scope)?;
            waiting.push(&scope.members);
            if schedule.assembly.bytes > settled + most_waiting {
                schedule.assembly.share(&std::mem::take(&mut waiting), true)?;
                settled = schedule.assembly.bytes;
            }
        }
        schedule.assembly.share(&waiting, true)?;
        Ok(schedule.assembly.finish())
    }
}

struct Schedule<'a> {
    rows: &'a Rows,
    kernels: &'a [KernelSpec],
    assembly: Assembly<'a>,
}

impl<'a> Schedule<'a> {
    fn item<'b>(&self, t: usize, raw: &'b dyn super::Raw) -> Item<'b>
    where
        'a: 'b,
    {
        Item { term: t, name: &self.kernels[t].name, raw }
    }

    /// Are the kernels of one column soon made, with few rows and nothing to be checked or imputed?
    fn is_small(&self, scope: &ColumnScope<'_>) -> bool {
        let plain = |&t: &usize| {
            let function = self.kernels[t].function;
            !matches!(function, Function::Sigmoid { .. }) && function.pair().is_some()
        };
        self.rows.len() < FEW_ROWS
            && scope.columns.len() == 1
            && self.rows.absent(scope.columns).is_none()
            && scope.members.iter().all(plain)
    }

    /// Kernels of numbers of all these scopes at once. One column is cheaper to compute again than
    /// to look up in a table of pairs.
    fn add_small(&mut self, scopes: &[ColumnScope<'_>]) -> Result<()> {
        let numbers: Vec<Numeric> =
            scopes.iter().map(|scope| Numeric::of(self.rows, scope.columns)).collect();
        let raws = scopes.iter().zip(&numbers).flat_map(|(scope, x)| {
            let raw = |&t: &usize| {
                let function = self.kernels[t].function;
                function.pair().map(|pair| {
                    (t, Computed { function, pair, columns: scope.columns, x, pairs: None })
                })
            };
            scope.members.iter().filter_map(raw).collect::<Vec<_>>()
        });
        let raws: Vec<(usize, Computed<'_>)> = raws.collect();
        let batch: Vec<Item<'_>> = raws.iter().map(|(t, raw)| self.item(*t, raw)).collect();
        self.assembly.add(&batch, &|_| None)
    }

    /// The precomputed kernels of a scope.
    fn add_precomputed(&mut self, scope: &ColumnScope<'_>) -> Result<()> {
        for &t in &scope.members {
            if let Function::Precomputed { indefinite } = self.kernels[t].function {
                let k = self.rows.numbers().select_cols(scope.columns);
                self.assembly.add_precomputed(t, &self.kernels[t].name, k, indefinite)?;
            }
        }
        Ok(())
    }

    /// The string kernels of a scope, family by family; false where it has none.
    fn add_texts(&mut self, scope: &ColumnScope<'_>) -> Result<bool> {
        let (rows, kernels) = (self.rows, self.kernels);
        let texts: Vec<usize> =
            scope.members.iter().copied().filter(|&t| kernels[t].reads_text()).collect();
        for family in families(&texts, kernels) {
            let points: Vec<Points> = family.par_iter().map(|&t| kernels[t].points(rows)).collect();
            let batch: Vec<Item<'_>> =
                family.iter().zip(&points).map(|(&t, p)| self.item(t, p)).collect();
            let together = |terms: &[usize]| {
                let specs: Vec<&KernelSpec> = terms.iter().map(|&t| &kernels[t]).collect();
                let together = Together::new(&specs, rows)?;
                Some(Packed::several(rows.len(), specs.len(), |i, out| {
                    together.row(i, &together, out);
                }))
            };
            match rows.absent(scope.columns) {
                Some(absent) => self.assembly.add_imputed(&batch, &absent)?,
                None => self.assembly.add(&batch, &together)?,
            }
        }
        Ok(!texts.is_empty())
    }

    /// The kernels of numbers of a scope, those that start from the same pair number together.
    fn add_numbers(&mut self, scope: &ColumnScope<'_>) -> Result<()> {
        let (x, kernels) = (Numeric::of(self.rows, scope.columns), self.kernels);
        self.check_sigmoids(scope)?;
        let absent = self.rows.absent(scope.columns);
        let mut pairs: Vec<Pair> =
            scope.members.iter().filter_map(|&t| kernels[t].function.pair()).collect();
        pairs.sort_unstable();
        pairs.dedup();
        for pair in pairs {
            let of_pair =
                scope.members.iter().copied().filter(|&t| kernels[t].function.pair() == Some(pair));
            let of_pair: Vec<usize> = of_pair.collect();
            let table = self.wants_table(scope, of_pair.len()).then(|| pair_table(pair, &x));
            let raw = |&t: &usize| {
                let function = kernels[t].function;
                Computed { function, pair, columns: scope.columns, x: &x, pairs: table.as_ref() }
            };
            let raws: Vec<Computed<'_>> = of_pair.iter().map(raw).collect();
            let batch: Vec<Item<'_>> =
                of_pair.iter().zip(&raws).map(|(&t, r)| self.item(t, r)).collect();
            match &absent {
                Some(absent) => self.assembly.add_imputed(&batch, absent)?,
                None => self.assembly.add(&batch, &|_| None)?,
            }
        }
        Ok(())
    }

    /// A sigmoid need not be a kernel: each is checked as a whole.
    fn check_sigmoids(&self, scope: &ColumnScope<'_>) -> Result<()> {
        let sigmoid = |t: &&usize| matches!(self.kernels[**t].function, Function::Sigmoid { .. });
        scope.members.iter().filter(sigmoid).try_for_each(|&t| {
            let points = self.kernels[t].points(self.rows);
            let k = Packed::lower(&points.block(&points));
            check::positive_semidefinite(&k, &self.kernels[t].name, &mut Matrix::default())
        })
    }

    /// Does a table of pair numbers pay for this number of kernels? It must leave memory for their
    /// terms, and one column is cheaper to compute again than to look up.
    fn wants_table(&self, scope: &ColumnScope<'_>, kernels: usize) -> bool {
        let (options, n) = (self.assembly.options, self.rows.len() as u64);
        let table_bytes = 8 * n * n;
        scope.columns.len() > 1
            && kernels > 1
            && options.approx == Approx::None
            && self.assembly.bytes + 2 * table_bytes <= options.budget.bytes
    }
}

/// String kernels on one column, those that share a pass over pairs of rows in one list.
fn families(texts: &[usize], kernels: &[KernelSpec]) -> Vec<Vec<usize>> {
    let key = |t: usize| match kernels[t].function {
        Function::Text(text) => text.family(),
        _ => None,
    };
    let mut found: Vec<Vec<usize>> = Vec::new();
    for &t in texts {
        match found.iter_mut().find(|f| key(f[0]) == key(t)) {
            Some(family) => family.push(t),
            None => found.push(vec![t]),
        }
    }
    found
}
