//! `tune`, `compare`, `reproduce` and `report`, driven from outside: killed, resumed, and read
//! back.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

use mercer::data::Rng;
use serde_json::Value;

/// A fresh folder for one test.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mercer"));
        let parts = line.split('\'').enumerate();
        let words =
            parts.flat_map(
                |(i, part)| if i % 2 == 1 { vec![part] } else { part.split_whitespace().collect() },
            );
        command.current_dir(&self.0).args(words).env("TMPDIR", &self.0);
        command
    }

    fn run(&self, line: &str) -> (Option<i32>, String, String) {
        let Output { status, stdout, stderr } = self.command(line).output().unwrap();
        (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
    }

    fn done(&self, line: &str) -> String {
        let (code, out, err) = self.run(line);
        assert_eq!(code, Some(0), "{line}\n{out}\n{err}");
        out
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).unwrap()
    }

    /// Two classes that differ along x1; x2 is noise, g a group of two rows.
    fn with_table(self, rows: usize) -> Self {
        let mut rng = Rng::new(3);
        let mut text = String::from("x1,x2,g,y\n");
        for i in 0..rows {
            let class = i % 2;
            writeln!(
                text,
                "{},{},g{},{}",
                1.5 * class as f64 + rng.normal(),
                rng.normal(),
                i / 2,
                ["a", "b"][class]
            )
            .unwrap();
        }
        fs::write(self.0.join("data.csv"), text).unwrap();
        self
    }
}

/// Without the clock.
fn timeless(mut page: Value) -> Value {
    let c = &mut page["comparison"];
    for line in c["lines"].as_array_mut().unwrap() {
        line["seconds"] = Value::Null;
    }
    for run in c["runs"].as_array_mut().unwrap() {
        run["seconds"] = Value::Null;
        run["search_seconds"] = Value::Null;
        run["detail"] = Value::Null;
    }
    page["command"] = Value::Null;
    page
}

const COMPARE: &str = "compare data.csv --target y --exclude g --kernels 'rbf(1|3), linear on all, each' \
                       --methods 'l1, gmkl(v=0.5), lmkl' --grid 'C=0.1|1|10' --repeats 5 --seed 4 --json";

#[test]
fn a_killed_comparison_resumes_to_the_identical_table() {
    let folder = Folder::new("select_kill").with_table(60);
    let line = format!("{COMPARE} --journal runs.jsonl");
    let mut child =
        folder.command(&line).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let began = Instant::now();
    let lines = || fs::read_to_string(folder.0.join("runs.jsonl")).map_or(0, |t| t.lines().count());
    while lines() < 6 && began.elapsed() < Duration::from_secs(120) {
        thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap(); // SIGKILL
    child.wait().unwrap();
    let kept = lines();
    assert!((6..=25).contains(&kept), "{kept} lines");
    let before = folder.read("runs.jsonl");
    let resumed = folder.done(&line);
    let after = folder.read("runs.jsonl");
    let whole_lines = before.rfind('\n').map_or(0, |at| at + 1);
    assert!(after.starts_with(&before[..whole_lines]), "finished runs were fitted again");
    assert_eq!(after.lines().count(), 1 + 5 * 5);
    // From the journal alone: the same table to the last digit, times included.
    assert_eq!(resumed, folder.done(&line));
    // In one go, with another number of threads: the same but for the clock.
    let (a, b): (Value, Value) = (
        serde_json::from_str(&resumed).unwrap(),
        serde_json::from_str(&folder.done(&format!("{COMPARE} --threads 3"))).unwrap(),
    );
    assert_eq!(timeless(a), timeless(b));
    // The journal nobody asked for is gone.
    assert!(
        fs::read_dir(&folder.0).unwrap().all(|e| !e
            .unwrap()
            .file_name()
            .to_string_lossy()
            .contains(".journal"))
    );
    // Another request does not touch it.
    let (code, _, err) = folder.run(&line.replace("--seed 4", "--seed 5"));
    assert!(code == Some(2) && err.contains("belongs to other data, another request"), "{err}");
}

#[cfg(unix)]
#[test]
fn ctrl_c_keeps_finished_runs() {
    let folder = Folder::new("select_interrupt").with_table(60);
    let line = format!("{COMPARE} --journal runs.jsonl --repeats 40").replace("--repeats 5 ", "");
    let child =
        folder.command(&line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let began = Instant::now();
    let lines = || fs::read_to_string(folder.0.join("runs.jsonl")).map_or(0, |t| t.lines().count());
    while lines() < 3 && began.elapsed() < Duration::from_secs(120) {
        thread::sleep(Duration::from_millis(5));
    }
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let output = child.wait_with_output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{err}");
    assert!(err.contains("the same command goes on"), "{err}");
    assert!(output.stdout.is_empty() && lines() >= 3);
}

#[test]
fn comparison_words_report_and_errors() {
    let folder = Folder::new("select_words").with_table(48);
    let base = "compare data.csv --target y --kernels 'rbf(1|3) on all, each' --grid C=1 --methods l1 --repeats 4";
    let out = folder.done(&format!("{base} --group-column g --metric auc --report page.html -v"));
    for part in [
        "4 random splits, 50 % to learn from; rows of one group stay together",
        "uniform",
        "single",
        "l1",
        "auc",
        "The best mean auc",
    ] {
        assert!(out.contains(part), "{part}\n{out}");
    }
    let page = folder.read("page.html");
    for part in [
        "Which differences are real",
        "ROC",
        "Kernels over the splits",
        "Weights split by split",
        "mercer compare data.csv",
    ] {
        assert!(page.contains(part), "{part}");
    }
    assert!(!page.contains("http://") && !page.contains("https://") && !page.contains("NaN"));
    let saved = folder
        .done(&format!("{base} --exclude g --json --time --repeats 2").replace("--repeats 4 ", ""));
    fs::write(folder.0.join("saved.json"), saved).unwrap();
    assert_eq!(folder.done("report saved.json --out again.html"), "report in again.html\n");
    assert!(folder.read("again.html").contains("2 splits in the order of time"));
    fs::write(folder.0.join("bad.json"), "{}x").unwrap();
    for (line, part) in [
        ("report bad.json".to_string(), "is not what `mercer compare --json`"),
        (format!("{base} --methods gmk").replace("--methods l1 ", ""), "gmkl"),
        (format!("{base} --metric rmse"), "one for classes"),
        (format!("{base} --train 1.5"), "`train` must be between 0 and 1"),
        (format!("{base} --grid 'C=1;;v'").replace("--grid C=1 ", ""), "expected name=values"),
        (format!("{base} --report nowhere/page.html"), "nowhere"),
        ("reproduce vcmkl --folder missing".into(), "is not there"),
    ] {
        let (code, _, err) = folder.run(&line);
        assert_eq!(code, Some(2), "{line}: {err}");
        assert!(err.contains(part) && err.starts_with("error: "), "{line}: {err}");
    }
}

#[test]
fn tuning_prints_the_best_and_saves_its_model() {
    let folder = Folder::new("select_tune").with_table(60);
    let line = "tune data.csv --target y --exclude g --method gmkl --grid 'C=0.001..10; v=0..1:0.5' --folds 4 \
                --kernels 'rbf(1|3) on all, each'";
    let out = folder.done(&format!("{line} --report page.html -o best.mercer"));
    assert!(out.contains("Of 15 settings of gmkl the best is"), "{out}");
    assert!(folder.read("page.html").contains("The grid"));
    assert!(folder.done("inspect best.mercer").contains("gmkl"));
    let once: Value =
        serde_json::from_str(&folder.done(&format!("{line} --json --journal j"))).unwrap();
    let again: Value =
        serde_json::from_str(&folder.done(&format!("{line} --json --journal j --threads 2")))
            .unwrap();
    assert_eq!(once["tuning"], again["tuning"]);
    assert_eq!(once["tuning"]["settings"].as_array().unwrap().len(), 15);
    let (code, _, err) = folder.run(&line.replace("v=0..1:0.5", "rules=3"));
    assert!(code == Some(2) && err.contains("grid axis"), "{err}");
}

fn reproductions() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../reproduce")
}

#[test]
fn a_quick_reproduction_writes_both_tables() {
    let folder = Folder::new("select_reproduce");
    let root = reproductions();
    for (paper, part) in [
        ("gmkl", "toy1"),
        ("smkl", "toy1"),
        ("clmkl", "four_gaussians"),
        ("glmkl", "four_gaussians"),
        ("vcmkl", "square"),
    ] {
        let line =
            format!("reproduce {paper} --quick --folder '{}' --out .", root.join(paper).display());
        let out = folder.done(&line);
        assert!(out.contains(part) && out.contains("written: "), "{out}");
        let got = folder.read("got.csv");
        assert!(
            got.lines().count() > 6 && got.lines().any(|l| l.starts_with(&format!("{part},"))),
            "{got}"
        );
        let page = folder.read("page.md");
        assert!(
            page.contains("A quick run") && page.contains("| method | measure | paper | ours |"),
            "{page}"
        );
        if paper == "gmkl" {
            assert!(page.contains("| gmkl(v=0.5) | kernels | 36.8 ± 5.0 |"), "{page}");
        }
    }
    let (code, _, err) = folder
        .run(&format!("reproduce gmkl --only mars --folder '{}'", root.join("gmkl").display()));
    assert!(code == Some(2) && err.contains("figure2-toy2"), "{err}");
}

/// The results that took hours are not run again: without any data the page of every paper follows
/// from its rows, every part that differs from the paper says why, and what is committed is that
/// page.
#[test]
fn stored_rows_make_the_committed_pages() {
    let folder = Folder::new("select_stored");
    for paper in ["gmkl", "smkl", "clmkl", "glmkl", "vcmkl"] {
        let own = reproductions().join(paper);
        fs::copy(own.join("got.csv"), folder.0.join("got.csv")).unwrap();
        let line = format!("reproduce {paper} --folder '{}' --out .", own.display());
        let (code, out, err) = {
            let output = folder.command(&line).env("MERCER_DATA_DIR", "nowhere").output().unwrap();
            (
                output.status.code(),
                String::from_utf8(output.stdout).unwrap(),
                String::from_utf8(output.stderr).unwrap(),
            )
        };
        assert_eq!(code, Some(0), "{paper}: {out}\n{err}");
        assert!(err.contains("are not run again"), "{err}");
        assert_eq!(
            folder.read("got.csv"),
            fs::read_to_string(own.join("got.csv")).unwrap(),
            "{paper}: got.csv"
        );
        let page = folder.read("page.md");
        assert_eq!(page, fs::read_to_string(own.join("page.md")).unwrap(), "{paper}: page.md");
        for part in page.split("\n## ").skip(1) {
            let said = part
                .lines()
                .rev()
                .find(|l| !l.trim().is_empty())
                .is_some_and(|l| !l.starts_with('|'));
            assert!(
                said || !part.contains(" * |"),
                "{paper}: a difference that nothing is said about:\n{part}"
            );
        }
    }
}

/// A method whose rows are not all there is run; the others are kept.
#[test]
fn a_reproduction_runs_what_is_missing() {
    let folder = Folder::new("select_missing");
    let line = format!(
        "reproduce smkl --only toy1 --folder '{}' --out .",
        reproductions().join("smkl").display()
    );
    folder.done(&line);
    let whole = folder.read("got.csv");
    let marked = "toy1,uniform,0,12.5,21,21,1,,0.1000,kept";
    let one = |l: &str| format!("{}\n", if l.starts_with("toy1,uniform,0,") { marked } else { l });
    let fewer: String = whole.lines().filter(|l| !l.starts_with("toy1,smkl,1,")).map(one).collect();
    fs::write(folder.0.join("got.csv"), fewer).unwrap();
    folder.done(&line);
    let again = folder.read("got.csv");
    assert_eq!(again.lines().count(), whole.lines().count());
    assert!(again.contains(marked) && again.contains("toy1,smkl,1,"), "{again}");
    fs::write(folder.0.join("got.csv"), "part,method\na,b\n").unwrap();
    let (code, _, err) = folder.run(&line);
    assert!(code == Some(2) && err.contains("has no column `split`"), "{err}");
}

/// What the data, the bank and the budget are is read by one function for all commands.
#[test]
fn files_of_kernels_the_budget_and_the_clock_count_for_every_command() {
    let f = Folder::new("loading").with_table(40);
    f.done("gram data.csv --exclude y,g -k 'rbf(1|2)' -o grams.npz");
    let bank = "--target y --exclude g -k 'precomputed(grams.npz)'";
    f.done(&format!("tune data.csv {bank} --grid C=1 --folds 2"));
    f.done(&format!("compare data.csv {bank} --methods gmkl --grid C=1 --repeats 1"));
    f.done(&format!("kernels data.csv {bank}"));
    let (code, _, err) =
        f.run("gram data.csv --exclude y,g -k 'precomputed(grams.npz)' -o copy.npz");
    assert!(code == Some(2) && err.contains("in their file already"), "{err}");
    for command in ["fit", "tune", "compare", "kernels"] {
        let (code, _, err) =
            f.run(&format!("{command} data.csv --target y --exclude g --memory 1K"));
        assert!(code == Some(2) && err.contains("memory"), "{command}: {err}");
    }
    for command in ["tune", "compare"] {
        let line = format!("{command} data.csv --target y --exclude g --journal {command}.jsonl");
        let (code, _, err) = f.run(&format!("{line} --time-limit 0.000001"));
        assert!(code == Some(130) && err.contains("the same command goes on"), "{command}: {err}");
    }
    // What all methods are asked for and some cannot do leaves these out of `all`.
    let grouped =
        "--group-by scope --methods all --grid C=1 --repeats 1 --inner-folds 2 --max-iter 3";
    let out = f.done(&format!(
        "compare data.csv --target y --exclude g -k 'rbf(1|2), linear on each' {grouped}"
    ));
    assert!(
        out.contains("gmkl")
            && out.contains("single")
            && !out.contains("vcmkl")
            && !out.contains("glmkl"),
        "{out}"
    );
    let (code, _, err) = f.run("compare data.csv --target y --methods lmkl --group-by scope");
    assert!(code == Some(2) && err.contains("group_by"), "{err}");
}
