//! The derives.
