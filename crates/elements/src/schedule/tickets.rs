//! The tickets of stride schedulers, by port.

use castanet_engine::prelude::*;
use castanet_kit::stride::{MAX_TICKETS, Stride};

/// The arguments of `StrideSched` and `StrideSwitch`.
#[derive(Args)]
pub struct Tickets {
    /// How many tickets each port has.
    #[arg(rest)]
    tickets: Vec<Words>,
}

impl Tickets {
    /// The tickets, if there are as many as ports.
    pub(crate) fn checked(&self, ports: usize, side: &str) -> Result<Vec<u32>, ArgError> {
        if self.tickets.len() != ports {
            let message = format!("need {ports} arguments, one per {side} port");
            return Err(ArgError::new(message));
        }
        let number = |(n, words): (usize, &Words)| number(&words.text, n);
        self.tickets.iter().enumerate().map(number).collect()
    }
}

fn number(text: &str, n: usize) -> Result<u32, ArgError> {
    let wrong = |what| ArgError::new(format!("argument {n} {what}"));
    let tickets = i64::from_arg(text, &Names::default())
        .map_err(|_| wrong("should be number of tickets (integer)"))?;
    let tickets = u64::try_from(tickets).map_err(|_| wrong("(number of tickets) must be >= 0"))?;
    Ok(tickets.min(MAX_TICKETS.into()) as u32)
}

/// The tickets with those of one port changed: its number and theirs.
pub(crate) fn changed(tickets: &[u32], text: &str, names: &Names) -> Result<Vec<u32>, ArgError> {
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

/// Lets the scheduler have the tickets of the configuration, which a handler
/// may have changed.
pub(crate) fn follow(stride: &mut Stride, tickets: &[u32]) {
    if stride.is_empty() {
        *stride = Stride::new(tickets);
    } else {
        stride.set_tickets(tickets);
    }
}
