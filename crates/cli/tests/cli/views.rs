//! The program on other data than one CSV: descriptions of views, LIBSVM text, Gram matrices,
//! preprocessing.

use std::fmt::Write as _;

use mercer::data::{Rng, array};

use crate::folder::Folder;

fn accuracy(folder: &Folder, line: &str) -> f64 {
    folder.run(&format!("{line} --json")).exits(0).json()["scores"]["accuracy"].as_f64().unwrap()
}

/// A point in the plane by two sources: `left.csv` with ids out of order, `right.csv` without some
/// of them; labels beside.
fn sources(folder: &Folder, n: usize, lacking: bool) {
    let mut rng = Rng::new(3);
    let points: Vec<[f64; 2]> = (0..n).map(|_| [rng.normal(), rng.normal()]).collect();
    let (mut labels, mut left, mut right) =
        ("id,y\n".to_string(), "id,u,v\n".to_string(), "id,w\n".to_string());
    for (i, [a, b]) in points.iter().enumerate() {
        let _ = writeln!(labels, "s{i},{}", if a * a + b > 0.5 { "far" } else { "near" });
        if !lacking || i % 9 != 4 {
            let _ = writeln!(right, "s{i},{b}");
        }
    }
    for (i, [a, b]) in points.iter().enumerate().rev() {
        let _ = writeln!(left, "s{i},{a},{}", a * b);
    }
    folder.write("labels.csv", &labels);
    folder.write("left.csv", &left);
    folder.write("right.csv", &right);
    folder.write(
        "data.toml",
        "target = \"y\"\nid = \"id\"\n[labels]\nfile = \"labels.csv\"\n[[view]]\nname = \"left\"\nfile = \"left.csv\"\n\
         kernels = \"rbf(auto), poly(2)\"\n[[view]]\nname = \"right\"\nfile = \"right.csv\"\nkernels = \"linear\"\n",
    );
}

#[test]
fn a_description_fits_scores_predicts_and_verifies() {
    let f = Folder::new("description");
    sources(&f, 160, false);
    let out = f.done("fit data.toml --rows 1-100 -C 10 -o m.mercer");
    assert!(
        out.contains("rbf(auto), poly(2) on view(left); linear on view(right)")
            && out.contains("on view left"),
        "{out}"
    );
    assert!(accuracy(&f, "score m.mercer data.toml --rows 101-160") > 0.9);
    assert_eq!(f.done("predict m.mercer data.toml --rows 101-160").lines().count(), 61);
    assert!(f.done("verify m.mercer data.toml --rows 1-100").contains("verified"));
    // What is typed goes before what the description says.
    let out = f.done("fit data.toml --kernels 'linear on view(left)' --target y --quiet --json");
    assert!(out.contains("linear on view left") && !out.contains("view right"), "{out}");
    f.run("fit data.toml --kernels 'linear on view(middle)'")
        .refuses("choose one of `left`, `right`");
    f.run("fit data.toml --rows 900-901").refuses("within 1-160");
    f.run("fit left.csv").refuses("--target");
}

#[test]
fn rows_without_a_view_are_refused_or_imputed() {
    let f = Folder::new("lacking");
    sources(&f, 160, true);
    f.run("fit data.toml")
        .refuses("view `right`: 18 of 160 rows have nothing in it, the first is row 5");
    for rule in ["zero", "mean"] {
        let out = f.done(&format!("fit data.toml --rows 1-100 --missing {rule} -C 10 -o m.mercer"));
        assert!(
            out.contains("view `right` is missing in 11 of 100 rows: kernel values were imputed"),
            "{out}"
        );
        assert!(accuracy(&f, "score m.mercer data.toml --rows 101-160") > 0.8);
        assert!(f.done("verify m.mercer data.toml --rows 1-100").contains("verified"));
    }
}

#[test]
fn libsvm_text_brings_its_target() {
    let f = Folder::new("libsvm");
    let mut rng = Rng::new(8);
    let mut text = String::new();
    for _ in 0..150 {
        let on: Vec<usize> = (1..=12).filter(|_| rng.below(3) == 0).collect();
        let label = if on.iter().filter(|&&j| j <= 6).count() > 2 { "+1" } else { "-1" };
        let _ = writeln!(
            text,
            "{label} {}",
            on.iter().map(|j| format!("{j}:1")).collect::<Vec<_>>().join(" ")
        );
    }
    f.write("d.svm", &text);
    f.done("fit d.svm --rows 1-100 --kernels 'linear, rbf(1) on cols(1-6), cols(7-12)' -C 10 -o m.mercer --quiet");
    assert!(accuracy(&f, "score m.mercer d.svm --rows 101-150") > 0.85);
    assert!(f.done("verify m.mercer d.svm --rows 1-100").contains("verified"));
    f.write("bad.svm", "1 2:1\n-1 3:1 x\n");
    f.run("fit bad.svm").refuses("bad.svm: line 2, column 8: expected column:value, found `x`");
}

#[test]
fn gram_matrices_go_out_and_come_back() {
    let f = Folder::new("grams");
    let mut rng = Rng::new(4);
    let mut table = |name: &str, n: usize| {
        let mut text = String::from("a,b,y\n");
        for _ in 0..n {
            let (a, b) = (rng.normal(), rng.normal());
            let _ = writeln!(text, "{a},{b},{}", if a * a + b * b > 1.0 { "out" } else { "in" });
        }
        f.write(name, &text);
    };
    table("train.csv", 60);
    table("test.csv", 30);
    let bank = "--kernels 'rbf(1), linear' --exclude y";
    let out = f.done(&format!("gram train.csv {bank} -o train.npz"));
    assert!(out.contains("2 kernels, 60 × 60 values each"), "{out}");
    f.done(&format!("gram test.csv --train train.csv {bank} -o test.npz"));
    let arrays = array::read(&f.0.join("test.npz")).unwrap();
    assert_eq!((arrays[0].0.as_str(), arrays[0].1.shape.as_slice()), ("grams", &[30, 60, 2][..]));
    f.done("fit train.csv --target y --gram k=train.npz --kernels 'precomputed(k.1); precomputed(k.2)' -o ready.mercer --quiet");
    f.done("fit train.csv --target y --no-standardize --kernels 'rbf(1), linear' -o plain.mercer --quiet");
    let column = |out: String| -> Vec<f64> {
        out.lines().skip(1).map(|l| l.split(',').nth(1).unwrap().parse().unwrap()).collect()
    };
    let ready = column(f.done("predict ready.mercer test.csv --decision --gram k=test.npz"));
    let plain = column(f.done("predict plain.mercer test.csv --decision"));
    assert!(ready.iter().zip(&plain).all(|(a, b)| (a - b).abs() < 1e-2), "{ready:?} {plain:?}");
    f.run("predict ready.mercer test.csv").refuses("column `k.1.");
    // One matrix of all rows serves a fit on some and predictions for others.
    f.done(&format!("gram train.csv {bank} -o all.npz"));
    f.done(
        "fit train.csv --rows 1-60:2 --target y --gram k=all.npz --kernels 'precomputed(k.1)' -o ready.mercer --quiet",
    );
    f.done("fit train.csv --rows 1-60:2 --target y --no-standardize --kernels 'rbf(1)' -o plain.mercer --quiet");
    let ready =
        column(f.done("predict ready.mercer train.csv --rows 2-60:2 --decision --gram k=all.npz"));
    let plain = column(f.done("predict plain.mercer train.csv --rows 2-60:2 --decision"));
    assert!(ready.iter().zip(&plain).all(|(a, b)| (a - b).abs() < 1e-2), "{ready:?} {plain:?}");
    // A file named in the bank; one that is no kernel.
    f.write(
        "signs.txt",
        &(0..60)
            .map(|i| (0..60).map(|j| if i == j { "0 " } else { "1 " }).collect::<String>() + "\n")
            .collect::<String>(),
    );
    f.run("fit train.csv --target y --kernels 'precomputed(signs.txt)'")
        .refuses("not positive semidefinite");
    let out =
        f.done("fit train.csv --target y --kernels 'precomputed(signs.txt)' --indefinite flip");
    assert!(out.contains("59 of 60 eigenvalues are negative"), "{out}");
}

#[test]
fn preprocessing_is_part_of_the_model() {
    let f = Folder::new("steps");
    let mut rng = Rng::new(6);
    let mut text = (1..=20).map(|j| format!("w{j}")).collect::<Vec<_>>().join(",") + ",y\n";
    for _ in 0..80 {
        let (slope, peak) = (rng.normal(), rng.normal());
        for j in 0..20 {
            let bump = peak * (-0.5 * (f64::from(j) - 10.0).powi(2)).exp();
            let _ = write!(text, "{},", 5.0 * slope * f64::from(j) + bump + 0.01 * rng.normal());
        }
        let _ = writeln!(text, "{peak}");
    }
    f.write("s.csv", &text);
    let score = |steps: &str| {
        f.done(&format!(
            "fit s.csv --target y --rows 1-50 --task regress --kernels 'rbf(auto)' -C 100 {steps} -o m.mercer --quiet"
        ));
        let scores = f.run("score m.mercer s.csv --target y --rows 51-80 --json").exits(0).json();
        scores["scores"]["rmse"].as_f64().unwrap()
    };
    assert!(score("--preprocess 'difference(2)'") < 0.5 * score(""));
    f.run("fit s.csv --target y --preprocess 'smooth(3)'").refuses("expected a step");
}
