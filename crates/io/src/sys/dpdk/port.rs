//! DPDK ports: each queue has its own lock, so that a port can be reconfigured at any time.

use super::FlowTable;
use super::burst;
use super::eal::{check, is_started};
use super::forward;
use super::pool::Mbufs;
use super::shim::{self, PortSetup};
use super::types::{
    CopyResult, ForwardResult, InterruptListener, LinkStatus, OtherPackets, PortConfig, PortInfo,
    PortStats, RxMetadata, RxResult, TsoRequest, TxCaps, TxResult, text,
};
use castanet_element::bypass::BytesHandler;
use castanet_packet::{Batch, Pool};
use std::ffi::CString;
use std::mem::MaybeUninit;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The ports that were looked up, each once.
static PORTS: Mutex<Vec<Arc<Port>>> = Mutex::new(Vec::new());

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A DPDK port. A worker holds the lock of a queue for a burst; only a thread that configures the
/// port contends for it, so it costs next to nothing.
pub(crate) struct Port {
    number: u16,
    /// The configuration with which it runs; `None` while it is stopped.
    config: Mutex<Option<RunningConfig>>,
    /// Whether its driver is memif, which shares memory with a peer: its link recovers only if a
    /// worker calls [`Port::revive`], and in zero-copy mode the peer may write to its mbufs.
    pub(crate) is_memif: bool,
    original: Mutex<OriginalSettings>,
    /// Its flow rules. Their lock is taken after that of the configuration.
    pub(crate) flows: Mutex<FlowTable>,
    /// Number of starts.
    starts: AtomicU64,
    rx: Vec<Mutex<RxQueue>>,
    /// Capabilities of each transmit queue; `None` for a queue that is not set up now.
    tx: Vec<Mutex<Option<TxCaps>>>,
}

/// A receive queue.
#[derive(Default)]
struct RxQueue {
    /// Whether the queue is set up now.
    running: bool,
    /// The listener of its interrupts.
    listener: Option<InterruptListener>,
}

/// Settings of a port before the first change, to be restored later.
#[derive(Default)]
struct OriginalSettings {
    mac: Option<[u8; 6]>,
    pause: Option<u32>,
}

/// The configuration of a running port, and state that depends on it.
struct RunningConfig {
    config: PortConfig,
    caps: TxCaps,
    /// Times of the first and the last check that found the link down, while it is down.
    down: Option<(Instant, Instant)>,
}

/// Time that a link must be down before the port is restarted: by then the driver's own thread, which
/// must not be disturbed, has disconnected from the peer or connected to it.
const REVIVE_DELAY: Duration = Duration::from_millis(500);

impl RunningConfig {
    /// Records that the link is down; `true` if it has been down for [`REVIVE_DELAY`] without a
    /// restart of the port.
    fn is_long_down(&mut self) -> bool {
        let now = Instant::now();
        // Workers do not check the link while packets flow, so an old record does not count.
        let before = self.down.filter(|(_, last)| now - *last < 4 * REVIVE_DELAY);
        let first = before.map_or(now, |(first, _)| first);
        let long = now - first >= REVIVE_DELAY;
        self.down = Some((if long { now } else { first }, now));
        long
    }
}

/// The locks of all queues of one direction.
type Queues<'a, T> = Vec<MutexGuard<'a, T>>;

/// All queues of a port, locked.
struct LockedQueues<'a> {
    rx: Queues<'a, RxQueue>,
    tx: Queues<'a, Option<TxCaps>>,
}

impl LockedQueues<'_> {
    /// Reopens the queues that are set up, and notifies the listeners of their interrupts.
    fn reopen(&mut self, running_config: &RunningConfig) {
        let RunningConfig { config, caps, .. } = running_config;
        self.rx.iter_mut().take(config.rx_queues.into()).for_each(|queue| queue.running = true);
        let listeners = self.rx.iter().filter_map(|queue| queue.listener.as_ref());
        // If a notifier's buffer is full, a notification is pending already.
        listeners.for_each(|listener| _ = listener.restart_notifier.send(&[0]));
        self.tx.iter_mut().take(config.tx_queues.into()).for_each(|queue| **queue = Some(*caps));
    }
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
    let rx = (0..info.max_rx_queues).map(|_| Mutex::default()).collect();
    let tx = (0..info.max_tx_queues).map(|_| Mutex::new(None)).collect();
    let is_memif = info.driver() == "net_memif";
    let (config, starts) = (Mutex::new(None), AtomicU64::new(0));
    let (original, flows) = (Mutex::default(), Mutex::default());
    let port = Arc::new(Port { number, config, is_memif, original, flows, starts, rx, tx });
    ports.push(port.clone());
    Some(port)
}

/// Acknowledges the interrupts that are pending at an epoll descriptor.
pub(crate) fn drain_interrupts(epoll: RawFd) {
    // SAFETY: the callee owns the events; they point to data of the driver, and DPDK skips events
    // that have been removed meanwhile.
    unsafe { shim::castanet_dpdk_drain_interrupts(epoll) }
}

/// The number of the port with DPDK's name `name`: a PCI address or the name of a virtual device.
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

fn info(number: u16) -> Result<PortInfo, String> {
    let mut info = MaybeUninit::<PortInfo>::uninit();
    // SAFETY: the callee writes all of `info`, on failure too.
    unsafe {
        check(shim::castanet_dpdk_info(number, info.as_mut_ptr()))?;
        Ok(info.assume_init())
    }
}

impl Port {
    pub(crate) fn number(&self) -> u16 {
        self.number
    }

    pub(crate) fn info(&self) -> Result<PortInfo, String> {
        info(self.number)
    }

    /// Configures and starts the port; a running port is stopped first.
    pub(crate) fn start(&self, config: &PortConfig, mbufs: &Mbufs) -> Result<(), String> {
        let mut running_config = lock(&self.config);
        let mut locked = self.stop_and_lock(&mut running_config)?;
        let (info, room) = (self.info()?, mbufs.pool().data_capacity() as u32);
        let setup = PortSetup {
            mbufs: mbufs.mempool(),
            rx_offloads: config.rx_offloads(&info, room),
            tx_offloads: config.tx_offloads(&info, room),
            ..PortSetup::of(config)
        };
        let mut flows = lock(&self.flows);
        if config.isolated != flows.isolated {
            let lacks = |why| format!("its driver {} does not isolate flows: {why}", info.driver());
            self.isolate(config.isolated).map_err(lacks)?;
            flows.isolated = config.isolated;
        }
        if config.timestamps {
            // SAFETY: the environment runs.
            check(unsafe { shim::castanet_dpdk_register_timestamps() })?;
        }
        // SAFETY: the port is stopped and no worker uses its queues, whose locks
        // are held here; the mempool is never freed.
        let started = check(unsafe { shim::castanet_dpdk_start(self.number, &raw const setup) })?;
        if let Err(why) = self.apply_optional(config, &info) {
            // The first error is returned; one of the stop would add nothing.
            // SAFETY: no worker uses its queues, whose locks are held here.
            unsafe { shim::castanet_dpdk_stop(self.number) };
            return Err(why);
        }
        self.starts.fetch_add(1, Ordering::Relaxed);
        // The start may have changed its MTU.
        let caps = TxCaps::of_port(config, &self.info()?, room);
        let running_config =
            running_config.insert(RunningConfig { config: *config, caps, down: None });
        if started == 0 {
            locked.reopen(running_config);
        }
        Ok(())
    }

    /// Creates the port's flow rules again after a start.
    pub(crate) fn resume_flows(&self) -> Result<(), String> {
        let queues = self.queues().0;
        lock(&self.flows).resume(self, queues)
    }

    /// Applies settings that not every driver supports, and restores original values of those that
    /// are no longer asked for.
    fn apply_optional(&self, config: &PortConfig, info: &PortInfo) -> Result<(), String> {
        let lacks = |what: &str| {
            let said = format!("its driver {} {what}", info.driver());
            move |why: String| format!("{said}: {why}")
        };
        let mut original = lock(&self.original);
        if let Some(mac) = config.mac.or(original.mac) {
            // SAFETY: the address is live.
            check(unsafe { shim::castanet_dpdk_set_mac(self.number, &raw const mac) })
                .map_err(lacks("takes no other Ethernet address"))?;
            original.mac.get_or_insert(info.mac);
        }
        if let Some(pause) = config.pause.map(|pause| pause as u32).or(original.pause) {
            // SAFETY: no pointers are passed.
            let before = check(unsafe { shim::castanet_dpdk_pause(self.number, pause) })
                .map_err(lacks("does not do that with pause frames"))?;
            original.pause.get_or_insert(before as u32);
        }
        for pool in 0..config.vmdq.map_or(0, |vmdq| vmdq.pools) {
            let mac = config.pool_mac(self.number, pool);
            // SAFETY: the address is live.
            check(unsafe {
                shim::castanet_dpdk_pool_mac(self.number, pool.into(), &raw const mac)
            })
            .map_err(lacks("gives pools no Ethernet addresses"))?;
        }
        if config.spread > 0 { self.spread(config.spread) } else { Ok(()) }
    }

    /// Makes RSS of the running port spread packets over its first `queues` queues only.
    pub(crate) fn spread(&self, queues: u16) -> Result<(), String> {
        let size = self.reta_size()?;
        self.set_reta(&(0..size).map(|entry| entry % queues.max(1)).collect::<Vec<u16>>())
    }

    /// Number of entries of the port's RSS redirection table.
    fn reta_size(&self) -> Result<u16, String> {
        // SAFETY: no pointers are passed.
        check(unsafe { shim::castanet_dpdk_reta_size(self.number) })
            .map(|size| size as u16)
            .map_err(|why| format!("its driver does not choose among queues by hash: {why}"))
    }

    /// The queue of each entry of the RSS redirection table of the running port.
    pub(crate) fn reta(&self) -> Result<Vec<u16>, String> {
        let size = self.reta_size()?;
        let mut table = vec![0; usize::from(size)];
        let queues = table.as_mut_ptr();
        // SAFETY: there are as many numbers as it is told.
        check(unsafe { shim::castanet_dpdk_reta(self.number, queues, size, false) })
            .map(|_| table)
            .map_err(|why| format!("its driver does not tell: {why}"))
    }

    /// Sets the queue of each entry of the RSS redirection table of the running port, which has as many.
    pub(crate) fn set_reta(&self, table: &[u16]) -> Result<(), String> {
        let mut table = table.to_vec();
        let (queues, size) = (table.as_mut_ptr(), table.len() as u16);
        // SAFETY: there are as many numbers as it is told.
        check(unsafe { shim::castanet_dpdk_reta(self.number, queues, size, true) })
            .map(drop)
            .map_err(|why| format!("its driver does not choose among queues by hash: {why}"))
    }

    /// Number of starts of the port; each start forgets the interrupt listeners.
    pub(crate) fn starts(&self) -> u64 {
        self.starts.load(Ordering::Relaxed)
    }

    /// The configuration with which the port runs, if it does.
    pub(crate) fn config(&self) -> Option<PortConfig> {
        lock(&self.config).as_ref().map(|running_config| running_config.config)
    }

    /// The descriptor of a queue's interrupt, which several queues may share.
    pub(crate) fn interrupt(&self, queue: u16) -> Option<RawFd> {
        let rx = lock(&self.rx[usize::from(queue)]);
        // SAFETY: the queue was set up, and stays so while its lock is ours.
        let fd = rx.running.then(|| unsafe { shim::castanet_dpdk_interrupt(self.number, queue) });
        fd.filter(|fd| *fd >= 0)
    }

    /// Makes `listener` the only listener of a queue's interrupts; `false` if the queue is not set up
    /// now.
    pub(crate) fn listen(&self, queue: u16, listener: &InterruptListener) -> Result<bool, String> {
        let mut rx = lock(&self.rx[usize::from(queue)]);
        if rx.running {
            // SAFETY: the queue was set up, and stays so while its lock is ours.
            check(unsafe { shim::castanet_dpdk_listen(self.number, queue, listener.epoll, true) })?;
            rx.listener = Some(listener.clone());
        }
        Ok(rx.running)
    }

    /// Removes a queue's interrupt listener, if it still is `listener`.
    pub(crate) fn unlisten(&self, queue: u16, listener: &InterruptListener) {
        let mut rx = lock(&self.rx[usize::from(queue)]);
        if rx.listener.take_if(|current| current.epoll == listener.epoll).is_some() {
            // SAFETY: only numbers are passed, which DPDK compares with what was set up.
            unsafe { shim::castanet_dpdk_listen(self.number, queue, listener.epoll, false) };
        }
    }

    /// Enables or disables a queue's interrupt.
    pub(crate) fn arm(&self, queue: u16, on: bool) -> Result<(), String> {
        let rx = lock(&self.rx[usize::from(queue)]);
        if rx.running {
            // SAFETY: the queue was set up, and stays so while its lock is ours.
            check(unsafe { shim::castanet_dpdk_arm(self.number, queue, on) })?;
        }
        Ok(())
    }

    /// Stops the port; drivers that write files finish them.
    pub(crate) fn stop(&self) -> Result<(), String> {
        self.stop_and_lock(&mut lock(&self.config)).map(|_| ())
    }

    /// Locks all queues, so that no worker uses them, and stops the port; returns the locks.
    fn stop_and_lock(
        &self,
        running_config: &mut Option<RunningConfig>,
    ) -> Result<LockedQueues<'_>, String> {
        let locked = self.locked();
        if running_config.take().is_some() {
            lock(&self.flows).suspend(self);
            // SAFETY: no queue is in use: all locks are held, and each queue is marked as closed.
            check(unsafe { shim::castanet_dpdk_stop(self.number) })?;
        }
        Ok(locked)
    }

    /// Locks all queues and marks them as closed until [`LockedQueues::reopen`].
    fn locked(&self) -> LockedQueues<'_> {
        let mut locked = LockedQueues {
            rx: self.rx.iter().map(lock).collect(),
            tx: self.tx.iter().map(lock).collect(),
        };
        locked.rx.iter_mut().for_each(|queue| queue.running = false);
        locked.tx.iter_mut().for_each(|queue| **queue = None);
        locked
    }

    /// Restarts the port if its link is down and a restart may help: for a memif whose peer was
    /// absent, or has come back.
    pub(crate) fn revive(&self) {
        // If another thread holds the lock, it configures or revives the port already.
        let Ok(mut running_config) = self.config.try_lock() else { return };
        let Some(running_config) = &mut *running_config else { return };
        if self.link().is_up() {
            running_config.down = None;
            return;
        }
        if !running_config.is_long_down() {
            return;
        }
        let mut locked = self.locked();
        // SAFETY: the port was set up, and no worker uses its queues, whose locks
        // are held here.
        if unsafe { shim::castanet_dpdk_revive(self.number) } == 0 {
            locked.reopen(running_config);
        }
    }

    /// Receives up to `max` packets from a queue. Mbufs of `mbufs` become packets in place; chains and
    /// mbufs of other mempools are copied into packets of `pool`.
    pub(crate) fn receive(
        &self,
        queue: u16,
        mbufs: &Mbufs,
        pool: &Pool,
        batch: &mut Batch,
        max: usize,
        metadata: RxMetadata,
    ) -> RxResult {
        let rx = lock(&self.rx[usize::from(queue)]);
        if !rx.running {
            return RxResult::default();
        }
        // SAFETY: the queue is running and its lock is ours; there is room for
        // the mbufs received, which the driver gives up.
        unsafe {
            burst::receive(mbufs, pool, batch, max, metadata, |template, packets, first, n| {
                shim::castanet_dpdk_receive(self.number, queue, template, packets, first, n)
            })
        }
    }

    /// Receives up to `max` packets from a queue and sends them to a queue of `to`, burst by burst,
    /// until one is not sent whole: unchanged, or as `handler` leaves their bytes. The other packets of that
    /// burst are added to the batches. A peer that shares the port's memory may write to bytes while they
    /// are handled: such a port receives none for a handler.
    pub(crate) fn forward(
        &self,
        queue: u16,
        (to, to_queue): (&Port, u16),
        pools: (&Mbufs, &Pool),
        others: OtherPackets,
        max: usize,
        handler: Option<BytesHandler>,
    ) -> ForwardResult {
        // Lock order: receive queues before transmit queues.
        let rx = lock(&self.rx[usize::from(queue)]);
        let sending = lock(&to.tx[usize::from(to_queue)]);
        let (true, Some(caps)) = (rx.running, &*sending) else {
            return ForwardResult::default();
        };
        let (from, shared, to) = (self.number, self.is_memif, to.number);
        let limits = &raw const caps.limits;
        let Some(handler) = handler else {
            // SAFETY: both queues are running and their locks are ours; the driver owns the mbufs that
            // were sent, and gives up the others.
            return unsafe {
                forward::forward(pools, others.unsent, max, |first, n| {
                    shim::castanet_dpdk_forward(from, queue, shared, to, to_queue, limits, first, n)
                })
            };
        };
        if shared {
            return ForwardResult::default();
        }
        let template = pools.0.template();
        // SAFETY: as above; no peer writes to the mbufs that were received.
        unsafe {
            forward::forward_handled(
                pools,
                others,
                (max, caps.limits.shortest),
                handler,
                |to, ends, n| {
                    shim::castanet_dpdk_receive_alike(from, queue, template, limits, to, ends, n)
                },
                |first, n, flags| shim::castanet_dpdk_send(to, to_queue, first, n, flags),
            )
        }
    }

    /// Transmit capabilities, once the port is set up.
    pub(crate) fn tx_caps(&self) -> Option<TxCaps> {
        lock(&self.config).as_ref().map(|running_config| running_config.caps)
    }

    /// Sends packets from the front of `batch` to a queue, up to the first that is no unshared mbuf or
    /// needs the slow path; `length_checked` skips the check for longer packets. Packets that were
    /// sent are removed from the batch.
    pub(crate) fn transmit(&self, queue: u16, batch: &mut Batch, known: bool) -> TxResult {
        let running = lock(&self.tx[usize::from(queue)]);
        let Some(caps) = &*running else {
            return TxResult { full: true, ..TxResult::default() };
        };
        let limits = if known { caps.limits.unlimited() } else { caps.limits };
        // SAFETY: the queue is running and its lock is ours; the packets are
        // live, and the driver owns those that it takes.
        unsafe {
            burst::transmit(batch, |packets, n, mbuf_pools| {
                let limits = &raw const limits;
                shim::castanet_dpdk_transmit(self.number, queue, packets, n, mbuf_pools, limits)
            })
        }
    }

    /// Sends a copy of these bytes as one packet in several mbufs, with TSO if `cut` asks for it.
    pub(crate) fn transmit_long(
        &self,
        queue: u16,
        mbufs: &Mbufs,
        bytes: &[u8],
        cut: &TsoRequest,
    ) -> CopyResult {
        let running = lock(&self.tx[usize::from(queue)]);
        if running.is_none() {
            return CopyResult::Full;
        }
        let (first, len) = (bytes.as_ptr(), bytes.len() as u32);
        // SAFETY: the queue is running and its lock is ours; the bytes are
        // only copied, and the mempool is never freed. The headers that a TSO request
        // describes lie within the bytes, as its maker has checked.
        CopyResult::from_answer(unsafe {
            shim::castanet_dpdk_transmit_long(
                self.number,
                queue,
                mbufs.mempool(),
                first,
                len,
                &raw const *cut,
            )
        })
    }

    /// Reads the clock by which the port stamps received packets.
    pub(crate) fn read_clock(&self) -> Result<u64, String> {
        let mut ticks = 0;
        // SAFETY: `ticks` is live.
        check(unsafe { shim::castanet_dpdk_read_clock(self.number, &raw mut ticks) })?;
        Ok(ticks)
    }

    pub(crate) fn link(&self) -> LinkStatus {
        let mut link = LinkStatus::default();
        // SAFETY: `link` is live.
        unsafe { shim::castanet_dpdk_link(self.number, &raw mut link) };
        link
    }

    /// Statistics of the hardware since the port was started.
    pub(crate) fn hardware_stats(&self) -> PortStats {
        let mut counts = PortStats::default();
        // SAFETY: `counts` is live. Without an answer it stays zero.
        unsafe { shim::castanet_dpdk_counts(self.number, &raw mut counts) };
        counts
    }

    /// Numbers of the port's receive queues, its transmit queues, and descriptors of each receive
    /// queue; zeros while it is stopped.
    pub(crate) fn queues(&self) -> (u16, u16, u16) {
        let running_config = lock(&self.config);
        running_config.as_ref().map_or((0, 0, 0), |it| {
            (it.config.rx_queues, it.config.tx_queues, it.config.rx_descriptors)
        })
    }

    /// Extended statistics of the port, with the driver's names.
    pub(crate) fn xstats(&self) -> Vec<(String, u64)> {
        let mut room = 0;
        loop {
            let (mut names, mut values) = (vec![[0; 64]; room], vec![0; room]);
            // SAFETY: both arrays have room for `room` entries.
            let n = unsafe {
                let (names, values) = (names.as_mut_ptr(), values.as_mut_ptr());
                shim::castanet_dpdk_xstats(self.number, names, values, room as u32)
            };
            let n = usize::try_from(n).unwrap_or(0);
            if n <= room {
                names.truncate(n);
                return names.iter().map(|name| text(name)).zip(values).collect();
            }
            room = n;
        }
    }

    /// Number of packets that wait in a queue, if the driver knows it.
    pub(crate) fn waiting(&self, queue: u16) -> Option<u32> {
        let rx = lock(self.rx.get(usize::from(queue))?);
        // SAFETY: the queue was set up, and stays so while its lock is ours.
        let n = rx.running.then(|| unsafe { shim::castanet_dpdk_waiting(self.number, queue) })?;
        u32::try_from(n).ok()
    }

    /// Adds (`add`) or removes a further Ethernet address whose packets the port receives.
    pub(crate) fn receive_for(&self, mac: [u8; 6], add: bool) -> Result<(), String> {
        // SAFETY: the address is live.
        check(unsafe { shim::castanet_dpdk_accept_mac(self.number, &raw const mac, add) }).map(drop)
    }
}
