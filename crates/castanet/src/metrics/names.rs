//! The metrics that belong to no class of elements.

use castanet_element::handler::Metric;

/// Metrics of the process and of its router.
pub(super) const OF_INSTANCE: &[&Metric] = &[
    &BUILD_INFO,
    &INSTANCE_INFO,
    &START_TIME,
    &UPTIME,
    &ELEMENTS,
    &HOT_SWAPS,
    &RELOADS,
    &LAST_RELOAD,
    &WORKER_CPU,
    &WORKER_LOST_BURSTS,
    &ACCOUNT_CPU,
    &ACCOUNT_DEVICE_CPU,
    &ACCOUNT_LIMITED,
    &ACCOUNT_OVERRUNS,
    &ACCOUNT_GUARANTEE,
    &ACCOUNT_HEAP,
    &ACCOUNT_HEAP_LIMIT,
    &ACCOUNT_PACKETS,
    &ACCOUNT_PACKET_LIMIT,
    &POOL_FRAMES,
    &POOL_USED,
    &POOL_HIGHWATER,
    &POOL_FAILURES,
    &POOL_OVERSIZED,
    &SERIES_LIMITED,
    &COLLECTIONS,
    &COLLECTION_TIME,
];

/// Metrics that elements of all classes can have.
pub(super) const OF_ELEMENTS: &[&Metric] =
    &[&ELEMENT_PACKETS, &ELEMENT_DROPS, &QUEUE_PACKETS, &QUEUE_CAPACITY];

pub(super) const BUILD_INFO: Metric =
    Metric::gauge("build_info", "Always 1; the label is the version of Castanet.").by("version");
pub(super) const INSTANCE_INFO: Metric = Metric::gauge(
    "instance_info",
    "Always 1; the labels are the instance's name and its configuration.",
)
.by("name");
pub(super) const START_TIME: Metric =
    Metric::gauge("start_time_seconds", "When the router began to run, in seconds since 1970.");
pub(super) const UPTIME: Metric = Metric::gauge("uptime_seconds", "How long the router has run.");
pub(super) const ELEMENTS: Metric =
    Metric::gauge("elements", "Elements of the configuration that runs.");
pub(super) const HOT_SWAPS: Metric =
    Metric::counter("hot_swaps", "How often the configuration was replaced while it ran.");
pub(super) const RELOADS: Metric = Metric::counter(
    "reloads",
    "How often the file of the configuration was to be read again; `failed` where the configuration that \
     ran has stayed.",
)
.by("result");
pub(super) const LAST_RELOAD: Metric = Metric::gauge(
    "last_reload_successful",
    "1 if the last reload succeeded or there was none, 0 if it failed.",
);
pub(super) const WORKER_CPU: Metric =
    Metric::counter("worker_cpu_seconds", "Processor time of the worker's thread.").by("worker");
pub(super) const WORKER_LOST_BURSTS: Metric =
    Metric::counter("worker_lost_bursts", "Bursts that a panic in an element has cost.")
        .by("worker");
pub(super) const ACCOUNT_CPU: Metric = Metric::counter(
    "account_cpu_seconds",
    "Processor time that an account has used, that for its packets in the router's own tasks included; that of the \
     router itself under `-`.",
)
.by("account");
pub(super) const ACCOUNT_DEVICE_CPU: Metric = Metric::counter(
    "account_device_cpu_seconds",
    "Processor time of the router's own tasks that an account has paid for its packets.",
)
.by("account");
pub(super) const ACCOUNT_LIMITED: Metric = Metric::counter(
    "account_limited_seconds",
    "Time for which an account could not run because of its limit.",
)
.by("account");
pub(super) const ACCOUNT_OVERRUNS: Metric = Metric::counter(
    "account_overruns",
    "Runs with one packet that took longer than the delays of other accounts allow.",
)
.by("account");
pub(super) const ACCOUNT_GUARANTEE: Metric = Metric::gauge(
    "account_guarantee_ratio",
    "The part of each worker's processor that an account has whenever it has work.",
)
.by("account");
pub(super) const ACCOUNT_HEAP: Metric = Metric::gauge(
    "account_heap_bytes",
    "Bytes that the tables and queues of an account's elements take on the heap.",
)
.by("account");
pub(super) const ACCOUNT_HEAP_LIMIT: Metric = Metric::gauge(
    "account_heap_limit_bytes",
    "Bytes on the heap at which an account's elements keep no more packets.",
)
.by("account");
pub(super) const ACCOUNT_PACKETS: Metric =
    Metric::gauge("account_packets", "Packets that an account's elements keep.").by("account");
pub(super) const ACCOUNT_PACKET_LIMIT: Metric =
    Metric::gauge("account_packet_limit", "Packets that an account's elements keep at most.")
        .by("account");
pub(super) const POOL_FRAMES: Metric = Metric::gauge(
    "pool_frames",
    "Frames of the pool: `devices` for packets that devices receive, `storage` for packets that elements \
     keep.",
)
.by("pool");
pub(super) const POOL_USED: Metric =
    Metric::gauge("pool_used_frames", "Frames of the pool that packets have.").by("pool");
pub(super) const POOL_HIGHWATER: Metric = Metric::gauge(
    "pool_highwater_frames",
    "The most frames of the pool that packets and caches of workers have needed at a time.",
)
.by("pool");
pub(super) const POOL_FAILURES: Metric =
    Metric::counter("pool_failures", "Frames that were asked for while the pool had none.")
        .by("pool");
pub(super) const POOL_OVERSIZED: Metric = Metric::counter(
    "pool_oversized_packets",
    "Packets that were too long for a frame of the pool and lie on the heap.",
)
.by("pool");
pub(super) const SERIES_LIMITED: Metric = Metric::gauge(
    "metrics_series_limited",
    "Series without a value of their own, because their metric has more than 2000: they are added up in \
     the series whose labels are `other`.",
);
pub(super) const COLLECTIONS: Metric = Metric::counter(
    "metrics_collections",
    "How often the metrics were collected from the workers.",
);
pub(super) const COLLECTION_TIME: Metric = Metric::gauge(
    "metrics_collection_seconds",
    "How long the collection of these values has taken on the control thread.",
);

pub(super) const ELEMENT_PACKETS: Metric =
    Metric::counter("element_packets", "Packets that came into the element, or that it made.");
pub(super) const ELEMENT_DROPS: Metric = Metric::counter(
    "element_dropped_packets",
    "Packets that the element dropped, by reason; those for an output that nothing is connected to under \
     the output's name.",
)
.by("reason");
pub(super) const QUEUE_PACKETS: Metric =
    Metric::gauge("queue_packets", "Packets in the queue, or another element that stores packets.");
pub(super) const QUEUE_CAPACITY: Metric = Metric::gauge(
    "queue_capacity_packets",
    "Packets that the queue can take; no value if only memory limits it.",
);
