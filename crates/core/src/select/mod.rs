//! Choosing and comparing: splits, grids, nested cross-validation, paired tests, and a journal that
//! survives a crash.
//!
//! [`Study::tune`] scores every setting of one method over the splits of one data set.
//! [`Study::compare`] runs several methods over the same splits, each choosing its parameters
//! inside the training part alone, and says which differences are real. Both take a [`Journal`]:
//! what it holds is not fitted again, and the table is the same as that of a run in one go. Results
//! do not depend on the number of threads.

mod compare;
mod contender;
mod grid;
mod held_out;
mod journal;
mod protocol;
mod significance;
mod stability;
mod study;
mod summary;
mod tune;

pub use compare::{Detail, SplitRun};
pub use contender::{Contender, contenders};
pub use grid::Grid;
pub use held_out::held_out;
pub use journal::Journal;
pub use protocol::{Protocol, Splitting};
pub use significance::{Paired, holm, paired};
pub use stability::{KernelStability, Stability, interchangeable};
pub use study::Study;
pub use summary::{Aligned, Comparison, Line};
pub use tune::{Setting, Tuning};

use std::ops::ControlFlow;

use crate::trace::{IterRecord, Observer};

/// Watches a long piece of work made of many runs, from several threads at once.
pub trait Watch: Sync {
    /// Should the work end? Asked at every iteration of every fit.
    fn stopped(&self) -> bool {
        false
    }

    /// What lies ahead; called once, before the first run.
    fn begin(&self, _work: &[Ahead]) {}

    /// A run of `name` has ended, after `seconds`.
    fn done(&self, _name: &str, _seconds: f64) {}
}

/// Runs of one name.
#[derive(Debug, Clone, PartialEq)]
pub struct Ahead {
    /// The name of the method.
    pub name: String,
    /// How many there are in all.
    pub total: usize,
    /// How many the journal already holds.
    pub found: usize,
    /// What those took together.
    pub seconds: f64,
}

/// A watch that does nothing and never stops the work.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unwatched;

impl Watch for Unwatched {}

/// Ends a fit when the whole work is to end.
struct Relay<'a>(&'a dyn Watch);

impl Observer for Relay<'_> {
    fn on_iteration(&mut self, _: &IterRecord) -> ControlFlow<()> {
        if self.0.stopped() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}
