//! `RouterLink`: connects the routers of a combined configuration.

use castanet_element::prelude::*;

/// Connects the routers of a combined configuration: copies packets to all receivers.
///
/// `click-combine` writes it instead of the devices at the ends of a link. Each device has two
/// arguments, those at inputs before those at outputs: the first holds its router, name and class,
/// the second its own arguments. Here they only name the ends of the link; `click-uncombine`
/// restores the devices from them. If several routers receive, each gets a copy. Annotations are
/// cleared, since a link carries bytes.
///
/// ```click
/// one -> l :: RouterLink(r1 out ToDevice, eth0, r2 out ToDevice, eth0, r3 in FromDevice, "eth1, SNIFFER false") -> to
/// two -> Queue -> [1] l
/// > one 1.0.0.1 > 2.0.0.2 udp ; paint 3
/// < to  1.0.0.1 > 2.0.0.2 udp ; paint 0
/// > two 1.0.0.2 > 2.0.0.2 udp
/// < to  1.0.0.2 > 2.0.0.2 udp
/// = l.drops.unmatched 0
/// ```
#[derive(Element)]
#[element(room = "util", args = RouterLinkArgs, ports = "-/-", processing = "a/h", flow = "x/y", headers = Unknown)]
pub struct RouterLink {
    outputs: u8,
}

#[derive(Args)]
pub struct RouterLinkArgs {
    /// For each port `ROUTER ELEMENT CLASS`, then the arguments of that element.
    #[arg(rest)]
    ends: Vec<Words>,
}

impl Build for RouterLink {
    type Args = RouterLinkArgs;

    fn build(args: RouterLinkArgs, setup: &Setup) -> Result<Self, ArgError> {
        let (ends, ports) = (args.ends.len() / 2, setup.inputs + setup.outputs);
        let are_named = args.ends.iter().step_by(2).all(|end| end.words.len() == 3);
        if args.ends.len() % 2 == 1 || !are_named {
            return Err(ArgError::new("wants `ROUTER ELEMENT CLASS` and a configuration in turn"));
        }
        if ends != ports {
            return Err(ArgError::new(format!("names {ends} ends, but has {ports} ports")));
        }
        let outputs = u8::try_from(setup.outputs);
        Ok(RouterLink { outputs: outputs.map_err(|_| ArgError::new("more outputs than 255"))? })
    }
}

impl PerBatch for RouterLink {
    type On = on::Any;
    type Local = ();
    type Fate = Port;

    fn batch(&self, _: &mut (), _: usize, mut batch: Batch, cx: &mut Cx) {
        for packet in &mut batch {
            packet.clear_annotations();
            packet.set_mac_header(0);
            packet.clear_network_header();
            packet.clear_transport_header();
        }
        cx.duplicate(&mut batch, self.outputs.saturating_sub(1), |cx, number, copies| {
            cx.emit_batch(Port::nth(number + 1), copies);
        });
        match self.outputs {
            0 => cx.consume(batch),
            _ => cx.emit_batch(Port::nth(0), batch),
        }
    }
}
