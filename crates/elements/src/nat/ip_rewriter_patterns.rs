//! `IPRewriterPatterns`: names patterns that rewriters share.

use super::name_resolution::PlaceholderResolver;
use castanet_element::args::PATTERN;
use castanet_element::prelude::*;
use castanet_kit::nat::Pattern;

/// Gives names to patterns, for use in the arguments of rewriters.
///
/// Each argument is a name and a pattern, `NAME SADDR SPORT DADDR DPORT` or `NAME SADDR DADDR`,
/// as an `IPRewriter` has them. All rewriters that name a pattern with a range in sequence
/// share the position in the range.
///
/// ```click
/// AddressInfo(gate 9.9.9.9)
/// IPRewriterPatterns(world gate 1024-65535# - -, lan - - 3.0.0.3 80)
/// a -> x :: IPRewriter(pattern world 0 0) -> out
/// b -> y :: IPRewriter(pattern world 0 0, pattern lan 0 0) -> out2
/// c -> [1] y
/// > a 1.0.0.1:5 > 2.0.0.2:6 udp
/// > b 1.0.0.1:5 > 2.0.0.2:6 udp
/// > c 1.0.0.1:5 > 2.0.0.2:7 udp
/// < out 9.9.9.9:1024 > 2.0.0.2:6 udp
/// < out2 9.9.9.9:1025 > 2.0.0.2:6 udp
/// < out2 1.0.0.1:5 > 3.0.0.3:80 udp
/// ```
#[derive(Element)]
#[element(room = "nat", alias = "IPRewriterPatternsIMP")]
pub struct IPRewriterPatterns {
    /// A name, then a pattern.
    #[arg(rest)]
    patterns: Vec<Words>,
}

impl Info for IPRewriterPatterns {
    fn declare(&self, facts: &mut Facts) -> Result<(), ArgError> {
        for argument in &self.patterns {
            let [name, words @ ..] = argument.words.as_slice() else { continue };
            let taken = |(it, text): &(String, String)| it == name && text.starts_with(PATTERN);
            if facts.names.here().iter().any(taken) {
                return Err(ArgError::new(format!("pattern '{name}' already defined")));
            }
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            // Names are not resolved yet.
            Pattern::parse(&words, &PlaceholderResolver).map_err(|e| {
                ArgError::new(format!("pattern '{name}': {e}"))
                    .click(e)
                    .help("SADDR SPORT DADDR DPORT or SADDR DADDR, where `-` leaves one as it is")
            })?;
            facts.names.declare(name.clone(), format!("{PATTERN}{}", words.join(" ")));
        }
        Ok(())
    }
}
