//! Predictions measured against known answers.

use mercer::{
    Error, Model, Result,
    data::Target,
    linalg::Matrix,
    metrics,
    model::Prediction,
    report::{Outcome, Score, wilson},
};

/// Named measurements, in the order they are shown; `None` where one is undefined for these rows.
pub type Scores = Vec<(&'static str, Option<f64>)>;

/// Every measurement that suits the task. `truth` must use the model's classes (see
/// [`in_model_classes`]); `scores` has a column per class, or one for two.
pub fn all(truth: &Target, predicted: &Target, scores: &Matrix) -> Result<Scores> {
    match (truth, predicted) {
        (Target::Classes { labels: t, .. }, Target::Classes { labels: p, names }) => {
            let f1 = if names.len() == 2 { metrics::f1(t, p, 1) } else { metrics::macro_f1(t, p) };
            Ok(vec![
                ("accuracy", Some(metrics::accuracy(t, p)?)),
                ("balanced accuracy", Some(metrics::balanced_accuracy(t, p)?)),
                ("AUC", auc(t, scores)),
                ("MCC", Some(metrics::mcc(t, p)?)),
                (if names.len() == 2 { "F1" } else { "macro F1" }, Some(f1?)),
            ])
        }
        (Target::Values(t), Target::Values(p)) => Ok(vec![
            ("RMSE", Some(metrics::rmse(t, p)?)),
            ("R²", metrics::r2(t, p).ok()),
            ("NMSE", metrics::nmse(t, p).ok()),
        ]),
        _ => Err(mixed()),
    }
}

/// The headline: accuracy with its interval, or RMSE.
pub fn headline(rows: &str, truth: &Target, predicted: &Target) -> Result<Score> {
    match (truth, predicted) {
        (Target::Classes { labels: t, .. }, Target::Classes { labels: p, .. }) => {
            let value = metrics::accuracy(t, p)?;
            let interval = wilson(t.iter().zip(p).filter(|(t, p)| t == p).count(), t.len());
            Ok(Score { name: format!("{rows} accuracy"), value, interval, higher_is_better: true })
        }
        (Target::Values(t), Target::Values(p)) => {
            let value = metrics::rmse(t, p)?;
            Ok(Score {
                name: format!("{rows} RMSE"),
                value,
                interval: None,
                higher_is_better: false,
            })
        }
        _ => Err(mixed()),
    }
}

/// The confusion matrix, or true and predicted values.
pub fn outcome(label: String, truth: &Target, predicted: &Target) -> Result<Outcome> {
    match (truth, predicted) {
        (Target::Classes { labels: t, .. }, Target::Classes { labels: p, names }) => {
            Ok(Outcome::Confusion {
                label,
                classes: names.clone(),
                counts: metrics::confusion(t, p, names.len())?,
            })
        }
        (Target::Values(t), Target::Values(p)) => Ok(Outcome::Residuals {
            label,
            pairs: t.iter().copied().zip(p.iter().copied()).collect(),
        }),
        _ => Err(mixed()),
    }
}

/// How one class fares.
pub struct ClassScore {
    pub class: String,
    /// Rows of the class.
    pub rows: usize,
    /// Share of the rows predicted so that are so.
    pub precision: Option<f64>,
    /// Share of its rows that are predicted so.
    pub recall: Option<f64>,
    pub f1: f64,
}

/// Each class for itself, from counts of true class (row) against predicted class (column).
pub fn per_class(classes: &[String], counts: &[Vec<usize>]) -> Vec<ClassScore> {
    let share = |hits: usize, of: usize| (of > 0).then(|| hits as f64 / of as f64);
    let score = |(k, class): (usize, &String)| {
        let (hits, rows) = (counts[k][k], counts[k].iter().sum::<usize>());
        let predicted = counts.iter().map(|line| line[k]).sum::<usize>();
        ClassScore {
            class: class.clone(),
            rows,
            precision: share(hits, predicted),
            recall: share(hits, rows),
            f1: 2.0 * hits as f64 / (rows + predicted).max(1) as f64,
        }
    };
    classes.iter().enumerate().map(score).collect()
}

/// The same answers, indexed by the model's classes.
pub fn in_model_classes(truth: Target, model: &Model, column: &str) -> Result<Target> {
    let (Target::Classes { names, labels }, Prediction::Classification { classes, .. }) =
        (&truth, &model.task)
    else {
        return Ok(truth);
    };
    let place = |name: &String| {
        classes.iter().position(|c| c == name).ok_or_else(|| {
            let problem =
                format!("class `{name}` is none of those the model knows ({})", classes.join(", "));
            Error::data(
                format!("target column `{column}`"),
                problem,
                "leave those rows out, or fit a model that has it",
            )
        })
    };
    let places = names.iter().map(place).collect::<Result<Vec<_>>>()?;
    Ok(Target::Classes {
        names: classes.clone(),
        labels: labels.iter().map(|&l| places[l]).collect(),
    })
}

/// One column ranks the second class. Several: the mean over classes, each against the rest.
fn auc(truth: &[usize], scores: &Matrix) -> Option<f64> {
    let one = |class: usize, column: usize| {
        let positive: Vec<bool> = truth.iter().map(|&t| t == class).collect();
        metrics::auc(&positive, &scores.column(column)).ok()
    };
    if scores.cols() == 1 {
        return one(1, 0);
    }
    let each: Option<Vec<f64>> = (0..scores.cols()).map(|class| one(class, class)).collect();
    each.map(|values| values.iter().sum::<f64>() / values.len() as f64)
}

fn mixed() -> Error {
    Error::data(
        "target",
        "classes on one side and numbers on the other",
        "use the column the model was fitted to",
    )
}
