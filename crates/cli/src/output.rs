//! Where words go: standard output, standard error, files.

use std::{
    fs::{self, File},
    io::{ErrorKind, Write as _, stderr, stdout},
    path::Path,
};

use mercer::{Error, Result};
use serde::Serialize;

/// Writes to standard output. A reader that has gone away (`mercer … | head`) is no error.
pub fn print(text: &str) -> Result<()> {
    let mut out = stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => Err(Error::file(Path::new("standard output"), e)),
        _ => Ok(()),
    }
}

/// One JSON object, and nothing else, on standard output.
pub fn json(value: &impl Serialize) -> Result<()> {
    let text = serde_json::to_string_pretty(value).map_err(|e| Error::file(Path::new("standard output"), e))?;
    print(&(text + "\n"))
}

/// A line on standard error; nobody is left to tell when that fails.
pub fn note(text: &str) {
    let _ = writeln!(stderr().lock(), "{text}");
}

/// Writes to a temporary file beside `path`, syncs and renames: readers see the old file or the whole new one.
pub fn write_file(path: &Path, bytes: &[u8]) -> Result<()> {
    check_writable(path)?;
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{}.tmp", std::process::id()));
    let temporary = path.with_file_name(name);
    let write = || {
        let mut file = File::create(&temporary)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&temporary, path)
    };
    write().map_err(|e| {
        let _ = fs::remove_file(&temporary);
        Error::file(path, e)
    })
}

/// Refuses, before any work is done, a path that cannot become a file.
pub fn check_writable(path: &Path) -> Result<()> {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if path.file_name().is_none() || path.is_dir() {
        return Err(Error::file(path, "is a folder, and a file is to be written there"));
    }
    if !folder.is_dir() {
        return Err(Error::file(path, format!("the folder `{}` does not exist", folder.display())));
    }
    Ok(())
}

/// The command as it could be typed again.
pub fn command_line() -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,^+@%".contains(c);
    let quote = |arg: std::ffi::OsString| {
        let arg = arg.to_string_lossy().into_owned();
        if !arg.is_empty() && arg.chars().all(plain) { arg } else { format!("'{}'", arg.replace('\'', r"'\''")) }
    };
    let program = Some("mercer".to_string());
    program.into_iter().chain(std::env::args_os().skip(1).map(quote)).collect::<Vec<_>>().join(" ")
}
