//! The list of methods, each with its parameters, that the program, Python, the documentation and the tests read.

use serde::{Serialize, Serializer, ser::SerializeStruct as _};

use super::{Clmkl, Evenness, Glmkl, Gmkl, Gsmkl, Lmkl, Lp, MethodSpec, Single, Smkl, VcmklSpec};
use crate::{Error, Result, data::Target};

/// What users are told about a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MethodInfo {
    /// What users type; also the name of its page in docs/methods.
    pub name: &'static str,
    /// What it is, in one line.
    pub summary: &'static str,
    /// What proves a fit.
    pub certificate: &'static str,
    /// Its own parameters.
    pub parameters: &'static [Parameter],
    /// Which targets it takes part for where all methods are compared.
    pub targets: Targets,
}

/// What users are told about a parameter of a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Parameter {
    /// Its name in requests, grids and Python.
    pub name: &'static str,
    /// Its meaning or range, and its default; empty where the name says all.
    pub help: &'static str,
    /// Values that a comparison tries where the method was named without settings, in the notation of grids.
    pub grid: Option<&'static str>,
}

/// Targets that suit a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Targets {
    /// Classes and values.
    Any,
    /// Two classes.
    TwoClasses,
}

impl Targets {
    /// Does a target suit?
    pub fn suit(self, target: &Target) -> bool {
        self == Self::Any || matches!(target, Target::Classes { names, .. } if names.len() == 2)
    }
}

/// A parameter that comparisons leave at its default.
const fn plain(name: &'static str, help: &'static str) -> Parameter {
    Parameter { name, help, grid: None }
}

/// A parameter that comparisons choose among the values of `grid`.
const fn tried(name: &'static str, help: &'static str, grid: &'static str) -> Parameter {
    Parameter { name, help, grid: Some(grid) }
}

const SEED: Parameter = plain("seed", "default 0");

const GMKL: &[Parameter] = &[
    tried("v", "0 is L2, 1 is L1; default 0.5", "0.1|0.5|0.9"),
    plain("p", "at least 1; default 2"),
    plain("solver", "auto, level, alternating, interior; default auto"),
];

const LP: &[Parameter] = &[
    tried("p", "at least 1, or inf; default 4/3", "1.5|2|4"),
    plain(
        "solver",
        "auto, level, alternating, interior; for p = 1 also reduced_gradient = SimpleMKL, silp; default auto",
    ),
];

// Folds within folds within splits: three are enough to rank kernels.
const SINGLE: &[Parameter] = &[tried("folds", "at least 2; default 5", "3"), SEED];

const SMKL: &[Parameter] = &[
    plain("penalty", "sums of log, gl, mf(p), mkl; default log+gl"),
    plain("eps", "inside the logarithm; default 0.0001"),
];

const REGIONS: [Parameter; 7] = [
    plain("n_clusters", "at least 1; default 3"),
    plain("p", "at least 1, or inf; default 2"),
    plain("v", "elastic net in each region, 0 to 1"),
    plain("cluster_kernel", "default: the average"),
    plain("n_init", "starts; default 10"),
    plain("regions", "a column"),
    SEED,
];

const EVENNESS: Parameter = plain("evenness", "at most 1, or hard; default: the middle of its range");

const CLMKL: &[Parameter] =
    &[REGIONS[0], EVENNESS, REGIONS[1], REGIONS[2], REGIONS[3], REGIONS[4], REGIONS[5], REGIONS[6]];

const LMKL: &[Parameter] = &[
    plain("gate", "softmax, sigmoid; default softmax"),
    plain("gate_kernel", "`linear on all` is the linear gate; default: the average"),
    plain("n_init", "starts; default 1"),
    SEED,
];

const GLMKL: &[Parameter] = &[
    plain("n_groups", "at least 1; default 3"),
    plain("p", "at least 1, 2 is sparse; default 4"),
    plain("groups", "a column"),
    plain("n_init", "starts; default 1"),
    SEED,
];

const GSMKL: &[Parameter] = &[GLMKL[0], GLMKL[2], GLMKL[3], SEED];

const VCMKL: &[Parameter] = &[
    plain("n_rules", "at least 1, or auto; default 3"),
    plain("solver", "ccp, am, sgd, pddp, exact; default ccp"),
    plain("nu", "rewards of margins, one for all or one per rule"),
    plain("gamma", "share of the cost of errors on the consensus class, 0 to 1"),
    plain("cost_ratio", "above 0; default 1"),
    plain("objective", "opt1, as_printed; default opt1"),
    plain("consensus", "a class; default: the second"),
    plain("p", "at least 1, or inf; default: no weights are learned"),
    plain("n_init", "starts of ccp; default 3"),
    plain("folds", "of n_rules = auto; default 5"),
    SEED,
];

const METHODS: &[MethodInfo] = &[
    MethodInfo {
        name: "uniform",
        summary: "equal weights 1/M: the baseline to beat",
        certificate: "duality gap",
        parameters: &[],
        targets: Targets::Any,
    },
    MethodInfo {
        name: "gmkl",
        summary: "elastic-net constraint v Σθ + (1−v) Σθ^p ≤ 1: selects kernels, equal kernels get equal weight",
        certificate: "duality gap",
        parameters: GMKL,
        targets: Targets::Any,
    },
    MethodInfo {
        name: "lp",
        summary: "ℓp-norm MKL, ‖θ‖_p ≤ 1: p = 1 is sparse (also `l1`), p = 2 (also `l2`), p = inf keeps all",
        certificate: "duality gap",
        parameters: LP,
        targets: Targets::Any,
    },
    MethodInfo {
        name: "single",
        summary: "the best single kernel by cross-validation on the training rows",
        certificate: "duality gap",
        parameters: SINGLE,
        targets: Targets::Any,
    },
    MethodInfo {
        name: "align",
        summary: "one-shot weights: each kernel by its centred alignment with the target",
        certificate: "duality gap",
        parameters: &[],
        targets: Targets::Any,
    },
    MethodInfo {
        name: "alignf",
        summary: "one-shot weights: the combination with the largest centred alignment with the target",
        certificate: "duality gap",
        parameters: &[],
        targets: Targets::Any,
    },
    MethodInfo {
        name: "smkl",
        summary: "concave group selection terms: fewer kernels than L1 at comparable error; \
                  normalize is trace and C scale by default",
        certificate: "stationarity",
        parameters: SMKL,
        targets: Targets::Any,
    },
    MethodInfo {
        name: "clmkl",
        summary: "convex localized MKL: kernel weights per region, soft regions from kernel k-means",
        certificate: "duality gap",
        parameters: CLMKL,
        targets: Targets::Any,
    },
    MethodInfo {
        name: "hlmkl",
        summary: "clmkl with hard regions: every row belongs to one",
        certificate: "duality gap",
        parameters: &REGIONS,
        targets: Targets::Any,
    },
    MethodInfo {
        name: "lmkl",
        summary: "localized MKL: a gate over the kernels in a kernel's feature space, learned with the machine",
        certificate: "stationarity",
        parameters: LMKL,
        targets: Targets::Any,
    },
    MethodInfo {
        name: "glmkl",
        summary: "ℓp-GLMKL: kernel weights per group, learned with the machine, groups from multi-kernel k-means",
        certificate: "stationarity",
        parameters: GLMKL,
        targets: Targets::Any,
    },
    MethodInfo {
        name: "gsmkl",
        summary: "group-sensitive MKL: softmax kernel weights per group",
        certificate: "stationarity",
        parameters: GSMKL,
        targets: Targets::Any,
    },
    MethodInfo {
        name: "vcmkl",
        summary: "veto–consensus: a sample belongs to the consensus class only if every rule agrees, g = min f_m",
        certificate: "stationarity; a duality gap for solver exact",
        parameters: VCMKL,
        targets: Targets::TwoClasses,
    },
];

/// Names of [`MethodSpec::Lp`] with p said already.
const NORMS: [(&str, f64); 2] = [("l1", 1.0), ("l2", 2.0)];

/// Every method.
pub fn catalogue() -> &'static [MethodInfo] {
    METHODS
}

impl MethodInfo {
    /// The method of that name in the catalogue; `None` for any other name, `l1` and `l2` included.
    pub fn named(name: &str) -> Option<&'static Self> {
        METHODS.iter().find(|m| m.name == name)
    }

    /// Its parameters in one line: `v (0 is L2, 1 is L1; default 0.5), p (at least 1; default 2)`.
    pub fn parameter_line(&self) -> String {
        if self.parameters.is_empty() {
            return "none".into();
        }
        let told = |p: &Parameter| if p.help.is_empty() { p.name.into() } else { format!("{} ({})", p.name, p.help) };
        self.parameters.iter().map(told).collect::<Vec<String>>().join(", ")
    }

    /// What it tries in a comparison where it is named without settings, in the notation of grids.
    pub fn grid(&self) -> String {
        let axis = |p: &Parameter| Some(format!("{}={}", p.name, p.grid?));
        self.parameters.iter().filter_map(axis).collect::<Vec<_>>().join("; ")
    }
}

impl Serialize for MethodInfo {
    /// `parameters` is a line for people, `options` the list behind it.
    fn serialize<S: Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
        let mut out = to.serialize_struct("MethodInfo", 6)?;
        out.serialize_field("name", self.name)?;
        out.serialize_field("summary", self.summary)?;
        out.serialize_field("certificate", self.certificate)?;
        out.serialize_field("parameters", &self.parameter_line())?;
        out.serialize_field("options", self.parameters)?;
        out.serialize_field("targets", &self.targets)?;
        out.end()
    }
}

impl MethodSpec {
    /// The method of that name with its default parameters: every name of the catalogue, and `l1`, `l2` for [`MethodSpec::Lp`].
    pub fn named(name: &str) -> Result<Self> {
        if let Some((_, p)) = NORMS.iter().find(|(known, _)| *known == name) {
            return Ok(Self::Lp(Lp { p: *p, ..Lp::default() }));
        }
        Ok(match name {
            "uniform" => Self::Uniform {},
            "gmkl" => Self::Gmkl(Gmkl::default()),
            "lp" => Self::Lp(Lp::default()),
            "single" => Self::Single(Single::default()),
            "align" => Self::Align {},
            "alignf" => Self::Alignf {},
            "smkl" => Self::Smkl(Smkl::default()),
            "clmkl" => Self::Clmkl(Clmkl::default()),
            "hlmkl" => Self::Clmkl(Clmkl { evenness: Some(Evenness::HARD), ..Clmkl::default() }),
            "lmkl" => Self::Lmkl(Lmkl::default()),
            "glmkl" => Self::Glmkl(Glmkl::default()),
            "gsmkl" => Self::Gsmkl(Gsmkl::default()),
            "vcmkl" => Self::Vcmkl(VcmklSpec::default()),
            other => {
                let known: Vec<&str> = METHODS.iter().map(|m| m.name).chain(NORMS.map(|(name, _)| name)).collect();
                return Err(Error::param("method", format!("one of {}", known.join(", ")), format!("`{other}`")));
            }
        })
    }

    /// The parameter that such a name says already: p in `l1` and `l2`, the evenness in `hlmkl`.
    pub fn said_by_name(name: &str) -> Option<&'static str> {
        match name {
            "hlmkl" => Some("evenness"),
            _ => NORMS.iter().any(|(known, _)| *known == name).then_some("p"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::{TrainSpec, Value};

    #[test]
    fn every_name_in_the_catalogue_is_a_method_of_that_name() {
        for info in catalogue() {
            assert_eq!(MethodSpec::named(info.name).unwrap().name(), info.name);
        }
        assert_eq!(MethodSpec::named("l1").unwrap(), MethodSpec::Lp(Lp { p: 1.0, ..Lp::default() }));
        assert_eq!(MethodSpec::named("l2").unwrap(), MethodSpec::Lp(Lp { p: 2.0, ..Lp::default() }));
        assert!(
            MethodSpec::named("l3").unwrap_err().to_string().contains("gmkl, lp, single, align, alignf, smkl, clmkl")
        );
    }

    #[test]
    fn the_catalogue_lists_the_parameters_that_a_method_has_with_their_defaults() {
        for info in catalogue() {
            let method = MethodSpec::named(info.name).unwrap();
            let said = MethodSpec::said_by_name(info.name);
            let mut has: Vec<&str> = method.parameters().iter().map(|p| p.0).filter(|p| Some(*p) != said).collect();
            let mut listed: Vec<&str> = info.parameters.iter().map(|p| p.name).collect();
            has.sort_unstable();
            listed.sort_unstable();
            assert_eq!(has, listed, "{}", info.name);
            for parameter in info.parameters {
                let (name, value) = (parameter.name, method.get(parameter.name).unwrap());
                match parameter.help.split_once("default ") {
                    Some((_, "4/3")) => assert_eq!(value, Value::Number(4.0 / 3.0)),
                    Some((_, stated)) => assert_eq!(value.to_string(), stated, "{} {name}", info.name),
                    None => assert_eq!(value, Value::None, "{} {name}: state its default", info.name),
                }
            }
        }
    }

    #[test]
    fn a_parameter_is_set_to_what_is_read_from_it_and_a_value_of_another_kind_is_refused() {
        for info in catalogue() {
            let method = MethodSpec::named(info.name).unwrap();
            // What JSON says of a method is what its parameters say.
            let stored = serde_json::to_value(&method).unwrap();
            assert_eq!(stored.as_object().unwrap().len(), method.parameters().len() + 1, "{}", info.name);
            for (name, value) in method.parameters() {
                let mut copy = method.clone();
                copy.set(name, &value).unwrap();
                assert_eq!(copy, method, "{name}");
                let read: Value = serde_json::from_value(stored[name].clone()).unwrap();
                assert_eq!(read, value, "{} {name}", info.name);
                let wrong = Value::Numbers(vec![1.0, 2.0]);
                if name != "nu" {
                    let refusal = copy.set(name, &wrong).unwrap_err().to_string();
                    assert!(refusal.contains(name) && refusal.contains("[1.0,2.0]"), "{refusal}");
                    assert_eq!(copy, method, "{name}");
                }
            }
            assert!(method.clone().set("name", &"x".into()).is_err());
        }
    }

    #[test]
    fn values_as_they_are_written_become_typed_parameters() {
        let with = |name: &str, parameter: &str, value: Value| {
            let mut method = MethodSpec::named(name).unwrap();
            method.set(parameter, &value).map(|()| method.get(parameter).unwrap().to_string())
        };
        assert_eq!(with("lp", "p", "inf".into()).unwrap(), "inf");
        assert!(with("gmkl", "p", "inf".into()).unwrap_err().to_string().contains("a finite number"));
        assert_eq!(with("single", "folds", 3.0.into()).unwrap(), "3");
        assert!(with("single", "folds", 2.5.into()).is_err());
        assert_eq!(with("clmkl", "evenness", "hard".into()).unwrap(), "hard");
        assert_eq!(with("clmkl", "cluster_kernel", 2.0.into()).unwrap(), "2");
        assert_eq!(with("clmkl", "v", Value::None).unwrap(), "none");
        assert_eq!(with("vcmkl", "n_rules", "auto".into()).unwrap(), "auto");
        assert_eq!(with("vcmkl", "nu", Value::Numbers(vec![0.5, 1.0])).unwrap(), "[0.5,1.0]");
        assert_eq!(with("vcmkl", "objective", "as-printed".into()).unwrap(), "as_printed");
        assert_eq!(with("lp", "solver", "reduced-gradient".into()).unwrap(), "reduced_gradient");
        assert!(with("gmkl", "solver", "ccp".into()).unwrap_err().to_string().contains("one of auto, level"));
    }

    #[test]
    fn a_method_that_suits_a_target_has_a_request_that_can_be() {
        for info in catalogue() {
            TrainSpec::for_method(MethodSpec::named(info.name).unwrap()).check().unwrap();
        }
    }
}
