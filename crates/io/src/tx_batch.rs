//! Sending a batch: sent and rejected packets leave it, packets without room stay.

use crate::device::DeviceStats;
use castanet_packet::{Batch, Packet};
use std::io;

/// Sends the packets of `batch` with `send` and returns the number sent. `send` takes packets off
/// the front of a slice and returns their number; its error is about the first packet.
pub(crate) fn transmit(
    batch: &mut Batch,
    stats: &mut DeviceStats,
    mut send: impl FnMut(&[Packet]) -> io::Result<usize>,
) -> usize {
    let (mut sent, mut at) = (0, 0);
    while let Some(waiting) = batch.as_slice().get(at..).filter(|rest| !rest.is_empty()) {
        match send(waiting) {
            Ok(count) => {
                let gone = waiting.iter().take(count);
                stats.sent_bytes += gone.map(|packet| packet.len() as u64).sum::<u64>();
                (sent, at) = (sent + count, at + count);
            }
            Err(error) => match error.raw_os_error() {
                Some(libc::EINTR) => {}
                Some(libc::EAGAIN | libc::ENOBUFS) => {
                    stats.tx_full += 1;
                    break;
                }
                // The error is about this packet or about the link: the next packet may succeed,
                // this one will not.
                _ => {
                    stats.tx_errors += 1;
                    at += 1;
                }
            },
        }
    }
    stats.sent += sent as u64;
    let rest = batch.split_off(at);
    *batch = rest;
    sent
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(code: i32) -> io::Result<usize> {
        Err(io::Error::from_raw_os_error(code))
    }

    #[test]
    fn packets_go_are_refused_or_stay() {
        let mut batch = Batch::new();
        for len in 1..=6 {
            batch.push(Packet::from_bytes(&vec![0; len]));
        }
        let mut stats = DeviceStats::default();
        let answers =
            [Ok(2), error(libc::EINTR), error(libc::EMSGSIZE), Ok(1), error(libc::EAGAIN)];
        let mut answers = answers.into_iter();
        let sent = transmit(&mut batch, &mut stats, |_| answers.next().unwrap());
        assert_eq!(sent, 3);
        assert_eq!(batch.iter().map(Packet::len).collect::<Vec<_>>(), [5, 6]);
        let expected = DeviceStats {
            sent: 3,
            sent_bytes: 1 + 2 + 4,
            tx_errors: 1,
            tx_full: 1,
            ..DeviceStats::default()
        };
        assert_eq!(stats, expected);
    }
}
