//! `Hub`: copies packets to all ports but the one where they come in.

use castanet_element::prelude::*;

/// Copies each packet to every output but the one with its input's number.
///
/// ```click
/// a -> h :: Hub -> x;  b -> [1] h; h[1] -> y;  c -> [2] h; h[2] -> z
/// > a 1.0.0.1 > 2.0.0.2 udp
/// > b 1.0.0.2 > 2.0.0.2 udp
/// > c 1.0.0.3 > 2.0.0.2 udp
/// < y 1.0.0.1 > 2.0.0.2 udp
/// < z 1.0.0.1 > 2.0.0.2 udp
/// < x 1.0.0.2 > 2.0.0.2 udp
/// < z 1.0.0.2 > 2.0.0.2 udp
/// < x 1.0.0.3 > 2.0.0.2 udp
/// < y 1.0.0.3 > 2.0.0.2 udp
/// ```
///
/// A packet for which there is no other output is dropped as unmatched:
///
/// ```click
/// a -> h :: Hub -> x
/// > a 1.0.0.1 > 2.0.0.2 udp
/// = h.drops.unmatched 1
/// ```
#[derive(Element)]
#[element(room = "switch", args = (), ports = "-/=", processing = "h/h")]
pub struct Hub {
    outputs: u8,
}

impl Build for Hub {
    type Args = ();

    fn build(_: (), setup: &Setup) -> Result<Self, ArgError> {
        let outputs = u8::try_from(setup.outputs);
        Ok(Hub { outputs: outputs.map_err(|_| ArgError::new("more outputs than 255"))? })
    }
}

impl PerBatch for Hub {
    type On = on::Any;
    type Local = ();
    type Fate = Port;

    fn batch(&self, _: &mut (), port: usize, mut batch: Batch, cx: &mut Cx) {
        let mut others = (0..self.outputs).filter(|&output| usize::from(output) != port);
        let last = others.next_back();
        let copies = others.clone().count() as u8;
        cx.duplicate(&mut batch, copies, |cx, _, copies| {
            let output = others.next();
            cx.emit_batch(output.map_or(Port::DROP, Port::nth), copies);
        });
        cx.emit_batch(last.map_or(Port::DROP, Port::nth), batch);
    }
}
