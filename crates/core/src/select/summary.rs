//! From runs to a table and a verdict. Nothing here is random or measured: the same runs give the
//! same words.

use serde::{Deserialize, Serialize};

use super::{
    Contender, Paired, SplitRun, Stability,
    compare::{Work, numbers},
    holm, interchangeable, paired, stability,
};
use crate::{
    Result,
    data::{Target, split::Split},
    metrics::{self, Metric, mean_interval},
    prepare::Source,
    trace::Status,
    train::{Diagnosis, diagnose, diagnose_precomputed},
};

/// The most kernels for which alignments between all pairs are computed: they take the square of
/// this many numbers.
const MOST_ALIGNED: usize = 1000;
/// The number of kernels, of those that weigh most, whose alignments are kept.
const KEPT: usize = 30;
/// The alignment above which two kernels are called interchangeable.
const SAME: f64 = 0.95;
/// The number of points that are kept of a curve or a scatter plot.
const POINTS: usize = 400;

/// One method in the table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// The label of the method.
    pub method: String,
    /// Splits with a score.
    pub runs: usize,
    /// Mean of the metric over splits.
    pub mean: Option<f64>,
    /// Standard deviation over splits.
    pub sd: Option<f64>,
    /// 95 % bootstrap interval of the mean.
    pub interval: Option<(f64, f64)>,
    /// Mean number of kernels with a weight.
    pub selected: f64,
    /// The standard deviation of the number of selected kernels.
    pub selected_sd: f64,
    /// Mean number of kernels that together carry 99 % of the weight.
    #[serde(default)]
    pub carrying: f64,
    /// How many kernels the bank offered.
    pub total: usize,
    /// Mean seconds of a fit, and of choosing its parameters.
    pub seconds: (f64, f64),
    /// The worst relative gap; `None` where the method has none.
    pub gap: Option<f64>,
    /// Fits that reached their tolerance.
    pub converged: usize,
    /// Each parameter with its commonest value.
    pub chosen: Vec<(String, String)>,
    /// Against equal weights; `None` for equal weights themselves.
    pub versus_uniform: Option<Paired>,
    /// The corrected p of that, adjusted for the number of methods (Holm).
    pub adjusted: Option<f64>,
    /// Two or more classes: counts of true (row) against predicted class, all splits together.
    pub confusion: Option<Vec<Vec<usize>>>,
    /// Two classes: share of negatives taken for positives and share of positives found, decision
    /// values of all splits together.
    pub roc: Vec<(f64, f64)>,
    /// Values: true and predicted, of some rows.
    pub residuals: Vec<(f64, f64)>,
}

/// Alignments of the kernels that weigh most.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Aligned {
    /// The names of the kernels.
    pub kernels: Vec<String>,
    /// The alignment of each kernel with the target.
    pub target: Vec<f64>,
    /// The alignment of each kernel with each other one.
    pub between: Vec<Vec<f64>>,
}

/// All that a comparison found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The name of the metric.
    pub metric: String,
    /// Is a larger value of the metric a better one?
    pub higher_is_better: bool,
    /// How rows were cut and parameters chosen, in words.
    pub protocol: Vec<(String, String)>,
    /// Classes, where there are any.
    pub classes: Option<Vec<String>>,
    /// The number of splits.
    pub splits: usize,
    /// The lines of the table, one per method.
    pub lines: Vec<Line>,
    /// p of the corrected test between every two methods, in the order of the table.
    pub between: Vec<Vec<Option<f64>>>,
    /// What follows, in plain words.
    pub verdict: Vec<String>,
    /// Kernels over the splits, per method.
    pub stability: Vec<Stability>,
    /// Groups of kernels that could stand in for each other.
    pub interchangeable: Vec<Vec<String>>,
    /// Alignments of the kernels that weigh most.
    pub aligned: Option<Aligned>,
    /// What the reader should know.
    pub warnings: Vec<String>,
    /// Kernel names of the first split.
    pub kernels: Vec<String>,
    /// Every run, less its predictions.
    pub runs: Vec<SplitRun>,
}

impl Comparison {
    pub(super) fn new(work: Work<'_>, splits: &[Split], mut runs: Vec<SplitRun>) -> Self {
        let metric = work.study.protocol.metric;
        let labels: Vec<&str> = work.contenders.iter().map(|c| c.label.as_str()).collect();
        let by_method: Vec<Vec<&SplitRun>> =
            labels.iter().map(|l| runs.iter().filter(|r| r.method == *l).collect()).collect();
        let ratio = splits.iter().map(|(a, b)| b.len() as f64 / a.len() as f64).sum::<f64>()
            / splits.len() as f64;
        let mut lines: Vec<Line> =
            by_method.iter().map(|own| line(own, work.study.target, splits)).collect();
        let scores: Vec<Vec<Option<f64>>> =
            by_method.iter().map(|own| own.iter().map(|r| r.score).collect()).collect();
        let test = |i: usize, j: usize| {
            let both =
                || scores[i].iter().zip(&scores[j]).filter_map(|(a, b)| Some(((*a)?, (*b)?)));
            let (a, b): (Vec<f64>, Vec<f64>) = both().unzip();
            (!a.is_empty()).then(|| paired(&a, &b, ratio))
        };
        let uniform = labels.iter().position(|l| l.split('(').next() == Some("uniform"));
        if let Some(uniform) = uniform {
            let others: Vec<usize> = (0..lines.len()).filter(|&i| i != uniform).collect();
            for &i in &others {
                lines[i].versus_uniform = test(i, uniform);
            }
            let told: Vec<usize> = others
                .into_iter()
                .filter(|&i| lines[i].versus_uniform.is_some_and(|v| v.corrected.is_some()))
                .collect();
            let p: Vec<f64> =
                told.iter().filter_map(|&i| lines[i].versus_uniform?.corrected).collect();
            for (&i, adjusted) in told.iter().zip(holm(&p)) {
                lines[i].adjusted = Some(adjusted);
            }
        }
        let corrected =
            |i: usize, j: usize| if i == j { None } else { test(i, j).and_then(|t| t.corrected) };
        let between: Vec<Vec<Option<f64>>> =
            (0..lines.len()).map(|i| (0..lines.len()).map(|j| corrected(i, j)).collect()).collect();
        let mut banks: Vec<Option<Vec<String>>> = vec![None; splits.len()];
        runs.iter()
            .filter(|r| r.kernels.is_some())
            .for_each(|r| banks[r.split].clone_from(&r.kernels));
        let (kernels, places) = stability::common(&banks);
        let stability: Vec<Stability> = labels
            .iter()
            .zip(&by_method)
            .map(|(label, own)| {
                let scored: Vec<&SplitRun> =
                    own.iter().copied().filter(|r| r.error.is_none()).collect();
                Stability::new(label, &scored, &kernels, &places)
            })
            .collect();
        let warnings = warnings(&runs, &lines);
        let (interchangeable, aligned) = alignments(work, &kernels, &stability);
        let verdict = verdict(metric, &lines, &between);
        for run in &mut runs {
            run.predicted.clear();
            run.decision.clear();
            run.kernels = None;
        }
        let classes = match work.study.target {
            Target::Classes { names, .. } => Some(names.clone()),
            Target::Values(_) => None,
        };
        Self {
            metric: metric.name(),
            higher_is_better: metric.higher_is_better(),
            protocol: protocol(work, splits),
            classes,
            splits: splits.len(),
            lines,
            between,
            verdict,
            stability,
            interchangeable,
            aligned,
            warnings,
            kernels,
            runs,
        }
    }

    /// The method with the best mean; of equals the first.
    pub fn best(&self) -> Option<usize> {
        best(&self.lines, self.higher_is_better)
    }

    /// Where equal weights stand.
    pub fn uniform(&self) -> Option<usize> {
        self.lines.iter().position(|l| is_uniform(&l.method))
    }
}

fn is_uniform(method: &str) -> bool {
    method.split('(').next() == Some("uniform")
}

fn best(lines: &[Line], higher: bool) -> Option<usize> {
    let value = |i: usize| lines[i].mean.map(|m| if higher { m } else { -m });
    (0..lines.len())
        .filter(|&i| value(i).is_some())
        .reduce(|b, i| if value(i) > value(b) { i } else { b })
}

fn mean_sd(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let sd = (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt();
    (mean, if values.len() > 1 { sd } else { 0.0 })
}

fn line(own: &[&SplitRun], target: &Target, splits: &[Split]) -> Line {
    let fitted: Vec<&SplitRun> = own.iter().copied().filter(|r| r.error.is_none()).collect();
    let scores: Vec<f64> = fitted.iter().filter_map(|r| r.score).collect();
    let (mean, sd) = mean_sd(&scores);
    let over = |f: fn(&SplitRun) -> f64| {
        if fitted.is_empty() {
            (0.0, 0.0)
        } else {
            mean_sd(&fitted.iter().map(|r| f(r)).collect::<Vec<_>>())
        }
    };
    let selected = over(|r| r.selected as f64);
    let (roc, confusion, residuals) = outcomes(&fitted, target, splits);
    Line {
        method: own.first().map_or_else(String::new, |r| r.method.clone()),
        runs: scores.len(),
        mean: (!scores.is_empty()).then_some(mean),
        sd: (scores.len() > 1).then_some(sd),
        interval: mean_interval(&scores, 0),
        selected: selected.0,
        selected_sd: selected.1,
        carrying: over(|r| r.carrying as f64).0,
        total: fitted.iter().map(|r| r.total).max().unwrap_or(0),
        seconds: (over(|r| r.seconds).0, over(|r| r.search_seconds).0),
        gap: fitted.iter().filter_map(|r| r.gap).reduce(f64::max),
        converged: fitted
            .iter()
            .filter(|r| matches!(r.status, Status::Optimal | Status::Stationary))
            .count(),
        chosen: commonest(&fitted),
        versus_uniform: None,
        adjusted: None,
        confusion,
        roc,
        residuals,
    }
}

/// Each parameter's commonest value; of equals the first seen.
fn commonest(runs: &[&SplitRun]) -> Vec<(String, String)> {
    let Some(first) = runs.first() else { return Vec::new() };
    let value = |name: &str| {
        let seen: Vec<&String> = runs
            .iter()
            .flat_map(|r| r.chosen.iter().filter(|c| c.0 == name).map(|c| &c.1))
            .collect();
        let count = |v: &String| seen.iter().filter(|s| **s == v).count();
        seen.iter()
            .copied()
            .reduce(|b, v| if count(v) > count(b) { v } else { b })
            .cloned()
            .unwrap_or_default()
    };
    first.chosen.iter().map(|(name, _)| (name.clone(), value(name))).collect()
}

type Outcomes = (Vec<(f64, f64)>, Option<Vec<Vec<usize>>>, Vec<(f64, f64)>);

fn outcomes(runs: &[&SplitRun], target: &Target, splits: &[Split]) -> Outcomes {
    let (mut truth, mut predicted, mut decision) = (Vec::new(), Vec::new(), Vec::new());
    for run in runs {
        truth.extend(numbers(&target.select(&splits[run.split].1)));
        predicted.extend_from_slice(&run.predicted);
        decision.extend_from_slice(&run.decision);
    }
    match target {
        Target::Values(_) => {
            let pairs: Vec<(f64, f64)> = truth.into_iter().zip(predicted).collect();
            let step = pairs.len().div_ceil(POINTS).max(1);
            (Vec::new(), None, pairs.into_iter().step_by(step).collect())
        }
        Target::Classes { names, .. } => {
            let (t, p): (Vec<usize>, Vec<usize>) = (
                truth.iter().map(|x| *x as usize).collect(),
                predicted.iter().map(|x| *x as usize).collect(),
            );
            let positive: Vec<bool> = t.iter().map(|&t| t == 1).collect();
            let curve =
                if decision.len() == t.len() { roc(&positive, &decision) } else { Vec::new() };
            (curve, metrics::confusion(&t, &p, names.len()).ok(), Vec::new())
        }
    }
}

/// Corners of the ROC curve, thinned.
fn roc(positive: &[bool], decision: &[f64]) -> Vec<(f64, f64)> {
    let (p, n) =
        (positive.iter().filter(|x| **x).count(), positive.iter().filter(|x| !**x).count());
    if p == 0 || n == 0 {
        return Vec::new();
    }
    let mut order: Vec<usize> = (0..decision.len()).collect();
    order.sort_by(|&i, &j| decision[j].total_cmp(&decision[i]));
    let (mut hits, mut misses, mut curve) = (0, 0, vec![(0.0, 0.0)]);
    for tied in order.chunk_by(|&i, &j| decision[i] == decision[j]) {
        let own = tied.iter().filter(|&&i| positive[i]).count();
        hits += own;
        misses += tied.len() - own;
        curve.push((misses as f64 / n as f64, hits as f64 / p as f64));
    }
    let step = curve.len().div_ceil(POINTS).max(1);
    let last = curve.len() - 1;
    curve
        .into_iter()
        .enumerate()
        .filter(|(i, _)| i % step == 0 || *i == last)
        .map(|(_, c)| c)
        .collect()
}

fn protocol(work: Work<'_>, splits: &[Split]) -> Vec<(String, String)> {
    let p = work.study.protocol;
    let sizes = |part: fn(&Split) -> usize| {
        let (low, high) =
            splits.iter().map(part).fold((usize::MAX, 0), |(a, b), n| (a.min(n), b.max(n)));
        if low == high { low.to_string() } else { format!("{low} to {high}") }
    };
    let fixed =
        |c: &Contender| c.grid.has("C") && c.grid.axes.iter().all(|(_, values)| values.len() == 1);
    let parameters = if work.contenders.iter().all(fixed) {
        "as given".into()
    } else {
        format!("chosen in each training part by {} folds, {}", p.folds, p.metric.name())
    };
    let together =
        if work.study.groups.is_some() { "; rows of one group stay together" } else { "" };
    let mut facts = vec![
        ("splits".into(), format!("{}{together}, seed {}", p.splitting.describe(), p.seed)),
        (
            "rows".into(),
            format!("{} to learn from, {} to test on", sizes(|s| s.0.len()), sizes(|s| s.1.len())),
        ),
        ("parameters".into(), parameters),
    ];
    if let Some(margin) = p.abandon {
        facts.push((
            "given up".into(),
            format!("settings more than {margin} below the best after a fold"),
        ));
    }
    facts
}

fn warnings(runs: &[SplitRun], lines: &[Line]) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for line in lines {
        let own: Vec<&SplitRun> = runs.iter().filter(|r| r.method == line.method).collect();
        let failed: Vec<&&SplitRun> = own.iter().filter(|r| r.error.is_some()).collect();
        if let Some(first) = failed.first().and_then(|r| r.error.as_ref()) {
            out.push(format!(
                "{}: {} of {} runs failed, the first: {first}",
                line.method,
                failed.len(),
                own.len()
            ));
        }
        let fitted = own.len() - failed.len();
        if line.converged < fitted {
            let open = fitted - line.converged;
            out.push(format!(
                "{}: {open} of {fitted} fits did not reach their tolerance",
                line.method
            ));
        }
        let mut seen: Vec<(&String, usize)> = Vec::new();
        for text in own.iter().flat_map(|r| &r.warnings) {
            match seen.iter_mut().find(|(known, _)| *known == text) {
                Some((_, count)) => *count += 1,
                None => seen.push((text, 1)),
            }
        }
        if let Some((text, _)) = seen.first() {
            let count: usize = seen.iter().map(|s| s.1).sum();
            out.push(format!("{}: {count} warnings, the first: {text}", line.method));
        }
    }
    out
}

/// Descriptive, on all rows: nothing was chosen by it.
fn alignments(
    work: Work<'_>,
    kernels: &[String],
    stability: &[Stability],
) -> (Vec<Vec<String>>, Option<Aligned>) {
    let Some(spec) = work.contenders.first().map(|c| &c.spec) else { return Default::default() };
    if kernels.is_empty() || kernels.len() > MOST_ALIGNED {
        return Default::default();
    }
    let found: Result<Diagnosis> = match work.study.source {
        Source::Table(data) => diagnose(data, work.study.target, spec),
        Source::Ready(stack) => diagnose_precomputed(stack, work.study.target, spec),
    };
    let Ok(found) = found else { return Default::default() };
    // Names differ in automatic widths; places do not.
    if found.kernels.len() != kernels.len() {
        return Default::default();
    }
    let weight = |name: &String| -> f64 {
        let learned = stability.iter().filter(|s| !is_uniform(&s.method));
        learned.flat_map(|s| &s.kernels).filter(|k| k.kernel == *name).map(|k| k.mean).sum()
    };
    let weights: Vec<f64> = kernels.iter().map(weight).collect();
    let mut order: Vec<usize> = (0..kernels.len()).collect();
    order.sort_by(|&a, &b| weights[b].total_cmp(&weights[a]));
    let name = |m: &usize| kernels[*m].clone();
    let groups = interchangeable(&found.between, &order, SAME);
    let groups = groups.iter().map(|g| g.iter().map(name).collect()).collect();
    let kept = &order[..order.len().min(KEPT)];
    let aligned = Aligned {
        kernels: kept.iter().map(name).collect(),
        target: kept.iter().map(|&m| found.kernels[m].alignment).collect(),
        between: kept
            .iter()
            .map(|&s| kept.iter().map(|&t| found.between[s][t]).collect())
            .collect(),
    };
    (groups, Some(aligned))
}

/// Plain words, resting on the corrected test at 5 % after Holm's adjustment.
fn verdict(metric: Metric, lines: &[Line], between: &[Vec<Option<f64>>]) -> Vec<String> {
    let mut out = Vec::new();
    let name = metric.name();
    let Some(top) = best(lines, metric.higher_is_better()) else {
        return vec!["No method could be measured.".into()];
    };
    let number = |x: f64| format!("{x:.3}");
    out.push(format!(
        "The best mean {name} is {} ± {}, by {}.",
        number(lines[top].mean.unwrap_or(f64::NAN)),
        number(lines[top].sd.unwrap_or(0.0)),
        lines[top].method
    ));
    if lines.iter().any(|l| l.versus_uniform.is_some()) {
        let tested = lines.iter().any(|l| l.adjusted.is_some());
        let real = |good: bool| -> Vec<String> {
            let told = |l: &Line| {
                let versus = l.versus_uniform?;
                let better = metric.utility(versus.difference) > 0.0;
                (l.adjusted? < 0.05 && better == good)
                    .then(|| format!("{} (by {})", l.method, number(versus.difference.abs())))
            };
            lines.iter().filter_map(told).collect()
        };
        let (better, worse) = (real(true), real(false));
        out.push(match (tested, better.as_slice()) {
            (false, _) => "One split cannot tell a difference from chance: repeat.".into(),
            (_, []) => "No method is significantly better than equal weights here.".into(),
            (_, [one]) => format!("{one} is significantly better than equal weights."),
            (_, many) => format!("Significantly better than equal weights: {}.", many.join(", ")),
        });
        if !worse.is_empty() {
            out.push(format!("Significantly worse than equal weights: {}.", worse.join(", ")));
        }
    }
    if lines[top].runs > 1 {
        let equal: Vec<&str> = (0..lines.len())
            .filter(|&i| i != top && between[top][i].is_some_and(|p| p >= 0.05))
            .map(|i| lines[i].method.as_str())
            .collect();
        if !equal.is_empty() {
            out.push(format!(
                "Not significantly worse than {}: {}.",
                lines[top].method,
                equal.join(", ")
            ));
        }
        out.push("Tests are paired over the splits and corrected for their overlap; 5 %, adjusted for the number of methods.".into());
    }
    out
}
