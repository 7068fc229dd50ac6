//! The frames of a router: those that devices fill, and memory for packets that are kept.
//!
//! Elements, devices and ARP take frames of the *device pool* for a moment. An
//! element that keeps packets gives them to [`Cx::keep`](crate::cx::Cx::keep) first: while the
//! device pool has fewer free frames than its reserve, that moves them to the *storage pool*, which
//! is mapped lazily up to a share of the memory. So a packet that stays never takes a frame that a
//! device needs. Packets that are longer than frames lie on the heap; kept ones take of the same
//! share.

use crate::memory;
use castanet_lang::Diagnostic;
use castanet_packet::{Pool, PoolConfig};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Frames of the device pool where devices need no more.
const LEAST: usize = 16 * 1024;
/// Frames beside those for queues of devices.
const BESIDE: usize = 8 * 1024;
/// Frames for one queue of a device: as many as its rings of both directions have entries.
const QUEUE: usize = 2 * 2048;
/// The share of the memory that those take at most, for devices pin them: one of so many.
const PINNED: u64 = 16;
/// The share of a pool that is its reserve: one of so many.
const RESERVE: usize = 4;
/// The share of the memory that kept packets may take unless the user says otherwise.
const SHARE: u64 = 4;

/// The two pools of a router.
#[derive(Clone)]
pub struct Frames {
    /// The device pool: frames that devices fill.
    pub pool: Pool,
    /// The storage pool: frames of packets that are kept while the device pool is low.
    pub storage: Pool,
    /// For how many queues of devices they were made.
    queues: usize,
    /// Shortages that were reported.
    pub shortage: Arc<ShortageReports>,
}

/// The shortages that were reported already.
#[derive(Default)]
pub struct ShortageReports {
    pool: AtomicBool,
    storage: AtomicBool,
}

/// The resource that was short.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shortage {
    /// Frames for new packets.
    Frames,
    /// Memory for packets that are kept.
    Storage,
}

/// The sizes of the two pools of a router.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PoolSizes {
    /// Frames of the device pool.
    pub devices: usize,
    /// How many of them stay free for devices, ARP and errors.
    pub reserve: usize,
    /// Frames of the storage pool.
    pub storage: usize,
    /// Bytes of one frame, with its header.
    pub frame: u64,
}

impl PoolSizes {
    /// Of `frames` for devices, or as many as `queues` of devices need, and `memory` bytes for
    /// packets that are kept, or a share of what there is.
    pub fn of(
        frames: Option<usize>,
        memory: Option<u64>,
        queues: usize,
    ) -> Result<PoolSizes, String> {
        PoolSizes::within(memory::limit(), frames, memory, queues)
    }

    /// The same, on a machine of `limit` bytes.
    fn within(
        limit: u64,
        frames: Option<usize>,
        memory: Option<u64>,
        queues: usize,
    ) -> Result<PoolSizes, String> {
        let frame = PoolConfig { frames: 1, ..PoolConfig::default() }.bytes().map_err(said)?;
        let part = |n: u64| usize::try_from(limit / n / frame).unwrap_or(usize::MAX);
        let devices = frames.unwrap_or_else(|| {
            // On a small machine devices take no more than what is kept.
            wanted(queues).min(part(PINNED)).max(LEAST.min(part(SHARE))).max(1)
        });
        let [had, unit] = [limit, frame].map(memory::in_words);
        let bytes = (devices as u64).checked_mul(frame);
        if bytes.is_none_or(|bytes| bytes > limit) {
            let wanted = memory::in_words(bytes.unwrap_or(u64::MAX));
            let most = limit / frame;
            return Err(format!(
                "{devices} frames of {unit} take {wanted}, but there are {had} of memory: \
                 at most {most} frames fit (--frames)"
            ));
        }
        if let Some(memory) = memory.filter(|&memory| memory > limit) {
            let wanted = memory::in_words(memory);
            return Err(format!("{wanted} for packets that are kept: there are {had} of memory"));
        }
        let storage = memory.unwrap_or(limit / SHARE) / frame;
        let storage = usize::try_from(storage).unwrap_or(usize::MAX);
        Ok(PoolSizes { devices, reserve: devices / RESERVE, storage, frame })
    }
}

/// How many frames so many queues of devices are to have.
fn wanted(queues: usize) -> usize {
    BESIDE + QUEUE.saturating_mul(queues)
}

/// Both pools in words, a line each.
impl fmt::Display for PoolSizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = |frames: usize| memory::in_words((frames as u64).saturating_mul(self.frame));
        let PoolSizes { devices, reserve, storage, frame } = *self;
        let (pool, kept) = (size(devices), size(storage));
        writeln!(
            f,
            "  devices: {devices} frames of {frame} bytes, {pool} (--frames); packets that are kept \
             move to storage while fewer than {reserve} are free"
        )?;
        writeln!(
            f,
            "  storage: up to {storage} frames, {kept} (--memory), for packets that are kept"
        )
    }
}

impl Frames {
    /// Maps both pools: `frames` for devices, or as many as `queues` of devices need, and `memory`
    /// bytes for packets that are kept, or a share of what there is.
    pub fn new(
        frames: Option<usize>,
        memory: Option<u64>,
        queues: usize,
    ) -> Result<Frames, String> {
        let PoolSizes { devices: frames, reserve, storage, .. } =
            PoolSizes::of(frames, memory, queues)?;
        // Frames go round through all of the pool: with pages of 4 KiB nearly each would miss the TLB.
        let config = PoolConfig { frames, reserve, huge_pages: true, ..PoolConfig::default() };
        let pool = Pool::new(config);
        let (pool, storage) = (pool.map_err(said)?, Frames::storage(storage)?);
        Ok(Frames { pool, storage, queues, shortage: Arc::default() })
    }

    /// The warning about a later configuration that uses so many queues of devices, for which there
    /// are too few frames; nothing if there are enough, or no more queues than at first.
    pub fn lacking(&self, queues: usize) -> Option<Diagnostic> {
        let (frames, wanted) = (self.pool.stats().frames, wanted(queues));
        (queues > self.queues && wanted > frames).then(|| {
            let said = format!(
                "the devices of this configuration are to have {wanted} frames, and there are \
                 {frames} from the start, for {} of {queues} queues",
                self.queues
            );
            let help = format!("start with --frames {wanted}, or packets may be lost under load");
            Diagnostic::warning(None, said).with_help(help)
        })
    }

    /// How many more packets may be kept, those on the heap counted as what frames they would take.
    pub fn room(&self) -> usize {
        self.storage.spare().saturating_sub(Pool::heap_bytes() / self.storage.stride())
    }

    /// Whether packets on the heap take no more than is left beside them, once there are `more`
    /// bytes of them.
    pub fn has_room_on_heap(&self, more: usize) -> bool {
        let bytes = Pool::heap_bytes() + more;
        2 * bytes <= self.storage.spare() * self.storage.stride()
    }

    /// A pool of at most so many frames: of fewer where the system does not let the process map
    /// more than it uses.
    fn storage(mut frames: usize) -> Result<Pool, String> {
        /// Fewer are not worth a try.
        const FEW: usize = 1024;
        loop {
            let reserve = frames / RESERVE;
            match Pool::new(PoolConfig { frames, reserve, ..PoolConfig::default() }) {
                Err(_) if frames > FEW => frames /= 2,
                made => return made.map_err(said),
            }
        }
    }

    /// Whether the device pool has free frames well beyond its reserve, so that who takes a burst of
    /// them now can keep it.
    #[inline]
    pub fn is_ample(&self) -> bool {
        let reserve = self.pool.reserve();
        self.pool.spare() >= reserve + reserve / 4
    }

    /// Frames that did not come back.
    pub fn leaked(&self) -> usize {
        self.pool.in_use() + self.storage.in_use()
    }

    /// A line for each pool, under the names of the columns.
    pub fn table(&self) -> String {
        let row = |(name, pool): (&str, &Pool)| {
            let it = pool.stats();
            let row = [it.frames, it.in_use, it.cached, it.high_water, pool.reserve()];
            let row = row.iter().fold(name.to_owned(), |row, n| format!("{row}\t{n}"));
            format!("{row}\t{}\n", it.failures)
        };
        let titles = "pool\tframes\tin_use\tcached\tever_used\treserve\tfailures\n";
        titles.to_owned() + &row(("devices", &self.pool)) + &row(("storage", &self.storage))
    }

    /// The message about a shortage that `element` met; `None` if something was said before.
    #[cold]
    pub fn report(&self, short: Shortage, element: &str) -> Option<String> {
        let said = match short {
            Shortage::Frames => &self.shortage.pool,
            Shortage::Storage => &self.shortage.storage,
        };
        if said.swap(true, Ordering::Relaxed) {
            return None;
        }
        let (frames, kept) = (self.pool.stats().frames, self.storage.stats().frames);
        Some(match short {
            Shortage::Frames => format!(
                "{element}: no frame is free of the {frames} for devices (--frames): \
                 packets are lost, and counted as no_frame"
            ),
            Shortage::Storage => {
                let size = memory::in_words(kept as u64 * self.storage.stride() as u64);
                format!(
                    "{element}: its share of the memory for kept packets is full ({size} in all, \
                     --memory): more are dropped, and counted as no_frame"
                )
            }
        })
    }
}

fn said(error: std::io::Error) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pools_fit_machines_of_any_size() {
        let of = |limit, queues| PoolSizes::within(limit, None, None, queues).unwrap();
        let sizes = of(8 << 30, 0);
        assert_eq!((sizes.devices, sizes.reserve), (LEAST, LEAST / RESERVE));
        assert_eq!(sizes.storage as u64, (2 << 30) / sizes.frame);
        assert_eq!(of(8 << 30, 16).devices, BESIDE + 16 * QUEUE);
        // A sixteenth of the memory at most, unless that is too little; and then a quarter.
        assert_eq!(of(1 << 30, 16).devices as u64, (1 << 26) / sizes.frame);
        assert_eq!(of(256 << 20, 16).devices, LEAST);
        for limit in [64 << 20, 1 << 20, 20_000_u64] {
            let sizes = of(limit, 16);
            assert_eq!(sizes.devices as u64, limit / 4 / sizes.frame, "{limit}");
            assert_eq!(sizes.storage, sizes.devices);
        }
    }

    #[test]
    fn what_does_not_fit_is_said_with_what_does() {
        let said = |frames, memory| PoolSizes::within(1 << 20, frames, memory, 0).unwrap_err();
        let text = said(Some(1000), None);
        assert!(text.ends_with("at most 468 frames fit (--frames)"), "{text}");
        assert!(said(Some(usize::MAX), None).contains("at most 468"));
        assert!(said(None, Some(2 << 20)).starts_with("2.0 MiB for packets that are kept"));
    }

    #[test]
    fn later_configurations_say_when_their_devices_lack_frames() {
        let frames = Frames::new(Some(9000), Some(1 << 20), 1).unwrap();
        assert!(frames.lacking(0).is_none() && frames.lacking(1).is_none());
        let said = frames.lacking(2).unwrap();
        assert!(said.message.contains("16384 frames, and there are 9000"), "{}", said.message);
        assert!(said.help.unwrap().contains("--frames 16384"));
        let frames = Frames::new(Some(20_000), Some(1 << 20), 1).unwrap();
        assert!(frames.lacking(2).is_none());
    }

    /// Whether a pool lies in a mapping with this flag of `/proc/self/smaps`.
    fn has_flag(pool: &Pool, flag: &str) -> bool {
        let address = pool.memory().0.as_ptr().addr();
        let text = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let mut lines = text.lines().skip_while(|line| {
            let range = line.split(' ').next().and_then(|range| range.split_once('-'));
            let bounds = range.map(|(from, to)| [from, to].map(|it| usize::from_str_radix(it, 16)));
            !matches!(bounds, Some([Ok(from), Ok(to)]) if (from..to).contains(&address))
        });
        let flags = lines.find_map(|line| line.strip_prefix("VmFlags:")).unwrap();
        flags.split(' ').any(|it| it == flag)
    }

    #[test]
    fn frames_of_devices_request_huge_pages() {
        if !std::path::Path::new("/sys/kernel/mm/transparent_hugepage").exists() {
            return;
        }
        let frames = Frames::new(Some(1000), Some(64 << 20), 1).unwrap();
        assert!(has_flag(&frames.pool, "hg") && has_flag(&frames.storage, "nh"));
        // Too few for one.
        let frames = Frames::new(Some(900), Some(64 << 20), 1).unwrap();
        assert!(has_flag(&frames.pool, "nh"));
    }
}
