//! The program that `castanet build` makes: Castanet with a configuration, and chains compiled for it.
//!
//! `castanet build` names the generated source in the environment variable `CASTANET_PROGRAM`. Without
//! it this is `castanet` itself.
#![forbid(unsafe_code)]

mod processor;

use std::process::ExitCode;

include!(concat!(env!("OUT_DIR"), "/program.rs"));

fn main() -> ExitCode {
    match processor::reason_against() {
        Some(why) => castanet::refuse(&why),
        None => castanet::main(PROGRAM),
    }
}
