//! Localized multiple kernel learning: a gate over the kernels, linear in a kernel's feature space.
//!
//! Solves  min over η, f, b :  Σ_i c_i ℓ(y_i, f(x_i) + b) + ½ Σ_m ‖f_m‖²,
//!   f(x) = Σ_m η_m(x) f_m(x),   η a softmax or sigmoids of
//! functions z_m in the feature space of a kernel K₀, to a stationary point.
//! In: terms K_1..K_M, K₀, a task.   Out: η, a, b, the value.
//!   Paper: [Gonen2008]; page docs/methods/lmkl.md.

use super::{Method, gated};
use crate::{
    Model, Result,
    gram::GramSource,
    localize::{Gating, Placement},
    outer::{KernelGate, Memory},
    prepare::{Job, Placing},
    request::{GateName, Lmkl},
    trace::Observer,
};

impl Method for Lmkl {
    fn fit(
        &self,
        job: &Job<'_>,
        memories: &mut Vec<Memory>,
        observer: &mut dyn Observer,
    ) -> Result<Model> {
        let prepared = job.prepared;
        gated::fit(job, (self.n_init, self.seed), memories, observer, &mut |_, fit_gate| {
            let source =
                prepared.placing_kernel(job.request, "gate_kernel", self.gate_kernel.as_deref())?;
            let (kernel, kernels) = (source.gram(&prepared.grams), prepared.grams.n_terms());
            let (fit, gated) = fit_gate(&KernelGate { kernel: &kernel, kernels, form: self.gate })?;
            let n = kernel.n();
            let functions = (0..kernels)
                .map(|m| {
                    let coef: Vec<f64> =
                        (0..n).map(|i| gated.parameters[i * kernels + m]).collect();
                    source.expand(prepared, gated.parameters[n * kernels + m], &coef)
                })
                .collect();
            let placement = match self.gate {
                GateName::Softmax => Placement::Softmax,
                GateName::Sigmoid => Placement::Sigmoid,
            };
            let gating = Gating { placement, regions: kernels, weights: None };
            Ok(((fit, gated), Placing { gating, functions, kernels: source.kernels() }))
        })
    }
}
