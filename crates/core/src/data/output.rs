//! Results as files: the one place that writes them.
//!
//! A file appears whole or not at all: bytes go to a temporary file in the same folder, are synced,
//! and take the name in one step. Links are followed, a file that is replaced passes its
//! permissions on, and what is no regular file (a pipe, a terminal, `/dev/null`) is written into
//! and stays what it is. [`check`] says before any work is done which names cannot be used.

use std::{
    collections::hash_map::RandomState,
    fs::{self, File, OpenOptions, TryLockError},
    hash::BuildHasher as _,
    io::{self, ErrorKind, Write as _},
    path::{Path, PathBuf},
    time::SystemTime,
};

use super::sources;
use crate::{Error, Result};

/// Symbolic links that are followed in a row, as many as Linux follows; more are taken for a
/// circle.
const LINKS: usize = 40;
/// Names that are tried for a temporary file. They are drawn from 64 random bits: a second try is
/// not expected, and a hundredth says that something else is wrong.
const TRIES: usize = 100;

/// Where bytes are to go.
enum Destination {
    /// Into what is there.
    Into(File),
    /// Instead of what is there, if anything is; no link any more.
    Instead(PathBuf),
}

/// Writes a file: readers see the old one or the whole new one. Several threads, processes and
/// machines may write to one path at once; one of them comes last. What a killed process left
/// behind at this path is removed.
pub fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let failed = |e: io::Error| Error::file(path, format!("could not be written ({e})"));
    match place(path).map_err(failed)? {
        Destination::Into(mut file) => match file.write_all(bytes) {
            // A reader that has gone away (`… | head`) has all it wanted.
            Err(e) if e.kind() != ErrorKind::BrokenPipe => Err(failed(e)),
            _ => Ok(()),
        },
        Destination::Instead(target) => replace(&target, bytes).map_err(failed),
    }
}

/// Refuses, before any work is done, outputs (each with the option that names it) that cannot be
/// written, that are one file, or that are an input, under whatever name. Of a data description the
/// files that it names are inputs too.
pub fn check(outputs: &[(&str, &Path)], inputs: &[&Path]) -> Result<()> {
    let read: Vec<PathBuf> = inputs.iter().flat_map(|path| sources(path)).collect();
    let mut taken: Vec<(&str, Identity)> = Vec::new();
    for (option, path) in outputs {
        possible(path)?;
        let Some(own) = Identity::of(path) else { continue };
        if let Some(input) = read.iter().find(|input| Identity::of(input).as_ref() == Some(&own)) {
            let what =
                if input == path { String::new() } else { format!(" (as `{}`)", input.display()) };
            let problem = format!(
                "this command reads the file{what}, and {option} would replace it; name another file"
            );
            return Err(Error::file(path, problem));
        }
        if let Some((other, _)) = taken.iter().find(|(_, other)| *other == own) {
            let problem =
                format!("{other} and {option} name the same file; give each output its own");
            return Err(Error::file(path, problem));
        }
        taken.push((option, own));
    }
    Ok(())
}

/// Is this path the standard output of this process by name?
pub fn is_standard_output(path: &Path) -> bool {
    ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"].iter().any(|name| path == Path::new(name))
}

/// Can this path become a file, or be written into?
fn possible(path: &Path) -> Result<()> {
    if path.as_os_str().is_empty() {
        return Err(Error::file(path, "an output has an empty name; name a file"));
    }
    if path.file_name().is_none() || path.is_dir() {
        return Err(Error::file(path, "is a folder, and a file is to be written there"));
    }
    if is_stream(path) || fs::metadata(path).is_ok_and(|m| !m.is_file()) {
        return Ok(());
    }
    let target =
        followed(path).map_err(|e| Error::file(path, format!("cannot be written ({e})")))?;
    let folder = folder_of(&target);
    if !folder.is_dir() {
        return Err(Error::file(path, format!("the folder `{}` does not exist", folder.display())));
    }
    // Only the attempt tells: permissions, full disks and file systems that cannot be written to
    // have nothing else in common.
    match fs::symlink_metadata(&target) {
        Err(e) if e.kind() != ErrorKind::NotFound => {
            Err(Error::file(path, format!("cannot be written ({e})")))
        }
        _ => match temporary(&target) {
            Ok((trial, _file)) => {
                let _ = fs::remove_file(trial);
                Ok(())
            }
            Err(e) => Err(Error::file(
                path,
                format!("the folder `{}` takes no new file ({e})", folder.display()),
            )),
        },
    }
}

/// What makes two names one file: the file itself where it is there, else the place where it would
/// appear.
#[derive(Debug, PartialEq, Eq)]
enum Identity {
    #[cfg(unix)]
    File(u64, u64),
    Path(PathBuf),
}

impl Identity {
    /// None for what is no regular file: it can be read and written, by several at once, and
    /// nothing is replaced.
    fn of(path: &Path) -> Option<Self> {
        if is_stream(path) {
            return None;
        }
        match fs::metadata(path) {
            Ok(m) if !m.is_file() => None,
            #[cfg(unix)]
            Ok(m) => {
                use std::os::unix::fs::MetadataExt as _;
                Some(Self::File(m.dev(), m.ino()))
            }
            #[cfg(not(unix))]
            Ok(_) => fs::canonicalize(path).ok().map(Self::Path),
            Err(_) => {
                let target = followed(path).ok()?;
                let folder = fs::canonicalize(folder_of(&target)).ok()?;
                Some(Self::Path(folder.join(target.file_name()?)))
            }
        }
    }
}

/// Is this a name for a file that the process has open already?
fn is_stream(path: &Path) -> bool {
    ["/dev/stdout", "/dev/stderr"].iter().any(|name| path == Path::new(name))
        || ["/dev/fd", "/proc"].iter().any(|folder| path.starts_with(folder))
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn place(path: &Path) -> io::Result<Destination> {
    #[cfg(unix)]
    if is_standard_output(path) {
        use std::os::fd::AsFd as _;
        // Opened anew, a file that standard output was sent to would be written from its beginning.
        return io::stdout()
            .as_fd()
            .try_clone_to_owned()
            .map(|fd| Destination::Into(File::from(fd)));
    }
    let into = || OpenOptions::new().append(true).open(path).map(Destination::Into);
    if is_stream(path) {
        return into();
    }
    match fs::metadata(path) {
        Ok(m) if m.is_dir() => Err(io::Error::from(ErrorKind::IsADirectory)),
        Ok(m) if !m.is_file() => into(),
        Ok(_) => fs::canonicalize(path).map(Destination::Instead),
        Err(e) if e.kind() == ErrorKind::NotFound => followed(path).map(Destination::Instead),
        Err(e) => Err(e),
    }
}

/// The end of a chain of links, whether or not something is there.
fn followed(path: &Path) -> io::Result<PathBuf> {
    let mut at = path.to_path_buf();
    for _ in 0..LINKS {
        match fs::read_link(&at) {
            Ok(next) => at = folder_of(&at).join(next),
            Err(_) => return Ok(at),
        }
    }
    Err(io::Error::other("too many links"))
}

fn replace(target: &Path, bytes: &[u8]) -> io::Result<()> {
    remove_leftovers(target);
    let (temporary, mut file) = temporary(target)?;
    let mut finish = || {
        if let Ok(old) = fs::metadata(target) {
            pass_on(&old, &file)?;
        }
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&temporary, target)
    };
    finish().inspect_err(|_| {
        let _ = fs::remove_file(&temporary);
    })
}

/// Gives a new file the permissions of the one that it replaces, and its owner where that is
/// allowed.
fn pass_on(old: &fs::Metadata, file: &File) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        let new = file.metadata()?;
        if (new.uid(), new.gid()) != (old.uid(), old.gid()) {
            // Only the superuser may give files away.
            let _ = std::os::unix::fs::fchown(file, Some(old.uid()), Some(old.gid()));
        }
    }
    file.set_permissions(old.permissions())
}

/// How the names of temporary files for this target begin. The target's own name may be as long as
/// names can be, so that theirs cannot contain it.
fn prefix(target: &Path) -> String {
    let name = target.file_name().unwrap_or_default();
    format!(".mercer-{:08x}-", crc32fast::hash(name.as_encoded_bytes()))
}

/// A new file beside `target` under a name that nobody else has, locked for as long as it is open.
fn temporary(target: &Path) -> io::Result<(PathBuf, File)> {
    for _ in 0..TRIES {
        let drawn = RandomState::new().hash_one((std::process::id(), SystemTime::now()));
        let path = target.with_file_name(format!("{}{drawn:016x}.tmp", prefix(target)));
        let file = match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(file) => file,
            Err(e) if e.kind() == ErrorKind::AlreadyExists => continue,
            Err(e) => return Err(e),
        };
        // Between its making and its locking another process may have taken it for a leftover.
        if !matches!(file.try_lock(), Err(TryLockError::WouldBlock)) && path.exists() {
            return Ok((path, file));
        }
    }
    Err(io::Error::other("no temporary file could be made"))
}

/// Removes temporary files for `target` whose writers are gone: those that live hold a lock. Where
/// the file system has no locks nothing is removed.
fn remove_leftovers(target: &Path) {
    let prefix = prefix(target);
    for entry in fs::read_dir(folder_of(target)).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let ours = name
            .to_str()
            .and_then(|n| n.strip_prefix(&prefix))
            .is_some_and(|rest| rest.strip_suffix(".tmp").is_some());
        if !ours || !entry.file_type().is_ok_and(|t| t.is_file()) {
            continue;
        }
        let path = entry.path();
        if let Ok(file) = OpenOptions::new().write(true).open(&path)
            && file.try_lock().is_ok()
        {
            let _ = fs::remove_file(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An empty folder of its own.
    fn folder(name: &str) -> PathBuf {
        let path =
            std::env::temp_dir().join(format!("mercer-output-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        path
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut all: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|e| e.unwrap().file_name().to_string_lossy().into())
            .collect();
        all.sort();
        all
    }

    #[test]
    fn leftovers_of_the_dead_go_and_those_of_the_living_stay() {
        let at = folder("leftovers");
        let (target, other) = (at.join("m"), at.join("other"));
        let (dead, file) = temporary(&target).unwrap();
        drop(file);
        let (alive, _held) = temporary(&target).unwrap();
        let (foreign, file) = temporary(&other).unwrap();
        drop(file);
        write(&target, b"x").unwrap();
        assert!(!dead.exists() && alive.exists() && foreign.exists());
        assert_eq!(fs::read(&target).unwrap(), b"x");
        fs::remove_dir_all(at).unwrap();
    }

    #[test]
    fn many_threads_write_one_path_and_readers_see_whole_files() {
        let at = folder("threads");
        let target = at.join("m");
        write(&target, &[0; 10_000]).unwrap();
        std::thread::scope(|scope| {
            for t in 1..=4u8 {
                let target = &target;
                scope.spawn(move || (0..50).for_each(|_| write(target, &[t; 10_000]).unwrap()));
            }
            for _ in 0..200 {
                let bytes = fs::read(&target).unwrap();
                assert!(bytes.len() == 10_000 && bytes.iter().all(|b| *b == bytes[0]));
            }
        });
        assert_eq!(names(&at), ["m"]);
        fs::remove_dir_all(at).unwrap();
    }

    #[test]
    fn names_as_long_as_names_can_be_are_written_and_longer_ones_refused_before() {
        let at = folder("long");
        let fits = at.join("n".repeat(255));
        check(&[("--output", &fits)], &[]).unwrap();
        write(&fits, b"x").unwrap();
        assert!(check(&[("--output", &at.join("n".repeat(256)))], &[]).is_err());
        assert!(
            check(&[("--output", &at.join("none/m"))], &[])
                .unwrap_err()
                .to_string()
                .contains("does not exist")
        );
        assert!(check(&[("--output", &at)], &[]).unwrap_err().to_string().contains("is a folder"));
        assert_eq!(names(&at).len(), 1);
        fs::remove_dir_all(at).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_permissions_stay_and_devices_are_written_into() {
        use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _, symlink};
        let at = folder("links");
        let (real, link, dangling) = (at.join("real"), at.join("link"), at.join("dangling"));
        fs::write(&real, b"old").unwrap();
        fs::set_permissions(&real, fs::Permissions::from_mode(0o600)).unwrap();
        symlink("real", &link).unwrap();
        symlink("later", &dangling).unwrap();
        write(&link, b"new").unwrap();
        write(&dangling, b"there").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&real).unwrap(), b"new");
        assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read(at.join("later")).unwrap(), b"there");
        let null = Path::new("/dev/null");
        check(&[("--output", null), ("--report", null)], &[null]).unwrap();
        write(null, b"x").unwrap();
        assert!(fs::metadata(null).unwrap().file_type().is_char_device());
        fs::remove_dir_all(at).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn outputs_that_are_inputs_or_each_other_are_refused_under_every_name() {
        let at = folder("same");
        let data = at.join("d.csv");
        fs::write(&data, b"x\n1\n").unwrap();
        let (hard, soft) = (at.join("hard.csv"), at.join("soft.csv"));
        fs::hard_link(&data, &hard).unwrap();
        std::os::unix::fs::symlink(&data, &soft).unwrap();
        let dotted = at.join("../").join(at.file_name().unwrap()).join("d.csv");
        for name in [&data, &hard, &soft, &dotted] {
            let message = check(&[("--output", name)], &[&data]).unwrap_err().to_string();
            assert!(
                message.contains("this command reads the file") && message.contains("--output"),
                "{message}"
            );
        }
        let (one, two) = (at.join("new"), at.join("./new"));
        let message =
            check(&[("--output", &one), ("--report", &two)], &[&data]).unwrap_err().to_string();
        assert!(message.contains("--output and --report name the same file"), "{message}");
        check(&[("--output", &one), ("--report", &at.join("page"))], &[&data]).unwrap();
        let told = at.join("d.toml");
        fs::write(
            &told,
            "[[view]]\nname = \"v\"\nfile = \"d.csv\"\n[[view]]\nname = \"w\"\nfile = \"d.toml\"\n",
        )
        .unwrap();
        assert!(
            check(&[("--output", &hard)], &[&told]).is_err(),
            "a file that the description names"
        );
        assert_eq!(fs::read(&data).unwrap(), b"x\n1\n");
        fs::remove_dir_all(at).unwrap();
    }
}
