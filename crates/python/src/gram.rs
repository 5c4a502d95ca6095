//! Kernel values without a model.

use mercer::{
    gram::{Budget, gram_block},
    kernels::{Normalize, language},
    linalg::threads,
};
use numpy::{IntoPyArray, PyArray3, PyArrayMethods};
use pyo3::{exceptions::PyValueError, prelude::*};

use crate::{convert::Rows, error::to_py};

/// Kernel names, and kernel values of the rows of `x` against the rows of `z` (None: `x`), kernel
/// axis last. Automatic widths and normalisation constants come from `z`.
#[pyfunction]
#[pyo3(signature = (x, kernels, *, z=None, normalize="none", n_threads=None))]
pub fn gram<'py>(
    py: Python<'py>,
    x: Rows<'py>,
    kernels: &str,
    z: Option<Rows<'py>>,
    normalize: &str,
    n_threads: Option<usize>,
) -> PyResult<(Vec<String>, Bound<'py, PyArray3<f64>>)> {
    let normalize: Normalize = serde_json::from_value(normalize.into())
        .map_err(|e| PyValueError::new_err(format!("normalize: {e}")))?;
    let z = z.map(Rows::dataset).transpose()?;
    let x = x.dataset()?;
    let base = z.as_ref().unwrap_or(&x);
    let bank = language::parse(kernels).and_then(|bank| bank.resolve(base)).map_err(to_py)?;
    let shape = [x.len(), base.len(), bank.len()];
    let cells: usize = shape.iter().product();
    // Once by kernel, once with the kernels interleaved.
    let remedy = "use fewer rows or kernels";
    Budget::new(None)
        .check(format!("{} kernel matrices", shape[2]), 16 * cells as u64, remedy)
        .map_err(to_py)?;
    let values = py
        .detach(|| {
            let blocks =
                threads::install(n_threads, || gram_block(&x, z.as_ref(), &bank, normalize))?;
            let mut values = vec![0.0; cells];
            for (t, block) in blocks.iter().enumerate() {
                for (cell, &v) in values.chunks_exact_mut(shape[2]).zip(block.data()) {
                    cell[t] = v;
                }
            }
            Ok(values)
        })
        .map_err(to_py)?;
    Ok((
        bank.into_iter().map(|kernel| kernel.name).collect(),
        values.into_pyarray(py).reshape(shape)?,
    ))
}
