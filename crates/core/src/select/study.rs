//! What choosing and comparing work on: data, splits, and who watches.

use serde::Serialize;

use super::{
    Comparison, Contender, Journal, Protocol, Tuning, Unwatched, Watch, compare, journal, tune,
};
use crate::{Result, data::Target, prepare::Source};

/// A piece of work over the splits of one data set. Neither results nor their order depend on the
/// number of threads.
#[derive(Clone, Copy)]
pub struct Study<'a> {
    /// Rows, or ready-made kernels.
    pub source: Source<'a>,
    /// The answers, one per row.
    pub target: &'a Target,
    /// The weight of each row; `None` weighs all alike.
    pub weight: Option<&'a [f64]>,
    /// The number of each row's group, whose rows stay in one part of every split; `None` puts
    /// every row in a group of its own.
    pub groups: Option<&'a [usize]>,
    /// How rows are cut, what is measured, how parameters are chosen.
    pub protocol: &'a Protocol,
    /// Told of progress, and asked whether the work is to end.
    pub watch: &'a dyn Watch,
}

impl<'a> Study<'a> {
    /// A study of rows that weigh alike, in no groups, which nobody watches.
    pub fn new(source: Source<'a>, target: &'a Target, protocol: &'a Protocol) -> Self {
        Self { source, target, weight: None, groups: None, protocol, watch: &Unwatched }
    }

    /// What tells this work on `request` from any other: the key of its journal.
    pub fn key(&self, request: &impl Serialize) -> String {
        journal::fingerprint(*self, request)
    }

    /// Runs every contender over the splits of the protocol. What the journal holds is not fitted
    /// again. `None` where the watch stopped it: finished runs are in the journal.
    pub fn compare(
        &self,
        contenders: &[Contender],
        journal: &Journal,
    ) -> Result<Option<Comparison>> {
        compare::compare(compare::Work { study: *self, contenders, journal })
    }

    /// Scores every setting of one contender over the splits of the protocol. `None` where the
    /// watch stopped it: finished runs are in the journal.
    pub fn tune(&self, contender: &Contender, journal: &Journal) -> Result<Option<Tuning>> {
        tune::tune(*self, contender, journal)
    }
}
