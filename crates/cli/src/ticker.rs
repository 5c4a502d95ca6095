//! Progress of many runs: how many are done, and an estimate of what is left that says what it does
//! not know.

use std::{
    collections::HashMap,
    fmt::Write as _,
    io::{Write as _, stderr},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use mercer::{
    report::seconds,
    select::{Ahead, Watch},
};

use crate::progress::{Show, interrupted};

/// Runs of one method.
#[derive(Debug, Clone, Default)]
struct Tally {
    left: usize,
    timed: usize,
    seconds: f64,
}

#[derive(Debug, Default)]
struct State {
    order: Vec<String>,
    runs: HashMap<String, Tally>,
    total: usize,
    done: usize,
    found: usize,
    shown: Option<Instant>,
}

/// The watch of `tune`, `compare` and `reproduce`.
pub struct Ticker {
    show: Show,
    prefix: String,
    workers: usize,
    began: Instant,
    /// When the work is to end.
    deadline: Option<Instant>,
    state: Mutex<State>,
}

impl Ticker {
    pub fn new(show: Show, prefix: &str, workers: usize) -> Self {
        let (prefix, began) = (prefix.to_string(), Instant::now());
        Self {
            show,
            prefix,
            workers: workers.max(1),
            began,
            deadline: None,
            state: Mutex::default(),
        }
    }

    /// The same watch, which ends the work after so many seconds.
    pub fn within(self, seconds: Option<f64>) -> Self {
        let limit = seconds.and_then(|s| Duration::try_from_secs_f64(s).ok());
        Self { deadline: limit.and_then(|l| self.began.checked_add(l)), ..self }
    }

    /// Clears the line of progress.
    pub fn finish(&self) {
        if self.show == Show::Line {
            let _ = write!(stderr().lock(), "\r\x1b[K");
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn draw(&self, state: &mut State, name: &str) {
        let now = Instant::now();
        let due = state.shown.is_none_or(|t| now - t >= Duration::from_millis(100));
        if self.show == Show::Nothing || (self.show == Show::Line && !due) {
            return;
        }
        state.shown = Some(now);
        let line = line(state, &self.prefix, name, self.workers, self.began.elapsed());
        let _ = match self.show {
            Show::Lines => writeln!(stderr().lock(), "{line}"),
            _ => write!(stderr().lock(), "\r{line}\x1b[K").and_then(|()| stderr().flush()),
        };
    }
}

impl Watch for Ticker {
    fn stopped(&self) -> bool {
        interrupted() || self.deadline.is_some_and(|d| Instant::now() >= d)
    }

    fn begin(&self, work: &[Ahead]) {
        let mut state = self.state();
        for a in work {
            let tally = Tally { left: a.total - a.found, timed: a.found, seconds: a.seconds };
            state.order.push(a.name.clone());
            state.runs.insert(a.name.clone(), tally);
            state.total += a.total;
            state.done += a.found;
            state.found += a.found;
        }
        self.draw(&mut state, "");
    }

    fn done(&self, name: &str, seconds: f64) {
        let mut state = self.state();
        if let Some(tally) = state.runs.get_mut(name) {
            tally.left = tally.left.saturating_sub(1);
            tally.timed += 1;
            tally.seconds += seconds;
        }
        state.done += 1;
        self.draw(&mut state, name);
    }
}

fn line(state: &State, prefix: &str, name: &str, workers: usize, elapsed: Duration) -> String {
    let mut out = format!("{prefix}{} of {} runs", state.done, state.total);
    if state.found > 0 {
        let _ = write!(out, " ({} from the journal)", state.found);
    }
    if !name.is_empty() {
        let _ = write!(out, "  {name}");
    }
    let _ = write!(out, "  {}", seconds(elapsed.as_secs_f64()));
    let (left, unknown) = remaining(state, workers);
    if state.done < state.total {
        let _ = match (left, unknown.as_slice()) {
            (0.0, [_, ..]) if state.done == state.found => write!(out, "  no estimate yet"),
            (0.0, many) => write!(out, "  no estimate yet ({} methods not yet timed)", many.len()),
            (s, []) => write!(out, "  about {} left", seconds(s)),
            (s, [one]) => write!(out, "  at least {} left ({one} not yet timed)", seconds(s)),
            (s, many) => {
                write!(out, "  at least {} left ({} methods not yet timed)", seconds(s), many.len())
            }
        };
    }
    out
}

/// Seconds left for methods that were timed, spread over the workers, and the methods that were
/// not.
fn remaining(state: &State, workers: usize) -> (f64, Vec<&str>) {
    let (mut left, mut unknown) = (0.0, Vec::new());
    for name in &state.order {
        let Some(tally) = state.runs.get(name).filter(|t| t.left > 0) else { continue };
        if tally.timed == 0 {
            unknown.push(name.as_str());
        } else {
            left += tally.left as f64 * tally.seconds / tally.timed as f64;
        }
    }
    (left / workers as f64, unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_estimate_says_what_it_does_not_know() {
        let ticker = Ticker::new(Show::Nothing, "", 2);
        let ahead = |name: &str, found| Ahead {
            name: name.into(),
            total: 4,
            found,
            seconds: 2.0 * found as f64,
        };
        ticker.begin(&[ahead("l1", 0), ahead("lmkl", 0)]);
        let told = |name: &str| line(&ticker.state(), "", name, 2, Duration::from_secs(3));
        assert!(told("").ends_with("no estimate yet"), "{}", told(""));
        ticker.done("l1", 2.0);
        assert_eq!(
            told("l1"),
            "1 of 8 runs  l1  3.00 s  at least 3.00 s left (lmkl not yet timed)"
        );
        ticker.done("lmkl", 10.0);
        assert_eq!(told("lmkl"), "2 of 8 runs  lmkl  3.00 s  about 18.00 s left");
        let resumed = Ticker::new(Show::Nothing, "", 1);
        resumed.begin(&[ahead("l1", 3)]);
        let text = line(&resumed.state(), "toy: ", "", 1, Duration::from_secs(1));
        assert_eq!(text, "toy: 3 of 4 runs (3 from the journal)  1.00 s  about 2.00 s left");
    }
}
