//! The streaming code and the block code, on buffers.

use marline_fec::block::{Decoder, Encoder, Shape};
use marline_fec::stream;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMapping};

use crate::buffer::{with_bytes, write_to};

fn wrong(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// Bytes as a new object, or in the buffer that the caller gave, which is then the answer.
fn answer<'py>(
    py: Python<'py>,
    bytes: &[u8],
    out: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    match out {
        None => Ok(PyBytes::new(py, bytes).into_any()),
        Some(out) => {
            write_to(&out, bytes)?;
            Ok(out)
        }
    }
}

/// Repair symbols `first` to `first + count - 1` of a block that is cut every `symbol` bytes, one
/// after the other.
///
/// `block` is anything with a contiguous buffer; it is read where it is. With `out`, a writable
/// buffer of `count * symbol` bytes such as a numpy array, they are written there.
///
/// >>> import marline.codes
/// >>> block = b"any four of these symbols are enough"
/// >>> repairs = marline.codes.block_repairs(block, 10, 2)
/// >>> len(repairs)
/// 20
/// >>> marline.codes.block_recover(
/// ...     len(block), 10,
/// ...     sources={0: block[:10], 3: block[30:]},
/// ...     repairs={0: repairs[:10], 1: repairs[10:]},
/// ... ) == block
/// True
#[pyfunction]
#[pyo3(signature = (block, symbol, count, *, first = 0, out = None))]
pub fn block_repairs<'py>(
    py: Python<'py>,
    block: &Bound<'py, PyAny>,
    symbol: usize,
    count: u16,
    first: u16,
    out: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    if first.checked_add(count).is_none() {
        return Err(PyValueError::new_err(
            "a block has at most 65535 repair symbols",
        ));
    }
    let made = with_bytes(block, |bytes| {
        let encoder = Encoder::new(Shape::new(bytes.len(), symbol)?, bytes)?;
        let mut symbols = vec![Vec::new(); usize::from(count)];
        encoder.repairs(first, &mut symbols);
        Ok::<_, marline_fec::block::Error>(symbols.concat())
    })?;
    answer(py, &made.map_err(wrong)?, out)
}

/// The block of `length` bytes from any of its symbols: `sources` by number, `repairs` by index.
/// None if they are not enough. With `out`, a writable buffer of `length` bytes, it is written
/// there.
#[pyfunction]
#[pyo3(signature = (length, symbol, *, sources, repairs, out = None))]
pub fn block_recover<'py>(
    py: Python<'py>,
    length: usize,
    symbol: usize,
    sources: &Bound<'py, PyMapping>,
    repairs: &Bound<'py, PyMapping>,
    out: Option<Bound<'py, PyAny>>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let mut decoder = Decoder::new(Shape::new(length, symbol).map_err(wrong)?);
    for item in sources.items()?.try_iter()? {
        let (number, bytes): (usize, Bound<'_, PyAny>) = item?.extract()?;
        with_bytes(&bytes, |bytes| decoder.source(number, bytes))?.map_err(wrong)?;
    }
    for item in repairs.items()?.try_iter()? {
        let (index, bytes): (u16, Bound<'_, PyAny>) = item?.extract()?;
        with_bytes(&bytes, |bytes| decoder.repair(index, bytes))?.map_err(wrong)?;
    }
    decoder
        .block()
        .map(|block| answer(py, block, out))
        .transpose()
}

/// A repair symbol: start, count, key, and its payload or the payload's length.
type Made<'py> = (u64, u16, u16, Bound<'py, PyAny>);

fn limits(window: u16, symbol: u16) -> stream::Limits {
    stream::Limits { window, symbol }
}

/// The sending end of the streaming code (RFC 8681): takes source symbols, makes repair symbols of
/// those that are not acknowledged.
///
/// >>> import marline.codes
/// >>> encoder = marline.codes.StreamEncoder(first=7)
/// >>> encoder.push(b"a"), encoder.push(b"bcd")
/// (7, 8)
/// >>> encoder.set_key(1)
/// >>> start, count, key, payload = encoder.repair()
/// >>> (start, count, key, payload.hex())
/// (7, 2, 1, '001b08ad30')
/// >>> decoder = marline.codes.StreamDecoder(first=7)
/// >>> decoder.source(8, b"bcd")  # 7 was lost
/// True
/// >>> decoder.repair(start, count, key, payload)
/// True
/// >>> decoder.recovered(), decoder.symbol(7)
/// ([7], b'a')
#[pyclass(module = "marline.codes")]
#[derive(Debug)]
pub struct StreamEncoder {
    encoder: stream::Encoder,
    payload: Vec<u8>,
}

#[pymethods]
impl StreamEncoder {
    #[new]
    #[pyo3(signature = (first = 0, *, window = 256, symbol = 1500))]
    fn new(first: u64, window: u16, symbol: u16) -> Self {
        Self {
            encoder: stream::Encoder::new(first, limits(window, symbol)),
            payload: Vec::new(),
        }
    }

    /// Takes the next source symbol; its number. One more than the window has room for pushes out
    /// the oldest.
    fn push(&mut self, symbol: &Bound<'_, PyAny>) -> PyResult<u64> {
        with_bytes(symbol, |bytes| self.encoder.push(bytes))?.map_err(wrong)
    }

    /// The symbols before this number need no repair any more.
    fn release_before(&mut self, number: u64) {
        self.encoder.release_before(number);
    }

    /// The numbers of the symbols in the window: from the first, to before the second.
    #[getter]
    fn window(&self) -> (u64, u64) {
        let window = self.encoder.window();
        (window.start, window.end)
    }

    /// The next repair symbol has this key.
    fn set_key(&mut self, key: u16) {
        self.encoder.set_key(key);
    }

    /// A repair symbol of the window, or of the symbols from `start` to before `end`: its start,
    /// count, key and payload; None if there is nothing to repair. With `out`, a writable buffer at
    /// least as long as the payload, the payload is written there, and the answer has its length
    /// in its place.
    #[pyo3(signature = (start = None, end = None, *, out = None))]
    fn repair<'py>(
        &mut self,
        py: Python<'py>,
        start: Option<u64>,
        end: Option<u64>,
        out: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Made<'py>>> {
        let window = self.encoder.window();
        let range = start.unwrap_or(window.start)..end.unwrap_or(window.end);
        let Some(repair) = self.encoder.repair_of(range, &mut self.payload) else {
            return Ok(None);
        };
        let payload = match out {
            None => PyBytes::new(py, &self.payload).into_any(),
            Some(out) => {
                let view = py
                    .import("builtins")?
                    .getattr("memoryview")?
                    .call1((&out,))?;
                let len = self.payload.len();
                let slice = pyo3::types::PySlice::new(py, 0, len as isize, 1);
                write_to(
                    &view.call_method1("cast", ("B",))?.get_item(slice)?,
                    &self.payload,
                )?;
                len.into_pyobject(py)?.into_any()
            }
        };
        Ok(Some((repair.start, repair.count, repair.key, payload)))
    }
}

/// The receiving end of the streaming code: see :class:`StreamEncoder`.
#[pyclass(module = "marline.codes")]
#[derive(Debug)]
pub struct StreamDecoder(stream::Decoder);

#[pymethods]
impl StreamDecoder {
    #[new]
    #[pyo3(signature = (first = 0, *, window = 256, symbol = 1500))]
    fn new(first: u64, window: u16, symbol: u16) -> Self {
        Self(stream::Decoder::new(first, limits(window, symbol)))
    }

    /// A source symbol arrived. Was it missing?
    fn source(&mut self, number: u64, symbol: &Bound<'_, PyAny>) -> PyResult<bool> {
        with_bytes(symbol, |bytes| self.0.source(number, bytes))?.map_err(wrong)
    }

    /// A repair symbol arrived. Did it say something that was not known?
    fn repair(
        &mut self,
        start: u64,
        count: u16,
        key: u16,
        payload: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        let repair = stream::Repair { start, count, key };
        with_bytes(payload, |bytes| self.0.repair(repair, bytes))?.map_err(wrong)
    }

    /// Numbers of the symbols that were recovered since the last call.
    fn recovered(&mut self) -> Vec<u64> {
        std::iter::from_fn(|| self.0.poll_recovered()).collect()
    }

    /// The symbol of this number, if it is known; with `out`, in that buffer of its length.
    #[pyo3(signature = (number, *, out = None))]
    fn symbol<'py>(
        &self,
        py: Python<'py>,
        number: u64,
        out: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let symbol = self.0.symbol(number);
        symbol.map(|symbol| answer(py, symbol, out)).transpose()
    }

    /// The symbols before this number are not needed any more.
    fn forget_before(&mut self, number: u64) {
        self.0.forget_before(number);
    }

    /// (first missing, end, missing, rank): numbers of the first symbol that is not known and of
    /// the one after the newest that is known of, how many are missing, and how many independent
    /// equations about them are held.
    #[getter]
    fn status(&self) -> (u64, u64, usize, usize) {
        let status = self.0.status();
        (
            status.first_missing,
            status.end,
            status.missing,
            status.rank,
        )
    }
}

/// Adds the module's functions.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<StreamEncoder>()?;
    module.add_class::<StreamDecoder>()?;
    module.add_function(wrap_pyfunction!(block_repairs, module)?)?;
    module.add_function(wrap_pyfunction!(block_recover, module)?)
}
