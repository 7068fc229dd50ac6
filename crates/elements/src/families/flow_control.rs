//! Families that decide when packets move: shapers, queues, schedulers.

use super::Family;

pub(super) const SHAPERS: Family = Family {
    file: "which-shaper.md",
    title: "Which shaper or rate limiter?",
    text: "A *shaper* makes packets wait, so that they leave at a limited rate; a queue before it keeps \
           those that wait. A *splitter* or *meter* lets none wait: it sends packets beyond the rate \
           elsewhere, or drops them (policing).",
    rows: &[
        (
            "Shaper",
            "a pull path, behind a queue, has a limit in packets a second",
            "pull to pull: the element behind it asks; evenly spread",
        ),
        ("BandwidthShaper", "the same with a limit in bytes or bits a second", "pull to pull"),
        (
            "RatedUnqueue",
            "packets of a queue are pushed on at a limited rate",
            "pull to push: has a task of its own; a token bucket allows bursts",
        ),
        (
            "BandwidthRatedUnqueue",
            "the same with a bandwidth",
            "pull to push; a token bucket of bytes",
        ),
        (
            "RatedSplitter",
            "packets beyond a rate are dropped or marked, and none may wait",
            "push; output 1 has the packets beyond the rate",
        ),
        ("BandwidthRatedSplitter", "the same with a bandwidth", "push; a token bucket of bytes"),
        (
            "Meter",
            "the treatment of all packets depends on the measured rate",
            "all packets of the moment go to the output of the rate, not only those beyond it",
        ),
        ("BandwidthMeter", "the same with a bandwidth", "a moving average of bytes a second"),
        (
            "LinkUnqueue",
            "a link is simulated: bandwidth and latency",
            "the length of a packet decides how long it takes",
        ),
        (
            "DelayUnqueue",
            "each packet is late by the same time",
            "pull to push; no limit of the rate",
        ),
        ("DelayShaper", "the same on a pull path", "pull to pull"),
        ("TimedUnqueue", "packets leave in bursts, at most BURST in an interval", "pull to push"),
        (
            "Burster",
            "a burst leaves at each interval",
            "an interval without packets is not made up for",
        ),
        (
            "EXPUnqueue",
            "packets leave at random times",
            "the intervals are exponentially distributed",
        ),
        (
            "Block",
            "packets have a rate annotation",
            "push; compares the annotation, measures nothing",
        ),
    ],
};

pub(super) const QUEUES: Family = Family {
    file: "which-queue.md",
    title: "Which queue?",
    text: "From device to device packets need no queue: a worker takes each burst the whole way. A \
           queue is for packets that wait: for a shaper, a scheduler, another worker, or room downstream.",
    rows: &[
        (
            "Queue",
            "packets wait; nearly always",
            "sources wait while it is full; new packets are dropped",
        ),
        ("SimpleQueue", "a source must not wait while the queue is full", "else as `Queue`"),
        (
            "FrontDropQueue",
            "new packets are worth more than old ones",
            "drops the oldest when full",
        ),
        (
            "MixedQueue",
            "some packets go to the head of the queue",
            "two inputs: tail and head; the packet at the tail is replaced",
        ),
        (
            "CPUQueue",
            "several workers push and the order between them does not matter",
            "a queue for each worker: they share nothing",
        ),
        (
            "Pipeliner",
            "a path is divided between workers, and nothing needs to wait",
            "push to push: its own worker goes on by itself",
        ),
        (
            "RED",
            "a queue is to drop early, before it is full",
            "stands before a queue, or behind it; keeps no packets",
        ),
        ("MinBatch", "an element behind it wants long bursts", "push; packets wait for others"),
        ("DelayUnqueue", "packets wait for a time, not for a puller", "pull to push"),
    ],
};

pub(super) const SCHEDULERS: Family = Family {
    file: "which-scheduler.md",
    title: "Which scheduler?",
    text: "A scheduler has several pull inputs, mostly with a queue before each, and chooses the one from \
           which the next packet is pulled.",
    rows: &[
        (
            "RoundRobinSched",
            "each input is to have the same number of packets",
            "in turn, empty ones are skipped",
        ),
        (
            "DRRSched",
            "each input is to have the same share of bytes",
            "deficit round robin, whatever the lengths of packets",
        ),
        ("StrideSched", "inputs have shares of different size", "in proportion to tickets"),
        (
            "PrioSched",
            "one input always comes first",
            "strict: a busy input keeps those behind it waiting",
        ),
        (
            "TimeSortedSched",
            "recorded traffic of several inputs becomes one stream",
            "by time stamps",
        ),
        ("PullSwitch", "a handler chooses the input", "one input at a time"),
        ("StaticPullSwitch", "the configuration chooses the input", "one input for ever"),
    ],
};
