//! Fitting in a thread of its own, so that the calling thread can listen for Ctrl-C.
//!
//! The worker owns everything it reads and never touches the interpreter. The caller wakes at least
//! every 50 ms to run Python's signal handlers; when one raises, a flag tells the worker to stop at
//! its next iteration and the exception is raised at once, without waiting for an iteration that
//! may take long. A Ctrl-C whose fit is to be kept only sets the flag.

use std::{
    ops::ControlFlow,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, Receiver, RecvTimeoutError, Sender},
    },
    thread,
    time::{Duration, Instant},
};

use mercer::{
    TrainSpec,
    gram::Stack,
    linalg::threads,
    prepare::{Prepared, Regions},
    trace::{IterRecord, Observer},
};
use numpy::{PyArray3, PyUntypedArrayMethods};
use pyo3::{exceptions::PyKeyboardInterrupt, prelude::*, types::PyDict};

use crate::{
    convert::{self, Answers, Given, Plain1, Plain2, Plain3},
    error::to_py,
    model::Model,
};

pub(crate) const POLL: Duration = Duration::from_millis(50);

enum Event {
    Iteration(Box<Place>, IterRecord),
    Done(Box<mercer::Result<mercer::Model>>),
}

/// What an iteration belongs to.
#[derive(Clone, Default)]
struct Place {
    /// Counted from 0.
    machine: usize,
    /// The class or the pair of classes, where there are several machines.
    name: Option<String>,
    /// The fold, from 1, and how many there are, where the fit only ranks settings.
    fold: Option<(usize, usize)>,
}

/// Why a fit ended before it was done.
const BY_TIME: &str = "max_time";
const BY_CALLBACK: &str = "callback";
const BY_INTERRUPT: &str = "interrupt";

/// Hands records to the calling thread and reads its wish to stop.
struct Relay {
    /// Where records go, and where the answer comes from: stop?
    records: Option<(Sender<Event>, Receiver<bool>)>,
    stop: Arc<AtomicBool>,
    late: Arc<AtomicBool>,
    deadline: Option<Instant>,
    place: Place,
}

impl Observer for Relay {
    fn on_iteration(&mut self, record: &IterRecord) -> ControlFlow<()> {
        if let Some((records, answers)) = &self.records {
            let sent = records.send(Event::Iteration(Box::new(self.place.clone()), *record));
            // The caller may have left; then there is no answer, and the flag is set too.
            if sent.is_err() || answers.recv().unwrap_or(true) {
                self.stop.store(true, Ordering::Relaxed);
            }
        }
        self.on_pause()
    }

    fn on_machine(&mut self, machine: usize, name: &str) {
        self.place.machine = machine;
        self.place.name = Some(name.into());
    }

    fn on_fold(&mut self, fold: Option<(usize, usize)>) {
        self.place = Place { fold, ..Place::default() };
    }

    fn on_pause(&mut self) -> ControlFlow<()> {
        if self.deadline.is_some_and(|d| Instant::now() >= d)
            && !self.stop.swap(true, Ordering::Relaxed)
        {
            self.late.store(true, Ordering::Relaxed);
        }
        if self.stop.load(Ordering::Relaxed) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

/// Sets the flag when the calling thread leaves, for whatever reason.
pub(crate) struct StopOnDrop(pub(crate) Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What is asked of a fit beside its request.
struct Wishes {
    n_threads: Option<usize>,
    /// Called with a dict per iteration; `True` stops the fit.
    callback: Option<Py<PyAny>>,
    /// Seconds.
    max_time: Option<f64>,
    /// Does the first Ctrl-C end the fit with its best model so far?
    keep: bool,
}

/// Runs `train` in a worker. The worker waits for the callback's answer after every iteration.
/// Returns the model and who stopped it.
fn run(
    py: Python<'_>,
    wishes: Wishes,
    train: impl FnOnce(&mut dyn Observer) -> mercer::Result<mercer::Model> + Send + 'static,
) -> PyResult<(Model, Option<&'static str>)> {
    let Wishes { n_threads, callback, max_time, keep } = wishes;
    let limit = max_time.and_then(|s| Duration::try_from_secs_f64(s).ok());
    let deadline = limit.and_then(|l| Instant::now().checked_add(l));
    let (events, mut inbox) = mpsc::channel();
    let (answer, answers) = mpsc::channel();
    let (stop, late) =
        (StopOnDrop(Arc::new(AtomicBool::new(false))), Arc::new(AtomicBool::new(false)));
    let records = callback.is_some().then(|| (events.clone(), answers));
    let mut relay = Relay {
        records,
        stop: Arc::clone(&stop.0),
        late: Arc::clone(&late),
        deadline,
        place: Place::default(),
    };
    let worker = thread::Builder::new().name("mercer-fit".into()).spawn(move || {
        let fitted = threads::install(n_threads, move || train(&mut relay));
        let _ = events.send(Event::Done(Box::new(fitted)));
    })?;
    let mut cause = None;
    // A first Ctrl-C may only end the fit; the next one is raised.
    let forgiven = |error: PyErr, cause: &mut Option<&'static str>| {
        if !keep || *cause == Some(BY_INTERRUPT) || !error.is_instance_of::<PyKeyboardInterrupt>(py)
        {
            return Err(error);
        }
        *cause = Some(BY_INTERRUPT);
        stop.0.store(true, Ordering::Relaxed);
        Ok(())
    };
    loop {
        let received;
        (received, inbox) = py.detach(move || (inbox.recv_timeout(POLL), inbox));
        match received {
            Ok(Event::Iteration(place, record)) => {
                let mut ends = false;
                if let Some(callback) = callback.as_ref().filter(|_| cause.is_none()) {
                    match call(py, callback, &place, &record) {
                        Ok(asked) => ends = asked,
                        Err(error) => forgiven(error, &mut cause)?,
                    }
                }
                if ends {
                    cause = Some(BY_CALLBACK);
                }
                // The worker may be gone: then its result is on its way.
                let _ = answer.send(cause.is_some());
            }
            Ok(Event::Done(fitted)) => {
                let by_time = late.load(Ordering::Relaxed).then_some(BY_TIME);
                return Ok((Model::new((*fitted).map_err(to_py)?), cause.or(by_time)));
            }
            Err(RecvTimeoutError::Timeout) => {}
            // The worker ended without a word: it panicked, and the panic goes on here.
            Err(RecvTimeoutError::Disconnected) => match worker.join() {
                Err(panic) => std::panic::resume_unwind(panic),
                Ok(()) => {
                    return Err(to_py(mercer::Error::numerical(
                        "the fit",
                        "it ended without a result",
                    )));
                }
            },
        }
        if let Err(error) = py.check_signals() {
            forgiven(error, &mut cause)?;
        }
    }
}

/// Does the callback want the fit to end? Only `True` says so.
fn call(
    py: Python<'_>,
    callback: &Py<PyAny>,
    place: &Place,
    record: &IterRecord,
) -> PyResult<bool> {
    let told = PyDict::new(py);
    told.set_item("iteration", record.iteration)?;
    told.set_item("objective", record.objective)?;
    told.set_item("dual", record.dual)?;
    told.set_item("gap", record.gap)?;
    told.set_item("active", record.active)?;
    told.set_item("seconds", record.seconds)?;
    told.set_item("machine", place.machine)?;
    told.set_item("name", &place.name)?;
    told.set_item("fold", place.fold)?;
    Ok(callback.call1(py, (told,))?.extract::<bool>(py).unwrap_or(false))
}

/// Fits rows of features, or ready-made Gram matrices of shape (n, n, M), kernel axis last: the
/// model, and what stopped the fit, if anything did: "max_time", "callback" or "interrupt".
#[pyfunction]
#[pyo3(signature = (rows, answers, *, spec, sample_weight=None, region_labels=None, memberships=None, n_threads=None, callback=None, max_time=None, keep=false))]
pub fn fit(
    py: Python<'_>,
    rows: Given<'_>,
    answers: Answers<'_>,
    spec: &str,
    sample_weight: Option<Plain1<'_, f64>>,
    region_labels: Option<Vec<usize>>,
    memberships: Option<Plain2<'_>>,
    n_threads: Option<usize>,
    callback: Option<Py<PyAny>>,
    max_time: Option<f64>,
    keep: bool,
) -> PyResult<(Model, Option<&'static str>)> {
    let wishes = Wishes { n_threads, callback, max_time, keep };
    let spec = convert::spec(spec)?;
    let target = answers.target()?;
    let weight = sample_weight.map(|w| w.as_slice().map(<[f64]>::to_vec)).transpose()?;
    let regions = regions(region_labels, memberships)?;
    match rows {
        Given::Table(rows) => {
            let data = rows.dataset()?;
            run(py, wishes, move |observer| {
                let weight = weight.as_deref();
                match regions {
                    None => mercer::train(&data, &target, weight, &spec, observer),
                    Some(regions) => placed(
                        Prepared::from_table(&data, &target, weight, &spec)?,
                        regions,
                        &spec,
                        observer,
                    ),
                }
            })
        }
        Given::Kernels(stack) => {
            let stack = HeldStack::new(&stack)?;
            run(py, wishes, move |observer| {
                let weight = weight.as_deref();
                match regions {
                    None => {
                        mercer::train_precomputed(stack.view(), &target, weight, &spec, observer)
                    }
                    Some(regions) => placed(
                        Prepared::from_stack(stack.view(), &target, weight, &spec)?,
                        regions,
                        &spec,
                        observer,
                    ),
                }
            })
        }
    }
}

/// Regions that the user gave.
fn regions(
    labels: Option<Vec<usize>>,
    memberships: Option<Plain2<'_>>,
) -> PyResult<Option<Regions>> {
    let memberships = memberships.map(|m| convert::matrix(&m)).transpose()?;
    Ok(labels.map(Regions::Labels).or(memberships.map(Regions::Memberships)))
}

/// Fits with regions that the user gave: folds would not know them.
fn placed(
    prepared: Prepared,
    regions: Regions,
    spec: &TrainSpec,
    observer: &mut dyn Observer,
) -> mercer::Result<mercer::Model> {
    if spec.choose.c {
        return Err(mercer::Error::param(
            "C",
            "a number where regions or groups are given row by row",
            "auto",
        ));
    }
    prepared.with_regions(regions)?.fit(spec, observer)
}

/// A stack that stays alive for as long as a worker reads it, without the copy that could double
/// the memory of a fit.
pub(crate) struct HeldStack {
    data: *const f64,
    shape: [usize; 3],
    _array: Py<PyArray3<f64>>,
}

// SAFETY: `data` is only read, and points into `_array`, whose reference count is held until this
// struct is dropped; NumPy refuses to resize an array that others refer to.
unsafe impl Send for HeldStack {}

impl HeldStack {
    pub(crate) fn new(stack: &Plain3<'_>) -> PyResult<Self> {
        let shape = [stack.shape()[0], stack.shape()[1], stack.shape()[2]];
        Ok(Self { data: stack.as_slice()?.as_ptr(), shape, _array: (***stack).clone().unbind() })
    }

    pub(crate) fn view(&self) -> Stack<'_> {
        let [rows, cols, terms] = self.shape;
        // SAFETY: `new` took pointer and shape from a contiguous array of exactly this many
        // numbers, kept alive by `_array`. As with every call that releases the GIL, the caller
        // must not write to the array meanwhile.
        let data = unsafe { std::slice::from_raw_parts(self.data, rows * cols * terms) };
        Stack { rows, cols, terms, data }
    }
}
