//! State of elements that goes to another instance: both sides are routers with clocks of their own.
#![allow(clippy::unwrap_used)] // a test

mod common;

use castanet_element::portable_state::{StateEpoch, StateRecord};
use castanet_elements::library;
use castanet_runtime::console::Console;
use castanet_runtime::router::{
    Options, Router, StateChange, StatePlace, StatePlaces, StatePosition,
};
use common::{Lines, build_simulated, clean, number};
use std::sync::Arc;

/// A router under simulated time, and the lines that its elements print.
fn build(text: &str) -> (Router, Arc<Lines>) {
    let lines = Arc::new(Lines::default());
    let mut options = Options::new(lines.clone() as Arc<dyn Console>);
    (options.workers, options.simulated) = (1, true);
    let router = Router::from_text(text, &library(), &options);
    (router.unwrap_or_else(|wrong| panic!("{wrong}")), lines)
}

/// A router that has run a configuration to its end.
fn run(text: &str) -> Router {
    let (mut router, _) = build(text);
    router.run(None);
    router
}

fn epoch(router: &Router) -> StateEpoch {
    StateEpoch(router.clock().now())
}

/// All records of the compound `t1`, by parts of which none is long.
fn export(router: &mut Router, epoch: StateEpoch) -> (StatePlaces, Vec<StateChange>) {
    let places = router.state_places("t1").unwrap();
    let (mut all, mut next) = (Vec::new(), Some(StatePosition::default()));
    while let Some(from) = next {
        let (changes, behind) =
            router.export_state("t1", &places.places, true, epoch, from).unwrap();
        assert!(changes.len() <= 600, "{} records in a part", changes.len());
        all.extend(changes);
        next = behind;
    }
    (places, all)
}

/// Gives the state of the compound `t1` to another router; returns the records.
fn hand_over(from: &mut Router, to: &mut Router) -> (StatePlaces, Vec<StateChange>) {
    let here = epoch(from);
    let (places, changes) = export(from, here);
    let there = epoch(to);
    let failed = to.import_state("t1", &places.places, changes.clone(), there).unwrap();
    assert!(failed.is_empty(), "{failed:?}");
    to.resume_with_state("t1", &places.places).unwrap();
    (places, changes)
}

/// The number of the place of a field.
fn place(places: &StatePlaces, element: &str, field: &str) -> u32 {
    let is_it = |it: &StatePlace| it.element == element && it.field == field;
    places.places.iter().position(is_it).unwrap() as u32
}

const COUNTERS: &str = "
    t1 :: {
        input -> c :: Counter -> ac :: AverageCounter -> bs :: BatchStats -> mc :: MultiCounter
              -> ab :: AverageBatchCounter -> ch :: CheckIPHeader -> cu :: CheckUDPHeader
              -> ttl0 :: DecIPTTL -> AggregateIP(ip dst) -> av :: AggregateCounterVector(255) -> ag :: AggregateCounter
              -> fr :: IPFragmenter(1500) -> np :: NumberPacket(OFFSET 0) -> t :: Tee;
        t[0] -> d :: Discard; t[1] -> q :: Queue(3) -> Idle;
        input[1] -> bad :: CheckUDPHeader -> Discard;
        bad[1] -> ttl :: DecIPTTL -> q2 :: Queue -> ru :: RatedUnqueue(1000) -> Discard;
        ttl[1] -> q3 :: Queue -> bw :: BandwidthRatedUnqueue(1MBps) -> u :: Counter -> Discard;
    };
    s :: InfiniteSource(LIMIT 5, BURST 5) -> UDPIPEncap(1.0.0.1, 5, 2.0.0.2, 6) -> [0]t1;
    t :: InfiniteSource(LIMIT 4, BURST 4) -> IPEncap(99, 1.0.0.1, 2.0.0.2, TTL 1) -> [1]t1;
    DriverManager(wait 1s, stop);";

#[test]
fn counts_of_both_sides_add_up() {
    let (mut a, mut b) = (run(COUNTERS), build_simulated(COUNTERS, 1));
    let linear = [
        "c.count",
        "c.byte_count",
        "ac.count",
        "ac.byte_count",
        "mc.count",
        "mc.byte_count",
        "ab.count_packets_total",
        "ab.count_batches_total",
        "ch.count",
        "av.count",
        "ag.count",
        "np.count",
        "d.count",
        "bad.drops",
        "ttl.drops",
        "bw.count",
        "bw.byte_count",
        "u.count",
    ];
    hand_over(&mut a, &mut b);
    let before: Vec<u64> = linear.iter().map(|it| number(&mut a, &format!("t1/{it}"))).collect();
    for (handler, count) in linear.iter().zip(&before) {
        assert!(*count > 0, "{handler}");
        assert_eq!(number(&mut b, &format!("t1/{handler}")), *count, "{handler}");
    }
    assert_eq!(b.read("t1/bs.dump").unwrap(), a.read("t1/bs.dump").unwrap());
    assert_eq!(b.read("t1/ac.time").unwrap(), a.read("t1/ac.time").unwrap());
    assert_eq!([number(&mut b, "t1/q.drops"), number(&mut b, "t1/q.highwater_length")], [2, 3]);
    b.run(None);
    for (handler, count) in linear.iter().zip(&before) {
        assert_eq!(number(&mut b, &format!("t1/{handler}")), 2 * count, "{handler}");
    }
    assert_eq!(b.read("t1/bs.average").unwrap(), "5");
    // The queue was full with the packets that came.
    assert_eq!(
        ["length", "drops", "highwater_length"].map(|it| number(&mut b, &format!("t1/q.{it}"))),
        [3, 7, 3]
    );
    clean(a);
    clean(b);
}

#[test]
fn packets_on_a_link_arrive_on_the_other_side() {
    let text = |source: &str, wait: u32| {
        format!(
            "t1 :: {{ input -> q :: CPUQueue(10) -> l :: LinkUnqueue(5s, 8kbps) -> c :: Counter -> Discard }};
             {source} -> t1; DriverManager(wait {wait}s, stop);"
        )
    };
    let mut a = run(&text("InfiniteSource(LIMIT 9, LENGTH 1000, BURST 9)", 4));
    // A packet a second, each of which arrives five seconds later.
    let lengths = ["t1/l.size", "t1/q.length", "t1/c.count"];
    assert_eq!(lengths.map(|it| number(&mut a, it)), [5, 4, 0]);
    // The first arrives two seconds after the transfer. The link is free at once.
    for (wait, after) in [(1, [7, 2, 0]), (2, [7, 1, 1]), (20, [0, 0, 9])] {
        let mut b = build_simulated(&text("Idle", wait), 1);
        hand_over(&mut a, &mut b);
        assert_eq!(lengths.map(|it| number(&mut b, it)), [5, 4, 0]);
        assert_eq!(number(&mut b, "t1/l.count"), 5);
        b.run(None);
        assert_eq!(lengths.map(|it| number(&mut b, it)), after, "after {wait} s");
        clean(b);
    }
    clean(a);
}

/// A source of one packet, which the compound `t1` gets at an input.
fn one(input: usize, encap: &str) -> String {
    format!("InfiniteSource(LIMIT 1) -> {encap} -> [{input}]t1;")
}

#[test]
fn packets_in_queues_leave_on_the_other_side() {
    let t1 = |rate: &str| {
        format!(
            "t1 :: {{ input -> ch :: CheckIPHeader -> Paint(3) -> q :: Queue -> ru :: Unqueue({rate})
                      -> DecIPTTL -> m :: MinBatch(2) -> output }};
             t1 -> PaintSwitch[3] -> p :: IPPrint(out) -> Discard;"
        )
    };
    let t1 = |rate: &str| t1(rate).replace("PaintSwitch[3]", "CheckPaint(3)");
    let text = t1("ACTIVE false") + &one(0, "UDPIPEncap(1.0.0.1, 5, 2.0.0.2, 6)");
    let mut a = run(&(text + "DriverManager(wait 1s, stop);"));
    assert_eq!(number(&mut a, "t1/q.length"), 1);
    let text = t1("") + "DriverManager(wait 1s, stop);";
    let (mut b, lines) = build(&(text + &one(0, "UDPIPEncap(1.0.0.7, 5, 2.0.0.2, 6)")));
    hand_over(&mut a, &mut b);
    assert_eq!(number(&mut b, "t1/q.length"), 1);
    b.run(None);
    let said = lines.all();
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said[0].contains("1.0.0.1.5 > 2.0.0.2.6"), "{said:?}");
    assert!(said[1].contains("1.0.0.7.5 > 2.0.0.2.6"), "{said:?}");
    clean(a);
    clean(b);
}

const NAT: &str = "t1 :: { nat :: IPRewriter(pattern 9.9.9.9 4000 - - 0 1, drop);
                           input -> nat -> output; input[1] -> [1]nat; nat[1] -> [1]output };
                   t1 -> IPPrint(out) -> Discard; t1[1] -> IPPrint(back) -> Discard; ";

#[test]
fn replies_are_translated_back_on_the_other_side() {
    let out = one(0, "UDPIPEncap(10.0.0.1, 1000, 2.0.0.2, 53)");
    let back = one(1, "UDPIPEncap(2.0.0.2, 53, 9.9.9.9, 4000)");
    let idle = ["Idle -> [1]t1;", "Idle -> t1;"];
    let (mut a, lines) = build(&format!("{NAT}{out}{} DriverManager(wait 100s, stop);", idle[0]));
    a.run(None);
    assert!(lines.all()[0].contains("9.9.9.9.4000 > 2.0.0.2.53"), "{:?}", lines.all());
    let b = format!("{NAT}{back}{} DriverManager(wait 1s, stop);", idle[1]);
    let (mut b, lines) = build(&b);
    hand_over(&mut a, &mut b);
    assert_eq!(number(&mut b, "t1/nat.table_size"), 1);
    b.run(None);
    assert!(lines.all()[0].contains("back: "), "{:?}", lines.all());
    assert!(lines.all()[0].contains("2.0.0.2.53 > 10.0.0.1.1000"), "{:?}", lines.all());
    clean(b);
    // It expires when it would have expired there: 300 s after its packet, which was 99 s ago.
    for (wait, left) in [(190, 1), (210, 0)] {
        let text = format!("{NAT} Idle -> t1; Idle -> [1]t1; DriverManager(wait {wait}s, stop);");
        let mut b = build_simulated(&text, 1);
        hand_over(&mut a, &mut b);
        b.run(None);
        assert_eq!(number(&mut b, "t1/nat.table_size"), left);
        clean(b);
    }
    clean(a);
}

/// A querier of its own, and two that share a table.
const ARP: &str = "t1 :: { own :: ARPQuerier(1.0.0.1, 0:0:0:0:0:1);
                           table :: ARPTable; x :: ARPQuerier(1.0.0.1, 0:0:0:0:0:1, TABLE table);
                           input -> own -> q0 :: Queue -> u0 :: Unqueue -> Discard; input[1] -> x -> q1 :: Queue -> u1 :: Unqueue -> Discard;
                           own[1] -> [0]output; x[1] -> [1]output; Idle -> [1]own; Idle -> [1]x };
                   t1 -> query :: Counter -> Discard; t1[1] -> query1 :: Counter -> Discard; ";

#[test]
fn known_neighbours_need_no_query_on_the_other_side() {
    let packets = one(0, "UDPIPEncap(9.0.0.9, 5, 1.0.0.2, 6)")
        + &one(1, "UDPIPEncap(9.0.0.9, 5, 1.0.0.3, 6)");
    let text = |script: &str| format!("{ARP}{packets} DriverManager({script});");
    // Both addresses are asked for before a handler inserts them.
    let script = "wait 1s, write t1/own.insert 1.0.0.2 0:0:0:0:0:2, write t1/table.insert 1.0.0.3 0:0:0:0:0:3, wait 10s, stop";
    let mut a = run(&text(script));
    assert_eq!(
        ["query.count", "query1.count", "t1/u0.count", "t1/u1.count"].map(|it| number(&mut a, it)),
        [1; 4]
    );
    let mut b = build_simulated(&text("wait 1s, stop"), 1);
    let (places, changes) = hand_over(&mut a, &mut b);
    let tables: Vec<_> = ["own", "x", "table"]
        .map(|it| {
            let place = place(&places, it, "neighbours");
            assert!(places.places[place as usize].is_table);
            changes.iter().filter(|it| it.place == place).count()
        })
        .into();
    assert_eq!(tables, [1, 0, 1], "a shared table goes once");
    assert!(b.read("t1/own.table").unwrap().starts_with("1.0.0.2 1 00-00-00-00-00-02 10."));
    assert!(b.read("t1/x.table").unwrap().starts_with("1.0.0.3 1 00-00-00-00-00-03 10."));
    assert_eq!(number(&mut b, "t1/own.queries"), 1);
    b.run(None);
    assert_eq!(
        ["query.count", "query1.count", "t1/u0.count", "t1/u1.count"].map(|it| number(&mut b, it)),
        [0, 0, 2, 2]
    );
    // A record that goes, goes from the table.
    let mut gone =
        changes.into_iter().find(|it| it.place == place(&places, "own", "neighbours")).unwrap();
    gone.removes = true;
    let there = epoch(&b);
    assert!(
        b.import_state("t1", &places.places, vec![gone.clone(), gone], there).unwrap().is_empty()
    );
    assert_eq!(b.read("t1/own.table").unwrap(), "");
    clean(a);
    clean(b);
}

#[test]
fn a_switch_knows_its_addresses_on_the_other_side() {
    let text = |src: u8, dst: u8, input: u8| {
        let other = 1 - input;
        format!(
            "t1 :: {{ sw :: EtherSwitch; input -> sw -> output; input[1] -> [1]sw[1] -> [1]output;
                      input[2] -> [2]sw[2] -> [2]output }};
             t1 -> c0 :: Counter -> Discard; t1[1] -> c1 :: Counter -> Discard;
             t1[2] -> c2 :: Counter -> Discard; Idle -> [{other}]t1; Idle -> [2]t1;
             InfiniteSource(LIMIT 1) -> EtherEncap(0x0800, 0:0:0:0:0:{src}, 0:0:0:0:0:{dst}) -> [{input}]t1;
             DriverManager(wait 10s, stop);"
        )
    };
    let mut a = run(&text(2, 4, 0));
    let counts = ["c0.count", "c1.count", "c2.count"];
    assert_eq!(counts.map(|it| number(&mut a, it)), [0, 1, 1]);
    let mut b = build_simulated(&text(4, 2, 1), 1);
    let (places, changes) = hand_over(&mut a, &mut b);
    assert_eq!(b.read("t1/sw.table").unwrap(), a.read("t1/sw.table").unwrap());
    b.run(None);
    assert_eq!(counts.map(|it| number(&mut b, it)), [1, 0, 0]);
    let at = place(&places, "sw", "addresses");
    let mut gone = changes.into_iter().find(|it| it.place == at).unwrap();
    gone.removes = true;
    let there = epoch(&b);
    b.import_state("t1", &places.places, vec![gone], there).unwrap();
    assert_eq!(b.read("t1/sw.table").unwrap(), "00-00-00-00-00-04 1\n");
    clean(a);
    clean(b);
}

const TRANSLATOR: &str = "t1 :: { at :: AddressTranslator(0, 1, 1, 0, ::1.0.0.1 6000 6010);
        input -> MarkIP6Header -> at -> output; input[1] -> MarkIP6Header -> [1]at; at[1] -> [1]output };
    t1 -> IP6Print(out) -> Discard; t1[1] -> IP6Print(back) -> Discard; ";

#[test]
fn bindings_translate_back_on_the_other_side() {
    // UDP without a checksum that is right: the translator mends what it has.
    let packet = |src: &str, sport: &str, dst: &str, dport: &str| {
        format!(
            "InfiniteSource(LIMIT 1, DATA \\<{sport} {dport} 0008 0001>) -> IP6Encap(17, {src}, {dst})"
        )
    };
    let text = format!(
        "{TRANSLATOR} {} -> t1; Idle -> [1]t1; DriverManager(wait 5s, stop);",
        packet("1::2", "0005", "9::9", "0006")
    );
    let (mut a, lines) = build(&text);
    a.run(None);
    assert_eq!(number(&mut a, "t1/at.count"), 1, "{:?}", lines.all());
    let text = format!(
        "{TRANSLATOR} {} -> [1]t1; Idle -> t1; DriverManager(wait 5s, stop);",
        packet("9::9", "0006", "::1.0.0.1", "1770")
    );
    let (mut b, lines) = build(&text);
    hand_over(&mut a, &mut b);
    b.run(None);
    assert!(
        lines.all()[0].contains("back") && lines.all()[0].contains("9::9 -> 1::2"),
        "{:?}",
        lines.all()
    );
    clean(a);
    clean(b);
}

/// Elements of all kinds of fields.
fn everything() -> Router {
    let text = COUNTERS.replace("t1 :: {", "t1 :: {
        nat :: IPRewriter(pattern 9.9.9.9 4000 - - 0 1, drop); Idle -> nat -> Discard; Idle -> [1]nat; nat[1] -> Discard;
        own :: ARPQuerier(1.0.0.1, 0:0:0:0:0:1); Idle -> own -> Discard; Idle -> [1]own;
        sw :: EtherSwitch; Idle -> sw -> Discard; Idle -> [1]sw[1] -> Discard;
        at :: AddressTranslator(0, 1, 1, 0, ::1.0.0.1 6000 6010); Idle -> at -> Discard; Idle -> [1]at[1] -> Discard;
        Idle -> m :: MinBatch(2, 10) -> Discard; Idle -> q5 :: Queue -> DelayUnqueue(1s) -> Discard;
        Idle -> cn :: CheckNumberPacket(OFFSET 0, COUNT 10) -> Discard;");
    build_simulated(&text, 1)
}

#[test]
fn a_record_of_another_form_is_an_error() {
    let mut router = everything();
    let places = router.state_places("t1").unwrap().places;
    let epoch = epoch(&router);
    for number in 0..places.len() as u32 {
        let record = StateRecord { key: vec![0xFF; 3], value: vec![0xFF; 3] };
        let change = StateChange { place: number, record, removes: false };
        let failed = router.import_state("t1", &places, vec![change], epoch).unwrap();
        let place = &places[number as usize];
        assert_eq!(failed.len(), 1, "{place:?}");
        assert_eq!(failed[0].0, place.element);
        assert!(
            failed[0].1.message().contains("another form"),
            "{place:?}: {}",
            failed[0].1.message()
        );
    }
    // A count that would overflow.
    let at = places.iter().position(|it| it.element == "c" && it.field == "count").unwrap();
    let mut value = vec![0xFF; 9];
    value.push(1);
    let record = StateRecord { key: Vec::new(), value };
    let change = StateChange { place: at as u32, record, removes: false };
    let failed = router.import_state("t1", &places, vec![change], epoch).unwrap();
    assert!(failed[0].1.message().contains("no counter"), "{}", failed[0].1.message());
    clean(router);
}

#[test]
fn no_record_panics() {
    // Records of all fields, of which some bytes are others.
    let mut a = run(COUNTERS);
    let here = epoch(&a);
    let (places, real) = export(&mut a, here);
    clean(a);
    let mut router = everything();
    let all = router.state_places("t1").unwrap().places;
    let there = epoch(&router);
    let mut random = Random(1);
    for round in 0..200 {
        let mut changes = Vec::new();
        for place in 0..all.len() as u32 {
            let mut bytes =
                |most: u64| (0..random.below(most)).map(|_| random.byte()).collect::<Vec<u8>>();
            let record = StateRecord { key: bytes(12), value: bytes(60) };
            changes.push(StateChange { place, record, removes: round % 4 == 3 });
        }
        router.import_state("t1", &all, changes, there).unwrap();
        let mut changes = real.clone();
        for StateChange { record, .. } in &mut changes {
            for bytes in [&mut record.key, &mut record.value] {
                let at = random.below(2 * bytes.len() as u64 + 1) as usize;
                bytes.get_mut(at).into_iter().for_each(|it| *it = random.byte());
            }
        }
        router.import_state("t1", &places.places, changes, there).unwrap();
    }
    router.resume_with_state("t1", &all).unwrap();
    router.run(None);
    for (element, handler) in
        all.iter().flat_map(|it| ["counts", "drops", "table", "dump"].map(|h| (&it.element, h)))
    {
        // Handlers of the state can be read, where there are some of these names.
        let _ = router.read(&format!("t1/{element}.{handler}"));
    }
    clean(router);
}

/// Numbers that are the same in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
    fn byte(&mut self) -> u8 {
        // Many small numbers: they are lengths and tags.
        match self.below(2) {
            0 => self.below(4) as u8,
            _ => self.below(256) as u8,
        }
    }
}

#[test]
fn arguments_that_handlers_have_changed_go_along() {
    let text = "
        t1 :: {
            Idle -> q :: Queue(3) -> Idle; Idle -> untouched :: Queue(4) -> Idle;
            Idle -> r :: RadixIPLookup(1.0.0.0/8 0, 2.0.0.0/8 1) -> Discard; r[1] -> Discard;
            Idle -> a :: ARPResponder(1.0.0.1 0:0:0:0:0:1) -> Discard;
            Idle -> f :: IPClassifier(tcp, udp) -> Discard; f[1] -> Discard;
        };";
    let (mut a, mut b) = (build_simulated(text, 1), build_simulated(text, 1));
    let (places, _) = hand_over(&mut a, &mut b);
    for (handler, value) in [
        ("t1/q.capacity", "7"),
        ("t1/r.add", "3.0.0.0/8 9.9.9.9 1"),
        ("t1/r.remove", "1.0.0.0/8"),
        ("t1/a.add", "2.0.0.0/8 0:0:0:0:0:2"),
        ("t1/f.pattern1", "icmp"),
    ] {
        a.write(handler, value).unwrap();
    }
    b.write("t1/untouched.capacity", "5").unwrap();
    // Places that were named before the changes have them.
    let here = epoch(&a);
    let (mut changes, mut next) = (Vec::new(), Some(StatePosition::default()));
    while let Some(from) = next {
        let (part, behind) = a.export_state("t1", &places.places, true, here, from).unwrap();
        changes.extend(part);
        next = behind;
    }
    let there = epoch(&b);
    let failed = b.import_state("t1", &places.places, changes, there).unwrap();
    assert!(failed.is_empty(), "{failed:?}");
    for handler in ["q.capacity", "r.table", "a.table", "f.pattern0", "f.pattern1"] {
        let handler = format!("t1/{handler}");
        assert_eq!(b.read(&handler).unwrap(), a.read(&handler).unwrap(), "{handler}");
    }
    assert_eq!(b.read("t1/f.pattern1").unwrap().trim(), "icmp");
    assert_eq!(b.read("t1/untouched.capacity").unwrap().trim(), "5");
}
