//! `EtherSpanTree`: keeps a switch of a network with loops from forwarding in circles.

use super::ether_span_tree_args::{EtherSpanTreeArgs, named};
use super::ether_span_tree_state::EtherSpanTreeState;
use super::ether_switch::EtherSwitchArgs;
use castanet_element::prelude::*;
use castanet_element::wire::bpdu::Bpdu;
use castanet_kit::spanning_tree::{PortState, SpanningTree};

/// Runs the spanning tree protocol (IEEE 802.1D), so that an `EtherSwitch` forwards without loops.
///
/// Frames of the protocol come in on the input of their port and leave by the output of their port. While
/// another path leads to the root, a port's frames are suppressed: INPUT_SUPPRESSOR stands before the switch
/// and OUTPUT_SUPPRESSOR behind it. At the start every port listens for 15 s and learns addresses for
/// 15 s before it forwards; another root may have other times. While the topology changes, addresses of
/// the switch expire after the root's forward delay.
///
/// States change and messages are sent every 2 s, or as the root says. A link adds 1 to the cost of a
/// path. Bridges of Linux and others take part if they run the same protocol. Inputs take whole Ethernet
/// frames; those that are not of the protocol are dropped (`drops.unmatched`).
///
/// ```click
/// stp :: EtherSpanTree(0:0:0:0:0:9, before, after, sw)
/// before, after :: Suppressor;  sw :: EtherSwitch
/// b0 -> [0] stp [0] -> x0;  b1 -> [1] stp [1] -> x1
/// f0 -> [0] before [0] -> [0] sw [0] -> [0] after [0] -> y0
/// f1 -> [1] before [1] -> [1] sw [1] -> [1] after [1] -> y1
/// = stp.states 0 listen\n1 listen
/// > f0 eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1 > 2.0.0.2 udp
/// > f1 eth 0:0:0:0:0:2 > 0:0:0:0:0:1 2.0.0.2 > 1.0.0.1 udp
/// = before.drops.unmatched 2
/// > b1 hex 01 80 c2 00 00 00 00 00 00 00 00 05 00 26 42 42 03 00 00 00 00 00 80 00 00 00 00 00 00 05 00 00 00 00 80 00 00 00 00 00 00 05 80 01 00 00 14 00 02 00 0f 00 00 00 00 00 00 00 00 00
/// > b0 hex 01 80 c2 00 00 00 00 00 00 00 00 05 00 26 42 42 03 00 00 00 00 00 80 00 00 00 00 00 00 05 00 00 00 00 80 00 00 00 00 00 00 05 80 02 00 00 14 00 02 00 0f 00 00 00 00 00 00 00 00 00
/// > b0 eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1 > 2.0.0.2 udp
/// = stp.drops.unmatched 1
/// = stp.states 0 block\n1 listen
/// = before.active0 false
/// ```
#[derive(Element)]
#[element(room = "ether", args = EtherSpanTreeArgs, ports = "-/=", processing = "h/h")]
pub struct EtherSpanTree {
    addr: MacAddr,
    priority: u16,
    ports: usize,
    /// The suppressors before and behind the switch.
    suppressors: [String; 2],
    switch: String,
    /// Time until addresses of the switch expire while the topology does not change.
    timeout: Duration,
}

impl Build for EtherSpanTree {
    type Args = EtherSpanTreeArgs;

    fn build(args: EtherSpanTreeArgs, setup: &Setup) -> Result<Self, ArgError> {
        named(setup, "INPUT_SUPPRESSOR", &args.input_suppressor, "Suppressor")?;
        named(setup, "OUTPUT_SUPPRESSOR", &args.output_suppressor, "Suppressor")?;
        let switch = named(setup, "SWITCH", &args.switch, "EtherSwitch")?;
        // Errors in its arguments are reported at the switch.
        let timeout =
            EtherSwitchArgs::parse(&switch, setup.names).map_or(Duration::ZERO, |it| it.timeout);
        Ok(EtherSpanTree {
            addr: args.addr,
            priority: args.bridge_priority,
            ports: setup.outputs,
            suppressors: [args.input_suppressor, args.output_suppressor],
            switch: args.switch,
            timeout,
        })
    }
}

impl PerBatch for EtherSpanTree {
    type On = on::Any;
    type Local = EtherSpanTreeState;
    type Fate = Port;
    // A switch has one place in the tree.
    const SHARED: bool = true;

    fn can_take_state(&self, before: &EtherSpanTree) -> bool {
        (self.addr, self.priority, self.ports) == (before.addr, before.priority, before.ports)
    }

    fn start(&self, state: &mut EtherSpanTreeState, cx: &mut Cx) -> Result<(), ArgError> {
        let (id, now) = (u64::from(self.priority) << 48 | self.addr.to_u64(), cx.now());
        state.tree = SpanningTree::new(id, self.ports, now.nanos());
        state.hello = now + Duration::from_nanos(state.tree.hello_time());
        self.after_take_state(state, cx);
        Ok(())
    }

    fn after_take_state(&self, state: &mut EtherSpanTreeState, cx: &mut Cx) {
        // The other elements may be new.
        state.told = vec![None; self.ports];
        state.told_timeout = None;
        cx.set_timer(cx.now());
    }

    fn batch(&self, state: &mut EtherSpanTreeState, port: usize, batch: Batch, cx: &mut Cx) {
        for packet in batch {
            let Some(message) = Bpdu::parse(packet.bytes()) else {
                cx.emit(Port::DROP, packet);
                continue;
            };
            state.tree.receive(port, &message, cx.now().nanos());
            cx.consume(packet.into());
        }
        if !state.tree.states().map(Some).eq(state.told.iter().copied()) {
            cx.set_timer(cx.now());
        }
    }

    fn run_timer(&self, state: &mut EtherSpanTreeState, cx: &mut Cx) {
        let mut messages = Vec::new();
        if cx.now() >= state.hello {
            messages = state.tree.hello(cx.now().nanos());
            state.hello = cx.now() + Duration::from_nanos(state.tree.hello_time());
        }
        // Ports close before anything is sent.
        self.tell(state, cx);
        for (port, message) in messages {
            if let Some(frame) = cx.copy_in(&message.frame(self.addr)) {
                cx.emit(Port::nth(port as u8), frame);
            }
        }
        cx.set_timer(state.hello);
    }
}

impl EtherSpanTree {
    /// Writes what has changed to the handlers of the suppressors and the switch.
    fn tell(&self, state: &mut EtherSpanTreeState, cx: &mut Cx) {
        let [before, behind] = &self.suppressors;
        for (port, (told, now)) in state.told.iter_mut().zip(state.tree.states()).enumerate() {
            if told.replace(now) == Some(now) {
                continue;
            }
            let takes = matches!(now, PortState::Learning | PortState::Forwarding);
            let sends = now == PortState::Forwarding;
            cx.call(&format!("{before}.active{port}"), &takes.to_string());
            cx.call(&format!("{behind}.active{port}"), &sends.to_string());
        }
        let ageing = state.tree.ageing_time(cx.now().nanos()).map(Duration::from_nanos);
        let timeout = ageing.map_or(self.timeout, |it| it.min(self.timeout));
        if state.told_timeout.replace(timeout).unwrap_or(self.timeout) != timeout {
            cx.call(&format!("{}.timeout", self.switch), &format!("{}ms", timeout.as_millis()));
        }
    }
}
