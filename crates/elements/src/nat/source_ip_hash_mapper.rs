//! `SourceIPHashMapper`: a pattern by source address.

use super::named::{Anything, source_hash};
use castanet_engine::element::Said;
use castanet_engine::prelude::*;

/// Has rewriters that name it use one of several patterns by the packet's source address.
///
/// The first argument is a number of places, and a seed; each other is a pattern with its
/// outputs, as an `IPRewriter` has them, and the number of a server. Servers stand on a ring,
/// each at so many places that follow from its number and the seed: so a source stays with its
/// server as others come and go, and with every mapper that has the same seed.
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
    /// The number of places and the seed; then patterns with their outputs and servers.
    #[arg(rest)]
    servers: Vec<Words>,
}

impl Info for SourceIPHashMapper {
    fn declare(&self, facts: &mut Facts) -> Result<(), ArgError> {
        let texts: Vec<String> = self.servers.iter().map(|words| words.text.clone()).collect();
        // What names stand for is not known yet.
        source_hash(&texts, &Anything)?;
        if texts.len() == 2 {
            facts.said.push(Said::Warning("only one pattern given".into()));
        }
        Ok(())
    }
}
