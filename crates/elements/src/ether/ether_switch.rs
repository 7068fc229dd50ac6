//! `EtherSwitch`: forwards Ethernet frames as a learning switch.

use super::ether_switch_state::EtherSwitchState;
use super::port_forwarding::PortForwarding;
use castanet_element::prelude::*;

/// Forwards Ethernet frames between its ports as a learning switch does.
///
/// The input and the output of one number are a port of the switch. The switch
/// learns the source address of each frame with the port of the frame. A frame
/// to a learnt address leaves by the port of the address, or is dropped if it
/// arrived there or may not go there (`drops.unmatched`). All other frames leave by all other
/// ports. An address expires TIMEOUT after the last frame from it; with
/// TIMEOUT 0 the switch learns no address. `remove_port_forwarding` takes
/// outputs from those to which frames of a port may go; each argument is
/// a port and its outputs. The table has at most 65536
/// addresses.
///
/// ```click
/// a -> s :: EtherSwitch -> x;  b -> [1] s;  s[1] -> y;  c -> [2] s;  s[2] -> z
/// > a eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1 > 2.0.0.2 udp
/// < y eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1 > 2.0.0.2 udp
/// < z eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1 > 2.0.0.2 udp
/// > b eth 0:0:0:0:0:2 > 0:0:0:0:0:1 2.0.0.2 > 1.0.0.1 udp
/// < x eth 0:0:0:0:0:2 > 0:0:0:0:0:1 2.0.0.2 > 1.0.0.1 udp
/// > b eth 0:0:0:0:0:3 > 0:0:0:0:0:2 3.0.0.3 > 2.0.0.2 udp
/// = s.drops.unmatched 1
/// > c eth 0:0:0:0:0:4 > ff:ff:ff:ff:ff:ff 3.0.0.3 > 2.0.0.2 udp
/// < x eth 0:0:0:0:0:4 > ff:ff:ff:ff:ff:ff 3.0.0.3 > 2.0.0.2 udp
/// < y eth 0:0:0:0:0:4 > ff:ff:ff:ff:ff:ff 3.0.0.3 > 2.0.0.2 udp
/// = s.table 00-00-00-00-00-01 0\n00-00-00-00-00-02 1\n00-00-00-00-00-03 1\n00-00-00-00-00-04 2
/// = s.timeout 300
/// ! s.timeout 0
/// > a eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1 > 2.0.0.2 udp
/// < y eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1 > 2.0.0.2 udp
/// < z eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1 > 2.0.0.2 udp
/// ! s.remove_port_forwarding 0 2
/// ! s.remove_port_forwarding 1 0 2
/// = s.port_forwarding weight: 1\t0: 1\nweight: 0\t1: \nweight: 2\t2: 0-1
/// > a eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1 > 2.0.0.2 udp
/// < y eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1 > 2.0.0.2 udp
/// ! s.reset_port_forwarding
/// = s.port_forwarding weight: 2\t0: 1-2\nweight: 2\t1: 0,2\nweight: 2\t2: 0-1
/// ```
#[derive(Clone, Element)]
#[element(room = "ether", args = EtherSwitchArgs, methods, ports = "1-/1-", processing = "h/h")]
pub struct EtherSwitch {
    timeout: Duration,
    outputs: u8,
    forwarding: PortForwarding,
}

#[derive(Args)]
pub struct EtherSwitchArgs {
    /// Time after the last frame from an address until it expires; 0 to learn no address.
    #[arg(keyword, default = Duration::from_secs(300))]
    pub(super) timeout: Duration,
}

impl Build for EtherSwitch {
    type Args = EtherSwitchArgs;
    fn build(args: EtherSwitchArgs, setup: &Setup) -> Result<Self, ArgError> {
        if setup.inputs != setup.outputs {
            let (inputs, outputs) = (setup.inputs, setup.outputs);
            let error = ArgError::new(format!("{inputs} inputs, but {outputs} outputs"));
            return Err(error.help("each link has an input and an output"));
        }
        let outputs = u8::try_from(setup.outputs).ok().filter(|&n| Port::new(n.into()).is_some());
        let outputs = outputs.ok_or_else(|| ArgError::new("too many outputs"))?;
        let forwarding = PortForwarding::new(outputs);
        Ok(EtherSwitch { timeout: args.timeout, outputs, forwarding })
    }
}

#[handlers]
impl EtherSwitch {
    /// Time after the last frame from an address until it expires, in seconds.
    #[read]
    fn timeout(&self) -> u64 {
        self.timeout.as_secs()
    }
    /// Sets the time until an address expires.
    #[write(timeout)]
    fn set_timeout(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        let error = |e: ArgError| e.click("expected timeout (integer)");
        let timeout = Duration::from_arg(text, names).map_err(error)?;
        Ok(EtherSwitch { timeout, ..self.clone() })
    }
    /// For each port the number of outputs to which its frames may go, and these.
    #[read]
    fn port_forwarding(&self) -> String {
        self.forwarding.listing()
    }
    /// Forbids outputs to frames of a port: `PORT OUTPUT...`, and others after commas.
    #[write]
    fn remove_port_forwarding(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        Ok(EtherSwitch { forwarding: self.forwarding.without(text, names)?, ..self.clone() })
    }
    /// Allows all outputs again but the port's own.
    #[write]
    fn reset_port_forwarding(&self, _: &str, _: &Names) -> Result<Self, ArgError> {
        Ok(EtherSwitch { forwarding: PortForwarding::new(self.outputs), ..self.clone() })
    }
}

impl PerBatch for EtherSwitch {
    type On = on::Ether;
    type Local = EtherSwitchState;
    type Fate = Port;
    // An address that one worker learns is known to all workers.
    const SHARED: bool = true;

    fn batch(&self, state: &mut EtherSwitchState, port: usize, batch: Batch, cx: &mut Cx) {
        let now = cx.now().nanos();
        let timeout = u64::try_from(self.timeout.as_nanos()).unwrap_or(u64::MAX);
        for packet in batch {
            let addresses = packet.ether_header().map(|ether| (ether.src(), ether.dst()));
            let Some((src, dst)) = addresses else { continue };
            if timeout > 0 && src.is_unicast() {
                state.table.learn(src.octets(), port as u8, now, timeout);
            }
            let find = || state.table.find(dst.octets(), now, timeout);
            match Some(()).filter(|()| dst.is_unicast()).and_then(|()| find()) {
                Some(to) if to < self.outputs => match self.forwarding.allows(port, to) {
                    true => cx.emit(Port::nth(to), packet),
                    false => cx.emit(Port::DROP, packet),
                },
                _ => self.flood(port, packet, cx),
            }
        }
    }
}

impl EtherSwitch {
    /// Sends a frame to all ports to which it may go.
    fn flood(&self, from: usize, mut packet: Packet, cx: &mut Cx) {
        let mut others = (0..self.outputs).filter(|&output| self.forwarding.allows(from, output));
        let Some(last) = others.next_back() else { return cx.emit(Port::DROP, packet) };
        for output in others {
            let copy = cx.copy_or_share(&mut packet);
            cx.emit(Port::nth(output), copy);
        }
        cx.emit(Port::nth(last), packet);
    }
}
