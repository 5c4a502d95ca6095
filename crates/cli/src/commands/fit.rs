//! `mercer fit`: from a table to a model file.

use std::path::PathBuf;

use mercer::{
    Error, Model, Result, TrainSpec,
    data::{
        Dataset, Target,
        csv::{Column, Table, TaskHint},
    },
    kernels::language,
    linalg::threads,
    methods::MethodSpec,
    report::{self, MethodRow, ReportData, WeightPanel},
    trace::Status,
};
use serde_json::json;

use crate::{
    Exit,
    args::FitArgs,
    describe, output,
    progress::{Cause, Progress, Show, catch_interrupt},
    scores,
};

/// Checked, with every output path known to be possible; nothing has been read yet.
pub struct Plan {
    data: PathBuf,
    target: String,
    hint: TaskHint,
    columns: Option<Vec<String>>,
    exclude: Vec<String>,
    weight_column: Option<String>,
    spec: TrainSpec,
    threads: Option<usize>,
    time_limit: Option<f64>,
    output: PathBuf,
    report: Option<PathBuf>,
    strict: bool,
    json: bool,
    quiet: bool,
    show: Show,
}

impl TryFrom<FitArgs> for Plan {
    type Error = Error;

    fn try_from(args: FitArgs) -> Result<Self> {
        output::check_writable(&args.output)?;
        args.report.as_deref().map_or(Ok(()), output::check_writable)?;
        language::parse(&args.kernels)?;
        let spec = TrainSpec {
            method: method(&args)?,
            kernels: args.kernels,
            normalize: args.normalize,
            standardize: !args.no_standardize,
            c: args.c,
            loss: args.loss,
            epsilon: args.epsilon,
            class_weight: args.class_weight.unwrap_or_default(),
            tol: args.tol,
            max_iter: args.max_iter,
            storage: args.storage,
            memory: args.memory,
            ..TrainSpec::default()
        };
        Ok(Self {
            data: args.data,
            target: args.target,
            hint: args.task,
            columns: args.columns,
            exclude: args.exclude,
            weight_column: args.weight_column,
            spec,
            threads: args.threads,
            time_limit: args.time_limit,
            output: args.output,
            report: args.report,
            strict: args.strict,
            json: args.json,
            quiet: args.quiet,
            show: Show::new(args.quiet, args.verbose),
        })
    }
}

/// The named method; a parameter it does not have is refused.
fn method(args: &FitArgs) -> Result<MethodSpec> {
    match args.method.as_str() {
        "gmkl" => Ok(MethodSpec::Gmkl {
            v: args.v.unwrap_or(0.5),
            p: args.p.unwrap_or(2.0),
            solver: args.solver.unwrap_or_default(),
        }),
        "uniform" => {
            let given = [("v", args.v.is_some()), ("p", args.p.is_some()), ("solver", args.solver.is_some())];
            match given.into_iter().find(|(_, is_given)| *is_given) {
                Some((name, _)) => Err(Error::param(name, "left out with --method uniform", "a value")),
                None => Ok(MethodSpec::Uniform {}),
            }
        }
        other => Err(Error::param("method", super::methods::names().join(" or "), format!("`{other}`"))),
    }
}

impl Plan {
    pub fn run(self) -> Result<Exit> {
        catch_interrupt();
        let (data, target, sample_weight) = self.load()?;
        let mut progress = Progress::new(self.show, self.spec.tol, self.spec.max_iter, self.time_limit);
        let model = threads::install(self.threads, || {
            mercer::train(&data, &target, sample_weight.as_deref(), &self.spec, &mut progress)
        })?;
        let cause = progress.finish();
        model.save(&self.output)?;
        let interrupted = cause == Some(Cause::Interrupt);
        if let Some(path) = self.report.as_ref().filter(|_| !interrupted) {
            let page = threads::install(self.threads, || self.page(&model, &data, &target))?;
            output::write_file(path, report::html(&page).as_bytes())?;
        }
        self.tell(&model, cause)?;
        let reached =
            model.machines.iter().all(|m| matches!(m.certificate.status, Status::Optimal | Status::Stationary));
        Ok(match (interrupted, self.strict && !reached) {
            (true, _) => Exit::Interrupted,
            (_, true) => Exit::NotConverged,
            _ => Exit::Done,
        })
    }

    fn load(&self) -> Result<(Dataset, Target, Option<Vec<f64>>)> {
        let table = Table::read(&self.data)?;
        let target = table.target(&self.target, self.hint)?;
        let mut exclude: Vec<&str> = self.exclude.iter().map(String::as_str).collect();
        exclude.push(&self.target);
        exclude.extend(self.weight_column.as_deref());
        let only: Option<Vec<&str>> = self.columns.as_ref().map(|c| c.iter().map(String::as_str).collect());
        let data = table.dataset(&exclude, only.as_deref())?;
        let weight = self.weight_column.as_deref().map(|key| match table.column(key)? {
            Column::Numeric(values) => Ok(values.clone()),
            Column::Text(_) => {
                Err(Error::data(format!("weight column `{key}`"), "holds text", "choose a numeric column"))
            }
        });
        Ok((data, target, weight.transpose()?))
    }

    fn tell(&self, model: &Model, cause: Option<Cause>) -> Result<()> {
        if self.json {
            let mut value = describe::value(model, false);
            value["model"] = json!(self.output.display().to_string());
            value["report"] = json!(self.report.as_ref().map(|p| p.display().to_string()));
            value["stopped_by"] = match cause {
                Some(Cause::Interrupt) => "interrupt".into(),
                Some(Cause::TimeLimit) => "time_limit".into(),
                None => serde_json::Value::Null,
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

    fn page(&self, model: &Model, data: &Dataset, target: &Target) -> Result<ReportData> {
        let method = describe::method(model);
        let predicted = model.predict(data)?;
        let truth = scores::in_model_classes(target.clone(), model, &self.target)?;
        let score = scores::headline("training", &truth, &predicted)?;
        let mut warnings = model.warnings.clone();
        warnings.push("Scores on this page are of the training rows; `mercer score` measures rows held out.".into());
        Ok(ReportData {
            title: format!("mercer: {} from {}", self.target, self.data.display()),
            command: output::command_line(),
            version: model.version.clone(),
            data: vec![
                ("file".into(), self.data.display().to_string()),
                ("rows".into(), data.len().to_string()),
                ("columns".into(), data.columns().len().to_string()),
                ("target".into(), self.target.clone()),
            ],
            methods: vec![MethodRow::new(&method, model, Some(score))],
            weights: vec![WeightPanel::new(&method, model)],
            traces: report::trace_lines(&method, model),
            outcome: Some(scores::outcome(format!("{method}, training rows"), &truth, &predicted)?),
            warnings,
        })
    }
}
