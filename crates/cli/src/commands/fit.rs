//! `mercer fit`: from a table to a model file.

use mercer::{
    Model, Result, TrainSpec,
    linalg::threads,
    prepare::{Prepared, Source},
    report::{self, AlignmentPanel, MethodRow, ReportData, Score, WeightPanel},
    select::{Comparison, held_out},
    trace::Status,
};
use serde_json::{Value, json};

use super::load::{Loaded, check_outputs, grams, load};
use crate::{
    Exit,
    args::FitArgs,
    describe, output,
    progress::{Cause, Progress, catch_interrupt},
    scores,
    ticker::Ticker,
    values::Setting,
};

/// Kernels whose alignments a report shows, at most.
const ALIGNED: usize = 60;

/// Checked, with every output path known to be possible; nothing has been read yet.
pub struct Plan {
    args: FitArgs,
    /// With the bank that was typed, if any.
    spec: TrainSpec,
}

impl Plan {
    pub fn new(args: FitArgs) -> Result<Self> {
        let bank = &args.request.bank;
        let outputs =
            [("--output", Some(args.output.as_path())), ("--report", args.told.report.as_deref())];
        check_outputs(
            &outputs,
            &args.data,
            None,
            &grams(bank.kernels.as_deref(), &args.rows.gram)?,
        )?;
        let asked = args
            .request
            .request(args.method.method(bank.approx)?, args.method.seed.unwrap_or(0))?;
        let choose = args.method.choices()?;
        let spec = TrainSpec {
            c: args.method.c.and_then(Setting::given).unwrap_or(asked.c),
            choose,
            ..asked
        };
        spec.check()?;
        Ok(Self { args, spec })
    }

    pub fn run(self) -> Result<Exit> {
        catch_interrupt();
        let args = &self.args;
        let loaded = load(&args.data, &args.rows, None, &args.request.bank, self.spec.clone())?;
        let Loaded { data, target, weight, spec, .. } = &loaded;
        let mut progress =
            Progress::new(args.told.show(), spec.tol, spec.max_iter, args.work.time_limit);
        let model = threads::install(args.work.threads, || {
            mercer::train(data, target, weight.as_deref(), spec, &mut progress)
        })?;
        let cause = progress.finish();
        model.save(&args.output)?;
        let interrupted = cause == Some(Cause::Interrupt);
        if let Some(path) = args.told.report.as_ref().filter(|_| !interrupted) {
            let page = threads::install(args.work.threads, || self.page(&model, &loaded))?;
            output::write_file(path, report::html(&page).as_bytes())?;
        }
        self.tell(&model, cause)?;
        let reached = matches!(model.status(), Status::Optimal | Status::Stationary);
        Ok(match (interrupted, args.strict && !reached) {
            (true, _) => Exit::Interrupted,
            (_, true) => Exit::NotConverged,
            _ => Exit::Done,
        })
    }

    fn tell(&self, model: &Model, cause: Option<Cause>) -> Result<()> {
        if self.args.told.json {
            let mut value = describe::value(model, false);
            value["model"] = json!(self.args.output.display().to_string());
            value["report"] =
                json!(self.args.told.report.as_ref().map(|p| p.display().to_string()));
            value["stopped_by"] = match cause {
                Some(Cause::Interrupt) => "interrupt".into(),
                Some(Cause::TimeLimit) => "time_limit".into(),
                None => Value::Null,
            };
            return output::json(&value);
        }
        if self.args.told.quiet {
            return Ok(());
        }
        output::print(&format!(
            "{}\nmodel saved to {}\n",
            describe::text(model, false),
            self.args.output.display()
        ))?;
        match &self.args.told.report {
            Some(path) if cause != Some(Cause::Interrupt) => {
                output::print(&format!("report in {}\n", path.display()))
            }
            _ => Ok(()),
        }
    }

    fn page(&self, model: &Model, loaded: &Loaded) -> Result<ReportData> {
        let Loaded { data, target, spec, key, .. } = loaded;
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
        let comparison = self.held_out(&method, loaded, &mut warnings);
        let outcome = match comparison {
            // Rows held out say more, and are in its sections.
            Some(_) => None,
            None => Some(scores::outcome(format!("{method}, training rows"), &truth, &predicted)?),
        };
        Ok(ReportData {
            title: format!(
                "mercer: {key} from {}",
                self.args.data.file_name().unwrap_or_default().display()
            ),
            command: output::command_line(),
            version: model.version.clone(),
            data: [
                ("file", Some(self.args.data.display().to_string())),
                ("rows", Some(data.len().to_string())),
                ("columns", Some(data.columns().len().to_string())),
                ("target", Some(key.clone())),
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

    /// The same request and equal weights on rows held out, fold by fold; where that is not
    /// possible the reader is told.
    fn held_out(
        &self,
        label: &str,
        loaded: &Loaded,
        warnings: &mut Vec<String>,
    ) -> Option<Comparison> {
        let mut without = |why: &str| {
            warnings.push(format!(
                "Scores on this page are of the training rows{why}; `mercer score` measures rows held out."
            ));
            None
        };
        if self.args.report_folds < 2 {
            return without("");
        }
        let Loaded { data, target, weight, spec, .. } = loaded;
        let workers = super::select::workers(self.args.work.threads);
        let ticker = Ticker::new(self.args.told.show(), "report, rows held out: ", workers);
        let rows = (Source::Table(data), target, weight.as_deref());
        let found = held_out(rows, (label, spec), self.args.report_folds, &ticker);
        ticker.finish();
        match found {
            Ok(Some(found)) => Some(found),
            Ok(None) => without(", as the folds were interrupted"),
            Err(e) => without(&format!(" (folds failed: {e})")),
        }
    }
}
