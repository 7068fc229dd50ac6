//! State of `WebGen`: its connections.

use super::segment::data_of;
use super::web_gen::{WebGen, WebGenExit};
use castanet_element::prelude::*;
use castanet_element::wire::tcp::flag;
use castanet_element::wire::{Ipv4Header, Tcp, ip_proto};
use castanet_kit::ip_flows::Endpoint;
use castanet_kit::lru::Lru;
use castanet_kit::web_client::{ConnectionProgress, WebConnection};

/// Port of web servers.
const PORT: u16 = 80;
const TTL: u8 = 250;
const WINDOW: u16 = 60 * 1024;
/// Time after which a segment without an answer is sent again.
const REPEAT_AFTER: Duration = Duration::from_secs(1);
/// Number of times that a segment is sent again.
const REPEATS: u8 = 6;
const REPORT_EVERY: Duration = Duration::from_secs(5);
/// Maximum number of open connections with a rate: those of all the time until a server that never answers is
/// given up.
const CAPACITY: usize = 1 << 20;

/// An open connection, and when it last sent something.
struct OpenConnection {
    connection: WebConnection,
    sent: Time,
    repeats: u8,
}

/// Numbers of connections.
#[derive(Clone, Copy, Default)]
struct ConnectionCounts {
    initiated: u64,
    completed: u64,
    timeout: u64,
    reset: u64,
}

/// The open connections, that which has been waiting longest first.
#[derive(Default, Local)]
#[local(methods)]
pub struct WebGenState {
    connections: Lru<Endpoint, OpenConnection>,
    active: bool,
    /// When the next connection begins.
    next: Option<Time>,
    next_report: Option<Time>,
    id: u16,
    counts: ConnectionCounts,
    /// The counts at the last report.
    reported: ConnectionCounts,
}

#[handlers]
impl WebGenState {
    /// Whether connections begin; false once there were LIMIT.
    #[read]
    fn active(&self) -> bool {
        self.active
    }
    /// Sets whether connections begin.
    #[write(active, wakes)]
    fn write_active(&mut self, text: &str) -> Result<(), ArgError> {
        let active = bool::from_arg(text.trim(), &Names::default());
        self.set_active(active.map_err(|it| it.click("type mismatch"))?);
        Ok(())
    }
    /// Numbers of connections: `initiated`, `completed`, `timeout` without an answer, `reset` by the
    /// server, a line each.
    #[read]
    fn counts(&self) -> Value {
        let ConnectionCounts { initiated, completed, timeout, reset } = self.counts;
        Value::common(format!(
            "initiated {initiated}\ncompleted {completed}\ntimeout {timeout}\nreset {reset}\n"
        ))
    }

    /// Begins or stops to begin connections.
    pub(super) fn set_active(&mut self, active: bool) {
        if self.active != active {
            (self.active, self.next) = (active, None);
        }
    }

    /// The identification of the next packet.
    pub(super) fn next_id(&mut self) -> u16 {
        let id = self.id;
        self.id = id.wrapping_add(1);
        id
    }

    /// Takes a segment with `data` bytes of data; `None` if it is of no connection.
    pub(super) fn receive(
        &mut self,
        key: Endpoint,
        tcp: &Tcp,
        data: u32,
    ) -> Option<ConnectionProgress> {
        self.connections.peek(&key)?;
        Some(self.connections.get_mut(&key)?.connection.receive(tcp, data))
    }

    /// Sends the segment that is due for a connection.
    pub(super) fn send(&mut self, key: Endpoint, server: Ipv4Addr, cx: &mut Cx) {
        let id = self.id;
        let Some(it) = self.connections.get_mut(&key) else { return };
        it.sent = cx.now();
        let Some(segment) = it.connection.next_segment() else { return };
        self.id = id.wrapping_add(1);
        let mut tcp = Tcp::default();
        tcp.set_src_port(key.1);
        tcp.set_dst_port(PORT);
        tcp.set_seq(segment.seq);
        tcp.set_ack(segment.ack);
        tcp.set_flags(segment.flags);
        if let Some(packet) = segment_packet((key.0, server), id, tcp, segment.data, cx) {
            cx.emit(WebGenExit::Request, packet);
        }
    }

    /// Ends a connection.
    pub(super) fn end(&mut self, key: Endpoint, progress: ConnectionProgress) {
        self.connections.remove(&key);
        match progress {
            ConnectionProgress::Complete => self.counts.completed += 1,
            ConnectionProgress::Reset => self.counts.reset += 1,
            ConnectionProgress::Open => self.counts.timeout += 1,
        }
    }

    /// Begins the connections that are due.
    pub(super) fn open_due(&mut self, config: &WebGen, cx: &mut Cx) {
        let now = cx.now();
        self.next_report.get_or_insert(now + REPORT_EVERY);
        while self.active {
            if self.counts.initiated >= config.limit {
                (self.active, self.next) = (false, None);
                break;
            }
            match config.interval {
                None if self.connections.len() >= config.parallel => break,
                None => {}
                Some(interval) => {
                    let next = *self.next.get_or_insert(now + Duration::from_nanos(interval));
                    if next > now || self.connections.len() >= CAPACITY {
                        break;
                    }
                    self.next = Some(next + Duration::from_nanos(interval));
                }
            }
            self.open(config, cx);
        }
    }

    /// Begins a connection.
    fn open(&mut self, config: &WebGen, cx: &mut Cx) {
        let random = cx.random_numbers();
        let mask = config.prefix.mask.to_bits();
        let host = random.number() & !mask;
        let address = Ipv4Addr::from_bits(config.prefix.address.to_bits() & mask | host);
        let first_seq = random.number() & 0x0fff_ffff;
        let port = 1024 + (random.number() % 60_000) as u16;
        let url = match config.url.as_str() {
            "" => {
                let (directory, file) = (random.in_range(0, 9), random.in_range(0, 8));
                let class = random.in_range(0, 2);
                format!("/spec/{directory}/{directory}-{class}-{file}")
            }
            url => url.to_owned(),
        };
        let connection =
            WebConnection::new(first_seq, format!("GET {url} HTTP/1.0\r\n\r\n").into());
        let key = (address, port);
        self.counts.initiated += 1;
        self.connections.insert(
            key,
            OpenConnection { connection, sent: cx.now(), repeats: 0 },
            usize::MAX,
        );
        self.send(key, config.dst, cx);
    }

    /// Sends again what has been without an answer for long, and ends connections without any.
    pub(super) fn repeat_due(&mut self, server: Ipv4Addr, cx: &mut Cx) {
        while let Some((&key, it)) = self.connections.peek_oldest() {
            if cx.now() < it.sent + REPEAT_AFTER {
                break;
            }
            if it.repeats == REPEATS {
                self.end(key, ConnectionProgress::Open);
                continue;
            }
            if let Some(it) = self.connections.get_mut(&key) {
                it.repeats += 1;
            }
            self.send(key, server, cx);
        }
    }

    /// Reports the counts if they are due.
    pub(super) fn report_due(&mut self, cx: &mut Cx) {
        if self.next_report.is_some_and(|at| at <= cx.now()) {
            self.next_report = Some(cx.now() + REPORT_EVERY);
            self.report(cx);
        }
    }

    /// Writes how many connections there were since the last report.
    pub(super) fn report(&mut self, cx: &mut Cx) {
        let (now, then) = (self.counts, self.reported);
        let (initiated, completed) =
            (now.initiated - then.initiated, now.completed - then.completed);
        let (timeout, reset) = (now.timeout - then.timeout, now.reset - then.reset);
        self.reported = now;
        cx.chatter(&format!(
            "init: {initiated}  comp: {completed:5}  tmo: {timeout:5}  rst: {reset:5}"
        ));
    }

    /// When there is something to do next.
    pub(super) fn next_time(&self) -> Option<Time> {
        let repeat = self.connections.peek_oldest().map(|(_, it)| it.sent + REPEAT_AFTER);
        let report = self.next_report.filter(|_| self.active || repeat.is_some());
        [self.next, repeat, report].into_iter().flatten().min()
    }
}

impl WebGen {
    /// Takes a packet of the server.
    pub(super) fn receive(
        &self,
        state: &mut WebGenState,
        packet: &Packet,
        cx: &mut Cx,
    ) -> Result<(), WebGenExit> {
        let mut tcp = None;
        if let (Some(ip), Some(header)) = (packet.ipv4_header(), packet.tcp_header()) {
            let data = data_of(packet).map_or(0, |it| it.len() as u32);
            tcp = Some((ip.dst(), ip.src(), *header, data));
        }
        let (own, server, tcp, data) = tcp.ok_or(WebGenExit::NoTcp)?;
        let key = (own, tcp.dst_port());
        let known = server == self.dst && tcp.src_port() == PORT;
        let progress = match known {
            true => state.receive(key, &tcp, data),
            false => None,
        };
        let Some(progress) = progress else {
            if tcp.has(flag::RST) {
                return Err(WebGenExit::Unasked);
            }
            cx.chatter("Received packet for unknown cb? Sending RST");
            let mut reset = tcp;
            reset.mirror();
            reset.set_flags(flag::RST);
            let id = state.next_id();
            if let Some(packet) = segment_packet((own, server), id, reset, &[], cx) {
                cx.emit(WebGenExit::Request, packet);
            }
            return Ok(());
        };
        if self.verbose {
            cx.chatter(&format!("WebGen {}:{} {progress:?}", key.0, key.1));
        }
        if progress != ConnectionProgress::Reset {
            state.send(key, self.dst, cx);
        }
        if progress != ConnectionProgress::Open {
            state.end(key, progress);
        }
        Ok(())
    }
}

/// Makes a packet of a segment with these addresses, identification, header and data.
fn segment_packet(
    (src, dst): (Ipv4Addr, Ipv4Addr),
    id: u16,
    mut tcp: Tcp,
    data: &[u8],
    cx: &mut Cx,
) -> Option<Packet> {
    let len = Tcp::LEN + data.len();
    let mut ip = Ipv4Header::new(ip_proto::TCP, src, dst, (Ipv4Header::LEN + len) as u16);
    ip.fill((src, dst), (TTL, ip_proto::TCP), ((Ipv4Header::LEN + len) as u16, id));
    tcp.set_header_len(Tcp::LEN);
    tcp.set_window(WINDOW);
    tcp.update_checksum(ip.pseudo(len), data);
    let mut packet = cx.alloc()?;
    let bytes = packet.put_back(Ipv4Header::LEN + len);
    let (ip_bytes, segment) = bytes.split_at_mut(Ipv4Header::LEN);
    ip_bytes.copy_from_slice(ip.bytes());
    let (tcp_bytes, rest) = segment.split_at_mut(Tcp::LEN);
    tcp_bytes.copy_from_slice(tcp.bytes());
    rest.copy_from_slice(data);
    packet.set_network_header(0, Ipv4Header::LEN);
    packet.set_dst(dst);
    Some(packet)
}
