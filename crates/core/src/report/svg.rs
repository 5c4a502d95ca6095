//! Charts as inline SVG. Positions are percentages and text keeps its size, so a chart fits any
//! width without scaling its letters; polylines live in a nested stretched drawing whose strokes do
//! not scale.

use std::fmt::Write as _;

use super::{TraceLine, html::escape, words::significant};

/// Left edge and width of the plotting area (percent), top and height (pixels).
const AREA: (f64, f64, f64, f64) = (12.0, 85.0, 12.0, 240.0);
/// The most marks of a line that show a value under the pointer.
const MAX_MARKS: usize = 60;
/// The most points of a scatter plot; of more, evenly strided ones are drawn.
const MAX_POINTS: usize = 2000;
/// The smallest gap that is drawn; an exact zero is drawn here.
const FLOOR: f64 = 1e-16;

/// A bar of `share` (0 to 1); the number stands beside it, so it is hidden from screen readers.
pub fn bar(share: f64) -> String {
    format!(
        "<svg class=\"bar\" viewBox=\"0 0 100 10\" preserveAspectRatio=\"none\" aria-hidden=\"true\">\
         <rect width=\"{:.2}\" height=\"10\"/></svg>",
        100.0 * share.clamp(0.0, 1.0)
    )
}

/// A bar of `share` with the interval of its end.
pub fn bar_with(share: f64, interval: Option<(f64, f64)>) -> String {
    let Some((low, high)) = interval else { return bar(share) };
    let (low, high) = (100.0 * low.clamp(0.0, 1.0), 100.0 * high.clamp(0.0, 1.0));
    format!(
        "<svg class=\"bar\" viewBox=\"0 0 100 10\" preserveAspectRatio=\"none\" aria-hidden=\"true\">\
         <rect width=\"{:.2}\" height=\"10\"/><rect class=\"range\" x=\"{low:.2}\" y=\"4\" width=\"{:.2}\" height=\"2\"/></svg>",
        100.0 * share.clamp(0.0, 1.0),
        (high - low).max(0.5)
    )
}

/// A mark at `value` with its interval, and a thin line at `base`, all shares of the width.
pub fn interval(value: f64, range: Option<(f64, f64)>, base: Option<f64>) -> String {
    let place = |x: f64| 100.0 * x.clamp(0.0, 1.0);
    let mut out = String::from(
        "<svg class=\"interval\" viewBox=\"0 0 100 10\" preserveAspectRatio=\"none\" aria-hidden=\"true\">",
    );
    if let Some(base) = base {
        let _ = write!(
            out,
            "<rect class=\"base\" x=\"{:.2}\" width=\".5\" height=\"10\"/>",
            place(base) - 0.25
        );
    }
    if let Some((low, high)) = range {
        let (low, high) = (place(low), place(high));
        let _ = write!(
            out,
            "<rect class=\"span\" x=\"{low:.2}\" y=\"4\" width=\"{:.2}\" height=\"2\"/>",
            high - low
        );
    }
    let _ = write!(
        out,
        "<rect class=\"point\" x=\"{:.2}\" y=\"1\" width=\"1.4\" height=\"8\"/></svg>",
        place(value) - 0.7
    );
    out
}

/// ROC curves with the diagonal of chance; `None` when nothing can be drawn.
pub fn roc(curves: &[(&str, &[(f64, f64)])]) -> Option<String> {
    if curves.iter().all(|c| c.1.is_empty()) {
        return None;
    }
    let frame = PlotRange { x: (0.0, 1.0), y: (0.0, 1.0) };
    let marks: Vec<(f64, String)> =
        (0..=5).map(|i| (f64::from(i) / 5.0, format!("{:.1}", f64::from(i) / 5.0))).collect();
    let mut body = frame.axes(&marks, &marks, "share of negatives taken for positives");
    body += &frame.polyline([(0.0, 0.0), (1.0, 1.0)].into_iter(), "line ideal");
    for (k, (_, points)) in curves.iter().enumerate() {
        body += &frame.polyline(points.iter().copied(), &format!("line c{}", k % 6));
    }
    let names: Vec<&str> = curves.iter().map(|c| c.0).collect();
    let desc = format!(
        "Curves of {}; the dashed diagonal is chance. Vertical axis: share of positives found.",
        names.join(", ")
    );
    Some(drawing("roc", "ROC curves", &desc, &body))
}

/// Relative gap (logarithmic) against seconds; `None` when nothing can be drawn.
pub fn convergence(lines: &[TraceLine]) -> Option<String> {
    let usable = |line: &TraceLine| -> Vec<(f64, f64, usize)> {
        let records = line.records.iter().filter(|r| r.gap.is_finite() && r.seconds.is_finite());
        records.map(|r| (r.seconds, r.gap.max(FLOOR).log10(), r.iteration)).collect()
    };
    let series: Vec<_> = lines.iter().map(usable).collect();
    let all = || series.iter().flatten();
    let low = all().map(|p| p.1).reduce(f64::min)?.floor();
    let high = all().map(|p| p.1).reduce(f64::max)?.ceil().max(low + 1.0);
    let end = all().map(|p| p.0).fold(0.0, f64::max).max(1e-3);
    let frame = PlotRange { x: (0.0, end), y: (low, high) };

    let step = ((high - low) / 8.0).ceil() as usize;
    let mut body = frame.axes(
        &ticks(0.0, end),
        &(low as i32..=high as i32)
            .step_by(step)
            .map(|e| (f64::from(e), format!("1e{e}")))
            .collect::<Vec<_>>(),
        "seconds",
    );
    for (k, (line, points)) in lines.iter().zip(&series).enumerate() {
        let colour = k % 6;
        body += &frame.polyline(points.iter().map(|p| (p.0, p.1)), &format!("line c{colour}"));
        let every = points.len().div_ceil(MAX_MARKS).max(1);
        for (i, &(x, y, iteration)) in points.iter().enumerate() {
            if i % every == 0 || i + 1 == points.len() {
                let tip = format!(
                    "{}: iteration {iteration}, gap {:.1e}, {} s",
                    line.method,
                    10f64.powf(y),
                    significant(x, 3)
                );
                body += &frame.mark((x, y), 3.5, &format!("dot c{colour}"), &tip);
            }
        }
    }
    let ends: Vec<String> = lines
        .iter()
        .zip(&series)
        .filter_map(|(line, points)| {
            points.last().map(|p| format!("{} ends at {:.1e}", line.method, 10f64.powf(p.1)))
        })
        .collect();
    let desc = format!("Lines fall from left to right as the fit converges. {}.", ends.join("; "));
    Some(drawing("convergence", "Relative duality gap against seconds, logarithmic", &desc, &body))
}

/// Predicted against true values with the line of perfect prediction; `None` when nothing can be
/// drawn.
pub fn scatter(pairs: &[(f64, f64)]) -> Option<String> {
    let all = || pairs.iter().flat_map(|&(t, p)| [t, p]).filter(|v| v.is_finite());
    let (low, high) = (all().reduce(f64::min)?, all().reduce(f64::max)?);
    let pad = (0.03 * (high - low)).max(1e-9 * high.abs()).max(f64::MIN_POSITIVE);
    let range = (low - pad, high + pad);
    let frame = PlotRange { x: range, y: range };
    let marks = ticks(range.0, range.1);
    let mut body = frame.axes(&marks, &marks, "true value");
    body += &frame.polyline([(range.0, range.0), (range.1, range.1)].into_iter(), "line ideal");
    for &(truth, predicted) in pairs.iter().step_by(pairs.len().div_ceil(MAX_POINTS).max(1)) {
        if truth.is_finite() && predicted.is_finite() {
            let tip =
                format!("true {}, predicted {}", significant(truth, 4), significant(predicted, 4));
            body += &frame.mark((truth, predicted), 3.0, "dot c0", &tip);
        }
    }
    let desc = format!(
        "{} points; the dashed line is perfect prediction, vertical axis: predicted value.",
        pairs.len()
    );
    Some(drawing("residuals", "Predicted against true values", &desc, &body))
}

fn drawing(id: &str, title: &str, desc: &str, body: &str) -> String {
    let (title, desc) = (escape(title), escape(desc));
    format!(
        "<svg class=\"chart\" width=\"100%\" height=\"{:.0}\" role=\"img\" aria-labelledby=\"{id}-t {id}-d\">\
         <title id=\"{id}-t\">{title}</title><desc id=\"{id}-d\">{desc}</desc>\n{body}</svg>\n",
        AREA.2 + AREA.3 + 44.0
    )
}

/// Round numbers that cut `low..high` into three to seven, with their texts.
fn ticks(low: f64, high: f64) -> Vec<(f64, String)> {
    let raw = (high - low) / 7.0;
    let power = 10f64.powf(raw.log10().floor());
    let step =
        [1.0, 2.0, 5.0, 10.0].into_iter().map(|s| s * power).find(|s| *s >= raw).unwrap_or(raw);
    let first = (low / step).ceil();
    let text = |t: f64| {
        let text = significant(t, 3);
        if text.contains('.') && !text.contains('e') {
            text.trim_end_matches('0').trim_end_matches('.').into()
        } else {
            text
        }
    };
    (0..8)
        .map(|i| (first + f64::from(i)) * step)
        .take_while(|t| *t <= high)
        .map(|t| (t, text(t)))
        .collect()
}

/// The range of both axes that is plotted.
struct PlotRange {
    x: (f64, f64),
    y: (f64, f64),
}

impl PlotRange {
    /// Shares of the way from left to right and from top to bottom.
    fn place(&self, (x, y): (f64, f64)) -> (f64, f64) {
        ((x - self.x.0) / (self.x.1 - self.x.0), 1.0 - (y - self.y.0) / (self.y.1 - self.y.0))
    }

    /// Percent of the width, pixels from the top.
    fn at(&self, point: (f64, f64)) -> (f64, f64) {
        let (u, v) = self.place(point);
        (AREA.0 + AREA.1 * u, AREA.2 + AREA.3 * v)
    }

    fn axes(&self, x: &[(f64, String)], y: &[(f64, String)], label: &str) -> String {
        let (left, right, bottom) = (AREA.0, AREA.0 + AREA.1, AREA.2 + AREA.3);
        let mut out = String::new();
        for (value, text) in y {
            let (_, v) = self.at((self.x.0, *value));
            let _ = writeln!(
                out,
                "<line class=\"grid\" x1=\"{left}%\" x2=\"{right}%\" y1=\"{v:.1}\" y2=\"{v:.1}\"/>\
                 <text x=\"{:.1}%\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                left - 1.0,
                v + 4.0,
                escape(text)
            );
        }
        for (value, text) in x {
            let (u, _) = self.at((*value, self.y.0));
            let _ = writeln!(
                out,
                "<line class=\"grid\" x1=\"{u:.2}%\" x2=\"{u:.2}%\" y1=\"{bottom}\" y2=\"{}\"/>\
                 <text x=\"{u:.2}%\" y=\"{}\" text-anchor=\"middle\">{}</text>",
                bottom + 4.0,
                bottom + 18.0,
                escape(text)
            );
        }
        let _ = writeln!(
            out,
            "<text x=\"{right}%\" y=\"{}\" text-anchor=\"end\">{}</text>",
            bottom + 36.0,
            escape(label)
        );
        out
    }

    fn polyline(&self, points: impl Iterator<Item = (f64, f64)>, class: &str) -> String {
        let (x, width, y, height) = AREA;
        let mut list = String::new();
        for point in points {
            let (u, v) = self.place(point);
            let _ = write!(list, "{:.1},{:.1} ", 1000.0 * u, 1000.0 * v);
        }
        format!(
            "<svg x=\"{x}%\" y=\"{y}\" width=\"{width}%\" height=\"{height}\" viewBox=\"0 0 1000 1000\" \
             preserveAspectRatio=\"none\" overflow=\"visible\"><polyline class=\"{class}\" points=\"{}\"/></svg>\n",
            list.trim_end()
        )
    }

    fn mark(&self, point: (f64, f64), radius: f64, class: &str, tip: &str) -> String {
        let (u, v) = self.at(point);
        let tip = escape(tip);
        format!(
            "<circle class=\"{class}\" cx=\"{u:.2}%\" cy=\"{v:.1}\" r=\"{radius}\" data-tip=\"{tip}\"/>\n"
        )
    }
}
