//! Elements that pass packets on unchanged, discard them or connect routers.

pub mod batcher;
pub mod discard;
pub mod idle;
pub mod null;
pub mod pull_null;
pub mod push_null;
pub mod router_link;
pub mod timed_sink;

use castanet_element::class::*;

/// The classes of this room.
pub static CLASSES: &[Class] = &[
    per_batch::<batcher::Batcher>().with_checksums(Checksums::Pass),
    per_batch::<discard::Discard>().with_checksums(Checksums::Pass),
    per_batch::<idle::Idle>().with_checksums(Checksums::Pass),
    per_batch::<null::Null>().with_checksums(Checksums::Pass),
    per_batch::<pull_null::PullNull>().with_checksums(Checksums::Pass),
    per_batch::<push_null::PushNull>().with_checksums(Checksums::Pass),
    per_batch::<router_link::RouterLink>(),
    source::<timed_sink::TimedSink>(),
];
