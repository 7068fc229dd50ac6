//! The program without anything built in.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    castanet::main(castanet::Program::PLAIN)
}
