//! Messages about addresses to which there is no route.

use castanet_element::prelude::*;

/// The most addresses that a worker reports.
const MOST: usize = 5;

/// The first addresses without a route that a worker has met.
#[derive(Default, Local)]
pub struct RouteMisses {
    addresses: [Option<Ipv4Addr>; MOST],
    /// Number of the addresses.
    count: usize,
    /// Number of those that are reported.
    reported: usize,
}

impl RouteMisses {
    /// Adds an address, if it is among the first.
    #[cold]
    pub(super) fn add(&mut self, address: Ipv4Addr) {
        if let Some(free) = self.addresses.get_mut(self.count) {
            *free = Some(address);
            self.count += 1;
        }
    }

    /// Writes a line about each address that is new.
    #[inline]
    pub(super) fn report(&mut self, cx: &mut Cx) {
        if self.reported < self.count {
            for address in self.addresses.iter().skip(self.reported).flatten() {
                cx.report(&format!("no route for {address}"));
            }
            self.reported = self.count;
        }
    }
}
