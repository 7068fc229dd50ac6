//! Claims of elements on the queues of DPDK ports: a port is set up for all of its claims together.

use super::interrupts;
use super::options::{Checksums, Options};
use crate::error::IoError;
use crate::sys::dpdk::{self as sys, Mbufs, Port, PortConfig, PortInfo};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Configuration of the mempools of all ports, as `DPDKInfo` sets it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MempoolConfig {
    /// Number of mbufs of each NUMA node.
    pub mbufs: u32,
    /// Bytes of an mbuf's buffer, headroom included.
    pub mbuf_size: u16,
    /// Mbufs in each thread's cache.
    pub cache: u32,
}

impl Default for MempoolConfig {
    fn default() -> Self {
        MempoolConfig::DEFAULT
    }
}

impl MempoolConfig {
    const DEFAULT: MempoolConfig =
        MempoolConfig { mbufs: 65536, mbuf_size: 2048 + 128, cache: 256 };
}

/// All claims of this process.
static STATE: Mutex<State> = Mutex::new(State {
    mempool_config: MempoolConfig::DEFAULT,
    pools: Vec::new(),
    claims: Vec::new(),
    next: 0,
});

struct State {
    mempool_config: MempoolConfig,
    /// Mempools by NUMA node.
    pools: Vec<(i32, Mbufs)>,
    claims: Vec<QueueClaim>,
    /// The next claim's number.
    next: u64,
}

/// Queues of one claim.
#[derive(Clone, Debug)]
struct QueueClaim {
    id: u64,
    port: u16,
    rx: Range<u16>,
    tx: Range<u16>,
    options: Options,
    /// Whether the device was started; until then the claim may be given up.
    started: bool,
    /// Whether the claim ends before later claims start.
    retiring: bool,
}

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sets the configuration of mempools for ports that are opened from now on.
pub fn configure(mempool_config: MempoolConfig) {
    state().mempool_config = mempool_config;
}

/// Name and number of free mbufs of each mempool.
pub fn pools() -> Vec<(String, usize)> {
    let state = state();
    state.pools.iter().map(|(_, mbufs)| (mbufs.name.clone(), mbufs.available())).collect()
}

/// A claim on queues of a port, until dropped. The port stops with its last claim.
pub(super) struct Claim {
    number: u64,
    pub(super) port: Arc<Port>,
    pub(super) info: PortInfo,
    pub(super) mbufs: Mbufs,
    pub(super) rx: Range<u16>,
    pub(super) tx: Range<u16>,
}

impl Claim {
    /// Claims queues of a port. The port is configured for all of its claims together, if its
    /// configuration changes.
    pub(super) fn new(name: &str, options: &Options) -> Result<Claim, IoError> {
        let failed = |why: String| IoError::Unfit { doing: format!("open DPDK port {name}"), why };
        let port = find(name)?;
        let info = port.info().map_err(failed)?;
        let mut state = state();
        let mbufs = state.mbufs(info.numa_node).map_err(failed)?;
        let number = port.number();
        let rx = state.rx(number, &info, options).map_err(failed)?;
        let tx = tx(&info, options).map_err(failed)?;
        state.check_conflicts(number, options).map_err(failed)?;
        check_pools(&info, options).map_err(failed)?;
        let claim = state.next;
        state.next += 1;
        state.claims.push(QueueClaim {
            id: claim,
            port: number,
            rx: rx.clone(),
            tx: tx.clone(),
            options: *options,
            started: false,
            retiring: false,
        });
        let claim = Claim { number: claim, port, info, mbufs, rx, tx };
        // A driver rejects an unsupported configuration only when it is applied; if the claim is
        // dropped, the port gets its earlier configuration back.
        let set_up = claim.set_up(&mut state, options);
        // Dropping the claim locks the state.
        drop(state);
        set_up.map(|()| claim).map_err(failed)
    }

    /// Marks the claim as started, and configures the port without the claims that have ended.
    pub(super) fn start(&self, name: &str, options: &Options) -> Result<(), IoError> {
        let mut state = state();
        state.update(self.number, |entry| entry.started = true);
        let failed = |why| IoError::Unfit { doing: format!("open DPDK port {name}"), why };
        self.set_up(&mut state, options).map_err(failed)
    }

    /// Configures the port for all of its claims; on failure, restores the earlier configuration.
    fn set_up(&self, state: &mut State, options: &Options) -> Result<(), String> {
        let (port, number) = (&self.port, self.port.number());
        let before = port.config();
        let set_up = match state.config(number, &self.info) {
            Some(config) if before != Some(config) => start(port, &config, &self.mbufs),
            _ => Ok(()),
        };
        let check_interrupts = || match options.interrupts {
            true => interrupts::check(
                port,
                &self.rx,
                state.interrupt_queues_of_others(number, self.number),
            ),
            false => Ok(()),
        };
        set_up
            .and_then(|()| check_interrupts())
            .map_err(|why| restore(port, before, &self.mbufs, why))
    }

    /// Marks whether other claims may take the same queues, since this claim ends before they start.
    pub(super) fn set_retiring(&self, retiring: bool) {
        state().update(self.number, |entry| entry.retiring = retiring);
    }

    /// The transmit queue that this claim's device uses.
    pub(super) fn tx_queue(&self, options: &Options) -> Option<u16> {
        let queues = self.tx.end - self.tx.start;
        let transmit = options.transmit.filter(|_| queues > 0)?;
        Some(self.tx.start + transmit.mine % queues)
    }

    /// Describes how packets are received and sent, for the user.
    pub(super) fn describe(&self) -> String {
        let mtu = self.port.info().map_or(self.info.mtu, |info| info.mtu);
        let (port, name, driver) = (self.port.number(), self.info.name(), self.info.driver());
        let queues = |range: &Range<u16>| match range.len() {
            1 => format!("queue {}", range.start),
            _ => format!("queues {} to {}", range.start, range.end - 1),
        };
        let receives = match self.rx.is_empty() {
            true => String::new(),
            false => format!("; receives from {}", queues(&self.rx)),
        };
        let sends = match self.tx.is_empty() {
            true => String::new(),
            false => format!("; sends to {}, {}", queues(&self.tx), self.offer()),
        };
        format!(
            "{name}: DPDK port {port}, driver {driver}, MTU {mtu}, mbufs in place{receives}{sends}"
        )
    }
}

impl Claim {
    /// Longest packet that can be sent, its Ethernet header included.
    pub(super) fn longest(&self) -> u32 {
        self.port.tx_caps().map_or(0, |caps| caps.longest)
    }

    /// Describes which packets can be sent, and which offloads the port does.
    fn offer(&self) -> String {
        let Some(caps) = self.port.tx_caps() else { return "nothing yet".to_owned() };
        let chains = match caps.in_mbufs as usize > self.mbufs.pool().data_capacity() {
            true => ", in several mbufs if need be",
            false => "",
        };
        let sums = match caps.tx_checksums.names().as_slice() {
            [] => String::new(),
            names => format!("; the port completes checksums of {}", names.join(", ")),
        };
        let tso = match (caps.cut, caps.segment) {
            (None, _) => "",
            (Some(_), Some(_)) => "; the port cuts longer TCP packets",
            (Some(_), None) => "; longer TCP packets are cut in software",
        };
        format!("packets of up to {} bytes{chains}{sums}{tso}", caps.longest)
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut state = state();
        let number = self.port.number();
        let was_started = state.claims.iter().any(|entry| entry.id == self.number && entry.started);
        state.claims.retain(|entry| entry.id != self.number);
        // An error has no receiver: the port stops, never ran, or ran with this configuration
        // before.
        match state.config(number, &self.info) {
            None => drop(self.port.stop()),
            Some(config) if !was_started && self.port.config() != Some(config) => {
                drop(start(&self.port, &config, &self.mbufs));
            }
            Some(_) => {}
        }
    }
}

/// Returns an error unless DPDK is built in and has been started.
fn require_started(doing: &str) -> Result<(), IoError> {
    let doing = || doing.to_owned();
    if !sys::BUILT_IN {
        let why = sys::start(&[]).err().unwrap_or_default();
        return Err(IoError::Unfit { doing: doing(), why });
    }
    if !sys::is_started() {
        return Err(IoError::Unsupported {
            doing: doing(),
            hint: "DPDK has not been started; give its options with --dpdk",
        });
    }
    Ok(())
}

/// The mbufs of a NUMA node.
pub(super) fn mbufs(doing: &str, numa_node: i32) -> Result<Mbufs, IoError> {
    require_started(doing)?;
    state().mbufs(numa_node).map_err(|why| IoError::Unfit { doing: doing.to_owned(), why })
}

/// The port called `name`.
pub(super) fn find(name: &str) -> Result<Arc<Port>, IoError> {
    let doing = || format!("open DPDK port {name}");
    require_started(&doing())?;
    let number = name.parse().ok().or_else(|| sys::port_named(name));
    // `name` may be a PCI address without its domain.
    let number = number.or_else(|| sys::port_named(&format!("0000:{name}")));
    number.and_then(sys::port).ok_or_else(|| {
        let known: Vec<String> =
            sys::ports().iter().map(|(number, name)| format!("{number} ({name})")).collect();
        let why = match known.is_empty() {
            true => "there is no such port; DPDK found none at all".to_owned(),
            false => format!("there is no such port; there are {}", known.join(", ")),
        };
        IoError::Unfit { doing: doing(), why }
    })
}

/// Returns an error if the port has fewer pools than wanted.
fn check_pools(info: &PortInfo, options: &Options) -> Result<(), String> {
    let (most, driver) = (info.max_vmdq_pools, info.driver());
    match options.vmdq.map_or(0, |vmdq| vmdq.pools) {
        wanted if wanted <= most => Ok(()),
        _ if most == 0 => {
            Err(format!("its driver {driver} has no VMDq, and so no pools (VF_POOLS)"))
        }
        _ => Err(format!("its driver {driver} has {most} pools of VMDq (VF_POOLS)")),
    }
}

/// Starts a port, with the flow rules that it had.
fn start(port: &Port, config: &PortConfig, mbufs: &Mbufs) -> Result<(), String> {
    port.start(config, mbufs)?;
    port.resume_flows()
}

/// Restores a port's configuration for its earlier claims after a failure; returns the reason `why`,
/// with the error of the restore if that fails too.
fn restore(port: &Port, before: Option<PortConfig>, mbufs: &Mbufs, why: String) -> String {
    let again = match before {
        _ if port.config() == before => Ok(()),
        Some(config) => start(port, &config, mbufs),
        None => port.stop(),
    };
    match again {
        Ok(()) => why,
        Err(again) => format!("{why}; and as it was it does not start either: {again}"),
    }
}

impl State {
    /// Changes the entry of a claim.
    fn update(&mut self, claim: u64, change: impl FnOnce(&mut QueueClaim)) {
        if let Some(entry) = self.claims.iter_mut().find(|entry| entry.id == claim) {
            change(entry);
        }
    }

    /// Returns an error if another claim wants another value of a setting that all claims of a
    /// port share.
    fn check_conflicts(&self, port: u16, options: &Options) -> Result<(), String> {
        let stays = |it: &&QueueClaim| it.port == port && !it.retiring;
        let others = || self.claims.iter().filter(stays).map(|it| it.options);
        fn differ<T: PartialEq>(one: Option<T>, other: Option<T>) -> bool {
            one.zip(other).is_some_and(|(one, other)| one != other)
        }
        if others().any(|it| differ(it.mac, options.mac)) {
            return Err("another element gives it another Ethernet address (MAC)".into());
        }
        if others().any(|it| differ(it.vmdq, options.vmdq)) {
            return Err("another element wants other pools (MODE, VF_POOLS, VF_VLAN)".into());
        }
        match others().any(|it| differ(it.pause, options.pause)) {
            true => Err("another element wants other pause frames (PAUSE)".into()),
            false => Ok(()),
        }
    }

    /// Queues of a port whose interrupts other claims wait for.
    fn interrupt_queues_of_others(&self, port: u16, claim: u64) -> impl Iterator<Item = u16> {
        let others = self.claims.iter().filter(move |it| it.port == port && it.id != claim);
        others.filter(|it| it.options.interrupts).flat_map(|it| it.rx.clone())
    }

    /// The mbufs of a NUMA node.
    fn mbufs(&mut self, numa_node: i32) -> Result<Mbufs, String> {
        // A port without a NUMA node uses the mempool of the first.
        let key = numa_node.max(0);
        if let Some((_, mbufs)) = self.pools.iter().find(|(node, _)| *node == key) {
            return Ok(mbufs.clone());
        }
        let MempoolConfig { mbufs, mbuf_size, cache } = self.mempool_config;
        let name = format!("castanet_mbufs_{}", self.pools.len());
        let mbufs = Mbufs::new(&name, mbufs, cache, mbuf_size, numa_node).map_err(|why| {
            format!("no memory for {mbufs} mbufs of {mbuf_size} bytes ({why}); give DPDK more with -m, or say DPDKInfo(NB_MBUF ...)")
        })?;
        self.pools.push((key, mbufs.clone()));
        Ok(mbufs)
    }

    /// Receive queues that no other claim has.
    fn rx(&self, port: u16, info: &PortInfo, options: &Options) -> Result<Range<u16>, String> {
        let Some(wanted) = options.receive else { return Ok(0..0) };
        let stays =
            |entry: &&QueueClaim| entry.port == port && !entry.rx.is_empty() && !entry.retiring;
        let others = || self.claims.iter().filter(stays);
        let first = match wanted.first {
            Some(first) => first,
            None => others().map(|entry| entry.rx.end).max().unwrap_or(0),
        };
        let queues = first..first.saturating_add(wanted.queues.max(1));
        if queues.end > info.max_rx_queues {
            let most = info.max_rx_queues;
            return Err(format!("its driver {} has {most} queues to receive from", info.driver()));
        }
        match others().find(|entry| entry.rx.start < queues.end && queues.start < entry.rx.end) {
            Some(_) => Err(format!("queue {first} is in use by another element")),
            None => Ok(queues),
        }
    }

    /// The configuration of a port for all of its claims; `None` without claims.
    fn config(&self, port: u16, info: &PortInfo) -> Option<PortConfig> {
        let users = || self.claims.iter().filter(|entry| entry.port == port);
        let most = |of: fn(&QueueClaim) -> u16| users().map(of).max().unwrap_or(0);
        users().next()?;
        let descriptors = |n: u16| if n == 0 { DESCRIPTORS } else { n };
        let rx_queues =
            most(|entry| entry.rx.end.max(entry.options.reserved.0)).max(1).min(info.max_rx_queues);
        // Each pool has as many queues.
        let vmdq = users().find_map(|entry| entry.options.vmdq);
        let rx_queues = match vmdq {
            Some(vmdq) => rx_queues.next_multiple_of(vmdq.pools.max(1)).min(info.max_rx_queues),
            None => rx_queues,
        };
        let refused = users().any(|entry| entry.options.rss == Some(false));
        let wanted =
            users().any(|entry| entry.options.rss == Some(true) || entry.options.aggregate);
        let spread = most(|entry| entry.options.spread).min(rx_queues);
        let rss = !refused && (wanted || rx_queues > 1 || spread > 0);
        let sums = |of: fn(&Options) -> Checksums| {
            users().map(|entry| of(&entry.options)).fold(Checksums::default(), Checksums::or)
        };
        Some(PortConfig {
            // Some drivers need a queue in each direction, used or not.
            rx_queues,
            tx_queues: most(|entry| entry.tx.end.max(entry.options.reserved.1))
                .max(1)
                .min(info.max_tx_queues),
            rx_descriptors: descriptors(most(|entry| {
                if entry.rx.is_empty() { 0 } else { entry.options.descriptors }
            })),
            tx_descriptors: descriptors(most(|entry| {
                if entry.tx.is_empty() { 0 } else { entry.options.descriptors }
            })),
            mtu: most(|entry| entry.options.mtu),
            promiscuous: users().any(|entry| entry.options.promiscuous),
            rss,
            rx_checksums: sums(|it| it.rx_checksums),
            tx_checksums: sums(|it| it.tx_checksums),
            tso: users().any(|entry| entry.options.tso),
            mac: users().find_map(|entry| entry.options.mac),
            pause: users().find_map(|entry| entry.options.pause),
            spread: if rss { spread } else { 0 },
            interrupts: users().any(|entry| entry.options.interrupts),
            vmdq,
            isolated: users().any(|entry| entry.options.isolated),
            timestamps: users().any(|entry| entry.options.timestamps),
        })
    }
}

/// Default number of descriptors of a queue: 69 µs of the shortest packets at 10 Gbit/s, so that a
/// worker may sleep for some of it.
const DESCRIPTORS: u16 = 1024;

/// Transmit queues of a claim.
fn tx(info: &PortInfo, options: &Options) -> Result<Range<u16>, String> {
    let Some(wanted) = options.transmit else { return Ok(0..0) };
    let most = info.max_tx_queues;
    if wanted.first >= most {
        return Err(format!("its driver {} has {most} queues to send to", info.driver()));
    }
    Ok(wanted.first..wanted.first.saturating_add(wanted.queues.max(1)).min(most))
}
