//! Numbers of eight bytes in packets, for elements that measure with them.

/// Byte order of a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ByteOrder {
    /// The byte order of this machine.
    #[default]
    Host,
    /// The most significant byte first.
    Network,
}

/// Length of a number in bytes.
pub const LEN: usize = 8;

/// Reads the number at `offset`; `None` if `bytes` is too short.
#[inline]
pub fn read(bytes: &[u8], offset: usize, order: ByteOrder) -> Option<u64> {
    let number = *bytes.get(offset..)?.first_chunk::<LEN>()?;
    Some(match order {
        ByteOrder::Host => u64::from_ne_bytes(number),
        ByteOrder::Network => u64::from_be_bytes(number),
    })
}

/// Writes a number at `offset`; returns `false` if `bytes` is too short.
#[inline]
pub fn write(bytes: &mut [u8], offset: usize, order: ByteOrder, number: u64) -> bool {
    let Some(target) = bytes.get_mut(offset..).and_then(<[u8]>::first_chunk_mut::<LEN>) else {
        return false;
    };
    *target = match order {
        ByteOrder::Host => number.to_ne_bytes(),
        ByteOrder::Network => number.to_be_bytes(),
    };
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_and_read_within_the_bytes() {
        let mut bytes = [0; 12];
        for order in [ByteOrder::Host, ByteOrder::Network] {
            assert!(write(&mut bytes, 3, order, 0x0102_0304_0506_0708));
            assert_eq!(read(&bytes, 3, order), Some(0x0102_0304_0506_0708));
            assert!(!write(&mut bytes, 5, order, 1));
            assert_eq!((read(&bytes, 5, order), read(&bytes, 13, order)), (None, None));
        }
        assert_eq!(bytes[3..11], [1, 2, 3, 4, 5, 6, 7, 8]);
    }
}
