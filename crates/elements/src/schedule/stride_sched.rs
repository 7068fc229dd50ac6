//! `StrideSched`: pulls from its inputs in proportion to their tickets.

use super::tickets::TicketArgs;
use castanet_element::prelude::*;
use castanet_kit::stride::Stride;

/// Schedules its inputs in proportion to their tickets (stride scheduling).
///
/// An input without packets is skipped. An input with 0 tickets is never pulled. More than 32768
/// tickets count as 32768.
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
/// = s.config 2, 0
/// > b 1.0.1.3 > 2.0.0.2 udp
/// > a 1.0.0.4 > 2.0.0.2 udp
/// < out 1.0.0.4 > 2.0.0.2 udp
/// ```
#[derive(Clone, Element)]
#[element(room = "schedule", args = TicketArgs, methods, ports = "1-/1", processing = "l/l")]
pub struct StrideSched {
    tickets: Vec<u32>,
}

#[handlers]
impl StrideSched {
    /// The arguments as they are in effect: the tickets of all ports.
    #[read]
    fn config(&self) -> String {
        super::tickets::list(&self.tickets)
    }
    /// Number of tickets of an input: `tickets0` and so on.
    #[read(tickets_)]
    fn tickets(&self, ask: &ReadRequest) -> Option<u32> {
        self.tickets.get(ask.param.parse::<usize>().ok()?).copied()
    }
    /// Sets the number of tickets of an input: `tickets0` and so on.
    #[write(tickets_)]
    fn set_tickets(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        Ok(StrideSched { tickets: super::tickets::with_tickets(&self.tickets, text, names)? })
    }
}

impl Build for StrideSched {
    type Args = TicketArgs;

    fn build(args: TicketArgs, setup: &Setup) -> Result<Self, ArgError> {
        Ok(StrideSched { tickets: args.checked(setup.inputs, "input")? })
    }
}

/// The stride scheduler.
#[derive(Default, Local)]
pub struct StrideSchedState {
    stride: Stride,
    /// By input: whether the last pull of this call returned no packet.
    empty: Vec<bool>,
}

impl Source for StrideSched {
    type Local = StrideSchedState;
    type Fate = ();

    fn produce(&self, state: &mut StrideSchedState, n: usize, cx: &mut Cx) -> NextRun {
        super::tickets::set_tickets(&mut state.stride, &self.tickets);
        state.empty.clear();
        state.empty.resize(self.tickets.len(), false);
        for _ in 0..n {
            let empty = &mut state.empty;
            let pulled = state.stride.schedule(|input| {
                let batch = if empty[input] { Batch::new() } else { cx.pull(input, 1) };
                empty[input] = batch.is_empty();
                cx.emit_batch((), batch);
                !empty[input]
            });
            if pulled.is_none() {
                break;
            }
        }
        NextRun::Empty
    }
}
