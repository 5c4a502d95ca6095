//! Every method on every split, parameters chosen inside the training part.
//!
//! A split is one job: its kernel terms, and those of the folds inside its training part, are built
//! once and serve all methods. Jobs run on threads of their own, each fit on the threads that are
//! left over, so times can be compared and no number depends on how many there are.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Instant,
};

use rayon::ThreadPoolBuilder;
use serde::{Deserialize, Serialize};

use super::{
    Ahead, Comparison, Contender, Journal, Relay, Study, contender::single_values, protocol::inner,
};
use crate::{
    Error, Model, Result,
    data::{Target, split::Split},
    prepare::{Fold, Source, Tested},
    request::TrainSpec,
    trace::{IterRecord, Status},
    train::{c_values, search_folds},
    weights::carrying,
};

/// The most regions whose sizes are reported; a gate with one region per kernel has too many.
const MOST_REGIONS: usize = 20;

/// One method on one split.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SplitRun {
    /// Label of the contender.
    pub method: String,
    /// Number of the split, from 0.
    pub split: usize,
    /// The metric on the test part; `None` where the fit failed or the metric is undefined there.
    pub score: Option<f64>,
    /// Kernels with a weight.
    pub selected: usize,
    /// Kernels that together carry 99 % of the weight, over machines and regions.
    #[serde(default)]
    pub carrying: usize,
    /// The number with a weight in one machine, region or rule, on average.
    #[serde(default)]
    pub selected_each: f64,
    /// How many kernels the bank offered.
    pub total: usize,
    /// Outer iterations of all machines.
    #[serde(default)]
    pub iterations: usize,
    /// Relative duality gap, where the method has one.
    pub gap: Option<f64>,
    /// How the fit ended.
    pub status: Status,
    /// Seconds of the fit that is reported, without the time that kernels took.
    pub seconds: f64,
    /// Seconds that choosing the parameters took.
    pub search_seconds: f64,
    /// What the training part chose.
    pub chosen: Vec<(String, String)>,
    /// Share of each kernel in the sum of weights, over machines and regions.
    pub weights: Vec<f64>,
    /// Names of the kernels, in the first run of a split.
    pub kernels: Option<Vec<String>>,
    /// Class numbers or values for the test rows.
    pub predicted: Vec<f64>,
    /// Two classes: decision values for the test rows.
    pub decision: Vec<f64>,
    /// More, of the first split.
    pub detail: Option<Detail>,
    /// Why there is no score.
    pub error: Option<String>,
    /// What the fit warned of.
    pub warnings: Vec<String>,
}

/// What a page shows of one fit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Detail {
    /// Machine, region or rule, with its kernel weights.
    pub weights: Vec<(String, Vec<f64>)>,
    /// Convergence of the first machine.
    pub trace: Vec<IterRecord>,
    /// Share of the training rows in each region, where there are any.
    pub regions: Option<Vec<f64>>,
    /// How many rows of the test part each rule vetoes, of those that are not of the consensus
    /// class.
    pub vetoes: Option<Vec<usize>>,
}

/// What is compared on what.
#[derive(Clone, Copy)]
pub(super) struct Work<'a> {
    pub study: Study<'a>,
    pub contenders: &'a [Contender],
    pub journal: &'a Journal,
}

/// See [`Study::compare`].
pub(super) fn compare(work: Work<'_>) -> Result<Option<Comparison>> {
    let Work { study: Study { target, groups, protocol, watch, .. }, contenders, journal } = work;
    protocol.check(target)?;
    let splits = protocol.splitting.splits(target, groups, protocol.seed)?;
    let ahead = |c: &Contender| -> Result<Ahead> {
        let mut ahead =
            Ahead { name: c.label.clone(), total: splits.len(), found: 0, seconds: 0.0 };
        for s in 0..splits.len() {
            if let Some(run) = journal.get::<SplitRun>(&id(s, &c.label))? {
                ahead.found += 1;
                ahead.seconds += run.seconds + run.search_seconds;
            }
        }
        Ok(ahead)
    };
    watch.begin(&contenders.iter().map(ahead).collect::<Result<Vec<_>>>()?);
    let Some(runs) = in_parallel(splits.len(), |s| split_runs(work, s, &splits[s]))? else {
        return Ok(None);
    };
    Ok(Some(Comparison::new(work, &splits, runs.concat())))
}

fn id(split: usize, label: &str) -> String {
    format!("{split}/{label}")
}

/// `job(0)`, `job(1)`, … in this order, worked on by as many threads as rayon has here, or fewer
/// with more threads each. `None` where any job was given up.
pub(super) fn in_parallel<T: Send>(
    jobs: usize,
    job: impl Fn(usize) -> Result<Option<T>> + Sync,
) -> Result<Option<Vec<T>>> {
    let threads = rayon::current_num_threads().max(1);
    let workers = threads.min(jobs).max(1);
    if workers == 1 {
        return (0..jobs).map(job).collect();
    }
    let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let results: Vec<Mutex<Option<Result<Option<T>>>>> =
        (0..jobs).map(|_| Mutex::new(None)).collect();
    let work = || {
        // A pool of its own: in a shared one a fit that waits would begin another split, and its
        // time would mean nothing.
        let pool = ThreadPoolBuilder::new().num_threads(threads / workers).build();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= jobs || failed.load(Ordering::Relaxed) {
                break;
            }
            let result = match &pool {
                Ok(pool) => pool.install(|| job(at)),
                Err(_) => job(at),
            };
            if !matches!(result, Ok(Some(_))) {
                failed.store(true, Ordering::Relaxed);
            }
            *results[at].lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
        }
    };
    std::thread::scope(|scope| (0..workers).for_each(|_| drop(scope.spawn(work))));
    let mut all = Vec::with_capacity(jobs);
    for slot in results {
        all.push(slot.into_inner().unwrap_or_else(PoisonError::into_inner));
    }
    // The first error in the order of jobs, whoever met it first.
    let mut out = Vec::with_capacity(jobs);
    let mut whole = true;
    for result in all {
        match result {
            Some(Err(e)) => return Err(e),
            Some(Ok(Some(value))) => out.push(value),
            Some(Ok(None)) | None => whole = false,
        }
    }
    Ok(whole.then_some(out))
}

/// All contenders on one split.
fn split_runs(work: Work<'_>, s: usize, (train, test): &Split) -> Result<Option<Vec<SplitRun>>> {
    let mut nest = None;
    let mut runs = Vec::with_capacity(work.contenders.len());
    for (place, contender) in work.contenders.iter().enumerate() {
        let id = id(s, &contender.label);
        if let Some(run) = work.journal.get::<SplitRun>(&id)? {
            runs.push(run);
            continue;
        }
        if work.study.watch.stopped() {
            return Ok(None);
        }
        let nest = match &mut nest {
            Some(nest) => nest,
            empty => empty.insert(Nest::new(work, train.clone(), test.clone())?),
        };
        let began = Instant::now();
        let mut run = match nest.run(contender) {
            Ok(run) => run,
            Err(
                e @ (Error::Param { .. }
                | Error::Shape { .. }
                | Error::Syntax { .. }
                | Error::Memory { .. }),
            ) => {
                return Err(e);
            }
            Err(e) => SplitRun::failed(contender, &e),
        };
        if work.study.watch.stopped() {
            return Ok(None);
        }
        run.split = s;
        if place > 0 {
            run.kernels = None;
        }
        if s > 0 {
            run.detail = None;
        }
        work.journal.put(&id, &run)?;
        work.study.watch.done(&run.method, began.elapsed().as_secs_f64());
        runs.push(run);
    }
    Ok(Some(runs))
}

/// A split and the folds inside its training part.
struct Nest<'a> {
    work: Work<'a>,
    outer: Fold<'a>,
    train: Vec<usize>,
    inner: Vec<Fold<'a>>,
}

impl<'a> Nest<'a> {
    fn new(work: Work<'a>, train: Vec<usize>, test: Vec<usize>) -> Result<Self> {
        let Study { source, target, weight, protocol, .. } = work.study;
        let own = target.select(&train);
        let groups: Option<Vec<usize>> =
            work.study.groups.map(|g| train.iter().map(|&i| g[i]).collect());
        // Test rows are not even named below: folds are cut from training rows alone.
        let folds = inner(
            &own,
            groups.as_deref(),
            protocol.folds,
            protocol.seed,
            protocol.splitting.is_ordered(),
        )?;
        let rows = |index: Vec<usize>| index.into_iter().map(|i| train[i]).collect::<Vec<_>>();
        let fold = |(a, b)| Fold::new(source, target, weight, (rows(a), rows(b)));
        let inner = folds.into_iter().map(fold).collect::<Result<Vec<_>>>()?;
        let outer = Fold::new(source, target, weight, (train.clone(), test))?;
        Ok(Self { work, outer, train, inner })
    }

    fn run(&mut self, contender: &Contender) -> Result<SplitRun> {
        let Study { protocol, watch, .. } = self.work.study;
        let terms = self.outer.terms(&contender.spec)?;
        let kernels: Vec<String> = terms.kernel_names();
        let began = Instant::now();
        let spec = self.choose(contender)?;
        let search_seconds = began.elapsed().as_secs_f64();
        let began = Instant::now();
        let model = self.outer.fit(std::slice::from_ref(&spec), &mut Relay(watch))?.remove(0);
        let seconds = began.elapsed().as_secs_f64();
        let tested = self.outer.test(&model)?;
        let score = tested.score(protocol.metric).ok().filter(|s| s.is_finite());
        let rows = model.weight_rows();
        let certificate = model.certificate();
        let grid_and_price = single_values(&contender.grid, &spec);
        Ok(SplitRun {
            method: contender.label.clone(),
            split: 0,
            score,
            selected: (0..kernels.len()).filter(|&m| rows.iter().any(|(_, w)| w[m] != 0.0)).count(),
            carrying: carrying(&shares(&rows, kernels.len())),
            selected_each: mean_count(&rows),
            total: kernels.len(),
            iterations: certificate.iterations,
            gap: Some(certificate.gap).filter(|g| g.is_finite()),
            status: certificate.status,
            seconds,
            search_seconds,
            chosen: grid_and_price,
            weights: shares(&rows, kernels.len()),
            kernels: Some(kernels),
            predicted: numbers(&tested.predicted),
            decision: if tested.scores.cols() == 1 && is_classes(&tested.predicted) {
                tested.scores.column(0)
            } else {
                Vec::new()
            },
            detail: Some(self.detail(&model, rows, &tested)),
            error: None,
            warnings: model.warnings,
        })
    }

    /// The request with the settings that predict best inside the training part; of equals the
    /// first.
    fn choose(&mut self, contender: &Contender) -> Result<TrainSpec> {
        let Study { source, target, weight, protocol, watch, .. } = self.work.study;
        let mut grid = contender.grid.clone();
        if !grid.has("C") {
            let own = (
                target.select(&self.train),
                weight.map(|w| self.train.iter().map(|&i| w[i]).collect::<Vec<_>>()),
            );
            let values = match source {
                Source::Table(data) => c_values(
                    Source::Table(&data.select(&self.train)),
                    &own.0,
                    own.1.as_deref(),
                    &contender.spec,
                )?,
                Source::Ready(stack) => {
                    let data = stack.block(&self.train, &self.train);
                    let n = self.train.len();
                    let part = crate::gram::Stack { rows: n, cols: n, data: &data, ..stack };
                    c_values(Source::Ready(part), &own.0, own.1.as_deref(), &contender.spec)?
                }
            };
            grid = grid.with("C", values.into_iter().map(Into::into).collect());
        }
        let specs = grid.specs(&contender.spec)?;
        if specs.len() == 1 {
            return Ok(specs[0].clone());
        }
        let loose = |s: &TrainSpec| TrainSpec { tol: protocol.search_tol.max(s.tol), ..s.clone() };
        let loose: Vec<TrainSpec> = specs.iter().map(loose).collect();
        let (metric, abandon) = (protocol.metric, protocol.abandon);
        let search =
            search_folds(&mut self.inner, &loose, metric, abandon, true, &mut Relay(watch))?;
        Ok(specs[search.best].clone())
    }

    fn detail(&self, model: &Model, weights: Vec<(String, Vec<f64>)>, tested: &Tested) -> Detail {
        let trace = model.machines.first().map_or_else(Vec::new, |m| m.trace.clone());
        let regions = model.localized.as_ref().and_then(|_| match self.work.study.source {
            Source::Table(data) => {
                let rows = data.select(&self.train);
                let places = model.memberships(crate::model::NewRows::Table(&rows), None).ok()?;
                let first = places.first().filter(|p| p.cols() <= MOST_REGIONS)?;
                let n = first.rows().max(1) as f64;
                Some((0..first.cols()).map(|j| first.column(j).iter().sum::<f64>() / n).collect())
            }
            Source::Ready(_) => None,
        });
        Detail { weights, trace, regions, vetoes: self.vetoes(model, tested) }
    }

    /// How many of the test rows predicted to be outside the consensus class each rule has turned
    /// down.
    fn vetoes(&self, model: &Model, tested: &Tested) -> Option<Vec<usize>> {
        let Source::Table(data) = self.work.study.source else { return None };
        model.rules.as_ref()?;
        let values = model.rule_values(&data.select(self.outer.test_rows())).ok()??;
        let rows = 0..tested.truth.len();
        Some(
            (0..values.cols())
                .map(|r| rows.clone().filter(|&i| values[(i, r)] < 0.0).count())
                .collect(),
        )
    }
}

impl SplitRun {
    fn failed(contender: &Contender, error: &Error) -> Self {
        Self {
            method: contender.label.clone(),
            split: 0,
            score: None,
            selected: 0,
            carrying: 0,
            selected_each: 0.0,
            total: 0,
            iterations: 0,
            gap: None,
            status: Status::Stopped,
            seconds: 0.0,
            search_seconds: 0.0,
            chosen: Vec::new(),
            weights: Vec::new(),
            kernels: None,
            predicted: Vec::new(),
            decision: Vec::new(),
            detail: None,
            error: Some(error.to_string()),
            warnings: Vec::new(),
        }
    }
}

/// Kernels with a weight in a row, on average.
fn mean_count(rows: &[(String, Vec<f64>)]) -> f64 {
    let count: usize = rows.iter().map(|(_, w)| w.iter().filter(|w| **w != 0.0).count()).sum();
    count as f64 / rows.len().max(1) as f64
}

/// Each kernel's share in the sum of all weights.
fn shares(rows: &[(String, Vec<f64>)], kernels: usize) -> Vec<f64> {
    let sums: Vec<f64> = (0..kernels).map(|m| rows.iter().map(|(_, w)| w[m]).sum()).collect();
    let total: f64 = sums.iter().sum();
    sums.into_iter().map(|s| if total > 0.0 { s / total } else { 0.0 }).collect()
}

fn is_classes(target: &Target) -> bool {
    matches!(target, Target::Classes { .. })
}

/// Class numbers, or values.
pub(super) fn numbers(target: &Target) -> Vec<f64> {
    match target {
        Target::Classes { labels, .. } => labels.iter().map(|&l| l as f64).collect(),
        Target::Values(values) => values.clone(),
    }
}
