//! Bytes of Python objects, read where they are.

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyBufferError, PyValueError};
use pyo3::prelude::*;

/// Lets `read` see the bytes of an object that has a contiguous buffer (bytes, bytearray,
/// memoryview, a numpy array of any type), without copying them.
pub fn with_bytes<T>(object: &Bound<'_, PyAny>, read: impl FnOnce(&[u8]) -> T) -> PyResult<T> {
    let view = memory_of(object)?;
    let buffer = PyBuffer::<u8>::get(&view)?;
    if !buffer.is_c_contiguous() {
        return Err(PyBufferError::new_err(
            "the buffer is not contiguous; numpy.ascontiguousarray makes it so",
        ));
    }
    let len = buffer.len_bytes();
    if len == 0 {
        return Ok(read(&[]));
    }
    // SAFETY: the exporter keeps `len_bytes` contiguous bytes at `buf_ptr` valid as long as
    // `buffer` lives, which outlasts the call. The thread stays attached to the interpreter in
    // `read`, so that no Python code runs meanwhile; that no other thread writes to the memory
    // without the interpreter's lock is what every reader of buffers has to rely on.
    let bytes = unsafe { std::slice::from_raw_parts(buffer.buf_ptr().cast::<u8>(), len) };
    Ok(read(bytes))
}

/// A view of the object's memory as bytes, whatever the type of its items.
fn memory_of<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = object.py();
    let view = py
        .import("builtins")?
        .getattr("memoryview")?
        .call1((object,))?;
    if view.getattr("format")?.extract::<String>()? == "B"
        && view.getattr("ndim")?.extract::<usize>()? == 1
    {
        return Ok(view);
    }
    view.call_method1("cast", ("B",))
        .map_err(|error| PyBufferError::new_err(format!("the buffer is not contiguous: {error}")))
}

/// Copies bytes to a writable buffer of exactly this length.
pub fn write_to(object: &Bound<'_, PyAny>, bytes: &[u8]) -> PyResult<()> {
    let view = memory_of(object)?;
    let buffer = PyBuffer::<u8>::get(&view)?;
    if buffer.readonly() {
        return Err(PyBufferError::new_err("the buffer cannot be written"));
    }
    if buffer.len_bytes() != bytes.len() {
        let (has, needs) = (buffer.len_bytes(), bytes.len());
        return Err(PyValueError::new_err(format!(
            "the buffer has {has} bytes, {needs} are written"
        )));
    }
    buffer.copy_from_slice(object.py(), bytes)
}
