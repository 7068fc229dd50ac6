//! Ports: each queue behind a lock of its own, so that a port can be set up anew at any time.

use super::eal::{check, enter_thread, is_started};
use super::pool::{Mbufs, is_own_mbuf};
use super::shim::{self, BURST, Setup, Slot};
use super::types::{Counts, Found, Handed, Info, Link, Plan};
use castanet_packet::{Batch, Packet, Pool};
use std::ffi::CString;
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The ports that were asked for, once each.
static PORTS: Mutex<Vec<Arc<Port>>> = Mutex::new(Vec::new());

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A port of DPDK's. A worker holds the lock of a queue for a burst; nobody
/// else wants it but who sets the port up, so it costs next to nothing.
pub(crate) struct Port {
    number: u16,
    started: Mutex<bool>,
    /// Whether there is such a queue now.
    rx: Vec<Mutex<bool>>,
    tx: Vec<Mutex<bool>>,
}

/// The port of this number, if there is one.
pub(crate) fn port(number: u16) -> Option<Arc<Port>> {
    // SAFETY: only looks into a table.
    if !is_started() || unsafe { shim::castanet_dpdk_port_exists(number) } == 0 {
        return None;
    }
    let mut ports = lock(&PORTS);
    if let Some(port) = ports.iter().find(|port| port.number == number) {
        return Some(port.clone());
    }
    let info = info(number).ok()?;
    let queues = |n: u16| (0..n).map(|_| Mutex::new(false)).collect();
    let (rx, tx) = (queues(info.max_rx_queues), queues(info.max_tx_queues));
    let port = Arc::new(Port { number, started: Mutex::new(false), rx, tx });
    ports.push(port.clone());
    Some(port)
}

/// The number of the port that DPDK calls `name`: a PCI address or the name of
/// a virtual device.
pub(crate) fn port_named(name: &str) -> Option<u16> {
    let name = CString::new(name).ok()?;
    let mut number = 0;
    // SAFETY: both pointers are live.
    let found = is_started()
        && unsafe { shim::castanet_dpdk_port_named(name.as_ptr(), &raw mut number) } == 0;
    found.then_some(number)
}

/// The numbers and names of all ports.
pub(crate) fn ports() -> Vec<(u16, String)> {
    if !is_started() {
        return Vec::new();
    }
    let from = |from: u16| {
        // SAFETY: only looks into a table.
        let next = u16::try_from(unsafe { shim::castanet_dpdk_next_port(from) }).ok()?;
        Some((next, info(next).ok()?.name()))
    };
    std::iter::successors(from(0), |(last, _)| from(last + 1)).collect()
}

fn info(number: u16) -> Result<Info, String> {
    let mut info = MaybeUninit::<Info>::uninit();
    // SAFETY: all of `info` is written, whatever the answer.
    unsafe {
        check(shim::castanet_dpdk_info(number, info.as_mut_ptr()))?;
        Ok(info.assume_init())
    }
}

impl Port {
    pub(crate) fn number(&self) -> u16 {
        self.number
    }

    pub(crate) fn info(&self) -> Result<Info, String> {
        info(self.number)
    }

    /// Sets the port up, anew if it is running, and starts it.
    pub(crate) fn start(&self, plan: &Plan, mbufs: &Mbufs) -> Result<(), String> {
        let mut started = lock(&self.started);
        let mut rx: Vec<_> = self.rx.iter().map(lock).collect();
        let mut tx: Vec<_> = self.tx.iter().map(lock).collect();
        rx.iter_mut().chain(&mut tx).for_each(|queue| **queue = false);
        self.halt(&mut started)?;
        let setup = Setup {
            mbufs: mbufs.mempool.0.as_ptr(),
            rx_queues: plan.rx_queues,
            tx_queues: plan.tx_queues,
            rx_descriptors: plan.rx_descriptors,
            tx_descriptors: plan.tx_descriptors,
            mtu: plan.mtu,
            promiscuous: plan.promiscuous.into(),
            reserved: 0,
        };
        // SAFETY: the port is stopped and nobody uses its queues, whose locks
        // we hold; the mempool lasts.
        check(unsafe { shim::castanet_dpdk_start(self.number, &raw const setup) })?;
        *started = true;
        rx.iter_mut().take(plan.rx_queues.into()).for_each(|queue| **queue = true);
        tx.iter_mut().take(plan.tx_queues.into()).for_each(|queue| **queue = true);
        Ok(())
    }

    /// Stops the port; drivers that write files finish them.
    pub(crate) fn stop(&self) -> Result<(), String> {
        let mut started = lock(&self.started);
        for queue in self.rx.iter().chain(&self.tx) {
            *lock(queue) = false;
        }
        self.halt(&mut started)
    }

    /// Stops the port, whose queues nobody uses any more.
    fn halt(&self, started: &mut bool) -> Result<(), String> {
        if std::mem::take(started) {
            // SAFETY: no queue is in use: each has been marked under its lock.
            check(unsafe { shim::castanet_dpdk_stop(self.number) })?;
        }
        Ok(())
    }

    /// Receives up to `max` packets from a queue. Mbufs of `mbufs` become
    /// packets in place; what comes in other ways (chains, other mempools) is
    /// copied into packets of `pool`.
    pub(crate) fn receive(
        &self,
        queue: u16,
        mbufs: &Mbufs,
        pool: &Pool,
        batch: &mut Batch,
        max: usize,
    ) -> Found {
        let running = lock(&self.rx[usize::from(queue)]);
        let mut found = Found::default();
        enter_thread();
        while *running && found.packets + found.lost < max {
            let wanted = (max - found.packets - found.lost).min(BURST);
            let mut slots = [const { MaybeUninit::<Slot>::uninit() }; BURST];
            // SAFETY: the queue is running and its lock is ours; there is room
            // for `wanted` slots, of which as many as it says are written.
            let slots = unsafe {
                let first: *mut Slot = slots.as_mut_ptr().cast();
                let got = shim::castanet_dpdk_receive(
                    self.number,
                    queue,
                    mbufs.mempool.0.as_ptr(),
                    first,
                    wanted as u32,
                );
                std::slice::from_raw_parts(first, got as usize)
            };
            batch.reserve(slots.len());
            for slot in slots {
                match NonNull::new(slot.frame) {
                    // SAFETY: an mbuf of this pool that the driver gave us and
                    // nobody else has.
                    Some(frame) => unsafe {
                        mbufs.pool.adopt_into(batch, frame, slot.start(), slot.len());
                        found.packets += 1;
                    },
                    None if copied(slot, pool, batch) => found.packets += 1,
                    None => found.lost += 1,
                }
            }
            if slots.len() < wanted {
                break;
            }
        }
        found
    }

    /// Hands packets from the front of `batch` to a queue, up to the first
    /// that is no mbuf of its own, or shorter than `shortest`. Those that went
    /// are gone from the batch.
    pub(crate) fn transmit(&self, queue: u16, batch: &mut Batch, shortest: usize) -> Handed {
        let running = lock(&self.tx[usize::from(queue)]);
        enter_thread();
        let mut handed = Handed { full: !*running, ..Handed::default() };
        let ready = |packet: &&Packet| is_own_mbuf(packet) && packet.len() >= shortest;
        while !handed.full {
            let mut slots = [const { MaybeUninit::<Slot>::uninit() }; BURST];
            let ours = batch.as_slice()[handed.packets..].iter().take_while(ready);
            let (mut n, mut bytes) = (0, 0);
            for (slot, packet) in slots.iter_mut().zip(ours) {
                let (start, len) = (packet.headroom() as u32, packet.len() as u32);
                let (frame, mbuf) = (packet.frame().as_ptr(), std::ptr::null_mut());
                slot.write(Slot { frame, span: u64::from(len) << 32 | u64::from(start), mbuf });
                bytes += u64::from(len);
                n += 1;
            }
            // SAFETY: the queue is running and its lock is ours. The first `n`
            // slots were written; the frames are mbufs of ours alone, with
            // those bytes in them; as many as it says are released below.
            let went = unsafe {
                let slots: *const Slot = slots.as_ptr().cast();
                shim::castanet_dpdk_transmit(self.number, queue, slots, n as u32) as usize
            };
            if went < n {
                let back = &batch.as_slice()[handed.packets + went..handed.packets + n];
                bytes -= back.iter().map(|packet| packet.len() as u64).sum::<u64>();
            }
            handed.packets += went;
            handed.bytes += bytes;
            handed.full = went < n;
            if n < BURST {
                break;
            }
        }
        drop(running);
        batch.release(handed.packets);
        handed
    }

    pub(crate) fn link(&self) -> Link {
        let mut link = Link::default();
        // SAFETY: `link` is live.
        unsafe { shim::castanet_dpdk_link(self.number, &raw mut link) };
        link
    }

    /// What the hardware has counted since the port was started.
    pub(crate) fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        // SAFETY: `counts` is live. Without an answer it stays zero.
        unsafe { shim::castanet_dpdk_counts(self.number, &raw mut counts) };
        counts
    }
}

/// Copies what cannot travel in place; `false` if there is no frame for it.
#[cold]
fn copied(slot: &Slot, pool: &Pool, batch: &mut Batch) -> bool {
    let mut packet = pool.alloc();
    let bytes = packet.as_mut().map(|packet| {
        packet.put_back(slot.len() as usize);
        packet.set_mac_header(0);
        packet.bytes_mut()
    });
    let to = bytes.map_or(std::ptr::null_mut(), <[u8]>::as_mut_ptr);
    // SAFETY: the driver gave us the mbuf, and it is not used again; there is
    // room for all its bytes, or none is wanted.
    unsafe { shim::castanet_dpdk_copy_out(slot.mbuf, to, slot.len()) };
    let found = packet.is_some();
    batch.extend(packet);
    found
}
