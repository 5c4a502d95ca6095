//! The page. One string, no network: style, script and charts are inline, every text is escaped.

use std::fmt::Write as _;

use super::{
    AlignmentPanel, MethodRow, Outcome, ReportData, WeightPanel, comparison, gap, learned, seconds,
    significant, svg, tuning,
};

/// The most kernels that are shown for a method.
const MAX_KERNELS: usize = 40;

/// The report as one HTML page that loads nothing.
pub fn html(data: &ReportData) -> String {
    // Beside a comparison, the table of methods is about one fit.
    let own = data.methods.first().map(|m| m.method.as_str());
    let fitted =
        if data.comparison.is_some() { "The fit, on its training rows" } else { "Comparison" };
    let sections = [
        section("learned", "What was learned", Some(lead(data))),
        section("data", "Data", (!data.data.is_empty()).then(|| facts(&data.data))),
        section("comparison", fitted, (!data.methods.is_empty()).then(|| methods(&data.methods))),
        section(
            "weights",
            "Kernel weights",
            (!data.weights.is_empty()).then(|| weights(&data.weights)),
        ),
        section("convergence-s", "Convergence", convergence(data)),
        data.comparison.as_ref().map(|c| comparison::sections(c, own)).unwrap_or_default(),
        data.tuning.as_ref().map(tuning::tuning).unwrap_or_default(),
        data.outcome.as_ref().map(outcome).unwrap_or_default(),
        section("alignment", "How kernels align", data.alignment.as_ref().map(alignment)),
        section("warnings", "Warnings", Some(warnings(&data.warnings))),
        section("made", "How this page was made", Some(provenance(data))),
    ];
    let title = escape(&data.title);
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n\
         <style>\n{css}</style>\n</head>\n<body>\n<a class=\"skip\" href=\"#main\">Skip to the content</a>\n\
         <header><h1>{title}</h1></header>\n<main id=\"main\" tabindex=\"-1\">\n{body}</main>\n\
         <div id=\"tip\" aria-hidden=\"true\" hidden></div>\n<script>\n{js}</script>\n</body>\n</html>\n",
        css = include_str!("page.css"),
        js = include_str!("page.js"),
        body = sections.concat()
    )
}

/// The first paragraph: what a comparison or a search has to say, or what one fit learned.
fn lead(data: &ReportData) -> String {
    let texts = match (&data.comparison, &data.tuning) {
        (Some(c), _) if data.methods.is_empty() => c.verdict.clone(),
        (Some(c), _) => {
            let mut texts = c.verdict.clone();
            texts.iter_mut().take(1).for_each(|t| *t = format!("On rows held out: {t}"));
            [vec![learned(data)], texts].concat()
        }
        (_, Some(t)) => tuning::found(t),
        _ => vec![learned(data)],
    };
    texts.iter().enumerate().fold(String::new(), |out, (k, text)| {
        let class = if k < 2 { "lead" } else { "note" };
        out + &format!("<p class=\"{class}\">{}</p>\n", escape(text))
    })
}

/// Text made safe for elements and quoted attributes.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

pub(super) fn section(id: &str, heading: &str, body: Option<String>) -> String {
    let Some(body) = body else { return String::new() };
    let heading = escape(heading);
    format!(
        "<section aria-labelledby=\"{id}\">\n<h2 id=\"{id}\">{heading}</h2>\n{body}</section>\n"
    )
}

fn facts(facts: &[(String, String)]) -> String {
    let mut out = String::from("<dl>\n");
    for (label, value) in facts {
        let _ = writeln!(out, "<dt>{}</dt><dd>{}</dd>", escape(label), escape(value));
    }
    out + "</dl>\n"
}

/// A table in a box of its own that scrolls; the box can be reached with the keyboard.
pub(super) fn boxed(label: &str, class: &str, inner: &str) -> String {
    let label = escape(label);
    format!(
        "<div class=\"scroll\" role=\"region\" aria-label=\"{label}\" tabindex=\"0\">\
         <table class=\"{class}\">\n{inner}</table></div>\n"
    )
}

fn methods(rows: &[MethodRow]) -> String {
    let sortable = rows.len() > 1;
    let metric = rows.iter().find_map(|r| r.score.as_ref()).map(|s| s.name.as_str());
    let mut out = String::from("<thead><tr>");
    let headers = [
        "method",
        metric.unwrap_or("score"),
        "95 % interval",
        "kernels",
        "carry 99 %",
        "of",
        "gap",
        "status",
        "time",
    ];
    for header in headers {
        let class = if matches!(header, "method" | "status") { "" } else { " class=\"n\"" };
        let header = escape(header);
        let header =
            if sortable { format!("<button type=\"button\">{header}</button>") } else { header };
        let _ = write!(out, "<th scope=\"col\"{class}>{header}</th>");
    }
    out += "</tr></thead>\n<tbody>\n";
    for row in rows {
        let value = row.score.as_ref().map(|s| s.value);
        let interval = row.score.as_ref().and_then(|s| s.interval);
        let range = interval.map_or_else(
            || "–".into(),
            |(a, b)| format!("{} – {}", significant(a, 3), significant(b, 3)),
        );
        let shown = value.map_or_else(|| "–".into(), |v| significant(v, 4));
        let _ = writeln!(
            out,
            "<tr><th scope=\"row\">{}</th>{}{}{}{}{}{}<td>{}</td>{}</tr>",
            escape(&row.method),
            number(value, &shown),
            number(interval.map(|i| i.0), &range),
            number(Some(row.selected as f64), &row.selected.to_string()),
            number(Some(row.carrying as f64), &row.carrying.to_string()),
            number(Some(row.total as f64), &row.total.to_string()),
            number(row.gap, &gap(row.gap)),
            row.status.as_str(),
            number(Some(row.seconds), &seconds(row.seconds)),
        );
    }
    boxed("Methods", if sortable { "sortable" } else { "" }, &(out + "</tbody>\n"))
}

/// A cell with the value it sorts by.
pub(super) fn number(key: Option<f64>, shown: &str) -> String {
    let key = key.filter(|k| k.is_finite()).map_or_else(String::new, |k| k.to_string());
    format!("<td class=\"n\" data-v=\"{key}\">{}</td>", escape(shown))
}

fn weights(panels: &[WeightPanel]) -> String {
    let mut out = String::from("<div class=\"panels\">\n");
    for p in panels {
        let _ = writeln!(
            out,
            "<div class=\"panel\">\n<h3>{}</h3>\n{}</div>",
            escape(&p.method),
            panel(p)
        );
    }
    out + "</div>\n"
}

fn panel(panel: &WeightPanel) -> String {
    panel_of(panel, MAX_KERNELS)
}

/// Bars or a heat map of the `most` heaviest kernels.
pub(super) fn panel_of(panel: &WeightPanel, most: usize) -> String {
    let ranked = panel.ranked();
    let (Some(&(_, top)), Some(&(_, least))) = (ranked.first(), ranked.last()) else {
        return "<p>No kernels.</p>\n".into();
    };
    if top == least && ranked.len() > 1 {
        return format!(
            "<p>All {} kernels have the weight {}.</p>\n",
            ranked.len(),
            significant(top, 4)
        );
    }
    let is_zero = |m: usize| panel.weights.iter().all(|w| w.get(m).is_none_or(|x| *x == 0.0));
    let positive: Vec<_> = ranked.into_iter().filter(|&(m, _)| !is_zero(m)).collect();
    let zeros = panel.kernels.len() - positive.len();
    let shown = &positive[..positive.len().min(most)];
    let label = format!("Kernel weights of {}", panel.method);
    let table = if panel.weights.len() > 1 {
        heat(panel, shown, &label)
    } else {
        bars(panel, shown, top, &label)
    };
    let mut note = format!("{} of {} kernels have a weight", positive.len(), panel.kernels.len());
    if positive.len() > shown.len() {
        let _ = write!(note, "; {} more are not drawn", positive.len() - shown.len());
    }
    format!("{table}<p class=\"note\">{note}; exactly zero: {zeros}.</p>\n")
}

fn bars(panel: &WeightPanel, shown: &[(usize, f64)], top: f64, label: &str) -> String {
    let mut out = String::from(
        "<thead class=\"quiet\"><tr><th scope=\"col\">kernel</th><td></td><th scope=\"col\" class=\"n\">weight</th></tr></thead>\n<tbody>\n",
    );
    for &(m, w) in shown {
        let name = escape(&panel.kernels[m]);
        let _ = writeln!(
            out,
            "<tr data-tip=\"{name}: {w:.6e}\"><th scope=\"row\">{name}</th><td class=\"barcell\">{}</td><td class=\"n\">{}</td></tr>",
            svg::bar(w / top),
            significant(w, 3)
        );
    }
    boxed(label, "bars", &(out + "</tbody>\n"))
}

/// One column per machine, shaded by weight.
fn heat(panel: &WeightPanel, shown: &[(usize, f64)], label: &str) -> String {
    let top = panel.weights.iter().flatten().copied().fold(f64::MIN_POSITIVE, f64::max);
    let mut out = String::from("<thead><tr><th scope=\"col\">kernel</th>");
    for name in &panel.machines {
        let _ = write!(out, "<th scope=\"col\" class=\"n\">{}</th>", escape(name));
    }
    out += "</tr></thead>\n<tbody>\n";
    for &(m, _) in shown {
        let _ = write!(out, "<tr><th scope=\"row\">{}</th>", escape(&panel.kernels[m]));
        for weights in &panel.weights {
            out += &shaded(weights[m] / top, &significant(weights[m], 3));
        }
        out += "</tr>\n";
    }
    boxed(label, "heat", &(out + "</tbody>\n"))
}

/// Shades stop below half so that the text keeps its contrast.
pub(super) fn shaded(share: f64, shown: &str) -> String {
    format!(
        "<td class=\"n heatcell\" style=\"--w:{:.3}\">{}</td>",
        0.45 * share.clamp(0.0, 1.0),
        escape(shown)
    )
}

fn convergence(data: &ReportData) -> Option<String> {
    let chart = svg::convergence(&data.traces)?;
    let mut out = format!(
        "<p>Relative duality gap: how far, at most, the objective can still be from the optimum.</p>\n\
         {chart}<ul class=\"legend\">\n"
    );
    for (k, line) in data.traces.iter().enumerate() {
        let _ = writeln!(
            out,
            "<li><span class=\"key c{}\"></span>{}</li>",
            k % 6,
            escape(&line.method)
        );
    }
    Some(out + "</ul>\n")
}

fn outcome(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Confusion { label, classes, counts } => {
            let body = format!("<p>{}</p>\n{}", escape(label), confusion(classes, counts));
            section("outcome", "Confusion matrix", Some(body))
        }
        Outcome::Residuals { label, pairs } => {
            let body = svg::scatter(pairs).map(|s| format!("<p>{}</p>\n{s}", escape(label)));
            section("outcome", "Predicted against true", body)
        }
    }
}

pub(super) fn confusion(classes: &[String], counts: &[Vec<usize>]) -> String {
    let mut out = String::from("<thead><tr><th scope=\"col\">true ↓ predicted →</th>");
    for class in classes {
        let _ = write!(out, "<th scope=\"col\" class=\"n\">{}</th>", escape(class));
    }
    out += "<th scope=\"col\" class=\"n\">right</th></tr></thead>\n<tbody>\n";
    for (k, (class, row)) in classes.iter().zip(counts).enumerate() {
        let total = row.iter().sum::<usize>().max(1) as f64;
        let _ = write!(out, "<tr><th scope=\"row\">{}</th>", escape(class));
        for count in row {
            out += &shaded(*count as f64 / total, &count.to_string());
        }
        let right = row.get(k).copied().unwrap_or(0) as f64 / total;
        let _ = writeln!(out, "<td class=\"n\">{:.1} %</td></tr>", 100.0 * right);
    }
    boxed("Confusion matrix", "heat", &(out + "</tbody>\n"))
}

/// A line and a column per kernel, those that align best with the target first.
pub(super) fn alignment(panel: &AlignmentPanel) -> String {
    let ranked = panel.ranked();
    let shown = &ranked[..ranked.len().min(MAX_KERNELS)];
    let mut out = String::from(
        "<thead><tr><th scope=\"col\" class=\"n\">no.</th><th scope=\"col\">kernel</th>\
         <th scope=\"col\" class=\"n\">target</th>",
    );
    for number in 1..=shown.len() {
        let _ = write!(out, "<th scope=\"col\" class=\"n\">{number}</th>");
    }
    out += "</tr></thead>\n<tbody>\n";
    for (at, &s) in shown.iter().enumerate() {
        let name = escape(&panel.kernels[s]);
        let _ = write!(out, "<tr><td class=\"n\">{}</td><th scope=\"row\">{name}</th>", at + 1);
        out += &shaded(panel.target[s], &format!("{:.2}", panel.target[s]));
        for &t in shown {
            out += &shaded(panel.between[s][t], &format!("{:.2}", panel.between[s][t]));
        }
        out += "</tr>\n";
    }
    let more = ranked.len() - shown.len();
    let rest =
        if more > 0 { format!(" {more} more kernels are not drawn.") } else { String::new() };
    format!(
        "<p>Centred alignment, from 0 to 1: of each kernel with the target, and of kernels with each other. Kernels near 1 with \
         each other say the same.{rest}</p>\n{}",
        boxed("Alignment of kernels", "heat", &(out + "</tbody>\n"))
    )
}

fn warnings(warnings: &[String]) -> String {
    if warnings.is_empty() {
        return "<p>None.</p>\n".into();
    }
    let mut out = String::from("<ul class=\"warn\">\n");
    for warning in warnings {
        let _ = writeln!(out, "<li>{}</li>", escape(warning));
    }
    out + "</ul>\n"
}

fn provenance(data: &ReportData) -> String {
    format!(
        "<p>mercer {}</p>\n<div class=\"scroll\" role=\"region\" aria-label=\"Command\" tabindex=\"0\"><pre><code>{}</code></pre></div>\n",
        escape(&data.version),
        escape(&data.command)
    )
}
