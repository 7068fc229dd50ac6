//! The program from outside: its output and its exit status.
#![allow(clippy::unwrap_used)] // a test

mod bench_classify;
mod bench_elements;
mod bench_router;
mod bench_splitbox;
mod build;
mod castanet;
mod click;
mod clients;
mod confinement;
mod control;
mod ctl;
mod cycles;
mod frames;
mod handlers;
mod handlers_page;
mod hot_swap;
mod http;
mod inventory;
mod language_page;
mod log;
mod malformed_configs;
mod metrics;
mod middlebox;
mod named_files;
mod program;
mod refused_swaps;
mod script;
mod service;
mod shell;
mod sockets;
mod splitbox;
mod tenants;
mod tools;
mod web;
mod write_errors;
