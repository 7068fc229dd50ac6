//! `WebGen`: asks a web server for pages, from many addresses.

use super::web_gen_state::WebGenState;
use crate::ip::transport::mark_at_start;
use castanet_element::prelude::*;

/// Asks a web server for pages again and again, each time in a TCP connection from another address.
///
/// IPv4 packets of the server come in, with a marked header or one at the start; those to it leave. An address of PREFIX and a port are drawn for each
/// connection, to port 80 of DST. The client opens the connection, sends a request with FIN, acknowledges
/// the page and closes. Segments without an answer are sent again after a second, up to six times. With RATE 0
/// there are always PARALLEL connections, else RATE connections a second begin. Segments of no connection
/// are answered with RST, so no host may have the addresses of PREFIX. Every 5 s, while it has connections,
/// and at the end, the element writes how many connections began, were complete, had no answer and were
/// reset since the last time.
///
/// ```click
/// RandomSeed(5)
/// in -> w :: WebGen(1.0.0.0/32, 2.0.0.2, 0, PARALLEL 1, LIMIT 1, ACTIVE true, URL /index) -> out
/// < out 1.0.0.0:6634 > 2.0.0.2:80 tcp syn seq 99788765 win 61440 ttl 250
/// > in  2.0.0.2:80 > 1.0.0.0:6634 tcp syn seq 70 ack 99788766
/// < out 1.0.0.0:6634 > 2.0.0.2:80 tcp seq 99788766 ack 71 win 61440 ttl 250 flags FPA id 1 "GET /index HTTP/1.0\r\n\r\n"
/// > in  2.0.0.2:80 > 1.0.0.0:6634 tcp seq 71 ack 99788790 fin "page"
/// < out 1.0.0.0:6634 > 2.0.0.2:80 tcp seq 99788790 ack 76 win 61440 ttl 250 id 2
/// = w.counts initiated 1\ncompleted 1\ntimeout 0\nreset 0
/// = w.active false
/// > in  2.0.0.2:80 > 1.0.0.9:6 tcp seq 9 ack 7
/// ~ Received packet for unknown cb? Sending RST
/// < out 1.0.0.9:6 > 2.0.0.2:80 tcp seq 7 acknum 9 rst win 61440 ttl 250 id 3 flags R
/// > in  2.0.0.2 > 1.0.0.0 udp
/// = w.drops.no_tcp 1
/// > in  2.0.0.2:80 > 1.0.0.9:6 tcp rst seq 9
/// = w.drops.unasked 1
/// > in  hex 45 00 00 28 00 00 00 00 40 06 74 ce 02 00 00 02 01 00 00 09 00 50 00 06 00 00 00 09 00 00 00 07 50 10 00 00 00 00 00 00
/// < out 1.0.0.9:6 > 2.0.0.2:80 tcp seq 7 acknum 9 rst win 61440 ttl 250 id 4 flags R
/// ```
#[derive(Element)]
#[element(room = "tcp", args = WebGenArgs, ports = "1/1", processing = "h/h")]
pub struct WebGen {
    pub(super) prefix: Net,
    pub(super) dst: Ipv4Addr,
    /// Nanoseconds between the beginnings of two connections; `None` for as many as are open.
    pub(super) interval: Option<u64>,
    pub(super) parallel: usize,
    pub(super) limit: u64,
    active: bool,
    pub(super) url: String,
    pub(super) verbose: bool,
}

#[derive(Args)]
pub struct WebGenArgs {
    /// Addresses of the clients.
    #[arg]
    prefix: Net,
    /// Address of the server.
    #[arg]
    dst: Ipv4Addr,
    /// Number of connections that begin in a second; 0 to have PARALLEL ones all the time.
    #[arg(range = 0..=1_000_000)]
    rate: u32,
    /// Number of connections with RATE 0.
    #[arg(default = 16, range = 1..=65536)]
    parallel: usize,
    /// Total number of connections; no limit if 0 or negative.
    #[arg(keyword, default = -1)]
    limit: i64,
    /// Whether connections begin.
    #[arg(keyword, default = false)]
    active: bool,
    /// The page; if empty, a random one of `/spec/D/D-C-F`, as in SPECweb.
    #[arg(keyword, default = String::new())]
    url: String,
    /// Whether to write what happens to each connection.
    #[arg(keyword, default = false)]
    verbose: bool,
}

impl Build for WebGen {
    type Args = WebGenArgs;

    fn build(args: WebGenArgs, _: &Setup) -> Result<Self, ArgError> {
        if args.url.len() > MAX_URL {
            return Err(ArgError::new(format!("at most {MAX_URL} letters")).at("URL"));
        }
        Ok(WebGen {
            prefix: args.prefix,
            dst: args.dst,
            interval: 1_000_000_000_u64.checked_div(args.rate.into()),
            parallel: args.parallel,
            limit: u64::try_from(args.limit).ok().filter(|&it| it > 0).unwrap_or(u64::MAX),
            active: args.active,
            url: args.url,
            verbose: args.verbose,
        })
    }
}

/// Maximum length of URL: a request is one segment.
const MAX_URL: usize = 1400;

#[derive(Fate)]
pub enum WebGenExit {
    /// Segments to the server.
    Request,
    /// Packets that are no TCP segments over IPv4.
    #[drop]
    NoTcp,
    /// Segments with RST of no connection, which get no answer.
    #[drop]
    Unasked,
}

impl PerBatch for WebGen {
    type On = on::Any;
    type Local = WebGenState;
    type Fate = WebGenExit;
    // An answer may come on any worker.
    const SHARED: bool = true;

    fn can_take_state(&self, before: &WebGen) -> bool {
        self.dst == before.dst
    }

    fn start(&self, state: &mut WebGenState, cx: &mut Cx) -> Result<(), ArgError> {
        self.after_take_state(state, cx);
        Ok(())
    }

    fn after_take_state(&self, state: &mut WebGenState, cx: &mut Cx) {
        state.set_active(self.active);
        cx.set_timer(cx.now());
    }

    fn batch(&self, state: &mut WebGenState, _: usize, batch: Batch, cx: &mut Cx) {
        for mut packet in batch {
            mark_at_start(&mut packet);
            match self.receive(state, &packet, cx) {
                Ok(()) => cx.consume(packet.into()),
                Err(exit) => cx.emit(exit, packet),
            }
        }
        self.advance(state, cx);
    }

    fn run_timer(&self, state: &mut WebGenState, cx: &mut Cx) {
        self.advance(state, cx);
    }

    fn cleanup(&self, state: &mut WebGenState, cx: &mut Cx) {
        state.report(cx);
    }
}

impl WebGen {
    /// Begins connections, sends again what has no answer, and sets the timer for the next of these.
    fn advance(&self, state: &mut WebGenState, cx: &mut Cx) {
        state.open_due(self, cx);
        state.repeat_due(self.dst, cx);
        state.report_due(cx);
        match state.next_time() {
            Some(time) => cx.set_timer(time),
            None => cx.cancel_timer(),
        }
    }
}
