//! Accessibility faults of a page, found by axe-core.

use std::fmt;
use std::fs;

use serde_json::Value;

use super::{Browser, text};
use crate::error::{Error, Result};

/// axe-core, read when a test needs it: programs that contain this crate do not contain axe-core.
const AXE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/assets/axe-core/axe.min.js");

/// Runs all rules of axe-core on the page. It loads no style sheet a second time (`preload`), which
/// a page of a file may not.
const RUN: &str = "const done = arguments[arguments.length - 1];
    axe.run(document, { resultTypes: ['violations'], preload: false })
        .then(results => done(results.violations), error => done(String(error)));";

/// A rule of axe-core that a page breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The rule's name, such as `color-contrast`.
    pub rule: String,
    /// The rule's sentence.
    pub help: String,
    /// The elements that break it: each one's selector, its HTML, and axe-core's explanation.
    pub nodes: Vec<String>,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.rule, self.help)?;
        self.nodes.iter().try_for_each(|node| write!(f, "\n  {node}"))
    }
}

/// Injects axe-core into the page, unless it is there, and returns the faults that it finds.
pub(super) fn violations(browser: &Browser) -> Result<Vec<Violation>> {
    if browser.execute("return typeof axe === 'undefined'", &[])? == true {
        let axe = fs::read_to_string(AXE).map_err(Error::io(format!("read {AXE}")))?;
        browser.execute(&axe, &[])?;
    }
    let results = browser.execute_async(RUN, &[])?;
    let Some(results) = results.as_array() else {
        let step = "look for accessibility faults".to_owned();
        return Err(Error::Browser { step, message: text(results) });
    };
    let mut violations: Vec<Violation> = results.iter().map(violation).collect();
    violations.sort_by(|a, b| a.rule.cmp(&b.rule));
    Ok(violations)
}

/// Reads a violation in axe-core's results.
fn violation(result: &Value) -> Violation {
    let nodes = result["nodes"].as_array().into_iter().flatten();
    let node = |node: &Value| {
        let selectors = node["target"].as_array().into_iter().flatten().cloned().map(text);
        let selector = selectors.collect::<Vec<_>>().join(" ");
        let html = text(node["html"].clone());
        let why = text(node["failureSummary"].clone());
        let why = why.lines().skip(1).map(str::trim).collect::<Vec<_>>().join("; ");
        format!("{selector}  {html}  {why}")
    };
    Violation {
        rule: text(result["id"].clone()),
        help: text(result["help"].clone()),
        nodes: nodes.map(node).collect(),
    }
}
