//! What a run tells the world: a record per outer iteration, a status at the end, an observer that
//! may stop it.

use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};

/// What is known after an outer iteration.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct IterRecord {
    /// The iteration's number, counted from 1.
    pub iteration: usize,
    /// Best upper bound so far (the primal value of the best iterate).
    pub objective: f64,
    /// Best lower bound so far; NaN for non-convex methods.
    #[serde(with = "nan_as_null")]
    pub dual: f64,
    /// Relative gap between the two (see [`relative_gap`]); the stationarity measure for non-convex
    /// methods.
    #[serde(with = "nan_as_null")]
    pub gap: f64,
    /// Kernels with a non-zero weight in the iterate just solved.
    pub active: usize,
    /// Seconds since the fit began.
    pub seconds: f64,
}

/// How a fit ended. "Converged" never means two things.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The relative duality gap is at most the tolerance: certified.
    Optimal,
    /// Non-convex methods: the stationarity measure is at most the tolerance.
    Stationary,
    /// The iteration limit came first; the fit is usable and its gap is reported.
    MaxIterations,
    /// An observer asked to stop; the best fit so far is returned.
    Stopped,
}

impl Status {
    /// The word users see.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Optimal => "optimal",
            Self::Stationary => "stationary",
            Self::MaxIterations => "max_iterations",
            Self::Stopped => "stopped",
        }
    }
}

/// Watches a run. Progress bars, logs, Ctrl-C and time budgets live behind this.
pub trait Observer {
    /// Called after every outer iteration; `Break` ends the run with the best fit so far.
    fn on_iteration(&mut self, record: &IterRecord) -> ControlFlow<()>;

    /// Told before the iterations of a machine where there are several, each with weights of its
    /// own: which one, counted from 0, and the class or the pair of classes that it is for.
    fn on_machine(&mut self, _machine: usize, _name: &str) {}

    /// Told before fits that only rank settings: the fold, counted from 1, and how many there are;
    /// `None` when they are done.
    fn on_fold(&mut self, _fold: Option<(usize, usize)>) {}

    /// Asked now and then during work that has no iterations, such as the folds of a
    /// cross-validation; `Break` ends that work with what it has found so far.
    fn on_pause(&mut self) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// Observes nothing and never stops.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Observer for Silent {
    fn on_iteration(&mut self, _: &IterRecord) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// Hides iterations from an observer and passes its wish to stop on: for fits inside a search.
pub(crate) struct Hidden<'a>(pub &'a mut dyn Observer);

impl Observer for Hidden<'_> {
    fn on_iteration(&mut self, _: &IterRecord) -> ControlFlow<()> {
        self.0.on_pause()
    }

    fn on_pause(&mut self) -> ControlFlow<()> {
        self.0.on_pause()
    }
}

/// JSON has no NaN and no infinities: they are written as null and read back as NaN.
pub(crate) mod nan_as_null {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[allow(clippy::trivially_copy_pass_by_ref)] // the signature serde asks for
    pub fn serialize<S: Serializer>(value: &f64, to: S) -> Result<S::Ok, S::Error> {
        value.is_finite().then_some(*value).serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
        Ok(Option::deserialize(from)?.unwrap_or(f64::NAN))
    }
}

/// (upper − lower) / max(|upper|, |lower|); 0 where they meet, infinite where they are not finite.
/// Both are to be bounds with rounding counted in: no part of the difference is forgiven.
pub fn relative_gap(upper: f64, lower: f64) -> f64 {
    let (open, size) = (upper - lower, upper.abs().max(lower.abs()));
    match (open.is_finite(), open > 0.0) {
        (false, _) => f64::INFINITY,
        (true, false) => 0.0,
        // Relative to the smaller of two subnormal numbers everything is large.
        (true, true) => open / size.max(f64::MIN_POSITIVE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_relative_to_the_bounds_alone() {
        let about = |got: f64, want: f64| assert!((got - want).abs() < 1e-12, "{got} {want}");
        about(relative_gap(1000.0, 750.0), 0.25);
        about(relative_gap(-1.0, -2.0), 0.5);
        assert_eq!(
            [relative_gap(1.0, 1.0), relative_gap(0.0, 0.0), relative_gap(1.0, 1.5)],
            [0.0; 3]
        );
        assert_eq!(
            [
                relative_gap(f64::NAN, 0.0),
                relative_gap(f64::INFINITY, 0.0),
                relative_gap(1.0, f64::NAN)
            ],
            [f64::INFINITY; 3]
        );
    }
}
