//! A stored solution put back on its training rows: both bounds, and what does not hold.

use super::{
    FEASIBLE, SAME_DECISION, SAME_OBJECTIVE, Verification, multipliers, other_rows, places::Places,
    wrong_words,
};
use crate::{
    Error, Model, Result,
    data::Dataset,
    gram::GramSource,
    kernels::Indefinite,
    linalg::{Matrix, dot},
    machine::Task,
    methods::relative_change,
    model::{Certificate, Prediction},
    outer::{Memory, Slack, again, larger, times},
    prepare::Prepared,
    request::{MethodSpec, TrainSpec},
    trace::{Status, relative_gap},
};

/// A machine at fixed gates whose gap is below this, relative to its objective, was solved.
const SAME_MACHINE: f64 = 1e-5;
/// Weights that would move by less than this are at rest whatever the tolerance: the accuracy of a
/// machine moves them as much.
const AT_REST: f64 = 2e-6;

/// The stored solution on these rows.
pub(super) struct Checked<'a> {
    spec: &'a TrainSpec,
    /// Of each machine.
    parts: Vec<CheckedPart>,
    /// Do machines share their weights?
    shared: bool,
    /// Objective of the best constants: the scale of relative quantities.
    scale: f64,
    findings: Vec<String>,
    /// Was the diagonal of a ready-made matrix shifted?
    shifted: bool,
    /// Number of regions, 1 for global weights.
    regions: usize,
    /// What targets were divided by before they were fitted: the numbers below are those of that
    /// problem.
    unit: f64,
    /// Where gates are learned: max |∂V/∂z| over V.
    slope: Option<f64>,
    /// What the request and the answers make the model predict.
    expected: Prediction,
}

struct CheckedPart {
    /// θ as the method saw it: of groups, where kernels share weights.
    theta: Vec<f64>,
    /// a, of the rows the machine sees.
    multipliers: Vec<f64>,
    /// K_θ a + b, all rows.
    decision: Vec<f64>,
    /// Σ c ℓ.
    loss: f64,
    /// ½ aᵀ K_θ a.
    half_norm: f64,
    /// A(a); −∞ where a is not feasible.
    dual_sum: f64,
    /// s.
    quad_forms: Vec<f64>,
    /// ½ (s + residual ‖a‖²).
    slope: Vec<f64>,
    /// What rounding may have done to the bounds.
    slack: Slack,
}

impl<'a> Checked<'a> {
    pub fn new(
        prepared: &Prepared,
        spec: &'a TrainSpec,
        model: &Model,
        data: &Dataset,
    ) -> Result<Self> {
        let fitting = prepared.samples.fitting(spec)?;
        let tasks = prepared.samples.machines(spec)?;
        if tasks.len() != model.machines.len() {
            return Err(other_rows(format!(
                "{} machines, and the fit had {}",
                tasks.len(),
                model.machines.len()
            )));
        }
        let grouped = prepared.groups(spec)?;
        let grams: &dyn GramSource = grouped.as_ref().map_or(&prepared.grams, |g| g);
        let (parts, shared) = (Vec::new(), model.shared.is_some());
        let shifted = spec.indefinite == Indefinite::Shift && prepared.grams.was_repaired();
        let regions = regions(model);
        let (unit, expected) =
            (prepared.samples.unit(spec), prepared.samples.prediction(spec.multi_class));
        let (scale, slope, findings) = (0.0, None, Vec::new());
        let mut checked =
            Self { spec, parts, shared, scale, findings, shifted, regions, unit, slope, expected };
        let places = Places::of(spec, model, data)?;
        let mut gradients: Vec<Matrix> = Vec::new();
        for ((task, machine), name) in tasks.iter().zip(&model.machines).zip(model.machine_names())
        {
            let mut a = multipliers(machine, &prepared.samples.kept)?;
            a.iter_mut().for_each(|a| *a /= unit);
            let rows: Vec<usize> = task.rows.clone().unwrap_or_else(|| (0..a.len()).collect());
            let fitted = task.part(&fitting, spec).task;
            checked.scale += fitted.constant_objective();
            let k = checked.parts.len();
            let local =
                places.as_ref().map(|p| p.grams(grams, &prepared.grams, k, prepared.budget_left()));
            let grams: &dyn GramSource = local.as_ref().map_or(grams, |l| l);
            let theta = match (&grouped, &places) {
                (_, Some(places)) if places.paired => Some(vec![1.0; grams.n_terms()]),
                (None, _) => Some(machine.weights.clone()),
                (Some(groups), _) => {
                    let chunks = machine.weights.chunks(prepared.grams.n_terms());
                    chunks
                        .map(|w| groups.contract(w))
                        .collect::<Option<Vec<_>>>()
                        .map(|parts| parts.concat())
                }
            };
            let Some(theta) = theta else {
                return Err(Error::data(
                    "model",
                    "kernels that share a weight have different ones",
                    "fit it again",
                ));
            };
            let weighed = match &places {
                Some(places) if places.paired => places.wrong_weights(spec, machine, k),
                _ => infeasible_weights(&spec.method, regions, &theta)?,
            };
            checked.findings.extend(weighed.map(|f| format!("{name}: {f}")));
            checked
                .findings
                .extend(infeasible_multipliers(&fitted, &a, &rows).map(|f| format!("{name}: {f}")));
            let part = CheckedPart::new(grams, theta, machine.intercept / unit, &fitted, &a, &rows);
            if let Some(places) = places.as_ref().filter(|p| p.paired) {
                let own = places.gate_gradient(&prepared.grams, k, &a);
                match gradients.first_mut().filter(|_| shared) {
                    Some(sum) => {
                        sum.data_mut().iter_mut().zip(own.data()).for_each(|(s, o)| *s += o);
                    }
                    None => gradients.push(own),
                }
                checked.check_gate(&part, &name);
            }
            checked.parts.push(part);
        }
        if let Some(places) = places.as_ref().filter(|p| p.paired) {
            let of_gate = |(k, by_gate): (usize, &Matrix)| places.slope(prepared, spec, k, by_gate);
            let slopes = gradients.iter().enumerate().map(of_gate).collect::<Result<Vec<f64>>>()?;
            let value: f64 = checked.parts.iter().map(|p| p.loss + p.half_norm).sum();
            let steepest = slopes.into_iter().fold(0.0, larger);
            checked.slope = Some(steepest / value.abs().max(f64::MIN_POSITIVE));
        }
        Ok(checked)
    }

    /// Says so where a machine was not solved at its gates.
    fn check_gate(&mut self, part: &CheckedPart, name: &str) {
        let open = part.loss + part.half_norm - (part.dual_sum - dot(&part.theta, &part.slope));
        let size = (part.loss + part.half_norm).abs().max(1e-12 * self.scale);
        if open.is_nan() || open > SAME_MACHINE * size {
            let gap = open / size;
            self.findings.push(format!(
                "{name}: at its gates the multipliers prove no more than a gap of {gap:.1e}"
            ));
        }
    }

    pub fn verification(mut self, model: &Model, decision: &Matrix) -> Result<Verification> {
        let stated = model.certificate();
        self.findings.extend(wrong_words(model, &self.expected, self.spec.tol));
        let drift = self.drift(decision);
        let slack = |of: fn(&Slack) -> f64| self.parts.iter().map(|p| of(&p.slack)).sum::<f64>();
        let rounding = slack(|s| s.upper);
        let mut primal = self.sum(Self::objective)?;
        let mut dual = self.sum(Self::lower_bound)?;
        if !dual.is_nan() {
            (primal, dual) = (primal + rounding, dual - slack(|s| s.lower));
        }
        let gap = if dual.is_nan() { f64::NAN } else { relative_gap(primal, dual) };
        let recomputed = Certificate { primal, dual, gap, ..stated };
        let size = stated.primal.abs().max(primal.abs()).max(1e-12 * self.scale);
        let differs = (stated.primal - primal).abs();
        if differs.is_nan() || differs > SAME_OBJECTIVE * size + 2.0 * rounding {
            self.findings.push(format!(
                "the objective is {primal:.9e} on these rows, and {:.9e} is stated",
                stated.primal
            ));
        }
        for (name, bound) in [("recomputed", dual), ("stated", stated.dual)] {
            if bound > primal + SAME_OBJECTIVE * size + rounding {
                self.findings.push(format!(
                    "the {name} lower bound {bound:.9e} lies above the objective {primal:.9e}"
                ));
            }
        }
        // A shift of the diagonal knows training rows alone: their stored decision values leave it
        // out.
        if !self.shifted && (drift.is_nan() || drift > SAME_DECISION) {
            self.findings.push(format!(
                "the stored decision functions differ from the certified ones by {drift:.1e}"
            ));
        }
        let change = self.slope.map_or_else(|| self.change(), |slope| Ok(Some(slope)))?;
        let at_rest = self.spec.tol.max(AT_REST);
        // Where V has a kink one gradient does not vanish: it is reported, and proves nothing
        // against the fit.
        let moves = |c: &f64| {
            stated.status == Status::Stationary
                && self.slope.is_none()
                && *c > at_rest * (1.0 + 1e-6)
        };
        if let Some(change) = change.filter(moves) {
            self.findings.push(format!(
                "the weights are not at rest: a step would change them by {change:.1e}"
            ));
        }
        let (agrees, findings) = (self.findings.is_empty(), self.findings);
        Ok(Verification { stated, recomputed, proven: None, drift, change, findings, agrees })
    }

    /// Where a run that continues the fit starts.
    pub fn memories(&self) -> Vec<Memory> {
        let memory = |parts: &[CheckedPart]| Memory {
            theta: Some(parts[0].theta.clone()),
            duals: Some(parts.iter().map(|p| p.multipliers.clone()).collect()),
            ..Memory::default()
        };
        self.parts.chunks(self.together()).map(memory).collect()
    }

    /// Σ of `f` over what was fitted together.
    fn sum(&self, f: impl Fn(&Self, &[CheckedPart]) -> Result<f64>) -> Result<f64> {
        self.parts.chunks(self.together()).map(|parts| f(self, parts)).sum()
    }

    fn together(&self) -> usize {
        if self.shared { self.parts.len() } else { 1 }
    }

    /// Σ c ℓ + ½ aᵀK_θ a, or Σ c ℓ + g(r) where weights are penalised instead of constrained.
    fn objective(&self, parts: &[CheckedPart]) -> Result<f64> {
        let loss: f64 = parts.iter().map(|p| p.loss).sum();
        Ok(match self.spec.method.penalty()? {
            Some(penalty) => loss + penalty.value(&sq_norms(parts)),
            None => loss + parts.iter().map(|p| p.half_norm).sum::<f64>(),
        })
    }

    /// What the next step of majorise–minimise would change; nothing where no kernel is left.
    fn change(&self) -> Result<Option<f64>> {
        let Some(penalty) = self.spec.method.penalty()? else { return Ok(None) };
        let of = |parts: &[CheckedPart]| {
            let theta = &parts[0].theta;
            let next = penalty.advance(&sq_norms(parts), theta, false);
            if theta.iter().all(|t| *t == 0.0) { 0.0 } else { relative_change(&next, theta) }
        };
        Ok(Some(self.parts.chunks(self.together()).map(of).fold(0.0, larger)))
    }

    /// A(a) − ½·support(s).
    fn lower_bound(&self, parts: &[CheckedPart]) -> Result<f64> {
        let theta = &parts[0].theta;
        let slope: Vec<f64> =
            (0..theta.len()).map(|t| parts.iter().map(|p| p.slope[t]).sum()).collect();
        let dual_sum: f64 = parts.iter().map(|p| p.dual_sum).sum();
        if self.slope.is_some() || self.spec.method.penalty()?.is_some() {
            return Ok(f64::NAN);
        }
        Ok(match self.spec.method.weight_set(self.regions)? {
            Some(set) => dual_sum - set.support(&slope),
            None => dual_sum - dot(theta, &slope),
        })
    }

    fn drift(&self, stored: &Matrix) -> f64 {
        let largest =
            self.parts.iter().flat_map(|p| &p.decision).fold(1.0, |m: f64, d| larger(m, d.abs()));
        let differences = self.parts.iter().enumerate().flat_map(|(k, part)| {
            part.decision
                .iter()
                .enumerate()
                .map(move |(i, d)| (d - stored[(i, k)] / self.unit).abs())
        });
        differences.fold(0.0, larger) / largest
    }
}

impl CheckedPart {
    fn new(
        grams: &dyn GramSource,
        theta: Vec<f64>,
        bias: f64,
        task: &Task<'_>,
        a: &[f64],
        rows: &[usize],
    ) -> Self {
        let f = times(grams, &theta, a);
        let pick = |v: &[f64]| rows.iter().map(|&i| v[i]).collect::<Vec<f64>>();
        let (own_f, own_a) = (pick(&f), pick(a));
        let feasible = infeasible_multipliers(task, a, rows).is_none();
        let quad_forms = grams.quad_forms(a);
        let square = dot(a, a);
        Self {
            loss: task.loss.total(task.y, &own_f, bias, task.cost),
            half_norm: 0.5 * dot(&own_a, &own_f),
            dual_sum: if feasible {
                task.loss.dual_sum(task.y, &own_a, task.cost)
            } else {
                f64::NEG_INFINITY
            },
            slope: quad_forms
                .iter()
                .enumerate()
                .map(|(t, s)| 0.5 * (s + grams.residual(t) * square))
                .collect(),
            quad_forms,
            slack: Slack::of_sums(task, (&own_a, &own_f, bias), &pick(&again(grams, &theta, a))),
            decision: f.iter().map(|f| f + bias).collect(),
            theta,
            multipliers: own_a,
        }
    }
}

/// r = θ² s.
fn sq_norms(parts: &[CheckedPart]) -> Vec<f64> {
    let theta = &parts[0].theta;
    (0..theta.len())
        .map(|t| theta[t] * theta[t] * parts.iter().map(|p| p.quad_forms[t]).sum::<f64>())
        .collect()
}

/// Regions with weights of their own; 1 where weights are global or every kernel has a gate.
pub(super) fn regions(model: &Model) -> usize {
    model.localized.as_ref().filter(|l| !l.gating(0).is_paired()).map_or(1, |l| l.gating(0).regions)
}

fn infeasible_weights(
    method: &MethodSpec,
    regions: usize,
    theta: &[f64],
) -> Result<Option<String>> {
    if let Some(t) = theta.iter().position(|t| !t.is_finite() || *t < 0.0) {
        return Ok(Some(format!("the weight of kernel {} is {}", t + 1, theta[t])));
    }
    let load = method.weight_set(regions)?.map_or(0.0, |set| set.load(theta));
    if load > 1.0 + FEASIBLE {
        return Ok(Some(format!("the weights fill {load:.9} of their constraint")));
    }
    Ok(method.method().wrong_weights(theta))
}

fn infeasible_multipliers(task: &Task<'_>, a: &[f64], rows: &[usize]) -> Option<String> {
    let outside = |k: &usize| {
        let (low, high) = task.loss.dual_interval(task.y[*k]);
        let share = a[rows[*k]] / task.cost[*k];
        share.is_nan() || share < low - FEASIBLE || share > high + FEASIBLE
    };
    if let Some(k) = (0..rows.len()).find(outside) {
        return Some(format!("the multiplier of row {} is outside its bounds", rows[k] + 1));
    }
    if a.iter().enumerate().any(|(i, a)| *a != 0.0 && rows.binary_search(&i).is_err()) {
        return Some("a row of another class has a multiplier".into());
    }
    let (sum, size) = (a.iter().sum::<f64>(), a.iter().map(|a| a.abs()).sum::<f64>());
    (task.intercept && sum.abs() > FEASIBLE * size)
        .then(|| format!("the multipliers add up to {sum:.1e}, not to 0"))
}
