//! Named arrays: NumPy's npy and npz, MATLAB's mat files of version 5.

use std::{
    fs::File,
    io::{BufRead, BufReader, Read, Seek, Write},
    path::Path,
};

use super::{
    read::{Format, ReadTable},
    source,
};
use crate::{Error, Result};

mod columns;
mod mat;
mod npy;

pub(super) use columns::columns_of;

pub(super) const FORMAT: Format = Format {
    name: Some("npy, npz, mat"),
    extensions: &["npy", "npz", "mat"],
    detect: |start| start.starts_with(b"\x93NUM"),
    reader: ReadTable::Whole(|path| columns::table(read(path)?, path)),
};

/// Does the name of this file say that it holds arrays?
pub(super) fn is_array_file(path: &Path) -> bool {
    FORMAT.extensions.contains(&source::extension(path).as_str())
}

/// Numbers or texts in C order (last index fastest).
#[derive(Debug, Clone, PartialEq)]
pub struct Array {
    /// Lengths of the axes; none for a single value.
    pub shape: Vec<usize>,
    /// The elements, in C order.
    pub values: Values,
}

/// The elements of an array.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// Numbers of any kind, as doubles.
    Numbers(Vec<f64>),
    /// Texts, one for each element.
    Texts(Vec<String>),
}

/// The arrays of a file: one without a name for npy, all of them for npz and mat. An archive is
/// told by its first bytes, whatever its name.
pub fn read(path: &Path) -> Result<Vec<(String, Array)>> {
    let mut start = [0; 4];
    let archive = File::open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok()
        && start == *b"PK\x03\x04";
    match source::extension(path).as_str() {
        _ if archive => npz(path, open_seekable(path)?),
        "npz" => npz(path, open_seekable(path)?),
        "mat" => mat::read(source::open(path)?, path),
        _ => Ok(vec![(String::new(), npy::read(&mut source::open(path)?, path)?)]),
    }
}

fn open_seekable(path: &Path) -> Result<BufReader<File>> {
    File::open(path).map(BufReader::new).map_err(|e| Error::file(path, e))
}

fn npz(path: &Path, file: impl Read + Seek) -> Result<Vec<(String, Array)>> {
    let failed =
        |e: zip::result::ZipError| Error::file(path, format!("not a readable npz archive ({e})"));
    let mut archive = zip::ZipArchive::new(file).map_err(failed)?;
    let mut arrays = Vec::new();
    for k in 0..archive.len() {
        let entry = archive.by_index(k).map_err(failed)?;
        let name = entry.name().map_err(failed)?.into_owned();
        if let Some(name) = name.strip_suffix(".npy") {
            let array = npy::read(&mut BufReader::new(entry), path);
            arrays.push((
                name.to_string(),
                array.map_err(|e| Error::file(path, format!("array `{name}`: {e}")))?,
            ));
        }
    }
    if arrays.is_empty() {
        return Err(Error::file(path, "the archive holds no arrays (no entry ends in .npy)"));
    }
    Ok(arrays)
}

/// Arrays from bytes in memory, as [`read`] takes them from a file of that extension.
pub fn parse(bytes: &[u8], extension: &str, source: &Path) -> Result<Vec<(String, Array)>> {
    match extension {
        "npz" => npz(source, std::io::Cursor::new(bytes)),
        "mat" => mat::read(Box::new(bytes), source),
        _ => Ok(vec![(String::new(), npy::read(&mut &*bytes, source)?)]),
    }
}

/// Writes an npz archive. Deflated, with a fixed date: the same arrays make the same bytes.
pub fn write_npz<'a>(
    to: impl Write + Seek,
    arrays: impl IntoIterator<Item = (&'a str, &'a Array)>,
) -> std::io::Result<()> {
    let options = zip::write::SimpleFileOptions::default()
        .compression_method(zip::CompressionMethod::Deflated)
        .last_modified_time(zip::DateTime::default())
        .large_file(true);
    let mut archive = zip::ZipWriter::new(to);
    for (name, array) in arrays {
        archive.start_file(format!("{name}.npy"), options)?;
        match &array.values {
            Values::Numbers(values) => npy::write(&mut archive, &array.shape, values)?,
            Values::Texts(texts) => npy::write_texts(&mut archive, texts)?,
        }
    }
    archive.finish()?;
    Ok(())
}

/// Writes an npy file of numbers.
pub fn write_npy(to: &mut impl Write, shape: &[usize], values: &[f64]) -> std::io::Result<()> {
    npy::write(to, shape, values)
}

/// Exactly `count` elements of `size` bytes, in chunks, so that a false count costs nothing.
fn elements(
    input: &mut dyn BufRead,
    count: usize,
    size: usize,
    mut take: impl FnMut(&[u8]),
) -> std::result::Result<(), String> {
    let mut buffer = vec![0; size.max(1) * 4096.min(count.max(1))];
    let mut left = count;
    while left > 0 {
        let now = left.min(4096);
        let chunk = &mut buffer[..now * size];
        input.read_exact(chunk).map_err(|e| match e.kind() {
            std::io::ErrorKind::UnexpectedEof => format!("ends {left} elements early, of {count}"),
            _ => e.to_string(),
        })?;
        chunk.chunks_exact(size).for_each(&mut take);
        left -= now;
    }
    Ok(())
}

/// From first index fastest to last index fastest.
fn c_order<T: Clone>(shape: &[usize], values: &[T]) -> Vec<T> {
    let mut out = Vec::with_capacity(values.len());
    let mut index = vec![0; shape.len()];
    let strides: Vec<usize> = shape
        .iter()
        .scan(1, |stride, n| {
            let own = *stride;
            *stride *= n;
            Some(own)
        })
        .collect();
    for _ in 0..values.len() {
        out.push(values[index.iter().zip(&strides).map(|(i, s)| i * s).sum::<usize>()].clone());
        for axis in (0..shape.len()).rev() {
            index[axis] += 1;
            if index[axis] < shape[axis] {
                break;
            }
            index[axis] = 0;
        }
    }
    out
}
