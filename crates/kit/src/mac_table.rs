//! The address table of a switch: ports by Ethernet address (IEEE 802.1D, 7.8).
//!
//! There is no clock: callers pass the time in nanoseconds.

use std::collections::HashMap;
use std::fmt::Write as _;

use rapidhash::fast::RandomState;

const SECOND: u64 = 1_000_000_000;
/// The largest number of addresses; remote hosts choose them.
const MAX_ADDRESSES: usize = 1 << 16;

/// How many addresses one part of an export covers.
const PART: usize = 256;

/// Ports by address.
#[derive(Clone, Debug, Default)]
pub struct MacTable {
    ports: HashMap<[u8; 6], (u8, u64), RandomState>,
    /// The time of the last removal of expired addresses.
    last_sweep: u64,
}

impl MacTable {
    /// How many addresses are known.
    pub fn len(&self) -> usize {
        self.ports.len()
    }

    /// Whether no address is known.
    pub fn is_empty(&self) -> bool {
        self.ports.is_empty()
    }

    /// Records that an address is behind a port. If the table is full, entries older than `timeout`
    /// are removed, at most once a second; otherwise the address is not recorded.
    #[inline]
    pub fn learn(&mut self, mac: [u8; 6], port: u8, now: u64, timeout: u64) {
        if let Some(entry) = self.ports.get_mut(&mac) {
            *entry = (port, now);
        } else if self.ports.len() < MAX_ADDRESSES || self.sweep(now, timeout) {
            self.ports.insert(mac, (port, now));
        }
    }

    /// Calls `each` with some addresses, their ports and the times of their latest packets, from position
    /// `from` on; returns the position behind them, if there are more.
    pub fn export(&self, from: u64, mut each: impl FnMut([u8; 6], u8, u64)) -> Option<u64> {
        let first = usize::try_from(from).unwrap_or(usize::MAX);
        let some = self.ports.iter().skip(first).take(PART);
        some.for_each(|(&mac, &(port, last_seen))| each(mac, port, last_seen));
        let end = first.saturating_add(PART);
        (end < self.ports.len()).then_some(end as u64)
    }

    /// Takes over an address behind a port, with the time of its latest packet; returns whether there was
    /// room.
    pub fn import(&mut self, mac: [u8; 6], port: u8, last_seen: u64) -> bool {
        let has_room = self.ports.len() < MAX_ADDRESSES || self.ports.contains_key(&mac);
        if has_room {
            self.ports.insert(mac, (port, last_seen));
        }
        has_room
    }

    /// Removes an address.
    pub fn forget(&mut self, mac: [u8; 6]) {
        self.ports.remove(&mac);
    }

    /// The port of an address, unless no packet came from it for `timeout`.
    #[inline]
    pub fn find(&self, mac: [u8; 6], now: u64, timeout: u64) -> Option<u8> {
        let &(port, last_seen) = self.ports.get(&mac)?;
        (now < last_seen.saturating_add(timeout)).then_some(port)
    }

    /// Removes expired entries; whether there is room then.
    #[cold]
    fn sweep(&mut self, now: u64, timeout: u64) -> bool {
        if now < self.last_sweep.saturating_add(SECOND) {
            return false;
        }
        self.last_sweep = now;
        self.ports.retain(|_, (_, last_seen)| now < last_seen.saturating_add(timeout));
        self.ports.len() < MAX_ADDRESSES
    }

    /// All addresses and ports, one number for each, as input of [`listing`]. This takes half a
    /// millisecond for a full table, where the text takes fifty.
    pub fn packed(&self) -> Vec<u64> {
        let number = |(&[a, b, c, d, e, f], &(port, _)): (&[u8; 6], &(u8, u64))| {
            u64::from_be_bytes([0, a, b, c, d, e, f, port])
        };
        self.ports.iter().map(number).collect()
    }
}

/// Address and port, one per line, sorted by address, from the result of [`MacTable::packed`].
pub fn listing(numbers: &[u64]) -> String {
    let (mut numbers, mut text) = (numbers.to_vec(), String::new());
    numbers.sort_unstable();
    for number in numbers {
        let [_, mac @ .., port] = number.to_be_bytes();
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{} {port}", mac.map(|b| format!("{b:02X}")).join("-"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mac(n: u32) -> [u8; 6] {
        let [a, b, c, d] = n.to_be_bytes();
        [2, 0, a, b, c, d]
    }

    #[test]
    fn addresses_move_and_expire() {
        let mut table = MacTable::default();
        table.learn(mac(1), 0, 0, 10);
        table.learn(mac(2), 1, 5, 10);
        table.learn(mac(1), 2, 6, 10);
        assert_eq!(listing(&table.packed()), "02-00-00-00-00-01 2\n02-00-00-00-00-02 1\n");
        assert_eq!([mac(1), mac(2), mac(3)].map(|m| table.find(m, 15, 10)), [Some(2), None, None]);
    }

    #[test]
    fn memory_is_bounded() {
        let mut table = MacTable::default();
        for n in 0..MAX_ADDRESSES as u32 + 10 {
            table.learn(mac(n), 0, SECOND, SECOND);
        }
        assert_eq!(table.len(), MAX_ADDRESSES);
        assert_eq!(table.find(mac(MAX_ADDRESSES as u32), SECOND, SECOND), None);
        table.learn(mac(MAX_ADDRESSES as u32), 1, 3 * SECOND, SECOND);
        assert_eq!(
            (table.len(), table.find(mac(MAX_ADDRESSES as u32), 3 * SECOND, 1)),
            (1, Some(1))
        );
    }
}
