//! The training samples as machines see them: checked, weighted, split into tasks.

use crate::{
    Error, Result, Told,
    data::Target,
    machine::Fitting,
    model::Prediction,
    request::{ClassWeight, LossName, Scheme, TrainSpec},
    trace::Observer,
};

/// The training rows that have a weight; rows with weight 0 are gone.
pub(crate) struct Samples {
    /// The positions of the rows in the data that the user gave.
    pub kept: Vec<usize>,
    pub target: Target,
    pub weights: Vec<f64>,
}

impl Samples {
    pub fn new(n: usize, target: &Target, sample_weight: Option<&[f64]>) -> Result<Self> {
        if target.len() != n {
            return Err(Error::shape("target", format!("{n} values, one per row"), target.len()));
        }
        let weights = match sample_weight {
            None => vec![1.0; n],
            Some(w) if w.len() != n => {
                return Err(Error::shape(
                    "sample weights",
                    format!("{n} values, one per row"),
                    w.len(),
                ));
            }
            Some(w) => w.to_vec(),
        };
        if let Some(i) = weights.iter().position(|w| !w.is_finite() || *w < 0.0) {
            let problem = Told::row(i, format!("has the weight {}", weights[i]));
            return Err(Error::data(
                "sample_weight",
                problem,
                "weights must be finite and not negative",
            ));
        }
        let kept: Vec<usize> = (0..n).filter(|&i| weights[i] > 0.0).collect();
        if kept.is_empty() {
            return Err(Error::param(
                "sample_weight",
                "positive for at least one row",
                "zero for all",
            ));
        }
        let target = target.select(&kept);
        match &target {
            Target::Values(values) => {
                if let Some(i) = values.iter().position(|v| !v.is_finite()) {
                    return Err(Error::data(
                        "target",
                        Told::row(kept[i], format!("is {}", values[i])),
                        "NaN and infinity are not accepted: drop the row",
                    ));
                }
            }
            Target::Classes { names, labels } => {
                if let Some(i) = labels.iter().position(|&l| l >= names.len()) {
                    return Err(Error::shape(
                        "class labels",
                        format!("indices below {}", names.len()),
                        labels[i],
                    ));
                }
                let present = (0..names.len()).filter(|c| labels.contains(c)).count();
                if present < 2 || present < names.len() {
                    let missing = (0..names.len())
                        .find(|c| !labels.contains(c))
                        .map_or("", |c| names[c].as_str());
                    let problem = if present < 2 {
                        format!(
                            "only one class, `{}`, occurs",
                            labels.first().map_or("", |&l| names[l].as_str())
                        )
                    } else {
                        format!("class `{missing}` has no row with a positive weight")
                    };
                    return Err(Error::data(
                        "target",
                        problem,
                        "a classifier needs rows of at least two classes, and of every class named",
                    ));
                }
            }
        }
        Ok(Self { weights: kept.iter().map(|&i| weights[i]).collect(), kept, target })
    }

    /// The number that a regression's target is divided by before it is fitted: its deviation over
    /// the rows, each counted once. It is 1 for classes, for values that are all equal, and where
    /// the request asks for the problem in the target's own units.
    pub fn unit(&self, spec: &TrainSpec) -> f64 {
        let Target::Values(y) = &self.target else { return 1.0 };
        let deviation = deviation(y);
        let largest = y.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
        // Equal values have a deviation of rounding errors.
        let varies = deviation.is_finite() && deviation > 4.0 * f64::EPSILON * largest;
        if spec.scale_target && varies { deviation } else { 1.0 }
    }

    /// The loss that the request asks for, with its parameters in the units that are fitted.
    pub fn fitting(&self, spec: &TrainSpec) -> Result<Fitting> {
        let (suits, default, what): (fn(LossName) -> bool, _, _) = match &self.target {
            Target::Classes { .. } => (LossName::suits_classes, LossName::Hinge, "classes"),
            Target::Values(_) => (LossName::suits_values, LossName::EpsilonInsensitive, "values"),
        };
        let name = spec.loss.unwrap_or(default);
        if !suits(name) {
            let known: Vec<&str> =
                LossName::ALL.into_iter().filter(|l| suits(*l)).map(LossName::as_str).collect();
            let (last, others) = known.split_last().unwrap_or((&"", &[]));
            return Err(Error::param(
                "loss",
                format!("{} or {last} for {what}", others.join(", ")),
                name.as_str(),
            ));
        }
        let Target::Values(y) = &self.target else { return Fitting::new(name, 0.0) };
        let epsilon = epsilon(name, spec, y).unwrap_or(0.0);
        // The number given is checked before it is scaled, so that a message shows it as it was
        // typed.
        Fitting::new(name, epsilon)?;
        Fitting::new(name, epsilon / self.unit(spec))
    }

    fn class_factors(&self, class_weight: &ClassWeight) -> Result<Vec<f64>> {
        let Target::Classes { names, labels } = &self.target else {
            return match class_weight {
                ClassWeight::None => Ok(vec![1.0; self.weights.len()]),
                _ => Err(Error::param(
                    "class_weight",
                    "left out for regression",
                    "a weighting of classes",
                )),
            };
        };
        let factors: Vec<f64> = match class_weight {
            ClassWeight::None => vec![1.0; names.len()],
            ClassWeight::Balanced => {
                let count = |c: usize| labels.iter().filter(|&&l| l == c).count();
                (0..names.len())
                    .map(|c| labels.len() as f64 / (names.len() * count(c)) as f64)
                    .collect()
            }
            ClassWeight::Given(pairs) => {
                if let Some((unknown, _)) = pairs.iter().find(|(class, _)| !names.contains(class)) {
                    return Err(Error::param(
                        "class_weight",
                        format!("keyed by the classes {}", names.join(", ")),
                        unknown,
                    ));
                }
                let factor = |name: &String| {
                    pairs.iter().find(|(class, _)| class == name).map_or(1.0, |(_, w)| *w)
                };
                names.iter().map(factor).collect()
            }
        };
        Ok(labels.iter().map(|&l| factors[l]).collect())
    }

    /// Targets, costs and rows of every machine: one machine for values and for two classes
    /// (positive = the second), else by scheme.
    pub fn machines(&self, spec: &TrainSpec) -> Result<Vec<MachineTask>> {
        let factors = self.class_factors(&spec.class_weight)?;
        let cost: Vec<f64> =
            self.weights.iter().zip(&factors).map(|(w, c)| spec.c * w * c).collect();
        let (names, labels) = match &self.target {
            Target::Values(y) => {
                let unit = self.unit(spec);
                return Ok(vec![MachineTask {
                    y: y.iter().map(|y| y / unit).collect(),
                    cost,
                    rows: None,
                }]);
            }
            Target::Classes { names, labels } => (names, labels),
        };
        let sign = |l: usize, positive: usize| if l == positive { 1.0 } else { -1.0 };
        let against_rest = |positive: usize| MachineTask {
            y: labels.iter().map(|&l| sign(l, positive)).collect(),
            cost: cost.clone(),
            rows: None,
        };
        Ok(match (names.len(), spec.multi_class) {
            (2, _) => vec![against_rest(1)],
            (k, Scheme::OneVsRest) => (0..k).map(against_rest).collect(),
            (k, Scheme::OneVsOne) => Scheme::pairs(k)
                .into_iter()
                .map(|(low, high)| {
                    let rows: Vec<usize> = (0..labels.len())
                        .filter(|&i| labels[i] == low || labels[i] == high)
                        .collect();
                    MachineTask {
                        y: rows.iter().map(|&i| sign(labels[i], high)).collect(),
                        cost: rows.iter().map(|&i| cost[i]).collect(),
                        rows: Some(rows),
                    }
                })
                .collect(),
        })
    }

    /// Takes the samples `index`, counted among the kept ones.
    pub fn select(&self, index: &[usize]) -> Self {
        Self {
            kept: index.iter().map(|&i| self.kept[i]).collect(),
            target: self.target.select(index),
            weights: index.iter().map(|&i| self.weights[i]).collect(),
        }
    }

    /// Tells the observer that machine `k` begins, where several have weights of their own.
    pub fn announce(&self, k: usize, spec: &TrainSpec, observer: &mut dyn Observer) {
        let names = self.prediction(spec.multi_class).machine_names();
        if let (true, Some(name)) = (names.len() > 1 && !spec.shared_weights, names.get(k)) {
            observer.on_machine(k, name);
        }
    }

    pub fn prediction(&self, scheme: Scheme) -> Prediction {
        match &self.target {
            Target::Values(_) => Prediction::Regression,
            Target::Classes { names, .. } => {
                Prediction::Classification { classes: names.clone(), scheme }
            }
        }
    }
}

/// Targets, costs and rows that one machine is fitted to.
pub(crate) struct MachineTask {
    pub y: Vec<f64>,
    pub cost: Vec<f64>,
    /// The rows that the machine sees; `None` means all.
    pub rows: Option<Vec<usize>>,
}

/// The parameter ε of a loss in the target's own units: what was asked for, else the loss's
/// default; `None` for a loss that does not read it.
pub(crate) fn epsilon(loss: LossName, spec: &TrainSpec, y: &[f64]) -> Option<f64> {
    let default = loss.default_epsilon(deviation(y))?;
    Some(spec.epsilon.unwrap_or(default))
}

/// The population standard deviation. Differences are squared after division by the largest, so
/// that no square overflows or vanishes.
pub(crate) fn deviation(y: &[f64]) -> f64 {
    let n = y.len() as f64;
    let mean = y.iter().map(|v| v / n).sum::<f64>();
    let largest = y.iter().fold(0.0, |m: f64, v| m.max((v - mean).abs()));
    if largest == 0.0 {
        return 0.0;
    }
    largest * (y.iter().map(|v| ((v - mean) / largest).powi(2)).sum::<f64>() / n).sqrt()
}
