//! `RouterLink`: the wire between two routers of one configuration.

use castanet_engine::packet::anno;
use castanet_engine::prelude::*;

/// Sends each packet from routers that send to a link to the routers that receive from it.
///
/// `click-combine` writes it in place of the devices at a link's ends. Each has
/// two arguments, those at inputs before those at outputs: its router, name and
/// class in one, its own arguments in the other. Here they name who is
/// connected, and `click-uncombine` makes devices of them again. Where several
/// routers receive, each has a copy. Packets are no longer marked: a link
/// carries bytes.
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
#[element(room = "util", args = Ends, ports = "-/-", processing = "a/h", flow = "x/y")]
pub struct RouterLink {
    outputs: u8,
}

#[derive(Args)]
pub struct Ends {
    /// For each port `ROUTER ELEMENT CLASS`, then that element's arguments.
    #[arg(rest)]
    ends: Vec<Words>,
}

impl Build for RouterLink {
    type Args = Ends;

    fn build(args: Ends, setup: &Setup) -> Result<Self, ArgError> {
        let (ends, ports) = (args.ends.len() / 2, setup.inputs + setup.outputs);
        let named = args.ends.iter().step_by(2).all(|end| end.words.len() == 3);
        if args.ends.len() % 2 == 1 || !named {
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
            packet.set_annotations([0; anno::SIZE]);
            packet.set_mac_header(0);
            packet.clear_network_header();
            packet.clear_transport_header();
        }
        for output in 1..self.outputs {
            let copies = batch.iter_mut().map(|packet| cx.share(packet)).collect();
            cx.emit_batch(Port::nth(output), copies);
        }
        match self.outputs {
            0 => cx.consume(batch),
            _ => cx.emit_batch(Port::nth(0), batch),
        }
    }
}
