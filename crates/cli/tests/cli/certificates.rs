//! `verify`: what a model states is recomputed from its training rows.

use std::fs;

use serde_json::Value;

use crate::{circle, circle_fit, folder::Folder, wave};

#[test]
fn verify_holds_on_the_training_rows_and_on_no_others() {
    let folder = Folder::new("verify");
    circle_fit(&folder);
    let text = folder.run("verify m.mercer train.csv --target class").exits(0).out;
    assert!(
        text.contains("120 rows, status optimal")
            && text.contains("verified: the stored multipliers alone prove"),
        "{text}"
    );
    let value = folder.run("verify m.mercer train.csv --target class --json").exits(0).json();
    assert_eq!(
        (&value["verified"], &value["findings"]),
        (&Value::Bool(true), &serde_json::json!([]))
    );
    assert!(value["recomputed"]["gap"].as_f64().unwrap() < 1e-2, "{value}");

    let value =
        folder.run("verify m.mercer train.csv --target class --prove --json").exits(0).json();
    assert!(value["proven"]["gap"].as_f64().unwrap() <= 2e-3, "{value}");
    let text = folder.run("verify m.mercer train.csv --target class --prove").exits(0).out;
    assert!(text.contains("recomputed       proven"), "{text}");

    let train = fs::read_to_string(folder.0.join("train.csv")).unwrap();
    let mut lines: Vec<String> = train.lines().map(String::from).collect();
    let verify = |lines: &[String]| {
        folder.write("other.csv", &(lines.join("\n") + "\n"));
        folder.run("verify m.mercer other.csv --target class")
    };
    let first = std::mem::replace(&mut lines[1], "0.75,0.5,0.25,out".into());
    verify(&lines).refuses_in_one_line("not the rows the model was fitted on: column `x1`");
    lines[1] = first;
    lines[1..].reverse();
    verify(&lines).refuses_in_one_line("not the rows the model was fitted on: row");
    lines[1..].reverse();
    verify(&lines[..100]).refuses_in_one_line("99 rows, and the fit had 120");
    // The same rows with other answers: the model's statement is about others.
    let other = |line: &String| {
        if line.ends_with("in") { line.replace(",in", ",out") } else { line.replace(",out", ",in") }
    };
    let turned: Vec<String> =
        lines.iter().enumerate().map(|(i, l)| if i == 0 { l.clone() } else { other(l) }).collect();
    let run = verify(&turned).exits(1);
    assert!(run.out.contains("NOT VERIFIED: out: the multiplier of row"), "{}", run.out);
    folder
        .run("verify m.mercer test.csv --target class")
        .refuses_in_one_line("400 rows, and the fit had 120");
}

#[test]
fn verify_needs_the_same_weights() {
    let folder = Folder::new("verify_weights");
    folder.write("train.csv", &wave(80, 3));
    folder.run("fit train.csv --target y --weight-column weight -C 10 -o m.mercer -q").exits(0);
    folder.run("verify m.mercer train.csv --target y --weight-column weight").exits(0);
    let run = folder.run("verify m.mercer train.csv --target y").exits(1);
    assert!(run.out.contains("NOT VERIFIED") && run.out.contains("objective"), "{}", run.out);
}

#[test]
fn verify_knows_regions_gates_and_rules() {
    let folder = Folder::new("verify_localized");
    folder.write("train.csv", &circle(80, 1));
    for method in [
        "clmkl",
        "hlmkl",
        "lmkl",
        "glmkl",
        "gsmkl",
        "vcmkl --rules 2",
        "vcmkl --rules 2 --solver am",
    ] {
        let fit = format!(
            "fit train.csv --target class --kernels 'rbf(1), linear on all' --method {method} -o m.mercer -q"
        );
        folder.run(&fit).exits(0);
        let text = folder.run("verify m.mercer train.csv --target class").exits(0).out;
        assert!(text.contains("verified: ") && !text.contains("NaN"), "{method}: {text}");
    }
}

#[test]
fn verify_knows_the_loss_and_the_epsilon_of_a_model() {
    let folder = Folder::new("verify-huber");
    fs::write(folder.0.join("wave.csv"), wave(60, 3)).unwrap();
    for epsilon in ["", "--epsilon 0.2"] {
        folder
            .run(&format!("fit wave.csv --target y --loss huber {epsilon} -C auto -o m.mercer -q"))
            .exits(0);
        let value =
            folder.run("verify m.mercer wave.csv --target y --prove --json").exits(0).json();
        assert_eq!(value["verified"], Value::Bool(true), "{value}");
    }
}
