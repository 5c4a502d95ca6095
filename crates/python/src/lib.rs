//! The extension module `mercer._mercer`: arrays in, the core's answers out. No algorithms, no
//! defaults, no policy; those live in the core and in the Python package around this module.

// PyO3 hands arguments over by value, a signature users see as keywords may have many of them, and
// row numbers are far below 2^63.
#![allow(clippy::needless_pass_by_value, clippy::too_many_arguments, clippy::cast_possible_wrap)]

mod compare;
mod convert;
mod diagnose;
mod error;
mod fit;
mod gram;
mod model;

use mercer::request::MethodSpec;
use pyo3::{exceptions::PyValueError, prelude::*};

/// Native half of the Python package `mercer`.
#[pymodule]
mod _mercer {
    #[pymodule_export]
    use crate::compare::{compare, comparison_page};
    #[pymodule_export]
    use crate::diagnose::diagnose;
    #[pymodule_export]
    use crate::fit::fit;
    #[pymodule_export]
    use crate::gram::gram;
    #[pymodule_export]
    use crate::model::Model;
    #[pymodule_export]
    use crate::{
        losses, methods, number_kernels, parse_kernels, request_fields, version, write_file,
    };
}

/// A text of the kernel language as the parser understood it; a mistake is a `ValueError` that
/// points at the character.
#[pyfunction]
fn parse_kernels(text: &str) -> PyResult<String> {
    Ok(mercer::kernels::language::parse(text).map_err(error::to_py)?.to_string())
}

/// The kernels of numbers: word, how it is written, formula.
#[pyfunction]
fn number_kernels() -> Vec<(&'static str, &'static str, &'static str)> {
    let kernels = mercer::kernels::language::number_kernels().iter();
    kernels.map(|kernel| (kernel.word, kernel.usage, kernel.meaning)).collect()
}

/// The catalogue as JSON: name, summary, certificate, parameters, and the default parameters as a
/// request states them.
#[pyfunction]
fn methods() -> PyResult<String> {
    let all = mercer::request::catalogue().iter().map(|info| {
        let defaults = MethodSpec::named(info.name).map_err(error::to_py)?;
        Ok(serde_json::json!({ "info": info, "defaults": defaults }))
    });
    Ok(serde_json::Value::from(all.collect::<PyResult<Vec<_>>>()?).to_string())
}

/// The losses: name, whether it can be paid for classes, whether for values.
#[pyfunction]
fn losses() -> Vec<(&'static str, bool, bool)> {
    let all = mercer::request::LossName::ALL.into_iter();
    all.map(|loss| (loss.as_str(), loss.suits_classes(), loss.suits_values())).collect()
}

/// Names of all that a request can ask for.
#[pyfunction]
fn request_fields() -> PyResult<Vec<String>> {
    let fields = serde_json::to_value(mercer::TrainSpec::default())
        .map_err(|e| PyValueError::new_err(e.to_string()))?;
    Ok(fields.as_object().map_or_else(Vec::new, |fields| fields.keys().cloned().collect()))
}

/// Writes a text as a file: readers see the old file or the whole new one.
#[pyfunction]
fn write_file(path: std::path::PathBuf, text: &str) -> PyResult<()> {
    mercer::data::output::write(&path, text.as_bytes()).map_err(error::to_py)
}

/// Version of the native library.
#[pyfunction]
fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}
