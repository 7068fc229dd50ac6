//! A program that `castanet build` compiled does the same as `castanet`: the same packets, counts,
//! commands and hot swaps.
#![allow(clippy::unwrap_used)] // a test

mod bench;
mod builds;
mod comparison;
mod large;
mod path;
mod worlds;
