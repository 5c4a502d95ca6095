//! Where words go: standard output, standard error, files.

use std::{
    borrow::Cow,
    io::{ErrorKind, IsTerminal as _, Write as _, stderr, stdout},
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
};

use mercer::{Error, Result, data::output};
use serde::Serialize;

/// Is standard output where a result goes that was to be a file? Words then go to standard error.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Words to standard output. A reader that has gone away (`mercer … | head`) is no error.
pub fn print(text: &str) -> Result<()> {
    if TAKEN.load(Ordering::Relaxed) {
        let _ = stderr().lock().write_all(harmless(text).as_bytes());
        return Ok(());
    }
    send(&harmless(text))
}

/// Data to standard output: as they are, unless a terminal would act on them.
pub fn data(text: &str) -> Result<()> {
    if stdout().is_terminal() { print(text) } else { send(text) }
}

fn send(text: &str) -> Result<()> {
    let mut out = stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => {
            Err(Error::file(Path::new("standard output"), e))
        }
        _ => Ok(()),
    }
}

/// One JSON object, and nothing else, on standard output.
pub fn json(value: &impl Serialize) -> Result<()> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|e| Error::file(Path::new("standard output"), e))?;
    print(&(text + "\n"))
}

/// A line on standard error; nobody is left to tell when that fails.
pub fn note(text: &str) {
    let _ = writeln!(stderr().lock(), "{}", harmless(text));
}

/// Control characters as text: a name in a stranger's file shall not move the cursor.
fn harmless(text: &str) -> Cow<'_, str> {
    let acts = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    if !text.contains(acts) {
        return Cow::Borrowed(text);
    }
    let shown = |c: char| if acts(c) { c.escape_unicode().to_string() } else { c.to_string() };
    Cow::Owned(text.chars().map(shown).collect())
}

/// Writes a file: readers see the old one or the whole new one (see [`output`]).
pub fn write_file(path: &Path, bytes: &[u8]) -> Result<()> {
    output::write(path, bytes)
}

/// Refuses, before any work is done, outputs that cannot be written, that are one file, or that are
/// an input.
pub fn check(outputs: &[(&str, Option<&Path>)], inputs: &[&Path]) -> Result<()> {
    let given: Vec<(&str, &Path)> =
        outputs.iter().filter_map(|(option, path)| Some((*option, (*path)?))).collect();
    output::check(&given, inputs)?;
    TAKEN.fetch_or(
        given.iter().any(|(_, path)| output::is_standard_output(path)),
        Ordering::Relaxed,
    );
    Ok(())
}

/// The command as it could be typed again.
pub fn command_line() -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,^+@%".contains(c);
    let quote = |arg: std::ffi::OsString| {
        let arg = arg.to_string_lossy().into_owned();
        if !arg.is_empty() && arg.chars().all(plain) {
            arg
        } else {
            format!("'{}'", arg.replace('\'', r"'\''"))
        }
    };
    let program = Some("mercer".to_string());
    program.into_iter().chain(std::env::args_os().skip(1).map(quote)).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_act_on_is_shown_as_text() {
        assert_eq!(harmless("a\u{1b}[31mb\tc\n"), "a\\u{1b}[31mb\tc\n");
        assert!(matches!(harmless("äöü – plain\n"), Cow::Borrowed(_)));
    }
}
