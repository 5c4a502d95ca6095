//! Metrics by their names.

use serde::{Deserialize, Serialize};

use super::{
    accuracy, auc, balanced_accuracy, cost, f1, log_loss, macro_f1, mae, mcc, micro_f1, nmse, r2,
    rmse,
};
use crate::{Error, Result, data::Target, linalg::Matrix};

/// A measure of how well predictions agree with the truth.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Share of samples whose class is right.
    Accuracy,
    /// Mean recall over classes.
    BalancedAccuracy,
    /// Area under the ROC curve; the mean over classes, each against the rest, where there are more
    /// than two.
    Auc,
    /// The correlation coefficient of Matthews.
    Mcc,
    /// The F1 score of the second of two classes.
    F1,
    /// The mean of the F1 scores of all classes.
    MacroF1,
    /// The F1 score of all classes together, which is the accuracy.
    MicroF1,
    /// Mean cost of an error, the second class being positive.
    Cost {
        /// The cost of a positive that was missed.
        c1: f64,
        /// The cost of a negative taken for a positive.
        c2: f64,
    },
    /// Mean −log of the true class's probability; needs the logistic loss.
    LogLoss,
    /// Root of the mean squared error.
    Rmse,
    /// The mean absolute error, in units of the target.
    Mae,
    /// Share of the variance explained.
    R2,
    /// Mean squared error over the variance.
    Nmse,
}

/// Names users type, in the order they are listed.
const NAMES: [(&str, Metric); 12] = [
    ("accuracy", Metric::Accuracy),
    ("balanced_accuracy", Metric::BalancedAccuracy),
    ("auc", Metric::Auc),
    ("mcc", Metric::Mcc),
    ("f1", Metric::F1),
    ("macro_f1", Metric::MacroF1),
    ("micro_f1", Metric::MicroF1),
    ("log_loss", Metric::LogLoss),
    ("rmse", Metric::Rmse),
    ("mae", Metric::Mae),
    ("r2", Metric::R2),
    ("nmse", Metric::Nmse),
];

impl Metric {
    /// The metric of that name; `cost(c1, c2)` is written with its costs.
    pub fn named(name: &str) -> Result<Self> {
        let plain = name.trim().to_ascii_lowercase().replace('-', "_");
        if let Some((_, metric)) = NAMES.iter().find(|(known, _)| *known == plain) {
            return Ok(*metric);
        }
        let costs = plain
            .strip_prefix("cost(")
            .and_then(|t| t.strip_suffix(')'))
            .and_then(|t| t.split_once(','));
        let number = |t: &str| t.trim().parse::<f64>().ok().filter(|x| x.is_finite() && *x > 0.0);
        if let Some((Some(c1), Some(c2))) = costs.map(|(a, b)| (number(a), number(b))) {
            return Ok(Self::Cost { c1, c2 });
        }
        let known: Vec<&str> = NAMES.iter().map(|n| n.0).collect();
        Err(Error::param(
            "metric",
            format!("one of {}, cost(c1, c2)", known.join(", ")),
            format!("`{name}`"),
        ))
    }

    /// Accuracy for classes, RMSE for values.
    pub fn default_for(target: &Target) -> Self {
        if matches!(target, Target::Classes { .. }) { Self::Accuracy } else { Self::Rmse }
    }

    /// The name that users read, with its parameters.
    pub fn name(self) -> String {
        match self {
            Self::Cost { c1, c2 } => format!("cost({c1}, {c2})"),
            other => NAMES
                .iter()
                .find(|(_, m)| *m == other)
                .map_or_else(String::new, |n| n.0.replace('_', " ")),
        }
    }

    /// Is a larger value a better one?
    pub fn higher_is_better(self) -> bool {
        !matches!(self, Self::Cost { .. } | Self::LogLoss | Self::Rmse | Self::Mae | Self::Nmse)
    }

    /// The metric, its sign turned where less is better.
    pub fn utility(self, value: f64) -> f64 {
        if self.higher_is_better() { value } else { -value }
    }

    /// Refuses a target of the other kind, or too many classes.
    pub fn check(self, target: &Target) -> Result<()> {
        let values = matches!(self, Self::Rmse | Self::Mae | Self::R2 | Self::Nmse);
        match target {
            Target::Classes { names, .. } => {
                if values {
                    return Err(Error::param("metric", "one for classes", self.name()));
                }
                if matches!(self, Self::F1 | Self::Cost { .. }) && names.len() != 2 {
                    let got = format!("{} with {} classes", self.name(), names.len());
                    return Err(Error::param(
                        "metric",
                        "macro_f1 or another for more than two classes",
                        got,
                    ));
                }
                Ok(())
            }
            Target::Values(_) if values => Ok(()),
            Target::Values(_) => {
                Err(Error::param("metric", "one of rmse, mae, r2, nmse for values", self.name()))
            }
        }
    }

    /// Measures predictions. `scores` has a column per class, one in all for two; `probabilities` a
    /// column per class, where there are any.
    pub fn evaluate(
        self,
        truth: &Target,
        predicted: &Target,
        scores: &Matrix,
        probabilities: Option<&Matrix>,
    ) -> Result<f64> {
        match (truth, predicted) {
            (Target::Classes { labels: t, .. }, Target::Classes { labels: p, .. }) => match self {
                Self::Accuracy => accuracy(t, p),
                Self::BalancedAccuracy => balanced_accuracy(t, p),
                Self::Auc => class_auc(t, scores),
                Self::Mcc => mcc(t, p),
                Self::F1 => f1(t, p, 1),
                Self::MacroF1 => macro_f1(t, p),
                Self::MicroF1 => micro_f1(t, p),
                Self::Cost { c1, c2 } => cost(t, p, 1, (c1, c2)),
                Self::LogLoss => match probabilities {
                    Some(probabilities) => log_loss(t, probabilities),
                    None => Err(Error::param(
                        "metric",
                        "one that needs no probabilities, or loss = logistic",
                        "log_loss",
                    )),
                },
                _ => self.check(truth).map(|()| f64::NAN),
            },
            (Target::Values(t), Target::Values(p)) => match self {
                Self::Rmse => rmse(t, p),
                Self::Mae => mae(t, p),
                Self::R2 => r2(t, p),
                Self::Nmse => nmse(t, p),
                _ => self.check(truth).map(|()| f64::NAN),
            },
            _ => Err(Error::data(
                "target",
                "classes on one side and numbers on the other",
                "compare like with like",
            )),
        }
    }
}

/// One column ranks the second class. Several: the mean over the classes that occur, each against
/// the rest.
fn class_auc(truth: &[usize], scores: &Matrix) -> Result<f64> {
    let one = |class: usize, column: usize| {
        auc(&truth.iter().map(|&t| t == class).collect::<Vec<_>>(), &scores.column(column))
    };
    if scores.cols() == 1 {
        return one(1, 0);
    }
    let there: Vec<usize> = (0..scores.cols()).filter(|c| truth.contains(c)).collect();
    let each = there.iter().map(|&c| one(c, c)).collect::<Result<Vec<f64>>>()?;
    if each.is_empty() {
        return Err(Error::data(
            "AUC",
            "no class of the model occurs",
            "bring rows of at least two classes",
        ));
    }
    Ok(each.iter().sum::<f64>() / each.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_to_metrics_and_back() {
        for (name, metric) in NAMES {
            assert_eq!(Metric::named(name).unwrap(), metric);
            assert_eq!(Metric::named(&metric.name().replace(' ', "-")).unwrap(), metric);
        }
        assert_eq!(Metric::named("cost(4, 1)").unwrap(), Metric::Cost { c1: 4.0, c2: 1.0 });
        for wrong in ["acc", "cost", "cost(1)", "cost(0, 1)", ""] {
            assert!(
                Metric::named(wrong).unwrap_err().to_string().contains("balanced_accuracy"),
                "{wrong}"
            );
        }
    }

    #[test]
    fn a_metric_fits_its_target() {
        let two = Target::classes(&["a", "b"]);
        let three = Target::classes(&["a", "b", "c"]);
        let values = Target::Values(vec![1.0, 2.0]);
        assert!(Metric::F1.check(&two).is_ok() && Metric::F1.check(&three).is_err());
        assert!(Metric::Rmse.check(&values).is_ok() && Metric::Rmse.check(&two).is_err());
        assert!(Metric::Accuracy.check(&values).is_err());
        let scores = Matrix::new(2, 1, vec![-1.0, 1.0]).unwrap();
        let value = |m: Metric| m.evaluate(&two, &two, &scores, None);
        assert_eq!(value(Metric::Auc).unwrap(), 1.0);
        assert!(value(Metric::LogLoss).unwrap_err().to_string().contains("logistic"));
        assert!(value(Metric::Nmse).is_err());
        assert_eq!(Metric::Nmse.evaluate(&values, &values, &scores, None).unwrap(), 0.0);
    }
}
