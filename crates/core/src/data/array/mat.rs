//! MATLAB's mat files, version 5 (what `save -v6` and `save -v7` write): full arrays of numbers and
//! of characters. Other variables (cells, structures, sparse ones) are passed over.

use std::{
    io::{BufRead, Read},
    path::Path,
};

use super::{Array, Values, c_order};
use crate::{Error, Result, data::source};

/// Types of data elements.
const INT8: u32 = 1;
const UINT8: u32 = 2;
const INT16: u32 = 3;
const UINT16: u32 = 4;
const INT32: u32 = 5;
const UINT32: u32 = 6;
const SINGLE: u32 = 7;
const DOUBLE: u32 = 9;
const INT64: u32 = 12;
const UINT64: u32 = 13;
const MATRIX: u32 = 14;
const COMPRESSED: u32 = 15;
const UTF8: u32 = 16;
const UTF16: u32 = 17;
/// The class number of arrays of characters.
const CHARS: u8 = 4;
/// The class numbers of full arrays of numbers.
const NUMBERS: std::ops::RangeInclusive<u8> = 6..=15;

pub fn read(mut input: Box<dyn BufRead + '_>, path: &Path) -> Result<Vec<(String, Array)>> {
    let failed = |problem: String| {
        Error::file(path, format!("not a readable mat file of version 5: {problem}"))
    };
    let arrays = variables(&mut *input).map_err(failed)?;
    if arrays.is_empty() {
        return Err(failed("it holds no full array of numbers or texts".into()));
    }
    Ok(arrays)
}

fn variables(input: &mut dyn BufRead) -> std::result::Result<Vec<(String, Array)>, String> {
    let mut header = [0; 128];
    input.read_exact(&mut header).map_err(|_| "it is shorter than its header")?;
    if header.starts_with(b"MATLAB 7.3") || header.starts_with(b"\x89HDF") {
        return Err("it is of version 7.3 (HDF5); save it with -v7".into());
    }
    match &header[126..] {
        b"IM" => {}
        b"MI" => {
            return Err("its byte order is big endian; save it again on a common machine".into());
        }
        _ => return Err("its header does not say so".into()),
    }
    let limit = source::machine_memory().unwrap_or(8 << 30) / 4;
    let mut arrays = Vec::new();
    let mut tag = [0; 8];
    while read_tag(input, &mut tag)? {
        let (kind, size) = (u32_at(&tag, 0), u32_at(&tag, 4) as usize);
        let mut bytes = Vec::new();
        let body = input.take(size as u64);
        let read = if kind == COMPRESSED {
            let mut inflated = flate2::read::ZlibDecoder::new(body).take(limit);
            let read = inflated.read_to_end(&mut bytes);
            // What the decoder did not want of this element.
            let mut rest = inflated.into_inner().into_inner();
            std::io::copy(&mut rest, &mut std::io::sink()).and(read)
        } else {
            { body }.read_to_end(&mut bytes)
        };
        read.map_err(|e| e.to_string())?;
        if kind != COMPRESSED && bytes.len() < size {
            return Err("it ends inside a variable".into());
        }
        let mut elements = Elements(&bytes);
        let matrix = if kind == COMPRESSED { elements.next()? } else { Some((kind, &*bytes)) };
        if let Some((MATRIX, body)) = matrix {
            arrays.extend(array(body)?);
        }
    }
    Ok(arrays)
}

fn read_tag(input: &mut dyn BufRead, tag: &mut [u8; 8]) -> std::result::Result<bool, String> {
    if input.fill_buf().map_err(|e| e.to_string())?.is_empty() {
        return Ok(false);
    }
    input.read_exact(tag).map(|()| true).map_err(|_| "it ends inside a tag".into())
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).map_or(0, |b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
}

/// Data elements one after another: (type, body).
struct Elements<'a>(&'a [u8]);

impl<'a> Elements<'a> {
    fn next(&mut self) -> std::result::Result<Option<(u32, &'a [u8])>, String> {
        if self.0.len() < 8 {
            return Ok(None);
        }
        let word = u32_at(self.0, 0);
        // A small element has its size in the upper half of its type and its body in the tag.
        let (kind, size, start) = match word >> 16 {
            0 => (word, u32_at(self.0, 4) as usize, 8usize),
            size => (word & 0xffff, size as usize, 4),
        };
        let body = self
            .0
            .get(start..start.saturating_add(size))
            .ok_or("an element is longer than its variable")?;
        let padded = if start == 4 { 8 } else { start + size.next_multiple_of(8) };
        self.0 = self.0.get(padded..).unwrap_or_default();
        Ok(Some((kind, body)))
    }
}

/// The array of a matrix element, if it is a full one.
fn array(body: &[u8]) -> std::result::Result<Option<(String, Array)>, String> {
    let mut elements = Elements(body);
    let mut next = || elements.next().map(|e| e.unwrap_or((0, &[])));
    let class = next()?.1.first().copied().unwrap_or(0);
    let shape: Vec<usize> = numbers(next()?)?.into_iter().map(|n| n.max(0.0) as usize).collect();
    let name = String::from_utf8_lossy(next()?.1).into_owned();
    if class != CHARS && !NUMBERS.contains(&class) {
        return Ok(None);
    }
    let values = numbers(next()?)?;
    if shape.iter().try_fold(1usize, |n, &s| n.checked_mul(s)) != Some(values.len()) {
        return Err(format!("variable `{name}` has {} elements and shape {shape:?}", values.len()));
    }
    let values = c_order(&shape, &values);
    if class != CHARS {
        return Ok(Some((name, Array { shape, values: Values::Numbers(values) })));
    }
    // A matrix of characters is a text per row, padded with spaces.
    let width = shape.last().copied().unwrap_or(0).max(1);
    let row = |row: &[f64]| {
        let text: String =
            row.iter().map(|&c| char::from_u32(c as u32).unwrap_or('\u{fffd}')).collect();
        text.trim_end().to_string()
    };
    let texts: Vec<String> = values.chunks(width).map(row).collect();
    Ok(Some((name, Array { shape: vec![texts.len()], values: Values::Texts(texts) })))
}

fn numbers((kind, body): (u32, &[u8])) -> std::result::Result<Vec<f64>, String> {
    fn all<const N: usize>(body: &[u8], read: impl Fn([u8; N]) -> f64) -> Vec<f64> {
        body.as_chunks::<N>().0.iter().map(|b| read(*b)).collect()
    }
    Ok(match kind {
        INT8 => all(body, |b| i8::from_le_bytes(b).into()),
        UINT8 | UTF8 => all(body, |b: [u8; 1]| b[0].into()),
        INT16 => all(body, |b| i16::from_le_bytes(b).into()),
        UINT16 | UTF16 => all(body, |b| u16::from_le_bytes(b).into()),
        INT32 => all(body, |b| i32::from_le_bytes(b).into()),
        UINT32 => all(body, |b| u32::from_le_bytes(b).into()),
        SINGLE => all(body, |b| f32::from_le_bytes(b).into()),
        DOUBLE => all(body, f64::from_le_bytes),
        INT64 => all(body, |b| i64::from_le_bytes(b) as f64),
        UINT64 => all(body, |b| u64::from_le_bytes(b) as f64),
        0 => Vec::new(),
        other => return Err(format!("elements of type {other}")),
    })
}
