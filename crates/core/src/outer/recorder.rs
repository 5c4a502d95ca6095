//! The record of a run: its iterations, its clock, and whether its observer has asked it to stop.

use std::time::Instant;

use crate::trace::{IterRecord, Observer, Status};

/// Records iterations and passes them to an observer, which may stop the run.
pub struct Recorder<'a> {
    observer: &'a mut dyn Observer,
    began: Instant,
    /// One record per iteration.
    pub trace: Vec<IterRecord>,
    /// Has the observer asked to stop?
    pub stopped: bool,
}

impl<'a> Recorder<'a> {
    /// Starts the clock before the first iteration.
    pub fn new(observer: &'a mut dyn Observer) -> Self {
        Self { observer, began: Instant::now(), trace: Vec::new(), stopped: false }
    }

    /// Records one iteration: the objective, a lower bound or NaN, the gap or the measure of rest,
    /// and the kernels or rules with weight.
    pub fn record(&mut self, objective: f64, dual: f64, gap: f64, active: usize) {
        let (iteration, seconds) = (self.trace.len() + 1, self.began.elapsed().as_secs_f64());
        let record = IterRecord { iteration, objective, dual, gap, active, seconds };
        self.trace.push(record);
        self.stopped |= self.observer.on_iteration(&record).is_break();
    }

    /// The status of a run that ends: `reached` if it came to its aim, else why it ends before.
    pub fn status(&self, reached: Option<Status>) -> Status {
        match (reached, self.stopped) {
            (Some(status), _) => status,
            (None, true) => Status::Stopped,
            (None, false) => Status::MaxIterations,
        }
    }

    /// The status of a run without a certificate, which ends at rest or before.
    pub fn status_at_rest(&self, at_rest: bool) -> Status {
        self.status(at_rest.then_some(Status::Stationary))
    }
}
