//! Columns in Arrow's form, handed over by its C stream interface: no text, no copy.

use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, RecordBatch, RecordBatchIterator, StringArray,
    UInt64Array,
};
use arrow_schema::{DataType, Field, Schema};
use pyo3::exceptions::{PyImportError, PyKeyError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList};

/// A table. It has no methods to compute with: hand it to the library of your choice, by
/// `to_pyarrow`, `to_pandas` or `to_polars`, or to any that takes Arrow's C stream
/// (`pyarrow.table(table)`, `polars.DataFrame(table)`, `duckdb`, …).
#[pyclass(module = "marline", frozen)]
#[derive(Clone, Debug)]
pub struct Table(RecordBatch);

/// The columns of a table under way.
#[derive(Debug, Default)]
pub struct Columns(Vec<(String, ArrayRef)>);

impl Columns {
    /// Adds text.
    pub fn text<S: AsRef<str>>(&mut self, name: &str, values: impl IntoIterator<Item = Option<S>>) {
        let column: StringArray = values.into_iter().collect();
        self.0.push((name.to_owned(), Arc::new(column)));
    }

    /// Adds numbers; none is null.
    pub fn numbers(&mut self, name: &str, values: impl IntoIterator<Item = Option<f64>>) {
        let column: Float64Array = values.into_iter().collect();
        self.0.push((name.to_owned(), Arc::new(column)));
    }

    /// Adds counts.
    pub fn counts(&mut self, name: &str, values: impl IntoIterator<Item = u64>) {
        let column = UInt64Array::from_iter_values(values);
        self.0.push((name.to_owned(), Arc::new(column)));
    }

    /// Adds yes and no.
    pub fn flags(&mut self, name: &str, values: impl IntoIterator<Item = bool>) {
        let column: BooleanArray = values.into_iter().map(Some).collect();
        self.0.push((name.to_owned(), Arc::new(column)));
    }

    /// The table of these columns, which are of one length.
    pub fn table(self) -> PyResult<Table> {
        let fields = self.0.iter().map(|(name, column)| {
            // Text is null where a run has no such axis; counts never do.
            let nullable = matches!(column.data_type(), DataType::Utf8 | DataType::Float64);
            Field::new(name, column.data_type().clone(), nullable)
        });
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let columns = self.0.into_iter().map(|(_, column)| column).collect();
        let batch = RecordBatch::try_new(schema, columns);
        let batch = batch.map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
        Ok(Table(batch))
    }
}

/// Imports what an extra of the package installs.
fn extra<'py>(py: Python<'py>, module: &str, extra: &str) -> PyResult<Bound<'py, PyModule>> {
    py.import(module).map_err(|error| {
        let missing = PyImportError::new_err(format!(
            "{module} is not installed: pip install 'marline[{extra}]'"
        ));
        missing.set_cause(py, Some(error));
        missing
    })
}

#[pymethods]
impl Table {
    /// Arrow's C stream, as `PyCapsule` (the Arrow PyCapsule interface).
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A consumer that asks for another schema casts: the interface lets the producer decline.
        drop(requested_schema);
        let batches = RecordBatchIterator::new([Ok(self.0.clone())], self.0.schema());
        let stream = FFI_ArrowArrayStream::new(Box::new(batches));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    /// As a `pyarrow.Table`.
    fn to_pyarrow<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        extra(slf.py(), "pyarrow", "arrow")?.call_method1("table", (slf,))
    }

    /// As a `pandas.DataFrame`.
    fn to_pandas<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        extra(slf.py(), "pandas", "pandas")?;
        Self::to_pyarrow(slf)?.call_method0("to_pandas")
    }

    /// As a `polars.DataFrame`.
    fn to_polars<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        extra(slf.py(), "polars", "polars")?.call_method1("DataFrame", (slf,))
    }

    /// As a dict of lists.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for name in self.columns() {
            dict.set_item(&name, self.column(py, &name)?)?;
        }
        Ok(dict)
    }

    /// One column as a list.
    fn column<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        let column = self.0.column_by_name(name);
        let column = column
            .ok_or_else(|| PyKeyError::new_err(name.to_owned()))?
            .as_any();
        if let Some(texts) = column.downcast_ref::<StringArray>() {
            return PyList::new(py, texts.iter().collect::<Vec<_>>());
        }
        if let Some(counts) = column.downcast_ref::<UInt64Array>() {
            return PyList::new(py, counts.iter().collect::<Vec<_>>());
        }
        if let Some(flags) = column.downcast_ref::<BooleanArray>() {
            return PyList::new(py, flags.iter().collect::<Vec<_>>());
        }
        let numbers = column.downcast_ref::<Float64Array>();
        let numbers = numbers.map(|numbers| numbers.iter().collect::<Vec<_>>());
        PyList::new(py, numbers.unwrap_or_default())
    }

    /// Names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        let schema = self.0.schema();
        let fields = schema.fields().iter();
        fields.map(|field| field.name().clone()).collect()
    }

    fn __len__(&self) -> usize {
        self.0.num_rows()
    }

    fn __repr__(&self) -> String {
        let (rows, columns) = (self.0.num_rows(), self.columns().join(", "));
        format!("<marline.Table of {rows} rows: {columns}>")
    }
}
