//! NumPy's array format: a header that is a Python dict, then the elements.

use std::{
    io::{BufRead, Write},
    path::Path,
};

use super::{Array, Values, c_order, elements};
use crate::{Error, Result, data::source};

const MAGIC: &[u8] = b"\x93NUMPY";
/// The longest header that is read, in bytes; plain arrays have a hundred or so, and a damaged
/// length must not ask for gigabytes.
const LONGEST_HEADER: usize = 1 << 20;
/// The longest text that an element may hold, in characters; a longer one is taken for damage.
const LONGEST_TEXT: usize = 1 << 20;

pub fn read(input: &mut dyn BufRead, source: &Path) -> Result<Array> {
    array(input)
        .map_err(|problem| Error::file(source, format!("not a readable npy array: {problem}")))
}

fn array(input: &mut dyn BufRead) -> std::result::Result<Array, String> {
    let header = header(input)?;
    let count = header
        .shape
        .iter()
        .try_fold(1usize, |n, &s| n.checked_mul(s))
        .ok_or("its shape is too large")?;
    let kind = ElementKind::of(&header.descr)?;
    let room = source::machine_memory().unwrap_or(8 << 30) / 2;
    if (count as u64).saturating_mul(kind.held()) > room {
        return Err(format!("{count} elements would take more than half the machine's memory"));
    }
    let values = match kind {
        ElementKind::Text { chars, size, swap } => {
            let mut texts = Vec::new();
            elements(input, count, chars * size, |b| texts.push(text(b, size, swap)))?;
            Values::Texts(texts)
        }
        ElementKind::Number { size, read, swap } => {
            let mut numbers = Vec::new();
            elements(input, count, size, |b| {
                let mut own = [0; 8];
                own[..size].copy_from_slice(b);
                if swap {
                    own[..size].reverse();
                }
                numbers.push(read(own));
            })?;
            Values::Numbers(numbers)
        }
    };
    let values = match (header.fortran && header.shape.len() > 1, values) {
        (false, values) => values,
        (true, Values::Numbers(v)) => Values::Numbers(c_order(&header.shape, &v)),
        (true, Values::Texts(v)) => Values::Texts(c_order(&header.shape, &v)),
    };
    Ok(Array { shape: header.shape, values })
}

struct NpyHeader {
    descr: String,
    fortran: bool,
    shape: Vec<usize>,
}

fn header(input: &mut dyn BufRead) -> std::result::Result<NpyHeader, String> {
    let mut start = [0; 8];
    input.read_exact(&mut start).map_err(|_| "it is shorter than a header")?;
    if !start.starts_with(MAGIC) {
        return Err("it does not start with \\x93NUMPY".into());
    }
    let mut length = [0; 4];
    let width = if start[6] == 1 { 2 } else { 4 };
    input.read_exact(&mut length[..width]).map_err(|_| "it ends in its header")?;
    let length = u32::from_le_bytes(length) as usize;
    if length > LONGEST_HEADER {
        return Err(format!("its header claims {length} bytes"));
    }
    let mut text = vec![0; length];
    input.read_exact(&mut text).map_err(|_| "it ends in its header")?;
    let text = String::from_utf8_lossy(&text);
    let after = |key: &str| -> std::result::Result<&str, String> {
        let at =
            text.find(&format!("'{key}'")).ok_or_else(|| format!("its header has no `{key}`"))?;
        let rest = text[at + key.len() + 2..].trim_start();
        Ok(rest
            .strip_prefix(':')
            .ok_or_else(|| format!("its header has no value for `{key}`"))?
            .trim_start())
    };
    let descr = after("descr")?;
    let quote = descr.chars().next().filter(|c| matches!(c, '\'' | '"'));
    let descr = quote
        .and_then(|q| descr[1..].split(q).next())
        .ok_or("it holds records, not plain elements")?;
    let shape = after("shape")?;
    let inside = shape
        .strip_prefix('(')
        .and_then(|s| s.split(')').next())
        .ok_or("its shape is not a tuple")?;
    let numbers = inside.split(',').map(str::trim).filter(|s| !s.is_empty());
    let length = |s: &str| s.parse().map_err(|_| format!("its shape has `{s}`"));
    let shape = numbers.map(length).collect::<std::result::Result<_, String>>()?;
    Ok(NpyHeader {
        descr: descr.to_string(),
        fortran: after("fortran_order")?.starts_with("True"),
        shape,
    })
}

enum ElementKind {
    Number { size: usize, read: fn([u8; 8]) -> f64, swap: bool },
    Text { chars: usize, size: usize, swap: bool },
}

impl ElementKind {
    /// Bytes that an element takes once it is read.
    fn held(&self) -> u64 {
        match self {
            Self::Number { .. } => 8,
            Self::Text { chars, .. } => 24 + *chars as u64,
        }
    }

    fn of(descr: &str) -> std::result::Result<Self, String> {
        let rest = descr.strip_prefix(['<', '>', '|', '=']).unwrap_or(descr);
        let swap = descr.starts_with('>');
        if let Some(length) = rest.strip_prefix(['U', 'S']) {
            let chars: usize = length.parse().map_err(|_| format!("elements of kind `{descr}`"))?;
            let size = if rest.starts_with('U') { 4 } else { 1 };
            if chars > LONGEST_TEXT {
                return Err(format!("texts of {chars} characters"));
            }
            return Ok(Self::Text {
                chars: chars.max(1),
                size: if chars == 0 { 0 } else { size },
                swap,
            });
        }
        let (size, read): (usize, fn([u8; 8]) -> f64) =
            match rest {
                "f8" => (8, f64::from_le_bytes),
                "f4" => (4, |b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]).into()),
                "i8" => (8, |b| i64::from_le_bytes(b) as f64),
                "u8" => (8, |b| u64::from_le_bytes(b) as f64),
                "i4" => (4, |b| i32::from_le_bytes([b[0], b[1], b[2], b[3]]).into()),
                "u4" => (4, |b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]).into()),
                "i2" => (2, |b| i16::from_le_bytes([b[0], b[1]]).into()),
                "u2" => (2, |b| u16::from_le_bytes([b[0], b[1]]).into()),
                "i1" => (1, |b| b[0].cast_signed().into()),
                "u1" | "b1" => (1, |b| b[0].into()),
                "O" => return Err(
                    "it holds Python objects, which only Python can read; save numbers or texts"
                        .into(),
                ),
                _ => {
                    return Err(format!(
                        "elements of kind `{descr}`, which are neither numbers nor texts"
                    ));
                }
            };
        Ok(Self::Number { size, read, swap })
    }
}

/// Zeros at the end are padding.
fn text(bytes: &[u8], size: usize, swap: bool) -> String {
    let text: String = if size == 4 {
        let (units, _) = bytes.as_chunks::<4>();
        let unit = |b: &[u8; 4]| if swap { u32::from_be_bytes(*b) } else { u32::from_le_bytes(*b) };
        units.iter().map(|b| char::from_u32(unit(b)).unwrap_or('\u{fffd}')).collect()
    } else {
        String::from_utf8_lossy(bytes).into_owned()
    };
    text.trim_end_matches('\0').to_string()
}

pub fn write(to: &mut impl Write, shape: &[usize], values: &[f64]) -> std::io::Result<()> {
    write_header(to, "<f8", shape)?;
    for chunk in values.chunks(4096) {
        let bytes: Vec<u8> = chunk.iter().flat_map(|v| v.to_le_bytes()).collect();
        to.write_all(&bytes)?;
    }
    Ok(())
}

pub fn write_texts(to: &mut impl Write, texts: &[String]) -> std::io::Result<()> {
    let width = texts.iter().map(|t| t.chars().count()).max().unwrap_or(0).max(1);
    write_header(to, &format!("<U{width}"), &[texts.len()])?;
    for text in texts {
        let units = text.chars().map(u32::from).chain(std::iter::repeat(0)).take(width);
        to.write_all(&units.flat_map(u32::to_le_bytes).collect::<Vec<u8>>())?;
    }
    Ok(())
}

fn write_header(to: &mut impl Write, descr: &str, shape: &[usize]) -> std::io::Result<()> {
    let axes = shape.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let axes = if shape.len() == 1 { axes + "," } else { axes };
    let dict = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({axes}), }}");
    // The elements start on a 64-byte border.
    let length = (10 + dict.len() + 1).next_multiple_of(64) - 10;
    to.write_all(MAGIC)?;
    to.write_all(&[1, 0])?;
    to.write_all(&u16::try_from(length).unwrap_or(u16::MAX).to_le_bytes())?;
    writeln!(to, "{dict:<width$}", width = length - 1)
}
