//! Every setting of one method over the splits of one data set.
//!
//! One unit of the journal is a line of settings that differ in C alone, on one split: fits of a
//! line start from each other, so it is done again as a whole or not at all, and a run that was
//! resumed has the same numbers.

use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::{Ahead, Contender, Grid, Journal, Protocol, Relay, Study, compare::in_parallel};
use crate::{
    Result,
    metrics::mean_interval,
    prepare::Fold,
    request::TrainSpec,
    train::{best_of, c_values},
};

/// One setting of the parameters, and how it did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Setting {
    /// Parameters as users write them.
    pub parameters: Vec<(String, String)>,
    /// The metric on each split; `None` where the setting was given up before.
    pub scores: Vec<Option<f64>>,
    /// The mean of the scores.
    pub mean: f64,
    /// The standard deviation of the scores.
    pub sd: f64,
    /// The 95 % bootstrap interval of the mean.
    pub interval: Option<(f64, f64)>,
    /// Splits on which the fit was a constant on its training rows.
    #[serde(default)]
    pub flat: usize,
}

/// What a search found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tuning {
    /// Label of the method.
    pub method: String,
    /// The name of the metric.
    pub metric: String,
    /// Is a larger value of the metric a better one?
    pub higher_is_better: bool,
    /// How rows were cut.
    pub protocol: String,
    /// Every setting, in the order of the grid.
    pub settings: Vec<Setting>,
    /// The best; of equals that differ in C alone the one with the largest C, of others the first.
    /// A setting that was given up is never the best, and one whose fits are mostly constants only
    /// where all are.
    pub best: usize,
    /// The whole request of the best.
    pub spec: TrainSpec,
    /// Seconds of all fits together, as if they had run one after another.
    pub seconds: f64,
}

#[derive(Serialize, Deserialize)]
struct Unit {
    scores: Vec<f64>,
    flat: Vec<bool>,
    seconds: f64,
}

/// What a split has to say of every setting: its score, and whether the fit was a constant.
type Found = Vec<Option<(f64, bool)>>;

/// See [`Study::tune`].
pub(super) fn tune(
    study: Study<'_>,
    contender: &Contender,
    journal: &Journal,
) -> Result<Option<Tuning>> {
    let Study { source, target, weight, groups, protocol, watch } = study;
    protocol.check(target)?;
    let mut grid = contender.grid.clone();
    if !grid.has("C") {
        let values = c_values(source, target, weight, &contender.spec)?;
        grid = grid.with("C", values.into_iter().map(Into::into).collect());
    }
    let specs = grid.specs(&contender.spec)?;
    let splits = protocol.splitting.splits(target, groups, protocol.seed)?;
    let line = grid.axes.iter().find(|(name, _)| name == "C").map_or(1, |(_, values)| values.len());
    let lines = specs.len() / line;
    let id = |s: usize, l: usize| format!("{s}/{l}");
    let mut ahead = Ahead {
        name: contender.label.clone(),
        total: splits.len() * lines,
        found: 0,
        seconds: 0.0,
    };
    for (s, l) in (0..splits.len()).flat_map(|s| (0..lines).map(move |l| (s, l))) {
        if let Some(unit) = journal.get::<Unit>(&id(s, l))? {
            ahead.found += 1;
            ahead.seconds += unit.seconds;
        }
    }
    watch.begin(&[ahead]);
    let mut alive = vec![true; specs.len()];
    let split_scores = |s: usize, alive: &[bool]| -> Result<Option<(Found, f64)>> {
        let mut fold = Fold::new(source, target, weight, splits[s].clone())?;
        let (mut out, mut seconds) = (vec![None; specs.len()], 0.0);
        for l in 0..lines {
            let chosen: Vec<usize> = (l * line..(l + 1) * line).filter(|&i| alive[i]).collect();
            let unit = match journal.get::<Unit>(&id(s, l))? {
                Some(unit) if unit.scores.len() == chosen.len() => unit,
                _ => {
                    if watch.stopped() {
                        return Ok(None);
                    }
                    let began = Instant::now();
                    let own: Vec<TrainSpec> = chosen.iter().map(|&i| specs[i].clone()).collect();
                    let (scores, flat) = fold
                        .outcomes(&own, protocol.metric, &mut Relay(watch))?
                        .into_iter()
                        .unzip();
                    if watch.stopped() {
                        return Ok(None);
                    }
                    let unit = Unit { scores, flat, seconds: began.elapsed().as_secs_f64() };
                    journal.put(&id(s, l), &unit)?;
                    watch.done(&contender.label, unit.seconds);
                    unit
                }
            };
            seconds += unit.seconds;
            for (&i, found) in chosen.iter().zip(unit.scores.into_iter().zip(unit.flat)) {
                out[i] = Some(found);
            }
        }
        Ok(Some((out, seconds)))
    };
    let mut results = Vec::new();
    if let Some(margin) = protocol.abandon {
        // Who goes on depends on the splits before, so they come one after another.
        for s in 0..splits.len() {
            let Some(scores) = split_scores(s, &alive)? else { return Ok(None) };
            results.push(scores);
            let means: Vec<f64> = (0..specs.len()).map(|i| mean(&column(&results, i))).collect();
            let top = (0..specs.len())
                .filter(|&i| alive[i])
                .map(|i| means[i])
                .fold(f64::NEG_INFINITY, f64::max);
            (0..specs.len()).for_each(|i| alive[i] &= top - means[i] <= margin);
        }
    } else {
        match in_parallel(splits.len(), |s| split_scores(s, &alive))? {
            Some(all) => results = all,
            None => return Ok(None),
        }
    }
    Ok(Some(summary(contender, &grid, protocol, &specs, &results)))
}

fn column(results: &[(Found, f64)], i: usize) -> Vec<f64> {
    results.iter().filter_map(|(found, _)| found[i].map(|f| f.0)).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn summary(
    contender: &Contender,
    grid: &Grid,
    protocol: &Protocol,
    specs: &[TrainSpec],
    results: &[(Found, f64)],
) -> Tuning {
    let metric = protocol.metric;
    let utilities: Vec<Vec<f64>> = (0..specs.len()).map(|i| column(results, i)).collect();
    let whole = |i: usize| utilities[i].len() == results.len();
    let constants =
        |i: usize| results.iter().filter(|(found, _)| found[i].is_some_and(|f| f.1)).count();
    let among: Vec<usize> = (0..specs.len()).filter(|&i| whole(i)).collect();
    let best =
        best_of(specs, &among, |i| mean(&utilities[i]), |i| 2 * constants(i) > results.len());
    let setting = |i: usize| {
        let values: Vec<f64> = utilities[i].iter().map(|u| metric.utility(*u)).collect();
        let centre = mean(&values);
        let variance =
            values.iter().map(|v| (v - centre).powi(2)).sum::<f64>() / (values.len() as f64 - 1.0);
        Setting {
            parameters: grid.describe(&specs[i]),
            scores: results
                .iter()
                .map(|(found, _)| found[i].map(|f| metric.utility(f.0)))
                .collect(),
            mean: centre,
            sd: if values.len() > 1 { variance.sqrt() } else { 0.0 },
            interval: mean_interval(&values, 0),
            flat: constants(i),
        }
    };
    Tuning {
        method: contender.label.clone(),
        metric: metric.name(),
        higher_is_better: metric.higher_is_better(),
        protocol: format!("{}, seed {}", protocol.splitting.describe(), protocol.seed),
        settings: (0..specs.len()).map(setting).collect(),
        best,
        spec: specs[best].clone(),
        seconds: results.iter().map(|r| r.1).sum(),
    }
}
