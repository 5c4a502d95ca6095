//! The kernels of numbers: one table, which the parser, the names of kernels, `mercer kernels` and
//! the Python package read.
//!
//! A new kernel of numbers is a variant of [`Function`] with its arms in `kernels/function.rs`, and
//! an entry here.

use std::fmt;

use super::{Given, Series, WIDTHS, list, resolve::AUTO_FACTORS};
use crate::kernels::{Distance, Function};

/// A kernel of numbers as the kernel language writes it.
pub struct NumberKernel {
    /// The word it begins with. Two entries may share one where only one of them takes arguments.
    pub word: &'static str,
    /// How it is written, for people: `rbf(widths)`.
    pub usage: &'static str,
    /// The formula and what the arguments may be, for people.
    pub meaning: &'static str,
    /// A complete call, which an error shows where required arguments are missing.
    pub(super) example: &'static str,
    pub(super) arguments: &'static [Argument],
    /// The function with these settings, one per argument.
    pub(super) build: fn(&[ArgumentValue]) -> Function,
    /// The settings of a function of this kind, one per argument; `None` for every other function.
    settings: fn(Function) -> Option<Vec<ArgumentValue>>,
}

/// One argument of a kernel, once every list and every automatic width has become numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum ArgumentValue {
    Number(f64),
    Distance(Distance),
}

/// What may stand between the brackets at one place.
pub(super) enum Argument {
    /// Numbers, one kernel for each.
    List { rule: NumberRule, default: f64 },
    /// One number, which may follow `name =`; it must be written where there is no default, and is
    /// not shown where it is the default.
    Number { name: Option<&'static str>, rule: NumberRule, default: Option<f64> },
    /// Widths or factors, one kernel for each; the automatic ones where it is left out. `deviation`
    /// may be a word for one, too.
    Scale { rule: NumberRule, auto: AutomaticScale, deviation: bool },
    /// The word of a distance.
    Distance,
}

/// How `auto` is found from the training rows.
#[derive(Debug, Clone, Copy)]
pub(super) enum AutomaticScale {
    /// Five widths around the median of this distance.
    AroundMedian(Distance),
    /// The mean of the distance that an earlier argument names.
    MeanDistance,
    /// One over the mean of this distance.
    OverMean(Distance),
}

/// What a number must satisfy where it stands, and how an error says so.
#[derive(Clone, Copy)]
pub(super) struct NumberRule {
    pub holds: fn(f64) -> bool,
    pub text: &'static str,
}

const DEGREE: NumberRule = NumberRule {
    holds: |x| x.fract() == 0.0 && (1.0..=20.0).contains(&x),
    text: "a degree (an integer from 1 to 20)",
};
const OFFSET: NumberRule =
    NumberRule { holds: |x| (0.0..=1e150).contains(&x), text: "an offset (a number not below 0)" };
const WIDTH: NumberRule =
    NumberRule { holds: |x| WIDTHS.contains(&x), text: "a width (a positive number, or `auto`)" };
const GAUSSIAN_WIDTH: NumberRule = NumberRule {
    holds: |x| WIDTHS.contains(&x),
    text: "a width (a positive number, `auto` or `deviation`)",
};
const GAMMA: NumberRule =
    NumberRule { holds: |x| WIDTHS.contains(&x), text: "a factor (a positive number, or `auto`)" };
const SLOPE: NumberRule =
    NumberRule { holds: |x| WIDTHS.contains(&x), text: "a slope (a positive number)" };
const ANY: NumberRule = NumberRule { holds: |x| x.abs() <= 1e150, text: "a number" };

/// The table, in the order in which people are shown them.
static NUMBER_KERNELS: &[NumberKernel] = &[
    NumberKernel {
        word: "linear",
        usage: "linear",
        meaning: "⟨x, z⟩",
        example: "linear",
        arguments: &[],
        build: |_| Function::Linear,
        settings: |f| (f == Function::Linear).then(Vec::new),
    },
    NumberKernel {
        word: "poly",
        usage: "poly(degrees)",
        meaning: "(⟨x, z⟩ + 1)^d; poly(2, c = 0) changes the constant; poly alone is poly(3)",
        example: "poly(3)",
        arguments: &[
            // The default degree of scikit-learn's polynomial kernel.
            Argument::List { rule: DEGREE, default: 3.0 },
            Argument::Number { name: Some("c"), rule: OFFSET, default: Some(1.0) },
        ],
        build: |s| Function::Poly { degree: s[0].number() as u32, offset: s[1].number() },
        settings: |f| {
            let Function::Poly { degree, offset } = f else { return None };
            Some(vec![ArgumentValue::Number(f64::from(degree)), ArgumentValue::Number(offset)])
        },
    },
    NumberKernel {
        word: "rbf",
        usage: "rbf(widths)",
        meaning: "exp(−‖x − z‖² / (2 w²)); rbf(auto), or rbf alone, takes widths around the median distance,\n\
                  rbf(deviation) the standard deviation",
        example: "rbf(1)",
        arguments: &[Argument::Scale {
            rule: GAUSSIAN_WIDTH,
            auto: AutomaticScale::AroundMedian(Distance::L2),
            deviation: true,
        }],
        build: |s| Function::Rbf { width: s[0].number() },
        settings: |f| {
            if let Function::Rbf { width } = f {
                Some(vec![ArgumentValue::Number(width)])
            } else {
                None
            }
        },
    },
    NumberKernel {
        word: "laplace",
        usage: "laplace(widths)",
        meaning: "exp(−‖x − z‖₁ / w); laplace alone is laplace(auto)",
        example: "laplace(1)",
        arguments: &[Argument::Scale {
            rule: WIDTH,
            auto: AutomaticScale::AroundMedian(Distance::L1),
            deviation: false,
        }],
        build: |s| Function::Laplace { width: s[0].number() },
        settings: |f| {
            if let Function::Laplace { width } = f {
                Some(vec![ArgumentValue::Number(width)])
            } else {
                None
            }
        },
    },
    NumberKernel {
        word: "cauchy",
        usage: "cauchy(widths)",
        meaning: "1 / (1 + ‖x − z‖² / w²); cauchy alone is cauchy(auto)",
        example: "cauchy(1)",
        arguments: &[Argument::Scale {
            rule: WIDTH,
            auto: AutomaticScale::AroundMedian(Distance::L2),
            deviation: false,
        }],
        build: |s| Function::Cauchy { width: s[0].number() },
        settings: |f| {
            if let Function::Cauchy { width } = f {
                Some(vec![ArgumentValue::Number(width)])
            } else {
                None
            }
        },
    },
    NumberKernel {
        word: "gauss",
        usage: "gauss(distance, widths)",
        meaning: "exp(−distance / w); distances l1, l2, chi2, hellinger; auto, or no width, is the mean distance",
        example: "gauss(l1)",
        arguments: &[
            Argument::Distance,
            Argument::Scale { rule: WIDTH, auto: AutomaticScale::MeanDistance, deviation: false },
        ],
        build: |s| Function::Gauss { distance: s[0].distance(), width: s[1].number() },
        settings: |f| {
            let Function::Gauss { distance, width } = f else { return None };
            Some(vec![ArgumentValue::Distance(distance), ArgumentValue::Number(width)])
        },
    },
    NumberKernel {
        word: "chi2",
        usage: "chi2",
        meaning: "Σ 2xz / (x + z), of numbers that are not negative",
        example: "chi2",
        arguments: &[],
        build: |_| Function::Chi2Sum,
        settings: |f| (f == Function::Chi2Sum).then(Vec::new),
    },
    NumberKernel {
        word: "chi2",
        usage: "chi2(gammas)",
        meaning: "exp(−γ Σ (x − z)² / (x + z)); chi2(auto) is γ = 1 / mean distance",
        example: "chi2(auto)",
        arguments: &[Argument::Scale {
            rule: GAMMA,
            auto: AutomaticScale::OverMean(Distance::Chi2),
            deviation: false,
        }],
        build: |s| Function::Chi2 { gamma: s[0].number() },
        settings: |f| {
            if let Function::Chi2 { gamma } = f {
                Some(vec![ArgumentValue::Number(gamma)])
            } else {
                None
            }
        },
    },
    NumberKernel {
        word: "intersection",
        usage: "intersection",
        meaning: "Σ min(x, z), of numbers that are not negative",
        example: "intersection",
        arguments: &[],
        build: |_| Function::Intersection,
        settings: |f| (f == Function::Intersection).then(Vec::new),
    },
    NumberKernel {
        word: "sigmoid",
        usage: "sigmoid(a, b)",
        meaning: "tanh(a ⟨x, z⟩ + b), where that is positive semidefinite",
        example: "sigmoid(0.1, 0)",
        arguments: &[
            Argument::Number { name: None, rule: SLOPE, default: None },
            Argument::Number { name: None, rule: ANY, default: None },
        ],
        build: |s| Function::Sigmoid { slope: s[0].number(), offset: s[1].number() },
        settings: |f| {
            let Function::Sigmoid { slope, offset } = f else { return None };
            Some(vec![ArgumentValue::Number(slope), ArgumentValue::Number(offset)])
        },
    },
];

/// The kernels of numbers, in the order in which people are shown them.
pub fn number_kernels() -> &'static [NumberKernel] {
    NUMBER_KERNELS
}

/// The table's entry for a function; `None` for kernels of text and ready-made ones.
pub fn number_kernel(function: Function) -> Option<&'static NumberKernel> {
    of_function(function).map(|(kernel, _)| kernel)
}

/// The words of the kernels of numbers, each once.
pub(super) fn words() -> Vec<&'static str> {
    let mut words: Vec<&str> = NUMBER_KERNELS.iter().map(|kernel| kernel.word).collect();
    words.dedup();
    words
}

/// The name of a kernel of numbers: the text that parses back to it.
pub(super) fn name(function: Function) -> Option<String> {
    let (kernel, settings) = of_function(function)?;
    let given: Vec<Given> = settings.into_iter().map(Given::from).collect();
    Some(kernel.call(&given))
}

/// Are both the same kernel, where widths and factors are the same if `close` says so, and all else
/// if it is equal?
pub(crate) fn same_but_for_scales(
    a: Function,
    b: Function,
    close: impl Fn(f64, f64) -> bool,
) -> bool {
    let (Some((kernel, own)), Some((other_kernel, others))) = (of_function(a), of_function(b))
    else {
        return a == b;
    };
    kernel == other_kernel
        && kernel.arguments.iter().zip(own.iter().zip(&others)).all(|(argument, (own, other))| {
            own == other
                || matches!(argument, Argument::Scale { .. }) && close(own.number(), other.number())
        })
}

/// The table's entry for a function of numbers, and its settings.
fn of_function(function: Function) -> Option<(&'static NumberKernel, Vec<ArgumentValue>)> {
    NUMBER_KERNELS.iter().find_map(|kernel| Some((kernel, (kernel.settings)(function)?)))
}

impl NumberKernel {
    /// The entry that begins with this word. Where two share it, a bracket after the word decides.
    pub(super) fn find(word: &str, bracket: bool) -> Option<&'static Self> {
        let mut same = NUMBER_KERNELS.iter().filter(|kernel| kernel.word == word);
        let first = same.clone().next();
        same.find(|kernel| kernel.arguments.is_empty() != bracket).or(first)
    }

    /// The text of this kernel with these arguments.
    pub(super) fn call(&self, given: &[Given]) -> String {
        let shown = |(argument, given): &(&Argument, &Given)| !matches!((argument, given), (Argument::Number { default: Some(d), .. }, Given::Number(x)) if d == x);
        let arguments = self.arguments.iter().zip(given).filter(shown).map(|(_, given)| given);
        if given.is_empty() {
            self.word.into()
        } else {
            format!("{}({})", self.word, list(arguments, ", "))
        }
    }
}

impl Argument {
    /// What stands for it where it is left out; `None` if it must be written.
    pub(super) fn default(&self) -> Option<Given> {
        match *self {
            Self::List { default, .. } => Some(Given::List(vec![Series::One(default)])),
            Self::Number { default, .. } => default.map(Given::Number),
            Self::Scale { .. } => Some(Given::Auto),
            Self::Distance => None,
        }
    }

    /// How many numbers `auto` stands for.
    pub(super) fn automatic_count(&self) -> usize {
        match self {
            Self::Scale { auto: AutomaticScale::AroundMedian(_), .. } => AUTO_FACTORS.len(),
            _ => 1,
        }
    }
}

impl ArgumentValue {
    /// The number; NaN of a distance, which no table entry asks for.
    fn number(self) -> f64 {
        if let Self::Number(value) = self { value } else { f64::NAN }
    }

    /// The distance; the first one of a number, which no table entry asks for.
    fn distance(self) -> Distance {
        if let Self::Distance(distance) = self { distance } else { Distance::L1 }
    }
}

impl From<ArgumentValue> for Given {
    fn from(setting: ArgumentValue) -> Self {
        match setting {
            ArgumentValue::Number(value) => Self::Number(value),
            ArgumentValue::Distance(distance) => Self::Distance(distance),
        }
    }
}

impl PartialEq for NumberKernel {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl fmt::Debug for NumberKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.usage)
    }
}
