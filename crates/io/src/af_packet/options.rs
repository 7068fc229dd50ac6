//! Options of a packet socket.

use super::flow_hash_code::flow_hash_code;
use crate::sys::fanout_table::FanoutTable;
use castanet_kit::rss::even_table;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Options of a packet socket.
#[derive(Clone, Debug)]
pub struct Options {
    /// How to receive.
    pub method: Method,
    /// Whether to take in frames for other hosts too.
    pub promiscuous: bool,
    /// Whether to take in what the host sends.
    pub outbound: bool,
    /// Whether to keep what is received from the kernel's own stack.
    pub exclusive: bool,
    /// Whether what is sent goes past the queueing discipline. It saves the
    /// cost of one where there is one (veth has none: 0.9 µs a packet either
    /// way), but then no other packet socket (`tcpdump`) sees it.
    pub bypass_qdisc: bool,
    /// The fanout group to join, if any.
    pub fanout: Option<Fanout>,
    /// The device number that received packets carry.
    pub device: u16,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            method: Method::Ring,
            promiscuous: false,
            outbound: false,
            exclusive: false,
            bypass_qdisc: false,
            fanout: None,
            device: 0,
        }
    }
}

/// How to receive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Method {
    /// Not at all.
    SendOnly,
    /// From a `TPACKET_V3` ring: 48 ns for a 64-byte packet, its copy included.
    /// A lone packet waits until the kernel hands its block over, at most a
    /// millisecond and 0.4 ms on average.
    Ring,
    /// With a system call a packet, straight into its frame: no delay (0.05 ms),
    /// but 1.3 µs for a 64-byte packet.
    Socket,
}

/// A group of sockets that share an interface's packets.
#[derive(Clone, Debug)]
pub struct Fanout {
    /// The group.
    pub group: FanoutGroup,
    /// The rule that distributes the packets.
    pub mode: FanoutMode,
    /// The socket's number as a queue, and the number of queues.
    pub queue: (u16, u16),
}

/// A fanout group of this process, whose number the kernel finds when its
/// first socket joins.
#[derive(Clone, Default, Debug)]
pub struct FanoutGroup(Arc<Mutex<GroupState>>);

/// The sockets of a group, and their table.
#[derive(Default, Debug)]
struct GroupState {
    /// The group's number.
    number: Option<u16>,
    /// The queue numbers of its sockets, in the kernel's order: that in which they were opened.
    sockets: Vec<u16>,
    /// Number of queues that there are once all sockets have joined.
    queues: u16,
    /// The queue of each entry of the table, with [`FanoutMode::Table`].
    entries: Vec<u16>,
    table: Option<FanoutTable>,
}

impl PartialEq for FanoutGroup {
    fn eq(&self, other: &FanoutGroup) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl FanoutGroup {
    /// Forgets the group's number, because the interface of its sockets is gone.
    pub(crate) fn forget(&self) {
        let mut state = self.lock();
        (state.number, state.sockets) = (None, Vec::new());
    }

    fn lock(&self) -> MutexGuard<'_, GroupState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has a socket join that stands for this queue, by the group's number or as the first, which is to
    /// answer the number found. Sockets join in the order in which they are opened, in which the kernel
    /// has them also when the interface was down in between.
    pub(super) fn join(
        &self,
        queue: u16,
        join: impl FnOnce(Option<u16>) -> io::Result<u16>,
    ) -> io::Result<()> {
        let mut state = self.lock();
        state.number = Some(join(state.number)?);
        if !state.sockets.contains(&queue) {
            state.sockets.push(queue);
        }
        state.fill_table()
    }

    /// Makes the table of a group with [`FanoutMode::Table`] for this number of queues; calls `install` with
    /// its program.
    pub(super) fn make_table(
        &self,
        queues: u16,
        install: impl FnOnce(BorrowedFd<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        let state = &mut *self.lock();
        if state.entries.is_empty() {
            state.queues = queues;
            state.entries = even_table(TABLE_ENTRIES, &(0..queues.max(1)).collect::<Vec<_>>());
        }
        let table = match state.table.take() {
            Some(table) => table,
            None => FanoutTable::new(TABLE_ENTRIES as u32, &flow_hash_code())?,
        };
        install(state.table.insert(table).program())?;
        state.fill_table()
    }

    /// The queue of each entry of the table; empty if the group has none.
    pub(crate) fn table(&self) -> Vec<u16> {
        self.lock().entries.clone()
    }

    /// Number of queues of the table.
    pub(crate) fn queues(&self) -> u16 {
        self.lock().queues
    }

    /// Sets the queue of each entry of the table, which has as many.
    pub(crate) fn set_table(&self, entries: &[u16]) -> io::Result<()> {
        let mut state = self.lock();
        let before = std::mem::replace(&mut state.entries, entries.to_vec());
        state.fill_table().inspect_err(|_| state.entries = before)
    }
}

impl GroupState {
    /// Writes the sockets of the entries' queues to the kernel; a queue whose socket has not joined yet
    /// stands for the first.
    fn fill_table(&self) -> io::Result<()> {
        let Some(table) = &self.table else { return Ok(()) };
        let socket = |queue: &u16| self.sockets.iter().position(|it| it == queue).unwrap_or(0);
        let mut entries = (0..).zip(&self.entries);
        entries.try_for_each(|(entry, queue)| table.set(entry, socket(queue) as u32))
    }
}

/// Number of entries of a group's table.
const TABLE_ENTRIES: usize = 128;

/// The rule that distributes packets over a fanout group (`PACKET_FANOUT_*`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FanoutMode {
    /// By the flow's hash.
    Hash,
    /// By the CPU that the packet arrived on.
    Cpu,
    /// By the hardware queue that the packet arrived in.
    Queue,
    /// One after the other.
    RoundRobin,
    /// By a table, which the flow's hash is looked up in.
    Table,
}

impl FanoutMode {
    pub(super) fn number(self) -> u32 {
        match self {
            FanoutMode::Hash => libc::PACKET_FANOUT_HASH,
            FanoutMode::Cpu => libc::PACKET_FANOUT_CPU,
            FanoutMode::Queue => libc::PACKET_FANOUT_QM,
            FanoutMode::RoundRobin => libc::PACKET_FANOUT_LB,
            FanoutMode::Table => libc::PACKET_FANOUT_EBPF,
        }
    }
}
