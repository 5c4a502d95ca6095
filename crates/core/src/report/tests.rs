use super::*;

fn record(iteration: usize, gap: f64) -> IterRecord {
    IterRecord {
        iteration,
        objective: 2.0,
        dual: 1.0,
        gap,
        active: 3,
        seconds: 0.1 * iteration as f64,
    }
}

fn row(method: &str, accuracy: f64, interval: (f64, f64), selected: usize) -> MethodRow {
    let score = Score {
        name: "test accuracy".into(),
        value: accuracy,
        interval: Some(interval),
        higher_is_better: true,
    };
    MethodRow {
        method: method.into(),
        score: Some(score),
        selected,
        carrying: selected.min(2),
        total: 60,
        gap: Some(4e-4),
        status: Status::Optimal,
        seconds: 0.25,
    }
}

fn panel(method: &str, weights: Vec<Vec<f64>>) -> WeightPanel {
    WeightPanel {
        method: method.into(),
        machines: (0..weights.len()).map(|k| format!("class {k}")).collect(),
        kernels: (0..weights[0].len()).map(|m| format!("rbf(2) on <x{m}>")).collect(),
        weights,
    }
}

#[test]
fn alignments_are_a_heat_map_with_the_best_kernel_first() {
    let panel = AlignmentPanel {
        kernels: vec!["<weak>".into(), "strong".into()],
        target: vec![0.1, 0.6],
        between: vec![vec![1.0, 0.25], vec![0.25, 1.0]],
    };
    let page = html(&ReportData { alignment: Some(panel), ..ReportData::default() });
    let (strong, weak) = (page.find("strong").unwrap(), page.find("&lt;weak&gt;").unwrap());
    assert!(strong < weak && page.contains("How kernels align"));
    // 0.25 of at most 0.45.
    assert_eq!(page.matches("--w:0.113\">0.25</td>").count(), 2);
    assert!(!html(&ReportData::default()).contains("How kernels align"));
}

fn example() -> ReportData {
    let learned: Vec<f64> =
        (0..60).map(|m| if m < 45 { 1.0 / f64::from(m + 1) } else { 0.0 }).collect();
    ReportData {
        title: "Toy & 1".into(),
        command: "mercer demo --out 'a<b>.html'".into(),
        version: "0.1.0".into(),
        data: vec![("rows".into(), "150".into())],
        methods: vec![
            row("uniform", 0.7, (0.6, 0.8), 60),
            row("gmkl v=0.5", 0.9, (0.85, 0.95), 45),
        ],
        weights: vec![panel("uniform", vec![vec![0.5; 60]]), panel("gmkl v=0.5", vec![learned])],
        traces: vec![TraceLine {
            method: "gmkl v=0.5".into(),
            records: vec![record(1, 0.5), record(2, 1e-2), record(3, 0.0)],
        }],
        outcome: Some(Outcome::Confusion {
            label: "gmkl on test rows".into(),
            classes: vec!["-1".into(), "1".into()],
            counts: vec![vec![70, 5], vec![3, 72]],
        }),
        alignment: None,
        comparison: None,
        tuning: None,
        warnings: vec!["<script>alert(1)</script>".into()],
    }
}

#[test]
fn page_is_self_contained_escaped_and_repeatable() {
    let page = html(&example());
    assert_eq!(page, html(&example()));
    for outside in ["http:", "https:", "src=", "url(", "@import", "<link"] {
        assert!(!page.contains(outside), "page reaches outside: {outside}");
    }
    assert_eq!(page.matches("<script>").count(), 1, "data must not open a script");
    assert!(page.contains("Toy &amp; 1") && page.contains("rbf(2) on &lt;x0&gt;"));
    assert!(
        page.contains("name=\"viewport\"")
            && page.contains("prefers-color-scheme")
            && page.contains("@media print")
    );
    assert!(include_str!("page.js").lines().count() < 60);
}

#[test]
fn page_tags_balance() {
    let mut data = example();
    data.weights
        .push(panel("three classes", vec![vec![0.5, 0.0], vec![0.25, 0.0], vec![0.0, 0.0]]));
    let page = html(&data);
    for tag in [
        "section", "table", "tr", "td", "th", "div", "svg", "p", "ul", "li", "dl", "thead",
        "tbody", "h2", "h3",
    ] {
        let opened =
            page.matches(&format!("<{tag}>")).count() + page.matches(&format!("<{tag} ")).count();
        assert_eq!(opened, page.matches(&format!("</{tag}>")).count(), "<{tag}>");
    }
}

#[test]
fn weights_count_what_is_hidden_and_what_is_zero() {
    let page = html(&example());
    assert!(
        page.contains("45 of 60 kernels have a weight; 5 more are not drawn; exactly zero: 15.")
    );
    assert!(page.contains("All 60 kernels have the weight 0.5000."));
    assert_eq!(page.matches("class=\"bar\"").count(), 40);
}

#[test]
fn empty_data_still_make_a_page() {
    let page = html(&ReportData::default());
    assert!(page.contains("No method was fitted.") && !page.contains("NaN"));
}

#[test]
fn residuals_are_drawn_and_odd_numbers_left_out() {
    let outcome = Outcome::Residuals {
        label: "test".into(),
        pairs: vec![(1.0, 1.5), (2.0, f64::NAN), (3.0, 2.5)],
    };
    let page = html(&ReportData { outcome: Some(outcome), ..ReportData::default() });
    assert_eq!(page.matches("<circle").count(), 2);
    let constant = Outcome::Residuals { label: "flat".into(), pairs: vec![(0.0, 0.0)] };
    assert!(
        !html(&ReportData { outcome: Some(constant), ..ReportData::default() }).contains("NaN")
    );
}

#[test]
fn paragraph_names_the_best_its_kernels_and_the_certificate() {
    let text = learned(&example());
    assert!(
        text.starts_with(
            "The best test accuracy is 0.900 (95 % interval 0.850 to 0.950), by gmkl v=0.5."
        ),
        "{text}"
    );
    assert!(
        text.contains("Equal weights on all kernels give 0.700 (95 % interval 0.600 to 0.800)."),
        "{text}"
    );
    assert!(
        text.contains(
            "gmkl v=0.5 kept 45 of 60 kernels (2 carry 99 % of the weight); the heaviest are rbf(2) on <x0> (23 %)"
        ),
        "{text}"
    );
    let mut open = example();
    open.methods[1].status = Status::MaxIterations;
    open.methods[0].score.as_mut().unwrap().interval = Some((0.6, 0.86));
    let text = learned(&open);
    assert!(
        text.contains("the intervals overlap")
            && text.contains("Tolerance not reached: gmkl v=0.5;"),
        "{text}"
    );
}

#[test]
fn data_survive_json() {
    let data = example();
    let text = serde_json::to_string(&data).unwrap();
    assert_eq!(serde_json::from_str::<ReportData>(&text).unwrap(), data);
}

#[test]
fn tables_align() {
    let text =
        table(&["method", "gap"], &[vec!["uniform", "0"], vec!["größer", "1.2e-4"], vec!["short"]]);
    let expected = "method      gap\n───────  ──────\nuniform       0\ngrößer   1.2e-4\nshort\n";
    assert_eq!(text, expected);
}

#[test]
fn numbers_read_well() {
    let cases = [
        (0.0, "0"),
        (0.123_456, "0.1235"),
        (12.3456, "12.35"),
        (-150.0, "-150.0"),
        (1.5e-7, "1.500e-7"),
    ];
    for (x, text) in cases {
        assert_eq!(significant(x, 4), text);
    }
    assert_eq!(
        (seconds(0.012), seconds(2.5), seconds(600.0)),
        ("12 ms".into(), "2.50 s".into(), "10 min".into())
    );
}

#[test]
fn wilson_ends_solve_the_score_equation() {
    // By definition |p − hits/n| = z √(p (1 − p) / n) at both ends.
    let (lo, hi) = wilson(81, 263).unwrap();
    for p in [lo, hi] {
        let z = (p - 81.0 / 263.0).abs() / (p * (1.0 - p) / 263.0).sqrt();
        assert!((z - 1.959_964).abs() < 1e-6, "{p}: {z}");
    }
    let (none, all) = (wilson(0, 9).unwrap(), wilson(9, 9).unwrap());
    assert!(none.0 < 1e-12 && all.1 > 1.0 - 1e-12 && wilson(0, 0).is_none());
}
