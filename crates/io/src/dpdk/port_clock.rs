//! Timestamps of a port: its clock's ticks become nanoseconds since 1970.

use crate::sys::dpdk::{Port, PortInfo};
use castanet_kit::device_clock::{ClockPair, DeviceClock};
use castanet_packet::Packet;
use std::time::{Duration, SystemTime};

/// Time from one comparison of a port's clock with the system's to the next, in nanoseconds.
const COMPARISON_INTERVAL: i64 = 1_000_000_000;
/// Time between the first two comparisons: with a microsecond for a read, the frequency is exact to
/// a ten-thousandth until the next.
const FIRST_INTERVAL: Duration = Duration::from_millis(10);

/// The clock of a port's timestamps.
pub(super) enum PortClock {
    /// It counts microseconds since 1970, as net_pcap does with the times of a capture.
    Microseconds,
    /// It counts ticks, and can be read.
    Ticks(DeviceClock),
}

impl PortClock {
    /// The clock of a port that runs.
    pub(super) fn new(port: &Port, info: &PortInfo) -> Result<PortClock, String> {
        let driver = info.driver();
        // net_pcap stamps packets always, and does not name that as an offload.
        if driver == "net_pcap" {
            return Ok(PortClock::Microseconds);
        }
        if !info.has_timestamps() {
            return Err(format!("its driver {driver} does not stamp packets (TIMESTAMP)"));
        }
        let failed = |why| {
            format!("its driver {driver} does not tell its clock, whose ticks have no unit: {why}")
        };
        let first = read(port).map_err(failed)?;
        std::thread::sleep(FIRST_INTERVAL);
        let last = read(port).map_err(failed)?;
        let clock = DeviceClock::new(first, last);
        clock.map(PortClock::Ticks).ok_or_else(|| format!("the clock of {driver} stands still"))
    }

    /// Converts the timestamps of packets that were just received; zero for those without one.
    pub(super) fn stamp(&mut self, port: &Port, packets: &mut [Packet]) {
        if packets.is_empty() {
            return;
        }
        if let PortClock::Ticks(clock) = self {
            let now = now();
            // Also if the system's time was set back.
            if !(0..COMPARISON_INTERVAL).contains(&(now - clock.last_comparison())) {
                // Without an answer the earlier comparison goes on.
                read(port).into_iter().for_each(|reading| clock.compare(reading));
            }
        }
        for packet in packets {
            match (&*self, packet.timestamp()) {
                (_, 0) => {}
                (PortClock::Microseconds, time) => packet.set_timestamp(time.saturating_mul(1000)),
                (PortClock::Ticks(clock), ticks) => packet.set_timestamp(clock.time(ticks as u64)),
            }
        }
    }
}

/// Nanoseconds since 1970 of the system.
fn now() -> i64 {
    let since = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

/// Reads both clocks; the system's in the middle of the port's reply.
fn read(port: &Port) -> Result<ClockPair, String> {
    let before = now();
    let ticks = port.read_clock()?;
    Ok(ClockPair { ticks, nanoseconds: before + (now() - before) / 2 })
}
