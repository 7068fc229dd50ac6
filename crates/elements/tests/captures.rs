//! Captures of packets in whole routers.
#![allow(clippy::unwrap_used)] // a test

mod common;

use castanet_element::exec::{
    AnyPacket, CapturePlace, CaptureSide, CapturedDrops, CapturedPacket, IpPatternFilter,
    PacketFilter,
};
use castanet_runtime::router::{CapturePlaceName, CaptureRequest, Router};
use common::{build_simulated, clean, number, replaceable, run_until_count};
use std::time::Duration;

/// An Ethernet frame with a UDP packet from 10.0.0.2 to 10.1.0.2.
const FRAME: &str = "DATA \\<020000000001 020000000002 0800
    4500002e 00000000 401166bb 0a000002 0a010002 00350035 001a0000
    0000000000000000 0000000000000000 0000>";

fn request(places: &[(&str, Option<CaptureSide>, Option<usize>)]) -> CaptureRequest {
    let place = |&(name, side, port): &(&str, _, _)| {
        let name = name.to_owned();
        CapturePlaceName { name, side, port }
    };
    CaptureRequest {
        filter: Box::new(AnyPacket),
        places: places.iter().map(place).collect(),
        drops: None,
        packets: u64::MAX,
        snap_len: 65_535,
    }
}

fn all(router: &mut Router, capture: u64) -> Vec<CapturedPacket> {
    let mut packets = Vec::new();
    loop {
        let progress = router.read_capture(capture).unwrap();
        if progress.packets.is_empty() {
            return packets;
        }
        packets.extend(progress.packets);
    }
}

fn places(packets: &[CapturedPacket]) -> Vec<(String, CapturePlace, usize)> {
    packets.iter().map(|it| (it.element.clone(), it.place.clone(), it.packet.length)).collect()
}

/// A path of one fused chain between source and end.
fn chain(limit: usize) -> String {
    format!(
        "src :: InfiniteSource({FRAME}, LIMIT {limit}) -> s :: Strip(14) -> check :: CheckIPHeader
            -> ttl :: DecIPTTL -> p :: Paint(3) -> end :: Discard; ttl[1] -> errors :: Discard"
    )
}

#[test]
fn packets_are_captured_inside_a_chain_and_at_its_ends() {
    let mut router = build_simulated(&chain(3), 1);
    let capture = router
        .start_capture(request(&[
            ("src", None, None),
            ("check", Some(CaptureSide::Input), Some(0)),
            ("ttl", Some(CaptureSide::Output), Some(0)),
            ("end", None, None),
        ]))
        .unwrap();
    router.settle(100);
    let packets = all(&mut router, capture);
    let places = places(&packets);
    for (element, place, length) in [
        ("src", CapturePlace::Output(0), 60),
        ("check", CapturePlace::Input(0), 46),
        ("ttl", CapturePlace::Output(0), 46),
        ("end", CapturePlace::Input(0), 46),
    ] {
        let there = places.iter().filter(|it| **it == (element.to_owned(), place.clone(), length));
        assert_eq!(there.count(), 3, "{element} in {places:?}");
    }
    assert_eq!(places.len(), 12);
    // The bytes are those of the moment.
    let ttl =
        |element: &str| packets.iter().find(|it| it.element == element).unwrap().packet.bytes[8];
    assert_eq!((ttl("check"), ttl("ttl")), (64, 63));
    assert_eq!(router.read("end.count").unwrap().trim(), "3");
    router.end_capture(capture).unwrap();
    assert!(router.read_capture(capture).is_err());
}

#[test]
fn without_a_place_packets_are_captured_where_they_enter() {
    let mut router = build_simulated(&chain(3), 1);
    let capture = router.start_capture(request(&[])).unwrap();
    router.settle(100);
    let places = places(&all(&mut router, capture));
    assert_eq!(places, vec![("src".to_owned(), CapturePlace::Output(0), 60); 3]);
}

#[test]
fn only_packets_that_match_are_captured_and_no_more_than_asked_for() {
    let text = format!("{}; other :: InfiniteSource(LIMIT 10) -> Discard", chain(10));
    let mut router = build_simulated(&text, 1);
    let filter =
        |text: &str| -> Box<dyn PacketFilter> { Box::new(IpPatternFilter::new(text).unwrap()) };
    let places = [("src", None, None), ("other", None, None)];
    let udp = CaptureRequest { filter: filter("udp"), packets: 4, ..request(&places) };
    let udp = router.start_capture(udp).unwrap();
    let tcp = CaptureRequest { filter: filter("tcp"), ..request(&places) };
    let tcp = router.start_capture(tcp).unwrap();
    let cut = CaptureRequest { snap_len: 20, ..request(&[("src", None, None)]) };
    let cut = router.start_capture(cut).unwrap();
    router.settle(100);
    let progress = router.read_capture(udp).unwrap();
    assert_eq!((progress.packets.len(), progress.is_full), (4, true));
    assert!(all(&mut router, tcp).is_empty());
    let cut = all(&mut router, cut);
    assert_eq!((cut.len(), cut[0].packet.length, cut[0].packet.bytes.len()), (10, 60, 20));
}

#[test]
fn drops_are_captured_by_element_and_reason() {
    let bad = FRAME.replace("66bb", "66bc");
    let expired = FRAME.replace("401166bb", "0111a5bb");
    let text = format!(
        "InfiniteSource({bad}, LIMIT 3) -> s :: Strip(14) -> check :: CheckIPHeader
            -> ttl :: DecIPTTL -> Discard; InfiniteSource({expired}, LIMIT 2) -> s"
    );
    let drops = |element: Option<&str>, reason: Option<&str>| CaptureRequest {
        drops: Some(CapturedDrops {
            elements: element.map(str::to_owned).into_iter().collect(),
            reason: reason.map(str::to_owned),
        }),
        ..request(&[])
    };
    let mut router = build_simulated(&text, 1);
    let every = router.start_capture(drops(None, None)).unwrap();
    let at_ttl = router.start_capture(drops(Some("ttl"), None)).unwrap();
    let checksum = router.start_capture(drops(None, Some("bad_checksum"))).unwrap();
    let error = |router: &mut Router, wanted| router.start_capture(wanted).unwrap_err().to_string();
    let wrong = error(&mut router, drops(Some("tttl"), None));
    assert_eq!(wrong, "no element named 'tttl'; did you mean 'ttl'?");
    let wrong = error(&mut router, drops(Some("ttl"), Some("expried")));
    assert!(wrong.ends_with("'expried'; did you mean 'expired'?"), "{wrong}");
    assert!(router.start_capture(drops(Some("ttl"), Some("bad_checksum"))).is_err());
    router.settle(100);
    let count = |router: &mut Router, capture: u64, element: &str, reason: &str| {
        let packets = all(router, capture);
        let is_there = |it: &&CapturedPacket| match &it.place {
            CapturePlace::Dropped(its) => it.element == element && its.name == reason,
            _ => false,
        };
        (packets.iter().filter(is_there).count(), packets.len())
    };
    assert_eq!(count(&mut router, every, "check", "bad_checksum"), (3, 5));
    assert_eq!(count(&mut router, at_ttl, "ttl", "expired"), (2, 2));
    assert_eq!(count(&mut router, checksum, "check", "bad_checksum"), (3, 3));
}

#[test]
fn pulled_packets_are_captured() {
    let text = "src :: InfiniteSource(LIMIT 5) -> q :: Queue(10) -> c :: Counter -> u :: Unqueue
        -> end :: Discard";
    let mut router = build_simulated(text, 1);
    let places = ["q", "c", "u", "end"].map(|name| (name, None, None));
    let taken = ("q", Some(CaptureSide::Output), None);
    let left = ("u", Some(CaptureSide::Output), None);
    let capture =
        router.start_capture(request(&[&places[..2], &places[3..], &[taken, left]].concat()));
    router.settle(100);
    let places = places_of(&mut router, capture.unwrap());
    for (element, place) in [
        ("q", CapturePlace::Input(0)),
        ("q", CapturePlace::Output(0)),
        ("c", CapturePlace::Input(0)),
        ("u", CapturePlace::Output(0)),
        ("end", CapturePlace::Input(0)),
    ] {
        let there = places.iter().filter(|it| (it.0.as_str(), &it.1) == (element, &place));
        assert_eq!(there.count(), 5, "{element} {place:?} in {places:?}");
    }
}

fn places_of(router: &mut Router, capture: u64) -> Vec<(String, CapturePlace, usize)> {
    places(&all(router, capture))
}

#[test]
fn a_capture_goes_on_through_a_hot_swap_and_ends_with_its_lease() {
    let text = |class: &str| {
        format!("src :: RatedSource({FRAME}, RATE 1000) -> c :: {class} -> d :: Discard")
    };
    let mut router = replaceable(&text("Null"));
    let capture = router.start_capture(request(&[("d", None, None)])).unwrap();
    run_until_count(&mut router, "d.count", 5);
    assert!(all(&mut router, capture).len() >= 5);
    router.write("hotconfig", &text("Counter")).unwrap();
    run_until_count(&mut router, "c.count", 5);
    let before = number(&mut router, "c.count");
    assert!(all(&mut router, capture).len() as u64 >= before);
    clean(router);

    let text = "src :: RatedSource(RATE 10) -> c :: Counter -> d :: Discard";
    let mut router = build_simulated(text, 1);
    let capture = router.start_capture(request(&[("c", None, None)])).unwrap();
    router.advance(Duration::from_secs(60));
    let seen = all(&mut router, capture).len();
    assert!((90..=110).contains(&seen), "{seen}");
}

#[test]
fn errors_name_the_place() {
    let mut router = build_simulated(&chain(1), 1);
    let error = |router: &mut Router, place| {
        router.start_capture(request(&[place])).unwrap_err().to_string()
    };
    let wrong = error(&mut router, ("chekc", None, None));
    assert_eq!(wrong, "no element named 'chekc'; did you mean 'check'?");
    let wrong = error(&mut router, ("s", Some(CaptureSide::Output), Some(3)));
    assert_eq!(wrong, "'s' has 1 output");
}
