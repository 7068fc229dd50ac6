//! Accounts of processor time and memory, as information elements declare them.

use crate::args::{FromArg, Names};
use crate::error::ArgError;
use castanet_packet::HeapAccount;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// A part of a processor, 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct CpuPart(pub f64);

impl FromArg for CpuPart {
    const SYNTAX: &'static str = "a part of a processor such as 20% or 0.2";
    fn from_arg(text: &str, names: &Names) -> Result<Self, ArgError> {
        let text = text.trim();
        let (number, whole) = match text.strip_suffix('%') {
            Some(percent) => (percent.trim_end(), 100.0),
            None => (text, 1.0),
        };
        let part = f64::from_arg(number, names).ok().map(|number| number / whole);
        part.filter(|part| (0.0..=1.0).contains(part)).map(CpuPart).ok_or_else(|| {
            ArgError::new(format!("`{text}` is not {}", Self::SYNTAX)).click("invalid number")
        })
    }
}

/// A number of bytes on the heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeapSize(pub u64);

impl FromArg for HeapSize {
    const SYNTAX: &'static str = "a size such as 64M or 500KB";
    fn from_arg(text: &str, _: &Names) -> Result<Self, ArgError> {
        let size = castanet_kit::units::parse_size(text).map(|size| HeapSize(size.value));
        size.ok_or_else(|| ArgError::new(format!("`{text}` is not {}", Self::SYNTAX)))
    }
}

/// An account to which the processor time of elements is charged, and the time that it may use on
/// each worker.
#[derive(Clone, Debug, PartialEq)]
pub struct CpuAccount {
    /// The element or compound whose time it pays for, or a context of `VStaticThreadSched`.
    pub name: String,
    /// The part of a processor that it has whenever it has work.
    pub guarantee: CpuPart,
    /// The part that it gets at most; above 0.
    pub limit: Option<CpuPart>,
    /// The longest time for which one run of another account may keep it waiting.
    pub delay: Option<Duration>,
    /// Whether its tasks and timers wait until it is released.
    pub held: bool,
    /// The element that declares it; the runtime sets it.
    pub element: Option<usize>,
}

/// Limits of the memory of elements.
#[derive(Clone, Debug, PartialEq)]
pub struct MemoryLimits {
    /// The element or compound to which they apply.
    pub name: String,
    /// Bytes that its tables and queues take on the heap at most.
    pub heap: Option<u64>,
    /// Packets that its elements keep at most.
    pub packets: Option<usize>,
    /// The element that declares them; the runtime sets it.
    pub element: Option<usize>,
}

/// The memory of an account, which all workers share.
#[derive(Debug)]
pub struct AccountMemory {
    heap: Option<HeapAccount>,
    packets: AtomicUsize,
    heap_limit: AtomicUsize,
    packet_limit: AtomicUsize,
    /// Whether it was reported that a limit was reached.
    reported: AtomicBool,
}

impl AccountMemory {
    /// An account without memory and limits.
    pub fn new() -> AccountMemory {
        AccountMemory {
            heap: HeapAccount::new(),
            packets: AtomicUsize::new(0),
            heap_limit: AtomicUsize::new(usize::MAX),
            packet_limit: AtomicUsize::new(usize::MAX),
            reported: AtomicBool::new(false),
        }
    }

    /// The account of its bytes on the heap; `None` if the process has too many accounts.
    pub fn heap(&self) -> Option<&HeapAccount> {
        self.heap.as_ref()
    }

    /// Bytes of its tables and queues on the heap.
    pub fn heap_bytes(&self) -> usize {
        self.heap.as_ref().map_or(0, HeapAccount::bytes)
    }

    /// Packets that its elements keep, known to the millisecond.
    pub fn packets(&self) -> usize {
        // Counts of two workers may cross: below zero is none.
        usize::try_from(self.packets.load(Ordering::Relaxed).cast_signed()).unwrap_or(0)
    }

    /// The limit of its bytes on the heap.
    pub fn heap_limit(&self) -> Option<usize> {
        Some(self.heap_limit.load(Ordering::Relaxed)).filter(|&limit| limit < usize::MAX)
    }

    /// The limit of its packets.
    pub fn packet_limit(&self) -> Option<usize> {
        Some(self.packet_limit.load(Ordering::Relaxed)).filter(|&limit| limit < usize::MAX)
    }

    /// Sets both limits.
    pub fn set_limits(&self, heap: Option<usize>, packets: Option<usize>) {
        self.heap_limit.store(heap.unwrap_or(usize::MAX), Ordering::Relaxed);
        self.packet_limit.store(packets.unwrap_or(usize::MAX), Ordering::Relaxed);
    }

    /// How many more packets its elements may keep: none while its heap is at the limit.
    pub fn room(&self) -> usize {
        self.room_beside(self.packets())
    }

    /// The same where its elements keep so many.
    fn room_beside(&self, packets: usize) -> usize {
        if self.heap_bytes() >= self.heap_limit.load(Ordering::Relaxed) {
            return 0;
        }
        self.packet_limit.load(Ordering::Relaxed).saturating_sub(packets)
    }

    /// The message that a limit was reached; `None` if that was said before.
    pub(crate) fn report(&self) -> Option<String> {
        if self.reported.swap(true, Ordering::Relaxed) {
            return None;
        }
        let what = match self.heap_limit().filter(|&limit| self.heap_bytes() >= limit) {
            Some(limit) => format!("{limit} bytes on the heap"),
            None => format!("{} kept packets", self.packet_limit().unwrap_or(0)),
        };
        Some(format!(
            "the account has reached its limit of {what}: more packets are dropped, and counted \
             as no_memory"
        ))
    }
}

impl Default for AccountMemory {
    fn default() -> AccountMemory {
        AccountMemory::new()
    }
}

/// The packets of an account that one element keeps.
#[derive(Clone, Debug)]
pub struct KeptPackets(Arc<KeptCount>);

/// How many they are, for all workers that share the element's state.
#[derive(Debug)]
struct KeptCount {
    memory: Arc<AccountMemory>,
    packets: AtomicUsize,
}

impl Drop for KeptCount {
    fn drop(&mut self) {
        self.memory.packets.fetch_sub(*self.packets.get_mut(), Ordering::Relaxed);
    }
}

impl KeptPackets {
    /// Those of an element of the account, which keeps nothing yet.
    pub fn new(memory: Arc<AccountMemory>) -> KeptPackets {
        KeptPackets(Arc::new(KeptCount { memory, packets: AtomicUsize::new(0) }))
    }

    /// The account.
    pub fn memory(&self) -> &Arc<AccountMemory> {
        &self.0.memory
    }

    /// Has the account count so many packets of the element.
    #[inline]
    pub fn count(&self, held: usize) {
        // Most elements that keep packets for a moment only keep as many each time.
        if self.0.packets.load(Ordering::Relaxed) != held {
            let before = self.0.packets.swap(held, Ordering::Relaxed);
            self.0.memory.packets.fetch_add(held.wrapping_sub(before), Ordering::Relaxed);
        }
    }

    /// How many of `n` packets the element may keep beside the `held` that it has; counts them.
    #[inline]
    pub fn admit(&self, held: usize, n: usize) -> usize {
        let (memory, before) = (&self.0.memory, self.0.packets.load(Ordering::Relaxed));
        let packets = (memory.packets() + held).saturating_sub(before);
        let stay = n.min(memory.room_beside(packets));
        self.count(held + stay);
        stay
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_percents_or_fractions() {
        let part = |text| CpuPart::from_arg(text, &Names::default()).ok().map(|part| part.0);
        assert_eq!([part("20%"), part("0.2"), part(" 100 % ")], [Some(0.2), Some(0.2), Some(1.0)]);
        assert_eq!([part("0"), part("12.5%")], [Some(0.0), Some(0.125)]);
        for wrong in ["", "%", "101%", "1.5", "-1%", "x", "NaN", "inf", "20 % %"] {
            assert_eq!(part(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn elements_of_an_account_share_its_limit() {
        let memory = Arc::new(AccountMemory::new());
        memory.set_limits(None, Some(10));
        let [first, second] = [(), ()].map(|()| KeptPackets::new(memory.clone()));
        assert_eq!([first.admit(0, 8), second.admit(0, 8)], [8, 2]);
        // The first has sent some in the meantime.
        assert_eq!((first.admit(3, 8), memory.packets()), (5, 10));
        assert_eq!((second.admit(2, 1), memory.room()), (0, 0));
        drop(first);
        assert_eq!((memory.packets(), second.admit(2, 100)), (2, 8));
        memory.set_limits(Some(0), None);
        assert_eq!((second.admit(0, 1), memory.packets()), (0, 0));
        assert!(memory.report().unwrap().contains("0 bytes on the heap"));
        assert_eq!(memory.report(), None);
    }
}
