//! Rates, as the page gets them each second: by index of elements and connections, to be short.

use super::graph::GraphVersion;
use crate::observe::edges::{EdgeRate, edge_rates};
use crate::observe::rates::{ElementRates, Rates};
use crate::observe::snapshot::QueueTotals;
use castanet_runtime::router::Router;
use serde::Serialize;
use std::collections::BTreeMap;

/// Rates of a router.
#[derive(Serialize)]
pub(crate) struct LiveRates {
    /// Nanoseconds since the epoch, at the end of the interval.
    pub(super) time: i64,
    /// The graph that the indices mean.
    version: GraphVersion,
    /// The load of each worker, from 0 to 1.
    workers: Vec<f64>,
    pub(super) elements: Vec<ElementLive>,
    edges: Vec<EdgeLive>,
}

/// Rates of an element. Values that are zero or unknown are left out.
#[derive(Serialize)]
pub(crate) struct ElementLive {
    /// Packets since the start.
    #[serde(skip_serializing_if = "is_zero")]
    packets: u64,
    #[serde(skip_serializing_if = "is_zero_rate")]
    pub(super) packets_per_second: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_per_second: Option<f64>,
    /// Packets dropped since the start.
    #[serde(skip_serializing_if = "is_zero")]
    drops: u64,
    #[serde(skip_serializing_if = "is_zero_rate")]
    pub(super) drops_per_second: f64,
    /// Packets dropped since the start, by reason.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    reasons: BTreeMap<String, u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) nanoseconds_per_packet: Option<f64>,
    /// The share of one worker's time.
    #[serde(skip_serializing_if = "Option::is_none")]
    share: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    burst: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) queue: Option<QueueTotals>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kernel_drops: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kernel_drops_per_second: Option<f64>,
}

/// The rate on a connection.
#[derive(Serialize)]
struct EdgeLive {
    #[serde(skip_serializing_if = "is_zero_rate")]
    packets_per_second: f64,
    /// If that is only the most that can pass: the packets of the output's element, and those of the input's,
    /// that this edge shares with others.
    #[serde(skip_serializing_if = "Option::is_none")]
    bounds: Option<[f64; 2]>,
}

impl LiveRates {
    /// The rates of the configuration that runs, which were computed at this time, in an instance that began
    /// to run at `started`.
    pub(super) fn of(router: &Router, started: i64, time: i64, rates: Rates) -> LiveRates {
        let edge = |rate: EdgeRate| EdgeLive {
            packets_per_second: rounded(rate.packets_per_second),
            bounds: rate.bounds.map(|bounds| bounds.map(rounded)),
        };
        LiveRates {
            time,
            version: GraphVersion { started, replaced: router.replaced() },
            workers: rates.workers.iter().map(|worker| rounded(worker.load)).collect(),
            edges: edge_rates(router.graph(), &rates.elements).into_iter().map(edge).collect(),
            elements: rates.elements.into_iter().map(ElementLive::of).collect(),
        }
    }
}

impl ElementLive {
    fn of(rates: ElementRates) -> ElementLive {
        let mut reasons = rates.reasons;
        reasons.retain(|_, count| *count > 0);
        ElementLive {
            packets: rates.packets,
            packets_per_second: rounded(rates.packets_per_second),
            bytes_per_second: rates.bytes_per_second.map(rounded),
            drops: rates.drops,
            drops_per_second: rounded(rates.drops_per_second),
            reasons,
            nanoseconds_per_packet: rates.nanoseconds_per_packet.map(rounded),
            share: rates.share.map(|share| (share * 1e6).round() / 1e6),
            burst: rates.burst.map(rounded),
            queue: rates.queue,
            kernel_drops: rates.kernel_drops,
            kernel_drops_per_second: rates.kernel_drops_per_second.map(rounded),
        }
    }
}

/// A rate with two decimals.
fn rounded(rate: f64) -> f64 {
    (rate * 100.0).round() / 100.0
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

fn is_zero_rate(rate: &f64) -> bool {
    *rate == 0.0
}
