//! Texts such as `0.5*log + mf(0.5)`: one pass over the characters, and an error points at one of
//! them.
//!
//! ```text
//! sum  := term ("+" term)*
//! term := [number "*"] (log | gl | mkl | mf "(" number ")")
//! ```

use super::SelectionTerm;
use crate::{Error, Result};

const TERMS: &str = "a term (log, gl, mf(p), mkl)";
/// An error's caret is placed by a format width, which has an end.
const MAX_CHARS: usize = 1000;

/// The factors and terms of a sum.
pub(super) fn sum(text: &str) -> Result<Vec<(f64, SelectionTerm)>> {
    let chars: Vec<char> = text.chars().collect();
    if chars.len() > MAX_CHARS {
        return Err(Error::param(
            "penalty",
            format!("a text of at most {MAX_CHARS} characters"),
            chars.len(),
        ));
    }
    let mut reader = Reader { text, chars, at: 0 };
    let mut terms = Vec::new();
    loop {
        terms.push(reader.term()?);
        match reader.peek() {
            None => return Ok(terms),
            Some('+') => reader.at += 1,
            Some(_) => return reader.expected("`+` or the end"),
        }
    }
}

/// `at` counts characters.
struct Reader<'a> {
    text: &'a str,
    chars: Vec<char>,
    at: usize,
}

impl Reader<'_> {
    fn term(&mut self) -> Result<(f64, SelectionTerm)> {
        let mut factor = 1.0;
        if self.peek().is_some_and(|c| c.is_ascii_digit() || c == '.' || c == '-') {
            factor = self.number("a factor not below 0", |x| x >= 0.0)?;
            self.expect('*')?;
        }
        self.peek();
        let start = self.at;
        let term = match self.take(|_, c| c.is_alphanumeric()).as_str() {
            "log" => SelectionTerm::Log,
            "gl" => SelectionTerm::Gl,
            "mkl" => SelectionTerm::Mkl,
            "mf" => {
                self.expect('(')?;
                let p =
                    self.number("an exponent above 0 and not above 1", |p| p > 0.0 && p <= 1.0)?;
                self.expect(')')?;
                SelectionTerm::Mf(p)
            }
            _ => {
                self.at = start;
                return self.expected(TERMS);
            }
        };
        Ok((factor, term))
    }

    fn number(&mut self, what: &str, allowed: fn(f64) -> bool) -> Result<f64> {
        self.peek();
        let start = self.at;
        let part = |before: Option<char>, c: char| {
            c.is_ascii_digit()
                || matches!(c, '.' | 'e' | 'E')
                || (c == '-' && !matches!(before, Some('0'..='9' | '.')))
        };
        match self.take(part).parse::<f64>() {
            Ok(x) if x.is_finite() && allowed(x) => Ok(x),
            _ => {
                self.at = start;
                self.expected(what)
            }
        }
    }

    /// Characters while `part(previous one, this one)`.
    fn take(&mut self, part: impl Fn(Option<char>, char) -> bool) -> String {
        let start = self.at;
        let mut before = None;
        while let Some(&c) = self.chars.get(self.at).filter(|c| part(before, **c)) {
            before = Some(c);
            self.at += 1;
        }
        self.chars[start..self.at].iter().collect()
    }

    fn expect(&mut self, c: char) -> Result<()> {
        if self.peek() != Some(c) {
            return self.expected(&format!("`{c}`"));
        }
        self.at += 1;
        Ok(())
    }

    /// The next character that is not a space.
    fn peek(&mut self) -> Option<char> {
        while self.chars.get(self.at).is_some_and(|c| c.is_whitespace()) {
            self.at += 1;
        }
        self.chars.get(self.at).copied()
    }

    fn expected<T>(&self, what: &str) -> Result<T> {
        let found = self.chars.get(self.at).map_or("the end".into(), |c| format!("`{c}`"));
        let expected = format!("penalty: expected {what}, found {found}");
        Err(Error::Syntax { input: self.text.into(), at: self.at, expected })
    }
}
