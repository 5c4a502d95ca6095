//! Methods and the way from data to model. The registry here is the only place where names become methods.

mod alternating;
mod catalogue;
mod cuts;
mod evaluate;
mod level;
mod lp;
mod samples;
mod search;
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

pub use catalogue::{MethodInfo, catalogue};
pub use cuts::Cuts;
pub use evaluate::{Memory, Part, Point, Problem};
pub use search::{Choices, Search, choose, grid_search};
pub use smkl::{Penalty, Threshold, collapse_threshold, fit_penalty};
pub use smkl_linear::{GroupedFeatures, GroupedFit};
pub use spec::{ClassWeight, GroupBy, LossName, MethodSpec, Solver, TrainSpec};
pub use train::{Prepared, train, train_precomputed};
pub use verify::{Verification, prove, verify};

pub use crate::gram::Storage;
use crate::{
    Error, Result,
    model::Fit,
    trace::Observer,
    weights::{ElasticNet, Separable},
};

impl MethodSpec {
    /// Finds kernel weights, starting from what `memory` holds (nothing, or an earlier fit on the same data with other C, v or p).
    pub fn fit(&self, problem: &Problem<'_>, memory: &mut Memory, observer: &mut dyn Observer) -> Result<Fit> {
        match *self {
            Self::Uniform {} => uniform::fit(problem, memory, observer),
            Self::Gmkl { v, p, solver } => {
                let set = ElasticNet::new(v, p)?;
                match solver {
                    Solver::Auto | Solver::Level => sparse_or_level(problem, &set, memory, observer),
                    Solver::Alternating => alternating::fit(problem, &set, false, memory, observer),
                    Solver::ReducedGradient | Solver::Silp => {
                        Err(Error::param("solver", "level or alternating for gmkl", "one that needs p = 1"))
                    }
                }
            }
            Self::Lp { p, solver } => lp::fit(problem, p, solver, memory, observer),
            Self::Smkl { ref penalty, eps } => smkl::fit(problem, penalty, eps, memory, observer),
            // The choice needs the rows themselves: `Prepared` makes it, and what is left is a fixed weight vector.
            Self::Single { .. } => single::fit(problem, memory, observer),
            Self::Vcmkl(_) => Err(Error::param(
                "method",
                "fitted through `train` or `Prepared`: a veto–consensus model has several decision functions",
                "vcmkl",
            )),
        }
    }
}

/// The level method, on a working set where Θ selects kernels and there are many.
fn sparse_or_level(
    problem: &Problem<'_>,
    set: &dyn Separable,
    memory: &mut Memory,
    observer: &mut dyn Observer,
) -> Result<Fit> {
    let selects = set.phi(f64::MIN_POSITIVE)[1] > 0.0;
    if problem.working_set && selects && problem.grams.n_terms() >= working_set::MIN_TERMS {
        return working_set::fit(problem, set, memory, observer);
    }
    level::fit(problem, set, memory, observer)
}
