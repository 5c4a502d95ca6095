//! A folder with files, and the program run in it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use serde_json::Value;

/// A fresh folder for one test.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(test: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub fn write(&self, name: &str, text: &str) -> &Self {
        fs::write(self.0.join(name), text).unwrap();
        self
    }

    pub fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mercer"));
        command.current_dir(&self.0).args(words(line));
        command
    }

    pub fn run(&self, line: &str) -> Run {
        Run::of(line, &self.command(line).output().unwrap())
    }

    /// Standard output of a run that must succeed.
    pub fn done(&self, line: &str) -> String {
        self.run(line).exits(0).out
    }

    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(&self.0)
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

/// Splits at spaces; `'…'` holds a word together.
fn words(line: &str) -> Vec<String> {
    let parts = line.split('\'').enumerate();
    parts
        .flat_map(
            |(i, part)| if i % 2 == 1 { vec![part] } else { part.split_whitespace().collect() },
        )
        .map(String::from)
        .collect()
}

/// What a run of the program left.
pub struct Run {
    line: String,
    code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Run {
    pub fn of(line: &str, output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let run = Self {
            line: line.into(),
            code: output.status.code(),
            out: text(&output.stdout),
            err: text(&output.stderr),
        };
        assert!(!run.err.contains("panicked"), "{line}: {}", run.err);
        run
    }

    pub fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{}\n{}\n{}", self.line, self.out, self.err);
        self
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out)
            .unwrap_or_else(|e| panic!("{}: {e}\n{}", self.line, self.out))
    }

    /// Exit 2, nothing on standard output, one message that says `fragment`.
    pub fn refuses(self, fragment: &str) -> Self {
        let run = self.exits(2);
        assert_eq!(run.out, "", "{}", run.line);
        assert!(
            run.err.starts_with("error: ") && run.err.contains(fragment),
            "{}: {}",
            run.line,
            run.err
        );
        assert_eq!(run.err.matches("error:").count(), 1, "{}", run.err);
        run
    }

    pub fn refuses_in_one_line(self, fragment: &str) {
        let run = self.refuses(fragment);
        assert_eq!(run.err.lines().count(), 1, "{}: {}", run.line, run.err);
    }
}
