//! Fits that learned next to nothing: one answer for every training row. They are returned, and the
//! model says so.

use super::{Prepared, samples::deviation};
use crate::{
    Model,
    data::Target,
    linalg::Matrix,
    model::{FLAT, Fit, FitPart, Prediction},
    outer::Part,
    request::Scheme,
};

/// Predicted values that vary by less than this share of what the target varies by are a constant:
/// R² on the training rows is then at most 1 − (1 − 0.01)², two percent, whatever they are.
const SPREAD: f64 = 0.01;

impl Prepared {
    /// Says in the model if every decision function of `fits` is a constant on the rows it was
    /// fitted to.
    pub(crate) fn tell_if_fits_are_flat(&self, model: &mut Model, fits: &[Fit]) {
        let values: Vec<Vec<f64>> =
            fits.iter().flat_map(|f| f.parts.iter().map(|p| p.fitted.clone())).collect();
        self.tell_if_flat(model, &values);
    }

    /// Says in the model if what it predicts for the training rows is a constant. `values` holds
    /// the decision values of each machine on the rows it was fitted to.
    pub(crate) fn tell_if_flat(&self, model: &mut Model, values: &[Vec<f64>]) {
        let rows = self.samples.kept.len();
        let found = match (&self.samples.target, &model.task) {
            (Target::Values(y), _) => values.first().and_then(|f| little_spread(f, y)).map(|share| {
                let remedy = "a larger C, a smaller epsilon or other kernels may do better";
                format!("{FLAT}predictions vary by {share:.1e} times what the target varies by; {remedy}")
            }),
            (Target::Classes { .. }, task @ Prediction::Classification { classes, .. }) => {
                one_class(task, values).map(|class| {
                    let remedy = "a larger C, balanced class weights or other kernels may do better";
                    format!("{FLAT}all {rows} are predicted to be `{}`; {remedy}", classes[class])
                })
            }
            _ => None,
        };
        model.warnings.extend(found);
    }
}

/// Is every decision function of the fit a constant on its rows, in the units it was fitted in?
/// `alone` is what the model predicts, where this is its only decision function: then it is a
/// constant also where it takes all rows for one class.
pub(crate) fn is_constant(fit: &Fit, parts: &[Part<'_>], alone: Option<&Prediction>) -> bool {
    let still =
        |(own, part): (&FitPart, &Part<'_>)| little_spread(&own.fitted, part.task.y).is_some();
    let one_sided = |task: &Prediction| {
        one_class(task, &fit.parts.iter().map(|p| p.fitted.clone()).collect::<Vec<_>>())
    };
    fit.parts.iter().zip(parts).all(still) || alone.and_then(one_sided).is_some()
}

/// How little predictions vary, as a share of how much the target varies; `None` where they vary
/// enough. For a target that does not vary a constant is right.
fn little_spread(predicted: &[f64], y: &[f64]) -> Option<f64> {
    let share = deviation(predicted) / deviation(y);
    (share < SPREAD).then_some(share)
}

/// Finds the class that every row is predicted to be, if there is one.
fn one_class(task: &Prediction, values: &[Vec<f64>]) -> Option<usize> {
    let Prediction::Classification { classes, scheme } = task else { return None };
    if *scheme == Scheme::OneVsOne && classes.len() > 2 {
        // Pairs know the rows of their own classes alone: a class that wins all its pairs on all of
        // them wins everywhere.
        let pairs = Scheme::pairs(classes.len());
        let wins = |class: usize, ((low, high), values): (&(usize, usize), &Vec<f64>)| {
            (*low != class && *high != class)
                || values.iter().all(|d| (*d > 0.0) == (*high == class))
        };
        return (0..classes.len())
            .find(|&class| pairs.iter().zip(values).all(|pair| wins(class, pair)));
    }
    let rows = values.first().map_or(0, Vec::len);
    let mut decision = Matrix::zeros(rows, values.len());
    for (k, values) in values.iter().enumerate() {
        values.iter().enumerate().for_each(|(i, v)| decision[(i, k)] = *v);
    }
    let Target::Classes { labels, .. } = task.decide(&decision) else { return None };
    let first = *labels.first()?;
    labels.iter().all(|l| *l == first).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(classes: usize, scheme: Scheme) -> Prediction {
        Prediction::Classification {
            classes: (0..classes).map(|c| c.to_string()).collect(),
            scheme,
        }
    }

    #[test]
    fn one_class_is_seen_whatever_the_machines_say_of_it() {
        let two = task(2, Scheme::OneVsRest);
        assert_eq!(one_class(&two, &[vec![-0.1, -2.0, 0.0]]), Some(0));
        assert_eq!(one_class(&two, &[vec![-0.1, 2.0, 0.0]]), None);
        // Every machine may say no: the largest value wins, and here it is not always the same.
        let three = task(3, Scheme::OneVsRest);
        assert_eq!(
            one_class(&three, &[vec![-0.1, -2.0], vec![-0.2, -1.0], vec![-3.0, -3.0]]),
            None
        );
        assert_eq!(
            one_class(&three, &[vec![-0.1, -0.5], vec![-0.2, -1.0], vec![-3.0, -3.0]]),
            Some(0)
        );
        // Pairs (0, 1), (0, 2), (1, 2): class 1 wins both of its own.
        let pairs = task(3, Scheme::OneVsOne);
        assert_eq!(
            one_class(&pairs, &[vec![1.0, 2.0], vec![-1.0, 1.0], vec![-1.0, -1.0, -3.0]]),
            Some(1)
        );
        assert_eq!(
            one_class(&pairs, &[vec![1.0, 2.0], vec![-1.0, 1.0], vec![-1.0, 1.0, -3.0]]),
            None
        );
    }

    #[test]
    fn spread_is_measured_against_the_target() {
        assert!(little_spread(&[1.0, 1.001], &[0.0, 1.0]).is_some());
        assert!(little_spread(&[1.0, 1.1], &[0.0, 1.0]).is_none());
        assert!(little_spread(&[5.0, 5.0], &[5.0, 5.0]).is_none());
    }
}
