//! Settings to try: `C=0.1..1000; v=0..1:0.1; penalty=log+gl|mkl`.
//!
//! An axis is a name and values separated by `|`. A value is a number (`0.5`, `2^-3`), a range or a
//! word. Ranges: `10^-1..10^3` steps by exponent, `a..b:s` by s, and `a..b` by decades where b/a is
//! a power of ten (for parameters that are no counts), by 1 where both are whole.

use serde::{Deserialize, Serialize};

use crate::{
    Error, Result,
    request::{LossName, MethodSpec, TrainSpec, Value},
};

/// The most values of one parameter, and the most settings of all of them together.
const MOST: usize = 10_000;

/// Axes with their values.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Grid {
    /// Name and values, in the order given.
    pub axes: Vec<(String, Vec<Value>)>,
}

impl Grid {
    /// Reads the notation; a mistake points at the character. `method` says which parameters are
    /// counts.
    pub fn parse(text: &str, method: &MethodSpec) -> Result<Self> {
        let mut axes: Vec<(String, Vec<Value>)> = Vec::new();
        for (at, axis) in pieces(text, 0, ';') {
            if axis.trim().is_empty() {
                continue;
            }
            let wrong = |at: usize, expected: &str| syntax(text, at, expected);
            let Some((name, values)) = axis.split_once('=') else {
                return Err(wrong(at, "expected name=values, e.g. C=0.1..1000"));
            };
            let name = match name.trim() {
                "c" | "cost" => "C",
                name => name,
            };
            if axes.iter().any(|(known, _)| known == name) {
                return Err(wrong(at, "expected every parameter once; this one is there already"));
            }
            let is_count = matches!(method.get(name), Some(Value::Count(_)));
            let start = at + axis.chars().take_while(|c| *c != '=').count() + 1;
            let mut all = Vec::new();
            for (at, item) in pieces(values, start, '|') {
                all.extend(
                    item_values(item.trim(), is_count).map_err(|expected| wrong(at, &expected))?,
                );
            }
            if all.len() > MOST {
                return Err(wrong(at, "expected at most 10000 values"));
            }
            axes.push((name.to_string(), all));
        }
        Ok(Self { axes })
    }

    /// One value for a parameter.
    #[must_use]
    pub fn with(mut self, name: &str, values: Vec<Value>) -> Self {
        self.axes.push((name.into(), values));
        self
    }

    /// Is C among the axes?
    pub fn has(&self, name: &str) -> bool {
        self.axes.iter().any(|(known, _)| known == name)
    }

    /// These axes, and those of `other` that are not among them.
    #[must_use]
    pub fn or(mut self, other: &Self) -> Self {
        let missing: Vec<_> =
            other.axes.iter().filter(|(name, _)| !self.has(name)).cloned().collect();
        self.axes.extend(missing);
        self
    }

    /// Every combination put into `spec`. C changes fastest, so that neighbours can start from each
    /// other.
    pub fn specs(&self, spec: &TrainSpec) -> Result<Vec<TrainSpec>> {
        let mut axes: Vec<&(String, Vec<Value>)> = self.axes.iter().collect();
        axes.sort_by_key(|(name, _)| name == "C");
        let mut specs = vec![spec.clone()];
        for (name, values) in axes {
            if specs.len().saturating_mul(values.len()) > MOST {
                return Err(Error::param("grid", format!("at most {MOST} settings"), "more"));
            }
            let with = |spec: &TrainSpec| {
                values.iter().map(|v| set(spec, name, v)).collect::<Result<Vec<_>>>()
            };
            specs = specs.iter().map(with).collect::<Result<Vec<_>>>()?.concat();
        }
        specs.iter().try_for_each(TrainSpec::check)?;
        Ok(specs)
    }

    /// What `spec` has at the axes of this grid, for people.
    pub fn describe(&self, spec: &TrainSpec) -> Vec<(String, String)> {
        let value = |name: &str| match name {
            "C" => spec.c.into(),
            "epsilon" => spec.epsilon.into(),
            "loss" => spec.loss.map(LossName::as_str).into(),
            "normalize" => Value::of_word(&spec.normalize),
            other => spec.method.get(other).unwrap_or(Value::None),
        };
        let names = self.axes.iter().map(|(name, _)| name.clone());
        names.map(|name| (name.clone(), value(&name).to_string())).collect()
    }
}

/// `spec` with another value of one parameter.
fn set(spec: &TrainSpec, name: &str, value: &Value) -> Result<TrainSpec> {
    let number = || value.number().ok_or_else(|| Error::param(name, "a number", value));
    let wrong = || Error::param(name, "one of those `mercer fit` takes", value);
    let mut out = spec.clone();
    match name {
        "C" => (out.c, out.choose.scale) = (number()?, false),
        "epsilon" => out.epsilon = Some(number()?),
        "loss" => out.loss = Some(value.word().ok_or_else(wrong)?),
        "normalize" => out.normalize = value.word().ok_or_else(wrong)?,
        _ if spec.method.get(name).is_some() => out.method.set(name, value)?,
        _ => {
            let own = spec.method.parameters().into_iter().map(|(known, _)| known);
            let own =
                own.chain(["C", "epsilon", "loss", "normalize"]).collect::<Vec<_>>().join(", ");
            let expected = format!("named after a parameter of {}: {own}", spec.method.name());
            return Err(Error::param("grid axis", expected, format!("`{name}`")));
        }
    }
    Ok(out)
}

/// Parts of `text` between separators, with the position of each.
fn pieces(text: &str, start: usize, separator: char) -> Vec<(usize, &str)> {
    let mut at = start;
    text.split(separator)
        .map(|piece| {
            let here = at + piece.chars().take_while(|c| c.is_whitespace()).count();
            at += piece.chars().count() + 1;
            (here, piece)
        })
        .collect()
}

fn syntax(input: &str, at: usize, expected: &str) -> Error {
    Error::Syntax { input: input.into(), at, expected: format!("grid: {expected}") }
}

/// A number, `base^exponent` included.
fn number(text: &str) -> Option<f64> {
    let plain = |t: &str| t.trim().parse::<f64>().ok().filter(|x| x.is_finite());
    match text.split_once('^') {
        Some((base, exponent)) => {
            Some(plain(base)?.powf(plain(exponent)?)).filter(|x| x.is_finite())
        }
        None => plain(text),
    }
}

fn item_values(item: &str, is_count: bool) -> std::result::Result<Vec<Value>, String> {
    let told = |x: f64| {
        if is_count && x.fract() == 0.0 && x >= 0.0 { Value::Count(x as u64) } else { x.into() }
    };
    if item.is_empty() {
        return Err("expected a value".into());
    }
    let Some((low, rest)) = item.split_once("..") else {
        return Ok(vec![match (number(item), item) {
            (Some(x), _) => told(x),
            (_, "none") => Value::None,
            (_, word) => word.into(),
        }]);
    };
    let (high, step) = rest.split_once(':').map_or((rest, None), |(h, s)| (h, Some(s)));
    let ends = number(low).zip(number(high)).filter(|(a, b)| a <= b);
    let Some((a, b)) = ends else {
        return Err("expected a range from a smaller to a larger number".into());
    };
    let powers = |t: &str| t.split_once('^').and_then(|(b, e)| Some((number(b)?, number(e)?)));
    let values: Vec<f64> = if let Some(step) = step {
        let Some(s) = number(step).filter(|s| *s > 0.0) else {
            return Err("expected a positive step after `:`".into());
        };
        let count = ((b - a) / s + 1e-9).floor();
        if count > MOST as f64 {
            return Err("expected at most 10000 values".into());
        }
        // Rounded, so that 0..1:0.1 holds 0.3 and not 0.30000000000000004.
        (0..=count as usize).map(|i| round(a + i as f64 * s)).collect()
    } else if let (Some((base, first)), Some((other, last))) = (powers(low), powers(high)) {
        if base != other || last - first > MOST as f64 {
            return Err("expected powers of one base".into());
        }
        (0..=(last - first + 1e-9).floor() as usize)
            .map(|i| round(base.powf(first + i as f64)))
            .collect()
    } else if a > 0.0 && !is_count && b > a && is_power_of_ten(b / a) {
        (0..=(b / a).log10().round() as usize).map(|i| round(a * 10f64.powf(i as f64))).collect()
    } else if a.fract() == 0.0 && b.fract() == 0.0 && b - a <= MOST as f64 {
        (0..=(b - a) as usize).map(|i| a + i as f64).collect()
    } else {
        return Err(
            "expected a step (a..b:s), powers (10^-1..10^3), or ends whose ratio is a power of ten"
                .into(),
        );
    };
    Ok(values.into_iter().map(told).collect())
}

fn is_power_of_ten(ratio: f64) -> bool {
    let e = ratio.log10();
    (e - e.round()).abs() < 1e-9
}

/// The nearest number with twelve digits.
fn round(x: f64) -> f64 {
    format!("{x:.11e}").parse().unwrap_or(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Vec<f64> {
        let grid = Grid::parse(text, &MethodSpec::named("clmkl").unwrap()).unwrap();
        grid.axes[0].1.iter().map(|v| v.number().unwrap()).collect()
    }

    #[test]
    fn ranges_step_as_written() {
        assert_eq!(values("C=0.1..1000"), [0.1, 1.0, 10.0, 100.0, 1000.0]);
        assert_eq!(values("C=10^-1..10^2"), [0.1, 1.0, 10.0, 100.0]);
        assert_eq!(values("C=2^-1..2^1|7"), [0.5, 1.0, 2.0, 7.0]);
        assert_eq!(values("v=0..1:0.1")[3], 0.3);
        assert_eq!(values("v=0..1:0.1").len(), 11);
        assert_eq!(values("p=1..3"), [1.0, 2.0, 3.0]);
        assert_eq!(values("n_clusters=1..10").len(), 10);
    }

    #[test]
    fn mistakes_are_pointed_at() {
        let method = MethodSpec::named("gmkl").unwrap();
        for (text, at) in [
            ("C", 0),
            ("C=1;v", 4),
            ("C=1|", 4),
            ("v=0..0.35", 2),
            ("v=0..1:0", 2),
            ("C=2;C=1", 4),
            ("v=3..1", 2),
        ] {
            match Grid::parse(text, &method) {
                Err(Error::Syntax { at: got, .. }) => assert_eq!(got, at, "{text}"),
                other => panic!("{text}: {other:?}"),
            }
        }
        let spec = TrainSpec::default();
        let unknown =
            Grid::parse("n_rules=3", &method).unwrap().specs(&spec).unwrap_err().to_string();
        assert!(
            unknown.contains("a parameter of gmkl: ") && unknown.contains("`n_rules`"),
            "{unknown}"
        );
        assert!(Grid::parse("v=2", &method).unwrap().specs(&spec).is_err());
        assert!(Grid::parse("C=a", &method).unwrap().specs(&spec).is_err());
    }

    #[test]
    fn c_changes_fastest() {
        let method = MethodSpec::named("gmkl").unwrap();
        let grid = Grid::parse("C=1|10; v=0.1|0.9", &method).unwrap();
        let specs = grid.specs(&TrainSpec::default()).unwrap();
        let seen: Vec<String> = specs.iter().map(|s| format!("{:?}", grid.describe(s))).collect();
        assert_eq!(specs.iter().map(|s| s.c).collect::<Vec<_>>(), [1.0, 10.0, 1.0, 10.0]);
        assert!(
            seen[1].contains("(\"v\", \"0.1\")") && seen[2].contains("(\"v\", \"0.9\")"),
            "{seen:?}"
        );
        assert_eq!(Grid::default().specs(&TrainSpec::default()).unwrap().len(), 1);
    }
}
