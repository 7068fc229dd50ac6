//! Virtual routers between real devices: what sharing and tunnels cost there, and figure 10 of *Data plane
//! virtualisation*, section 6, which was measured through devices, too.

use super::io::cores::Cores;
use super::io::meter::{Sample, middle};
use super::io::veth::VethNetwork;
use super::measure;
use super::tenants::{FIGURE_10, MOST, Plan, RateRecord, Record, Sharing, between, device_burst};

/// Packets that a virtual router takes at most before the next has its turn, where no run may be longer.
const BURST: usize = 64;

/// Virtual routers that share the devices.
#[derive(Clone, Copy)]
struct Side {
    sharing: Sharing,
    routers: usize,
}

/// One router, and nothing between it and the devices.
const ALONE: Side = Side { sharing: Sharing::None, routers: 1 };
/// One virtual router.
const ONE: Side = Side { sharing: Sharing::Accounts, routers: 1 };

impl Side {
    /// The routers between two interfaces.
    fn configuration(self, (from, to): (&str, &str)) -> String {
        let Side { sharing, routers } = self;
        let burst = device_burst(routers);
        format!(
            "in :: FromDevice({from}, METHOD AF_XDP, SNIFFER false{burst});
             out :: ToDevice({to}, METHOD AF_XDP);\n"
        ) + &between(sharing, routers, BURST, "in", "out")
    }

    /// Runs it once.
    fn run(self, network: &VethNetwork, plan: &Plan) -> Result<Sample, String> {
        let castanet = network.start(&self.configuration(network.interfaces()), plan.time)?;
        network.measure(plan.time, &castanet.meter())
    }

    fn record(self, mpps: f64, ratio: f64) -> Record {
        let is_shared = self.sharing == Sharing::Accounts;
        Record::Rate(RateRecord {
            case: "devices",
            figure: is_shared.then_some(10),
            path: self.sharing.name(),
            routers: self.routers,
            burst: BURST,
            ns_per_packet: 1e3 / mpps,
            mpps,
            ratio,
            paper: if is_shared { FIGURE_10 } else { "" },
        })
    }
}

/// A side beside another.
struct Comparison {
    /// The middle rate of the other side, in million packets a second of processor time.
    base: f64,
    /// The middle rate of the side.
    mpps: f64,
    /// The middle of the ratios of their rates.
    ratio: f64,
}

/// Compares a side with another. Each of its runs stands between two of the other, and is compared with their mean: the
/// machine changes its speed in the course of seconds.
fn compare(
    (side, base): (Side, Side),
    network: &VethNetwork,
    plan: &Plan,
) -> Result<Comparison, String> {
    let (mut samples, mut bases) = (Vec::new(), vec![base.run(network, plan)?]);
    for _ in 0..plan.rounds {
        samples.push(side.run(network, plan)?);
        bases.push(base.run(network, plan)?);
    }
    let ratios = samples.iter().zip(bases.windows(2)).map(|(sample, around)| {
        let is_calm = !(sample.disturbed || around.iter().any(|it| it.disturbed));
        (2.0 * sample.mpps / around.iter().map(|it| it.mpps).sum::<f64>(), is_calm)
    });
    let ratio = measure::middle(ratios).0;
    Ok(Comparison { base: middle(&bases).0, mpps: middle(&samples).0, ratio })
}

/// Measures one router without sharing, and one to ten virtual ones, between two veth pairs by AF_XDP. One virtual
/// router is compared with none, without a tunnel and with each kind; more are compared with one, as in figure 10.
///
/// # Errors
/// There can be no such network here, or no packets come through.
pub(crate) fn devices(plan: &Plan, on_record: &mut dyn FnMut(Record)) -> Result<(), String> {
    let cores = Cores::choose();
    let network = VethNetwork::new(cores.forward, cores.feed()?)?;
    // The first run warms up what the next ones use.
    ALONE.run(&network, plan)?;
    let one = compare((ONE, ALONE), &network, plan)?;
    on_record(ALONE.record(one.base, 1.0));
    on_record(ONE.record(one.mpps, one.ratio));
    for sharing in [Sharing::Vlan, Sharing::Vxlan] {
        let side = Side { sharing, ..ONE };
        let with_tunnel = compare((side, ALONE), &network, plan)?;
        on_record(side.record(with_tunnel.mpps, with_tunnel.ratio));
    }
    for routers in 2..=MOST {
        let side = Side { routers, ..ONE };
        let several = compare((side, ONE), &network, plan)?;
        on_record(side.record(several.mpps, several.ratio));
    }
    Ok(())
}
