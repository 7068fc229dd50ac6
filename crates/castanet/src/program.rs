//! The parts of a program that `castanet build` made: its configuration, and chains compiled for it.

use castanet_element::node::fused::Fusion;
use std::sync::{LazyLock, OnceLock};

/// The parts of a program beside the library.
pub struct Program {
    /// The configuration that it runs when the command line names none.
    pub configuration: Option<&'static BuiltConfiguration>,
    /// Chains that were compiled for it. They are chosen before those of the library.
    pub fusions: &'static [Fusion],
    /// Whether it is `click` by any name but those of the tools.
    pub is_driver: bool,
}

impl Program {
    /// The program without anything built in.
    pub const PLAIN: Program = Program { configuration: None, fusions: &[], is_driver: false };
}

/// A configuration that is part of a program.
#[derive(Debug)]
pub struct BuiltConfiguration {
    /// The text of the configuration and those of the libraries that it requires, each behind the
    /// name by which errors call it; the configuration comes first.
    pub texts: &'static [(&'static str, &'static [u8])],
    /// The `VAR=value` settings; those of a command line take precedence.
    pub settings: &'static [(&'static str, &'static str)],
    /// The folders in which `require(library FILE)` looked, with colons between them.
    pub library_path: &'static str,
    /// The hash of these, which `castanet build` prints.
    pub hash: &'static str,
}

impl BuiltConfiguration {
    /// The name of the configuration in messages.
    pub(crate) fn name(&self) -> &'static str {
        self.texts.first().map_or("config", |(name, _)| name)
    }

    /// The settings under which it runs: its own, and after them those of a command line.
    pub(crate) fn settings_under(&self, given: Vec<(String, String)>) -> Vec<(String, String)> {
        let is_given = |name: &str| given.iter().any(|(other, _)| other == name);
        let own = self.settings.iter().filter(|(name, _)| !is_given(name));
        let own = own.map(|&(name, value)| (name.to_owned(), value.to_owned()));
        own.chain(given.iter().cloned()).collect()
    }
}

static PROGRAM: OnceLock<Program> = OnceLock::new();

/// Sets the parts of this process, before anything asks for them.
pub(crate) fn set(program: Program) {
    _ = PROGRAM.set(program);
}

/// The configuration that is built in.
pub(crate) fn configuration() -> Option<&'static BuiltConfiguration> {
    PROGRAM.get().and_then(|program| program.configuration)
}

/// The chains that are built in.
pub(crate) fn fusions() -> &'static [Fusion] {
    PROGRAM.get().map_or(&[], |program| program.fusions)
}

/// Whether the program is `click` by any name but those of the tools.
pub(crate) fn is_driver() -> bool {
    PROGRAM.get().is_some_and(|program| program.is_driver)
}

/// The version, and for a built program its configuration.
pub(crate) fn version() -> &'static str {
    static VERSION: LazyLock<String> = LazyLock::new(|| {
        let version = env!("CARGO_PKG_VERSION");
        origin().map_or(version.to_owned(), |origin| format!("{version}, {origin}"))
    });
    &VERSION
}

/// The configuration that the program was built from, in words.
pub(crate) fn origin() -> Option<String> {
    configuration().map(|built| format!("built from {} (hash {})", built.name(), built.hash))
}
