//! Click's tools, each by its own name: command lines over `castanet_lang::transform`.

mod align;
mod buildtool;
mod check;
mod click2xml;
mod combine;
mod common;
mod devirtualize;
mod fastclassifier;
mod flatten;
mod install;
pub(crate) mod links;
mod mkmindriver;
mod pretty;
mod through;
mod uncombine;
mod undead;
mod uninstall;
mod xform;

use common::Tool;

/// A name by which the program is one of Click's tools.
pub(crate) struct ToolName {
    /// The name.
    pub(crate) name: &'static str,
    /// Runs it; gives its exit status.
    pub(crate) main: fn() -> i32,
    /// Its command line, for man pages and completions.
    pub(crate) command: fn() -> clap::Command,
}

const fn tool<T: Tool>() -> ToolName {
    ToolName { name: T::NAME, main: common::main::<T>, command: common::command::<T> }
}

/// Every tool.
pub(crate) const TOOLS: &[ToolName] = &[
    tool::<align::Align>(),
    tool::<buildtool::Buildtool>(),
    tool::<check::Check>(),
    tool::<click2xml::Click2xml>(),
    tool::<combine::Combine>(),
    tool::<devirtualize::Devirtualize>(),
    tool::<fastclassifier::Fastclassifier>(),
    tool::<flatten::Flatten>(),
    tool::<install::Install>(),
    tool::<mkmindriver::Mkmindriver>(),
    tool::<pretty::Pretty>(),
    tool::<uncombine::Uncombine>(),
    tool::<undead::Undead>(),
    tool::<uninstall::Uninstall>(),
    tool::<xform::Xform>(),
];

/// The tool of a name.
pub(crate) fn find(name: &str) -> Option<&'static ToolName> {
    TOOLS.iter().find(|tool| tool.name == name)
}
