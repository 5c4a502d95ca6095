//! Plain matrices of kernel values, outside of any fit.

use rayon::prelude::*;

use crate::{
    Error, Result,
    data::Dataset,
    kernels::{KernelSpec, Normalize, Normalizer},
    linalg::Matrix,
};

/// Normalised kernel values of the rows of `x` against the rows of `train` (`None`: of `x` against
/// itself), a matrix per kernel.
pub fn gram_block(
    x: &Dataset,
    train: Option<&Dataset>,
    kernels: &[KernelSpec],
    normalize: Normalize,
) -> Result<Vec<Matrix>> {
    kernels
        .par_iter()
        .map(|spec| {
            if spec.is_precomputed() {
                let remedy = "they are in their file already; leave them out";
                return Err(Error::data(
                    format!("kernel `{}`", spec.name),
                    "has ready-made values",
                    remedy,
                ));
            }
            let rows = spec.points(x.rows());
            let Some(train) = train else {
                let mut k = rows.block(&rows);
                Normalizer::fit_block(normalize, &spec.name, &k)?.apply_train(&mut k);
                return Ok(k);
            };
            let base = spec.points(train.rows());
            let normalizer = Normalizer::fit_block(normalize, &spec.name, &base.block(&base))?;
            let mut k = rows.block(&base);
            normalizer.apply_cross(&mut k, &rows.diagonal(), &base.diagonal());
            Ok(k)
        })
        .collect()
}
