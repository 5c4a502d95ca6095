//! Multiple kernel learning with certified duality gaps.
//!
//! Everything global in this crate solves one line,
//!
//! ```text
//! min over θ in Θ, f = Σ_m f_m, b :   C Σ_i loss(f(x_i) + b, y_i)  +  ½ Σ_m ‖f_m‖² / θ_m
//! ```
//!
//! and four axes stay apart, each a module: the [`loss`], the set Θ of kernel [`weights`], the
//! [`methods`] that find θ, and where the numbers K_m come from ([`gram`]). For a fixed θ the line
//! is one ordinary kernel [`machine`], and all an outer method needs back is the signed dual vector
//! `a` and the numbers s_m = aᵀ K_m a.
//!
//! ```
//! use mercer::{TrainSpec, data::synthetic, trace::Silent};
//!
//! let (data, target) = synthetic::toy1(60, 7);
//! let spec = TrainSpec { kernels: "rbf(0.5|1|2), linear on all, each".into(), ..TrainSpec::default() };
//! let model = mercer::train(&data, &target, None, &spec, &mut Silent)?;
//! assert!(model.machines[0].certificate.gap <= spec.tol);
//! # Ok::<(), mercer::Error>(())
//! ```
//!
//! Modules are listed in the order data flows; a module may use only those to its left:
//! `error < tuning < linalg < trace < data < kernels < gram < loss < metrics < machine < weights < localize < request < model < outer < prepare < methods < train < select < report`.

#![deny(missing_docs)]
#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod data;
pub mod error;
pub mod gram;
pub mod kernels;
pub mod linalg;
pub mod localize;
pub mod loss;
pub mod machine;
pub mod methods;
pub mod metrics;
pub mod model;
pub mod outer;
pub mod prepare;
pub mod report;
pub mod request;
pub mod select;
pub mod trace;
pub mod train;
mod tuning;
pub mod weights;

pub use error::{Error, Told};
pub use model::Model;
pub use request::TrainSpec;
pub use train::{train, train_precomputed};

/// The result of everything fallible here.
pub type Result<T> = std::result::Result<T, Error>;
