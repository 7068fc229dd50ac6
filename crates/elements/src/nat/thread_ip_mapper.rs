//! `ThreadIPMapper`: chooses rewriting patterns by worker.

use super::name_resolution::{PlaceholderResolver, by_worker};
use castanet_element::element::ConfigNotice;
use castanet_element::prelude::*;

/// Chooses one of several patterns for an IP rewriter by the worker that sees a flow first.
///
/// Each argument is a pattern with its outputs, `SADDR SPORT DADDR DPORT FOUTPUT ROUTPUT` or
/// `NAME FOUTPUT ROUTPUT`, as an `IPRewriter` has them. New flows on worker n get pattern n; if
/// there are more workers than patterns, the number is that of the worker modulo the number of
/// patterns. Under the name `click`, workers have mappings of their own, and patterns with different
/// ports keep them from choosing the same one.
///
/// ```click
/// IPRewriterPatterns(world 9.9.9.9 1024-1199# - -)
/// ports :: ThreadIPMapper(world 0 1, world 0 1)
/// in -> rw :: IPRewriter(ports, drop) -> out;  back -> [1] rw;  rw[1] -> home
/// > in   1.0.0.1:5 > 2.0.0.2:80 tcp
/// > in   1.0.0.1:6 > 2.0.0.2:80 tcp
/// > in   1.0.0.1:5 > 2.0.0.2:80 tcp
/// < out  9.9.9.9:1024 > 2.0.0.2:80 tcp
/// < out  9.9.9.9:1025 > 2.0.0.2:80 tcp
/// < out  9.9.9.9:1024 > 2.0.0.2:80 tcp
/// > back 2.0.0.2:80 > 9.9.9.9:1025 tcp
/// < home 2.0.0.2:80 > 1.0.0.1:6 tcp
/// ```
#[derive(Element)]
#[element(room = "nat")]
pub struct ThreadIPMapper {
    /// Patterns with their outputs.
    #[arg(rest)]
    patterns: Vec<Words>,
}

impl Info for ThreadIPMapper {
    fn declare(&self, facts: &mut Facts) -> Result<(), ArgError> {
        let texts: Vec<String> = self.patterns.iter().map(|words| words.text.clone()).collect();
        // Names are not resolved yet.
        by_worker(&texts, &PlaceholderResolver)?;
        if texts.len() == 1 {
            facts.notices.push(ConfigNotice::Warning("only one pattern given".into()));
        }
        Ok(())
    }
}
