//! What `fit -v` says while it works.

use crate::{folder::Folder, thirds};

#[test]
fn progress_names_the_class_and_the_fold() {
    let folder = Folder::new("progress");
    folder.write("train.csv", &thirds(90));
    let fit = |rest: &str| {
        folder
            .run(&format!("fit train.csv --target kind -k 'linear, rbf(1)' -v -o m.mercer {rest}"))
    };
    let lines = fit("").exits(0).err;
    for class in ["low", "mid, or so", "top"] {
        assert!(lines.contains(&format!("class {class}  iteration 1")), "{class}: {lines}");
    }
    let pairs = fit("--multi-class ovo").exits(0).err;
    assert!(pairs.contains("class low or mid, or so  iteration 1"), "{pairs}");
    let shared = fit("--shared-weights").exits(0).err;
    assert!(!shared.contains("class") && shared.contains("iteration 1"), "{shared}");
    let searched = fit("-C auto --folds 2").exits(0).err;
    assert!(searched.contains("search, fold 2 of 2  class top  iteration 1"), "{searched}");
}

#[test]
fn a_search_cut_by_the_clock_says_so() {
    let folder = Folder::new("cut_search");
    folder.write("train.csv", &thirds(90));
    let told = folder
        .run("fit train.csv --target kind -k linear -C auto --time-limit 0.000001 -o m.mercer")
        .exits(0);
    assert!(
        told.out.contains("the search for settings was stopped before its end"),
        "{}",
        told.out
    );
    assert!(told.out.contains("stopped"), "{}", told.out);
}
