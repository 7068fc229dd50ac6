//! `castanet bench`.
use clap::Args;
#[derive(Args)]
pub(crate) struct Arguments {}
pub(crate) fn main(_: &Arguments) -> i32 { 0 }
