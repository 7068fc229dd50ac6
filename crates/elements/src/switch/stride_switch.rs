//! `StrideSwitch`: to each output as often as its tickets say.

use crate::schedule::tickets::{self, Tickets};
use castanet_engine::prelude::*;
use castanet_kit::stride::Stride;

/// Sends packets to its outputs in proportion to their tickets.
///
/// All workers take turns together. More than 32768 tickets count as so many.
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
/// > in 1.0.0.4 > 2.0.0.2 udp
/// < b  1.0.0.4 > 2.0.0.2 udp
/// ! s.tickets1 0
/// > in 1.0.0.5 > 2.0.0.2 udp
/// = s.drops.unmatched 1
/// ```
#[derive(Clone, Element)]
#[element(room = "switch", args = Tickets, methods)]
pub struct StrideSwitch {
    tickets: Vec<u32>,
}

#[handlers]
impl StrideSwitch {
    /// How many tickets an output has: `tickets0` and so on.
    #[read(tickets_)]
    fn tickets(&self, ask: &Ask) -> Option<u32> {
        self.tickets.get(ask.param.parse::<usize>().ok()?).copied()
    }
    /// Gives an output another number of tickets.
    #[write(tickets_)]
    fn set_tickets(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        Ok(StrideSwitch { tickets: tickets::changed(&self.tickets, text, names)? })
    }
}

impl Build for StrideSwitch {
    type Args = Tickets;

    fn build(args: Tickets, setup: &Setup) -> Result<Self, ArgError> {
        Ok(StrideSwitch { tickets: args.checked(setup.outputs, "output")? })
    }
}

/// Whose turn it is.
#[derive(Default, Local)]
pub struct Turns {
    stride: Stride,
}

impl PerPacket for StrideSwitch {
    type On = on::Any;
    type Local = Turns;
    type Fate = Port;
    const SHARED: bool = true;

    fn burst(&self, turns: &mut Turns, _: Time) {
        tickets::follow(&mut turns.stride, &self.tickets);
    }

    #[inline]
    fn packet(&self, turns: &mut Turns, _: &mut Packet) -> Port {
        turns.stride.schedule(|_| true).and_then(Port::new).unwrap_or(Port::DROP)
    }
}
