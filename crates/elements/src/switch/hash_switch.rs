//! `HashSwitch`: chooses the output by a hash of bytes of the packet.

use super::hash_words;
use castanet_element::fate;
use castanet_element::prelude::*;
use castanet_element::wire::bits;

/// Distributes packets over its outputs by a hash of some of their bytes.
///
/// Packets with the same bytes at OFFSET go to the same output. The hash is Click's: the sum of the
/// bytes, folded for 2, 4 and 8 outputs. Packets that end before OFFSET + LENGTH go to output 0.
///
/// ```click
/// in -> s :: HashSwitch(OFFSET 16, LENGTH 4) -> a;  s[1] -> b
/// > in 1.0.0.1 > 2.0.0.1 udp
/// > in 1.0.0.2 > 2.0.0.2 udp
/// > in 1.0.0.3 > 2.0.0.1 tcp
/// > in hex 00 00 00
/// < b  1.0.0.1 > 2.0.0.1 udp
/// < a  1.0.0.2 > 2.0.0.2 udp
/// < b  1.0.0.3 > 2.0.0.1 tcp
/// < a  hex 00 00 00
/// = s.drops.unmatched 0
/// ```
#[derive(Element)]
#[element(room = "switch", args = HashSwitchArgs)]
pub struct HashSwitch {
    start: usize,
    end: usize,
    outputs: u8,
    /// For 2, 4 and 8 outputs: the bits of a hash that are the output.
    mask: Option<u8>,
}

#[derive(Args)]
pub struct HashSwitchArgs {
    /// Offset of the first byte to hash.
    #[arg]
    offset: u32,
    /// Number of bytes to hash.
    #[arg]
    length: u32,
    /// Uses only the first MAX outputs; all outputs by default.
    #[arg(keyword)]
    max: Option<u32>,
}

impl Build for HashSwitch {
    type Args = HashSwitchArgs;

    fn build(args: HashSwitchArgs, setup: &Setup) -> Result<Self, ArgError> {
        if args.length == 0 {
            return Err(ArgError::new("LENGTH: no bytes to choose by")
                .click("length must be > 0")
                .help("LENGTH is at least 1"));
        }
        let (start, length) = (args.offset as usize, args.length as usize);
        let outputs = output_count(args.max, setup.outputs)?;
        let mask = matches!(outputs, 2 | 4 | 8).then(|| outputs - 1);
        Ok(HashSwitch { start, end: start + length, outputs, mask })
    }
}

/// The number of outputs to use: `max`, or all if it is `None`. Fails if there are fewer.
pub(super) fn output_count(max: Option<u32>, outputs: usize) -> Result<u8, ArgError> {
    let count = max.map_or(outputs, |max| max as usize);
    match u8::try_from(count) {
        Ok(output_count) if output_count > 0 && count <= outputs => Ok(output_count),
        _ => Err(ArgError::new(format!("MAX: {count} of {outputs} outputs"))
            .help(format!("MAX is from 1 to {outputs}"))),
    }
}

/// The bits of a hash that are the output.
#[inline(always)]
pub(super) fn masked(sum: u32, mask: u8) -> u8 {
    (sum ^ (sum >> 4)) as u8 & mask
}

impl HashSwitch {
    /// Decides about packets by a hash of `N` bytes.
    #[inline(always)]
    fn decide_all<'p, const N: usize>(
        &self,
        mask: u8,
        packets: impl Iterator<Item = &'p [u8]>,
        fates: &mut [u8],
    ) {
        for (packet, fate) in packets.zip(fates) {
            let bytes = packet.get(self.start..).and_then(<[u8]>::first_chunk::<N>);
            let output = bytes.map_or(0, |bytes| masked(bits::sum_of_bytes(bytes), mask));
            *fate = Port::known(output).index();
        }
    }

    /// Decides about packets by a hash of an address or two; `false`, and nothing is done, if it is another one.
    #[inline(always)]
    fn decide_together<'p>(
        &self,
        packets: impl Iterator<Item = &'p [u8]>,
        fates: &mut [u8],
    ) -> bool {
        match (self.end - self.start, self.mask) {
            (4, Some(mask)) => self.decide_all::<4>(mask, packets, fates),
            (8, Some(mask)) => self.decide_all::<8>(mask, packets, fates),
            _ => return false,
        }
        true
    }

    /// The output of a packet.
    #[inline]
    fn output(&self, packet: &[u8]) -> Port {
        let Some(bytes) = packet.get(self.start..self.end) else { return Port::nth(0) };
        let sum = bits::sum_of_bytes(bytes);
        // A division takes longer than all the rest.
        Port::nth(match self.mask {
            Some(mask) => masked(sum, mask),
            None => (sum % u32::from(self.outputs)) as u8,
        })
    }
}

impl PerPacket for HashSwitch {
    type On = on::Any;
    type Local = ();
    type Fate = Port;
    const DECIDES_BURSTS: bool = true;
    const BYTE_ACCESS: ByteAccess = ByteAccess::Reads;

    #[inline]
    fn decide_burst(&self, _: &mut (), packets: &mut [Packet], fates: &mut [u8]) -> bool {
        self.decide_together(packets.iter().map(Packet::bytes), fates)
    }

    fn byte_length(&self) -> Option<usize> {
        Some(self.end)
    }

    #[inline]
    fn handle_bytes(&self, _: &mut (), bytes: &mut BurstBytes, fates: &mut [u8]) -> u8 {
        let (range, mask) = (self.start..self.end, self.mask);
        if !mask.is_some_and(|mask| hash_words::decide(range, mask, bytes, fates)) {
            let outputs = bytes.iter().map(|packet| self.output(packet).index());
            fates.iter_mut().zip(outputs).for_each(|(fate, output)| *fate = output);
        }
        fate::bits(fates).1
    }

    #[inline]
    fn packet(&self, _: &mut (), packet: &mut Packet) -> Port {
        self.output(packet.bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_go_where_their_packets_go() {
        for (length, outputs) in [(4, 2), (4, 8), (8, 2), (8, 4), (8, 8)] {
            let mask = Some(outputs - 1);
            let switch = HashSwitch { start: 3, end: 3 + length, outputs, mask };
            // Some end before the last byte to hash.
            let bytes = |n: u8| (0..n % 15).map(|at| n.wrapping_mul(37 + at)).collect::<Vec<u8>>();
            let mut packets: Vec<_> = (0..200).map(|n| Packet::from_bytes(&bytes(n))).collect();
            let mut fates = vec![Port::DROP.index(); packets.len()];
            assert!(switch.decide_burst(&mut (), &mut packets, &mut fates));
            let single = packets.iter_mut().map(|packet| switch.packet(&mut (), packet).index());
            assert_eq!(single.collect::<Vec<u8>>(), fates, "{length} bytes, {outputs} outputs");
            assert!((0..outputs).all(|output| fates.contains(&output)));
            // Those of bytes alone have all that is asked for.
            let mut whole: Vec<_> = (0..=u8::MAX).map(bytes).collect();
            whole.retain(|bytes| bytes.len() >= switch.end);
            let expected: Vec<u8> = whole
                .iter()
                .map(|bytes| switch.packet(&mut (), &mut Packet::from_bytes(bytes)).index())
                .collect();
            for count in [1, 3, 63, 64, 65, whole.len()] {
                let mut fates = vec![Port::DROP.index(); count];
                let bits = BurstBytes::lend(&mut whole[..count], |bytes| {
                    assert!(hash_words::decide(3..switch.end, outputs - 1, bytes, &mut fates));
                    switch.handle_bytes(&mut (), bytes, &mut fates)
                });
                assert_eq!(fates, expected[..count], "{length} bytes, {outputs} outputs");
                assert_eq!(bits, fates.iter().fold(0, |bits, fate| bits | fate));
            }
            // One packet lacks the last byte.
            whole[65].truncate(switch.end - 1);
            let mut fates = vec![Port::DROP.index(); whole.len()];
            BurstBytes::lend(&mut whole, |bytes| {
                assert!(!hash_words::decide(3..switch.end, outputs - 1, bytes, &mut fates));
            });
            assert!(fates.iter().all(|fate| *fate == Port::DROP.index()));
        }
    }
}
