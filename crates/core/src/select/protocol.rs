//! How data are cut, what is measured, and how parameters are chosen.

use serde::{Deserialize, Serialize};

use crate::{
    Error, Result,
    data::{
        Target,
        split::{self, Split},
    },
    metrics::Metric,
};

/// How rows are cut into training and test parts.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Splitting {
    /// Random splits, stratified for classes.
    Random {
        /// Share of the rows that train.
        train: f64,
        /// How many random splits there are.
        repeats: usize,
    },
    /// Folds, stratified for classes.
    Folds {
        /// The number of folds of each repeat.
        folds: usize,
        /// How many times the whole cross-validation is done.
        repeats: usize,
    },
    /// Every row alone once.
    LeaveOneOut,
    /// Rows are in the order of time: train on what came before.
    Time {
        /// The number of splits.
        folds: usize,
    },
}

impl Splitting {
    /// The splits. Rows of one group stay together, where groups are given.
    pub fn splits(
        &self,
        target: &Target,
        groups: Option<&[usize]>,
        seed: u64,
    ) -> Result<Vec<Split>> {
        if let Some(groups) = groups
            && groups.len() != target.len()
        {
            return Err(Error::shape("groups", target.len(), groups.len()));
        }
        match *self {
            Self::Random { repeats, .. } | Self::Folds { repeats, .. } if repeats == 0 => {
                Err(Error::param("repeats", "at least 1", 0))
            }
            Self::Random { train, repeats } => {
                if !(train > 0.0 && train < 1.0) {
                    return Err(Error::param("train", "between 0 and 1, both excluded", train));
                }
                let one = |r: usize| match groups {
                    Some(groups) => split::group_split(groups, 1.0 - train, seed + r as u64),
                    None => split::stratified_split(target, 1.0 - train, seed + r as u64),
                };
                (0..repeats).map(one).collect()
            }
            Self::Folds { folds, repeats } => {
                let one = |r: usize| inner(target, groups, folds, seed + r as u64, false);
                Ok((0..repeats).map(one).collect::<Result<Vec<_>>>()?.concat())
            }
            Self::LeaveOneOut => match groups {
                Some(groups) => {
                    let mut names = groups.to_vec();
                    names.sort_unstable();
                    names.dedup();
                    split::group_kfold(groups, names.len(), seed)
                }
                None => split::leave_one_out(target.len()),
            },
            Self::Time { folds } => split::time_ordered(target.len(), folds),
        }
    }

    /// Must training rows come before test rows?
    pub fn is_ordered(&self) -> bool {
        matches!(self, Self::Time { .. })
    }

    /// The protocol in words, as reports state it.
    pub fn describe(&self) -> String {
        match self {
            Self::Random { train, repeats } => {
                let percent = (1e4 * train).round() / 100.0;
                let splits = if *repeats == 1 {
                    "1 random split".into()
                } else {
                    format!("{repeats} random splits")
                };
                format!("{splits}, {percent} % to learn from")
            }
            Self::Folds { folds, repeats: 1 } => format!("{folds} folds"),
            Self::Folds { folds, repeats } => format!("{folds} folds, {repeats} times"),
            Self::LeaveOneOut => "leave one out".into(),
            Self::Time { folds } => format!("{folds} splits in the order of time"),
        }
    }
}

/// Folds within a training part.
pub(super) fn inner(
    target: &Target,
    groups: Option<&[usize]>,
    folds: usize,
    seed: u64,
    ordered: bool,
) -> Result<Vec<Split>> {
    match (ordered, groups) {
        (true, _) => split::time_ordered(target.len(), folds),
        (_, Some(groups)) => split::group_kfold(groups, folds, seed),
        _ => split::stratified_kfold(target, folds, seed),
    }
}

/// One protocol for all contenders.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Protocol {
    /// How rows are cut.
    pub splitting: Splitting,
    /// The seed of splits and folds.
    pub seed: u64,
    /// What is measured, and what parameters are chosen by.
    pub metric: Metric,
    /// Folds inside a training part.
    pub folds: usize,
    /// Tolerance of fits that only rank settings; those that are reported keep their own.
    pub search_tol: f64,
    /// A setting that is so far below the best after some folds is given up; `None` never gives up.
    pub abandon: Option<f64>,
}

impl Protocol {
    /// Three folds inside, a tolerance of 0.01 for ranking.
    pub fn new(splitting: Splitting, metric: Metric, seed: u64) -> Self {
        Self { splitting, seed, metric, folds: 3, search_tol: 1e-2, abandon: None }
    }

    /// Refuses numbers outside their ranges.
    pub fn check(&self, target: &Target) -> Result<()> {
        self.metric.check(target)?;
        if self.folds < 2 {
            return Err(Error::param("folds", "at least 2", self.folds));
        }
        if !(self.search_tol > 0.0 && self.search_tol < 1.0) {
            return Err(Error::param(
                "search_tol",
                "between 0 and 1, both excluded",
                self.search_tol,
            ));
        }
        if let Some(margin) = self.abandon.filter(|a| a.is_nan() || *a <= 0.0) {
            return Err(Error::param("abandon", "above 0", margin));
        }
        let single_rows = matches!(
            self.metric,
            Metric::Accuracy | Metric::MicroF1 | Metric::Mae | Metric::Cost { .. }
        );
        if self.splitting == Splitting::LeaveOneOut
            && !single_rows
            && self.metric != Metric::LogLoss
        {
            let expected = "accuracy, cost, log_loss or mae with leave-one-out: others need several rows at a time";
            return Err(Error::param("metric", expected, self.metric.name()));
        }
        Ok(())
    }
}
