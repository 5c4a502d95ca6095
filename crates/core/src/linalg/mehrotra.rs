//! Mehrotra's predictor–corrector rules, shared by all interior-point methods.
//!
//! An interior-point method drives products of pairs x z, both positive, to zero. Its predictor
//! aims at zero at once; how far that gets tells how much the corrector must keep all pairs at one
//! size instead.
//! In: products and changes of pairs.
//!   Out: the centring parameter, the length of a step, whether steps still help.
//! Paper: [Mehrotra1992]. Each method keeps its own linear system.

use crate::tuning::tuning;

tuning! { "mehrotra"
    /// Share of the way to the nearest bound that a step goes. Steps that reach a bound have no
    /// next step; the nearer to 1, the fewer steps.
    boundary_share: f64 = 0.995;
    /// A step shorter than this, in units of the whole step, is no progress: the method ends.
    shortest_step_length: f64 = 1e-10;
    /// A step helps if it leaves less than this share of the gap that was open.
    helpful_gap_share: f64 = 0.9;
    /// Steps in a row without help after which what steps leave out of the kernel is taken to be
    /// the reason.
    patience_steps: usize = 3;
}

/// σ = (reached / now)³: the share of the present products that the corrector aims at, where the
/// predictor's step leaves `reached` of the sum `now`.
pub fn centring(now: f64, reached: f64) -> f64 {
    let left = reached / now;
    left * left * left
}

/// The longest step, at most `longest`, that keeps every value from going below zero; `pairs` holds
/// each value and its change.
pub fn step_to_boundary<'a>(
    longest: f64,
    pairs: impl IntoIterator<Item = (&'a f64, &'a f64)>,
) -> f64 {
    pairs.into_iter().fold(longest, |length, (value, change)| length.min(limit(*value, *change)))
}

/// The length at which a value that moves by `change` per unit reaches zero.
pub fn limit(value: f64, change: f64) -> f64 {
    if change < 0.0 { -value / change } else { f64::INFINITY }
}

/// How the gap has fallen so far.
pub struct Progress {
    smallest: f64,
    /// Steps in a row that hardly helped.
    slow: usize,
}

impl Progress {
    /// Before the first step.
    pub fn new() -> Self {
        Self { smallest: f64::INFINITY, slow: 0 }
    }

    /// Counts a step that ended at this gap.
    pub fn record(&mut self, gap: f64) {
        self.slow = if gap > TUNING.helpful_gap_share * self.smallest { self.slow + 1 } else { 0 };
        self.smallest = self.smallest.min(gap);
    }

    /// The smallest gap recorded; infinite before the first.
    pub fn smallest(&self) -> f64 {
        self.smallest
    }

    /// Steps in a row that hardly helped.
    pub fn slow_steps(&self) -> usize {
        self.slow
    }

    /// Have so many steps in a row hardly helped that patience has ended?
    pub fn stalls(&self) -> bool {
        self.slow >= TUNING.patience_steps
    }

    /// Patience begins anew, because what steps leave out has become less.
    pub fn forgive(&mut self) {
        self.slow = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_end_at_the_nearest_bound_and_patience_begins_anew() {
        assert_eq!(step_to_boundary(1.0, [(&2.0, &-4.0), (&1.0, &-1.0), (&0.0, &5.0)]), 0.5);
        assert_eq!(step_to_boundary(1.0, [(&2.0, &-1.0), (&3.0, &f64::NAN)]), 1.0);
        assert_eq!(centring(8.0, 4.0), 0.125);
        let mut progress = Progress::new();
        for (gap, stalls) in
            [(1.0, false), (0.95, false), (0.94, false), (0.93, true), (0.1, false)]
        {
            progress.record(gap);
            assert_eq!(progress.stalls(), stalls, "{gap}");
        }
        assert_eq!(progress.smallest(), 0.1);
    }
}
