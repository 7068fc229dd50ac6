//! `Suppressor`: opens and closes paths between inputs and outputs.

use castanet_element::prelude::*;

/// Passes packets from each input to the output of the same number while that port is open.
///
/// All ports are open at the start. Packets that are pushed to a closed port are dropped; no packet
/// is pulled through a closed port.
///
/// ```click
/// a -> s :: Suppressor -> x;  b -> [1] s; s[1] -> y
/// ! s.active1 false
/// = s.active0 true
/// = s.active1 false
/// > a 1.0.0.1 > 2.0.0.2 udp
/// > b 1.0.1.1 > 2.0.0.2 udp
/// < x 1.0.0.1 > 2.0.0.2 udp
/// = s.drops.unmatched 1
/// ! s.reset
/// > b 1.0.1.2 > 2.0.0.2 udp
/// < y 1.0.1.2 > 2.0.0.2 udp
/// ```
///
/// A Suppressor may have ports that push and ports that are pulled:
///
/// ```click
/// a -> s :: Suppressor -> x;  b -> q :: Queue -> [1] s; s[1] -> Unqueue -> y
/// ! s.active1 false
/// > a 1.0.0.1 > 2.0.0.2 udp
/// > b 1.0.1.1 > 2.0.0.2 udp
/// < x 1.0.0.1 > 2.0.0.2 udp
/// = q.length 1
/// ! s.active1 true
/// < y 1.0.1.1 > 2.0.0.2 udp
/// = s.drops.unmatched 0
/// ```
#[derive(Clone, Element)]
#[element(room = "switch", args = (), methods, ports = "-/=", processing = "a/a", flow = "#/#")]
pub struct Suppressor {
    /// By port number: whether the port is open.
    open: Vec<bool>,
}

impl Build for Suppressor {
    type Args = ();

    fn build(_: (), setup: &Setup) -> Result<Self, ArgError> {
        Ok(Suppressor { open: vec![true; setup.inputs] })
    }
}

#[handlers]
impl Suppressor {
    /// Whether a port is open: `active0` and so on.
    #[read(active_)]
    fn active(&self, ask: &ReadRequest) -> Option<bool> {
        self.open.get(ask.param.parse::<usize>().ok()?).copied()
    }
    /// Opens or closes a port: `active0` and so on.
    #[write(active_)]
    fn set_active(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        let (port, active) = text.split_once(' ').unwrap_or((text, ""));
        let active = bool::from_arg(active.trim(), names)
            .map_err(|e| e.reworded("active value must be boolean"))?;
        let mut open = self.open.clone();
        match port.parse::<usize>().ok().and_then(|port| open.get_mut(port)) {
            Some(it) => *it = active,
            None => return Err(ArgError::new(format!("there is no port {port}"))),
        }
        Ok(Suppressor { open })
    }
    /// Opens all ports.
    #[write]
    fn reset(&self, _: &str, _: &Names) -> Result<Self, ArgError> {
        Ok(Suppressor { open: vec![true; self.open.len()] })
    }
}

impl PerBatch for Suppressor {
    type On = on::Any;
    type Local = ();
    type Fate = Port;

    fn batch(&self, _: &mut (), port: usize, batch: Batch, cx: &mut Cx) {
        let open = self.open.get(port).is_some_and(|open| *open);
        cx.emit_batch(if open { Port::nth(port as u8) } else { Port::DROP }, batch);
    }

    fn pull_input(&self, output: usize) -> Option<usize> {
        self.open.get(output).is_some_and(|open| *open).then_some(output)
    }
}
