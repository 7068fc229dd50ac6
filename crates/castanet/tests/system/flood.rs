//! SYN floods of distinct flows: memory stays bounded, established connections persist, and new
//! connections can be made. Some hundred thousand flows by default; `CASTANET_FLOOD_FLOWS=10000000`
//! makes it ten million.

use std::collections::HashSet;
use std::fmt::Write;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use castanet_lab::{Lab, Namespace, Port, Process, RandomFile, Router, require};

use crate::control::Control;
use crate::nat::NatNetwork;
use crate::testbed::{LATER, SOON, number, program};

/// Default number of flows.
const FLOWS: u64 = 200_000;
/// Capacity of the tables in connections, above which a flood counts as long.
const ROOM: [u64; 2] = [1 << 14, 1 << 20];
/// Rates of a short and of a long flood, in packets a second.
const RATES: [u64; 2] = [25_000, 50_000];
/// More than that many flows are many.
const FEW: u64 = 8 << 20;
/// Bytes that a connection may take: its entry, and its share of the index.
const EACH: u64 = 200;
/// Memory growth allowed once a table is full: its index may become a little denser.
const SLACK: u64 = 2 << 20;
/// Number of connections held during the flood.
const HELD: usize = 40;

/// Flood, room and rate.
#[derive(Clone, Copy)]
struct Size {
    flows: u64,
    room: u64,
    rate: u64,
}

impl Size {
    fn from_environment() -> Size {
        let setting = std::env::var("CASTANET_FLOOD_FLOWS").ok();
        let flows =
            setting.map_or(FLOWS, |text| text.parse().expect("CASTANET_FLOOD_FLOWS is a number"));
        let many = usize::from(flows > FEW);
        // Half a flood fills the table.
        Size { flows, room: ROOM[many], rate: RATES[many] }
    }
}

/// SYNs of which each has an address of its own.
struct Flood<'a> {
    from: &'a Namespace,
    device: &'a str,
    /// The frame in hexadecimal, without checksums.
    frame: String,
    /// Offset of the three bytes that differ, and the five bytes behind them.
    varies: usize,
    behind: String,
    /// Elements that process the frames further.
    then: &'a str,
    /// The word of a summary that tells the flows apart.
    field: &'a str,
}

/// A frame of a SYN; all but checksums.
fn syn(macs: [&str; 2], addresses: [Ipv4Addr; 2], ports: [u16; 2]) -> String {
    let mut frame: String = macs.concat().replace(':', "");
    frame += "0800450000280000000040060000";
    for address in addresses {
        write!(frame, "{:08x}", address.to_bits()).unwrap();
    }
    for port in ports {
        write!(frame, "{port:04x}").unwrap();
    }
    frame + "00000001000000005002ffff00000000"
}

impl Flood<'_> {
    /// Sends the frames and checks that they are distinct; returns their number.
    fn send(&self, lab: &Lab, (count, rate): (u64, u64)) -> u64 {
        let list = lab.directory().join("flows");
        let Flood { device, frame, varies, behind, then, field, .. } = self;
        let text = format!(
            "RatedSource(\\<{frame}>, {rate}, {count}, STOP true) -> NumberPacket({varies})
                 -> StoreData({}, \\<{behind}>) {then} -> MarkIPHeader(14) -> SetIPChecksum
                 -> SetTCPChecksum -> ToIPSummaryDump({}, FIELDS {field}, HEADER false)
                 -> out :: ToDevice({device}, BLOCKING true)",
            varies + 3,
            list.display()
        );
        let shown = ["--handler", "out.count", "--handler", "out.drops"];
        let patience = Duration::from_secs(60 + 10 * count / rate);
        let command = self.from.command(program()).args(["run", "--quiet", "-e", &text]);
        let output = command.args(shown).timeout(patience).check().unwrap().stdout;
        let sent = number(&output, "out.count");
        assert_eq!(distinct(&list), count);
        std::fs::remove_file(list).unwrap();
        assert!(sent <= count && sent >= count / 2, "{output}");
        sent
    }
}

/// Number of different addresses in a file.
fn distinct(list: &Path) -> u64 {
    let lines = BufReader::new(File::open(list).unwrap()).lines();
    let bits = lines.map(|line| line.unwrap().parse::<Ipv4Addr>().unwrap().to_bits());
    bits.collect::<HashSet<u32>>().len() as u64
}

/// Echoes all data to each client.
const ECHO: &str = r#"
import asyncio, sys
async def serve(reader, writer):
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except ConnectionError: pass
    writer.close()
async def main():
    server = await asyncio.start_server(serve, sys.argv[1], 8000, backlog=4096)
    print("ready")
    await server.serve_forever()
asyncio.run(main())
"#;

/// Holds connections, and makes others one after the other; each must echo the data that was
/// sent. Any error ends the script.
const CLIENTS: &str = r#"
import asyncio, os, sys, time
server, held = sys.argv[1], int(sys.argv[2])
stop = asyncio.Event()
exchanges = fresh = 0
slowest = 0.0
async def exchange(reader, writer):
    global exchanges
    data = os.urandom(700)
    writer.write(data)
    await writer.drain()
    if await asyncio.wait_for(reader.readexactly(len(data)), 60) != data: raise ValueError("other bytes")
    exchanges += 1
async def hold(connection):
    while not stop.is_set():
        await exchange(*connection)
        await asyncio.sleep(0.2)
    await exchange(*connection)
async def renew():
    global fresh, slowest
    while not stop.is_set():
        began = time.monotonic()
        connection = await asyncio.wait_for(asyncio.open_connection(server, 8000), 60)
        await exchange(*connection)
        connection[1].close()
        fresh, slowest = fresh + 1, max(slowest, time.monotonic() - began)
        await asyncio.sleep(0.02)
async def main():
    connections = [await asyncio.open_connection(server, 8000) for _ in range(held)]
    for connection in connections: await exchange(*connection)
    print("ready")
    work = asyncio.gather(renew(), *(hold(connection) for connection in connections))
    line = asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
    done, _ = await asyncio.wait([work, line], return_when=asyncio.FIRST_COMPLETED)
    stop.set()
    await work
    print("exchanges", exchanges, "fresh", fresh, "slowest", round(1000 * slowest))
asyncio.run(main())
"#;

/// Numbers that the test writes at its end.
struct FloodResult {
    exchanges: u64,
    fresh: u64,
    slowest: u64,
    transfers: u64,
    pings: String,
}

/// Runs `flood` while clients hold connections, make new ones, fetch files and ping.
fn among_clients<T>(
    client: &Namespace,
    (server, address): (&Namespace, &str),
    file: &RandomFile,
    flood: impl FnOnce() -> T,
) -> (T, FloodResult) {
    let python =
        |namespace: &Namespace, script| namespace.command("python3").args(["-u", "-c", script]);
    let mut echo = python(server, ECHO).arg(address).spawn().unwrap();
    echo.wait_for("ready", SOON).unwrap();
    let _web = server.serve(address, 8001).unwrap();
    let clients = python(client, CLIENTS).args([address, &HELD.to_string()]).pipe_stdin();
    let mut clients = clients.spawn().unwrap();
    clients.wait_for("ready", LATER).unwrap();
    let mut ping = client.command("ping").args(["-n", "-i", "0.2", address]).spawn().unwrap();
    let over = AtomicBool::new(false);
    let name = file.path.file_name().unwrap().to_str().unwrap();
    let url = format!("http://{address}:8001/{name}");
    let (done, transfers) = std::thread::scope(|scope| {
        let fetching = scope.spawn(|| {
            let mut transfers = 0;
            while !over.load(Ordering::Relaxed) {
                let fetched = client.fetch(&url, LATER * 2).unwrap();
                assert_eq!(fetched.sha256, file.sha256);
                transfers += 1;
            }
            transfers
        });
        let done = flood();
        over.store(true, Ordering::Relaxed);
        (done, fetching.join().unwrap())
    });
    clients.write_line("stop").unwrap();
    let status = clients.wait(LATER * 2).unwrap();
    assert!(status.success(), "{}{}", clients.stdout(), clients.stderr());
    ping.interrupt();
    ping.wait(SOON).unwrap();
    let output = clients.stdout();
    let [exchanges, fresh, slowest] =
        ["exchanges", "fresh", "slowest"].map(|it| number(&output, it));
    assert!(exchanges > HELD as u64 && fresh > 0 && transfers > 0, "{output}");
    let pings = ping.stdout().lines().rev().find(|it| it.contains("received")).unwrap().to_owned();
    assert!(!pings.contains(" 0 received"), "{pings}");
    (done, FloodResult { exchanges, fresh, slowest, transfers, pings })
}

/// The processes' memory in the course of a flood.
struct Memory([u64; 3]);

impl Memory {
    /// Checks that memory grew by no more than the table's size, and not at all once it was full.
    fn is_bounded(&self, room: u64) {
        let [before, full, after] = self.0;
        assert!(
            before > 0 && full <= before + room * EACH + (8 << 20),
            "{before}, {full}, {after}"
        );
        assert!(after <= full + SLACK, "{before}, {full}, {after}");
    }
}

fn show(size: Size, memory: &Memory, kept: &FloodResult, counters: &str) {
    let [before, full, after] = memory.0.map(|bytes| bytes as f64 / 1e6);
    let FloodResult { exchanges, fresh, slowest, transfers, pings } = kept;
    println!(
        "{} flows, {} a second at the most, room for {}
memory {before:.1} MB, {full:.1} once the table is full, {after:.1} at the end
{HELD} connections held, {exchanges} exchanges; {fresh} new ones, the slowest in {slowest} ms
{transfers} downloads; ping: {pings}
{counters}",
        size.flows, size.rate, size.room
    );
}

const OUTSIDE: &str = "06:00:00:00:00:01";
const INSIDE: &str = "06:00:00:00:00:02";
const SERVER: Ipv4Addr = Ipv4Addr::new(192, 168, 7, 2);
/// An address that no host has.
const NOBODY: Ipv4Addr = Ipv4Addr::new(192, 168, 7, 99);

/// A server behind a firewall by one stateful rule.
struct FirewallNetwork {
    process: Process,
    socket: PathBuf,
    outside: Namespace,
    inside: Namespace,
    lab: Lab,
}

impl FirewallNetwork {
    fn new(room: u64) -> FirewallNetwork {
        require(&["curl", "ip", "ping", "python3", "sha256sum"]).unwrap();
        let lab = Lab::new("flood").unwrap();
        let [outside, wall, inside] = ["out", "wall", "in"].map(|it| lab.namespace(it).unwrap());
        for (host, mac, address, device) in
            [(&outside, OUTSIDE, "192.168.7.1/24", "w0"), (&inside, INSIDE, "192.168.7.2/24", "w1")]
        {
            let port = Port::new(host, "eth0").mac(mac).address(address);
            lab.link(port, Port::new(&wall, device)).unwrap();
        }
        // The server answers the flood, to a host that does not know what to do with it.
        inside.ip("route add 10.0.0.0/7 via 192.168.7.1").unwrap();
        let rules = lab.directory().join("rules");
        let text = "add-stateful ip-proto tcp tcp-syn ! tcp-ack in w0 accept
            add ip-saddr 10.0.0.0/7 tcp-syn ! tcp-ack mod ip-dscp 0
            add ip-proto tcp drop\n";
        std::fs::write(&rules, text).unwrap();
        let socket = lab.directory().join("control");
        // As if it had a core to itself: a machine without time for packets loses them before
        // any rule sees them.
        let command = wall.command("nice").args(["-n", "-15"]).arg(program());
        let command = command.args(["middlebox", "--in", "w0", "--out", "w1"]);
        let command = command.arg("--control").arg(&socket).arg("--connections");
        let mut process = command.arg(room.to_string()).arg(&rules).spawn().unwrap();
        process.wait_for(Router::READY, SOON).unwrap();
        FirewallNetwork { process, socket, outside, inside, lab }
    }

    /// From addresses of a /8: a third to a port that is served, a third to one that is not,
    /// a third to nobody.
    fn flood(&self, net: u8, (count, rate): (u64, u64)) -> u64 {
        let from = Ipv4Addr::new(net, 0, 0, 0);
        let to = |address: Ipv4Addr, port: u16| {
            let address = address.to_bits();
            format!("StoreData(30, \\<{address:08x}>) -> StoreData(36, \\<{port:04x}>)")
        };
        let then = format!(
            "-> to :: RoundRobinSwitch -> {} -> all :: Null; to[1] -> {} -> all;
             to[2] -> {} -> all; all",
            to(SERVER, 8000),
            to(SERVER, 9),
            to(NOBODY, 8000)
        );
        let flood = Flood {
            from: &self.outside,
            device: "eth0",
            frame: syn([INSIDE, OUTSIDE], [from, SERVER], [1234, 80]),
            varies: 27,
            behind: format!("{:08x}04", SERVER.to_bits()),
            then: &then,
            field: "ip_src",
        };
        flood.send(&self.lab, (count, rate))
    }
}

#[test]
fn a_firewall_withstands_a_flood() {
    let size = Size::from_environment();
    let mut wall = FirewallNetwork::new(size.room);
    let file = wall.lab.random_file("file", 1).unwrap();
    let half = (size.flows / 2, size.rate);
    let ((memory, sent), kept) =
        among_clients(&wall.outside, (&wall.inside, "192.168.7.2"), &file, || {
            let before = wall.process.memory();
            let first = wall.flood(10, half);
            let full = wall.process.memory();
            let sent = first + wall.flood(11, half);
            (Memory([before, full, wall.process.memory()]), sent)
        });
    let mut control = Control::connect(&wall.socket);
    let events = control.read("rules.connection_events");
    let mut event = |name| control.of("rules.connection_events", name);
    let [added, expired, evicted, refused] =
        ["added", "expired", "evicted", "refused"].map(&mut event);
    let here = control.sum(&["rules.connection_count"]);
    let syns = control.sum(&["rules.packets2"]);
    let missed = control.sum(&["from_in.kernel_drops", "from_in.no_frame_drops"]);
    let drops = control.read("rules.drops");
    let counters = format!(
        "{sent} SYNs sent, {syns} came, {missed} not fetched in time, {} lost on the link
{here} connections\n{events}drops: {drops}",
        sent - syns.min(sent)
    );
    show(size, &memory, &kept, &counters);
    memory.is_bounded(size.room);
    // Few connections were refused: a full table has an entry to evict, which is found soon.
    assert!(refused <= 64 + sent / 1000, "{counters}");
    assert_eq!(refused, control.dropped_by("rules", "full"), "{counters}");
    assert_eq!(added, here + expired + evicted, "{counters}");
    assert!(here == size.room && evicted > 0, "{counters}");
    // Each SYN of the flood that was not refused is a connection, so are those of the clients; a
    // few of those may have begun again, or where another was not forgotten.
    let wanted = syns + HELD as u64 + kept.fresh + kept.transfers;
    assert!(syns <= sent && added.abs_diff(wanted) <= 50 + sent / 1000, "{counters}");
    let [of_connections, of_tcp] =
        ["rules.packets1", "rules.packets3"].map(|it| control.sum(&[it]));
    let dropped = control.dropped(&["rules"]);
    assert_eq!(of_tcp - of_connections, dropped - refused, "{counters}");
    let came = control.sum(&["from_in.count", "from_out.count"]);
    let went =
        control.sum(&["to_in.count", "to_out.count"]) + control.dropped(&["to_in", "to_out"]);
    assert_eq!(came, went + dropped, "{counters}");
    wall.process.interrupt();
    assert_eq!(wall.process.wait(SOON).unwrap().code(), Some(0), "{}", wall.process.stderr());
}

#[test]
fn a_nat_gateway_withstands_a_flood() {
    let size = Size::from_environment();
    let room = size.room.max(2 * size.rate);
    let mut world =
        NatNetwork::with_words("natflood", &[("$capacity 1000000", &format!("$capacity {room}"))]);
    world.beyond.ip("route add blackhole 20.0.0.0/7").unwrap();
    let file = world.lab.random_file("file", 1).unwrap();
    let flood = |net: u8| {
        let to = Ipv4Addr::new(net, 0, 0, 0);
        let flood = Flood {
            from: &world.client,
            device: "eth0",
            frame: syn(
                ["02:00:00:00:01:01", OUTSIDE],
                [Ipv4Addr::new(10, 0, 1, 3), to],
                [1234, 80],
            ),
            varies: 31,
            behind: "04d2005000".into(),
            then: "",
            field: "ip_dst",
        };
        flood.send(&world.lab, (size.flows / 2, size.rate))
    };
    let ((memory, sent), kept) =
        among_clients(&world.client, (&world.server, "10.0.3.2"), &file, || {
            let before = world.nat.memory();
            let first = flood(20);
            let full = world.nat.memory();
            let sent = first + flood(21);
            (Memory([before, full, world.nat.memory()]), sent)
        });
    let mut control = Control::connect(&world.lab.directory().join("control"));
    let events = control.read("flows.mapping_events");
    let mut event = |name| control.of("flows.mapping_events", name);
    let [added, expired, evicted, removed, refused] =
        ["added", "expired", "evicted", "removed", "refused"].map(&mut event);
    let here = control.sum(&["flows.size"]);
    let sizes = control.sum(&["flows.table_size", "ftp.table_size", "pings.table_size"]);
    let drops = control.read("flows.drops");
    let counters = format!("{sent} SYNs sent, {here} mappings\n{events}drops: {drops}");
    show(Size { room, ..size }, &memory, &kept, &counters);
    memory.is_bounded(room);
    assert_eq!(here, sizes, "{counters}");
    assert_eq!(added, here + expired + evicted + removed, "{counters}");
    // No more than came, and few were refused: once the table is full, the search for an entry to
    // evict has to skip established connections.
    let wanted = sent + HELD as u64 + kept.fresh + kept.transfers;
    assert!(added <= wanted + sent / 1000 && refused <= 64 + sent / 1000, "{counters}");
    assert!(added + refused > HELD as u64 + kept.fresh + kept.transfers, "{counters}");
    assert!(here == room && evicted > 0, "{counters}");
    assert_eq!(refused, control.dropped(&["flows", "ftp", "pings"]), "{counters}");
    world.nat.interrupt();
    assert_eq!(world.nat.wait(SOON).unwrap().code(), Some(0), "{}", world.nat.stderr());
}
