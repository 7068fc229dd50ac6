//! CRC-32 of AAL5 (ITU-T I.363.5) and bzip2: the polynomial of Ethernet, with the most
//! significant bit first.

/// Length of the checksum in bytes.
pub const LEN: usize = 4;

/// The generator polynomial without its highest term.
const POLYNOMIAL: u32 = 0x04c1_1db7;

/// For each value of the register's top byte, the change of the register.
const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut register = (byte as u32) << 24;
        let mut bit = 0;
        while bit < 8 {
            let carry = register >> 31;
            register = (register << 1) ^ (carry * POLYNOMIAL);
            bit += 1;
        }
        table[byte] = register;
        byte += 1;
    }
    table
};

/// The checksum of `bytes`, most significant byte first.
pub fn of(bytes: &[u8]) -> [u8; LEN] {
    let step = |register: u32, &byte: &u8| {
        (register << 8) ^ TABLE[usize::from((register >> 24) as u8 ^ byte)]
    };
    (!bytes.iter().fold(u32::MAX, step)).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_known_checksums() {
        assert_eq!(of(b"123456789"), 0xfc89_1918u32.to_be_bytes());
        assert_eq!(of(b""), [0; 4]);
        // A frame with its checksum has a fixed remainder (I.363.5, C.2).
        let whole = [&b"123456789"[..], &of(b"123456789")].concat();
        assert_eq!(of(&whole), (!0xc704_dd7bu32).to_be_bytes());
    }
}
