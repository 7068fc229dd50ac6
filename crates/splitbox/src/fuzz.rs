//! Fuzz entry point: a policy, a zero byte, then packets and datagrams.

use crate::bits::{Bits, Ternary};
use crate::datagram::DatagramInfo;
use crate::epochs::{Hello, Status};
use crate::header::{IP4, IP6, header_string, write_header_string};
use crate::policy::{CompiledPolicy, Format, compile};
use crate::private::PrivateFunction;
use castanet_wire::headers::Headers;

/// The languages of policies, by the first byte.
const FORMATS: [Format; 4] = [Format::IpFilter, Format::IpClassifier, Format::Rules, Format::Toml];
/// Separator of packets.
const BETWEEN: &[u8] = b"\xff\xfe\xfd";
/// Maximum number of packets.
const MAX_PACKETS: usize = 64;

/// Compiles the text before the first zero byte, behind a byte that says in which language, and sends
/// the packets behind it through the function: node by node in plain code, and through the private
/// tree. Errors must be about parts of the text.
pub fn fuzz_entry(data: &[u8]) {
    let Some((&format, data)) = data.split_first() else { return };
    let end = data.iter().position(|&byte| byte == 0).unwrap_or(data.len());
    let text = String::from_utf8_lossy(data.get(..end).unwrap_or_default());
    let policy = match compile(FORMATS[usize::from(format) % FORMATS.len()], &text) {
        Ok(policy) => Some(policy),
        Err(errors) => {
            assert!(!errors.is_empty(), "an error without a message");
            for error in errors {
                assert!(text.get(error.range.clone()).is_some(), "{error}: {:?}", error.range);
            }
            None
        }
    };
    let mut rest = data.get(end + 1..).unwrap_or_default();
    for _ in 0..MAX_PACKETS {
        let gap = rest.windows(BETWEEN.len()).position(|it| it == BETWEEN);
        let (bytes, behind) = rest.split_at(gap.unwrap_or(rest.len()));
        _ = DatagramInfo::of(bytes);
        _ = (Hello::decode(bytes), Status::decode(bytes));
        policy.iter().for_each(|policy| pass(policy, bytes));
        rest = behind.get(BETWEEN.len()..).unwrap_or_default();
        if rest.is_empty() {
            break;
        }
    }
}

/// Sends a packet through a function.
fn pass(policy: &CompiledPolicy, bytes: &[u8]) {
    let Some(headers) = Headers::of(bytes, 0).filter(|it| !it.is_cut()) else { return };
    let whole = header_string(bytes, &headers);
    let within = Bits::first(policy.header_bits);
    let plain = policy.function.evaluate(whole & within);
    let (private, matches) = PrivateFunction::new(&policy.function);
    let mut result = whole & within;
    private.traverse(
        |id| matches.get(id as usize).is_some_and(|it| it.matches(whole & within)),
        |action| {
            let policy = policy.function.policies().get(action as usize);
            policy.into_iter().for_each(|it| result = it.action.apply(result));
        },
    );
    assert_eq!(plain, result);
    if !plain.is_zero() {
        let changed = whole & !within | plain;
        let mut bytes = bytes.to_vec();
        write_header_string(&mut bytes, &headers, &changed);
        // Checksums follow; ports are those of TCP and UDP alone.
        let fields = if headers.is_ip6 { IP6 } else { IP4 };
        let mask = [fields.tos, fields.ttl, fields.protocol, fields.src, fields.dst]
            .iter()
            .fold(Ternary::ANY, |mask, field| mask.with(field.at, field.width, 0));
        let result = header_string(&bytes, &headers);
        assert_eq!(result & mask.projection(), changed & mask.projection());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use castanet_wire::sketch;
    use proptest::prelude::*;

    const POLICIES: [(u8, &str); 6] = [
        (0, "allow tcp dst port 80 and src net 10.0.0.0/8\ndeny ip frag # all\nallow -"),
        (1, "tcp dst port > 1024\nicmp type echo or udp"),
        (
            2,
            "proto udp drop\ntcp-dport 443 mod tcp-dport 8443 mod ip-daddr 10.0.0.1\nip-ttl < 5 accept",
        ),
        (
            2,
            "tcp-syn mod ip-dscp 5 mod ip6-dscp 5\n! tcp-dport mod ip-ttl 9\nip6-daddr 2001:db8::/32 drop",
        ),
        (
            3,
            "[nat]\ndirection = \"inbound\"\nrest = \"drop\"\n[[nat.map]]\ninside = \"10.0.0.0/24\"\noutside = \"192.0.2.0/24\"\n",
        ),
        (
            3,
            "[load_balancer]\nservice = \"203.0.113.10:443\"\nprotocol = \"tcp\"\nbuckets = 8\nrest = \"pass\"\n[[load_balancer.backend]]\naddress = \"10.0.0.1\"\nweight = 3\n",
        ),
    ];

    fn packets() -> Vec<u8> {
        let texts = [
            "10.0.0.7:80 > 203.0.113.10:443 tcp syn",
            "192.0.2.9:53 > 192.0.2.1:81 udp nocheck ipopt 0x01010100",
            "192.0.2.77 > 203.0.113.10 tcp id 7 frag 16 len 60",
            "[2001:db8:5::2]:22 > [fd00:1::3]:22 tcp ack",
        ];
        let built = texts.map(|text| sketch::build(text).expect(text).bytes);
        built.join(BETWEEN)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        /// Policies with words and bytes taken away, doubled and changed.
        #[test]
        fn changed_policies_cause_no_panic(
            policy in prop::sample::select(POLICIES.to_vec()),
            format: Option<u8>,
            edits in prop::collection::vec((0..4_u8, any::<prop::sample::Index>(), any::<u8>()), 0..4),
        ) {
            let mut text = policy.1.as_bytes().to_vec();
            for (kind, at, byte) in edits {
                if text.is_empty() {
                    break;
                }
                let at = at.index(text.len());
                match kind {
                    0 => text[at] = byte.max(1),
                    1 => _ = text.remove(at),
                    2 => text.insert(at, b"0123456789./:-\"[]= \n#"[usize::from(byte) % 21]),
                    _ => {
                        let end = (at + usize::from(byte % 16)).min(text.len());
                        let part = text[at..end].to_vec();
                        text.splice(at..at, part);
                    }
                }
            }
            let mut data = vec![format.filter(|it| it % 8 == 0).map_or(policy.0, |it| it / 8)];
            data.extend(text);
            data.push(0);
            data.extend(packets());
            fuzz_entry(&data);
        }

        #[test]
        fn random_bytes_cause_no_panic(data in prop::collection::vec(any::<u8>(), 0..300)) {
            fuzz_entry(&data);
        }
    }
}
