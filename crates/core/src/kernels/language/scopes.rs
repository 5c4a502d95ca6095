//! Which columns a scope names.

use super::{Cols, Scope, list, quoted};
use crate::{
    Error, Result,
    data::{Dataset, is_layer_of, nearest},
};

/// The most features for which the bank `auto` has a kernel of each one alone (docs/defaults.md).
const AUTO_EACH: usize = 100;

/// The columns that a kernel reads, ascending, and what people call them.
pub(super) struct ScopePlace {
    pub columns: Vec<usize>,
    pub label: String,
}

impl Scope {
    pub(super) fn count(&self, n_features: usize) -> usize {
        match self {
            Self::All | Self::Cols(_) | Self::View(_) => 1,
            Self::EachIfFew if n_features > AUTO_EACH => 0,
            Self::Each | Self::EachIfFew => n_features,
            Self::Bands(k) => *k,
        }
    }

    /// Where kernels of numbers, or else those of text, look: the latter at one column each.
    pub(super) fn places(&self, data: &Dataset, text: bool) -> Result<Vec<ScopePlace>> {
        let all = data.columns();
        let features = data.feature_columns();
        let counted: Vec<usize> = (0..all.len()).filter(|c| !data.rows().is_ready(&[*c])).collect();
        let d = features.len();
        let texts = data.rows().text_start()..all.len();
        let single = |j: usize| ScopePlace { columns: vec![j], label: quoted(&all[j]) };
        let one = |columns, label: &str| Ok(vec![ScopePlace { columns, label: label.to_string() }]);
        if text && texts.is_empty() {
            return Err(Error::data(
                "string kernels",
                "the data have no column of text",
                "give sequences, or use others",
            ));
        }
        match self {
            Self::All | Self::Each | Self::EachIfFew if text => Ok(texts.map(single).collect()),
            Self::All | Self::Each | Self::EachIfFew | Self::Bands(_) if d == 0 => {
                Err(Error::data(
                    "kernels of numbers",
                    "the data have no numeric column",
                    "use string kernels",
                ))
            }
            Self::All => one(features, "all"),
            Self::EachIfFew if d > AUTO_EACH => Ok(Vec::new()),
            Self::Each | Self::EachIfFew => Ok(features.into_iter().map(single).collect()),
            Self::Bands(_) if text => Err(Error::data(
                self.to_string(),
                "bands are of numeric columns",
                "use all, cols or view",
            )),
            Self::Bands(k) if *k > d => Err(Error::data(
                self.to_string(),
                format!("there are {d} feature columns"),
                "ask for fewer bands",
            )),
            Self::Bands(k) => {
                let band = |b: usize| features[b * d / k..(b + 1) * d / k].to_vec();
                Ok((0..*k)
                    .map(|b| ScopePlace { columns: band(b), label: format!("band {}/{k}", b + 1) })
                    .collect())
            }
            Self::View(name) => {
                let sequence = || texts.clone().find(|&j| all[j] == *name).map(|j| j..j + 1);
                let view = data.views().iter().find(|v| v.name == *name).map(|v| v.columns.clone());
                let Some(columns) = view.or_else(sequence) else {
                    if data.views().is_empty() {
                        let remedy = "use all, each, cols or bands";
                        return Err(Error::data(
                            format!("view `{name}`"),
                            "the data have no views",
                            remedy,
                        ));
                    }
                    let views: Vec<String> = data.views().iter().map(|v| v.name.clone()).collect();
                    return Err(unknown("view", name, &views));
                };
                let columns = of_kind(columns.collect(), data, text)?;
                if text {
                    Ok(columns.into_iter().map(single).collect())
                } else {
                    one(columns, &format!("view {name}"))
                }
            }
            Self::Cols(items) => {
                let columns = of_kind(columns(items, all, &counted)?, data, text)?;
                if text {
                    return Ok(columns.into_iter().map(single).collect());
                }
                let label = match columns.as_slice() {
                    [j] => quoted(&all[*j]),
                    few if few.len() <= 8 => {
                        format!("cols({})", list(few.iter().map(|&j| quoted(&all[j])), ", "))
                    }
                    _ => self.to_string(),
                };
                one(columns, &label)
            }
        }
    }
}

impl Scope {
    /// The views of kernel values that a ready-made kernel reads: the one of that name, or all
    /// kernels of a stack of that name. Their columns are in the order of the rows.
    pub(super) fn grams(&self, name: Option<&str>, data: &Dataset) -> Result<Vec<ScopePlace>> {
        let name = match (name, self) {
            (Some(name), _) => name,
            (None, Self::View(name)) => name,
            _ => {
                let remedy = "write precomputed(name) or precomputed on view(name)";
                return Err(Error::data(
                    "kernel `precomputed`",
                    "does not say which view it reads",
                    remedy,
                ));
            }
        };
        let names = || data.views().iter().map(|v| v.name.as_str());
        let layers: Vec<&str> = names().filter(|v| is_layer_of(name, v)).collect();
        if layers.is_empty() || names().any(|v| v == name) {
            return Ok(vec![gram(name, data)?]);
        }
        layers.into_iter().map(|layer| gram(layer, data)).collect()
    }
}

/// The columns of a view of kernel values.
fn gram(name: &str, data: &Dataset) -> Result<ScopePlace> {
    let views = data.views();
    let Some(at) = views.iter().position(|v| v.name == name) else {
        let grams = |v: &usize| data.is_gram(*v);
        let names: Vec<String> =
            (0..views.len()).filter(grams).map(|v| views[v].name.clone()).collect();
        if names.is_empty() {
            let remedy = "name a file of them, or give a view of them";
            return Err(Error::data(
                format!("view `{name}`"),
                "the data have no kernel values",
                remedy,
            ));
        }
        return Err(unknown("view", name, &names));
    };
    let (view, n) = (&views[at], data.places().iter().max().map_or(0, |m| m + 1));
    if !data.is_gram(at) {
        let problem = "holds features, and `precomputed` reads kernel values";
        return Err(Error::data(
            format!("view `{name}`"),
            problem,
            "mark it as a Gram matrix, or use another kernel",
        ));
    }
    if n > view.columns.len() {
        let expected =
            format!("a square matrix: {n} columns of kernel values, one per training row");
        return Err(Error::shape(format!("view `{name}`"), expected, view.columns.len()));
    }
    let columns: Vec<usize> = data.places().iter().map(|p| view.columns.start + p).collect();
    if data.rows().absent(&columns).is_some() {
        let problem = "kernel values of some rows are missing";
        return Err(Error::data(
            format!("view `{name}`"),
            problem,
            "fill them in, or leave those rows out",
        ));
    }
    Ok(ScopePlace { columns, label: format!("view {name}") })
}

/// Kernels of numbers read numbers, kernels of text read text, neither reads kernel values.
fn of_kind(columns: Vec<usize>, data: &Dataset, text: bool) -> Result<Vec<usize>> {
    if data.rows().is_ready(&columns) {
        let name = &data.columns()[columns[0]];
        return Err(Error::data(
            format!("column `{name}`"),
            "holds kernel values",
            "read them with `precomputed`",
        ));
    }
    let Some(&odd) = columns.iter().find(|&&c| data.rows().sequence(c).is_some() != text) else {
        return Ok(columns);
    };
    let (problem, remedy) = if text {
        ("holds numbers, and string kernels read text", "choose a column of text")
    } else {
        (
            "holds text, and only string kernels read text",
            "choose numeric columns, or spectrum, mismatch, wd, wdsum",
        )
    };
    Err(Error::data(format!("column `{}`", data.columns()[odd]), problem, remedy))
}

/// The columns these items name, ascending, each once; numbers count through `counted`.
fn columns(items: &[Cols], names: &[String], counted: &[usize]) -> Result<Vec<usize>> {
    let mut columns = Vec::new();
    for item in items {
        match item {
            Cols::Name(name) => {
                let at = names.iter().position(|n| n == name);
                columns.push(at.ok_or_else(|| unknown("column", name, names))?);
            }
            Cols::Span(first, last) if *last <= counted.len() => {
                columns.extend(&counted[first - 1..*last]);
            }
            Cols::Span(..) => {
                let problem = format!("there are {} feature columns", counted.len());
                let remedy = format!("choose among {}", nearest("", names));
                return Err(Error::data(format!("cols({item})"), problem, remedy));
            }
        }
    }
    columns.sort_unstable();
    columns.dedup();
    Ok(columns)
}

fn unknown(what: &str, name: &str, names: &[String]) -> Error {
    Error::data(
        format!("{what} `{name}`"),
        "is not in the data",
        format!("choose one of {}", nearest(name, names)),
    )
}
