//! Texts of the command line as values.

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use mercer::{
    data::{Span, TaskHint},
    request::{ClassWeight, Value},
};
use serde::de::DeserializeOwned;

/// One of the names the library itself knows; hyphen and underscore may stand for each other.
pub fn named<T>(names: &'static [&'static str]) -> impl TypedValueParser<Value = T>
where
    T: DeserializeOwned + Clone + Send + Sync + 'static,
{
    let value = |name: &&'static str| {
        PossibleValue::new(*name).aliases([name.replace('_', "-"), name.replace('-', "_")])
    };
    PossibleValuesParser::new(names.iter().map(value))
        .try_map(|name| serde_json::from_value::<T>(name.replace('-', "_").into()))
}

/// A number, or a word that leaves it to cross-validation or to the scale of the kernels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Setting {
    Auto,
    Scale,
    Given(f64),
}

impl Setting {
    pub fn given(self) -> Option<f64> {
        match self {
            Self::Auto | Self::Scale => None,
            Self::Given(value) => Some(value),
        }
    }
}

pub fn setting(text: &str) -> Result<Setting, String> {
    match text {
        "auto" => Ok(Setting::Auto),
        _ => number(text).map(Setting::Given).map_err(|e| e + " or auto"),
    }
}

/// The same for C, which can also follow from the scale of the kernels.
pub fn cost(text: &str) -> Result<Setting, String> {
    match text {
        "scale" => Ok(Setting::Scale),
        _ => setting(text).map_err(|_| "expected a number, auto or scale".into()),
    }
}

/// A finite number.
pub fn number(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|x: &f64| x.is_finite()).ok_or_else(|| "expected a number".into())
}

/// A number or `inf`, as a request states it: JSON has no infinity.
pub fn exponent(text: &str) -> Result<Value, String> {
    match text.parse::<f64>() {
        Ok(p) if p.is_finite() => Ok(p.into()),
        Ok(p) if p == f64::INFINITY => Ok("inf".into()),
        _ => Err("expected a number or inf".into()),
    }
}

/// A number or `hard`, as a request states it.
pub fn evenness(text: &str) -> Result<Value, String> {
    match text.parse::<f64>() {
        Ok(e) if e.is_finite() => Ok(e.into()),
        _ if text == "hard" => Ok("hard".into()),
        _ => Err("expected a number or hard".into()),
    }
}

/// A number from 1 on, or `auto`.
pub fn count_or_auto(text: &str) -> Result<Value, String> {
    match text.parse::<usize>() {
        Ok(n) if n > 0 => Ok(n.into()),
        _ if text == "auto" => Ok("auto".into()),
        _ => Err("expected a number from 1 on, or auto".into()),
    }
}

pub fn task() -> impl TypedValueParser<Value = TaskHint> {
    PossibleValuesParser::new(["auto", "classify", "regress"]).map(|name| match name.as_str() {
        "classify" => TaskHint::Classify,
        "regress" => TaskHint::Regress,
        _ => TaskHint::Auto,
    })
}

pub fn threads(text: &str) -> Result<usize, String> {
    text.parse()
        .ok()
        .filter(|n| (1..=4096).contains(n))
        .ok_or_else(|| "expected a number from 1 to 4096".into())
}

pub fn positive(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|x| x.is_finite() && *x > 0.0);
    number.ok_or_else(|| "expected a positive number".into())
}

/// `4G`, `512M`, `1.5GiB`, `1000000`: powers of 1024.
pub fn bytes(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = text[digits.len()..].to_ascii_uppercase();
    let unit = unit.trim_end_matches('B').trim_end_matches('I');
    let power = ["", "K", "M", "G", "T"].iter().position(|u| *u == unit);
    let size = power.zip(positive(digits).ok()).map(|(power, x)| x * (1u64 << (10 * power)) as f64);
    size.filter(|s| (1.0..1e18).contains(s))
        .map(|s| s as u64)
        .ok_or_else(|| "expected a size such as 512M or 4G".into())
}

/// `balanced` or `name=factor,…`. The factor follows the last `=`, so names may hold one.
pub fn class_weight(text: &str) -> Result<ClassWeight, String> {
    if text == "balanced" {
        return Ok(ClassWeight::Balanced);
    }
    let pair = |part: &str| {
        let (name, factor) = part.rsplit_once('=').ok_or("expected `balanced` or name=factor,…")?;
        let factor = positive(factor).map_err(|e| format!("class `{name}`: {e}"))?;
        Ok((name.to_string(), factor))
    };
    text.split(',').map(pair).collect::<Result<_, String>>().map(ClassWeight::Given)
}

/// `NAME=FILE`, or a file that is its own name.
pub fn named_file(text: &str) -> Result<(String, PathBuf), String> {
    let (name, file) = text.split_once('=').unwrap_or((text, text));
    if name.is_empty() || file.is_empty() {
        Err("expected NAME=FILE".into())
    } else {
        Ok((name.into(), file.into()))
    }
}

/// `A-B` or `A-B:STEP`.
pub fn span(text: &str) -> Result<Span, String> {
    let (range, step) = text.split_once(':').unwrap_or((text, "1"));
    let parts = range
        .split_once('-')
        .and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?, step.parse().ok()?)));
    match parts {
        Some((first, last, step)) if 1 <= first && first <= last && step > 0 => {
            Ok(Span { first, last, step })
        }
        _ => Err("expected rows such as 1-500 or 1-500:2, counted from 1".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        for (text, size) in [
            ("1000", 1000),
            ("4G", 4 << 30),
            ("1.5k", 1536),
            ("512MiB", 512 << 20),
            ("2gb", 2 << 30),
        ] {
            assert_eq!(bytes(text), Ok(size), "{text}");
        }
        for text in ["", "G", "-1G", "4X", "nan", "1e30", "4 G"] {
            assert!(bytes(text).is_err(), "{text}");
        }
    }

    #[test]
    fn spans() {
        assert_eq!(span("3-9:2"), Ok(Span { first: 3, last: 9, step: 2 }));
        assert_eq!(span("1-1"), Ok(Span { first: 1, last: 1, step: 1 }));
        assert!(["0-3", "3", "5-2", "1-9:0", "a-b", "-1-3"].iter().all(|t| span(t).is_err()));
    }

    #[test]
    fn class_weights() {
        assert_eq!(class_weight("balanced"), Ok(ClassWeight::Balanced));
        let given = vec![("a=b".to_string(), 2.0), ("-1".to_string(), 0.5)];
        assert_eq!(class_weight("a=b=2,-1=0.5"), Ok(ClassWeight::Given(given)));
        assert!(
            class_weight("a").is_err()
                && class_weight("a=0").is_err()
                && class_weight("a=x").is_err()
        );
    }
}
