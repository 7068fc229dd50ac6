//! Packets that a port of DPDK hands to another without descriptors.

use super::to_dpdk_device::ToDPDKDevice;
use crate::dpdk::Dpdk;
use castanet_element::prelude::*;

/// Number of bursts that go on at once: no element has to hold the packets, and the cost of a call is
/// shared by more of them.
const BURSTS: usize = 8;
/// Runs of the source in which it makes packets, after one in which more than one of so many packets was refused, and
/// at most, since each such run in a row doubles them: few are looked at twice.
const PAUSE: u32 = 16;
const LONGEST_PAUSE: u32 = 1024;
const MOST_REFUSED: usize = 5;

/// State of the source.
#[derive(Default)]
pub(super) struct PortBypass {
    /// Packets that were handed on.
    direct_count: u64,
    /// Runs until the next attempt, and after the next that fails.
    pause: u32,
    next_pause: u32,
}

#[handlers]
impl PortBypass {
    /// Packets that have gone to a `ToDPDKDevice` without descriptors, and past the elements between the two.
    #[read]
    fn direct_count(&self) -> u64 {
        self.direct_count
    }
}

impl PortBypass {
    /// Receives packets from `device` and hands them on, where the graph and the device allow it. Packets
    /// that take another way leave the source by `exit`. Returns whether anything was received.
    pub(super) fn run(
        &mut self,
        device: &mut Dpdk,
        n: usize,
        exit: impl Fate,
        cx: &mut Cx,
    ) -> bool {
        if !device.can_forward() {
            return false;
        }
        if self.pause > 0 {
            self.pause -= 1;
            return false;
        }
        let mut refused = Batch::new();
        // Runs that accounts bound are no longer, where elements have work to do.
        let is_bound = cx.long_burst(n) == n;
        let passed = cx.bypass(|to: &ToDPDKDevice, tx, handler, cx| {
            let most = if is_bound && handler.is_some() { n } else { BURSTS * n };
            to.pass(tx, (device, &mut refused), most, handler, cx)
        });
        let passed = passed.map_or(0, |passed| passed.packets as usize);
        self.direct_count += passed as u64;
        let count = refused.len();
        if count * MOST_REFUSED > count + passed {
            self.pause = self.next_pause.max(PAUSE);
            self.next_pause = (self.pause * 2).min(LONGEST_PAUSE);
        } else if passed > 0 {
            self.next_pause = 0;
        }
        if count > 0 {
            cx.count_received(count);
            cx.emit_batch(exit, refused);
        }
        passed + count > 0
    }
}
