//! What a command writes: never over what somebody still needs, whole or not at all, and readable
//! by every other command.

use std::fs;

use crate::{circle, circle_fit, folder::Folder};

#[test]
fn outputs_never_replace_inputs_or_each_other() {
    let folder = Folder::new("outputs_inputs");
    circle_fit(&folder);
    folder.write("d.toml", "target = \"class\"\n[[view]]\nname = \"v\"\nfile = \"train.csv\"\n");
    fs::hard_link(folder.0.join("train.csv"), folder.0.join("hard.csv")).unwrap();
    let before = ["train.csv", "m.mercer"].map(|name| fs::read(folder.0.join(name)).unwrap());
    let fit = "fit train.csv --target class -k 'rbf(1)'";
    for (line, word) in [
        (format!("{fit} -o train.csv"), "--output"),
        (format!("{fit} -o ./train.csv"), "--output"),
        (format!("{fit} -o hard.csv"), "--output"),
        (format!("{fit} --report train.csv"), "--report"),
        ("fit d.toml -k 'rbf(1)' -o train.csv".into(), "--output"),
        ("predict m.mercer test.csv -o test.csv".into(), "--output"),
        ("predict m.mercer train.csv -o m.mercer".into(), "--output"),
        ("inspect m.mercer --report m.mercer".into(), "--report"),
        ("gram train.csv --exclude class -k 'rbf(1)' -o train.csv".into(), "--output"),
        ("tune train.csv --target class --report train.csv".into(), "--report"),
        ("compare train.csv --target class --journal train.csv".into(), "--journal"),
    ] {
        let err = folder.run(&line).exits(2).err;
        assert!(err.contains("this command reads the file") && err.contains(word), "{line}: {err}");
    }
    folder
        .run(&format!("{fit} -o x --report ./x"))
        .refuses_in_one_line("--output and --report name the same file");
    folder
        .run("tune train.csv --target class -o x --journal x")
        .refuses_in_one_line("name the same file");
    assert!(!folder.0.join("x").exists());
    assert_eq!(
        before,
        ["train.csv", "m.mercer"].map(|name| fs::read(folder.0.join(name)).unwrap())
    );
}

#[cfg(unix)]
#[test]
fn links_are_followed_and_what_is_no_file_is_written_into() {
    use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _, symlink};
    let folder = Folder::new("outputs_special");
    circle_fit(&folder);
    let at = |name: &str| folder.0.join(name);
    folder.write("real.csv", "old\n");
    fs::set_permissions(at("real.csv"), fs::Permissions::from_mode(0o640)).unwrap();
    symlink("real.csv", at("link.csv")).unwrap();
    folder.run("predict m.mercer test.csv -o link.csv").exits(0);
    assert!(fs::symlink_metadata(at("link.csv")).unwrap().is_symlink());
    assert!(fs::read_to_string(at("real.csv")).unwrap().starts_with("prediction\n"));
    assert_eq!(fs::metadata(at("real.csv")).unwrap().permissions().mode() & 0o777, 0o640);

    let direct = folder.run("predict m.mercer test.csv").exits(0).out;
    assert_eq!(folder.run("predict m.mercer test.csv -o /dev/stdout").exits(0).out, direct);
    folder.run("predict m.mercer test.csv -o /dev/null").exits(0);
    folder.run("fit train.csv --target class -k 'rbf(1)' -o /dev/null --report /dev/null --report-folds 0").exits(0);
    assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
    let model = folder.run("inspect m.mercer --report /dev/stdout").exits(0);
    assert!(
        model.out.starts_with("<!doctype html>") || model.out.starts_with("<!DOCTYPE html>"),
        "the page alone"
    );
    assert!(model.err.contains("columns: x1, x2, x3"), "words go to standard error: {}", model.err);
    folder
        .run(&format!("predict m.mercer test.csv -o {}", "n".repeat(256)))
        .refuses_in_one_line("cannot be written");
    assert!(folder.names().iter().all(|name| !name.contains(".tmp")), "{:?}", folder.names());
}

#[test]
fn every_command_reads_the_kernels_that_gram_writes() {
    let folder = Folder::new("outputs_gram");
    folder.write("d.csv", &circle(60, 1)).write("new.csv", &circle(20, 2));
    let gram = "gram d.csv --exclude class -k 'rbf(0.5|1), linear'";
    for file in ["g.npz", "g.npy"] {
        folder.run(&format!("{gram} -o {file}")).exits(0);
        let bank = format!("-k 'precomputed({file})'");
        let shown =
            folder.run(&format!("fit d.csv --target class {bank} -o m --json")).exits(0).json();
        assert_eq!(shown["kernels"]["total"], 3, "{file}");
        folder.run(&format!("fit d.csv --target class -k 'precomputed({file}.2)' -o m")).exits(0);
        folder
            .run(&format!("fit d.csv --target class -k 'precomputed(K)' --gram K={file} -o m"))
            .exits(0);
        folder
            .run(&format!(
                "gram new.csv --train d.csv --exclude class -k 'rbf(0.5|1), linear' -o new_{file}"
            ))
            .exits(0);
        let csv = folder.run(&format!("predict m new.csv --gram K=new_{file}")).exits(0).out;
        assert_eq!(csv.lines().count(), 21);
        folder.run(&format!("verify m d.csv --target class --gram K={file}")).exits(0);
        folder
            .run(&format!("tune d.csv --target class -m uniform {bank} --grid C=1 --folds 2 -q"))
            .exits(0);
        folder
            .run(&format!("compare d.csv --target class -m uniform {bank} --repeats 2 -q"))
            .exits(0);
        folder.run(&format!("kernels d.csv --target class {bank}")).exits(0);
        let told = format!(
            "target = \"class\"\n[labels]\nfile = \"d.csv\"\n[[view]]\nname = \"K\"\nfile = \"{file}\"\ngram = true\n"
        );
        folder.write("d.toml", &told);
        let shown = folder.run("fit d.toml -o m --json").exits(0).json();
        assert_eq!(shown["kernels"]["total"], 3, "{file} in a description");
    }
    folder.run("gram d.csv --exclude class -k 'rbf(1)' -o one.csv").exits(0);
    folder.run("fit d.csv --target class -k 'precomputed(one.csv)' -o m").exits(0);
    folder.run(&format!("{gram} -o g.csv")).refuses_in_one_line("one matrix");
    for name in ["g.mat", "g", "g.npy.gz"] {
        folder.run(&format!("{gram} -o {name}")).refuses_in_one_line(".npz");
        assert!(!folder.0.join(name).exists());
    }
}

#[test]
fn a_comparison_in_which_every_run_failed_is_an_error() {
    let folder = Folder::new("outputs_failed");
    folder.write("d.csv", &circle(40, 1));
    // Negative numbers, which the kernel is not for: every split says so.
    let run =
        folder.run("compare d.csv --target class -m gmkl -k chi2 --no-standardize --repeats 2 -q");
    let run = run.exits(2);
    assert!(run.err.contains("negative"), "{}", run.err);
    folder
        .run("compare d.csv --target class -m , --repeats 2 -q")
        .refuses_in_one_line("at least one");
}

#[test]
fn names_of_records_are_no_features() {
    let folder = Folder::new("outputs_fasta");
    let record = |i: usize| {
        let (label, word) =
            if i.is_multiple_of(2) { ("yes", "GATTACAGATTA") } else { ("no", "CCGTCCGTCCGT") };
        format!(">seq{i} label={label}\n{}{}\n", &word[i % 5..], &word[..i % 7])
    };
    folder.write("s.fasta", &(0..30).map(record).collect::<String>());
    let bank = "-k 'spectrum(3), wd(1..4)'";
    let fit = folder.run(&format!("fit s.fasta --target label {bank} -o m")).exits(0).out;
    assert!(!fit.contains(" on id"), "{fit}");
    folder.run("predict m s.fasta").exits(0);
    folder.run("score m s.fasta --target label").exits(0);
    folder.run("verify m s.fasta --target label").exits(0);
    folder
        .run(&format!("fit s.fasta --target label --columns id,sequence {bank} -o m"))
        .refuses_in_one_line("`id`");
}

#[test]
fn a_missing_target_is_asked_for_in_a_sentence() {
    let folder = Folder::new("outputs_target");
    folder.write("d.csv", &circle(40, 1));
    for command in ["fit d.csv", "tune d.csv", "compare d.csv"] {
        let err = folder.run(command).exits(2).err;
        assert!(
            err.contains("name it with --target COL") && err.contains("`x1`, `x2`, `x3`, `class`"),
            "{err}"
        );
    }
}

#[test]
fn numbers_that_are_none_are_refused_and_negative_ones_understood() {
    let folder = Folder::new("outputs_numbers");
    folder.write("d.csv", &circle(40, 1));
    let fit =
        |rest: &str| folder.run(&format!("fit d.csv --target class -o m {rest}")).exits(2).err;
    for option in ["--gamma", "--eps", "--cost-ratio", "--epsilon", "--tol", "--nu", "-C", "--v"] {
        let err = fit(&format!("-m vcmkl {option} nan"));
        assert!(err.contains("expected a number"), "{option}: {err}");
    }
    assert!(fit("-C -1").contains("`C` must be a finite number > 0, got -1"));
    assert!(fit("--epsilon 1").contains("left out for classes"));
}

#[test]
fn control_characters_in_names_are_shown_and_not_sent() {
    let folder = Folder::new("outputs_escape");
    folder.write("d.csv", &circle(40, 1).replacen("x1", "x\u{1b}[31m1", 1));
    let fit = folder.run("fit d.csv --target class -k 'linear on each' -o m").exits(0);
    let told = folder.run("inspect m --all").exits(0).out;
    assert!(
        !fit.out.contains('\u{1b}') && !told.contains('\u{1b}') && told.contains("u{1b}[31m1"),
        "{told}"
    );
}

#[test]
fn reproduce_makes_its_folder_before_it_works() {
    let folder = Folder::new("outputs_reproduce");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../../reproduce/gmkl");
    folder.write("file", "somebody's");
    let run = folder.run(&format!("reproduce gmkl --quick --folder {source} --out file"));
    run.refuses_in_one_line("the folder for the results cannot be made");
    assert_eq!(fs::read_to_string(folder.0.join("file")).unwrap(), "somebody's");
}
