//! `Align`: aligns packets in memory.

use castanet_element::prelude::*;
use std::fmt;

/// Aligns packets in memory: their first byte gets an address of a given remainder.
///
/// ```click
/// in -> Align(4, 2) -> out
/// > in  1.0.0.1 > 2.0.0.2 udp
/// < out 1.0.0.1 > 2.0.0.2 udp
/// ```
#[derive(Element)]
#[element(room = "edit", args = AlignArgs, headers = Pass)]
pub struct Align {
    mask: usize,
    offset: usize,
}

#[derive(Args)]
pub struct AlignArgs {
    /// The modulus of the address: 2, 4 or 8.
    #[arg]
    modulus: u32,
    /// The remainder of the address, less than MODULUS.
    #[arg]
    offset: u32,
}

impl Build for Align {
    type Args = AlignArgs;

    fn build(args: AlignArgs, _: &Setup) -> Result<Self, ArgError> {
        let (modulus, offset) = (args.modulus as usize, args.offset as usize);
        if !matches!(modulus, 2 | 4 | 8) {
            return Err(ArgError::new(format!("MODULUS: {modulus} is not 2, 4 or 8"))
                .click("align modulus must be 2, 4, or 8"));
        }
        if offset >= modulus {
            return Err(ArgError::new(format!("OFFSET: {offset} is no remainder of {modulus}"))
                .click("align offset must be smaller than modulus"));
        }
        Ok(Align { mask: modulus - 1, offset })
    }
}

impl Align {
    /// The number of bytes by which the start of a packet must move up.
    #[inline]
    pub(super) fn misalignment(&self, packet: &Packet) -> usize {
        let address = packet.bytes().as_ptr() as usize;
        self.offset.wrapping_sub(address) & self.mask
    }
}

impl fmt::Display for Align {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes off a multiple of {}", self.offset, self.mask + 1)
    }
}

impl PerPacket for Align {
    type On = on::Any;
    type Local = ();
    type Fate = ();

    #[inline]
    fn packet(&self, _: &mut (), packet: &mut Packet) {
        let distance = self.misalignment(packet);
        if distance != 0 {
            packet.shift_data(distance as isize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_start_at_the_remainder() {
        for modulus in [2, 4, 8] {
            for offset in 0..modulus {
                for start in 0..8 {
                    let mut packet = Packet::from_bytes(&[7; 40]);
                    packet.pull_front(start);
                    let shared = packet.share();
                    Align { mask: modulus - 1, offset }.packet(&mut (), &mut packet);
                    assert_eq!(packet.bytes().as_ptr() as usize % modulus, offset);
                    assert_eq!(packet.bytes(), shared.bytes());
                }
            }
        }
    }
}
