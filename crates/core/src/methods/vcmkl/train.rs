//! From prepared kernel terms to a model of rules.

use super::{
    Effort, FoundRules, Instance, Margin, RuleSolution, am, ccp, descend, exact, pddp, rule_count,
    sgd, solvers::owners_of,
};
use crate::{
    Error, Model, Result,
    data::Target,
    gram::{Gram, GramSource},
    linalg::Matrix,
    methods::Method,
    model::{Certificate, Fit, FitPart, Rule, RuleSet, Rules, Share},
    outer::{Memory, Recorder},
    prepare::{Job, MachineTask, Prepared},
    request::{MethodSpec, RuleCount, RuleSolver, Scheme, TrainSpec, VcmklSpec},
    trace::{IterRecord, Observer, relative_gap},
    weights::{LpBall, WeightSet},
};

/// Multipliers below this share of their bound are zeros.
const ZERO: f64 = 1e-9;
/// Multipliers above this share are at their bound.
const FULL: f64 = 1.0 - 1e-6;

impl Method for VcmklSpec {
    fn fit(
        &self,
        job: &Job<'_>,
        _: &mut Vec<Memory>,
        observer: &mut dyn Observer,
    ) -> Result<Model> {
        let prepared = job.prepared;
        let Target::Classes { names, .. } = &prepared.samples.target else {
            return Err(Error::param("method", "one for values: vcmkl needs classes", "vcmkl"));
        };
        let (rules, cut) = match self.n_rules {
            RuleCount::Fixed(rules) => (rules, false),
            RuleCount::Chosen(_) => rule_count::choose(self, job, observer)?,
        };
        let negate = negated(self, names)?;
        let (mut fits, mut sets, mut warnings) = (Vec::new(), Vec::new(), Vec::new());
        for (k, task) in job.tasks.iter().enumerate() {
            let consensus = match (names.len(), job.request.multi_class) {
                (2, _) => names[usize::from(!negate)].clone(),
                (_, Scheme::OneVsRest) => names[k].clone(),
                (n, Scheme::OneVsOne) => names[Scheme::pairs(n)[k].1].clone(),
            };
            job.announce(k, observer);
            let machine = prepared.fit_machine(job.request, self, task, rules, negate, observer)?;
            let told = |w: &String| {
                if job.tasks.len() > 1 { format!("{consensus}: {w}") } else { w.clone() }
            };
            warnings.extend(machine.warnings.iter().map(told));
            let (certificate, qp_calls, positive) =
                (machine.certificate, machine.qp_calls, machine.positive);
            sets.push(RuleSet {
                negate,
                consensus,
                rules: machine.rules,
                positive,
                qp_calls,
                certificate,
            });
            fits.extend(machine.fits);
        }
        let method =
            MethodSpec::Vcmkl(VcmklSpec { n_rules: RuleCount::Fixed(rules), ..self.clone() });
        let filled = TrainSpec { method, ..job.request.clone() };
        let mut model = prepared.assemble_fits(&fits, &filled, job.fitting)?;
        let mut rest = fits.as_slice();
        let values: Vec<Vec<f64>> = sets
            .iter()
            .map(|set| {
                let (own, later) = rest.split_at(set.rules.len());
                rest = later;
                lowest(own, set.negate)
            })
            .collect();
        model.rules = Some(Rules { machines: sets });
        model.warnings.extend(warnings);
        prepared.tell_if_flat(&mut model, &values);
        if cut {
            model.note_stopped("the search for the number of rules");
        }
        Ok(model)
    }
}

impl Prepared {
    fn fit_machine(
        &self,
        spec: &TrainSpec,
        own: &VcmklSpec,
        task: &MachineTask,
        rules: usize,
        negate: bool,
        observer: &mut dyn Observer,
    ) -> Result<RuleMachine> {
        let sign = if negate { -1.0 } else { 1.0 };
        let y: Vec<f64> = task.y.iter().map(|y| sign * y).collect();
        let weights: Vec<f64> = match &task.rows {
            None => self.samples.weights.clone(),
            Some(rows) => rows.iter().map(|&i| self.samples.weights[i]).collect(),
        };
        let nu = own.nu_of(rules)?;
        let cost = row_costs(own, spec.c, &y, &weights, &task.cost, nu.is_some());
        let effort =
            Effort { starts: own.n_init, seed: own.seed, tol: spec.tol, max_iter: spec.max_iter };
        let mut theta = own.rule_weights(rules, self.grams.n_terms());
        let margin = nu.map_or(Margin::Fixed, Margin::Nu);
        let mut recorder = Recorder::new(observer);
        let terms = Terms { prepared: self, rows: task.rows.as_deref() };
        let mut kernels = terms.combine(&theta)?;
        let mut found = {
            let instance = Instance::new(kernels.rules(), &y, cost.clone(), margin.clone())?;
            match own.solver {
                RuleSolver::Ccp => ccp(&instance, effort, &mut recorder)?,
                RuleSolver::Am => am(&instance, effort, &mut recorder)?,
                RuleSolver::Sgd => sgd(&instance, effort, &mut recorder)?,
                RuleSolver::Pddp => pddp(&instance, own.objective, effort, &mut recorder)?,
                RuleSolver::Exact => exact(&instance, effort, &mut recorder)?,
            }
        };
        if let Some(p) = own.p {
            let set = LpBall::new(p)?;
            for _ in 0..effort.max_iter {
                let next: Vec<Vec<f64>> = (0..rules)
                    .map(|m| terms.respond(set, &theta[m], &y, &found.inner, m))
                    .collect();
                let combined = terms.combine(&next)?;
                let instance = Instance::new(combined.rules(), &y, cost.clone(), margin.clone())?;
                let better = descend(
                    &instance,
                    owners_of(&found.lambda),
                    effort,
                    Some(found.objective),
                    &mut recorder,
                )?;
                let gain = found.objective - better.objective;
                if gain <= 0.1 * effort.tol * found.objective.abs() || recorder.stopped {
                    break;
                }
                let calls = found.qp_calls + better.qp_calls;
                (theta, kernels, found) =
                    (next, combined, FoundRules { qp_calls: calls, ..better });
            }
        }
        let instance = Instance::new(kernels.rules(), &y, cost, margin)?;
        Ok(terms.machine(&instance, own.solver, found, &theta, recorder.trace))
    }
}

/// What the rules of one machine decide on the rows they were fitted to: g = min f_m, or −g.
fn lowest(rules: &[Fit], negate: bool) -> Vec<f64> {
    let sign = if negate { -1.0 } else { 1.0 };
    let values = |fit: &Fit| fit.parts[0].fitted.clone();
    let smaller = |a: Vec<f64>, b: Vec<f64>| a.iter().zip(&b).map(|(a, b)| a.min(*b)).collect();
    let g = rules.iter().map(values).reduce(smaller).unwrap_or_default();
    g.into_iter().map(|g| sign * g).collect()
}

/// The rules of one machine, fitted.
struct RuleMachine {
    fits: Vec<Fit>,
    warnings: Vec<String>,
    rules: Vec<Rule>,
    positive: Share,
    qp_calls: usize,
    certificate: Certificate,
}

/// Do the rules agree on the first of two classes?
pub(crate) fn negated(own: &VcmklSpec, names: &[String]) -> Result<bool> {
    match (&own.consensus, names.len()) {
        (None, _) => Ok(false),
        (Some(class), 2) => {
            names.iter().position(|n| n == class).map(|at| at == 0).ok_or_else(|| {
                Error::param("consensus", format!("one of the classes {}", names.join(", ")), class)
            })
        }
        (Some(class), _) => Err(Error::param(
            "consensus",
            "left out for more than two classes: each is the consensus in its turn",
            class,
        )),
    }
}

/// The cost of every row: 2 C γ or 2 C (1 − γ) times its weights, so that γ = ½ means the cost C;
/// with ν the same without C, over the sum of weights.
pub(crate) fn row_costs(
    own: &VcmklSpec,
    c: f64,
    y: &[f64],
    weights: &[f64],
    cost: &[f64],
    nu: bool,
) -> Vec<f64> {
    let sum = |positive: bool| {
        y.iter().zip(weights).filter(|(y, _)| (**y > 0.0) == positive).map(|(_, w)| w).sum::<f64>()
    };
    let (plus, minus) = (sum(true), own.cost_ratio.recip() * sum(false));
    let gamma = own.gamma.unwrap_or(minus / (minus + plus));
    let unit = if nu { 1.0 / (c * weights.iter().sum::<f64>()) } else { 2.0 };
    let share = |y: f64| if y > 0.0 { gamma } else { 1.0 - gamma };
    y.iter().zip(cost).map(|(&y, cost)| unit * share(y) * cost).collect()
}

/// Kernel terms on the rows of one machine.
pub(crate) struct Terms<'a> {
    pub prepared: &'a Prepared,
    pub rows: Option<&'a [usize]>,
}

/// Combined kernels; rules with the same weights share one.
pub(crate) struct RuleKernels {
    grams: Vec<Gram>,
    of_rule: Vec<usize>,
}

impl RuleKernels {
    pub fn rules(&self) -> Vec<&Gram> {
        self.of_rule.iter().map(|&g| &self.grams[g]).collect()
    }
}

impl Terms<'_> {
    pub fn combine(&self, theta: &[Vec<f64>]) -> Result<RuleKernels> {
        let mut distinct: Vec<&Vec<f64>> = Vec::new();
        let mut of_rule = Vec::new();
        for own in theta {
            let at = distinct.iter().position(|d| *d == own).unwrap_or_else(|| {
                distinct.push(own);
                distinct.len() - 1
            });
            of_rule.push(at);
        }
        let grams = &self.prepared.grams;
        let n = grams.n_samples() as u64;
        let room = self.prepared.budget_left();
        let what =
            format!("{} kernel matrices of {n} samples, one per distinct rule", distinct.len());
        room.check(
            what,
            8 * n * n * distinct.len() as u64,
            "raise the budget, or use fewer rows or one kernel for all rules",
        )?;
        let combine = |own: &&Vec<f64>| {
            let gram = grams.combine(own);
            self.rows.map_or_else(|| gram.clone(), |rows| gram.select(rows))
        };
        Ok(RuleKernels { grams: distinct.iter().map(combine).collect(), of_rule })
    }

    /// Signed multipliers of rule m over all rows.
    fn dual(&self, y: &[f64], inner: &RuleSolution, m: usize) -> Vec<f64> {
        let own: Vec<f64> = y.iter().enumerate().map(|(i, y)| y * inner.alpha[(i, m)]).collect();
        match self.rows {
            None => own,
            Some(rows) => {
                let mut out = vec![0.0; self.prepared.grams.n_samples()];
                rows.iter().zip(own).for_each(|(&i, a)| out[i] = a);
                out
            }
        }
    }

    /// The best weights of rule m for its functions as they are.
    fn respond(
        &self,
        set: LpBall,
        theta: &[f64],
        y: &[f64],
        inner: &RuleSolution,
        m: usize,
    ) -> Vec<f64> {
        let squares = self.prepared.grams.quad_forms(&self.dual(y, inner, m));
        let norms: Vec<f64> = theta.iter().zip(squares).map(|(t, s)| t * t * s).collect();
        if norms.iter().all(|n| *n <= 0.0) { theta.to_vec() } else { set.best_response(&norms) }
    }

    /// Describes the rules found: the decision functions, the certificate, and the shares that
    /// Proposition 2 bounds.
    fn machine(
        &self,
        instance: &Instance<'_>,
        solver: RuleSolver,
        found: FoundRules,
        theta: &[Vec<f64>],
        trace: Vec<IterRecord>,
    ) -> RuleMachine {
        let inner = cleaned(instance, &found);
        let objective = match solver {
            RuleSolver::Pddp => found.objective,
            _ => instance.learning_objective(&inner),
        };
        let gap =
            if found.lower.is_nan() { f64::NAN } else { relative_gap(objective, found.lower) };
        let (dual, status, iterations) = (found.lower, found.status, trace.len());
        let certificate = Certificate { primal: objective, dual, gap, status, iterations };
        let fits = self.fits(instance, &inner, theta, certificate, trace);
        let (rules, positive) = facts(instance, &inner, &found.lambda);
        let warnings =
            (0..instance.rules()).filter_map(|m| flat_rule(instance, &inner, m)).collect();
        RuleMachine { fits, warnings, rules, positive, qp_calls: found.qp_calls, certificate }
    }

    fn fits(
        &self,
        instance: &Instance<'_>,
        inner: &RuleSolution,
        theta: &[Vec<f64>],
        certificate: Certificate,
        trace: Vec<IterRecord>,
    ) -> Vec<Fit> {
        let mut y = vec![1.0; instance.cost.len()];
        instance.negatives.iter().for_each(|&i| y[i] = -1.0);
        let mut trace = Some(trace);
        (0..instance.rules())
            .map(|m| Fit {
                weights: theta[m].clone(),
                parts: vec![FitPart {
                    dual: self.dual(&y, inner, m),
                    bias: inner.bias[m],
                    fitted: inner.f.column(m),
                    primal: certificate.primal,
                    lower: certificate.dual,
                }],
                certificate,
                // The rules were fitted together: the first one has the trace.
                trace: trace.take().unwrap_or_default(),
                warnings: Vec::new(),
            })
            .collect()
    }
}

/// The rules without multipliers that are zero up to rounding.
fn cleaned(instance: &Instance<'_>, found: &FoundRules) -> RuleSolution {
    let mut alpha = found.inner.alpha.clone();
    for i in 0..alpha.rows() {
        let zero = ZERO * instance.cost[i];
        alpha.row_mut(i).iter_mut().filter(|a| a.abs() < zero).for_each(|a| *a = 0.0);
    }
    instance.inner(alpha, found.inner.bias.clone(), found.inner.rho.clone(), &found.lambda)
}

/// With ν, a rule whose reduced hulls meet is a constant: no margin can be had.
fn flat_rule(instance: &Instance<'_>, inner: &RuleSolution, m: usize) -> Option<String> {
    let k = instance.kernels[m];
    let mean = (0..k.n()).map(|i| k.row(i)[i]).sum::<f64>() / k.n() as f64;
    let flat =
        instance.margin != Margin::Fixed && inner.norms[m] < 1e-8 * instance.nu(m).powi(2) * mean;
    flat.then(|| {
        format!(
            "rule {} has no margin: with ν = {} the classes overlap for it and the rule is a constant; raise nu, or leave it out \
             for fixed margins",
            m + 1,
            instance.nu(m)
        )
    })
}

/// Margins, and the shares that Proposition 2 bounds.
fn facts(instance: &Instance<'_>, inner: &RuleSolution, lambda: &Matrix) -> (Vec<Rule>, Share) {
    let total = |rows: &[usize]| rows.iter().map(|&i| instance.cost[i]).sum::<f64>();
    let (all_positive, all_negative) = (total(&instance.positives), total(&instance.negatives));
    // `mass` of each row is its multiplier over its cost.
    let share = |rows: &[usize], all: f64, mass: &dyn Fn(usize) -> f64| {
        let of = |pick: &dyn Fn(f64) -> bool| {
            rows.iter()
                .filter(|&&i| pick(mass(i)))
                .map(|&i| instance.cost[i])
                .fold(0.0, |sum, c| sum + c)
                / all
        };
        let nu = rows.iter().map(|&i| mass(i) * instance.cost[i]).sum::<f64>() / all;
        Share { bounded: of(&|a| a >= FULL), nu, support: of(&|a| a > ZERO) }
    };
    let rule = |m: usize| Rule {
        margin: inner.rho[m],
        owned: instance
            .negatives
            .iter()
            .enumerate()
            .map(|(k, &i)| lambda[(k, m)] * instance.cost[i])
            .sum::<f64>()
            / all_negative,
        negative: share(&instance.negatives, all_negative, &|i| {
            inner.alpha[(i, m)] / instance.cost[i]
        }),
    };
    let sum = |i: usize| inner.alpha.row(i).iter().sum::<f64>() / instance.cost[i];
    ((0..instance.rules()).map(rule).collect(), share(&instance.positives, all_positive, &sum))
}
