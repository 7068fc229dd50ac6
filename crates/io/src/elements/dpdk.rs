//! What the elements of DPDK ports have in common.

use super::opened::Opened;
use crate::dpdk::{Dpdk, Options, Sums, is_built_in};
use crate::error::IoError;
use crate::sys::dpdk::{Counts, Link};
use castanet_engine::prelude::*;
use std::ops::RangeInclusive;

/// Opens a port for an element; `None` if it may be missing, and is.
pub(super) fn open(
    port: &str,
    options: Options,
    may_be_missing: bool,
) -> Result<Option<Dpdk>, ArgError> {
    match Dpdk::open(port, options) {
        Ok(device) => Ok(Some(device)),
        Err(_) if may_be_missing && !crate::dpdk::exists(port) => Ok(None),
        Err(error) => {
            let error_text = ArgError::new(error.to_string());
            Err(match crate::dpdk::exists(port) {
                true => error_text,
                false => error_text.click(format!("{port} : Unknown or invalid PORT")),
            }
            .help(if is_built_in() { HELP } else { INSTALL }))
        }
    }
}

/// A number of queues as DPDK counts them.
pub(super) fn count(n: usize) -> u16 {
    u16::try_from(n).unwrap_or(u16::MAX)
}

/// Which checksums a port sees to: it checks those it receives, and computes
/// those that packets to send leave open.
#[derive(Args, Clone, Copy)]
pub(super) struct Offloads {
    /// Whether the port sees to checksums of IPv4 headers, if it can.
    #[arg(keyword, default = false)]
    ipco: bool,
    /// Whether it sees to those of TCP, and of IPv4 headers.
    #[arg(keyword, default = false)]
    tco: bool,
    /// Whether it sees to those of UDP, and of IPv4 headers.
    #[arg(keyword, default = false)]
    uco: bool,
}

impl Offloads {
    pub(super) fn sums(self) -> Sums {
        let Offloads { ipco, tco, uco } = self;
        Sums { ip: ipco | tco | uco, tcp: tco, udp: uco }
    }
}

/// What went wrong with something that is no port.
pub(super) fn told(error: &IoError) -> ArgError {
    ArgError::new(error.to_string()).help(if is_built_in() { HELP } else { INSTALL })
}

/// Since when nothing has come, for a worker that need not look all the time.
#[derive(Default)]
pub(super) struct Wait(Option<Time>);

/// How long to look all the time after a packet came.
const ALERT: Duration = Duration::from_millis(1);

/// How long to sleep between two looks after that: a fraction of the time that
/// nothing came, so that a pause between bursts costs little delay, and a night
/// little power. In the longest nap the descriptors of a queue hold a million
/// packets a second.
const NAP: RangeInclusive<Duration> = Duration::from_micros(50)..=Duration::from_millis(1);
const PART: u32 = 8;

impl Wait {
    /// Nothing has come; whether that has not been so for long.
    pub(super) fn is_short(&mut self, now: Time) -> bool {
        now < *self.0.get_or_insert(now) + ALERT
    }

    /// Nothing has come; when to look again.
    pub(super) fn longer(&mut self, now: Time, busy: bool) -> Asked {
        if busy || self.is_short(now) {
            return Asked::Again;
        }
        let since = *self.0.get_or_insert(now);
        let nap = (now - since) / PART;
        Asked::At(now + nap.clamp(*NAP.start(), *NAP.end()))
    }

    /// Something has come.
    pub(super) fn over(&mut self) {
        self.0 = None;
    }
}

const HELP: &str = "for a try without hardware: castanet run --dpdk \"--no-huge -m 512 --no-pci --vdev net_null0\"";
const INSTALL: &str = "on Debian: apt-get install libdpdk-dev dpdk";

/// What there is to know of a port; zeros if it is not open.
pub(super) trait Hardware {
    fn counts(&self) -> Counts;
    fn link(&self) -> Link;
    fn mac(&self) -> String;
    /// The port's number, as FastClick's `device` handlers say it.
    fn port(&self) -> String;
}

impl Hardware for Opened<Dpdk> {
    fn counts(&self) -> Counts {
        self.get().map_or_else(Counts::default, Dpdk::counts)
    }

    fn link(&self) -> Link {
        self.get().map_or_else(Link::default, Dpdk::link)
    }

    fn mac(&self) -> String {
        let address = self.get().map(|device| castanet_wire::MacAddr(device.mac()));
        address.map_or_else(String::new, |it| it.to_string())
    }

    fn port(&self) -> String {
        self.get().map_or_else(|| "undefined".into(), |it| it.port().to_string())
    }
}
