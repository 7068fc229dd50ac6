//! A DPDK ring of mbufs as a device.

use super::claims;
use super::transmitter::{MbufSink, Transmitter};
use crate::device::{Device, DeviceStats};
use crate::error::IoError;
use crate::sys::dpdk::{self as sys, CopyResult, Mbufs, RingConfig, TsoRequest, TxCaps, TxResult};
use castanet_packet::{Batch, Pool};
use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;

/// Options of a ring.
#[derive(Clone, Copy, Default, Debug)]
pub struct RingOptions {
    /// Capacity in packets, if this process creates the ring.
    pub descriptors: u32,
    /// The NUMA node that its memory and its mbufs are at; negative for any.
    pub numa_node: i32,
    /// Whether the ring has a single producer among all processes.
    pub one_sender: bool,
    /// Whether the ring has a single consumer.
    pub one_receiver: bool,
    /// Whether to create the ring if there is none; `None` if only the primary process creates it.
    pub create: Option<bool>,
}

/// One end of a ring.
pub struct Ring {
    ring: Arc<sys::Ring>,
    mbufs: Mbufs,
    stats: DeviceStats,
}

impl Ring {
    /// Opens the ring between `us` and `them`. The creator names it `us_2_them`; a process that
    /// attaches to it passes the two names in its own order, so they are swapped.
    pub fn open(us: &str, them: &str, options: RingOptions) -> Result<Ring, IoError> {
        let doing = |name: &str| format!("open DPDK ring {name}");
        let create = options.create.unwrap_or_else(sys::is_primary);
        let (from, to) = if create { (us, them) } else { (them, us) };
        let name = format!("{from}_2_{to}");
        let mbufs = claims::mbufs(&doing(&name), options.numa_node)?;
        let config = RingConfig {
            descriptors: options.descriptors,
            numa_node: options.numa_node,
            one_sender: options.one_sender,
            one_receiver: options.one_receiver,
        };
        let ring = sys::Ring::open(&name, create.then_some(&config))
            .map_err(|why| IoError::Unfit { doing: doing(&name), why })?;
        Ok(Ring { ring, mbufs, stats: DeviceStats::default() })
    }

    /// Number of packets in the ring.
    pub fn waiting(&self) -> usize {
        self.ring.len()
    }
}

/// The producer's end of a ring.
struct RingSink<'a>(&'a sys::Ring);

impl MbufSink for RingSink<'_> {
    #[inline]
    fn transmit(&mut self, batch: &mut Batch, _: bool) -> TxResult {
        self.0.transmit(batch)
    }

    fn tx_caps(&self, mbufs: &Mbufs) -> Option<TxCaps> {
        Some(self.0.tx_caps(mbufs))
    }

    fn transmit_copy(&mut self, mbufs: &Mbufs, bytes: &[u8], _: &TsoRequest) -> CopyResult {
        self.0.transmit_long(mbufs, bytes)
    }
}

impl Device for Ring {
    fn receive(&mut self, pool: &Pool, batch: &mut Batch, max: usize) -> io::Result<usize> {
        let rx_result = self.ring.receive(&self.mbufs, pool, batch, max);
        self.stats.received += rx_result.packets as u64;
        self.stats.received_bytes += rx_result.bytes;
        self.stats.no_frame += rx_result.lost as u64;
        self.stats.malformed += rx_result.malformed as u64;
        Ok(rx_result.packets)
    }

    fn transmit(&mut self, batch: &mut Batch) -> io::Result<usize> {
        let Ring { ring, mbufs, stats } = self;
        // Packets for a ring are never cut into segments.
        let segments = &mut Batch::new();
        Ok(Transmitter { sink: RingSink(ring), mbufs, stats, segments }.transmit(batch))
    }

    fn fd(&self) -> Option<RawFd> {
        None
    }

    fn stats(&self) -> DeviceStats {
        self.stats
    }

    fn describe(&self) -> String {
        format!("{}: DPDK ring, mbufs in place", self.ring.name())
    }
}
