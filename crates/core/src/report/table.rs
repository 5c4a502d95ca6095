//! An aligned text table.

/// Headers, a rule and one line per row. Columns of numbers are flushed right, others left; widths
/// count characters, and a short row is filled with blanks.
pub fn table<S: AsRef<str>>(headers: &[&str], rows: &[Vec<S>]) -> String {
    let cell = |row: usize, col: usize| rows[row].get(col).map_or("", AsRef::as_ref);
    let length = |text: &str| text.chars().count();
    let columns: Vec<(usize, bool)> = (0..headers.len())
        .map(|col| {
            let cells = || (0..rows.len()).map(move |row| cell(row, col));
            let width = cells().map(length).max().unwrap_or(0).max(length(headers[col]));
            (width, cells().all(is_number) && !rows.is_empty())
        })
        .collect();
    let line = |texts: &mut dyn Iterator<Item = &str>| {
        let mut out = String::new();
        for (text, &(width, right)) in texts.zip(&columns) {
            let gap = if out.is_empty() { "" } else { "  " };
            let cell =
                if right { format!("{gap}{text:>width$}") } else { format!("{gap}{text:<width$}") };
            out.push_str(&cell);
        }
        out.truncate(out.trim_end().len());
        out + "\n"
    };
    let rules: Vec<String> = columns.iter().map(|&(width, _)| "─".repeat(width)).collect();
    let mut out = line(&mut headers.iter().copied()) + &line(&mut rules.iter().map(String::as_str));
    for row in 0..rows.len() {
        out += &line(&mut (0..headers.len()).map(|col| cell(row, col)));
    }
    out
}

fn is_number(text: &str) -> bool {
    text.is_empty()
        || text == "–"
        || text.trim_start_matches(['-', '+']).starts_with(|c: char| c.is_ascii_digit())
}
