//! Connections, rules and counters of a `Middlebox` that go to another instance.
#![allow(clippy::unwrap_used)] // a test

use castanet_element::class::Library;
use castanet_element::portable_state::{StateEpoch, StateRecord};
use castanet_middlebox::CLASSES;
use castanet_runtime::console::SilentConsole;
use castanet_runtime::router::{Options, Router, StateChange, StatePlaces, StatePosition};
use std::sync::Arc;

fn library() -> Library {
    let mut library = castanet_elements::library();
    CLASSES.iter().for_each(|class| library.add(class));
    library
}

/// A router under simulated time.
fn build(text: &str) -> Router {
    let mut options = Options::new(Arc::new(SilentConsole));
    (options.workers, options.simulated) = (1, true);
    Router::from_text(text, &library(), &options).unwrap_or_else(|wrong| panic!("{wrong}"))
}

fn read(router: &mut Router, handler: &str) -> String {
    router.read(handler).unwrap()
}

fn export(router: &mut Router, all: bool) -> (StatePlaces, Vec<StateChange>) {
    let places = router.state_places("t1").unwrap();
    let epoch = StateEpoch(router.clock().now());
    let (mut changes, mut next) = (Vec::new(), Some(StatePosition::default()));
    while let Some(from) = next {
        let (more, behind) = router.export_state("t1", &places.places, all, epoch, from).unwrap();
        changes.extend(more);
        next = behind;
    }
    (places, changes)
}

fn import(router: &mut Router, places: &StatePlaces, changes: Vec<StateChange>) {
    let epoch = StateEpoch(router.clock().now());
    let failed = router.import_state("t1", &places.places, changes, epoch).unwrap();
    assert!(failed.is_empty(), "{failed:?}");
}

const RULES: &str = "add-stateful in lan ip-proto udp map ip-saddr 9.9.9.9 map udp-sport 4000,
                     in wan ip-proto tcp drop, INTERFACES lan wan";

/// A middlebox between two hosts that send one packet each, as configured.
fn text(lan: &str, wan: &str, script: &str) -> String {
    format!(
        "t1 :: {{ m :: Middlebox({RULES}); input -> m -> output; input[1] -> [1]m[1] -> [1]output }};
         t1 -> out :: Counter -> Discard; t1[1] -> c :: IPClassifier(dst host 10.0.0.1 and dst port 1000, -);
         c -> back :: Counter -> Discard; c[1] -> wrong :: Counter -> Discard;
         InfiniteSource(LIMIT {lan}) -> UDPIPEncap(10.0.0.1, 1000, 2.0.0.2, 53) -> t1;
         InfiniteSource(LIMIT {wan}) -> UDPIPEncap(2.0.0.2, 53, 9.9.9.9, 4000) -> [1]t1;
         DriverManager({script}, stop);"
    )
}

#[test]
fn replies_are_translated_back_on_the_other_side() {
    let mut a = build(&text("1", "0", "wait 100s"));
    a.run(None);
    assert_eq!(read(&mut a, "t1/m.connection_count"), "1");
    let (places, changes) = export(&mut a, true);
    let mut b = build(&text("0", "1", "wait 1s"));
    import(&mut b, &places, changes.clone());
    b.resume_with_state("t1", &places.places).unwrap();
    let lines = |router: &mut Router| read(router, "t1/m.connections_verbose");
    // Both say how long it lasts.
    assert_eq!(lines(&mut b), lines(&mut a));
    assert_eq!(read(&mut b, "t1/m.packets1"), "1");
    b.run(None);
    assert_eq!(["back.count", "wrong.count"].map(|it| read(&mut b, it)), ["1", "0"]);
    // The reply counted for the rule of its connection, too.
    assert_eq!(read(&mut b, "t1/m.packets1"), "2");
    // A connection that goes, goes.
    let is_table = |it: &&StateChange| places.places[it.place as usize].is_table;
    let mut gone = changes.iter().find(is_table).unwrap().clone();
    gone.removes = true;
    import(&mut b, &places, vec![gone.clone(), gone]);
    assert_eq!(read(&mut b, "t1/m.connection_count"), "0");
}

#[test]
fn connections_find_rules_that_come_after_them() {
    let mut a = build(&text("1", "0", "wait 1s"));
    a.write("t1/m.command", "add all mod ip-ttl 9").unwrap();
    a.write("t1/m.command", "add-stateful in lan ip-proto udp mod ip-ttl 8").unwrap();
    a.write("t1/m.delete", "3").unwrap();
    a.write("t1/m.timeouts", "udp 77").unwrap();
    a.write("t1/m.disable", "wan").unwrap();
    a.run(None);
    let mut b = build(&text("0", "0", "wait 1s"));
    let (places, tables) = export(&mut a, false);
    assert_eq!(tables.len(), 1);
    import(&mut b, &places, tables);
    let (places, changes) = export(&mut a, true);
    let rest = changes.into_iter().filter(|it| !places.places[it.place as usize].is_table);
    import(&mut b, &places, rest.collect());
    b.resume_with_state("t1", &places.places).unwrap();
    for handler in ["rules", "timeouts", "interfaces"] {
        let handler = format!("t1/m.{handler}");
        assert_eq!(read(&mut b, &handler), read(&mut a, &handler), "{handler}");
    }
    assert!(read(&mut b, "t1/m.interfaces").contains("wan disabled"));
    // The rule that was added last has another identifier, for the one before it is not here.
    let connections = ["4", "3"].map(|id| format!("udp 10.0.0.1:1000 > 2.0.0.2:53 id1 id{id}\n"));
    assert_eq!([&mut a, &mut b].map(|it| read(it, "t1/m.connections")), connections);
    assert_eq!(["t1/m.packets1", "t1/m.packets3"].map(|it| read(&mut b, it)), ["1", "1"]);
}

#[test]
fn no_record_panics() {
    let mut a = build(&text("1", "0", "wait 1s"));
    a.run(None);
    let (places, real) = export(&mut a, true);
    let mut b = build(&text("100", "100", "wait 1s"));
    let epoch = StateEpoch(b.clock().now());
    let mut state = 1u64;
    let mut random = |limit: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % limit
    };
    let record = StateRecord { key: vec![0xFF; 3], value: vec![0xFF; 3] };
    for number in 0..places.places.len() as u32 {
        let change = StateChange { place: number, record: record.clone(), removes: false };
        let failed = b.import_state("t1", &places.places, vec![change], epoch).unwrap();
        assert!(failed[0].1.message().contains("another form"), "{}", failed[0].1.message());
    }
    for round in 0..2000 {
        let mut changes = real.clone();
        for StateChange { record, removes, .. } in &mut changes {
            *removes = round % 5 == 4;
            for bytes in [&mut record.key, &mut record.value] {
                for _ in 0..random(4) {
                    let (at, value) = (random(bytes.len() as u64 + 1) as usize, random(256) as u8);
                    bytes.get_mut(at).into_iter().for_each(|it| *it = value);
                }
            }
        }
        b.import_state("t1", &places.places, changes, epoch).unwrap();
    }
    assert_ne!(read(&mut b, "t1/m.connection_count"), "0");
    b.resume_with_state("t1", &places.places).unwrap();
    read(&mut b, "t1/m.connections_verbose");
    b.run(None);
    read(&mut b, "t1/m.list");
    let report = b.dismantle();
    assert_eq!((report.leaked_frames, report.panics), (0, 0));
}
