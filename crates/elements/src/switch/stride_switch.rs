//! `StrideSwitch`: distributes packets to its outputs in proportion to their tickets.

use crate::schedule::tickets::{self, TicketArgs};
use castanet_element::prelude::*;
use castanet_kit::stride::Stride;

/// Distributes packets to its outputs in proportion to their tickets (stride scheduling).
///
/// All workers share the schedule. More than 32768 tickets count as 32768.
///
/// ```click
/// in -> s :: StrideSwitch(2, 1) -> a;  s[1] -> b
/// > in 1.0.0.1 > 2.0.0.2 udp
/// > in 1.0.0.2 > 2.0.0.2 udp
/// > in 1.0.0.3 > 2.0.0.2 udp
/// < a  1.0.0.1 > 2.0.0.2 udp
/// < a  1.0.0.2 > 2.0.0.2 udp
/// < b  1.0.0.3 > 2.0.0.2 udp
/// ! s.tickets0 0
/// = s.tickets0 0
/// = s.tickets1 1
/// = s.config 0, 1
/// > in 1.0.0.4 > 2.0.0.2 udp
/// < b  1.0.0.4 > 2.0.0.2 udp
/// ! s.tickets1 0
/// > in 1.0.0.5 > 2.0.0.2 udp
/// = s.drops.unmatched 1
/// ```
#[derive(Clone, Element)]
#[element(room = "switch", args = TicketArgs, methods)]
pub struct StrideSwitch {
    tickets: Vec<u32>,
}

#[handlers]
impl StrideSwitch {
    /// The arguments as they are in effect: the tickets of all ports.
    #[read]
    fn config(&self) -> String {
        tickets::list(&self.tickets)
    }
    /// Number of tickets of an output: `tickets0` and so on.
    #[read(tickets_)]
    fn tickets(&self, ask: &ReadRequest) -> Option<u32> {
        self.tickets.get(ask.param.parse::<usize>().ok()?).copied()
    }
    /// Sets the number of tickets of an output: `tickets0` and so on.
    #[write(tickets_)]
    fn set_tickets(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        Ok(StrideSwitch { tickets: tickets::with_tickets(&self.tickets, text, names)? })
    }
}

impl Build for StrideSwitch {
    type Args = TicketArgs;

    fn build(args: TicketArgs, setup: &Setup) -> Result<Self, ArgError> {
        Ok(StrideSwitch { tickets: args.checked(setup.outputs, "output")? })
    }
}

/// The stride scheduler.
#[derive(Default, Local)]
pub struct StrideSwitchState {
    stride: Stride,
}

impl PerPacket for StrideSwitch {
    type On = on::Any;
    type Local = StrideSwitchState;
    type Fate = Port;
    const SHARED: bool = true;

    fn begin_burst(&self, state: &mut StrideSwitchState, _: Time) {
        tickets::set_tickets(&mut state.stride, &self.tickets);
    }

    #[inline]
    fn packet(&self, state: &mut StrideSwitchState, _: &mut Packet) -> Port {
        state.stride.schedule(|_| true).and_then(Port::new).unwrap_or(Port::DROP)
    }
}
