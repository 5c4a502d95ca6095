//! A fitted model in words and as JSON.

use std::{collections::BTreeSet, fmt::Write as _};

use mercer::{
    Model,
    gram::ApproxError,
    localize::Placement,
    model::{Certificate, Input, Localized, Prediction},
    report::{self, MethodRow, WeightPanel, significant, table},
    request::{LossName, MethodSpec, Scheme, Value as Setting},
};
use serde_json::{Value, json};

/// Kernels listed unless all are asked for.
const SHOWN: usize = 20;

/// The method with its parameters, as the model recorded them: `gmkl v=0.5 p=2 solver=level`.
pub fn method(model: &Model) -> String {
    let method = &model.request.method;
    // Hard regions are told by `evenness=hard`.
    let name = if let MethodSpec::Clmkl(_) = method { "clmkl" } else { method.name() };
    let mut parameters = method.parameters();
    parameters.retain(|(_, value)| *value != Setting::None);
    parameters.sort_by_key(|(name, _)| *name);
    let told = parameters.into_iter().map(|(name, value)| format!(" {name}={value}"));
    std::iter::once(name.to_string()).chain(told).collect()
}

/// Which settings cross-validation found, and whether C follows from the scale of the kernels.
fn chosen(model: &Model) -> &'static str {
    let choose = model.request.choose;
    match (choose.c, choose.v) {
        (true, true) => " (like v by cross-validation)",
        (true, false) => " (by cross-validation)",
        (false, true) => " (v by cross-validation)",
        (false, false) if choose.scale => " (by the scale of the kernels)",
        (false, false) => "",
    }
}

/// Everything `inspect` shows.
pub fn text(model: &Model, all: bool) -> String {
    let row = MethodRow::new(&method(model), model, None);
    let panel = WeightPanel::new(&row.method, model);
    let mut out = format!("{}\n\n", summary(model, &row));
    out += &weights(&panel, &model.approximation, all);
    if let Some(localized) = &model.localized {
        out += &regions(localized);
    }
    out += "\n";
    out += &certificate(model);
    for warning in &model.warnings {
        let _ = write!(out, "\nwarning: {warning}");
    }
    if !model.warnings.is_empty() {
        out += "\n";
    }
    out
}

fn summary(model: &Model, row: &MethodRow) -> String {
    let task = match &model.task {
        Prediction::Classification { classes, scheme } => {
            let how = match (classes.len(), scheme) {
                (..=2, _) => "",
                (_, Scheme::OneVsRest) => "; a machine for each against the rest",
                (_, Scheme::OneVsOne) => "; a machine for each pair",
            };
            format!("classes {}{how}", classes.join(", "))
        }
        Prediction::Regression => "a number".into(),
    };
    let expects = match &model.input {
        Input::Table { columns, standardizer, .. } => {
            let scaled = if standardizer.as_ref().is_some_and(|s| !s.mean.is_empty()) {
                "standardised by the model"
            } else {
                "used as they are"
            };
            format!("{}, {scaled}", list(columns))
        }
        Input::Precomputed { n_train, kernels } => {
            format!("{} kernels against {n_train} training rows", kernels.len())
        }
    };
    let request = &model.request;
    let facts = [
        ("method", row.method.clone()),
        ("predicts", task),
        ("expects", expects),
        ("kernels", kernels(row, &request.kernels)),
        (
            "settings",
            format!(
                "C {}{}, loss {}, normalize {}, tol {}{}",
                json!(request.c),
                chosen(model),
                request.loss.map_or("–", LossName::as_str),
                json!(request.normalize).as_str().unwrap_or_default(),
                json!(request.tol),
                if request.fit_intercept { "" } else { ", no intercept" }
            ),
        ),
        (
            "fitted on",
            format!(
                "{} rows in {}, mercer {}",
                model.n_samples,
                report::seconds(model.seconds),
                model.version
            ),
        ),
        ("storage", format!("{} (budget {})", model.storage.0, size(model.storage.1))),
    ];
    let approx = report::approximation(model).map(|told| ("approx", told));
    let told = facts.into_iter().chain(approx).map(|(label, value)| format!("{label:<10} {value}"));
    told.collect::<Vec<_>>().join("\n")
}

fn kernels(row: &MethodRow, bank: &str) -> String {
    let MethodRow { selected, total, carrying, .. } = row;
    format!("{selected} of {total} selected, {carrying} carry 99 % of the weight; bank: {bank}")
}

/// Weights, largest first; a column per weight vector, and one for what kernels lost where they
/// stand in for others.
pub fn weights(panel: &WeightPanel, errors: &[ApproxError], all: bool) -> String {
    let ranked = panel.ranked();
    let total = ranked.len();
    let mut chosen: Vec<usize> = ranked.into_iter().map(|(m, _)| m).collect();
    if !all {
        chosen.retain(|&m| panel.weights.iter().any(|w| w[m] != 0.0));
    }
    let (positive, shown) =
        (chosen.len(), if all { chosen.len() } else { chosen.len().min(SHOWN) });
    let several = panel.weights.len() > 1;
    let headers: Vec<&str> = std::iter::once("kernel")
        .chain(if several {
            panel.machines.iter().map(String::as_str).collect()
        } else {
            vec!["weight"]
        })
        .chain((!errors.is_empty()).then_some("error"))
        .collect();
    let line = |m: usize| {
        let numbers = panel.weights.iter().map(|w| significant(w[m], 4));
        let error = errors.get(m).map(|e| significant(e.value(), 2));
        std::iter::once(panel.kernels[m].clone()).chain(numbers).chain(error).collect::<Vec<_>>()
    };
    let rows: Vec<Vec<String>> = chosen[..shown].iter().map(|&m| line(m)).collect();
    let mut out = table(&headers, &rows);
    if positive > shown {
        let _ = writeln!(out, "… and {} more with a weight", positive - shown);
    }
    if total > positive {
        let _ = writeln!(out, "kernels with weight exactly 0: {}", total - positive);
    }
    out
}

/// How rows are placed, and what the weights above mean.
fn regions(localized: &Localized) -> String {
    let gating = localized.gating(0);
    let how = match &gating.placement {
        Placement::Clusters { tau: Some(tau) } => {
            format!(
                "soft, by squared distance d² to centres in feature space: exp(−{} d²)",
                significant(*tau, 4)
            )
        }
        Placement::Clusters { tau: None } => "hard: the nearest centre in feature space".into(),
        Placement::Softmax => {
            "a softmax over the kernels; weights are means over the training rows".into()
        }
        Placement::Sigmoid => {
            "a sigmoid per kernel; weights are means over the training rows".into()
        }
        Placement::Column { column, values } => {
            format!("column {column}, with the values {values:?}")
        }
        Placement::Given => "given with the rows".into(),
    };
    let squared = if gating.weights.is_some() { "; weights enter the kernel squared" } else { "" };
    format!("regions: {}, {how}{squared}\n", gating.regions)
}

/// A line per machine, and one for all of them together.
fn certificate(model: &Model) -> String {
    let headers =
        ["machine", "objective", "lower bound", "gap", "status", "iterations", "support rows"];
    let line = |name: String, certificate: Certificate, support: usize| {
        let Certificate { primal, dual, gap, status, iterations } = certificate;
        vec![
            name,
            significant(primal, 8),
            significant(dual, 8),
            report::gap(Some(gap).filter(|g| g.is_finite())),
            status.as_str().into(),
            iterations.to_string(),
            support.to_string(),
        ]
    };
    let mut rows: Vec<Vec<String>> = model
        .machine_names()
        .into_iter()
        .zip(&model.machines)
        .map(|(name, machine)| line(name, machine.certificate, machine.support.len()))
        .collect();
    if model.machines.len() > 1 {
        let support: BTreeSet<usize> =
            model.machines.iter().flat_map(|m| m.support.iter().copied()).collect();
        let together =
            if model.shared.is_some() { "together (shared weights)" } else { "together" };
        rows.push(line(together.into(), model.certificate(), support.len()));
    }
    table(&headers, &rows)
}

/// The same for machines; weights that are exactly zero only where `all` are asked for.
pub fn value(model: &Model, all: bool) -> Value {
    let row = MethodRow::new("", model, None);
    let panel = WeightPanel::new("", model);
    let ranked = panel.ranked();
    let machine = |(name, machine): (String, &mercer::model::FittedMachine)| {
        let weights: Vec<Value> = ranked
            .iter()
            .map(|&(m, _)| {
                (m, machine.weights.iter().skip(m).step_by(panel.kernels.len()).collect::<Vec<_>>())
            })
            .filter(|(_, own)| all || own.iter().any(|w| **w != 0.0))
            .map(|(m, own)| match own.as_slice() {
                [weight] => json!({ "kernel": panel.kernels[m], "weight": weight }),
                by_region => json!({ "kernel": panel.kernels[m], "weights": by_region }),
            })
            .collect();
        json!({
            "name": name,
            "certificate": machine.certificate,
            "intercept": machine.intercept,
            "support_rows": machine.support.len(),
            "weights": weights,
        })
    };
    let told = |kernel: &str, error: &ApproxError| {
        let mut out = json!(error);
        out["kernel"] = kernel.into();
        out
    };
    let columns = match &model.input {
        Input::Table { columns, .. } => Some(columns),
        Input::Precomputed { .. } => None,
    };
    json!({
        "version": model.version,
        "task": model.task,
        "spec": model.request,
        "columns": columns,
        "n_samples": model.n_samples,
        "kernels": { "selected": row.selected, "carrying": row.carrying, "total": row.total },
        "gap": row.gap,
        "status": row.status,
        "certificate": model.certificate(),
        "shared_weights": model.shared.is_some(),
        "seconds": model.seconds,
        "storage": { "kind": model.storage.0, "budget_bytes": model.storage.1 },
        "machines": model.machine_names().into_iter().zip(&model.machines).map(machine).collect::<Vec<_>>(),
        "approximation": model.kernel_names().iter().zip(&model.approximation).map(|(k, e)| told(k, e)).collect::<Vec<_>>(),
        "warnings": model.warnings,
    })
}

/// Names while they are few.
fn list(columns: &[String]) -> String {
    const FEW: usize = 8;
    let mut text =
        format!("{} columns: {}", columns.len(), columns[..columns.len().min(FEW)].join(", "));
    if columns.len() > FEW {
        text += ", …";
    }
    text
}

fn size(bytes: u64) -> String {
    let (mut size, mut unit) = (bytes as f64, 0);
    while size >= 1024.0 && unit < 4 {
        size /= 1024.0;
        unit += 1;
    }
    format!("{} {}", significant(size, 3), ["B", "KiB", "MiB", "GiB", "TiB"][unit])
}

#[cfg(test)]
mod tests {
    use mercer::{
        kernels::{Function, KernelSpec},
        model::FittedMachine,
        trace::Status,
    };

    use super::*;

    fn model(classes: &[&str], weights: &[[f64; 3]]) -> Model {
        let certificate = Certificate {
            primal: 2.0,
            dual: 1.5,
            gap: 0.25,
            status: Status::MaxIterations,
            iterations: 9,
        };
        let machine = |w: &[f64; 3]| FittedMachine {
            weights: w.to_vec(),
            support: vec![0, 4],
            dual_coef: vec![1.0, -1.0],
            intercept: 0.5,
            certificate,
            trace: vec![],
        };
        let kernel =
            |j: usize| KernelSpec::new(Function::Linear, vec![j], format!("linear on x{j}"));
        Model {
            task: Prediction::Classification {
                classes: classes.iter().map(ToString::to_string).collect(),
                scheme: mercer::request::Scheme::OneVsRest,
            },
            input: Input::Table {
                columns: (0..3).map(|j| format!("x{j}")).collect(),
                texts: 0,
                standardizer: None,
                kernels: (0..3).map(kernel).collect(),
            },
            request: mercer::TrainSpec {
                kernels: "linear on each".into(),
                ..mercer::TrainSpec::default()
            },
            machines: weights.iter().map(machine).collect(),
            shared: None,
            rules: None,
            predictor: mercer::model::Predictor::default(),
            localized: None,
            warnings: vec!["two columns are the same".into()],
            n_samples: 5,
            seconds: 0.5,
            version: "0.1.0".into(),
            storage: ("low-rank".into(), 3 << 30),
            approximation: Vec::new(),
        }
    }

    #[test]
    fn text_lists_weights_certificate_and_warnings() {
        let text = text(&model(&["no", "yes"], &[[0.25, 0.0, 0.75]]), false);
        for part in [
            "method     gmkl p=2 solver=auto v=0.5",
            "predicts   classes no, yes",
            "kernels    2 of 3 selected, 2 carry 99 % of the weight; bank: linear on each",
            "storage    low-rank (budget 3.00 GiB)",
            "linear on x2  0.7500\nlinear on x0  0.2500\nkernels with weight exactly 0: 1",
            "yes      2.0000000    1.5000000  2.5e-1  max_iterations           9             2",
            "warning: two columns are the same",
        ] {
            assert!(text.contains(part), "{part}\n\n{text}");
        }
    }

    #[test]
    fn shared_weights_are_shown_once_with_the_joint_certificate() {
        let mut model = model(&["a", "b", "c"], &[[0.5, 0.0, 0.0]; 3]);
        let own = model.machines[0].certificate;
        model.shared =
            Some(Certificate { primal: 7.0, dual: 6.5, gap: 0.07, status: Status::Optimal, ..own });
        let text = text(&model, false);
        assert!(text.contains("linear on x0  0.5000\n"), "{text}");
        assert!(
            text.contains("together (shared weights)  7.0000000    6.5000000  7.0e-2  optimal"),
            "{text}"
        );
        let value = value(&model, false);
        assert_eq!((&value["certificate"]["primal"], &value["gap"]), (&json!(7.0), &json!(0.07)));
    }

    #[test]
    fn several_machines_have_a_column_each() {
        let model = model(&["a", "b", "c"], &[[0.5, 0.0, 0.0], [0.0, 0.0, 1.0], [0.1, 0.0, 0.0]]);
        assert!(
            text(&model, true).contains("linear on x1       0      0       0"),
            "{}",
            text(&model, true)
        );
        assert!(
            text(&model, true).contains("together  6.0000000    4.5000000"),
            "{}",
            text(&model, true)
        );
        let value = value(&model, false);
        assert_eq!(
            value["machines"][1]["weights"],
            json!([{ "kernel": "linear on x2", "weight": 1.0 }])
        );
        assert_eq!(
            (&value["kernels"]["selected"], &value["status"]),
            (&json!(2), &json!("max_iterations"))
        );
    }
}
