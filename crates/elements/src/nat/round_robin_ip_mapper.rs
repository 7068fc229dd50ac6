//! `RoundRobinIPMapper`: patterns one after the other.

use super::named::{Anything, round_robin};
use castanet_engine::element::Said;
use castanet_engine::prelude::*;

/// Has rewriters that name it use one of several patterns after the other.
///
/// Each argument is a pattern with its outputs, `SADDR SPORT DADDR DPORT FOUTPUT ROUTPUT` or
/// `NAME FOUTPUT ROUTPUT`, as an `IPRewriter` has them. A pattern that has nothing left is
/// passed over. With patterns of several destinations this divides flows among servers.
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
        // What names stand for is not known yet.
        round_robin(&texts, &Anything)?;
        if texts.len() == 1 {
            facts.said.push(Said::Warning("only one pattern given".into()));
        }
        Ok(())
    }
}
