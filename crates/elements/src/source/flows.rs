//! What the benchmark sources of flows share: the pace, the frames, and which flow is next.

use super::copies;
use castanet_engine::prelude::*;
use castanet_engine::wire::{Ethernet, Ipv4Header, ether_type};
use castanet_kit::rate::GapRate;

/// The shortest frame.
const SHORTEST: usize = 60;

/// How many packets have been made, when, and when the next is due.
#[derive(Default)]
pub(super) struct Pace {
    pub(super) count: u64,
    first: Option<Time>,
    last: Option<Time>,
    gap: Option<GapRate>,
}

impl Pace {
    /// How many packets to make now: up to `n` of those that are due, out of `left`; or when to
    /// ask again. A rate of 0 is no limit.
    pub(super) fn due(
        &mut self,
        rate: u32,
        left: usize,
        n: usize,
        cx: &mut Cx,
    ) -> Result<usize, Asked> {
        let room = cx.room();
        if left == 0 {
            self.gap = None;
            return Err(Asked::Done);
        }
        if room == 0 {
            return Err(Asked::Empty);
        }
        let n = n.min(left).min(room);
        if rate == 0 {
            return Ok(n);
        }
        let now = cx.now().nanos();
        let gap = self.gap.get_or_insert_with(|| GapRate::new(rate.into()));
        gap.set_rate(rate.into(), now);
        let n = n.min(usize::try_from(gap.allowance(now)).unwrap_or(n));
        if n > 0 {
            return Ok(n);
        }
        let next = gap.expiry().map(Time::from_nanos);
        Err(next.map_or(Asked::Done, |next| {
            cx.retry_at(next);
            Asked::At(next)
        }))
    }

    /// Counts packets that were made; `last` says that these were the last.
    pub(super) fn made(&mut self, n: usize, last: bool, now: Time) {
        if let Some(gap) = &mut self.gap {
            gap.update_with(n as i64);
        }
        self.count += n as u64;
        self.first = self.first.or(Some(now).filter(|_| n > 0));
        if last {
            self.last = Some(now);
        }
    }

    /// Packets a second from the first to the last, once that is made.
    pub(super) fn rate(&self) -> u64 {
        let (Some(first), Some(last)) = (self.first, self.last) else { return 0 };
        let milliseconds = (last.since(first) / 1_000_000).max(1);
        self.count * 1000 / milliseconds
    }
}

/// How many packets, how fast, and whether at all.
#[derive(Clone)]
pub(super) struct Pacing {
    pub(super) rate: u32,
    pub(super) limit: i64,
    pub(super) active: bool,
    /// How often `active` was said: each time all begins anew.
    pub(super) runs: u64,
}

/// What comes next.
pub(super) enum Next {
    /// A packet.
    Packet(Packet),
    /// Nothing, as there is no frame for it.
    Famine,
    /// Nothing any more.
    Over,
}

impl Pacing {
    pub(super) fn new(rate: u32, limit: i64, active: bool) -> Self {
        Pacing { rate, limit, active, runs: 0 }
    }

    /// Emits packets as they are due. `one` makes one, where so many are left; with `more` it is
    /// asked when none are left, too, until all is over.
    pub(super) fn ask(
        &self,
        made: &mut Made,
        n: usize,
        cx: &mut Cx,
        more: bool,
        mut one: impl FnMut(&mut Made, usize, &mut Cx) -> Next,
    ) -> Asked {
        if made.runs != self.runs {
            *made = Made { runs: self.runs, ..Made::default() };
        }
        if !self.active || made.over {
            return Asked::Done;
        }
        let left = copies::left(self.limit, made.pace.count);
        let wanted = if more { left.max(1) } else { left };
        let n = match made.pace.due(self.rate, wanted, n, cx) {
            Ok(n) => cx.grant(n),
            Err(asked) => return asked,
        };
        if n == 0 {
            return Asked::Empty;
        }
        let now = cx.now();
        for i in 0..n {
            match one(made, left.saturating_sub(i), cx) {
                Next::Packet(packet) => cx.emit((), packet),
                Next::Famine => return Asked::Again,
                Next::Over => {
                    made.over = true;
                    made.pace.made(0, true, now);
                    return Asked::Done;
                }
            }
            made.pace.made(1, !more && left == i + 1, now);
        }
        Asked::Again
    }
}

/// What has been made so far.
#[derive(Default, Local)]
#[local(methods)]
#[write(reset)]
pub struct Made {
    pub(super) pace: Pace,
    pub(super) flows: Flows,
    runs: u64,
    over: bool,
}

#[handlers]
impl Made {
    /// Packets.
    #[read]
    fn count(&self) -> u64 {
        self.pace.count
    }
    /// Packets a second from the first to the last, 0 before that.
    #[read]
    fn rate(&self) -> u64 {
        self.pace.rate()
    }
}

/// The handlers that change the pace of a class, which has it in a field `pacing`.
macro_rules! pacing_handlers {
    ($class:ident) => {
        #[handlers]
        impl $class {
            /// Sets how many packets to make a second; 0 for no limit.
            #[write]
            fn rate(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
                let pacing = Pacing { rate: u32::from_arg(text, names)?, ..self.pacing.clone() };
                Ok($class { pacing, ..self.clone() })
            }
            /// Sets how many packets to make in all; no limit if negative.
            #[write]
            fn limit(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
                let pacing = Pacing { limit: i64::from_arg(text, names)?, ..self.pacing.clone() };
                Ok($class { pacing, ..self.clone() })
            }
            /// Says whether to make packets; `true` begins anew.
            #[write]
            fn active(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
                let active = bool::from_arg(text, names)?;
                let runs = self.pacing.runs + u64::from(active);
                let pacing = Pacing { active, runs, ..self.pacing.clone() };
                Ok($class { pacing, ..self.clone() })
            }
        }
    };
}
pub(super) use pacing_handlers;

/// Who sends to whom.
pub(super) struct Ends {
    pub(super) ether: (MacAddr, MacAddr),
    pub(super) ip: (Ipv4Addr, Ipv4Addr),
}

/// A frame of `length` bytes with this transport header; zeros follow.
pub(super) fn frame(ends: &Ends, protocol: u8, transport: &[u8], length: usize) -> Vec<u8> {
    let length = length.max(SHORTEST);
    let ether = Ethernet::new(ends.ether.1, ends.ether.0, ether_type::IPV4);
    let total = (length - Ethernet::LEN) as u16;
    let mut ip = Ipv4Header::new(protocol, ends.ip.0, ends.ip.1, total);
    ip.set_ttl(250);
    ip.update_checksum(&[]);
    let mut frame = [&ether.bytes()[..], ip.bytes(), transport].concat();
    frame.resize(length, 0);
    frame
}

/// A packet of a frame that begins so.
pub(super) fn packet(frame: &[u8], dst: Ipv4Addr, cx: &mut Cx) -> Option<Packet> {
    let mut packet = cx.copy_in(frame)?;
    packet.set_mac_header(0);
    packet.set_network_header(Ethernet::LEN as isize, Ipv4Header::LEN);
    packet.set_dst(dst);
    Some(packet)
}

/// A length of frames that IPv4 can have.
pub(super) struct Length(pub(super) usize);

impl FromArg for Length {
    const SYNTAX: &'static str = "a number up to 65549";
    fn from_arg(text: &str, names: &Names) -> Result<Self, ArgError> {
        const LONGEST: usize = Ethernet::LEN + u16::MAX as usize;
        let length = u32::from_arg(text, names)? as usize;
        let error = || ArgError::new(format!("{length} is longer than a frame can be"));
        (length <= LONGEST).then_some(Length(length)).ok_or_else(error)
    }
}

/// One flow at a time.
#[derive(Clone, Copy, Default)]
pub(super) struct Flow {
    pub(super) ports: (u16, u16),
    /// A number that is the flow's own, for sequence numbers.
    pub(super) number: u32,
    pub(super) sent: u32,
}

/// The flows that are under way.
#[derive(Default)]
pub(super) struct Flows {
    flows: Vec<Flow>,
}

impl Flows {
    /// Any of `count` flows; one that has sent `size` packets begins anew with other ports.
    pub(super) fn any(&mut self, count: u32, size: u32, cx: &mut Cx) -> &mut Flow {
        if self.flows.len() != count as usize {
            let full = Flow { sent: size, ..Flow::default() };
            self.flows.resize(count as usize, full);
        }
        let at = (cx.random() % u64::from(count.max(1))) as usize;
        let flow = &mut self.flows[at];
        if flow.sent >= size {
            let random = cx.random();
            // Click's ports: any but the last.
            let port = |bits: u64| (bits as u16) % u16::MAX;
            let ports = (port(random), port(random >> 16));
            *flow = Flow { ports, number: (random >> 32) as u32, sent: 0 };
        }
        flow.sent += 1;
        flow
    }

    /// A flow that has begun and not yet sent `size` packets; it counts as complete then.
    pub(super) fn unfinished(&mut self, size: u32) -> Option<Flow> {
        let flow = self.flows.iter_mut().find(|flow| flow.sent > 0 && flow.sent < size)?;
        flow.sent = size;
        Some(*flow)
    }
}
