//! The Python package `marline`: the simulator, the codes, schedulers and applications written in
//! Python, and a client and a server for asyncio.
//!
//! What Python sees is documented where it is defined, in Python's words: the documentation of
//! functions and classes is their docstring, and its examples are run by doctest.

use pyo3::prelude::*;

mod analysis;
mod buffer;
mod codes;
mod errors;
mod lend;
mod net;
mod plan;
mod repro;
mod results;
mod running;
mod scenario;
mod scheduler;
mod stepper;
mod table;
mod toml_of;
mod workload;

/// The part of the package that is written in Rust; import `marline` instead.
#[pymodule]
fn _marline(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("ScenarioError", py.get_type::<errors::ScenarioError>())?;
    module.add("RunError", py.get_type::<errors::RunError>())?;
    module.add_class::<scenario::Scenario>()?;
    module.add_class::<results::Results>()?;
    module.add_class::<table::Table>()?;
    module.add_class::<plan::Plan>()?;
    module.add_class::<scheduler::PathView>()?;
    module.add_class::<scheduler::Symbol>()?;
    module.add_class::<scheduler::Plan>()?;
    module.add_class::<stepper::Stepper>()?;
    module.add("SEEN", stepper::SEEN)?;
    module.add_class::<workload::Context>()?;
    module.add_class::<workload::Delivery>()?;
    module.add_function(wrap_pyfunction!(scenario::experiments_names, module)?)?;
    module.add_function(wrap_pyfunction!(results::run, module)?)?;
    module.add_function(wrap_pyfunction!(repro::repro, module)?)?;
    module.add_function(wrap_pyfunction!(scheduler::add_scheduler, module)?)?;
    module.add_function(wrap_pyfunction!(scheduler::schedulers, module)?)?;
    codes::register(module)?;
    analysis::register(module)?;
    net::register(module)
}
