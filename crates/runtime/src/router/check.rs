//! Checks a configuration without running it.

use super::build::{Parts, make_all};
use super::calls::{HandlerIndex, find_calls, find_references};
use super::plan::{ConfigPlan, ErrorStyle, plan, report};
use super::{Options, ProgramRun, Router, global};
use crate::graph::lints::LintRemark;
use crate::graph::{Graph, assign};
use castanet_element::args::ScopedNames;
use castanet_element::class::Library;
use castanet_element::error::ArgError;
use castanet_element::shared::SharedState;
use castanet_element::time::Time;
use castanet_lang::{Diagnostics, FlatGraph};

/// A configuration that has been checked; it does not run.
pub struct CheckedConfig {
    graph: Graph,
    assigned: assign::Assignment,
    programs: Vec<ProgramRun>,
    /// By element: whether it could not be made, so that its handlers are not known.
    failed: Vec<bool>,
    /// Parts that are allowed, and rarely meant.
    pub lints: Vec<LintRemark>,
}

impl Router {
    /// Builds without opening a file or a device. In Castanet's style all errors are in `found`, those
    /// about ports, arguments and calls of handlers; in Click's, those of the first step that fails.
    pub fn check(
        flat: &FlatGraph,
        library: &Library,
        options: &Options,
        found: &mut Diagnostics,
    ) -> CheckedConfig {
        let planned = plan(flat, library, &options.cores().assumed(), options.error_style, found);
        let names = planned.names(options.interfaces);
        let shared = SharedState::default();
        let parts = make_all(&planned, &names, &shared, Time::default(), options, found);
        let Parts { programs, declarations, failed, .. } = parts;
        let ConfigPlan { graph, assigned, lints, .. } = planned;
        let graph = graph.with_declarations(declarations);
        let checked = CheckedConfig { graph, assigned, programs, failed, lints };
        // Click looks for handlers where everything else is right.
        if options.error_style == ErrorStyle::Castanet || !found.has_errors() {
            checked.check_calls(&names, options.error_style, found);
        }
        checked
    }
}

impl CheckedConfig {
    /// Checks that there is such a handler; the words behind its name are its parameter.
    ///
    /// # Errors
    /// There is no such element, or it has no such handler to read (or to write).
    pub fn find_handler(&self, handler: &str, write: bool) -> Result<(), ArgError> {
        self.handlers().find(handler.split_whitespace().next().unwrap_or_default(), write)
    }

    fn handlers(&self) -> HandlerIndex<'_> {
        HandlerIndex {
            graph: &self.graph,
            assigned: &self.assigned,
            programs: &self.programs,
            failed: &self.failed,
            global_writes: global::WRITES,
        }
    }

    /// Adds the errors about handlers that elements call on their packets' way.
    fn check_calls(&self, names: &ScopedNames, style: ErrorStyle, found: &mut Diagnostics) {
        for element in 0..self.graph.elements.len() {
            if let Err(error) = find_calls(&self.handlers(), names, element) {
                report(&self.graph, element, "initializing", vec![error], style, found);
            }
        }
    }

    /// Adds the errors about handlers and elements that scripts and other programs name. A router
    /// runs in spite of them, and programs report them when they come to them.
    pub fn check_programs(&self, found: &mut Diagnostics) {
        for run in &self.programs {
            let errors = find_references(&self.handlers(), run);
            report(&self.graph, run.element, "configuring", errors, ErrorStyle::Castanet, found);
        }
    }
}
