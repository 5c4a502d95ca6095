//! Drives the built program over temporary files, as a user would.

mod certificates;
mod folder;
mod outputs;
mod progress;
mod refusals;
mod views;

use std::{
    fmt::Write as _,
    fs,
    process::{Command, Stdio},
};

use folder::{Folder, Run};
use mercer::data::Rng;

/// Two classes, inside and outside a circle in x1 and x2; x3 is noise.
fn circle(n: usize, seed: u64) -> String {
    let mut rng = Rng::new(seed);
    let mut text = String::from("x1,x2,x3,class\n");
    for _ in 0..n {
        let x: [f64; 3] = std::array::from_fn(|_| 2.0 * rng.uniform() - 1.0);
        let class = if x[0] * x[0] + x[1] * x[1] < 0.6 { "in" } else { "out" };
        let _ = writeln!(text, "{},{},{},{class}", x[0], x[1], x[2]);
    }
    text
}

/// y = sin(3 a) + noise; b says nothing.
fn wave(n: usize, seed: u64) -> String {
    let mut rng = Rng::new(seed);
    let mut text = String::from("a,b,weight,y\n");
    for _ in 0..n {
        let (a, b) = (2.0 * rng.uniform() - 1.0, rng.uniform());
        let _ = writeln!(
            text,
            "{a},{b},{},{}",
            0.5 + rng.uniform(),
            (3.0 * a).sin() + 0.05 * rng.normal()
        );
    }
    text
}

/// Three classes, a third of the line each.
fn thirds(n: usize) -> String {
    let mut rng = Rng::new(5);
    let mut text = String::from("x,z,kind\n");
    for _ in 0..n {
        let x = 3.0 * rng.uniform();
        let _ = writeln!(
            text,
            "{x},{},{}",
            rng.uniform(),
            ["low", "\"mid, or so\"", "top"][x as usize]
        );
    }
    text
}

const BANK: &str = "--kernels 'rbf(0.5|1|2), poly(1..2) on all, each'";

fn circle_fit(folder: &Folder) -> Run {
    folder.write("train.csv", &circle(120, 1)).write("test.csv", &circle(400, 2));
    folder.run(&format!("fit train.csv --target class -C 10 {BANK} -o m.mercer")).exits(0)
}

#[test]
fn help_names_every_command_and_option() {
    let folder = Folder::new("help");
    let help = folder.run("--help").exits(0).out;
    for command in ["demo", "fit", "predict", "score", "inspect", "verify", "methods", "kernels"] {
        assert!(help.contains(&format!("  {command} ")), "{command}");
        folder.run(&format!("{command} --help")).exits(0);
    }
    assert!(help.contains("Exit codes: 0 done; 1 tolerance not reached"));
    let help = folder.run("fit --help").exits(0).out;
    let options = "target method kernels v p solver penalty eps folds seed loss multi-class shared-weights no-intercept group-by penalties \
                   epsilon normalize no-standardize no-scale-target class-weight task columns exclude weight-column tol max-iter memory approx storage threads time-limit report report-folds strict json quiet verbose output";
    for option in options.split_whitespace() {
        assert!(help.contains(&format!("--{option}")), "{option}");
    }
    for line in [
        "",
        "fitt",
        "fit",
        "fit a.csv --target y --loss hinges",
        "fit a.csv --target y --memory 4X",
        "score m d",
    ] {
        folder.run(line).exits(2);
    }
    assert!(folder.run("--version").exits(0).out.starts_with("mercer "));
}

#[test]
fn fit_inspect_predict_score_round_trip() {
    let folder = Folder::new("round_trip");
    let fit = circle_fit(&folder);
    assert!(
        fit.out.contains("optimal") && fit.out.contains("model saved to m.mercer"),
        "{}",
        fit.out
    );
    assert_eq!(fit.err, "", "no progress where nobody looks");
    assert_eq!(folder.names(), ["m.mercer", "test.csv", "train.csv"], "no temporary file is left");

    let inspect = folder.run("inspect m.mercer").exits(0).out;
    assert!(inspect.contains("poly(2)") && inspect.contains("3 columns: x1, x2, x3"), "{inspect}");
    let value = folder.run("inspect m.mercer --all --json").exits(0).json();
    assert_eq!(value["status"], "optimal");
    assert!(value["gap"].as_f64().unwrap() <= 1e-3);
    assert_eq!(value["machines"][0]["weights"].as_array().unwrap().len(), 20);
    assert_eq!(value["kernels"]["total"], 20);
    assert_eq!(value["task"]["classes"], serde_json::json!(["in", "out"]));

    let csv = folder.run("predict m.mercer test.csv --decision").exits(0).out;
    assert_eq!((csv.lines().next(), csv.lines().count()), (Some("prediction,decision"), 401));
    folder.run("predict m.mercer test.csv --decision -o out.csv").exits(0);
    assert_eq!(fs::read_to_string(folder.0.join("out.csv")).unwrap(), csv);
    let value = folder.run("predict m.mercer test.csv --json").exits(0).json();
    assert_eq!(value["predictions"].as_array().unwrap().len(), 400);

    let text = folder.run("score m.mercer test.csv --target class").exits(0).out;
    assert!(
        ["accuracy", "balanced accuracy", "AUC", "MCC", "F1"].iter().all(|m| text.contains(m)),
        "{text}"
    );
    let scores = folder.run("score m.mercer test.csv --target class --json").exits(0).json();
    // 120 rows draw a circle to within a tenth of new rows.
    assert!(scores["scores"]["accuracy"].as_f64().unwrap() > 0.9, "{scores}");
    assert!(scores["scores"]["auc"].as_f64().unwrap() > 0.95, "{scores}");
}

#[test]
fn numbers_are_regressed_on_and_rows_can_be_weighted() {
    let folder = Folder::new("regression");
    folder.write("train.csv", &wave(120, 3)).write("test.csv", &wave(60, 4));
    let line = "fit train.csv --target y --weight-column weight --exclude b -C 10 --kernels 'rbf(0.5|1)' -o m.mercer --json";
    let value = folder.run(line).exits(0).json();
    assert_eq!(value["columns"], serde_json::json!(["a"]));
    assert_eq!(value["task"]["kind"], "regression");
    let scores = folder.run("score m.mercer test.csv --target y --json").exits(0).json();
    assert!(scores["scores"]["r2"].as_f64().unwrap() > 0.9, "{scores}");
    assert!(scores["scores"]["rmse"].as_f64().unwrap() < 0.2, "{scores}");
    folder
        .run("fit train.csv --target y --columns a,b --loss squared -C 10 -o m2.mercer -q")
        .exits(0);
    assert_eq!(
        folder.run("inspect m2.mercer --json").exits(0).json()["columns"],
        serde_json::json!(["a", "b"])
    );
}

#[test]
fn several_classes_have_a_machine_each() {
    let folder = Folder::new("classes");
    folder.write("train.csv", &thirds(90));
    folder
        .run("fit train.csv --target -1 -C 10 --class-weight 'low=2' --kernels 'rbf(0.5|1) on all, each' -o m.mercer")
        .exits(0);
    let value = folder.run("inspect m.mercer --json").exits(0).json();
    assert_eq!(value["machines"].as_array().unwrap().len(), 3);
    let csv = folder.run("predict m.mercer train.csv --decision").exits(0).out;
    assert_eq!(
        csv.lines().next(),
        Some("prediction,decision_low,\"decision_mid, or so\",decision_top")
    );
    assert!(csv.contains("\n\"mid, or so\","), "a class name with a comma is quoted");
    let scores = folder.run("score m.mercer train.csv --target kind --json").exits(0).json();
    assert!(
        scores["scores"]["accuracy"].as_f64().unwrap() > 0.9
            && scores["scores"]["macro_f1"].is_f64(),
        "{scores}"
    );
}

const THIRDS: &str =
    "fit train.csv --target kind -C 10 --kernels 'rbf(0.5|1) on all, each' -o m.mercer";

#[test]
fn classes_in_pairs_and_shared_weights() {
    let folder = Folder::new("pairs");
    folder.write("train.csv", &thirds(90));
    let fit = |rest: &str| folder.run(&format!("{THIRDS} {rest} --json")).exits(0).json();
    let pairs = fit("--multi-class ovo");
    assert_eq!(pairs["machines"][1]["name"], "low or top");
    let sum: f64 =
        (0..3).map(|k| pairs["machines"][k]["certificate"]["primal"].as_f64().unwrap()).sum();
    assert!((pairs["certificate"]["primal"].as_f64().unwrap() - sum).abs() < 1e-9 * sum, "{pairs}");
    let text = folder.run("inspect m.mercer").exits(0).out;
    for part in ["low or mid, or so", "a machine for each pair", "\ntogether "] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    // Votes, one column per class.
    let csv = folder.run("predict m.mercer train.csv --decision").exits(0).out;
    assert_eq!(
        csv.lines().next(),
        Some("prediction,decision_low,\"decision_mid, or so\",decision_top")
    );
    let scores = folder.run("score m.mercer train.csv --target kind --json").exits(0).json();
    assert!(
        scores["scores"]["accuracy"].as_f64().unwrap() > 0.9 && scores["scores"]["auc"].is_f64(),
        "{scores}"
    );

    for scheme in ["ovr", "ovo"] {
        let shared = fit(&format!("--multi-class {scheme} --shared-weights"));
        assert_eq!(shared["shared_weights"], true);
        assert_eq!(shared["status"], "optimal");
        assert!(shared["certificate"]["gap"].as_f64().unwrap() <= 1e-3, "{shared}");
        assert_eq!(shared["machines"][0]["weights"], shared["machines"][2]["weights"]);
        let text = folder.run("inspect m.mercer --report r.html").exits(0).out;
        assert!(text.contains("weight\n") && text.contains("together (shared weights)"), "{text}");
    }
}

#[test]
fn score_tells_how_each_class_fares() {
    let folder = Folder::new("class_scores");
    folder.write("train.csv", &thirds(90));
    folder.run(THIRDS).exits(0);
    let text = folder.run("score m.mercer train.csv --target kind").exits(0).out;
    for part in ["class       rows  precision  recall", "true \\ predicted  low  mid, or so  top"] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let value = folder.run("score m.mercer train.csv --target kind --json").exits(0).json();
    let rows: u64 = (0..3).map(|k| value["classes"][k]["rows"].as_u64().unwrap()).sum();
    let counts: u64 = value["confusion"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|r| r.as_array().unwrap())
        .map(|c| c.as_u64().unwrap())
        .sum();
    assert_eq!((rows, counts), (90, 90), "{value}");
    assert!(value["classes"][1]["recall"].as_f64().unwrap() > 0.8, "{value}");
}

#[test]
fn every_method_fits_and_is_verified() {
    let folder = Folder::new("methods");
    folder.write("train.csv", &circle(120, 1)).write("test.csv", &circle(400, 2));
    let mut selected = Vec::new();
    for method in [
        "uniform",
        "single",
        "l1",
        "l2",
        "lp --p 1.5",
        "lp --p inf",
        "gmkl --v 0.3",
        "smkl",
        "smkl --penalty gl --eps 1e-3",
    ] {
        let value = folder
            .run(&format!(
                "fit train.csv --target class -C 10 {BANK} --method {method} -o m.mercer --json"
            ))
            .exits(0)
            .json();
        let expected = if method.starts_with("smkl") { "stationary" } else { "optimal" };
        assert_eq!(value["status"], expected, "{method}");
        let scores = folder.run("score m.mercer test.csv --target class --json").exits(0).json();
        assert!(scores["scores"]["accuracy"].as_f64().unwrap() > 0.85, "{method}: {scores}");
        let found = folder.run("verify m.mercer train.csv --target class --json").exits(0).json();
        assert_eq!(found["verified"], true, "{method}: {found}");
        assert_eq!(
            found["recomputed"]["gap"].is_null(),
            expected == "stationary",
            "{method}: {found}"
        );
        selected.push((method, value["kernels"]["selected"].as_u64().unwrap()));
    }
    let count = |name: &str| selected.iter().find(|(m, _)| *m == name).unwrap().1;
    assert_eq!((count("single"), count("uniform"), count("lp --p inf")), (1, 20, 20));
    assert!(count("smkl") <= count("l1") && count("l1") < count("l2"), "{selected:?}");
}

#[test]
fn kernels_share_weights_and_have_penalties() {
    let folder = Folder::new("groups");
    folder.write("train.csv", &circle(120, 1));
    let fit = |rest: &str| {
        folder.run(&format!("fit train.csv --target class -C 10 {rest} -o m.mercer --json"))
    };
    let value = fit("--kernels 'rbf(0.5|1|2) on each' --group-by scope").exits(0).json();
    let weights = value["machines"][0]["weights"].as_array().unwrap();
    assert!(weights.len() % 3 == 0 && weights[0]["weight"] == weights[2]["weight"], "{value}");
    folder.run("verify m.mercer train.csv --target class").exits(0);
    let value = fit("--kernels 'linear on each' --method l2 --penalties 1,1,100").exits(0).json();
    let dear = value["machines"][0]["weights"]
        .as_array()
        .unwrap()
        .iter()
        .find(|w| w["kernel"] == "linear on x3");
    assert!(dear.is_none_or(|w| w["weight"].as_f64().unwrap() < 0.01), "{value}");
    folder.run("verify m.mercer train.csv --target class").exits(0);
    fit("--kernels 'linear on each' --penalties 1,2").refuses_in_one_line("penalties");
    fit("--kernels 'linear on each' --method single --group-by scope")
        .refuses_in_one_line("group_by");
}

#[test]
fn approximations_are_declared_told_and_verified() {
    let folder = Folder::new("approx");
    circle_fit(&folder);
    for (approx, told, measure) in [
        ("nystrom(10)", "nystrom(10): relative trace lost", "trace"),
        ("rff(50)", "rff(50): root mean square error of k(x, z)", "pairs"),
    ] {
        let fit = format!(
            "fit train.csv --target class -C 10 {BANK} --approx '{approx}' --seed 4 -o a.mercer"
        );
        let text = folder.run(&format!("{fit} --report a.html --report-folds 0")).exits(0).out;
        assert!(
            text.contains(&format!("approx     {told}")) && text.contains("  error\n"),
            "{text}"
        );
        assert!(fs::read_to_string(folder.0.join("a.html")).unwrap().contains(told));
        let shown = folder.run("inspect a.mercer --json").exits(0).json();
        let errors = shown["approximation"].as_array().unwrap();
        assert_eq!(errors.len(), 20);
        assert!(errors.iter().any(|e| e["measure"] == measure), "{errors:?}");
        assert_eq!(
            (&shown["spec"]["approx"], &shown["spec"]["approx_seed"]),
            (&approx.into(), &4.into())
        );
        folder.run("verify a.mercer train.csv --target class").exits(0);
        folder.run("predict a.mercer test.csv").exits(0);
    }
    for (wrong, said) in
        [("nystrom(0)", "at least 1"), ("rff(3)", "even"), ("nystrom", "nystrom(r) or rff(r)")]
    {
        let run = folder.run(&format!("fit train.csv --target class --approx '{wrong}'")).exits(2);
        assert!(run.err.contains(said), "{}", run.err);
    }
    folder
        .run("tune train.csv --target class --kernels 'rbf(1)' --approx 'nystrom(10)' --grid 'C=1|10' --folds 2")
        .exits(0);
}

#[test]
fn settings_can_be_left_to_cross_validation() {
    let folder = Folder::new("auto");
    folder.write("train.csv", &circle(100, 2));
    let fit =
        |rest: &str| folder.run(&format!("fit train.csv --target class {BANK} {rest} -o m.mercer"));
    let told = fit("-C auto --v auto --folds 3 --seed 4").exits(0).out;
    assert!(told.contains("(like v by cross-validation)"), "{told}");
    let spec = folder.run("inspect m.mercer --json").exits(0).json()["spec"].clone();
    let (c, v) = (spec["c"].to_string(), spec["method"]["v"].to_string());
    let again = fit(&format!("-C {c} --v {v} --json")).exits(0).json();
    folder.run("verify m.mercer train.csv --target class").exits(0);
    let auto = fit("-C auto --v auto --folds 3 --seed 4 --json").exits(0).json();
    assert_eq!(auto["machines"], again["machines"]);
    fit("-C auto --method smkl").exits(0);
    fit("-C auto --method single --seed 1").exits(0);
    fit("--method uniform --v auto").refuses_in_one_line("`v`");
    fit("-C auto --folds 1").refuses_in_one_line("folds");
    fit("--folds 3").refuses_in_one_line("`folds`");
}

#[test]
fn roads_and_aliases_agree() {
    let folder = Folder::new("roads");
    folder.write("train.csv", &circle(100, 3));
    let objective = |rest: &str| {
        let line = format!(
            "fit train.csv --target class -C 10 {BANK} --tol 1e-6 --max-iter 5000 {rest} -o m.mercer --json"
        );
        folder.run(&line).exits(0).json()["certificate"]["primal"].as_f64().unwrap()
    };
    let l1 = objective("--method l1");
    for other in [
        "lp --p 1",
        "gmkl --v 1",
        "lp --p 1 --solver silp",
        "l1 --solver reduced-gradient",
        "l1 --solver level",
    ] {
        let value = objective(&format!("--method {other}"));
        assert!((value - l1).abs() < 3e-6 * l1, "{other}: {value} {l1}");
    }
    let l2 = objective("--method l2");
    assert!((l2 - objective("--method gmkl --v 0")).abs() < 3e-6 * l2);
}

#[test]
fn logistic_models_give_probabilities() {
    let folder = Folder::new("probabilities");
    folder.write("train.csv", &thirds(90)).write("circle.csv", &circle(80, 1));
    for scheme in ["ovr", "ovo"] {
        folder.run(&format!("{THIRDS} --loss logistic --multi-class {scheme}")).exits(0);
        let csv = folder.run("predict m.mercer train.csv --probabilities").exits(0).out;
        assert_eq!(
            csv.lines().next(),
            Some("prediction,probability_low,\"probability_mid, or so\",probability_top")
        );
        let value = folder
            .run("predict m.mercer train.csv --probabilities --decision --json")
            .exits(0)
            .json();
        for row in value["probabilities"].as_array().unwrap() {
            let sum: f64 = row.as_array().unwrap().iter().map(|p| p.as_f64().unwrap()).sum();
            assert!((sum - 1.0).abs() < 1e-12, "{row}");
        }
        assert_eq!(value["decision"][0].as_array().unwrap().len(), 3);
    }
    folder
        .run(&format!(
            "fit circle.csv --target class {BANK} --loss logistic --no-intercept -o m.mercer"
        ))
        .exits(0);
    let csv = folder.run("predict m.mercer circle.csv --probabilities").exits(0).out;
    assert_eq!(csv.lines().next(), Some("prediction,probability_in,probability_out"));
    assert_eq!(
        folder.run("inspect m.mercer --json").exits(0).json()["machines"][0]["intercept"],
        0.0
    );
    folder
        .run(&format!("fit circle.csv --target class {BANK} --loss squared_hinge -o m.mercer -q"))
        .exits(0);
    folder.run("predict m.mercer circle.csv --probabilities").refuses_in_one_line("squared_hinge");
}

#[test]
fn reports_are_written_whole() {
    let folder = Folder::new("reports");
    circle_fit(&folder);
    folder
        .run(&format!(
            "fit train.csv --target class {BANK} --method uniform --report fit.html -o u.mercer -q"
        ))
        .exits(0);
    folder.run("inspect m.mercer --report inspect.html").exits(0);
    let page = |name: &str| fs::read_to_string(folder.0.join(name)).unwrap();
    for name in ["fit.html", "inspect.html"] {
        let page = page(name);
        assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"), "{name}");
        assert!(page.contains("What was learned") && !page.contains("NaN"), "{name}");
    }
    // Rows held out, beside equal weights; what is left to cross-validation is chosen inside.
    for (options, parameters) in
        [("-C 10", "as given"), ("-C auto", "chosen in each training part")]
    {
        let line = format!(
            "fit train.csv --target class {BANK} --method l1 {options} --report held.html -o h.mercer -q"
        );
        folder.run(&line).exits(0);
        let page = page("held.html");
        for part in [
            "On rows held out",
            "5 folds",
            parameters,
            ">ROC<",
            "Confusion matrix",
            "Kernels over the splits",
            "uniform",
        ] {
            assert!(page.contains(part), "{options}: {part}");
        }
        assert!(!page.contains("are of the training rows") && !page.contains("NaN"), "{options}");
    }
    let line = format!(
        "fit train.csv --target class {BANK} --report-folds 0 --report plain.html -o h.mercer -q"
    );
    folder.run(&line).exits(0);
    assert!(
        page("plain.html").contains("are of the training rows")
            && !page("plain.html").contains("On rows held out")
    );
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let folder = Folder::new("threads");
    folder.write("train.csv", &circle(120, 1));
    let [one, two] = ["1", "2"].map(|n| {
        let line = format!(
            "fit train.csv --target class -C 10 {BANK} --threads {n} --json -o m{n}.mercer"
        );
        folder.run(&line).exits(0).json()["machines"].clone()
    });
    assert_eq!(one, two);
}

#[test]
fn not_converging_is_a_status_and_strict_makes_it_an_exit_code() {
    let folder = Folder::new("strict");
    folder.write("train.csv", &circle(120, 1));
    let line = format!(
        "fit train.csv --target class -C 10 {BANK} --max-iter 1 --tol 1e-10 -o m.mercer --json"
    );
    assert_eq!(folder.run(&line).exits(0).json()["status"], "max_iterations");
    fs::remove_file(folder.0.join("m.mercer")).unwrap();
    folder.run(&format!("{line} --strict")).exits(1);
    folder.run("inspect m.mercer").exits(0);
    let loose = format!("fit train.csv --target class {BANK} --strict -q -o m.mercer");
    assert_eq!(folder.run(&loose).exits(0).out, "");
}

#[test]
fn listings() {
    let folder = Folder::new("listings");
    let methods = folder.run("methods").exits(0).out;
    assert!(
        ["uniform", "gmkl", "lp", "single", "smkl"].iter().all(|name| methods.contains(name)),
        "{methods}"
    );
    let value = folder.run("methods --json").exits(0).json();
    assert!(value["methods"].as_array().unwrap().iter().any(|m| m["name"] == "gmkl"));
    assert!(folder.run("kernels").exits(0).out.contains("rbf(widths)"));
    let canonical = folder
        .run("kernels --check ' rbf( 1|2 ),linear  on each' --json")
        .exits(0)
        .json()["canonical"]
        .clone();
    let again =
        folder.run(&format!("kernels --check '{}'", canonical.as_str().unwrap())).exits(0).out;
    assert_eq!(
        again.trim_end(),
        canonical.as_str().unwrap(),
        "the canonical form is its own canonical form"
    );
    let named = folder.run("kernels --check 'auto; rbf(deviation) on each'").exits(0).out;
    assert_eq!(named.trim_end(), "auto; rbf(deviation) on each");
}

#[test]
fn demo_tells_the_columns_that_matter() {
    let folder = Folder::new("demo");
    let run = folder.run("demo --out r.html").exits(0);
    for text in [
        "uniform",
        "single",
        "l2",
        "gmkl",
        "l1",
        "smkl",
        "optimal",
        "stationary",
        "report in r.html",
    ] {
        assert!(run.out.contains(text), "{text}\n{}", run.out);
    }
    assert_eq!(folder.names(), ["r.html"]);
    assert!(fs::read_to_string(folder.0.join("r.html")).unwrap().contains("Confusion matrix"));
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let folder = Folder::new("pipe");
    for line in ["kernels", "methods --json", "--help"] {
        let mut child =
            folder.command(line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        Run::of(line, &child.wait_with_output().unwrap()).exits(0);
    }
}

#[test]
fn verbose_tells_of_every_iteration() {
    let folder = Folder::new("verbose");
    folder.write("train.csv", &circle(60, 1));
    let run =
        folder.run(&format!("fit train.csv --target class -C 10 {BANK} -v -o m.mercer")).exits(0);
    assert!(run.err.lines().next().unwrap().starts_with("iteration 1  objective "), "{}", run.err);
    let limited = folder.run(&format!(
        "fit train.csv --target class -C 10 {BANK} --tol 1e-12 --time-limit 1e-6 --json -o m.mercer"
    ));
    assert_eq!(limited.exits(0).json()["stopped_by"], "time_limit");
}

/// The fit asks for a gap no computer reaches, so it is still running when the signal comes, which
/// is after the first iteration has been reported.
#[cfg(unix)]
#[test]
fn ctrl_c_saves_the_best_model_so_far() {
    use std::io::{BufRead as _, BufReader, Read as _};

    let folder = Folder::new("ctrl_c");
    folder.write("train.csv", &circle(1000, 1));
    let line = "fit train.csv --target class -C 100 --kernels paper --tol 1e-15 --max-iter 1000000 -v -o m.mercer";
    let mut child =
        folder.command(line).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut err = BufReader::new(child.stderr.take().unwrap());
    let mut first = String::new();
    err.read_line(&mut first).unwrap();
    assert!(first.starts_with("iteration 1 "), "{first}");
    assert!(
        Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success()
    );
    let mut rest = String::new();
    err.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{rest}");
    assert!(rest.contains("interrupted: saving the best model so far"), "{rest}");
    assert_eq!(folder.run("inspect m.mercer --json").exits(0).json()["status"], "stopped");
}

/// DNA whose class is whether it holds GATTACA, and a number that says nothing.
fn splice(n: usize, seed: u64) -> String {
    let mut rng = Rng::new(seed);
    let mut text = String::from("noise,dna,class\n");
    for i in 0..n {
        let mut dna: String = (0..40).map(|_| ['A', 'C', 'G', 'T'][rng.below(4)]).collect();
        let at = rng.below(33);
        if i % 2 == 0 {
            dna.replace_range(at..at + 7, "GATTACA");
        }
        let _ =
            writeln!(text, "{},{dna},{}", rng.normal(), if i % 2 == 0 { "site" } else { "none" });
    }
    text
}

#[test]
fn sequences_are_fitted_predicted_and_diagnosed_from_a_csv() {
    let folder = Folder::new("sequences");
    folder.write("train.csv", &splice(120, 1)).write("test.csv", &splice(100, 2));
    let bank = "--kernels 'linear; spectrum(3..6), wd(1..3) on cols(dna)'";
    folder
        .run(&format!("fit train.csv --target class -C 10 {bank} -o m.mercer --report r.html"))
        .exits(0);
    let value = folder.run("score m.mercer test.csv --target class --json").exits(0).json();
    assert!(value["scores"]["accuracy"].as_f64().unwrap() > 0.8, "{value}");
    assert_eq!(folder.run("predict m.mercer test.csv").exits(0).out.lines().count(), 101);
    assert!(folder.run("inspect m.mercer").exits(0).out.contains("spectrum(5, dna) on dna"));
    assert!(
        folder.run("verify m.mercer train.csv --target class").exits(0).out.contains("verified")
    );
    assert!(fs::read_to_string(folder.0.join("r.html")).unwrap().contains("How kernels align"));
    folder.write("numbers.csv", "noise,dna,class\n1,2,site\n");
    folder
        .run("predict m.mercer numbers.csv")
        .refuses_in_one_line("column `dna`: holds numbers where the model needs text");

    let text = folder
        .run(&format!("kernels train.csv --target class {bank} --report k.html"))
        .exits(0)
        .out;
    assert!(
        text.starts_with("120 rows, 8 kernels\n") && text.contains("kernels most alike"),
        "{text}"
    );
    assert!(fs::read_to_string(folder.0.join("k.html")).unwrap().contains("How kernels align"));
    let value =
        folder.run(&format!("kernels train.csv --target class {bank} --json")).exits(0).json();
    let alignment = |t: usize| value["kernels"][t]["alignment"].as_f64().unwrap();
    assert!(alignment(0) < 0.1 && alignment(3) > 2.0 * alignment(0), "{value}");
    assert_eq!(value["between"][2][2], 1.0);
    folder.run("kernels train.csv").exits(2);
    for method in ["align", "alignf"] {
        folder
            .run(&format!(
                "fit train.csv --target class --method {method} {bank} -o a.mercer --strict"
            ))
            .exits(0);
    }
}

#[test]
fn veto_consensus_rules_from_the_command_line() {
    let folder = Folder::new("rules");
    folder.write("train.csv", &circle(120, 1)).write("test.csv", &circle(300, 2));
    let fit = |rest: &str| {
        folder.run(&format!("fit train.csv --target class --method vcmkl -o m.mercer {rest}"))
    };
    let consensus = "--consensus in -C 10 --kernels linear";
    let value = fit(&format!("{consensus} --rules 4 --json")).exits(0).json();
    assert_eq!(value["status"], "stationary");
    assert_eq!(value["machines"].as_array().unwrap().len(), 4);
    assert_eq!(value["machines"][1]["name"], "rule 2", "{value}");
    let scores = folder.run("score m.mercer test.csv --target class --json").exits(0).json();
    assert!(scores["scores"]["accuracy"].as_f64().unwrap() > 0.85, "{scores}");
    let decisions = folder.run("predict m.mercer test.csv --decision").exits(0).out;
    assert!(decisions.starts_with("prediction,decision\n"), "{decisions}");
    assert!(folder.run("inspect m.mercer").exits(0).out.contains("rule 4"));
    let text = folder.run("verify m.mercer train.csv --target class").exits(0).out;
    assert!(text.contains("verified: "), "{text}");
    for rest in [
        "--rules 2 --solver am",
        "--rules 2 --nu 0.05",
        "--rules 2 --solver sgd --cost-ratio 4 --gamma 0.3",
        "--rules 1 --p 2",
    ] {
        fit(&format!("{consensus} {rest} --max-iter 20 --tol 0.05 -q")).exits(0);
    }
    fit("--rules 0").exits(2);
    fit("--nu 9").refuses_in_one_line("`nu`");
    fit("--solver silp").refuses_in_one_line("solver");
    fit("--consensus nobody").refuses_in_one_line("`consensus`");
    folder.run("fit train.csv --target class --rules 2").refuses_in_one_line("`n_rules`");
    folder.run("fit train.csv --target class --solver ccp").refuses_in_one_line("solver");
}
