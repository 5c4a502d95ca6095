//! The certificate of saved rules, recomputed on their training rows.

use super::{
    FEASIBLE, SAME_DECISION, SAME_OBJECTIVE, Verification, multipliers, other_rows, wrong_words,
};
use crate::{
    Error, Model, Result,
    data::{Dataset, Target},
    linalg::Matrix,
    methods::vcmkl::{Instance, Margin, RuleSolution, Terms, negated, reassign, row_costs},
    model::{Certificate, FittedMachine, RuleSet},
    outer::larger,
    prepare::{MachineTask, Prepared},
    request::{RuleSolver, TrainSpec, VcmklSpec},
    trace::Status,
};

/// A reassignment that gains more than this share of J is an improvement; smaller ones are within
/// what the inner solver leaves open.
const GAIN: f64 = 1e-6;

impl Prepared {
    /// Recomputes J at the stored rules, checks their multipliers, and finds what reassigning the
    /// rejected rows would gain.
    pub(super) fn verify_rules(
        &self,
        spec: &TrainSpec,
        own: &VcmklSpec,
        model: &Model,
        data: &Dataset,
    ) -> Result<Verification> {
        let (Some(stored), Target::Classes { names, .. }) = (&model.rules, &self.samples.target)
        else {
            return Err(Error::data("model", "it has no rules", "fit it again"));
        };
        let negate = negated(own, names)?;
        let tasks = self.samples.machines(spec)?;
        if tasks.len() != stored.machines.len() {
            return Err(other_rows(format!(
                "{} machines, and the fit had {}",
                tasks.len(),
                stored.machines.len()
            )));
        }
        let values = model.rule_values(data)?.unwrap_or_else(|| Matrix::zeros(0, 0));
        let expected = self.samples.prediction(spec.multi_class);
        let mut checked = CheckedRules {
            prepared: self,
            own,
            cost_unit: spec.c,
            negate,
            findings: wrong_words(model, &expected, spec.tol),
            primal: 0.0,
            drift: 0.0,
            change: None,
        };
        let mut first = 0;
        for (task, set) in tasks.iter().zip(&stored.machines) {
            let machines = &model.machines[first..first + set.rules.len()];
            checked.check_machine(task, set, machines, &values, first)?;
            first += set.rules.len();
        }
        Ok(checked.verification(model.certificate()))
    }
}

/// What is known of the rules that were checked so far.
struct CheckedRules<'a> {
    prepared: &'a Prepared,
    own: &'a VcmklSpec,
    /// C, which multiplies the costs of all rows.
    cost_unit: f64,
    /// Do the rules agree on the first class?
    negate: bool,
    findings: Vec<String>,
    /// The sum of J over the machines.
    primal: f64,
    /// The largest difference between stored rules and those of the multipliers.
    drift: f64,
    /// The largest gain of a reassignment, where the solver makes them.
    change: Option<f64>,
}

impl CheckedRules<'_> {
    /// Checks the rules of one machine; `values` holds the rules' own values on the rows, from
    /// column `first` on.
    fn check_machine(
        &mut self,
        task: &MachineTask,
        set: &RuleSet,
        machines: &[FittedMachine],
        values: &Matrix,
        first: usize,
    ) -> Result<()> {
        let (prepared, own, rules) = (self.prepared, self.own, set.rules.len());
        if set.negate != self.negate {
            self.findings.push(format!(
                "{}: the rules agree on the other class than the request says",
                set.consensus
            ));
        }
        let sign = if self.negate { -1.0 } else { 1.0 };
        let y: Vec<f64> = task.y.iter().map(|y| sign * y).collect();
        let rows: Vec<usize> =
            task.rows.clone().unwrap_or_else(|| (0..prepared.samples.kept.len()).collect());
        let weights: Vec<f64> = rows.iter().map(|&i| prepared.samples.weights[i]).collect();
        let nu = own.nu_of(rules)?;
        let cost = row_costs(own, self.cost_unit, &y, &weights, &task.cost, nu.is_some());
        let terms = Terms { prepared, rows: task.rows.as_deref() };
        let kernels =
            terms.combine(&machines.iter().map(|m| m.weights.clone()).collect::<Vec<_>>())?;
        let instance =
            Instance::new(kernels.rules(), &y, cost, nu.map_or(Margin::Fixed, Margin::Nu))?;
        let mut alpha = Matrix::zeros(rows.len(), rules);
        for (m, machine) in machines.iter().enumerate() {
            let a = multipliers(machine, &prepared.samples.kept)?;
            rows.iter().enumerate().for_each(|(k, &i)| alpha[(k, m)] = y[k] * a[i]);
        }
        // `am` solves one rule at a time, each with the whole cost; `sgd` has no multipliers in
        // this sense.
        match own.solver {
            RuleSolver::Sgd => {}
            solver => self.findings.extend(infeasible(
                &instance,
                &alpha,
                solver == RuleSolver::Am,
                &set.consensus,
            )),
        }
        let bias = machines.iter().map(|m| m.intercept).collect();
        let margins = set.rules.iter().map(|r| r.margin).collect();
        let nothing = Matrix::zeros(instance.negatives.len(), rules);
        let solution = instance.inner(alpha, bias, margins, &nothing);
        for (k, &i) in rows.iter().enumerate() {
            for m in 0..rules {
                let size = 1.0 + solution.f[(k, m)].abs();
                self.drift =
                    larger(self.drift, (solution.f[(k, m)] - values[(i, first + m)]).abs() / size);
            }
        }
        self.check_objective(&instance, &solution, set)
    }

    /// Compares J with what is stated, and asks what reassigning the rejected rows would gain.
    fn check_objective(
        &mut self,
        instance: &Instance<'_>,
        solution: &RuleSolution,
        set: &RuleSet,
    ) -> Result<()> {
        let (name, solver) = (&set.consensus, self.own.solver);
        let objective = instance.learning_objective(solution);
        self.primal += objective;
        let stated = set.certificate.primal;
        let size = stated.abs().max(objective.abs()).max(f64::MIN_POSITIVE);
        let differs = (stated - objective).abs();
        // PDDP states P at its λ, which the file does not keep.
        if solver != RuleSolver::Pddp && (differs.is_nan() || differs > SAME_OBJECTIVE * size) {
            let told = format!(
                "{name}: the objective is {objective:.9e} on these rows, and {stated:.9e} is stated"
            );
            self.findings.push(told);
        }
        if matches!(solver, RuleSolver::Ccp | RuleSolver::Exact) {
            let next =
                instance.solve(&instance.hard(&reassign(instance, solution)), Some(solution))?;
            let gain = (objective - instance.learning_objective(&next)) / size;
            self.change = Some(larger(self.change.unwrap_or(0.0f64), gain));
            let rests = matches!(set.certificate.status, Status::Stationary | Status::Optimal);
            if rests && gain > GAIN {
                self.findings
                    .push(format!("{name}: reassigning the rejected rows would gain {gain:.1e}"));
            }
        }
        Ok(())
    }

    fn verification(self, stated: Certificate) -> Verification {
        let Self { mut findings, primal, drift, change, .. } = self;
        if drift.is_nan() || drift > SAME_DECISION {
            findings.push(format!(
                "the stored rules differ from those of the multipliers by {drift:.1e}"
            ));
        }
        let (recomputed, agrees) = (Certificate { primal, ..stated }, findings.is_empty());
        Verification { stated, recomputed, proven: None, drift, change, findings, agrees }
    }
}

/// Says in words which multipliers are outside α ≥ 0, Σ_m α_im ≤ c_i (α_im ≤ c_i where rules stand
/// `apart`), yᵀα_m = 0.
fn infeasible(instance: &Instance<'_>, alpha: &Matrix, apart: bool, name: &str) -> Option<String> {
    for i in 0..alpha.rows() {
        let (row, cost) = (alpha.row(i), instance.cost[i]);
        let used =
            if apart { row.iter().copied().fold(0.0, f64::max) } else { row.iter().sum::<f64>() };
        let inside = row.iter().all(|a| *a >= -1e-6 * cost) && used <= cost * (1.0 + 1e-6);
        if !inside {
            return Some(format!(
                "{name}: the multipliers of row {} are outside their bounds",
                i + 1
            ));
        }
    }
    for m in 0..alpha.cols() {
        let of = |rows: &[usize]| rows.iter().map(|&i| alpha[(i, m)]).sum::<f64>();
        let (plus, minus) = (of(&instance.positives), of(&instance.negatives));
        // The interior-point method meets its equalities to its accuracy.
        if (plus - minus).abs() > FEASIBLE.sqrt() * (plus + minus).max(f64::MIN_POSITIVE) {
            return Some(format!(
                "{name}: the multipliers of rule {} add up to {:.1e}, not to 0",
                m + 1,
                plus - minus
            ));
        }
    }
    None
}
