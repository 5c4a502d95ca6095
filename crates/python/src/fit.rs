//! Fitting in a thread of its own, so that the calling thread can listen for Ctrl-C.
//!
//! The worker owns everything it reads and never touches the interpreter. The caller wakes at least every 50 ms to run
//! Python's signal handlers; when one raises, a flag tells the worker to stop at its next iteration and the exception is
//! raised at once, without waiting for an iteration that may take long.

use std::{
    ops::ControlFlow,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, RecvTimeoutError, Sender},
    },
    thread,
    time::Duration,
};

use mercer::{
    TrainSpec,
    gram::Stack,
    linalg::threads,
    methods::{Prepared, Regions},
    trace::{IterRecord, Observer},
};
use numpy::{PyArray3, PyReadonlyArray1, PyReadonlyArray2, PyReadonlyArray3, PyUntypedArrayMethods};
use pyo3::prelude::*;

use crate::{
    convert::{self, Answers, Given},
    error::to_py,
    model::Model,
};

pub(crate) const POLL: Duration = Duration::from_millis(50);

enum Event {
    Iteration(IterRecord),
    Done(Box<mercer::Result<mercer::Model>>),
}

/// Hands records to the calling thread and reads its wish to stop.
struct Relay {
    records: Option<Sender<Event>>,
    stop: Arc<AtomicBool>,
}

impl Observer for Relay {
    fn on_iteration(&mut self, record: &IterRecord) -> ControlFlow<()> {
        if let Some(records) = &self.records {
            // The caller may have left; then the flag is set too.
            let _ = records.send(Event::Iteration(*record));
        }
        self.on_pause()
    }

    fn on_pause(&mut self) -> ControlFlow<()> {
        if self.stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// Sets the flag when the calling thread leaves, for whatever reason.
pub(crate) struct StopOnDrop(pub(crate) Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs `train` in a worker with `n_threads` threads; `callback(iteration, objective, dual, gap, active, seconds)` is
/// called after every iteration.
fn run(
    py: Python<'_>,
    n_threads: Option<usize>,
    callback: Option<Py<PyAny>>,
    train: impl FnOnce(&mut dyn Observer) -> mercer::Result<mercer::Model> + Send + 'static,
) -> PyResult<Model> {
    let (events, mut inbox) = mpsc::channel();
    let stop = StopOnDrop(Arc::new(AtomicBool::new(false)));
    let (records, flag) = (callback.is_some().then(|| events.clone()), Arc::clone(&stop.0));
    let worker = thread::Builder::new().name("mercer-fit".into()).spawn(move || {
        let fitted = threads::install(n_threads, move || train(&mut Relay { records, stop: flag }));
        let _ = events.send(Event::Done(Box::new(fitted)));
    })?;
    loop {
        let received;
        (received, inbox) = py.detach(move || (inbox.recv_timeout(POLL), inbox));
        match received {
            Ok(Event::Iteration(r)) => {
                if let Some(callback) = &callback {
                    callback.call1(py, (r.iteration, r.objective, r.dual, r.gap, r.active, r.seconds))?;
                }
            }
            Ok(Event::Done(fitted)) => return Ok(Model::new((*fitted).map_err(to_py)?)),
            Err(RecvTimeoutError::Timeout) => {}
            // The worker ended without a word: it panicked, and the panic goes on here.
            Err(RecvTimeoutError::Disconnected) => match worker.join() {
                Err(panic) => std::panic::resume_unwind(panic),
                Ok(()) => return Err(to_py(mercer::Error::numerical("the fit", "it ended without a result"))),
            },
        }
        py.check_signals()?;
    }
}

/// Fits rows of features, or ready-made Gram matrices of shape (n, n, M), kernel axis last.
#[pyfunction]
#[pyo3(signature = (rows, answers, *, spec, sample_weight=None, region_labels=None, memberships=None, n_threads=None, callback=None))]
pub fn fit(
    py: Python<'_>,
    rows: Given<'_>,
    answers: Answers<'_>,
    spec: &str,
    sample_weight: Option<PyReadonlyArray1<'_, f64>>,
    region_labels: Option<Vec<usize>>,
    memberships: Option<PyReadonlyArray2<'_, f64>>,
    n_threads: Option<usize>,
    callback: Option<Py<PyAny>>,
) -> PyResult<Model> {
    let spec = convert::spec(spec)?;
    let target = answers.target()?;
    let weight = sample_weight.map(|w| w.as_slice().map(<[f64]>::to_vec)).transpose()?;
    let regions = regions(region_labels, memberships)?;
    match rows {
        Given::Table(rows) => {
            let data = rows.dataset()?;
            run(py, n_threads, callback, move |observer| {
                let weight = weight.as_deref();
                match regions {
                    None => mercer::train(&data, &target, weight, &spec, observer),
                    Some(regions) => {
                        placed(Prepared::from_table(&data, &target, weight, &spec)?, regions, &spec, observer)
                    }
                }
            })
        }
        Given::Kernels(stack) => {
            let stack = HeldStack::new(&stack)?;
            run(py, n_threads, callback, move |observer| {
                let weight = weight.as_deref();
                match regions {
                    None => mercer::train_precomputed(stack.view(), &target, weight, &spec, observer),
                    Some(regions) => {
                        placed(Prepared::from_stack(stack.view(), &target, weight, &spec)?, regions, &spec, observer)
                    }
                }
            })
        }
    }
}

/// Regions that the user gave.
fn regions(labels: Option<Vec<usize>>, memberships: Option<PyReadonlyArray2<'_, f64>>) -> PyResult<Option<Regions>> {
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
        return Err(mercer::Error::param("C", "a number where regions or groups are given row by row", "auto"));
    }
    prepared.with_regions(regions)?.fit(spec, observer)
}

/// A stack that stays alive for as long as a worker reads it, without the copy that could double the memory of a fit.
pub(crate) struct HeldStack {
    data: *const f64,
    shape: [usize; 3],
    _array: Py<PyArray3<f64>>,
}

// SAFETY: `data` is only read, and points into `_array`, whose reference count is held until this struct is dropped;
// NumPy refuses to resize an array that others refer to.
unsafe impl Send for HeldStack {}

impl HeldStack {
    pub(crate) fn new(stack: &PyReadonlyArray3<'_, f64>) -> PyResult<Self> {
        let shape = [stack.shape()[0], stack.shape()[1], stack.shape()[2]];
        Ok(Self { data: stack.as_slice()?.as_ptr(), shape, _array: (**stack).clone().unbind() })
    }

    pub(crate) fn view(&self) -> Stack<'_> {
        let [rows, cols, terms] = self.shape;
        // SAFETY: `new` took pointer and shape from a contiguous array of exactly this many numbers, kept alive by
        // `_array`. As with every call that releases the GIL, the caller must not write to the array meanwhile.
        let data = unsafe { std::slice::from_raw_parts(self.data, rows * cols * terms) };
        Stack { rows, cols, terms, data }
    }
}
