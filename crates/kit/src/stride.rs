//! Stride scheduling: proportional shares by tickets (Waldspurger, MIT/LCS/TM-528).
//!
//! [`Stride`] is for elements: it offers a slot to one client after the other, all of which are
//! candidates at any time, and breaks ties as Click's elements do. A worker's task queue shares
//! [`stride`] with it and nothing else: its tasks sleep and are woken, go on at the pass of the task
//! that runs, and are not offered what they refuse.

/// The stride of a client with one ticket.
const STRIDE1: u32 = 1 << 16;

/// The largest number of tickets of a client; more are truncated to it.
pub const MAX_TICKETS: u32 = 1 << 15;

/// How far a turn takes a client back; `None` without tickets, for it never has a turn.
pub fn stride(tickets: u32) -> Option<u32> {
    STRIDE1.checked_div(tickets.min(STRIDE1))
}

/// Clients with tickets, in the order of their passes.
#[derive(Clone, Debug, Default)]
pub struct Stride {
    clients: Vec<Client>,
    /// The clients that have tickets, in scheduling order.
    order: Vec<usize>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Client {
    tickets: u32,
    pass: u32,
}

impl Client {
    fn stride(&mut self) {
        self.pass = self.pass.wrapping_add(stride(self.tickets).unwrap_or(0));
    }
}

/// Whether pass `a` comes after pass `b`, modulo 2³².
fn after(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) > 0
}

impl Stride {
    /// A scheduler for clients with these tickets; of equal passes the lower index comes first.
    pub fn new(tickets: &[u32]) -> Stride {
        let client = |&tickets: &u32| {
            let mut client = Client { tickets: tickets.min(MAX_TICKETS), pass: 0 };
            client.stride();
            client
        };
        let mut stride =
            Stride { clients: tickets.iter().map(client).collect(), order: Vec::new() };
        for client in (0..tickets.len()).rev() {
            if stride.clients[client].tickets > 0 {
                stride.insert(client);
            }
        }
        stride
    }

    /// How many clients there are, with or without tickets.
    pub fn len(&self) -> usize {
        self.clients.len()
    }

    /// Whether there are no clients.
    pub fn is_empty(&self) -> bool {
        self.clients.is_empty()
    }

    /// Changes the clients' tickets. A client that had none joins at the end of the round.
    pub fn set_tickets(&mut self, tickets: &[u32]) {
        for (client, &tickets) in tickets.iter().enumerate().take(self.clients.len()) {
            let tickets = tickets.min(MAX_TICKETS);
            let before = std::mem::replace(&mut self.clients[client].tickets, tickets);
            if tickets == 0 {
                self.order.retain(|&other| other != client);
            } else if before == 0 {
                let now = self.order.first().map_or(0, |&first| self.clients[first].pass);
                self.clients[client].pass = now;
                self.clients[client].stride();
                self.insert(client);
            }
        }
    }

    /// Offers the slot to one client after the other until `take` returns true, and returns that
    /// client. Each client that was offered the slot advances by its stride.
    pub fn schedule(&mut self, mut take: impl FnMut(usize) -> bool) -> Option<usize> {
        let taker = self.order.iter().position(|&client| take(client));
        let offered = taker.map_or(self.order.len(), |at| at + 1);
        let taker = taker.map(|at| self.order[at]);
        if offered == 1 {
            // By far the most frequent case: only the first client moves back.
            let first = self.order[0];
            self.clients[first].stride();
            let pass = self.clients[first].pass;
            let behind = self.order[1..].iter();
            let to = behind.take_while(|&&c| after(pass, self.clients[c].pass)).count();
            self.order[..=to].rotate_left(1);
            return taker;
        }
        let advanced: Vec<usize> = self.order.drain(..offered).collect();
        for client in advanced {
            self.clients[client].stride();
            self.insert(client);
        }
        taker
    }

    /// Inserts a client by its pass, before clients with the same pass.
    fn insert(&mut self, client: usize) {
        let pass = self.clients[client].pass;
        let before = |&&other: &&usize| after(pass, self.clients[other].pass);
        let at = self.order.iter().take_while(before).count();
        self.order.insert(at, client);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn shares_follow_tickets() {
        let mut stride = Stride::new(&[3, 1, 0, 2]);
        let mut turns = [0; 4];
        for _ in 0..600 {
            turns[stride.schedule(|_| true).unwrap()] += 1;
        }
        assert_eq!(turns, [300, 100, 0, 200]);
    }

    #[test]
    fn equals_take_turns_in_order() {
        let mut stride = Stride::new(&[1, 1, 1]);
        let turns: Vec<usize> = (0..6).map(|_| stride.schedule(|_| true).unwrap()).collect();
        assert_eq!(turns[..3], [0, 1, 2]);
        assert_eq!(stride.schedule(|_| false), None);
        assert_eq!(Stride::new(&[0]).schedule(|_| true), None);
    }

    #[test]
    fn tickets_can_change() {
        let mut stride = Stride::new(&[1, 0]);
        assert_eq!(stride.schedule(|_| true), Some(0));
        stride.set_tickets(&[0, 7]);
        assert_eq!(stride.schedule(|_| true), Some(1));
        stride.set_tickets(&[1, 1]);
        let mut turns = [0u32; 2];
        (0..100).for_each(|_| turns[stride.schedule(|_| true).unwrap()] += 1);
        assert!(turns[0].abs_diff(turns[1]) < 4, "{turns:?}");
    }

    proptest! {
        #[test]
        fn shares_are_fair(tickets in prop::collection::vec(1u32..50, 1..8)) {
            const TURNS: u32 = 20_000;
            let mut stride = Stride::new(&tickets);
            let mut turns = vec![0u32; tickets.len()];
            for _ in 0..TURNS {
                turns[stride.schedule(|_| true).unwrap()] += 1;
            }
            let total: u32 = tickets.iter().sum();
            for (turns, tickets) in turns.iter().zip(&tickets) {
                let fair = f64::from(TURNS) * f64::from(*tickets) / f64::from(total);
                prop_assert!((f64::from(*turns) - fair).abs() < 2.0 + fair * 0.01);
            }
        }
    }
}
