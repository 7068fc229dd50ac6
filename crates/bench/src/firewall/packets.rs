//! Small packets past rules: 65536 flows of UDP, which the kernel makes.

use super::rules::Backend;
use super::{Plan, load};
use crate::io::meter::Sample;
use crate::io::veth::VethNetwork;
use std::path::Path;
use std::time::Instant;

/// Measures a peer with the rules of a file; with how long these took to load, in seconds.
pub(super) fn run(
    plan: &Plan,
    (forward, feed): (usize, usize),
    peer: Backend,
    file: &Path,
) -> Result<(Vec<Sample>, Option<f64>), String> {
    let testbed = VethNetwork::new(forward, feed)?;
    let rounds = 0..plan.rounds;
    if peer == Backend::Castanet {
        let (from, to) = testbed.interfaces();
        let configuration = format!(
            "in :: FromDevice({from}, PROMISC true, METHOD AF_XDP, SNIFFER false)
                 -> Middlebox(FILE \"{}\", INTERFACES {from}, OUT {to})
                 -> out :: ToDevice({to}, METHOD AF_XDP)",
            file.display()
        );
        let mut started = None;
        let samples = rounds.map(|_| {
            let began = Instant::now();
            let castanet = testbed.start(&configuration, plan.time)?;
            started = started.or(Some(began.elapsed().as_secs_f64()));
            testbed.measure(plan.time, &castanet.meter())
        });
        let samples = samples.collect::<Result<_, _>>()?;
        return Ok((samples, started));
    }
    let loaded = load(plan, peer, testbed.forwarder(), file)?;
    let samples = rounds.map(|_| testbed.kernel(plan.time)).collect::<Result<_, _>>()?;
    Ok((samples, loaded))
}
