//! `mercer fit`: from a table to a model file.

use std::path::PathBuf;

use mercer::{
    Error, Model, Result, TrainSpec,
    data::{Dataset, Span, Target, TaskHint, steps::Steps},
    linalg::threads,
    metrics::Metric,
    prepare::{Prepared, Source},
    report::{self, AlignmentPanel, MethodRow, ReportData, Score, WeightPanel},
    request::{Approx, Choices, GroupBy, MethodSpec},
    select::{Comparison, Contender, Grid, Journal, Protocol, Splitting, compare},
    trace::Status,
};
use serde_json::{Value, json};

use crate::{
    Exit,
    args::FitArgs,
    describe, output,
    progress::{Cause, Progress, Show, catch_interrupt},
    scores,
    ticker::Ticker,
    values::Setting,
};

/// Kernels whose alignments a report shows, at most.
const ALIGNED: usize = 60;

/// Checked, with every output path known to be possible; nothing has been read yet.
pub struct Plan {
    data: PathBuf,
    target: Option<String>,
    rows: Option<Span>,
    hint: TaskHint,
    columns: Option<Vec<String>>,
    exclude: Vec<String>,
    weight_column: Option<String>,
    gram: Vec<(String, PathBuf)>,
    /// With the bank that was typed; `None` leaves it to the data.
    spec: TrainSpec,
    kernels: Option<String>,
    threads: Option<usize>,
    time_limit: Option<f64>,
    output: PathBuf,
    report: Option<PathBuf>,
    report_folds: usize,
    strict: bool,
    json: bool,
    quiet: bool,
    show: Show,
}

/// What a fit starts from.
struct Loaded {
    data: Dataset,
    target: Target,
    weight: Option<Vec<f64>>,
    spec: TrainSpec,
    /// The column to predict.
    key: String,
}

impl TryFrom<FitArgs> for Plan {
    type Error = Error;

    fn try_from(args: FitArgs) -> Result<Self> {
        let gram = super::with_named_files(args.kernels.as_deref(), &args.gram)?;
        let outputs = [("--output", Some(args.output.as_path())), ("--report", args.report.as_deref())];
        output::check(&outputs, &super::inputs(&args.data, &gram))?;
        let own = TrainSpec::for_method(method(&args)?);
        let spec = TrainSpec {
            choose: choices(&args, own.choose),
            normalize: args.normalize.unwrap_or(own.normalize),
            standardize: !args.no_standardize,
            scale_target: !args.no_scale_target,
            c: args.c.and_then(Setting::given).unwrap_or(own.c),
            loss: args.loss,
            epsilon: args.epsilon,
            multi_class: args.multi_class,
            shared_weights: args.shared_weights,
            fit_intercept: !args.no_intercept,
            group_by: args.group_by,
            penalties: args.penalties,
            preprocess: args.preprocess,
            missing: args.missing,
            indefinite: args.indefinite,
            class_weight: args.class_weight.unwrap_or_default(),
            tol: args.tol,
            max_iter: args.max_iter,
            approx: args.approx,
            approx_seed: args.seed.unwrap_or(0),
            storage: args.storage,
            memory: args.memory,
            ..own
        };
        spec.check()?;
        Steps::parse(&spec.preprocess)?;
        Ok(Self {
            data: args.data,
            target: args.target,
            rows: args.rows,
            kernels: args.kernels,
            hint: args.task,
            columns: args.columns,
            exclude: args.exclude,
            weight_column: args.weight_column,
            gram,
            spec,
            threads: args.threads,
            time_limit: args.time_limit,
            output: args.output,
            report: args.report,
            report_folds: args.report_folds,
            strict: args.strict,
            json: args.json,
            quiet: args.quiet,
            show: Show::new(args.quiet, args.verbose),
        })
    }
}

/// What cross-validation is to find, and whether the scale of the kernels says C.
fn choices(args: &FitArgs, own: Choices) -> Choices {
    let none = Choices::default();
    Choices {
        c: args.c == Some(Setting::Auto),
        scale: args.c.map_or(own.scale, |c| c == Setting::Scale),
        v: args.v == Some(Setting::Auto),
        folds: args.folds.unwrap_or(none.folds),
        seed: args.seed.unwrap_or(none.seed),
    }
}

/// The named method with the parameters given; one it does not have is refused.
fn method(args: &FitArgs) -> Result<MethodSpec> {
    let name = args.method.as_str();
    let mut spec = json!(MethodSpec::named(name)?);
    let given = [
        ("v", args.v.and_then(Setting::given).map(Value::from)),
        ("p", args.p.clone()),
        ("solver", args.solver.clone()),
        ("penalty", args.penalty.clone().map(Value::from)),
        ("eps", args.eps.map(Value::from)),
        ("folds", args.folds.map(Value::from)),
        ("seed", args.seed.map(Value::from)),
        ("n_clusters", args.n_clusters.map(Value::from)),
        ("evenness", args.evenness.clone()),
        ("cluster_kernel", args.cluster_kernel.clone().map(Value::from)),
        ("regions", args.regions.clone().map(Value::from)),
        ("n_groups", args.n_groups.map(Value::from)),
        ("groups", args.groups.clone().map(Value::from)),
        ("gate", args.gate.map(|g| json!(g))),
        ("gate_kernel", args.gate_kernel.clone().map(Value::from)),
        ("n_rules", args.n_rules.clone()),
        ("nu", args.nu.as_ref().map(|nu| if let [one] = nu.as_slice() { json!(one) } else { json!(nu) })),
        ("gamma", args.gamma.map(Value::from)),
        ("cost_ratio", args.cost_ratio.map(Value::from)),
        ("objective", args.objective.clone()),
        ("consensus", args.consensus.clone().map(Value::from)),
        ("n_init", args.n_init.map(Value::from)),
    ];
    let Choices { c, v, .. } = choices(args, Choices::default());
    let drawn = args.approx != Approx::None;
    for (key, value) in given.into_iter().filter_map(|(key, value)| value.map(|v| (key, v))) {
        let elsewhere = match key {
            "folds" => c || v,
            "seed" => c || v || drawn,
            _ => false,
        };
        if spec.get(key).is_none() && elsewhere {
            continue;
        }
        // `l1` and `l2` are `lp` with p said already, `hlmkl` is `clmkl` with its evenness.
        let said = matches!((name, key), ("l1" | "l2", "p") | ("hlmkl", "evenness"));
        if spec.get(key).is_none() || said {
            return Err(Error::param(key, format!("left out with --method {name}"), value));
        }
        spec[key] = value;
    }
    // Only these two can be of a kind that the method does not take.
    for key in ["solver", "p"] {
        let mut plain = json!(MethodSpec::named(name)?);
        if let Some(value) = spec.get(key) {
            plain[key] = value.clone();
            if serde_json::from_value::<MethodSpec>(plain).is_err() {
                let expected = if key == "p" { "a finite number" } else { "one of its own (see `mercer methods`)" };
                return Err(Error::param(key, format!("{expected} with --method {name}"), value));
            }
        }
    }
    serde_json::from_value(spec).map_err(|e| Error::param("method", format!("what --method {name} takes"), e))
}

impl Plan {
    pub fn run(self) -> Result<Exit> {
        catch_interrupt();
        let Loaded { data, target, weight, spec, key } = self.load()?;
        let mut progress = Progress::new(self.show, self.spec.tol, self.spec.max_iter, self.time_limit);
        let model =
            threads::install(self.threads, || mercer::train(&data, &target, weight.as_deref(), &spec, &mut progress))?;
        let cause = progress.finish();
        model.save(&self.output)?;
        let interrupted = cause == Some(Cause::Interrupt);
        if let Some(path) = self.report.as_ref().filter(|_| !interrupted) {
            let page =
                threads::install(self.threads, || self.page(&model, &spec, &data, &target, weight.as_deref(), &key))?;
            output::write_file(path, report::html(&page).as_bytes())?;
        }
        self.tell(&model, cause)?;
        let reached = matches!(model.status(), Status::Optimal | Status::Stationary);
        Ok(match (interrupted, self.strict && !reached) {
            (true, _) => Exit::Interrupted,
            (_, true) => Exit::NotConverged,
            _ => Exit::Done,
        })
    }

    fn load(&self) -> Result<Loaded> {
        let table = super::read_within(&self.data, self.rows, &self.gram, self.spec.memory)?;
        let key = super::target_key(self.target.as_deref(), &table)?;
        let target = table.target(key, self.hint)?;
        super::check_epsilon(self.spec.epsilon, &target)?;
        let mut exclude: Vec<&str> = self.exclude.iter().map(String::as_str).collect();
        exclude.push(key);
        exclude.extend(self.weight_column.as_deref());
        let only: Option<Vec<&str>> = self.columns.as_ref().map(|c| c.iter().map(String::as_str).collect());
        let data = table.dataset(&exclude, only.as_deref())?;
        let weight = super::weights(&table, self.weight_column.as_deref())?;
        let kernels = self.kernels.as_deref().or(table.kernels()).unwrap_or("auto").to_string();
        Ok(Loaded { data, target, weight, spec: TrainSpec { kernels, ..self.spec.clone() }, key: key.to_string() })
    }

    fn tell(&self, model: &Model, cause: Option<Cause>) -> Result<()> {
        if self.json {
            let mut value = describe::value(model, false);
            value["model"] = json!(self.output.display().to_string());
            value["report"] = json!(self.report.as_ref().map(|p| p.display().to_string()));
            value["stopped_by"] = match cause {
                Some(Cause::Interrupt) => "interrupt".into(),
                Some(Cause::TimeLimit) => "time_limit".into(),
                None => Value::Null,
            };
            return output::json(&value);
        }
        if self.quiet {
            return Ok(());
        }
        output::print(&format!("{}\nmodel saved to {}\n", describe::text(model, false), self.output.display()))?;
        match &self.report {
            Some(path) if cause != Some(Cause::Interrupt) => output::print(&format!("report in {}\n", path.display())),
            _ => Ok(()),
        }
    }

    fn page(
        &self,
        model: &Model,
        spec: &TrainSpec,
        data: &Dataset,
        target: &Target,
        weight: Option<&[f64]>,
        key: &str,
    ) -> Result<ReportData> {
        let method = describe::method(model);
        let predicted = model.predict(data)?;
        let truth = scores::in_model_classes(target.clone(), model, key)?;
        // An interval would speak of new rows.
        let score = Score { interval: None, ..scores::headline("training", &truth, &predicted)? };
        let mut warnings = model.warnings.clone();
        // All pairs of kernels: not for banks of hundreds.
        let few = model.kernel_names().len() <= ALIGNED;
        let aligned = || Prepared::from_table(data, target, None, spec)?.diagnose();
        let alignment = if few { Some(AlignmentPanel::new(&aligned()?)) } else { None };
        let comparison = self.held_out(&method, spec, data, target, weight, &mut warnings);
        let outcome = match comparison {
            // Rows held out say more, and are in its sections.
            Some(_) => None,
            None => Some(scores::outcome(format!("{method}, training rows"), &truth, &predicted)?),
        };
        Ok(ReportData {
            title: format!("mercer: {key} from {}", self.data.file_name().unwrap_or_default().display()),
            command: output::command_line(),
            version: model.version.clone(),
            data: [
                ("file", Some(self.data.display().to_string())),
                ("rows", Some(data.len().to_string())),
                ("columns", Some(data.columns().len().to_string())),
                ("target", Some(key.to_string())),
                ("kernels as", report::approximation(model)),
            ]
            .into_iter()
            .filter_map(|(label, value)| Some((label.into(), value?)))
            .collect(),
            methods: vec![MethodRow::new(&method, model, Some(score))],
            weights: vec![WeightPanel::new(&method, model)],
            traces: report::trace_lines(&method, model),
            outcome,
            alignment,
            comparison,
            tuning: None,
            warnings,
        })
    }

    /// The same request and equal weights on rows held out, fold by fold; where that is not possible the reader is told.
    fn held_out(
        &self,
        label: &str,
        spec: &TrainSpec,
        data: &Dataset,
        target: &Target,
        weight: Option<&[f64]>,
        warnings: &mut Vec<String>,
    ) -> Option<Comparison> {
        let mut without = |why: &str| {
            warnings.push(format!(
                "Scores on this page are of the training rows{why}; `mercer score` measures rows held out."
            ));
            None
        };
        if self.report_folds < 2 {
            return without("");
        }
        let found = contenders(label, spec).and_then(|contenders| {
            let folds = Splitting::Folds { folds: self.report_folds, repeats: 1 };
            let protocol = Protocol::new(folds, Metric::default_for(target), 0);
            let ticker = Ticker::new(self.show, "report, rows held out: ", super::select::workers(self.threads));
            let source = Source::Table(data);
            let found = compare(source, target, weight, None, &contenders, &protocol, &Journal::none(), &ticker);
            ticker.finish();
            found
        });
        match found {
            Ok(Some(mut found)) => {
                // The fit on all rows has these in sections of its own.
                found.aligned = None;
                found.runs.iter_mut().filter_map(|r| r.detail.as_mut()).for_each(|d| d.trace.clear());
                Some(found)
            }
            Ok(None) => without(", as the folds were interrupted"),
            Err(e) => without(&format!(" (folds failed: {e})")),
        }
    }
}

/// The request, and equal weights at the same price. What was left to cross-validation is chosen inside every fold.
fn contenders(label: &str, spec: &TrainSpec) -> Result<Vec<Contender>> {
    let Choices { c, v, scale, .. } = spec.choose;
    let price = if c { String::new() } else { format!("C={}", spec.c) };
    let own = if v { format!("{price};v=0.1..0.9:0.2") } else { price.clone() };
    let plain = TrainSpec { choose: Choices { scale, ..Choices::default() }, ..spec.clone() };
    let uniform = TrainSpec {
        method: MethodSpec::Uniform {},
        shared_weights: false,
        group_by: GroupBy::None,
        penalties: None,
        ..plain.clone()
    };
    let contender = |label: &str, spec: TrainSpec, grid: &str| -> Result<Contender> {
        Ok(Contender { label: label.into(), grid: Grid::parse(grid, &spec.method)?, spec })
    };
    let mut list = vec![contender("uniform", uniform, &price)?];
    if !matches!(spec.method, MethodSpec::Uniform {}) {
        list.push(contender(label, plain, &own)?);
    }
    Ok(list)
}
