//! Methods are papers: each file states one problem and says which solver finds its weights, and
//! how a model comes of it.

mod align;
mod clmkl;
mod gated;
mod glmkl;
mod gmkl;
mod gsmkl;
mod lmkl;
mod lp;
mod single;
mod smkl;
mod smkl_linear;
mod uniform;
pub mod vcmkl;

pub use align::non_negative;
pub(crate) use smkl::relative_change;
pub use smkl::{Threshold, collapse_threshold, fit_penalty};
pub use smkl_linear::{GroupedFeatures, GroupedFit};

use crate::{Model, Result, outer::Memory, prepare::Job, request::MethodSpec, trace::Observer};

/// A paper's way from prepared kernels to a model.
pub(crate) trait Method {
    /// Fits every machine of `job`. `memories`, one per weight vector, say where to start and keep
    /// where the fit ended.
    fn fit(
        &self,
        job: &Job<'_>,
        memories: &mut Vec<Memory>,
        observer: &mut dyn Observer,
    ) -> Result<Model>;

    /// What is wrong with stored weights, for a method that fixes them without a set Θ.
    fn wrong_weights(&self, _theta: &[f64]) -> Option<String> {
        None
    }
}

impl MethodSpec {
    /// The method that bears this name: the only place where names become methods.
    pub(crate) fn method(&self) -> &dyn Method {
        match self {
            Self::Uniform {} => &uniform::Uniform,
            Self::Gmkl(own) => own,
            Self::Lp(own) => own,
            Self::Single(own) => own,
            Self::Align {} => &align::Align { jointly: false },
            Self::Alignf {} => &align::Align { jointly: true },
            Self::Smkl(own) => own,
            Self::Clmkl(own) => own,
            Self::Lmkl(own) => own,
            Self::Glmkl(own) => own,
            Self::Gsmkl(own) => own,
            Self::Vcmkl(own) => own,
        }
    }
}
