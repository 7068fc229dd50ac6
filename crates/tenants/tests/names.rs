//! Names of addresses, ports, annotations and patterns: each tenant has its own.
#![allow(clippy::unwrap_used)] // a test

mod common;

use castanet_element::args::AddressKind;
use castanet_lang::{Diagnostics, FlatGraph, Port};
use castanet_runtime::console::SilentConsole;
use castanet_runtime::router::{HotSwapSource, Options, Router, TeardownReport};
use common::{library, system};
use std::sync::Arc;

/// Two tenants without devices.
const TWO: &str = "[tenant.a]\nfile = \"a.click\"\n[tenant.b]\nfile = \"b.click\"\n";

/// A tenant that does nothing.
const IDLE: &str = "Idle -> Discard;";

/// The graph of two tenants with these texts.
fn graph(a: &str, b: &str) -> FlatGraph {
    let (master, errors) = system(TWO, &[a, b]);
    assert_eq!(errors, "");
    master.graph
}

/// The addresses of the machine's one interface.
fn machine(interface: &str, kind: AddressKind) -> Option<String> {
    let address = match kind {
        AddressKind::Ip | AddressKind::Gateway => "127.0.0.1",
        AddressKind::Mac => "00:00:00:00:00:07",
        _ => return None,
    };
    (interface == "lo").then(|| address.to_owned())
}

/// Options for simulated time on this machine.
fn options() -> Options {
    let mut options = Options::new(Arc::new(SilentConsole));
    options.simulated = true;
    options.interfaces = Some(machine);
    options
}

/// The errors in a graph.
fn errors(graph: &FlatGraph) -> Vec<String> {
    let mut found = Diagnostics::new();
    Router::check(graph, &library(), &options(), &mut found);
    found.iter().map(|it| it.message.clone()).collect()
}

/// A router that has run until nothing was left to do, and whose graph can be replaced.
fn run(graph: &FlatGraph) -> Router {
    let mut found = Diagnostics::new();
    let router = Router::build(graph, &library(), &options(), &mut found);
    let mut router = router.unwrap_or_else(|| panic!("{:?}", found.iter().collect::<Vec<_>>()));
    router.set_hot_swap_source(HotSwapSource {
        library: library(),
        options: options(),
        read: Box::new(|_, _| Ok(())),
    });
    router.settle(1000);
    router
}

/// Puts another graph in the place of the router's.
fn replace(router: &mut Router, graph: &FlatGraph) {
    let before = router.replaced();
    let replaced = router.replace_with(|build| {
        let mut found = Diagnostics::new();
        build(graph, &mut found);
        match found.has_errors() {
            true => Err(format!("{:?}", found.iter().collect::<Vec<_>>())),
            false => Ok(String::new()),
        }
    });
    replaced.unwrap();
    router.settle(1000);
    assert_eq!(router.replaced(), before + 1);
}

fn read(router: &mut Router, handlers: &[&str]) -> Vec<String> {
    handlers.iter().map(|handler| router.read(handler).unwrap()).collect()
}

fn clean(router: Router) {
    assert_eq!(router.dismantle(), TeardownReport { leaked_frames: 0, panics: 0, lost_workers: 0 });
}

/// A tenant that declares names of all kinds, and uses them.
fn tenant(address: &str, port: u16, anno: u8, pattern: &str) -> String {
    format!(
        "AddressInfo(gate {address}/24, same gate); PortInfo(web {port});
         AnnotationInfo(MINE {anno}, CHECK_OVERLAP MINE PACKET_NUMBER);
         IPRewriterPatterns(world {pattern} 1024-65535# - -);
         InfiniteSource(LIMIT 1, STOP false) -> u :: UDPIPEncap(same, 5, gate:gw, {port})
            -> c :: IPClassifier(dst port web, -) -> web :: Counter
            -> x :: IPRewriter(pattern world 0 0)
            -> Paint(7, MINE) -> paint :: CheckPaint(7) -> painted :: Counter -> Discard;
         c[1], paint[1] -> Discard;"
    )
}

#[test]
fn tenants_that_declare_the_same_names_have_each_their_own() {
    let a = tenant("10.0.0.9", 80, 16, "9.9.9.1");
    let b = tenant("10.7.0.9", 81, 40, "gate");
    let mut router = run(&graph(&a, &b));
    let seen = read(&mut router, &["a/u.src", "a/u.dst", "b/u.src", "b/u.dst"]);
    assert_eq!(seen, ["10.0.0.9", "10.0.0.1", "10.7.0.9", "10.7.0.1"]);
    let seen = read(&mut router, &["a/web.count", "b/web.count"]);
    assert_eq!(seen, ["1", "1"], "ports");
    let seen = read(&mut router, &["a/painted.count", "b/painted.count"]);
    assert_eq!(seen, ["1", "0"], "annotations");
    // Both begin with the first port: the pattern of one is not that of the other.
    for (table, flow) in
        [("a/x.udp_table", "(9.9.9.1, 1024, "), ("b/x.udp_table", "(10.7.0.9, 1024, ")]
    {
        let text = router.read(table).unwrap();
        assert!(text.contains(flow), "{table}: {text}");
    }
    clean(router);
}

/// Adds elements outside of tenants: a name `host`, and `e`, which uses a name of its own and one of an
/// interface.
fn add_host(graph: &mut FlatGraph, encap: &str) {
    let (span, first) = (graph.elements[0].span, graph.elements.len());
    graph.add("info", "AddressInfo", "host 10.9.0.1 0:0:0:0:0:9", span);
    for (name, class, config) in [("i", "Idle", ""), ("e", "IPEncap", encap), ("d", "Discard", "")]
    {
        graph.add(name, class, config, span);
    }
    for element in first + 1..first + 3 {
        let port = |element| Port { element, port: 0 };
        graph.connect(port(element), port(element + 1), span);
    }
}

#[test]
fn names_of_others_are_unknown() {
    let b =
        "AddressInfo(other 10.0.0.1 0:0:0:0:0:1); PortInfo(game 5555); AnnotationInfo(COLOUR 16);
             IPRewriterPatterns(world 9.9.9.9 1024-65535# - -);";
    let errors_of = |a: &str| {
        let mut graph = graph(a, b);
        add_host(&mut graph, "4, host, lo:ip");
        errors(&graph)
    };
    for (a, wanted) in [
        ("IPEncap(4, other, 1.0.0.1)", "`other`"),
        ("IPEncap(4, host, 1.0.0.1)", "`host`"),
        ("IPEncap(4, lo, 1.0.0.1)", "`lo`"),
        ("IPEncap(4, lo:ip, 1.0.0.1)", "`lo:ip`"),
        ("IPEncap(4, lo:gw, 1.0.0.1)", "`lo:gw`"),
        ("EtherEncap(0x0800, lo:eth, 0:0:0:0:0:1)", "`lo:eth`"),
        ("EtherEncap(0x0800, other, 0:0:0:0:0:1)", "`other`"),
        ("IPFilter(allow dst port game)", "'port': value missing"),
        ("IPFilter(allow dst host other)", "'ip host': address missing"),
        ("Paint(7, COLOUR)", "COLOUR"),
        ("IPRewriter(pattern world 0 0)", "world"),
    ] {
        let found = errors_of(&format!("Idle -> e :: {a} -> Discard;"));
        assert_eq!(found.len(), 1, "{a}: {found:?}");
        assert!(found[0].starts_with("a/e :: ") && found[0].contains(wanted), "{a}: {found:?}");
    }
    for (a, wanted) in [
        ("AddressInfo(mine other)", "`other` is not an address"),
        ("AnnotationInfo(CHECK_OVERLAP COLOUR)", "COLOUR"),
    ] {
        let found = errors_of(&format!("e :: {a};"));
        assert_eq!(found.len(), 1, "{a}: {found:?}");
        assert!(found[0].starts_with("a/e :: ") && found[0].contains(wanted), "{found:?}");
    }
    // A name of an interface's address is that of no address.
    let found = errors_of("AddressInfo(me lo:ip); Idle -> IPEncap(4, me, me:ip) -> Discard;");
    assert_eq!(found.len(), 2, "{found:?}");
}

#[test]
fn names_outside_of_tenants_hold_there_only() {
    let mut known = graph("AddressInfo(mine 10.0.0.1);", "AddressInfo(host 10.0.0.2);");
    let mut unknown = known.clone();
    add_host(&mut known, "4, host, lo:ip");
    let mut router = run(&known);
    assert_eq!(read(&mut router, &["e.src", "e.dst"]), ["10.9.0.1", "127.0.0.1"]);
    clean(router);
    add_host(&mut unknown, "4, mine, host");
    let found = errors(&unknown);
    assert!(found.len() == 1 && found[0].contains("`mine`"), "{found:?}");
}

#[test]
fn handlers_use_names_of_their_tenant() {
    let a = "AddressInfo(gate 10.0.0.1, spare 10.0.0.2); PortInfo(web 81);
             Idle -> e :: IPEncap(4, gate, gate) -> c :: IPClassifier(tcp) -> Discard;";
    let b = "AddressInfo(gate 10.7.0.1, own 10.7.0.2);
             Idle -> e :: IPEncap(4, gate, gate) -> c :: IPClassifier(tcp) -> Discard;";
    let mut router = run(&graph(a, b));
    for (handler, text, now) in [
        ("a/e.src", "spare", Some("10.0.0.2")),
        ("a/e.dst", "own", None),
        ("a/e.dst", "lo:ip", None),
        ("b/e.src", "spare", None),
        ("b/e.src", "own", Some("10.7.0.2")),
        ("a/e.config", "4, gate, spare", Some("4, gate, spare")),
        ("b/e.config", "4, gate, spare", None),
        ("b/e.config", "4, gate, lo:ip", None),
        ("a/c.pattern0", "dst port web", Some("dst port web")),
        ("b/c.pattern0", "dst port web", None),
    ] {
        let before = router.read(handler).unwrap();
        let written = router.write(handler, text);
        assert_eq!(written.is_ok(), now.is_some(), "{handler} {text}: {written:?}");
        assert_eq!(router.read(handler).unwrap(), now.unwrap_or(&before), "{handler} {text}");
    }
    assert_eq!(read(&mut router, &["a/e.dst", "b/e.dst"]), ["10.0.0.2", "10.7.0.1"]);
    clean(router);
}

/// A tenant whose elements keep state and changes of handlers, where its names stay as they are.
fn keeper(address: &str) -> String {
    format!(
        "AddressInfo(gate {address}); InfiniteSource(LIMIT 3, STOP false) -> c :: Counter -> Discard;
         Idle -> e :: IPEncap(4, gate, gate) -> Discard; Idle -> sw :: Switch -> Discard; sw[1] -> Discard;"
    )
}

#[test]
fn other_names_of_one_tenant_change_no_other_tenant() {
    let b = keeper("10.7.0.1");
    let mut router = run(&graph(&keeper("10.0.0.1"), &b));
    for tenant in ["a", "b"] {
        router.write(&format!("{tenant}/e.src"), "1.2.3.4").unwrap();
        router.write(&format!("{tenant}/e.dst"), "1.2.3.5").unwrap();
    }
    replace(&mut router, &graph(&keeper("10.0.0.2"), &b));
    let all = ["a/e.src", "a/e.dst", "b/e.src", "b/e.dst"];
    // The changes of handlers stay in the tenant whose names have stayed.
    assert_eq!(read(&mut router, &all), ["10.0.0.2", "10.0.0.2", "1.2.3.4", "1.2.3.5"]);
    replace(&mut router, &graph(&keeper("10.0.0.2"), &keeper("10.7.0.9")));
    assert_eq!(read(&mut router, &all), ["10.0.0.2", "10.0.0.2", "10.7.0.9", "10.7.0.9"]);
    assert_eq!(read(&mut router, &["a/c.count", "b/c.count"]), ["3", "3"]);
    clean(router);
}

#[test]
fn names_of_a_tenant_that_comes_or_goes_change_no_other_tenant() {
    let b = keeper("10.7.0.1");
    let mut router = run(&graph(IDLE, &b));
    router.write("b/e.src", "1.2.3.4").unwrap();
    for a in ["AddressInfo(gate 10.0.0.1, x 10.0.0.2);", IDLE] {
        replace(&mut router, &graph(a, &b));
        assert_eq!(read(&mut router, &["b/e.src", "b/c.count"]), ["1.2.3.4", "3"]);
    }
    clean(router);
}

#[test]
fn no_element_continues_one_of_another_tenant() {
    let holder = "InfiniteSource(LIMIT 5, STOP false) -> Queue -> Idle;";
    let keeper = "Idle -> Queue -> q :: Idle;";
    let mut router = run(&graph(holder, IDLE));
    assert_eq!(router.read("a/Queue@2.length").unwrap(), "5");
    replace(&mut router, &graph(IDLE, keeper));
    let queue = router.graph().elements.iter().find(|it| it.name.starts_with("b/Queue@"));
    let handler = format!("{}.length", queue.unwrap().name);
    assert_eq!(router.read(&handler).unwrap(), "0");
    clean(router);
}

#[test]
fn handlers_of_tenants_open_no_files() {
    let file = std::env::temp_dir().join(format!("castanet-tenants-{}", std::process::id()));
    let a = format!(
        "InfiniteSource(LIMIT 9, STOP false) -> Counter(COUNT_CALL 3 g.write_file {0})
            -> c :: Counter -> Discard; Idle -> g :: AggregateCounter -> Discard;",
        file.display()
    );
    let mut router = run(&graph(&a, IDLE));
    assert_eq!(router.read("a/c.count").unwrap(), "9");
    assert!(!file.exists(), "the call has written a file");
    let refused = router.write("a/g.write_file", &file.display().to_string()).unwrap_err();
    assert!(refused.to_string().contains("reach no files"), "{refused}");
    assert!(!file.exists(), "the handler has written a file");
    clean(router);
}

#[test]
fn handlers_give_tenants_no_arguments_that_reach_the_host() {
    let file = std::env::temp_dir().join(format!("castanet-outfile-{}", std::process::id()));
    let a = format!(
        "InfiniteSource(LIMIT 9, STOP false) -> Counter(COUNT_CALL 3 p.config OUTFILE {0})
            -> UDPIPEncap(1.0.0.1, 1, 2.0.0.2, 2) -> p :: IPPrint(x) -> c :: Counter -> Discard;",
        file.display()
    );
    let mut router = run(&graph(&a, IDLE));
    assert_eq!(router.read("a/c.count").unwrap(), "9");
    let refused = router.write("a/p.config", &format!("x, OUTFILE {}", file.display()));
    assert!(refused.is_err());
    assert_eq!(router.read("a/p.config").unwrap(), "x");
    router.end();
    assert!(!file.exists());
    clean(router);
}
