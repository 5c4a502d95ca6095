//! Tables and pages of a search for settings.

use std::fmt::Write as _;

use super::{
    comparison::plus_minus,
    html::{boxed, escape, number, section, shaded},
    significant, svg, table,
};
use crate::{
    select::{Setting, Tuning},
    train::at_edge,
};

/// The best settings as text.
pub fn tuning_table(t: &Tuning, most: usize) -> String {
    let ranked = ranked(t);
    let Some(first) = t.settings.first() else { return String::new() };
    let names: Vec<&str> = first.parameters.iter().map(|(name, _)| name.as_str()).collect();
    let headers: Vec<&str> =
        names.into_iter().chain([t.metric.as_str(), "95 % interval"]).collect();
    let row = |s: &Setting| {
        let values = s.parameters.iter().map(|(_, v)| v.clone());
        let range = s.interval.map_or_else(
            || "–".into(),
            |(a, b)| format!("{} – {}", significant(a, 3), significant(b, 3)),
        );
        values.chain([plus_minus(Some(s.mean), Some(s.sd)), range]).collect::<Vec<_>>()
    };
    table(&headers, &ranked.iter().take(most).map(|&i| row(&t.settings[i])).collect::<Vec<_>>())
}

/// Settings, best first; those given up last.
fn ranked(t: &Tuning) -> Vec<usize> {
    let sign = if t.higher_is_better { 1.0 } else { -1.0 };
    let whole = |i: usize| t.settings[i].scores.iter().all(Option::is_some);
    let mut order: Vec<usize> = (0..t.settings.len()).collect();
    order.sort_by(|&a, &b| {
        let (x, y) = (sign * t.settings[a].mean, sign * t.settings[b].mean);
        whole(b).cmp(&whole(a)).then(y.total_cmp(&x))
    });
    order
}

/// What a search found, in words.
pub fn found(t: &Tuning) -> Vec<String> {
    let Some(best) = t.settings.get(t.best) else { return vec!["Nothing was tried.".into()] };
    let told: Vec<String> = best.parameters.iter().map(|(k, v)| format!("{k} = {v}")).collect();
    let range = best.interval.map_or_else(String::new, |(a, b)| {
        format!(" (95 % interval {} to {})", significant(a, 3), significant(b, 3))
    });
    let mut out = vec![format!(
        "Of {} settings of {} the best is {}: mean {} {}{range}.",
        t.settings.len(),
        t.method,
        told.join(", "),
        t.metric,
        significant(best.mean, 3)
    )];
    out.extend(
        best.parameters
            .iter()
            .filter_map(|(name, value)| at_edge(name, value.parse().ok()?, &line(t, name)))
            .map(|e| e + "."),
    );
    if best.flat > 0 {
        let (flat, all) = (best.flat, best.scores.len());
        out.push(format!("On {flat} of {all} splits its fit was a constant on the training rows."));
    }
    out.push("The best of many settings looks better than it is: compare, with parameters chosen inside, measures what to expect.".into());
    out
}

/// Values of a parameter with their mean scores, larger is better, in the settings that are like
/// the best in all others.
fn line(t: &Tuning, name: &str) -> Vec<(f64, f64)> {
    let sign = if t.higher_is_better { 1.0 } else { -1.0 };
    let others =
        |s: &Setting| s.parameters.iter().filter(|p| p.0 != name).cloned().collect::<Vec<_>>();
    let value =
        |s: &Setting| s.parameters.iter().find(|p| p.0 == name).and_then(|p| p.1.parse().ok());
    let like = others(&t.settings[t.best]);
    t.settings
        .iter()
        .filter(|s| others(s) == like)
        .filter_map(|s| Some((value(s)?, sign * s.mean)))
        .collect()
}

/// All sections of a search.
pub(super) fn tuning(t: &Tuning) -> String {
    let order = ranked(t);
    let Some(first) = t.settings.first() else { return String::new() };
    let ends = t.settings.iter().flat_map(|s| {
        let (a, b) = s.interval.unwrap_or((s.mean, s.mean));
        [a, b, s.mean]
    });
    let (low, high) = ends
        .filter(|x| x.is_finite())
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| (a.min(x), b.max(x)));
    let place = |x: f64| (x - low) / (high - low).max(1e-12);
    let mut out = String::from("<thead><tr>");
    for name in first.parameters.iter().map(|p| p.0.as_str()).chain([t.metric.as_str(), "sd"]) {
        let _ = write!(
            out,
            "<th scope=\"col\" class=\"n\"><button type=\"button\">{}</button></th>",
            escape(name)
        );
    }
    out += "<td></td></tr></thead>\n<tbody>\n";
    for &i in order.iter().take(200) {
        let s = &t.settings[i];
        let _ = write!(out, "<tr>");
        for (_, value) in &s.parameters {
            out += &number(value.parse().ok(), value);
        }
        let _ = writeln!(
            out,
            "{}{}<td class=\"barcell\">{}</td></tr>",
            number(Some(s.mean), &significant(s.mean, 4)),
            number(Some(s.sd), &significant(s.sd, 2)),
            svg::interval(place(s.mean), s.interval.map(|(a, b)| (place(a), place(b))), None)
        );
    }
    let table = boxed("Settings", "sortable", &(out + "</tbody>\n"));
    let note = format!("<p>{}; {}, best first.</p>\n", escape(&t.protocol), escape(&t.metric));
    section("settings", "Settings", Some(note + &table)) + &section("grid", "The grid", plane(t))
}

/// The mean as a map, where two parameters vary.
fn plane(t: &Tuning) -> Option<String> {
    let value =
        |s: &Setting, name: &str| s.parameters.iter().find(|p| p.0 == name).map(|p| p.1.clone());
    let names: Vec<String> = t.settings.first()?.parameters.iter().map(|p| p.0.clone()).collect();
    let distinct = |name: &String| {
        let mut seen: Vec<String> = Vec::new();
        t.settings.iter().filter_map(|s| value(s, name)).for_each(|v| {
            if !seen.contains(&v) {
                seen.push(v);
            }
        });
        seen
    };
    let varying: Vec<(String, Vec<String>)> =
        names.iter().map(|n| (n.clone(), distinct(n))).filter(|(_, v)| v.len() > 1).collect();
    let [(down, rows), (across, cols)] = varying.as_slice() else { return None };
    let means: Vec<f64> = t.settings.iter().map(|s| s.mean).filter(|m| m.is_finite()).collect();
    let (low, high) =
        means.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| (a.min(*x), b.max(*x)));
    let mut out =
        format!("<thead><tr><th scope=\"col\">{} ↓ {} →</th>", escape(down), escape(across));
    for col in cols {
        let _ = write!(out, "<th scope=\"col\" class=\"n\">{}</th>", escape(col));
    }
    out += "</tr></thead>\n<tbody>\n";
    for row in rows {
        let _ = write!(out, "<tr><th scope=\"row\">{}</th>", escape(row));
        for col in cols {
            let own = t
                .settings
                .iter()
                .find(|s| {
                    value(s, down).as_ref() == Some(row) && value(s, across).as_ref() == Some(col)
                })
                .map_or(f64::NAN, |s| s.mean);
            let share = (own - low) / (high - low).max(1e-12);
            out +=
                &shaded(if t.higher_is_better { share } else { 1.0 - share }, &significant(own, 3));
        }
        out += "</tr>\n";
    }
    Some(boxed("Mean over the grid", "heat", &(out + "</tbody>\n")))
}
