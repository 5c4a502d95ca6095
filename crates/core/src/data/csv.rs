//! Tables from delimited text.

use std::path::Path;

use ::csv::{ReaderBuilder, StringRecord};

use super::{
    Column, Table,
    read::{Format, ReadTable},
    source::{self, place_in},
    table::{Extra, first_repeated, number},
};
use crate::{Error, Result};

pub(super) const FORMAT: Format = Format {
    name: Some("csv, tsv"),
    extensions: &["csv", "tsv", "tab"],
    detect: |_| false,
    reader: ReadTable::Whole(Table::read),
};

impl Table {
    /// Reads a file: tabs for `.tsv` and `.tab`, otherwise whichever of `,` `;` and tab its first
    /// line uses most. Other formats: see [`crate::data::read`].
    pub fn read(path: &Path) -> Result<Self> {
        let bytes = source::read_all(path)?;
        let tabs = matches!(source::extension(path).as_str(), "tsv" | "tab");
        let delimiter = if tabs { b'\t' } else { sniff(&bytes) };
        Self::parse(&bytes, delimiter, path)
    }

    /// Reads text already in memory; `source` is what errors call it.
    ///
    /// The first row is a header if none of its fields is a number; otherwise columns are called
    /// `x1`, `x2`, ….
    pub fn parse(bytes: &[u8], delimiter: u8, source: &Path) -> Result<Self> {
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        let text = std::str::from_utf8(bytes).map_err(|e| {
            Error::file(
                source,
                place_in(bytes, e.valid_up_to(), "not valid UTF-8; save the file as UTF-8 text"),
            )
        })?;

        let (mut names, mut header, mut unnamed) = (Vec::new(), false, Vec::new());
        let mut numbers: Vec<Option<Vec<f64>>> = Vec::new();
        let mut lines = Vec::new();
        each_record(text, delimiter, source, |first, line, record| {
            if first {
                header = !record.iter().any(|field| number(field).is_some_and(f64::is_finite));
                names = (1..=record.len()).map(|j| format!("x{j}")).collect::<Vec<_>>();
                numbers = vec![Some(Vec::new()); record.len()];
                if header {
                    for (j, field) in record.iter().map(str::trim).enumerate() {
                        if field.is_empty() {
                            unnamed.push(j);
                        } else {
                            names[j] = field.to_string();
                        }
                    }
                    return;
                }
            }
            lines.push(line);
            for (field, column) in record.iter().zip(&mut numbers) {
                match (column.as_mut(), number(field)) {
                    (Some(values), Some(value)) => values.push(value),
                    _ => *column = None,
                }
            }
        })?;

        let n_rows = lines.len();
        if !text.contains('\n') {
            // Lines that end in a carriage return alone are not counted.
            lines.clear();
        }
        if n_rows == 0 {
            let problem =
                if header { "only a header, no rows of data" } else { "the file is empty" };
            return Err(Error::file(source, problem));
        }
        if let Some(j) = first_repeated(&names) {
            let at = field_at(bytes, first_of_record(bytes, 0), delimiter, j);
            let problem =
                format!("the header names two columns `{}`; rename one of them", names[j]);
            return Err(Error::file(source, place_in(bytes, at, problem)));
        }
        let mut columns: Vec<Column> = numbers
            .into_iter()
            .map(|n| n.map_or_else(|| Column::Text(Vec::new()), Column::Numeric))
            .collect();
        // A second pass only where there is text, so that a numeric table is never held as strings.
        if columns.iter().any(|c| matches!(c, Column::Text(_))) {
            each_record(text, delimiter, source, |first, _, record| {
                for (field, column) in record.iter().zip(&mut columns) {
                    if let (Column::Text(texts), false) = (column, first && header) {
                        texts.push(field.trim().to_string());
                    }
                }
            })?;
        }
        Ok(Self { names, columns, n_rows, header, unnamed, lines, extra: Extra::default() })
    }
}

/// Calls `visit(is_first, line, record)` for every record, with the line it begins at, counted from
/// 1; refuses ragged rows and a quote that is never closed.
fn each_record(
    text: &str,
    delimiter: u8,
    source: &Path,
    mut visit: impl FnMut(bool, usize, &StringRecord),
) -> Result<()> {
    let mut reader = ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .delimiter(delimiter)
        .from_reader(text.as_bytes());
    let mut record = StringRecord::new();
    let mut width = None;
    let start_of =
        |record: &StringRecord| record.position().map_or(0, |p| p.byte() as usize).min(text.len());
    while reader.read_record(&mut record).map_err(|e| Error::file(source, e))? {
        let first = width.is_none();
        let expected = *width.get_or_insert(record.len());
        // The reader ends an open quote at the end of the file, where it would swallow rows without
        // a word.
        let open_quote = reader.position().byte() as usize == text.len()
            && record.iter().any(|field| field.contains(['\n', '\r']))
            && text.get(start_of(&record)..).is_some_and(|rest| rest.matches('"').count() % 2 == 1);
        if open_quote || record.len() != expected {
            let start = first_of_record(text.as_bytes(), start_of(&record));
            let (at, problem) = if open_quote {
                (quote_at(text.as_bytes(), start), "opens a quote that is never closed".to_string())
            } else {
                let at = field_at(text.as_bytes(), start, delimiter, expected);
                (at, format!("the row has {} fields where {expected} were expected", record.len()))
            };
            return Err(Error::file(source, place_in(text.as_bytes(), at, problem)));
        }
        // The reader's own place is before the blank lines that it skips.
        let start = start_of(&record);
        let blank = &text.as_bytes()[start..first_of_record(text.as_bytes(), start)];
        let skipped = blank.split(|b| *b == b'\n').count() - 1;
        visit(first, record.position().map_or(0, |p| p.line() as usize) + skipped, &record);
    }
    Ok(())
}

/// Where the record at or after byte `at` begins: blank lines before it belong to none.
fn first_of_record(bytes: &[u8], at: usize) -> usize {
    at + bytes[at..].iter().take_while(|b| matches!(b, b'\n' | b'\r')).count()
}

/// Where field `k`, from 0, of the record at byte `start` begins; where the record ends if it has
/// no such field.
fn field_at(bytes: &[u8], start: usize, delimiter: u8, k: usize) -> usize {
    let (mut quoted, mut fields) = (false, 0);
    for (at, &byte) in bytes.iter().enumerate().skip(start) {
        match byte {
            _ if fields == k => return at,
            b'"' => quoted = !quoted,
            b'\n' | b'\r' if !quoted => return at,
            byte if byte == delimiter && !quoted => fields += 1,
            _ => {}
        }
    }
    bytes.len()
}

/// Where the quote opens that is still open at the end of the text. A doubled quote closes and
/// opens again, at the same place.
fn quote_at(bytes: &[u8], start: usize) -> usize {
    let (mut opened, mut closed) = (None, None);
    for at in (start..bytes.len()).filter(|&at| bytes[at] == b'"') {
        match opened {
            None if closed.is_some_and(|(_, end)| end + 1 == at) => {
                opened = closed.map(|(from, _)| from);
            }
            None => opened = Some(at),
            Some(from) => {
                closed = Some((from, at));
                opened = None;
            }
        }
    }
    opened.unwrap_or(start)
}

fn sniff(bytes: &[u8]) -> u8 {
    let (mut counts, mut quoted) = ([0; 3], false);
    let line = bytes
        .split(|b| matches!(b, b'\n' | b'\r'))
        .find(|line| !line.is_empty())
        .unwrap_or_default();
    for byte in line {
        match byte {
            b'"' => quoted = !quoted,
            b',' if !quoted => counts[0] += 1,
            b';' if !quoted => counts[1] += 1,
            b'\t' if !quoted => counts[2] += 1,
            _ => {}
        }
    }
    let [commas, semicolons, tabs] = counts;
    if commas >= semicolons.max(tabs) {
        b','
    } else if semicolons >= tabs {
        b';'
    } else {
        b'\t'
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::TaskHint;

    fn table(text: &str) -> Result<Table> {
        Table::parse(text.as_bytes(), sniff(text.as_bytes()), Path::new("t.csv"))
    }

    fn message<T: std::fmt::Debug>(result: Result<T>) -> String {
        result.unwrap_err().to_string()
    }

    #[test]
    fn columns_are_typed_and_found_by_name_or_position() {
        let t = table("\u{feff}age;\"a;b\";city\n1;2.5e0;Paris\n -3 ; NA ;\"Rio \"\"x\"\"\"\n")
            .unwrap();
        assert_eq!(t.names(), ["age", "a;b", "city"]);
        assert_eq!(t.n_rows(), 2);
        assert_eq!(t.column("age").unwrap(), &Column::Numeric(vec![1.0, -3.0]));
        assert_eq!(
            t.column("-1").unwrap(),
            &Column::Text(vec!["Paris".into(), "Rio \"x\"".into()])
        );
        assert_eq!(t.column("3").unwrap(), t.column("city").unwrap());
        assert!(
            matches!(t.column("2").unwrap(), Column::Numeric(v) if v[0] == 2.5 && v[1].is_nan())
        );
        for bad in ["0", "4", "-4", "ages"] {
            assert!(message(t.column(bad)).contains("`age`, `a;b`, `city`"), "{bad}");
        }
    }

    #[test]
    fn a_first_row_with_a_number_is_data() {
        let t = table("a\t1\nb\t2").unwrap();
        assert_eq!((t.names(), t.n_rows()), (&["x1".to_string(), "x2".to_string()][..], 2));
        assert_eq!(t.column("x1").unwrap(), &Column::Text(vec!["a".into(), "b".into()]));
    }

    #[test]
    fn broken_files_are_refused_with_line_and_column() {
        let read = |bytes: &[u8]| message(Table::parse(bytes, b',', Path::new("t.csv")));
        assert_eq!(
            read(b"a,b\n\n1,2\n\n3\n"),
            "t.csv: line 5, column 2: the row has 1 fields where 2 were expected"
        );
        assert_eq!(
            read(b"a,b\r\n1,2\r\n1,2,3\r\n"),
            "t.csv: line 3, column 5: the row has 3 fields where 2 were expected"
        );
        // A line break within quotes does not end a row, and the next row is counted on.
        assert_eq!(
            read(b"a,b\n\"x\ny\",2\n1,\"2,3\",4\n"),
            "t.csv: line 4, column 9: the row has 3 fields where 2 were expected"
        );
        assert_eq!(
            read(b"a,b\n1,x\n2,\"y\n3,z\n"),
            "t.csv: line 3, column 3: opens a quote that is never closed"
        );
        assert_eq!(
            read(b"a,b\n2,\"\"\"y\n3,z\n"),
            "t.csv: line 2, column 3: opens a quote that is never closed"
        );
        assert_eq!(
            read(b"a,b\n2,\"v\"\n3,\"z\nw"),
            "t.csv: line 3, column 3: opens a quote that is never closed"
        );
        assert!(read(b"a,b\n1,2\n1,\xff\n").contains("line 3, column 3: not valid UTF-8"));
        assert!(read(b"a,b\n").contains("no rows of data"));
        assert!(read(b"\xef\xbb\xbf\n\n").contains("is empty"));
        assert!(
            read(b"\na,b,a\n1,2,3\n")
                .contains("line 2, column 5: the header names two columns `a`")
        );
    }

    #[test]
    fn no_bytes_make_it_panic() {
        let alphabet = b"ab1.,;\t\"\n\r -?\xc3\xa9\xff";
        let mut rng = crate::data::Rng::new(3);
        let mut good = 0;
        for _ in 0..5000 {
            // Odd bytes last: most texts stay valid UTF-8.
            let known = if rng.below(4) == 0 { alphabet.len() } else { 13 };
            let bytes: Vec<u8> = (0..rng.below(24)).map(|_| alphabet[rng.below(known)]).collect();
            if let Ok(t) = Table::parse(&bytes, sniff(&bytes), Path::new("t.csv")) {
                good += 1;
                let rows = |c: &Column| match c {
                    Column::Numeric(v) => v.len(),
                    Column::Text(v) => v.len(),
                };
                assert!(t.columns.iter().all(|c| rows(c) == t.n_rows), "{bytes:?}");
                let _ = (t.dataset(&["-1"], None), t.target("1", TaskHint::Auto));
            }
        }
        assert!(good > 500, "{good}");
    }
}
