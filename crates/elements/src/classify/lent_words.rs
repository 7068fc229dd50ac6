//! Programs that decide by the words of packets without descriptors, which are loaded for a burst.

use castanet_element::packet::{BurstBytes, WordTest};
use castanet_element::wire::Ipv4Header;
use castanet_kit::classify::{Base, Program};

/// The outputs of packets by a program of `Classifier` patterns, and the bits that are set in any of them. Packets that
/// pass `test` have output 0, which `outputs` has before.
#[inline(always)]
pub(super) fn outputs_of_bytes(
    program: &Program,
    test: WordTest,
    bytes: &BurstBytes,
    outputs: &mut [u8],
) -> u8 {
    if test.passes_all(bytes) {
        return 0;
    }
    let load = |_, offset, first, words: &mut _| bytes.load_words(offset, first, words);
    let bits = program.outputs_of_words(outputs, load);
    bits.unwrap_or_else(|| program.outputs_of_bytes(bytes.iter(), outputs))
}

/// The same by a program of IP patterns; `None`, and nothing is done, if it reads what not all packets have at the same
/// place.
#[inline(always)]
pub(super) fn outputs_of_headers(
    program: &Program,
    bytes: &BurstBytes,
    outputs: &mut [u8],
) -> Option<u8> {
    program.outputs_of_words(outputs, |base, offset, first, words| match base {
        Base::Network => bytes.load_network_words(offset, first, words),
        // Behind headers without options.
        Base::Transport if bytes.is_plain_ipv4() => {
            bytes.load_network_words(Ipv4Header::LEN + offset, first, words)
        }
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use castanet_element::packet::Packet;
    use castanet_kit::classify::{Pattern, Rule};

    /// IPv4 packets behind an Ethernet header, some of them fragments: all of so many bytes.
    fn frames(count: usize, length: usize) -> Vec<Vec<u8>> {
        let frame = |n: usize| {
            let mut frame: Vec<u8> = (0..length).map(|at| (at * 7 + n * 13) as u8).collect();
            frame[12..16].copy_from_slice(&[8, 0, 0x45, 0]);
            frame[20..22].copy_from_slice(&[0, if n.is_multiple_of(5) { 3 } else { 0 }]);
            frame[23] = [6, 17, 1][n % 3];
            frame[26..30].copy_from_slice(&[10, 0, 0, (n % 4) as u8]);
            frame[34..38].copy_from_slice(&[0, (n % 60) as u8, 0, (n % 9) as u8]);
            frame
        };
        (0..count).map(frame).collect()
    }

    #[test]
    fn words_of_bursts_decide_as_the_bytes_of_single_packets() {
        let patterns = ["12/0800 23/06", "26/0a000001", "34/003b", "12/0800 29/03", "-"];
        let rules = patterns.iter().zip(0..).map(|(text, output)| {
            Rule::new(Pattern::bytes(text).expect("a pattern"), Some(output))
        });
        let program = Program::compile(&rules.collect::<Vec<_>>());
        for count in [1, 3, 4, 63, 64, 65, 256] {
            let mut frames = frames(count, 40);
            let expected: Vec<u8> =
                frames.iter().map(|frame| program.output_of_bytes(frame)).collect();
            let mut outputs = vec![0; count];
            let bits = BurstBytes::lend(&mut frames, |bytes| {
                outputs_of_bytes(&program, WordTest::NONE, bytes, &mut outputs)
            });
            assert_eq!(outputs, expected);
            assert_eq!(bits, expected.iter().fold(0, |bits, output| bits | output));
        }
    }

    /// The outputs of a burst by words, where headers are marked by `mark`, and those of single packets.
    fn of_headers(
        texts: &[&str],
        (count, length): (usize, usize),
        mark: impl Fn(&mut BurstBytes),
    ) -> (Option<Vec<u8>>, Vec<u8>) {
        let rules = texts.iter().map(|text| Rule::filter(text, 3).expect("a rule"));
        let program = Program::compile(&rules.collect::<Vec<_>>());
        let mut frames = frames(count, length);
        let single = |frame: &Vec<u8>| {
            let packet = Packet::from_bytes(frame);
            program.output_of_frame(packet.bytes(), &packet.bytes()[14..])
        };
        let expected = frames.iter().map(single).collect();
        let mut outputs = vec![9; count];
        let bits = BurstBytes::lend(&mut frames, |bytes| {
            mark(bytes);
            outputs_of_headers(&program, bytes, &mut outputs)
        });
        match bits {
            Some(bits) => assert_eq!(bits, outputs.iter().fold(0, |bits, it| bits | it)),
            None => assert!(outputs.iter().all(|it| *it == 9), "nothing is done"),
        }
        (bits.map(|_| outputs), expected)
    }

    #[test]
    fn words_of_headers_decide_as_single_packets() {
        let plain = |bytes: &mut BurstBytes| bytes.mark_plain_ipv4(14);
        let marked = |bytes: &mut BurstBytes| bytes.mark_network(14);
        let hosts = ["deny src host 10.0.0.1", "1 src host 10.0.0.2", "2 udp", "0 all"];
        let ports = ["1 src port 7 or dst port > 4", "deny ip frag", "2 tcp", "0 all"];
        let ether = ["1 src host 10.0.0.3 and ether src 2:0:0:0:0:1", "deny all"];
        for count in [4, 63, 64, 65, 256] {
            for mark in [&plain as &dyn Fn(&mut BurstBytes), &marked] {
                let (together, single) = of_headers(&hosts, (count, 40), mark);
                assert_eq!(together, Some(single));
                // Where a link header begins is not known here.
                assert_eq!(of_headers(&ether, (count, 40), mark).0, None);
            }
            let (together, single) = of_headers(&ports, (count, 40), plain);
            assert_eq!(together, Some(single));
            // Options may be there, no header is marked, or packets end before the ports.
            assert_eq!(of_headers(&ports, (count, 40), marked).0, None);
            assert_eq!(of_headers(&ports, (count, 40), |_| ()).0, None);
            assert_eq!(of_headers(&hosts, (count, 40), |_| ()).0, None);
        }
        assert_eq!(of_headers(&ports, (64, 38), plain).0.map(|it| it.len()), Some(64));
        assert_eq!(of_headers(&hosts, (3, 40), plain).0, None);
        let cut = |bytes: &mut BurstBytes| {
            plain(bytes);
            bytes.cut_packet(63, 37);
        };
        assert_eq!(of_headers(&ports, (64, 40), cut).0, None);
    }
}
