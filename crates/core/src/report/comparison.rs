//! Pages and tables of comparisons and searches.

use std::fmt::Write as _;

use super::{
    TraceLine,
    html::{boxed, escape, number, section, shaded},
    seconds, significant, svg, table,
};
use crate::select::{Comparison, Line, Stability};

/// The most kernels that are drawn for a method.
const MAX_KERNELS: usize = 15;
/// The most methods whose kernels are drawn.
const MAX_METHODS: usize = 12;
/// The most splits that the heat map shows.
const MAX_SPLITS: usize = 20;
/// The most groups of interchangeable kernels that are listed.
const MAX_GROUPS: usize = 12;

/// Writes a mean and its deviation, as `0.812 ± 0.034`.
pub(super) fn plus_minus(mean: Option<f64>, sd: Option<f64>) -> String {
    match (mean, sd) {
        (Some(m), Some(s)) => format!("{} ± {}", significant(m, 3), significant(s, 2)),
        (Some(m), None) => significant(m, 3),
        _ => "–".into(),
    }
}

fn p_value(p: Option<f64>) -> String {
    match p {
        None => "–".into(),
        Some(p) if p < 0.001 => "< 0.001".into(),
        Some(p) => format!("{p:.3}"),
    }
}

fn chosen(line: &Line) -> String {
    // Prices that follow from the data have many digits.
    let short = |v: &String| match v.parse::<f64>() {
        Ok(x) if v.len() > 7 => significant(x, 4),
        _ => v.clone(),
    };
    line.chosen.iter().map(|(k, v)| format!("{k}={}", short(v))).collect::<Vec<_>>().join(" ")
}

/// Kernels with a weight, of how many, and how many of them carry 99 % of it.
fn kernels(line: &Line) -> String {
    let spread =
        if line.selected_sd > 0.0 { format!(" ± {:.1}", line.selected_sd) } else { String::new() };
    let count = if line.selected.fract() == 0.0 && line.selected_sd == 0.0 {
        format!("{}", line.selected)
    } else {
        format!("{:.1}", line.selected)
    };
    format!("{count}{spread} of {} ({})", line.total, significant(line.carrying, 3))
}

/// The table as text.
pub fn comparison_table(c: &Comparison) -> String {
    let headers = [
        "method",
        c.metric.as_str(),
        "kernels (99 %)",
        "gap",
        "fit",
        "search",
        "against uniform",
        "p",
        "chosen most",
    ];
    let row = |l: &Line| {
        let difference =
            l.versus_uniform.map_or_else(|| "–".into(), |v| format!("{:+.3}", v.difference));
        vec![
            l.method.clone(),
            plus_minus(l.mean, l.sd),
            kernels(l),
            super::gap(l.gap),
            seconds(l.seconds.0),
            seconds(l.seconds.1),
            difference,
            p_value(l.adjusted),
            chosen(l),
        ]
    };
    table(&headers, &c.lines.iter().map(row).collect::<Vec<_>>())
}

/// All sections of a comparison; `own` is the method the page is about, if it is about one.
pub(super) fn sections(c: &Comparison, own: Option<&str>) -> String {
    let shown = shown(c, own);
    [
        section("protocol", "Protocol", Some(facts(&c.protocol))),
        section("lines", "Comparison", Some(lines(c))),
        section("tests", "Which differences are real", tests(c)),
        section("roc-s", "ROC", roc(&shown)),
        section("confusion", "Confusion matrix", confusion(c, &shown)),
        section("residuals-s", "Predicted against true", residuals(&shown)),
        section("stable", "Kernels over the splits", stability(c)),
        section("folds", "Weights split by split", by_split(c)),
        section("same", "Interchangeable kernels", same(c)),
        section("aligned", "How kernels align", aligned(c)),
        section("regions", "Regions and rules", regions(c)),
        section("traces", "Convergence, first split", traces(c)),
    ]
    .concat()
}

fn facts(facts: &[(String, String)]) -> String {
    let line =
        |(k, v): &(String, String)| format!("<dt>{}</dt><dd>{}</dd>\n", escape(k), escape(v));
    format!("<dl>\n{}</dl>\n", facts.iter().map(line).collect::<String>())
}

/// The smallest and largest number that a chart of the lines must show.
fn range(c: &Comparison) -> (f64, f64) {
    let ends = c.lines.iter().flat_map(|l| {
        let (low, high) = l.interval.unwrap_or((f64::NAN, f64::NAN));
        [l.mean.unwrap_or(f64::NAN), low, high]
    });
    let (low, high) = ends
        .filter(|x| x.is_finite())
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| (a.min(x), b.max(x)));
    let pad = 0.05 * (high - low).max(1e-9);
    (low - pad, high + pad)
}

fn lines(c: &Comparison) -> String {
    let (low, high) = range(c);
    let place = |x: f64| (x - low) / (high - low);
    let base = c.uniform().and_then(|u| c.lines[u].mean);
    let metric = c.metric.as_str();
    let mut out = String::from("<thead><tr>");
    let headers = [
        "method",
        metric,
        "sd",
        "",
        "kernels (99 %)",
        "gap",
        "fit",
        "search",
        "against uniform",
        "p (Holm)",
        "t-test",
        "Wilcoxon",
    ];
    for header in headers {
        let class = if matches!(header, "method" | "") { "" } else { " class=\"n\"" };
        if header.is_empty() {
            out += "<td></td>";
        } else {
            let _ = write!(
                out,
                "<th scope=\"col\"{class}><button type=\"button\">{}</button></th>",
                escape(header)
            );
        }
    }
    out += "<th scope=\"col\">chosen most</th></tr></thead>\n<tbody>\n";
    for l in &c.lines {
        let tip = format!(
            "{}: {} {}, 95 % interval {}",
            l.method,
            metric,
            plus_minus(l.mean, l.sd),
            l.interval.map_or_else(
                || "–".into(),
                |(a, b)| format!("{} to {}", significant(a, 4), significant(b, 4))
            )
        );
        let chart = l.mean.map_or_else(String::new, |m| {
            svg::interval(place(m), l.interval.map(|(a, b)| (place(a), place(b))), base.map(place))
        });
        let versus = l.versus_uniform;
        let difference = versus.map(|v| v.difference);
        let _ = writeln!(
            out,
            "<tr data-tip=\"{}\"><th scope=\"row\">{}</th>{}{}<td class=\"barcell\">{chart}</td>{}{}{}{}{}{}{}{}<td>{}</td></tr>",
            escape(&tip),
            escape(&l.method),
            number(l.mean, &l.mean.map_or_else(|| "–".into(), |m| significant(m, 4))),
            number(l.sd, &l.sd.map_or_else(|| "–".into(), |s| significant(s, 2))),
            number(Some(l.selected), &kernels(l)),
            number(l.gap, &super::gap(l.gap)),
            number(Some(l.seconds.0), &seconds(l.seconds.0)),
            number(Some(l.seconds.1), &seconds(l.seconds.1)),
            number(difference, &difference.map_or_else(|| "–".into(), |d| format!("{d:+.3}"))),
            number(l.adjusted, &p_value(l.adjusted)),
            number(versus.and_then(|v| v.t_test), &p_value(versus.and_then(|v| v.t_test))),
            number(versus.and_then(|v| v.wilcoxon), &p_value(versus.and_then(|v| v.wilcoxon))),
            escape(&chosen(l)),
        );
    }
    let better = if c.higher_is_better { "larger is better" } else { "smaller is better" };
    format!(
        "<p>Mean {} over {} splits ({better}), its standard deviation and 95 % bootstrap interval; the thin line is equal weights. \
         p (Holm) is the corrected resampled t-test against equal weights, adjusted for the number of methods; t-test and Wilcoxon are \
         not corrected and find too much. Times are means of one fit and of choosing its parameters.</p>\n{}",
        escape(metric),
        c.splits,
        boxed("Comparison of methods", "sortable", &(out + "</tbody>\n"))
    )
}

/// Every two methods, where the table has not said it all.
fn tests(c: &Comparison) -> Option<String> {
    c.between.iter().flatten().flatten().next().filter(|_| c.lines.len() > 2)?;
    let mut out = String::from("<thead><tr><th scope=\"col\">p</th>");
    for l in &c.lines {
        let _ = write!(out, "<th scope=\"col\" class=\"n\">{}</th>", escape(&l.method));
    }
    out += "</tr></thead>\n<tbody>\n";
    for (l, row) in c.lines.iter().zip(&c.between) {
        let _ = write!(out, "<tr><th scope=\"row\">{}</th>", escape(&l.method));
        for p in row {
            // The smaller, the darker: 5 % is where the shade sets in.
            out += &shaded(p.map_or(0.0, |p| (1.0 - p / 0.1).max(0.0)), &p_value(*p));
        }
        out += "</tr>\n";
    }
    Some(format!(
        "<p>Corrected resampled t-test between every two methods, not adjusted for their number; shaded below 0.1.</p>\n{}",
        boxed("Tests between methods", "heat", &(out + "</tbody>\n"))
    ))
}

/// The best method and equal weights; where these are the best, they and the best of the others.
/// `own` comes first.
fn shown<'a>(c: &'a Comparison, own: Option<&str>) -> Vec<&'a Line> {
    let sign = if c.higher_is_better { 1.0 } else { -1.0 };
    let uniform = c.uniform();
    let others = (0..c.lines.len()).filter(|&i| Some(i) != uniform && c.lines[i].mean.is_some());
    let value = |i: usize| sign * c.lines[i].mean.unwrap_or(f64::NAN);
    let other = others.reduce(|b, i| if value(i) > value(b) { i } else { b });
    let mut places: Vec<usize> = uniform.into_iter().chain(other).collect();
    let first = c.lines.iter().position(|l| Some(l.method.as_str()) == own).or(c.best());
    places.sort_by_key(|i| Some(*i) != first);
    places.into_iter().map(|i| &c.lines[i]).collect()
}

fn legend(names: &[&str]) -> String {
    let item = |(k, name): (usize, &&str)| {
        format!("<li><span class=\"key c{}\"></span>{}</li>\n", k % 6, escape(name))
    };
    format!(
        "<ul class=\"legend\">\n{}</ul>\n",
        names.iter().enumerate().map(item).collect::<String>()
    )
}

fn roc(shown: &[&Line]) -> Option<String> {
    let lines = shown.iter().filter(|l| !l.roc.is_empty());
    let curves: Vec<(&str, &[(f64, f64)])> =
        lines.map(|l| (l.method.as_str(), l.roc.as_slice())).collect();
    let chart = svg::roc(&curves)?;
    let names: Vec<&str> = curves.iter().map(|k| k.0).collect();
    Some(format!("<p>Test rows of all splits together.</p>\n{chart}{}", legend(&names)))
}

fn confusion(c: &Comparison, shown: &[&Line]) -> Option<String> {
    let (line, classes) = (shown.first()?, c.classes.as_ref()?);
    let counts = line.confusion.as_ref()?;
    Some(format!(
        "<p>{}, test rows of all splits together.</p>\n{}",
        escape(&line.method),
        super::html::confusion(classes, counts)
    ))
}

fn residuals(shown: &[&Line]) -> Option<String> {
    let line = shown.first()?;
    let chart = svg::scatter(&line.residuals)?;
    Some(format!("<p>{}, test rows of all splits together.</p>\n{chart}", escape(&line.method)))
}

fn stability(c: &Comparison) -> Option<String> {
    let learned = |s: &&Stability| !s.method.starts_with("uniform") && !s.kernels.is_empty();
    let mut out = String::from(
        "<p>Mean share of each kernel in the sum of weights, with its 95 % bootstrap interval over the splits, and how often it has a \
         weight at all. Automatic widths are those of the first split.</p>\n<div class=\"panels\">\n",
    );
    let mut any = false;
    for s in c.stability.iter().filter(learned).take(MAX_METHODS) {
        any = true;
        let _ = writeln!(
            out,
            "<div class=\"panel\">\n<h3>{}</h3>\n{}</div>",
            escape(&s.method),
            panel(s)
        );
    }
    any.then(|| out + "</div>\n")
}

fn panel(s: &Stability) -> String {
    let shown = &s.kernels[..s.kernels.len().min(MAX_KERNELS)];
    if let (Some(first), Some(last)) = (shown.first(), s.kernels.last())
        && s.kernels.len() > 1
        && first.mean - last.mean < 1e-9
    {
        return format!("<p>All {} kernels always have the same weight.</p>\n", s.kernels.len());
    }
    let top =
        shown.iter().map(|k| k.interval.map_or(k.mean, |i| i.1)).fold(f64::MIN_POSITIVE, f64::max);
    let mut out = String::from(
        "<thead class=\"quiet\"><tr><th scope=\"col\">kernel</th><td></td><th scope=\"col\" class=\"n\">share</th>\
         <th scope=\"col\" class=\"n\">chosen</th></tr></thead>\n<tbody>\n",
    );
    for k in shown {
        let name = escape(&k.kernel);
        let range = k.interval.map_or_else(String::new, |(a, b)| {
            format!(", 95 % interval {} to {}", significant(a, 3), significant(b, 3))
        });
        let _ = writeln!(
            out,
            "<tr data-tip=\"{name}: share {}{range}, chosen in {:.0} % of the splits\"><th scope=\"row\">{name}</th>\
             <td class=\"barcell\">{}</td><td class=\"n\">{}</td><td class=\"n\">{:.0} %</td></tr>",
            significant(k.mean, 3),
            100.0 * k.frequency,
            svg::bar_with(k.mean / top, k.interval.map(|(a, b)| (a / top, b / top))),
            significant(k.mean, 2),
            100.0 * k.frequency
        );
    }
    let more = s.kernels.len() - shown.len();
    let rest = if more > 0 { format!("{more} more ever had a weight. ") } else { String::new() };
    let overlap = s.overlap.map_or_else(String::new, |o| {
        format!("Two splits share {:.0} % of the kernels that either chose.", 100.0 * o)
    });
    let label = format!("Kernels of {} over the splits", s.method);
    format!(
        "{}<p class=\"note\">{rest}{overlap}</p>\n",
        boxed(&label, "bars", &(out + "</tbody>\n"))
    )
}

/// The best learned method's heaviest kernels, a column per split.
fn by_split(c: &Comparison) -> Option<String> {
    let sign = if c.higher_is_better { 1.0 } else { -1.0 };
    let learned = |l: &&Line| {
        !l.method.starts_with("uniform") && !l.method.starts_with("single") && l.mean.is_some()
    };
    let best = c.lines.iter().filter(learned).reduce(|b, l| {
        if sign * l.mean.unwrap_or(f64::NAN) > sign * b.mean.unwrap_or(f64::NAN) { l } else { b }
    })?;
    let runs: Vec<_> = c
        .runs
        .iter()
        .filter(|r| r.method == best.method && r.weights.len() == c.kernels.len())
        .take(MAX_SPLITS)
        .collect();
    if runs.len() < 2 {
        return None;
    }
    let mean = |m: usize| runs.iter().map(|r| r.weights[m]).sum::<f64>();
    let mut order: Vec<usize> = (0..c.kernels.len()).filter(|&m| mean(m) > 0.0).collect();
    order.sort_by(|&a, &b| mean(b).total_cmp(&mean(a)));
    order.truncate(MAX_KERNELS);
    let top = order
        .iter()
        .flat_map(|&m| runs.iter().map(move |r| r.weights[m]))
        .fold(f64::MIN_POSITIVE, f64::max);
    let mut out = String::from("<thead><tr><th scope=\"col\">kernel</th>");
    for r in &runs {
        let _ = write!(out, "<th scope=\"col\" class=\"n\">{}</th>", r.split + 1);
    }
    out += "</tr></thead>\n<tbody>\n";
    for m in order {
        let _ = write!(out, "<tr><th scope=\"row\">{}</th>", escape(&c.kernels[m]));
        for r in &runs {
            let shown = if r.weights[m] == 0.0 {
                "0".to_string()
            } else {
                significant(100.0 * r.weights[m], 2)
            };
            out += &shaded(r.weights[m] / top, &shown);
        }
        out += "</tr>\n";
    }
    Some(format!(
        "<p>{}: share of the heaviest kernels in percent, a column per split; 0 is an exact zero.</p>\n{}",
        escape(&best.method),
        boxed("Weights split by split", "heat", &(out + "</tbody>\n"))
    ))
}

fn same(c: &Comparison) -> Option<String> {
    if c.interchangeable.is_empty() {
        return None;
    }
    let mut out = format!(
        "<p>{} groups of kernels with a centred alignment above 0.95 with the first of the group: which of them gets the weight may be \
         chance, and reading it as a finding would be wrong.</p>\n<ul>\n",
        c.interchangeable.len()
    );
    for group in c.interchangeable.iter().take(MAX_GROUPS) {
        let few: Vec<String> = group.iter().take(6).map(|k| escape(k)).collect();
        let rest =
            if group.len() > 6 { format!(" and {} more", group.len() - 6) } else { String::new() };
        let _ = writeln!(out, "<li>{}{rest}</li>", few.join(", "));
    }
    let more = c.interchangeable.len().saturating_sub(MAX_GROUPS);
    Some(
        out + "</ul>\n"
            + &if more > 0 {
                format!("<p class=\"note\">{more} more groups.</p>\n")
            } else {
                String::new()
            },
    )
}

fn aligned(c: &Comparison) -> Option<String> {
    let a = c.aligned.as_ref()?;
    let panel = super::AlignmentPanel {
        kernels: a.kernels.clone(),
        target: a.target.clone(),
        between: a.between.clone(),
    };
    Some(super::html::alignment(&panel))
}

/// Weights per region or rule, memberships and vetoes, of the first split.
fn regions(c: &Comparison) -> Option<String> {
    let mut out = String::new();
    for run in c.runs.iter().filter(|r| r.split == 0) {
        let Some(detail) = &run.detail else { continue };
        if detail.weights.len() < 2 {
            continue;
        }
        let panel = super::WeightPanel {
            method: run.method.clone(),
            machines: detail.weights.iter().map(|w| w.0.clone()).collect(),
            kernels: c.kernels.clone(),
            weights: detail.weights.iter().map(|w| w.1.clone()).collect(),
        };
        if panel.weights.iter().any(|w| w.len() != panel.kernels.len()) {
            continue;
        }
        let _ = writeln!(out, "<h3>{}</h3>", escape(&run.method));
        if let Some(shares) = &detail.regions {
            let told: Vec<String> = shares
                .iter()
                .enumerate()
                .map(|(j, s)| format!("region {}: {:.0} %", j + 1, 100.0 * s))
                .collect();
            let _ = writeln!(
                out,
                "<p class=\"note\">Mean membership of the training rows: {}.</p>",
                told.join(", ")
            );
        }
        if let Some(vetoes) = &detail.vetoes {
            let told: Vec<String> =
                vetoes.iter().enumerate().map(|(r, n)| format!("rule {}: {n}", r + 1)).collect();
            let _ = writeln!(
                out,
                "<p class=\"note\">Test rows that each rule turns down: {}.</p>",
                told.join(", ")
            );
        }
        out += &super::html::panel_of(&panel, MAX_KERNELS);
    }
    (!out.is_empty()).then(|| {
        format!(
            "<p>Kernel weights where there are several vectors of them, first split.</p>\n{out}"
        )
    })
}

fn traces(c: &Comparison) -> Option<String> {
    let lines: Vec<TraceLine> = c
        .runs
        .iter()
        .filter(|r| r.split == 0)
        .filter_map(|r| {
            let records = r.detail.as_ref()?.trace.clone();
            (records.len() > 1).then(|| TraceLine { method: r.method.clone(), records })
        })
        .collect();
    let chart = svg::convergence(&lines)?;
    let names: Vec<&str> = lines.iter().map(|l| l.method.as_str()).collect();
    Some(format!(
        "<p>Relative duality gap, or the stationarity measure of methods that have none, against time.</p>\n{chart}{}",
        legend(&names)
    ))
}
