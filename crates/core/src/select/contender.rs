//! Methods that compete, with the settings each may choose from.

use serde::{Deserialize, Serialize};

use super::Grid;
use crate::{
    Error, Result,
    data::Target,
    request::{MethodInfo, MethodSpec, TrainSpec, Value, catalogue},
};

/// A method with its settings. Where the grid has no C, [`crate::train::c_values`] are tried.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Contender {
    /// What the table calls it.
    pub label: String,
    /// The request, less what the grid decides.
    pub spec: TrainSpec,
    /// What the training part decides.
    pub grid: Grid,
}

impl Contender {
    /// Reads `name` or `name(v=0.5; C=1|10)`. A bare name has the settings listed in
    /// docs/conventions.md.
    pub fn parse(text: &str, base: &TrainSpec, common: &Grid) -> Result<Self> {
        let (name, own) = match text.split_once('(') {
            Some((name, rest)) => {
                let Some(inner) = rest.strip_suffix(')') else {
                    return Err(Error::param(
                        "methods",
                        "closing bracket after the settings",
                        format!("`{text}`"),
                    ));
                };
                (name.trim(), Some(inner))
            }
            None => (text.trim(), None),
        };
        let method = MethodSpec::named(name)?;
        let grid = match own {
            Some(own) => Grid::parse(own, &method)?,
            // `l1` and `l2` have said their p.
            None => Grid::parse(
                &MethodInfo::named(name).map(MethodInfo::grid).unwrap_or_default(),
                &method,
            )?,
        };
        let spec = TrainSpec { method, ..base.clone() }.for_contender();
        let grid = grid.or(&common.clone());
        grid.specs(&spec)?;
        let label = text.split_whitespace().collect::<String>();
        Ok(Self { label, spec, grid })
    }

    /// The contender with the normalisation that its method has by default: for where nobody named
    /// one.
    #[must_use]
    pub fn with_own_scaling(self) -> Self {
        Self { spec: self.spec.with_own_scaling(), ..self }
    }
}

/// The contenders of a list such as `all`, or `l1, gmkl(v=0.5), smkl`. Equal weights and the best
/// single kernel always take part, first.
pub fn contenders(
    list: &str,
    base: &TrainSpec,
    common: &Grid,
    target: &Target,
) -> Result<Vec<Contender>> {
    let mut names: Vec<String> = Vec::new();
    for item in items(list) {
        match item.as_str() {
            "" => {}
            "all" => {
                // `lp` tries several p; the sparse end has a line of its own.
                let suited = catalogue().iter().filter(|m| m.targets.suit(target));
                names.extend(
                    suited
                        .map(|m| m.name)
                        .chain(["l1"])
                        .filter(|n| serves(n, base))
                        .map(String::from),
                );
            }
            _ => names.push(item),
        }
    }
    if names.is_empty() {
        return Err(Error::param(
            "methods",
            "`all`, or at least one name that `mercer methods` lists",
            format!("`{list}`"),
        ));
    }
    let is = |n: &String, base: &str| n.split('(').next() == Some(base);
    for baseline in ["single", "uniform"] {
        let place = names.iter().position(|n| is(n, baseline));
        let name = place.map_or_else(|| baseline.to_string(), |at| names.remove(at));
        names.insert(0, name);
    }
    let mut out: Vec<Contender> = Vec::new();
    for name in names {
        let contender = Contender::parse(&name, base, common)?;
        if out.iter().all(|c| c.label != contender.label) {
            out.push(contender);
        }
    }
    Ok(out)
}

/// Can the method do what the request asks of every method? One that some method cannot do leaves
/// it out of `all`; one that none can is refused where the first is made.
fn serves(name: &str, base: &TrainSpec) -> bool {
    let with = |name: &str| {
        MethodSpec::named(name).map(|method| TrainSpec { method, ..base.clone() }.for_contender())
    };
    with(name).is_ok_and(|spec| spec.check().is_ok())
        || with("uniform").is_ok_and(|spec| spec.check().is_err())
}

/// Parts between commas that stand outside brackets.
fn items(list: &str) -> Vec<String> {
    let (mut out, mut depth) = (vec![String::new()], 0_i32);
    for c in list.chars() {
        depth += i32::from(c == '(') - i32::from(c == ')');
        match (c, out.last_mut()) {
            (',', _) if depth == 0 => out.push(String::new()),
            (c, Some(last)) => last.push(c),
            _ => {}
        }
    }
    out.into_iter().map(|item| item.trim().to_string()).collect()
}

/// One setting of every axis.
#[must_use]
pub(super) fn single_values(grid: &Grid, spec: &TrainSpec) -> Vec<(String, String)> {
    let mut told = grid.describe(spec);
    if !grid.has("C") {
        told.insert(0, ("C".into(), Value::from(spec.c).to_string()));
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(list: &str, target: &Target) -> Vec<String> {
        let all = contenders(list, &TrainSpec::default(), &Grid::default(), target).unwrap();
        all.into_iter().map(|c| c.label).collect()
    }

    #[test]
    fn baselines_always_take_part() {
        let two = Target::classes(&["a", "b"]);
        assert_eq!(
            labels("gmkl(v=0.5; C=1|10), smkl(penalty=mf(0.5)|mkl)", &two)[..3],
            ["uniform", "single", "gmkl(v=0.5;C=1|10)"]
        );
        assert_eq!(labels("single(folds=2), l1, l1", &two), ["uniform", "single(folds=2)", "l1"]);
        let all = labels("all", &two);
        assert!(
            catalogue().iter().all(|m| all.iter().any(|l| l == m.name))
                && all.contains(&"l1".into())
        );
        assert!(!labels("all", &Target::Values(vec![1.0])).contains(&"vcmkl".into()));
        let wrong = contenders("gmk", &TrainSpec::default(), &Grid::default(), &two)
            .unwrap_err()
            .to_string();
        assert!(wrong.contains("gmkl"), "{wrong}");
        for none in ["", ",", " , "] {
            let wrong = contenders(none, &TrainSpec::default(), &Grid::default(), &two)
                .unwrap_err()
                .to_string();
            assert!(wrong.contains("at least one"), "{wrong}");
        }
        assert!(contenders("gmkl(v=0.5", &TrainSpec::default(), &Grid::default(), &two).is_err());
    }
}
