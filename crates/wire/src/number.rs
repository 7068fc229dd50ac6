//! Numbers of eight bytes that measuring elements write into packets.

/// In which order the bytes of a number lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// As this machine has them.
    #[default]
    Host,
    /// The most significant first.
    Network,
}

/// How many bytes a number has.
pub const LEN: usize = 8;

/// The number at `offset`; `None` if the packet ends before it does.
#[inline]
pub fn read(bytes: &[u8], offset: usize, order: Order) -> Option<u64> {
    let number = *bytes.get(offset..)?.first_chunk::<LEN>()?;
    Some(match order {
        Order::Host => u64::from_ne_bytes(number),
        Order::Network => u64::from_be_bytes(number),
    })
}

/// Writes a number at `offset`; whether there was room.
#[inline]
pub fn write(bytes: &mut [u8], offset: usize, order: Order, number: u64) -> bool {
    let Some(place) = bytes.get_mut(offset..).and_then(<[u8]>::first_chunk_mut::<LEN>) else {
        return false;
    };
    *place = match order {
        Order::Host => number.to_ne_bytes(),
        Order::Network => number.to_be_bytes(),
    };
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_and_stay_within() {
        let mut bytes = [0; 12];
        for order in [Order::Host, Order::Network] {
            assert!(write(&mut bytes, 3, order, 0x0102_0304_0506_0708));
            assert_eq!(read(&bytes, 3, order), Some(0x0102_0304_0506_0708));
            assert!(!write(&mut bytes, 5, order, 1));
            assert_eq!((read(&bytes, 5, order), read(&bytes, 13, order)), (None, None));
        }
        assert_eq!(bytes[3..11], [1, 2, 3, 4, 5, 6, 7, 8]);
    }
}
