//! Methods and the way from data to model. The registry here is the only place where names become methods.

mod align;
mod alternating;
mod catalogue;
mod clmkl;
mod cuts;
mod diagnose;
mod evaluate;
mod flat;
mod gated;
mod joint;
mod level;
mod localized;
mod lp;
mod rounding;
mod samples;
mod screen;
mod search;
mod second_order;
mod silp;
mod simple_mkl;
mod single;
mod smkl;
mod smkl_linear;
mod spec;
mod train;
mod uniform;
pub mod vcmkl;
mod verify;
mod working_set;
mod zeros;

pub use align::non_negative;
pub use catalogue::{MethodInfo, catalogue};
pub use cuts::Cuts;
pub use diagnose::{Diagnosis, KernelReport, diagnose, diagnose_precomputed};
pub use evaluate::{Memory, Part, Point, Problem};
pub use gated::{Element, Gate, Gated, GroupGate, KernelGate, fit_gate, gate_value};
pub use localized::Regions;
pub(crate) use search::best_of;
pub use search::{Choices, Fold, Search, Source, Tested, at_edge, choose, grid_search, prices, search_folds};
pub use smkl::{Penalty, Threshold, collapse_threshold, fit_penalty};
pub use smkl_linear::{GroupedFeatures, GroupedFit};
pub use spec::{ClassWeight, Evenness, EvennessWord, GateName, GroupBy, LossName, MethodSpec, Solver, TrainSpec};
pub use train::{Prepared, train, train_precomputed};
pub use verify::{Verification, prove, verify};

pub use crate::gram::{Approx, Storage};
use crate::{
    Error, Result,
    model::Fit,
    trace::Observer,
    weights::{ElasticNet, LpBall, Separable},
};

impl MethodSpec {
    /// Finds kernel weights, starting from what `memory` holds (nothing, or an earlier fit on the same data with other C, v or p).
    pub fn fit(&self, problem: &Problem<'_>, memory: &mut Memory, observer: &mut dyn Observer) -> Result<Fit> {
        match *self {
            Self::Uniform {} => uniform::fit(problem, memory, observer),
            Self::Gmkl { v, p, solver } => {
                let set = ElasticNet::new(v, p)?;
                let fit = match solver {
                    Solver::Level => sparse_or_level(problem, &set, memory, observer),
                    Solver::Auto | Solver::Interior => joint::fit_or(
                        problem,
                        &set,
                        solver == Solver::Interior,
                        memory,
                        observer,
                        &|memory, observer| sparse_or_level(problem, &set, memory, observer),
                    ),
                    Solver::Alternating => alternating::fit(problem, &set, false, memory, observer),
                    Solver::ReducedGradient | Solver::Silp => Err(Error::param(
                        "solver",
                        "auto, level, alternating or interior for gmkl",
                        "reduced_gradient or silp, which are for the method lp with p = 1",
                    )),
                };
                zeros::settle(problem, &set, fit?)
            }
            Self::Lp { p, solver } => {
                zeros::settle(problem, &LpBall::new(p)?, lp::fit(problem, p, solver, memory, observer)?)
            }
            Self::Smkl { ref penalty, eps } => smkl::fit(problem, penalty, eps, memory, observer),
            // The choice needs the rows themselves: `Prepared` makes it, and what is left is a fixed weight vector.
            Self::Single { .. } => single::fit(problem, memory, observer),
            Self::Align {} => align::fit(problem, false, memory, observer),
            Self::Alignf {} => align::fit(problem, true, memory, observer),
            Self::Clmkl { .. } | Self::Lmkl { .. } | Self::Glmkl { .. } | Self::Gsmkl { .. } => Err(Error::param(
                "method",
                "one whose weights are the same for all rows; `Prepared` fits the others",
                self.name(),
            )),
            Self::Vcmkl(_) => Err(Error::param(
                "method",
                "fitted through `train` or `Prepared`: a veto–consensus model has several decision functions",
                "vcmkl",
            )),
        }
    }
}

/// The level method; where Θ selects kernels, without those proved to be zero, and on a working set where there are many.
fn sparse_or_level(
    problem: &Problem<'_>,
    set: &dyn Separable,
    memory: &mut Memory,
    observer: &mut dyn Observer,
) -> Result<Fit> {
    if !set.selects() {
        return level::fit(problem, set, memory, observer);
    }
    let method: screen::Method = |problem, set, memory, observer| {
        let many = problem.working_set && problem.grams.n_terms() >= working_set::MIN_TERMS;
        if many { working_set::fit(problem, set, memory, observer) } else { level::fit(problem, set, memory, observer) }
    };
    if problem.screening {
        return screen::fit(problem, set, memory, observer, method);
    }
    method(problem, set, memory, observer)
}
