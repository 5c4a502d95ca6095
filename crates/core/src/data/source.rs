//! Files as streams: compression seen through, lines counted, nothing read without a limit.

use std::{
    fs::File,
    io::{BufRead, BufReader, Read},
    path::Path,
};

use crate::{Error, Result};

/// The longest line that is read, in bytes (256 MiB); a file that is not text at all would fill the
/// memory with one line.
const LONGEST_LINE: usize = 1 << 28;

/// Some rows of a file: every `step`-th one from the first to the last, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The first row, at least 1.
    pub first: usize,
    /// The last row that may be taken, at least `first`.
    pub last: usize,
    /// Every `step`-th row is taken, from the first on; at least 1.
    pub step: usize,
}

impl Span {
    /// Is row `index`, counted from 0, among them?
    pub fn contains(&self, index: usize) -> bool {
        let row = index + 1;
        (self.first..=self.last).contains(&row) && (row - self.first).is_multiple_of(self.step)
    }
}

/// Opens a file. What starts like gzip or zstd is decompressed on the way, whatever the file is
/// called.
pub fn open(path: &Path) -> Result<Box<dyn BufRead>> {
    let failed = |e: std::io::Error| Error::file(path, e);
    let mut file = BufReader::with_capacity(1 << 16, File::open(path).map_err(failed)?);
    let magic = file.fill_buf().map_err(failed)?;
    Ok(match magic {
        [0x1f, 0x8b, ..] => Box::new(BufReader::new(flate2::bufread::MultiGzDecoder::new(file))),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => {
            let decoder =
                ruzstd::decoding::StreamingDecoder::new(file).map_err(|e| Error::file(path, e))?;
            Box::new(BufReader::new(decoder))
        }
        _ => Box::new(file),
    })
}

/// The whole file, decompressed; refused where it would take more than half the machine's memory.
pub fn read_all(path: &Path) -> Result<Vec<u8>> {
    let limit = machine_memory().unwrap_or(8 << 30) / 2;
    let mut bytes = Vec::new();
    open(path)?.take(limit + 1).read_to_end(&mut bytes).map_err(|e| Error::file(path, e))?;
    if bytes.len() as u64 > limit {
        return Err(Error::file(
            path,
            "is larger than half the machine's memory; use fewer rows or columns",
        ));
    }
    Ok(bytes)
}

/// Memory of the machine in bytes, where that can be read.
pub(crate) fn machine_memory() -> Option<u64> {
    let info = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = info.lines().find(|l| l.starts_with("MemTotal:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kib| kib * 1024)
}

/// `data.csv.gz` → `csv`: the last extension below compression, in lower case.
pub(crate) fn extension(path: &Path) -> String {
    let lower =
        |p: &Path| p.extension().and_then(|e| e.to_str()).unwrap_or_default().to_ascii_lowercase();
    match lower(path).as_str() {
        "gz" | "zst" | "zstd" => {
            path.file_stem().map(|stem| lower(Path::new(stem))).unwrap_or_default()
        }
        other => other.to_string(),
    }
}

/// Text line by line, in one buffer.
pub(crate) struct Lines<'a> {
    input: Box<dyn BufRead + 'a>,
    source: &'a Path,
    buffer: Vec<u8>,
    /// Lines read so far: the number, from 1, of the last one.
    pub number: usize,
}

impl<'a> Lines<'a> {
    pub fn new(input: impl BufRead + 'a, source: &'a Path) -> Self {
        Self { input: Box::new(input), source, buffer: Vec::new(), number: 0 }
    }

    /// The next line without its end; `None` at the end of the text.
    pub fn next(&mut self) -> Result<Option<&str>> {
        self.buffer.clear();
        let read = (&mut self.input).take(LONGEST_LINE as u64).read_until(b'\n', &mut self.buffer);
        if read.map_err(|e| Error::file(self.source, e))? == 0 {
            return Ok(None);
        }
        self.number += 1;
        if self.buffer.len() == LONGEST_LINE {
            return Err(self.error(1, "the line does not end; is this a text file?"));
        }
        let bytes = match self.buffer.as_slice() {
            [0xef, 0xbb, 0xbf, rest @ ..] if self.number == 1 => rest,
            all => all,
        };
        let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        std::str::from_utf8(bytes).map(Some).map_err(|e| {
            Error::file(
                self.source,
                place(self.number, e.valid_up_to() + 1, "not valid UTF-8 text"),
            )
        })
    }

    /// An error at a column of the last line, counted in bytes from 1.
    pub fn error(&self, column: usize, problem: impl AsRef<str>) -> Error {
        Error::file(self.source, place(self.number, column, problem.as_ref()))
    }
}

fn place(line: usize, column: usize, problem: &str) -> String {
    format!("line {line}, column {column}: {problem}")
}

/// `problem` at byte `at` of a text: its line and its column, counted in bytes, both from 1.
pub(super) fn place_in(text: &[u8], at: usize, problem: impl AsRef<str>) -> String {
    let before = &text[..at.min(text.len())];
    let lines = |end: u8| before.split(|&b| b == end).count();
    let start = before.iter().rposition(|b| matches!(b, b'\n' | b'\r')).map_or(0, |last| last + 1);
    place(lines(b'\n').max(lines(b'\r')), before.len() - start + 1, problem.as_ref())
}

/// A text cut to what fits in a message.
pub(crate) fn shown(text: &str) -> String {
    let end = text.char_indices().nth(30).map_or(text.len(), |(end, _)| end);
    format!("`{}{}`", &text[..end], if end < text.len() { "…" } else { "" })
}
