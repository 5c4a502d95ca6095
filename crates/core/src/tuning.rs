//! The numbers that decide how a solver goes its way: one `Tuning` on top of each solver's file,
//! every field with its unit and its reason.
//!
//! No number here changes the optimum of a convex fit; each changes how fast it is reached. Where a
//! problem has many stationary points, as gates and rules have, a number may decide which of them
//! is found. `benchmarks/constants.py` builds the program with the feature `sweep`, multiplies one
//! number at a time, and records what that costs: that record is the evidence that the fields refer
//! to.

/// Declares the struct `Tuning` of the solver named, and `TUNING`, the values in use.
macro_rules! tuning {
    ($solver:literal $($(#[doc = $doc:literal])+ $name:ident: $kind:ty = $value:expr;)+) => {
        #[allow(missing_docs)] // every field has its own comment, which the macro asks for
        pub(crate) struct Tuning {
            $($(#[doc = $doc])+ pub(crate) $name: $kind,)+
        }

        #[cfg(not(feature = "sweep"))]
        pub(crate) const TUNING: Tuning = Tuning { $($name: $value,)+ };

        #[cfg(feature = "sweep")]
        pub(crate) static TUNING: std::sync::LazyLock<Tuning> = std::sync::LazyLock::new(|| Tuning {
            $($name: $crate::tuning::swept(concat!($solver, ".", stringify!($name)), $value),)+
        });
    };
}
pub(crate) use tuning;

/// A number, or several, that a sweep can multiply.
#[cfg(feature = "sweep")]
pub(crate) trait Number: Copy {
    /// This many times as much; whole numbers are rounded.
    fn times(self, factor: f64) -> Self;
}

#[cfg(feature = "sweep")]
impl Number for f64 {
    fn times(self, factor: f64) -> Self {
        self * factor
    }
}

#[cfg(feature = "sweep")]
impl Number for usize {
    fn times(self, factor: f64) -> Self {
        (self as f64 * factor).round() as Self
    }
}

#[cfg(feature = "sweep")]
impl<T: Number, const N: usize> Number for [T; N] {
    fn times(self, factor: f64) -> Self {
        self.map(|x| x.times(factor))
    }
}

/// `value`, or a multiple of it where the environment says so:
/// `MERCER_SWEEP="level.cuts_kept*2,smo.cache_bytes*0.5"`. Each name that a run reads is written to
/// the file `MERCER_SWEEP_LIST`, with its value.
#[cfg(feature = "sweep")]
pub(crate) fn swept<T: Number + std::fmt::Debug>(name: &str, value: T) -> T {
    use std::io::Write;
    if let Some(path) = std::env::var_os("MERCER_SWEEP_LIST") {
        let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
        let _ = file.and_then(|mut f| writeln!(f, "{name} {value:?}"));
    }
    let asked = std::env::var("MERCER_SWEEP").unwrap_or_default();
    let factor = asked.split(',').find_map(|item| {
        let (asked, factor) = item.trim().split_once('*')?;
        (asked == name).then_some(factor)?.parse().ok()
    });
    factor.map_or(value, |f| value.times(f))
}
