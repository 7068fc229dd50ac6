//! Elements that place tasks on workers or hand packets between workers.

pub mod balanced_thread_sched;
pub mod block_thread;
pub mod cpu_account;
pub mod cpu_queue;
pub mod cpu_switch;
pub mod exact_cpu_switch;
pub mod memory_account;
pub mod path_spinlock;
pub mod pipeliner;
mod ring_capacity;
pub mod spinlock_info;
pub mod static_thread_sched;
pub mod v_static_thread_sched;

use castanet_element::class::*;

/// The classes of this room.
pub static CLASSES: &[Class] = &[
    control::<balanced_thread_sched::BalancedThreadSched>().moves_tasks(),
    per_batch::<block_thread::BlockThread>().with_unbounded_time(),
    info::<cpu_account::CPUAccount>(),
    store::<cpu_queue::CPUQueue>(),
    per_batch::<cpu_switch::CPUSwitch>().with_checksums(Checksums::Pass),
    per_batch::<exact_cpu_switch::ExactCPUSwitch>().with_checksums(Checksums::Pass),
    info::<memory_account::MemoryAccount>(),
    per_batch::<path_spinlock::PathSpinlock>().with_checksums(Checksums::Pass),
    store::<pipeliner::Pipeliner>(),
    info::<spinlock_info::SpinlockInfo>(),
    info::<static_thread_sched::StaticThreadSched>(),
    info::<v_static_thread_sched::VStaticThreadSched>(),
];
