//! The spanning tree of bridges (IEEE 802.1D-1998, 8): which ports forward so that there is no loop.
//!
//! There is no clock: callers pass the time in nanoseconds. Messages are sent and states change only at
//! [`SpanningTree::hello`].

use castanet_wire::bpdu::{
    Bpdu, ConfigurationBpdu, TIME_UNITS, TOPOLOGY_CHANGE, TOPOLOGY_CHANGE_ACK,
};

const SECOND: u64 = 1_000_000_000;
/// The cost of a link, which the paths over it have more.
const LINK_COST: u32 = 1;

/// Treatment of the frames of hosts at a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PortState {
    /// It drops them, as another path leads to the root.
    Blocking,
    /// It drops them until other bridges have heard of it.
    Listening,
    /// The switch learns addresses of frames that come in; none goes out.
    Learning,
    /// Frames come in and go out.
    Forwarding,
}

/// The place of a port in the tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Role {
    /// It leads to the root.
    Root,
    /// The port's link reaches the root through this bridge.
    Designated,
    /// The port's link reaches the root through another bridge.
    Blocked,
}

/// The times of the root, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Times {
    max_age: u64,
    hello_time: u64,
    forward_delay: u64,
}

/// The times of a bridge that is the root (8.10.2).
const OWN_TIMES: Times =
    Times { max_age: 20 * SECOND, hello_time: 2 * SECOND, forward_delay: 15 * SECOND };

/// The way to the root as a message describes it; the lesser is the better one (8.6.2.1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Path {
    root: u64,
    cost: u32,
    bridge: u64,
    port: u16,
}

/// The contents of the latest message on a port.
#[derive(Clone, Copy, Debug)]
struct Message {
    path: Path,
    times: Times,
    /// The time at which its age was 0.
    born: u64,
    /// Whether the topology changes.
    change: bool,
}

#[derive(Clone, Debug)]
struct TreePort {
    state: PortState,
    since: u64,
    role: Role,
    message: Option<Message>,
    /// Whether the next message acknowledges a notification.
    acknowledges: bool,
}

/// The spanning tree as one bridge sees it.
#[derive(Clone, Debug, Default)]
pub struct SpanningTree {
    id: u64,
    ports: Vec<TreePort>,
    root_port: Option<usize>,
    /// While the bridge is the root: until when it says that the topology changes.
    change_until: u64,
    /// While it is not: whether the root is to be told that the topology changes.
    notifies: bool,
}

/// A time of a message in nanoseconds.
fn nanos(units: u16) -> u64 {
    u64::from(units) * SECOND / u64::from(TIME_UNITS)
}

/// A time in the units of messages.
fn units(nanos: u64) -> u16 {
    u16::try_from(nanos.saturating_mul(u64::from(TIME_UNITS)) / SECOND).unwrap_or(u16::MAX)
}

impl Message {
    /// The contents of a message, with times within the bounds of 8.10.2.
    fn of(bpdu: &ConfigurationBpdu, now: u64) -> Message {
        let (root, cost, bridge) = (bpdu.root(), bpdu.cost(), bpdu.bridge());
        let bounded = |units, low, high| nanos(units).clamp(low * SECOND, high * SECOND);
        let times = Times {
            max_age: bounded(bpdu.max_age(), 6, 40),
            hello_time: bounded(bpdu.hello_time(), 1, 10),
            forward_delay: bounded(bpdu.forward_delay(), 4, 30),
        };
        let path = Path { root, cost, bridge, port: bpdu.port() };
        let born = now.saturating_sub(nanos(bpdu.message_age()));
        Message { path, times, born, change: bpdu.flags() & TOPOLOGY_CHANGE != 0 }
    }

    fn has_expired(&self, now: u64) -> bool {
        now.saturating_sub(self.born) >= self.times.max_age
    }
}

impl SpanningTree {
    /// The tree of a bridge with this identifier, a priority and an Ethernet address, that has just begun:
    /// all ports listen.
    pub fn new(id: u64, ports: usize, now: u64) -> SpanningTree {
        let port = TreePort {
            state: PortState::Listening,
            since: now,
            role: Role::Designated,
            message: None,
            acknowledges: false,
        };
        SpanningTree { id, ports: vec![port; ports], ..SpanningTree::default() }
    }

    /// The states of all ports.
    pub fn states(&self) -> impl Iterator<Item = PortState> + '_ {
        self.ports.iter().map(|port| port.state)
    }

    /// Takes a message that came in on a port.
    pub fn receive(&mut self, port: usize, bpdu: &Bpdu, now: u64) {
        let Some(it) = self.ports.get_mut(port) else { return };
        match bpdu {
            Bpdu::TopologyChange if it.role == Role::Designated => {
                it.acknowledges = true;
                self.note_change(now);
            }
            Bpdu::TopologyChange => {}
            Bpdu::Configuration(bpdu) => {
                let new = Message::of(bpdu, now);
                // The sender of the present message may have changed its mind.
                let is_better = it.message.is_none_or(|old| {
                    let sender = |path: Path| (path.bridge, path.port);
                    new.path <= old.path || sender(new.path) == sender(old.path)
                });
                if new.has_expired(now) || !is_better {
                    return;
                }
                it.message = Some(new);
                if self.root_port == Some(port) && bpdu.flags() & TOPOLOGY_CHANGE_ACK != 0 {
                    self.notifies = false;
                }
                self.choose_roles(now);
            }
        }
    }

    /// Expires messages, moves listening and learning ports on, and returns the messages to send by
    /// port number. The caller calls it every [`SpanningTree::hello_time`].
    pub fn hello(&mut self, now: u64) -> Vec<(usize, Bpdu)> {
        for port in &mut self.ports {
            port.message.take_if(|message| message.has_expired(now));
        }
        self.choose_roles(now);
        let delay = self.times().forward_delay;
        let mut has_change = false;
        for port in &mut self.ports {
            let next = match port.state {
                PortState::Listening => PortState::Learning,
                PortState::Learning => PortState::Forwarding,
                PortState::Blocking | PortState::Forwarding => continue,
            };
            if now.saturating_sub(port.since) >= delay {
                has_change |= next == PortState::Forwarding;
                (port.state, port.since) = (next, now);
            }
        }
        if has_change {
            self.note_change(now);
        }
        self.messages(now)
    }

    /// Time between two messages, in nanoseconds.
    pub fn hello_time(&self) -> u64 {
        self.times().hello_time
    }

    /// While the topology changes, the time in nanoseconds after which the switch is to forget addresses
    /// (8.3.5).
    pub fn ageing_time(&self, now: u64) -> Option<u64> {
        self.has_change(now).then(|| self.times().forward_delay)
    }

    /// One line for each port, with what the latest message says, and one with the best of them, in
    /// hexadecimal numbers: bridge, port, `TC` if the topology changes, cost, root, and the times of the root
    /// in seconds.
    pub fn listing(&self, now: u64) -> String {
        let line = |path: Path, times: Times, change: bool| {
            let change = if change { "TC" } else { "tc" };
            let seconds = |nanos: u64| nanos / SECOND;
            let Times { max_age, hello_time, forward_delay } = times;
            let (age, hello, delay) =
                (seconds(max_age), seconds(hello_time), seconds(forward_delay));
            let Path { root, cost, bridge, port } = path;
            format!(
                " {bridge:>16x}:{port:04x}: {change}  {cost:x} -> {root:>16x}  m/h/d: {age:x}/{hello:x}/{delay:x}\n"
            )
        };
        // A port without a message has the worst one.
        let worst = Path { root: u64::MAX, cost: u16::MAX.into(), bridge: u64::MAX, port: 0 };
        let ports = self.ports.iter().map(|port| match port.message {
            Some(it) => line(it.path, it.times, it.change),
            None => line(worst, OWN_TIMES, false),
        });
        let best = line(self.best(), self.times(), self.has_change(now));
        ports.chain([best]).collect()
    }

    /// The message of the root port.
    fn root_message(&self) -> Option<&Message> {
        self.ports.get(self.root_port?)?.message.as_ref()
    }

    fn times(&self) -> Times {
        self.root_message().map_or(OWN_TIMES, |it| it.times)
    }

    /// The way to the root that other bridges are told of.
    fn best(&self) -> Path {
        let own = Path { root: self.id, cost: 0, bridge: self.id, port: 0 };
        let path = self.root_message().map(|it| it.path);
        path.map_or(own, |it| Path {
            root: it.root,
            cost: it.cost.saturating_add(LINK_COST),
            ..own
        })
    }

    /// Whether the topology changes, as far as the bridge knows.
    fn has_change(&self, now: u64) -> bool {
        self.root_message().map_or(now < self.change_until, |it| it.change)
    }

    /// Notes that the topology changes (8.6.14).
    fn note_change(&mut self, now: u64) {
        match self.root_port {
            Some(_) => self.notifies = true,
            None => self.change_until = now + OWN_TIMES.max_age + OWN_TIMES.forward_delay,
        }
    }

    /// Chooses the root port, and the ports that block (8.6.8).
    fn choose_roles(&mut self, now: u64) {
        let was_root = self.root_port.is_none();
        let ways = self.ports.iter().enumerate().filter_map(|(n, port)| {
            let path = port.message?.path;
            (path.root < self.id && path.bridge != self.id).then_some((path, n))
        });
        self.root_port = ways.min().map(|(_, port)| port);
        let (best, root_port) = (self.best(), self.root_port);
        let mut has_change = false;
        for (n, port) in self.ports.iter_mut().enumerate() {
            let own = Path { port: n as u16, ..best };
            port.role = match port.message {
                _ if root_port == Some(n) => Role::Root,
                Some(it) if it.path < own => Role::Blocked,
                _ => Role::Designated,
            };
            let state = match (port.role, port.state) {
                (Role::Blocked, state) => {
                    has_change |= matches!(state, PortState::Learning | PortState::Forwarding);
                    PortState::Blocking
                }
                (_, PortState::Blocking) => PortState::Listening,
                (_, state) => state,
            };
            if state != port.state {
                (port.state, port.since) = (state, now);
            }
        }
        if was_root != self.root_port.is_none() {
            (self.notifies, self.change_until) = (false, 0);
        }
        if has_change || !was_root && self.root_port.is_none() {
            self.note_change(now);
        }
    }

    /// The messages to send: one on each port whose link reaches the root through this bridge, and a
    /// notification to the root.
    fn messages(&mut self, now: u64) -> Vec<(usize, Bpdu)> {
        let (best, times, change) = (self.best(), self.times(), self.has_change(now));
        let age = self.root_message().map_or(0, |it| now.saturating_sub(it.born));
        let notifies = self.notifies;
        let message = |(n, port): (usize, &mut TreePort)| match port.role {
            Role::Designated => {
                let acknowledges = std::mem::take(&mut port.acknowledges);
                let change = if change { TOPOLOGY_CHANGE } else { 0 };
                let acknowledgment = if acknowledges { TOPOLOGY_CHANGE_ACK } else { 0 };
                let mut bpdu = ConfigurationBpdu::default();
                bpdu.set_flags(change | acknowledgment);
                bpdu.set_root(best.root);
                bpdu.set_cost(best.cost);
                bpdu.set_bridge(best.bridge);
                bpdu.set_port(n as u16);
                bpdu.set_message_age(units(age));
                bpdu.set_max_age(units(times.max_age));
                bpdu.set_hello_time(units(times.hello_time));
                bpdu.set_forward_delay(units(times.forward_delay));
                Some((n, Bpdu::Configuration(bpdu)))
            }
            Role::Root => notifies.then_some((n, Bpdu::TopologyChange)),
            Role::Blocked => None,
        };
        self.ports.iter_mut().enumerate().filter_map(message).collect()
    }
}

#[cfg(test)]
mod tests;
