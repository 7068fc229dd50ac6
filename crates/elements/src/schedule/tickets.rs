//! Arguments and handlers of the elements that schedule ports by tickets.

use castanet_element::prelude::*;
use castanet_kit::stride::{MAX_TICKETS, Stride};

/// The arguments of `StrideSched` and `StrideSwitch`.
#[derive(Args)]
pub struct TicketArgs {
    /// Number of tickets of each port.
    #[arg(rest)]
    tickets: Vec<Words>,
}

impl TicketArgs {
    /// The number of tickets of each port. Fails unless there is one argument per port; `side` is
    /// the word for the ports, `input` or `output`.
    pub(crate) fn checked(&self, ports: usize, side: &str) -> Result<Vec<u32>, ArgError> {
        if self.tickets.len() != ports {
            let message = format!("need {ports} arguments, one per {side} port");
            return Err(ArgError::new(message));
        }
        let parse_tickets = |(n, words): (usize, &Words)| parse_tickets(&words.text, n);
        self.tickets.iter().enumerate().map(parse_tickets).collect()
    }
}

/// The tickets of all ports as arguments.
pub(crate) fn list(tickets: &[u32]) -> String {
    tickets.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}

fn parse_tickets(text: &str, n: usize) -> Result<u32, ArgError> {
    let wrong = |what| ArgError::new(format!("argument {n} {what}"));
    let tickets = i64::from_arg(text, &Names::default())
        .map_err(|_| wrong("should be number of tickets (integer)"))?;
    let tickets = u64::try_from(tickets).map_err(|_| wrong("(number of tickets) must be >= 0"))?;
    Ok(tickets.min(MAX_TICKETS.into()) as u32)
}

/// A copy of `tickets` with those of one port changed. `text` is the number of the port and its new
/// number of tickets.
pub(crate) fn with_tickets(
    tickets: &[u32],
    text: &str,
    names: &Names,
) -> Result<Vec<u32>, ArgError> {
    let (port, value) = text.split_once(' ').unwrap_or((text, ""));
    let value = i64::from_arg(value.trim(), names)
        .map_err(|e| e.reworded("tickets value must be integer"))?;
    let value =
        u64::try_from(value).map_err(|_| ArgError::new("number of tickets must be >= 0"))?;
    let mut tickets = tickets.to_vec();
    let port = usize::from_arg(port, names)?;
    let it = tickets.get_mut(port);
    *it.ok_or_else(|| ArgError::new(format!("port {port} out of range")))? =
        value.min(MAX_TICKETS.into()) as u32;
    Ok(tickets)
}

/// Sets the tickets of the scheduler to those of the element, which a handler may have changed.
pub(crate) fn set_tickets(stride: &mut Stride, tickets: &[u32]) {
    if stride.is_empty() {
        *stride = Stride::new(tickets);
    } else {
        stride.set_tickets(tickets);
    }
}
