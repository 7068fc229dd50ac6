//! Tests of messages: what is put together is read back, and hostile messages do no harm.

use super::*;
use proptest::prelude::*;
use std::net::IpAddr;

fn address(is_ip6: bool, bits: u128) -> IpAddr {
    match is_ip6 {
        false => IpAddr::V4((bits as u32).into()),
        true => IpAddr::V6(bits.into()),
    }
}

fn counts() -> impl Strategy<Value = Counts> {
    (any::<u64>(), any::<u64>(), any::<u8>()).prop_map(|(octets, packets, tcp_flags)| Counts {
        octets,
        packets,
        tcp_flags,
    })
}

fn record() -> impl Strategy<Value = FlowRecord> {
    let reason = prop::sample::select(vec![
        EndReason::IdleTimeout,
        EndReason::ActiveTimeout,
        EndReason::EndOfFlow,
        EndReason::ForcedEnd,
        EndReason::LackOfResources,
    ]);
    let ends = any::<[(u128, u16); 4]>();
    let rest = (any::<u8>(), 0..4096_u16, any::<u32>(), any::<u64>(), any::<u64>());
    let protocol = prop::sample::select(vec![1, 6, 17, 58, 132]);
    let reverse = prop::option::of(counts());
    (any::<[bool; 2]>(), ends, protocol, rest, reason, counts(), reverse).prop_map(
        |([is_ip6, is_translated], ends, protocol, rest, reason, counts, reverse)| {
            let [src, dst, post_src, post_dst] =
                ends.map(|(bits, port)| (address(is_ip6, bits), port));
            let (class, vlan, ingress, start, end) = rest;
            let translation = Translation { src: post_src, dst: post_dst };
            let translation = (is_translated && reverse.is_some()).then_some(translation);
            FlowRecord {
                src,
                dst,
                protocol,
                class,
                vlan,
                ingress,
                start,
                end,
                reason,
                counts,
                reverse,
                translation,
            }
        },
    )
}

fn all_templates() -> impl Iterator<Item = &'static Template> {
    let options = [&STATISTICS_TEMPLATE, &RandomSampling::TEMPLATE];
    FLOW_TEMPLATES.iter().chain(CONNECTION_TEMPLATES).chain(options)
}

/// A decoder that knows all templates of the exporter.
fn informed_decoder() -> Decoder {
    let mut decoder = Decoder::default();
    for template in all_templates() {
        let mut buffer = MessageBuffer::new(0);
        assert!(buffer.add_template(template), "each template fits into the shortest message");
        let decoded = decoder.decode(buffer.finish(0, 0, 7)).expect("is a message");
        assert_eq!(decoded.templates, [template.id]);
    }
    decoder
}

/// A template and two records as RFC 7011, appendix A, lays them out, with counts of eight bytes.
#[test]
fn a_message_has_the_layout_of_the_standard() {
    const TEMPLATE: Template = Template {
        id: 256,
        scope_count: 0,
        fields: &[
            Field::of(Element::SourceIpv4Address),
            Field::of(Element::DestinationIpv4Address),
            Field::of(Element::PacketDeltaCount),
            Field::of(Element::OctetDeltaCount),
        ],
    };
    let mut buffer = MessageBuffer::new(512);
    assert!(buffer.add_template(&TEMPLATE));
    for host in [12, 13] {
        let added = buffer.add_record(&TEMPLATE, |field| match field.element {
            Element::SourceIpv4Address => FieldValue::Address(IpAddr::from([192, 0, 2, host])),
            Element::DestinationIpv4Address => FieldValue::Address(IpAddr::from([192, 0, 2, 254])),
            Element::PacketDeltaCount => FieldValue::Unsigned(5009),
            _ => FieldValue::Unsigned(5_344_385),
        });
        assert!(added);
    }
    let expected = [
        &[0, 10, 0, 92, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3][..],
        &[0, 2, 0, 24, 1, 0, 0, 4, 0, 8, 0, 4, 0, 12, 0, 4, 0, 2, 0, 8, 0, 1, 0, 8],
        &[1, 0, 0, 52],
        &[192, 0, 2, 12, 192, 0, 2, 254],
        &[0, 0, 0, 0, 0, 0, 0x13, 0x91, 0, 0, 0, 0, 0, 0x51, 0x8c, 0x81],
        &[192, 0, 2, 13, 192, 0, 2, 254],
        &[0, 0, 0, 0, 0, 0, 0x13, 0x91, 0, 0, 0, 0, 0, 0x51, 0x8c, 0x81],
    ];
    assert_eq!(buffer.finish(1, 2, 3), expected.concat());
    assert_eq!((buffer.data_records(), buffer.is_empty()), (2, false));
    buffer.clear();
    assert_eq!((buffer.data_records(), buffer.is_empty()), (0, true));
}

#[test]
fn elements_and_templates_are_told_apart() {
    for (at, element) in Element::ALL.iter().enumerate() {
        assert_eq!(Element::of_number(element.number()), Some(*element));
        assert!(Element::ALL[..at].iter().all(|other| other.name() != element.name()));
        assert!(element.value_len() > 0);
    }
    let ids: Vec<u16> = all_templates().map(|template| template.id).collect();
    assert_eq!(ids, (256..256 + ids.len() as u16).collect::<Vec<_>>());
    for template in all_templates() {
        assert!(
            MessageHeader::LEN + SetHeader::LEN + template.record_len() < MessageBuffer::MIN_LEN
        );
        for (at, field) in template.fields.iter().enumerate() {
            assert!(!template.fields[..at].contains(field), "{} twice", field.element.name());
        }
    }
}

/// A template with a field of variable length (RFC 7011, section 7) in both forms, and padding.
#[test]
fn values_of_variable_length_are_read() {
    let template = [0, 2, 0, 18, 1, 0, 0, 2, 0, 82, 0xff, 0xff, 0, 4, 0, 1, 0, 0];
    let data = [1, 0, 0, 18, 2, b'e', b'0', 6, 255, 0, 1, b'x', 17, 255, 0, 0, 1, 0];
    let mut message = vec![0, 10, 0, 52, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    message.extend(template.iter().chain(&data));
    let decoded = Decoder::default().decode(&message).expect("is a message");
    let protocols = decoded.records.iter().map(|it| it.number(Element::ProtocolIdentifier));
    assert_eq!(protocols.collect::<Vec<_>>(), [Some(6), Some(17), Some(1)]);
    // The value says that it is longer than the set.
    message[38] = 200;
    assert_eq!(Decoder::default().decode(&message), Err(DecodeError::Value));
    message[3] += 1;
    assert_eq!(Decoder::default().decode(&message), Err(DecodeError::Header));
}

proptest! {
    #[test]
    fn records_are_read_back(
        records in prop::collection::vec(record(), 0..40),
        max_len in 0..1500_usize,
    ) {
        let mut decoder = informed_decoder();
        let mut buffer = MessageBuffer::new(max_len);
        let mut left = records.as_slice();
        let mut sequence = 0;
        while let Some(first) = left.first() {
            buffer.clear();
            let fits = |record: &&FlowRecord| {
                buffer.add_record(record.template(), |field| record.value(field))
            };
            let count = left.iter().take_while(fits).count();
            prop_assert!(count > 0, "{first:?} fits into no message");
            prop_assert_eq!(buffer.data_records() as usize, count);
            let bytes = buffer.finish(5, sequence, 7);
            prop_assert!(bytes.len() <= max_len.max(MessageBuffer::MIN_LEN));
            let decoded = decoder.decode(bytes).expect("is a message");
            prop_assert_eq!(decoded.header.sequence(), sequence);
            prop_assert_eq!((decoded.records.len(), decoded.unknown_sets), (count, 0));
            for (record, decoded) in left.iter().zip(&decoded.records) {
                prop_assert_eq!(record.template().id, decoded.template);
                for &field in record.template().fields {
                    prop_assert_eq!(decoded.value(field), Some(record.value(field)));
                }
            }
            sequence += count as u32;
            left = &left[count..];
        }
    }

    #[test]
    fn hostile_messages_do_no_harm(
        record in record(),
        changes in prop::collection::vec((0..300_usize, any::<u8>()), 0..8),
        cut in 0..400_usize,
        is_length_right: bool,
    ) {
        let mut buffer = MessageBuffer::new(1500);
        all_templates().for_each(|template| assert!(buffer.add_template(template)));
        buffer.add_record(record.template(), |field| record.value(field));
        let mut bytes = buffer.finish(5, 6, 7).to_vec();
        bytes.truncate(cut.max(1));
        for (at, byte) in changes {
            bytes.get_mut(at).into_iter().for_each(|it| *it = byte);
        }
        if is_length_right {
            let length = bytes.len() as u16;
            MessageHeader::from_prefix_mut(&mut bytes)
                .into_iter()
                .for_each(|(header, _)| header.set_length(length));
        }
        let mut decoder = informed_decoder();
        let first = decoder.decode(&bytes);
        prop_assert_eq!(decoder.decode(&bytes).is_ok(), first.is_ok());
    }
}
