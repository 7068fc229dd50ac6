//! `MemoryAccount`: limits of the memory that the elements of a compound use.

use castanet_element::prelude::*;

/// Limits the memory of an element or a compound.
///
/// HEAP bounds the bytes that the elements' state takes on the heap: tables of flows and mappings, neighbours,
/// routes, queues. PACKETS bounds the packets that the elements keep in queues and elsewhere.
///
/// While the account has reached a limit, its elements keep no more packets, and its generators make
/// none. Packets that an element would keep are dropped, and counted under its `drops.no_memory`. Timers
/// and tasks go on, so that entries expire and queues empty.
///
/// A packet that is on its way through the elements can add entries to tables, however full the heap
/// is. So PACKETS and CAPACITY arguments of tables are exact; the heap can exceed its limit by what one burst
/// adds, and by the size of a table that grows. Where packets enter the elements through a queue, as those of
/// `castanet tenants` do, a full heap stops them there.
///
/// Frames of packets lie in the pools of the router, and not on the heap. The memory of elements that
/// belong to no account is not counted.
///
/// ```click
/// tenant :: { input -> q :: Queue -> u :: Unqueue(ACTIVE false) -> output };
/// in -> tenant -> out;
/// memory :: MemoryAccount(tenant, HEAP 1M, PACKETS 2)
/// > in  1.0.0.1 > 2.0.0.2 udp
/// > in  1.0.0.2 > 2.0.0.2 udp
/// > in  1.0.0.3 > 2.0.0.2 udp
/// = memory.packets 2
/// = tenant/q.drops.no_memory 1
/// = memory.heap_limit 1048576
/// = memory.packet_limit 2
/// ! memory.heap_limit none
/// = memory.heap_limit none
/// ! memory.packet_limit 3
/// > in  1.0.0.3 > 2.0.0.2 udp
/// = memory.packets 3
/// ! tenant/u.active true
/// < out 1.0.0.1 > 2.0.0.2 udp
/// < out 1.0.0.2 > 2.0.0.2 udp
/// < out 1.0.0.3 > 2.0.0.2 udp
/// ```
#[derive(Element)]
#[element(room = "threads")]
pub struct MemoryAccount {
    /// The element or compound whose memory it limits.
    #[arg]
    name: String,
    /// Bytes on the heap at most.
    #[arg(keyword)]
    heap: Option<HeapSize>,
    /// Packets that elements keep at most.
    #[arg(keyword)]
    packets: Option<usize>,
}

impl Info for MemoryAccount {
    fn declare(&self, facts: &mut Facts) -> Result<(), ArgError> {
        facts.limits.push(MemoryLimits {
            name: self.name.clone(),
            heap: self.heap.map(|heap| heap.0),
            packets: self.packets,
            element: None,
        });
        Ok(())
    }
}
