//! Exceptions of the package.

use pyo3::PyErr;
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyValueError};

create_exception!(
    marline,
    ScenarioError,
    PyValueError,
    "A scenario, a plan or a name in it is wrong; the message says where, and what to write instead."
);
create_exception!(marline, RunError, PyException, "A run could not be made.");

impl ScenarioError {
    /// What is wrong, in the words of the error.
    pub fn of(error: impl std::fmt::Display) -> PyErr {
        Self::new_err(error.to_string())
    }
}
