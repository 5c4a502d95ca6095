//! Imports point one way, and the registry is complete.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Modules in the order data flows; a module may use only those to its left.
const ORDER: [&str; 20] = [
    "error", "tuning", "linalg", "trace", "data", "kernels", "gram", "loss", "metrics", "machine",
    "weights", "localize", "request", "model", "outer", "prepare", "methods", "train", "select",
    "report",
];

fn sources(folder: &Path, out: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, out);
        } else if path.extension().is_some_and(|e| e == "rs") {
            out.push(path);
        }
    }
}

/// Names of modules that `text` imports through `crate::`, outside its tests.
fn imports(text: &str) -> Vec<String> {
    let code = text.split("#[cfg(test)]").next().unwrap_or_default();
    let code: String =
        code.lines().filter(|l| !l.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
    let mut found = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        if let Some(list) = rest.strip_prefix('{') {
            let mut depth = 0;
            let mut item = String::new();
            for c in list.chars() {
                match c {
                    '{' => depth += 1,
                    '}' if depth == 0 => break,
                    '}' => depth -= 1,
                    ',' if depth == 0 => found.push(std::mem::take(&mut item)),
                    _ if depth == 0 => item.push(c),
                    _ => {}
                }
            }
            found.push(item);
        } else {
            found.push(rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect());
        }
    }
    found.iter().map(|f| f.trim().split("::").next().unwrap_or_default().to_string()).collect()
}

fn position(module: &str) -> Option<usize> {
    ORDER.iter().position(|m| *m == module)
}

fn violations(module: &str, text: &str) -> Vec<String> {
    let own = position(module)
        .unwrap_or_else(|| panic!("module `{module}` is not in the order of data flow"));
    imports(text)
        .into_iter()
        .filter(|used| position(used).is_some_and(|at| at > own))
        .map(|used| format!("{module} imports `{used}` from its right"))
        .collect()
}

#[test]
fn no_module_imports_from_its_right() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src"));
    let mut files = Vec::new();
    sources(root, &mut files);
    let mut wrong = Vec::new();
    for file in files {
        let relative = file.strip_prefix(root).unwrap();
        let module = relative.iter().next().unwrap().to_str().unwrap().trim_end_matches(".rs");
        if module != "lib" {
            wrong.extend(violations(module, &fs::read_to_string(&file).unwrap()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The program counts rows from 1 and Python from 0: messages keep a row's number apart from the
/// text (`mercer::Told`).
#[test]
fn messages_do_not_count_rows_themselves() {
    // Findings of `verify` and what a reader says of its file are the program's alone.
    let programs_own = ["error.rs", "libsvm.rs", "train/verify"];
    let mut files = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut files);
    let mut wrong = Vec::new();
    for file in files {
        let path = file.to_string_lossy().into_owned();
        let text = fs::read_to_string(&file).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        if !programs_own.iter().any(|own| path.contains(own)) {
            let counts = |l: &&str| {
                ["row {", "row: {", "row number {"].iter().any(|told| l.contains(told))
                    && l.contains('"')
            };
            wrong.extend(
                code.lines().filter(counts).map(|l| format!("{}: {}", file.display(), l.trim())),
            );
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_layering_check_bites() {
    for text in [
        "use crate::methods::train;",
        "use crate::{\n    Result,\n    linalg::{Matrix, dot},\n    methods::Problem,\n};",
    ] {
        assert_eq!(violations("gram", text), ["gram imports `methods` from its right"]);
    }
    assert!(
        violations("gram", "use crate::{Result, kernels::KernelSpec, linalg::Matrix};").is_empty()
    );
}

#[test]
fn every_method_has_a_page_and_stands_in_the_readme() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    for method in mercer::request::catalogue() {
        let page = root.join(format!("docs/methods/{}.md", method.name));
        let text = fs::read_to_string(&page).unwrap_or_else(|e| panic!("{}: {e}", page.display()));
        for heading in [
            "Problem",
            "Symbols",
            "Algorithm",
            "Where we differ",
            "Cost",
            "Certificate",
            "Reproduced",
        ] {
            assert!(text.contains(heading), "{}: no section `{heading}`", page.display());
        }
        assert!(
            readme.contains(&format!("`{}`", method.name)),
            "README.md does not name `{}`",
            method.name
        );
    }
}
