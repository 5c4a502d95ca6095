//! Comparisons in a thread of their own, as fits are, and pages of what they found.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, RecvTimeoutError, Sender},
    },
    thread,
    time::{Duration, Instant},
};

use mercer::{
    TrainSpec,
    data::{Dataset, Target},
    linalg::threads,
    metrics::Metric,
    prepare::Source,
    report::{self, ReportData},
    request::MethodSpec,
    select::{
        Ahead, Comparison, Contender, Grid, Journal, Protocol, Splitting, Study, Watch, contenders,
    },
};
use pyo3::{
    exceptions::{PyTimeoutError, PyValueError},
    prelude::*,
};
use serde::Deserialize;

use crate::{
    convert::{Answers, Given, Plain1},
    error::to_py,
    fit::{HeldStack, POLL, StopOnDrop},
};

/// What is asked for; the Python half fills in every field.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    spec: TrainSpec,
    /// Has every method the normalisation it has by default?
    own_scaling: bool,
    methods: String,
    grid: String,
    splitting: Splitting,
    metric: Option<String>,
    seed: u64,
    folds: usize,
    search_tol: f64,
    abandon: Option<f64>,
    groups: Option<Vec<usize>>,
    journal: Option<PathBuf>,
}

/// What is compared: owned by the worker.
enum Held {
    Table(Box<Dataset>),
    Ready(HeldStack),
}

impl Held {
    fn source(&self) -> Source<'_> {
        match self {
            Self::Table(data) => Source::Table(data),
            Self::Ready(stack) => Source::Ready(stack.view()),
        }
    }
}

enum Event {
    Done(String, f64),
    End(Box<mercer::Result<Option<Comparison>>>),
}

/// Tells the calling thread of finished runs and reads its wish to stop.
struct Relay {
    events: std::sync::Mutex<Sender<Event>>,
    stop: Arc<AtomicBool>,
    /// When the work is to end.
    deadline: Option<Instant>,
}

impl Watch for Relay {
    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.deadline.is_some_and(|d| Instant::now() >= d)
    }

    fn begin(&self, work: &[Ahead]) {
        let total: usize = work.iter().map(|a| a.total - a.found).sum();
        self.done("", total as f64);
    }

    fn done(&self, name: &str, seconds: f64) {
        if let Ok(events) = self.events.lock() {
            // The caller may have left; then the flag is set too.
            let _ = events.send(Event::Done(name.into(), seconds));
        }
    }
}

fn work(
    held: &Held,
    target: &Target,
    weight: Option<&[f64]>,
    request: &Request,
    watch: &Relay,
) -> mercer::Result<Option<Comparison>> {
    let metric =
        request.metric.as_deref().map_or_else(|| Ok(Metric::default_for(target)), Metric::named)?;
    let protocol = Protocol {
        splitting: request.splitting,
        seed: request.seed,
        metric,
        folds: request.folds,
        search_tol: request.search_tol,
        abandon: request.abandon,
    };
    let common = Grid::parse(&request.grid, &MethodSpec::Uniform {})?;
    let mut list = contenders(&request.methods, &request.spec, &common, target)?;
    if request.own_scaling {
        list = list.into_iter().map(Contender::with_own_scaling).collect();
    }
    let groups = request.groups.as_deref();
    let study = Study { weight, groups, watch, ..Study::new(held.source(), target, &protocol) };
    let journal = match &request.journal {
        Some(path) => Journal::open(path, &study.key(&list))?,
        None => Journal::none(),
    };
    study.compare(&list, &journal)
}

fn listen(
    py: Python<'_>,
    held: Held,
    target: Target,
    weight: Option<Vec<f64>>,
    request: &str,
    n_threads: Option<usize>,
    callback: Option<Py<PyAny>>,
    max_time: Option<f64>,
) -> PyResult<String> {
    let request: Request = serde_json::from_str(request)
        .map_err(|e| PyValueError::new_err(format!("the request cannot be read: {e}")))?;
    let (events, mut inbox) = mpsc::channel();
    let stop = StopOnDrop(Arc::new(AtomicBool::new(false)));
    let limit = max_time.and_then(|s| Duration::try_from_secs_f64(s).ok());
    let deadline = limit.and_then(|l| Instant::now().checked_add(l));
    let relay = Relay {
        events: std::sync::Mutex::new(events.clone()),
        stop: Arc::clone(&stop.0),
        deadline,
    };
    let worker = thread::Builder::new().name("mercer-compare".into()).spawn(move || {
        let found = threads::install(n_threads, move || {
            work(&held, &target, weight.as_deref(), &request, &relay)
        });
        let _ = events.send(Event::End(Box::new(found)));
    })?;
    loop {
        let received;
        (received, inbox) = py.detach(move || (inbox.recv_timeout(POLL), inbox));
        match received {
            Ok(Event::Done(name, seconds)) => {
                if let Some(callback) = &callback {
                    callback.call1(py, (name, seconds))?;
                }
            }
            Ok(Event::End(found)) => {
                let gone = || match max_time {
                    Some(seconds) => PyTimeoutError::new_err(format!(
                        "max_time = {seconds} seconds ended the comparison; finished runs are in `journal`, if one was named, and the \
                         same call goes on from them"
                    )),
                    None => to_py(mercer::Error::numerical("the comparison", "it was stopped")),
                };
                let found = (*found).map_err(to_py)?.ok_or_else(gone)?;
                return Ok(serde_json::json!(found).to_string());
            }
            Err(RecvTimeoutError::Timeout) => {}
            // The worker ended without a word: it panicked, and the panic goes on here.
            Err(RecvTimeoutError::Disconnected) => match worker.join() {
                Err(panic) => std::panic::resume_unwind(panic),
                Ok(()) => {
                    return Err(to_py(mercer::Error::numerical(
                        "the comparison",
                        "it ended without a result",
                    )));
                }
            },
        }
        py.check_signals()?;
    }
}

/// Compares methods on rows of features, or on ready-made kernels of shape (n, n, M);
/// `callback(name, seconds)` is called after every run, and first with ("", runs ahead).
#[pyfunction]
#[pyo3(signature = (rows, answers, *, request, sample_weight=None, n_threads=None, callback=None, max_time=None))]
pub fn compare(
    py: Python<'_>,
    rows: Given<'_>,
    answers: Answers<'_>,
    request: &str,
    sample_weight: Option<Plain1<'_, f64>>,
    n_threads: Option<usize>,
    callback: Option<Py<PyAny>>,
    max_time: Option<f64>,
) -> PyResult<String> {
    let held = match rows {
        Given::Table(rows) => Held::Table(Box::new(rows.dataset()?)),
        Given::Kernels(stack) => Held::Ready(HeldStack::new(&stack)?),
    };
    let weight = sample_weight.map(|w| w.as_slice().map(<[f64]>::to_vec)).transpose()?;
    listen(py, held, answers.target()?, weight, request, n_threads, callback, max_time)
}

/// The HTML page of a comparison, from its JSON.
#[pyfunction]
#[pyo3(signature = (comparison, *, title, command, data))]
pub fn comparison_page(
    comparison: &str,
    title: String,
    command: String,
    data: Vec<(String, String)>,
) -> PyResult<String> {
    let comparison: Comparison = serde_json::from_str(comparison)
        .map_err(|e| PyValueError::new_err(format!("this is no comparison: {e}")))?;
    Ok(report::html(&ReportData {
        title,
        command,
        version: env!("CARGO_PKG_VERSION").into(),
        data,
        warnings: comparison.warnings.clone(),
        comparison: Some(comparison),
        ..ReportData::default()
    }))
}
