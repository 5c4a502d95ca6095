//! A plain k-fold search over ready-made requests, and the choice of C and v that rests on it.

use crate::{
    Model, Result,
    data::{Target, split},
    kernels::Normalize,
    metrics::Metric,
    prepare::{Fold, Source},
    request::{Choices, TrainSpec},
    trace::Observer,
};

impl Fold<'_> {
    /// Fits the requests to the training rows in turn; neighbours that differ in C or the method's
    /// parameters start from each other.
    pub fn fit(&mut self, specs: &[TrainSpec], observer: &mut dyn Observer) -> Result<Vec<Model>> {
        let mut models = Vec::with_capacity(specs.len());
        for path in specs.chunk_by(|a, b| a.same_terms(b) && a.differs_only_in_c_and_method(b)) {
            models.extend(self.terms(&path[0])?.path(path, observer)?);
        }
        Ok(models)
    }

    /// Scores of the requests on the test rows, larger is better: [`Metric::utility`].
    pub fn scores(
        &mut self,
        specs: &[TrainSpec],
        metric: Metric,
        observer: &mut dyn Observer,
    ) -> Result<Vec<f64>> {
        Ok(self.outcomes(specs, metric, observer)?.into_iter().map(|(score, _)| score).collect())
    }

    /// Scores of the requests on the test rows, each with whether the fit is a constant on its
    /// training rows ([`Model::is_flat`]).
    pub fn outcomes(
        &mut self,
        specs: &[TrainSpec],
        metric: Metric,
        observer: &mut dyn Observer,
    ) -> Result<Vec<(f64, bool)>> {
        let models = self.fit(specs, observer)?;
        models
            .iter()
            .map(|m| Ok((metric.utility(self.test(m)?.score(metric)?), m.is_flat())))
            .collect()
    }
}

/// The scores that a search found.
#[derive(Debug, Clone, PartialEq)]
pub struct Search {
    /// Score of request s in fold f at `scores[s][f]`, larger is better: accuracy, or −RMSE for
    /// values, unless another metric was named. A request that was given up has fewer.
    pub scores: Vec<Vec<f64>>,
    /// Folds in which the fit of request s was a constant on its training rows, at `flat[s]`.
    pub flat: Vec<usize>,
    /// The request with the largest mean score whose fits are no constants; of equals the one with
    /// the larger C.
    pub best: usize,
}

impl Search {
    /// The mean score of request `s` over the folds.
    pub fn mean(&self, s: usize) -> f64 {
        self.scores[s].iter().sum::<f64>() / self.scores[s].len() as f64
    }

    /// Was the fit of request `s` a constant in most of the folds?
    pub fn is_flat(&self, s: usize) -> bool {
        2 * self.flat[s] > self.scores[s].len()
    }
}

/// Means of scores that differ by less than this, relative to their size, differ by the rounding of
/// their sums.
const TIE: f64 = 1e-12;

/// Picks the request of `among` with the largest mean score. Those whose fits are constants win
/// only where all are: a constant scores as well as the largest class is large, which can tie with
/// fits that would do better on more rows. Of requests that differ in C alone and tie, the larger C
/// wins, since the smaller one is nearer to a constant; of others the earlier.
pub(crate) fn best_of(
    specs: &[TrainSpec],
    among: &[usize],
    mean: impl Fn(usize) -> f64,
    flat: impl Fn(usize) -> bool,
) -> usize {
    let better = |b: usize, s: usize| {
        if flat(b) != flat(s) {
            return if flat(b) { s } else { b };
        }
        let tied = (mean(s) - mean(b)).abs() <= TIE * (1.0 + mean(b).abs());
        let larger = || {
            specs[s].c > specs[b].c && TrainSpec { c: specs[b].c, ..specs[s].clone() } == specs[b]
        };
        if if tied { larger() } else { mean(s) > mean(b) } { s } else { b }
    };
    among.iter().copied().reduce(better).unwrap_or(0)
}

/// Fits every request on the training part of every fold. Kernel terms are built once per fold for
/// neighbouring requests that share them, neighbours that differ in C or the method's parameters
/// start from each other, and nothing of a fold's test rows enters its training. The observer sees
/// every fit; once it asks to stop, each ends at its next iteration.
pub fn grid_search(
    source: Source<'_>,
    target: &Target,
    sample_weight: Option<&[f64]>,
    specs: &[TrainSpec],
    (folds, seed): (usize, u64),
    observer: &mut dyn Observer,
) -> Result<Search> {
    source.check(target, sample_weight)?;
    let fold = |split| Fold::new(source, target, sample_weight, split);
    let mut folds = split::stratified_kfold(target, folds, seed)?
        .into_iter()
        .map(fold)
        .collect::<Result<Vec<_>>>()?;
    // Kernel terms are kept of one fold at a time.
    search_folds(&mut folds, specs, Metric::default_for(target), None, false, observer)
}

/// Fits every request on the training part of given folds and scores it by a given metric. A
/// request whose mean over the folds so far is more than `abandon` below the best one's is not
/// fitted again; once the observer asks to stop, no further fold is begun. `keep` leaves each fold
/// its kernel terms, for the next search on it.
pub fn search_folds(
    folds: &mut [Fold<'_>],
    specs: &[TrainSpec],
    metric: Metric,
    abandon: Option<f64>,
    keep: bool,
    observer: &mut dyn Observer,
) -> Result<Search> {
    let mut search =
        Search { scores: vec![Vec::new(); specs.len()], flat: vec![0; specs.len()], best: 0 };
    let mut alive: Vec<usize> = (0..specs.len()).collect();
    let of = folds.len();
    for (k, fold) in folds.iter_mut().enumerate() {
        observer.on_fold(Some((k + 1, of)));
        let chosen: Vec<TrainSpec> = alive.iter().map(|&s| specs[s].clone()).collect();
        for (&s, (score, flat)) in alive.iter().zip(fold.outcomes(&chosen, metric, observer)?) {
            search.scores[s].push(score);
            search.flat[s] += usize::from(flat);
        }
        if !keep {
            fold.terms = None;
        }
        search.best = best_of(specs, &alive, |s| search.mean(s), |s| search.is_flat(s));
        if let Some(margin) = abandon {
            alive.retain(|&s| search.mean(search.best) - search.mean(s) <= margin);
        }
        if observer.on_pause().is_break() {
            break;
        }
    }
    observer.on_fold(None);
    Ok(search)
}

/// Completes a request whose `choose` leaves C or v to cross-validation. C is one of 0.1, 1, …,
/// 1000 (times n for unit-trace kernels, whose scale is n times smaller); for SMKL one of seven
/// values from where its grids start, each √10 times the last. v is one of 0.1, 0.3, …, 0.9. Of
/// equals the smallest v wins, then the largest C; a setting whose fits are constants wins only
/// where all are.
pub fn choose(
    source: Source<'_>,
    target: &Target,
    sample_weight: Option<&[f64]>,
    spec: &TrainSpec,
    observer: &mut dyn Observer,
) -> Result<TrainSpec> {
    Ok(choose_telling(source, target, sample_weight, spec, observer)?.0)
}

/// Completes a request as [`choose`] does, and returns what the user should be told of the values
/// found.
pub(super) fn choose_telling(
    source: Source<'_>,
    target: &Target,
    sample_weight: Option<&[f64]>,
    spec: &TrainSpec,
    observer: &mut dyn Observer,
) -> Result<(TrainSpec, Vec<String>)> {
    spec.check()?;
    let Choices { c, v, folds, seed, .. } = spec.choose;
    if !c && !v {
        return Ok((spec.clone(), Vec::new()));
    }
    let shares = if v { vec![0.1, 0.3, 0.5, 0.7, 0.9] } else { vec![f64::NAN] };
    let method = |share: f64| if v { spec.method.with_v(share) } else { spec.method.clone() };
    source.check(target, sample_weight)?;
    let values = if c { c_values(source, target, sample_weight, spec)? } else { vec![spec.c] };
    let settings: Vec<(f64, f64)> =
        shares.iter().flat_map(|v| values.iter().map(move |c| (*v, *c))).collect();
    let specs: Vec<TrainSpec> =
        settings.iter().map(|&(v, c)| TrainSpec { method: method(v), c, ..spec.clone() }).collect();
    let folds = folds.min(smallest_class(target)).max(2);
    let found = grid_search(source, target, sample_weight, &specs, (folds, seed), observer)?;
    let best = found.best;
    let tried = |chosen: fn((f64, f64)) -> f64, fixed: fn((f64, f64)) -> f64| -> Vec<(f64, f64)> {
        let same = |s: &usize| fixed(settings[*s]).total_cmp(&fixed(settings[best])).is_eq();
        (0..specs.len()).filter(same).map(|s| (chosen(settings[s]), found.mean(s))).collect()
    };
    let edges = [
        at_edge("C", settings[best].1, &tried(|s| s.1, |s| s.0)),
        at_edge("v", settings[best].0, &tried(|s| s.0, |s| s.1)),
    ];
    Ok((specs[best].clone(), edges.into_iter().flatten().collect()))
}

/// Warns where the best of at least three values lies at the end of those tried and does better
/// than the one beside it: the values with their mean scores, larger is better, all other
/// parameters the same.
pub fn at_edge(name: &str, best: f64, tried: &[(f64, f64)]) -> Option<String> {
    let mut tried = tried.to_vec();
    tried.sort_by(|a, b| a.0.total_cmp(&b.0));
    let last = tried.len().checked_sub(1).filter(|last| *last >= 2)?;
    let wins = |end: usize, beside: usize| {
        let margin = TIE * (1.0 + tried[beside].1.abs());
        tried[end].0.total_cmp(&best).is_eq() && tried[end].1 > tried[beside].1 + margin
    };
    let (extreme, further) = match (wins(0, 1), wins(last, last - 1)) {
        (true, _) => ("smallest", "smaller"),
        (_, true) => ("largest", "larger"),
        _ => return None,
    };
    // Prices that follow from the data have many digits.
    let shown = format!("{best:.3e}").parse().unwrap_or(best);
    Some(format!(
        "{name} = {shown} is the {extreme} value that was tried, and did best: a {further} one may do better"
    ))
}

/// The values of C to try for a request that leaves it to cross-validation.
pub fn c_values(
    source: Source<'_>,
    target: &Target,
    sample_weight: Option<&[f64]>,
    spec: &TrainSpec,
) -> Result<Vec<f64>> {
    let all: Vec<usize> = (0..target.len()).collect();
    if spec.method.penalty()?.is_some() {
        let start = source.prepare(&all, target, sample_weight, spec)?.collapse_threshold(spec)?;
        if start.start().is_finite() {
            return Ok(start.grid(7, 10f64.sqrt()));
        }
    }
    let scale = if spec.normalize == Normalize::Trace { all.len() as f64 } else { 1.0 };
    Ok((-1..=3).map(|e| scale * 10f64.powi(e)).collect())
}

/// Rows of the smallest class that has any; all rows for values.
fn smallest_class(target: &Target) -> usize {
    let Target::Classes { names, labels } = target else { return target.len() };
    let mut count = vec![0; names.len()];
    labels.iter().for_each(|&l| count[l] += 1);
    count.into_iter().filter(|c| *c > 0).min().unwrap_or(0)
}
