//! Exact minimisation of a convex piecewise linear function of one variable.

/// The middle of the minimisers of a function with slope `slope` at −∞ that rises by `jump` at each
/// `(place, jump)`.
///
/// The slope must start negative and end positive, so a minimiser exists.
pub fn middle_minimiser(mut kinks: Vec<(f64, f64)>, mut slope: f64) -> f64 {
    kinks.sort_by(|a, b| a.0.total_cmp(&b.0));
    // Sums of costs that should cancel leave rounding behind.
    let zero = 1e-12 * kinks.iter().map(|k| k.1).sum::<f64>();
    for (i, &(place, jump)) in kinks.iter().enumerate() {
        slope += jump;
        if slope > zero {
            return place;
        }
        if slope >= -zero {
            return kinks.get(i + 1).map_or(place, |next| 0.5 * (place + next.0));
        }
    }
    kinks.last().map_or(0.0, |k| k.0)
}
