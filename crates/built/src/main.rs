//! The program that `castanet build` makes: Castanet with a configuration, and chains compiled for it.
//!
//! `castanet build` names the generated source in the environment variable `CASTANET_PROGRAM`. Without
//! it this is `castanet` itself.
#![forbid(unsafe_code)]

use std::process::ExitCode;

include!(concat!(env!("OUT_DIR"), "/program.rs"));

/// Marks the instruction sets for which this package is compiled, and the chains in it.
macro_rules! compiled_for {
    ($($name:tt)*) => { &[$(($name, cfg!(target_feature = $name))),*] };
}

/// Instruction sets, each with whether the program was compiled for it.
const COMPILED_FOR: &[(&str, bool)] = castanet::instruction_sets!(compiled_for);

fn main() -> ExitCode {
    match castanet::reason_against(COMPILED_FOR) {
        Some(why) => castanet::refuse(&why),
        None => castanet::main(PROGRAM),
    }
}
