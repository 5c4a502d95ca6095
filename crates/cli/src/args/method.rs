//! The method and its own parameters, as they are typed.

use clap::Args;
use mercer::{
    Error, Result, TrainSpec,
    request::{Approx, Choices, MethodSpec, Value},
};

use super::catalogue::CatalogueArgs;
use crate::values::{Setting, cost, count_or_auto, evenness, exponent, named, number, setting};

// A flag per parameter in the catalogue of methods; one may serve several methods. Those below read
// or explain theirs in a way of their own; every other parameter has the flag that `CatalogueArgs`
// makes for it.
#[derive(Debug, Args)]
pub struct MethodArgs {
    /// How weights are found (see `mercer methods`); also `l1` and `l2`
    #[arg(long, short, default_value = "gmkl", help_heading = "Method")]
    pub method: String,
    /// Price of the sum of losses; `auto`: by cross-validation on the training rows; `scale`: 1, or
    /// for `--normalize trace` the number of training rows [default: 1; smkl: scale]
    #[arg(short = 'C', long = "cost", value_name = "C", value_parser = cost, allow_negative_numbers = true, help_heading = "Method")]
    pub c: Option<Setting>,
    /// gmkl: from 0 (all kernels share) to 1 (few kernels), or `auto` [default: 0.5]; clmkl, hlmkl:
    /// the same in each region
    #[arg(long, value_parser = setting, allow_negative_numbers = true, help_heading = "Method")]
    pub v: Option<Setting>,
    /// lp [default: 4/3], clmkl, hlmkl: exponent of the norm, at least 1, or `inf`; gmkl: exponent
    /// of the smooth part [default: 2]; glmkl: norm of a group's weights [default: 4]; vcmkl: of
    /// each rule's kernel weights [default: none are learned]
    #[arg(long, value_parser = exponent, allow_negative_numbers = true, help_heading = "Method")]
    pub p: Option<Value>,
    /// gmkl, lp: how the optimum is found, `reduced_gradient` and `silp` for p = 1 [default: auto];
    /// vcmkl: how rules are found [default: ccp]
    #[arg(long, help_heading = "Method", value_parser = named::<Value>(
        &["auto", "level", "alternating", "interior", "reduced_gradient", "silp", "ccp", "am", "sgd", "pddp", "exact"]))]
    pub solver: Option<Value>,
    /// smkl: a sum of the terms log, gl, mf(p) and mkl, e.g. `0.5*log + mf(0.5)` [default: log+gl]
    #[arg(long, value_name = "TERMS", help_heading = "Method")]
    pub penalty: Option<String>,
    /// smkl: inside the logarithm [default: 0.0001]
    #[arg(long, value_parser = number, allow_negative_numbers = true, help_heading = "Method")]
    pub eps: Option<f64>,
    /// vcmkl: number of rules, or `auto` to choose it by cross-validation [default: 3]
    #[arg(long = "rules", value_parser = count_or_auto, value_name = "N", help_heading = "Method")]
    pub n_rules: Option<Value>,
    /// vcmkl: reward of each rule's margin, one for all or one per rule [default: none, margins are
    /// fixed]
    #[arg(long, value_delimiter = ',', value_parser = number, allow_negative_numbers = true, value_name = "A,B", help_heading = "Method")]
    pub nu: Option<Vec<f64>>,
    /// vcmkl: share of the price for errors on the consensus class [default: both classes weigh the
    /// same]
    #[arg(long, value_parser = number, allow_negative_numbers = true, help_heading = "Method")]
    pub gamma: Option<f64>,
    /// vcmkl: cost of a false positive over that of a false negative [default: 1]
    #[arg(long, value_parser = number, allow_negative_numbers = true, help_heading = "Method")]
    pub cost_ratio: Option<f64>,
    /// vcmkl with `pddp`: down the learning objective, or as the paper prints it [default: opt1]
    #[arg(long, help_heading = "Method", value_parser = named::<Value>(&["opt1", "as_printed"]))]
    pub objective: Option<Value>,
    /// vcmkl: the class all rules must agree on, of two [default: the second]
    #[arg(long, value_name = "CLASS", allow_hyphen_values = true, help_heading = "Method")]
    pub consensus: Option<String>,
    /// Folds of the cross-validation: single, C or v left to `auto`, vcmkl with `--rules auto`
    /// [default: 5]
    #[arg(long, value_name = "N", help_heading = "Method")]
    pub folds: Option<usize>,
    /// Seed of folds, clustering, random starts, landmarks and frequencies [default: 0]
    #[arg(long, help_heading = "Method")]
    pub seed: Option<u64>,
    /// clmkl, hlmkl: regions that clustering finds [default: 3]
    #[arg(long, value_name = "N", help_heading = "Localized")]
    pub n_clusters: Option<usize>,
    /// clmkl: average evenness of memberships, or `hard` [default: the middle of the reachable
    /// range]
    #[arg(long, value_name = "E", value_parser = evenness, help_heading = "Localized")]
    pub evenness: Option<Value>,
    /// clmkl, hlmkl: kernel to cluster with, in the kernel language or by its number [default: the
    /// average]
    #[arg(long, value_name = "KERNEL", help_heading = "Localized")]
    pub cluster_kernel: Option<String>,
    /// clmkl, hlmkl: column that says the region, instead of clustering
    #[arg(long, value_name = "COL", help_heading = "Localized")]
    pub regions: Option<String>,
    /// glmkl, gsmkl: groups that clustering finds [default: 3]
    #[arg(long, value_name = "N", help_heading = "Localized")]
    pub n_groups: Option<usize>,
    /// glmkl, gsmkl: column that says the group, instead of clustering
    #[arg(long, value_name = "COL", help_heading = "Localized")]
    pub groups: Option<String>,
    /// lmkl: form of the gate [default: softmax]
    #[arg(long, value_parser = named::<Value>(&["softmax", "sigmoid"]), help_heading = "Localized")]
    pub gate: Option<Value>,
    /// lmkl: kernel in whose feature space the gate is linear [default: the average]
    #[arg(long, value_name = "KERNEL", help_heading = "Localized")]
    pub gate_kernel: Option<String>,
    /// Starts: of the clustering (clmkl, hlmkl) [default: 10] of the gate (lmkl, glmkl, gsmkl)
    /// [default: 1] or of `ccp` (vcmkl) [default: 3]
    #[arg(long, value_name = "N", help_heading = "Localized")]
    pub n_init: Option<usize>,
    #[command(flatten)]
    pub others: CatalogueArgs,
}

impl MethodArgs {
    /// What cross-validation is to find, and whether the scale of the kernels says C.
    pub fn choices(&self) -> Result<Choices> {
        let (own, none) =
            (TrainSpec::for_method(MethodSpec::named(&self.method)?).choose, Choices::default());
        Ok(Choices {
            c: self.c == Some(Setting::Auto),
            scale: self.c.map_or(own.scale, |c| c == Setting::Scale),
            v: self.v == Some(Setting::Auto),
            folds: self.folds.unwrap_or(none.folds),
            seed: self.seed.unwrap_or(none.seed),
        })
    }

    /// Parameters that were typed, under the names that the catalogue has for them.
    fn given(&self) -> Vec<(&'static str, Value)> {
        let nu = self
            .nu
            .as_deref()
            .map(|nu| if let [one] = nu { (*one).into() } else { Value::Numbers(nu.to_vec()) });
        let all: [(&str, Value); 22] = [
            ("v", self.v.and_then(Setting::given).into()),
            ("p", self.p.clone().into()),
            ("solver", self.solver.clone().into()),
            ("penalty", self.penalty.as_deref().into()),
            ("eps", self.eps.into()),
            ("folds", self.folds.into()),
            ("seed", self.seed.into()),
            ("n_clusters", self.n_clusters.into()),
            ("evenness", self.evenness.clone().into()),
            ("cluster_kernel", self.cluster_kernel.as_deref().into()),
            ("regions", self.regions.as_deref().into()),
            ("n_groups", self.n_groups.into()),
            ("groups", self.groups.as_deref().into()),
            ("gate", self.gate.clone().into()),
            ("gate_kernel", self.gate_kernel.as_deref().into()),
            ("n_rules", self.n_rules.clone().into()),
            ("nu", nu.into()),
            ("gamma", self.gamma.into()),
            ("cost_ratio", self.cost_ratio.into()),
            ("objective", self.objective.clone().into()),
            ("consensus", self.consensus.as_deref().into()),
            ("n_init", self.n_init.into()),
        ];
        all.into_iter()
            .filter(|(_, value)| *value != Value::None)
            .chain(self.others.given())
            .collect()
    }

    /// The named method with the parameters given; one it does not have is refused, unless the
    /// request has a use of its own for it.
    pub fn method(&self, approx: Approx) -> Result<MethodSpec> {
        let name = self.method.as_str();
        let mut method = MethodSpec::named(name)?;
        let searched = self.c == Some(Setting::Auto) || self.v == Some(Setting::Auto);
        for (parameter, value) in self.given() {
            let elsewhere = match parameter {
                "folds" => searched,
                "seed" => searched || approx != Approx::None,
                _ => false,
            };
            let known = method.get(parameter).is_some();
            if !known && elsewhere {
                continue;
            }
            if !known || MethodSpec::said_by_name(name) == Some(parameter) {
                return Err(Error::param(
                    parameter,
                    format!("left out with --method {name}"),
                    value,
                ));
            }
            method.set(parameter, &value).map_err(|e| match e {
                Error::Param { name: parameter, expected, got } => Error::Param {
                    name: parameter,
                    expected: format!("{expected} with --method {name}"),
                    got,
                },
                other => other,
            })?;
        }
        Ok(method)
    }
}
