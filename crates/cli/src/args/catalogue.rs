//! Flags that are made from the catalogue of methods, one for every parameter that has no flag
//! written by hand.

use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use mercer::request::{MethodInfo, Value, catalogue};

/// The parameters that were typed with a flag made from the catalogue, under the names that the
/// catalogue has for them.
///
/// It must be the last field of its struct: a parameter whose name is that of an earlier argument
/// has a flag already.
#[derive(Debug, Default)]
pub struct CatalogueArgs(Vec<(&'static str, Value)>);

/// What a flag made here holds. A flag written by hand holds another type, and so is never taken
/// for one of these.
#[derive(Debug, Clone)]
struct Typed(Value);

impl CatalogueArgs {
    pub fn given(&self) -> impl Iterator<Item = (&'static str, Value)> {
        self.0.iter().cloned()
    }
}

impl Args for CatalogueArgs {
    fn augment_args(command: Command) -> Command {
        with_flags(command, catalogue())
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for CatalogueArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self(typed(matches, catalogue())))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Adds a flag for every parameter of the methods whose name no argument of the command has yet.
fn with_flags(command: Command, methods: &[MethodInfo]) -> Command {
    let parameters = methods.iter().flat_map(|m| m.parameters);
    parameters.fold(command, |command, parameter| {
        let name = parameter.name;
        if command.get_arguments().any(|arg| arg.get_id() == name) {
            return command;
        }
        command.arg(
            Arg::new(name)
                .long(name.replace('_', "-"))
                .help(help(name, methods))
                .help_heading("Method")
                .value_name(name.to_uppercase())
                .value_parser(|text: &str| Ok::<_, String>(Typed(value(text))))
                .allow_hyphen_values(true),
        )
    })
}

/// What was typed with the flags of [`with_flags`].
fn typed(matches: &ArgMatches, methods: &[MethodInfo]) -> Vec<(&'static str, Value)> {
    let mut given: Vec<(&'static str, Value)> = Vec::new();
    for parameter in methods.iter().flat_map(|m| m.parameters) {
        let name = parameter.name;
        if given.iter().any(|(known, _)| *known == name) {
            continue;
        }
        if let Ok(Some(Typed(value))) = matches.try_get_one(name) {
            given.push((name, value.clone()));
        }
    }
    given
}

/// The methods that have the parameter, each with what the catalogue says of it:
/// `power: at least 0 [default: 1]`.
fn help(parameter: &str, methods: &[MethodInfo]) -> String {
    let own = |m: &MethodInfo| {
        let help = m.parameters.iter().find(|p| p.name == parameter)?.help;
        let (meaning, default) = help.rsplit_once("default").unwrap_or((help, ""));
        let meaning = meaning.trim_end_matches([' ', ';']);
        let default = default.trim_start_matches([' ', ':']);
        let words = [
            meaning.to_string(),
            if default.is_empty() { String::new() } else { format!("[default: {default}]") },
        ];
        let words: Vec<String> = words.into_iter().filter(|w| !w.is_empty()).collect();
        Some(format!("{}: {}", m.name, words.join(" ")))
    };
    methods.iter().filter_map(own).collect::<Vec<_>>().join("; ")
}

/// A number, numbers between commas, or else a text, as a request states them. Whether the
/// parameter takes it is for the request to say.
fn value(text: &str) -> Value {
    if let Ok(count) = text.parse::<u64>() {
        return count.into();
    }
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|x| x.is_finite());
    match number(text) {
        Some(x) => x.into(),
        None => text
            .split(',')
            .map(number)
            .collect::<Option<_>>()
            .map_or_else(|| text.into(), Value::Numbers),
    }
}

#[cfg(test)]
mod tests {
    use mercer::request::{Parameter, Targets};

    use super::*;

    const METHODS: &[MethodInfo] = &[
        MethodInfo {
            name: "one",
            summary: "",
            certificate: "",
            parameters: &[
                Parameter { name: "by_hand", help: "", grid: None },
                Parameter { name: "half_life", help: "above 0; default 1.5", grid: None },
            ],
            targets: Targets::Any,
        },
        MethodInfo {
            name: "two",
            summary: "",
            certificate: "",
            parameters: &[Parameter {
                name: "half_life",
                help: "default: the longest",
                grid: None,
            }],
            targets: Targets::Any,
        },
    ];

    fn command() -> Command {
        with_flags(Command::new("x").arg(Arg::new("by_hand").long("hand")), METHODS)
    }

    #[test]
    fn a_parameter_without_a_flag_gets_one_and_the_others_keep_theirs() {
        let command = command();
        command.clone().debug_assert();
        let flags: Vec<(&str, String)> = command
            .get_arguments()
            .map(|a| {
                (a.get_long().unwrap(), a.get_help().map(ToString::to_string).unwrap_or_default())
            })
            .collect();
        let help = "one: above 0 [default: 1.5]; two: [default: the longest]";
        assert_eq!(flags, [("hand", String::new()), ("half-life", help.into())]);
    }

    #[test]
    fn what_is_typed_becomes_a_value() {
        for (text, expected) in [
            ("7", Value::Count(7)),
            ("-1.5", Value::Number(-1.5)),
            ("1,2.5", Value::Numbers(vec![1.0, 2.5])),
            ("inf", "inf".into()),
            ("linear, rbf on all", "linear, rbf on all".into()),
        ] {
            let matches =
                command().try_get_matches_from(["x", "--hand", "3", "--half-life", text]).unwrap();
            assert_eq!(typed(&matches, METHODS), [("half_life", expected)]);
        }
        assert!(typed(&command().try_get_matches_from(["x"]).unwrap(), METHODS).is_empty());
    }
}
