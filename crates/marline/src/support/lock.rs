//! Locks that outlive a panic: what they guard is whole between any two calls.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks `mutex`, though somebody panicked who held it.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
