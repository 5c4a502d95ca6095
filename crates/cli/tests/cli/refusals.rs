//! What is refused, in which words.

use std::fs;

use crate::{circle, circle_fit, folder::Folder};

#[test]
fn bad_data_are_refused() {
    let folder = Folder::new("bad_data");
    folder
        .write("train.csv", &circle(40, 1))
        .write("empty.csv", "")
        .write("header.csv", "a,b,y\n")
        .write("nan.csv", "a,b,y\n1,2,p\n2,nan,q\n3,4,p\n")
        .write("text.csv", "a,city,y\n1,Rio,p\n2,Oslo,q\n3,Rio,p\n")
        .write("one.csv", "a,b,y\n1,2,p\n2,3,p\n3,4,p\n")
        .write("ragged.csv", "a,b,y\n1,2,p\n2,3\n")
        .write("hole.csv", "a,b,y\n1,2,p\n2,3,\n");
    let fit = |rest: &str| folder.run(&format!("fit {rest} -o m.mercer"));
    fit("absent.csv --target y").refuses_in_one_line("absent.csv");
    fit("train.csv --target klass").refuses_in_one_line("`klass`");
    fit("train.csv --target class --exclude x9").refuses_in_one_line("`x9`");
    fit("train.csv --target class --columns x1,class").refuses_in_one_line("`class`");
    fit("train.csv --target class --weight-column x8").refuses_in_one_line("`x8`");
    fit("empty.csv --target y").refuses_in_one_line("empty");
    fit("header.csv --target y").refuses_in_one_line("no rows");
    fit("nan.csv --target y").refuses_in_one_line("column `b`");
    fit("text.csv --target y").refuses_in_one_line("column `city`");
    fit("one.csv --target y").refuses_in_one_line("class");
    fit("ragged.csv --target y").refuses_in_one_line("line 3");
    fit("hole.csv --target y").refuses_in_one_line("row 2");
    fit("train.csv --target class --task regress").refuses_in_one_line("`class`");
    assert!(!folder.0.join("m.mercer").exists());
}

/// Rows count from 1, and the line of the file is said where there is one.
#[test]
fn rows_are_named_by_number_and_line() {
    let folder = Folder::new("rows_and_lines");
    let rows = |bad: &str| format!("1,2,p\n2,3,q\n\n\n\"3\",4,p\n{bad}\n4,1,q\n5,2,p\n");
    folder
        .write("nan.csv", &format!("a,b,y\n{}", rows("1,nan,q")))
        .write("hole.csv", &format!("a,b,y\n{}", rows("1,2,")))
        .write("negative.csv", &format!("a,b,y\n{}", rows("1,-2,q")))
        .write("good.csv", &format!("a,b,y\n{}", rows("1,2,q")))
        .write("nameless.csv", &rows("1,nan,q"))
        .write("weight.csv", "a,w,y\n1,1,p\n2,1,q\n\n3,-1,p\n");
    let fit = |rest: &str| folder.run(&format!("fit {rest} -o m.mercer"));
    fit("nan.csv --target y").refuses_in_one_line("column `b`: row 4 (line 7) is NaN");
    fit("nan.csv --target y --rows 2-5").refuses_in_one_line("column `b`: row 4 (line 7) is NaN");
    fit("nameless.csv --target -1").refuses_in_one_line("column `x2`: row 4 (line 6) is NaN");
    fit("hole.csv --target y").refuses_in_one_line("row 4 (line 7) has no value");
    fit("negative.csv --target y -k chi2 --no-standardize")
        .refuses_in_one_line("row 4 (line 7) is -2");
    fit("negative.csv --target y -k chi2 --no-standardize --rows 3-6")
        .refuses_in_one_line("row 4 (line 7) is -2");
    folder
        .run("tune negative.csv --target y -k chi2 --no-standardize")
        .refuses_in_one_line("row 4 (line 7) is -2");
    fit("weight.csv --target y --weight-column w")
        .refuses_in_one_line("row 3 (line 5) has the weight -1");
    fit("good.csv --target y -k chi2 --no-standardize").exits(0);
    folder.run("predict m.mercer negative.csv").refuses_in_one_line("row 4 (line 7) is -2");
    folder.run("predict m.mercer nan.csv").refuses_in_one_line("row 4 (line 7) is NaN");
}

#[test]
fn bad_requests_are_refused_before_any_work() {
    let folder = Folder::new("bad_requests");
    folder.write("train.csv", &circle(40, 1));
    let fit = |rest: &str| folder.run(&format!("fit train.csv --target class {rest}"));
    let kernels = fit("--kernels 'rbf(1'").refuses("rbf(1");
    assert!(kernels.err.lines().last().unwrap().trim() == "^", "{}", kernels.err);
    folder.run("kernels --check 'rbf(1) on nowhere'").refuses("^");
    fit("-C 0").refuses_in_one_line("must be");
    fit("--tol -1").exits(2);
    fit("--tol 0").refuses_in_one_line("`tol`");
    fit("--v 2").refuses_in_one_line("`v`");
    fit("--p 0.5").refuses_in_one_line("`p`");
    fit("--method unifrom").refuses_in_one_line("gmkl, lp, single, align, alignf, smkl, clmkl");
    fit("--method uniform --v 0.5").refuses_in_one_line("`v`");
    fit("--method l1 --p 2").refuses_in_one_line("`p` must be left out with --method l1");
    fit("--method lp --p 0.5").refuses_in_one_line("`p`");
    fit("--method gmkl --p inf")
        .refuses_in_one_line("`p` must be a finite number with --method gmkl");
    fit("--method lp --solver silp").refuses_in_one_line("solver");
    fit("--method single --folds 1").refuses_in_one_line("`folds`");
    fit("--method gmkl --penalty log").refuses_in_one_line("`penalty`");
    fit("--method smkl --eps 0").refuses_in_one_line("eps");
    fit("--loss epsilon_insensitive").refuses_in_one_line("loss");
    fit("--class-weight 'inn=2'").refuses_in_one_line("inn");
    fit("--memory 1K").refuses_in_one_line("memory");
    fit("-o nowhere/m.mercer").refuses_in_one_line("nowhere");
    fit("--report .").refuses_in_one_line("folder");
    assert_eq!(folder.names(), ["train.csv"]);
}

#[test]
fn broken_models_are_refused() {
    let folder = Folder::new("broken_models");
    circle_fit(&folder);
    let bytes = fs::read(folder.0.join("m.mercer")).unwrap();
    for at in [0, 1, 7, 8, 20, bytes.len() / 2, bytes.len() - 1] {
        let mut altered = bytes.clone();
        altered[at] ^= 0x20;
        fs::write(folder.0.join("bad.mercer"), &altered).unwrap();
        folder.run("inspect bad.mercer").refuses_in_one_line("bad.mercer");
        fs::write(folder.0.join("bad.mercer"), &bytes[..at]).unwrap();
        folder.run("predict bad.mercer test.csv").refuses_in_one_line("bad.mercer");
    }
    folder.run("inspect absent.mercer").refuses_in_one_line("absent.mercer");
    folder.run("inspect train.csv").refuses_in_one_line("train.csv");
}

#[test]
fn data_must_fit_the_model() {
    let folder = Folder::new("misfit");
    circle_fit(&folder);
    folder
        .write("missing.csv", "x1,x3,class\n0,0,in\n")
        .write("odd.csv", "x1,x2,x3,class\n0,0,0,in\n1,1,1,edge\n");
    folder.run("predict m.mercer missing.csv").refuses_in_one_line("`x2`");
    folder.run("score m.mercer odd.csv --target class").refuses_in_one_line("`edge`");
    folder.run("score m.mercer odd.csv --target klass").refuses_in_one_line("`klass`");
    folder.write("shuffled.csv", "id,x3,x1,x2\na,0,0,0\nb,0,1,1\n");
    assert_eq!(folder.run("predict m.mercer shuffled.csv").exits(0).out, "prediction\nin\nout\n");
}
