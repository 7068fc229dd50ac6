//! Rules of `IPFilter` as a network function.

use super::{CompiledPolicy, PolicyError, drop_action};
use crate::bits::{Bits, HEADER_BITS, Ternary};
use crate::function::{NetworkFunction, Policy};
use crate::header::{IP4, TRANSPORT_BYTES, kind};
use castanet_kit::classify::{Base, Conjunction, HeaderLength, MaskedWord, Rule, RuleError};
use castanet_wire::Ipv4Header;

/// Maximum number of policies that a rule may need, as ranges and alternatives become several.
const MAX_POLICIES_PER_RULE: usize = 4096;

/// Compiles the arguments of an `IPFilter` with one output. Packets of rules that deny, of no rule, and
/// packets that are not IPv4 are dropped.
///
/// # Errors
/// All rules that are no rules of `IPFilter`, or that test bytes behind a header string.
pub fn ip_filter(rules: &[&str]) -> Result<CompiledPolicy, Vec<PolicyError>> {
    let (mut compiled, mut errors) = (Vec::new(), Vec::new());
    for (rule, text) in rules.iter().enumerate() {
        match conditions(text) {
            Ok(rule) => compiled.push(rule),
            Err(error) => errors.push(PolicyError { rule, error }),
        }
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    let tested = |bits: Bits, it: &Ternary| bits | it.projection();
    let all = compiled.iter().flat_map(|(conditions, _)| conditions).fold(Bits::ZERO, tested);
    let last = (0..HEADER_BITS).rev().find(|&at| all.get(at)).map_or(0, |at| at + 1);
    let header_bits = last.max(IP4.dst.at + IP4.dst.width).next_multiple_of(8);
    let action = |is_dropped| if is_dropped { drop_action(header_bits) } else { Ternary::ANY };
    let policies = compiled.into_iter().flat_map(|(conditions, is_dropped)| {
        conditions
            .into_iter()
            .map(move |condition| Policy { condition, action: action(is_dropped) })
    });
    let rest = Policy { condition: Ternary::ANY, action: drop_action(header_bits) };
    let function = NetworkFunction::first_match(policies.chain([rest]).collect());
    Ok(CompiledPolicy { function, header_bits })
}

/// The matches of a rule, and whether its packets are dropped.
fn conditions(text: &str) -> Result<(Vec<Ternary>, bool), RuleError> {
    let Rule { pattern, output } = Rule::filter(text, 1)?;
    let conjunctions = pattern.conjunctions(MAX_POLICIES_PER_RULE);
    let conjunctions = conjunctions.map_err(|error| RuleError::new(0, error.to_string()))?;
    let conditions: Result<Vec<_>, RuleError> = conjunctions.iter().map(condition).collect();
    Ok((conditions?.into_iter().flatten().collect(), output.is_none()))
}

/// The match of a conjunction; `None` if no IPv4 packet meets it.
fn condition(conjunction: &Conjunction) -> Result<Option<Ternary>, RuleError> {
    let mut condition = Ternary::new(Bits::ZERO, Bits::ZERO).with(0, 1, 0);
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
        assert_eq!(errors[0].rule, 1);
        let many = "allow src port >= 1 and src port <= 65534 and dst port > 0 and dst port < 65535 \
                    and ip len > 0 and ip len < 65535";
        let errors = ip_filter(&[many]).unwrap_err();
        let message = "rule 1: the pattern needs more than 4096 comparisons of bits";
        assert_eq!(errors[0].to_string(), message);
    }
}
