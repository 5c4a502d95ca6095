//! Values of a method's parameters by name, one at a time, as command lines and grids give them.

use std::fmt;

use serde::{
    Deserialize, Serialize,
    de::{DeserializeOwned, IntoDeserializer, value::Error as WordError},
};

use super::{Evenness, GateName, Nu, Objective, RuleCount, RuleSolver, Solver};

/// A value of one parameter as users write it; in JSON null, a number, a text or a list of numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// The parameter is left out.
    None,
    /// A whole number of at least 0.
    Count(u64),
    /// Any finite number.
    Number(f64),
    /// A word, a kernel, the name of a column.
    Text(String),
    /// Several numbers, such as one per rule.
    Numbers(Vec<f64>),
}

impl Value {
    /// The number that this is; `None` for anything else.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Count(n) => Some(*n as f64),
            Self::Number(x) => Some(*x),
            Self::None | Self::Text(_) | Self::Numbers(_) => None,
        }
    }

    /// The whole number of at least 0 that this is; `None` for anything else.
    fn count(&self) -> Option<u64> {
        match self {
            Self::Count(n) => Some(*n),
            Self::Number(x) if x.fract() == 0.0 && (0.0..1e15).contains(x) => Some(*x as u64),
            _ => None,
        }
    }

    /// A number, or the text `inf`.
    fn exponent(&self) -> Option<f64> {
        match self {
            Self::Text(text) => text.parse().ok(),
            other => other.number(),
        }
    }

    /// A text; a number is taken as it is written.
    fn text(&self) -> Option<String> {
        match self {
            Self::None | Self::Numbers(_) => None,
            other => Some(other.to_string()),
        }
    }

    /// The word that this is, hyphen and underscore standing for each other; `None` where `T` has
    /// no such word.
    pub(crate) fn word<T: DeserializeOwned>(&self) -> Option<T> {
        let Self::Text(text) = self else { return None };
        let text = text.replace('-', "_");
        let read: Result<T, WordError> = T::deserialize(text.as_str().into_deserializer());
        read.ok()
    }

    /// A name of an enumeration as a text.
    pub(crate) fn of_word(word: &impl Serialize) -> Self {
        match serde_json::to_value(word) {
            Ok(serde_json::Value::String(text)) => Self::Text(text),
            _ => Self::None,
        }
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl From<u64> for Value {
    fn from(count: u64) -> Self {
        Self::Count(count)
    }
}

impl From<usize> for Value {
    fn from(count: usize) -> Self {
        Self::Count(count as u64)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl<T: Into<Self>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::None, Into::into)
    }
}

impl fmt::Display for Value {
    /// As users write it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Count(n) => write!(f, "{n}"),
            Self::Number(x) => write!(f, "{x}"),
            Self::Text(text) => f.write_str(text),
            Self::Numbers(all) => {
                let all: Vec<String> = all.iter().map(|x| format!("{x:?}")).collect();
                write!(f, "[{}]", all.join(","))
            }
        }
    }
}

/// Where a parameter of a method lies, by the kind of its values.
pub(super) enum Slot<'a> {
    Count(&'a mut usize),
    Seed(&'a mut u64),
    Number(&'a mut f64),
    Exponent(&'a mut f64),
    OptionalNumber(&'a mut Option<f64>),
    OptionalExponent(&'a mut Option<f64>),
    Text(&'a mut String),
    OptionalText(&'a mut Option<String>),
    Solver(&'a mut Solver),
    Evenness(&'a mut Option<Evenness>),
    Gate(&'a mut GateName),
    Rules(&'a mut RuleCount),
    Rewards(&'a mut Option<Nu>),
    RuleSolver(&'a mut RuleSolver),
    Objective(&'a mut Objective),
}

impl Slot<'_> {
    /// What a value of this kind is, in words.
    pub(super) fn expected(&self) -> &'static str {
        match self {
            Self::Count(_) | Self::Seed(_) => "a whole number",
            Self::Number(_) => "a finite number",
            Self::Exponent(_) => "a number or inf",
            Self::OptionalNumber(_) => "a finite number, or left out",
            Self::OptionalExponent(_) => "a number or inf, or left out",
            Self::Text(_) | Self::OptionalText(_) => "a text",
            Self::Solver(_) => "one of auto, level, alternating, interior, reduced_gradient, silp",
            Self::Evenness(_) => "a number or hard, or left out",
            Self::Gate(_) => "softmax or sigmoid",
            Self::Rules(_) => "a whole number or auto",
            Self::Rewards(_) => "a number, or one per rule, or left out",
            Self::RuleSolver(_) => "one of ccp, am, sgd, pddp, exact",
            Self::Objective(_) => "opt1 or as_printed",
        }
    }

    /// The parameter's value.
    pub(super) fn get(&self) -> Value {
        let exponent = |p: f64| if p.is_finite() { Value::Number(p) } else { "inf".into() };
        match self {
            Self::Count(n) => (**n).into(),
            Self::Seed(n) => (**n).into(),
            Self::Number(x) => (**x).into(),
            Self::Exponent(x) => exponent(**x),
            Self::OptionalNumber(x) => (**x).into(),
            Self::OptionalExponent(x) => x.map_or(Value::None, exponent),
            Self::Text(text) => text.as_str().into(),
            Self::OptionalText(text) => text.as_deref().into(),
            Self::Solver(word) => Value::of_word(word),
            Self::Evenness(Some(Evenness::Average(e))) => (*e).into(),
            Self::Evenness(Some(Evenness::Word(word))) => Value::of_word(word),
            Self::Evenness(None) | Self::Rewards(None) => Value::None,
            Self::Gate(word) => Value::of_word(word),
            Self::Rules(RuleCount::Fixed(n)) => (*n).into(),
            Self::Rules(RuleCount::Chosen(word)) => Value::of_word(word),
            Self::Rewards(Some(Nu::All(nu))) => (*nu).into(),
            Self::Rewards(Some(Nu::Each(nu))) => Value::Numbers(nu.clone()),
            Self::RuleSolver(word) => Value::of_word(word),
            Self::Objective(word) => Value::of_word(word),
        }
    }

    /// Takes the value; `None` where it is of another kind, and then nothing has changed.
    pub(super) fn set(self, value: &Value) -> Option<()> {
        let left_out = *value == Value::None;
        match self {
            Self::Count(to) => *to = usize::try_from(value.count()?).ok()?,
            Self::Seed(to) => *to = value.count()?,
            Self::Number(to) => *to = value.number()?,
            Self::Exponent(to) => *to = value.exponent()?,
            Self::OptionalNumber(to) => *to = if left_out { None } else { Some(value.number()?) },
            Self::OptionalExponent(to) => {
                *to = if left_out { None } else { Some(value.exponent()?) }
            }
            Self::Text(to) => *to = value.text()?,
            Self::OptionalText(to) => *to = if left_out { None } else { Some(value.text()?) },
            Self::Solver(to) => *to = value.word()?,
            Self::Evenness(to) => *to = if left_out { None } else { Some(evenness(value)?) },
            Self::Gate(to) => *to = value.word()?,
            Self::Rules(to) => *to = rule_count(value)?,
            Self::Rewards(to) => *to = if left_out { None } else { Some(rewards(value)?) },
            Self::RuleSolver(to) => *to = value.word()?,
            Self::Objective(to) => *to = value.word()?,
        }
        Some(())
    }
}

fn evenness(value: &Value) -> Option<Evenness> {
    value.number().map(Evenness::Average).or_else(|| value.word().map(Evenness::Word))
}

fn rule_count(value: &Value) -> Option<RuleCount> {
    let fixed = value.count().and_then(|n| usize::try_from(n).ok());
    fixed.map(RuleCount::Fixed).or_else(|| value.word().map(RuleCount::Chosen))
}

fn rewards(value: &Value) -> Option<Nu> {
    match value {
        Value::Numbers(nu) => Some(Nu::Each(nu.clone())),
        one => one.number().map(Nu::All),
    }
}
