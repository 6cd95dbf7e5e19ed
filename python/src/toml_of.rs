//! Python values as what a scenario file writes.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyMapping, PySequence, PyString};
use toml::Value;

/// A value, with all that is in it.
pub fn value(object: &Bound<'_, PyAny>, key: &str) -> PyResult<Value> {
    if object.is_instance_of::<PyBool>() {
        return Ok(Value::Boolean(object.extract()?));
    }
    if object.is_instance_of::<PyInt>() {
        return Ok(Value::Integer(object.extract()?));
    }
    if object.is_instance_of::<PyFloat>() {
        return Ok(Value::Float(object.extract()?));
    }
    if object.is_instance_of::<PyString>() {
        return Ok(Value::String(object.extract()?));
    }
    if let Ok(mapping) = object.cast::<PyMapping>() {
        return table(mapping, key).map(Value::Table);
    }
    if let Ok(sequence) = object.cast::<PySequence>() {
        let items = sequence.try_iter()?;
        let items = items.map(|item| value(&item?, key));
        return items.collect::<PyResult<Vec<Value>>>().map(Value::Array);
    }
    // Numbers of other libraries.
    if let Ok(number) = object.call_method0("item") {
        return value(&number, key);
    }
    let kind = object.get_type().name()?;
    Err(PyTypeError::new_err(format!(
        "{key}: {kind} is nothing that a scenario holds; write text, a number, a list or a dict"
    )))
}

/// A mapping of names to values.
pub fn table(mapping: &Bound<'_, PyMapping>, key: &str) -> PyResult<toml::Table> {
    let mut table = toml::Table::new();
    for item in mapping.items()?.try_iter()? {
        let (name, inner): (String, Bound<'_, PyAny>) = item?.extract()?;
        let dot = if key.is_empty() { "" } else { "." };
        let path = format!("{key}{dot}{name}");
        table.insert(name, value(&inner, &path)?);
    }
    Ok(table)
}

/// A value as `--set` takes it: text as it is, all else as in a file.
pub fn flag(object: &Bound<'_, PyAny>, key: &str) -> PyResult<String> {
    Ok(match value(object, key)? {
        Value::String(text) => text,
        other => other.to_string(),
    })
}

/// What JSON says as Python objects.
pub fn from_json<'py>(py: Python<'py>, json: &serde_json::Value) -> PyResult<Bound<'py, PyAny>> {
    use serde_json::Value as Json;
    Ok(match json {
        Json::Null => py.None().into_bound(py),
        Json::Bool(yes) => yes.into_pyobject(py)?.to_owned().into_any(),
        Json::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(n), _) => n.into_pyobject(py)?.into_any(),
            (_, Some(n)) => n.into_pyobject(py)?.into_any(),
            _ => number
                .as_f64()
                .unwrap_or(f64::NAN)
                .into_pyobject(py)?
                .into_any(),
        },
        Json::String(text) => text.into_pyobject(py)?.into_any(),
        Json::Array(items) => {
            let list = PyList::empty(py);
            for item in items {
                list.append(from_json(py, item)?)?;
            }
            list.into_any()
        }
        Json::Object(object) => {
            let dict = PyDict::new(py);
            for (key, inner) in object {
                dict.set_item(key, from_json(py, inner)?)?;
            }
            dict.into_any()
        }
    })
}
