//! Tests that load the machine as they can, away from those that wait for an answer: `cargo test`
//! runs one program of tests after the other.
//!
//! Needs root and the programs in `.ci/packages`, and fails without them.
#![allow(clippy::unwrap_used)] // In a test it is an assertion.

mod attack;
mod bench;
#[path = "../system/program.rs"]
mod program;
mod soak;
