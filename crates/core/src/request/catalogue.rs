//! What the program, Python, the documentation and the tests are told about methods and their
//! parameters.

use serde::{Serialize, Serializer, ser::SerializeStruct as _};

use super::method::METHODS;
use crate::data::Target;

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
    /// Values that a comparison tries where the method was named without settings, in the notation
    /// of grids.
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
pub(super) const fn plain(name: &'static str, help: &'static str) -> Parameter {
    Parameter { name, help, grid: None }
}

/// A parameter that comparisons choose among the values of `grid`.
pub(super) const fn tried(name: &'static str, help: &'static str, grid: &'static str) -> Parameter {
    Parameter { name, help, grid: Some(grid) }
}

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
        let told = |p: &Parameter| {
            if p.help.is_empty() { p.name.into() } else { format!("{} ({})", p.name, p.help) }
        };
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::{Lp, MethodSpec, TrainSpec, Value};

    #[test]
    fn every_name_in_the_catalogue_is_a_method_of_that_name() {
        for info in catalogue() {
            assert_eq!(MethodSpec::named(info.name).unwrap().name(), info.name);
        }
        assert_eq!(
            MethodSpec::named("l1").unwrap(),
            MethodSpec::Lp(Lp { p: 1.0, ..Lp::default() })
        );
        assert_eq!(
            MethodSpec::named("l2").unwrap(),
            MethodSpec::Lp(Lp { p: 2.0, ..Lp::default() })
        );
        assert!(
            MethodSpec::named("l3")
                .unwrap_err()
                .to_string()
                .contains("gmkl, lp, single, align, alignf, smkl, clmkl")
        );
    }

    #[test]
    fn the_catalogue_lists_the_parameters_that_a_method_has_with_their_defaults() {
        for info in catalogue() {
            let method = MethodSpec::named(info.name).unwrap();
            let said = MethodSpec::said_by_name(info.name);
            let mut has: Vec<&str> =
                method.parameters().iter().map(|p| p.0).filter(|p| Some(*p) != said).collect();
            let mut listed: Vec<&str> = info.parameters.iter().map(|p| p.name).collect();
            has.sort_unstable();
            listed.sort_unstable();
            assert_eq!(has, listed, "{}", info.name);
            for parameter in info.parameters {
                let (name, value) = (parameter.name, method.get(parameter.name).unwrap());
                match parameter.help.split_once("default ") {
                    Some((_, "4/3")) => assert_eq!(value, Value::Number(4.0 / 3.0)),
                    Some((_, stated)) => {
                        assert_eq!(value.to_string(), stated, "{} {name}", info.name);
                    }
                    None => {
                        assert_eq!(value, Value::None, "{} {name}: state its default", info.name);
                    }
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
            assert_eq!(
                stored.as_object().unwrap().len(),
                method.parameters().len() + 1,
                "{}",
                info.name
            );
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
        assert!(
            with("gmkl", "p", "inf".into()).unwrap_err().to_string().contains("a finite number")
        );
        assert_eq!(with("single", "folds", 3.0.into()).unwrap(), "3");
        assert!(with("single", "folds", 2.5.into()).is_err());
        assert_eq!(with("clmkl", "evenness", "hard".into()).unwrap(), "hard");
        assert_eq!(with("clmkl", "cluster_kernel", 2.0.into()).unwrap(), "2");
        assert_eq!(with("clmkl", "v", Value::None).unwrap(), "none");
        assert_eq!(with("vcmkl", "n_rules", "auto".into()).unwrap(), "auto");
        assert_eq!(with("vcmkl", "nu", Value::Numbers(vec![0.5, 1.0])).unwrap(), "[0.5,1.0]");
        assert_eq!(with("vcmkl", "objective", "as-printed".into()).unwrap(), "as_printed");
        assert_eq!(with("lp", "solver", "reduced-gradient".into()).unwrap(), "reduced_gradient");
        assert!(
            with("gmkl", "solver", "ccp".into())
                .unwrap_err()
                .to_string()
                .contains("one of auto, level")
        );
    }

    #[test]
    fn a_method_that_suits_a_target_has_a_request_that_can_be() {
        for info in catalogue() {
            TrainSpec::for_method(MethodSpec::named(info.name).unwrap()).check().unwrap();
        }
    }
}
