//! Everything that a request can ask for can be typed at every command that learns, or stands below
//! with the reason why not.

use clap::Parser as _;
use mercer::{
    TrainSpec,
    request::{MethodSpec, Value, catalogue},
    select::Grid,
};
use serde_json::Map;

use super::{Cli, Command};

/// A field of the request, and what is typed to give it another value than its default.
const TYPED: &[(&str, &str)] = &[
    ("method", "--method lp"),
    ("kernels", "--kernels linear"),
    ("normalize", "--normalize center"),
    ("standardize", "--no-standardize"),
    ("c", "--cost 7"),
    ("choose", "--cost auto"),
    ("loss", "--loss squared"),
    ("epsilon", "--epsilon 0.5"),
    ("scale_target", "--no-scale-target"),
    ("class_weight", "--class-weight balanced"),
    ("multi_class", "--multi-class ovo"),
    ("shared_weights", "--shared-weights"),
    ("fit_intercept", "--no-intercept"),
    ("group_by", "--group-by scope"),
    ("penalties", "--penalties 1,2"),
    ("tol", "--tol 0.5"),
    ("max_iter", "--max-iter 7"),
    ("preprocess", "--preprocess snv"),
    ("missing", "--missing mean"),
    ("indefinite", "--indefinite clip"),
    ("approx", "--approx nystrom(7)"),
    ("approx_seed", "--seed 7"),
    ("storage", "--storage low-rank"),
    ("memory", "--memory 7M"),
];

const ALL: &[&str] = &["fit", "tune", "compare", "kernels"];
const TRIED: &str = "--grid says which values of it are tried";
const SAME_OPTIMUM: &str = "the optimum is the same either way: a switch for tests and benchmarks";
const NOT_LEARNED: &str = "kernels are shown before anything is learned";

/// Fields that cannot be typed, the commands they cannot be typed at, and why.
const EXCEPTIONS: &[(&str, &[&str], &str)] = &[
    ("working_set", ALL, SAME_OPTIMUM),
    ("screening", ALL, SAME_OPTIMUM),
    ("method", &["compare"], "--methods names several"),
    ("c", &["tune", "compare"], TRIED),
    ("choose", &["tune", "compare"], TRIED),
    ("method", &["kernels"], NOT_LEARNED),
    ("c", &["kernels"], NOT_LEARNED),
    ("choose", &["kernels"], NOT_LEARNED),
    ("loss", &["kernels"], NOT_LEARNED),
    ("epsilon", &["kernels"], NOT_LEARNED),
    ("scale_target", &["kernels"], NOT_LEARNED),
    ("class_weight", &["kernels"], NOT_LEARNED),
    ("multi_class", &["kernels"], NOT_LEARNED),
    ("shared_weights", &["kernels"], NOT_LEARNED),
    ("fit_intercept", &["kernels"], NOT_LEARNED),
    ("group_by", &["kernels"], NOT_LEARNED),
    ("penalties", &["kernels"], NOT_LEARNED),
    ("tol", &["kernels"], NOT_LEARNED),
    ("max_iter", &["kernels"], NOT_LEARNED),
];

/// Options of data and work that all of these commands have. `gram` learns nothing: it has those of
/// the data that speak of neither a target nor of kernel values that are in a file already.
const SHARED: &[(&str, &[&str])] = &[
    ("target", ALL),
    ("task", ALL),
    ("weight-column", ALL),
    ("rows", &["fit", "tune", "compare", "kernels", "gram"]),
    ("columns", &["fit", "tune", "compare", "kernels", "gram"]),
    ("exclude", &["fit", "tune", "compare", "kernels", "gram"]),
    ("gram", ALL),
    ("memory", &["fit", "tune", "compare", "kernels", "gram"]),
    ("threads", &["fit", "tune", "compare", "kernels", "gram"]),
    ("json", &["fit", "tune", "compare", "kernels", "gram"]),
    ("report", ALL),
    ("time-limit", &["fit", "tune", "compare"]),
    ("quiet", &["fit", "tune", "compare"]),
    ("verbose", &["fit", "tune", "compare"]),
];

/// The request that a command line asks for; `None` where clap refuses it.
fn asked(command: &str, typed: &str) -> Option<TrainSpec> {
    let line = ["mercer", command, "x.csv", "--target", "y"]
        .into_iter()
        .chain(typed.split(' ').filter(|t| !t.is_empty()));
    Some(match Cli::try_parse_from(line).ok()?.command {
        Command::Fit(args) => {
            let choose = args.method.choices().unwrap();
            let method = args.method.method(args.request.bank.approx).unwrap();
            let spec = args.request.request(method, args.method.seed.unwrap_or(0)).unwrap();
            TrainSpec {
                c: args.method.c.and_then(crate::values::Setting::given).unwrap_or(spec.c),
                choose,
                ..spec
            }
        }
        Command::Tune(args) => {
            args.request.request(MethodSpec::named(&args.method).unwrap(), args.study.seed).unwrap()
        }
        Command::Compare(args) => {
            args.request.request(TrainSpec::default().method, args.study.seed).unwrap()
        }
        Command::Kernels(args) => args.bank.request(TrainSpec::default().method, args.seed),
        other => panic!("{other:?}"),
    })
}

fn fields(spec: &TrainSpec) -> Map<String, serde_json::Value> {
    serde_json::to_value(spec).unwrap().as_object().unwrap().clone()
}

#[test]
fn every_field_of_a_request_can_be_typed_or_is_an_exception_with_a_reason() {
    for command in ALL {
        let plain = fields(&asked(command, "").unwrap());
        assert_eq!(plain, fields(&TrainSpec::default()), "{command}");
        for field in plain.keys() {
            let typed = TYPED.iter().find(|(known, _)| known == field).map(|(_, typed)| *typed);
            // A seed that draws nothing is refused.
            let beside = if field == "approx_seed" { "--approx nystrom(7) " } else { "" };
            let reached = typed
                .and_then(|typed| asked(command, &format!("{beside}{typed}")))
                .is_some_and(|spec| fields(&spec)[field] != plain[field]);
            let excepted = EXCEPTIONS
                .iter()
                .any(|(known, commands, _)| known == field && commands.contains(command));
            assert!(
                reached != excepted,
                "{command}, `{field}`: can be typed: {reached}, is an exception: {excepted}"
            );
        }
    }
}

#[test]
fn every_option_of_data_and_work_is_there_for_every_command_that_can_use_it() {
    use clap::CommandFactory as _;
    let program = Cli::command();
    for (option, commands) in SHARED {
        for command in *commands {
            let flags = program.find_subcommand(command).unwrap();
            assert!(
                flags.get_arguments().any(|a| a.get_long() == Some(option)),
                "{command} has no --{option}"
            );
        }
    }
}

/// The flag of a method's parameter.
fn flag(parameter: &str) -> String {
    format!("--{}", if parameter == "n_rules" { "rules" } else { parameter }).replace('_', "-")
}

/// A value that is not the default.
fn another(default: &Value, parameter: &str, method: &str) -> &'static str {
    match (parameter, default) {
        ("solver", _) if method == "vcmkl" => "am",
        ("solver", _) => "level",
        ("gate", _) => "sigmoid",
        ("objective", _) => "as_printed",
        ("penalty", _) => "mkl",
        ("cluster_kernel" | "gate_kernel" | "regions" | "groups" | "consensus", _) => "text",
        ("evenness" | "v" | "eps" | "gamma", _) => "0.25",
        (_, Value::Count(_)) => "7",
        _ => "3.5",
    }
}

#[test]
fn every_parameter_of_a_method_has_a_flag_that_names_the_method_and_an_axis_in_grids() {
    use clap::CommandFactory as _;
    let program = Cli::command();
    let flags = program.find_subcommand("fit").unwrap();
    for info in catalogue() {
        let method = MethodSpec::named(info.name).unwrap();
        for parameter in info.parameters {
            let (name, flag) = (parameter.name, flag(parameter.name));
            let default = method.get(name).unwrap();
            let value = another(&default, name, info.name);
            let spec = asked("fit", &format!("--method {} {flag} {value}", info.name)).unwrap();
            assert_eq!(spec.method.get(name).unwrap().to_string(), value, "{} {flag}", info.name);
            let grid = Grid::parse(&format!("{name}={value}"), &method).unwrap();
            let specs = grid.specs(&TrainSpec::for_method(method.clone())).unwrap();
            assert_eq!(
                specs[0].method.get(name).unwrap().to_string(),
                value,
                "{} {name} in a grid",
                info.name
            );
            let shared = ["folds", "seed", "n_init"].contains(&name);
            let arg = flags
                .get_arguments()
                .find(|a| a.get_long().is_some_and(|long| format!("--{long}") == flag))
                .unwrap();
            let help = arg.get_help().unwrap().to_string();
            assert!(
                shared || help.contains(info.name),
                "the help of {flag} does not name {}: {help}",
                info.name
            );
        }
    }
}
