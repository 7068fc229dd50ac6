//! The program from outside: what it prints, where, and how it ends.
#![allow(clippy::unwrap_used)] // a test

mod bench_classify;
mod bench_elements;
mod castanet;
mod click;
mod clients;
mod control;
mod cycles;
mod failing;
mod frames;
mod handlers;
mod hostile;
mod hot_swap;
mod inventory;
mod middlebox;
mod named_files;
mod program;
mod refused_swaps;
mod script;
mod shell;
mod sockets;
mod tools;
