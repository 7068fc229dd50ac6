//! Tests of metering and export.

use super::*;
use castanet_wire::ipfix::{
    Counts, DecodedMessage, Decoder, Element, EndReason, FLOW_TEMPLATES, FlowRecord,
    RandomSampling, STATISTICS_TEMPLATE,
};
use castanet_wire::sketch;
use proptest::prelude::*;
use std::collections::BTreeMap;

const SECOND: u64 = 1_000_000_000;
const LIMITS: FlowLimits = FlowLimits { inactive: 15 * SECOND, active: 60 * SECOND, flows: 100 };
const SETTINGS: ExporterSettings = ExporterSettings {
    domain: 7,
    max_message: 512,
    template_interval: 60 * SECOND,
    template_messages: 5,
    sampling: 1,
    has_statistics: true,
};

fn bytes(text: &str) -> Vec<u8> {
    sketch::build(text).unwrap_or_else(|error| panic!("{text}: {error:?}")).bytes
}

fn observed(text: &str) -> ObservedPacket {
    ObservedPacket::of(&bytes(text), 0, 0, 0).expect(text)
}

fn cache(limits: FlowLimits) -> FlowCache {
    let mut cache = FlowCache::default();
    cache.configure(limits, 3);
    cache
}

/// Counts packets at times in seconds; what has ended until then, and by the end of `until`.
fn meter(cache: &mut FlowCache, packets: &[(u64, &str)], until: u64) -> Vec<FlowRecord> {
    let mut ended = Vec::new();
    for (time, text) in packets {
        cache.expire(time * SECOND, usize::MAX, &mut |it| ended.push(*it));
        cache.count(&observed(text), time * SECOND, &mut |it| ended.push(*it));
    }
    cache.expire(until * SECOND, usize::MAX, &mut |it| ended.push(*it));
    ended
}

/// Packets, bytes, start and end in seconds, and the reason.
fn summary(record: &FlowRecord) -> (u64, u64, u64, u64, EndReason) {
    let FlowRecord { counts, start, end, reason, .. } = record;
    (counts.packets, counts.octets, start / 1000, end / 1000, *reason)
}

fn summaries(ended: &[FlowRecord]) -> Vec<(u64, u64, u64, u64, EndReason)> {
    ended.iter().map(summary).collect()
}

#[test]
fn a_flow_ends_after_the_inactive_timeout() {
    const A: &str = "1.0.0.1:5 > 2.0.0.2:6 udp len 100";
    const B: &str = "2.0.0.2:6 > 1.0.0.1:5 udp len 60";
    let mut cache = cache(LIMITS);
    assert!(meter(&mut cache, &[(100, A), (110, A), (110, B), (124, A)], 124).is_empty());
    assert_eq!(cache.len(), 2);
    let ended = meter(&mut cache, &[], 126);
    assert_eq!(summaries(&ended), [(1, 60, 110, 110, EndReason::IdleTimeout)]);
    // A packet ends a flow that is over, also before anybody has looked for such flows.
    let mut ended = Vec::new();
    cache.count(&observed(A), 139 * SECOND, &mut |it| ended.push(*it));
    assert_eq!(summaries(&ended), [(3, 300, 100, 124, EndReason::IdleTimeout)]);
    assert_eq!(
        (ended[0].src, ended[0].dst),
        (("1.0.0.1".parse().unwrap(), 5), ("2.0.0.2".parse().unwrap(), 6))
    );
    assert_eq!((ended[0].protocol, ended[0].ingress), (17, 3));
    assert_eq!(cache.len(), 1);
}

#[test]
fn an_active_flow_has_a_record_for_each_active_timeout() {
    let packets: Vec<_> = (0..13).map(|at| (100 + at * 10, "1::1 > 2::2 udp len 70")).collect();
    let mut cache = cache(LIMITS);
    let ended = meter(&mut cache, &packets, 221);
    let active = EndReason::ActiveTimeout;
    assert_eq!(summaries(&ended), [(6, 420, 100, 150, active), (6, 420, 160, 210, active)]);
    let mut ended = Vec::new();
    cache.clear(&mut |it| ended.push(*it));
    assert_eq!(summaries(&ended), [(1, 70, 220, 220, EndReason::ForcedEnd)]);
    assert!(cache.is_empty());
    assert!(meter(&mut cache, &[(300, "1::1 > 2::2 udp")], 300).is_empty());
}

#[test]
fn tcp_ends_flows() {
    let mut cache = cache(LIMITS);
    let tcp = |flags: &str| format!("1.0.0.1:5 > 2.0.0.2:6 tcp {flags}");
    let [syn, ack, fin, rst] = ["syn", "ack 1", "fin ack 1", "rst"].map(tcp);
    let packets = [(100, &*syn), (101, &*fin), (101, &*ack)];
    let ended = meter(&mut cache, &packets, 103);
    assert_eq!(summaries(&ended), [(3, 120, 100, 101, EndReason::EndOfFlow)]);
    assert_eq!(ended[0].counts.tcp_flags, 0x13);
    let ended = meter(&mut cache, &[(200, &*rst), (200, &*syn), (201, &*ack)], 203);
    assert_eq!(summaries(&ended), [(1, 40, 200, 200, EndReason::EndOfFlow)]);
    let ended = meter(&mut cache, &[], 220);
    assert_eq!(summaries(&ended), [(2, 80, 200, 201, EndReason::IdleTimeout)]);
}

#[test]
fn flows_end_for_lack_of_room() {
    let mut cache = cache(FlowLimits { flows: 3, ..LIMITS });
    let mut ended = Vec::new();
    for host in 0..1000_u32 {
        let text = match host % 2 {
            0 => format!("1.0.{}.{} > 2.0.0.2 udp", host / 250, host % 250),
            _ => format!("1::{host:x} > 2::2 udp"),
        };
        cache.count(&observed(&text), 100 * SECOND, &mut |it| ended.push(*it));
        assert!(cache.len() <= 3);
    }
    assert_eq!((ended.len(), cache.len(), cache.evicted()), (997, 3, 997));
    assert!(ended.iter().all(|it| it.reason == EndReason::LackOfResources));
}

#[test]
fn packets_without_ports_have_flows_too() {
    let ends = |text: &str, network, vlan| {
        let mut cache = cache(LIMITS);
        let packet = ObservedPacket::of(&bytes(text), network, 0, vlan).expect(text);
        cache.count(&packet, SECOND, &mut |_| panic!("nothing ends"));
        let mut record = None;
        cache.clear(&mut |it| record = Some(*it));
        record.expect("has ended")
    };
    let of = |text| {
        let record = ends(text, 0, 0);
        (record.src.1, record.dst.1, record.protocol)
    };
    assert_eq!(of("1.0.0.1 > 2.0.0.2 icmp type 3 code 1"), (0, 0x0301, 1));
    assert_eq!(of("1.0.0.1:5 > 2.0.0.2:6 udp frag 0+ len 36"), (5, 6, 17));
    assert_eq!(of("1.0.0.1 > 2.0.0.2 udp frag 16 len 36"), (0, 0, 17));
    assert_eq!(of("1.0.0.1 > 2.0.0.2 proto 99 len 40"), (0, 0, 99));
    assert_eq!(of("hex 45000016 00000000 40110000 01000001 02000002 0005"), (0, 0, 17));
    let record = ends("1.0.0.1:5 > 2.0.0.2:6 udp tos 184", 0, 12);
    assert_eq!((record.class, record.vlan), (184, 12));
    assert_eq!(ObservedPacket::of(&[0x45; 19], 0, 0, 0), None);
    assert_eq!(ObservedPacket::of(&[], 3, 0, 0), None);
}

#[test]
fn bytes_that_were_not_captured_count() {
    let whole = bytes("1.0.0.1:5 > 2.0.0.2:6 udp len 1000");
    for (kept, cut, expected) in
        [(1000, 0, 1000), (60, 940, 1000), (60, 100, 160), (60, 9000, 1000)]
    {
        let packet = ObservedPacket::of(&whole[..kept], 0, cut, 0).expect("has a header");
        assert_eq!(packet.octets, expected);
    }
    // Padding behind the packet does not count.
    let padded = [&whole[..], &[0; 10]].concat();
    assert_eq!(ObservedPacket::of(&padded, 0, 0, 0).map(|it| it.octets), Some(1000));
}

#[test]
fn one_packet_of_each_group_is_sampled() {
    let mut sampler = Sampler::new(5);
    let mut places = [0; 10];
    for _ in 0..10_000 {
        let group: Vec<bool> = (0..10).map(|_| sampler.takes_next(10)).collect();
        assert_eq!(group.iter().filter(|it| **it).count(), 1);
        places[group.iter().position(|it| *it).expect("one is sampled")] += 1;
    }
    assert!(places.iter().all(|count| (900..1100).contains(count)), "{places:?}");
    assert_eq!((0..20).filter(|_| sampler.takes_next(2)).count(), 10);
    assert!((0..20).all(|_| sampler.takes_next(1)));
}

#[test]
fn counts_of_connections_begin_anew_when_taken() {
    let mut counters = ConnectionCounters::default();
    counters.count(5, 0, 40, SECOND);
    assert_eq!((counters.first(5), counters.take(5)), (None, None), "there was no room");
    counters.reserve(1025);
    for (direction, octets, time) in [(0, 40, 3), (1, 60, 4), (0, 1000, 5)] {
        counters.count(1024, direction, octets, time * SECOND);
    }
    assert_eq!(counters.first(1024), Some(3 * SECOND));
    let counts = |octets, packets| Counts { octets, packets, tcp_flags: 0 };
    let expected = ConnectionCounts {
        first: 3 * SECOND,
        last: 5 * SECOND,
        counts: [counts(1040, 2), counts(60, 1)],
    };
    assert_eq!(counters.take(1024), Some(expected));
    assert_eq!((counters.first(1024), counters.take(1024), counters.take(1)), (None, None, None));
}

/// A collector, and the way to it.
#[derive(Default)]
struct Collector {
    decoder: Decoder,
    messages: Vec<DecodedMessage>,
    is_down: bool,
    was_refused: bool,
}

impl Transport for Collector {
    fn send(&mut self, message: &[u8]) -> bool {
        if !self.is_down {
            self.messages.push(self.decoder.decode(message).expect("is a message"));
        }
        !self.is_down
    }

    fn was_refused(&mut self) -> bool {
        std::mem::take(&mut self.was_refused)
    }
}

impl Collector {
    fn flow_records(&self) -> usize {
        let all = self.messages.iter().flat_map(|it| &it.records);
        all.filter(|it| it.template < STATISTICS_TEMPLATE.id).count()
    }
}

fn exporter(settings: ExporterSettings) -> (Exporter, Collector) {
    (Exporter::new(settings, FLOW_TEMPLATES), Collector::default())
}

fn any_record() -> FlowRecord {
    let mut cache = cache(LIMITS);
    cache.count(&observed("1.0.0.1:5 > 2.0.0.2:6 udp"), SECOND, &mut |_| {});
    let mut record = None;
    cache.clear(&mut |it| record = Some(*it));
    record.expect("has ended")
}

#[test]
fn templates_come_first_and_again() {
    let (mut it, mut link) = exporter(ExporterSettings { sampling: 10, ..SETTINGS });
    let record = any_record();
    it.keep_alive(100 * SECOND, &mut link);
    let templates: Vec<u16> = link.messages.iter().flat_map(|it| it.templates.clone()).collect();
    assert_eq!(templates, [256, 257, 258, 259, 264, 265]);
    let options = link.messages.iter().flat_map(|it| &it.records);
    let population = options.filter(|it| it.template == RandomSampling::TEMPLATE.id);
    let number = |element| population.clone().next().and_then(|it| it.number(element));
    assert_eq!(number(Element::SamplingPopulation), Some(10));
    assert_eq!(number(Element::SamplingInterval), Some(10));
    assert_eq!(population.clone().count(), 1);
    let before = link.messages.len();
    // By the number of messages, and by time.
    for at in 0..SETTINGS.template_messages as usize - before {
        it.add(&record, 101 * SECOND, &mut link);
        it.flush(101 * SECOND, &mut link);
        assert!(link.messages[before + at].templates.is_empty());
    }
    let before = link.messages.len();
    it.keep_alive(102 * SECOND, &mut link);
    assert!(!link.messages[before].templates.is_empty());
    let before = link.messages.len();
    it.keep_alive(103 * SECOND, &mut link);
    assert_eq!(link.messages.len(), before);
    it.keep_alive(162 * SECOND, &mut link);
    assert!(!link.messages[before].templates.is_empty());
    // After a change of parameters.
    it.configure(ExporterSettings { domain: 9, max_message: 0, ..SETTINGS });
    let before = link.messages.len();
    it.keep_alive(163 * SECOND, &mut link);
    assert!(link.messages[before..].iter().all(|it| it.header.length() <= 256));
    assert_eq!(link.messages[before].header.domain(), 7);
}

#[test]
fn templates_come_again_in_a_row_of_full_messages() {
    let ((mut it, mut link), record) = (exporter(SETTINGS), any_record());
    (0..1000).for_each(|_| it.add(&record, SECOND, &mut link));
    let has_templates = |it: &&DecodedMessage| !it.templates.is_empty();
    let count = link.messages.iter().filter(has_templates).count();
    assert!(count >= link.messages.len() / 5, "{count} of {}", link.messages.len());
}

#[test]
fn lost_messages_are_counted_and_leave_a_gap() {
    let ((mut it, mut link), record) = (exporter(SETTINGS), any_record());
    for (is_down, was_refused) in [(false, false), (true, false), (false, false), (false, true)] {
        (link.is_down, link.was_refused) = (is_down, was_refused);
        (0..3).for_each(|_| it.add(&record, SECOND, &mut link));
        it.flush(SECOND, &mut link);
    }
    it.count_lost(10);
    let statistics = it.statistics();
    // Three were lost, three refused that had gone out, and ten never came.
    assert_eq!((statistics.records, statistics.lost_records), (9, 16));
    assert_eq!(link.flow_records(), 9);
    let templates = |message: &DecodedMessage| message.templates.len();
    let first = |sequence| link.messages.iter().find(|it| it.header.sequence() == sequence);
    let [before, after] = [0, 1 + 3 + 3].map(|sequence| first(sequence).expect("is there"));
    assert_eq!((templates(before), templates(after)), (5, 5), "templates are sent again");
    let last = link.messages.last().expect("is there");
    assert_eq!((templates(last), last.records.len()), (5, 1 + 3));
}

proptest! {
    /// Every packet is in exactly one record, whatever ends the flows.
    #[test]
    fn records_add_up(
        packets in prop::collection::vec((0..30_u64, 0..12_u8, 0..4_u8, 0..3_usize), 0..200),
        flows in 1..20_usize,
    ) {
        let mut cache = cache(FlowLimits { flows, ..LIMITS });
        let (mut now, mut expected, (mut exporter, mut link)) = (SECOND, BTreeMap::new(), exporter(SETTINGS));
        for (pause, host, flags, family) in packets {
            now += pause * SECOND;
            let flags = ["syn", "", "fin", "rst"][usize::from(flags)];
            let text = match family {
                0 => format!("1.0.0.{host}:5 > 2.0.0.2:6 tcp {flags}"),
                1 => format!("[1::{host}]:5 > [2::2]:6 tcp {flags}"),
                _ => format!("1.0.0.{host} > 2.0.0.2 icmp"),
            };
            let packet = observed(&text);
            let sum: &mut (u64, u64) = expected.entry(format!("{:?}", packet.key)).or_default();
            *sum = (sum.0 + 1, sum.1 + packet.octets);
            let mut add = |ended: &FlowRecord| exporter.add(ended, now, &mut link);
            cache.expire(now, 3, &mut add);
            cache.count(&packet, now, &mut add);
            prop_assert!(cache.len() <= flows);
        }
        cache.clear(&mut |ended| exporter.add(ended, now, &mut link));
        exporter.flush(now, &mut link);
        let (mut packets, mut octets, mut sequence) = (0, 0, 0);
        for message in &link.messages {
            prop_assert_eq!((message.header.sequence(), message.unknown_sets), (sequence, 0));
            prop_assert!(usize::from(message.header.length()) <= SETTINGS.max_message);
            sequence += message.records.len() as u32;
            for record in &message.records {
                packets += record.number(Element::PacketDeltaCount).unwrap_or(0);
                octets += record.number(Element::OctetDeltaCount).unwrap_or(0);
            }
        }
        let sums = expected.values().fold((0, 0), |sum, it| (sum.0 + it.0, sum.1 + it.1));
        prop_assert_eq!((packets, octets), sums);
    }

    #[test]
    fn hostile_packets_do_no_harm(
        bytes in prop::collection::vec(any::<u8>(), 0..80),
        version in prop::sample::select(vec![0x45_u8, 0x46, 0x4f, 0x60]),
        network in 0..4_usize,
        cut in 0..2000_usize,
    ) {
        let mut bytes = bytes;
        bytes.get_mut(network).into_iter().for_each(|it| *it = version);
        if let Some(packet) = ObservedPacket::of(&bytes, network, cut, 0) {
            prop_assert!(packet.octets as usize <= bytes.len() - network + cut);
        }
    }
}
