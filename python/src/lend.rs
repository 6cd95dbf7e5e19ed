//! Rust values that a Python object may use for the length of one call.
//!
//! A [`marline_proto::sched::Plan`] borrows from the session that plans; Python objects outlive
//! every borrow. So the Python object holds a pointer that is there during the call alone: who
//! keeps the object gets an exception afterwards.

use std::ptr::NonNull;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// A pointer to a `T` that is lent, or none.
#[derive(Debug)]
pub struct Lent<T>(Option<NonNull<T>>);

// SAFETY: the pointer is used only between `lend` and `take_back`, on threads that are attached to
// the interpreter: one at a time, while the lender waits in its call.
unsafe impl<T> Send for Lent<T> {}
// SAFETY: as above; and all uses go through `&mut`.
unsafe impl<T> Sync for Lent<T> {}

impl<T> Lent<T> {
    /// Nothing is lent.
    pub const fn none() -> Self {
        Self(None)
    }

    /// Lends what it points to until [`take_back`](Self::take_back), which has to come before that
    /// goes. Lifetimes may have been cast away of `T`: nothing that is borrowed by it is kept.
    pub fn lend(&mut self, pointer: NonNull<T>) {
        self.0 = Some(pointer);
    }

    /// Ends it.
    pub fn take_back(&mut self) {
        self.0 = None;
    }

    /// What is lent.
    pub fn get(&mut self) -> PyResult<&mut T> {
        let pointer = self.0.as_mut().ok_or_else(|| {
            PyRuntimeError::new_err("it may be used only during the call that it was given to")
        })?;
        // SAFETY: it is lent, so the lender waits for the call's end and touches nothing; `&mut
        // self` keeps others from having a second reference at the same time.
        Ok(unsafe { pointer.as_mut() })
    }
}
