//! The kernel language: `rbf(2^-3..2^6), poly(1..3) on all, each` becomes a bank of base kernels.
//!
//! ```text
//! bank   := group (";" group)*
//! group  := kernel ("," kernel)* ["on" scope ("," scope)*]  |  ["bank"] ("auto" | "paper")
//! kernel := a kernel of numbers, as `number_kernels()` lists them
//!         | spectrum(lengths[, alphabet]) | mismatch(lengths, m[, alphabet])
//!         | alignment(scoring[, open[, extend]]) | wl(rounds)
//!         | wd(degrees[, shift][, alphabet]) | wdsum(degrees[, shift][, alphabet])
//!         | precomputed | precomputed(view)
//! scope  := all | each | cols(a-b, name, "a name", …) | bands(k) | view(name)
//! ```
//!
//! Numbers are 0.5, 1e-3 or 2^-3; lists 1|2|5; ranges 1..3 (steps of 1) and 2^-3..2^6 (steps of the
//! exponent). A width may be `auto`, which each kernel's entry in [`number_kernels`] explains; the
//! widths of `rbf` may be `deviation`, the root of the summed variances of the scope's columns.
//! String kernels read columns of text, one kernel for each column of the scope; alphabets are dna,
//! rna, protein and free, and without one the letters decide. Without `on`, a group is `on all`.
//! `precomputed` reads kernel values computed elsewhere; `precomputed(name)` is
//! `precomputed on view(name)`. `paper` is the bank of the GMKL paper, [`PAPER`]; `auto` is
//! [`AUTO`], the second group only while there are at most 100 features.

use std::fmt;

use super::{Alphabet, Distance, Scoring};
use crate::Result;

mod numbers;
mod parser;
mod resolve;
mod scopes;

pub(crate) use numbers::same_but_for_scales;
pub use numbers::{NumberKernel, number_kernel, number_kernels};
pub(crate) use resolve::{not_negative, readable};

/// What `paper` stands for: 13 kernels on all features and 13 on each.
pub const PAPER: &str = "rbf(2^-3..2^6), poly(1..3) on all, each";

/// What `auto` stands for while there are at most 100 features: 8 kernels of all of them together,
/// and one of each alone. Chosen over 25 tables (docs/defaults.md): with all eight on each feature
/// as well, fits took four times as long, and learned weights lost 13 points of R² to equal ones on
/// one table.
pub const AUTO: &str = "rbf(auto), poly(1..3) on all; rbf(deviation) on each";

/// The most kernels that a bank may have, and steps that a range may have: they are counted before
/// any is made.
const MAX_KERNELS: usize = 1_000_000;
/// Allowed widths and factors: their squares must be ordinary numbers.
const WIDTHS: std::ops::RangeInclusive<f64> = 1e-150..=1e150;

/// A parsed bank of kernels; its `Display` is a text that parses back to the same bank.
#[derive(Debug, Clone, PartialEq)]
pub struct Bank {
    parts: Vec<Clause>,
}

/// Reads a text of the kernel language; an error points at one of its characters.
pub fn parse(text: &str) -> Result<Bank> {
    parser::bank(text)
}

/// The views that a text names in `precomputed(…)`.
pub fn precomputed(text: &str) -> Result<Vec<String>> {
    let bank = parse(text)?;
    let lists = bank.groups().flat_map(|g| &g.kernels);
    Ok(lists
        .filter_map(|f| {
            if let KernelList::Precomputed(Some(name)) = f { Some(name.clone()) } else { None }
        })
        .collect())
}

impl Bank {
    fn groups(&self) -> impl Iterator<Item = &ScopedKernels> {
        self.parts.iter().flat_map(|part| match part {
            Clause::Auto(groups) => groups.as_slice(),
            Clause::Written(group) => std::slice::from_ref(group),
        })
    }
}

/// What stands between semicolons.
#[derive(Debug, Clone, PartialEq)]
enum Clause {
    /// The bank `auto`, with what it stands for.
    Auto(Vec<ScopedKernels>),
    Written(ScopedKernels),
}

#[derive(Debug, Clone, PartialEq)]
struct ScopedKernels {
    kernels: Vec<KernelList>,
    scopes: Vec<Scope>,
}

/// What one kernel expression stands for: kernels that differ in a degree, a width, or a length of
/// words.
#[derive(Debug, Clone, PartialEq)]
enum KernelList {
    /// Kernels of numbers; one entry of `given` per argument of the kernel.
    Numbers {
        kernel: &'static NumberKernel,
        given: Vec<Given>,
    },
    Alignment {
        scoring: Scoring,
        open: u32,
        extend: u32,
    },
    Wl(Vec<Series>),
    /// String kernels, one per length of words; `extra` is the number of mismatches, or the shift.
    Text {
        kind: TextKind,
        lengths: Vec<Series>,
        extra: u32,
        alphabet: Option<Alphabet>,
    },
    /// Ready-made values of the view named, or else of the view that the scope names.
    Precomputed(Option<String>),
}

/// An argument as it was written.
#[derive(Debug, Clone, PartialEq)]
enum Given {
    List(Vec<Series>),
    Number(f64),
    Distance(Distance),
    /// Widths or factors that the training rows decide.
    Auto,
    /// One width: the standard deviation of the column, over several columns the root of their
    /// summed variances.
    Deviation,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TextKind {
    Spectrum,
    Mismatch,
    Wd,
    WdSum,
}

impl TextKind {
    const ALL: [(Self, &'static str); 4] = [
        (Self::Spectrum, "spectrum"),
        (Self::Mismatch, "mismatch"),
        (Self::Wd, "wd"),
        (Self::WdSum, "wdsum"),
    ];

    fn word(self) -> &'static str {
        Self::ALL.iter().find(|(kind, _)| *kind == self).map_or("", |(_, word)| word)
    }
}

/// One entry of a list of numbers: a number, or a range.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Series {
    One(f64),
    Steps { from: f64, to: f64 },
    Powers { base: f64, from: i32, to: i32 },
}

impl Series {
    fn count(&self) -> usize {
        match *self {
            Self::One(_) => 1,
            // The tolerance keeps the end of 0.1..2.1 although 2.1 − 0.1 is a little below 2.
            Self::Steps { from, to } => ((to - from + 1e-9) as usize).saturating_add(1),
            Self::Powers { from, to, .. } => from.abs_diff(to) as usize + 1,
        }
    }

    fn values(&self) -> impl Iterator<Item = f64> + use<> {
        let numbers = *self;
        (0..self.count()).map(move |k| match numbers {
            Self::One(value) => value,
            Self::Steps { from, .. } => from + k as f64,
            Self::Powers { base, from, .. } => base.powi(from.saturating_add_unsigned(k as u32)),
        })
    }
}

#[derive(Debug, Clone, PartialEq)]
enum Scope {
    All,
    Each,
    /// Each feature, as long as there are at most `scopes::AUTO_EACH`; occurs in the bank `auto`
    /// alone.
    EachIfFew,
    Cols(Vec<Cols>),
    Bands(usize),
    View(String),
}

#[derive(Debug, Clone, PartialEq)]
enum Cols {
    /// First to last, counted from 1.
    Span(usize, usize),
    Name(String),
}

/// The shortest text that reads back as `x`, with an exponent only where there would be many zeros.
fn short(x: f64) -> String {
    if x == 0.0 || (1e-6..1e16).contains(&x.abs()) { x.to_string() } else { format!("{x:e}") }
}

/// A name as `cols(…)` and `view(…)` take it: in quotes unless it is a plain word, and not a
/// scope's.
fn quoted(name: &str) -> String {
    let plain = name != "all"
        && name.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | '-'));
    if plain { name.into() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

fn list<T: ToString>(items: impl IntoIterator<Item = T>, separator: &str) -> String {
    items.into_iter().map(|item| item.to_string()).collect::<Vec<_>>().join(separator)
}

impl fmt::Display for Bank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&list(&self.parts, "; "))
    }
}

impl fmt::Display for Clause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto(_) => f.write_str("auto"),
            Self::Written(group) => group.fmt(f),
        }
    }
}

impl fmt::Display for ScopedKernels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {}", list(&self.kernels, ", "), list(&self.scopes, ", "))
    }
}

impl fmt::Display for KernelList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Numbers { kernel, given } => f.write_str(&kernel.call(given)),
            Self::Precomputed(None) => f.write_str("precomputed"),
            Self::Precomputed(Some(name)) => write!(f, "precomputed({})", quoted(name)),
            Self::Alignment { scoring, open, extend } => {
                write!(f, "alignment({}, {open}, {extend})", scoring.word())
            }
            Self::Wl(rounds) => write!(f, "wl({})", list(rounds, "|")),
            Self::Text { kind, lengths, extra, alphabet } => {
                write!(f, "{}({}", kind.word(), list(lengths, "|"))?;
                if *extra > 0 || *kind == TextKind::Mismatch {
                    write!(f, ", {extra}")?;
                }
                alphabet.map_or(Ok(()), |a| write!(f, ", {}", a.word()))?;
                f.write_str(")")
            }
        }
    }
}

impl fmt::Display for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::List(series) => f.write_str(&list(series, "|")),
            Self::Number(value) => f.write_str(&short(*value)),
            Self::Distance(distance) => f.write_str(distance.word()),
            Self::Auto => f.write_str("auto"),
            Self::Deviation => f.write_str("deviation"),
        }
    }
}

impl fmt::Display for Series {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::One(value) => f.write_str(&short(value)),
            Self::Steps { from, to } => write!(f, "{}..{}", short(from), short(to)),
            Self::Powers { base, from, to } => write!(f, "{0}^{from}..{0}^{to}", short(base)),
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("all"),
            Self::Each | Self::EachIfFew => f.write_str("each"),
            Self::Cols(items) => write!(f, "cols({})", list(items, ", ")),
            Self::Bands(k) => write!(f, "bands({k})"),
            Self::View(name) => write!(f, "view({})", quoted(name)),
        }
    }
}

impl fmt::Display for Cols {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Span(first, last) if first == last => write!(f, "{first}"),
            Self::Span(first, last) => write!(f, "{first}-{last}"),
            Self::Name(name) => f.write_str(&quoted(name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Error,
        data::{Dataset, Rng},
        linalg::Matrix,
    };

    const TEXTS: [&str; 13] = [
        "alignment(blosum62), alignment(pam50, open = 9, extend = 2), wl(0..3|5) on cols(a); alignment(pam50, 12)",
        "chi2, chi2(0.5|2^-3..2^1), intersection, sigmoid(0.1, -1) on all; gauss(hellinger, auto), gauss(l2, 1|2), chi2(auto)",
        "spectrum(1..3), wd(1..20, shift = 2, dna), wdsum(5) on cols(a), each",
        "mismatch(3|5, 1, protein), spectrum(6, free), wd(2, 3), mismatch(2, m = 0) on view(v); rbf(1)",
        "auto",
        "bank paper; linear on bands(3)",
        "rbf(2^-3..2^6|0.7|1e-7), poly(1..3) on all, each",
        "laplace(auto), rbf(auto), rbf(deviation) on view(v), cols(1-2, a, \"a \"\"b\"\", c\")",
        "poly(1|3|4..6, 0.25); poly(2, c = 0) on cols(\"2\", 3, d-e)",
        "linear, poly(2), laplace(0.1..2.1) on each, bands(2)",
        "rbf(10^-2..10^2|1e20|123456.789)",
        "rbf(1.0001^-9..1.0001^9) on view(\"\")",
        "precomputed on view(k); precomputed(\"a b.npy\")",
    ];

    #[test]
    fn display_parses_back() {
        for text in TEXTS {
            let bank = parse(text).unwrap();
            assert_eq!(parse(&bank.to_string()).unwrap(), bank, "{bank}");
        }
        assert_eq!(parse("bank  paper").unwrap().to_string(), PAPER);
        assert_eq!(parse("auto;linear").unwrap().to_string(), "auto; linear on all");
    }

    #[test]
    fn no_text_makes_it_panic() {
        let x = Matrix::new(4, 3, (0..12).map(|i| f64::from(i * i)).collect()).unwrap();
        let data = Dataset::new(x, ["a", "b", "2"].map(String::from).to_vec()).unwrap();
        let alphabet: Vec<char> = "0129.^-|,;()\"e ocpé\n=".chars().collect();
        let mut rng = Rng::new(7);
        let (mut good, mut bad) = (0, 0);
        for _ in 0..6000 {
            let mut text: Vec<char> = TEXTS[rng.below(TEXTS.len())].chars().collect();
            for _ in 0..=rng.below(3) {
                let at = rng.below(text.len() + 1);
                match rng.below(4) {
                    0 if at < text.len() => drop(text.remove(at)),
                    1 if at < text.len() => text[at] = alphabet[rng.below(alphabet.len())],
                    2 => text.extend("; ".chars().chain(TEXTS[rng.below(TEXTS.len())].chars())),
                    _ => text.insert(at, alphabet[rng.below(alphabet.len())]),
                }
            }
            let text: String = text.into_iter().collect();
            match parse(&text) {
                Ok(bank) => {
                    assert_eq!(parse(&bank.to_string()).unwrap(), bank, "{text}");
                    let _ = bank.resolve(&data);
                    good += 1;
                }
                Err(e) => {
                    assert!(
                        matches!(e, Error::Syntax { at, .. } if at <= text.chars().count()),
                        "{text}: {e}"
                    );
                    bad += 1;
                }
            }
        }
        assert!(good > 300 && bad > 300, "{good} {bad}");
    }
}
