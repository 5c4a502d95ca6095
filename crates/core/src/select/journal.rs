//! A file of finished runs: JSON lines, each synced before the next run is counted, so that a crash
//! loses what was running and no more.
//!
//! The first line holds a fingerprint of data, request and version; a journal of another piece of
//! work is refused. A last line that a crash cut short is dropped. The file is locked, so two
//! programs cannot write to it at once.

use std::{
    collections::HashMap,
    fmt::{self, Write as _},
    fs::{File, OpenOptions},
    io::{Read as _, Seek as _, SeekFrom, Write as _},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::Study;
use crate::{Error, Result, prepare::Source};

#[derive(Serialize, Deserialize)]
struct Head {
    mercer_journal: u32,
    key: String,
}

/// How the first line begins.
const HEAD: &[u8] = b"{\"mercer_journal\":";

#[derive(Serialize, Deserialize)]
struct Entry {
    id: String,
    run: Value,
}

/// Finished runs by their names.
#[derive(Debug)]
pub struct Journal {
    found: HashMap<String, Value>,
    file: Option<(PathBuf, Mutex<File>)>,
}

impl Journal {
    /// Makes a journal that keeps nothing.
    pub fn none() -> Self {
        Self { found: HashMap::new(), file: None }
    }

    /// Opens or begins the journal of the work with this fingerprint.
    pub fn open(path: &Path, key: &str) -> Result<Self> {
        let fail = |e: std::io::Error| Error::file(path, e);
        if std::fs::metadata(path).is_ok_and(|m| !m.is_file()) {
            return Err(Error::file(
                path,
                "is no regular file, and a journal is read again; name a file",
            ));
        }
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(fail)?;
        if file.try_lock().is_err() {
            return Err(Error::file(
                path,
                "another run is writing to this journal; wait for it, or name another file",
            ));
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(fail)?;
        // Whatever follows the last line break was cut short.
        let whole = bytes.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
        let text = std::str::from_utf8(&bytes[..whole])
            .map_err(|_| Error::file(path, "is no journal of mercer"))?;
        let mut lines = text.lines();
        let mut found = HashMap::new();
        match lines.next() {
            // A crash may have cut the very first line short; any other text is somebody's file.
            None if !bytes.starts_with(&HEAD[..bytes.len().min(HEAD.len())]) => {
                return Err(Error::file(path, "is no journal of mercer"));
            }
            None => {}
            Some(first) => {
                let head: Head = serde_json::from_str(first)
                    .map_err(|_| Error::file(path, "is no journal of mercer"))?;
                if head.key != key {
                    let problem = "belongs to other data, another request or another version of mercer; \
                                   remove it, or name another file";
                    return Err(Error::file(path, problem));
                }
            }
        }
        for (number, line) in lines.enumerate() {
            let entry: Entry = serde_json::from_str(line).map_err(|e| {
                Error::file(path, format!("line {} is damaged ({e}); remove it", number + 2))
            })?;
            found.insert(entry.id, entry.run);
        }
        file.set_len(whole as u64).map_err(fail)?;
        file.seek(SeekFrom::Start(whole as u64)).map_err(fail)?;
        if whole == 0 {
            write_line(&mut file, &Head { mercer_journal: 1, key: key.into() }).map_err(fail)?;
        }
        Ok(Self { found, file: Some((path.into(), Mutex::new(file))) })
    }

    /// How many runs were found.
    pub fn len(&self) -> usize {
        self.found.len()
    }

    /// Were no earlier runs found?
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// A run that was found.
    pub fn get<T: DeserializeOwned>(&self, id: &str) -> Result<Option<T>> {
        let path = self.file.as_ref().map_or(Path::new("journal"), |f| f.0.as_path());
        let read = |run: &Value| serde_json::from_value(run.clone());
        self.found
            .get(id)
            .map(read)
            .transpose()
            .map_err(|e| Error::file(path, format!("run `{id}` is damaged ({e})")))
    }

    /// Writes a finished run and waits until it is on the disk.
    pub fn put<T: Serialize>(&self, id: &str, run: &T) -> Result<()> {
        let Some((path, file)) = &self.file else { return Ok(()) };
        let run = serde_json::to_value(run).map_err(|e| Error::file(path, e))?;
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        write_line(&mut file, &Entry { id: id.into(), run }).map_err(|e| Error::file(path, e))
    }
}

fn write_line(file: &mut File, value: &impl Serialize) -> std::io::Result<()> {
    let line = serde_json::to_string(value)? + "\n";
    file.write_all(line.as_bytes())?;
    file.sync_data()
}

/// 128 bits of FNV-1a over everything written to it.
struct Hash(u128);

impl fmt::Write for Hash {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            self.0 =
                (self.0 ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013B);
        }
        Ok(())
    }
}

/// What tells one piece of work from another: the data to the last bit, the request and the
/// version.
pub(super) fn fingerprint(study: Study<'_>, request: &impl Serialize) -> String {
    let Study { source, target, weight, groups, protocol, .. } = study;
    let mut hash = Hash(0x6C62_272E_07BB_0142_62B8_2175_6295_C58D);
    // Writing to a hash cannot fail.
    let _ = match source {
        Source::Table(data) => write!(hash, "{data:?}"),
        Source::Ready(stack) => write!(hash, "{stack:?}"),
    };
    let request = serde_json::to_string(request).unwrap_or_default();
    let _ = write!(
        hash,
        "{target:?}{weight:?}{groups:?}{protocol:?}{request}{}",
        env!("CARGO_PKG_VERSION")
    );
    format!("{:032x}", hash.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_survive_and_a_cut_line_does_not() {
        let path = std::env::temp_dir().join(format!("mercer-journal-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        {
            let journal = Journal::open(&path, "k").unwrap();
            assert!(journal.is_empty());
            journal.put("a", &0.1).unwrap();
            assert!(Journal::open(&path, "k").unwrap_err().to_string().contains("another run"));
        }
        let mut bytes = std::fs::read(&path).unwrap();
        bytes.extend_from_slice(br#"{"id":"b","run":0."#);
        std::fs::write(&path, &bytes).unwrap();
        let journal = Journal::open(&path, "k").unwrap();
        assert_eq!((journal.len(), journal.get::<f64>("a").unwrap()), (1, Some(0.1)));
        assert_eq!(journal.get::<f64>("b").unwrap(), None);
        journal.put("b", &0.2).unwrap();
        drop(journal);
        assert_eq!(Journal::open(&path, "k").unwrap().get::<f64>("b").unwrap(), Some(0.2));
        assert!(Journal::open(&path, "other").unwrap_err().to_string().contains("other data"));
        for other in ["x,y\n1,2\n", "a note without a line break", "{}"] {
            std::fs::write(&path, other).unwrap();
            assert!(Journal::open(&path, "k").unwrap_err().to_string().contains("no journal"));
            assert_eq!(std::fs::read_to_string(&path).unwrap(), other);
        }
        std::fs::write(&path, "{\"mercer_jou").unwrap();
        assert!(Journal::open(&path, "k").unwrap().is_empty());
        std::fs::remove_file(&path).unwrap();
    }
}
