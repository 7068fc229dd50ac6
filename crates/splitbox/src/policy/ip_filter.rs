//! Rules of `IPFilter` as a network function.

use super::stage::{Effect, Entry, Stage, Target, build, family};
use super::{CompiledPolicy, PolicyError};
use crate::bits::Ternary;
use crate::header::{IP4, TRANSPORT_BYTES, kind};
use castanet_kit::classify::{
    Base, Conjunction, HeaderLength, MaskedWord, Pattern, Rule, RuleError,
};
use castanet_wire::Ipv4Header;

/// Maximum number of policies that a rule may need, as ranges and alternatives become several.
pub(super) const MAX_POLICIES_PER_RULE: usize = 4096;

/// Compiles the arguments of an `IPFilter` with one output. Packets of rules that deny, of no rule, and
/// packets that are not IPv4 are dropped. Places of errors and policies are those in the rules as lines
/// of a text.
///
/// # Errors
/// All rules that are no rules of `IPFilter`, or that test bytes behind a header string.
pub fn ip_filter(rules: &[&str]) -> Result<CompiledPolicy, Vec<PolicyError>> {
    let mut next = 0;
    let rules = rules.iter().map(|rule| {
        let start = next;
        next += rule.len() + 1;
        (start, *rule)
    });
    of_lines(rules, filter)
}

/// Compiles a text of rules of `IPFilter`, one a line, with comments.
pub(super) fn filter_text(text: &str) -> Result<CompiledPolicy, Vec<PolicyError>> {
    of_lines(lines(text), filter)
}

/// Compiles a text of patterns of `IPClassifier`, one a line, with comments: packets of any pattern
/// pass.
pub(super) fn classifier_text(text: &str) -> Result<CompiledPolicy, Vec<PolicyError>> {
    of_lines(lines(text), |text| Ok(Rule::new(Pattern::ip(text)?, Some(0))))
}

/// A rule of `IPFilter`.
pub(super) fn filter(text: &str) -> Result<Rule, RuleError> {
    Rule::filter(text, 1)
}

/// The lines of a text that are neither empty nor comments, each with its offset. The text after a `#`
/// is a comment.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut next = 0;
    let lines = text.split_inclusive('\n').map(move |line| {
        let start = next;
        next += line.len();
        let line = line.split('#').next().unwrap_or_default().trim_end();
        let indent = line.len() - line.trim_start().len();
        (start + indent, line.trim_start())
    });
    lines.filter(|(_, line)| !line.is_empty())
}

fn of_lines<'t>(
    lines: impl Iterator<Item = (usize, &'t str)>,
    parse: impl Fn(&str) -> Result<Rule, RuleError>,
) -> Result<CompiledPolicy, Vec<PolicyError>> {
    build(&[Stage { entries: entries(lines, parse, 1)?, rest: 1 }])
}

/// The entries of rules, each with its place in the text: packets that pass go to a stage.
pub(super) fn entries<'t>(
    lines: impl Iterator<Item = (usize, &'t str)>,
    parse: impl Fn(&str) -> Result<Rule, RuleError>,
    passed: Target,
) -> Result<Vec<Entry>, Vec<PolicyError>> {
    let (mut entries, mut errors, mut last) = (Vec::new(), Vec::new(), 0..0);
    for (start, text) in lines {
        last = start..start + text.len();
        let rule = parse(text).map_err(|error| PolicyError::of_rule(error, text, start));
        let rule = rule.and_then(|rule| {
            let at_rule = |error: RuleError| PolicyError {
                range: last.clone(),
                message: error.message,
                help: error.help,
            };
            Ok((conditions(&rule).map_err(at_rule)?, rule.output))
        });
        match rule {
            Ok((conditions, output)) => entries.extend(conditions.into_iter().map(|condition| {
                let effect = match output {
                    Some(_) => Effect::Set(Ternary::ANY, passed),
                    None => Effect::Drop,
                };
                Entry { condition, effect, range: last.clone() }
            })),
            Err(error) => errors.push(error),
        }
    }
    // Packets of no rule; an error about them is at the last rule.
    entries.push(Entry { condition: Ternary::ANY, effect: Effect::Drop, range: last });
    if errors.is_empty() { Ok(entries) } else { Err(errors) }
}

/// The matches of a rule.
fn conditions(rule: &Rule) -> Result<Vec<Ternary>, RuleError> {
    let conjunctions = rule.pattern.conjunctions(MAX_POLICIES_PER_RULE);
    let conjunctions = conjunctions.map_err(|error| RuleError::new(0, error.to_string()))?;
    conjunctions.iter().filter_map(|it| condition(it).transpose()).collect()
}

/// The match of a conjunction; `None` if no IPv4 packet meets it.
fn condition(conjunction: &Conjunction) -> Result<Option<Ternary>, RuleError> {
    let mut condition = family(false);
    for word in &conjunction.words {
        condition = add_word(condition, word)?;
    }
    for length in &conjunction.lengths {
        match length_bit(length)? {
            LengthCondition::Always => {}
            LengthCondition::Never => return Ok(None),
            LengthCondition::Bit(at) => condition = condition.with(at, 1, length.is_there.into()),
        }
    }
    Ok(Some(condition))
}

fn add_word(condition: Ternary, word: &MaskedWord) -> Result<Ternary, RuleError> {
    let (start, count) = match word.base {
        Base::Network => (IP4.tos.at / 8 - Ipv4Header::TOS, Ipv4Header::LEN),
        Base::Transport => (IP4.sport.at / 8, TRANSPORT_BYTES),
        Base::Packet | Base::Link => {
            return Err(RuleError::new(0, "the link header is no part of a private function")
                .help("test addresses, ports and other fields of IPv4, TCP, UDP and ICMP"));
        }
    };
    let bits = (0..u32::BITS).filter(|bit| word.mask & 0x8000_0000 >> bit != 0);
    bits.into_iter().try_fold(condition, |condition, bit| {
        let at = usize::from(word.offset) + bit as usize / 8;
        if at >= count {
            let message = format!("byte {at} of a header is no part of a header string");
            return Err(RuleError::new(0, message)
                .help(format!("the first {count} bytes of this header are")));
        }
        let value = word.value >> (u32::BITS - 1 - bit) & 1;
        Ok(condition.with(8 * (start + at) + bit as usize % 8, 1, value.into()))
    })
}

/// The meaning of a length for IPv4 packets.
enum LengthCondition {
    Always,
    Never,
    /// A bit of the header string.
    Bit(usize),
}

fn length_bit(length: &HeaderLength) -> Result<LengthCondition, RuleError> {
    let bytes = usize::from(length.bytes);
    match length.base {
        Base::Network if bytes <= Ipv4Header::LEN => Ok(match length.is_there {
            true => LengthCondition::Always,
            false => LengthCondition::Never,
        }),
        Base::Transport if bytes <= TRANSPORT_BYTES => {
            let level = kind::LENGTHS.iter().find(|(least, _)| bytes <= *least);
            let flag = level.map_or(0, |level| level.1);
            Ok(LengthCondition::Bit(flag.leading_zeros() as usize))
        }
        Base::Network | Base::Transport | Base::Packet | Base::Link => {
            let message = format!("byte {} of a header is no part of a header string", bytes - 1);
            Err(RuleError::new(0, message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::Bits;
    use crate::header::header_string;
    use castanet_kit::classify::Program;
    use castanet_wire::headers::Headers;
    use castanet_wire::sketch;
    use proptest::prelude::*;

    const RULES: [&str; 15] = [
        "allow src host 1.0.0.1 and dst port 80",
        "deny src net 1.0.0.0/24",
        "allow tcp and dst port >= 1024",
        "deny udp src port != 5",
        "allow icmp type echo",
        "deny ip frag",
        "allow ip ttl > 9 and not udp",
        "deny tcp opt syn and not tcp opt ack",
        "allow src or dst port 53 and src or dst net 2.0.0.0/8",
        "deny not (tcp or udp or icmp)",
        "allow ip proto 33 and src port 5",
        "deny tcp win 0",
        "allow dst host 2.0.0.2",
        "deny ip dscp 3",
        "allow -",
    ];

    const PACKETS: [&str; 12] = [
        "1.0.0.1:5 > 2.0.0.2:80 tcp syn",
        "1.0.0.1:5 > 2.0.0.2:80 tcp syn ack ttl 8",
        "1.0.0.1:5 > 2.0.0.2:53 udp tos 12",
        "9.0.0.1:53 > 3.0.0.2:6 udp ipopt 0x01010100",
        "1.0.0.9:5 > 2.0.0.2:2000 tcp win 0 ack",
        "1.0.0.1 > 2.0.0.2 icmp type echo",
        "8.0.0.1 > 2.0.0.2 icmp type unreachable",
        "1.0.0.1 > 2.0.0.2 udp id 7 frag 16 len 60",
        "1.0.0.1:5 > 2.0.0.2:6 udp id 7 frag 0+ len 60",
        "7.0.0.1 > 2.0.0.2 proto 33 data 00050006000000000000000000000000",
        "7.0.0.1 > 2.0.0.2 proto 47 data 00050006",
        "7.0.0.1 > 2.0.0.2 proto 99",
    ];

    proptest! {
        #[test]
        fn the_function_drops_what_ip_filter_drops(
            rules in prop::collection::vec(prop::sample::select(RULES.to_vec()), 0..8),
            packet in prop::sample::select(PACKETS.to_vec()),
            changes in prop::collection::vec((8..36_usize, any::<u8>()), 0..3),
        ) {
            let policy = ip_filter(&rules).map_err(|e| TestCaseError::fail(format!("{e:?}")))?;
            let filter = rules.iter().map(|text| Rule::filter(text, 1).expect("is a rule"));
            let program = Program::compile(&filter.collect::<Vec<_>>());
            let mut bytes = sketch::build(packet).expect("is a packet").bytes;
            for (at, byte) in changes {
                bytes.get_mut(at).into_iter().for_each(|it| *it = byte);
            }
            let headers = Headers::of(&bytes, 0);
            // The entry refuses packets without whole headers.
            let Some(headers) = headers.filter(|it| !it.is_cut()) else { return Ok(()) };
            let string = header_string(&bytes, &headers) & Bits::first(policy.header_bits);
            let result = policy.function.evaluate(string);
            prop_assert!(result.is_zero() || result == string);
            prop_assert_eq!(!result.is_zero(), program.run_ip(&bytes) == Some(0), "{:?}", rules);
        }
    }

    #[test]
    fn rules_that_cannot_be_private_are_errors_with_their_numbers() {
        let errors =
            ip_filter(&["allow tcp", "allow prot 6", "deny src host 1.0.0.1"]).unwrap_err();
        assert_eq!(errors.len(), 1);
        assert_eq!(
            (errors[0].range.clone(), errors[0].line("allow tcp\nallow prot 6")),
            (16..20, 2)
        );
        let many = "allow src port >= 1 and src port <= 65534 and dst port > 0 and dst port < 65535 \
                    and ip len > 0 and ip len < 65535";
        let errors = ip_filter(&["allow tcp", many]).unwrap_err();
        let message = "the pattern needs more than 4096 comparisons of bits";
        assert_eq!(
            (errors[0].to_string().as_str(), errors[0].range.clone()),
            (message, 10..10 + many.len())
        );
    }

    #[test]
    fn texts_have_lines_and_comments() {
        let text = "# addresses\n  deny src host 1.0.0.1 # one\n\nallow tcp\n";
        let of_text = filter_text(text).expect("are rules");
        let of_rules = ip_filter(&["deny src host 1.0.0.1", "allow tcp"]).expect("are rules");
        assert_eq!(of_text.function, of_rules.function);
        let places = |policy: &CompiledPolicy, text: &str| -> Vec<String> {
            policy.ranges.iter().map(|it| text[it.clone()].to_owned()).collect()
        };
        let expected = ["deny src host 1.0.0.1", "allow tcp", "allow tcp"];
        assert_eq!(places(&of_text, text), expected);
        let patterns = classifier_text("tcp\ndst port 53 # both\n").expect("are patterns");
        let rules = ip_filter(&["allow tcp", "allow dst port 53"]).expect("are rules");
        assert_eq!(patterns.function, rules.function);
        let errors = classifier_text("tcp\ndst prot 5\n  nothing at all").unwrap_err();
        assert_eq!(errors.iter().map(|it| it.range.start).collect::<Vec<_>>(), [4, 17]);
    }
}
