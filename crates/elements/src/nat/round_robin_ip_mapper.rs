//! `RoundRobinIPMapper`: chooses rewriting patterns in turn.

use super::name_resolution::{PlaceholderResolver, round_robin};
use castanet_element::element::ConfigNotice;
use castanet_element::prelude::*;

/// Chooses one of several patterns in turn for each new flow of an IP rewriter.
///
/// Each argument is a pattern with its outputs, `SADDR SPORT DADDR DPORT FOUTPUT ROUTPUT` or
/// `NAME FOUTPUT ROUTPUT`, as an `IPRewriter` has them. A pattern without a free address
/// or port is skipped. Patterns with different destinations balance the load of servers.
///
/// ```click
/// servers :: RoundRobinIPMapper(- - 3.0.0.1 - 0 1, - - 3.0.0.2 - 0 1)
/// in -> rw :: IPRewriter(servers, drop) -> out;  back -> [1] rw;  rw[1] -> home
/// > in   1.0.0.1:5 > 2.0.0.2:80 tcp
/// > in   1.0.0.1:6 > 2.0.0.2:80 tcp
/// > in   1.0.0.1:7 > 2.0.0.2:80 tcp
/// > in   1.0.0.1:5 > 2.0.0.2:80 tcp
/// < out  1.0.0.1:5 > 3.0.0.1:80 tcp
/// < out  1.0.0.1:6 > 3.0.0.2:80 tcp
/// < out  1.0.0.1:7 > 3.0.0.1:80 tcp
/// < out  1.0.0.1:5 > 3.0.0.1:80 tcp
/// > back 3.0.0.2:80 > 1.0.0.1:6 tcp
/// < home 2.0.0.2:80 > 1.0.0.1:6 tcp
/// = rw.pattern0 <mapper> [3]
/// ```
#[derive(Element)]
#[element(room = "nat", alias = "RoundRobinIPMapperIMP")]
pub struct RoundRobinIPMapper {
    /// Patterns with their outputs.
    #[arg(rest)]
    patterns: Vec<Words>,
}

impl Info for RoundRobinIPMapper {
    fn declare(&self, facts: &mut Facts) -> Result<(), ArgError> {
        let texts: Vec<String> = self.patterns.iter().map(|words| words.text.clone()).collect();
        // Names are not resolved yet.
        round_robin(&texts, &PlaceholderResolver)?;
        if texts.len() == 1 {
            facts.notices.push(ConfigNotice::Warning("only one pattern given".into()));
        }
        Ok(())
    }
}
