//! `SourceIPHashMapper`: chooses rewriting patterns by source address.

use super::name_resolution::{PlaceholderResolver, source_hash};
use castanet_element::element::ConfigNotice;
use castanet_element::prelude::*;

/// Chooses one of several patterns for an IP rewriter by a hash of the source address.
///
/// The first argument is a number of points and a seed; each other is a pattern with its
/// outputs, as an `IPRewriter` has them, and the number of a server. Each server has that many
/// points on a hash ring (consistent hashing), which follow from its number and the seed: a source
/// keeps its server as others come and go, and in every mapper with the same seed.
///
/// ```click
/// servers :: SourceIPHashMapper(100 0xbeef, - - 3.0.0.1 - 0 1 1, - - 3.0.0.2 - 0 1 2)
/// in -> rw :: IPRewriter(servers, drop) -> out;  back -> [1] rw;  rw[1] -> home
/// > in   1.0.0.1:5 > 2.0.0.2:80 tcp
/// > in   1.0.0.1:6 > 2.0.0.2:80 tcp
/// > in   1.0.0.6:5 > 2.0.0.2:80 tcp
/// < out  1.0.0.1:5 > 3.0.0.2:80 tcp
/// < out  1.0.0.1:6 > 3.0.0.2:80 tcp
/// < out  1.0.0.6:5 > 3.0.0.1:80 tcp
/// > back 3.0.0.1:80 > 1.0.0.6:5 tcp
/// < home 2.0.0.2:80 > 1.0.0.6:5 tcp
/// ```
#[derive(Element)]
#[element(room = "nat")]
pub struct SourceIPHashMapper {
    /// The number of points and the seed; then patterns with their outputs and servers.
    #[arg(rest)]
    servers: Vec<Words>,
}

impl Info for SourceIPHashMapper {
    fn declare(&self, facts: &mut Facts) -> Result<(), ArgError> {
        let texts: Vec<String> = self.servers.iter().map(|words| words.text.clone()).collect();
        // Names are not resolved yet.
        source_hash(&texts, &PlaceholderResolver)?;
        if texts.len() == 2 {
            facts.notices.push(ConfigNotice::Warning("only one pattern given".into()));
        }
        Ok(())
    }
}
