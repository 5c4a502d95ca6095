//! Numbers and sentences for people.

use std::fmt::Write as _;

use super::{MethodRow, ReportData, Score};
use crate::{Model, gram::ApproxError};

/// `x` with about `digits` significant digits: fixed point for everyday sizes, powers of ten
/// outside them.
pub fn significant(x: f64, digits: usize) -> String {
    let size = x.abs();
    if x == 0.0 {
        "0".into()
    } else if !x.is_finite() {
        "–".into()
    } else if (1e-3..1e6).contains(&size) {
        let before = size.log10().floor() + 1.0;
        let after = (digits as f64 - before).max(0.0) as usize;
        format!("{x:.after$}")
    } else {
        format!("{x:.*e}", digits.saturating_sub(1))
    }
}

/// A relative gap; a dash where there is none.
pub fn gap(gap: Option<f64>) -> String {
    gap.map_or_else(|| "–".into(), |g| if g == 0.0 { "0".into() } else { format!("{g:.1e}") })
}

/// How far the kernels of a model are from those that they stand in for; `None` where they stand in
/// for none.
pub fn approximation(model: &Model) -> Option<String> {
    let errors = &model.approximation;
    let worst = (0..errors.len())
        .reduce(|b, m| if errors[m].value() > errors[b].value() { m } else { b })?;
    let mean = errors.iter().map(ApproxError::value).sum::<f64>() / errors.len() as f64;
    let (name, told) = (model.kernel_names()[worst], model.request.approx);
    let mean = significant(mean, 2);
    Some(match errors[worst] {
        ApproxError::Trace { relative } => {
            format!(
                "{told}: relative trace lost {mean} on average, at most {} ({name})",
                significant(relative, 2)
            )
        }
        ApproxError::Pairs { rms, standard_error, largest, pairs } => format!(
            "{told}: root mean square error of k(x, z) {mean} on average, at most {} ± {} ({name}: largest {} in {pairs} pairs of rows)",
            significant(rms, 2),
            significant(standard_error, 1),
            significant(largest, 2),
        ),
    })
}

/// Writes a duration in the unit that suits its size.
pub fn seconds(seconds: f64) -> String {
    match seconds {
        s if s < 0.0995 => format!("{:.0} ms", s * 1e3),
        s if s < 99.5 => format!("{s:.2} s"),
        s if s < 5940.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

/// Wilson's 95 % interval for `hits` out of `n`.
pub fn wilson(hits: usize, n: usize) -> Option<(f64, f64)> {
    if n == 0 {
        return None;
    }
    let (n, z) = (n as f64, 1.959_963_984_540_054_f64);
    let rate = hits as f64 / n;
    let shrink = 1.0 + z * z / n;
    let centre = (rate + z * z / (2.0 * n)) / shrink;
    let half = z / shrink * (rate * (1.0 - rate) / n + z * z / (4.0 * n * n)).sqrt();
    Some(((centre - half).max(0.0), (centre + half).min(1.0)))
}

/// One paragraph: which method did best, what it kept, and whether the numbers are certified.
pub fn learned(data: &ReportData) -> String {
    let Some(best) = best(data) else { return "No method was fitted.".into() };
    let sentences = [Some(quality(best, data)), kept(best, data), Some(certified(data))];
    sentences.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// The row with the best score; the first row where nothing is scored.
pub(super) fn best(data: &ReportData) -> Option<&MethodRow> {
    let better = |a: &Score, b: &Score| {
        if a.higher_is_better { a.value > b.value } else { a.value < b.value }
    };
    data.methods.iter().reduce(|best, row| match (&row.score, &best.score) {
        (Some(new), Some(old)) if better(new, old) => row,
        (Some(_), None) => row,
        _ => best,
    })
}

fn is_uniform(row: &MethodRow) -> bool {
    row.method.starts_with("uniform")
}

fn quality(best: &MethodRow, data: &ReportData) -> String {
    let Some(score) = &best.score else { return format!("The method is {}.", best.method) };
    let with = |s: &Score| match s.interval {
        Some((lo, hi)) => {
            format!(
                "{} (95 % interval {} to {})",
                significant(s.value, 3),
                significant(lo, 3),
                significant(hi, 3)
            )
        }
        None => significant(s.value, 3),
    };
    let mut text = if data.methods.len() > 1 {
        format!("The best {} is {}, by {}.", score.name, with(score), best.method)
    } else {
        format!("{} reaches a {} of {}.", best.method, score.name, with(score))
    };
    let baseline = data.methods.iter().find(|row| is_uniform(row) && row.method != best.method);
    if let Some(base) = baseline.and_then(|row| row.score.as_ref()) {
        let close = matches!((score.interval, base.interval), (Some(a), Some(b)) if a.0 <= b.1 && b.0 <= a.1);
        let doubt =
            if close { "; the intervals overlap, so the difference may be chance" } else { "" };
        let _ = write!(text, " Equal weights on all kernels give {}{doubt}.", with(base));
    }
    text
}

fn kept(best: &MethodRow, data: &ReportData) -> Option<String> {
    let panel = data.weights.iter().find(|p| p.method == best.method)?;
    if is_uniform(best) {
        return Some(format!("{} weighs all {} kernels equally.", best.method, best.total));
    }
    let ranked = panel.ranked();
    let sum: f64 = ranked.iter().map(|(_, w)| w).sum();
    let top: Vec<String> = ranked
        .iter()
        .take(3)
        .filter(|(_, w)| *w > 0.0)
        .map(|&(m, w)| format!("{} ({:.0} %)", panel.kernels[m], 100.0 * w / sum))
        .collect();
    let heaviest = if top.is_empty() {
        String::new()
    } else {
        format!("; the heaviest are {}", top.join(", "))
    };
    Some(format!(
        "{} kept {} of {} kernels ({} carry 99 % of the weight){heaviest}.",
        best.method, best.selected, best.total, best.carrying
    ))
}

fn certified(data: &ReportData) -> String {
    use crate::trace::Status::{Optimal, Stationary};
    let open: Vec<&str> = data
        .methods
        .iter()
        .filter(|row| !matches!(row.status, Optimal | Stationary))
        .map(|row| row.method.as_str())
        .collect();
    let worst = data.methods.iter().filter_map(|row| row.gap).reduce(f64::max);
    match (open.is_empty(), worst) {
        (true, Some(_)) => format!(
            "Every fit reached its tolerance: no objective is further than {} (relative) from the optimum.",
            gap(worst)
        ),
        (true, None) => "Every fit reached its tolerance.".into(),
        (false, _) => {
            format!("Tolerance not reached: {}; these weights may still move.", open.join(", "))
        }
    }
}
