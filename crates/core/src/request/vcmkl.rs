//! What a veto–consensus fit is asked for.

use serde::{Deserialize, Serialize};

use super::{
    GroupBy, LossName, Slot, TrainSpec,
    catalogue::{Parameter, plain},
    optional_number_or_inf,
    parameters::SEED,
};
use crate::{Error, Result, weights::LpBall};

/// Parameters of `vcmkl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct VcmklSpec {
    /// Number of rules per machine.
    pub n_rules: RuleCount,
    /// Rewards ν of the margins; `None` is the fixed-margin form.
    pub nu: Option<Nu>,
    /// Share of the price that errors on the consensus class get, between 0 and 1. `None`: c₂|I−| /
    /// (c₂|I−| + c₁|I+|), where c₁ / c₂ is `cost_ratio`, so that both classes weigh the same at
    /// equal costs.
    pub gamma: Option<f64>,
    /// Cost c₁ of a false positive (accepted into the consensus class) over the cost c₂ of a false
    /// negative.
    pub cost_ratio: f64,
    /// How rules are found.
    pub solver: RuleSolver,
    /// Which way `pddp` goes.
    pub objective: Objective,
    /// The class all rules must agree on, of two classes; `None`: the second, or with more classes
    /// each in its turn.
    pub consensus: Option<String>,
    /// `None`: kernels of a rule as below. A number: every rule has the whole bank and learns its
    /// weights under ‖θ_m‖_p ≤ 1.
    #[serde(with = "optional_number_or_inf")]
    pub p: Option<f64>,
    /// Number of starts of the solver `ccp`.
    pub n_init: usize,
    /// Number of folds of the cross-validation that chooses the number of rules.
    pub folds: usize,
    /// Seed that draws starts, folds and samples.
    pub seed: u64,
}

impl Default for VcmklSpec {
    fn default() -> Self {
        Self {
            n_rules: RuleCount::Fixed(3),
            nu: None,
            gamma: None,
            cost_ratio: 1.0,
            solver: RuleSolver::Ccp,
            objective: Objective::Opt1,
            consensus: None,
            p: None,
            n_init: 3,
            folds: 5,
            seed: 0,
        }
    }
}

/// A number of rules, or `auto`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RuleCount {
    /// This number of rules.
    Fixed(usize),
    /// One more as long as cross-validation gains by it.
    Chosen(Auto),
}

/// The word `auto`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Auto {
    /// Chosen by cross-validation on the training rows.
    Auto,
}

/// ν of the multi-ν form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Nu {
    /// One number that every rule has.
    All(f64),
    /// A number for each rule.
    Each(Vec<f64>),
}

/// Solvers that find rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleSolver {
    /// Reassign every negative to its cheapest rule, solve all rules, repeat; several starts.
    Ccp,
    /// One rule at a time.
    Am,
    /// Stochastic subgradients; fixed margins only.
    Sgd,
    /// The paper's parametric dual descent.
    Pddp,
    /// Branch and bound: proves the minimum of small problems.
    Exact,
}

/// Which way `pddp` moves λ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Objective {
    /// Down the learning objective P = −φ.
    Opt1,
    /// Down φ, as printed: up the learning objective.
    #[serde(alias = "as-printed")]
    AsPrinted,
}

impl VcmklSpec {
    /// Names of the parameters and where they lie.
    /// The parameters, as users are told about them.
    pub(super) const PARAMETERS: &'static [Parameter] = &[
        plain("n_rules", "at least 1, or auto; default 3"),
        plain("solver", "ccp, am, sgd, pddp, exact; default ccp"),
        plain("nu", "rewards of margins, one for all or one per rule"),
        plain("gamma", "share of the cost of errors on the consensus class, 0 to 1"),
        plain("cost_ratio", "above 0; default 1"),
        plain("objective", "opt1, as_printed; default opt1"),
        plain("consensus", "a class; default: the second"),
        plain("p", "at least 1, or inf; default: no weights are learned"),
        plain("n_init", "starts of ccp; default 3"),
        plain("folds", "of n_rules = auto; default 5"),
        SEED,
    ];

    /// The parameters by their names.
    pub(super) fn slots(&mut self) -> Vec<(&'static str, Slot<'_>)> {
        let Self {
            n_rules,
            nu,
            gamma,
            cost_ratio,
            solver,
            objective,
            consensus,
            p,
            n_init,
            folds,
            seed,
        } = self;
        vec![
            ("n_rules", Slot::Rules(n_rules)),
            ("nu", Slot::Rewards(nu)),
            ("gamma", Slot::OptionalNumber(gamma)),
            ("cost_ratio", Slot::Number(cost_ratio)),
            ("solver", Slot::RuleSolver(solver)),
            ("objective", Slot::Objective(objective)),
            ("consensus", Slot::OptionalText(consensus)),
            ("p", Slot::OptionalExponent(p)),
            ("n_init", Slot::Count(n_init)),
            ("folds", Slot::Count(folds)),
            ("seed", Slot::Seed(seed)),
        ]
    }

    /// Refuses what makes no sense, naming it.
    pub(super) fn check(&self, spec: &TrainSpec) -> Result<()> {
        let refuse = |name: &str, expected: &str, got: &dyn ToString| {
            Err(Error::param(name, expected, got.to_string()))
        };
        if self.n_rules == RuleCount::Fixed(0) {
            return refuse("n_rules", "at least 1, or auto", &0);
        }
        if let Some(gamma) = self.gamma.filter(|g| !(*g > 0.0 && *g < 1.0)) {
            return refuse("gamma", "between 0 and 1, both excluded", &gamma);
        }
        if !(self.cost_ratio > 0.0 && self.cost_ratio.is_finite()) {
            return refuse("cost_ratio", "a finite number > 0", &self.cost_ratio);
        }
        if self.n_init == 0 {
            return refuse("n_init", "at least 1", &0);
        }
        if self.folds < 2 {
            return refuse("folds", "at least 2", &self.folds);
        }
        if let Some(p) = self.p {
            LpBall::new(p)?;
        }
        if let Some(nu) = &self.nu {
            let all = match nu {
                Nu::All(nu) => std::slice::from_ref(nu),
                Nu::Each(nu) => nu,
            };
            if let Some(bad) = all.iter().find(|nu| !(**nu > 0.0 && nu.is_finite())) {
                return refuse("nu", "finite numbers > 0, or left out for fixed margins", bad);
            }
            if self.solver == RuleSolver::Sgd {
                return refuse(
                    "nu",
                    "left out with solver sgd: the multi-ν objective is unbounded below",
                    &"given",
                );
            }
        }
        if self.p.is_some() && !matches!(self.solver, RuleSolver::Ccp) {
            return refuse("p", "left out unless solver is ccp", &"given");
        }
        if !matches!(spec.loss, None | Some(LossName::Hinge)) {
            return refuse("loss", "hinge for vcmkl", &spec.loss.map_or("", LossName::as_str));
        }
        if !spec.fit_intercept {
            return refuse(
                "fit_intercept",
                "true for vcmkl, whose rules need their constants",
                &false,
            );
        }
        if spec.shared_weights || spec.group_by != GroupBy::None || spec.penalties.is_some() {
            return refuse(
                "shared_weights, group_by and penalties",
                "left out for vcmkl",
                &"given",
            );
        }
        Ok(())
    }

    /// The rewards of `rules` rules.
    pub(crate) fn nu_of(&self, rules: usize) -> Result<Option<Vec<f64>>> {
        match &self.nu {
            None => Ok(None),
            Some(Nu::All(nu)) => Ok(Some(vec![*nu; rules])),
            Some(Nu::Each(nu)) if nu.len() == rules => Ok(Some(nu.clone())),
            Some(Nu::Each(nu)) => {
                Err(Error::shape("nu", format!("{rules} numbers, one per rule"), nu.len()))
            }
        }
    }

    /// Weights of the kernels in every rule: one kernel serves all rules, as many kernels as rules
    /// give one each, any other bank is shared by all rules with equal weights.
    pub(crate) fn rule_weights(&self, rules: usize, kernels: usize) -> Vec<Vec<f64>> {
        let one = |k: usize| (0..kernels).map(|t| f64::from(t == k)).collect();
        match self.p {
            None if kernels == rules => (0..rules).map(one).collect(),
            None => vec![vec![1.0 / kernels as f64; kernels]; rules],
            Some(p) => vec![vec![(1.0 / kernels as f64).powf(1.0 / p); kernels]; rules],
        }
    }
}
