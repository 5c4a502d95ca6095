//! Any data file as a table. [`FORMATS`](super::FORMATS) lists the formats; a file's extension
//! decides between them, or else its first bytes.

use std::path::{Path, PathBuf};

use super::{
    FORMATS, Table, description,
    source::{self, Span},
};
use crate::{Error, Result};

/// One file format: how its files are recognised, and who reads them.
pub(super) struct Format {
    /// What the program's help calls it; `None` for a format that the list of formats does not
    /// name.
    pub name: Option<&'static str>,
    /// Extensions in lower case, below `.gz` and `.zst`.
    pub extensions: &'static [&'static str],
    /// Do these first bytes say that a file without a known extension is of this format?
    pub detect: fn(&[u8]) -> bool,
    pub reader: ReadTable,
}

/// How a file becomes a table.
pub(super) enum ReadTable {
    /// Reads every row; rows that are not wanted are dropped afterwards.
    Whole(fn(&Path) -> Result<Table>),
    /// Reads the wanted rows alone, and refuses them as soon as they take more bytes than the last
    /// argument allows.
    Rows(fn(&Path, Option<Span>, u64) -> Result<Table>),
}

/// A format that is known, so that its files are not taken for text, and not read.
pub(super) const PARQUET: Format = Format {
    name: None,
    extensions: &["parquet"],
    detect: |start| start.starts_with(b"PAR1"),
    reader: ReadTable::Whole(|path| {
        Err(Error::file(
            path,
            "Parquet is not read by the program; convert it to csv, npy or npz, or fit in Python, where the frames of pandas.read_parquet and \
             polars.read_parquet are taken as they are",
        ))
    }),
};

/// Reads a file of any known format, or a data description (`.toml`). The extension below `.gz` and
/// `.zst` decides which it is, else the first bytes do.
pub fn read(path: &Path) -> Result<Table> {
    read_within(path, None, None)
}

/// Some rows of a file. LIBSVM text is read no further than the last of them, and the others are
/// never held.
pub fn read_rows(path: &Path, rows: Span) -> Result<Table> {
    read_within(path, Some(rows), None)
}

/// All or some rows of a file whose rows may take `memory` bytes at most, half the machine's where
/// that is left open. Sparse rows are refused as soon as they do not fit, other files before they
/// are read on.
pub fn read_within(path: &Path, rows: Option<Span>, memory: Option<u64>) -> Result<Table> {
    let memory = memory.unwrap_or_else(|| source::machine_memory().unwrap_or(8 << 30) / 2);
    let table = match format_of(path)?.reader {
        ReadTable::Rows(read) => return read(path, rows, memory),
        ReadTable::Whole(read) => read(path)?,
    };
    let Some(rows) = rows else { return Ok(table) };
    if rows.first > table.n_rows() {
        let got = format!("{}-{}", rows.first, rows.last);
        return Err(Error::param("rows", format!("within 1-{}", table.n_rows()), got));
    }
    Ok(table.select_rows(&(0..table.n_rows()).filter(|&i| rows.contains(i)).collect::<Vec<_>>()))
}

/// The file itself and, of a data description, every file that it names, whether or not they are
/// there.
pub fn sources(path: &Path) -> Vec<PathBuf> {
    let mut found = vec![path.to_path_buf()];
    let mut next = 0;
    while let Some(at) = found.get(next).cloned() {
        next += 1;
        for file in description::named_files(&at) {
            if !found.contains(&file) {
                found.push(file);
            }
        }
    }
    found
}

/// The formats that [`read`] knows, as the program's help lists them.
pub fn format_names() -> String {
    FORMATS.iter().filter_map(|format| format.name).collect::<Vec<_>>().join(", ")
}

/// The format of a file; delimited text where neither its extension nor its first bytes are known.
fn format_of(path: &Path) -> Result<&'static Format> {
    let extension = source::extension(path);
    if let Some(format) =
        FORMATS.iter().find(|format| format.extensions.contains(&extension.as_str()))
    {
        return Ok(format);
    }
    let mut input = source::open(path)?;
    let start = input.fill_buf().map_err(|e| Error::file(path, e))?;
    Ok(FORMATS.iter().find(|format| (format.detect)(start)).unwrap_or(&FORMATS[0]))
}
