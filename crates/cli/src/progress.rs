//! Watches a fit: progress on standard error, a time budget, Ctrl-C.

use std::{
    io::{IsTerminal as _, Write as _, stderr},
    ops::ControlFlow,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use mercer::{
    report::{seconds, significant},
    trace::{IterRecord, Observer},
};

use crate::output;

/// How much is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Show {
    Nothing,
    /// One line, rewritten.
    Line,
    /// A line per iteration.
    Lines,
}

impl Show {
    /// `-q` wins, then `-v`, then whether anybody is looking.
    pub fn new(quiet: bool, verbose: bool) -> Self {
        match (quiet, verbose) {
            (true, _) => Self::Nothing,
            (_, true) => Self::Lines,
            _ if stderr().is_terminal() => Self::Line,
            _ => Self::Nothing,
        }
    }
}

/// Why a fit was stopped from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    Interrupt,
    TimeLimit,
}

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Was Ctrl-C pressed?
pub fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::SeqCst)
}

/// From now on the first Ctrl-C asks the fit to stop with its best model so far, the second leaves
/// at once.
pub fn catch_interrupt() {
    catch_interrupt_saying("saving the best model so far");
}

/// The same with other words on what happens next.
pub fn catch_interrupt_saying(words: &'static str) {
    let handler = move || {
        if INTERRUPTED.swap(true, Ordering::SeqCst) {
            std::process::exit(130);
        }
        output::note(&format!("\ninterrupted: {words}; Ctrl-C again leaves at once"));
    };
    if ctrlc::set_handler(handler).is_err() {
        output::note("note: Ctrl-C cannot be caught here; it will end the fit without a model");
    }
}

/// The observer of a fit.
pub struct Progress {
    show: Show,
    tol: f64,
    max_iter: usize,
    started: Instant,
    deadline: Option<Instant>,
    shown: Option<Instant>,
    /// First record of the machine being fitted.
    first: Option<IterRecord>,
    last: usize,
    fold: Option<(usize, usize)>,
    /// The class or pair that the machine is for, where there are several.
    machine: String,
    cause: Option<Cause>,
}

impl Progress {
    pub fn new(show: Show, tol: f64, max_iter: usize, limit: Option<f64>) -> Self {
        let started = Instant::now();
        let limit = limit.and_then(|s| Duration::try_from_secs_f64(s).ok());
        Self {
            show,
            tol,
            max_iter,
            started,
            deadline: limit.and_then(|l| started.checked_add(l)),
            shown: None,
            first: None,
            last: 0,
            fold: None,
            machine: String::new(),
            cause: None,
        }
    }

    /// Why the fit was stopped, if it was; clears the progress line.
    pub fn finish(self) -> Option<Cause> {
        if self.show == Show::Line && self.shown.is_some() {
            let _ = write!(stderr().lock(), "\r\x1b[K");
        }
        self.cause
    }

    /// What the iterations belong to: a fold of a search, a class; nothing where there is one
    /// machine.
    fn place(&self) -> String {
        let fold = self.fold.map(|(k, of)| format!("search, fold {k} of {of}"));
        let machine = (!self.machine.is_empty()).then(|| format!("class {}", self.machine));
        fold.into_iter().chain(machine).collect::<Vec<_>>().join("  ")
    }

    fn draw(&mut self, record: &IterRecord) {
        let now = Instant::now();
        let due = self.shown.is_none_or(|t| now - t >= Duration::from_millis(100));
        if self.show == Show::Nothing || (self.show == Show::Line && !due) {
            return;
        }
        self.shown = Some(now);
        let first = self.first.unwrap_or(*record);
        let line = line(&self.place(), &first, record, self.tol, self.max_iter, now - self.started);
        let _ = match self.show {
            Show::Lines => writeln!(stderr().lock(), "{line}"),
            _ => write!(stderr().lock(), "\r{line}\x1b[K").and_then(|()| stderr().flush()),
        };
    }
}

impl Observer for Progress {
    fn on_machine(&mut self, _: usize, name: &str) {
        name.clone_into(&mut self.machine);
        self.first = None;
    }

    fn on_fold(&mut self, fold: Option<(usize, usize)>) {
        self.fold = fold;
        self.first = None;
    }

    fn on_iteration(&mut self, record: &IterRecord) -> ControlFlow<()> {
        // Machines are fitted one after another, starts too; each counts its iterations from 1.
        if record.iteration <= self.last || self.first.is_none() {
            self.first = Some(*record);
        }
        self.last = record.iteration;
        self.draw(record);
        self.on_pause()
    }

    fn on_pause(&mut self) -> ControlFlow<()> {
        if INTERRUPTED.load(Ordering::SeqCst) {
            self.cause = Some(Cause::Interrupt);
        } else if self.deadline.is_some_and(|d| Instant::now() >= d) {
            self.cause = self.cause.or(Some(Cause::TimeLimit));
        }
        if self.cause.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

fn line(
    place: &str,
    first: &IterRecord,
    record: &IterRecord,
    tol: f64,
    max_iter: usize,
    elapsed: Duration,
) -> String {
    let mut parts = vec![
        format!("iteration {}", record.iteration),
        format!("objective {}", significant(record.objective, 6)),
        format!("{} {:.1e}", if record.dual.is_nan() { "change" } else { "gap" }, record.gap),
        format!("{} kernels", record.active),
        seconds(elapsed.as_secs_f64()),
    ];
    if !place.is_empty() {
        parts.insert(0, place.into());
    }
    let (done, took) =
        ((record.iteration - first.iteration) as f64, record.seconds - first.seconds);
    if done > 0.0 && took > 0.0 {
        parts.push(format!("{} it/s", significant(done / took, 2)));
        if let Some(left) = remaining(first, record, tol, max_iter) {
            parts.push(format!("about {} left", seconds(left)));
        }
    }
    parts.join("  ")
}

/// Seconds to go if the gap keeps shrinking by the same factor, and at most to the last allowed
/// iteration.
fn remaining(first: &IterRecord, record: &IterRecord, tol: f64, max_iter: usize) -> Option<f64> {
    let (done, took) =
        ((record.iteration - first.iteration) as f64, record.seconds - first.seconds);
    let most = took / done * max_iter.saturating_sub(record.iteration) as f64;
    let speed = (first.gap / record.gap).ln() / took;
    let left = if record.gap <= tol { 0.0 } else { (record.gap / tol).ln() / speed };
    let left = if left >= 0.0 { left.min(most) } else { most };
    left.is_finite().then_some(left)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(iteration: usize, gap: f64, seconds: f64) -> IterRecord {
        IterRecord { iteration, objective: 12.5, dual: 12.0, gap, active: 7, seconds }
    }

    #[test]
    fn a_line_says_where_the_fit_is() {
        let (first, now) = (record(1, 1.0, 1.0), record(5, 1e-2, 5.0));
        let text = line("", &first, &now, 1e-3, 500, Duration::from_secs(5));
        assert_eq!(
            text,
            "iteration 5  objective 12.5000  gap 1.0e-2  7 kernels  5.00 s  1.0 it/s  about 2.00 s left"
        );
        let mut progress = Progress::new(Show::Nothing, 1e-3, 500, None);
        progress.on_fold(Some((2, 5)));
        progress.on_machine(0, "setosa");
        let text = line(&progress.place(), &first, &first, 1e-3, 500, Duration::ZERO);
        assert!(text.starts_with("search, fold 2 of 5  class setosa  iteration 1"), "{text}");
        progress.on_fold(None);
        assert_eq!(progress.place(), "class setosa");
    }

    #[test]
    fn remaining_time_is_bounded_by_the_iteration_limit() {
        let (first, stuck) = (record(1, 0.5, 0.0), record(11, 0.5, 10.0));
        assert_eq!(remaining(&first, &stuck, 1e-3, 21), Some(10.0));
        assert_eq!(remaining(&first, &record(11, 1e-4, 10.0), 1e-3, 21), Some(0.0));
        assert_eq!(remaining(&first, &record(11, f64::NAN, 10.0), 1e-3, 21), Some(10.0));
    }

    #[test]
    fn a_time_limit_stops_the_fit() {
        let mut progress = Progress::new(Show::Nothing, 1e-3, 500, Some(1e-9));
        std::thread::sleep(Duration::from_millis(1));
        assert!(progress.on_iteration(&record(1, 1.0, 0.0)).is_break());
        assert_eq!(progress.finish(), Some(Cause::TimeLimit));
        let mut free = Progress::new(Show::Nothing, 1e-3, 500, None);
        assert!(free.on_iteration(&record(1, 1.0, 0.0)).is_continue());
    }
}
