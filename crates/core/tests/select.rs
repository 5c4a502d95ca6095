//! Choosing and comparing: nothing of a test row is seen, nothing depends on threads or on having
//! been interrupted.

use std::{
    path::PathBuf,
    sync::atomic::{AtomicUsize, Ordering},
};

use mercer::{
    TrainSpec,
    data::{Dataset, Missing, Rng, Target, View, synthetic},
    gram::Stack,
    kernels::{Indefinite, Normalize},
    linalg::{Matrix, threads},
    metrics::Metric,
    prepare::Source,
    report::{self, ReportData},
    select::{
        Comparison, Contender, Grid, Journal, Protocol, SplitRun, Splitting, Study, Watch,
        contenders,
    },
};

fn base(kernels: &str) -> TrainSpec {
    TrainSpec { kernels: kernels.into(), ..TrainSpec::default() }
}

fn competing(list: &str, base: &TrainSpec, grid: &str, target: &Target) -> Vec<Contender> {
    let grid = Grid::parse(grid, &base.method).unwrap();
    contenders(list, base, &grid, target).unwrap()
}

fn run(x: &Dataset, y: &Target, contenders: &[Contender], protocol: &Protocol) -> Comparison {
    Study::new(Source::Table(x), y, protocol)
        .compare(contenders, &Journal::none())
        .unwrap()
        .unwrap()
}

/// Everything but the clock.
fn timeless(mut c: Comparison) -> Comparison {
    let clear = |r: &mut SplitRun| {
        (r.seconds, r.search_seconds) = (0.0, 0.0);
        r.detail.iter_mut().flat_map(|d| &mut d.trace).for_each(|t| t.seconds = 0.0);
    };
    c.runs.iter_mut().for_each(clear);
    c.lines.iter_mut().for_each(|l| l.seconds = (0.0, 0.0));
    c
}

fn temporary(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("mercer-{name}-{}", std::process::id()));
    let _ = std::fs::remove_file(&path);
    path
}

/// Test rows may be anything: what is chosen and learned from the training rows stays the same to
/// the last bit.
#[test]
fn nothing_of_a_test_row_is_seen() {
    let (x, y) = synthetic::toy1(44, 3);
    let Target::Classes { names, labels } = &y else { panic!("classes") };
    let mut rng = Rng::new(5);
    let mut poisoned = x.features().data().to_vec();
    let cols = x.features().cols();
    poisoned[22 * cols..].iter_mut().for_each(|v| *v = 1e3 * rng.normal());
    let other =
        Dataset::new(Matrix::new(44, cols, poisoned).unwrap(), x.columns().to_vec()).unwrap();
    let turned = labels.iter().enumerate().map(|(i, l)| if i < 22 { *l } else { 1 - l }).collect();
    let turned = Target::Classes { names: names.clone(), labels: turned };
    // Split by the order of rows, which does not depend on the labels.
    let protocol =
        Protocol { folds: 2, ..Protocol::new(Splitting::Time { folds: 1 }, Metric::Accuracy, 1) };
    let plain = TrainSpec::default;
    for spec in [
        base("rbf(auto), linear on all"),
        TrainSpec {
            preprocess: "average(2), difference(1, keep)".into(),
            normalize: Normalize::Trace,
            ..base("linear on all")
        },
        TrainSpec {
            standardize: false,
            normalize: Normalize::Spherical,
            ..base("rbf(auto) on cols(1-2)")
        },
        TrainSpec {
            preprocess: "snv".into(),
            normalize: Normalize::Center,
            ..base("poly(2) on all")
        },
        TrainSpec {
            preprocess: "difference(2)".into(),
            normalize: Normalize::None,
            ..base("rbf(3) on all")
        },
        TrainSpec { missing: Missing::Mean, ..base("rbf(auto), linear on view(part), all") },
    ] {
        // Some rows lack a view: training rows, and in the other data other test rows.
        let lacking = |x: &Dataset, rows: &[usize]| {
            if spec.missing == plain().missing {
                return x.clone();
            }
            let view = View { name: "part".into(), columns: 2..9 };
            x.clone().with_views(vec![view]).unwrap().with_absent("part", rows).unwrap()
        };
        let list = competing("all", &spec, "C=1|10", &y);
        let one = run(&lacking(&x, &[3, 8, 30]), &y, &list, &protocol);
        let two = run(&lacking(&other, &[3, 8, 25, 41]), &turned, &list, &protocol);
        same_fits(&one, &two, &spec);
    }
    // Ready-made matrices, repaired: only those values may differ that involve a test row.
    let matrix = |x: &Dataset| -> Vec<f64> {
        let x = x.features();
        let value = |i: usize, j: usize| {
            (0..cols).map(|k| (x[(i, k)] - x[(j, k)]).abs().sqrt()).sum::<f64>()
        };
        (0..44 * 44).map(|at| -value(at / 44, at % 44)).collect()
    };
    let (first, second) = (matrix(&x), matrix(&other));
    let stack = |data| Source::Ready(Stack { rows: 44, cols: 44, terms: 1, data });
    for indefinite in [Indefinite::Shift, Indefinite::Clip, Indefinite::Flip] {
        let spec = TrainSpec { indefinite, ..plain() };
        let list = competing("l1", &spec, "C=1|10", &y);
        let run = |source, y| {
            Study::new(source, y, &protocol).compare(&list, &Journal::none()).unwrap().unwrap()
        };
        same_fits(&run(stack(&first), &y), &run(stack(&second), &turned), &spec);
    }
}

/// The same was chosen and learned.
fn same_fits(one: &Comparison, two: &Comparison, spec: &TrainSpec) {
    for (a, b) in one.runs.iter().zip(&two.runs) {
        assert_eq!((&a.error, &b.error), (&None, &None), "{} {spec:?}", a.method);
        assert_eq!(
            (&a.chosen, &a.weights, a.gap),
            (&b.chosen, &b.weights, b.gap),
            "{} {spec:?}",
            a.method
        );
    }
}

/// Labels that mean nothing cannot be predicted, whatever is chosen: the mean accuracy of every
/// method stays at one half.
#[test]
fn random_labels_give_chance_level() {
    let mut rng = Rng::new(11);
    let n = 60;
    let x = Matrix::new(n, 5, (0..5 * n).map(|_| rng.normal()).collect()).unwrap();
    let x = Dataset::new(x, vec![]).unwrap();
    let labels: Vec<&str> = (0..n).map(|_| if rng.uniform() < 0.5 { "a" } else { "b" }).collect();
    let y = Target::classes(&labels);
    let protocol = Protocol {
        folds: 2,
        ..Protocol::new(Splitting::Random { train: 0.5, repeats: 6 }, Metric::BalancedAccuracy, 2)
    };
    for (preprocess, normalize) in [
        ("", Normalize::Multiplicative),
        ("snv", Normalize::Trace),
        ("average(2), difference(1, keep)", Normalize::Center),
        ("difference(1)", Normalize::Spherical),
    ] {
        let spec = TrainSpec {
            preprocess: preprocess.into(),
            normalize,
            ..base("rbf(1|3), linear on all, each")
        };
        let result = run(&x, &y, &competing("all", &spec, "C=0.1|10", &y), &protocol);
        assert_eq!(result.lines.len(), mercer::request::catalogue().len() + 1);
        for line in &result.lines {
            // 180 predictions on 60 rows: a standard error of about 0.06 where rows overlap.
            let mean = line.mean.unwrap();
            assert!((mean - 0.5).abs() < 0.17, "{} {preprocess}: {mean}", line.method);
            assert!(line.adjusted.is_none_or(|p| p > 0.01), "{}: {:?}", line.method, line.adjusted);
        }
    }
}

/// Stops after some runs, as a crash would, but for the line being written.
struct StopAfter {
    left: AtomicUsize,
}

impl Watch for StopAfter {
    fn stopped(&self) -> bool {
        self.left.load(Ordering::SeqCst) == 0
    }

    fn done(&self, _: &str, _: f64) {
        // A second thread may be done after the last one that was wanted: below zero there is nothing.
        let _ =
            self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
    }
}

#[test]
fn an_interrupted_comparison_goes_on_and_ends_the_same() {
    let (x, y) = synthetic::toy1(60, 1);
    let list = competing("l1, gmkl(v=0.5)", &base("rbf(1|3) on all, cols(1-4)"), "C=1|10", &y);
    let protocol = Protocol::new(Splitting::Random { train: 0.5, repeats: 4 }, Metric::Accuracy, 1);
    let source = Source::Table(&x);
    let key = Study::new(source, &y, &protocol).key(&list);
    let path = temporary("compare-journal");
    for stop_after in [3, 4] {
        let journal = Journal::open(&path, &key).unwrap();
        let watch = StopAfter { left: AtomicUsize::new(stop_after) };
        // On one thread: with more, runs that are under way when the word comes are finished and
        // kept.
        let work = || {
            Study { watch: &watch, ..Study::new(source, &y, &protocol) }
                .compare(&list, &journal)
                .unwrap()
        };
        assert!(threads::install(Some(1), work).is_none());
    }
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text.lines().count(), 1 + 7);
    let journal = Journal::open(&path, &key).unwrap();
    assert_eq!(journal.len(), 7);
    let resumed = Study::new(source, &y, &protocol).compare(&list, &journal).unwrap().unwrap();
    drop(journal);
    // What was journalled is not fitted again: its seconds come back to the last bit.
    let journal = Journal::open(&path, &key).unwrap();
    let again = Study::new(source, &y, &protocol).compare(&list, &journal).unwrap().unwrap();
    assert_eq!(serde_json::to_string(&resumed).unwrap(), serde_json::to_string(&again).unwrap());
    let whole = threads::install(Some(3), || run(&x, &y, &list, &protocol));
    assert_eq!(timeless(resumed), timeless(whole));
    // Other data, another journal.
    let (other, y2) = synthetic::toy1(60, 2);
    assert_ne!(key, Study::new(Source::Table(&other), &y2, &protocol).key(&list));
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn a_real_difference_is_found_and_a_verdict_says_so() {
    let (x, y) = synthetic::toy1(240, 4);
    let list = competing("gmkl(v=0.9)", &base("rbf(1|2) on each"), "C=1|10", &y);
    let protocol = Protocol::new(Splitting::Random { train: 0.5, repeats: 8 }, Metric::Accuracy, 1);
    let result = run(&x, &y, &list, &protocol);
    assert_eq!(
        result.lines.iter().map(|l| l.method.as_str()).collect::<Vec<_>>(),
        ["uniform", "single", "gmkl(v=0.9)"]
    );
    let (uniform, sparse) = (&result.lines[0], &result.lines[2]);
    assert_eq!((uniform.selected, uniform.total), (40.0, 40));
    assert!(sparse.selected < 40.0 && sparse.runs == 8);
    let versus = sparse.versus_uniform.unwrap();
    assert!((versus.difference - (sparse.mean.unwrap() - uniform.mean.unwrap())).abs() < 1e-12);
    assert!(versus.corrected >= versus.t_test);
    assert!(sparse.adjusted >= versus.corrected);
    // The class depends on x1, x2, x3: their kernels come out most often.
    let stable = &result.stability[2];
    assert!(
        stable.kernels[0].frequency > 0.7
            && ["x1", "x2", "x3"].iter().any(|c| stable.kernels[0].kernel.ends_with(c))
    );
    assert!(!result.interchangeable.is_empty() && result.aligned.is_some());
    assert!(result.verdict[1].contains("equal weights"), "{:?}", result.verdict);
    let line = &result.lines[2];
    assert_eq!(line.confusion.as_ref().unwrap().iter().flatten().sum::<usize>(), 8 * 120);
    assert!(line.roc.first() == Some(&(0.0, 0.0)) && line.roc.last() == Some(&(1.0, 1.0)));
    assert_page(
        ReportData { title: "<b>".into(), comparison: Some(result), ..ReportData::default() },
        &["ROC", "Wilcoxon"],
    );
}

/// The page has these parts, survives its JSON, and shows neither NaN nor raw text as markup.
fn assert_page(data: ReportData, parts: &[&str]) {
    let page = report::html(&data);
    assert!(
        parts.iter().all(|p| page.contains(p)) && !page.contains("NaN") && !page.contains("<b>")
    );
    let again: ReportData = serde_json::from_str(&serde_json::to_string(&data).unwrap()).unwrap();
    assert_eq!(report::html(&again), page);
}

#[test]
fn values_groups_and_other_splits() {
    let (x, y) = synthetic::sinc(60, 0.1, 1).unwrap();
    let list = competing("l2", &base("rbf(0.1|1|10) on all"), "C=1|10", &y);
    let groups: Vec<usize> = (0..60).map(|i| i / 6).collect();
    for splitting in [
        Splitting::Folds { folds: 3, repeats: 2 },
        Splitting::Time { folds: 3 },
        Splitting::Random { train: 0.7, repeats: 3 },
    ] {
        let protocol = Protocol::new(splitting, Metric::Nmse, 1);
        let result =
            Study { groups: Some(&groups), ..Study::new(Source::Table(&x), &y, &protocol) }
                .compare(&list, &Journal::none())
                .unwrap()
                .unwrap();
        assert!(!result.higher_is_better && result.lines.iter().all(|l| l.runs == result.splits));
        assert!(!result.lines[0].residuals.is_empty() && result.classes.is_none());
    }
    let loo = Protocol::new(Splitting::LeaveOneOut, Metric::Mae, 1);
    assert_eq!(run(&x, &y, &list[..1], &loo).splits, 60);
    let wrong = Protocol::new(Splitting::LeaveOneOut, Metric::Rmse, 1);
    assert!(wrong.check(&y).is_err() && loo.check(&Target::classes(&["a"])).is_err());
}

#[test]
fn tuning_finds_the_setting_that_predicts_best_and_can_be_resumed() {
    let (x, y) = synthetic::toy1(120, 2);
    let spec = TrainSpec {
        method: mercer::request::MethodSpec::named("gmkl").unwrap(),
        ..base("rbf(1|2) on all, each")
    };
    let grid = Grid::parse("C=0.001|1|10; v=0.1|0.9", &spec.method).unwrap();
    let contender = Contender { label: "gmkl".into(), spec, grid };
    let protocol = Protocol::new(Splitting::Folds { folds: 4, repeats: 1 }, Metric::Accuracy, 3);
    let source = Source::Table(&x);
    let plain =
        Study::new(source, &y, &protocol).tune(&contender, &Journal::none()).unwrap().unwrap();
    assert_eq!(plain.settings.len(), 6);
    let best = &plain.settings[plain.best];
    assert!(plain.settings.iter().all(|s| s.mean <= best.mean && s.scores.len() == 4));
    assert!(best.parameters.iter().all(|(_, v)| v != "0.001"), "{best:?}");
    let path = temporary("tune-journal");
    let key = Study::new(source, &y, &protocol).key(&contender);
    let watch = StopAfter { left: AtomicUsize::new(3) };
    assert!(
        Study { watch: &watch, ..Study::new(source, &y, &protocol) }
            .tune(&contender, &Journal::open(&path, &key).unwrap())
            .unwrap()
            .is_none()
    );
    let journal = Journal::open(&path, &key).unwrap();
    let resumed = Study::new(source, &y, &protocol).tune(&contender, &journal).unwrap().unwrap();
    assert_eq!((&resumed.settings, resumed.best), (&plain.settings, plain.best));
    let eager = Protocol { abandon: Some(0.05), ..protocol };
    let found = Study::new(source, &y, &eager).tune(&contender, &Journal::none()).unwrap().unwrap();
    assert!(found.settings.iter().any(|s| s.scores.contains(&None)));
    assert!(found.settings[found.best].scores.iter().all(Option::is_some));
    assert_page(
        ReportData { tuning: Some(found), ..ReportData::default() },
        &["Settings", "The grid"],
    );
    std::fs::remove_file(&path).unwrap();
}
