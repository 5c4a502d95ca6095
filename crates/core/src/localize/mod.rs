//! Where a sample lies: regions found by kernel k-means or given, soft memberships, gates, and
//! kernel terms scaled by them.
//!
//! Both families of localized methods are sums of kernels scaled by rows and columns,
//!
//! ```text
//! clustered   Σ_j Σ_m β_jm diag(c_j) K_m diag(c_j)      c_j(x): membership of x in region j
//! gated       Σ_m diag(η_m) K_m diag(η_m)               η_m(x): weight of kernel m at x
//! ```
//!
//! and [`LocalizedGramSet`] is either as a [`GramSource`](crate::gram::GramSource), so that every
//! method for global weights serves the first. Everything here that places a sample needs kernel
//! values against the training rows and nothing else.

mod alignment;
mod gating;
mod grams;
mod kmeans;
mod memberships;

pub use alignment::{block_alignment, centred_alignments};
pub use gating::{Gating, Placement};
pub(crate) use gating::{sigmoid, softmax, weigh};
pub use grams::LocalizedGramSet;
pub(crate) use kmeans::drawn_clusters;
pub use kmeans::{Clusters, kernel_kmeans};
pub use memberships::{evenness, memberships, sharpness};
