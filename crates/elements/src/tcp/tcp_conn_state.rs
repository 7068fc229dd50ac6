//! State of `TCPConn`: its connection.

use super::segment::{NO_ENDPOINT, SegmentFlow};
use super::tcp_demux::FlowTable;
use castanet_element::args::TcpPort;
use castanet_element::prelude::*;
use castanet_element::wire::Tcp;
use castanet_kit::ip_flows::Endpoint;

/// Progress of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum ConnectionState {
    /// There is none.
    #[default]
    Closed,
    /// It waits for a SYN.
    Listen,
    /// It has sent a SYN.
    SynSent,
    /// It has sent a SYN and acknowledged the other one.
    SynReceived,
    /// Data can be sent.
    Established,
}

/// The connection.
#[derive(Local)]
#[local(methods)]
pub struct TCPConnState {
    pub(super) state: ConnectionState,
    /// The flow by which the demultiplexer knows the connection.
    registered: SegmentFlow,
    /// The other side, and this one.
    peer: Endpoint,
    own: Endpoint,
    /// The first sequence number of this side, once it is drawn.
    pub(super) first_seq: Option<u32>,
    /// The next sequence number of this side.
    pub(super) next_seq: u32,
    /// Whether a SYN is to be sent, and what it acknowledges.
    pub(super) syn_due: Option<Option<u32>>,
    demux: Shared<FlowTable>,
}

impl Default for TCPConnState {
    fn default() -> Self {
        TCPConnState {
            state: ConnectionState::Closed,
            registered: (NO_ENDPOINT, NO_ENDPOINT),
            peer: NO_ENDPOINT,
            own: NO_ENDPOINT,
            first_seq: None,
            next_seq: 0,
            syn_due: None,
            demux: Shared::default(),
        }
    }
}

#[handlers]
impl TCPConnState {
    /// Progress of the connection: `closed`, `listen`, `syn-sent`, `syn-received` or `established`.
    #[read]
    fn state(&self) -> Value {
        Value::common(match self.state {
            ConnectionState::Closed => "closed",
            ConnectionState::Listen => "listen",
            ConnectionState::SynSent => "syn-sent",
            ConnectionState::SynReceived => "syn-received",
            ConnectionState::Established => "established",
        })
    }

    /// Opens a connection, `connect SRC SPORT DST DPORT`, or waits for one, `listen SRC SPORT`.
    #[write(ctrl, wakes)]
    fn control(&mut self, text: &str) -> Result<(), ArgError> {
        if self.state != ConnectionState::Closed {
            let error =
                ArgError::new("there is a connection already").click("TCPConn already active");
            return Err(error.help("write to the handler `reset` first"));
        }
        let words: Vec<&str> = text.split_whitespace().collect();
        let (action, rest) =
            words.split_first().map_or(("", &[][..]), |(action, rest)| (*action, rest));
        let own = |rest: &[&str]| endpoint(rest, ["SRC", "SPORT"]);
        match action {
            "connect" => {
                let (own, peer) =
                    (own(rest)?, endpoint(rest.get(2..).unwrap_or_default(), ["DST", "DPORT"])?);
                no_more(rest, 4)?;
                self.register((peer, own), "connect")?;
                (self.own, self.peer, self.state) = (own, peer, ConnectionState::SynSent);
                (self.first_seq, self.syn_due) = (None, Some(None));
            }
            "listen" => {
                let own = own(rest)?;
                no_more(rest, 2)?;
                self.register((NO_ENDPOINT, own), "listen")?;
                (self.own, self.state, self.first_seq) = (own, ConnectionState::Listen, None);
            }
            _ => {
                let error = ArgError::new(format!("`{action}` is neither `connect` nor `listen`"));
                return Err(error.click("action must be connect or listen\n"));
            }
        }
        Ok(())
    }

    /// Ends the connection, without a segment to the other side.
    #[write]
    fn reset(&mut self, _: &str) -> Result<(), ArgError> {
        self.close();
        Ok(())
    }

    /// Makes the connection known to the demultiplexer.
    fn register(&mut self, flow: SegmentFlow, action: &str) -> Result<(), ArgError> {
        if !self.demux.with(|table| table.add(flow)) {
            let error =
                ArgError::new("another TCPConn has a connection of these addresses and ports");
            return Err(error.click(format!("cannot {action}")));
        }
        self.registered = flow;
        Ok(())
    }

    /// Ends the connection.
    pub(super) fn close(&mut self) {
        if self.state != ConnectionState::Closed {
            self.demux.with(|table| table.remove(self.registered));
        }
        (self.state, self.syn_due) = (ConnectionState::Closed, None);
    }

    /// Uses the table of a demultiplexer.
    pub(super) fn use_demux(&mut self, demux: &Shared<FlowTable>) {
        self.demux = demux.clone();
        if self.state != ConnectionState::Closed {
            self.demux.with(|table| table.add(self.registered));
        }
    }

    /// The flow of segments to the other side.
    pub(super) fn outgoing(&self) -> SegmentFlow {
        (self.own, self.peer)
    }

    /// Takes a segment; returns whether it is of the connection.
    pub(super) fn receive(&mut self, (src, dst): SegmentFlow, tcp: &Tcp) -> bool {
        let is_syn = tcp.is_syn() && !tcp.is_ack() && !tcp.is_rst();
        if self.state == ConnectionState::Listen && is_syn {
            (self.peer, self.own, self.state) = (src, dst, ConnectionState::SynReceived);
        }
        if src != self.peer || dst != self.own {
            return false;
        }
        match self.state {
            ConnectionState::Closed | ConnectionState::Listen => return false,
            _ if tcp.is_rst() => self.close(),
            ConnectionState::SynSent if tcp.is_syn() && tcp.is_ack() => {
                self.state = ConnectionState::Established;
            }
            ConnectionState::SynReceived if is_syn => {
                self.syn_due = Some(Some(tcp.seq().wrapping_add(1)));
            }
            ConnectionState::SynReceived if tcp.is_ack() && tcp.ack() == self.next_seq => {
                self.state = ConnectionState::Established;
            }
            _ => {}
        }
        true
    }
}

/// Parses an address and a port, the first two of some words, with the names of both.
fn endpoint(words: &[&str], names: [&str; 2]) -> Result<Endpoint, ArgError> {
    let word = |n: usize| {
        let missing =
            || ArgError::new("is missing").click("required argument missing").at(names[n]);
        words.get(n).copied().ok_or_else(missing)
    };
    let address = Ipv4Addr::from_arg(word(0)?, &Names::default()).map_err(|it| it.at(names[0]))?;
    let port = TcpPort::from_arg(word(1)?, &Names::default()).map_err(|it| it.at(names[1]))?;
    Ok((address, port.0))
}

/// Checks that there are no more words than these.
fn no_more(words: &[&str], count: usize) -> Result<(), ArgError> {
    match words.get(count) {
        Some(word) => {
            Err(ArgError::new(format!("`{word}` is too much")).click("too many arguments"))
        }
        None => Ok(()),
    }
}
