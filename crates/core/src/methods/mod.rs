//! Methods and the way from data to model. The registry here is the only place where names become methods.

mod alternating;
mod catalogue;
mod cuts;
mod evaluate;
mod level;
mod search;
mod spec;
mod train;
mod uniform;

pub use catalogue::{MethodInfo, catalogue};
pub use cuts::Cuts;
pub use evaluate::{Point, Problem};
pub use search::{Search, grid_search};
pub use spec::{ClassWeight, LossName, MethodSpec, Solver, TrainSpec};
pub use train::{Prepared, train, train_precomputed};

pub use crate::gram::Storage;
use crate::{Result, model::Fit, trace::Observer, weights::ElasticNet};

impl MethodSpec {
    /// Finds kernel weights.
    pub fn fit(&self, problem: &Problem<'_>, observer: &mut dyn Observer) -> Result<Fit> {
        match *self {
            Self::Uniform {} => uniform::fit(problem, observer),
            Self::Gmkl { v, p, solver: Solver::Level } => level::fit(problem, &ElasticNet::new(v, p)?, observer),
            Self::Gmkl { v, p, solver: Solver::Alternating } => {
                alternating::fit(problem, &ElasticNet::new(v, p)?, observer)
            }
        }
    }
}
