//! Veto–consensus models: several rules per machine, and the smallest of their values decides.

use serde::{Deserialize, Serialize};

use super::{Certificate, Model, NewRows};
use crate::{Result, data::Dataset, gram::Stack, linalg::Matrix, trace::Status};

/// How the decision functions of a model are grouped: g(x) = min over a machine's rules of f_m(x).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rules {
    /// One entry per machine, in the order of its decision functions.
    pub machines: Vec<RuleSet>,
}

/// The rules of one machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RuleSet {
    /// Do the rules agree on the class the machine is *not* for? Its decision value is then −g.
    pub negate: bool,
    /// The consensus class: the one that all rules must agree on.
    pub consensus: String,
    /// What each rule is like; their number is the number of rules.
    pub rules: Vec<Rule>,
    /// Consensus samples: margin errors, the bound between, support vectors.
    pub positive: Share,
    /// How many quadratic programs were solved.
    pub qp_calls: usize,
    /// The certificate of all rules of the machine together.
    pub certificate: Certificate,
}

/// Facts about one rule.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Rule {
    /// ρ: decision values beyond ±ρ pay nothing.
    pub margin: f64,
    /// Share of the rejected class that this rule must reject.
    pub owned: f64,
    /// Margin errors, the bound between and support vectors among the rejected class.
    pub negative: Share,
}

/// Proposition 2 of the paper: bounded ≤ ν ≤ support. Shares are of the class's total cost.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Share {
    /// Samples at their largest multiplier: those inside the margin or beyond, an upper bound on
    /// training errors.
    pub bounded: f64,
    /// The multipliers' sum against the largest possible one.
    pub nu: f64,
    /// Samples with a multiplier.
    pub support: f64,
}

impl Rules {
    /// Values of all rules, `rows × rules`, to decision values, `rows × machines`.
    pub fn combine(&self, values: &Matrix) -> Matrix {
        let mut out = Matrix::zeros(values.rows(), self.machines.len());
        for i in 0..values.rows() {
            let mut rest = values.row(i);
            for (k, set) in self.machines.iter().enumerate() {
                let (own, later) = rest.split_at(set.rules.len());
                let g = own.iter().copied().fold(f64::INFINITY, f64::min);
                out[(i, k)] = if set.negate { -g } else { g };
                rest = later;
            }
        }
        out
    }

    /// Names of all rules: `rule 2`, with the consensus class in front where there are several
    /// machines.
    pub fn names(&self) -> Vec<String> {
        let several = self.machines.len() > 1;
        let name = |set: &RuleSet, m: usize| {
            if several {
                format!("{}: rule {}", set.consensus, m + 1)
            } else {
                format!("rule {}", m + 1)
            }
        };
        self.machines
            .iter()
            .flat_map(|set| (0..set.rules.len()).map(move |m| name(set, m)))
            .collect()
    }

    /// Sums over machines with the worst status.
    pub fn certificate(&self) -> Certificate {
        let all = || self.machines.iter().map(|m| &m.certificate);
        let (primal, dual) = (all().map(|c| c.primal).sum(), all().map(|c| c.dual).sum::<f64>());
        let gap = crate::trace::relative_gap(primal, dual);
        Certificate {
            primal,
            dual,
            gap: if dual.is_nan() { f64::NAN } else { gap },
            status: all().map(|c| c.status).max().unwrap_or(Status::Stopped),
            iterations: all().map(|c| c.iterations).sum(),
        }
    }

    pub(super) fn count(&self) -> usize {
        self.machines.iter().map(|m| m.rules.len()).sum()
    }
}

impl Model {
    /// f_m(x) of every rule, `rows × rules` machine after machine, for models that have rules:
    /// positive where a rule agrees with the consensus class, negative where it vetoes.
    pub fn rule_values(&self, data: &Dataset) -> Result<Option<Matrix>> {
        self.rules.is_some().then(|| self.values(NewRows::Table(data))).transpose()
    }

    /// The values of every rule from ready-made kernel values.
    pub fn rule_values_precomputed(&self, block: Stack<'_>) -> Result<Option<Matrix>> {
        self.rules.is_some().then(|| self.values(NewRows::Kernels(block))).transpose()
    }
}
