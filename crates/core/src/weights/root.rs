//! Roots of monotone functions of a positive variable.

/// The search goes no further than this, so that nothing overflows.
const LARGEST: f64 = 1e300;
/// The search goes no closer to zero than this, so that nothing vanishes.
const SMALLEST: f64 = 1e-300;
/// Halvings at most: it ends by itself where the bracket holds no more numbers.
const HALVINGS: usize = 200;

/// x > 0 with f(x) = 0 for a continuous increasing f that is negative near 0 and positive for large
/// x. `guess` > 0 sets the scale.
///
/// Brackets by doubling, then bisects to the last bit, so the answer does not depend on a
/// tolerance.
pub fn increasing(f: impl Fn(f64) -> f64, guess: f64) -> f64 {
    let (mut low, mut high) = (guess, guess);
    while f(high) < 0.0 && high < LARGEST {
        low = high;
        high *= 2.0;
    }
    while f(low) > 0.0 && low > SMALLEST {
        high = low;
        low *= 0.5;
    }
    for _ in 0..HALVINGS {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break;
        }
        if f(middle) < 0.0 { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

/// x > 0 with f(x) = 0 for a decreasing f.
pub fn decreasing(f: impl Fn(f64) -> f64, guess: f64) -> f64 {
    increasing(|x| -f(x), guess)
}
