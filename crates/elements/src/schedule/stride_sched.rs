//! `StrideSched`: from each input as often as its tickets say.

use super::tickets::Tickets;
use castanet_engine::prelude::*;
use castanet_kit::stride::Stride;

/// Pulls from its inputs in proportion to their tickets, a packet each.
///
/// An input without packets is passed over; one without tickets is not pulled
/// from. More than 32768 tickets count as so many.
///
/// ```click
/// a -> Queue -> [0] s :: StrideSched(2, 1) -> u :: Unqueue(ACTIVE false) -> out
/// b -> Queue -> [1] s
/// > a 1.0.0.1 > 2.0.0.2 udp
/// > a 1.0.0.2 > 2.0.0.2 udp
/// > a 1.0.0.3 > 2.0.0.2 udp
/// > b 1.0.1.1 > 2.0.0.2 udp
/// > b 1.0.1.2 > 2.0.0.2 udp
/// = s.tickets0 2
/// ! u.active true
/// < out 1.0.0.1 > 2.0.0.2 udp
/// < out 1.0.0.2 > 2.0.0.2 udp
/// < out 1.0.1.1 > 2.0.0.2 udp
/// < out 1.0.0.3 > 2.0.0.2 udp
/// < out 1.0.1.2 > 2.0.0.2 udp
/// ! s.tickets1 0
/// = s.tickets1 0
/// > b 1.0.1.3 > 2.0.0.2 udp
/// > a 1.0.0.4 > 2.0.0.2 udp
/// < out 1.0.0.4 > 2.0.0.2 udp
/// ```
#[derive(Clone, Element)]
#[element(room = "schedule", args = Tickets, methods, ports = "1-/1", processing = "l/l")]
pub struct StrideSched {
    tickets: Vec<u32>,
}

#[handlers]
impl StrideSched {
    /// How many tickets an input has: `tickets0` and so on.
    #[read(tickets_)]
    fn tickets(&self, ask: &Ask) -> Option<u32> {
        self.tickets.get(ask.param.parse::<usize>().ok()?).copied()
    }
    /// Gives an input another number of tickets.
    #[write(tickets_)]
    fn set_tickets(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        Ok(StrideSched { tickets: super::tickets::changed(&self.tickets, text, names)? })
    }
}

impl Build for StrideSched {
    type Args = Tickets;

    fn build(args: Tickets, setup: &Setup) -> Result<Self, ArgError> {
        Ok(StrideSched { tickets: args.checked(setup.inputs, "input")? })
    }
}

/// Whose turn it is.
#[derive(Default, Local)]
pub struct Turns {
    stride: Stride,
    /// By input: whether it had nothing when it was asked last.
    dry: Vec<bool>,
}

impl Source for StrideSched {
    type Local = Turns;
    type Fate = ();

    fn ask(&self, turns: &mut Turns, n: usize, cx: &mut Cx) -> Asked {
        super::tickets::follow(&mut turns.stride, &self.tickets);
        turns.dry.clear();
        turns.dry.resize(self.tickets.len(), false);
        for _ in 0..n {
            let dry = &mut turns.dry;
            let pulled = turns.stride.schedule(|input| {
                let batch = if dry[input] { Batch::new() } else { cx.pull(input, 1) };
                dry[input] = batch.is_empty();
                cx.emit_batch((), batch);
                !dry[input]
            });
            if pulled.is_none() {
                break;
            }
        }
        Asked::Empty
    }
}
