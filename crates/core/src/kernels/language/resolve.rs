//! From a bank and a data set to concrete kernels: scopes become columns, widths numbers.

use std::collections::{HashMap, HashSet};

use super::{
    Bank, Given, KernelList, MAX_KERNELS, NumberKernel, ScopedKernels, Series, TextKind, WIDTHS,
    numbers::{self, Argument, ArgumentValue, AutomaticScale},
    scopes::ScopePlace,
};
use crate::{
    Error, Result, Told,
    data::{Dataset, Rows, mean_and_deviation},
    kernels::{
        Alphabet, Distance, Function, Indefinite, KernelSpec, Numeric, Text,
        strings::MAX_NEIGHBOURS,
    },
};

/// The widths that `auto` stands for, in units of the median distance.
pub(super) const AUTO_FACTORS: [f64; 5] = [0.25, 0.5, 1.0, 2.0, 4.0];
/// Rows that distances are measured between for automatic widths, and training sequences that local
/// alignment compares with, at most.
const MEDIAN_ROWS: usize = 512;

impl Bank {
    /// Concrete kernels for these (already standardised) data: group by group, scope by scope,
    /// kernels as written. Where several kernels have the same function and columns, the first
    /// stays.
    pub fn resolve(&self, data: &Dataset) -> Result<Vec<KernelSpec>> {
        let count: u128 = self.groups().map(|group| group.count(data)).sum();
        if count > MAX_KERNELS as u128 {
            let remedy =
                format!("at most {MAX_KERNELS} are possible: use fewer widths, degrees or scopes");
            return Err(Error::data("kernel bank", format!("asks for {count} kernels"), remedy));
        }
        let (mut specs, mut seen, mut places) = (Vec::new(), HashSet::new(), HashMap::new());
        for group in self.groups() {
            for scope in &group.scopes {
                for family in &group.kernels {
                    let KernelList::Precomputed(name) = family else { continue };
                    for ScopePlace { columns, label } in scope.grams(name.as_deref(), data)? {
                        let next = places.len();
                        let place = *places.entry(columns.clone()).or_insert(next);
                        let function = Function::Precomputed { indefinite: Indefinite::default() };
                        if seen.insert((place, written(function))) {
                            let name = format!("precomputed on {label}");
                            specs.push(KernelSpec {
                                function,
                                columns,
                                name,
                                landmarks: Vec::new(),
                            });
                        }
                    }
                }
                for text in [false, true] {
                    let kernels: Vec<&KernelList> = group
                        .kernels
                        .iter()
                        .filter(|k| k.reads_text() == text && !k.is_precomputed())
                        .collect();
                    if kernels.is_empty() {
                        continue;
                    }
                    for ScopePlace { columns, label } in scope.places(data, text)? {
                        let next = places.len();
                        let place = *places.entry(columns.clone()).or_insert(next);
                        for family in &kernels {
                            for function in family.functions(data, &columns, &label)? {
                                not_negative(function, data.rows(), &columns, data.columns())?;
                                readable(function, data.rows(), &columns, data.columns())?;
                                // The text of a function says all about it.
                                let written = written(function);
                                if seen.insert((place, written.clone())) {
                                    let name = format!("{written} on {label}");
                                    let landmarks = landmarks(function, data.rows(), &columns);
                                    specs.push(KernelSpec {
                                        function,
                                        columns: columns.clone(),
                                        name,
                                        landmarks,
                                    });
                                }
                            }
                        }
                    }
                }
            }
        }
        refuse_unused_text(data, &specs)?;
        Ok(specs)
    }
}

/// Text that no kernel reads is a mistake more often than not: a name, an id, a category that
/// should have been encoded.
fn refuse_unused_text(data: &Dataset, specs: &[KernelSpec]) -> Result<()> {
    let d = data.rows().text_start();
    for (at, sequences) in data.rows().sequences().iter().enumerate() {
        if !specs.iter().any(|k| k.columns.contains(&(d + at))) {
            let text = sequences.get(0);
            let (shown, rest) =
                text.split_at(text.char_indices().nth(30).map_or(text.len(), |(end, _)| end));
            let dots = if rest.is_empty() { "" } else { "…" };
            return Err(Error::data(
                format!("column `{}`", data.columns()[d + at]),
                Told::from(format!("holds text, `{shown}{dots}` in row "))
                    .and_row(0)
                    .and(", and no kernel reads it"),
                "encode categories as numbers (a column of 0 and 1 per category), give sequences a string kernel such as spectrum(3), or \
                 leave the column out",
            ));
        }
    }
    Ok(())
}

impl ScopedKernels {
    // At most 10^10 kernels and 10^13 scopes fit in a text: the product needs more than 64 bits.
    fn count(&self, data: &Dataset) -> u128 {
        let kernels = |text: bool| -> u128 {
            self.kernels.iter().filter(|k| k.reads_text() == text).map(KernelList::count).sum()
        };
        let places: u128 =
            self.scopes.iter().map(|scope| scope.count(data.feature_columns().len()) as u128).sum();
        kernels(false) * places
            + kernels(true) * (self.scopes.len() * data.rows().sequences().len()) as u128
    }
}

impl KernelList {
    fn count(&self) -> u128 {
        match self {
            Self::Alignment { .. } | Self::Precomputed(_) => 1,
            Self::Wl(list) | Self::Text { lengths: list, .. } => total(list),
            Self::Numbers { kernel, given } => {
                let one = |(argument, given): (&Argument, &Given)| match given {
                    Given::List(list) => total(list),
                    Given::Auto => argument.automatic_count() as u128,
                    Given::Number(_) | Given::Distance(_) | Given::Deviation => 1,
                };
                kernel.arguments.iter().zip(given).map(one).product()
            }
        }
    }

    fn is_precomputed(&self) -> bool {
        matches!(self, Self::Precomputed(_))
    }

    fn reads_text(&self) -> bool {
        matches!(self, Self::Text { .. } | Self::Alignment { .. } | Self::Wl(_))
    }

    fn functions(&self, data: &Dataset, columns: &[usize], label: &str) -> Result<Vec<Function>> {
        Ok(match self {
            Self::Precomputed(_) => Vec::new(),
            Self::Numbers { kernel, given } => {
                numbers_functions(kernel, given, data.rows(), columns, label)?
            }
            Self::Alignment { scoring, open, extend } => {
                vec![Function::Text(Text::Alignment {
                    scoring: *scoring,
                    open: *open,
                    extend: *extend,
                })]
            }
            Self::Wl(rounds) => {
                let one = |rounds: f64| Function::Text(Text::Wl { iterations: rounds as u32 });
                rounds.iter().flat_map(Series::values).map(one).collect()
            }
            Self::Text { kind, lengths, extra, alphabet } => {
                let rows = data.rows().having(columns);
                let sequences = columns.first().and_then(|&c| rows.sequence(c));
                let alphabet =
                    alphabet.or_else(|| sequences.map(Alphabet::of)).unwrap_or(Alphabet::Free);
                let one = |length: f64| {
                    string_kernel(*kind, length as u32, *extra, alphabet).map(Function::Text)
                };
                lengths.iter().flat_map(Series::values).map(one).collect::<Result<_>>()?
            }
        })
    }
}

/// How many numbers a list stands for.
fn total(list: &[Series]) -> u128 {
    list.iter().map(|series| series.count() as u128).sum()
}

/// The functions that a kernel of numbers stands for on these columns: one for each combination of
/// the values of its arguments.
fn numbers_functions(
    kernel: &NumberKernel,
    given: &[Given],
    x: &Rows,
    columns: &[usize],
    label: &str,
) -> Result<Vec<Function>> {
    let mut settings: Vec<Vec<ArgumentValue>> = vec![Vec::new()];
    for (argument, own) in kernel.arguments.iter().zip(given) {
        let values = match (own, argument) {
            (Given::Distance(distance), _) => vec![ArgumentValue::Distance(*distance)],
            (Given::Number(value), _) => vec![ArgumentValue::Number(*value)],
            (Given::List(list), _) => {
                list.iter().flat_map(Series::values).map(ArgumentValue::Number).collect()
            }
            (Given::Deviation, _) => {
                vec![ArgumentValue::Number(deviation_width(x, columns, label)?)]
            }
            (Given::Auto, Argument::Scale { auto, .. }) => {
                let named = given
                    .iter()
                    .find_map(|g| if let Given::Distance(d) = g { Some(*d) } else { None });
                let scales = automatic_scales(*auto, named, x, columns, label)?;
                scales.into_iter().map(ArgumentValue::Number).collect()
            }
            (Given::Auto, _) => Vec::new(),
        };
        let extended = |start: &Vec<ArgumentValue>| {
            values.iter().map(|v| [start, &[*v][..]].concat()).collect::<Vec<_>>()
        };
        settings = settings.iter().flat_map(extended).collect();
    }
    Ok(settings.iter().map(|values| (kernel.build)(values)).collect())
}

/// What `auto` stands for on these columns; `named` is the distance that the kernel names.
fn automatic_scales(
    auto: AutomaticScale,
    named: Option<Distance>,
    x: &Rows,
    columns: &[usize],
    label: &str,
) -> Result<Vec<f64>> {
    match auto {
        AutomaticScale::AroundMedian(distance) => {
            widths_around(median_distance(x, columns, distance), label)
        }
        AutomaticScale::MeanDistance => {
            let distance = named.unwrap_or(Distance::L2);
            automatic(label, mean_distance(x, columns, distance)).map(|width| vec![width])
        }
        AutomaticScale::OverMean(distance) => {
            automatic(label, 1.0 / mean_distance(x, columns, distance)).map(|factor| vec![factor])
        }
    }
}

/// The width that `deviation` stands for.
fn deviation_width(x: &Rows, columns: &[usize], label: &str) -> Result<f64> {
    let width = rounded(deviation(x, columns));
    if WIDTHS.contains(&width) {
        return Ok(width);
    }
    let problem = format!("a deviation of {width:e} is no scale for a width");
    Err(Error::data(
        format!("kernels on {label}"),
        problem,
        "standardise the columns or write the width",
    ))
}

/// The widths that `auto` stands for around a median distance.
fn widths_around(median: f64, label: &str) -> Result<Vec<f64>> {
    let widths = AUTO_FACTORS.map(|f| rounded(f * median));
    if widths.iter().all(|w| WIDTHS.contains(w)) {
        return Ok(widths.into());
    }
    let problem = format!("the median distance is {median:e}, no scale for an automatic width");
    Err(Error::data(
        format!("kernels on {label}"),
        problem,
        "standardise the columns or write the widths",
    ))
}

/// Rounded before use, so that the number a name shows is the number itself.
fn rounded(value: f64) -> f64 {
    format!("{value:.3e}").parse().unwrap_or(value)
}

fn automatic(label: &str, value: f64) -> Result<f64> {
    let value = rounded(value);
    if WIDTHS.contains(&value) {
        return Ok(value);
    }
    let problem = format!("the mean distance gives {value:e}, no scale for an automatic width");
    Err(Error::data(format!("kernels on {label}"), problem, "write the width"))
}

/// Histogram kernels are for counts, shares and other numbers that are not negative.
pub(crate) fn not_negative(
    function: Function,
    x: &Rows,
    columns: &[usize],
    names: &[String],
) -> Result<()> {
    if !function.needs_non_negative() {
        return Ok(());
    }
    let absent = x.absent(columns);
    let here = |i: &usize| absent.as_ref().is_none_or(|a| !a[*i]);
    let negative = |i: usize| columns.iter().find(|&&j| x.value(i, j) < 0.0).map(|&j| (i, j));
    let Some((i, j)) = (0..x.len()).filter(here).find_map(negative) else { return Ok(()) };
    Err(Error::data(
        format!("column `{}`", names[j]),
        Told::row(
            i,
            format!(
                "is {}, and {} is for numbers that are not negative",
                x.value(i, j),
                written(function)
            ),
        ),
        "switch standardisation off if the numbers themselves are not negative, or use another kernel",
    ))
}

/// Texts that a kernel cannot read are refused, naming the row.
pub(crate) fn readable(
    function: Function,
    rows: &Rows,
    columns: &[usize],
    names: &[String],
) -> Result<()> {
    let Function::Text(text) = function else { return Ok(()) };
    let rows = rows.having(columns);
    let found = columns.iter().filter_map(|&c| rows.sequence(c).map(|s| (s, &names[c])));
    found.into_iter().try_for_each(|(sequences, name)| text.check(sequences, name))
}

/// Training sequences to compare with: all of them, or `MEDIAN_ROWS` evenly strided ones.
fn landmarks(function: Function, rows: &Rows, columns: &[usize]) -> Vec<String> {
    let rows = rows.having(columns);
    let (Function::Text(text), Some(sequences)) =
        (function, columns.first().and_then(|&c| rows.sequence(c)))
    else {
        return Vec::new();
    };
    let n = if text.needs_landmarks() { sequences.len().min(MEDIAN_ROWS) } else { 0 };
    (0..n).map(|i| sequences.get(i * sequences.len() / n).to_string()).collect()
}

fn string_kernel(kind: TextKind, k: u32, extra: u32, alphabet: Alphabet) -> Result<Text> {
    Ok(match kind {
        TextKind::Spectrum => Text::Spectrum { k, alphabet },
        TextKind::Wd => Text::Wd { degree: k, shift: extra, alphabet },
        TextKind::WdSum => Text::WdSum { degree: k, shift: extra, alphabet },
        TextKind::Mismatch => {
            let text = Text::Mismatch { k, m: extra, alphabet };
            let near = text.neighbours();
            let refused = |problem: String, remedy: &str| {
                Err(Error::data(
                    format!("kernel `{}`", written(Function::Text(text))),
                    problem,
                    remedy,
                ))
            };
            match near {
                None => {
                    return refused(
                        "mismatches run over all letters of an alphabet".into(),
                        "name one: dna, rna or protein",
                    );
                }
                Some(near) if near > MAX_NEIGHBOURS => {
                    let problem = format!("{near:.0} words lie within {extra} mismatches of each");
                    return refused(problem, "use shorter words or fewer mismatches");
                }
                Some(_) => text,
            }
        }
    })
}

/// The root of the summed variances of the columns, over all rows that have them; 1 where every
/// column is constant.
fn deviation(x: &Rows, columns: &[usize]) -> f64 {
    let x = x.having(columns);
    let one =
        |j: &usize| mean_and_deviation(&(0..x.len()).map(|i| x.value(i, *j)).collect::<Vec<_>>()).1;
    let deviation = columns.iter().map(one).fold(0.0, f64::hypot);
    if deviation > 0.0 { deviation } else { 1.0 }
}

/// At most `MEDIAN_ROWS` evenly strided rows that have these columns.
fn some_rows(x: &Rows, columns: &[usize]) -> Numeric {
    let x = x.having(columns);
    let n = x.len().min(MEDIAN_ROWS);
    let rows: Vec<usize> = (0..n).map(|i| i * x.len() / n).collect();
    Numeric::of(&x.select_rows(&rows), columns)
}

/// The mean over pairs of [`some_rows`]; 1 where no two of them differ.
fn mean_distance(x: &Rows, columns: &[usize], distance: Distance) -> f64 {
    let points = some_rows(x, columns);
    let n = points.rows();
    let mut sum = 0.0;
    for i in 0..n {
        sum += (0..i).map(|j| points.distance(distance, i, j)).sum::<f64>();
    }
    if sum > 0.0 { 2.0 * sum / (n * (n - 1)) as f64 } else { 1.0 }
}

/// The median over pairs of [`some_rows`]; where most rows coincide, the mean over those pairs that
/// differ; 1 where none does.
fn median_distance(x: &Rows, columns: &[usize], distance: Distance) -> f64 {
    let points = some_rows(x, columns);
    let n = points.rows();
    let mut distances = Vec::with_capacity(n * n.saturating_sub(1) / 2);
    for i in 0..n {
        distances.extend((0..i).map(|j| points.distance(distance, i, j)));
    }
    if distances.is_empty() {
        return 1.0;
    }
    let (middle, odd) = (distances.len() / 2, distances.len() % 2 == 1);
    let (below, &mut upper, _) = distances.select_nth_unstable_by(middle, f64::total_cmp);
    let median =
        if odd { upper } else { f64::midpoint(upper, below.iter().copied().fold(0.0, f64::max)) };
    if median > 0.0 {
        return median;
    }
    let apart: Vec<f64> = distances.into_iter().filter(|&d| d > 0.0).collect();
    if apart.is_empty() { 1.0 } else { apart.iter().sum::<f64>() / apart.len() as f64 }
}

fn written(function: Function) -> String {
    match function {
        Function::Precomputed { .. } => "precomputed".into(),
        Function::Text(Text::Alignment { scoring, open, extend }) => {
            KernelList::Alignment { scoring, open, extend }.to_string()
        }
        Function::Text(Text::Wl { iterations }) => format!("wl({iterations})"),
        Function::Text(text) => {
            let (kind, length, extra) = match text {
                Text::Spectrum { k, .. } => (TextKind::Spectrum, k, 0),
                Text::Mismatch { k, m, .. } => (TextKind::Mismatch, k, m),
                Text::Wd { degree, shift, .. } => (TextKind::Wd, degree, shift),
                Text::WdSum { degree, shift, .. } => (TextKind::WdSum, degree, shift),
                Text::Alignment { .. } | Text::Wl { .. } => (TextKind::Spectrum, 0, 0),
            };
            let lengths = vec![Series::One(f64::from(length))];
            KernelList::Text { kind, lengths, extra, alphabet: Some(text.alphabet()) }.to_string()
        }
        function => numbers::name(function).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests;
