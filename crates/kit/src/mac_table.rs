//! Behind which port of a switch an Ethernet address is (IEEE 802.1D, 7.8).
//!
//! There is no clock here: callers say what time it is, in nanoseconds.

use std::collections::HashMap;
use std::fmt::Write as _;

use rapidhash::fast::RandomState;

const SECOND: u64 = 1_000_000_000;
/// How many addresses are known at most, for strangers choose them.
const MOST: usize = 1 << 16;

/// Ports by address.
#[derive(Clone, Debug, Default)]
pub struct MacTable {
    ports: HashMap<[u8; 6], (u8, u64), RandomState>,
    /// When it was last looked through for what has expired.
    swept: u64,
}

impl MacTable {
    /// How many addresses are known.
    pub fn len(&self) -> usize {
        self.ports.len()
    }

    /// Whether none are.
    pub fn is_empty(&self) -> bool {
        self.ports.is_empty()
    }

    /// Notes that an address is behind a port. Where there is no room, for a second after all
    /// that is older than `timeout` was forgotten, nothing is.
    #[inline]
    pub fn learn(&mut self, mac: [u8; 6], port: u8, now: u64, timeout: u64) {
        if let Some(entry) = self.ports.get_mut(&mac) {
            *entry = (port, now);
        } else if self.ports.len() < MOST || self.sweep(now, timeout) {
            self.ports.insert(mac, (port, now));
        }
    }

    /// The port behind which an address is, unless nothing came from it for `timeout`.
    #[inline]
    pub fn find(&self, mac: [u8; 6], now: u64, timeout: u64) -> Option<u8> {
        let &(port, seen) = self.ports.get(&mac)?;
        (now < seen.saturating_add(timeout)).then_some(port)
    }

    /// Forgets what is too old; whether there is room then.
    #[cold]
    fn sweep(&mut self, now: u64, timeout: u64) -> bool {
        if now < self.swept.saturating_add(SECOND) {
            return false;
        }
        self.swept = now;
        self.ports.retain(|_, (_, seen)| now < seen.saturating_add(timeout));
        self.ports.len() < MOST
    }

    /// Every address with its port behind it, as a number each, for [`listing`]: in half a
    /// millisecond, where a text of all takes fifty.
    pub fn numbers(&self) -> Vec<u64> {
        let number = |(&[a, b, c, d, e, f], &(port, _)): (&[u8; 6], &(u8, u64))| {
            u64::from_be_bytes([0, a, b, c, d, e, f, port])
        };
        self.ports.iter().map(number).collect()
    }
}

/// Address and port, a line each, by address, of what [`MacTable::numbers`] has said.
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
    fn addresses_move_and_are_forgotten() {
        let mut table = MacTable::default();
        table.learn(mac(1), 0, 0, 10);
        table.learn(mac(2), 1, 5, 10);
        table.learn(mac(1), 2, 6, 10);
        assert_eq!(listing(&table.numbers()), "02-00-00-00-00-01 2\n02-00-00-00-00-02 1\n");
        assert_eq!([mac(1), mac(2), mac(3)].map(|m| table.find(m, 15, 10)), [Some(2), None, None]);
    }

    #[test]
    fn memory_is_bounded() {
        let mut table = MacTable::default();
        for n in 0..MOST as u32 + 10 {
            table.learn(mac(n), 0, SECOND, SECOND);
        }
        assert_eq!(table.len(), MOST);
        assert_eq!(table.find(mac(MOST as u32), SECOND, SECOND), None);
        table.learn(mac(MOST as u32), 1, 3 * SECOND, SECOND);
        assert_eq!((table.len(), table.find(mac(MOST as u32), 3 * SECOND, 1)), (1, Some(1)));
    }
}
