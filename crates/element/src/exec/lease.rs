//! Leases: the time for which workers look at packets for a client.

use crate::time::Time;
use std::sync::atomic::AtomicI64;
use std::sync::atomic::Ordering::Relaxed;

/// The time until which workers look at packets for a client, which asks again before its end. The
/// control thread renews it; workers read it.
#[derive(Debug)]
pub struct Lease(AtomicI64);

impl Lease {
    /// A lease that ends at this time.
    pub fn new(until: Time) -> Lease {
        Lease(until.0.into())
    }

    /// Whether it has ended.
    #[inline]
    pub fn is_over(&self, now: Time) -> bool {
        self.0.load(Relaxed) < now.0
    }

    /// Has it end at this time, and says whether it had ended before `now`.
    pub fn renew(&self, now: Time, until: Time) -> bool {
        self.0.swap(until.0, Relaxed) < now.0
    }
}
