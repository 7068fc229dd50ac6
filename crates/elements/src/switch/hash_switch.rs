//! `HashSwitch`: an output by the bytes of the packet.

use castanet_engine::prelude::*;

/// Sends packets with the same bytes at a place out of the same output.
///
/// The hash is Click's: the sum of the bytes, folded for 2, 4 and 8 outputs.
/// Packets that end before the place go to output 0.
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
#[element(room = "switch", args = Place)]
pub struct HashSwitch {
    start: usize,
    end: usize,
    outputs: u8,
}

#[derive(Args)]
pub struct Place {
    /// The first byte that counts.
    #[arg]
    offset: u32,
    /// How many bytes count.
    #[arg]
    length: u32,
    /// Uses the first that many outputs only.
    #[arg(keyword)]
    max: Option<u32>,
}

impl Build for HashSwitch {
    type Args = Place;

    fn build(args: Place, setup: &Setup) -> Result<Self, ArgError> {
        if args.length == 0 {
            return Err(ArgError::new("LENGTH: no bytes to choose by")
                .click("length must be > 0")
                .help("LENGTH is at least 1"));
        }
        let (start, length) = (args.offset as usize, args.length as usize);
        Ok(HashSwitch { start, end: start + length, outputs: width(args.max, setup)? })
    }
}

/// How many outputs to use, at most `max` if that is given.
pub(super) fn width(max: Option<u32>, setup: &Setup) -> Result<u8, ArgError> {
    let outputs = setup.outputs;
    let wanted = max.map_or(outputs, |max| max as usize);
    match u8::try_from(wanted) {
        Ok(width) if width > 0 && wanted <= outputs => Ok(width),
        _ => Err(ArgError::new(format!("MAX: {wanted} of {outputs} outputs"))
            .help(format!("MAX is from 1 to {outputs}"))),
    }
}

impl PerPacket for HashSwitch {
    type On = on::Any;
    type Local = ();
    type Fate = Port;

    #[inline]
    fn packet(&self, _: &mut (), packet: &mut Packet) -> Port {
        let Some(bytes) = packet.bytes().get(self.start..self.end) else { return Port::nth(0) };
        let sum = bytes.iter().fold(0u32, |sum, &byte| sum.wrapping_add(byte.into()));
        let outputs = u32::from(self.outputs);
        let hash = match self.outputs {
            2 | 4 | 8 => sum ^ (sum >> 4),
            _ => sum,
        };
        Port::nth((hash % outputs) as u8)
    }
}
