//! Virtual routers between real devices: what sharing costs there, and figure 10 of *Data plane
//! virtualisation*, section 6, which was measured through devices, too.

use super::io::cores::Cores;
use super::io::meter::{Sample, middle};
use super::io::veth::VethNetwork;
use super::tenants::{FIGURE_10, MOST, Plan, RateRecord, Record, Sharing, between, device_burst};

/// Packets that a virtual router takes at most before the next has its turn, where no run may be longer.
const BURST: usize = 64;

/// Virtual routers that share the devices.
struct Side {
    sharing: Sharing,
    routers: usize,
    samples: Vec<Sample>,
}

impl Side {
    /// The routers between two interfaces.
    fn configuration(&self, (from, to): (&str, &str)) -> String {
        let Side { sharing, routers, .. } = *self;
        let burst = device_burst(routers);
        format!(
            "in :: FromDevice({from}, METHOD AF_XDP, SNIFFER false{burst});
             out :: ToDevice({to}, METHOD AF_XDP);\n"
        ) + &between(sharing, routers, BURST, "in", "out")
    }

    /// Million packets a second of processor time.
    fn mpps(&self) -> f64 {
        middle(&self.samples).0
    }
}

/// Measures one router without sharing, and one to ten virtual ones, between two veth pairs by AF_XDP, in turns.
///
/// # Errors
/// There can be no such network here, or no packets come through.
pub(crate) fn devices(plan: &Plan, on_record: &mut dyn FnMut(Record)) -> Result<(), String> {
    let cores = Cores::choose();
    let network = VethNetwork::new(cores.forward, cores.feed()?)?;
    let side = |sharing, routers| Side { sharing, routers, samples: Vec::new() };
    let mut sides = vec![side(Sharing::None, 1)];
    sides.extend((1..=MOST).map(|routers| side(Sharing::Accounts, routers)));
    for _ in 0..plan.rounds {
        for side in &mut sides {
            let configuration = side.configuration(network.interfaces());
            let castanet = network.start(&configuration, plan.time)?;
            side.samples.push(network.measure(plan.time, &castanet.meter())?);
        }
    }
    // Figure 10 compares with one virtual router.
    let (alone, one) = (sides[0].mpps(), sides[1].mpps());
    for side in &sides {
        let is_shared = side.sharing != Sharing::None;
        let mpps = side.mpps();
        on_record(Record::Rate(RateRecord {
            case: "devices",
            figure: is_shared.then_some(10),
            path: side.sharing.name(),
            routers: side.routers,
            burst: BURST,
            ns_per_packet: 1e3 / mpps,
            mpps,
            ratio: mpps / if is_shared { one } else { alone },
            paper: if is_shared { FIGURE_10 } else { "" },
        }));
    }
    Ok(())
}
