//! Marline as a library (skeleton).
