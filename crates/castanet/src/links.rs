//! The service that reports interfaces that go and come back, and has workers follow.

use crate::log::{self, Level};
use castanet_element::time::Time;
use castanet_io::links::LinkSupervisor;
use castanet_runtime::router::{Router, Service};

/// The service that supervises the router's interfaces.
pub(crate) struct LinkService(LinkSupervisor);

impl LinkService {
    /// The service of a router, in the network namespace of the calling thread.
    pub(crate) fn new(router: &Router) -> LinkService {
        let waker = router.service_waker();
        LinkService(LinkSupervisor::new(move || waker.wake()))
    }
}

impl Service for LinkService {
    fn step(&mut self, router: &mut Router) -> Option<Time> {
        let report = self.0.step(&mut || router.exchange_devices());
        for notice in report.notices {
            let level = if notice.is_outage { Level::Warning } else { Level::Info };
            let text = crate::confine::explained_notice(notice.text);
            log::message(level, &format!("castanet: {text}"));
        }
        report.retry.map(|time| router.clock().now() + time)
    }
}
