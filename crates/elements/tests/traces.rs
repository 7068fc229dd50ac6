//! Traces of packets through whole routers.
#![allow(clippy::unwrap_used)] // a test

mod common;

use castanet_element::exec::{
    AnyPacket, IpPatternFilter, PacketFilter, TraceResult, TraceStep, TraceStepKind,
};
use castanet_runtime::router::{Router, TraceProgress, TraceRequest};
use common::{build_simulated, clean, replaceable, run_until_count};
use std::time::Duration;

/// An Ethernet frame with a UDP packet from 10.0.0.2 to 10.1.0.2.
const FRAME: &str = "DATA \\<020000000001 020000000002 0800
    4500002e 00000000 401166bb 0a000002 0a010002 00350035 001a0000
    0000000000000000 0000000000000000 0000>";

fn request(filter: Box<dyn PacketFilter>, source: Option<&str>, packets: u32) -> TraceRequest {
    TraceRequest { filter, source: source.map(str::to_owned), packets, snap_len: 200 }
}

fn start(router: &mut Router, pattern: &str, packets: u32) -> u64 {
    let filter: Box<dyn PacketFilter> = match pattern {
        "" => Box::new(AnyPacket),
        pattern => Box::new(IpPatternFilter::new(pattern).unwrap()),
    };
    router.start_trace(request(filter, None, packets)).unwrap()
}

/// A step in short words.
fn words(step: &TraceStep) -> String {
    let result = |result: &TraceResult| match result {
        TraceResult::Sent { output, packet } => format!("[{output}] {}", packet.length),
        TraceResult::Dropped { reason } => reason.name.clone(),
        TraceResult::Consumed => "consumed".to_owned(),
        TraceResult::Kept => "kept".to_owned(),
    };
    let what = match &step.kind {
        TraceStepKind::Entered { output, packet } => format!("[{output}] {}", packet.length),
        TraceStepKind::Visited { input, before, results, .. } => {
            let results: Vec<String> = results.iter().map(result).collect();
            format!("[{input}] {} => {}", before.length, results.join(", "))
        }
        TraceStepKind::Taken { packet } => format!("lets go {}", packet.length),
        TraceStepKind::Dropped { reason } => reason.name.clone(),
        TraceStepKind::Finished => "finished".to_owned(),
    };
    format!("{} {}: {what}", step.packet, step.element)
}

fn read(router: &mut Router, trace: u64) -> (Vec<String>, TraceProgress) {
    let progress = router.read_trace(trace).unwrap();
    (progress.steps.iter().map(words).collect(), progress)
}

#[test]
fn a_packet_is_followed_past_chains_queues_and_clones() {
    for workers in [1, 2] {
        let text = format!(
            "src :: InfiniteSource({FRAME}, LIMIT 5) -> s :: Strip(14) -> check :: CheckIPHeader
                -> ttl :: DecIPTTL -> tee :: Tee;
             tee[0] -> q :: Queue(10) -> u :: Unqueue -> end :: Discard;
             tee[1] -> c :: IPClassifier(tcp, -); c[0] -> Discard; c[1] -> e :: EtherEncap(0x800,
                1:1:1:1:1:1, 2:2:2:2:2:2) -> out :: Discard"
        );
        let mut router = build_simulated(&text, workers);
        let trace = start(&mut router, "udp", 1);
        router.settle(1000);
        let (steps, progress) = read(&mut router, trace);
        let expected = [
            "1 src: [0] 60",
            "1 s: [0] 60 => [0] 46",
            "1 check: [0] 46 => [0] 46",
            "1 ttl: [0] 46 => [0] 46",
            "1 tee: [0] 46 => [0] 46, [1] 46",
            "1 q: [0] 46 => kept",
            "1 c: [0] 46 => [1] 46",
            "1 e: [0] 46 => [0] 60",
            "1 out: [0] 60 => consumed",
            "1 q: lets go 46",
            "1 u: lets go 46",
            "1 end: [0] 46 => consumed",
            "1 end: finished",
        ];
        assert_eq!(steps, expected);
        assert_eq!((progress.begun, progress.remaining, progress.lost_steps), (1, 0, 0));
        // The bytes before and after, and the annotations.
        let ttl = progress.steps.iter().find(|step| step.element == "ttl").unwrap();
        let TraceStepKind::Visited { before, results, .. } = &ttl.kind else { panic!("a visit") };
        let TraceResult::Sent { packet, .. } = &results[0] else { panic!("it goes on") };
        assert_eq!((before.bytes[8], packet.bytes[8]), (64, 63));
        // All packets are counted as without a trace.
        assert_eq!(router.read("end.count").unwrap().trim(), "5");
        assert_eq!(router.read("out.count").unwrap().trim(), "5");
        router.end_trace(trace).unwrap();
        assert!(router.read_trace(trace).is_err());
    }
}

#[test]
fn drops_have_their_reasons() {
    let expired = FRAME.replace("401166bb", "0111a5bb");
    let text = format!(
        "src :: InfiniteSource({expired}, LIMIT 3) -> s :: Strip(14) -> check :: CheckIPHeader
            -> ttl :: DecIPTTL -> Discard; other :: InfiniteSource({FRAME}, LIMIT 3)
            -> t :: Tee -> q :: Queue(2) -> Idle; t[1] -> Discard; third :: RatedSource(LIMIT 1, RATE 1) -> c :: Classifier(0/ff, -)
            -> Discard; c[1] -> Discard; fourth :: InfiniteSource(LIMIT 1) -> ps :: PaintSwitch
            -> Discard"
    );
    let mut router = build_simulated(&text, 1);
    let trace = start(&mut router, "", 20);
    router.settle(1000);
    let (steps, _) = read(&mut router, trace);
    let all = steps.join("\n");
    let count = |text: &str| all.matches(text).count();
    assert_eq!(count("ttl: [0] 46 => expired"), 3, "{all}");
    assert_eq!(count("ttl: finished"), 3, "{all}");
    assert_eq!((count("q: [0] 60 => kept"), count("q: [0] 60 => full")), (2, 1), "{all}");
    assert_eq!((count("consumed"), count("finished")), (5, 6), "{all}");
}

#[test]
fn a_filter_and_a_source_choose_and_all_others_stay_in_bursts() {
    let text = format!(
        "a :: InfiniteSource({FRAME}, LIMIT 100) -> c :: Counter -> d :: Discard;
         b :: InfiniteSource({}, LIMIT 100) -> c",
        FRAME.replace("0a010002", "0a010003")
    );
    let mut router = build_simulated(&text, 1);
    let of_a = router.start_trace(request(Box::new(AnyPacket), Some("a"), 2)).unwrap();
    let to_3 = start(&mut router, "dst host 10.1.0.3", 3);
    let none = start(&mut router, "tcp", 3);
    router.settle(1000);
    let (steps, progress) = read(&mut router, of_a);
    assert_eq!(steps.iter().filter(|it| it.ends_with("a: [0] 60")).count(), 2, "{steps:?}");
    assert_eq!((progress.begun, progress.missed), (2, 0));
    let (steps, _) = read(&mut router, to_3);
    assert_eq!(steps.iter().filter(|it| it.ends_with("b: [0] 60")).count(), 3, "{steps:?}");
    assert_eq!(steps.iter().filter(|it| it.ends_with("d: finished")).count(), 3, "{steps:?}");
    let (steps, progress) = read(&mut router, none);
    assert_eq!((steps.len(), progress.begun, progress.remaining), (0, 0, 3));
    assert_eq!(router.read("c.count").unwrap().trim(), "200");
    assert_eq!(router.read("d.count").unwrap().trim(), "200");
}

#[test]
fn order_is_kept_around_traced_packets() {
    let text = "src :: InfiniteSource(LENGTH 60, LIMIT 64, BURST 64) -> n :: NumberPacket
        -> ck :: Counter -> q :: Queue(100) -> Idle";
    let mut router = build_simulated(text, 1);
    let trace = start(&mut router, "", 7);
    router.settle(1000);
    let (_, progress) = read(&mut router, trace);
    assert_eq!(progress.begun, 7);
    assert_eq!(router.read("q.length").unwrap().trim(), "64");
}

#[test]
fn a_kept_packet_is_followed_through_a_hot_swap() {
    let text = |active: &str| {
        format!(
            "src :: RatedSource({FRAME}, RATE 100, LIMIT 1) -> q :: Queue(5)
                -> u :: Unqueue(ACTIVE {active}) -> d :: Discard"
        )
    };
    let mut router = replaceable(&text("false"));
    let trace = start(&mut router, "", 1);
    run_until_count(&mut router, "q.length", 1);
    let (steps, _) = read(&mut router, trace);
    assert_eq!(steps, ["1 src: [0] 60", "1 q: [0] 60 => kept"]);
    router.write("hotconfig", &text("true")).unwrap();
    run_until_count(&mut router, "d.count", 1);
    let (steps, _) = read(&mut router, trace);
    let expected =
        ["1 q: lets go 60", "1 u: lets go 60", "1 d: [0] 60 => consumed", "1 d: finished"];
    assert_eq!(steps, expected);
    clean(router);
}

#[test]
fn a_trace_ends_with_its_lease() {
    let text = "src :: RatedSource(RATE 10, LIMIT 1000) -> c :: Counter -> d :: Discard";
    let mut router = build_simulated(text, 1);
    let trace = start(&mut router, "", 1000);
    router.advance(Duration::from_secs(60));
    let (steps, _) = read(&mut router, trace);
    let begun = steps.iter().filter(|it| it.contains("src: [0]")).count();
    assert!((90..=110).contains(&begun), "{begun}");
    assert_eq!(router.read("d.count").unwrap().trim(), "601");
}

#[test]
fn packets_kept_for_a_trace_that_has_ended_leave_their_tags_to_the_next() {
    let text = "a :: RatedSource(RATE 1000, LIMIT 100) -> q :: Queue(200) -> Idle;
        b :: RatedSource(RATE 1, LIMIT 1000) -> d :: Discard";
    let mut router = build_simulated(text, 1);
    let of_a = router.start_trace(request(Box::new(AnyPacket), Some("a"), 100)).unwrap();
    router.advance(Duration::from_secs(1));
    let (_, progress) = read(&mut router, of_a);
    // All tags are in use, by packets that stay.
    assert_eq!((progress.begun, progress.remaining), (31, 69));
    router.advance(Duration::from_secs(20));
    let of_b = router.start_trace(request(Box::new(AnyPacket), Some("b"), 2)).unwrap();
    router.advance(Duration::from_secs(5));
    let (steps, progress) = read(&mut router, of_b);
    assert_eq!((progress.begun, progress.remaining), (2, 0), "{steps:?}");
    assert!(router.read_trace(of_a).is_err());
}

#[test]
fn errors_name_the_sources_and_the_limits() {
    let mut router =
        build_simulated("src :: InfiniteSource(LIMIT 1) -> c :: Counter -> Discard", 1);
    let error = router.start_trace(request(Box::new(AnyPacket), Some("srd"), 1)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "no packets come from an element named 'srd'; did you mean 'src'?"
    );
    assert!(router.start_trace(request(Box::new(AnyPacket), Some("c"), 1)).is_err());
    for _ in 0..8 {
        start(&mut router, "", 1);
    }
    let error = router.start_trace(request(Box::new(AnyPacket), None, 1)).unwrap_err();
    assert!(error.to_string().contains("8 traces"), "{error}");
    router.advance(Duration::from_secs(20));
    start(&mut router, "", 1);
}
