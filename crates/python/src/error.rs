//! The one table that turns the core's errors into Python's; the message is the core's own.

use mercer::Error;
use pyo3::{
    PyErr,
    exceptions::{PyMemoryError, PyOSError, PyRuntimeError, PyValueError},
};

/// The Python exception for `error`.
pub fn to_py(error: Error) -> PyErr {
    // Python counts rows from 0.
    let message = error.counting_rows_from(0);
    match error {
        Error::Param { .. } | Error::Shape { .. } | Error::Data { .. } | Error::Syntax { .. } => {
            PyValueError::new_err(message)
        }
        Error::Memory { .. } => PyMemoryError::new_err(message),
        Error::File { .. } => PyOSError::new_err(message),
        // `Numerical`, and whatever the core learns to say before this table does.
        _ => PyRuntimeError::new_err(message),
    }
}
