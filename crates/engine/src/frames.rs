//! The frames of a router: those that devices fill, and memory for packets that are kept.
//!
//! Elements, devices and ARP take frames of the *device pool* for a moment. An
//! element that keeps packets gives them to [`Cx::keep`](crate::cx::Cx::keep) first: while the
//! device pool has fewer free frames than its reserve, that moves them to the *storage pool*, which
//! is mapped lazily up to a share of the memory. So a packet that stays never takes a frame that a
//! device needs.

use crate::memory;
use castanet_packet::{Pool, PoolConfig};
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
pub(crate) struct Frames {
    /// What devices fill.
    pub(crate) pool: Pool,
    /// What packets are moved to that are kept while the other one is low.
    pub(crate) storage: Pool,
    pub(crate) shortage: Arc<Shortage>,
}

/// Which shortage was reported already.
#[derive(Default)]
pub(crate) struct Shortage {
    pool: AtomicBool,
    storage: AtomicBool,
}

/// What was short.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Short {
    /// Frames for new packets.
    Frames,
    /// Memory for packets that are kept.
    Storage,
}

impl Frames {
    /// Maps both pools: `frames` for devices, or as many as `queues` of devices need, and `memory`
    /// bytes for packets that are kept, or a share of what there is.
    pub(crate) fn new(
        frames: Option<usize>,
        memory: Option<u64>,
        queues: usize,
    ) -> Result<Frames, String> {
        let each = PoolConfig { frames: 1, ..PoolConfig::default() }.bytes().map_err(said)?;
        let limit = memory::limit();
        let frames = frames.unwrap_or_else(|| {
            let most = usize::try_from(limit / PINNED / each).unwrap_or(usize::MAX);
            (BESIDE + QUEUE.saturating_mul(queues)).min(most).max(LEAST)
        });
        let config = PoolConfig { frames, reserve: frames / RESERVE, ..PoolConfig::default() };
        let [had, unit] = [limit, each].map(memory::in_words);
        if config.bytes().map_or(true, |bytes| bytes > limit) {
            let wanted = memory::in_words((frames as u64).saturating_mul(each));
            let most = limit / each;
            return Err(format!(
                "{frames} frames of {unit} take {wanted}, but there are {had} of memory: \
                 at most {most} frames fit"
            ));
        }
        if let Some(memory) = memory.filter(|&memory| memory > limit) {
            let wanted = memory::in_words(memory);
            return Err(format!("{wanted} for packets that are kept: there are {had} of memory"));
        }
        let pool = Pool::new(config).map_err(said)?;
        let storage = Frames::storage(memory.unwrap_or(limit / SHARE) / each)?;
        Ok(Frames { pool, storage, shortage: Arc::default() })
    }

    /// A pool of at most so many frames: of fewer where the system does not let the process map
    /// more than it uses.
    fn storage(frames: u64) -> Result<Pool, String> {
        /// Fewer are not worth a try.
        const FEW: usize = 1024;
        let mut frames = usize::try_from(frames).unwrap_or(usize::MAX);
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
    pub(crate) fn is_ample(&self) -> bool {
        let reserve = self.pool.reserve();
        self.pool.spare() >= reserve + reserve / 4
    }

    /// Frames that did not come back.
    pub(crate) fn leaked(&self) -> usize {
        self.pool.in_use() + self.storage.in_use()
    }

    /// A line for each pool, under the names of the columns.
    pub(crate) fn table(&self) -> String {
        let row = |(name, pool): (&str, &Pool)| {
            let it = pool.stats();
            let row = [it.frames, it.in_use, it.cached, it.made, pool.reserve()];
            let row = row.iter().fold(name.to_owned(), |row, n| format!("{row}\t{n}"));
            format!("{row}\t{}\n", it.failures)
        };
        let titles = "pool\tframes\tin_use\tcached\tever_used\treserve\tfailures\n";
        titles.to_owned() + &row(("devices", &self.pool)) + &row(("storage", &self.storage))
    }

    /// What to say about a shortage that `element` met; nothing if something was said before.
    #[cold]
    pub(crate) fn report(&self, short: Short, element: &str) -> Option<String> {
        let said = match short {
            Short::Frames => &self.shortage.pool,
            Short::Storage => &self.shortage.storage,
        };
        if said.swap(true, Ordering::Relaxed) {
            return None;
        }
        let (frames, kept) = (self.pool.stats().frames, self.storage.stats().frames);
        Some(match short {
            Short::Frames => format!(
                "{element}: no frame is free of the {frames} for devices (--frames): \
                 packets are lost, and counted as no_frame"
            ),
            Short::Storage => {
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
