//! Text to bank: one pass over the characters, no recursion, and every error points at one of them.

use super::{
    AUTO, Bank, Clause, Cols, Given, KernelList, MAX_KERNELS, NumberKernel, PAPER, Scope,
    ScopedKernels, Series, TextKind, list,
    numbers::{self, Argument, NumberRule},
    parse,
};
use crate::{
    Error, Result,
    kernels::{Alphabet, Distance, Scoring},
};

/// Longer texts are refused: an error's caret is placed by a format width, which ends at 65535.
const MAX_CHARS: usize = 60_000;
/// The kernels beside those of numbers, as an error lists them.
const OTHER_KERNELS: &str =
    "precomputed; of text: spectrum, mismatch, wd, wdsum, alignment; of graphs: wl";
/// Words of the kernels beside those of numbers.
const OTHER_WORDS: [&str; 7] =
    ["spectrum", "mismatch", "wd", "wdsum", "precomputed", "alignment", "wl"];
const ALPHABETS: &str = "an alphabet (dna, rna, protein, free)";

pub(super) fn bank(text: &str) -> Result<Bank> {
    let mut parser = Parser::new(text);
    if parser.chars.len() > MAX_CHARS {
        return Err(Error::param(
            "kernels",
            format!("a text of at most {MAX_CHARS} characters"),
            parser.chars.len(),
        ));
    }
    let mut parts = vec![parser.part()?];
    while parser.eat(";") {
        parts.push(parser.part()?);
    }
    Ok(Bank { parts })
}

const BASE: NumberRule =
    NumberRule { holds: |x| x > 0.0 && x < f64::INFINITY, text: "a positive base" };
const EXPONENT: NumberRule =
    NumberRule { holds: |x| x.fract() == 0.0 && x.abs() <= 1e6, text: "an integer exponent" };
/// `MAX_WORD` and `MAX_SHIFT` of the string kernels, as numbers that stand in texts.
const LENGTH: NumberRule = NumberRule {
    holds: |x| x.fract() == 0.0 && (1.0..=64.0).contains(&x),
    text: "a number of letters (an integer from 1 to 64)",
};
const MISMATCHES: NumberRule = NumberRule {
    holds: |x| x.fract() == 0.0 && (0.0..=64.0).contains(&x),
    text: "a number of mismatches",
};
const SHIFT: NumberRule = NumberRule {
    holds: |x| x.fract() == 0.0 && (0.0..=1000.0).contains(&x),
    text: "a shift (an integer from 0 to 1000)",
};
const COST: NumberRule = NumberRule {
    holds: |x| x.fract() == 0.0 && (0.0..=1000.0).contains(&x),
    text: "a cost (an integer from 0 to 1000)",
};
const ROUNDS: NumberRule = NumberRule {
    holds: |x| x.fract() == 0.0 && (0.0..=20.0).contains(&x),
    text: "a number of rounds (an integer from 0 to 20)",
};
const BANDS: NumberRule = NumberRule {
    holds: |x| x.fract() == 0.0 && (1.0..=1e9).contains(&x),
    text: "a number of bands (an integer from 1)",
};

struct ParsedNumber {
    value: f64,
    /// Base and exponent, if written as a power.
    power: Option<(f64, i32)>,
}

/// Reads a text from left to right; `at` is the character it has come to.
struct Parser<'a> {
    text: &'a str,
    chars: Vec<char>,
    at: usize,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Self {
        Self { text, chars: text.chars().collect(), at: 0 }
    }

    fn part(&mut self) -> Result<Clause> {
        match self.named()? {
            Some(part) => Ok(part),
            None => self.group().map(Clause::Written),
        }
    }

    fn group(&mut self) -> Result<ScopedKernels> {
        let mut kernels = vec![self.kernel()?];
        while self.eat(",") {
            kernels.push(self.kernel()?);
        }
        if !self.eat_word("on") {
            self.end_of_group("`,`, `on`, `;` or the end")?;
            return Ok(ScopedKernels { kernels, scopes: vec![Scope::All] });
        }
        let mut scopes = vec![self.scope()?];
        while self.eat(",") {
            scopes.push(self.scope()?);
        }
        self.end_of_group("`,`, `;` or the end")?;
        Ok(ScopedKernels { kernels, scopes })
    }

    fn named(&mut self) -> Result<Option<Clause>> {
        let bank = self.eat_word("bank");
        let part = if self.eat_word("paper") {
            Clause::Written(Parser::new(PAPER).group()?)
        } else if self.eat_word("auto") {
            let mut groups: Vec<ScopedKernels> = parse(AUTO)?.groups().cloned().collect();
            groups
                .iter_mut()
                .flat_map(|g| &mut g.scopes)
                .filter(|s| **s == Scope::Each)
                .for_each(|s| *s = Scope::EachIfFew);
            Clause::Auto(groups)
        } else if bank {
            return self.expected("a named bank (auto, paper)");
        } else {
            return Ok(None);
        };
        self.end_of_group("`;` or the end")?;
        Ok(Some(part))
    }

    fn kernel(&mut self) -> Result<KernelList> {
        let start = self.skip_space();
        let word = self.word();
        let bracket = self.open();
        if let Some(kernel) = NumberKernel::find(&word, bracket) {
            let given = self.arguments(kernel, bracket)?;
            return Ok(KernelList::Numbers { kernel, given });
        }
        match word.as_str() {
            "precomputed" => self.precomputed(),
            "alignment" => self.alignment(),
            "wl" => self.graph_kernel(),
            word if let Some((kind, _)) =
                TextKind::ALL.into_iter().find(|(_, name)| *name == word) =>
            {
                self.text_kernel(kind)
            }
            _ => {
                self.at = start;
                let numbers = list(numbers::words(), ", ");
                self.expected(&format!("a kernel ({numbers}, {OTHER_KERNELS})"))
            }
        }
    }

    /// The arguments of a kernel of numbers: without a bracket the defaults, in a bracket at least
    /// the first.
    fn arguments(&mut self, kernel: &NumberKernel, bracket: bool) -> Result<Vec<Given>> {
        let defaults: Option<Vec<Given>> = kernel.arguments.iter().map(Argument::default).collect();
        match defaults {
            Some(defaults) if !bracket || defaults.is_empty() => return Ok(defaults),
            _ => self.expect_arguments(kernel.example)?,
        }
        let mut given = Vec::with_capacity(kernel.arguments.len());
        for argument in kernel.arguments {
            let written = given.is_empty() || self.eat(",");
            given.push(match argument.default() {
                Some(default) if !written => default,
                None if !written => return self.expected("`,`"),
                _ => self.argument(argument)?,
            });
        }
        self.expect(")")?;
        Ok(given)
    }

    fn argument(&mut self, argument: &Argument) -> Result<Given> {
        match argument {
            Argument::Number { name, rule, .. } => {
                if name.is_some_and(|name| self.eat_word(name)) {
                    self.expect("=")?;
                }
                // + 0.0 makes 0 of -0.
                Ok(Given::Number(self.number(rule)?.value + 0.0))
            }
            Argument::Scale { .. } if self.eat_word("auto") => Ok(Given::Auto),
            Argument::Scale { deviation: true, .. } if self.eat_word("deviation") => {
                Ok(Given::Deviation)
            }
            Argument::List { rule, .. } | Argument::Scale { rule, .. } => {
                self.numbers(rule).map(Given::List)
            }
            Argument::Distance => {
                let at = self.skip_space();
                let word = self.word();
                let Some((distance, _)) = Distance::ALL.into_iter().find(|(_, name)| *name == word)
                else {
                    self.at = at;
                    let words = list(Distance::ALL.map(|(_, word)| word), ", ");
                    return self.expected(&format!("a distance ({words})"));
                };
                Ok(Given::Distance(distance))
            }
        }
    }

    fn precomputed(&mut self) -> Result<KernelList> {
        if !self.eat("(") {
            return Ok(KernelList::Precomputed(None));
        }
        let (name, _) = self.name("the name of a view of kernel values")?;
        self.expect(")")?;
        Ok(KernelList::Precomputed(Some(name)))
    }

    fn alignment(&mut self) -> Result<KernelList> {
        self.expect_arguments("alignment(blosum62)")?;
        let at = self.skip_space();
        let word = self.word();
        let Some((scoring, _)) = Scoring::ALL.into_iter().find(|(_, name)| *name == word) else {
            self.at = at;
            return self.expected("a scoring (blosum62, pam50)");
        };
        let mut costs = [11, 1];
        for (cost, name) in costs.iter_mut().zip(["open", "extend"]) {
            if !self.eat(",") {
                break;
            }
            if self.eat_word(name) {
                self.expect("=")?;
            }
            *cost = self.number(&COST)?.value as u32;
        }
        self.expect(")")?;
        Ok(KernelList::Alignment { scoring, open: costs[0], extend: costs[1] })
    }

    fn graph_kernel(&mut self) -> Result<KernelList> {
        self.expect_arguments("wl(3)")?;
        let rounds = self.numbers(&ROUNDS)?;
        self.expect(")")?;
        Ok(KernelList::Wl(rounds))
    }

    fn text_kernel(&mut self, kind: TextKind) -> Result<KernelList> {
        let second = if kind == TextKind::Mismatch { ", 1" } else { "" };
        self.expect_arguments(&format!("{}(3{second})", kind.word()))?;
        let start = self.skip_space();
        let lengths = self.numbers(&LENGTH)?;
        let (mut extra, mut alphabet) = (0, None);
        let more = self.eat(",");
        if kind == TextKind::Mismatch && !more {
            return self.expected("`,` and a number of mismatches");
        }
        if more {
            let (name, rule) =
                if kind == TextKind::Mismatch { ("m", &MISMATCHES) } else { ("shift", &SHIFT) };
            let named = self.eat_word(name);
            if named {
                self.expect("=")?;
            }
            let at = self.skip_space();
            let digit = self
                .chars
                .get(at)
                .is_some_and(|c| c.is_ascii_digit() || matches!(c, '-' | '+' | '.'));
            if named || kind == TextKind::Mismatch || (kind != TextKind::Spectrum && digit) {
                extra = self.number(rule)?.value as u32;
                let shortest = lengths.iter().flat_map(Series::values).fold(f64::MAX, f64::min);
                if kind == TextKind::Mismatch && f64::from(extra) >= shortest {
                    return self.error(start, "fewer mismatches than letters are possible");
                }
                if self.eat(",") {
                    alphabet = Some(self.alphabet()?);
                }
            } else {
                alphabet = Some(self.alphabet()?);
            }
        }
        self.expect(")")?;
        Ok(KernelList::Text { kind, lengths, extra, alphabet })
    }

    fn alphabet(&mut self) -> Result<Alphabet> {
        let start = self.skip_space();
        let word = self.word();
        let Some((alphabet, _)) = Alphabet::ALL.into_iter().find(|(_, name)| *name == word) else {
            self.at = start;
            return self.expected(ALPHABETS);
        };
        Ok(alphabet)
    }

    /// Does a bracket follow?
    fn open(&mut self) -> bool {
        let at = self.skip_space();
        self.chars.get(at) == Some(&'(')
    }

    /// The bracket of a kernel that has no setting to fall back on; `example` shows how it is
    /// written.
    fn expect_arguments(&mut self, example: &str) -> Result<()> {
        if self.eat("(") {
            Ok(())
        } else {
            self.expected(&format!("`(` and what the kernel needs, as in `{example}`"))
        }
    }

    fn scope(&mut self) -> Result<Scope> {
        let start = self.skip_space();
        match self.word().as_str() {
            "all" => Ok(Scope::All),
            "each" => Ok(Scope::Each),
            "cols" => {
                self.expect("(")?;
                let mut items = vec![self.columns()?];
                while self.eat(",") {
                    items.push(self.columns()?);
                }
                self.expect(")")?;
                Ok(Scope::Cols(items))
            }
            "bands" => {
                self.expect("(")?;
                let k = self.number(&BANDS)?.value as usize;
                self.expect(")")?;
                Ok(Scope::Bands(k))
            }
            "view" => {
                self.expect("(")?;
                let (name, _) = self.name("the name of a view")?;
                self.expect(")")?;
                Ok(Scope::View(name))
            }
            word => {
                let hint = if OTHER_WORDS.contains(&word) || numbers::words().contains(&word) {
                    " (a new group of kernels starts after `;`)"
                } else {
                    ""
                };
                self.at = start;
                self.expected(&format!("a scope (all, each, cols(…), bands(k), view(name)){hint}"))
            }
        }
    }

    fn columns(&mut self) -> Result<Cols> {
        let start = self.skip_space();
        let (name, in_quotes) = self.name("a column: a name, a number or a span such as 2-5")?;
        let (first, last) = name.split_once('-').unwrap_or((&name, &name));
        let is_index =
            |s: &str| !s.trim().is_empty() && s.trim().chars().all(|c| c.is_ascii_digit());
        if in_quotes || !is_index(first) || !is_index(last) {
            return Ok(Cols::Name(name));
        }
        match (first.trim().parse(), last.trim().parse()) {
            (Ok(first), Ok(last)) if 1 <= first && first <= last => Ok(Cols::Span(first, last)),
            _ => self.error(
                start,
                format!("columns count from 1 and a span goes upwards, found `{name}`"),
            ),
        }
    }

    /// A name in quotes (a doubled quote stands for one) or everything up to `,` or `)`; and
    /// whether it was quoted.
    fn name(&mut self, what: &str) -> Result<(String, bool)> {
        let start = self.skip_space();
        let mut name = String::new();
        if !self.eat("\"") {
            while let Some(&c) = self.chars.get(self.at).filter(|&&c| !matches!(c, ',' | ')')) {
                if matches!(c, '(' | '"' | ';') {
                    return self
                        .expected("`,` or `)` (a name with brackets, quotes, commas or semicolons goes in \"…\")");
                }
                name.push(c);
                self.at += 1;
            }
            let name = name.trim_end();
            return if name.is_empty() { self.expected(what) } else { Ok((name.into(), false)) };
        }
        while let Some(&c) = self.chars.get(self.at) {
            self.at += 1;
            if c == '"' {
                if self.chars.get(self.at) != Some(&'"') {
                    return Ok((name, true));
                }
                self.at += 1;
            }
            name.push(c);
        }
        self.error(start, "this quote is never closed")
    }

    fn numbers(&mut self, rule: &NumberRule) -> Result<Vec<Series>> {
        let mut all = vec![self.one_or_range(rule)?];
        while self.eat("|") {
            all.push(self.one_or_range(rule)?);
        }
        Ok(all)
    }

    fn one_or_range(&mut self, rule: &NumberRule) -> Result<Series> {
        let start = self.skip_space();
        let from = self.number(rule)?;
        if !self.eat("..") {
            return Ok(Series::One(from.value));
        }
        let to = self.number(rule)?;
        let range = match (from.power, to.power) {
            (None, None) if from.value <= to.value => {
                Series::Steps { from: from.value, to: to.value }
            }
            (Some((base, from)), Some((same, to))) if base == same && from <= to => {
                Series::Powers { base, from, to }
            }
            _ => {
                let what = "a range goes upwards between two numbers or two powers of one base, as 1..3 or 2^-3..2^6";
                return self.error(start, what);
            }
        };
        if range.count() > MAX_KERNELS {
            return self.error(start, format!("this range has more than {MAX_KERNELS} steps"));
        }
        Ok(range)
    }

    fn number(&mut self, rule: &NumberRule) -> Result<ParsedNumber> {
        let start = self.skip_space();
        let (mut value, mut power) = (self.decimal(rule.text)?, None);
        if self.eat("^") {
            let base = value;
            self.check(start, base, &BASE)?;
            let at = self.skip_space();
            let exponent = self.decimal(EXPONENT.text)?;
            self.check(at, exponent, &EXPONENT)?;
            (value, power) = (base.powi(exponent as i32), Some((base, exponent as i32)));
        }
        self.check(start, value, rule)?;
        Ok(ParsedNumber { value, power })
    }

    fn decimal(&mut self, what: &str) -> Result<f64> {
        let start = self.skip_space();
        let char_at = |i: usize| self.chars.get(i).copied().unwrap_or(' ');
        let digits_from = |i: usize| {
            i + self.chars[i.min(self.chars.len())..]
                .iter()
                .take_while(|c| c.is_ascii_digit())
                .count()
        };
        let unsigned = start + usize::from(matches!(char_at(start), '-' | '+'));
        let mut end = digits_from(unsigned);
        // Not the first dot of a range.
        if char_at(end) == '.' && char_at(end + 1).is_ascii_digit() {
            end = digits_from(end + 1);
        }
        if end > unsigned && matches!(char_at(end), 'e' | 'E') {
            let exponent = end + 1 + usize::from(matches!(char_at(end + 1), '-' | '+'));
            if digits_from(exponent) > exponent {
                end = digits_from(exponent);
            }
        }
        match self.chars[start..end].iter().collect::<String>().parse() {
            Ok(value) if end > unsigned => {
                self.at = end;
                Ok(value)
            }
            _ => self.expected(what),
        }
    }

    fn check(&self, start: usize, value: f64, rule: &NumberRule) -> Result<()> {
        if (rule.holds)(value) {
            return Ok(());
        }
        let found: String = self.chars[start..self.at].iter().collect();
        self.error(start, format!("expected {}, found `{}`", rule.text, found.trim_end()))
    }

    fn skip_space(&mut self) -> usize {
        self.at += self.chars[self.at..].iter().take_while(|c| c.is_whitespace()).count();
        self.at
    }

    fn eat(&mut self, token: &str) -> bool {
        let start = self.skip_space();
        let here = self.chars[start..].iter().copied().take(token.len()).eq(token.chars());
        self.at += if here { token.len() } else { 0 };
        here
    }

    fn word(&mut self) -> String {
        let start = self.skip_space();
        let word: String =
            self.chars[start..].iter().take_while(|c| c.is_alphanumeric() || **c == '_').collect();
        self.at += word.chars().count();
        word
    }

    fn eat_word(&mut self, word: &str) -> bool {
        let start = self.skip_space();
        let here = self.word() == word;
        self.at = if here { self.at } else { start };
        here
    }

    fn expect(&mut self, token: &str) -> Result<()> {
        if self.eat(token) { Ok(()) } else { self.expected(&format!("`{token}`")) }
    }

    fn end_of_group(&mut self, what: &str) -> Result<()> {
        let at = self.skip_space();
        if matches!(self.chars.get(at), None | Some(';')) { Ok(()) } else { self.expected(what) }
    }

    fn expected<T>(&mut self, what: &str) -> Result<T> {
        let start = self.skip_space();
        let mut found = self.word();
        self.at = start;
        if found.is_empty() {
            found.extend(self.chars.get(start));
        }
        let found =
            if found.is_empty() { "the end of the text".into() } else { format!("`{found}`") };
        self.error(start, format!("expected {what}, found {found}"))
    }

    fn error<T>(&self, at: usize, expected: impl Into<String>) -> Result<T> {
        Err(Error::Syntax { input: self.text.into(), at, expected: expected.into() })
    }
}

#[cfg(test)]
mod tests;
